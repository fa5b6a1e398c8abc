// Remap transform: runs a program on each event. The program is compiled once, and a batch is processed in a plain loop. Depending on the
// options, an event for which the program fails is sent on unchanged, discarded, or sent to the output `dropped`.

import { ByteBatch } from '../bytes/byte-batch.ts'
import {
  defineTransform,
  type Globals,
  type OptionProblem,
  type TransformContext,
  type TransformOutput,
} from '../component.ts'
import { PenstockError } from '../errors.ts'
import { type LogBatch, logBatch, type MetricBatch, metricBatch, ownEvents } from '../event/batch.ts'
import { LogEvent, rootFor } from '../event/log.ts'
import type { MetricEvent } from '../event/metric.ts'
import { copyObject, isObject, type Value, type ValueObject } from '../event/value.ts'
import { zoneName, zoneProblems } from '../formats/timezone.ts'
import { GivenFileError, readGivenText } from '../given-file.ts'
import { named, positionOf, positionOfByte, summariesOf } from '../remap/diagnostics.ts'
import { failureFact, isFailure, type RemapError } from '../remap/function.ts'
import type { TagMode } from '../remap/metric-target.ts'
import { metricReader } from '../remap/own-metrics.ts'
import { type CompileOptions, compileProgram, Program, type Runs } from '../remap/program.ts'
import { RemoteProgram } from '../remap/remote.ts'
import { type ProgramRules, platformRules } from '../remap/rules.ts'
import { obstacleOf, type Splice, spliceOf } from '../remap/splice.ts'
import { bool, float, list, oneOf, optional, path, program, text } from '../schema/options.ts'
import { TokenBucket } from '../timing/token-bucket.ts'

interface SourceOptions {
  readonly source: string | undefined
  readonly file: string | undefined
  readonly files: readonly string[] | undefined
  readonly timezone: string | undefined
}

