// Converts the Ruby of `record_transformer` to remap expressions: statements, operators, conditions, and methods. Each node has the kind of
// its value, because remap requires error handling exactly for operations that can fail. If Ruby raises an error, such as for a method of
// nil, Fluentd discards the event; so does the program, unless the code rescues the error.

import { compileProgram } from '@penstock/agent/config'
import { ownName } from '../fluent-bit/own-time.ts'
import { type Block, blockMethods } from './ruby-blocks.ts'
import { Emitter } from './ruby-emitter.ts'
import { formatted } from './ruby-format.ts'
import { functions } from './ruby-functions.ts'
import { at, lookedUp, memberOf, methods, ofNil, ofTexts } from './ruby-methods.ts'
import {
  asText,
  fieldNode,
  isRecord,
  literalNode,
  literalOf,
  type Match,
  mayBeNull,
  type Node,
  nothing,
  testNode,
  textNode,
  UnknownRuby,
  wholeNumber,
} from './ruby-node.ts'
import { type Known, Statements, withinRange } from './ruby-statements.ts'
import { type End, endOf, groupIn, groupsIn, letterOf, listEnd, partOfText } from './ruby-text.ts'
import {
  currentInstant,
  eventInstant,
  type Instant,
  inZone,
  parsedTime,
  timeAt,
  timeCall,
  timeText,
} from './ruby-time.ts'
import { textIn, tokensOf } from './ruby-tokens.ts'

export interface RubyValue {
  readonly text: string
  /** Statements that must run before the expression. */
  readonly before: readonly string[]
  /** The value as a text. */
  readonly asText: string
  /** Whether the code deletes a part of the record. */
  readonly hasDeleted: boolean
}

/**
 * @param known expressions for names such as `tag` and `hostname`
 * @param name the prefix for names of variables
 * @param changesRecord whether members that the code sets are those of the record itself, not of a copy
 * @returns undefined for unsupported Ruby
 */
export function rubyValue(code: string, known: Known, name: string, changesRecord = false): RubyValue | undefined {
  const tokens = tokensOf(code)
  if (tokens === undefined) return undefined
  try {
    const narrow = compiled(tokens, known, new Emitter(name, false, changesRecord))
    return withText(narrow) ?? withText(compiled(tokens, known, new Emitter(name, true, changesRecord))) ?? narrow
  } catch (error) {
    if (error instanceof UnknownRuby) return undefined
    throw error
  }
}

function compiled(tokens: readonly string[], known: Known, emitter: Emitter): RubyValue {
  const node = new Reader(tokens, known, emitter).whole()
  if (node.instant !== undefined) {
    const { text } = timeText(node.instant)
    return { text, before: emitter.statements, asText: text, hasDeleted: emitter.hasDeleted }
  }
  if (
    node.range !== undefined ||
    node.isSymbol === true ||
    node.regex !== undefined ||
    node.isPlace === true ||
    node.className !== undefined
  )
    throw new UnknownRuby()
  return { text: node.text, before: emitter.statements, asText: asText(node), hasDeleted: emitter.hasDeleted }
}

/** The value in a form that the compiler accepts; undefined if there is none. */
function withText(value: RubyValue): RubyValue | undefined {
  const start = ['tag = string(.a) ?? ""', 'restored = {}', ...value.before, `probe = ${value.text}`].join('\n')
  // Remap rejects error handling for an operation that cannot fail.
  const texts = [value.asText, `to_string(${value.text})`, `encode_json(${value.text})`]
  const asText = texts.find((text) => compileProgram(`${start}\nprobe = ${text}`).ok)
  return asText === undefined ? undefined : { ...value, asText }
}

class Reader extends Statements {
  /** The position of the word `record` that has been read last. */
  #recordAt = 0

  whole(): Node {
    const node = this.statements()
    if (this.at < this.tokens.length) throw new UnknownRuby()
    return node
  }

  // --- values ---

  protected operand(): Node {
    return this.#suffixes(this.#primary())
  }

