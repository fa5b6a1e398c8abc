// Describes the compiler's knowledge of a program: the kind of each statement's result, how it may end the program, and the
// resulting event and metadata.

import { positionOf } from './diagnostics.ts'
import type { Kind } from './kind.ts'
import type { Typed } from './typed.ts'

export interface ExplainedProgram {
  readonly statements: readonly Typed[]
  readonly kind: Kind
  readonly eventKind: Kind
  readonly metadataKind: Kind
}

/** Longest statement text shown in full. */
const maxShown = 72

export function explainProgram(source: string, program: ExplainedProgram): string {
  const lines: string[] = []
  const ends = new Set<string>()
  for (const statement of program.statements) {
    const { line } = positionOf(source, statement.span[0])
    lines.push(`${line}: ${shown(source.slice(...statement.span))}`, `   kind: ${statement.kind}`)
    const found = endings(statement, source)
    for (const ending of found) ends.add(ending.name)
    lines.push(
      found.length === 0
        ? '   cannot fail'
        : `   may end the program: ${found.map(({ name, place }) => `${name} at ${place}`).join(', ')}`,
    )
  }
  const sums = [
    `Result: ${program.kind}`,
    `Event after the program: ${program.eventKind}`,
    ...fieldLines(program.eventKind, '  .'),
    `Metadata after the program: ${program.metadataKind}`,
    ...fieldLines(program.metadataKind, '  %'),
    `The program may end early: ${ends.size === 0 ? 'no' : `yes, by ${[...ends].join(', ')}`}`,
  ]
  return `${[...lines, ...(lines.length === 0 ? [] : ['']), ...sums].join('\n')}\n`
}

/** The known fields with their paths. */
function fieldLines(kind: Kind, path: string): string[] {
  return [...(kind.object?.known ?? [])].flatMap(([name, field]) => {
    const word = /^[@_A-Za-z][@\w]*$/.test(name) ? name : JSON.stringify(name)
    return [`${path}${word}: ${field}`, ...fieldLines(field, `${path}${word}.`)]
  })
}

function shown(text: string): string {
  const [first = '', ...more] = text.split('\n')
  const line = first.trimEnd()
  if (line.length > maxShown) return `${line.slice(0, maxShown)}…`
  return more.length > 0 ? `${line} …` : line
}

interface Ending {
  readonly name: string
  readonly place: string
}

/** Calls with `!` that may fail, calls that fail without declaring it, `abort` and `return`. */
function endings(statement: Typed, source: string): Ending[] {
  const found: Ending[] = []
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) {
      for (const item of value) visit(item)
      return
    }
    if (!isTyped(value)) return
    const name = endingOf(value)
    if (name !== undefined) {
      const { line, column } = positionOf(source, value.span[0])
      found.push({ name, place: `${line}:${column}` })
    }
    for (const [member, inner] of Object.entries(value)) {
      if (member === 'closure') visit((inner as { body?: Typed } | undefined)?.body)
      else visit(inner)
    }
  }
  visit(statement)
  return found
}

function endingOf(typed: Typed): string | undefined {
  switch (typed.op) {
    case 'abort':
    case 'return':
      return typed.op
    case 'call':
      if (typed.fallible) return undefined // `??` or `ok, err =` handles it
      if (typed.canFail) return `${typed.declaration.name}!`
      return typed.declaration.failsUnannounced === true ? typed.declaration.name : undefined
    default:
      return undefined
  }
}

function isTyped(value: unknown): value is Typed {
  return typeof value === 'object' && value !== null && 'op' in value && 'span' in value
}
