// Functions of Go templates in Promtail and Alloy: those of the agents, and common ones of sprig.

import { textLiteral } from '@penstock/agent/config'
import { escapedText } from '../escape.ts'
import { translateRegex } from './regex.ts'
import {
  condition,
  float,
  integer,
  isFloat,
  isNumber,
  list,
  nullable,
  perhaps,
  text,
  type Value,
} from './template-values.ts'

/** The arguments of a call. */
export interface Arguments {
  readonly values: readonly Value[]
  /** An argument as a text. Go's template fails if it is missing. */
  readonly at: (index: number) => string
  /** An argument as a text; `instead` if it is missing. */
  readonly any: (index: number, instead?: string) => string
  /** Makes the template fail under a condition. */
  readonly fail: (condition: string) => string
  /** A new name for a variable. */
  readonly name: () => string
}

type Call = (given: Arguments) => Value

/** A regular expression class with the characters of a text. */
const classOf = (characters: string) =>
  `[${[...characters].map((char) => (/[\w ]/.test(char) ? char : `\\x{${char.codePointAt(0)?.toString(16)}}`)).join('')}]`
const space = '[\\t\\n\\x0b\\f\\r\\x20\\x{85}\\x{a0}]'

function constantOf(value: Value | undefined, what: string): string {
  if (value?.constant === undefined) throw new Error(`${what} must be a literal`)
  return value.constant
}

/** A literal whole number. */
function wholeConstant(value: Value | undefined, what: string): number {
  const number = Number(value?.type === 'number' ? value.expression : Number.NaN)
  if (!Number.isInteger(number)) throw new Error(`${what} must be a literal`)
  return number
}

function literalOf(regex: string): string {
  const translated = translateRegex(regex)
  if (!translated.ok) throw new Error(`its regular expression is not valid: ${translated.reason}`)
  return `r'${translated.text}'`
}

const cut = (value: string, regex: string) => text(`replace(${value}, ${literalOf(regex)}, "")`)
const trimmed = (value: string, set: string, left: boolean, right: boolean): Value => {
  const begin = left ? `replace(${value}, r'^${set}+', "")` : value
  return text(right ? `replace(${begin}, r'${set}+$', "")` : begin)
}

/** Cuts a prefix or a suffix, which is a literal or a text of the event. */
function without(
  value: string,
  affix: Value | undefined,
  affixText: string,
  isPrefix: boolean,
  name: () => string,
): Value {
  if (affix?.constant !== undefined) {
    const literal = escapedText(affix.constant)
    return cut(value, isPrefix ? `^${literal}` : `${literal}$`)
  }
  const [whole, part] = [name(), name()]
  const isThere = isPrefix ? `starts_with(${whole}, ${part})` : `ends_with(${whole}, ${part})`
  const rest = isPrefix
    ? `slice!(${whole}, length(${part}))`
    : `slice!(${whole}, 0, length(${whole}) - length(${part}))`
  const chosen = `if ${part} != "" && ${isThere} { string!(${rest}) } else { ${whole} }`
  return text(`({ ${whole} = ${value}; ${part} = ${affixText}; ${chosen} })`)
}

/** A whole number. As in sprig, a text that is not a whole number is zero. */
function wholeOf(value: Value | undefined, asText: string): string {
  if (value === undefined) throw new Error('an argument of a function is missing')
  if (value.type === 'number') return String(Math.trunc(Number(value.expression)))
  if (value.type === 'integer') return value.expression
  if (value.type === 'float') return `to_int(${value.expression})`
  if (value.type === 'condition') return `to_int(${value.expression})`
  return `(parse_int(replace(${asText}, r'\\.0+$', "")) ?? 0)`
}

function floatOf(value: Value | undefined, asText: string): string {
  if (value === undefined) throw new Error('an argument of a function is missing')
  if (value.type === 'number') return value.expression.includes('.') ? value.expression : `${value.expression}.0`
  if (isNumber(value)) return isFloat(value) ? value.expression : `to_float(${value.expression})`
  return `(parse_float(${asText}) ?? 0.0)`
}

