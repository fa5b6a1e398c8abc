// Converts the Ruby of `record_transformer` to remap expressions: statements, operators, conditions, and methods. Each node has the kind of
// its value, because remap requires error handling exactly for operations that can fail. If Ruby raises an error, such as for a method of
// nil, Fluentd discards the event; so does the program, unless the code rescues the error.

import { compileProgram } from '@penstock/agent/config'
import { ownName } from '../fluent-bit/own-time.ts'
import { Emitter } from './ruby-emitter.ts'
import { functions } from './ruby-functions.ts'
import { at, lookedUp, memberOf, methods, ofNil, ofTexts } from './ruby-methods.ts'
import {
  asText,
  fieldNode,
  isRecord,
  isTrue,
  literalNode,
  literalOf,
  mayBeNull,
  type Node,
  nothing,
  testNode,
  UnknownRuby,
  wholeNumber,
} from './ruby-node.ts'
import { found, Operators } from './ruby-operators.ts'
import { type End, endOf, groupIn, letterOf, listEnd, partOfText } from './ruby-text.ts'
import { timeCall } from './ruby-time.ts'
import { keywords, textIn, tokensOf, wordAhead } from './ruby-tokens.ts'

export interface RubyValue {
  readonly text: string
  /** Statements that must run before the expression. */
  readonly before: readonly string[]
  /** The value as a text. */
  readonly asText: string
  /** Whether the code deletes a part of the record. */
  readonly hasDeleted: boolean
}

/** An expression for a name such as `tag` or for a variable of the environment. */
export type Known = (word: string) => Node | undefined

/**
 * @param known expressions for names such as `tag` and `hostname`
 * @param name the prefix for names of variables
 * @returns undefined for unsupported Ruby
 */
export function rubyValue(code: string, known: Known, name: string): RubyValue | undefined {
  const tokens = tokensOf(code)
  if (tokens === undefined) return undefined
  try {
    const narrow = compiled(tokens, known, name, false)
    return withText(narrow) ?? withText(compiled(tokens, known, name, true)) ?? narrow
  } catch (error) {
    if (error instanceof UnknownRuby) return undefined
    throw error
  }
}

