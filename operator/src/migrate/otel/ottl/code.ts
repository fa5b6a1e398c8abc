// Pieces of programs while a statement is compiled: values with their known kinds, and lines that run only if the lines before them did
// not fail.

import { textLiteral } from '@penstock/agent/config'
import { openRead } from '../field.ts'
import type { Key } from '../record.ts'
import { fieldAt } from '../record.ts'
import { Unconvertible } from './syntax.ts'

export type Kind = 'any' | 'text' | 'integer' | 'float' | 'boolean' | 'map' | 'list' | 'time' | 'null'

/** An expression that cannot fail. */
export interface Value {
  readonly code: string
  readonly kind: Kind
}

const wanted = {
  text: 'string',
  integer: 'int',
  float: 'float',
  boolean: 'bool',
  map: 'object',
  list: 'array',
  time: 'timestamp',
} as const

/** Lines of a program. After an expression that may fail, further lines run only if it did not. */
export class Lines {
  readonly #lines: string[] = []
  readonly #names: () => number
  #depth = 0

  /** @param names gives a number that no name has yet */
  constructor(names: () => number) {
    this.#names = names
  }

  get isOpen(): boolean {
    return this.#depth > 0
  }

  add(...lines: readonly string[]): void {
    for (const line of lines.flatMap((text) => text.split('\n'))) this.#lines.push(`${'  '.repeat(this.#depth)}${line}`)
  }

  /** A value below a name, so that it is computed once. */
  keep(value: Value): Value {
    if (/^[a-z]+\d+$/.test(value.code)) return value
    const name = `value${this.#names()}`
    this.add(`${name} = ${value.code}`)
    return { code: name, kind: value.kind }
  }

  /** The result of an expression that may fail. */
  fallible(code: string, kind: Kind): Value {
    const name = `value${this.#names()}`
    this.add(`${name}, error = ${code}`)
    this.open('error == null')
    return { code: name, kind }
  }

  open(condition: string): void {
    this.add(`if ${condition} {`)
    this.#depth++
  }

  /** The value as one of a kind; another kind is a failure. */
  as(value: Value, kind: keyof typeof wanted): Value {
    if (value.kind === kind) return value
    if (value.kind !== 'any') throw new Unconvertible(`a value of another kind than ${kind} never fits`)
    return this.fallible(`${wanted[kind]}(${value.code})`, kind)
  }

  /** The value as text, whatever it is. */
  textOf({ code, kind }: Value): string {
    if (kind === 'text') return code
    if (kind === 'any') return `(to_string(${code}) ?? encode_json(${code}))`
    if (kind === 'map' || kind === 'list') return `encode_json(${code})`
    return `to_string(${code})`
  }

  newName(prefix: string): string {
    return `${prefix}${this.#names()}`
  }

  /** All lines, with what was opened closed. */
  text(): string[] {
    while (this.#depth > 0) {
      this.#depth--
      this.add('}')
    }
    return this.#lines
  }
}

/**
 * The fields that the program has set so far, of the event or of a variable that is an object: what is known of their kinds must not
 * matter to what follows.
 */
export class Fields {
  readonly #root: string
  readonly #written: { readonly path: readonly Key[]; readonly kind: Kind }[] = []

  /** @param root `.` for the event, or the name of the variable */
  constructor(root: string) {
    this.#root = root
    if (root !== '.') this.#written.push({ path: [], kind: 'map' })
  }

  #at(path: readonly Key[]): string {
    if (this.#root === '.') return fieldAt(path)
    return `${this.#root}${path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${textLiteral(key)}`)).join('')}`
  }

  read(path: readonly Key[]): string {
    const isTouched = this.#written.some(({ path: other }) => {
      const shared = Math.min(path.length, other.length)
      return other.slice(0, shared).every((key, index) => key === path[index])
    })
    return isTouched || this.#root !== '.' ? openRead(path, this.#root) : fieldAt(path)
  }

  remove(path: readonly Key[]): string {
    this.#written.push({ path, kind: 'null' })
    return `del(${this.#at(path)})`
  }

  assign(path: readonly Key[], { code, kind }: Value): string {
    // The language refuses to assign below what it knows to be no object, and knows the members of objects.
    const isOpen = this.#written.every(
      ({ path: other, kind: known }) =>
        known === 'null' ||
        (known === 'map' && other.length === path.length - 1) ||
        other.length >= path.length ||
        other.some((key, index) => key !== path[index]),
    )
    this.#written.push({ path, kind })
    if (isOpen) return `${this.#at(path)} = ${code}`
    return `${this.#root} = object!(set!(${this.#root}, [${path.map((key) => JSON.stringify(key)).join(', ')}], ${code}))`
  }
}
