// One case: a program and events. Compiles the program, runs it on all events with the generated code and with the evaluator, and returns
// the first difference.

import { Script } from 'node:vm'
import type { EventMetadata } from '../event/log.ts'
import { Bytes, type Value, type ValueObject } from '../event/value.ts'
import { checkProgram } from '../remap/check/checker.ts'
import { isUnseen } from '../remap/compile/search.ts'
import { type Diagnostic, renderDiagnostics } from '../remap/diagnostics.ts'
import { isFailure, type Result, type Runtime } from '../remap/function.ts'
import { isOfKind, type Kind, kindOf, kinds } from '../remap/kind.ts'
import { tokenize } from '../remap/lexer.ts'
import { parseProgram } from '../remap/parser.ts'
import { compileProgram, type Program } from '../remap/program.ts'
import { some } from '../remap/typed.ts'
import { evaluate, TooManySteps } from './evaluate.ts'
import { described, freeze } from './inspect.ts'

export interface Case {
  readonly source: string
  readonly events: readonly ValueObject[]
  readonly metadata: ValueObject
  /** Whether the program may change its event in place. */
  readonly owned: boolean
  readonly keepResult: boolean
  /** The program must return `true`, because it states a property of all values. */
  readonly holds?: 'always' | 'unless it fails' | undefined
}

