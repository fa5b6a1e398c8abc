// Reads the objects in messages. A value in its final form is copied from its original position.

import { isEqual, keyAt, lengthOf, noRoom } from './keys.as'
import {
  counts,
  ends,
  firsts,
  flags,
  isOdd,
  isUnusual,
  keyStride,
  keys,
  maxInput,
  maxLineMembers,
  maxMembers,
  maxRecodes,
  members,
  messages,
  recoded,
  recodes,
  shapes,
  totals,
} from './layout.as'
import { isAscii, memberCount, nextStamp, recodedLength, setMemberCount, setRecodedLength } from './state.as'
import { isShortEscape, nextSpecial, specialsIn, unitsOf, writeCharacter } from './text.as'

/** Maximum nesting depth read here. */
const maxDepth: i32 = 64

/** For the last string, number or value read: its estimated size, and whether it is in its final form. */
let size: i32 = 0
let isPlain: bool = false
/** Offset of a string converted to its final form; 0 if it is still in the input. */
let recodedAt: i32 = 0
let recodeCount: i32 = 0
/** Estimated size of all members of the last object read, with their names. */
let total: i32 = 0
/** The shape of the last line read, and its members. */
let lastShape: i32 = -1
let lastFirst: i32 = 0
let lastCount: i32 = 0

/** Reads the objects in the messages of lines `[from, to)`; returns the number of members that the caller must convert. */
export function readObjects(from: i32, to: i32): i32 {
  recodeCount = 0
  lastShape = -1
  lastCount = 0
  for (let line = from; line < to; line++) {
    const bits = load<i32>(flags + line * 4)
    // Clears the data of an earlier line.
    store<i32>(counts + line * 4, 0)
    if ((bits & isUnusual) !== 0) continue
    const before = memberCount
    const recodesBefore = recodeCount
    const count = readObject(line)
    if (count < 0) {
      setMemberCount(before)
      recodeCount = recodesBefore
      store<i32>(flags + line * 4, bits | isOdd)
    } else {
      store<i32>(firsts + line * 4, before)
      store<i32>(counts + line * 4, count)
      store<i32>(totals + line * 4, total)
      if (!isAlike || count !== lastCount) lastShape++
      store<i32>(shapes + line * 4, lastShape)
      lastFirst = members + before * 16
      lastCount = count
    }
  }
  return recodeCount
}

/** Whether the members of the last object read have the same names as the first members of the previous object. */
let isAlike: bool = false

/** Returns the number of members; negative if the message is rejected. */
function readObject(line: i32): i32 {
  const end = load<i32>(ends + line * 4)
  let at = afterBlanks(load<i32>(messages + line * 4))
  if (load<u8>(at) !== 0x7b || at >= end) return -1
  if (memberCount + maxLineMembers > maxMembers) return -1
  const event = nextStamp()
  total = 0
  isAlike = lastShape >= 0
  at = afterBlanks(at + 1)
  let count: i32 = 0
  let lastKey: i32 = -1
  if (load<u8>(at) === 0x7d) at++
  else {
    while (true) {
      if (load<u8>(at) !== 0x22 || count === maxLineMembers) return -1
      const begin = at
      let key = keyAt(at, lastKey)
      lastKey = key
      if (key >= 0) {
        const entry = keys + key * keyStride
        if (load<u32>(entry + 4) === event) return -1
        store<u32>(entry + 4, event)
        at += <i32>load<u16>(entry) + 2
      } else {
        if (key !== noRoom) return -1
        key = ~at
        if (isRepeated(key, count)) return -1
        at += lengthOf(key) + 2
      }
      const name = at - begin
      if (load<u8>(at) !== 0x3a) {
        at = afterBlanks(at)
        if (load<u8>(at) !== 0x3a) return -1
      }
      at++
      if (load<u8>(at) <= 0x20) at = afterBlanks(at)
      const from = at
      const member = members + memberCount * 16
      isPlain = true
      recodedAt = 0
      at = afterValue(at)
      if (at < 0) return -1
      store<i32>(member, key)
      if (load<i32>(lastFirst + count * 16) !== key) isAlike = false
      if (recodedAt !== 0) {
        store<i32>(member + 4, recodedAt)
        store<i32>(member + 8, recoded + recodedLength)
      } else {
        store<i32>(member + 4, from)
        store<i32>(member + 8, at)
        if (!isPlain) {
          if (recodeCount === maxRecodes) return -1
          store<i32>(recodes + recodeCount * 8, line)
          store<i32>(recodes + recodeCount * 8 + 4, memberCount)
          recodeCount++
        }
      }
      store<i32>(member + 12, size)
      total += size + name + 2
      setMemberCount(memberCount + 1)
      count++
      let next = load<u8>(at)
      if (next <= 0x20) {
        at = afterBlanks(at)
        next = load<u8>(at)
      }
      at++
      if (next === 0x7d) break
      if (next !== 0x2c) return -1
      if (load<u8>(at) !== 0x22) at = afterBlanks(at)
    }
  }
  return afterBlanks(at) === end ? count : -1
}

