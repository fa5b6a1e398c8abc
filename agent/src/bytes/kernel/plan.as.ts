// Sizes and JSON of events: members of the message, and those that a plan sets or removes.

import { compareNames, lengthOf } from './keys.as'
import {
  apart,
  byColumn,
  columns,
  counts,
  digits,
  edited,
  editedPlaces,
  ends,
  firsts,
  flags,
  isError,
  isOdd,
  isUnusual,
  keyStride,
  keys,
  kindColumn,
  kindLiteral,
  kindMember,
  kindMessage,
  kindObject,
  kindStream,
  kindTime,
  maxLines,
  maxName,
  maxOutput,
  members,
  messages,
  order,
  output,
  outside,
  outsideStride,
  prefix,
  rankBits,
  rankPlaces,
  selected,
  shapes,
  sizes,
  spread,
  starts,
  tail,
  timeMs,
  timeNs,
  totals,
  untouched,
  values,
  weak,
  writtenEnds,
} from './layout.as'
import { closed, copy, copyMembers, writeName } from './members.as'
import { isAscii, keyCount, nextStamp, recodedLength, stamp } from './state.as'
import { findSteps, writeSteps } from './steps.as'
import { escapeJson, escapeText, unitsOf } from './text.as'

/**
 * Estimates the sizes of the events of lines `[from, to)`; returns their sum. @param mode how the object in the message
 * is used
 */
export function measure(from: i32, to: i32, outsideCount: i32, mode: i32): f64 {
  let sum: f64 = 0
  lookAtPlan(outsideCount, mode)
  for (let line = from; line < to; line++) {
    const bits = load<i32>(flags + line * 4)
    if ((bits & isUnusual) !== 0 || (mode !== apart && (bits & isOdd) !== 0)) continue
    const total = 2 + (mode === spread ? sizeOfMembers(line) : 0) + sizeOutside(line, outsideCount, mode)
    store<i32>(sizes + line * 4, total)
    sum += <f64>total
  }
  return sum
}

/** The size of message members that keep their names. */
function sizeOfMembers(line: i32): i32 {
  const first = members + load<i32>(firsts + line * 4) * 16
  if (needsNotes) noteMembers(first, first + load<i32>(counts + line * 4) * 16)
  findEdited(line, first)
  let total = load<i32>(totals + line * 4)
  for (let index: i32 = 0; index < editedCount; index++) {
    const member = first + load<i32>(editedPlaces + index * 4) * 16
    const key = load<i32>(member)
    if (!isLeftByColumn(key, line)) total -= lengthOf(key) + 4 + load<i32>(member + 12)
  }
  return total
}

/** Number of edited members in lines of this shape; `editedPlaces` has their numbers. */
let editedCount: i32 = 0
let editedShape: i32 = -1

function findEdited(line: i32, first: i32): void {
  const shape = load<i32>(shapes + line * 4)
  if (shape === editedShape) return
  editedShape = shape
  editedCount = 0
  for (let place: i32 = 0; place < load<i32>(counts + line * 4); place++) {
    const key = load<i32>(first + place * 16)
    if (key < 0 || load<u8>(edited + key) === 0) continue
    store<i32>(editedPlaces + editedCount * 4, place)
    editedCount++
  }
}

/** The size of members other than message members with their own names. */
function sizeOutside(line: i32, outsideCount: i32, mode: i32): i32 {
  let total = outsideSize
  if (!hasConditions) {
    if (messageCopies !== 0) total += messageCopies * unitsOfMessage(line)
    if (memberCopies !== 0) total += memberCopies * objectSize(line)
    return total
  }
  let entry = outside
  for (let index: i32 = 0; index < outsideCount; index++, entry += outsideStride) {
    if (!isWritten(entry, line, mode)) continue
    total += load<i32>(entry + 16)
    switch (load<i32>(entry + 4) & 15) {
      case kindMessage:
        total += unitsOfMessage(line)
        break
      case kindColumn:
        total += load<i32>(valueIn(entry, line) + 8)
        break
      case kindMember:
        total += load<i32>(memberOf(entry) + 12)
        break
      case kindObject:
        total += objectSize(line)
        break
    }
  }
  return total
}