  protected number(): Node {
    return this.#primary()
  }

  #primary(): Node {
    const token = this.tokens[this.at++] ?? ''
    if (token === '(') {
      const range = this.rangeAhead()
      if (range !== undefined && this.accept(')') !== undefined) return range
      const node = this.#within(() => this.statements(')'))
      this.expect(')')
      return node
    }
    if (/^["']/.test(token)) return literalNode(textIn(token))
    if (/^\d+$/.test(token)) return { text: token, kind: 'integer' }
    if (/^\d/.test(token)) return { text: token, kind: 'float' }
    if (/^\/./.test(token)) return { text: '', kind: 'any', regex: token }
    if (/^`hostname(?: -[fs])?`$/.test(token)) return textNode('((get_hostname() ?? "") + "\\n")')
    if (token === ':')
      return {
        ...literalNode(textIn(`"${(this.tokens[this.at++] ?? '').replace(/^["']|["']$/g, '')}"`)),
        isSymbol: true,
      }
    if (token.startsWith('$')) return this.#group(token)
    if (token === '[') return this.#list()
    if (token === '{') return this.#object()
    if (token === 'nil') return nothing
    if (token === 'true' || token === 'false') return testNode(token)
    if (token === 'record') {
      this.#recordAt = this.at - 1
      return fieldNode(undefined, [])
    }
    if (token === 'if' || token === 'unless') return this.#within(() => this.condition(token))
    if (token === 'case') return this.#within(() => this.cases())
    if (token === 'begin') return this.#within(() => this.begin())
    if (token === 'time') return instantNode(eventInstant)
    if (token === 'require') {
      this.#primary()
      return testNode('true')
    }
    if (token === 'format' || token === 'sprintf') return this.#formatted()
    if (token === 'rand') return this.#random()
    if (/^[A-Z]/.test(token)) return this.#constant(token)
    const node = this.emit.variable(token) ?? this.#tagPart(token) ?? this.known(token)
    if (node === undefined) throw new UnknownRuby()
    return node
  }

  /** `tag_parts[0]`, `tag_prefix[0]` or `tag_suffix[0]` at the beginning of a longer expression. */
  #tagPart(token: string): Node | undefined {
    const [open, sign, index] = this.tokens.slice(this.at, this.at + 3)
    const number = sign === '-' ? `-${index}` : sign
    const length = sign === '-' ? 4 : 3
    if (!token.startsWith('tag_') || open !== '[' || this.tokens[this.at + length - 1] !== ']') return undefined
    const node = this.known(`${token}[${number}]`)
    if (node !== undefined) this.at += length
    return node
  }