export const remap = defineTransform({
  type: 'remap',
  summary: 'Runs a program of the remap language on each event.',
  description:
    'Set exactly one of `source`, `file` and `files`. If a program fails or aborts, all its changes are undone. The pages on the [language](../language/language.md) describe programs.',
  accepts: ['log', 'metric'],
  options: {
    source: optional(program('The program.', 'program', { examples: ['.env = "prod"'] })),
    file: optional(path('File with the program, relative to the working directory.', { use: 'read' })),
    files: optional(list(path('A file.', { use: 'read' }), 'Files that make up the program, joined in order.')),
    drop_on_error: bool(
      'Whether to discard an event for which the program fails, instead of sending it on unchanged.',
      {
        default: false,
      },
    ),
    drop_on_abort: bool(
      'Whether to discard an event for which the program aborts, instead of sending it on unchanged.',
      {
        default: true,
      },
    ),
    reroute_dropped: bool('Whether to send discarded events to the output `dropped`, with the reason added.', {
      default: false,
    }),
    reroute_dropped_limit: optional(
      float(
        'Maximum number of events per second that are sent to `dropped`, with bursts of up to one second. Events beyond it are discarded.',
        {
          exclusiveMinimum: 0,
        },
      ),
    ),
    timezone: optional(
      text('Time zone for dates without one: a name from the TZ database, or `local`. Overrides the global option.', {
        examples: ['Europe/Berlin'],
      }),
    ),
    metric_tag_values: oneOf(
      ['single', 'full', 'auto'],
      'How the program sees the tags of metrics: `single` as strings, `full` as arrays, `auto` as arrays only if a tag has several values.',
      { default: 'single' },
    ),
    runtime: oneOf(['ast'], 'Accepted for compatibility, without effect.', { default: 'ast' }),
  },

  ports: (options) => (options.reroute_dropped ? ['dropped'] : []),

  check(options, globals) {
    const source = readSource(options, globals.programs)
    if (source === undefined) return []
    if (typeof source !== 'string') return [source]
    const problems = zoneProblems('timezone', options.timezone)
    if (problems.length > 0) return problems
    const compiled = compileProgram(source, settingsOf(options, globals))
    if (compiled.ok) return []
    const first = compiled.diagnostics[0]
    const diagnostic = summariesOf(source, compiled.diagnostics)
    const problem: OptionProblem = {
      path: options.source !== undefined ? 'source' : options.file !== undefined ? 'file' : 'files',
      message: `The program does not compile: ${first?.message ?? 'unknown error'} (E${String(first?.code ?? 0).padStart(3, '0')}).`,
      // The option does not contain the text of a program file, so a position in that file has no position in the
      // option.
      ...(options.source === undefined ? {} : { position: positionOf(source, first?.labels[0]?.span[0] ?? 0) }),
      rendered: options.file === undefined ? compiled.rendered : named(compiled.rendered, options.file),
      ...(diagnostic === undefined ? {} : { diagnostic }),
    }
    return [problem]
  },

  objectsBecause(options, globals) {
    const source = readSource(options, globals.programs)
    if (typeof source !== 'string') return 'its program is unknown here'
    const compiled = compileProgram(source, settingsOf(options, globals))
    if (!compiled.ok) return 'its program does not compile'
    const obstacle = obstacleOf(compiled.program)
    if (obstacle === undefined) return undefined
    const { line } = positionOf(source, obstacle.at)
    return `line ${line} of its program ${obstacle.text}`
  },

  build(options, context) {
    const source = readSource(options, context.globals.programs)
    if (source === undefined)
      throw new PenstockError('PEN_CONFIG_INVALID', 'The program is in a file, and files cannot be opened here.')
    if (typeof source !== 'string') throw new PenstockError('PEN_CONFIG_INVALID', source.message)
    const { logger } = context
    const settings: CompileOptions = {
      ...settingsOf(options, context.globals),
      table: (name) => context.globals.tables?.find(name),
      metrics: metricReader(context.metrics),
      log: context.programLog ?? ((level, text) => logger[level]({ text }, 'The program logged a message.')),
    }
    const compiled = compileProgram(source, settings)
    if (!compiled.ok) throw new PenstockError('PEN_CONFIG_INVALID', compiled.rendered)
    if (compiled.warnings.length > 0) logger.warn({ warnings: compiled.renderedWarnings }, 'The program has warnings.')
    const { program } = compiled
    if (!program.usesNetwork) return new Remap(program, source, options, context)
    // The program uses the network, so it runs in a separate worker and nothing else has to wait.
    const remote = new RemoteProgram(source, settings, program.writes, options.metric_tag_values)
    return new Remap(remote, source, options, context)
  },
})

function settingsOf({ timezone }: SourceOptions, globals: Globals): CompileOptions {
  return {
    timezone: zoneName(timezone ?? globals.timezone),
    network: globals.remap?.network ?? false,
    rules: globals.programs,
    tableNames: globals.tableNames,
  }
}

/** The text of the program, or a problem with the options; undefined if the program is in a file and files must not be opened. */
function readSource(
  options: SourceOptions,
  { reach }: ProgramRules = platformRules,
): string | OptionProblem | undefined {
  const given = [options.source, options.file, options.files].filter((option) => option !== undefined)
  if (given.length !== 1) {
    return {
      path: '',
      message: `Exactly one of \`source\`, \`file\` and \`files\` is required, found ${given.length}.`,
    }
  }
  if (options.source !== undefined) return options.source
  if (reach === 'nothing') {
    const path = options.file === undefined ? 'files' : 'file'
    const message = `\`${path}\` must not name a file in a namespaced resource (T9).`
    return { path, message, help: 'Write the program into `source`.' }
  }
  if (reach === 'unopened') return undefined
  const files = options.file === undefined ? (options.files as readonly string[]) : [options.file]
  let text = ''
  for (const [index, file] of files.entries()) {
    try {
      const content = readGivenText({ option: options.files === undefined ? 'file' : 'files', path: file })
      text += options.files === undefined ? content : `${content}\n`
    } catch (error) {
      if (!(error instanceof GivenFileError)) throw error
      return {
        path: options.file === undefined ? `files.${index}` : 'file',
        message: `The program file ${file} cannot be read: ${error.reason}.`,
      }
    }
  }
  return text
}

