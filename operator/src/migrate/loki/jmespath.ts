// Compiles JMESPath expressions of the stage `json` to lines of a program. Lines after an operation that can fail run only if it has
// succeeded, as the old stage leaves the value alone if an expression fails.

import { textLiteral } from '@penstock/agent/config'
import { matchesIn } from '../matches.ts'

type Node =
  | { readonly type: 'current' }
  | { readonly type: 'field'; readonly name: string }
  | { readonly type: 'index'; readonly index: number }
  | { readonly type: 'literal'; readonly value: unknown }
  | { readonly type: 'below' | 'pipe' | 'or' | 'and'; readonly left: Node; readonly right: Node }
  | { readonly type: 'not'; readonly value: Node }
  | { readonly type: 'compare'; readonly sign: string; readonly left: Node; readonly right: Node }
  | { readonly type: 'call'; readonly name: string; readonly values: readonly Node[] }
  | { readonly type: 'items' | 'members' | 'flat'; readonly of: Node; readonly each: Node }
  | { readonly type: 'filter'; readonly of: Node; readonly test: Node; readonly each: Node }
  | { readonly type: 'list'; readonly items: readonly Node[] }
  | { readonly type: 'object'; readonly members: readonly (readonly [string, Node])[] }

interface Token {
  readonly kind: 'name' | 'quoted' | 'number' | 'literal' | 'sign' | 'end'
  readonly text: string
  readonly value?: unknown
}

/** The lines and the expression for the result; or why there is none. */
export type Compiled =
  | { readonly ok: true; readonly lines: readonly string[] }
  | { readonly ok: false; readonly reason: string }

/**
 * @param from the variable with the parsed value
 * @param store lines that use the result
 */
export function compileJmesPath(
  expression: string,
  from: string,
  store: (result: string) => readonly string[],
): Compiled {
  try {
    const writer = new Writer()
    const result = writer.value(new Parser(tokensOf(expression)).whole(), from)
    writer.add(...store(result))
    return { ok: true, lines: writer.text() }
  } catch (error) {
    if (!(error instanceof Unknown)) throw error
    return { ok: false, reason: error.message }
  }
}

/** An expression that is not valid or has no counterpart. */
class Unknown extends Error {}

const pattern =
  /\s+|([A-Za-z_]\w*)|"((?:[^"\\]|\\.)*)"|(-?\d+)|'((?:[^'\\]|\\.)*)'|`((?:[^`\\]|\\.)*)`|(\[\?|\[\]|\|\||&&|==|!=|<=|>=|[|.*@[\]{}(),:<>!&])/y

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = []
  const refused = (rest: string) => new Unknown(`\`${rest.slice(0, 10)}\` is not valid JMESPath`)
  for (const found of matchesIn(text, pattern, refused)) {
    const [, name, quoted, number, raw, json, sign] = found
    if (name !== undefined) tokens.push({ kind: 'name', text: name })
    else if (quoted !== undefined) tokens.push({ kind: 'quoted', text: String(parsed(`"${quoted}"`) ?? quoted) })
    else if (number !== undefined) tokens.push({ kind: 'number', text: number })
    else if (raw !== undefined) tokens.push({ kind: 'literal', text: raw, value: raw.replaceAll("\\'", "'") })
    else if (json !== undefined) {
      const bare = json.replaceAll('\\`', '`').trim()
      const value = parsed(bare)
      // An older form of the language has texts without quotes.
      tokens.push({ kind: 'literal', text: json, value: value === undefined ? bare : value })
    } else if (sign !== undefined) tokens.push({ kind: 'sign', text: sign })
  }
  tokens.push({ kind: 'end', text: '' })
  return tokens
}

/** The binding strength of a sign after a value. */
const strengths: Readonly<Record<string, number>> = {
  '|': 1,
  '||': 2,
  '&&': 3,
  '==': 5,
  '!=': 5,
  '<': 5,
  '<=': 5,
  '>': 5,
  '>=': 5,
  '[]': 9,
  '*': 20,
  '[?': 21,
  '.': 40,
  '!': 45,
  '{': 50,
  '[': 55,
  '(': 60,
}
/** A sign that binds weaker ends a projection. */
const endsProjection = 10
const maxDepth = 50

const current: Node = { type: 'current' }

