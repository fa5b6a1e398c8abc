// Dates in patterns of the extended dialect.

import { compileStrftime, parseTimestamp, type Strftime } from '../datetime.ts'
import { findZone, utc, type Zone } from '../timezone.ts'
import { type Filter, type FilterArgument, InvalidGrok } from './filters.ts'

/** Joda's pattern letters, as strftime items and as regular expressions. */
const joda: readonly (readonly [RegExp, string, string])[] = [
  [/^yyyy/, '%Y', '\\d{4}'],
  [/^yy/, '%y', '\\d{2}'],
  [/^y/, '%Y', '\\d{4}'],
  [/^MMMM/, '%B', '[A-Za-z]+'],
  [/^MMM/, '%b', '[A-Za-z]{3}'],
  [/^MM?/, '%m', '\\d{1,2}'],
  [/^dd?/, '%d', '\\d{1,2}'],
  [/^DD?D?/, '%j', '\\d{1,3}'],
  [/^EEEE+/, '%A', '[A-Za-z]+'],
  [/^E{1,3}/, '%a', '[A-Za-z]{3}'],
  [/^HH?/, '%H', '\\d{1,2}'],
  [/^hh?/, '%I', '\\d{1,2}'],
  [/^mm?/, '%M', '\\d{1,2}'],
  [/^ss?/, '%S', '\\d{1,2}'],
  [/^a/, '%p', '[AaPp][Mm]'],
  [/^ZZ/, '%:z', '(?:Z|[+-]\\d{2}:?\\d{2})'],
  [/^Z/, '%z', '(?:Z|[+-]\\d{2}:?\\d{2})'],
]

/** `date("pattern"[, zone])` with Joda's letters: milliseconds since the epoch. */
export function dateOf(args: readonly FilterArgument[]): { source: string; filter: Filter } {
  const [pattern, zoneName] = args
  if (typeof pattern !== 'string') throw new InvalidGrok('date needs a pattern')
  const zone = zoneName === undefined ? utc : zoneOf(String(zoneName))
  if (zone === undefined) throw new InvalidGrok(`the time zone ${zoneName} is not known`)
  const { source, form, named } = formOf(pattern)
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
      const here = named ? (findZone(/[A-Za-z_/]+$/.exec(text)?.[0] ?? '') ?? zone) : zone
      if (pattern.endsWith('Z') && text.endsWith('Z')) text = `${text.slice(0, -1)}+00:00`
      const present = new Date()
      if (missing.day) text = `${present.getUTCDate()} ${text}`
      if (missing.month) text = `${present.getUTCMonth() + 1} ${text}`
      if (missing.year) text = `${present.getUTCFullYear()} ${text}`
      if (missing.time) text += ' 00:00:00'
      const read = parseTimestamp(compiledForm, text, here)?.ms
      if (read === undefined || read <= present.getTime() || !(missing.day || missing.year)) return read
      // A time in the future is interpreted as yesterday, or as last year.
      const past = new Date(read)
      if (!missing.day) past.setUTCFullYear(past.getUTCFullYear() - 1)
      else if (past.getUTCDate() > 1) past.setUTCDate(past.getUTCDate() - 1)
      return past.getTime()
    },
  }
}

/** A date format as a regular expression and as a strftime pattern, and whether it contains a zone name. */
function formOf(pattern: string): { source: string; form: string; named: boolean } {
  let source = ''
  let form = ''
  let named = false
  let at = 0
  while (at < pattern.length) {
    const rest = pattern.slice(at)
    const quoted = /^'((?:[^']|'')*)'/.exec(rest)
    const fraction = /^([.,]?)S+/.exec(rest)
    if (quoted !== null) {
      const text = quoted[1] === '' ? "'" : (quoted[1] as string).replaceAll("''", "'")
      source += text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
      form += text.replaceAll('%', '%%')
      at += quoted[0].length
      continue
    }
    if (fraction !== null) {
      const digits = fraction[0].length - (fraction[1] as string).length
      source += `${fraction[1] === '' ? '' : '[.,]'}\\d{1,9}`
      form += fraction[1] === '.' ? '%.f' : `${fraction[1]}${digits === 6 ? '%6f' : digits === 9 ? '%9f' : '%3f'}`
      at += fraction[0].length
      continue
    }
    if (/^z/.test(rest)) {
      // A zone name: the instant is computed in that zone.
      named = true
      source += '[A-Za-z_/]+'
      form += '%Z'
      at += /^z+/.exec(rest)?.[0].length ?? 1
      continue
    }
    const letter = joda.find(([start]) => start.test(rest))
    if (letter !== undefined) {
      form += letter[1]
      source += letter[2]
      at += letter[0].exec(rest)?.[0].length ?? 1
      continue
    }
    const character = pattern[at] as string
    if (/[A-Za-z]/.test(character)) throw new InvalidGrok(`the letter ${character} of the date is not known`)
    source += character === ' ' ? '\\s+' : character.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
    form += character.replaceAll('%', '%%')
    at++
  }
  return { source, form, named }
}

/** An offset such as `+3`, `-0300` or `UTC+05:30` as a zone; names are those of the database. */
function zoneOf(name: string): Zone | undefined {
  const offset = /^[A-Za-z]*([+-])(\d{1,2})(?::?(\d{2}))?$/.exec(name)
  if (offset === null) return findZone(name === 'Z' || name === 'UT' ? 'UTC' : name)
  const minutes = Number(offset[2]) * 60 + Number(offset[3] ?? 0)
  const ahead = (offset[1] === '-' ? -minutes : minutes) * 60_000
  return { name, offsetAt: () => ahead, instantOf: (localMs) => localMs - ahead, abbreviationAt: () => name }
}
