// Reads the beginnings of lines of a container runtime: `<RFC 3339 time> <stdout|stderr> F <message>`.

import { digits, ends, flags, isError, isUnusual, messages, starts } from './layout.as'

/** Reads the beginnings of lines; gives how many are unusual. */
export function readLines(count: i32): i32 {
  let known: i32 = 0 // the last line with a valid second
  let unusual: i32 = 0
  for (let line = 0; line < count; line++) {
    const start = load<i32>(starts + line * 4)
    const end = load<i32>(ends + line * 4)
    const at = readLine(line, start, end, known)
    if (at < 0) {
      store<i32>(flags + line * 4, isUnusual)
      unusual++
    } else {
      known = start
      store<i32>(messages + line * 4, at)
    }
  }
  return unusual
}

/** Gives where the message begins; negative if the line is unusual. */
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
  if (load<u8>(at) !== 0x5a) return -1
  at++
  // A line may end here: bytes behind it are those of others, and are not looked at.
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
  store<i32>(flags + line * 4, bits)
  store<i32>(digits + line * 4, (given << 8) | written)
  return at
}

/** Whether the first 19 bytes are equal. */
function isSameSecond(left: i32, right: i32): bool {
  const first = v128.eq<u8>(v128.load(left), v128.load(right))
  const last = v128.eq<u8>(v128.load(left + 3), v128.load(right + 3))
  return v128.all_true<u8>(v128.and(first, last))
}

function twoDigits(at: i32): i32 {
  const tens = <u32>load<u8>(at) - 0x30
  const ones = <u32>load<u8>(at + 1) - 0x30
  return tens > 9 || ones > 9 ? 1000 : tens * 10 + ones
}

/** Whether a date and time stand here that the object lane would write in the same way. */
function isSecond(at: i32): bool {
  const century = twoDigits(at)
  const year = twoDigits(at + 2)
  if (century > 99 || year > 99 || century * 100 + year < 1970) return false
  if (load<u8>(at + 4) !== 0x2d || load<u8>(at + 7) !== 0x2d || load<u8>(at + 10) !== 0x54) return false
  if (load<u8>(at + 13) !== 0x3a || load<u8>(at + 16) !== 0x3a) return false
  const month = twoDigits(at + 5)
  const day = twoDigits(at + 8)
  if (month < 1 || month > 12 || day < 1) return false
  // The last days of a month are those of every year but in February.
  const last = month === 2 ? 28 : month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31
  if (day > last && !(month === 2 && day === 29 && isLeap(century * 100 + year))) return false
  return twoDigits(at + 11) <= 23 && twoDigits(at + 14) <= 59 && twoDigits(at + 17) <= 59
}

function isLeap(year: i32): bool {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
}
