// Sizes and JSON of events: members of the message, and those that a plan sets or removes.

import { compareNames, lengthOf } from './keys.as'
import {
  counts,
  digits,
  edited,
  ends,
  firsts,
  flags,
  isError,
  isOdd,
  isUnusual,
  keyStride,
  keys,
  kindMessage,
  kindStream,
  kindTime,
  maxName,
  maxOutput,
  members,
  messages,
  order,
  output,
  outside,
  outsideStride,
  sizes,
  starts,
  weak,
  writtenEnds,
} from './layout.as'
import { isAscii, nextStamp, stamp } from './state.as'
import { nextSpecial, unitsOf, writeControl } from './text.as'

/** Estimates the sizes of the events of lines `[from, to)`; gives their sum. `parses` says whether the members of the message count. */
export function measure(from: i32, to: i32, outsideCount: i32, parses: bool): f64 {
  let sum: f64 = 0
  for (let line = from; line < to; line++) {
    const bits = load<i32>(flags + line * 4)
    if ((bits & isUnusual) !== 0 || (parses && (bits & isOdd) !== 0)) continue
    const total = sizeOf(line, outsideCount, parses)
    store<i32>(sizes + line * 4, total)
    sum += <f64>total
  }
  return sum
}

function sizeOf(line: i32, outsideCount: i32, parses: bool): i32 {
  let total: i32 = 2
  if (parses) {
    nextStamp()
    const count = load<i32>(counts + line * 4)
    let member = members + load<i32>(firsts + line * 4) * 16
    for (let index: i32 = 0; index < count; index++, member += 16) {
      const key = load<i32>(member)
      if (key < 0) {
        total += lengthOf(key) + 4 + load<i32>(member + 12)
        continue
      }
      const entry = keys + key * keyStride
      store<u32>(entry + 4, stamp)
      if (load<u8>(edited + key) === 0) total += <i32>load<u16>(entry) + 4 + load<i32>(member + 12)
    }
  }
  let entry = outside
  for (let index: i32 = 0; index < outsideCount; index++, entry += outsideStride) {
    const kind = load<i32>(entry + 4)
    if (parses && (kind & weak) !== 0 && load<u32>(keys + load<i32>(entry) * keyStride + 4) === stamp) continue
    total += load<i32>(entry + 16)
    if ((kind & 15) === kindMessage) {
      const message = load<i32>(messages + line * 4)
      const end = load<i32>(ends + line * 4)
      total += isAscii ? end - message : unitsOf(message, end)
    }
  }
  return total
}

/**
 * Writes the events of lines `[from, to)` and `suffix` behind each (a byte; 0: none), until `output` is full. Gives how many it wrote;
 * where each ends, its suffix not counted, stands in `writtenEnds`.
 */
export function write(from: i32, to: i32, outsideCount: i32, parses: bool, suffix: u8): i32 {
  return writeAt(output, output + maxOutput, from, to, outsideCount, parses, suffix)
}

function writeAt(place: i32, limit: i32, from: i32, to: i32, outsideCount: i32, parses: bool, suffix: u8): i32 {
  let at = place
  let outsideBytes: i32 = 0
  for (let index: i32 = 0; index < outsideCount; index++) {
    const entry = outside + index * outsideStride
    outsideBytes += maxName + 64 + load<i32>(entry + 12)
  }
  let sortedCount: i32 = -1
  let sortedFirst: i32 = 0
  const refused = parses ? isUnusual | isOdd : isUnusual
  for (let line = from; line < to; line++) {
    // Of such a line nothing was read: its places hold what others have left there.
    if ((load<i32>(flags + line * 4) & refused) !== 0) return line - from
    let count: i32 = 0
    let first: i32 = 0
    let hasPlaces = false
    let bytes = outsideBytes + 6 * (load<i32>(ends + line * 4) - load<i32>(messages + line * 4)) + 64
    if (parses) {
      count = load<i32>(counts + line * 4)
      first = members + load<i32>(firsts + line * 4) * 16
      for (let member = first; member < first + count * 16; member += 16) {
        bytes += load<i32>(member + 8) - load<i32>(member + 4) + maxName + 32
        if (load<i32>(member) < 0) hasPlaces = true
      }
    }
    if (at + bytes > limit) return line - from
    if (hasPlaces) {
      sortByName(first, count)
      sortedCount = -1
    } else if (parses) {
      // The members of one event after the other often have the same names.
      if (count !== sortedCount || !hasSameKeys(first, sortedFirst, count)) sortMembers(first, count)
      sortedCount = count
      sortedFirst = first
    }
    at = writeEvent(line, at, first, count, outsideCount, parses, hasPlaces)
    store<i32>(writtenEnds + (line - from) * 4, at)
    if (suffix !== 0) store<u8>(at++, suffix)
  }
  return to - from
}

/**
 * Writes the event of a line as a JSON string that holds its JSON; gives its end in `output`, 0 if it is too long.
 */
export function writeQuoted(line: i32, outsideCount: i32, parses: bool): i32 {
  // The event comes behind the place for the string, which is at most twice as long: nothing in it is below 0x20.
  const place = output + (maxOutput / 3) * 2
  const end = writeAt(place, output + maxOutput, line, line + 1, outsideCount, parses, 0)
  return end === 0 ? 0 : writeText(output, place, load<i32>(writtenEnds))
}

