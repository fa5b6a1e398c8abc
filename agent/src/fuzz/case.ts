// One case: a program and events. It compiles the program, runs it on each event by the generated code and by the evaluator, and
// returns the first difference.

import { Script } from 'node:vm'
import type { EventMetadata } from '../event/log.ts'
import { Bytes, type Value, type ValueObject } from '../event/value.ts'
import { checkProgram } from '../remap/check/checker.ts'
import { renderDiagnostics } from '../remap/diagnostics.ts'
import { isFailure, type Result, type Runtime } from '../remap/function.ts'
import { isOfKind, type Kind, kindOf, kinds } from '../remap/kind.ts'
import { tokenize } from '../remap/lexer.ts'
import { parseProgram } from '../remap/parser.ts'
import { compileProgram } from '../remap/program.ts'
import { evaluate, TooManySteps } from './evaluate.ts'
import { described, freeze } from './inspect.ts'

export interface Case {
  readonly source: string
  readonly events: readonly ValueObject[]
  readonly metadata: ValueObject
  /** Whether the program may change its event in place. */
  readonly owned: boolean
  readonly keepResult: boolean
  /** The program must return `true`: it states a property of all values, without a reference. */
  readonly holds?: 'always' | 'unless it fails' | undefined
}

export interface Problem {
  /** The fault in a word: a smaller case shows the same problem if it has the same word. */
  readonly what:
    | 'exception'
    | 'hang'
    | 'difference'
    | 'input changed'
    | 'invalid value'
    | 'prototype'
    | 'diagnostic'
    | 'kind'
    | 'property'
  readonly text: string
}

export type Verdict = { readonly compiled: boolean; readonly problem: Problem | undefined; readonly failed: number }

const maxSteps = 20_000

interface Watched {
  penstockFuzz?: () => unknown
}
const watched = new Script('penstockFuzz()')

/** Calls a function, and stops it when it takes too long: also in a loop or in a regular expression. */
function within<T>(timeoutMs: number, run: () => T): T {
  const holder = globalThis as Watched
  holder.penstockFuzz = run
  try {
    return watched.runInThisContext({ timeout: timeoutMs }) as T
  } finally {
    delete holder.penstockFuzz
  }
}

export function runCase(test: Case, timeoutMs: number): Verdict {
  let verdict: Verdict
  try {
    verdict = within(timeoutMs, () => judged(test))
  } catch (error) {
    const hang = (error as { code?: unknown }).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
    const text = hang ? `took longer than ${timeoutMs} ms` : String((error as Error).stack ?? error)
    verdict = { compiled: true, problem: { what: hang ? 'hang' : 'exception', text }, failed: 0 }
  }
  const pollution = polluted()
  return pollution === undefined ? verdict : { ...verdict, problem: { what: 'prototype', text: pollution } }
}

function judged(test: Case): Verdict {
  const { source } = test
  const compiled = compileProgram(source, { keepResult: test.keepResult })
  const diagnostics = compiled.ok ? compiled.warnings : [...compiled.diagnostics, ...compiled.warnings]
  for (const { code, labels, severity } of diagnostics) {
    for (const { span } of labels) {
      if (!(span[0] >= 0 && span[0] <= span[1] && span[1] <= source.length)) {
        const text = `E${code} has the span ${span[0]}:${span[1]} in a source of ${source.length} units`
        return { compiled: compiled.ok, problem: { what: 'diagnostic', text }, failed: 0 }
      }
    }
    if ((severity === 'error' && compiled.ok) || labels.length === 0) {
      const text = `E${code}: ${severity} with ${labels.length} labels`
      return { compiled: compiled.ok, problem: { what: 'diagnostic', text }, failed: 0 }
    }
  }
  renderDiagnostics(source, diagnostics)
  if (!compiled.ok) {
    const silent = compiled.diagnostics.length === 0
    const problem: Problem | undefined = silent ? { what: 'diagnostic', text: 'no reason is given' } : undefined
    return { compiled: false, problem, failed: 0 }
  }
  const runtime = new EvaluatorRuntime()
  const { body, kind } = checkProgram(source, parseProgram(source), {
    eventKind: kinds.object,
    readOnly: false,
    runtime,
  })
  let failed = 0
  for (const event of test.events) {
    const before = described(event)
    const buffers = buffersOf([event, test.metadata])
    freeze(test.metadata, true)
    freeze(event, true)
    runtime.secrets = { known: 's3cret' }
    let expected: { result: Result; event: Value; metadata: Value }
    try {
      expected = evaluate(source, body, event, test.metadata, maxSteps)
    } catch (error) {
      // A value that grows without end: the generated code says so in its own way.
      if (error instanceof TooManySteps || error instanceof RangeError) continue
      throw new Error('the evaluator threw', { cause: error })
    }
    // The root of an owned event is a copy: everything below stays frozen.
    const root = test.owned ? { ...event } : event
    const metadata: EventMetadata = { value: test.metadata, secrets: Object.freeze({ known: 's3cret' }) }
    const result = compiled.program.run(root, metadata, test.owned)
    if (buffers.some(([bytes, copy]) => !bytes.bytes.equals(copy))) {
      return { compiled: true, problem: { what: 'input changed', text: 'bytes of the input were changed' }, failed }
    }
    if ((isFailure(result) || !test.owned) && described(root) !== before) {
      const text = `event before: ${before}\n  event after: ${described(root)}`
      return { compiled: true, problem: { what: 'input changed', text }, failed }
    }
    const actual = isFailure(result)
      ? ending(result)
      : [
          test.keepResult ? described(result) : '',
          described(compiled.program.frame.root),
          described(compiled.program.metadataAfter(metadata).value),
          described({ ...compiled.program.metadataAfter(metadata).secrets }),
        ]
    if (isFailure(result) && result.sort === 'exception') {
      return { compiled: true, problem: { what: 'exception', text: `event: ${before}\n  ${result.message}` }, failed }
    }
    if (isFailure(result)) failed++
    const wanted = isFailure(expected.result)
      ? ending(expected.result)
      : [
          test.keepResult ? described(expected.result) : '',
          described(expected.event),
          described(expected.metadata),
          described({ ...runtime.secrets }),
        ]
    if (actual.join('\n') !== wanted.join('\n')) {
      const text = `event: ${before}\n  expected: ${wanted.join('\n    ')}\n  got: ${actual.join('\n    ')}`
      return { compiled: true, problem: { what: 'difference', text }, failed }
    }
    const broken = brokenPromise(test, kind, result)
    if (broken !== undefined) {
      return { compiled: true, problem: { ...broken, text: `event: ${before}\n  ${broken.text}` }, failed }
    }
    const invalid = wanted.find((part) => part.includes('INVALID') && !before.includes('INVALID'))
    if (invalid !== undefined && !isFailure(result)) {
      return { compiled: true, problem: { what: 'invalid value', text: `event: ${before}\n  got: ${invalid}` }, failed }
    }
  }
  return { compiled: true, problem: undefined, failed }
}