function unitsOfMessage(line: i32): i32 {
  const message = load<i32>(messages + line * 4)
  const end = load<i32>(ends + line * 4)
  return isAscii ? end - message : unitsOf(message, end)
}

function objectSize(line: i32): i32 {
  return 2 + load<i32>(totals + line * 4)
}

/** Whether message members affect other members: a copied member must exist, or must not hide a source field. */
let needsNotes: bool = false
/** Whether some members from outside the message are written only for some lines. */
let hasConditions: bool = false
/** Whether all these members are literals written for all lines. */
let isPlain: bool = false
/**
 * How often a plan may write the text of a message, and how often it may write members of its object in addition to their
 * original position.
 */
let messageCopies: i32 = 0
let memberCopies: i32 = 0
/** Total size of the members from outside the message, if all are written for all lines. */
let outsideSize: i32 = 0

/** Analyses the plan at the start of a call that measures or writes. */
function lookAtPlan(outsideCount: i32, mode: i32): void {
  editedShape = -1
  outsideSize = 0
  needsNotes = false
  hasConditions = false
  isPlain = true
  messageCopies = 0
  memberCopies = 0
  for (let entry = outside; entry < outside + outsideCount * outsideStride; entry += outsideStride) {
    const kind = load<i32>(entry + 4)
    if (mode === spread && ((kind & weak) !== 0 || kind === kindMember)) needsNotes = true
    if (needsNotes || kind === kindColumn || load<i32>(entry + 28) >= 0) hasConditions = true
    if (kind !== kindLiteral || hasConditions) isPlain = false
    if ((kind & 15) === kindMessage) messageCopies++
    else if (kind === kindMember || kind === kindObject) memberCopies++
    outsideSize += load<i32>(entry + 16)
  }
  if (hasConditions) outsideSize = 0
}

/** Records in the entries of names which members a message has, and where. */
function noteMembers(first: i32, end: i32): void {
  nextStamp()
  for (let member = first; member < end; member += 16) {
    const key = load<i32>(member)
    if (key < 0) continue
    const entry = keys + key * keyStride
    store<u32>(entry + 4, stamp)
    store<i32>(entry + 12, member)
  }
}

/** Whether the plan's edit of the message member with this key has no effect, because the column leaves it. */
function isLeftByColumn(key: i32, line: i32): bool {
  const edit = <i32>load<u8>(edited + key)
  return edit >= byColumn && inColumn(edit - byColumn, line) === untouched
}

/** The number of a value in a column, or the special entry. */
function inColumn(column: i32, line: i32): i32 {
  return load<i32>(columns + (column * maxLines + line) * 4)
}

/** The column value of an entry for a line. */
function valueIn(entry: i32, line: i32): i32 {
  return values + (load<i32>(entry + 8) + inColumn(load<i32>(entry + 24), line)) * 12
}

/** The message member that decides whether an entry is written. */
function memberOf(entry: i32): i32 {
  return load<i32>(keys + load<i32>(entry + 24) * keyStride + 12)
}

/** Whether an entry is written for a line. If message members are spread, they must have been recorded. */
function isWritten(entry: i32, line: i32, mode: i32): bool {
  const kind = load<i32>(entry + 4)
  if (kind === kindColumn) return inColumn(load<i32>(entry + 24), line) >= 0
  if (mode === spread && ((kind & weak) !== 0 || kind === kindMember)) {
    const isThere = load<u32>(keys + load<i32>(entry + 24) * keyStride + 4) === stamp
    if (isThere === ((kind & weak) !== 0)) return false
  }
  const column = load<i32>(entry + 28)
  return column < 0 || inColumn(column, line) === untouched
}

/** Shape whose lines `steps` can write; -1: none. */
let stepsShape: i32 = -1

/** Shape whose sorted members are in `order`; -1: none. */
let sortedShape: i32 = -1

/**
 * Writes the events of lines `[from, to)`, each with this many bytes of `prefix` before it and `suffix` after it (a byte; 0: none),
 * until `output` is full. Returns the number written; `writtenEnds` has the end of each, without its suffix.
 */
