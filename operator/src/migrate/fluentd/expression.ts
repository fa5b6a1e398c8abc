// Converts the Ruby of `record_transformer` to remap expressions: operators, the ternary operator, and string methods. Each node has the
// kind of its value, because remap requires error handling exactly for operations that can fail. If Ruby raises an error, such as for a
// method of nil, Fluentd discards the event; so does the program, unless the code rescues the error.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { pattern } from '../fluent-bit/text.ts'
import { asText, isNumber, literalOf, type Node, UnknownRuby, wholeNumber } from './ruby-node.ts'
import { type End, endOf, groupIn, letterOf, listEnd, partOfText, regexFlags, rubyRegex } from './ruby-text.ts'
import { timeCall } from './ruby-time.ts'

/** The number at the beginning of a text, as Ruby reads it; zero without one. */
const numberIn = (text: string, digits: string) =>
  `get(parse_regex(${text}, r'^\\s*(?P<number>[-+]?${digits})') ?? {}, ["number"]) ?? null`
const integerIn = (text: string) => `(to_int(${numberIn(text, '\\d+')}) ?? 0)`
export const floatIn = (text: string) => `(to_float(${numberIn(text, '\\d+(?:\\.\\d+)?(?:[eE][-+]?\\d+)?')}) ?? 0.0)`

export interface RubyValue {
  readonly text: string
  /** Statements that must run before the expression. */
  readonly before: readonly string[]
  /** The value as a text. */
  readonly asText: string
}

/**
 * @param known expressions for names such as `tag` and `hostname`
 * @param name the prefix for names of variables
 * @returns undefined for unsupported Ruby
 */
export function rubyValue(
  code: string,
  known: (word: string) => string | undefined,
  name: string,
): RubyValue | undefined {
  const tokens = tokensOf(code)
  if (tokens === undefined) return undefined
  const reader = new Reader(tokens, known, name)
  try {
    const node = reader.whole()
    return node.regex === undefined && node.isPlace !== true && node.className === undefined
      ? { text: node.text, before: reader.before, asText: asText(node) }
      : undefined
  } catch (error) {
    if (error instanceof UnknownRuby) return undefined
    throw error
  }
}

const tokenPattern =
  /\s+|"(?:[^"\\#]|\\.|#(?!\{))*"|'(?:[^'\\]|\\.)*'|\d+(?:\.\d+)?|[A-Za-z_]\w*[?!]?|&\.|\.\.\.?|=~|!~|[=!<>]=|\|\||&&|[-+*<>!?:.,()[\]]|\/(?:[^/\\]|\\.)*\/[imx]*/gsy
/** Behind a value, a slash divides. */
const division = /\s*\//y

