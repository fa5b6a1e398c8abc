// The time of a parsed text, by a format of `strptime`.

import { textLiteral } from '@penstock/agent/config'
import { apart } from './own-time.ts'
import { isOn, lastValue, type Section } from './sections.ts'

export interface TimeRules {
  /** The offset or name for times without a zone; if undefined, the zone of the agent. */
  readonly zone: string | undefined
  /** Whether text after the part that the format describes is ignored. */
  readonly ignoresRest: boolean
  /** Whether a text with a time that is not valid does not match. */
  readonly isStrict?: boolean
}

/** The statement after which a text counts as one that matches, but whose time is not valid. Callers replace it. */
export const failed = 'has_failed = true'

/** Lines that set the time of the event. A field `timestamp` of the text is renamed, so that it does not replace that time. */
export function timeLines(parser: Section, rules: TimeRules): string[] {
  const key = lastValue(parser, 'time_key')
  const format = lastValue(parser, 'time_format')
  const last = apart('parsed')
  if (format === undefined) return [last]
  const at = `parsed.${textLiteral(key ?? 'time')}`
  const keeps = isOn(lastValue(parser, 'time_keep'), false)
  if (rules.isStrict === true)
    return [
      `if exists(${at}) {`,
      `  time, error = ${timeCall(at, format, rules)}`,
      '  if error == null {',
      '    .timestamp = time',
      ...(keeps ? [] : [`    del(${at})`]),
      '  } else {',
      '    parsed = null',
      `    ${failed}`,
      '  }',
      '}',
      last,
    ]
  // The parser of JSON removes only a time that it can read; the one of expressions also removes others.
  const isLeft = !keeps && rules.ignoresRest && lastValue(parser, 'format')?.toLowerCase() === 'json'
  const set = isLeft
    ? ['if error == null {', '  .timestamp = time', `  del(${at})`, '}']
    : ['if error == null { .timestamp = time }', ...(keeps ? [] : [`del(${at})`])]
  return [`time, error = ${timeCall(at, format, rules)}`, ...set, last]
}

/**
 * The parts of a time that a format lacks. A time without a date is of the current day, year or month, and one without a clock is at the
 * beginning of its day or hour.
 */
function lacking(format: string): { readonly before: string; readonly text: string; readonly after: string } {
  const has = (letters: string) => new RegExp(`%[-_0^#]?[${letters}]`).test(format)
  const whole = 'cs+'
  const before = has(`YyCGgFDxv${whole}`) ? '' : has(`mbBhj${whole}`) ? '%Y ' : has('de') ? '%Y-%m ' : '%Y-%m-%d '
  if (!has(`HIklTRrX${whole}`)) return { before, text: ' 00:00', after: ' %H:%M' }
  return has(`MTRrX${whole}`) ? { before, text: '', after: '' } : { before, text: ' 00', after: ' %M' }
}

/** Parses a time with a format. */
function timeCall(at: string, given: string, { zone, ignoresRest }: TimeRules): string {
  const { before, text: clock, after } = lacking(given)
  const hasZone = /%:*[zZ]|%[s+c]/.test(given)
  const offset = hasZone ? undefined : /^([-+]\d{2}):?(\d{2})$/.exec(zone ?? '')
  const format = given.replace(/[,:.]?%L/g, (found) => (found === '%L' ? '%f' : '%.f')).replace('%Z', '%z')
  let text = at
  const asText = () => (text === at ? `string(${at}) ?? ""` : text)
  const extent = ignoresRest && !/%[zZ]$/.test(given) ? extentOf(given) : undefined
  if (extent !== undefined) text = `replace(${asText()}, r'(?s)^(${extent}).*$', "$1")`
  // The language reads a fraction only after a period.
  const sign = /([,:])%L/.exec(given)?.[1]
  if (sign !== undefined) text = `replace(${asText()}, r'(?s)^(.*)${sign}(\\d+)', "$1.$2")`
  // The old agents take `Z` for an offset, at the end of a text; the language does not.
  if (/%z$/.test(given)) text = `replace(${asText()}, r'Z$', "+0000")`
  // Of the names of zones, both know those of universal time.
  if (given.includes('%Z')) text = `replace(${asText()}, r'\\b(?:UTC|GMT)\\b', "+0000")`
  if (before !== '') text = `(format_timestamp(now(), ${textLiteral(before)}) ?? "") + ${parens(asText())}`
  if (clock !== '') text = `${parens(asText())} + ${textLiteral(clock)}`
  if (offset != null) text = `${parens(asText())} + ${textLiteral(` ${offset[1]}${offset[2]}`)}`
  const whole = `${before}${format}${after}${offset == null ? '' : ' %z'}`
  const named = hasZone || offset != null || zone === undefined ? '' : `, timezone: ${textLiteral(zone)}`
  return `parse_timestamp(${text}, ${textLiteral(whole)}${named})`
}

const parens = (text: string) => (/\?\?/.test(text) && !/^(?:replace)?\(/.test(text) ? `(${text})` : text)

const number = '\\d{1,2}'
const word = '[A-Za-z]+'
const clock = `${number}:${number}`

/** Expressions for the parts of a format. */
const parts: Readonly<Record<string, string>> = {
  Y: '\\d{4}',
  y: '\\d{2}',
  ...Object.fromEntries([...'mdHIMS'].map((sign) => [sign, number])),
  ...Object.fromEntries([...'ekl'].map((sign) => [sign, ` ?${number}`])),
  ...Object.fromEntries([...'bBhaAZ'].map((sign) => [sign, word])),
  j: '\\d{1,3}',
  p: '[AaPp][Mm]',
  z: '(?:Z|[-+]\\d{2}:?\\d{2})',
  s: '\\d+',
  L: '\\d{1,9}',
  T: `${clock}:${number}`,
  R: clock,
  F: `\\d{4}-${number}-${number}`,
  D: `${number}/${number}/\\d{2}`,
  '%': '%',
}

/** An expression for the text that a format describes; undefined if it is not known. */
function extentOf(format: string): string | undefined {
  const found = [...format.matchAll(/%(.)|(\s+)|([^%\s]+)/gs)].map(([, sign, space, literal]) => {
    if (space !== undefined) return '\\s*'
    if (literal !== undefined)
      return literal.replace(/[\\^$.*+?()[\]{}|']/g, (each) => (each === "'" ? '.' : `\\${each}`))
    return Object.hasOwn(parts, sign ?? '') ? parts[sign ?? ''] : undefined
  })
  return found.includes(undefined) ? undefined : found.join('')
}
