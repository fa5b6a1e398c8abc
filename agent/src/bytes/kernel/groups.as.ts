// Groups lines with equal members of one name, so that the value is created only once.

import { isEqual } from './keys.as'
import {
  byMember,
  byStream,
  counts,
  firsts,
  flags,
  grouped,
  groups,
  isError,
  isOdd,
  isUnusual,
  joined,
  members,
  output,
  starts,
} from './layout.as'
import { isSameSecond } from './lines.as'

/** Slots of a hash table of lines or pairs, which is in the output area. */
const tableSize: u32 = 1024
const maxProbes: u32 = 8

/**
 * Groups lines `[0, count)` by the value of a member: sets `groups` and `grouped`. A line may stay in a group of its
 * own.
 */
export function group(key: i32, count: i32): void {
  memory.fill(output, 0, tableSize * 4)
  let guess: i32 = 0
  for (let line = 0; line < count; line++) {
    const member = memberOf(line, key, guess)
    store<i32>(grouped + line * 4, member)
    if (member < 0) {
      store<i32>(groups + line * 4, -1)
      continue
    }
    guess = member - load<i32>(firsts + line * 4)
    store<i32>(groups + line * 4, groupOf(line, member))
  }
}

/**
 * The number of the member of this name; negative if the line has none. @param guess its likely position in the line
 */
function memberOf(line: i32, key: i32, guess: i32): i32 {
  if ((load<i32>(flags + line * 4) & (isUnusual | isOdd)) !== 0) return -1
  const first = load<i32>(firsts + line * 4)
  const count = load<i32>(counts + line * 4)
  if (guess < count && load<i32>(members + (first + guess) * 16) === key) return first + guess
  for (let member = first; member < first + count; member++) {
    if (load<i32>(members + member * 16) === key) return member
  }
  return -1
}

function groupOf(line: i32, member: i32): i32 {
  const from = load<i32>(members + member * 16 + 4)
  const length = load<i32>(members + member * 16 + 8) - from
  const hash = hashOf(from, length)
  for (let probe: u32 = 0; probe < maxProbes; probe++) {
    const slot = output + ((hash + probe) & (tableSize - 1)) * 4
    const known = load<i32>(slot) - 1
    if (known < 0) {
      store<i32>(slot, line + 1)
      return line
    }
    const other = members + load<i32>(grouped + known * 4) * 16
    const place = load<i32>(other + 4)
    if (load<i32>(other + 8) - place === length && isEqual(from, place, length)) return known
  }
  return line
}

/** Hash of the first and last bytes of a value, and its length. */
function hashOf(from: i32, length: i32): u32 {
  let hash = load<u64>(from)
  if (length < 8) hash &= ((<u64>1) << (length * 8)) - 1
  else hash = (hash * 0x9e3779b97f4a7c15) ^ load<u64>(from + length - 8)
  hash = (hash ^ <u64>length) * 0x9e3779b97f4a7c15
  return <u32>(hash >>> 40)
}

/**
 * Intersects the current groups with those of `joined`: lines stay together only if both group them together. Lines without such a
 * member are equal. @param by the last grouped member, the stream, or the second
 */
export function join(by: i32, count: i32): void {
  memory.fill(output, 0, tableSize * 12)
  let second: i32 = 0
  for (let line = 0; line < count; line++) {
    let value: i32 = 0
    if (by === byMember) value = load<i32>(groups + line * 4)
    else if (by === byStream) value = load<i32>(flags + line * 4) & isError
    else {
      if (line > 0 && !isSameSecond(load<i32>(starts + line * 4), load<i32>(starts + line * 4 - 4))) second = line
      value = second
    }
    store<i32>(joined + line * 4, pairOf(line, load<i32>(joined + line * 4), value))
  }
}

/** The first line with this pair of groups. */
function pairOf(line: i32, left: i32, right: i32): i32 {
  let hash = (<u32>left * 0x9e3779b1) ^ (<u32>right * 0x85ebca6b)
  hash ^= hash >>> 15
  for (let probe: u32 = 0; probe < maxProbes; probe++) {
    const slot = output + ((hash + probe) & (tableSize - 1)) * 12
    const known = load<i32>(slot) - 1
    if (known < 0) {
      store<i32>(slot, line + 1)
      store<i32>(slot + 4, left)
      store<i32>(slot + 8, right)
      return line
    }
    if (load<i32>(slot + 4) === left && load<i32>(slot + 8) === right) return known
  }
  return line
}
