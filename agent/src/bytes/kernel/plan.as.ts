// Sizes and JSON of events: members of the message, and those that a plan sets or removes.

import { compareNames, lengthOf, nameOf } from './keys.as'
import {
  apart,
  byColumn,
  columns,
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
  kindColumn,
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
  selected,
  sizes,
  spread,
  starts,
  tail,
  timeMs,
  timeNs,
  untouched,
  values,
  weak,
  writtenEnds,
} from './layout.as'
import { isAscii, nextStamp, recodedLength, stamp } from './state.as'
import { escapeText, unitsOf } from './text.as'

/**
 * Estimates the sizes of the events of lines `[from, to)`; returns their sum.
 * @param mode what becomes of the object in the message
 */
export function measure(from: i32, to: i32, outsideCount: i32, mode: i32): f64 {
  let sum: f64 = 0
  lookAtPlan(outsideCount, mode)
  for (let line = from; line < to; line++) {
    const bits = load<i32>(flags + line * 4)
    if ((bits & isUnusual) !== 0 || (mode !== apart && (bits & isOdd) !== 0)) continue
    const total = sizeOf(line, outsideCount, mode)
    store<i32>(sizes + line * 4, total)
    sum += <f64>total
  }
  return sum
}

function sizeOf(line: i32, outsideCount: i32, mode: i32): i32 {
  let total: i32 = 2
  if (mode === spread) {
    const first = members + load<i32>(firsts + line * 4) * 16
    const end = first + load<i32>(counts + line * 4) * 16
    if (needsNotes) noteMembers(first, end)
    for (let member = first; member < end; member += 16) {
      const key = load<i32>(member)
      if (key < 0) total += lengthOf(key) + 4 + load<i32>(member + 12)
      else if (load<u8>(edited + key) === 0 || isLeftByColumn(key, line))
        total += <i32>load<u16>(keys + key * keyStride) + 4 + load<i32>(member + 12)
    }
  }
  let entry = outside
  for (let index: i32 = 0; index < outsideCount; index++, entry += outsideStride) {
    const kind = load<i32>(entry + 4)
    if (hasConditions && !isWritten(entry, line, mode)) continue
    total += load<i32>(entry + 16)
    if ((kind & 15) === kindMessage) {
      const message = load<i32>(messages + line * 4)
      const end = load<i32>(ends + line * 4)
      total += isAscii ? end - message : unitsOf(message, end)
    } else if ((kind & 15) >= kindColumn) total += partSize(entry, line)
  }
  return total
}

/** The size that a value of a column, a member of the message or the object in it adds. */
function partSize(entry: i32, line: i32): i32 {
  switch (load<i32>(entry + 4) & 15) {
    case kindColumn:
      return load<i32>(valueIn(entry, line) + 8)
    case kindMember:
      return load<i32>(memberOf(entry) + 12)
    default:
      return objectSize(line)
  }
}

function objectSize(line: i32): i32 {
  let total: i32 = 2
  let member = members + load<i32>(firsts + line * 4) * 16
  for (let rest = load<i32>(counts + line * 4); rest > 0; rest--, member += 16) {
    total += lengthOf(load<i32>(member)) + 4 + load<i32>(member + 12)
  }
  return total
}

/** Whether members of the message decide about others: where one is, and where one of the source is not to be. */
let needsNotes: bool = false
/** Whether some members that do not come from the message count only for some lines. */
let hasConditions: bool = false
/** How often a plan may write the text of a message, and how often members of the object in it beside their own place. */
let messageCopies: i32 = 0
let memberCopies: i32 = 0

function lookAtPlan(outsideCount: i32, mode: i32): void {
  needsNotes = false
  hasConditions = false
  messageCopies = 0
  memberCopies = 0
  for (let entry = outside; entry < outside + outsideCount * outsideStride; entry += outsideStride) {
    const kind = load<i32>(entry + 4)
    if (mode === spread && ((kind & weak) !== 0 || kind === kindMember)) needsNotes = true
    if (needsNotes || kind === kindColumn || load<i32>(entry + 28) >= 0) hasConditions = true
    if ((kind & 15) === kindMessage) messageCopies++
    else if (kind === kindMember || kind === kindObject) memberCopies++
  }
}

