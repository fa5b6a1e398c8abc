// For a tenant's component, the log and the status show only facts: numbers, and text that its producer declares with `fact`. All other
// text, such as the message of an error, may contain parts of events, responses or secrets, and is omitted.

import { codeText, errorCodes, type FailureKind, failureOf, PenstockError } from '../errors.ts'

/** Text without parts of events, responses or secrets: a name, a fixed word, or a constant sentence. */
export class Fact {
  readonly text: string
  readonly shown: string

  constructor(text: string, shown = text) {
    this.text = text
    this.shown = shown
  }

  toJSON(): string {
    return this.text
  }

  toString(): string {
    return this.text
  }
}

/** Declares that logs may show a text. */
export function fact(text: string): Fact {
  return new Fact(text)
}

/** Declares all texts of a table as facts. */
export function facts(texts: Readonly<Record<string, string>>): Record<string, Fact> {
  const found: Record<string, Fact> = {}
  for (const name in texts) found[name] = new Fact(texts[name] as string)
  return found
}

/** Text about an error. For a tenant's component, logs show only the class of the error. */
export const errorFact = (text: string, error: unknown): Fact => new Fact(text, factText(error))

/** The class of an error as text. */
export const factText = (error: unknown): string => (error instanceof Error ? factsOf(error).message : 'Error.')

/** Keeps only the facts among the fields of a log record, and replaces errors by their class. */
export function factsOnly(fields: object): Record<string, unknown> {
  const kept: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(fields)) {
    if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint') kept[name] = value
    else if (value instanceof Fact) kept[name] = value.shown
    else if (value instanceof Error) kept[name] = factsOf(value)
    else if (Array.isArray(value)) kept[name] = value.filter((item) => item instanceof Fact)
  }
  return kept
}

/** Matches the error codes of the system and of libraries, which are constants. */
const codeShape = /^[A-Z][A-Z0-9_]{1,63}$/
const maxCauses = 5

/** The class of an error and of each of its causes. */
function factsOf(error: Error): { readonly message: string; readonly code?: string; readonly kind?: FailureKind } {
  const texts: string[] = []
  let code: string | undefined
  let next: unknown = error
  for (let depth = 0; depth < maxCauses && next instanceof Error; depth++, next = next.cause) {
    const own = next as Error & { readonly code?: unknown; readonly syscall?: unknown }
    if (own instanceof PenstockError) {
      texts.push(own.fact ?? errorCodes[own.code])
      code ??= own.code
      if (own.fact !== undefined) break // the fact already describes the causes
    } else if (typeof own.code === 'string' && codeShape.test(own.code)) {
      texts.push(codeText(own.code))
      code ??= own.code
    } else if (depth === 0) {
      texts.push(`${own.constructor.name}.`)
    }
  }
  return { message: [...new Set(texts)].join(' '), ...(code === undefined ? {} : { code }), ...failureOf(error) }
}
