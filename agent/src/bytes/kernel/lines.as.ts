// Reads the prefixes of container runtime lines: `<RFC 3339 time> <stdout|stderr> F <message>`.

import {
  counts,
  digits,
  ends,
  firsts,
  flags,
  isError,
  isOdd,
  isUnusual,
  maxInput,
  maxLines,
  members,
  messages,
  output,
  recoded,
  shapes,
  starts,
  timeMs,
  timeNs,
  totals,
} from './layout.as'

/**
 * Results of `splitLines`: the bytes up to the end of the last whole line, the number of lines that are too long, and the offsets of all
 * others.
 */
export const splitEnd: i32 = output
export const splitTooLong: i32 = splitEnd + 4
export const splitStarts: i32 = splitEnd + 16
export const splitEnds: i32 = splitStarts + maxLines * 4

/**
 * Finds the lines that end with a newline in bytes `[from, length)` of a chunk, except those of more than `maxBytes` bytes. Returns their
 * number; -1 if there are too many.
 */
export function splitLines(chunk: i32, from: i32, length: i32, maxBytes: i32): i32 {
  const newlines = v128.splat<u8>(0x0a)
  let count: i32 = 0
  let tooLong: i32 = 0
  let start = from
  for (let at = from; at < length; at += 64) {
    const place = chunk + at
    let found = <u64>v128.bitmask<u8>(v128.eq<u8>(v128.load(place), newlines))
    found |= (<u64>v128.bitmask<u8>(v128.eq<u8>(v128.load(place, 16), newlines))) << 16
    found |= (<u64>v128.bitmask<u8>(v128.eq<u8>(v128.load(place, 32), newlines))) << 32
    found |= (<u64>v128.bitmask<u8>(v128.eq<u8>(v128.load(place, 48), newlines))) << 48
    for (; found !== 0; found &= found - 1) {
      const end = at + <i32>ctz(found)
      if (end >= length) break
      if (end - start > maxBytes) tooLong++
      else {
        if (count === maxLines) return -1
        store<i32>(splitStarts + count * 4, start)
        store<i32>(splitEnds + count * 4, end)
        count++
      }
      start = end + 1
    }
  }
  store<i32>(splitEnd, start)
  store<i32>(splitTooLong, tooLong)
  return count
}

/**
 * Loads bytes that have waited into the CPU cache, in ascending order. Separate cache misses during the actual reads would cost several
 * times as much. Returns a number that depends on all bytes read, so that the compiler does not remove the reads.
 */
export function touch(from: i32, to: i32): i32 {
  let sum: i32 = 0
  for (let at = from; at < to; at += 64) sum += load<u8>(at)
  return sum
}

/** Whether `readLines` has changed the time of a line. */
let isChanged: bool = false

/**
 * Reads the prefixes of lines, whose offsets are reduced by `shift`. A time with an offset becomes the same time with the offset `+00:00`,
 * in place; returns whether there was one.
 */
export function readLines(count: i32, shift: i32): bool {
  isChanged = false
  let known: i32 = 0 // the last line with a valid second
  for (let line = 0; line < count; line++) {
    const start = load<i32>(starts + line * 4) + shift
    const end = load<i32>(ends + line * 4) + shift
    store<i32>(starts + line * 4, start)
    store<i32>(ends + line * 4, end)
    // Every loop over the line ends there, whatever the delimiter was.
    store<u8>(end, 0x0a)
    const at = readLine(line, start, end, known)
    if (at < 0) store<i32>(flags + line * 4, isUnusual)
    else {
      known = start
      store<i32>(messages + line * 4, at)
    }
  }
  return isChanged
}

/** Bytes that `packLines` writes for each line. */
export const packedBytes: i32 = 36

/** Copies what was read of lines `[0, count)`, except their members, to `output`. */
export function packLines(count: i32): void {
  const bytes = count * 4
  memory.copy(output, starts, bytes)
  memory.copy(output + bytes, ends, bytes)
  memory.copy(output + bytes * 2, messages, bytes)
  memory.copy(output + bytes * 3, flags, bytes)
  memory.copy(output + bytes * 4, digits, bytes)
  memory.copy(output + bytes * 5, firsts, bytes)
  memory.copy(output + bytes * 6, counts, bytes)
  memory.copy(output + bytes * 7, totals, bytes)
  memory.copy(output + bytes * 8, shapes, bytes)
}