/** Notes, in the entries of names, which members the message of an event has, and where. */
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

/** Whether a plan that edits the member of the message that has this key leaves it to a column, which leaves it. */
function isLeftByColumn(key: i32, line: i32): bool {
  const edit = <i32>load<u8>(edited + key)
  return edit >= byColumn && inColumn(edit - byColumn, line) === untouched
}

/** The number of a value in a column, or the entry in its place. */
function inColumn(column: i32, line: i32): i32 {
  return load<i32>(columns + (column * maxLines + line) * 4)
}

/** Where the value of a column is that an entry writes for a line. */
function valueIn(entry: i32, line: i32): i32 {
  return values + (load<i32>(entry + 8) + inColumn(load<i32>(entry + 24), line)) * 12
}

/** The member of the message that decides about an entry. */
function memberOf(entry: i32): i32 {
  return load<i32>(keys + load<i32>(entry + 24) * keyStride + 12)
}

/** Whether an entry counts for a line. The members of its message are noted where they are spread. */
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

/** Whether the output is inside a JSON string. */
let isQuoted: bool = false

/** The members whose order is in `order`: their number, and the first; -1: none. */
let sortedCount: i32 = -1
let sortedFirst: i32 = 0

/**
 * Writes the events of lines `[from, to)`, this many bytes of `prefix` before each, and `suffix` behind each (a byte; 0: none), until
 * `output` is full. Returns how many it wrote; where each ends, its suffix not counted, stands in `writtenEnds`.
 */
export function write(from: i32, to: i32, outsideCount: i32, mode: i32, prefixLength: i32, suffix: u8): i32 {
  let at = output
  const limit = output + maxOutput - prefixLength
  const outsideBytes = bytesOutside(outsideCount, mode)
  for (let line = from; line < to; line++) {
    const end = writeLine(line, at + prefixLength, limit, outsideBytes, outsideCount, mode)
    if (end === 0) return line - from
    if (prefixLength !== 0) memory.copy(at, prefix, prefixLength)
    at = end
    store<i32>(writtenEnds + (line - from) * 4, at)
    if (suffix !== 0) store<u8>(at++, suffix)
  }
  return to - from
}

/**
 * Writes the event of a line as a JSON string that holds its JSON; returns its end in `output`, 0 if it is too long.
 */
export function writeQuoted(line: i32, outsideCount: i32, mode: i32): i32 {
  return quoteLine(line, output, output + maxOutput, bytesOutside(outsideCount, mode), outsideCount, mode)
}

function quoteLine(line: i32, place: i32, limit: i32, outsideBytes: i32, outsideCount: i32, mode: i32): i32 {
  isQuoted = true
  const end = writeLine(line, place + 1, limit - 2, outsideBytes, outsideCount, mode)
  isQuoted = false
  if (end === 0) return 0
  store<u8>(place, 0x22)
  store<u8>(end, 0x22)
  return end + 1
}

/**
 * Writes the events of the lines in `selected` from `first` on as entries, until `output` is full: `,["<nanoseconds since 1970>",<a
 * string that holds the JSON>` and this many bytes of `tail`. Their times are those of `timeMs` and `timeNs` at the same places, and
 * have 19 digits. Returns the number of entries; `writtenEnds` has their ends.
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

/** Nineteen digits: nine for the seconds and ten for the rest, so that most of the divisions are of 32 bits. */
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

/** The maximal size of the members that do not come from the message, without copies of it. Begins a call that writes. */
function bytesOutside(outsideCount: i32, mode: i32): i32 {
  sortedCount = -1
  lookAtPlan(outsideCount, mode)
  let bytes: i32 = 64
  for (let index: i32 = 0; index < outsideCount; index++) {
    bytes += maxName + 64 + load<i32>(outside + index * outsideStride + 12)
  }
  return bytes
}

