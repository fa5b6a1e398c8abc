// Times as the collector parses them: names of zones, and layouts without a year or a date.

import { textLiteral } from '@penstock/agent/config'
import { isUtc } from '../zone-names.ts'

/** Names of zones that the collector knows without a location. A time with another name is not parsed. */
const offsets: Readonly<Record<string, string>> = {
  UTC: '+0000',
  GMT: '+0000',
  WET: '+0000',
  CET: '+0100',
  MET: '+0100',
  EET: '+0200',
  EST: '-0500',
  MST: '-0700',
  HST: '-1000',
}

/** The parts of a time that a layout lacks, as text and as format: the collector reads them as the start of the day, month or year. */
function startOf(layout: string): { readonly text: string; readonly format: string } {
  const has = (directives: string) => new RegExp(`%[-_0]?[${directives}]`).test(layout)
  const parts: (readonly [string, string])[] = []
  if (!has('HIlTRXrcs+')) parts.push(['00:00 ', '%H:%M '])
  else if (!has('MTRXrcs+')) parts.push(['00 ', '%M '])
  if (has('Yy') && !has('mbBhj')) parts.push(['01 ', '%m '])
  if (has('Yy') && !has('dej')) parts.push(['01 ', '%d '])
  return { text: parts.map(([text]) => text).join(''), format: parts.map(([, format]) => format).join('') }
}

/** Statements that parse a text into `time` and `error`; undefined if the layout has a name of a zone in a location. */
export function parseLines(text: string, layout: string, location: string | undefined): readonly string[] | undefined {
  const hasName = layout.includes('%Z')
  if (hasName && !isUtc(location)) return undefined
  const names = Object.entries(offsets).map(([name, offset]) => `${textLiteral(name)}: ${textLiteral(offset)}`)
  const given = hasName
    ? [
        `from = replace_with(from, r'\\b[A-Z]{3,5}\\b', count: 1) -> |m| { string(get({ ${names.join(', ')} }, [m.string]) ?? null) ?? m.string }`,
      ]
    : []
  const format = layout.replaceAll('%Z', '%z')
  const zero = startOf(layout)
  const zone = hasName || location === undefined || location === 'Local' ? '' : `, timezone: ${textLiteral(location)}`
  const parse = (before: string, prefix: string) =>
    `time, error = parse_timestamp(${zero.text === '' ? '' : `${textLiteral(zero.text)} + `}${before}from, ${textLiteral(zero.format + prefix + format)}${zone})`
  const start = [`from = ${text}`, ...given]
  if (/%[-_0]?[YyDFcsx+]/.test(layout)) return [...start, parse('', '')]
  // A layout without a date has today's.
  if (!/%[-_0]?[mdebBhajA]/.test(layout)) {
    return [...start, parse('format_timestamp!(now(), "%Y-%m-%d") + " " + ', '%Y-%m-%d ')]
  }
  // A time more than a week ahead is from last year.
  return [
    ...start,
    'year = to_int!(format_timestamp!(now(), "%Y"))',
    parse('to_string(year) + " " + ', '%Y '),
    'if error == null && to_unix_timestamp(time) > to_unix_timestamp(now()) + 604800 {',
    `  ${parse('to_string(year - 1) + " " + ', '%Y ')}`,
    '}',
  ]
}
