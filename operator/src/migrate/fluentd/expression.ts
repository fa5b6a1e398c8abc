// Converts the Ruby of `record_transformer` to remap expressions: operators, the ternary operator, and string methods. Each node has the
// kind of its value, because remap requires error handling exactly for operations that can fail.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { pattern } from '../fluent-bit/text.ts'

interface Node {
  readonly text: string
  readonly kind: 'text' | 'integer' | 'boolean' | 'list' | 'any'
  /** The path, for a field of the record. */
  readonly path?: readonly string[]
  /** The source, for a regular expression between slashes. */
  readonly regex?: string
  /** Whether its value in Ruby is the place of a match, which is known as a condition alone. */
  readonly isPlace?: true
}

/** The number at the beginning of a text, as Ruby reads it; zero without one. */
const numberIn = (text: string, digits: string) =>
  `get(parse_regex(${text}, r'^\\s*(?P<number>[-+]?${digits})') ?? {}, ["number"]) ?? null`
export const integerIn = (text: string) => `(to_int(${numberIn(text, '\\d+')}) ?? 0)`
export const floatIn = (text: string) => `(to_float(${numberIn(text, '\\d+(?:\\.\\d+)?(?:[eE][-+]?\\d+)?')}) ?? 0.0)`

export interface RubyValue {
  readonly text: string
  /** Statements that must run before the expression. */
  readonly before: readonly string[]
  /** Whether the value is always a text. */
  readonly isText: boolean
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
    return node.regex === undefined && node.isPlace !== true
      ? { text: node.text, before: reader.before, isText: node.kind === 'text' }
      : undefined
  } catch (error) {
    if (error instanceof UnknownRuby) return undefined
    throw error
  }
}

class UnknownRuby extends Error {}

const tokenPattern =
  /\s+|"(?:[^"\\#]|\\.|#(?!\{))*"|'(?:[^'\\]|\\.)*'|\d+(?:\.\d+)?|[A-Za-z_]\w*[?!]?|&\.|=~|!~|[=!<>]=|\|\||&&|[-+*<>!?:.,()[\]]|\/(?:[^/\\]|\\.)*\/[imx]*/gsy
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

const asText = ({ text, kind }: Node) => {
  if (kind === 'text') return text
  // Remap rejects error handling for an operation that cannot fail.
  return kind === 'integer' ? `to_string(${text})` : `(to_string(${text}) ?? "")`
}
const isTrue = ({ text, kind }: Node) => (kind === 'boolean' ? text : `(${text} != null && ${text} != false)`)
const found = (node: Node, regex: string) => `is_object(parse_grok(${asText(node)}, ${pattern(regex)}) ?? null)`

class Reader {
  readonly before: string[] = []
  readonly #tokens: readonly string[]
  readonly #known: (word: string) => string | undefined
  readonly #name: string
  #at = 0

  constructor(tokens: readonly string[], known: (word: string) => string | undefined, name: string) {
    this.#tokens = tokens
    this.#known = known
    this.#name = name
  }

  whole(): Node {
    const node = this.#choice()
    if (this.#at < this.#tokens.length) throw new UnknownRuby()
    return node
  }

  #take(...wanted: readonly string[]): string | undefined {
    const token = this.#tokens[this.#at]
    if (token === undefined || !wanted.includes(token)) return undefined
    this.#at++
    return token
  }

  #need(token: string): void {
    if (this.#take(token) === undefined) throw new UnknownRuby()
  }

  #choice(): Node {
    const test = this.#or()
    if (this.#take('?') === undefined) return test
    const yes = this.#choice()
    this.#need(':')
    const no = this.#choice()
    const kind = yes.kind === no.kind ? yes.kind : 'any'
    return this.#kept(`if ${isTrue(test)} { ${yes.text} } else { ${no.text} }`, kind)
  }