interface RemapOptions {
  readonly drop_on_error: boolean
  readonly drop_on_abort: boolean
  readonly reroute_dropped: boolean
  readonly reroute_dropped_limit: number | undefined
  readonly metric_tag_values: TagMode
}

/** The tags for `byte_lane_events_total`. */
const lanes = { bytes: { reason: 'bytes' }, objects: { reason: 'few_shapes' }, text: { reason: 'text' } } as const

class Remap {
  readonly takesBytes: boolean
  readonly #program: Program | RemoteProgram
  /** Defers the program, so that it may never need to run. */
  readonly #splice: Splice | undefined
  readonly #source: string
  readonly #options: RemapOptions
  readonly #context: TransformContext
  // State for the current batch.
  #errors = 0
  #aborts = 0
  #lastError: RemapError | undefined
  #lastAbort: RemapError | undefined
  #dropped: (LogEvent | MetricEvent)[] = []
  #errorsOverLimit = 0
  #abortsOverLimit = 0
  // Lines that stayed lines, and lines that became objects because of their text, since the last report.
  #asBytes = 0
  #asText = 0
  /** Limits the events for `dropped`; undefined if there is no limit. */
  readonly #rerouteLimit: TokenBucket | undefined
  /** The previous values of those fields of the current event that the program may change. */
  readonly #before: (Value | undefined)[] = []

  constructor(program: Program | RemoteProgram, source: string, options: RemapOptions, context: TransformContext) {
    this.#program = program
    this.#source = source
    const isTaken = program instanceof Program && context.globals.remap?.byte_lane !== false
    this.#splice = isTaken ? spliceOf(program) : undefined
    this.takesBytes = this.#splice !== undefined
    this.#options = options
    this.#context = context
    const perSecond = options.reroute_dropped_limit
    if (perSecond !== undefined) this.#rerouteLimit = new TokenBucket(perSecond, Math.max(1, perSecond))
  }

