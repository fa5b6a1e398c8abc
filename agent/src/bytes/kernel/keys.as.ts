// The names of members, looked up by their bytes. The table belongs to one source at a time.

import { hashSlots, keyStride, keys, maxKeys, maxName, maxProbes, slots } from './layout.as'
import { isAscii, keyCount, nextKey, refuseName } from './state.as'
import { nextSpecial } from './text.as'

/** The name is plain, but the table has no room for it: it is known by its position. */
export const noRoom: i32 = -2

/** The key of the last object's first member. */
let firstKey: i32 = 0

/** The key of the name whose opening quote is here; negative if the name is not plain, or the table has no room for it. */
export function keyAt(from: i32, lastKey: i32): i32 {
  // Often it is the key that last followed the previous one.
  const guess = lastKey >= 0 ? <i32>load<u16>(keys + lastKey * keyStride + 8) : firstKey
  if (guess < keyCount) {
    const entry = keys + guess * keyStride
    if (isEqual(from, entry + 17, <i32>load<u16>(entry) + 2)) return guess
  }
  const key = findKey(from)
  if (key >= 0) {
    if (lastKey >= 0) store<u16>(keys + lastKey * keyStride + 8, <u16>key)
    else firstKey = key
  }
  return key
}

/** Whether this many bytes are equal. */
export function isEqual(left: i32, right: i32, length: i32): bool {
  let at: i32 = 0
  for (; at + 16 <= length; at += 16) {
    if (!v128.all_true<u8>(v128.eq<u8>(v128.load(left + at), v128.load(right + at)))) return false
  }
  const mask = v128.bitmask<u8>(v128.eq<u8>(v128.load(left + at), v128.load(right + at)))
  const wanted = (1 << (length - at)) - 1
  return (mask & wanted) === wanted
}

/**
 * The key of the name whose opening quote is here; a new name is added. `noRoom` if the table is full, or all
 * slots where the name may be are taken; -1 if the name is not plain.
 */
export function findKey(from: i32): i32 {
  const first = from + 1
  const end = nextSpecial(first)
  if (load<u8>(end) !== 0x22) return -1
  const length = end - first
  if (length > maxName || !isAsciiRun(first, length)) return -1
  let hash: u32 = <u32>length
  for (let at = first; at < end; at++) hash = (hash ^ load<u8>(at)) * 0x01000193
  hash ^= hash >>> 15
  for (let probe: u32 = 0; probe < <u32>maxProbes; probe++) {
    const slot = slots + ((hash + probe) & (hashSlots - 1)) * 2
    const known = <i32>load<u16>(slot)
    if (known === 0) return addKey(first, length, slot)
    const entry = keys + (known - 1) * keyStride
    if (<i32>load<u16>(entry) === length && isEqual(from, entry + 17, length + 2)) return known - 1
  }
  return refused()
}

function isAsciiRun(from: i32, length: i32): bool {
  if (isAscii) return true
  for (let at: i32 = 0; at < length; at++) if (load<u8>(from + at) >= 0x7f) return false
  return true
}

function addKey(first: i32, length: i32, slot: i32): i32 {
  // This name has a special meaning in objects.
  if (length === 9 && load<u64>(first) === 0x5f6f746f72705f5f && load<u8>(first + 8) === 0x5f) return -1
  if (keyCount === maxKeys) return refused()
  const key = nextKey()
  const entry = keys + key * keyStride
  store<u16>(entry, <u16>length)
  store<u16>(entry + 2, 0)
  store<u32>(entry + 4, 0)
  store<u16>(entry + 8, 0xffff)
  store<u16>(entry + 16, 0x222c)
  memory.copy(entry + 18, first, length)
  store<u16>(entry + 18 + length, 0x3a22)
  store<u16>(slot, <u16>(key + 1))
  return key
}

function refused(): i32 {
  refuseName()
  return noRoom
}

/** Offset of a name by its key, or by the complement of its position. */
export function nameOf(key: i32): i32 {
  return key >= 0 ? keys + key * keyStride + 18 : ~key + 1
}

export function lengthOf(key: i32): i32 {
  if (key >= 0) return <i32>load<u16>(keys + key * keyStride)
  const name = ~key + 1
  return nextSpecial(name) - name
}

/** Compares two names: negative if the left one comes first. */
export function compareNames(left: i32, right: i32): i32 {
  const one = nameOf(left)
  const other = nameOf(right)
  const oneLength = lengthOf(left)
  const otherLength = lengthOf(right)
  const length = min(oneLength, otherLength)
  for (let at: i32 = 0; at < length; at++) {
    const difference = <i32>load<u8>(one + at) - <i32>load<u8>(other + at)
    if (difference !== 0) return difference
  }
  return oneLength - otherLength
}
