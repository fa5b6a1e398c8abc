// The time of an event that a parser of Fluentd reads from a field: seconds since 1970, or a text. A time that is not valid is an error, for
// which Fluentd discards the event.

import { textLiteral } from '@penstock/agent/config'
import { ownName } from '../fluent-bit/own-time.ts'
import { failed } from '../fluent-bit/parsed-time.ts'
import { lastValue, type Section } from '../fluent-bit/sections.ts'
import { isOn, listOf } from './element.ts'

/** The options of a parser, and the zone of times without one. */
interface Timed {
  readonly section: Section
  /** The prefix of option names. */
  readonly prefix: string
  readonly zone: string | undefined
}

/** Formats that are tried one after another; undefined unless the time has several forms. */
export function fallbacksOf(section: Section, prefix: string): readonly string[] | undefined {
  const read = (key: string) => lastValue(section, `${prefix}${key}`)
  if (read('time_type') !== 'mixed') return undefined
  const first = read('time_format')
  return [...(first === undefined ? [] : [first]), ...listOf(read('time_format_fallbacks'))]
}

/**
 * The time of an event without a configured format: seconds since 1970, or a text in a common format.
 * @param fallbacks formats that are tried one after another
 */
export function timeOf(
  { section, prefix, zone }: Timed,
  byDefault: 'float' | 'string',
  fallbacks: readonly string[] | undefined,
): string[] {
  const read = (key: string) => lastValue(section, `${prefix}${key}`)
  const at = `parsed.${textLiteral(ownName(read('time_key') ?? 'time'))}`
  const removal = isOn(read('keep_time_key'), false) ? [] : [`  del(${at})`]
  const fails = ['parsed = null', failed].map((line) => `    ${line}`)
  const whole = (lines: readonly string[]) => [`if is_object(parsed) && exists(${at}) {`, ...lines, '}']
  const type = fallbacks === undefined ? (read('time_type') ?? byDefault) : 'mixed'
  if (type === 'mixed') {
    const isNumeric = (form: string) => form === 'unixtime' || form === 'float'
    const texts = (fallbacks ?? []).filter((form) => !isNumeric(form)).map((form) => timeIn(timeForm(form), zone))
    return whole([
      `  text = to_string(${at}) ?? ""`,
      '  time = null',
      ...((fallbacks ?? []).some(isNumeric)
        ? [`  if match(text, r'^\\s*[-+]?\\d+(?:\\.\\d+)?\\s*$') { time = ${instantIn('text', true)} ?? null }`]
        : []),
      ...(texts.length === 0 ? [] : [`  if time == null { time = ${[...texts, 'null'].join(' ?? ')} }`]),
      '  if time != null {',
      '    .timestamp = time',
      ...removal.map((line) => `  ${line}`),
      '  } else {',
      ...fails,
      '  }',
    ])
  }
  if (type !== 'string') {
    return whole([
      `  if is_string(${at}) || is_integer(${at}) || is_float(${at}) {`,
      `    .timestamp = ${instantIn(`(to_string(${at}) ?? "")`, type === 'float')} ?? .timestamp`,
      ...removal.map((line) => `  ${line}`),
      '  } else {',
      ...fails,
      '  }',
    ])
  }
  const calls = commonForms.map((form) => timeIn(form, zone))
  return whole([
    `  text = replace(replace(string(${at}) ?? "", r'(\\d),(\\d)', "$1.$2"), r' (?:UTC|GMT|Z)$', " +0000")`,
    `  .timestamp = ${[...calls, '.timestamp'].join(' ?? ')}`,
    // A text without a digit is not a time.
    ...removal,
    `  if !match(text, r'\\d') {`,
    ...fails,
    '  }',
  ])
}

/** The instant for the digits at the beginning of a text, in seconds since 1970, as Ruby reads them; those of other texts are zero. */
function instantIn(text: string, hasFraction: boolean): string {
  const digits = `(parse_regex(${text}, r'^\\s*(?P<seconds>[-+]?\\d+)(?:\\.(?P<fraction>\\d{1,9}))?') ?? {})`
  const part = (name: string) => `(to_string(get(${digits}, ["${name}"]) ?? null) ?? "")`
  const seconds = `(to_int(${part('seconds')}) ?? 0) * 1000000000`
  const fraction = hasFraction ? ` + (to_int(truncate(${part('fraction')} + "000000000", 9)) ?? 0)` : ''
  return `from_unix_timestamp(${seconds}${fraction}, unit: "nanoseconds")`
}

/** The time in the variable `text`. Without a zone, it is in the zone of the parser. */
function timeIn(form: string, zone: string | undefined): string {
  const hasZone = /%:*[zZ]|%[s+c]/.test(form)
  const offset = hasZone ? undefined : /^([-+]\d{2}):?(\d{2})$/.exec(zone ?? '')
  if (offset != null) return `parse_timestamp(text + " ${offset[1]}${offset[2]}", ${textLiteral(`${form} %z`)})`
  const named = hasZone || zone === undefined ? '' : `, timezone: ${textLiteral(zone)}`
  return `parse_timestamp(text, ${textLiteral(form)}${named})`
}

/** Forms of times that Ruby reads without a format. */
const commonForms = [
  '%+',
  '%Y-%m-%d %H:%M:%S%.f %z',
  '%Y-%m-%d %H:%M:%S%.f%z',
  '%Y-%m-%dT%H:%M:%S%.f%z',
  '%Y-%m-%d %H:%M:%S%.f',
  '%Y-%m-%dT%H:%M:%S%.f',
  '%Y/%m/%d %H:%M:%S%.f %z',
  '%Y/%m/%d %H:%M:%S%.f',
  '%d/%b/%Y:%H:%M:%S %z',
  '%d %b %Y %H:%M:%S%.f',
  '%a, %d %b %Y %H:%M:%S %z',
  '%a %b %d %H:%M:%S %Y',
]

const timeForm = (format: string) => rubyTime(format).replaceAll('.%L', '%.f').replaceAll('%L', '%f')

/** Items of Ruby's `strftime` that have other names in remap. */
export function rubyTime(format: string): string {
  if (format === '%iso8601') return '%+'
  return format
    .replaceAll(/\.%[369]?N/g, '%.f')
    .replaceAll(/%[369]?N/g, '%f')
    .replaceAll('%:z', '%:z')
}
