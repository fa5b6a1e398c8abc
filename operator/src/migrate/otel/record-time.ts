// The blocks `timestamp` and `severity` of parsers, which are also operators: statements that set the time and the severity of a record.

import { fieldOf, openRead } from './field.ts'
import type { Context, Part } from './mapping.ts'
import { parseLines } from './parse-time.ts'
import { severities, severityNumber } from './record.ts'
import { goLayout, strptimeLayout, valueLiteral } from './text.ts'

export const timeOptions = {
  parse_from: 'the field for the time',
  layout: 'the format of `parse_timestamp`',
  layout_type: 'the syntax of the layout: `strptime`, `gotime` or `epoch`',
  location: '`timezone` of `parse_timestamp`',
} as const

export const severityOptions = {
  parse_from: 'the field with the severity',
  preset: 'whether to recognize names such as `info` and `warning`',
  mapping: 'texts and ranges for each severity',
  overwrite_text: 'whether to set `.severity_text` to the name of the severity',
} as const

const units: Readonly<Record<string, string>> = {
  s: 'seconds',
  ms: 'milliseconds',
  us: 'microseconds',
  ns: 'nanoseconds',
}

/** Statements that set the time, or run `failing`. Reports a gap and returns none if the block cannot be converted. */
export function timeLines(part: Part, context: Context, failing: readonly string[] = []): string[] {
  const from = fieldOf(part.text('parse_from') ?? '')
  const layout = part.text('layout') ?? ''
  const type = part.text('layout_type') ?? 'strptime'
  if (from === undefined || (layout === '' && type !== 'epoch')) {
    context.gap(
      part.place(),
      `${part.id}: timestamp`,
      'the block lacks a field or a layout',
      'Set `.timestamp` in a remap transform.',
    )
    return []
  }
  const value = openRead(from.path)
  const otherwise = failing.length === 0 ? [] : ['if error != null {', ...failing.map((line) => `  ${line}`), '}']
  if (type === 'epoch') {
    const lines = epochLines(value, layout)
    if (lines !== undefined) return [...lines, ...otherwise]
    context.gap(
      part.place(['layout']),
      `${part.id}: layout ${layout}`,
      'the unit is unknown',
      'Use `from_unix_timestamp` in a remap transform.',
    )
    return []
  }
  const format = type === 'gotime' ? goLayout(layout) : strptimeLayout(layout)
  const location = part.text('location')
  const lines = parseLines(`string(${value}) ?? ""`, format, location)
  if (lines === undefined) {
    context.gap(
      part.place(['location']),
      `${part.id}: location`,
      'names of zones, such as `CET`, are only converted for UTC',
      'Set `.timestamp` in a remap transform.',
    )
    return []
  }
  return [...lines, 'if error == null { .timestamp = time }', ...otherwise]
}

/** Statements that set the time to a number of units since 1970; undefined if the unit is unknown. */
function epochLines(value: string, layout: string): readonly string[] | undefined {
  const [whole = 's', fraction] = layout.split('.')
  const unit = Object.hasOwn(units, fraction ?? whole) ? units[fraction ?? whole] : undefined
  if (unit === undefined) return undefined
  const scale = { ms: 1000, us: 1_000_000, ns: 1_000_000_000 }[fraction ?? '']
  const numberLines =
    scale === undefined
      ? [
          '# A missing value is not a time, although `to_int` reads null as 0.',
          'if is_string(stamp) || is_integer(stamp) || is_float(stamp) { number, error = to_int(stamp) }',
        ]
      : [
          'if is_string(stamp) {',
          '  parts = split(string!(stamp), ".")',
          '  if length(parts) == 2 {',
          '    before, error = to_int(parts[0])',
          '    if error == null {',
          '      after, error = to_int(parts[1])',
          `      if error == null { number = before * ${scale} + after }`,
          '    }',
          '  }',
          '} else if is_integer(stamp) || is_float(stamp) {',
          '  decimal, error = to_float(stamp)',
          '  before = floor(decimal)',
          `  number = to_int(before) * ${scale} + to_int(round((decimal - before) * ${scale}.0))`,
          '}',
        ]
  return [
    `stamp = ${value}`,
    'number = 0',
    'error = "not a time"',
    ...numberLines,
    'if error == null {',
    `  time, error = from_unix_timestamp(number, unit: "${unit}")`,
    '  if error == null { .timestamp = time }',
    '}',
  ]
}