/** The reverse of `packLines`, for the same lines, which now begin `shift` bytes further. Their members must be there. */
export function unpackLines(count: i32, shift: i32): void {
  const bytes = count * 4
  memory.copy(starts, output, bytes)
  memory.copy(ends, output + bytes, bytes)
  memory.copy(messages, output + bytes * 2, bytes)
  memory.copy(flags, output + bytes * 3, bytes)
  memory.copy(digits, output + bytes * 4, bytes)
  memory.copy(firsts, output + bytes * 5, bytes)
  memory.copy(counts, output + bytes * 6, bytes)
  memory.copy(totals, output + bytes * 7, bytes)
  memory.copy(shapes, output + bytes * 8, bytes)
  if (shift !== 0) moveLines(count, shift)
  for (let line = 0; line < count; line++) store<u8>(load<i32>(ends + line * 4), 0x0a)
}

/** Adapts the offsets of lines and of their members. */
function moveLines(count: i32, shift: i32): void {
  for (let line = 0; line < count; line++) {
    move(starts + line * 4, shift)
    move(ends + line * 4, shift)
    move(messages + line * 4, shift)
    if ((load<i32>(flags + line * 4) & (isUnusual | isOdd)) !== 0) continue
    const first = members + load<i32>(firsts + line * 4) * 16
    const end = first + load<i32>(counts + line * 4) * 16
    for (let member = first; member < end; member += 16) {
      // A name that is known by its position.
      if (load<i32>(member) < 0) move(member, -shift)
      const value = load<i32>(member + 4)
      if (value >= recoded && value < recoded + maxInput) continue
      move(member + 4, shift)
      move(member + 8, shift)
    }
  }
}

function move(place: i32, shift: i32): void {
  store<i32>(place, load<i32>(place) + shift)
}

/** Whether one of the lines `[0, count)` has a flag. */
export function hasFlag(flag: i32, count: i32): bool {
  for (let line = 0; line < count; line++) if ((load<i32>(flags + line * 4) & flag) !== 0) return true
  return false
}

/** Returns the start of the message; negative if the line is unusual. */
function readLine(line: i32, start: i32, end: i32, known: i32): i32 {
  // `…Z stdout F` is the shortest.
  if (end - start < 29) return -1
  if (known === 0 || !isSameSecond(start, known)) {
    if (!isSecond(start)) return -1
  }
  let at = start + 19
  let given: i32 = 0
  let written: i32 = 0
  if (load<u8>(at) === 0x2e) {
    at++
    while (true) {
      const digit = <u32>load<u8>(at) - 0x30
      if (digit > 9) break
      given++
      if (digit !== 0) written = given
      at++
    }
    if (given === 0 || given > 9) return -1
    written = ((written + 2) / 3) * 3
  }
  const zone = at
  if (load<u8>(at) === 0x5a) at++
  else {
    if (end - at < 6 || !isOffset(at)) return -1
    at += 6
  }
  // A line may end here: the following bytes belong to other lines and must not be read.
  if (end - at < 9) return -1
  const stream = load<u64>(at)
  let bits: i32 = 0
  if (stream === 0x2072726564747320)
    bits = isError // " stderr "
  else if (stream !== 0x2074756f64747320) return -1 // " stdout "
  if (load<u8>(at + 8) !== 0x46) return -1
  at += 9
  if (at < end) {
    if (load<u8>(at) !== 0x20) return -1
    at++
  }
  if (load<u8>(zone) !== 0x5a && !putIntoUtc(start, zone)) return -1
  store<i32>(flags + line * 4, bits)
  store<i32>(digits + line * 4, (given << 8) | written)
  return at
}

/** Whether this is `+hh:mm` or `-hh:mm`. */
function isOffset(at: i32): bool {
  const sign = load<u8>(at)
  if ((sign !== 0x2b && sign !== 0x2d) || load<u8>(at + 3) !== 0x3a) return false
  return twoDigits(at + 1) <= 23 && twoDigits(at + 4) <= 59
}

// The last local time to the minute with its offset, and the same time in UTC, because most lines share them.
let localDate: u64 = 0
let localTime: u64 = 0
let localOffset: u64 = 0
let utcDate: u64 = 0
let utcTime: u64 = 0

/** Changes a valid local time into UTC, whose year must have four digits and not be before 1970. */
function putIntoUtc(start: i32, zone: i32): bool {
  const offset = ((<u64>load<u16>(zone + 4)) << 32) | <u64>load<u32>(zone)
  if (load<u64>(start) !== localDate || load<u64>(start + 8) !== localTime || offset !== localOffset) {
    const minutes = twoDigits(zone + 1) * 60 + twoDigits(zone + 4)
    let minute = twoDigits(start + 11) * 60 + twoDigits(start + 14)
    minute += load<u8>(zone) === 0x2b ? -minutes : minutes
    let days = daysOf(start)
    if (minute < 0) {
      days--
      minute += 1440
    } else if (minute >= 1440) {
      days++
      minute -= 1440
    }
    // From 1970-01-01 to 9999-12-31.
    if (days < 0 || days > 2932896) return false
    localDate = load<u64>(start)
    localTime = load<u64>(start + 8)
    localOffset = offset
    writeMinute(start, days, minute)
    utcDate = load<u64>(start)
    utcTime = load<u64>(start + 8)
  }
  store<u64>(start, utcDate)
  store<u64>(start + 8, utcTime)
  // `+00:00`
  store<u32>(zone, 0x3a30302b)
  store<u16>(zone + 4, 0x3030)
  isChanged = true
  return true
}