  transform(batch: LogBatch | MetricBatch, output: TransformOutput): Promise<void> | undefined {
    const program = this.#program
    if (program instanceof Program) return this.#apply(program, batch, output)
    return program.run(batch).then((runs) => this.#apply(runs, batch, output))
  }

  close(): void {
    if (this.#program instanceof RemoteProgram) this.#program.close()
  }

  /** Applies the program to a batch, and sends on the resulting events. */
  #apply(program: Runs, batch: LogBatch | MetricBatch, output: TransformOutput): Promise<void> | undefined {
    this.#errors = 0
    this.#aborts = 0
    this.#lastError = undefined
    this.#lastAbort = undefined
    this.#dropped = []
    this.#errorsOverLimit = 0
    this.#abortsOverLimit = 0
    const kept = batch.type === 'log' ? this.#sized(this.#logs(program, batch)) : this.#metrics(program, batch)
    this.#report()
    if (this.#splice !== undefined) this.#countLanes(this.#splice)
    const { finalizer } = batch
    const parts = (kept.count > 0 ? 1 : 0) + (this.#dropped.length > 0 ? 1 : 0)
    if (parts === 0) {
      finalizer.release(1, 'dropped')
      return undefined
    }
    if (parts === 2) finalizer.retain(1)
    const first = kept.count > 0 ? output.send(kept) : undefined
    if (this.#dropped.length === 0) return first
    const rejected =
      batch.type === 'log'
        ? logBatch(this.#dropped as LogEvent[], finalizer)
        : metricBatch(this.#dropped as MetricEvent[], finalizer)
    const second = output.send(rejected, 'dropped')
    return first === undefined ? second : first.then(() => second)
  }

  #logs(program: Runs, batch: LogBatch): LogBatch {
    const { writes } = program
    const splice = this.#splice
    if (splice !== undefined && batch instanceof ByteBatch) {
      const { drop_on_abort, reroute_dropped } = this.#options
      const isEnd = drop_on_abort && !reroute_dropped
      const next = batch.through(
        splice,
        (event, kept) => {
          this.#asText++
          this.#run(program, event, kept)
        },
        (end) => {
          // If a component receives this event, the program must run and create an object.
          const failure = end as RemapError
          if (!isEnd || failure.outcome !== 'abort') return false
          this.#asBytes++
          this.#aborts++
          this.#lastAbort = failure
          return true
        },
      )
      if (next !== undefined) {
        this.#asBytes += next.lineCount
        return next
      }
    }
    // A program that writes nothing can read shared events without copies.
    const events = writes && splice?.defers !== true ? ownEvents(batch) : batch.events
    const kept: LogEvent[] = []
    for (let index = 0; index < events.length; index++) {
      let event = events[index] as LogEvent
      if (splice?.defers === true) {
        const deferred = splice.defer(event)
        if (deferred !== undefined) {
          kept.push(deferred)
          continue
        }
        if (batch.shared) event = event.measuredCopy()
      }
      this.#run(program, event, kept)
    }
    if (!writes && kept.length === batch.count && this.#dropped.length === 0) return batch
    const rest = logBatch(kept, batch.finalizer)
    // If the program cannot change the events, they are still shared with other holders.
    return batch.shared && !writes ? rest.share() : rest
  }

  /** Runs the program on an event, which it may change, and adds the resulting events to `kept`. */
  #run(program: Runs, event: LogEvent, kept: LogEvent[]): void {
    const { writes, changes, frame } = program
    const before = this.#before
    const { metadata } = event
    if (changes !== undefined) {
      for (let field = 0; field < changes.length; field++) before[field] = event.fields[changes[field] as string]
    }
    const result = program.run(event.fields, metadata, true)
    if (isFailure(result)) {
      this.#failed(event, result, kept)
      return
    }
    const { root } = frame
    const after = program.metadataAfter(metadata)
    if (changes !== undefined) {
      if (writes) {
        event.fields = root as ValueObject
        event.metadata = after
        event.changedIn(changes, before)
      }
      kept.push(event)
    } else if (root === event.fields) {
      if (writes) {
        event.metadata = after
        event.changed()
      }
      kept.push(event)
    } else if (isObject(root)) {
      event.fields = root
      event.metadata = after
      event.changed()
      kept.push(event)
    } else {
      const { messageKey } = this.#context.globals.logSchema
      if (Array.isArray(root)) {
        for (const item of root) kept.push(new LogEvent(rootOf(item, messageKey), after))
        return
      }
      event.fields = rootFor(root, messageKey)
      event.metadata = after
      event.changed()
      kept.push(event)
    }
  }

  /**
   * Removes events with values that are nested too deeply for any encoder. The size of a batch is computed anyway when it is sent, and
   * computing it fails for such events.
   */
  #sized(batch: LogBatch): LogBatch {
    try {
      if (batch.bytes >= 0) return batch
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
    }
    const kept = batch.events.filter((event) => {
      try {
        return event.size >= 0
      } catch {
        return false // the same error as for the whole batch
      }
    })
    const { events } = this.#context
    const lost = batch.count - kept.length
    const message = 'The program created an event that is nested too deeply.'
    events.error({ type: 'conversion_failed', stage: 'processing', message, count: lost })
    events.discarded(lost, false, message)
    return logBatch(kept, batch.finalizer)
  }

  #metrics(program: Runs, batch: MetricBatch): MetricBatch {
    const mode = this.#options.metric_tag_values
    const kept: MetricEvent[] = []
    for (const shared of batch.events) {
      const metric = batch.shared ? shared.copy() : shared
      const result = program.runOnMetric(metric, mode)
      if (isFailure(result)) this.#failed(metric, result, kept)
      else kept.push(metric)
    }
    return metricBatch(kept, batch.finalizer)
  }

  /** Handles an event for which the program failed. The event is unchanged. */
  #failed(event: LogEvent | MetricEvent, failure: RemapError, kept: (LogEvent | MetricEvent)[]): void {
    const aborted = failure.outcome === 'abort'
    if (aborted) {
      this.#aborts++
      this.#lastAbort = failure
    } else {
      this.#errors++
      this.#lastError = failure
    }
    const { drop_on_abort, drop_on_error, reroute_dropped } = this.#options
    if (!(aborted ? drop_on_abort : drop_on_error)) kept.push(event)
    else if (reroute_dropped && !this.#mayReroute()) {
      if (aborted) this.#abortsOverLimit++
      else this.#errorsOverLimit++
    } else if (reroute_dropped) {
      this.#dropped.push(this.#annotated(event, aborted ? 'abort' : 'error', failure.given ?? failure.message))
    }
  }

  #mayReroute(): boolean {
    const bucket = this.#rerouteLimit
    if (bucket === undefined) return true
    if (!bucket.has(1, performance.now())) return false
    bucket.take(1)
    return true
  }

  /** A copy with the reason added, because other components may hold the same event. */
  #annotated(event: LogEvent | MetricEvent, reason: string, message: string): LogEvent | MetricEvent {
    const { id, globals } = this.#context
    const facts = { reason, component_id: id, component_type: 'remap', component_kind: 'transform' }
    const copy = event.copy()
    if (copy instanceof LogEvent) {
      const key = globals.logSchema.metadataKey
      const before = copy.fields[key]
      copy.fields[key] = { ...(isObject(before) ? before : {}), dropped: { ...facts, message } }
      return copy
    }
    copy.tags ??= new Map()
    for (const [name, value] of Object.entries(facts)) copy.tags.set(`metadata.dropped.${name}`, value)
    return copy
  }