/** A result that is not of the kind that the checker promised, or not `true` where it must be. */
function brokenPromise(test: Case, kind: Kind, result: Result): Problem | undefined {
  const mayFail = test.holds === undefined || (test.holds === 'unless it fails' && isFailure(result))
  if (!mayFail && result !== true) {
    const got = isFailure(result) ? ending(result).join(': ') : described(result)
    return { what: 'property', text: `what must hold does not: ${got}` }
  }
  if (!test.keepResult || isFailure(result) || kind.contains(kindOf(result))) return undefined
  // The kind is that of the last expression. After `??`, the assignments of its left side count as done.
  if (tokenize(test.source).some(({ text }) => text === 'return' || text === '??')) return undefined
  // A field that is not there reads as null.
  if (result === null && isOfKind(undefined, kind)) return undefined
  return { what: 'kind', text: `${described(result)} is not ${kind}` }
}

function ending(error: { outcome: string; message: string; given: string | null }): string[] {
  return [`ended as ${error.outcome}`, error.message, String(error.given)]
}

function buffersOf(value: Value): [Bytes, Buffer][] {
  if (value instanceof Bytes) return [[value, Buffer.from(value.bytes)]]
  if (typeof value !== 'object' || value === null) return []
  return Object.values(value).flatMap((item) => (item === undefined ? [] : buffersOf(item as Value)))
}

/** The environment of the evaluator's run, separate from that of the generated code. */
class EvaluatorRuntime implements Runtime {
  readonly timezone = 'UTC'
  readonly reach = 'everything'
  readonly maxBytes = 0x1fffffe8
  readonly network = false
  secrets: Readonly<Record<string, string>> = {}

  secret(name: string): string | undefined {
    return Object.hasOwn(this.secrets, name) ? this.secrets[name] : undefined
  }

  setSecret(name: string, value: string | undefined): void {
    const secrets = new Map(Object.entries(this.secrets))
    if (value === undefined) secrets.delete(name)
    else secrets.set(name, value)
    this.secrets = Object.fromEntries(secrets)
  }

  log(): void {}

  table(): undefined {
    return undefined
  }

  metrics(): readonly Value[] {
    return []
  }
}

const guarded = [Object.prototype, Array.prototype, Function.prototype, String.prototype, Number.prototype] as const
const namesBefore = guarded.map((prototype) => Object.getOwnPropertyNames(prototype).join())
const valuesBefore = new Map(
  Object.getOwnPropertyNames(Object.prototype).map((name) => [
    name,
    Object.getOwnPropertyDescriptor(Object.prototype, name)?.value,
  ]),
)

function polluted(): string | undefined {
  for (const [index, prototype] of guarded.entries()) {
    const names = Object.getOwnPropertyNames(prototype).join()
    if (names !== namesBefore[index]) return `a built-in prototype has other properties now: ${names}`
  }
  for (const [name, value] of valuesBefore) {
    if (Object.getOwnPropertyDescriptor(Object.prototype, name)?.value !== value)
      return `Object.prototype.${name} was changed`
  }
  return undefined
}
