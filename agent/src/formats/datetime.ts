// Dates as text: strftime patterns, RFC 3339, RFC 2822, and guessing of unknown formats. A pattern is compiled once, for
// formatting and for parsing. Both support the items of the chrono library: those of C, and `%+ %.f %3f %.3f %:z %#z %q`
// and the padding modifiers `- _ 0`.
// Hand-written, because no JavaScript library supports these items.

import { isoSecond, Timestamp } from '../event/timestamp.ts'
import { bounded } from './regex-linear.ts'
import { utc, type Zone } from './timezone.ts'

type NumericField =
  | 'year'
  | 'century'
  | 'yearOfCentury'
  | 'isoYear'
  | 'isoYearOfCentury'
  | 'quarter'
  | 'month'
  | 'day'
  | 'weekFromSunday'
  | 'weekFromMonday'
  | 'isoWeek'
  | 'daysFromSunday'
  | 'weekday'
  | 'ordinal'
  | 'hour'
  | 'hour12'
  | 'minute'
  | 'second'
  | 'nanosecond'
  | 'unix'

type Padding = 'none' | 'zero' | 'space'

export type StrftimeItem =
  | { readonly kind: 'literal'; readonly text: string }
  | { readonly kind: 'space'; readonly text: string }
  | { readonly kind: 'number'; readonly field: NumericField; readonly width: number; readonly padding: Padding }
  | { readonly kind: 'month'; readonly long: boolean }
  | { readonly kind: 'weekday'; readonly long: boolean }
  | { readonly kind: 'ampm'; readonly lower: boolean }
  /** Digits of the second's fraction; 0: as many as needed. */
  | { readonly kind: 'fraction'; readonly digits: 0 | 3 | 6 | 9; readonly dot: boolean }
  | { readonly kind: 'zoneName' }
  | { readonly kind: 'offset'; readonly form: 'plain' | 'colon' | 'seconds' | 'hours' | 'permissive' }
  | { readonly kind: 'rfc3339' }

export interface Strftime {
  readonly ok: true
  readonly pattern: string
  readonly items: readonly StrftimeItem[]
  /** True if the pattern reads the zone from the text. */
  readonly hasZone: boolean
  /** True if the text depends on the fraction of the second. */
  readonly hasFraction: boolean
  /** True if the pattern has no items, so that its text is constant. */
  readonly isLiteral: boolean
  /** The text of the last second, because many events share a second. */
  readonly last: { second: number; zone: Zone; text: string }
}

export interface BadStrftime {
  readonly ok: false
  readonly problem: string
}

const number = (field: NumericField, width: number, padding: Padding = 'zero'): StrftimeItem => ({
  kind: 'number',
  field,
  width,
  padding,
})
const literal = (text: string): StrftimeItem => ({ kind: 'literal', text })
const blank = (text: string): StrftimeItem => ({ kind: 'space', text })

const year = number('year', 4)
const month = number('month', 2)
const day = number('day', 2)
const hour = number('hour', 2)
const minute = number('minute', 2)
const second = number('second', 2)
const clock = [hour, literal(':'), minute, literal(':'), second]
const american = [month, literal('/'), day, literal('/'), number('yearOfCentury', 2)]

