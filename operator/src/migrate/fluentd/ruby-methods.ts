// Methods of Ruby's texts, numbers, lists and objects, as remap expressions.

import { textLiteral } from '@penstock/agent/config'
import { ownName } from '../fluent-bit/own-time.ts'
import { pattern } from '../fluent-bit/text.ts'
import type { Emitter } from './ruby-emitter.ts'
import { jsonOf } from './ruby-functions.ts'
import { listMethods, signsIn } from './ruby-lists.ts'
import {
  asText,
  fieldNode,
  isNumber,
  isRecord,
  literalOf,
  type Node,
  testNode as test,
  textNode as text,
  UnknownRuby,
  wholeNumber,
} from './ruby-node.ts'
import { regexFlags, rubyRegex } from './ruby-text.ts'

/** The number at the beginning of a text, as Ruby reads it; zero without one. */
const numberIn = (text: string, digits: string) =>
  `get(parse_regex(${text}, r'^\\s*(?P<number>[-+]?${digits})') ?? {}, ["number"]) ?? null`
const integerIn = (text: string) => `(to_int(${numberIn(text, '\\d+')}) ?? 0)`
export const floatIn = (text: string) => `(to_float(${numberIn(text, '\\d+(?:\\.\\d+)?(?:[eE][-+]?\\d+)?')}) ?? 0.0)`

/** The hexadecimal number at the beginning of a text; zero without one. */
const hexIn = (node: Node): Node => {
  const found = `parse_regex(${asText(node)}, r'^\\s*(?:0[xX])?(?P<digits>[0-9a-fA-F]+)') ?? {}`
  return { text: `(parse_int(to_string(get(${found}, ["digits"]) ?? null) ?? "", 16) ?? 0)`, kind: 'integer' }
}

/** Methods that only texts have. */
export const ofTexts: ReadonlySet<string> = new Set(
  [
    'downcase upcase capitalize strip chomp chop lstrip rstrip start_with? end_with? gsub sub split bytesize',
    'scan lines each_line tr squeeze delete_prefix delete_suffix partition rpartition ljust rjust hex casecmp?',
  ].flatMap((words) => words.split(' ')),
)
/** Methods that nil has, too. */
export const ofNil: ReadonlySet<string> = new Set(
  'to_s to_i to_f to_a to_h to_json nil? is_a? kind_of? instance_of? dig eql? inspect'.split(' '),
)

/** Tests of the class of a value. */
const classTests: Readonly<Record<string, string>> = {
  String: 'is_string',
  Array: 'is_array',
  Hash: 'is_object',
  Integer: 'is_integer',
  Float: 'is_float',
  NilClass: 'is_null',
}

/** A member by name or index. */
export function at(node: Node, key: Node): Node {
  if (node.path !== undefined && key.literal !== undefined) {
    return fieldNode(node.root, [...node.path, isRecord(node) ? ownName(key.literal) : key.literal])
  }
  if (key.kind === 'integer') return { text: `(get(${node.text}, [${key.text}]) ?? null)`, kind: 'any' }
  throw new UnknownRuby()
}

/** A member by a name that only the event contains. Ruby finds no member by a name that is not a text. */
export function memberOf(node: Node, key: Node, emitter: Emitter): Node {
  if (node.kind !== 'any') throw new UnknownRuby()
  if (key.literal !== undefined) return at(node.path === undefined ? emitter.kept(node.text, 'any') : node, key)
  const member = (name: string) => `(get(${node.text}, [${name}]) ?? null)`
  if (key.kind === 'text') return { text: member(key.text), kind: 'any' }
  if (key.kind !== 'any') throw new UnknownRuby()
  return emitter.kept(`if is_string(${key.text}) { ${member(`string!(${key.text})`)} } else { null }`, 'any')
}

/** The value of the first pair with this key. */
export function lookedUp(pairs: NonNullable<Node['pairs']>, key: Node, other: Node, emitter: Emitter): Node {
  const found = key.path === undefined && key.literal === undefined ? emitter.kept(key.text, key.kind) : key
  const cases = pairs.map(([name, value]) => `if ${found.text} == ${name.text} { ${value.text} }`)
  return emitter.kept(`${[...cases, ''].join(' else ')}{ ${other.text} }`, 'any')
}

