// Programs: source text compiled once, run on frames or events. An invalid program gives diagnostics with their rendering.

import type { LoadedTable } from '../enrichment/table.ts'
import { errorText } from '../errors.ts'
import type { EventMetadata } from '../event/log.ts'
import type { MetricEvent } from '../event/metric.ts'
import type { Value, ValueObject } from '../event/value.ts'
import { type CheckedProgram, checkProgram, type ProgramFacts } from './check/checker.ts'
import { type Frame, type GeneratedProgram, generate } from './compile.ts'
import { ByteOffsets, type Diagnostic, renderDiagnostics } from './diagnostics.ts'
import { type ErrorPlace, isFailure, RemapError, type Result, type Runtime } from './function.ts'
import { type Kind, kindOf, kinds } from './kind.ts'
import { Meter } from './meter.ts'
import { applyToMetric, metricObject, type TagMode } from './metric-target.ts'
import { parseProgram } from './parser.ts'
import { excessOf, programLimits } from './program-size.ts'
import { type ProgramRules, platformRules } from './rules.ts'
import { isStackOverflow } from './stack.ts'

export interface CompileOptions {
  /** TZ database name for dates without a zone; UTC if not given. */
  readonly timezone?: string
  /** Whether event and metadata are read-only, as in conditions. */
  readonly readOnly?: boolean
  /** Static initial kind of the event: an object with any fields if not given. */
  readonly eventKind?: Kind
  /** Whether the value of the last expression is needed. */
  readonly keepResult?: boolean
  /** Whether functions may use the network. */
  readonly network?: boolean
  /** The limits of the program and the resources it may access: unlimited if not given. */
  readonly rules?: ProgramRules | undefined
  readonly log?: Runtime['log']
  readonly table?: (name: string) => LoadedTable | undefined
  /** Names of the tables that there are; if they are not given, calls are not checked for them. */
  readonly tableNames?: readonly string[] | undefined
  readonly metrics?: () => readonly Value[]
  /** Variables of earlier programs, as at a prompt; each run adds its own. */
  readonly variables?: Map<string, Value> | undefined
}

export type Compiled =
  | {
      readonly ok: true
      readonly program: Program
      readonly warnings: readonly Diagnostic[]
      readonly renderedWarnings: string
    }
  | {
      readonly ok: false
      readonly diagnostics: readonly Diagnostic[]
      readonly warnings: readonly Diagnostic[]
      /** All diagnostics as text with source excerpts. */
      readonly rendered: string
    }

export function compileProgram(source: string, options: CompileOptions = {}): Compiled {
  try {
    return compileNested(source, options)
  } catch (error) {
    if (!isStackOverflow(error)) throw error
    const span = [0, 0] as const
    const labels = [{ primary: true, span, message: 'write it in smaller parts' }]
    return failed(
      source,
      [{ severity: 'error', code: 203, message: 'the program is nested too deep', labels, notes: [] }],
      [],
    )
  }
}

function compileNested(source: string, options: CompileOptions): Compiled {
  const isLimited = options.rules?.budget !== undefined
  if (isLimited && source.length > programLimits.characters) {
    return tooLarge(source, `the program has ${source.length} characters; ${programLimits.characters} are allowed`)
  }
  const parsed = parseProgram(source)
  const excess = isLimited ? excessOf(parsed) : undefined
  if (excess !== undefined) return tooLarge(source, excess)
  const runtime = new ProgramRuntime(options)
  const checked = checkProgram(source, parsed, {
    eventKind: options.eventKind ?? kinds.object,
    readOnly: options.readOnly ?? false,
    runtime,
    variables: options.variables && new Map([...options.variables].map(([name, value]) => [name, kindOf(value)])),
  })
  if (checked.errors.length > 0) return failed(source, checked.errors, checked.warnings)
  return {
    ok: true,
    program: new Program(source, checked, runtime, options),
    warnings: checked.warnings,
    renderedWarnings: renderDiagnostics(source, checked.warnings),
  }
}

function failed(source: string, diagnostics: readonly Diagnostic[], warnings: readonly Diagnostic[]): Compiled {
  return { ok: false, diagnostics, warnings, rendered: renderDiagnostics(source, diagnostics) }
}

/** For programs with a budget: larger ones would delay the compilation of all other tenants' programs. */
function tooLarge(source: string, message: string): Compiled {
  const labels = [
    { primary: true, span: [0, 0] as const, message: 'write a shorter one, or divide it among several transforms' },
  ]
  return failed(source, [{ severity: 'error', code: 203, message, labels, notes: [] }], [])
}

/** The maximum length of a JavaScript string. */
const maxTextBytes = 0x1fffffe8

const noSecrets: EventMetadata['secrets'] = Object.freeze({})

class ProgramRuntime implements Runtime {
  readonly timezone: string
  readonly reach: Runtime['reach']
  readonly maxBytes: number
  readonly network: boolean
  networkUsed = false
  readonly log: Runtime['log']
  readonly table: Runtime['table']
  readonly tableNames: readonly string[] | undefined
  readonly metrics: Runtime['metrics']
  /** Secrets of the current event; replaced when the program changes them. */
  secrets = noSecrets

  constructor(options: CompileOptions) {
    this.timezone = options.timezone ?? 'UTC'
    const { reach, budget } = options.rules ?? platformRules
    this.reach = reach
    this.maxBytes = budget?.bytes ?? maxTextBytes
    this.network = options.network ?? false
    this.log = options.log ?? (() => {})
    this.table = options.table ?? (() => undefined)
    this.tableNames = options.tableNames
    this.metrics = options.metrics ?? (() => [])
  }