export interface Problem {
  /** The kind of problem. A smaller case has the same problem if the kind is the same. */
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

/** Maximum time of a call on a busy machine, as a multiple of its limit. */
const maxWaiting = 64

/**
 * Calls a function, and stops it when it takes too long, even inside a loop or a regular expression. Only CPU time counts: a call that a
 * busy machine delayed runs again, with more time.
 */
export function within<T>(timeoutMs: number, run: () => T): T {
  const holder = globalThis as Watched
  for (let timeout = timeoutMs; ; timeout *= 4) {
    const start = process.cpuUsage()
    holder.penstockFuzz = run
    try {
      return watched.runInThisContext({ timeout }) as T
    } catch (error) {
      const { user, system } = process.cpuUsage(start)
      const delayed = isTimeout(error) && (user + system) / 1000 < timeoutMs && timeout < timeoutMs * maxWaiting
      if (!delayed) throw error
    } finally {
      delete holder.penstockFuzz
    }
  }
}

export function isTimeout(error: unknown): boolean {
  return (error as { code?: unknown }).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT'
}

export function runCase(test: Case, timeoutMs: number): Verdict {
  let verdict: Verdict
  try {
    verdict = within(timeoutMs, () => judged(test))
  } catch (error) {
    const hang = isTimeout(error)
    const text = hang ? `took more than ${timeoutMs} ms of CPU time` : String((error as Error).stack ?? error)
    verdict = { compiled: true, problem: { what: hang ? 'hang' : 'exception', text }, failed: 0 }
  }
  const pollution = polluted()
  return pollution === undefined ? verdict : { ...verdict, problem: { what: 'prototype', text: pollution } }
}

function judged(test: Case): Verdict {
  const { source } = test
  const compiled = compileProgram(source, { keepResult: test.keepResult })
  const diagnostics = compiled.ok ? compiled.warnings : [...compiled.diagnostics, ...compiled.warnings]
  const wrong = wrongDiagnostic(diagnostics, source.length, compiled.ok)
  if (wrong !== undefined) return { compiled: compiled.ok, problem: wrong, failed: 0 }
  renderDiagnostics(source, diagnostics)
  if (!compiled.ok) {
    const silent = compiled.diagnostics.length === 0
    const problem: Problem | undefined = silent ? { what: 'diagnostic', text: 'no reason is given' } : undefined
    return { compiled: false, problem, failed: 0 }
  }
  const runtime = new EvaluatorRuntime()
  const checked = checkProgram(source, parseProgram(source), { eventKind: kinds.object, readOnly: false, runtime })
  let failed = 0
  for (const event of test.events) {
    const problem = problemWith(event, test, compiled.program, checked, runtime, () => failed++)
    if (problem !== undefined) return { compiled: true, problem, failed }
  }
  return { compiled: true, problem: undefined, failed }
}

function wrongDiagnostic(diagnostics: readonly Diagnostic[], units: number, isCompiled: boolean): Problem | undefined {
  for (const { code, labels, severity } of diagnostics) {
    for (const { span } of labels) {
      if (span[0] >= 0 && span[0] <= span[1] && span[1] <= units) continue
      return { what: 'diagnostic', text: `E${code} has the span ${span[0]}:${span[1]} in a source of ${units} units` }
    }
    if ((severity === 'error' && isCompiled) || labels.length === 0)
      return { what: 'diagnostic', text: `E${code}: ${severity} with ${labels.length} labels` }
  }
  return undefined
}

/** Runs the program on one event, compiled and evaluated, and compares the results. */
function problemWith(
  event: ValueObject,
  test: Case,
  program: Program,
  { body, kind }: ReturnType<typeof checkProgram>,
  runtime: EvaluatorRuntime,
  onFailure: () => void,
): Problem | undefined {
  const before = described(event)
  const buffers = buffersOf([event, test.metadata])
  freeze(test.metadata, true)
  freeze(event, true)
  runtime.secrets = { known: 's3cret' }
  let expected: { result: Result; event: Value; metadata: Value }
  try {
    expected = evaluate(test.source, body, event, test.metadata, maxSteps)
  } catch (error) {
    // A value grows without limit. The generated code reports this differently.
    if (error instanceof TooManySteps || error instanceof RangeError) return undefined
    throw new Error('the evaluator threw', { cause: error })
  }
  // Only the root of an owned event is a copy; everything below stays frozen.
  const root = test.owned ? { ...event } : event
  const metadata: EventMetadata = { value: test.metadata, secrets: Object.freeze({ known: 's3cret' }) }
  const result = program.run(root, metadata, test.owned)
  if (buffers.some(([bytes, copy]) => !bytes.bytes.equals(copy)))
    return { what: 'input changed', text: 'bytes of the input were changed' }
  if ((isFailure(result) || !test.owned) && described(root) !== before)
    return { what: 'input changed', text: `event before: ${before}\n  event after: ${described(root)}` }
  const actual = outcomeOf(test, result, () => {
    const { value, secrets } = program.metadataAfter(metadata)
    return [program.frame.root, value, { ...secrets }]
  })
  if (isFailure(result) && result.sort === 'exception')
    return { what: 'exception', text: `event: ${before}\n  ${result.message}` }
  if (isFailure(result)) onFailure()
  const { secrets } = runtime
  const wanted = outcomeOf(test, expected.result, () => [expected.event, expected.metadata, { ...secrets }])
  if (actual.join('\n') !== wanted.join('\n')) {
    const text = `event: ${before}\n  expected: ${wanted.join('\n    ')}\n  got: ${actual.join('\n    ')}`
    return { what: 'difference', text }
  }
  // The checker promises no kinds after effects that it does not see, and for calls whose kind the language defines.
  const promised = body.some((typed) => some(typed, isUnseen)) ? kinds.any : kind
  const broken = brokenPromise(test, promised, result)
  if (broken !== undefined) return { ...broken, text: `event: ${before}\n  ${broken.text}` }
  const invalid = wanted.find((part) => part.includes('INVALID') && !before.includes('INVALID'))
  if (invalid === undefined || isFailure(result)) return undefined
  return { what: 'invalid value', text: `event: ${before}\n  got: ${invalid}` }
}

/** The parts of an outcome that must be equal, as texts. Event, metadata and secrets are in their state after the run. */
function outcomeOf(test: Case, result: Result, after: () => readonly Value[]): string[] {
  if (isFailure(result)) return ending(result)
  return [test.keepResult ? described(result) : '', ...after().map(described)]
}

/** Checks that a result has the kind that the checker promised, and is `true` if required. */
function brokenPromise(test: Case, kind: Kind, result: Result): Problem | undefined {
  const mayFail = test.holds === undefined || (test.holds === 'unless it fails' && isFailure(result))
  if (!mayFail && result !== true) {
    const got = isFailure(result) ? ending(result).join(': ') : described(result)
    return { what: 'property', text: `the property does not hold: ${got}` }
  }
  if (!test.keepResult || isFailure(result) || kind.contains(kindOf(result))) return undefined
  // The kind is that of the last expression. After `??`, the checker assumes that the assignments of its left side have run.
  if (tokenize(test.source).some(({ text }) => text === 'return' || text === '??')) return undefined
  // A missing field reads as null.
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