const whole = ({ values, any }: Arguments, index: number) => wholeOf(values[index], any(index))
const wholes = (given: Arguments) => given.values.map((_, index) => whole(given, index))
const folded = (numbers: readonly string[], sign: string, name: () => string) =>
  numbers.reduce((all, next) => {
    const [one, other] = [name(), name()]
    return `({ ${one} = ${all}; ${other} = ${next}; if ${one} ${sign} ${other} { ${one} } else { ${other} } })`
  })

const listOf = (value: Value | undefined): string => {
  if (value?.type !== 'list') throw new Error('it needs a list')
  return value.expression
}
const item = (of: string, index: number | string) => perhaps(`(get(${of}, [${index}]) ?? null)`)

const texts: Readonly<Record<string, Call>> = {
  ToLower: ({ at }) => text(`downcase(${at(0)})`),
  ToUpper: ({ at }) => text(`upcase(${at(0)})`),
  lower: ({ at }) => text(`downcase(${at(0)})`),
  upper: ({ at }) => text(`upcase(${at(0)})`),
  // As in Go, only the first letter of each word changes, and a word begins after any ASCII sign.
  title: ({ at }) =>
    text(`replace_with(${at(0)}, r'(?:^|[\\x00-/:-@\\[-\\^\\x60\\{-\\x7f]|\\s)\\p{Ll}') -> |m| { upcase(m.string) }`),
  untitle: ({ at }) => text(`replace_with(${at(0)}, r'(?:^|\\s)\\p{Lu}') -> |m| { downcase(m.string) }`),
  TrimSpace: ({ at }) => trimmed(at(0), space, true, true),
  trim: ({ at }) => trimmed(at(0), space, true, true),
  Trim: ({ values, at }) => trimmed(at(0), classOf(constantOf(values[1], 'the characters of `Trim`')), true, true),
  TrimLeft: ({ values, at }) =>
    trimmed(at(0), classOf(constantOf(values[1], 'the characters of `TrimLeft`')), true, false),
  TrimRight: ({ values, at }) =>
    trimmed(at(0), classOf(constantOf(values[1], 'the characters of `TrimRight`')), false, true),
  trimAll: ({ values, at }) =>
    trimmed(at(1), classOf(constantOf(values[0], 'the characters of `trimAll`')), true, true),
  TrimPrefix: ({ values, at, name }) => without(at(0), values[1], at(1), true, name),
  TrimSuffix: ({ values, at, name }) => without(at(0), values[1], at(1), false, name),
  trimPrefix: ({ values, at, name }) => without(at(1), values[0], at(0), true, name),
  trimSuffix: ({ values, at, name }) => without(at(1), values[0], at(0), false, name),
  Replace: ({ values, at }) => {
    const count = wholeConstant(values[3], 'the count of `Replace`')
    return text(`replace(${at(0)}, ${at(1)}, ${at(2)}, count: ${count < 0 ? -1 : count})`)
  },
  replace: ({ at }) => text(`replace(${at(2)}, ${at(0)}, ${at(1)})`),
  regexReplaceAll: ({ values, at }) =>
    text(`replace(${at(1)}, ${literalOf(constantOf(values[0], 'the pattern'))}, ${at(2)})`),
  regexReplaceAllLiteral: ({ values, at }) =>
    text(`replace(${at(1)}, ${literalOf(constantOf(values[0], 'the pattern'))}, replace(${at(2)}, "$", "$$"))`),
  regexFind: ({ values, at }) => {
    const regex = literalOf(`(?P<whole_match>${constantOf(values[0], 'the pattern')})`)
    return text(`string!(get!(parse_regex(${at(1)}, ${regex}) ?? {}, ["whole_match"]) || "")`)
  },
  Hash: ({ at }) => text(`sha3(${at(0)} + ${at(1)}, variant: "SHA3-256")`),
  Sha2Hash: ({ at }) => text(`sha2(${at(0)} + ${at(1)}, variant: "SHA-256")`),
  sha1sum: ({ at }) => text(`sha1(${at(0)})`),
  sha256sum: ({ at }) => text(`sha2(${at(0)}, variant: "SHA-256")`),
  sha512sum: ({ at }) => text(`sha2(${at(0)}, variant: "SHA-512")`),
  b64enc: ({ at }) => text(`encode_base64(${at(0)})`),
  b64dec: ({ at }) => text(`(decode_base64(${at(0)}) ?? "illegal base64 data")`),
  nospace: ({ at }) => text(`replace(${at(0)}, r'${space}', "")`),
  // As in sprig, positions count bytes.
  trunc: ({ values, at }) => {
    const count = wholeConstant(values[0], 'the length of `trunc`')
    const part = count < 0 ? `slice!(${at(1)}, ${count})` : `slice!(${at(1)}, 0, ${count})`
    return text(`({ if length(${at(1)}) > ${Math.abs(count)} { ${part} } else { ${at(1)} } })`)
  },
  substr: ({ values, at }) => {
    const start = wholeConstant(values[0], 'the positions of `substr`')
    const end = wholeConstant(values[1], 'the positions of `substr`')
    if (start < 0) throw new Error('the positions of `substr` must not be negative')
    const part = end < 0 || end < start ? `slice!(${at(2)}, ${start})` : `slice!(${at(2)}, ${start}, ${end})`
    return text(`({ if length(${at(2)}) > ${start} { ${part} } else { "" } })`)
  },
  /** Go's own function. A position beyond the text makes the template fail. */
  slice: ({ values, at, fail, name }) => {
    const [from = 0, to] = values.slice(1).map((value) => wholeConstant(value, 'the positions of `slice`'))
    if (values[0]?.type !== 'text' || from < 0 || (to !== undefined && to < from))
      throw new Error('`slice` has positions that are not valid')
    const end = to === undefined ? '' : `, ${to}`
    const whole = name()
    const isShort = `length(${whole}) < ${to ?? from}`
    return text(
      `({ ${whole} = ${at(0)}; if ${isShort} { ${fail('true')}; "" } else { string!(slice!(${whole}, ${from}${end})) } })`,
    )
  },
  repeat: ({ values, at }) => {
    const count = wholeConstant(values[0], 'the count of `repeat`')
    if (count < 0 || count > 100) throw new Error('the count of `repeat` must be from 0 to 100')
    const parts = Array.from({ length: Math.max(1, count) }, () => at(1))
    return text(count === 0 ? '""' : `join!([${parts.join(', ')}], "")`)
  },
  quote: (given) => shownEach(given, goQuoted),
  squote: (given) => shownEach(given, (value) => `"'" + ${value} + "'"`),
  toString: ({ any }: Arguments) => text(any(0, '<nil>')),
  toJson: ({ values: [value] }) => {
    if (value?.type !== 'text') throw new Error('`toJson` needs a text')
    return text(`encode_json(${nullable(value)})`)
  },
  print: ({ values, any }) => text(values.map((_, index) => any(index, '<nil>')).join(' + ')),
  printf: (given) => text(formatted(given)),
  base: ({ at, name }) => {
    const path = name()
    const none = `if ${at(0)} == "" { "." } else { "/" }`
    return text(
      `({ ${path} = replace(${at(0)}, r'/+$', ""); if ${path} == "" { ${none} } else { replace(${path}, r'^(?s:.*)/', "") } })`,
    )
  },
}

