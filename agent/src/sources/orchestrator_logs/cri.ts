// Reads the prefix of a container log line: `<RFC 3339 time> <stdout|stderr> <P|F>[:tags] <message>`. The parser works
// on bytes and stores the result in its own fields, because it runs for every line of a node.

import { Timestamp } from '../../event/timestamp.ts'

/** Milliseconds to subtract from a local time without a zone. */
export type ZoneOffset = (localMs: number) => number

export class CriParser {
  /** The parts of the last line, valid if `parse` returned true. */
  timestamp = new Timestamp(0, 0)
  stream: 'stdout' | 'stderr' = 'stdout'
  partial = false
  /** Where the message starts. */
  message = 0

  readonly #time: TimeParser

  constructor(zone: ZoneOffset) {
    this.#time = new TimeParser(zone)
  }

  /** Reads the bytes `[start, end)`; false if they are not a line of this format. */
  parse(bytes: Uint8Array, start: number, end: number): boolean {
    const time = this.#time
    const at = time.parse(bytes, start, end)
    // `… stdout F` is the shortest: eight bytes after the time.
    if (at < 0 || end - at < 9 || bytes[at] !== 0x20) return false
    if (bytes[at + 1] !== 0x73 || bytes[at + 2] !== 0x74 || bytes[at + 3] !== 0x64) return false
    const letter = bytes[at + 4]
    if (letter === 0x6f) {
      if (bytes[at + 5] !== 0x75 || bytes[at + 6] !== 0x74) return false
      this.stream = 'stdout'
    } else if (letter === 0x65) {
      if (bytes[at + 5] !== 0x72 || bytes[at + 6] !== 0x72) return false
      this.stream = 'stderr'
    } else return false
    if (bytes[at + 7] !== 0x20) return false
    const tag = bytes[at + 8]
    if (tag !== 0x46 && tag !== 0x50) return false
    this.partial = tag === 0x50
    let next = at + 9
    if (next < end && bytes[next] === 0x3a) while (next < end && bytes[next] !== 0x20) next++
    if (next < end && bytes[next++] !== 0x20) return false
    this.message = next
    this.timestamp = new Timestamp(time.ms, time.ns)
    return true
  }
}

/**
 * Reads RFC 3339 times to the nanosecond. Many lines share a second, so the parser compares its digits instead of
 * reading them again.
 */
export class TimeParser {
  ms = 0
  ns = 0
  readonly #zone: ZoneOffset
  readonly #second = new Uint8Array(19)
  #secondMs = Number.NaN

  constructor(zone: ZoneOffset) {
    this.#zone = zone
  }

  /** Reads a time at `start`; returns where it ends, negative if there is none. */
  parse(bytes: Uint8Array, start: number, end: number): number {
    if (end - start < 19) return -1
    const second = this.#second
    // Compares from the end, because the seconds differ first.
    let index = 18
    while (index >= 0 && bytes[start + index] === second[index]) index--
    if (index >= 0 && !this.#readSecond(bytes, start)) return -1
    let ms = this.#secondMs
    let at = start + 19
    let fraction = 0
    if (bytes[at] === 0x2e) {
      let digits = 0
      at++
      for (;;) {
        const digit = (bytes[at] as number) - 0x30
        if (at >= end || !(digit >= 0 && digit <= 9)) break
        if (digits < 9) fraction = fraction * 10 + digit
        digits++
        at++
      }
      if (digits === 0) return -1
      for (; digits < 9; digits++) fraction *= 10
    }
    const zone = at < end ? bytes[at] : 0x20
    if (zone === 0x5a || zone === 0x7a) at++
    else if (zone === 0x2b || zone === 0x2d) {
      if (end - at < 6 || bytes[at + 3] !== 0x3a) return -1
      const hours = twoDigits(bytes, at + 1)
      const minutes = twoDigits(bytes, at + 4)
      if (!(hours >= 0 && minutes >= 0)) return -1
      ms -= (zone === 0x2b ? 1 : -1) * (hours * 60 + minutes) * 60_000
      at += 6
    } else ms -= this.#zone(ms)
    const millis = (fraction / 1_000_000) | 0
    this.ms = ms + millis
    this.ns = fraction - millis * 1_000_000
    return at
  }

  #readSecond(bytes: Uint8Array, start: number): boolean {
    this.#secondMs = Number.NaN
    const year = twoDigits(bytes, start) * 100 + twoDigits(bytes, start + 2)
    const month = twoDigits(bytes, start + 5)
    const day = twoDigits(bytes, start + 8)
    const hour = twoDigits(bytes, start + 11)
    const minute = twoDigits(bytes, start + 14)
    const second = twoDigits(bytes, start + 17)
    const separator = bytes[start + 10]
    if (bytes[start + 4] !== 0x2d || bytes[start + 7] !== 0x2d || bytes[start + 13] !== 0x3a) return this.#bad()
    if (bytes[start + 16] !== 0x3a || (separator !== 0x54 && separator !== 0x74)) return this.#bad()
    // This form also rejects NaN, the result of a character that is not a digit.
    if (!(year >= 0 && month >= 1 && month <= 12 && day >= 1 && day <= 31)) return this.#bad()
    if (!(hour <= 23 && minute <= 59 && second <= 60)) return this.#bad()
    this.#secondMs = Date.UTC(year, month - 1, day, hour, minute, second)
    for (let index = 0; index < 19; index++) this.#second[index] = bytes[start + index] as number
    return true
  }

  #bad(): boolean {
    this.#second[0] = 0 // never a digit, so the cached second matches nothing
    return false
  }
}

function twoDigits(bytes: Uint8Array, at: number): number {
  const tens = (bytes[at] as number) - 0x30
  const ones = (bytes[at + 1] as number) - 0x30
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN
}

/**
 * Returns a function for the offset of local times in a zone of the TZ database; it computes one offset for each hour.
 */
export function zoneOffset(timezone: string): ZoneOffset {
  if (timezone === 'UTC') return () => 0
  let hour = Number.NaN
  let offset = 0
  return (localMs) => {
    const current = Math.floor(localMs / 900_000)
    if (current !== hour) {
      const local = Temporal.Instant.fromEpochMilliseconds(localMs).toZonedDateTimeISO('UTC').toPlainDateTime()
      offset = localMs - local.toZonedDateTime(timezone).epochMilliseconds
      hour = current
    }
    return offset
  }
}