/** Writes the event of a line; returns its end, 0 if it may be too long, or if nothing was read of the line. */
function writeLine(line: i32, place: i32, limit: i32, outsideBytes: i32, outsideCount: i32, mode: i32): i32 {
  const refused = mode === apart ? isUnusual : isUnusual | isOdd
  // The places of such a line hold what others have left there.
  if ((load<i32>(flags + line * 4) & refused) !== 0) return 0
  let count: i32 = 0
  let first: i32 = 0
  if (mode !== apart) {
    count = load<i32>(counts + line * 4)
    first = members + load<i32>(firsts + line * 4) * 16
  }
  const length = load<i32>(ends + line * 4) - load<i32>(messages + line * 4)
  const copies = 1 + memberCopies
  const bytes = outsideBytes + messageCopies * 6 * length + copies * count * (maxName + 32)
  // Nothing in an event is below 0x20, so a string that holds it is at most twice as long.
  const factor = isQuoted ? 2 : 1
  // Values are in the message, or where they were put into form.
  if (place + factor * (bytes + copies * (length + recodedLength)) > limit) {
    if (place + factor * (bytes + copies * bytesOfValues(first, count)) > limit) return 0
  }
  let byName = false
  // The members of one event after the other often have the same names.
  if (mode !== apart && (count !== sortedCount || !hasSameKeys(first, sortedFirst, count))) {
    byName = hasPlaces(first, count)
    if (byName) sortByName(first, count)
    else sortMembers(first, count)
    sortedCount = byName ? -1 : count
    sortedFirst = first
  }
  return writeEvent(line, place, first, count, outsideCount, mode, byName)
}

function bytesOfValues(first: i32, count: i32): i32 {
  let bytes: i32 = 0
  for (let member = first; member < first + count * 16; member += 16) {
    bytes += load<i32>(member + 8) - load<i32>(member + 4)
  }
  return bytes
}