function tokensOf(code: string): string[] | undefined {
  const tokens: string[] = []
  tokenPattern.lastIndex = 0
  while (tokenPattern.lastIndex < code.length) {
    division.lastIndex = tokenPattern.lastIndex
    if (/^["'\w)\]]/.test(tokens.at(-1)?.at(-1) ?? '') && division.test(code)) {
      tokens.push('/')
      tokenPattern.lastIndex = division.lastIndex
      continue
    }
    const found = tokenPattern.exec(code)
    if (found === null) return undefined
    if (found[0].trim() !== '') tokens.push(found[0])
  }
  return tokens
}

const isTrue = ({ text, kind }: Node) => (kind === 'boolean' ? text : `(${text} != null && ${text} != false)`)
const found = (node: Node, regex: string) => `is_object(parse_grok(${asText(node)}, ${pattern(regex)}) ?? null)`

class Reader {
  readonly before: string[] = []
  readonly #tokens: readonly string[]
  readonly #known: (word: string) => string | undefined
  readonly #name: string
  #at = 0
  #kepts = 0
  /** The statement for an error in Ruby: it discards the event, or sets the variable of a `rescue`. */
  #onError = 'abort'

  constructor(tokens: readonly string[], known: (word: string) => string | undefined, name: string) {
    this.#tokens = tokens
    this.#known = known
    this.#name = name
  }

  whole(): Node {
    const node = this.#rescued()
    if (this.#at < this.#tokens.length) throw new UnknownRuby()
    return node
  }

  /** `a rescue b`: b if an error occurs in a. */
  #rescued(): Node {
    if (!this.#hasRescue()) return this.#choice()
    const outer = this.#onError
    const hasFailed = this.#kept('false', 'boolean').text
    this.#onError = `${hasFailed} = true`
    const node = this.#choice()
    this.#onError = outer
    this.#expect('rescue')
    const other = this.#scoped(() => this.#choice())
    return this.#kept(`if ${hasFailed} { ${other.text} } else { ${node.text} }`, 'any')
  }

  /** Whether `rescue` follows before the end of the brackets. */
  #hasRescue(): boolean {
    let depth = 0
    for (const token of this.#tokens.slice(this.#at)) {
      if (token === 'rescue' && depth === 0) return true
      if (token === '(' || token === '[') depth++
      else if ((token === ')' || token === ']') && depth-- === 0) return false
    }
    return false
  }

  /** A part that Ruby evaluates only in some cases, together with the statements that it needs. */
  #scoped(read: () => Node): Node {
    const from = this.before.length
    const node = read()
    const statements = this.before.splice(from)
    if (statements.length === 0) return node
    return { ...node, text: `{\n${[...statements, node.text].join('\n')}\n}` }
  }

  /** The Ruby code raises an error if the condition is true. */
  #failIf(condition: string): void {
    this.before.push(`if ${condition} { ${this.#onError} }`)
  }

  /** The receiver of a method that only texts have. */
  #textOf(node: Node): Node {
    if (node.kind === 'text') return node
    if (node.kind !== 'any') throw new UnknownRuby()
    const other = this.#onError === 'abort' ? 'abort' : `${this.#onError}\n""`
    return this.#kept(`if is_string(${node.text}) { string!(${node.text}) } else { ${other} }`, 'text')
  }

  #accept(...wanted: readonly string[]): string | undefined {
    const token = this.#tokens[this.#at]
    if (token === undefined || !wanted.includes(token)) return undefined
    this.#at++
    return token
  }

  #expect(token: string): void {
    if (this.#accept(token) === undefined) throw new UnknownRuby()
  }

  #choice(): Node {
    const test = this.#or()
    if (this.#accept('?') === undefined) return test
    const yes = this.#scoped(() => this.#choice())
    this.#expect(':')
    const no = this.#scoped(() => this.#choice())
    const kind = yes.kind === no.kind ? yes.kind : 'any'
    return this.#kept(`if ${isTrue(test)} { ${yes.text} } else { ${no.text} }`, kind)
  }

  #or(): Node {
    let left = this.#and()
    while (this.#accept('||')) {
      const right = this.#scoped(() => this.#and())
      if (left.isPlace || right.isPlace) throw new UnknownRuby()
      const isTest = left.kind === 'boolean' && right.kind === 'boolean'
      left = { text: `(${left.text} || ${right.text})`, kind: isTest ? 'boolean' : 'any' }
    }
    return left
  }

  #and(): Node {
    let left = this.#comparison()
    while (this.#accept('&&')) {
      const right = this.#scoped(() => {
        const node = this.#comparison()
        return { ...node, text: isTrue(node), kind: 'boolean' }
      })
      left = { text: `(${isTrue(left)} && ${right.text})`, kind: 'boolean' }
    }
    return left
  }

  #comparison(): Node {
    const left = this.#sum()
    const sign = this.#accept('==', '!=', '=~', '!~', '<', '>', '<=', '>=')
    if (sign === undefined) return left
    const right = this.#sum()
    if (sign === '=~' || sign === '!~') {
      if (right.regex === undefined) throw new UnknownRuby()
      const text = found(left, right.regex)
      return sign === '!~' ? { text: `!${text}`, kind: 'boolean' } : { text, kind: 'boolean', isPlace: true }
    }
    const isSafe = sign === '==' || sign === '!=' || (isNumber(left) && isNumber(right))
    const whole = `(${left.text} ${sign} ${right.text})`
    if (isSafe) return { text: whole, kind: 'boolean' }
    const compared = this.#kept(`${whole} ?? null`, 'any').text
    this.#failIf(`${compared} == null`)
    return { text: `(${compared} == true)`, kind: 'boolean' }
  }

  #sum(): Node {
    return this.#operation(['+', '-'], () => this.#operation(['*', '/'], () => this.#unary()))
  }

  /** Operators for numbers and texts, which are the same in both languages. */
  #operation(signs: readonly string[], operand: () => Node): Node {
    let left = operand()
    for (let sign = this.#accept(...signs); sign !== undefined; sign = this.#accept(...signs)) {
      const right = operand()
      if (sign === '/') {
        left = this.#divided(left, right)
        continue
      }
      const text = `${left.text} ${sign} ${right.text}`
      const kind = kindOfResult(left, right, sign)
      left = kind === 'any' ? this.#checked(left, text, right) : { text: `(${text})`, kind }
    }
    return left
  }

  /** The result of an operation that fails for nil, and for values of different kinds. */
  #checked(left: Node, operation: string, right: Node): Node {
    const unknown = [left, right].filter(({ kind }) => kind === 'any').map(({ text }) => `${text} == null`)
    if (unknown.length > 0) this.#failIf(unknown.join(' || '))
    const result = this.#kept(`(${operation}) ?? null`, 'any')
    this.#failIf(`${result.text} == null`)
    return result
  }

  /** An integer divided by another one is the integer below. */
  #divided(left: Node, right: Node): Node {
    // The divisor is a literal other than zero, so remap knows that the division cannot fail.
    if (isNumber(left) && isNumber(right) && Number(right.text) !== 0 && !Number.isNaN(Number(right.text))) {
      const text = `(${left.text} / ${right.text})`
      const areIntegers = left.kind === 'integer' && right.kind === 'integer'
      return areIntegers ? { text: `to_int(floor(${text}))`, kind: 'integer' } : { text, kind: 'float' }
    }
    const quotient = this.#kept(`(${left.text} / ${right.text}) ?? null`, 'any')
    const areIntegers = `is_integer(${left.text}) && is_integer(${right.text}) && is_float(${quotient.text})`
    this.before.push(`if ${areIntegers} { ${quotient.text} = to_int(floor(float!(${quotient.text}))) }`)
    this.#failIf(`${quotient.text} == null`)
    return quotient
  }

  #unary(): Node {
    if (this.#accept('!')) return { text: `!${isTrue(this.#unary())}`, kind: 'boolean' }
    if (this.#accept('-') === undefined) return this.#suffixes(this.#primary())
    const { text, kind } = this.#primary()
    if (!/^\d/.test(text)) throw new UnknownRuby()
    return { text: `-${text}`, kind }
  }

  #primary(): Node {
    const token = this.#tokens[this.#at++] ?? ''
    if (token === '(') {
      const node = this.#rescued()
      this.#expect(')')
      return node
    }
    if (/^["']/.test(token)) {
      const literal = textIn(token)
      return { text: textLiteral(literal), kind: 'text', literal }
    }
    if (/^\d+$/.test(token)) return { text: token, kind: 'integer' }
    if (/^\d/.test(token)) return { text: token, kind: 'float' }
    if (/^\/./.test(token)) return { text: '', kind: 'any', regex: token }
    if (token === 'nil') return { text: 'null', kind: 'any' }
    if (token === 'true' || token === 'false') return { text: token, kind: 'boolean' }
    if (token === 'record') return { text: '.', kind: 'any', path: [] }
    if (token === 'time') return this.#time()
    if (token === 'Time') {
      this.#expect('.')
      if (this.#accept('now') !== undefined) {
        const made = this.#time()
        return { ...made, text: made.text.replaceAll('timestamp(.timestamp) ?? now()', 'now()') }
      }
      for (const part of ['at', '(', 'time', ')']) this.#expect(part)
      return this.#time()
    }
    if (Object.hasOwn(classTests, token)) return { text: '', kind: 'any', className: token }
    const expression = this.#known(token)
    if (expression === undefined) throw new UnknownRuby()
    return { text: expression, kind: token === 'tag_parts' ? 'list' : 'any' }
  }

  #suffixes(start: Node): Node {
    let node = start
    for (;;) {
      if (this.#accept('[')) node = this.#indexed(node)
      else if (this.#accept('.')) node = this.#called(node, this.#tokens[this.#at++] ?? '')
      else if (this.#accept('&.')) node = this.#unlessNull(node)
      else return node
    }
  }

  /** A member, a part of a text or a list, or a group of a match; the bracket has been read. */
  #indexed(node: Node): Node {
    const first = this.#choice()
    if (node.match !== undefined) {
      this.#expect(']')
      this.#failIf(`!${node.text}`)
      return groupIn(node.match.of, node.match.regex, first)
    }
    if (first.regex !== undefined) {
      const group = this.#accept(',') === undefined ? undefined : this.#choice()
      this.#expect(']')
      return groupIn(this.#textOf(node), first.regex, group)
    }
    if (node.kind === 'any' && (node.path === undefined || node.path.length > 0)) this.#failIf(`${node.text} == null`)
    const sign = this.#accept('..', '...', ',')
    const last = sign === undefined || this.#tokens[this.#at] === ']' ? undefined : wholeNumber(this.#choice())
    this.#expect(']')
    if (sign !== undefined) return this.#part(node, wholeNumber(first), endOf(wholeNumber(first), sign, last))
    if (first.kind !== 'integer' || node.kind === 'list' || !/^-?\d+$/.test(first.text)) return at(node, first)
    const letter = letterOf(asText(node), wholeNumber(first))
    if (node.kind === 'text') return letter
    return this.#kept(`if is_string(${node.text}) { ${letter.text} } else { ${at(node, first).text} }`, 'any')
  }

  #part(node: Node, start: number, end: End): Node {
    const part = partOfText(asText(node), start, end)
    if (node.kind === 'text') return part
    const list = `slice(${node.text}, ${start}${listEnd(start, end)}) ?? null`
    if (node.kind === 'list') return { text: `(${list})`, kind: 'any' }
    return this.#kept(
      `if is_string(${node.text}) { ${part.text} } else if is_array(${node.text}) { ${list} } else { null }`,
      'any',
    )
  }

  /** `a&.b`: no call on nil. */
  #unlessNull(node: Node): Node {
    const called = this.#scoped(() => this.#called(node, this.#tokens[this.#at++] ?? ''))
    return called.path === undefined
      ? this.#kept(`if ${node.text} != null { ${called.text} } else { null }`, 'any')
      : called
  }

  #kept(expression: string, kind: Node['kind']): Node {
    const variable = `${this.#name}_${this.#kepts++}`
    this.before.push(`${variable} = ${expression}`)
    return { text: variable, kind }
  }

  /** A call on the time of the event. As in a container, the zone is UTC. */
  #time(): Node {
    let isUtc = false
    for (;;) {
      this.#expect('.')
      const method = this.#tokens[this.#at++] ?? ''
      const words = this.#words()
      if (['utc', 'getutc', 'gmtime', 'localtime', 'getlocal'].includes(method) && words.length === 0) {
        isUtc = !method.endsWith('local') && method !== 'localtime'
        continue
      }
      const made = timeCall(method, words, isUtc)
      if (made === undefined) throw new UnknownRuby()
      return made
    }
  }

  #words(): readonly Node[] {
    const words: Node[] = []
    if (this.#accept('(') === undefined) return words
    while (this.#accept(')') === undefined) {
      words.push(this.#choice())
      this.#accept(',')
      if (this.#at >= this.#tokens.length) throw new UnknownRuby()
    }
    return words
  }

  #called(node: Node, method: string): Node {
    const words = this.#words()
    if (method === 'dig') return words.reduce(at, node)
    if (method === 'fetch' && words.length === 1 && words[0] !== undefined && node.path !== undefined)
      this.#failIf(`!exists(${at(node, words[0]).text})`)
    if (ofTexts.has(method)) return this.#made(this.#textOf(node), method, words)
    const isNull = node.kind === 'any' && (node.path === undefined || node.path.length > 0)
    if (isNull && !ofNil.has(method)) this.#failIf(`${node.text} == null`)
    return this.#made(node, method, words)
  }

  #made(node: Node, method: string, words: readonly Node[]): Node {
    const make = Object.hasOwn(methods, method) ? methods[method] : undefined
    const made = make?.(node, words, (expression, kind) => this.#kept(expression, kind))
    if (made === undefined) throw new UnknownRuby()
    return made
  }
}

