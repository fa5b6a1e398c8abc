// The text of a generated program: its lines, names and constants.

import type { Value } from '../../event/value.ts'

export class Output {
  /** Values referred to as `k0`, `k1`, … in the code. */
  readonly constants: unknown[] = []
  readonly #constantNames = new Map<unknown, string>()
  lines: string[] = []
  /** Code that does not depend on the event: it runs once, not in each run. */
  readonly onceLines: string[] = []
  #names = 0

  emit(line: string): void {
    this.lines.push(line)
  }

  name(): string {
    return `t${this.#names++}`
  }

  /** A label for `break`. */
  label(): string {
    return `L${this.#names++}`
  }

  /** Stores the value of an expression for later lines in a variable, and returns its name. */
  temp(expression: string): string {
    // Later lines may assign to a variable, so its current value needs a name of its own.
    if (/^(?:[tk]\d+|null|true|false)$/.test(expression)) return expression
    const name = this.name()
    this.emit(`const ${name} = ${expression};`)
    return name
  }

  /** The name for a constant. */
  hoist(value: unknown): string {
    const known = this.#constantNames.get(value)
    if (known !== undefined) return known
    const name = `k${this.constants.length}`
    this.constants.push(value)
    this.#constantNames.set(value, name)
    return name
  }

  /** JavaScript for a value. */
  literal(value: Value): string {
    if (value === null || typeof value === 'boolean') return String(value)
    if (typeof value === 'string')
      return JSON.stringify(value).replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029')
    if (typeof value === 'number' && Number.isFinite(value)) return value < 0 ? `(${value})` : String(value)
    return this.hoist(value)
  }

  /** Collects the lines that `body` emits separately. */
  apart(body: () => string): { value: string; lines: string[] } {
    const outer = this.lines
    this.lines = []
    const value = body()
    const lines = this.lines
    this.lines = outer
    return { value, lines }
  }
}