/** Writes `YYYY-MM-DDThh:mm` for a day since 1970 and a minute of it. */
function writeMinute(to: i32, days: i32, minute: i32): void {
  // Years that begin in March have their leap day at the end.
  const all = days + 719468
  const era = all / 146097
  const dayOfEra = all - era * 146097
  const yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146096) / 365
  const dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
  const month = (5 * dayOfYear + 2) / 153
  const year = yearOfEra + era * 400 + (month >= 10 ? 1 : 0)
  writeTwoDigits(to, year / 100)
  writeTwoDigits(to + 2, year % 100)
  writeTwoDigits(to + 5, month + (month < 10 ? 3 : -9))
  writeTwoDigits(to + 8, dayOfYear - (153 * month + 2) / 5 + 1)
  writeTwoDigits(to + 11, minute / 60)
  writeTwoDigits(to + 14, minute % 60)
}

function writeTwoDigits(to: i32, value: i32): void {
  store<u8>(to, 0x30 + value / 10)
  store<u8>(to + 1, 0x30 + (value % 10))
}

/** Reads the times of all usual lines in `[0, count)` into `timeMs` and `timeNs`. */
export function readTimes(count: i32): void {
  let known: i32 = 0
  let second: f64 = 0
  for (let line = 0; line < count; line++) {
    if ((load<i32>(flags + line * 4) & isUnusual) !== 0) continue
    const start = load<i32>(starts + line * 4)
    if (known === 0 || !isSameSecond(start, known)) {
      known = start
      second = secondOf(start)
    }
    const given = load<i32>(digits + line * 4) >> 8
    let fraction: i32 = 0
    for (let digit: i32 = 0; digit < 9; digit++) {
      fraction = fraction * 10 + (digit < given ? <i32>load<u8>(start + 20 + digit) - 0x30 : 0)
    }
    store<f64>(timeMs + line * 8, second * 1000 + <f64>(fraction / 1_000_000))
    store<i32>(timeNs + line * 4, fraction % 1_000_000)
  }
}

/** Seconds since 1970 of the valid date and time at this offset. */
function secondOf(at: i32): f64 {
  const time = twoDigits(at + 11) * 3600 + twoDigits(at + 14) * 60 + twoDigits(at + 17)
  return <f64>daysOf(at) * 86400 + <f64>time
}

/** Days since 1970 of the valid date at this offset. */
function daysOf(at: i32): i32 {
  let year = twoDigits(at) * 100 + twoDigits(at + 2)
  const month = twoDigits(at + 5)
  // Years that begin in March have their leap day at the end.
  if (month <= 2) year--
  const monthDays = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5
  return year * 365 + year / 4 - year / 100 + year / 400 + monthDays + twoDigits(at + 8) - 1 - 719468
}

/** Whether the first 19 bytes are equal. */
export function isSameSecond(left: i32, right: i32): bool {
  const first = v128.eq<u8>(v128.load(left), v128.load(right))
  const last = v128.eq<u8>(v128.load(left + 3), v128.load(right + 3))
  return v128.all_true<u8>(v128.and(first, last))
}

function twoDigits(at: i32): i32 {
  const tens = <u32>load<u8>(at) - 0x30
  const ones = <u32>load<u8>(at + 1) - 0x30
  return tens > 9 || ones > 9 ? 1000 : tens * 10 + ones
}

/** Whether this is a date and time that the object lane would write in the same way. */
function isSecond(at: i32): bool {
  const century = twoDigits(at)
  const year = twoDigits(at + 2)
  if (century > 99 || year > 99 || century * 100 + year < 1970) return false
  if (load<u8>(at + 4) !== 0x2d || load<u8>(at + 7) !== 0x2d || load<u8>(at + 10) !== 0x54) return false
  if (load<u8>(at + 13) !== 0x3a || load<u8>(at + 16) !== 0x3a) return false
  const month = twoDigits(at + 5)
  const day = twoDigits(at + 8)
  if (month < 1 || month > 12 || day < 1) return false
  // Only February's last day depends on the year.
  const last = month === 2 ? 28 : month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
  if (day > last && !(month === 2 && day === 29 && isLeap(century * 100 + year))) return false
  return twoDigits(at + 11) <= 23 && twoDigits(at + 14) <= 59 && twoDigits(at + 17) <= 59
}

function isLeap(year: i32): bool {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
}
