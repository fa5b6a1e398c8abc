// The SQL of Fluent Bit's stream processor and of the processor `sql`: a projection and a condition, as parts of programs.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import type { Step } from '../draft.ts'
import { matchesIn } from '../matches.ts'
import { ownName } from './own-time.ts'

export interface Query {
  /** The stream that the query creates, and its tag. */
  readonly stream?: { readonly name: string; readonly tag: string | undefined }
  /** The records that it reads: `tag` with a pattern, or `stream` with a name. */
  readonly from: { readonly kind: 'tag' | 'stream'; readonly name: string }
  readonly steps: readonly Step[]
}

class Unsupported extends Error {}

type Token = { readonly kind: 'word' | 'text' | 'number' | 'sign'; readonly text: string }

const tokens = /\s*(?:'((?:[^'\\]|\\.)*)'|([-+]?\d+(?:\.\d+)?)|(@?[A-Za-z_][\w.]*)|(<=|>=|!=|<>|[*,;()=<>:[\]]))/y

function tokensOf(text: string): readonly Token[] {
  const found: Token[] = []
  const refused = () => new Unsupported('the query has an unknown sign')
  for (const [, quoted, number, word, sign] of matchesIn(text.trimEnd(), tokens, refused)) {
    if (quoted !== undefined) found.push({ kind: 'text', text: quoted.replace(/\\(.)/g, '$1') })
    else if (number !== undefined) found.push({ kind: 'number', text: number })
    else if (word !== undefined) found.push({ kind: 'word', text: word })
    else if (sign !== undefined) found.push({ kind: 'sign', text: sign })
  }
  return found
}

class Reader {
  readonly #tokens: readonly Token[]
  #at = 0

  constructor(text: string) {
    this.#tokens = tokensOf(text)
  }

  query(): Query {
    const stream = this.#takes('create') ? this.#stream() : undefined
    this.#needs('select')
    const keys = this.#takes('*') ? undefined : this.#keys()
    this.#needs('from')
    const from = this.#source()
    const test = this.#takes('where') ? this.#or() : undefined
    this.#takes(';')
    const rest = this.#tokens[this.#at]
    if (rest !== undefined) throw new Unsupported(`\`${rest.text.toUpperCase()}\` needs several records`)
    return {
      ...(stream === undefined ? {} : { stream }),
      from,
      steps: [
        ...(test === undefined ? [] : [{ type: 'filter', text: test } as const]),
        ...(keys === undefined ? [] : projection(keys)),
      ],
    }
  }

  #stream(): { name: string; tag: string | undefined } {
    this.#takes('snapshot')
    this.#needs('stream')
    const name = this.#name()
    let tag: string | undefined
    if (this.#takes('with')) {
      this.#needs('(')
      do {
        const key = this.#name()
        this.#needs('=')
        const value = this.#name()
        if (key.toLowerCase() === 'tag') tag = value
      } while (this.#takes(','))
      this.#needs(')')
    }
    this.#needs('as')
    return { name, tag }
  }

  #source(): Query['from'] {
    const word = this.#name().toLowerCase()
    if (word !== 'stream' && word !== 'tag') throw new Unsupported('the source must be a stream or a tag')
    return { kind: word, name: this.#takes(':') ? this.#name() : '*' }
  }

  #keys(): readonly Key[] {
    const keys: Key[] = []
    do {
      const path = this.#path()
      const [first = '', ...rest] = path
      // Without another name, a nested key has the name by which the query calls it.
      const name = this.#takes('as') ? this.#name() : `${first}${rest.map((part) => `['${part}']`).join('')}`
      keys.push({ path, name: ownName(name) })
    } while (this.#takes(','))
    return keys
  }

