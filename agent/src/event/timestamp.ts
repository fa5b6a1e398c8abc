// An instant in UTC with nanosecond precision: milliseconds since the epoch, and nanoseconds within that millisecond.
// It uses two numbers because one BigInt would cost more on every event.

export class Timestamp {
  /** Milliseconds since 1970-01-01T00:00:00Z, an integer, rounded down. */
  readonly ms: number
  /** Nanoseconds within the millisecond, 0 to 999 999. */
  readonly ns: number

  constructor(ms: number, ns: number) {
    this.ms = ms
    this.ns = ns
  }

  static now(): Timestamp {
    return new Timestamp(Date.now(), 0)
  }

  static fromNanoseconds(nanoseconds: bigint): Timestamp {
    let ms = nanoseconds / 1_000_000n
    let ns = nanoseconds % 1_000_000n
    if (ns < 0n) {
      ms -= 1n
      ns += 1_000_000n
    }
    return new Timestamp(Number(ms), Number(ns))
  }

  toNanoseconds(): bigint {
    return BigInt(this.ms) * 1_000_000n + BigInt(this.ns)
  }

  /** Decimal nanoseconds since the epoch, without a BigInt for instants after it. */
  toNanosecondText(): string {
    if (this.ms < 0) return this.toNanoseconds().toString()
    if (this.ms === 0) return String(this.ns)
    return `${this.ms}${sixDigits(this.ns)}`
  }

  /** RFC 3339 in UTC with `Z`, and with 0, 3, 6 or 9 fraction digits, as few as possible. */
  toString(): string {
    const second = Math.floor(this.ms / 1000)
    const milli = this.ms - second * 1000
    if (this.ns === 0) return milli === 0 ? `${secondText(second)}Z` : `${secondText(second)}.${threeDigits(milli)}Z`
    const micro = Math.floor(this.ns / 1000)
    const nano = this.ns - micro * 1000
    const upToMicro = `${secondText(second)}.${threeDigits(milli)}${threeDigits(micro)}`
    return nano === 0 ? `${upToMicro}Z` : `${upToMicro}${threeDigits(nano)}Z`
  }

  /**
   * Writes the text of `toString` at `at`, and returns the end. Bytes beyond the end of the array are lost, as with any write to
   * a typed array.
   */
  writeTo(bytes: Uint8Array, at: number): number {
    const second = Math.floor(this.ms / 1000)
    const milli = this.ms - second * 1000
    const text = secondText(second)
    const { length } = text
    for (let index = 0; index < length; index++) bytes[at + index] = text.charCodeAt(index)
    let end = at + length
    if (milli !== 0 || this.ns !== 0) {
      bytes[end] = 0x2e
      end = writeThree(milli, bytes, end + 1)
      if (this.ns !== 0) {
        const micro = (this.ns / 1000) | 0
        const nano = this.ns - micro * 1000
        end = writeThree(micro, bytes, end)
        if (nano !== 0) end = writeThree(nano, bytes, end)
      }
    }
    bytes[end] = 0x5a
    return end + 1
  }

  toJSON(): string {
    return this.toString()
  }

  equals(other: Timestamp): boolean {
    return this.ms === other.ms && this.ns === other.ns
  }

  compare(other: Timestamp): number {
    return this.ms - other.ms || this.ns - other.ns
  }
}

// Many events have the same second, so the text up to the second is cached.
let cachedSecond = Number.NaN
let cachedText = ''

/** Date and time up to the second. A negative year, or one with more than four digits, has a sign and is padded to four digits. */
export function isoSecond(date: Date): string {
  const text = date.toISOString()
  const end = text.length - 5
  return text.length === 24 ? text.slice(0, end) : text.slice(0, end).replace(/^([+-])0{1,2}(?=\d{4,}-)/, '$1')
}

function secondText(second: number): string {
  if (second !== cachedSecond) {
    cachedText = isoSecond(new Date(second * 1000))
    cachedSecond = second
  }
  return cachedText
}

function writeThree(value: number, bytes: Uint8Array, at: number): number {
  const hundreds = (value / 100) | 0
  const rest = value - hundreds * 100
  const tens = (rest / 10) | 0
  bytes[at] = 48 + hundreds
  bytes[at + 1] = 48 + tens
  bytes[at + 2] = 48 + rest - tens * 10
  return at + 3
}

function threeDigits(value: number): string {
  return value < 10 ? `00${value}` : value < 100 ? `0${value}` : String(value)
}

function sixDigits(value: number): string {
  return String(value).padStart(6, '0')
}