/** Whether an earlier member known by its position has the same name. */
function isRepeated(key: i32, count: i32): bool {
  const name = ~key + 1
  const length = lengthOf(key)
  const last = members + memberCount * 16
  for (let member = last - count * 16; member < last; member += 16) {
    const other = load<i32>(member)
    // The other name ends there, or has no quote at all before that.
    if (other < 0 && load<u8>(~other + 1 + length) === 0x22 && isEqual(~other + 1, name, length)) return true
  }
  return false
}

/** Skips blanks within a line. */
function afterBlanks(from: i32): i32 {
  let at = from
  for (let byte = load<u8>(at); byte === 0x20 || byte === 0x09 || byte === 0x0d; byte = load<u8>(at)) at++
  return at
}

/** The end of a member's value; negative if it is rejected. */
function afterValue(from: i32): i32 {
  const first = load<u8>(from)
  if (first === 0x22) {
    const end = afterString(from)
    if (end < 0) return -1
    if (!isPlain && !recodeString(from, end)) return -1
    return end
  }
  if (first === 0x7b || first === 0x5b) {
    const end = afterNested(from, 0)
    if (end < 0) return -1
    return isPlain ? end : afterBrackets(from)
  }
  return afterScalar(from, first)
}

function afterScalar(from: i32, first: u8): i32 {
  if (first === 0x2d || <u32>first - 0x30 <= 9) return afterNumber(from)
  size = 4
  if (first === 0x74) return load<u32>(from) === 0x65757274 ? from + 4 : -1
  if (first === 0x6e) return load<u32>(from) === 0x6c6c756e ? from + 4 : -1
  if (first !== 0x66) return -1
  size = 5
  return load<u32>(from + 1) === 0x65736c61 ? from + 5 : -1
}

/** The end of the string that begins here; negative if it is invalid. Sets `size` and `isPlain`. */
function afterString(from: i32): i32 {
  let escapes: i32 = 0
  let wide: i32 = 0
  let at = from + 1
  while (true) {
    const bytes = v128.load(at)
    const mask = specialsIn(bytes)
    const high = v128.bitmask<u8>(bytes)
    if (mask === 0) {
      wide |= high
      at += 16
      continue
    }
    const place = ctz(mask)
    wide |= high & ((1 << place) - 1)
    at += place
    const byte = load<u8>(at)
    if (byte === 0x22) break
    if (byte !== 0x5c) return -1
    const escaped = load<u8>(at + 1)
    if (escaped < 0x20) return -1
    if (!isShortEscape(escaped)) isPlain = false
    escapes++
    at += 2
  }
  at++
  size = (wide === 0 ? at - from : unitsOf(from, at)) - escapes
  return at
}

/** Converts a string with other escapes to its final form; false if it is rejected. Sets `size` and `recodedAt`. */
function recodeString(from: i32, end: i32): bool {
  // The output is never longer than the input text.
  if (recodedLength + (end - from) > maxInput) return false
  const begin = recoded + recodedLength
  let to = begin
  let units: i32 = 0
  let at = from
  const last = end - 1
  store<u8>(to++, 0x22)
  at++
  while (at < last) {
    const next = min(nextSpecial(at), last)
    if (next > at) {
      memory.copy(to, at, next - at)
      units += isAscii ? next - at : unitsOf(at, next)
      to += next - at
      at = next
      continue
    }
    const letter = load<u8>(at + 1)
    if (isShortEscape(letter)) {
      store<u16>(to, load<u16>(at))
      to += 2
      at += 2
      units++
      continue
    }
    if (letter === 0x2f) {
      store<u8>(to++, 0x2f)
      at += 2
      units++
      continue
    }
    if (letter !== 0x75) return false
    let code = fourHex(at + 2)
    if (code < 0) return false
    at += 6
    units++
    if (code >= 0xd800 && code <= 0xdfff) {
      // A lone surrogate is left to the caller.
      if (code >= 0xdc00 || load<u16>(at) !== 0x755c) return false
      const low = fourHex(at + 2)
      if (low < 0xdc00 || low > 0xdfff) return false
      code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00)
      at += 6
      units++
    }
    to = writeCharacter(to, code)
  }
  store<u8>(to++, 0x22)
  setRecodedLength(to - recoded)
  recodedAt = begin
  size = units + 2
  isPlain = true
  return true
}

function fourHex(at: i32): i32 {
  let value: i32 = 0
  for (let index = 0; index < 4; index++) {
    const byte = <i32>load<u8>(at + index)
    const letter = byte | 0x20
    let digit = byte - 0x30
    if (<u32>digit > 9) {
      digit = letter - 0x61 + 10
      if (letter < 0x61 || letter > 0x66) return -1
    }
    value = (value << 4) | digit
  }
  return value
}

/** The largest integer that the object lane keeps as a number, and the ends of 64 bits without their signs. */
const maxSafeInteger: u64 = 9007199254740991
const maxInteger: u64 = 9223372036854775807
const minInteger: u64 = 9223372036854775808