const specifiers: Readonly<Record<string, readonly StrftimeItem[]>> = {
  A: [{ kind: 'weekday', long: true }],
  B: [{ kind: 'month', long: true }],
  C: [number('century', 2)],
  D: american,
  F: [year, literal('-'), month, literal('-'), day],
  G: [number('isoYear', 4)],
  H: [hour],
  I: [number('hour12', 2)],
  M: [minute],
  P: [{ kind: 'ampm', lower: true }],
  R: [hour, literal(':'), minute],
  S: [second],
  T: clock,
  U: [number('weekFromSunday', 2)],
  V: [number('isoWeek', 2)],
  W: [number('weekFromMonday', 2)],
  X: clock,
  Y: [year],
  Z: [{ kind: 'zoneName' }],
  a: [{ kind: 'weekday', long: false }],
  b: [{ kind: 'month', long: false }],
  c: [
    { kind: 'weekday', long: false },
    blank(' '),
    { kind: 'month', long: false },
    blank(' '),
    number('day', 2, 'space'),
    blank(' '),
    ...clock,
    blank(' '),
    year,
  ],
  d: [day],
  e: [number('day', 2, 'space')],
  f: [number('nanosecond', 9)],
  g: [number('isoYearOfCentury', 2)],
  h: [{ kind: 'month', long: false }],
  j: [number('ordinal', 3)],
  k: [number('hour', 2, 'space')],
  l: [number('hour12', 2, 'space')],
  m: [month],
  n: [blank('\n')],
  p: [{ kind: 'ampm', lower: false }],
  q: [number('quarter', 1, 'none')],
  r: [number('hour12', 2), literal(':'), minute, literal(':'), second, blank(' '), { kind: 'ampm', lower: false }],
  s: [number('unix', 9, 'none')],
  t: [blank('\t')],
  u: [number('weekday', 1, 'none')],
  v: [number('day', 2, 'space'), literal('-'), { kind: 'month', long: false }, literal('-'), year],
  w: [number('daysFromSunday', 1, 'none')],
  x: american,
  y: [number('yearOfCentury', 2)],
  z: [{ kind: 'offset', form: 'plain' }],
  '+': [{ kind: 'rfc3339' }],
  '%': [literal('%')],
  ':z': [{ kind: 'offset', form: 'colon' }],
  '::z': [{ kind: 'offset', form: 'seconds' }],
  ':::z': [{ kind: 'offset', form: 'hours' }],
  '#z': [{ kind: 'offset', form: 'permissive' }],
  '.f': [{ kind: 'fraction', digits: 0, dot: true }],
  '.3f': [{ kind: 'fraction', digits: 3, dot: true }],
  '.6f': [{ kind: 'fraction', digits: 6, dot: true }],
  '.9f': [{ kind: 'fraction', digits: 9, dot: true }],
  '3f': [{ kind: 'fraction', digits: 3, dot: false }],
  '6f': [{ kind: 'fraction', digits: 6, dot: false }],
  '9f': [{ kind: 'fraction', digits: 9, dot: false }],
}

const paddings: Readonly<Record<string, Padding>> = { '-': 'none', _: 'space', '0': 'zero' }