  /** `a['b']['c']` */
  #path(): readonly string[] {
    const path = [ownName(this.#name())]
    if (this.#takes('(')) throw new Unsupported(`the function \`${path[0]}\` has no counterpart`)
    while (this.#takes('[')) {
      path.push(this.#name())
      this.#needs(']')
    }
    return path
  }

  #or(): string {
    const parts = [this.#and()]
    while (this.#takes('or')) parts.push(this.#and())
    return parts.length === 1 ? (parts[0] ?? '') : `(${parts.join(' || ')})`
  }

  #and(): string {
    const parts = [this.#not()]
    while (this.#takes('and')) parts.push(this.#not())
    return parts.length === 1 ? (parts[0] ?? '') : `(${parts.join(' && ')})`
  }

  #not(): string {
    if (this.#takes('not')) return `!${this.#not()}`
    if (this.#takes('(')) {
      const inner = this.#or()
      this.#needs(')')
      return `(${inner})`
    }
    if (this.#takes('@record.contains')) {
      this.#needs('(')
      const path = this.#path()
      this.#needs(')')
      return `exists(${fieldLiteral(path)})`
    }
    return this.#comparison(fieldLiteral(this.#path()))
  }

  #comparison(field: string): string {
    if (this.#takes('is')) {
      const isNot = this.#takes('not')
      this.#needs('null')
      return `${isNot ? '!' : ''}is_null(${field})`
    }
    const sign = this.#next().text
    const { kind, text } = this.#next()
    const isEqual = sign === '=' || sign === '!=' || sign === '<>'
    const not = sign === '=' ? '' : '!'
    const word = text.toLowerCase()
    if (kind === 'text' && isEqual) return `${not}(${field} == ${textLiteral(text)})`
    if (kind === 'word' && isEqual && ['true', 'false'].includes(word)) return `${not}(${field} == ${word})`
    if (kind !== 'number' || !['=', '!=', '<>', '<', '<=', '>', '>='].includes(sign))
      throw new Unsupported(`the comparison \`${sign} ${text}\` has no counterpart`)
    const number = text.includes('.') ? text : `${text}.0`
    const isNumber = `(is_integer(${field}) || is_float(${field}))`
    const compared = (operator: string) =>
      `(${isNumber} && (to_float(${field}) ?? 0.0) ${operator} ${number.replace(/^\+/, '')})`
    return isEqual ? `${not}${compared('==')}` : compared(sign)
  }

  #next(): Token {
    const token = this.#tokens[this.#at++]
    if (token === undefined) throw new Unsupported('the query ends too early')
    return token
  }

  #name(): string {
    const { kind, text } = this.#next()
    if (kind !== 'word' && kind !== 'text') throw new Unsupported(`there is \`${text}\` instead of a name`)
    return text
  }

  #takes(word: string): boolean {
    const token = this.#tokens[this.#at]
    const isThere = token !== undefined && token.kind !== 'text' && token.text.toLowerCase() === word
    if (isThere) this.#at++
    return isThere
  }

  #needs(word: string): void {
    if (!this.#takes(word)) throw new Unsupported(`the query lacks \`${word.toUpperCase()}\``)
  }
}

interface Key {
  readonly path: readonly string[]
  readonly name: string
}

/** A record with these keys only. A record that has none of them is left out. */
function projection(keys: readonly Key[]): readonly Step[] {
  const fields = keys.map(({ path }) => fieldLiteral(path))
  const lines = keys.map(({ name }, index) => {
    const field = fields[index] ?? ''
    return `if exists(${field}) { selected${fieldLiteral([name])} = ${field} }`
  })
  return [
    { type: 'filter', text: fields.map((field) => `exists(${field})`).join(' || ') },
    { type: 'remap', text: ['selected = { "timestamp": .timestamp }', ...lines, '. = selected'].join('\n') },
  ]
}

/** A query as parts of programs, or the reason why it has no counterpart. */
export function parseQuery(text: string): Query | { readonly problem: string } {
  try {
    return new Reader(text).query()
  } catch (error) {
    if (error instanceof Unsupported) return { problem: error.message }
    throw error
  }
}