  /** Reads inner statements; the outer one continues after them. */
  #within(read: () => Node): Node {
    const start = this.start
    const node = read()
    this.start = start
    return node
  }

  /** `$1`, `$~[1]`: a group of the last match. */
  #group(token: string): Node {
    if (this.matched === undefined) throw new UnknownRuby()
    const { of, regex } = this.matched
    if (token === '$&') return groupIn(of, regex, undefined)
    if (token !== '$~') return groupIn(of, regex, { text: token.slice(1), kind: 'integer' })
    this.expect('[')
    const group = this.choice()
    this.expect(']')
    return groupIn(of, regex, group)
  }

  /** A list; the bracket has been read. */
  #list(): Node {
    const items = this.#items(']')
    return { text: `[${items.map(({ text }) => text).join(', ')}]`, kind: 'list', items }
  }

  #items(end: string): readonly Node[] {
    const items: Node[] = []
    while (this.accept(end) === undefined) {
      if (this.accept(';') !== undefined) continue
      const first = this.choice()
      const item = this.tokens[this.at] === '=>' ? this.#pairs(first) : first
      if (item.isPlace) throw new UnknownRuby()
      items.push(item)
      if (this.accept(',') === undefined && this.tokens[this.at] !== end) throw new UnknownRuby()
    }
    return items
  }

  /** An object; the brace has been read. */
  #object(): Node {
    const pairs: (readonly [Node, Node])[] = []
    while (this.accept('}') === undefined) {
      if (this.accept(';') !== undefined) continue
      const name = this.tokens[this.at] ?? ''
      const isSymbol = /^[a-z_]\w*$/.test(name) && this.tokens[this.at + 1] === ':'
      const key = isSymbol ? literalNode(name) : this.choice()
      if (isSymbol) this.at += 2
      else this.expect('=>')
      pairs.push([key, this.choice()])
      if (this.accept(',') === undefined && this.tokens[this.at] !== '}') throw new UnknownRuby()
    }
    const members = pairs.map(([key, value]) => `${key.literal === undefined ? '' : key.text}: ${value.text}`)
    return { text: pairs.length === 0 ? '{}' : `{ ${members.join(', ')} }`, kind: 'any', pairs }
  }

  /** The name of a class or a module, with the call of its function. */
  #constant(first: string): Node {
    if (first === 'Time') return this.#timeOf()
    if (first === 'DateTime' && this.accept('.') !== undefined)
      return this.#timeFrom(this.tokens[this.at++] ?? '', this.#words(), true)
    if (first === 'ENV') return this.#environment()
    let name = first
    while (this.accept('::') !== undefined) name += `::${this.tokens[this.at++] ?? ''}`
    if (this.tokens[this.at] === '.') {
      name += `.${this.tokens[this.at + 1] ?? ''}`
      this.at += 2
    } else if (this.tokens[this.at] !== '(') return { text: '', kind: 'any', className: name }
    const make = Object.hasOwn(functions, name) ? functions[name] : undefined
    const node = make?.(this.#words(), this.emit)
    if (node === undefined) throw new UnknownRuby()
    return node
  }

  /** A variable of the environment. */
  #environment(): Node {
    const isFetch = this.accept('.') !== undefined
    if (isFetch) this.expect('fetch')
    this.expect(isFetch ? '(' : '[')
    const [name, other] = this.#items(isFetch ? ')' : ']')
    const node =
      name === undefined
        ? undefined
        : this.known(`ENV ${literalOf(name)} ${other === undefined ? '' : literalOf(other)}`)
    if (node === undefined) throw new UnknownRuby()
    return node
  }

  #suffixes(start: Node): Node {
    let node = start
    for (;;) {
      if (this.accept('[')) node = this.#indexed(node)
      else if (this.accept('.')) node = this.#called(node, this.#name())
      else if (this.accept('&.')) node = this.#unlessNull(node)
      else return node
    }
  }

  /** The name of a method; `[]` is one. */
  #name(): string {
    const name = this.tokens[this.at++] ?? ''
    if (name !== '[') return name
    this.expect(']')
    return '[]'
  }

  /** A member, a part of a text or a list, or a group of a match; the bracket has been read. */
  #indexed(node: Node): Node {
    if (node.instant !== undefined || node.range !== undefined) throw new UnknownRuby()
    const first = this.choice()
    if (first.isSymbol && node.match === undefined) throw new UnknownRuby()
    if (this.tokens[this.at] === ']' && this.tokens[this.at + 1] === '=') {
      this.at += 2
      return this.emit.assigned(node, first, this.rescued())
    }
    if (node.match !== undefined) {
      this.expect(']')
      this.emit.failIf(`!${node.text}`)
      return groupIn(node.match.of, node.match.regex, first)
    }
    if (first.regex !== undefined) {
      const group = this.accept(',') === undefined ? undefined : this.choice()
      this.expect(']')
      return groupIn(this.emit.textOf(node), first.regex, group)
    }
    if (node.pairs !== undefined) {
      this.expect(']')
      return lookedUp(node.pairs, first, nothing, this.emit)
    }
    if (mayBeNull(node)) this.emit.failIf(`${node.text} == null`)
    const sign = this.accept('..', '...', ',')
    const last = sign === undefined || this.tokens[this.at] === ']' ? undefined : wholeNumber(this.choice())
    this.expect(']')
    if (sign !== undefined) return this.#part(node, wholeNumber(first), endOf(wholeNumber(first), sign, last))
    return this.#member(node, first)
  }

  #member(node: Node, key: Node): Node {
    if (key.kind !== 'integer') return memberOf(node, key, this.emit)
    if (node.kind === 'list' || !/^-?\d+$/.test(key.text)) return at(node, key)
    const letter = letterOf(asText(node), wholeNumber(key))
    if (node.kind === 'text') return letter
    return this.emit.kept(`if is_string(${node.text}) { ${letter.text} } else { ${at(node, key).text} }`, 'any')
  }

  #part(node: Node, start: number, end: End): Node {
    const part = partOfText(asText(node), start, end)
    if (node.kind === 'text') return part
    const list = `slice(${node.text}, ${start}${listEnd(start, end)}) ?? null`
    if (node.kind === 'list') return { text: `(${list})`, kind: 'any' }
    return this.emit.kept(
      `if is_string(${node.text}) { ${part.text} } else if is_array(${node.text}) { ${list} } else { null }`,
      'any',
    )
  }

  /** `a&.b`: no call on nil. */
  #unlessNull(node: Node): Node {
    // Without a match, a group is nil, too.
    if (node.match !== undefined) return this.#called(node, this.#name())
    const called = this.emit.scoped(() => this.#called(node, this.#name()))
    return called.path === undefined
      ? this.emit.either(`${node.text} != null`, { ...called, kind: 'any' }, nothing)
      : called
  }

  /** `Time.now`, `Time.at(1)`, `Time.parse("…")`. */
  #timeOf(): Node {
    this.expect('.')
    const method = this.tokens[this.at++] ?? ''
    if (method === 'now') return instantNode(currentInstant)
    // The time of the event with its fraction, which a number would not have exactly.
    const words = this.tokens.slice(this.at, this.at + 5).join(' ')
    for (const exact of ['( time )', '( time . to_r )'])
      if (method === 'at' && words.startsWith(exact)) {
        this.at += exact.split(' ').length
        return instantNode(eventInstant)
      }
    return this.#timeFrom(method, this.#words(), false)
  }

  #timeFrom(method: string, words: readonly Node[], isDate: boolean): Node {
    const [first, format] = words
    if (first === undefined) throw new UnknownRuby()
    if (method === 'at') {
      const made = timeAt(words, this.emit)
      if (made !== undefined) return instantNode(made)
    } else if (['parse', 'iso8601'].includes(method) && format === undefined)
      return instantNode(parsedTime(first, undefined, isDate, this.emit))
    else if (method === 'strptime' && format !== undefined)
      return instantNode(parsedTime(first, literalOf(format), isDate, this.emit))
    throw new UnknownRuby()
  }

  /** A call on a time. As in a container, the zone of the machine is UTC. */
  #timeCall(instant: Instant, method: string): Node {
    const words = this.#words()
    const moved = inZone(instant, method, words)
    if (moved !== undefined) return instantNode(moved)
    const made = timeCall(method, words, instant)
    if (made === undefined) throw new UnknownRuby()
    return made
  }

  /** `format("%.2f", a)`; the name has been read. */
  #formatted(): Node {
    const [text, ...values] = this.#words()
    if (text === undefined) throw new UnknownRuby()
    return formatted(text, values, this.emit)
  }

  /** `rand(6)`; the name has been read. */
  #random(): Node {
    const [limit] = this.#words()
    if (limit === undefined) return { text: 'random_float(0.0, 1.0)', kind: 'float' }
    const number = wholeNumber(limit)
    if (number < 1) throw new UnknownRuby()
    return { text: `random_int(0, ${number})`, kind: 'integer' }
  }

  /** A block: `{ |a, b| … }` or `do |a, b| … end`, or a method as an argument: `(&:to_s)`. */
  #block(): Block | undefined {
    const [one, two, three] = this.tokens.slice(this.at)
    if (one === '(' && two === '&' && three === ':') {
      this.at += 3
      const method = this.tokens[this.at++] ?? ''
      this.expect(')')
      const of = (item: string) => this.emit.scoped(() => this.#called(fieldNode(item, []), method))
      return { of, behind: (_first, item) => of(item) }
    }
    const end = one === '{' ? '}' : one === 'do' ? 'end' : undefined
    if (end === undefined || two !== '|') return undefined
    this.at += 2
    const parameters = this.#parameters()
    const run = (values: ReadonlyMap<string, Node>) => {
      const node = this.emit.block(values, () => this.#within(() => this.statements(end)))
      this.expect(end)
      if (node.isPlace) return testNode(node.text)
      if (node.instant !== undefined || node.regex !== undefined) throw new UnknownRuby()
      return node
    }
    return {
      of: (item, ...further) => run(valuesOf(parameters, item, further)),
      behind: (first, item) => {
        const [name] = parameters
        if (typeof name !== 'string') throw new UnknownRuby()
        return run(new Map([[name, first], ...valuesOf(parameters.slice(1), item, [])]))
      },
    }
  }

  /** The names between bars; those in brackets are for the parts of one value. */
  #parameters(): readonly Parameter[] {
    const names: Parameter[] = []
    while (this.accept('|') === undefined) {
      if (this.accept('(') !== undefined) {
        const parts: string[] = []
        while (this.accept(')') === undefined) {
          parts.push(this.tokens[this.at++] ?? '')
          this.accept(',')
        }
        names.push(parts)
      } else names.push(this.tokens[this.at++] ?? '')
      this.accept(',')
      if (this.at >= this.tokens.length) throw new UnknownRuby()
    }
    return names
  }

  #words(): readonly Node[] {
    return this.accept('(') === undefined ? [] : this.#items(')')
  }

  /** The pairs of an object without braces, as the last argument of a call. */
  #pairs(first: Node): Node {
    const pairs: (readonly [Node, Node])[] = []
    for (let key = first; ; key = this.choice()) {
      this.expect('=>')
      pairs.push([key, this.choice()])
      if (this.accept(',') === undefined) return { text: '', kind: 'any', pairs }
    }
  }

  #called(node: Node, method: string): Node {
    if (node.instant !== undefined) return this.#timeCall(node.instant, method)
    if (node.match !== undefined) return this.#ofMatch(node, node.match, method)
    if (method === '[]' && this.accept('(') !== undefined) return this.#sliced(node)
    if (node.range !== undefined) {
      const [word] = this.#words()
      if (!['include?', 'cover?', 'member?', '==='].includes(method) || word === undefined) throw new UnknownRuby()
      return testNode(withinRange(word, node.range))
    }
    if (Object.hasOwn(blockMethods, method)) {
      const from = this.at
      const words = this.#block() === undefined ? this.#words() : []
      if (words.length === 0) this.at = from
      const block = this.#block()
      const made = block && blockMethods[method]?.(node, block, words, this.emit)
      if (made !== undefined) return made
      this.at = from
    }
    if (encodings.has(method)) return this.#encoded(node)
    // `slice` is the same as brackets.
    if (method === 'slice' && node.pairs === undefined && !isRecord(node) && this.accept('(') !== undefined)
      return this.#sliced(node)
    const words = this.#words()
    if (method === 'delete' && words.length === 1 && words[0] !== undefined && node.kind === 'any')
      return this.#deleted(node, words[0])
    if (method === 'dig') return words.reduce((all, word) => at(all, word), node)
    if (method === 'fetch' && words.length === 1 && words[0] !== undefined && node.path !== undefined)
      this.emit.failIf(`!exists(${at(node, words[0]).text})`)
    if (method === 'match' || method === 'match?') {
      const [of, regex] = node.regex === undefined ? [node, words[0]?.regex] : [words[0], node.regex]
      if (of === undefined || regex === undefined) throw new UnknownRuby()
      const text = this.emit.textOf(of)
      if (method === 'match') this.matched = { of: text, regex }
      return this.#made(text, method, [{ text: '', kind: 'any', regex }])
    }
    if (ofTexts.has(method)) return this.#made(this.emit.textOf(node), method, words)
    if (mayBeNull(node) && !ofNil.has(method)) this.emit.failIf(`${node.text} == null`)
    return this.#made(node, method, words)
  }

  /** A call on the result of `match`. */
  #ofMatch(node: Node, { of, regex }: Match, method: string): Node {
    if (method === '[]') {
      const [group] = this.#words()
      return groupIn(of, regex, group)
    }
    if (method === 'captures') return { text: `[${groupsIn(of, regex).join(', ')}]`, kind: 'list' }
    if (method === 'to_s') {
      this.#words()
      return groupIn(of, regex, undefined)
    }
    if (method === 'nil?') return testNode(`!${node.text}`)
    throw new UnknownRuby()
  }

  #sliced(node: Node): Node {
    const end = this.tokens.indexOf(')', this.at)
    const inner = new Reader([...this.tokens.slice(this.at, end), ']'], this.known, this.emit)
    const part = inner.#indexed(node)
    this.at = end + 1
    return part
  }

  /** Texts are UTF-8, so a change of their encoding has no effect. */
  #encoded(node: Node): Node {
    if (this.accept('(') !== undefined) {
      let depth = 1
      while (depth > 0 && this.at < this.tokens.length) {
        const token = this.tokens[this.at++] as string
        if (token === '(') depth++
        else if (token === ')') depth--
        else if (/^["']/.test(token) && !/^.(?:utf-?8|ascii-8bit|binary|\?| )?.$/i.test(token)) throw new UnknownRuby()
      }
    }
    return this.emit.textOf(node)
  }

  /** `record.delete("a")` as a statement: the order of deletions and of other parts of an expression would be uncertain. */
  #deleted(node: Node, name: Node): Node {
    const before = this.tokens[this.#recordAt - 1]
    const isAlone =
      this.#recordAt === this.start || before === '?' || (before === '=' && this.#recordAt === this.start + 2)
    if (isAlone && name.literal === undefined && !isRecord(node)) return this.emit.removed(node, name)
    if (node.path === undefined || node.root !== undefined || name.literal === undefined || !isAlone)
      throw new UnknownRuby()
    if (isRecord(node)) return this.emit.deleted(node, ownName(name.literal))
    this.emit.failIf(`!is_object(${node.text})`)
    return this.emit.deleted(node, name.literal)
  }

  #made(node: Node, method: string, words: readonly Node[]): Node {
    const make = Object.hasOwn(methods, method) ? methods[method] : undefined
    const made = make?.(node, words, this.emit)
    if (made === undefined) throw new UnknownRuby()
    return made
  }
}

const instantNode = (instant: Instant): Node => ({ text: '', kind: 'any', instant })

/** A name, or names for the parts of a value. */
type Parameter = string | readonly string[]

/** Values for the parameters of a block. Several parameters for one item are its parts. */
function valuesOf(parameters: readonly Parameter[], item: string, further: readonly Node[]): ReadonlyMap<string, Node> {
  const part = (of: string, index: number): Node => ({ text: `get(${of}, [${index}]) ?? null`, kind: 'any' })
  const count = parameters.length - further.length
  const values: (readonly [string, Node])[] = parameters.flatMap((each, index): (readonly [string, Node])[] => {
    const own = index < count ? undefined : further[index - count]
    const text = own?.text ?? item
    if (typeof each !== 'string') return each.map((name, place) => [name, part(text, place)] as const)
    if (own !== undefined) return [[each, own]]
    return [[each, count > 1 ? part(item, index) : fieldNode(item, [])]]
  })
  return new Map(values)
}

const encodings: ReadonlySet<string> = new Set([
  'force_encoding',
  'encode',
  'scrub',
  'unicode_normalize',
  'dup',
  'freeze',
  'itself',
])