/** The value of at most 19 digits. */
function digitsAt(from: i32, count: i32): u64 {
  let value: u64 = 0
  for (let at = from; at < from + count; at++) value = value * 10 + <u64>(load<u8>(at) - 0x30)
  return value
}

function afterDigits(from: i32): i32 {
  let at = from
  while (true) {
    const others = v128.gt<u8>(v128.sub<u8>(v128.load(at), v128.splat<u8>(0x30)), v128.splat<u8>(9))
    const mask = v128.bitmask<u8>(others)
    if (mask !== 0) return at + ctz(mask)
    at += 16
  }
}

/**
 * The end of the number that begins here; negative if it is invalid. Sets `size`, and sets `isPlain` to false if its final form differs.
 */
function afterNumber(from: i32): i32 {
  const isNegative = load<u8>(from) === 0x2d
  const first = isNegative ? from + 1 : from
  let at = afterDigits(first)
  const whole = at - first
  const startsWithZero = load<u8>(first) === 0x30
  if (whole === 0 || (startsWithZero && whole > 1)) return -1
  size = whole === 1 ? 1 : whole <= 3 ? 3 : whole <= 6 ? 6 : 12
  let plain = !(isNegative && startsWithZero)
  if (whole >= 16) {
    // Integers that keep their digits: those that fit in 64 bits.
    size = 19
    if (whole === 16 && digitsAt(first, 16) <= maxSafeInteger) size = 12
    else if (whole >= 19) plain = plain && whole === 19 && digitsAt(first, 19) <= (isNegative ? minInteger : maxInteger)
  }
  if (load<u8>(at) === 0x2e) {
    const point = at + 1
    at = afterDigits(point)
    const places = at - point
    if (places === 0) return -1
    size = 8
    plain = whole + places <= 15 && load<u8>(at - 1) !== 0x30
    // Small numbers are written with an exponent.
    if (startsWithZero && places > 4 && load<u32>(point) === 0x30303030) plain = false
  }
  if ((load<u8>(at) | 0x20) === 0x65) {
    plain = false
    at++
    const sign = load<u8>(at)
    if (sign === 0x2b || sign === 0x2d) at++
    const end = afterDigits(at)
    if (end === at) return -1
    at = end
  }
  if (!plain) isPlain = false
  return at
}

/** The end of an object or array; negative if it is invalid. If its final form differs, the result may be any non-negative offset. */
function afterNested(from: i32, depth: i32): i32 {
  if (depth === maxDepth) return -1
  const isObject = load<u8>(from) === 0x7b
  const close: u8 = isObject ? 0x7d : 0x5d
  let at = from + 1
  let total: i32 = 2
  let lastName: i32 = 0
  let lastEnd: i32 = 0
  if (load<u8>(at) === close) {
    size = 2
    return at + 1
  }
  while (true) {
    if (isObject) {
      if (load<u8>(at) !== 0x22) return notPlain(at)
      const end = afterString(at)
      if (end < 0) return -1
      // Names must be in output order; a name with a special meaning is left to the caller.
      if (!isPlain || load<u8>(end) !== 0x3a || (lastName !== 0 && !isBefore(lastName, lastEnd, at, end)))
        return notPlain(at)
      if (end - at === 11 && load<u16>(at + 1) === 0x5f5f) return notPlain(at)
      lastName = at
      lastEnd = end
      total += size + 2
      at = end + 1
    } else total++
    const first = load<u8>(at)
    if (first === 0x22) at = afterString(at)
    else if (first === 0x7b || first === 0x5b) at = afterNested(at, depth + 1)
    else if (first <= 0x20) return notPlain(at)
    else at = afterScalar(at, first)
    if (at < 0 || !isPlain) return at
    total += size
    const next = load<u8>(at++)
    if (next === close) break
    if (next !== 0x2c) return next <= 0x20 ? notPlain(at) : -1
  }
  size = total
  return at
}

function notPlain(at: i32): i32 {
  isPlain = false
  return at
}

/**
 * Whether a quoted name precedes another one. Both contain only short escapes, whose byte order differs from that of the characters.
 */
function isBefore(left: i32, leftEnd: i32, right: i32, rightEnd: i32): bool {
  const length = min(leftEnd - left, rightEnd - right) - 1
  for (let index = 1; index < length; index++) {
    const one = load<u8>(left + index)
    const other = load<u8>(right + index)
    if (one === 0x5c || other === 0x5c) return false
    if (one !== other) return one < other
  }
  return leftEnd - left < rightEnd - right
}

/**
 * The end of an object or array, found only by its brackets, because the caller parses it. Negative if there is none.
 */
function afterBrackets(from: i32): i32 {
  let depth: i32 = 0
  let at = from
  isPlain = false
  while (true) {
    const byte = load<u8>(at)
    if (byte === 0x22) {
      at = afterString(at)
      if (at < 0) return -1
      isPlain = false
      continue
    }
    at++
    if (byte === 0x7b || byte === 0x5b) {
      if (++depth > maxDepth) return -1
    } else if (byte === 0x7d || byte === 0x5d) {
      if (--depth === 0) return at
    } else if (byte < 0x20 && byte !== 0x09 && byte !== 0x0d) return -1
  }
}
