// Conditions: programs that return a boolean and change nothing, and the shorter forms of condition options.

import type { LogEvent } from '../event/log.ts'
import { MetricEvent } from '../event/metric.ts'
import { type Fact, fact } from '../telemetry/facts.ts'
import { positionOf, type Summary, summariesOf } from './diagnostics.ts'
import { failureFact, isFailure, type RemapError } from './function.ts'
import { kinds } from './kind.ts'
import { textLiteral } from './literal.ts'
import { type CompileOptions, compileProgram, type Runs } from './program.ts'
import { type Reads, readsOf } from './reads.ts'

/** A condition option: the program, or a table with a type. */
export type ConditionOption =
  | string
  | { readonly type: 'vrl'; readonly source: string }
  | { readonly type: 'datadog_search'; readonly source: string }
  | { readonly type: 'is_log' }
  | { readonly type: 'is_metric' }
  | { readonly type: 'is_trace' }

export interface EventCondition {
  /** Whether it holds; undefined if the program failed or was aborted, which counts as false. */
  holds(event: LogEvent | MetricEvent): boolean | undefined
  /** Why the last result was undefined. */
  readonly failure: Fact
  /** The parts of an event that determine the result. */
  readonly reads: Reads
  /** Rendered warnings of the compiler. */
  readonly warnings: readonly string[]
  /** Source of a program that needs the network: it runs elsewhere (`remote.ts`), and `by` evaluates runs from there. */
  readonly network?: { readonly source: string; by(runs: Runs): Pick<EventCondition, 'holds' | 'failure'> }
}

export type CompiledCondition =
  | { readonly ok: true; readonly condition: EventCondition }
  | {
      readonly ok: false
      readonly message: string
      readonly position?: { readonly line: number; readonly column: number }
      readonly rendered?: string
      readonly diagnostic?: Summary
    }

export function compileCondition(option: ConditionOption, options: CompileOptions = {}): CompiledCondition {
  const form = typeof option === 'string' ? { type: 'vrl' as const, source: option } : option
  switch (form.type) {
    case 'is_log':
      return kindCondition(false)
    case 'is_metric':
      return kindCondition(true)
    case 'is_trace':
      return { ok: true, condition: { holds: () => false, failure: none, reads: nothing, warnings: [] } }
    case 'datadog_search':
      return programCondition(`match_datadog_query(., ${textLiteral(form.source)})`, options)
    case 'vrl':
      return programCondition(form.source, options)
  }
}

function kindCondition(metric: boolean): CompiledCondition {
  const holds = (event: LogEvent | MetricEvent): boolean => event instanceof MetricEvent === metric
  return { ok: true, condition: { holds, failure: none, reads: nothing, warnings: [] } }
}

function programCondition(source: string, options: CompileOptions): CompiledCondition {
  const compiled = compileProgram(source, { ...options, readOnly: true, keepResult: true })
  if (!compiled.ok) {
    const first = compiled.diagnostics[0]
    const diagnostic = summariesOf(source, compiled.diagnostics)
    const span = first?.labels[0]?.span
    return {
      ok: false,
      message: `The condition does not compile: ${first?.message ?? 'unknown error'}.`,
      ...(span === undefined ? {} : { position: positionOf(source, span[0]) }),
      rendered: compiled.rendered,
      ...(diagnostic === undefined ? {} : { diagnostic }),
    }
  }
  const { program } = compiled
  if (!program.kind.is(kinds.boolean)) {
    return { ok: false, message: `The condition must return a boolean; this one returns ${program.kind}.` }
  }
  return {
    ok: true,
    condition: Object.assign(judge(program), {
      reads: readsOf(program),
      warnings: compiled.renderedWarnings === '' ? [] : [compiled.renderedWarnings],
      ...(program.usesNetwork ? { network: { source, by: judge } } : {}),
    }),
  }
}

const none = fact('')
const nothing: Reads = { ok: true, fields: [] }
const noBoolean = fact('The condition did not return a boolean.')

function judge(runs: Runs): Pick<EventCondition, 'holds' | 'failure'> {
  let failed: RemapError | undefined
  return {
    get failure() {
      return failed === undefined ? noBoolean : failureFact(failed)
    },
    holds(event: LogEvent | MetricEvent): boolean | undefined {
      const result =
        event instanceof MetricEvent ? runs.runOnMetric(event, 'single') : runs.run(event.fields, event.metadata, false)
      if (typeof result === 'boolean') return result
      failed = isFailure(result) ? result : undefined
      return undefined
    },
  }
}