/** Values with a sign around each. sprig leaves out missing values. */
function shownEach({ values, any, name }: Arguments, shown: (value: string) => string): Value {
  if (values.every(({ missing }) => missing === undefined))
    return text(values.map((_, index) => shown(any(index))).join(' + " " + '))
  const parts = values.map((each) => {
    const value = name()
    return `({ ${value} = ${nullable(each)}; if is_null(${value}) { null } else { ${shown(`string!(${value})`)} } })`
  })
  return text(`join!(filter([${parts.join(', ')}]) -> |_index, item| { !is_null(item) }, " ")`)
}

const numbers: Readonly<Record<string, Call>> = {
  int: (given) => integer(whole(given, 0)),
  int64: (given) => integer(whole(given, 0)),
  atoi: ({ at }) => integer(`(parse_int(${at(0)}, 10) ?? 0)`),
  float64: ({ values, any }) => float(floatOf(values[0], any(0))),
  round: ({ values, any }) => {
    const decimals = wholeConstant(values[1], 'the decimals of `round`')
    return float(`to_float(round(${floatOf(values[0], any(0))}, ${decimals}))`)
  },
  floor: ({ values, any }) => float(`to_float(floor(${floatOf(values[0], any(0))}))`),
  ceil: ({ values, any }) => float(`to_float(ceil(${floatOf(values[0], any(0))}))`),
  div: (given) => {
    const by = wholeConstant(given.values[1], 'the divisor of `div`')
    if (by === 0) throw new Error('the divisor of `div` must not be zero')
    return integer(`to_int(${whole(given, 0)} / ${by})`)
  },
  mod: (given) => {
    const by = wholeConstant(given.values[1], 'the divisor of `mod`')
    if (by === 0) throw new Error('the divisor of `mod` must not be zero')
    return integer(`mod(${whole(given, 0)}, ${by})`)
  },
  add: (given) => integer(`(${wholes(given).join(' + ')})`),
  add1: (given) => integer(`(${whole(given, 0)} + 1)`),
  sub: (given) => integer(`(${whole(given, 0)} - ${whole(given, 1)})`),
  mul: (given) => integer(`(${wholes(given).join(' * ')})`),
  max: (given) => integer(folded(wholes(given), '>', given.name)),
  min: (given) => integer(folded(wholes(given), '<', given.name)),
  len: ({ values, at }) => integer(values[0]?.type === 'list' ? `length(${values[0].expression})` : `length(${at(0)})`),
}