  #or(): Node {
    let left = this.#and()
    while (this.#take('||')) {
      const right = this.#and()
      if (left.isPlace || right.isPlace) throw new UnknownRuby()
      const isTest = left.kind === 'boolean' && right.kind === 'boolean'
      left = { text: `(${left.text} || ${right.text})`, kind: isTest ? 'boolean' : 'any' }
    }
    return left
  }

  #and(): Node {
    let left = this.#comparison()
    while (this.#take('&&')) left = { text: `(${isTrue(left)} && ${isTrue(this.#comparison())})`, kind: 'boolean' }
    return left
  }

  #comparison(): Node {
    const left = this.#sum()
    const sign = this.#take('==', '!=', '=~', '!~', '<', '>', '<=', '>=')
    if (sign === undefined) return left
    const right = this.#sum()
    if (sign === '=~' || sign === '!~') {
      if (right.regex === undefined) throw new UnknownRuby()
      const text = found(left, right.regex)
      return sign === '!~' ? { text: `!${text}`, kind: 'boolean' } : { text, kind: 'boolean', isPlace: true }
    }
    const isSafe = sign === '==' || sign === '!=' || (left.kind === 'integer' && right.kind === 'integer')
    const whole = `(${left.text} ${sign} ${right.text})`
    return { text: isSafe ? whole : `(${whole} ?? false)`, kind: 'boolean' }
  }

  #sum(): Node {
    return this.#operation(['+', '-'], () => this.#operation(['*', '/'], () => this.#unary()))
  }

  /** Operators for numbers and texts, which are the same in both languages. */
  #operation(signs: readonly string[], operand: () => Node): Node {
    let left = operand()
    for (let sign = this.#take(...signs); sign !== undefined; sign = this.#take(...signs)) {
      const right = operand()
      if (sign === '/') {
        left = this.#divided(left, right)
        continue
      }
      const isSame = left.kind === right.kind && (left.kind === 'integer' || (left.kind === 'text' && sign === '+'))
      const text = `${left.text} ${sign} ${right.text}`
      left = isSame ? { text: `(${text})`, kind: left.kind } : { text: `((${text}) ?? null)`, kind: 'any' }
    }
    return left
  }

  /** An integer divided by another one is the integer below. */
  #divided(left: Node, right: Node): Node {
    const quotient = this.#kept(`(${left.text} / ${right.text}) ?? null`, 'any')
    const areIntegers = `is_integer(${left.text}) && is_integer(${right.text}) && is_float(${quotient.text})`
    this.before.push(`if ${areIntegers} { ${quotient.text} = to_int(floor(float!(${quotient.text}))) }`)
    return quotient
  }

  #unary(): Node {
    return this.#take('!') ? { text: `!${isTrue(this.#unary())}`, kind: 'boolean' } : this.#behind(this.#primary())
  }

  #primary(): Node {
    const token = this.#tokens[this.#at++] ?? ''
    if (token === '(') {
      const node = this.#choice()
      this.#need(')')
      return node
    }
    if (/^["']/.test(token)) return { text: textLiteral(textOf(token)), kind: 'text' }
    if (/^\d+$/.test(token)) return { text: token, kind: 'integer' }
    if (/^\d/.test(token)) return { text: token, kind: 'any' }
    if (/^\/./.test(token)) return { text: '', kind: 'any', regex: token }
    if (token === 'nil') return { text: 'null', kind: 'any' }
    if (token === 'true' || token === 'false') return { text: token, kind: 'boolean' }
    if (token === 'record') return { text: '.', kind: 'any', path: [] }
    const expression = this.#known(token)
    if (expression === undefined) throw new UnknownRuby()
    return { text: expression, kind: token === 'tag_parts' ? 'list' : 'any' }
  }

  #behind(start: Node): Node {
    let node = start
    for (;;) {
      if (this.#take('[')) {
        const key = this.#choice()
        this.#need(']')
        node = at(node, key)
      } else if (this.#take('.')) node = this.#called(node, this.#tokens[this.#at++] ?? '')
      else if (this.#take('&.')) node = this.#unlessNull(node)
      else return node
    }
  }

  /** `a&.b`: no call on nil. */
  #unlessNull(node: Node): Node {
    const called = this.#called(node, this.#tokens[this.#at++] ?? '')
    return called.path === undefined
      ? this.#kept(`if ${node.text} != null { ${called.text} } else { null }`, 'any')
      : called
  }

  #kept(expression: string, kind: Node['kind']): Node {
    const variable = `${this.#name}_${this.before.length}`
    this.before.push(`${variable} = ${expression}`)
    return { text: variable, kind }
  }

  #called(node: Node, method: string): Node {
    const words: Node[] = []
    if (this.#take('(')) {
      while (this.#take(')') === undefined) {
        words.push(this.#choice())
        this.#take(',')
        if (this.#at >= this.#tokens.length) throw new UnknownRuby()
      }
    }
    if (method === 'dig') return words.reduce(at, node)
    const make = Object.hasOwn(methods, method) ? methods[method] : undefined
    const made = make?.(node, words)
    if (made === undefined) throw new UnknownRuby()
    return made
  }
}