/** Compiles a strftime pattern. The compiled form contains a cache, so do not share it between threads. */
export function compileStrftime(pattern: string): Strftime | BadStrftime {
  const items: StrftimeItem[] = []
  const part = /%([-_0])?(\.[369]?f|[369]f|#z|:{1,3}z|[A-Za-z+%])|(\s+)|([^%\s]+)/y
  let at = 0
  while (at < pattern.length) {
    part.lastIndex = at
    const match = part.exec(pattern)
    if (match === null) return { ok: false, problem: `Invalid strftime item at character ${at} of "${pattern}"` }
    at = part.lastIndex
    const [whole, padding, specifier, space] = match
    if (specifier === undefined) {
      items.push(space === undefined ? literal(whole) : blank(space))
      continue
    }
    const meant = specifiers[specifier]
    if (meant === undefined) return { ok: false, problem: `Invalid strftime item "${whole}" in "${pattern}"` }
    if (padding === undefined) {
      items.push(...meant)
      continue
    }
    const only = meant[0] as StrftimeItem
    if (meant.length > 1 || only.kind !== 'number') {
      return { ok: false, problem: `Invalid strftime item "${whole}" in "${pattern}": it cannot be padded` }
    }
    items.push({ ...only, padding: paddings[padding] as Padding })
  }
  return {
    ok: true,
    pattern,
    items,
    hasZone: /%(Z|z|:z|#z|\+)/.test(pattern),
    hasFraction: items.some(
      (item) =>
        item.kind === 'fraction' || item.kind === 'rfc3339' || (item.kind === 'number' && item.field === 'nanosecond'),
    ),
    isLiteral: !pattern.includes('%'),
    last: { second: Number.NaN, zone: utc, text: '' },
  }
}

/** Compiles a pattern known to be valid. */
export function strftime(pattern: string): Strftime {
  const compiled = compileStrftime(pattern)
  if (!compiled.ok) throw new TypeError(compiled.problem)
  return compiled
}

// ---- Formatting

const monthNames = [
  'January',
  'February',
  'March',
  'April',
  'May',
  'June',
  'July',
  'August',
  'September',
  'October',
  'November',
  'December',
]
const weekdayNames = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday']

/** The text of an instant in a zone. */
export function formatTimestamp(compiled: Strftime, timestamp: Timestamp, zone: Zone = utc): string {
  if (compiled.isLiteral) return compiled.pattern
  const second = Math.floor(timestamp.ms / 1000)
  if (compiled.hasFraction) return formatted(compiled.items, timestamp, second, zone)
  const last = compiled.last
  if (last.second !== second || last.zone !== zone) {
    last.text = formatted(compiled.items, timestamp, second, zone)
    last.second = second
    last.zone = zone
  }
  return last.text
}

function formatted(items: readonly StrftimeItem[], timestamp: Timestamp, unix: number, zone: Zone): string {
  const offset = zone.offsetAt(timestamp.ms)
  const local = new Date(unix * 1000 + offset)
  const nano = (timestamp.ms - unix * 1000) * 1_000_000 + timestamp.ns
  let text = ''
  for (const item of items) {
    switch (item.kind) {
      case 'literal':
      case 'space':
        text += item.text
        break
      case 'number':
        text += padded(numberOf(item.field, local, unix, nano), item.width, item.padding, item.field)
        break
      case 'month': {
        const name = monthNames[local.getUTCMonth()] as string
        text += item.long ? name : name.slice(0, 3)
        break
      }
      case 'weekday': {
        const name = weekdayNames[local.getUTCDay()] as string
        text += item.long ? name : name.slice(0, 3)
        break
      }
      case 'ampm': {
        const after = local.getUTCHours() >= 12
        text += item.lower ? (after ? 'pm' : 'am') : after ? 'PM' : 'AM'
        break
      }
      case 'fraction':
        text += fractionText(nano, item.digits, item.dot)
        break
      case 'zoneName':
        text += zone.abbreviationAt(timestamp.ms)
        break
      case 'offset':
        text += offsetText(offset, item.form)
        break
      case 'rfc3339':
        text += rfc3339Text(local, nano, offset)
        break
    }
  }
  return text
}

function rfc3339Text(local: Date, nano: number, offset: number): string {
  return `${isoSecond(local)}${fractionText(nano, 0, true)}${offsetText(offset, 'colon')}`
}

function fractionText(nano: number, digits: 0 | 3 | 6 | 9, dot: boolean): string {
  let count: number = digits
  if (count === 0) {
    if (nano === 0) return ''
    count = nano % 1_000_000 === 0 ? 3 : nano % 1000 === 0 ? 6 : 9
  }
  const text = String(nano).padStart(9, '0').slice(0, count)
  return dot ? `.${text}` : text
}

function offsetText(offset: number, form: 'plain' | 'colon' | 'seconds' | 'hours' | 'permissive'): string {
  const seconds = Math.round(Math.abs(offset) / 1000)
  const sign = offset < 0 ? '-' : '+'
  const hours = two(Math.floor(seconds / 3600))
  // Offsets before the time of time zones have seconds; forms without seconds round them.
  const minutes = Math.floor((seconds + 30) / 60)
  switch (form) {
    case 'plain':
    case 'permissive':
      return `${sign}${two(Math.floor(minutes / 60))}${two(minutes % 60)}`
    case 'colon':
      return `${sign}${two(Math.floor(minutes / 60))}:${two(minutes % 60)}`
    case 'seconds':
      return `${sign}${hours}:${two(Math.floor(seconds / 60) % 60)}:${two(seconds % 60)}`
    case 'hours':
      return `${sign}${hours}`
  }
}

function two(value: number): string {
  return value < 10 ? `0${value}` : String(value)
}

function padded(value: number, width: number, padding: Padding, field: NumericField): string {
  const isSigned = (field === 'year' || field === 'isoYear') && value > 9999
  const sign = value < 0 ? '-' : isSigned ? '+' : ''
  const digits = String(Math.abs(value))
  if (padding === 'none') return sign + digits
  // Of years, the sign comes before the digits.
  const whole = (field === 'year' || field === 'isoYear') && sign !== '' ? width + 1 : width
  return padding === 'zero' ? sign + digits.padStart(whole - sign.length, '0') : (sign + digits).padStart(whole)
}

function numberOf(field: NumericField, local: Date, unix: number, nano: number): number {
  switch (field) {
    case 'year':
      return local.getUTCFullYear()
    case 'century':
      return Math.floor(local.getUTCFullYear() / 100)
    case 'yearOfCentury':
      return modulo(local.getUTCFullYear(), 100)
    case 'isoYear':
      return isoWeekOf(local).year
    case 'isoYearOfCentury':
      return modulo(isoWeekOf(local).year, 100)
    case 'quarter':
      return Math.floor(local.getUTCMonth() / 3) + 1
    case 'month':
      return local.getUTCMonth() + 1
    case 'day':
      return local.getUTCDate()
    case 'weekFromSunday':
      return Math.floor((ordinalOf(local) - local.getUTCDay() + 6) / 7)
    case 'weekFromMonday':
      return Math.floor((ordinalOf(local) - ((local.getUTCDay() + 6) % 7) + 6) / 7)
    case 'isoWeek':
      return isoWeekOf(local).week
    case 'daysFromSunday':
      return local.getUTCDay()
    case 'weekday':
      return local.getUTCDay() || 7
    case 'ordinal':
      return ordinalOf(local)
    case 'hour':
      return local.getUTCHours()
    case 'hour12':
      return local.getUTCHours() % 12 || 12
    case 'minute':
      return local.getUTCMinutes()
    case 'second':
      return local.getUTCSeconds()
    case 'nanosecond':
      return nano
    case 'unix':
      return unix
  }
}

function modulo(value: number, by: number): number {
  return ((value % by) + by) % by
}

/** Day of the year from 1. */
function ordinalOf(date: Date): number {
  const day = Math.floor(date.getTime() / 86_400_000)
  return day - daysFromCivil(date.getUTCFullYear(), 1, 1) + 1
}

function isoWeekOf(date: Date): { year: number; week: number } {
  const day = Math.floor(date.getTime() / 86_400_000)
  // The Thursday of a week determines the year of the week.
  const thursday = day - ((date.getUTCDay() + 6) % 7) + 3
  const year = new Date(thursday * 86_400_000).getUTCFullYear()
  return { year, week: Math.floor((thursday - daysFromCivil(year, 1, 1)) / 7) + 1 }
}

/** Days since the epoch of a date in the proleptic Gregorian calendar. */
export function daysFromCivil(year: number, month: number, day: number): number {
  const shifted = month <= 2 ? year - 1 : year
  const era = Math.floor(shifted / 400)
  const yearOfEra = shifted - era * 400
  const dayOfYear = Math.floor((153 * (month + (month > 2 ? -3 : 9)) + 2) / 5) + day - 1
  const dayOfEra = yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear
  return era * 146_097 + dayOfEra - 719_468
}

const monthDays = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

export function daysInMonth(year: number, month: number): number {
  if (month === 2 && year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)) return 29
  return monthDays[month - 1] ?? 0
}

// ---- Parsing

/** The fields read so far. A repeated field must have the same value, and all fields must be consistent. */
type Fields = {
  [field in NumericField]: number | undefined
} & { afternoon: boolean | undefined; offset: number | undefined }

function noFields(): Fields {
  return {
    year: undefined,
    century: undefined,
    yearOfCentury: undefined,
    isoYear: undefined,
    isoYearOfCentury: undefined,
    quarter: undefined,
    month: undefined,
    day: undefined,
    weekFromSunday: undefined,
    weekFromMonday: undefined,
    isoWeek: undefined,
    daysFromSunday: undefined,
    weekday: undefined,
    ordinal: undefined,
    hour: undefined,
    hour12: undefined,
    minute: undefined,
    second: undefined,
    nanosecond: undefined,
    unix: undefined,
    afternoon: undefined,
    offset: undefined,
  }
}

/**
 * The instant of a text; undefined if the text does not match the pattern, contains no complete date and time, or gives a
 * local time that does not exist or is ambiguous.
 */
export function parseTimestamp(compiled: Strftime, text: string, zone: Zone = utc): Timestamp | undefined {
  const fields = noFields()
  let at = 0
  const items = compiled.items
  for (let index = 0; index < items.length; index++) {
    at = parseItem(items[index] as StrftimeItem, text, at, fields)
    if (at < 0) return undefined
  }
  return at === text.length ? instantOf(fields, compiled.hasZone, zone) : undefined
}

/** The position after the item, or -1. */
function parseItem(item: StrftimeItem, text: string, at: number, fields: Fields): number {
  switch (item.kind) {
    case 'literal':
      return text.startsWith(item.text, at) ? at + item.text.length : -1
    case 'space':
      return skipSpace(text, at)
    case 'number':
      return parseNumber(item.field, text, at, fields)
    case 'month':
      return parseName(monthNames, item.long, text, at, fields, 'month', 1)
    case 'weekday':
      return parseName(weekdayNames, item.long, text, at, fields, 'daysFromSunday', 0)
    case 'ampm': {
      const word = text.slice(at, at + 2).toLowerCase()
      if (word !== 'am' && word !== 'pm') return -1
      const afternoon = word === 'pm'
      if (fields.afternoon !== undefined && fields.afternoon !== afternoon) return -1
      fields.afternoon = afternoon
      return at + 2
    }
    case 'fraction': {
      if (item.dot) return text.charCodeAt(at) === 46 ? parseFraction(text, at + 1, fields) : at
      const end = at + item.digits
      if (end > text.length) return -1
      let value = 0
      for (let index = at; index < end; index++) {
        const digit = text.charCodeAt(index) - 48
        if (!(digit >= 0 && digit <= 9)) return -1
        value = value * 10 + digit
      }
      return set(fields, 'nanosecond', value * 10 ** (9 - item.digits)) ? end : -1
    }
    case 'zoneName': {
      let end = at
      while (end < text.length && !isSpace(text.charCodeAt(end))) end++
      return end
    }
    case 'offset':
      return parseOffset(
        text,
        skipSpace(text, at),
        fields,
        item.form === 'permissive',
        item.form === 'permissive',
        false,
      )
    case 'rfc3339': {
      const end = parseRfc3339Fields(text, at, fields)
      return end < 0 ? parseSpelledOut(text, at, fields) : end
    }
  }
}

function set(fields: Fields, field: NumericField | 'offset', value: number): boolean {
  const old = fields[field]
  if (old !== undefined) return old === value
  fields[field] = value
  return true
}

function isSpace(code: number): boolean {
  return code === 32 || (code >= 9 && code <= 13) || code === 0x85 || code === 0xa0 || code === 0x3000
}

function skipSpace(text: string, at: number): number {
  let end = at
  while (end < text.length && isSpace(text.charCodeAt(end))) end++
  return end
}

function widthOf(field: NumericField): number {
  switch (field) {
    case 'year':
    case 'isoYear':
      return 4
    case 'ordinal':
      return 3
    case 'nanosecond':
      return 9
    case 'unix':
      return 18
    case 'quarter':
    case 'daysFromSunday':
    case 'weekday':
      return 1
    default:
      return 2
  }
}

function parseNumber(field: NumericField, text: string, from: number, fields: Fields): number {
  let at = skipSpace(text, from)
  let width = widthOf(field)
  let sign = 1
  const first = text.charCodeAt(at)
  if ((first === 45 || first === 43) && (field === 'year' || field === 'isoYear' || field === 'unix')) {
    if (first === 45) sign = -1
    width = 18
    at++
  }
  const start = at
  let value = 0
  while (at < text.length && at - start < width) {
    const digit = text.charCodeAt(at) - 48
    if (!(digit >= 0 && digit <= 9)) break
    value = value * 10 + digit
    at++
  }
  if (at === start || !inRange(field, value)) return -1
  return set(fields, field, sign * value) ? at : -1
}

function inRange(field: NumericField, value: number): boolean {
  switch (field) {
    case 'month':
      return value >= 1 && value <= 12
    case 'day':
      return value >= 1 && value <= 31
    case 'ordinal':
      return value >= 1 && value <= 366
    case 'isoWeek':
      return value >= 1 && value <= 53
    case 'weekFromSunday':
    case 'weekFromMonday':
      return value <= 53
    case 'quarter':
      return value >= 1 && value <= 4
    case 'weekday':
      return value >= 1 && value <= 7
    case 'daysFromSunday':
      return value <= 6
    case 'hour':
      return value <= 23
    case 'hour12':
      return value >= 1 && value <= 12
    case 'minute':
      return value <= 59
    case 'second':
      return value <= 60
    default:
      return true
  }
}

function parseName(
  names: readonly string[],
  long: boolean,
  text: string,
  at: number,
  fields: Fields,
  field: 'month' | 'daysFromSunday',
  base: number,
): number {
  const short = text.slice(at, at + 3).toLowerCase()
  if (short.length < 3) return -1
  for (let index = 0; index < names.length; index++) {
    const name = (names[index] as string).toLowerCase()
    if (!name.startsWith(short)) continue
    if (!set(fields, field, index + base)) return -1
    // A long name may be abbreviated.
    return long && text.slice(at, at + name.length).toLowerCase() === name ? at + name.length : at + 3
  }
  return -1
}

/** Any number of digits; only the first nine count. */
function parseFraction(text: string, from: number, fields: Fields): number {
  let at = from
  let value = 0
  let scale = 100_000_000
  while (at < text.length) {
    const digit = text.charCodeAt(at) - 48
    if (!(digit >= 0 && digit <= 9)) break
    if (scale >= 1) {
      value += digit * scale
      scale /= 10
    }
    at++
  }
  return at > from && set(fields, 'nanosecond', value) ? at : -1
}

function twoDigits(text: string, at: number): number {
  const tens = text.charCodeAt(at) - 48
  const units = text.charCodeAt(at + 1) - 48
  return tens >= 0 && tens <= 9 && units >= 0 && units <= 9 ? tens * 10 + units : -1
}

/** `+hh:mm`; the colon is optional, except in RFC 3339. */
function parseOffset(
  text: string,
  from: number,
  fields: Fields,
  zulu: boolean,
  minutesMayMiss: boolean,
  strictColon: boolean,
): number {
  const first = text.charCodeAt(from)
  if (zulu && (first === 90 || first === 122)) return set(fields, 'offset', 0) ? from + 1 : -1
  const negative = first === 45 || first === 0x2212
  if (!negative && first !== 43) return -1
  const hours = twoDigits(text, from + 1)
  if (hours < 0) return -1
  let at = from + 3
  if (strictColon) {
    if (text.charCodeAt(at) !== 58) return -1
    at++
  } else {
    while (at < text.length && (text.charCodeAt(at) === 58 || isSpace(text.charCodeAt(at)))) at++
  }
  let minutes = 0
  if (at < text.length || !minutesMayMiss) {
    minutes = twoDigits(text, at)
    if (minutes < 0 || minutes > 59) return -1
    at += 2
  }
  const offset = (hours * 60 + minutes) * 60_000
  if (offset >= 86_400_000) return -1
  return set(fields, 'offset', negative ? -offset : offset) ? at : -1
}

function parseRfc3339Fields(text: string, from: number, fields: Fields): number {
  const end = /^\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d/.exec(text.slice(from, from + 19)) === null ? -1 : from + 19
  if (end < 0) return -1
  const part = (field: NumericField, at: number, width: number): boolean => {
    const value = Number(text.slice(from + at, from + at + width))
    return inRange(field, value) && set(fields, field, value)
  }
  if (!part('year', 0, 4) || !part('month', 5, 2) || !part('day', 8, 2)) return -1
  if (!part('hour', 11, 2) || !part('minute', 14, 2) || !part('second', 17, 2)) return -1
  const at = text.charCodeAt(end) === 46 ? parseFraction(text, end + 1, fields) : end
  return at < 0 ? -1 : parseOffset(text, at, fields, true, false, true)
}

let spelledOut: Strftime | undefined

/** The items that `%+` represents: numbers may have fewer digits, and blanks may precede the offset. */
function parseSpelledOut(text: string, from: number, fields: Fields): number {
  spelledOut ??= strftime('%Y-%m-%dT%H:%M:%S%.f%#z')
  let at = from
  for (const item of spelledOut.items) {
    at = parseItem(item, text, at, fields)
    if (at < 0) return -1
  }
  return at
}

/**
 * Days since the epoch of the date in the fields; undefined if the date is incomplete; null if the fields are
 * contradictory.
 */
function dayOf(fields: Fields): number | undefined | null {
  let year = fields.year
  const { century, yearOfCentury } = fields
  if (year === undefined) {
    if (yearOfCentury !== undefined) {
      year = century === undefined ? yearOfCentury + (yearOfCentury < 70 ? 2000 : 1900) : century * 100 + yearOfCentury
    }
  } else if (
    (century !== undefined && (year < 0 || Math.floor(year / 100) !== century)) ||
    (yearOfCentury !== undefined && (year < 0 || year % 100 !== yearOfCentury))
  ) {
    return null
  }
  let day: number | undefined
  if (year !== undefined && fields.month !== undefined && fields.day !== undefined) {
    if (fields.day > daysInMonth(year, fields.month)) return null
    day = daysFromCivil(year, fields.month, fields.day)
  } else if (year !== undefined && fields.ordinal !== undefined) {
    day = daysFromCivil(year, 1, 1) + fields.ordinal - 1
  } else if (year !== undefined && weekdayOf(fields) !== undefined) {
    const weekday = weekdayOf(fields) as number
    const first = daysFromCivil(year, 1, 1)
    const firstWeekday = modulo(first + 4, 7)
    if (fields.weekFromSunday !== undefined) {
      day = first + (fields.weekFromSunday - 1) * 7 + modulo(7 - firstWeekday, 7) + weekday
    } else if (fields.weekFromMonday !== undefined) {
      day = first + (fields.weekFromMonday - 1) * 7 + modulo(8 - firstWeekday, 7) + modulo(weekday + 6, 7)
    }
  }
  if (day === undefined && fields.isoYear !== undefined && fields.isoWeek !== undefined) {
    const weekday = weekdayOf(fields)
    if (weekday !== undefined) {
      const fourth = daysFromCivil(fields.isoYear, 1, 4)
      day = fourth - modulo(fourth + 3, 7) + (fields.isoWeek - 1) * 7 + modulo(weekday + 6, 7)
    }
  }
  if (day === undefined) return undefined
  return agrees(fields, day) ? day : null
}

function weekdayOf(fields: Fields): number | undefined {
  return fields.daysFromSunday ?? (fields.weekday === undefined ? undefined : fields.weekday % 7)
}

const dateFields: readonly NumericField[] = [
  'year',
  'month',
  'day',
  'ordinal',
  'quarter',
  'isoYear',
  'isoYearOfCentury',
  'isoWeek',
  'daysFromSunday',
  'weekday',
  'weekFromSunday',
  'weekFromMonday',
]

function agrees(fields: Fields, day: number): boolean {
  let date: Date | undefined
  for (let index = 0; index < dateFields.length; index++) {
    const field = dateFields[index] as NumericField
    if (fields[field] === undefined) continue
    date ??= new Date(day * 86_400_000)
    if (numberOf(field, date, 0, 0) !== fields[field]) return false
  }
  return true
}

function instantOf(fields: Fields, zoned: boolean, zone: Zone): Timestamp | undefined {
  if (zoned && fields.offset === undefined && fields.unix === undefined) return undefined
  const day = dayOf(fields)
  if (day === null) return undefined
  let hour = fields.hour
  if (fields.hour12 !== undefined && fields.afternoon !== undefined) {
    const twelve = (fields.hour12 % 12) + (fields.afternoon ? 12 : 0)
    if (hour !== undefined && hour !== twelve) return undefined
    hour = twelve
  } else if (hour !== undefined) {
    if (fields.afternoon !== undefined && hour >= 12 !== fields.afternoon) return undefined
    if (fields.hour12 !== undefined && hour % 12 !== fields.hour12 % 12) return undefined
  }
  const nano = fields.nanosecond ?? 0
  const offset = zoned ? (fields.offset ?? 0) : undefined
  const unixMs = fields.unix === undefined ? undefined : fields.unix * 1000
  if (unixMs !== undefined && Math.abs(unixMs) > 8.64e15) return undefined
  const unixLocal = unixMs === undefined ? undefined : unixMs + (offset ?? zone.offsetAt(unixMs))
  if (day !== undefined && hour !== undefined && fields.minute !== undefined) {
    if (fields.second === undefined && fields.nanosecond !== undefined && fields.unix === undefined) return undefined
    const local = day * 86_400_000 + (hour * 3600 + fields.minute * 60 + (fields.second ?? 0)) * 1000
    if (unixLocal !== undefined && unixLocal !== local) return undefined
    const instant = unixMs ?? (offset === undefined ? zone.instantOf(local) : local - offset)
    return instant === undefined ? undefined : timestampOf(instant, nano)
  }
  if (unixMs === undefined || unixLocal === undefined) return undefined
  const local = new Date(unixLocal)
  if (!agrees(fields, Math.floor(unixLocal / 86_400_000))) return undefined
  if (hour !== undefined && local.getUTCHours() !== hour) return undefined
  if (fields.minute !== undefined && local.getUTCMinutes() !== fields.minute) return undefined
  if (fields.second !== undefined && local.getUTCSeconds() !== fields.second) return undefined
  return timestampOf(unixMs, nano)
}

function timestampOf(secondMs: number, nano: number): Timestamp {
  const milli = Math.floor(nano / 1_000_000)
  return new Timestamp(secondMs + milli, nano - milli * 1_000_000)
}

// ---- Fixed formats

const digit0 = 48

function digitsAt(text: string, at: number, count: number): number {
  let value = 0
  for (let index = at; index < at + count; index++) {
    const digit = text.charCodeAt(index) - digit0
    if (!(digit >= 0 && digit <= 9)) return Number.NaN
    value = value * 10 + digit
  }
  return value
}

// Many lines share a date, so the days are computed once per date.
let cachedDate = -1
let cachedDay = 0

/** An RFC 3339 date-time: `2026-01-31T10:11:12.123456789+01:00`; a blank may replace the `T`. Undefined if invalid. */
export function parseRfc3339(text: string): Timestamp | undefined {
  if (text.length < 20) return undefined
  const year = digitsAt(text, 0, 4)
  const month = digitsAt(text, 5, 2)
  const day = digitsAt(text, 8, 2)
  const hour = digitsAt(text, 11, 2)
  const minute = digitsAt(text, 14, 2)
  const second = digitsAt(text, 17, 2)
  const middle = text.charCodeAt(10)
  // NaN fails every comparison.
  if (
    !(year >= 0 && month >= 1 && month <= 12 && day >= 1 && hour <= 23 && minute <= 59 && second <= 60) ||
    text.charCodeAt(4) !== 45 ||
    text.charCodeAt(7) !== 45 ||
    (middle !== 84 && middle !== 116 && middle !== 32) ||
    text.charCodeAt(13) !== 58 ||
    text.charCodeAt(16) !== 58
  ) {
    return undefined
  }
  const date = (year * 16 + month) * 32 + day
  if (date !== cachedDate) {
    if (day > daysInMonth(year, month)) return undefined
    cachedDay = daysFromCivil(year, month, day)
    cachedDate = date
  }
  let at = 19
  let milli = 0
  let nano = 0
  if (text.charCodeAt(at) === 46) {
    const start = ++at
    let scale = 100_000_000
    let value = 0
    for (; at < text.length; at++) {
      const digit = text.charCodeAt(at) - digit0
      if (!(digit >= 0 && digit <= 9)) break
      if (scale >= 1) {
        value += digit * scale
        scale /= 10
      }
    }
    if (at === start) return undefined
    milli = Math.floor(value / 1_000_000)
    nano = value - milli * 1_000_000
  }
  let offset = 0
  const sign = text.charCodeAt(at)
  if (sign === 90 || sign === 122) {
    at++
  } else {
    if ((sign !== 43 && sign !== 45 && sign !== 0x2212) || text.charCodeAt(at + 3) !== 58) return undefined
    const hours = digitsAt(text, at + 1, 2)
    const minutes = digitsAt(text, at + 4, 2)
    if (!(hours <= 23 && minutes <= 59)) return undefined
    offset = (hours * 60 + minutes) * 60_000
    if (sign !== 43) offset = -offset
    at += 6
  }
  if (at !== text.length) return undefined
  return new Timestamp(cachedDay * 86_400_000 + (hour * 3600 + minute * 60 + second) * 1000 + milli - offset, nano)
}

const rfc2822 = bounded(
  /^\s*(?:(sun|mon|tue|wed|thu|fri|sat)\s*,\s*)?(\d{1,2})\s+(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)\s+(\d{2,4})\s+(\d\d)\s*:\s*(\d\d)(?:\s*:\s*(\d\d))?\s+([+-]\d{4}|[a-z]+)\s*$/i,
)

const obsoleteZones: Readonly<Record<string, number>> = {
  gmt: 0,
  ut: 0,
  utc: 0,
  z: 0,
  edt: -4,
  est: -5,
  cdt: -5,
  cst: -6,
  mdt: -6,
  mst: -7,
  pdt: -7,
  pst: -8,
}

/** An RFC 2822 date: `Thu, 29 Feb 2024 10:11:12 +0100`. Undefined if invalid. */
export function parseRfc2822(text: string): Timestamp | undefined {
  const match = rfc2822.exec(text)
  if (match === null) return undefined
  const [, weekday, dayText = '', monthText = '', yearText = '', hourText, minuteText, secondText = '0', zone = ''] =
    match
  let year = Number(yearText)
  if (yearText.length === 2) year += year < 50 ? 2000 : 1900
  else if (yearText.length === 3) year += 1900
  const month = monthNames.findIndex((name) => name.slice(0, 3).toLowerCase() === monthText.toLowerCase()) + 1
  const day = Number(dayText)
  const hour = Number(hourText)
  const minute = Number(minuteText)
  const second = Number(secondText)
  if (day < 1 || day > daysInMonth(year, month) || hour > 23 || minute > 59 || second > 60) return undefined
  const days = daysFromCivil(year, month, day)
  if (weekday !== undefined) {
    const name = weekdayNames[modulo(days + 4, 7)] as string
    if (name.slice(0, 3).toLowerCase() !== weekday.toLowerCase()) return undefined
  }
  let offset: number
  if (/^[+-]/.test(zone)) {
    const minutes = Number(zone.slice(3))
    if (minutes > 59) return undefined
    offset = (Number(zone.slice(1, 3)) * 60 + minutes) * (zone[0] === '-' ? -60_000 : 60_000)
  } else {
    const hours = obsoleteZones[zone.toLowerCase()]
    if (hours === undefined) return undefined
    offset = hours * 3_600_000
  }
  return new Timestamp(days * 86_400_000 + (hour * 3600 + minute * 60 + second) * 1000 - offset, 0)
}

// ---- Guessing

const localForms = [
  '%F %T',
  '%v %T',
  '%FT%T',
  '%m/%d/%Y:%T',
  '%a, %d %b %Y %T',
  '%a %d %b %T %Y',
  '%A %d %B %T %Y',
  '%a %b %e %T %Y',
].map(strftime)
const unixForm = strftime('%s')
const zonedForms = ['%+', '%a %d %b %T %Z %Y', '%a %d %b %T %z %Y', '%a %d %b %T %#z %Y', '%d/%b/%Y:%T %z'].map(
  strftime,
)

/** A date of unknown format; dates without a zone use the given one. Undefined if no format matches. */
export function guessTimestamp(text: string, zone: Zone = utc): Timestamp | undefined {
  // Tries the most common format first; no local format matches it.
  const exact = parseRfc3339(text)
  if (exact !== undefined && (text.charCodeAt(10) | 32) === 116) return exact
  for (const form of localForms) {
    const parsed = parseTimestamp(form, text, zone)
    if (parsed !== undefined) return parsed
  }
  const other = parseTimestamp(unixForm, text) ?? exact ?? parseRfc2822(text)
  if (other !== undefined) return other
  for (const form of zonedForms) {
    const parsed = parseTimestamp(form, text)
    if (parsed !== undefined) return parsed
  }
  return undefined
}
