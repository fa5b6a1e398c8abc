// Groups lines with equal members, so that what depends on them is created only once.

import { isEqual } from './keys.as'
import {
  counts,
  firsts,
  flags,
  grouped,
  groups,
  isError,
  isOdd,
  isUnusual,
  joined,
  likeGuesses,
  likeKeys,
  maxOutput,
  members,
  output,
  seconds,
  shapes,
  starts,
} from './layout.as'
import { isSameSecond } from './lines.as'
import { copy } from './members.as'

/** Slots of a hash table of lines, which is in the output area. */
const tableSize: u32 = 1024
const maxProbes: u32 = 8
const hashFactor: u64 = 0x9e3779b97f4a7c15

/** Whether one of the lines `[0, count)` has a member of this name. */
export function hasMember(key: i32, count: i32): bool {
  let shape: i32 = -1
  for (let line = 0; line < count; line++) {
    if ((load<i32>(flags + line * 4) & (isUnusual | isOdd)) !== 0 || load<i32>(shapes + line * 4) === shape) continue
    shape = load<i32>(shapes + line * 4)
    if (memberOf(line, key, 0) >= 0) return true
  }
  return false
}

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
  const hash = <u32>(hashOf(from, length) >>> 40)
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
function hashOf(from: i32, length: i32): u64 {
  let hash = load<u64>(from)
  if (length < 8) hash &= ((<u64>1) << (length * 8)) - 1
  else hash = (hash * hashFactor) ^ load<u64>(from + length - 8)
  return (hash ^ <u64>length) * hashFactor
}

/**
 * Groups lines `[0, count)` by the members whose keys are in `likeKeys`, by stream and by second: sets `joined`. Lines without a member
 * of some name are equal in it. A line may stay in a group of its own.
 */
export function alike(keyCount: i32, byStream: bool, bySecond: bool, count: i32): void {
  memory.fill(output, 0, tableSize * 4)
  memory.fill(likeGuesses, 0, keyCount * 4)
  let second: i32 = 0
  for (let line = 0; line < count; line++) {
    if (bySecond) {
      if (line > 0 && !isSameSecond(load<i32>(starts + line * 4), load<i32>(starts + line * 4 - 4))) second = line
      store<i32>(seconds + line * 4, second)
    }
    let hash = hashOfMembers(line, keyCount)
    if (byStream) hash = (hash ^ <u64>(load<i32>(flags + line * 4) & isError)) * hashFactor
    if (bySecond) hash = (hash ^ <u64>second) * hashFactor
    store<i32>(joined + line * 4, likeLine(line, <u32>(hash >>> 40), keyCount, byStream, bySecond))
  }
}

/** The first line that equals this one. */
function likeLine(line: i32, hash: u32, keyCount: i32, byStream: bool, bySecond: bool): i32 {
  for (let probe: u32 = 0; probe < maxProbes; probe++) {
    const slot = output + ((hash + probe) & (tableSize - 1)) * 4
    const known = load<i32>(slot) - 1
    if (known < 0) {
      store<i32>(slot, line + 1)
      return line
    }
    const bits = load<i32>(flags + known * 4) ^ load<i32>(flags + line * 4)
    if (byStream && (bits & isError) !== 0) continue
    if (bySecond && load<i32>(seconds + known * 4) !== load<i32>(seconds + line * 4)) continue
    if (haveEqualMembers(known, line, keyCount)) return known
  }
  return line
}

function haveEqualMembers(left: i32, right: i32, keyCount: i32): bool {
  for (let index: i32 = 0; index < keyCount; index++) {
    const key = load<i32>(likeKeys + index * 4)
    const guess = load<i32>(likeGuesses + index * 4)
    const one = memberOf(left, key, guess)
    const other = memberOf(right, key, guess)
    if (one < 0 || other < 0) {
      if (one !== other) return false
      continue
    }
    const from = load<i32>(members + one * 16 + 4)
    const length = load<i32>(members + one * 16 + 8) - from
    const place = load<i32>(members + other * 16 + 4)
    if (load<i32>(members + other * 16 + 8) - place !== length || !isEqual(from, place, length)) return false
  }
  return true
}

function hashOfMembers(line: i32, keyCount: i32): u64 {
  let hash: u64 = 0
  for (let index: i32 = 0; index < keyCount; index++) {
    const member = memberOf(line, load<i32>(likeKeys + index * 4), load<i32>(likeGuesses + index * 4))
    if (member >= 0) {
      const from = load<i32>(members + member * 16 + 4)
      hash ^= hashOf(from, load<i32>(members + member * 16 + 8) - from)
      store<i32>(likeGuesses + index * 4, member - load<i32>(firsts + line * 4))
    }
    hash = (hash ^ (hash >>> 29)) * hashFactor
  }
  return hash
}

/** Where the text of a group begins and ends in `output`, by its first line. Both are -1 if it is too long. */
export const textStarts: i32 = groups
export const textEnds: i32 = grouped

/**
 * For each group in `joined`, copies the members whose keys are in `likeKeys` from its first line to `output`. Each is followed by a
 * newline, which no member contains; a missing member is empty. A text has at most `maxBytes` bytes. Returns the end of all.
 */
export function listGroups(keyCount: i32, count: i32, maxBytes: i32): i32 {
  memory.fill(likeGuesses, 0, keyCount * 4)
  let end = output
  for (let line = 0; line < count; line++) {
    if (load<i32>(joined + line * 4) !== line) continue
    const isShort = lengthOfMembers(line, keyCount) <= min(maxBytes, output + maxOutput - 64 - end)
    store<i32>(textStarts + line * 4, isShort ? end : -1)
    if (isShort) end = copyLikeMembers(end, line, keyCount)
    store<i32>(textEnds + line * 4, isShort ? end : -1)
  }
  return end
}

function lengthOfMembers(line: i32, keyCount: i32): i32 {
  let length = keyCount
  for (let index: i32 = 0; index < keyCount; index++) {
    const member = memberOf(line, load<i32>(likeKeys + index * 4), load<i32>(likeGuesses + index * 4))
    if (member < 0) continue
    store<i32>(likeGuesses + index * 4, member - load<i32>(firsts + line * 4))
    length += load<i32>(members + member * 16 + 8) - load<i32>(members + member * 16 + 4)
  }
  return length
}

function copyLikeMembers(to: i32, line: i32, keyCount: i32): i32 {
  let at = to
  for (let index: i32 = 0; index < keyCount; index++) {
    const member = memberOf(line, load<i32>(likeKeys + index * 4), load<i32>(likeGuesses + index * 4))
    if (member >= 0) {
      const from = load<i32>(members + member * 16 + 4)
      at = copy(at, from, load<i32>(members + member * 16 + 8) - from)
    }
    store<u8>(at++, 0x0a)
  }
  return at
}
