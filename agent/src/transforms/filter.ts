// Filter transform: sends on events that meet a condition, and discards all others. A batch whose events all pass is sent on unchanged. An
// event for which the program fails does not pass, and counts as discarded because of an error, not as filtered.

import { ByteBatch } from '../bytes/byte-batch.ts'
import { defineTransform, type Globals, type TransformContext, type TransformOutput } from '../component.ts'
import { PenstockError } from '../errors.ts'
import { type Batch, type LogBatch, logBatch, type MetricBatch, metricBatch } from '../event/batch.ts'
import { LogEvent } from '../event/log.ts'
import type { MetricEvent } from '../event/metric.ts'
import { compileCondition, type EventCondition } from '../remap/condition.ts'
import { positionOf } from '../remap/diagnostics.ts'
import { metricReader } from '../remap/own-metrics.ts'
import type { CompileOptions } from '../remap/program.ts'
import { RemoteProgram } from '../remap/remote.ts'
import { either, program, tagged } from '../schema/options.ts'
import type { Fact } from '../telemetry/facts.ts'

export const filter = defineTransform({
  type: 'filter',
  summary: 'Passes events that meet a condition, and discards all others.',
  description:
    'A condition is a program that returns a boolean. It cannot change the event. If it fails or aborts, the event does not pass: it counts as an error of the component, and as discarded with `intentional="false"`.',
  accepts: ['log', 'metric'],
  options: {
    condition: either(
      program('The program.', 'condition', { examples: ['exists(.message)', '.status == 500'] }),
      tagged(
        'type',
        {
          vrl: { source: program('The program.', 'condition') },
          datadog_search: {
            source: program('A query in the syntax of the function `match_datadog_query`.', 'condition'),
          },
          is_log: {},
          is_metric: {},
          is_trace: {},
        },
        'The condition, as a table.',
      ),
      'The condition: a program, or a table with a `type`.',
    ),
  },

  check(options, globals) {
    const compiled = compileCondition(options.condition, settingsOf(globals))
    if (compiled.ok) return []
    const { message, position, rendered, diagnostic } = compiled
    return [
      {
        path: typeof options.condition === 'string' ? 'condition' : 'condition.source',
        message,
        ...(position === undefined ? {} : { position }),
        ...(rendered === undefined ? {} : { rendered }),
        ...(diagnostic === undefined ? {} : { diagnostic }),
      },
    ]
  },

  objectsBecause(options, globals) {
    const compiled = compileCondition(options.condition, settingsOf(globals))
    if (!compiled.ok) return 'its condition does not compile'
    const { reads } = compiled.condition
    if (reads.ok) return undefined
    const source = typeof options.condition === 'string' ? options.condition : undefined
    const line = source === undefined ? 1 : positionOf(source, reads.obstacle.at).line
    return `line ${line} of its condition ${reads.obstacle.text}`
  },

  build(options, context) {
    const { logger } = context
    const settings: CompileOptions = {
      ...settingsOf(context.globals),
      metrics: metricReader(context.metrics),
      log: context.programLog ?? ((level, text) => logger[level]({ text }, 'The program logged a message.')),
    }
    const compiled = compileCondition(options.condition, settings)
    if (!compiled.ok) throw new PenstockError('PEN_CONFIG_INVALID', compiled.rendered ?? compiled.message)
    const { condition } = compiled
    for (const warnings of condition.warnings) logger.warn({ warnings }, 'The condition has warnings.')
    const { network, reads } = condition
    if (network === undefined) {
      const fields = context.globals.remap?.byte_lane !== false && reads.ok ? reads.fields : undefined
      return {
        takesBytes: fields !== undefined,
        transform: (batch, output) =>
          fields !== undefined && batch instanceof ByteBatch && batch.isLines
            ? passLines(batch, fields, output, condition, context)
            : pass(batch, output, condition, context),
      }
    }
    // The program uses the network, so it runs in a separate worker and nothing else has to wait.
    const remote = new RemoteProgram(network.source, { ...settings, readOnly: true }, false, 'single')
    return {
      async transform(batch, output) {
        await pass(batch, output, network.by(await remote.run(batch)), context)
      },
      close: () => remote.close(),
    }
  },
})