/** Tests for one value of a mapping. `level` is the text in lower case, and `code` its number or -1. */
function testsOf(value: unknown): string[] {
  const range = (min: number, max: number) => [`(code >= ${Math.min(min, max)} && code <= ${Math.max(min, max)})`]
  if (Array.isArray(value)) return value.flatMap(testsOf)
  if (typeof value === 'object' && value !== null) {
    const { min, max } = value as Readonly<Record<string, unknown>>
    return typeof min === 'number' && typeof max === 'number' ? range(min, max) : []
  }
  const status = /^([2-5])xx$/.exec(String(value))
  if (status !== null) return range(Number(status[1]) * 100, Number(status[1]) * 100 + 99)
  return [`level == ${valueLiteral(String(value).toLowerCase())}`]
}

const names = Object.keys(severities).flatMap((name) => ['', 2, 3, 4].map((step) => `${name.toUpperCase()}${step}`))

/** Statements that set the severity, or run `failing`. */
export function severityLines(part: Part, context: Context, failing: readonly string[] = []): string[] {
  const from = fieldOf(part.text('parse_from') ?? '')
  if (from === undefined) {
    context.gap(
      part.place(),
      `${part.id}: severity`,
      'the block lacks a field',
      'Set `.severity_text` and `.severity_number` in a remap transform.',
    )
    return []
  }
  const lines = [
    `label = ${openRead(from.path)}`,
    'if is_float(label) && mod!(label, 1) == 0.0 { label = to_int!(label) }',
    'if is_string(label) || is_integer(label) {',
    '  level = downcase(to_string(label) ?? "")',
    '  code = to_int(level) ?? -1',
    '  number = 0',
  ]
  const preset = part.text('preset') ?? 'default'
  if (preset !== 'none') {
    const more = preset === 'otel' || preset === 'aliases' ? '' : '(?:ing)?'
    const error = more === '' ? 'error' : 'err(?:or)?'
    lines.push(
      `  named = parse_regex(level, r'^(?P<name>trace|debug|info|warn${more}|${error}|fatal)(?P<step>[234]?)$') ?? {}`,
      '  base = get({ "trace": 1, "debug": 5, "info": 9, "warn": 13, "warning": 13, "error": 17, "err": 17, "fatal": 21 }, [named.name]) ?? null',
      '  if is_integer(base) { number = int!(base) + (to_int(named.step) ?? 1) - 1 }',
      '  if code >= 1 && code <= 24 { number = code }',
    )
  }
  for (const [name, values] of Object.entries(part.table('mapping'))) {
    const number = severityNumber(name)
    const tests = testsOf(values)
    if (number === undefined || tests.length === 0) {
      context.gap(
        part.place(['mapping', name]),
        `${part.id}: severity ${name}`,
        'the severity or its values are unknown',
        'Set `.severity_number` in a remap transform.',
      )
      continue
    }
    lines.push(`  if ${tests.join(' || ')} { number = ${number} }`)
  }
  lines.push('  .severity_number = number')
  if (part.flag('overwrite_text', false)) {
    lines.push(
      `  names = ${valueLiteral(names)}`,
      '  name = get(names, [number - 1]) ?? null',
      '  .severity_text = if is_string(name) && number > 0 { name } else { to_string(label) ?? "" }',
    )
  } else lines.push('  .severity_text = to_string(label) ?? ""')
  if (failing.length > 0) lines.push('} else {', ...failing.map((line) => `  ${line}`))
  lines.push('}')
  return lines
}