function hasSameKeys(left: i32, right: i32, count: i32): bool {
  for (let at: i32 = 0; at < count * 16; at += 16) if (load<i32>(left + at) !== load<i32>(right + at)) return false
  return true
}

/** Puts the places of members into the order of their names: a rank and a number of two bytes each. */
function sortMembers(first: i32, count: i32): void {
  for (let index: i32 = 0; index < count; index++) {
    const rank = <u32>load<u16>(keys + load<i32>(first + index * 16) * keyStride + 2)
    const word = (rank << 16) | <u32>index
    let place = order + index * 4
    while (place > order && load<u32>(place - 4) > word) {
      store<u32>(place, load<u32>(place - 4))
      place -= 4
    }
    store<u32>(place, word)
  }
}

/** The same where names have no rank: the numbers of the members alone. */
function sortByName(first: i32, count: i32): void {
  for (let index: i32 = 0; index < count; index++) {
    const key = load<i32>(first + index * 16)
    let place = order + index * 4
    while (place > order && compareNames(load<i32>(first + load<i32>(place - 4) * 16), key) > 0) {
      store<u32>(place, load<u32>(place - 4))
      place -= 4
    }
    store<u32>(place, index)
  }
}

/** @param byName whether members have no ranks */
function writeEvent(line: i32, from: i32, first: i32, count: i32, outsideCount: i32, parses: bool, byName: bool): i32 {
  let at = from
  let other = outside
  const otherEnd = outside + outsideCount * outsideStride
  if (parses) {
    nextStamp()
    for (let member = first; member < first + count * 16; member += 16) {
      const key = load<i32>(member)
      if (key >= 0) store<u32>(keys + key * keyStride + 4, stamp)
    }
  }
  for (let place: i32 = 0; place < count; place++) {
    const word = load<u32>(order + place * 4)
    const rank = word >>> 16
    const member = first + <i32>(word & 0xffff) * 16
    const key = load<i32>(member)
    while (other < otherEnd && (byName ? compareNames(load<i32>(other), key) < 0 : load<u32>(other + 20) < rank)) {
      at = writeOutside(other, at, line, parses)
      other += outsideStride
    }
    if (key >= 0) {
      if (load<u8>(edited + key) !== 0) continue
      at = writeName(at, keys + key * keyStride)
    } else {
      store<u8>(at, 0x2c)
      at = copy(at + 1, ~key, lengthOf(key) + 2)
      store<u8>(at++, 0x3a)
    }
    const value = load<i32>(member + 4)
    at = copy(at, value, load<i32>(member + 8) - value)
  }
  for (; other < otherEnd; other += outsideStride) at = writeOutside(other, at, line, parses)
  // The comma before the first name becomes the bracket.
  if (at === from) at++
  store<u8>(from, 0x7b)
  store<u8>(at, 0x7d)
  return at + 1
}

/** A name with a comma before it and a colon behind it. */
function writeName(at: i32, entry: i32): i32 {
  return copy(at, entry + 16, <i32>load<u16>(entry) + 4)
}

/** Copies by whole loads: what stands behind both places is written later, or room. */
function copy(to: i32, from: i32, length: i32): i32 {
  if (length > 256) memory.copy(to, from, length)
  else for (let at: i32 = 0; at < length; at += 16) v128.store(to + at, v128.load(from + at))
  return to + length
}

function writeOutside(entry: i32, from: i32, line: i32, parses: bool): i32 {
  const key = keys + load<i32>(entry) * keyStride
  const kind = load<i32>(entry + 4)
  if (parses && (kind & weak) !== 0 && load<u32>(key + 4) === stamp) return from
  const at = writeName(from, key)
  switch (kind & 15) {
    case kindMessage:
      return writeText(at, load<i32>(messages + line * 4), load<i32>(ends + line * 4))
    case kindStream:
      store<u64>(at, (load<i32>(flags + line * 4) & isError) !== 0 ? 0x2272726564747322 : 0x2274756f64747322)
      return at + 8
    case kindTime:
      return writeTime(at, load<i32>(starts + line * 4), load<i32>(digits + line * 4))
    default:
      return copy(at, load<i32>(entry + 8), load<i32>(entry + 12))
  }
}

/** Writes text as a JSON string. */
function writeText(to: i32, from: i32, end: i32): i32 {
  let out = to
  let at = from
  store<u8>(out++, 0x22)
  while (at < end) {
    const next = min(nextSpecial(at), end)
    out = copy(out, at, next - at)
    if (next === end) break
    const byte = load<u8>(next)
    if (byte >= 0x20) {
      store<u8>(out, 0x5c)
      store<u8>(out + 1, byte)
      out += 2
    } else out = writeControl(out, byte)
    at = next + 1
  }
  store<u8>(out, 0x22)
  return out + 1
}

/** Writes a time as the line has it, with 0, 3, 6 or 9 digits of a fraction. */
function writeTime(to: i32, start: i32, packed: i32): i32 {
  const written = packed & 255
  const given = packed >> 8
  store<u8>(to, 0x22)
  let at = to + 1
  v128.store(at, v128.load(start))
  v128.store(at + 13, v128.load(start + 13))
  at += 19
  if (written !== 0) {
    for (let digit = min(given, written); digit < written; digit++) store<u8>(at + 1 + digit, 0x30)
    at += written + 1
  }
  store<u16>(at, 0x225a)
  return at + 2
}