const conditions: Readonly<Record<string, Call>> = {
  contains: ({ at }) => condition(`contains(${at(1)}, ${at(0)})`),
  hasPrefix: ({ at }) => condition(`starts_with(${at(1)}, ${at(0)})`),
  hasSuffix: ({ at }) => condition(`ends_with(${at(1)}, ${at(0)})`),
  regexMatch: ({ values, at }) => condition(`match(${at(1)}, ${literalOf(constantOf(values[0], 'the pattern'))})`),
  has: ({ values, any }) => condition(`includes(${listOf(values[1])}, ${any(0)})`),
}

const lists: Readonly<Record<string, Call>> = {
  splitList: ({ values, at }) => {
    if (constantOf(values[0], 'the separator of `splitList`') === '')
      throw new Error('the separator of `splitList` is empty')
    return list(`split(${at(1)}, ${at(0)})`)
  },
  split: ({ values, at }) => {
    if (constantOf(values[0], 'the separator of `split`') === '') throw new Error('the separator of `split` is empty')
    return { ...list(`split(${at(1)}, ${at(0)})`), hasNames: true }
  },
  list: ({ values }) => list(`[${values.map(nullable).join(', ')}]`),
  first: ({ values }) => item(listOf(values[0]), 0),
  last: ({ values }) => item(listOf(values[0]), -1),
  rest: ({ values }) => list(`array!(slice!(${listOf(values[0])}, 1))`),
  initial: ({ values }) => list(`array!(slice!(${listOf(values[0])}, 0, -1))`),
  // As in sprig, missing values are left out.
  join: ({ values, at }) => text(`join!(filter(${listOf(values[1])}) -> |_index, item| { is_string(item) }, ${at(0)})`),
  /** A position beyond the list makes the template fail. */
  index: ({ values, fail, name }) => {
    if (values.length !== 2) throw new Error('`index` has several positions')
    const index = wholeConstant(values[1], 'the position of `index`')
    if (index < 0) throw new Error('the position of `index` must not be negative')
    const found = name()
    const value = `get(${listOf(values[0])}, [${index}]) ?? null`
    return text(`({ ${found} = ${value}; ${fail(`is_null(${found})`)}; string!(${found} || "") })`)
  },
}

/** Functions by name. */
export const functions: Readonly<Record<string, Call>> = { ...texts, ...numbers, ...conditions, ...lists }