export function write(from: i32, to: i32, outsideCount: i32, mode: i32, prefixLength: i32, suffix: u8): i32 {
  let at = output
  const limit = output + maxOutput - prefixLength
  const outsideBytes = bytesOutside(outsideCount, mode)
  for (let line = from; line < to; line++) {
    const maxBytes = maxBytesOf(line, outsideBytes, mode)
    if (maxBytes < 0 || at + prefixLength + maxBytes > limit) return line - from
    if (prefixLength !== 0) copy(at, prefix, prefixLength)
    at = writeEvent(line, at + prefixLength, outsideCount, mode)
    store<i32>(writtenEnds + (line - from) * 4, at)
    if (suffix !== 0) store<u8>(at++, suffix)
  }
  return to - from
}

/** Writes a line's event as a JSON string that contains its JSON; returns its end in `output`, 0 if it is too long. */
export function writeQuoted(line: i32, outsideCount: i32, mode: i32): i32 {
  return quoteLine(line, output, output + maxOutput, bytesOutside(outsideCount, mode), outsideCount, mode)
}

/** Writes the event after its final position, at the distance that quoting may need, and then quotes it into place. */
function quoteLine(line: i32, place: i32, limit: i32, outsideBytes: i32, outsideCount: i32, mode: i32): i32 {
  const maxBytes = maxBytesOf(line, outsideBytes, mode)
  // An event contains no byte below 0x20, so quoting at most doubles its length.
  if (maxBytes < 0 || place + 2 * maxBytes + 128 > limit) return 0
  const from = place + 64 + maxBytes
  store<u8>(place, 0x22)
  const end = escapeJson(place + 1, from, writeEvent(line, from, outsideCount, mode))
  store<u8>(end, 0x22)
  return end + 1
}

/**
 * Writes the events of the lines in `selected` from `first` on as entries, until `output` is full: `,["<nanoseconds since 1970>",<a
 * string with the JSON>` and this many bytes of `tail`. Their times are in `timeMs` and `timeNs` at the same indices, and have 19
 * digits. Returns the number of entries; `writtenEnds` has their ends.
 */
export function writeEntries(first: i32, count: i32, outsideCount: i32, mode: i32, tailLength: i32): i32 {
  const limit = output + maxOutput - tailLength
  const outsideBytes = bytesOutside(outsideCount, mode)
  let at = output
  for (let index = first; index < count; index++) {
    const line = load<i32>(selected + index * 4)
    const end = quoteLine(line, at + 24, limit, outsideBytes, outsideCount, mode)
    if (end === 0) return index - first
    store<u32>(at, 0x00225b2c)
    writeNanoseconds(at + 3, load<f64>(timeMs + index * 8), load<i32>(timeNs + index * 4))
    store<u16>(at + 22, 0x2c22)
    copy(end, tail, tailLength)
    at = end + tailLength
    store<i32>(writtenEnds + (index - first) * 4, at)
  }
  return count - first
}

/** Nineteen digits: nine for the seconds and ten for the rest, so that most divisions are of 32 bits. */
function writeNanoseconds(to: i32, ms: f64, ns: i32): void {
  const all = <u64>ms * 1_000_000 + <u64>ns
  const high = <u32>(all / 10_000_000_000)
  const low = all - <u64>high * 10_000_000_000
  writeDigits(to, high, 9)
  store<u8>(to + 9, <u8>(0x30 + low / 1_000_000_000))
  writeDigits(to + 10, <u32>(low % 1_000_000_000), 9)
}

function writeDigits(to: i32, value: u32, count: i32): void {
  let rest = value
  for (let digit = count - 1; digit >= 0; digit--) {
    const next = rest / 10
    store<u8>(to + digit, <u8>(0x30 + (rest - next * 10)))
    rest = next
  }
}

/** Maximum size of the members from outside the message, without copies of the message. Starts a call that writes. */
function bytesOutside(outsideCount: i32, mode: i32): i32 {
  sortedShape = -1
  stepsShape = -1
  lookAtPlan(outsideCount, mode)
  let bytes: i32 = 64
  for (let index: i32 = 0; index < outsideCount; index++) {
    bytes += maxName + 64 + load<i32>(outside + index * outsideStride + 12)
  }
  return bytes
}