class Parser {
  readonly #tokens: readonly Token[]
  #at = 0
  #depth = 0

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens
  }

  whole(): Node {
    const node = this.#parse(0)
    if (this.#peek().kind !== 'end') this.#refuse()
    return node
  }

  #peek(ahead = 0): Token {
    return this.#tokens[Math.min(this.#at + ahead, this.#tokens.length - 1)] as Token
  }

  #is(...signs: readonly string[]): boolean {
    const { kind, text } = this.#peek()
    return kind === 'sign' && signs.includes(text)
  }

  #accept(sign: string): boolean {
    if (!this.#is(sign)) return false
    this.#at++
    return true
  }

  #expect(sign: string): void {
    if (!this.#accept(sign)) this.#refuse()
  }

  #refuse(): never {
    throw new Unknown(`\`${this.#peek().text || 'the end'}\` is not expected there`)
  }

  #strength(): number {
    const { kind, text } = this.#peek()
    return kind === 'sign' ? (strengths[text] ?? 0) : 0
  }

  #parse(strength: number): Node {
    if (++this.#depth > maxDepth) throw new Unknown('the expression is nested too deep')
    let left = this.#first()
    while (strength < this.#strength()) left = this.#after(left)
    this.#depth--
    return left
  }

  #first(): Node {
    const token = this.#peek()
    this.#at++
    if (token.kind === 'literal') return { type: 'literal', value: token.value }
    if (token.kind === 'name' || token.kind === 'quoted') return { type: 'field', name: token.text }
    if (token.kind === 'sign') {
      switch (token.text) {
        case '@':
          return current
        case '*':
          return { type: 'members', of: current, each: this.#each('*') }
        case '[?':
          return this.#filter(current)
        case '[]':
          return { type: 'flat', of: current, each: this.#each('[]') }
        case '{':
          return this.#object()
        case '[':
          return this.#indexOf(current) ?? this.#list()
        case '!':
          return { type: 'not', value: this.#parse(strengths['!'] as number) }
        case '(': {
          const inner = this.#parse(0)
          this.#expect(')')
          return inner
        }
      }
    }
    this.#at--
    return this.#refuse()
  }

  #after(left: Node): Node {
    const { text } = this.#peek()
    this.#at++
    switch (text) {
      case '.':
        if (this.#accept('*')) return { type: 'members', of: left, each: this.#each('.') }
        return { type: 'below', left, right: this.#member('.') }
      case '|':
        return { type: 'pipe', left, right: this.#parse(strengths['|'] as number) }
      case '||':
        return { type: 'or', left, right: this.#parse(strengths['||'] as number) }
      case '&&':
        return { type: 'and', left, right: this.#parse(strengths['&&'] as number) }
      case '[?':
        return this.#filter(left)
      case '[]':
        return { type: 'flat', of: left, each: this.#each('[]') }
      case '[': {
        const found = this.#indexOf(left)
        return found ?? this.#refuse()
      }
      case '(': {
        if (left.type !== 'field') return this.#refuse()
        return { type: 'call', name: left.name, values: this.#until(')') }
      }
      default:
        if (strengths[text] !== 5) {
          this.#at--
          return this.#refuse()
        }
        return { type: 'compare', sign: text, left, right: this.#parse(5) }
    }
  }

  /** An index or a projection after `[`; undefined if the brackets contain something else. */
  #indexOf(of: Node): Node | undefined {
    const { kind, text } = this.#peek()
    if (kind === 'number' && this.#peek(1).text === ']') {
      this.#at += 2
      const index: Node = { type: 'index', index: Number(text) }
      return of.type === 'current' ? index : { type: 'below', left: of, right: index }
    }
    if (this.#is('*') && this.#peek(1).text === ']') {
      this.#at += 2
      return { type: 'items', of, each: this.#each('*') }
    }
    if (kind === 'number' || this.#is(':')) throw new Unknown('slices have no counterpart')
    return undefined
  }

  /** The rest of an expression after a projection, which applies to each item. */
  #each(sign: string): Node {
    const strength = strengths[sign] as number
    if (this.#strength() < endsProjection) return current
    if (this.#is('[', '[?')) return this.#parse(strength)
    if (this.#accept('.')) return this.#member(sign)
    return this.#refuse()
  }

  #member(sign: string): Node {
    const { kind } = this.#peek()
    if (kind === 'name' || kind === 'quoted' || this.#is('*')) return this.#parse(strengths[sign] as number)
    if (this.#accept('[')) return this.#list()
    if (this.#accept('{')) return this.#object()
    return this.#refuse()
  }

  #filter(of: Node): Node {
    const test = this.#parse(0)
    this.#expect(']')
    return { type: 'filter', of, test, each: this.#is('[]') ? current : this.#each('[?') }
  }

  #until(end: string): readonly Node[] {
    const items: Node[] = []
    while (!this.#accept(end)) {
      items.push(this.#parse(0))
      if (!this.#is(end)) this.#expect(',')
    }
    return items
  }

  #list(): Node {
    return { type: 'list', items: this.#until(']') }
  }

  #object(): Node {
    const members: (readonly [string, Node])[] = []
    while (!this.#accept('}')) {
      const { kind, text } = this.#peek()
      if (kind !== 'name' && kind !== 'quoted') this.#refuse()
      this.#at++
      this.#expect(':')
      members.push([text, this.#parse(0)])
      if (!this.#is('}')) this.#expect(',')
    }
    return { type: 'object', members }
  }
}

function literal(value: unknown): string {
  if (typeof value === 'string') return textLiteral(value)
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const members = Object.entries(value).map(([name, item]) => `${textLiteral(name)}: ${literal(item)}`)
  return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`
}

/** Null, false and empty values are false. */
const isFalse = (code: string) =>
  `(${[`${code} == null`, `${code} == false`, `${code} == ""`, `${code} == []`, `${code} == {}`].join(' || ')})`
const isNumber = (code: string) => `(is_integer(${code}) || is_float(${code}))`

/** Functions of one value that never fail. */
const total: Readonly<Record<string, (value: string) => string>> = {
  to_string: (value) => `if is_string(${value}) { ${value} } else { encode_json(${value}) }`,
  to_number: (value) =>
    `if ${isNumber(value)} { ${value} } else if is_string(${value}) { parse_float(string!(${value})) ?? null } else { null }`,
  to_array: (value) => `if is_array(${value}) { ${value} } else { [${value}] }`,
  type: (value) =>
    `if is_string(${value}) { "string" } else if ${isNumber(value)} { "number" } else if is_boolean(${value}) { "boolean" } else if is_array(${value}) { "array" } else if is_object(${value}) { "object" } else { "null" }`,
}

/** Functions that fail for values of other kinds: the condition, and the result. */
const partial: Readonly<Record<string, (...values: readonly string[]) => readonly [string, string]>> = {
  length: (of = '') => [
    `is_string(${of}) || is_array(${of}) || is_object(${of})`,
    `strlen(${of}) ?? length(${of}) ?? null`,
  ],
  keys: (of = '') => [`is_object(${of})`, `keys(object!(${of}))`],
  values: (of = '') => [`is_object(${of})`, `values(object!(${of}))`],
  lower: (of = '') => [`is_string(${of})`, `downcase(string!(${of}))`],
  upper: (of = '') => [`is_string(${of})`, `upcase(string!(${of}))`],
  starts_with: (of = '', edge = '') => [
    `is_string(${of}) && is_string(${edge})`,
    `starts_with(string!(${of}), string!(${edge}))`,
  ],
  ends_with: (of = '', edge = '') => [
    `is_string(${of}) && is_string(${edge})`,
    `ends_with(string!(${of}), string!(${edge}))`,
  ],
  contains: (of = '', item = '') => [
    `is_array(${of}) || is_string(${of})`,
    `if is_array(${of}) { includes(array!(${of}), ${item}) } else { is_string(${item}) && contains(string!(${of}), string!(${item})) }`,
  ],
  join: (between = '', of = '') => [
    `is_string(${between}) && is_array(${of}) && length(filter(array!(${of})) -> |_index, item| { !is_string(item) }) == 0`,
    `join!(array!(${of}), string!(${between}))`,
  ],
}
const counts: Readonly<Record<string, number>> = { starts_with: 2, ends_with: 2, contains: 2, join: 2 }

class Writer {
  readonly #lines: string[] = []
  #depth = 0
  #number = 0
  /** Whether the lines are those of a closure, whose failure would be one of the whole expression. */
  #isInside = false

  add(...lines: readonly string[]): void {
    for (const line of lines) this.#lines.push('  '.repeat(this.#depth) + line)
  }

  text(): readonly string[] {
    while (this.#depth > 0) this.#close()
    return this.#lines
  }

  #open(condition: string): void {
    this.add(`if ${condition} {`)
    this.#depth++
  }

  #close(end = '}'): void {
    this.#depth--
    this.add(end)
  }

  /** Stores a value in a variable whose kind the compiler does not know. */
  #keep(code: string): string {
    const name = `found${++this.#number}`
    this.add(`${name} = get({ "value": ${code} }, ["value"]) ?? null`)
    return name
  }

  /** An expression for the value of a node. It cannot fail. */
  value(node: Node, from: string): string {
    switch (node.type) {
      case 'current':
        return from
      case 'field':
        return `${from}.${textLiteral(node.name)}`
      case 'index':
        return `${from}[${node.index}]`
      case 'literal':
        return this.#keep(literal(node.value))
      case 'below':
      case 'pipe':
        return this.value(node.right, this.value(node.left, from))
      case 'or':
      case 'and': {
        const kept = this.#keep(this.value(node.left, from))
        this.#open(node.type === 'or' ? isFalse(kept) : `!${isFalse(kept)}`)
        const depth = this.#depth
        const right = this.value(node.right, from)
        this.add(`${kept} = get({ "value": ${right} }, ["value"]) ?? null`)
        if (this.#depth !== depth) throw new Unknown('a function that can fail is one side of `||` or `&&`')
        this.#close()
        return kept
      }
      case 'not':
        return this.#keep(isFalse(this.#keep(this.value(node.value, from))))
      case 'compare':
        return this.#compared(node.sign, this.#keep(this.value(node.left, from)), this.value(node.right, from))
      case 'call':
        return this.#called(node.name, node.values, from)
      case 'list':
        return this.#unlessNull(from, () => `[${node.items.map((item) => this.value(item, from)).join(', ')}]`)
      case 'object':
        return this.#unlessNull(
          from,
          () =>
            `{ ${node.members.map(([name, item]) => `${textLiteral(name)}: ${this.value(item, from)}`).join(', ')} }`,
        )
      default:
        return this.#projected(node, from)
    }
  }

  #unlessNull(from: string, code: () => string): string {
    const made = code()
    return this.#keep(`({ if ${from} == null { null } else { ${made} } })`)
  }

  #compared(sign: string, left: string, right: string): string {
    if (sign === '==' || sign === '!=') return this.#keep(`(${left} ${sign} ${right})`)
    const other = this.#keep(right)
    return this.#keep(
      `({ if ${isNumber(left)} && ${isNumber(other)} { (${left} ${sign} ${other}) ?? null } else { null } })`,
    )
  }

  #called(name: string, nodes: readonly Node[], from: string): string {
    const values = nodes.map((node) => this.#keep(this.value(node, from)))
    if (name === 'not_null' && values.length > 0) {
      const [first = '', ...rest] = values
      for (const other of rest) this.add(`if ${first} == null { ${first} = ${other} }`)
      return first
    }
    const one = Object.hasOwn(total, name) ? total[name] : undefined
    if (one !== undefined && values.length === 1) return this.#keep(`({ ${one(values[0] ?? '')} })`)
    const some = Object.hasOwn(partial, name) ? partial[name] : undefined
    if (some === undefined) throw new Unknown(`the function \`${name}\` has no counterpart`)
    if (values.length !== (counts[name] ?? 1)) throw new Unknown(`\`${name}\` has another number of arguments`)
    if (this.#isInside) throw new Unknown(`\`${name}\` can fail for one of several items`)
    const [condition, code] = some(...values)
    this.#open(condition)
    return this.#keep(`({ ${code} })`)
  }

  /** The results of an expression for each item that are not null; null if the value has no items. */
  #projected(node: Node & { readonly of: Node; readonly each: Node }, from: string): string {
    const of = this.#keep(this.value(node.of, from))
    const name = `found${++this.#number}`
    this.add(`${name} = null`)
    this.#open(node.type === 'members' ? `is_object(${of})` : `is_array(${of})`)
    const items = node.type === 'members' ? this.#keep(`values(object!(${of}))`) : of
    const list = node.type === 'flat' ? this.#flat(items) : items
    const kept = node.type === 'filter' ? this.#filtered(list, node.test) : list
    const item = `item${++this.#number}`
    this.add(`${name} = map_values(array!(${kept})) -> |${item}| {`)
    this.#closure(() => this.value(node.each, item))
    this.add(`${name} = filter(${name}) -> |_index, ${item}| { ${item} != null }`)
    this.#close()
    return this.#keep(name)
  }

  #flat(items: string): string {
    const flat = `list${++this.#number}`
    const item = `item${++this.#number}`
    this.add(
      `${flat} = []`,
      `for_each(array!(${items})) -> |_index, ${item}| {`,
      `  if is_array(${item}) { ${flat} = append(${flat}, array!(${item})) } else { ${flat} = push(${flat}, ${item}) }`,
      '}',
    )
    return this.#keep(flat)
  }

  #filtered(list: string, test: Node): string {
    const name = `found${++this.#number}`
    const item = `item${++this.#number}`
    this.add(`${name} = filter(array!(${list})) -> |_index, ${item}| {`)
    this.#closure(() => `!${isFalse(this.#keep(this.value(test, item)))}`)
    return this.#keep(name)
  }

  #closure(result: () => string): void {
    const was = this.#isInside
    this.#isInside = true
    this.#depth++
    this.add(result())
    this.#close()
    this.#isInside = was
  }
}