function replaced(node: Node, [from, to]: readonly Node[], count: string): Node | undefined {
  if (from === undefined) return undefined
  if (to?.pairs !== undefined && from.regex !== undefined) return mapped(node, from.regex, to.pairs, count)
  if (to?.kind !== 'text') return undefined
  const regex = /^\/(.*)\/([imx]*)$/s.exec(from.regex ?? '')
  if (regex === null)
    return from.kind === 'text' ? text(`replace(${asText(node)}, ${from.text}, ${to.text}${count})`) : undefined
  const by = to.text
    .replaceAll('$', '$$$$')
    .replace(/\\\\(\d)/g, '$${$1}')
    .replace(/\\\\k<(\w+)>/g, '$${$1}')
  return text(`replace(${asText(node)}, r'${regexFlags(regex[2] ?? '')}${rubyRegex(regex[1] ?? '')}', ${by}${count})`)
}

/** `gsub(/[ab]/, "a" => "1", "b" => "2")`. */
function mapped(node: Node, regex: string, pairs: NonNullable<Node['pairs']>, count: string): Node | undefined {
  const found = /^\/(.*)\/([imx]*)$/s.exec(regex)
  if (
    found === null ||
    count !== '' ||
    pairs.some(([key, value]) => key.literal === undefined || value.kind !== 'text')
  )
    return undefined
  const cases = pairs.map(([key, value]) => `if found.string == ${key.text} { ${value.text} }`)
  return text(
    `replace_with(${asText(node)}, r'${regexFlags(found[2] ?? '')}${rubyRegex(found[1] ?? '')}') -> |found| { ${[...cases, ''].join(' else ')}{ "" } }`,
  )
}

function anyOf(name: string, node: Node, words: readonly Node[]): Node | undefined {
  if (words.length === 0 || words.some(({ kind, regex }) => kind !== 'text' && regex === undefined)) return undefined
  const tests = words.map(({ text: word, regex }) =>
    regex === undefined ? `${name}(${asText(node)}, ${word})` : startsLike(name, node, regex),
  )
  return test(tests.length === 1 ? (tests[0] ?? '') : `(${tests.join(' || ')})`)
}

function startsLike(name: string, node: Node, regex: string): string {
  const found = /^\/(.*)\/([imx]*)$/s.exec(regex)
  if (name !== 'starts_with' || found === null) throw new UnknownRuby()
  return `is_object(parse_grok(${asText(node)}, ${pattern(`/\\A(?:${found[1]})/${found[2]}`)}) ?? null)`
}

const escapedIn = (separator: string) => separator.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&').replaceAll("'", "\\'")

/** Ruby leaves out empty texts at the end, and splits at white space where it is given a space or nothing. */
function splitBy(node: Node, [word, limit, ...more]: readonly Node[]): Node | undefined {
  if (more.length > 0) return undefined
  if (word?.regex !== undefined) return splitAt(node, word.regex, limit)
  if (word !== undefined && word.kind !== 'text') return undefined
  const separator = word === undefined ? ' ' : literalOf(word)
  if (separator === '') return undefined
  if (limit !== undefined) {
    if (separator === ' ' || wholeNumber(limit) <= 0) return undefined
    return { text: `split(${asText(node)}, ${word?.text}, limit: ${limit.text})`, kind: 'list' }
  }
  if (separator === ' ') return { text: `split(strip_whitespace(${asText(node)}), r'\\s+')`, kind: 'list' }
  const ends = `r'(?:${escapedIn(separator)})+$'`
  return { text: `split(replace(${asText(node)}, ${ends}, ""), ${word?.text})`, kind: 'list' }
}

