// Parts of programs for values of the collector: regular expressions in Go's dialect, literals, time layouts.

import { textLiteral } from '@penstock/agent/config'
import { nodeRead, variableRead } from '../environment.ts'

/** Go's character classes match only ASCII; those of remap match Unicode. */
const classes: Readonly<Record<string, string>> = { d: '0-9', w: '0-9A-Za-z_', s: '\\t\\n\\f\\r ' }

/** Parts of an expression: quoted text, escapes, repetitions, braces, and the ends of classes. */
const regexPart = /\\Q([\s\S]*?)(?:\\E|$)|\\([pPx])(\{[^}]*\})|\\([\s\S])|(\{\d+(?:,\d*)?\})|([[\]{}'])/g

/** A Go regular expression as a remap literal. */
export function regexLiteral(pattern: string): string {
  let isInClass = false
  const out = pattern.replace(
    regexPart,
    (whole, quoted?: string, name?: string, named?: string, escaped?: string, repetition?: string, sign?: string) => {
      if (quoted !== undefined) return RegExp.escape(quoted)
      if (name !== undefined) return `\\${name}${named}`
      if (escaped !== undefined) return escapeOf(escaped, isInClass)
      if (repetition !== undefined) return repetition
      // A quote would end the literal.
      if (sign === "'") return '\\x27'
      if (sign === '[' && !isInClass) isInClass = true
      else if (sign === ']') isInClass = false
      // Go reads a brace that does not begin a repetition as text.
      else if (!isInClass) return `\\${sign}`
      return whole
    },
  )
  return `r'${out}'`
}

function escapeOf(escaped: string, isInClass: boolean): string {
  if (escaped === "'") return '\\x27'
  const own = classes[escaped]
  if (own !== undefined) return isInClass ? own : `[${own}]`
  const opposite = /[DWS]/.test(escaped) ? classes[escaped.toLowerCase()] : undefined
  return opposite === undefined || isInClass ? `\\${escaped}` : `[^${opposite}]`
}

/** A pattern with names of groups that remap accepts, and the names of the collector that differ by them. */
export function withGroupNames(pattern: string): {
  readonly pattern: string
  readonly names: ReadonlyMap<string, string>
} {
  const names = new Map<string, string>()
  const made = pattern.replace(/\(\?P?<(\w+)>/g, (whole, name: string) => {
    if (/^[A-Za-z_]/.test(name)) return whole
    names.set(`group_${name}`, name)
    return `(?P<group_${name}>`
  })
  return { pattern: made, names }
}

/** A call that gives the groups of a match the names of the collector. */
export function renamedGroups(groups: string, names: ReadonlyMap<string, string>): string {
  if (names.size === 0) return groups
  return `map_keys(${groups}) -> |key| { string(get(${valueLiteral(Object.fromEntries(names))}, [key]) ?? null) ?? key }`
}

/** Surrounds an expression in a text. It never occurs in a text of a user. */
const mark = '\u{e001}'

/** A variable in a text that a program assigns to a field. */
export const variableMark = (name: string, byDefault: string) => `${mark}${variableRead(name, byDefault)}${mark}`

/** The name of the node in a text that a program assigns to a field. */
export const nodeMark = (readsEnvironment: boolean) => `${mark}${nodeRead(readsEnvironment)}${mark}`

/** A text as an expression, with the variables in it. */
function expressionOf(text: string): string {
  const parts = text.split(mark).map((part, index) => (index % 2 === 1 || part === '' ? part : textLiteral(part)))
  return parts.filter((part) => part !== '').join(' + ')
}

/** A YAML value as a remap literal. */
export function valueLiteral(value: unknown): string {
  if (typeof value === 'string') return value.includes(mark) ? expressionOf(value) : textLiteral(value)
  if (typeof value === 'number' && !Number.isInteger(value)) return decimal(value)
  if (Array.isArray(value)) return `[${value.map(valueLiteral).join(', ')}]`
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value).map(([key, below]) => `${textLiteral(key)}: ${valueLiteral(below)}`)
    return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`
  }
  return value === undefined ? 'null' : String(value)
}

/** A float literal, which cannot have an exponent. */
export function decimal(value: number): string {
  const text = String(value)
  if (/e/i.test(text)) return value.toFixed(Math.abs(value) < 1 ? 18 : 1)
  return text.includes('.') ? text : `${text}.0`
}

/** An object or list with floats in place of integers, as the collector reads JSON. */
export const floatsIn = (collection: string) =>
  `map_values(${collection}, recursive: true) -> |value| { if is_integer(value) { to_float!(value) } else { value } }`

/** An object with integers in place of floats without a fraction, as the collector writes them in JSON. */
export const integersIn = (object: string) =>
  `map_values(${object}, recursive: true) -> |value| { if is_float(value) && mod!(value, 1) == 0.0 { to_int!(value) } else { value } }`

export function indent(text: string): string {
  return text.replace(/^(?=.)/gm, '  ')
}

/** Layout directives with a different name in remap. */
const directives: Readonly<Record<string, string>> = {
  o: '%_m',
  q: '%-m',
  g: '%-d',
  l: '%-I',
  P: '%P',
  h: '%b',
  i: '%#z',
  j: '%#z',
  k: '%::z',
  w: '%#z',
  L: '%3f',
  f: '%6f',
  s: '%9f',
}

/** Converts a layout with directives such as `%Y` to a format of `parse_timestamp`. */
export function strptimeLayout(layout: string): string {
  const out = layout
    .replace(/[.]%[Lfs]/g, '%.f')
    .replace(/%([A-Za-z])/g, (whole, letter: string) => directives[letter] ?? whole)
  return withFraction(out.replaceAll('%.6f', '%.f'))
}

/** Go accepts fractional seconds even if the layout has none. */
function withFraction(layout: string): string {
  return layout.replace(/%-?S(?!%\.|[,.]%\d?f|,%)/g, '$&%.f')
}

/** Elements of Go's layouts; longer ones first. */
const goParts: readonly (readonly [RegExp, string])[] = [
  // Only zeros or only nines before something else than a digit; the point of `.01` separates the month.
  [/^[.](?:0+|9+)(?!\d)/, '%.f'],
  [/^,(?:0{3}|9{3})(?!\d)/, ',%3f'],
  [/^,(?:0{6}|9{6})(?!\d)/, ',%6f'],
  [/^,(?:0{9}|9{9})(?!\d)/, ',%9f'],
  [/^2006/, '%Y'],
  [/^January/, '%B'],
  [/^Jan(?![a-z])/, '%b'],
  [/^Monday/, '%A'],
  [/^Mon(?![a-z])/, '%a'],
  [/^MST/, '%Z'],
  [/^Z07:00:00|^Z07:00|^Z0700|^Z07/, '%#z'],
  [/^-07:00:00/, '%::z'],
  [/^-07:00/, '%#z'],
  [/^-0700/, '%z'],
  [/^-07/, '%#z'],
  [/^002/, '%j'],
  [/^01/, '%m'],
  [/^02/, '%d'],
  [/^03/, '%I'],
  [/^04/, '%M'],
  [/^05/, '%S'],
  [/^06/, '%y'],
  [/^15/, '%H'],
  [/^PM/, '%p'],
  [/^pm/, '%P'],
  [/^_2006/, '_%Y'],
  [/^__2/, '%_j'],
  [/^_2/, '%e'],
  [/^1/, '%-m'],
  [/^2/, '%-d'],
  [/^3/, '%-I'],
  [/^4/, '%-M'],
  [/^5/, '%-S'],
  [/^%/, '%%'],
]

/** Converts a Go layout, which is an example time, to a format of `parse_timestamp`. */
export function goLayout(layout: string): string {
  let out = ''
  let rest = layout
  while (rest !== '') {
    const found = goParts.find(([pattern]) => pattern.test(rest))
    const text = found === undefined ? (rest[0] as string) : (found[0].exec(rest)?.[0] ?? '')
    out += found === undefined ? text : found[1]
    rest = rest.slice(text.length)
  }
  return withFraction(out)
}

/** The named groups of a Go regular expression for a text; undefined if it does not match, or has a syntax of its own. */
export function goMatch(pattern: string, text: string): Readonly<Record<string, string | undefined>> | undefined {
  const [, flags = '', rest = ''] = /^(?:\(\?([imsU]+)\))?(.*)$/s.exec(pattern) ?? []
  try {
    const found = new RegExp(rest.replaceAll('(?P<', '(?<'), flags.replace('U', '')).exec(text)
    return found === null ? undefined : { ...found.groups }
  } catch {
    return undefined
  }
}

/** Whether an expression matches the empty text. A missing value differs from an empty one. */
export function matchesNothing(pattern: string): boolean {
  try {
    return new RegExp(pattern.replace(/^\(\?[imsU]+\)/, '').replaceAll('(?P<', '(?<'), 'u').test('')
  } catch {
    return true
  }
}

/** A pattern with `*` and `?` as a regular expression. */
export function globRegex(glob: string): string {
  const body = glob.replace(/[\\^$.*+?()[\]{}|/]/g, (sign) => (sign === '*' ? '.*' : sign === '?' ? '.' : `\\${sign}`))
  return `^(?s:${body})$`
}