/** A member of the result of a call: the parts of `split` are `_0`, `_1` and so on. */
export function memberOf(value: Value, name: string): Value {
  const index = /^_(\d+)$/.exec(name)?.[1]
  if (value.type !== 'list' || value.hasNames !== true || index === undefined)
    throw new Error(`\`.${name}\` is below a text`)
  return item(value.expression, index)
}

/** A text in Go's quotes, in which other control characters than these are hexadecimal. */
const escapes = '{ "\\"": "\\\\\\"", "\\\\": "\\\\\\\\", "\\n": "\\\\n", "\\t": "\\\\t", "\\r": "\\\\r" }'
const goQuoted = (value: string) =>
  `"\\"" + (replace_with(${value}, r'["\\\\\\x00-\\x1f\\x7f]') -> |m| { sign = get(${escapes}, [m.string]) ?? null; if is_string(sign) { string!(sign) } else { "\\\\x" + encode_base16(m.string) } }) + "\\""`

/** A text filled with blanks or zeros to a width in characters. */
function padded(expression: string, width: number, isLeft: boolean, fill: string, name: () => string): string {
  if (width === 0) return expression
  if (width > 200) throw new Error('`printf` has a width above 200')
  const [shown, more] = [name(), name()]
  const blanks = `truncate(${textLiteral(fill.repeat(width))}, ${width} - strlen(${shown}))`
  const missing = `if strlen(${shown}) < ${width} { ${blanks} } else { "" }`
  return `({ ${shown} = ${expression}; ${more} = ${missing}; ${isLeft ? `${shown} + ${more}` : `${more} + ${shown}`} })`
}

/** Verbs consume the values in order. */
function formatted({ values, any, name }: Arguments): string {
  let next = 1
  const parts = constantOf(values[0], 'the format of `printf`')
    .split(/(%[-0+ #]*\d*(?:\.\d+)?[a-zA-Z%])/)
    .filter((part) => part !== '')
    .map((part) => {
      const [, flags = '', width = '', precision, verb] = /^%([-0+ #]*)(\d*)(?:\.(\d+))?([a-zA-Z%])$/.exec(part) ?? []
      if (verb === undefined) {
        if (part.includes('%')) throw new Error('`printf` has a verb that is not read')
        return textLiteral(part)
      }
      if (verb === '%') return textLiteral('%')
      const index = next++
      const value = values[index]
      if (value === undefined) throw new Error('`printf` has more verbs than values')
      if (/[+ #]/.test(flags)) throw new Error(`\`printf\` has a verb without counterpart: \`${part}\``)
      const shown = verbText(value, verb, precision, (instead) => any(index, instead), name)
      const isZero = flags.includes('0') && !flags.includes('-') && 'df'.includes(verb)
      return padded(shown, Number(width || '0'), flags.includes('-'), isZero ? '0' : ' ', name)
    })
  if (next !== values.length) throw new Error('the number of values of `printf` differs from its verbs')
  return parts.length === 0 ? '""' : parts.join(' + ')
}

/** One verb. Go writes an error into the text if the type of the value does not fit. */
function verbText(
  value: Value,
  verb: string,
  precision: string | undefined,
  any: (instead: string) => string,
  name: () => string,
): string {
  const isText = value.type === 'text'
  if (verb === 'v' && precision === undefined) return any('<nil>')
  if (verb === 's' && isText && precision === undefined) return any('%!s(<nil>)')
  if (verb === 's' && isText) {
    const given = name()
    const short = `truncate(string!(${given}), ${precision})`
    return `({ ${given} = ${nullable(value)}; if is_null(${given}) { "%!s(<nil>)" } else { ${short} } })`
  }
  if (verb === 'q' && isText && precision === undefined && value.missing === undefined) return goQuoted(any(''))
  if (verb === 'd' && value.type !== 'float' && isNumber(value) && precision === undefined && !isFloat(value))
    return any('')
  if (verb === 't' && value.type === 'condition') return any('')
  if (verb === 'f' && isFloat(value)) {
    const decimals = Number(precision ?? '6')
    return `format_number(round(${floatOf(value, '')}, ${decimals}), ${decimals})`
  }
  throw new Error(`\`printf\` formats ${isText ? 'a text' : 'a value'} with \`%${verb}\``)
}
