// Converts Go's time layouts, which are example times, to strftime formats.

import { escapedText } from '../escape.ts'

const named: Readonly<Record<string, string>> = {
  ANSIC: 'Mon Jan _2 15:04:05 2006',
  UnixDate: 'Mon Jan _2 15:04:05 MST 2006',
  RubyDate: 'Mon Jan 02 15:04:05 -0700 2006',
  RFC822: '02 Jan 06 15:04 MST',
  RFC822Z: '02 Jan 06 15:04 -0700',
  RFC850: 'Monday, 02-Jan-06 15:04:05 MST',
  RFC1123: 'Mon, 02 Jan 2006 15:04:05 MST',
  RFC1123Z: 'Mon, 02 Jan 2006 15:04:05 -0700',
  RFC3339: '2006-01-02T15:04:05Z07:00',
  RFC3339Nano: '2006-01-02T15:04:05.999999999Z07:00',
}

/** Whether a layout is the name of one. */
export const isNamedLayout = (layout: string): boolean => Object.hasOwn(named, layout)

const months = 'Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec'
const longMonths = 'January|February|March|April|May|June|July|August|September|October|November|December'
const days = 'Sun|Mon|Tue|Wed|Thu|Fri|Sat'
const longDays = 'Sunday|Monday|Tuesday|Wednesday|Thursday|Friday|Saturday'

/** Elements of a layout with their formats and the texts that Go accepts for them; longer ones first. */
const elements: readonly (readonly [string, string, string])[] = [
  ['January', '%B', `(?i:${longMonths})`],
  // Go does not compare the day with the date.
  ['Monday', '%A', `(?i:${longDays})`],
  ['2006', '%Y', '\\d{4}'],
  ['-07:00:00', '', ''],
  ['Z07:00:00', '', ''],
  ['-070000', '', ''],
  ['Z070000', '', ''],
  ['Z07:00', '%#z', '(?:Z|[+-]\\d{2}:\\d{2})'],
  ['-07:00', '%:z', '[+-]\\d{2}:\\d{2}'],
  ['Z0700', '%#z', '(?:Z|[+-]\\d{4})'],
  ['Z07', '%#z', '(?:Z|[+-]\\d{2})'],
  ['-0700', '%z', '[+-]\\d{4}'],
  ['-07', '%#z', '[+-]\\d{2}'],
  ['Jan', '%b', `(?i:${months})`],
  ['Mon', '%a', `(?i:${days})`],
  ['MST', '%Z', '(?:[A-Za-z]{3,5}(?:[+-]\\d{1,2})?|[+-]\\d{1,2})'],
  ['002', '%j', '\\d{3}'],
  ['_2', '%e', ' ?\\d{1,2}'],
  ['01', '%m', '\\d{2}'],
  ['02', '%d', '\\d{2}'],
  ['03', '%I', '\\d{2}'],
  ['04', '%M', '\\d{2}'],
  ['05', '%S', '\\d{2}'],
  ['06', '%y', '\\d{2}'],
  ['15', '%H', '\\d{1,2}'],
  ['PM', '%p', '[AP]M'],
  ['pm', '%P', '[ap]m'],
  ['1', '%m', '\\d{1,2}'],
  ['2', '%d', '\\d{1,2}'],
  ['3', '%I', '\\d{1,2}'],
  ['4', '%M', '\\d{1,2}'],
  ['5', '%S', '\\d{1,2}'],
]
/** Seconds may have a fraction, even if the layout has none. */
const fractionRegex = '(?:[.,]\\d+)?'

export interface Format {
  readonly strftime: string
  /** Whether the text contains the year, so that it need not be guessed. */
  readonly hasYear: boolean
  readonly hasZone: boolean
  /** Whether the text contains the name of a zone, such as `CET`. */
  readonly hasZoneName: boolean
  /** Whether a comma in the text can only be in front of the fraction of a second. Go reads it like a dot. */
  readonly mayHaveComma: boolean
  /** Whether the text contains the name of a day, which the format leaves out. */
  readonly hasDay: boolean
  /** A regular expression of Go for the texts that Go accepts. */
  readonly regex: string
}

/** The first part of a layout: its format, the texts that Go accepts for it, and its length; undefined if it has no counterpart. */
function partOf(rest: string, before: string): readonly [string, string, number] | undefined {
  const [fraction, digits = ''] = /^[.,](0+|9+)(?!\d)/.exec(rest) ?? []
  if (fraction !== undefined && before.endsWith('%S')) {
    return ['%.f', digits.startsWith('0') ? `[.,]\\d{${digits.length}}` : fractionRegex, fraction.length]
  }
  const [spaces] = /^ +/.exec(rest) ?? []
  if (spaces !== undefined) return [spaces, ' +', spaces.length]
  const [text, format, regex] = elements.find(([start]) => rest.startsWith(start)) ?? []
  if (text === undefined || format === undefined) {
    const sign = rest[0] ?? ''
    return [sign === '%' ? '%%' : sign, escapedText(sign), 1]
  }
  if (format === '') return undefined
  const isLast = format === '%S' && !/^[.,](?:0+|9+)(?!\d)/.test(rest.slice(text.length))
  return isLast ? ['%S%.f', `${regex}${fractionRegex}`, text.length] : [format, regex ?? '', text.length]
}

/** Returns undefined if an element has no counterpart. */
export function formatOfLayout(layout: string): Format | undefined {
  let rest = isNamedLayout(layout) ? (named[layout] ?? '') : layout
  let out = ''
  let regex = ''
  while (rest !== '') {
    const part = partOf(rest, out)
    if (part === undefined) return undefined
    out += part[0]
    regex += part[1]
    rest = rest.slice(part[2])
  }
  const hasDate = /%[mbB]/.test(out) && /%[de]/.test(out)
  if (/%j/.test(out) || !hasDate || !/%[HI]/.test(out)) return undefined
  return {
    strftime: out.replace(/%[aA]/g, ''),
    hasYear: /%[Yy]/.test(out),
    hasZone: /%#?:?z/.test(out),
    hasZoneName: /%Z/.test(out),
    mayHaveComma: out.includes('%.f') && !/[a-zA-Z],%/.test(out),
    hasDay: /%[aA]/.test(out),
    regex: `^${regex}$`,
  }
}

/** A regular expression of Go for the name of a day. */
export const dayRegex = `(?i:${longDays}|${days})`