/** Whether a name is known by its place. */
function hasPlaces(first: i32, count: i32): bool {
  for (let member = first; member < first + count * 16; member += 16) if (load<i32>(member) < 0) return true
  return false
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
function writeEvent(line: i32, from: i32, first: i32, count: i32, outsideCount: i32, mode: i32, byName: bool): i32 {
  let at = from
  let other = outside
  const otherEnd = outside + outsideCount * outsideStride
  if (mode === spread) {
    if (needsNotes) noteMembers(first, first + count * 16)
    for (let place: i32 = 0; place < count; place++) {
      const word = load<u32>(order + place * 4)
      const rank = word >>> 16
      const member = first + <i32>(word & 0xffff) * 16
      const key = load<i32>(member)
      while (other < otherEnd && (byName ? compareNames(load<i32>(other), key) < 0 : load<u32>(other + 20) < rank)) {
        at = writeOutside(other, at, line, mode)
        other += outsideStride
      }
      if (key >= 0 && load<u8>(edited + key) !== 0 && !isLeftByColumn(key, line)) continue
      at = writeMember(member, at)
    }
  }
  for (; other < otherEnd; other += outsideStride) at = writeOutside(other, at, line, mode)
  return closed(from, at)
}

/** Puts brackets around members; returns their end. */
function closed(from: i32, end: i32): i32 {
  let at = end
  // The comma before the first name becomes the bracket.
  if (at === from) at++
  store<u8>(from, 0x7b)
  store<u8>(at, 0x7d)
  return at + 1
}

/** Writes a member of the message under its own name. */
function writeMember(member: i32, from: i32): i32 {
  const key = load<i32>(member)
  const value = load<i32>(member + 4)
  const length = load<i32>(member + 8) - value
  if (isQuoted) return quoteValue(quoteName(from, key), value, length)
  if (key >= 0) return copy(writeName(from, keys + key * keyStride), value, length)
  store<u8>(from, 0x2c)
  const at = copy(from + 1, ~key, lengthOf(key) + 2)
  store<u8>(at, 0x3a)
  return copy(at + 1, value, length)
}

/** Writes the object in the message of a line, whose members are in their order. */
function writeObject(from: i32, line: i32): i32 {
  const first = members + load<i32>(firsts + line * 4) * 16
  let at = from
  for (let place: i32 = 0; place < load<i32>(counts + line * 4); place++) {
    at = writeMember(first + <i32>(load<u32>(order + place * 4) & 0xffff) * 16, at)
  }
  return closed(from, at)
}

/** The same as `writeName` in a JSON string. */
function quoteName(at: i32, key: i32): i32 {
  store<u32>(at, 0x00225c2c)
  const end = copy(at + 3, nameOf(key), lengthOf(key))
  store<u32>(end, 0x003a225c)
  return end + 3
}

/** A value in a JSON string. */
function quoteValue(at: i32, from: i32, length: i32): i32 {
  const first = load<u8>(from)
  if (first === 0x22) {
    const text = length - 2
    if (text <= 64 && !hasBackslash(from + 1, text)) {
      store<u16>(at, 0x225c)
      const end = copy(at + 2, from + 1, text)
      store<u16>(end, 0x225c)
      return end + 2
    }
  } else if (first !== 0x7b && first !== 0x5b) return copy(at, from, length)
  return escapeText(at, from, from + length)
}

function hasBackslash(from: i32, length: i32): bool {
  for (let at: i32 = 0; at < length; at += 16) {
    let mask = v128.bitmask<u8>(v128.eq<u8>(v128.load(from + at), v128.splat<u8>(0x5c)))
    if (length - at < 16) mask &= (1 << (length - at)) - 1
    if (mask !== 0) return true
  }
  return false
}

/** A name with a comma before it and a colon behind it. */
function writeName(at: i32, entry: i32): i32 {
  return copy(at, entry + 16, <i32>load<u16>(entry) + 4)
}

/** Copies whole loads: the bytes after both places are overwritten later, or are free. */
function copy(to: i32, from: i32, length: i32): i32 {
  if (length > 256) memory.copy(to, from, length)
  else for (let at: i32 = 0; at < length; at += 16) v128.store(to + at, v128.load(from + at))
  return to + length
}

function writeOutside(entry: i32, at: i32, line: i32, mode: i32): i32 {
  if (hasConditions && !isWritten(entry, line, mode)) return at
  const kind = load<i32>(entry + 4) & 15
  if (!isQuoted) return writePart(entry, writeName(at, keys + load<i32>(entry) * keyStride), line, kind)
  const first = quoteName(at, load<i32>(entry))
  if (kind === kindMember || kind === kindColumn || kind === kindObject) return writePart(entry, first, line, kind)
  // As far behind its place as it may become longer.
  let ahead: i32 = 64 + load<i32>(entry + 12)
  if (kind === kindMessage) ahead += 6 * (load<i32>(ends + line * 4) - load<i32>(messages + line * 4))
  return escapeText(first, first + ahead, writePart(entry, first + ahead, line, kind))
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
    case kindColumn: {
      const value = valueIn(entry, line)
      return writeValue(at, load<i32>(value), load<i32>(value + 4))
    }
    case kindMember: {
      const member = memberOf(entry)
      const value = load<i32>(member + 4)
      return writeValue(at, value, load<i32>(member + 8) - value)
    }
    case kindObject:
      return writeObject(at, line)
    default:
      return copy(at, load<i32>(entry + 8), load<i32>(entry + 12))
  }
}

/** Writes JSON directly, or escaped inside a JSON string. */
function writeValue(at: i32, from: i32, length: i32): i32 {
  return isQuoted ? quoteValue(at, from, length) : copy(at, from, length)
}

/** Writes text as a JSON string. */
function writeText(to: i32, from: i32, end: i32): i32 {
  store<u8>(to, 0x22)
  const out = escapeText(to + 1, from, end)
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