/** Methods that only texts have. */
const ofTexts: ReadonlySet<string> = new Set(
  'downcase upcase strip chomp lstrip rstrip start_with? end_with? match? match gsub sub split bytesize'.split(' '),
)
/** Methods that nil has, too. */
const ofNil: ReadonlySet<string> = new Set(['to_s', 'to_i', 'to_f', 'to_json', 'nil?', 'is_a?', 'kind_of?', 'dig'])

/** Tests of the class of a value. */
const classTests: Readonly<Record<string, string>> = {
  String: 'is_string',
  Array: 'is_array',
  Hash: 'is_object',
  Integer: 'is_integer',
  Float: 'is_float',
  NilClass: 'is_null',
}

/** Signs behind a backslash between double quotes. Before any other sign, a backslash means nothing. */
const signs: Readonly<Record<string, string>> = {
  n: '\n',
  t: '\t',
  r: '\r',
  s: ' ',
  e: '\x1b',
  a: '\x07',
  b: '\b',
  f: '\f',
  v: '\v',
  '0': '\0',
}

/** The text between quotes. */
function textIn(token: string): string {
  const inner = token.slice(1, -1)
  if (token.startsWith("'")) return inner.replace(/\\(['\\])/g, '$1')
  const escapes = /\\(?:u\{([\da-fA-F]+)\}|u([\da-fA-F]{4})|x([\da-fA-F]{1,2})|(.))/gs
  return inner.replace(escapes, (_, braced?: string, four?: string, two?: string, sign = '') => {
    const code = braced ?? four ?? two
    return code === undefined ? (signs[sign] ?? sign) : String.fromCodePoint(Number.parseInt(code, 16))
  })
}

/** A member by name or index. */
function at(node: Node, key: Node): Node {
  if (node.path !== undefined && key.kind === 'text') {
    const path = [...node.path, literalOf(key)]
    return { text: fieldLiteral(path), kind: 'any', path }
  }
  if (key.kind === 'integer') return { text: `(get(${node.text}, [${key.text}]) ?? null)`, kind: 'any' }
  throw new UnknownRuby()
}

/** Two numbers give a number, and two texts a text. The result of other values is unknown. */
function kindOfResult(left: Node, right: Node, sign: string): Node['kind'] {
  if (isNumber(left) && isNumber(right)) return left.kind === right.kind ? left.kind : 'float'
  return left.kind === 'text' && right.kind === 'text' && sign === '+' ? 'text' : 'any'
}

const text = (value: string): Node => ({ text: value, kind: 'text' })
const test = (value: string): Node => ({ text: value, kind: 'boolean' })

function replaced(node: Node, [from, to]: readonly Node[], count: string): Node | undefined {
  if (from === undefined || to?.kind !== 'text') return undefined
  const regex = /^\/(.*)\/([imx]*)$/s.exec(from.regex ?? '')
  if (regex === null)
    return from.kind === 'text' ? text(`replace(${asText(node)}, ${from.text}, ${to.text}${count})`) : undefined
  const by = to.text.replaceAll('$', '$$$$').replace(/\\\\(\d)/g, '$${$1}')
  return text(`replace(${asText(node)}, r'${regexFlags(regex[2] ?? '')}${rubyRegex(regex[1] ?? '')}', ${by}${count})`)
}

function anyOf(name: string, node: Node, words: readonly Node[]): Node | undefined {
  if (words.length === 0 || words.some(({ kind }) => kind !== 'text')) return undefined
  const tests = words.map(({ text: word }) => `${name}(${asText(node)}, ${word})`)
  return test(tests.length === 1 ? (tests[0] ?? '') : `(${tests.join(' || ')})`)
}

/** Ruby leaves out empty texts at the end, and splits at white space where it is given a space or nothing. */
function splitBy(node: Node, [word, ...more]: readonly Node[]): Node | undefined {
  if (more.length > 0 || (word !== undefined && word.kind !== 'text')) return undefined
  const separator = word === undefined ? ' ' : literalOf(word)
  if (separator === '') return undefined
  if (separator === ' ') return { text: `split(strip_whitespace(${asText(node)}), r'\\s+')`, kind: 'list' }
  const ends = `r'(?:${separator.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&').replaceAll("'", "\\'")})+$'`
  return { text: `split(replace(${asText(node)}, ${ends}, ""), ${word?.text})`, kind: 'list' }
}

/** Stores the value of an expression in a variable. */
type Keep = (expression: string, kind: Node['kind']) => Node

/** The value of an expression for a text, a list or an object; null for another value, for which Ruby has no such method. */
function byKind(
  node: Node,
  keep: Keep,
  kind: Node['kind'],
  of: { readonly text: (value: string) => string; readonly list?: string; readonly object?: string },
): Node {
  if (node.kind === 'text') return { text: of.text(node.text), kind }
  const cases = [`if is_string(${node.text}) { ${of.text(`string!(${node.text})`)} }`]
  if (of.list !== undefined) cases.push(`if is_array(${node.text}) { ${of.list} }`)
  if (of.object !== undefined) cases.push(`if is_object(${node.text}) { ${of.object} }`)
  return keep(`${cases.join(' else ')} else { null }`, 'any')
}

function lengthOf(node: Node, keep: Keep): Node {
  if (node.kind === 'list') return { text: `length(${node.text})`, kind: 'integer' }
  return byKind(node, keep, 'integer', {
    text: (value) => `strlen(${value})`,
    list: `length(array!(${node.text}))`,
    object: `length(object!(${node.text}))`,
  })
}

function includes(node: Node, [word]: readonly Node[], keep: Keep): Node | undefined {
  if (word?.kind !== 'text') return undefined
  if (node.kind === 'list') return test(`includes(${node.text}, ${word.text})`)
  return byKind(node, keep, 'boolean', {
    text: (value) => `contains(${value}, ${word.text})`,
    list: `includes(array!(${node.text}), ${word.text})`,
    object: `includes(keys(object!(${node.text})), ${word.text})`,
  })
}

const whole = (name: string, node: Node): Node | undefined => {
  if (node.kind === 'integer') return node
  return node.kind === 'float' ? { text: `to_int(${name}(${node.text}))`, kind: 'integer' } : undefined
}

const methods: Readonly<Record<string, (node: Node, words: readonly Node[], keep: Keep) => Node | undefined>> = {
  to_s: (node) => text(asText(node)),
  to_i: (node) => {
    if (node.kind === 'integer') return node
    return { text: node.kind === 'float' ? `to_int(${node.text})` : integerIn(asText(node)), kind: 'integer' }
  },
  to_f: (node) => {
    if (node.kind === 'float') return node
    return { text: node.kind === 'integer' ? `to_float(${node.text})` : floatIn(asText(node)), kind: 'float' }
  },
  round: (node, words) => {
    const [digits] = words
    if (digits === undefined) return whole('round', node)
    if (node.kind !== 'float' || wholeNumber(digits) <= 0) return undefined
    return { text: `round(${node.text}, precision: ${digits.text})`, kind: 'float' }
  },
  floor: (node, words) => (words.length === 0 ? whole('floor', node) : undefined),
  ceil: (node, words) => (words.length === 0 ? whole('ceil', node) : undefined),
  // The record in Fluentd does not contain the time.
  to_json: (node) =>
    text(
      node.text === '.'
        ? 'encode_json(filter(.) -> |key, _value| { key != "timestamp" })'
        : `encode_json(${node.text})`,
    ),
  downcase: (node) => text(`downcase(${asText(node)})`),
  upcase: (node) => text(`upcase(${asText(node)})`),
  strip: (node) => text(`strip_whitespace(${asText(node)})`),
  chomp: (node) => text(`replace(${asText(node)}, r'\\r?\\n$', "")`),
  lstrip: (node) => text(`replace(${asText(node)}, r'^\\s+', "")`),
  rstrip: (node) => text(`replace(${asText(node)}, r'\\s+$', "")`),
  'is_a?': (node, [name]) =>
    name?.className === undefined ? undefined : test(`${classTests[name.className]}(${node.text})`),
  'kind_of?': (node, words, keep) => methods['is_a?']?.(node, words, keep),
  join: (node, [between]) =>
    between !== undefined && between.kind !== 'text'
      ? undefined
      : { text: `(join(array(${node.text}) ?? [], ${between?.text ?? '""'}) ?? null)`, kind: 'any' },
  'nil?': (node) => test(`(${node.text} == null)`),
  'empty?': (node) => test(`(${node.text} == "" || ${node.text} == {} || ${node.text} == [])`),
  'include?': includes,
  'start_with?': (node, words) => anyOf('starts_with', node, words),
  'end_with?': (node, words) => anyOf('ends_with', node, words),
  'match?': (node, [regex]) => (regex?.regex === undefined ? undefined : test(found(node, regex.regex))),
  'key?': (node, [word]) =>
    node.path !== undefined && word?.kind === 'text' ? test(`exists(${at(node, word).text})`) : undefined,
  'has_key?': (node, words, keep) => methods['key?']?.(node, words, keep),
  match: (node, [regex]) =>
    regex?.regex === undefined
      ? undefined
      : { text: found(node, regex.regex), kind: 'boolean', isPlace: true, match: { of: node, regex: regex.regex } },
  fetch: (node, [key, other], keep) => {
    if (key?.kind !== 'text' || node.path === undefined) return undefined
    const member = at(node, key)
    return other === undefined
      ? member
      : keep(`if exists(${member.text}) { ${member.text} } else { ${other.text} }`, 'any')
  },
  length: (node, _words, keep) => lengthOf(node, keep),
  size: (node, _words, keep) => lengthOf(node, keep),
  bytesize: (node, _words, keep) => byKind(node, keep, 'integer', { text: (value) => `length(${value})` }),
  gsub: (node, words) => replaced(node, words, ''),
  sub: (node, words) => replaced(node, words, ', count: 1'),
  split: (node, words) => splitBy(node, words),
  first: (node) => (node.kind === 'list' ? { text: `(get(${node.text}, [0]) ?? null)`, kind: 'any' } : undefined),
  last: (node) => (node.kind === 'list' ? { text: `(get(${node.text}, [-1]) ?? null)`, kind: 'any' } : undefined),
}
