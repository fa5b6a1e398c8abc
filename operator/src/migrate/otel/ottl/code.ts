// Parts of a program during the compilation of a statement: values with their known kinds, and lines that run only if no earlier line
// failed.

import { textLiteral } from '@penstock/agent/config'
import { openRead } from '../field.ts'
import type { Key } from '../record.ts'
import { fieldAt } from '../record.ts'
import { Unconvertible } from './syntax.ts'

export type Kind = 'any' | 'text' | 'integer' | 'float' | 'boolean' | 'map' | 'list' | 'time' | 'duration' | 'null'

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

/** Lines of a program. After an expression that can fail, further lines run only if it succeeded. */
export class Lines {
  readonly #lines: string[] = []
  readonly #names: () => number
  readonly #fails: () => void
  #depth = 0

  /**
   * @param names returns a number that no name uses yet
   * @param fails called for each expression that can fail
   */
  constructor(names: () => number, fails: () => void) {
    this.#names = names
    this.#fails = fails
  }

  get isOpen(): boolean {
    return this.#depth > 0
  }

  add(...lines: readonly string[]): void {
    for (const line of lines.flatMap((text) => text.split('\n'))) this.#lines.push(`${'  '.repeat(this.#depth)}${line}`)
  }

  /** Stores a value in a variable, so that it is computed only once. */
  keep(value: Value): Value {
    if (/^[a-z]+\d+$/.test(value.code)) return value
    const name = `value${this.#names()}`
    this.add(`${name} = ${value.code}`)
    return { code: name, kind: value.kind }
  }

  /** A variable with a value whose kind the compiler does not know, so that no test of its kind is superfluous. */
  opaque({ code }: Value): string {
    return this.keep({ code: `get({ "value": ${code} }, ["value"]) ?? null`, kind: 'any' }).code
  }

  /** The result of an expression that can fail. */
  fallible(code: string, kind: Kind): Value {
    const name = `value${this.#names()}`
    this.#fails()
    this.add(`${name}, error = ${code}`)
    this.open('error == null')
    return { code: name, kind }
  }

  /**
   * A condition without which the collector fails.
   * @param stops whether further lines run only if it is true
   */
  require(condition: string, stops: boolean): void {
    this.#fails()
    if (stops) this.open(condition)
  }

  open(condition: string): void {
    this.add(`if ${condition} {`)
    this.#depth++
  }

  /** The value with a required kind. A value of another kind is a failure. */
  as(value: Value, kind: keyof typeof wanted): Value {
    if (value.kind === kind) return value
    if (value.kind !== 'any') throw new Unconvertible(`the value can never be a ${kind}`)
    return this.fallible(`${wanted[kind]}(${value.code})`, kind)
  }

  /** Converts any value to text. */
  textOf({ code, kind }: Value): string {
    if (kind === 'text') return code
    if (kind === 'any') return `(to_string(${code}) ?? encode_json(${code}))`
    if (kind === 'map' || kind === 'list') return `encode_json(${code})`
    return `to_string(${code})`
  }

  newName(prefix: string): string {
    return `${prefix}${this.#names()}`
  }

  /** All lines, with all blocks closed. */
  text(): string[] {
    while (this.#depth > 0) {
      this.#depth--
      this.add('}')
    }
    return this.#lines
  }
}

/**
 * The fields of the event, or of an object in a variable, that the program has set so far. Later lines must compile the same, whatever the
 * compiler knows about their kinds.
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
    // Remap rejects assignments below a value that is known not to be an object, and knows the members of objects.
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