function compiled(tokens: readonly string[], known: Known, name: string, isWide: boolean): RubyValue {
  const emitter = new Emitter(name, isWide)
  const node = new Reader(tokens, known, emitter).whole()
  if (node.regex !== undefined || node.isPlace === true || node.className !== undefined) throw new UnknownRuby()
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

class Reader extends Operators {
  readonly #known: Known
  /** The position of the statement that is being read. */
  #start = 0
  /** The position of the word `record` that has been read last. */
  #recordAt = 0

  constructor(tokens: readonly string[], known: Known, emitter: Emitter) {
    super(tokens, emitter)
    this.#known = known
  }

  whole(): Node {
    const node = this.#statements()
    if (this.at < this.tokens.length) throw new UnknownRuby()
    return node
  }

  // --- statements ---

  /** Statements up to one of these words. The value is that of the last one. */
  #statements(...ends: readonly string[]): Node {
    let node: Node | undefined
    for (;;) {
      while (this.accept(';') !== undefined);
      const token = this.tokens[this.at]
      if (token === undefined || ends.includes(token)) return node ?? nothing
      this.#start = this.at
      node = this.#statement()
      const next = this.tokens[this.at]
      if (next !== undefined && next !== ';' && !ends.includes(next)) throw new UnknownRuby()
    }
  }

  /** A statement, whose value is nil if the condition behind it does not hold. */
  #statement(): Node {
    if (wordAhead(this.tokens, this.at, ['if', 'unless']) === undefined) return this.#rescued()
    let node = this.emit.scoped(() => this.#rescued())
    for (let word = this.accept('if', 'unless'); word !== undefined; word = this.accept('if', 'unless')) {
      const test = isTrue(this.#low())
      node = this.emit.either(word === 'if' ? test : `!(${test})`, node, nothing)
    }
    return node
  }

  /** `a rescue b`: b if an error occurs in a. */
  #rescued(): Node {
    if (wordAhead(this.tokens, this.at, ['rescue']) === undefined) return this.#low()
    return this.emit.rescued(
      () => this.#low(),
      () => {
        this.expect('rescue')
        return this.#low()
      },
    )
  }

  /** `and` and `or`, which bind the least. */
  #low(): Node {
    let left = this.#negated()
    for (let word = this.accept('and', 'or'); word !== undefined; word = this.accept('and', 'or')) {
      const right = this.emit.scoped(() => this.#negated())
      left = word === 'and' ? this.both(left, right) : this.any(left, right)
    }
    return left
  }

  #negated(): Node {
    if (this.accept('not') !== undefined) return testNode(`!${isTrue(this.#negated())}`)
    const name = this.tokens[this.at] ?? ''
    const sign = this.tokens[this.at + 1] ?? ''
    if (!/^[a-z_]\w*$/.test(name) || !['=', '||=', '+=', '-='].includes(sign)) return this.choice()
    if (keywords.has(name) || this.#known(name) !== undefined || reserved.has(name)) throw new UnknownRuby()
    this.at += 2
    const old = this.emit.variable(name)
    if (sign !== '=' && old === undefined) throw new UnknownRuby()
    if (sign === '||=')
      return this.emit.assign(
        name,
        this.any(
          old as Node,
          this.emit.scoped(() => this.#rescued()),
        ),
      )
    const value = this.#rescued()
    if (value.isPlace || value.className !== undefined || value.regex !== undefined) throw new UnknownRuby()
    return this.emit.assign(name, sign === '=' ? value : this.result(sign[0] as string, old as Node, value))
  }

  /** `if a then b elsif c then d else e end`; the first word has been read. */
  #condition(word: string): Node {
    const test = isTrue(this.#low())
    this.accept(';')
    this.accept('then')
    const yes = this.emit.scoped(() => this.#statements('elsif', 'else', 'end'))
    const no = this.#otherwise(word)
    return this.emit.either(word === 'unless' ? `!(${test})` : test, yes, no)
  }

  #otherwise(word: string): Node {
    if (word === 'if' && this.accept('elsif') !== undefined) return this.emit.scoped(() => this.#condition('if'))
    const no = this.accept('else') === undefined ? nothing : this.emit.scoped(() => this.#statements('end'))
    this.expect('end')
    return no
  }

  /** `case a when b then c else d end`, with or without the value `a`. */
  #cases(): Node {
    const subject = this.tokens[this.at] === ';' || this.tokens[this.at] === 'when' ? undefined : this.choice()
    const value =
      subject === undefined || subject.path !== undefined ? subject : this.emit.kept(subject.text, subject.kind)
    while (this.accept(';') !== undefined);
    this.expect('when')
    return this.#when(value)
  }

  #when(subject: Node | undefined): Node {
    const tests: string[] = []
    do {
      const word = this.choice()
      tests.push(subject === undefined ? isTrue(word) : this.#isLike(subject, word))
    } while (this.accept(',') !== undefined)
    this.accept(';')
    this.accept('then')
    const yes = this.emit.scoped(() => this.#statements('when', 'else', 'end'))
    let no = nothing
    if (this.accept('when') !== undefined) no = this.emit.scoped(() => this.#when(subject))
    else {
      if (this.accept('else') !== undefined) no = this.emit.scoped(() => this.#statements('end'))
      this.expect('end')
    }
    return this.emit.either(tests.map((test) => `(${test})`).join(' || '), yes, no)
  }

  #isLike(subject: Node, word: Node): string {
    if (word.regex !== undefined) return `is_string(${subject.text}) && ${found(subject, word.regex)}`
    if (word.className !== undefined) return methods['is_a?']?.(subject, [word], this.emit)?.text ?? 'false'
    return `${subject.text} == ${word.text}`
  }

  /** `begin a rescue b end`; the first word has been read. */
  #begin(): Node {
    if (wordAhead(this.tokens, this.at, ['ensure']) !== undefined) throw new UnknownRuby()
    const hasRescue = this.#rescueClause()
    if (!hasRescue) {
      const node = this.#statements('end')
      this.expect('end')
      return node
    }
    return this.emit.rescued(
      () => this.#statements('rescue'),
      () => {
        this.expect('rescue')
        // The classes of errors, and the variable for the error.
        while (/^(?:[A-Z]\w*|::|,)$/.test(this.tokens[this.at] ?? '')) this.at++
        if (this.accept('=>') !== undefined) this.at++
        this.accept(';')
        this.accept('then')
        const node = this.#statements('end')
        this.expect('end')
        return node
      },
    )
  }

  /** Whether `rescue` follows before the `end` of this part. */
  #rescueClause(): boolean {
    for (let from = this.at; from < this.tokens.length; ) {
      if (this.tokens[from] === 'rescue') return true
      if (wordAhead(this.tokens, from, ['rescue', 'end']) === 'rescue') return true
      const next = this.tokens.indexOf(';', from)
      if (next < 0) return false
      from = next + 1
    }
    return false
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
      const node = this.#within(() => this.#statements(')'))
      this.expect(')')
      return node
    }
    if (/^["']/.test(token)) return literalNode(textIn(token))
    if (/^\d+$/.test(token)) return { text: token, kind: 'integer' }
    if (/^\d/.test(token)) return { text: token, kind: 'float' }
    if (/^\/./.test(token)) return { text: '', kind: 'any', regex: token }
    if (token.startsWith('$')) return this.#group(token)
    if (token === '[') return this.#list()
    if (token === '{') return this.#object()
    if (token === 'nil') return nothing
    if (token === 'true' || token === 'false') return testNode(token)
    if (token === 'record') {
      this.#recordAt = this.at - 1
      return fieldNode(undefined, [])
    }
    if (token === 'if' || token === 'unless') return this.#within(() => this.#condition(token))
    if (token === 'case') return this.#within(() => this.#cases())
    if (token === 'begin') return this.#within(() => this.#begin())
    if (token === 'time') return this.#time()
    if (/^[A-Z]/.test(token)) return this.#constant(token)
    const node = this.emit.variable(token) ?? this.#tagPart(token) ?? this.#known(token)
    if (node === undefined) throw new UnknownRuby()
    return node
  }

  /** `tag_parts[0]`, `tag_prefix[0]` or `tag_suffix[0]` at the beginning of a longer expression. */
  #tagPart(token: string): Node | undefined {
    const [open, sign, index] = this.tokens.slice(this.at, this.at + 3)
    const number = sign === '-' ? `-${index}` : sign
    const length = sign === '-' ? 4 : 3
    if (!token.startsWith('tag_') || open !== '[' || this.tokens[this.at + length - 1] !== ']') return undefined
    const node = this.#known(`${token}[${number}]`)
    if (node !== undefined) this.at += length
    return node
  }

  /** Reads inner statements; the outer one continues after them. */
  #within(read: () => Node): Node {
    const start = this.#start
    const node = read()
    this.#start = start
    return node
  }

  /** `$1`, `$~[1]`: a group of the last match. */
  #group(token: string): Node {
    if (this.matched === undefined) throw new UnknownRuby()
    const { of, regex } = this.matched
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
        : this.#known(`ENV ${literalOf(name)} ${other === undefined ? '' : literalOf(other)}`)
    if (node === undefined) throw new UnknownRuby()
    return node
  }

  #suffixes(start: Node): Node {
    let node = start
    for (;;) {
      if (this.accept('[')) node = this.#indexed(node)
      else if (this.accept('.')) node = this.#called(node, this.tokens[this.at++] ?? '')
      else if (this.accept('&.')) node = this.#unlessNull(node)
      else return node
    }
  }

  /** A member, a part of a text or a list, or a group of a match; the bracket has been read. */
  #indexed(node: Node): Node {
    const first = this.choice()
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
    const called = this.emit.scoped(() => this.#called(node, this.tokens[this.at++] ?? ''))
    return called.path === undefined
      ? this.emit.either(`${node.text} != null`, { ...called, kind: 'any' }, nothing)
      : called
  }

  /** `Time.now`, `Time.at(time)`. */
  #timeOf(): Node {
    this.expect('.')
    if (this.accept('now') !== undefined) {
      const made = this.#time()
      return { ...made, text: made.text.replaceAll('timestamp(.timestamp) ?? now()', 'now()') }
    }
    for (const part of ['at', '(', 'time', ')']) this.expect(part)
    return this.#time()
  }

  /** A call on the time of the event. As in a container, the zone is UTC. */
  #time(): Node {
    let isUtc = false
    for (;;) {
      this.expect('.')
      const method = this.tokens[this.at++] ?? ''
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

  #sliced(node: Node): Node {
    const end = this.tokens.indexOf(')', this.at)
    const inner = new Reader([...this.tokens.slice(this.at, end), ']'], this.#known, this.emit)
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
      this.#recordAt === this.#start || before === '?' || (before === '=' && this.#recordAt === this.#start + 2)
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

const reserved: ReadonlySet<string> = new Set(['record', 'time', 'tag', 'tag_parts', 'nil', 'true', 'false', 'self'])
const encodings: ReadonlySet<string> = new Set([
  'force_encoding',
  'encode',
  'scrub',
  'unicode_normalize',
  'dup',
  'freeze',
  'itself',
])