  #countLanes(splice: Splice): void {
    const { events } = this.#context
    const { deferred, rested, refused } = splice.takeCounts()
    const asBytes = deferred + this.#asBytes
    const asText = refused + this.#asText
    this.#asBytes = 0
    this.#asText = 0
    if (asBytes > 0) events.count('byte_lane_events_total', asBytes, lanes.bytes)
    if (rested > 0) events.count('byte_lane_events_total', rested, lanes.objects)
    if (asText > 0) events.count('byte_lane_events_total', asText, lanes.text)
  }

  /** Line and column in the program, if the failed expression is known. */
  #positionOf({ place }: RemapError): object {
    return place === undefined ? {} : positionOfByte(this.#source, place.start)
  }

  #report(): void {
    const { events, logger } = this.#context
    const { drop_on_abort, drop_on_error, reroute_dropped } = this.#options
    if (this.#lastError !== undefined && !reroute_dropped) {
      events.error({
        type: 'conversion_failed',
        stage: 'processing',
        message: 'Mapping failed with event.',
        fields: { error: failureFact(this.#lastError), ...this.#positionOf(this.#lastError) },
        count: this.#errors,
      })
    }
    if (this.#lastAbort !== undefined) {
      logger.debug({ message: failureFact(this.#lastAbort), events: this.#aborts }, 'Event mapping aborted.')
    }
    const overLimit = 'The number of rerouted events exceeded `reroute_dropped_limit`.'
    if (this.#errorsOverLimit > 0) events.discarded(this.#errorsOverLimit, false, overLimit)
    if (this.#abortsOverLimit > 0) events.discarded(this.#abortsOverLimit, true, overLimit)
    if (reroute_dropped) return
    if (drop_on_error && this.#errors > 0) events.discarded(this.#errors, false, 'Mapping failed with event.')
    if (drop_on_abort && this.#aborts > 0) events.discarded(this.#aborts, true, 'Event mapping aborted.')
  }
}

function rootOf(item: Value, messageKey: string) {
  // A copy, because the item may be shared, and the root of an event changes in place.
  return isObject(item) ? copyObject(item) : rootFor(item, messageKey)
}