/** Maximum size of a line's event; negative if the line was not read. */
function maxBytesOf(line: i32, outsideBytes: i32, mode: i32): i32 {
  const refused = mode === apart ? isUnusual : isUnusual | isOdd
  // The entries of such a line contain stale data.
  if ((load<i32>(flags + line * 4) & refused) !== 0) return -1
  const length = load<i32>(ends + line * 4) - load<i32>(messages + line * 4)
  let maxBytes = outsideBytes + messageCopies * 6 * length
  if (mode === apart) return maxBytes
  const count = load<i32>(counts + line * 4)
  const first = members + load<i32>(firsts + line * 4) * 16
  // Values are in the message, or in the converted area.
  const values = recodedLength === 0 ? length : bytesOfValues(first, count)
  maxBytes += (1 + memberCopies) * (count * (maxName + 32) + values)
  return maxBytes
}

function bytesOfValues(first: i32, count: i32): i32 {
  let bytes: i32 = 0
  for (let member = first; member < first + count * 16; member += 16) {
    bytes += load<i32>(member + 8) - load<i32>(member + 4)
  }
  return bytes
}

/** Whether a name is known by its position. */
function hasPlaces(first: i32, count: i32): bool {
  for (let member = first; member < first + count * 16; member += 16) if (load<i32>(member) < 0) return true
  return false
}

/** Sorts the members by name: a rank and a number of two bytes each. */
function sortMembers(first: i32, count: i32): void {
  for (let index: i32 = 0; index < count; index++) {
    const rank = <i32>load<u16>(keys + load<i32>(first + index * 16) * keyStride + 2)
    const bits = rankBits + (rank >>> 6) * 8
    store<u64>(bits, load<u64>(bits) | ((<u64>1) << (rank & 63)))
    store<u16>(rankPlaces + rank * 2, <u16>index)
  }
  let to = order
  for (let from: i32 = 0; from < keyCount; from += 64) {
    const bits = rankBits + (from >>> 3)
    let left = load<u64>(bits)
    if (left === 0) continue
    store<u64>(bits, 0)
    while (left !== 0) {
      const rank = from + <i32>ctz(left)
      left &= left - 1
      store<u32>(to, ((<u32>rank) << 16) | load<u16>(rankPlaces + rank * 2))
      to += 4
    }
  }
}

/** The same for names without a rank: sorts only the numbers of the members. */
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

/** Writes an event that fits; returns its end. */
function writeEvent(line: i32, from: i32, outsideCount: i32, mode: i32): i32 {
  const outsideEnd = outside + outsideCount * outsideStride
  if (mode === apart) return closed(from, writeOutside(outside, outsideEnd, from, line, mode))
  const count = load<i32>(counts + line * 4)
  const first = members + load<i32>(firsts + line * 4) * 16
  const shape = load<i32>(shapes + line * 4)
  let byName = false
  // Consecutive events often have members of the same names.
  if (shape === stepsShape) return writeSteps(from, first)
  if (shape === sortedShape && mode === spread && isPlain) {
    findSteps(first, count, outsideEnd)
    stepsShape = shape
    return writeSteps(from, first)
  }
  if (shape !== sortedShape) {
    byName = hasPlaces(first, count)
    if (byName) sortByName(first, count)
    else sortMembers(first, count)
    sortedShape = byName ? -1 : shape
  }
  if (mode !== spread) return closed(from, writeOutside(outside, outsideEnd, from, line, mode))
  if (needsNotes) noteMembers(first, first + count * 16)
  let at = from
  let other = outside
  // The pending range to copy: members adjacent in the message are one range.
  let start: i32 = 0
  let end: i32 = 0
  for (let place = order; place < order + count * 4; place += 4) {
    const word = load<u32>(place)
    const member = first + <i32>(word & 0xffff) * 16
    const key = load<i32>(member)
    if (other < outsideEnd && isOutsideFirst(other, word >>> 16, key, byName)) {
      if (end !== 0) at = copyMembers(at, start, end)
      end = 0
      const begin = other
      do other += outsideStride
      while (other < outsideEnd && isOutsideFirst(other, word >>> 16, key, byName))
      at = writeOutside(begin, other, at, line, mode)
    }
    if (key >= 0 && load<u8>(edited + key) !== 0 && !isLeftByColumn(key, line)) continue
    const value = load<i32>(member + 4)
    const valueEnd = load<i32>(member + 8)
    const begin = beginOfMember(key, value)
    if (begin !== 0 && begin === end) {
      end = valueEnd
      continue
    }
    if (end !== 0) at = copyMembers(at, start, end)
    end = 0
    if (begin === 0) at = copy(writeName(at, key), value, valueEnd - value)
    else {
      start = begin
      end = valueEnd
    }
  }
  if (end !== 0) at = copyMembers(at, start, end)
  return closed(from, other < outsideEnd ? writeOutside(other, outsideEnd, at, line, mode) : at)
}