  secret(name: string): string | undefined {
    return Object.hasOwn(this.secrets, name) ? this.secrets[name] : undefined
  }

  setSecret(name: string, value: string | undefined): void {
    if (value !== undefined) {
      this.secrets = { ...this.secrets, [name]: value }
      return
    }
    const changed: Record<string, string> = { ...this.secrets }
    delete changed[name] // a small object outside the hot path
    this.secrets = changed
  }
}

/** Runs of a program, one event after another: of a `Program` itself, or recorded by a worker. */
export interface Runs {
  /** The state after the last run. */
  readonly frame: { readonly root: Value }
  /** Whether it may change events; other programs leave them unchanged. */
  readonly writes: boolean
  /** Root fields that runs may change; undefined if any may change or the root may be replaced. */
  readonly changes?: readonly string[] | undefined
  run(fields: ValueObject, metadata: EventMetadata, owned: boolean): Result
  metadataAfter(before: EventMetadata): EventMetadata
  runOnMetric(metric: MetricEvent, mode: TagMode): Result
}

export class Program implements Runs {
  readonly facts: ProgramFacts
  /** Static kind of the last expression. */
  readonly kind: Kind
  /** Static kind of the event after the program. */
  readonly eventKind: Kind
  /** Static kind of the metadata after the program. */
  readonly metadataKind: Kind
  readonly #source: string
  readonly #body: CheckedProgram['body']
  readonly #runtime: ProgramRuntime
  readonly #keepResult: boolean
  readonly #meter: Meter | undefined
  readonly #generated: GeneratedProgram
  #forMetrics: GeneratedProgram | undefined
  /** The state after the last run: the event's root, metadata, and whether the root has no other holder. */
  readonly frame: Frame
  readonly #kept: CheckedProgram['variables'] | undefined
  /** A program of some of the root expressions, which must not depend on the others. */
  readonly part: (body: CheckedProgram['body']) => Program

  constructor(source: string, checked: CheckedProgram, runtime: ProgramRuntime, options: CompileOptions) {
    this.part = (body) => new Program(source, { ...checked, body }, runtime, options)
    this.facts = checked.facts
    this.kind = checked.kind
    this.eventKind = checked.eventKind
    this.metadataKind = checked.metadataKind
    this.#source = source
    this.#body = checked.body
    this.#runtime = runtime
    this.#keepResult = options.keepResult ?? false
    const { variables } = options
    this.#kept = variables === undefined ? undefined : checked.variables
    this.frame = { root: null, metadata: {}, own: false, tagMode: 'single', ...(variables && { variables }) }
    const budget = options.rules?.budget
    this.#meter = budget === undefined ? undefined : new Meter(budget)
    this.#generated = this.#generate('log')
  }

  /** The root expressions as checked. */
  get statements(): CheckedProgram['body'] {
    return this.#body
  }

  /** The generated JavaScript. */
  get code(): string {
    return this.#generated.code
  }

  /** Whether its runs are charged to a budget; programs with a small bound are not. */
  get isMetered(): boolean {
    return this.#generated.counts
  }

  get writes(): boolean {
    return this.#generated.writesEvent || this.#generated.writesMetadata
  }

  /** Whether it calls functions that wait for the network. */
  get usesNetwork(): boolean {
    return this.#runtime.networkUsed
  }

  get changes(): readonly string[] | undefined {
    return this.#generated.changes
  }

  #generate(target: 'log' | 'metric'): GeneratedProgram {
    const bytes = new ByteOffsets(this.#source)
    const placeOf = (span: readonly [number, number], name: string): ErrorPlace => {
      const [start, end] = bytes.span(span)
      return { name, start, end }
    }
    const [keepResult, meter, kept] = [this.#keepResult, this.#meter, this.#kept]
    return generate(this.#body, placeOf, { keepResult, target, meter, kept })
  }

  /**
   * Runs on the fields of a log event. `frame` contains the result until the next run; a failure leaves the fields
   * unchanged. @param owned whether the fields may be changed in place
   */
  run(fields: ValueObject, metadata: EventMetadata, owned: boolean): Result {
    const { frame } = this
    frame.root = fields
    frame.metadata = metadata.value as ValueObject
    frame.own = owned && !this.#generated.needsCopy
    this.#runtime.secrets = metadata.secrets
    return guarded(this.#generated, frame)
  }

  /** Metadata after a run; the same object if nothing changed. */
  metadataAfter(before: EventMetadata): EventMetadata {
    const value = this.frame.metadata
    const { secrets } = this.#runtime
    return value === before.value && secrets === before.secrets ? before : { value, secrets }
  }

  /** Runs on a metric event and changes it, unless the run fails. */
  runOnMetric(metric: MetricEvent, mode: TagMode): Result {
    this.#forMetrics ??= this.#generate('metric')
    const shown = metricObject(metric, mode)
    const { frame } = this
    frame.root = { ...shown }
    frame.metadata = metric.metadata.value as ValueObject
    frame.own = true
    frame.tagMode = mode
    this.#runtime.secrets = metric.metadata.secrets
    const result = guarded(this.#forMetrics, frame)
    if (isFailure(result)) return result
    if (this.#forMetrics.writesEvent) applyToMetric(metric, shown, frame.root as ValueObject, mode)
    metric.metadata = this.metadataAfter(metric.metadata)
    return result
  }
}

/**
 * Bad data must not end the process: an exception in a program, such as for a string that is too long, becomes its
 * failure.
 */
function guarded(program: GeneratedProgram, frame: Frame): Result {
  try {
    return program.run(frame)
  } catch (error) {
    return new RemapError(`the program could not continue: ${errorText(error)}`, 'fatal', null, null, 'exception')
  }
}