const textOf = (token: string) =>
  token.startsWith("'") ? token.slice(1, -1).replace(/\\(['\\])/g, '$1') : (JSON.parse(token) as string)

const rubyEscapes: Readonly<Record<string, string>> = { e: '\\x1b', h: '[0-9a-fA-F]', Z: '\\n?\\z' }

/** A regular expression of Ruby in a literal. */
export const rubyRegex = (text: string) =>
  text.replace(/\\(.)/gs, (whole, letter: string) => rubyEscapes[letter] ?? whole).replaceAll("'", "\\'")

/** The text of a literal. */
const plainText = ({ text }: Node) => JSON.parse(text.replace(/\\u\{[^}]*\}|\\[{}]/g, '')) as string

/** A member by name or index. */
function at(node: Node, key: Node): Node {
  if (node.path !== undefined && key.kind === 'text') {
    const path = [...node.path, plainText(key)]
    return { text: fieldLiteral(path), kind: 'any', path }
  }
  if (key.kind === 'integer') return { text: `(get(${node.text}, [${key.text}]) ?? null)`, kind: 'any' }
  throw new UnknownRuby()
}

const text = (value: string): Node => ({ text: value, kind: 'text' })
const test = (value: string): Node => ({ text: value, kind: 'boolean' })

function replaced(node: Node, [from, to]: readonly Node[], count: string): Node | undefined {
  if (from === undefined || to?.kind !== 'text') return undefined
  const regex = /^\/(.*)\/([imx]*)$/s.exec(from.regex ?? '')
  if (regex === null)
    return from.kind === 'text' ? text(`replace(${asText(node)}, ${from.text}, ${to.text}${count})`) : undefined
  // In Ruby, the ends of lines within a text count.
  const flags = `(?m${(regex[2] ?? '').replace('m', 's')})`
  const by = to.text.replaceAll('$', '$$$$').replace(/\\\\(\d)/g, '$${$1}')
  return text(`replace(${asText(node)}, r'${flags}${rubyRegex(regex[1] ?? '')}', ${by}${count})`)
}

function anyOf(name: string, node: Node, words: readonly Node[]): Node | undefined {
  if (words.length === 0 || words.some(({ kind }) => kind !== 'text')) return undefined
  const tests = words.map(({ text: word }) => `${name}(${asText(node)}, ${word})`)
  return test(tests.length === 1 ? (tests[0] ?? '') : `(${tests.join(' || ')})`)
}

/** Ruby leaves out empty texts at the end, and splits at white space where it is given a space or nothing. */
function splitBy(node: Node, [word, ...more]: readonly Node[]): Node | undefined {
  if (more.length > 0 || (word !== undefined && word.kind !== 'text')) return undefined
  const separator = word === undefined ? ' ' : plainText(word)
  if (separator === '') return undefined
  if (separator === ' ') return { text: `split(strip_whitespace(${asText(node)}), r'\\s+')`, kind: 'list' }
  const ends = `r'(?:${separator.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&').replaceAll("'", "\\'")})+$'`
  return { text: `split(replace(${asText(node)}, ${ends}, ""), ${word?.text})`, kind: 'list' }
}

const methods: Readonly<Record<string, (node: Node, words: readonly Node[]) => Node | undefined>> = {
  to_s: (node) => text(asText(node)),
  to_i: (node) => (node.kind === 'integer' ? node : { text: integerIn(asText(node)), kind: 'integer' }),
  to_json: (node) => text(`encode_json(${node.text})`),
  downcase: (node) => text(`downcase(${asText(node)})`),
  upcase: (node) => text(`upcase(${asText(node)})`),
  strip: (node) => text(`strip_whitespace(${asText(node)})`),
  chomp: (node) => text(`replace(${asText(node)}, r'\\r?\\n$', "")`),
  'nil?': (node) => test(`(${node.text} == null)`),
  'empty?': (node) => test(`(${node.text} == "" || ${node.text} == {} || ${node.text} == [])`),
  'include?': (node, [word]) => (word?.kind === 'text' ? test(`contains(${asText(node)}, ${word.text})`) : undefined),
  'start_with?': (node, words) => anyOf('starts_with', node, words),
  'end_with?': (node, words) => anyOf('ends_with', node, words),
  'match?': (node, [regex]) => (regex?.regex === undefined ? undefined : test(found(node, regex.regex))),
  'key?': (node, [word]) =>
    node.path !== undefined && word?.kind === 'text' ? test(`exists(${at(node, word).text})`) : undefined,
  'has_key?': (node, words) => methods['key?']?.(node, words),
  length: (node) => (node.kind === 'text' ? { text: `strlen(${node.text})`, kind: 'integer' } : undefined),
  gsub: (node, words) => replaced(node, words, ''),
  sub: (node, words) => replaced(node, words, ', count: 1'),
  split: (node, words) => splitBy(node, words),
  first: (node) => (node.kind === 'list' ? { text: `(get(${node.text}, [0]) ?? null)`, kind: 'any' } : undefined),
  last: (node) => (node.kind === 'list' ? { text: `(get(${node.text}, [-1]) ?? null)`, kind: 'any' } : undefined),
}