/** Whether an entry precedes a message member. */
function isOutsideFirst(entry: i32, rank: u32, key: i32, byName: bool): bool {
  return byName ? compareNames(load<i32>(entry), key) < 0 : load<u32>(entry + 20) < rank
}

/**
 * The offset of the byte before a member's name, if the name directly precedes the value in the message in its final form; otherwise 0. A
 * converted value is preceded by other bytes, which do not end with these two.
 */
function beginOfMember(key: i32, value: i32): i32 {
  if (load<u16>(value - 2) !== 0x3a22) return 0
  return key >= 0 ? value - <i32>load<u16>(keys + key * keyStride) - 4 : ~key - 1
}

/** Writes the object in a line's message, whose members are sorted. */
function writeObject(from: i32, line: i32): i32 {
  const first = members + load<i32>(firsts + line * 4) * 16
  let at = from
  for (let place: i32 = 0; place < load<i32>(counts + line * 4); place++) {
    const member = first + <i32>(load<u32>(order + place * 4) & 0xffff) * 16
    const value = load<i32>(member + 4)
    at = copy(writeName(at, load<i32>(member)), value, load<i32>(member + 8) - value)
  }
  return closed(from, at)
}

/** Writes entries `[from, to)` of the members from outside the message. */
function writeOutside(from: i32, to: i32, place: i32, line: i32, mode: i32): i32 {
  let at = place
  // The pending range to copy: names and literals are contiguous.
  let start: i32 = 0
  let end: i32 = 0
  for (let entry = from; entry < to; entry += outsideStride) {
    if (hasConditions && !isWritten(entry, line, mode)) continue
    const kind = load<i32>(entry + 4) & 15
    if (kind === kindColumn) {
      if (end !== 0) at = copy(at, start, end - start)
      end = 0
      const value = valueIn(entry, line)
      at = copy(writeName(at, load<i32>(entry)), load<i32>(value), load<i32>(value + 4))
      continue
    }
    const literal = load<i32>(entry + 8)
    const begin = literal - <i32>load<u16>(keys + load<i32>(entry) * keyStride) - 4
    if (begin !== end) {
      if (end !== 0) at = copy(at, start, end - start)
      start = begin
    }
    end = literal + load<i32>(entry + 12)
    if (kind === kindLiteral) continue
    at = writePart(entry, copy(at, start, end - start), line, kind)
    end = 0
  }
  return end === 0 ? at : copy(at, start, end - start)
}

function writePart(entry: i32, at: i32, line: i32, kind: i32): i32 {
  switch (kind) {
    case kindMessage:
      return writeText(at, load<i32>(messages + line * 4), load<i32>(ends + line * 4))
    case kindStream:
      store<u64>(at, (load<i32>(flags + line * 4) & isError) !== 0 ? 0x2272726564747322 : 0x2274756f64747322)
      return at + 8
    case kindTime:
      return writeTime(at, load<i32>(starts + line * 4), load<i32>(digits + line * 4))
    case kindMember: {
      const member = memberOf(entry)
      const value = load<i32>(member + 4)
      return copy(at, value, load<i32>(member + 8) - value)
    }
    default:
      return writeObject(at, line)
  }
}

/** Writes text as a JSON string. */
function writeText(to: i32, from: i32, end: i32): i32 {
  store<u8>(to, 0x22)
  const out = escapeText(to + 1, from, end)
  store<u8>(out, 0x22)
  return out + 1
}

/** Writes a line's time with 0, 3, 6 or 9 fraction digits. */
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