/** Sends on the events of a batch that meet the condition. */
function pass(
  batch: Batch,
  output: TransformOutput,
  condition: Pick<EventCondition, 'holds' | 'failure'>,
  context: TransformContext,
): Promise<void> | undefined {
  const events: readonly (LogEvent | MetricEvent)[] = batch.events
  let passed: (LogEvent | MetricEvent)[] | undefined
  let failed = 0
  for (let index = 0; index < events.length; index++) {
    const event = events[index] as LogEvent | MetricEvent
    const holds = condition.holds(event)
    if (holds === true) {
      passed?.push(event)
      continue
    }
    if (holds === undefined) failed++
    passed ??= events.slice(0, index)
  }
  if (passed === undefined) return output.send(batch)
  report(context, failed, events.length - passed.length - failed, condition.failure)
  if (passed.length > 0) return output.send(rest(batch, passed))
  batch.finalizer.release(1, 'dropped')
  return undefined
}

/**
 * Does the same for events that are still lines. The condition runs only once for lines with equal fields.
 * @param fields the fields that the condition reads
 */
function passLines(
  batch: ByteBatch,
  fields: readonly string[],
  output: TransformOutput,
  condition: Pick<EventCondition, 'holds' | 'failure'>,
  context: TransformContext,
): Promise<void> | undefined {
  const { count } = batch
  const groups = batch.groups(fields)
  const known = new Map<number, Verdict>()
  const passed = new Int32Array(count)
  let length = 0
  let failed = 0
  let failure: Fact | undefined
  for (let index = 0; index < count; index++) {
    const group = groups?.[index] ?? -1
    let verdict = group < 0 ? undefined : known.get(group)
    if (verdict === undefined) {
      verdict = verdictOn(batch, index, fields, condition)
      if (group >= 0) known.set(group, verdict)
    }
    if (verdict.holds === true) passed[length++] = index
    else if (verdict.holds === undefined) {
      failed++
      failure = verdict.failure
    }
  }
  if (length === count) return output.send(batch)
  report(context, failed, count - length - failed, failure)
  if (length > 0) return output.send(batch.select(passed.subarray(0, length)))
  batch.done()
  batch.finalizer.release(1, 'dropped')
  return undefined
}

interface Verdict {
  readonly holds: boolean | undefined
  readonly failure: Fact | undefined
}

function verdictOn(
  batch: ByteBatch,
  index: number,
  fields: readonly string[],
  condition: Pick<EventCondition, 'holds' | 'failure'>,
): Verdict {
  const { metadata } = batch.eventAt(index)
  const holds = condition.holds(new LogEvent(batch.fieldsOf(index, fields), metadata))
  return { holds, failure: holds === undefined ? condition.failure : undefined }
}

/** Counts events that do not pass. */
function report(context: TransformContext, failed: number, unmet: number, failure: Fact | undefined): void {
  const { events } = context
  if (failed > 0) {
    events.error({
      type: 'condition_failed',
      stage: 'processing',
      message: 'VRL condition execution failed.',
      fields: { error: failure },
      count: failed,
    })
    events.discarded(failed, false, 'The condition failed.')
  }
  if (unmet > 0) events.discarded(unmet, true, 'Events did not meet the condition.')
}

function settingsOf({ timezone, remap, programs, tables, tableNames }: Globals): CompileOptions {
  const network = remap?.network ?? false
  return { timezone, network, rules: programs, table: (name) => tables?.find(name), tableNames }
}

/** The events that pass, as a batch that takes over the finalizer share of the original batch. */
function rest(batch: LogBatch | MetricBatch, events: (LogEvent | MetricEvent)[]): LogBatch | MetricBatch {
  if (batch.type === 'metric') {
    const part = metricBatch(events as MetricEvent[], batch.finalizer)
    return batch.shared ? part.share() : part
  }
  const part = logBatch(events as LogEvent[], batch.finalizer)
  return batch.shared ? part.share() : part
}
