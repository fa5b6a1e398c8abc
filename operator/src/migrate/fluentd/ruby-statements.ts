// Statements of Ruby: conditions, cases, assignments to variables, and errors that the code handles.

import type { Emitter } from './ruby-emitter.ts'
import { methods } from './ruby-methods.ts'
import { isTrue, type Node, nothing, testNode, UnknownRuby } from './ruby-node.ts'
import { found, Operators } from './ruby-operators.ts'
import { keywords, wordAhead } from './ruby-tokens.ts'

/** An expression for a name such as `tag` or for a variable of the environment. */
export type Known = (word: string) => Node | undefined

export abstract class Statements extends Operators {
  protected readonly known: Known
  /** The position of the statement that is being read. */
  protected start = 0

  constructor(tokens: readonly string[], known: Known, emitter: Emitter) {
    super(tokens, emitter)
    this.known = known
  }

  /** Statements up to one of these words. The value is that of the last one. */
  protected statements(...ends: readonly string[]): Node {
    let node: Node | undefined
    for (;;) {
      while (this.accept(';') !== undefined);
      const token = this.tokens[this.at]
      if (token === undefined || ends.includes(token)) return node ?? nothing
      this.start = this.at
      node = this.#statement()
      const next = this.tokens[this.at]
      if (next !== undefined && next !== ';' && !ends.includes(next)) throw new UnknownRuby()
    }
  }

  /** A statement, whose value is nil if the condition behind it does not hold. */
  #statement(): Node {
    if (wordAhead(this.tokens, this.at, ['if', 'unless']) === undefined) return this.rescued()
    let node = this.emit.scoped(() => this.rescued())
    for (let word = this.accept('if', 'unless'); word !== undefined; word = this.accept('if', 'unless')) {
      const test = isTrue(this.#low())
      node = this.emit.either(word === 'if' ? test : `!(${test})`, node, nothing)
    }
    return node
  }

  /** `a rescue b`: b if an error occurs in a. */
  protected rescued(): Node {
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
    if (keywords.has(name) || this.known(name) !== undefined || reserved.has(name)) throw new UnknownRuby()
    this.at += 2
    const old = this.emit.variable(name)
    if (sign !== '=' && old === undefined) throw new UnknownRuby()
    if (sign === '||=')
      return this.emit.assign(
        name,
        this.any(
          old as Node,
          this.emit.scoped(() => this.rescued()),
        ),
      )
    const value = this.rescued()
    if (value.isPlace || value.className !== undefined || value.regex !== undefined) throw new UnknownRuby()
    return this.emit.assign(name, sign === '=' ? value : this.result(sign[0] as string, old as Node, value))
  }

  /** `if a then b elsif c then d else e end`; the first word has been read. */
  protected condition(word: string): Node {
    const test = isTrue(this.#low())
    this.accept(';')
    this.accept('then')
    const yes = this.emit.scoped(() => this.statements('elsif', 'else', 'end'))
    const no = this.#otherwise(word)
    return this.emit.either(word === 'unless' ? `!(${test})` : test, yes, no)
  }

  #otherwise(word: string): Node {
    if (word === 'if' && this.accept('elsif') !== undefined) return this.emit.scoped(() => this.condition('if'))
    const no = this.accept('else') === undefined ? nothing : this.emit.scoped(() => this.statements('end'))
    this.expect('end')
    return no
  }

  /** `case a when b then c else d end`, with or without the value `a`. */
  protected cases(): Node {
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
      const word = this.rangeAhead() ?? this.choice()
      tests.push(subject === undefined ? isTrue(word) : this.#isLike(subject, word))
    } while (this.accept(',') !== undefined)
    this.accept(';')
    this.accept('then')
    const yes = this.emit.scoped(() => this.statements('when', 'else', 'end'))
    let no = nothing
    if (this.accept('when') !== undefined) no = this.emit.scoped(() => this.#when(subject))
    else {
      if (this.accept('else') !== undefined) no = this.emit.scoped(() => this.statements('end'))
      this.expect('end')
    }
    return this.emit.either(tests.map((test) => `(${test})`).join(' || '), yes, no)
  }

  #isLike(subject: Node, word: Node): string {
    if (word.range !== undefined) return withinRange(subject, word.range)
    if (word.regex !== undefined) return `is_string(${subject.text}) && ${found(subject, word.regex)}`
    if (word.className !== undefined) return methods['is_a?']?.(subject, [word], this.emit)?.text ?? 'false'
    return `${subject.text} == ${word.text}`
  }

  /** A range of integers, such as `200..299`. */
  protected rangeAhead(): Node | undefined {
    const [first = '', sign = '', last = ''] = this.tokens.slice(this.at, this.at + 3)
    if (!/^\d+$/.test(first) || !/^\.\.\.?$/.test(sign) || !/^\d+$/.test(last)) return undefined
    this.at += 3
    return { text: '', kind: 'any', range: [Number(first), Number(last) + (sign === '..' ? 1 : 0)] }
  }

  /** `begin a rescue b end`; the first word has been read. */
  protected begin(): Node {
    if (wordAhead(this.tokens, this.at, ['ensure']) !== undefined) throw new UnknownRuby()
    const hasRescue = this.#rescueClause()
    if (!hasRescue) {
      const node = this.statements('end')
      this.expect('end')
      return node
    }
    return this.emit.rescued(
      () => this.statements('rescue'),
      () => {
        this.expect('rescue')
        // The classes of errors, and the variable for the error.
        while (/^(?:[A-Z]\w*|::|,)$/.test(this.tokens[this.at] ?? '')) this.at++
        if (this.accept('=>') !== undefined) this.at++
        this.accept(';')
        this.accept('then')
        const node = this.statements('end')
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
}

/** Whether a number is within a range. */
export const withinRange = ({ text, kind }: Node, [from, behind]: readonly [number, number]): string => {
  const test = `${text} >= ${from} && ${text} < ${behind}`
  return kind === 'integer'
    ? `(${test})`
    : `(is_integer(${text}) && (((${text} >= ${from}) ?? false) && ((${text} < ${behind}) ?? false)))`
}

const reserved: ReadonlySet<string> = new Set(['record', 'time', 'tag', 'tag_parts', 'nil', 'true', 'false', 'self'])
