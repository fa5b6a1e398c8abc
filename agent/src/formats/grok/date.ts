// Dates in patterns of the extended dialect.

import { compileStrftime, parseTimestamp, type Strftime } from '../datetime.ts'
import { findZone, utc, type Zone } from '../timezone.ts'
import { type Filter, type FilterArgument, InvalidGrok } from './filters.ts'

/** A strftime item and a regular expression. */
type Item = readonly [form: string, source: string]

const digits = (count: number): string => `\\d{${count}}`

/** Joda's pattern letters by the number of their repetitions. A number has as many digits as letters. */
const joda: Readonly<Record<string, (count: number) => Item | undefined>> = {
  h: (count) => ['%I', digits(count)],
  H: (count) => ['%H', digits(count)],
  m: (count) => ['%M', digits(count)],
  s: (count) => ['%S', digits(count)],
  y: (count) => [count === 2 ? '%y' : '%Y', digits(count === 1 ? 4 : count)],
  Y: (count) => [count === 2 ? '%y' : '%Y', digits(count)],
  c: (count) => ['%C', digits(count)],
  C: (count) => ['%C', digits(count)],
  e: (count) => ['%u', digits(count)],
  w: (count) => ['%V', digits(count)],
  D: (count) => ['%j', digits(count)],
  d: (count) => (count === 1 ? ['%-d', '\\d{1,2}'] : ['%d', digits(count)]),
  M: (count) => {
    if (count === 1) return ['%-m', '\\d{1,2}']
    if (count === 2) return ['%m', digits(2)]
    return count === 3 ? ['%b', '\\w{3}'] : ['%B', '\\w+']
  },
  E: (count) => (count < 3 ? undefined : count === 3 ? ['%a', '\\w{3}'] : ['%A', '\\w+']),
  a: () => ['%p', '[AaPp][Mm]'],
  z: (count) => ['%Z', count < 4 ? '\\w+' : '\\w+(?:/\\w+)?'],
  Z: (count) => (count > 2 ? undefined : [count === 1 ? '%z' : '%:z', '(?:Z|[+-]\\d{2}:?\\d{2})']),
}

/** `date("pattern"[, zone])` with Joda's letters: milliseconds since the epoch. */
export function dateOf(args: readonly FilterArgument[]): { source: string; filter: Filter } {
  const [pattern, zoneName] = args
  if (typeof pattern !== 'string') throw new InvalidGrok('date needs a pattern')
  const zone = zoneName === undefined ? utc : zoneOf(String(zoneName))
  if (zone === undefined) throw new InvalidGrok(`the time zone ${zoneName} is not known`)
  const { source, form, named, parts } = formOf(pattern)
  // Missing parts default to the current day and midnight.
  const missing = {
    year: !/[yY]/.test(pattern),
    month: !pattern.includes('M'),
    day: !form.includes('d'),
    time: !/%[HI]/.test(form),
  }
  const whole = `${missing.year ? '%Y ' : ''}${missing.month ? '%m ' : ''}${missing.day ? '%d ' : ''}${form}${missing.time ? ' %H:%M:%S' : ''}`
  const zoned = compileStrftime(whole)
  if (!zoned.ok) throw new InvalidGrok(zoned.problem)
  // The pattern skips the zone name, and the zone comes from the text.
  const compiledForm: Strftime = named ? { ...zoned, hasZone: false } : zoned
  return {
    source,
    filter(value) {
      let text = String(value)
      const found = parts.exec(text)
      const here = named ? findZone(found?.groups?.['zone'] ?? '') : zone
      if (here === undefined) return undefined
      const [point, after] = found?.indices?.groups?.['point'] ?? [0, 0]
      if (after > point) text = `${text.slice(0, point)}.${text.slice(after)}`
      if (pattern.endsWith('Z') && text.endsWith('Z')) text = `${text.slice(0, -1)}+0000`
      const present = new Date()
      if (missing.day) text = `${present.getUTCDate()} ${text}`
      if (missing.month) text = `${present.getUTCMonth() + 1} ${text}`
      if (missing.year) text = `${present.getUTCFullYear()} ${text}`
      if (missing.time) text += ' 00:00:00'
      const read = parseTimestamp(compiledForm, text, here)?.ms
      if (read === undefined || read <= present.getTime() || !(missing.day || missing.year)) return read
      // A time in the future is interpreted as yesterday, or as last year.
      const past = new Date(read)
      if (missing.day) {
        if (past.getUTCDate() > 1) past.setUTCDate(past.getUTCDate() - 1)
        return past.getTime()
      }
      const day = past.getUTCDate()
      past.setUTCFullYear(past.getUTCFullYear() - 1)
      return past.getUTCDate() === day ? past.getTime() : undefined
    },
  }
}

interface DateForm {
  readonly source: string
  readonly form: string
  /** Whether it contains a zone name. */
  readonly named: boolean
  /** Finds the zone name, and the character in front of the fraction of a second. */
  readonly parts: RegExp
}

/** A date format as a regular expression and as a strftime pattern. */
function formOf(pattern: string): DateForm {
  let source = ''
  let parts = ''
  let form = ''
  const add = (item: string, more: string, name?: string): void => {
    form += item
    source += more
    parts += name === undefined ? more : `(?<${name}>${more})`
  }
  const piece = /'([^']*)'?|([^A-Za-z']?)(S+)|([A-Za-z])\4*|./gs
  for (const [whole, quoted, point, fraction, letter] of pattern.matchAll(piece)) {
    if (fraction !== undefined) {
      // Any character may separate the fraction, and it is read as a point.
      if (point === '') throw new InvalidGrok('nothing separates the fraction of a second from the second')
      add('%.f', escaped(point as string), 'point')
      add('', digits(fraction.length))
    } else if (letter !== undefined) {
      const item = joda[letter]?.(whole.length)
      if (item === undefined) throw new InvalidGrok(`the letters ${whole} of the date are not known`)
      add(...item, letter === 'z' ? 'zone' : undefined)
    } else {
      const text = quoted ?? whole
      add(text.replaceAll('%', '%%'), escaped(text))
    }
  }
  try {
    return { source, form, named: form.includes('%Z'), parts: new RegExp(parts, 'd') }
  } catch {
    throw new InvalidGrok('the date has more than one zone or fraction of a second')
  }
}

function escaped(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
}

/** An offset such as `+3`, `-0300` or `UTC+05:30` as a zone; names are those of the database. */
function zoneOf(name: string): Zone | undefined {
  const offset = /^[A-Za-z]*([+-])(\d{1,2})(?::?(\d{2}))?$/.exec(name)
  if (offset === null) return findZone(name === 'Z' || name === 'UT' ? 'UTC' : name)
  const minutes = Number(offset[2]) * 60 + Number(offset[3] ?? 0)
  const ahead = (offset[1] === '-' ? -minutes : minutes) * 60_000
  return { name, offsetAt: () => ahead, instantOf: (localMs) => localMs - ahead, abbreviationAt: () => name }
}