/** Ruby adds the groups of the expression to the result, so it must have none. */
function splitAt(node: Node, regex: string, limit: Node | undefined): Node | undefined {
  const found = /^\/(.*)\/([imx]*)$/s.exec(regex)
  if (found === null || /(?<!\\)\((?!\?)|\(\?</.test(found[1] ?? '')) return undefined
  const plain = `${regexFlags(found[2] ?? '')}${rubyRegex(found[1] ?? '')}`
  if (limit !== undefined) {
    if (wholeNumber(limit) <= 0) return undefined
    return { text: `split(${asText(node)}, r'${plain}', limit: ${limit.text})`, kind: 'list' }
  }
  return { text: `split(replace(${asText(node)}, r'(?:${plain})+\\z', ""), r'${plain}')`, kind: 'list' }
}

/** The text before the first separator, the separator, and the rest. */
function partition(node: Node, words: readonly Node[], isLast: boolean): Node | undefined {
  const [word] = words
  if (word?.literal === undefined || word.literal === '') return undefined
  const inner = escapedIn(word.literal)
  const regex = isLast ? `(?s)^(?P<a>.*)(?P<b>${inner})(?P<c>.*)$` : `(?s)^(?P<a>.*?)(?P<b>${inner})(?P<c>.*)$`
  const whole = asText(node)
  const parts = `(parse_regex(${whole}, r'${regex}') ?? ${isLast ? `{ "a": "", "b": "", "c": ${whole} }` : `{ "a": ${whole}, "b": "", "c": "" }`})`
  const part = (name: string) => `(get(${parts}, ["${name}"]) ?? null)`
  return { text: `[${['a', 'b', 'c'].map(part).join(', ')}]`, kind: 'list' }
}

/** `tr("a-z", "_")`: the last sign of the second text stands for all further ones. */
function translated(node: Node, [from, to]: readonly Node[]): Node | undefined {
  if (from?.literal === undefined || to?.literal === undefined || /\\/.test(from.literal + to.literal)) return undefined
  const isOther = from.literal.length > 1 && from.literal.startsWith('^')
  const signs = signsIn(isOther ? from.literal.slice(1) : from.literal)
  const others = signsIn(to.literal)
  if (signs === undefined || others === undefined) return undefined
  const all = signs.map((sign) => `\\x{${sign.codePointAt(0)?.toString(16)}}`).join('')
  if (others.length <= 1 || isOther) {
    const by = textLiteral((others.at(-1) ?? '').replaceAll('$', '$$$$'))
    return text(`replace(${asText(node)}, r'[${isOther ? '^' : ''}${all}]', ${by})`)
  }
  const cases = [
    ...new Map(signs.map((sign, index) => [sign, others[index] ?? others.at(-1) ?? ''] as const).toReversed()),
  ]
  const members = cases.map(([sign, other]) => `${textLiteral(sign)}: ${textLiteral(other)}`).join(', ')
  return text(
    `replace_with(${asText(node)}, r'[${all}]') -> |found| { to_string(get({ ${members} }, [found.string]) ?? null) ?? "" }`,
  )
}

function justified(node: Node, [width, sign]: readonly Node[], isLeft: boolean, emitter: Emitter): Node | undefined {
  if (width === undefined || (sign !== undefined && !/^[ -~]$/.test(sign.literal ?? ''))) return undefined
  const kept = emitter.kept(asText(node), 'text').text
  const fill = textLiteral((sign?.literal ?? ' ').repeat(Math.max(0, wholeNumber(width))))
  const space = emitter.kept(`slice(${fill}, strlen(${kept})) ?? ""`, 'text').text
  return text(isLeft ? `(${kept} + ${space})` : `(${space} + ${kept})`)
}

/** The value of an expression for a text, a list or an object; null for another value, for which Ruby has no such method. */
function byKind(
  node: Node,
  emitter: Emitter,
  kind: Node['kind'],
  of: { readonly text?: (value: string) => string; readonly list?: string; readonly object?: string },
): Node {
  if (node.kind === 'text' && of.text !== undefined) return { text: of.text(node.text), kind }
  const cases = of.text === undefined ? [] : [`if is_string(${node.text}) { ${of.text(`string!(${node.text})`)} }`]
  if (of.list !== undefined) cases.push(`if is_array(${node.text}) { ${of.list} }`)
  if (of.object !== undefined) cases.push(`if is_object(${node.text}) { ${of.object} }`)
  return emitter.kept(`${cases.join(' else ')} else { null }`, 'any')
}

function lengthOf(node: Node, emitter: Emitter): Node {
  if (node.kind === 'list') return { text: `length(${node.text})`, kind: 'integer' }
  return byKind(node, emitter, 'integer', {
    text: (value) => `strlen(${value})`,
    list: `length(array!(${node.text}))`,
    object: `length(object!(${node.text}))`,
  })
}

function includes(node: Node, [word]: readonly Node[], emitter: Emitter): Node | undefined {
  if (word === undefined) return undefined
  if (node.kind === 'list') return test(`includes(${node.text}, ${word.text})`)
  if (word.kind !== 'text') return undefined
  return byKind(node, emitter, 'boolean', {
    text: (value) => `contains(${value}, ${word.text})`,
    list: `includes(array!(${node.text}), ${word.text})`,
    object: `includes(keys(object!(${node.text})), ${word.text})`,
  })
}

/** The first or the last items of a list; without a number, one item. */
function itemsAt(node: Node, [count]: readonly Node[], isLast: boolean, emitter: Emitter): Node | undefined {
  if (node.kind !== 'list') {
    if (node.kind !== 'any' || node.pairs !== undefined) return undefined
    const found =
      count === undefined
        ? `(get(${node.text}, [${isLast ? -1 : 0}]) ?? null)`
        : partOf(node.text, wholeNumber(count), isLast)
    return emitter.kept(`if is_array(${node.text}) { ${found} } else { null }`, 'any')
  }
  if (count !== undefined) return { text: partOf(node.text, wholeNumber(count), isLast), kind: 'list' }
  return { text: `(get(${node.text}, [${isLast ? -1 : 0}]) ?? null)`, kind: 'any' }
}

const partOf = (list: string, count: number, isLast: boolean) =>
  isLast ? `(slice(${list}, ${-count}) ?? ${list})` : `(slice(${list}, 0, ${count}) ?? ${list})`

const whole = (name: string, node: Node): Node | undefined => {
  if (node.kind === 'integer') return node
  return node.kind === 'float' ? { text: `to_int(${name}(${node.text}))`, kind: 'integer' } : undefined
}

type Make = (node: Node, words: readonly Node[], emitter: Emitter) => Node | undefined

/** A method without arguments. */
const plain =
  (make: (node: Node, emitter: Emitter) => Node | undefined): Make =>
  (node, words, emitter) =>
    words.length === 0 ? make(node, emitter) : undefined

const list = (expression: (text: string) => string): Make =>
  plain((node, emitter) =>
    node.kind === 'list'
      ? { text: expression(node.text), kind: 'list' }
      : emitter.kept(`if is_array(${node.text}) { ${expression(`array!(${node.text})`)} } else { null }`, 'any'),
  )

const object = (expression: (text: string) => string): Make =>
  plain((node, emitter) =>
    node.path === undefined && node.pairs === undefined
      ? undefined
      : emitter.kept(`if is_object(${node.text}) { ${expression(`object!(${node.text})`)} } else { null }`, 'any'),
  )

const ofTextMethods: Readonly<Record<string, Make>> = {
  downcase: plain((node) => text(`downcase(${asText(node)})`)),
  upcase: plain((node) => text(`upcase(${asText(node)})`)),
  capitalize: plain((node, emitter) => {
    const kept = emitter.kept(asText(node), 'text').text
    return text(`(upcase(truncate(${kept}, 1)) + downcase(replace(${kept}, r'(?s)^.', "")))`)
  }),
  strip: plain((node) => text(`strip_whitespace(${asText(node)})`)),
  chomp: (node, [end]) =>
    end === undefined
      ? text(`replace(${asText(node)}, r'\\r?\\n$', "")`)
      : end.literal === undefined || end.literal === ''
        ? undefined
        : text(`replace(${asText(node)}, r'${escapedIn(end.literal)}$', "")`),
  chop: plain((node) => text(`replace(${asText(node)}, r'(?s)(?:\\r\\n|.)$', "")`)),
  lstrip: plain((node) => text(`replace(${asText(node)}, r'^\\s+', "")`)),
  rstrip: plain((node) => text(`replace(${asText(node)}, r'\\s+$', "")`)),
  delete_prefix: (node, [word]) =>
    word?.literal === undefined ? undefined : text(`replace(${asText(node)}, r'^${escapedIn(word.literal)}', "")`),
  delete_suffix: (node, [word]) =>
    word?.literal === undefined ? undefined : text(`replace(${asText(node)}, r'${escapedIn(word.literal)}$', "")`),
  squeeze: (node, [word]) =>
    word?.literal?.length !== 1
      ? undefined
      : text(
          `replace(${asText(node)}, r'(?:${escapedIn(word.literal)})+', ${textLiteral(word.literal.replaceAll('$', '$$$$'))})`,
        ),
  tr: (node, words) => translated(node, words),
  ljust: (node, words, emitter) => justified(node, words, true, emitter),
  rjust: (node, words, emitter) => justified(node, words, false, emitter),
  partition: (node, words) => partition(node, words, false),
  rpartition: (node, words) => partition(node, words, true),
  hex: plain((node) => hexIn(node)),
  'casecmp?': (node, [word]) =>
    word?.kind === 'text' ? test(`(downcase(${asText(node)}) == downcase(${word.text}))`) : undefined,
  'start_with?': (node, words) => anyOf('starts_with', node, words),
  'end_with?': (node, words) => anyOf('ends_with', node, words),
  bytesize: plain((node) => ({ text: `length(${asText(node)})`, kind: 'integer' })),
  gsub: (node, words) => replaced(node, words, ''),
  sub: (node, words) => replaced(node, words, ', count: 1'),
  split: (node, words) => splitBy(node, words),
}

const isLike = (node: Node, regex: string) => `is_object(parse_grok(${asText(node)}, ${pattern(regex)}) ?? null)`

const ofValues: Readonly<Record<string, Make>> = {
  to_s: plain((node) => text(asText(node))),
  to_sym: plain((node) => text(asText(node))),
  to_i: (node, [base]) => {
    if (base !== undefined) return wholeNumber(base) === 16 ? hexIn(node) : undefined
    if (node.kind === 'integer') return node
    return { text: node.kind === 'float' ? `to_int(${node.text})` : integerIn(asText(node)), kind: 'integer' }
  },
  to_f: plain((node) => {
    if (node.kind === 'float') return node
    return { text: node.kind === 'integer' ? `to_float(${node.text})` : floatIn(asText(node)), kind: 'float' }
  }),
  to_json: plain((node) => jsonOf(node)),
  'is_a?': (node, [name]) => {
    if (name?.className === 'Numeric') return test(`(is_integer(${node.text}) || is_float(${node.text}))`)
    if (name?.className === 'TrueClass') return test(`(${node.text} == true)`)
    if (name?.className === 'FalseClass') return test(`(${node.text} == false)`)
    return name?.className === undefined || !Object.hasOwn(classTests, name.className)
      ? undefined
      : test(`${classTests[name.className]}(${node.text})`)
  },
  'kind_of?': (node, words, emitter) => ofValues['is_a?']?.(node, words, emitter),
  'instance_of?': (node, words, emitter) => ofValues['is_a?']?.(node, words, emitter),
  'nil?': plain((node) => test(`(${node.text} == null)`)),
  'eql?': (node, [word]) => (word?.kind === 'text' ? test(`(${node.text} == ${word.text})`) : undefined),
  'empty?': plain((node) => test(`(${node.text} == "" || ${node.text} == {} || ${node.text} == [])`)),
  'any?': plain((node) => (node.kind === 'text' ? undefined : test(`!(${node.text} == {} || ${node.text} == [])`))),
  'include?': includes,
  'match?': (node, [regex]) => (regex?.regex === undefined ? undefined : test(isLike(node, regex.regex))),
  match: (node, [regex]) =>
    regex?.regex === undefined
      ? undefined
      : { text: isLike(node, regex.regex), kind: 'boolean', isPlace: true, match: { of: node, regex: regex.regex } },
  length: plain(lengthOf),
  size: plain(lengthOf),
  count: plain((node, emitter) => (node.kind === 'text' ? undefined : lengthOf(node, emitter))),
}

/** A comparison of a number. Other values have no such method. */
const ofNumber = (compare: (number: string) => string): Make =>
  plain((node, emitter) => {
    if (isNumber(node)) return test(`(${compare(node.text)})`)
    if (node.kind !== 'any' || node.pairs !== undefined) return undefined
    emitter.failIf(`!is_integer(${node.text}) && !is_float(${node.text})`)
    return test(`(${compare(`(to_float(${node.text}) ?? 0.0)`)})`)
  })

const ofNumbers: Readonly<Record<string, Make>> = {
  round: (node, words) => {
    const [digits] = words
    if (digits === undefined) return whole('round', node)
    if (node.kind !== 'float' || wholeNumber(digits) <= 0) return undefined
    return { text: `round(${node.text}, precision: ${digits.text})`, kind: 'float' }
  },
  floor: plain((node) => whole('floor', node)),
  ceil: plain((node) => whole('ceil', node)),
  abs: plain((node) => (isNumber(node) ? { text: `abs(${node.text})`, kind: node.kind } : undefined)),
  fdiv: (node, [other]) => {
    if (!isNumber(node) || other === undefined || !isNumber(other) || !(Number(other.text) !== 0)) return undefined
    const divisor = other.kind === 'integer' ? `${other.text}.0` : other.text
    return { text: `(to_float(${node.text}) / ${divisor})`, kind: 'float' }
  },
  'zero?': ofNumber((number) => `${number} == 0`),
  'positive?': ofNumber((number) => `${number} > 0`),
  'negative?': ofNumber((number) => `${number} < 0`),
  'between?': (node, [low, high], emitter) =>
    low !== undefined && high !== undefined && isNumber(low) && isNumber(high)
      ? ofNumber((number) => `${number} >= ${low.text} && ${number} <= ${high.text}`)(node, [], emitter)
      : undefined,
}

const ofLists: Readonly<Record<string, Make>> = {
  join: (node, [between], emitter) =>
    between !== undefined && between.kind !== 'text' ? undefined : joined(node, between?.text ?? '""', emitter),
  first: (node, words, emitter) => itemsAt(node, words, false, emitter),
  last: (node, words, emitter) => itemsAt(node, words, true, emitter),
  take: (node, words, emitter) => (words.length === 1 ? itemsAt(node, words, false, emitter) : undefined),
  drop: (node, [count, ...more], emitter) =>
    count === undefined || more.length > 0
      ? undefined
      : list((text) => `slice(${text}, ${wholeNumber(count)}) ?? []`)(node, [], emitter),
  compact: list((text) => `filter(${text}) -> |_index, value| { value != null }`),
  uniq: list((text) => `unique(${text})`),
  flatten: list((text) => `flatten(${text})`),
}

/** Items as texts; nil is an empty one. */
function joined(node: Node, between: string, { isWide }: Emitter): Node {
  const list = isWide ? `array(get([${node.text}], [0]) ?? []) ?? []` : node.text
  const items = node.kind === 'list' ? list : `array(${node.text}) ?? []`
  const texts = `map_values(${items}) -> |value| { to_string(value) ?? encode_json(value) }`
  return { text: `(join(${texts}, ${between}) ?? "")`, kind: 'text' }
}

/** A list of names. */
const namesIn = (words: readonly Node[]) => `[${words.map(({ text }) => text).join(', ')}]`

const ofObjects: Readonly<Record<string, Make>> = {
  'key?': (node, [word]) =>
    node.path !== undefined && word?.literal !== undefined ? test(`exists(${at(node, word).text})`) : undefined,
  'has_key?': (node, words, emitter) => ofObjects['key?']?.(node, words, emitter),
  'member?': (node, words, emitter) => ofObjects['key?']?.(node, words, emitter),
  fetch: (node, [key, other], emitter) => {
    if (node.pairs !== undefined)
      return key === undefined || other === undefined ? undefined : lookedUp(node.pairs, key, other, emitter)
    if (key?.literal === undefined || node.path === undefined) return undefined
    const member = at(node, key)
    return other === undefined
      ? member
      : emitter.kept(`if exists(${member.text}) { ${member.text} } else { ${other.text} }`, 'any')
  },
  except: (node, words, emitter) =>
    words.length === 0 || words.some(({ literal }) => literal === undefined)
      ? undefined
      : object((text) => `filter(${text}) -> |key, _value| { !includes(${namesIn(words)}, key) }`)(node, [], emitter),
  keys: object((text) => `keys(${text})`),
  values: object((text) => `values(${text})`),
}

export const methods: Readonly<Record<string, Make>> = {
  ...ofValues,
  ...ofTextMethods,
  ...ofNumbers,
  ...ofLists,
  ...listMethods,
  ...ofObjects,
}
