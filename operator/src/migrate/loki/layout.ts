// Converts Go's time layouts, which are example times, to strftime formats.

const named: Readonly<Record<string, string>> = {
  ANSIC: 'Mon Jan _2 15:04:05 2006',
  UnixDate: 'Mon Jan _2 15:04:05 MST 2006',
  RubyDate: 'Mon Jan 02 15:04:05 -0700 2006',
  RFC822: '02 Jan 06 15:04 MST',
  RFC822Z: '02 Jan 06 15:04 -0700',
  RFC850: 'Monday, 02-Jan-06 15:04:05 MST',
  RFC1123: 'Mon, 02 Jan 2006 15:04:05 MST',
  RFC1123Z: 'Mon, 02 Jan 2006 15:04:05 -0700',
}

/** Whether a layout is the name of one. */
export const isNamedLayout = (layout: string): boolean => Object.hasOwn(named, layout)

/** Elements of a layout; longer ones first. */
const elements: readonly (readonly [string, string])[] = [
  ['January', '%B'],
  ['Monday', '%A'],
  ['2006', '%Y'],
  ['-07:00:00', ''],
  ['Z07:00:00', ''],
  ['-070000', ''],
  ['Z070000', ''],
  ['Z07:00', '%#z'],
  ['-07:00', '%:z'],
  ['Z0700', '%#z'],
  ['Z07', '%#z'],
  ['-0700', '%z'],
  ['-07', '%#z'],
  ['Jan', '%b'],
  ['Mon', '%a'],
  ['MST', '%Z'],
  ['002', '%j'],
  ['_2', '%e'],
  ['01', '%m'],
  ['02', '%d'],
  ['03', '%I'],
  ['04', '%M'],
  ['05', '%S'],
  ['06', '%y'],
  ['15', '%H'],
  ['PM', '%p'],
  ['pm', '%P'],
  ['1', '%m'],
  ['2', '%d'],
  ['3', '%I'],
  ['4', '%M'],
  ['5', '%S'],
]

export interface Format {
  readonly strftime: string
  /** Whether the text contains the year, so that it need not be guessed. */
  readonly hasYear: boolean
  readonly hasZone: boolean
  /** Whether the text contains the name of a zone, such as `CET`. */
  readonly hasZoneName: boolean
  /** Whether a comma in the text can only be in front of the fraction of a second. Go reads it like a dot. */
  readonly mayHaveComma: boolean
}

/** Returns undefined if an element has no counterpart. */
export function formatOfLayout(layout: string): Format | undefined {
  let rest = isNamedLayout(layout) ? (named[layout] ?? '') : layout
  let out = ''
  while (rest !== '') {
    const fraction = /^([.,])(0+|9+)(?!\d)/.exec(rest)
    if (fraction !== null && out.endsWith('%S')) {
      out += '%.f'
      rest = rest.slice(fraction[0].length)
      continue
    }
    const element = elements.find(([text]) => rest.startsWith(text))
    if (element === undefined) {
      out += rest[0] === '%' ? '%%' : rest[0]
      rest = rest.slice(1)
      continue
    }
    if (element[1] === '') return undefined
    out += element[1]
    rest = rest.slice(element[0].length)
    // Go accepts a fraction after seconds even if the layout has none.
    if (element[1] === '%S' && !/^[.,](?:0+|9+)(?!\d)/.test(rest)) out += '%.f'
  }
  const hasDate = /%[mbB]/.test(out) && /%[de]/.test(out)
  if (/%j/.test(out) || !hasDate || !/%[HI]/.test(out)) return undefined
  return {
    strftime: out,
    hasYear: /%[Yy]/.test(out),
    hasZone: /%#?:?z/.test(out),
    hasZoneName: /%Z/.test(out),
    mayHaveComma: out.includes('%.f') && !/[a-zA-Z],%/.test(out),
  }
}
