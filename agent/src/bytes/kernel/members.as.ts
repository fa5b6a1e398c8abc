// Writes parts of an event's JSON: names and copied members.

import { lengthOf } from './keys.as'
import { keyStride, keys } from './layout.as'

/** Writes a name with a comma before and a colon after it. */
export function writeName(at: i32, key: i32): i32 {
  if (key >= 0) {
    const entry = keys + key * keyStride
    return copy(at, entry + 16, <i32>load<u16>(entry) + 4)
  }
  store<u8>(at, 0x2c)
  const end = copy(at + 1, ~key, lengthOf(key) + 2)
  store<u8>(end, 0x3a)
  return end + 1
}

/** Copies members of the message; the byte before the first becomes a comma. */
export function copyMembers(at: i32, start: i32, end: i32): i32 {
  const to = copy(at, start, end - start)
  store<u8>(at, 0x2c)
  return to
}

/** Adds brackets around members; returns the end. */
export function closed(from: i32, end: i32): i32 {
  let at = end
  // The comma before the first name becomes the bracket.
  if (at === from) at++
  store<u8>(from, 0x7b)
  store<u8>(at, 0x7d)
  return at + 1
}

/** Copies whole words: the bytes after both ranges are overwritten later, or unused. */
export function copy(to: i32, from: i32, length: i32): i32 {
  v128.store(to, v128.load(from))
  v128.store(to, v128.load(from, 16), 16)
  if (length > 512) memory.copy(to, from, length)
  else {
    for (let at: i32 = 32; at < length; at += 32) {
      v128.store(to + at, v128.load(from + at))
      v128.store(to + at, v128.load(from + at, 16), 16)
    }
  }
  return to + length
}
