// The stage `timestamp`: parses a text into the time of the event.

import { textLiteral } from '@penstock/agent/config'
import { isUtc, isZone, withoutZoneName, zoneNameReplaced } from '../zone-names.ts'
import { textIn, textsIn } from './context.ts'
import { extracted } from './fields.ts'
import { dayRegex, formatOfLayout, isNamedLayout } from './layout.ts'
import { translateRegex } from './regex.ts'
import { block, type Lines, type Stage } from './stage.ts'

/** Go reads a comma in front of the fraction of a second like a dot. */
const dotted = `from = replace(from, r'([0-9]),([0-9])', "$1.$2")`

/** A regular expression of Go as a literal. */
function literalOf(regex: string): string {
  const translated = translateRegex(regex)
  if (!translated.ok) throw new Error(translated.reason)
  return `r'${translated.text}'`
}

/** Statements that parse the text in `from` into `time` and `error`; undefined if the layout has no counterpart. */
function timeLines(format: string, location: string | undefined): Lines | undefined {
  const units: Readonly<Record<string, string>> = {
    UnixMs: 'milliseconds',
    UnixUs: 'microseconds',
    UnixNs: 'nanoseconds',
  }
  if (Object.hasOwn(units, format)) {
    return [
      'number, error = parse_int(from, 10)',
      `if error == null { time, error = from_unix_timestamp(number, unit: ${textLiteral(units[format] ?? '')}) }`,
    ]
  }
  const parse = (strftime: string, zone: string) =>
    `time, error = parse_timestamp(from, ${textLiteral(strftime)}${zone})`
  if (format === 'Unix') return [parse('%s%.f', '')]
  const known = formatOfLayout(format)
  if (known === undefined || (known.hasZoneName && !isNamedLayout(format) && !isUtc(location))) return undefined
  // Named layouts ignore the location.
  const zone = known.hasZone ? '' : `, timezone: ${textLiteral(isNamedLayout(format) ? 'UTC' : (location ?? 'UTC'))}`
  const strftime = withoutZoneName(known.strftime)
  const before = [
    ...(known.mayHaveComma ? [dotted] : []),
    ...(known.hasDay ? [`from = replace(from, ${literalOf(dayRegex)}, "", count: 1)`] : []),
    ...(known.hasZoneName ? [`from = ${zoneNameReplaced('from')}`] : []),
  ]
  const lines = known.hasYear ? [parse(strftime, zone)] : withoutYear((format) => parse(format, zone), strftime)
  return [
    ...block(`match(from, ${literalOf(known.regex)})`, [...before, ...lines]).slice(0, -1),
    '} else {',
    '  error = "the text does not have the form of the layout"',
    '}',
  ]
}

/** A time without a year is in the current year, except around the turn of the year. */
const withoutYear = (parse: (format: string) => string, strftime: string): Lines => [
  'given = from',
  'year = to_int!(format_timestamp!(now(), "%Y"))',
  'month = format_timestamp!(now(), "%m")',
  'from = to_string(year) + " " + given',
  parse(`%Y ${strftime}`),
  'if error == null {',
  '  other = year',
  '  parsed = format_timestamp!(time, "%m")',
  '  if parsed == "12" && month == "01" { other = year - 1 } else if parsed == "01" && month == "12" { other = year + 1 }',
  '  from = to_string(other) + " " + given',
  `  if other != year { ${parse(`%Y ${strftime}`)} }`,
  '}',
]

export const timestamp: Stage = {
  name: 'timestamp',
  becomes: '`.timestamp`',
  options: {
    source: 'the value to parse',
    format: '`parse_timestamp`',
    fallback_formats: 'further formats to try',
    location: 'the default time zone',
    action_on_failure: '`skip`; with `fudge`, the default, the event also keeps its own time',
  },
  build: (part, scope) => {
    const source = textIn(part, 'source') ?? ''
    const given = textIn(part, 'location') ?? ''
    if (given !== '' && given !== 'Local' && !isZone(given))
      return scope.refuse(part, `the location \`${given}\` is not the name of a time zone`)
    if (given === 'Local') {
      const reason = 'the old agent reads times in the time zone of its machine; containers run in UTC'
      scope.report.replaced(part, `${part.name}: location`, reason, 'Write a name such as `Europe/Berlin`.')
    }
    const location = given === '' || given === 'Local' ? undefined : given
    const formats = [textIn(part, 'format') ?? '', ...textsIn(part, 'fallback_formats')]
    const tries = formats.map((format) => timeLines(format, location))
    const missing = formats.filter((_, index) => tries[index] === undefined)
    if (missing.length > 0) return scope.refuse(part, `the layout \`${missing[0]}\` has elements without a counterpart`)
    if ((textIn(part, 'action_on_failure') ?? 'fudge') === 'fudge') {
      scope.report.replaced(
        part,
        `${part.name}: action_on_failure`,
        'the old agent replaces a time that it cannot parse by the last time of the stream plus a nanosecond',
        'Here the event keeps the time at which it was written or read.',
      )
    }
    const lines = tries.flatMap((one = [], index) => {
      const whole = ['from = text', 'time = null', ...one]
      return index === 0 ? whole : block('error != null', whole)
    })
    return block(`is_string(${extracted(source)})`, [
      `text = string!(${extracted(source)})`,
      'error = null',
      'time = null',
      ...lines,
      'if error == null && is_timestamp(time) { .timestamp = time }',
    ])
  },
}
