// Runs the `tests` of a configuration: only its transforms, with the events from the tests. Conditions are `filter` transforms, and
// programs that make events are `remap` transforms. Both are built as usual, so a test runs the same code as the agent.

import { metricFromJson } from '../codecs/decoding/metric-json.ts'
import { metricJson } from '../codecs/encoding/metric.ts'
import type { Transform, TransformDeclaration } from '../component.ts'
import { counted } from '../counted.ts'
import { errorText } from '../errors.ts'
import { type Batch, logBatch, metricBatch } from '../event/batch.ts'
import { Finalizer } from '../event/finalizer.ts'
import { LogEvent } from '../event/log.ts'
import type { MetricEvent } from '../event/metric.ts'
import { parsePath, setPath } from '../event/path.ts'
import type { Value, ValueObject } from '../event/value.ts'
import { isFailedJson, parseJson, writeJson } from '../formats/json.ts'
import { styled } from '../formats/pretty.ts'
import { findComponent } from '../registry.ts'
import { parseOptions } from '../schema/validate.ts'
import { type ComponentEvents, loggingEvents } from '../telemetry/component-events.ts'
import { silentLogger } from '../telemetry/logger.ts'
import type { Config, UnitTest, UnitTestInput, UnitTestOutput } from './config.ts'

export interface UnitTestResult {
  readonly passed: boolean
  /** The report: a line for each test, then the failures. */
  readonly text: string
  readonly tests: readonly UnitTestOutcome[]
}

export interface UnitTestOutcome {
  readonly name: string
  /** The unmet expectations; empty if the test passed. */
  readonly failures: readonly string[]
}

type AnyEvent = LogEvent | MetricEvent

/**
 * Runs all tests of a configuration in order, each with its own transforms.
 * @param color whether to colour the report
 */
export async function runUnitTests(config: Config, color = false): Promise<UnitTestResult> {
  if (config.tests.length === 0) return { passed: true, text: 'No tests found.', tests: [] }
  const lines = ['Running tests']
  const details: string[] = []
  const tests: UnitTestOutcome[] = []
  let failed = false
  for (const test of config.tests) {
    const outcome = await runTest(test, config)
    tests.push({ name: test.name, failures: outcome.failures })
    const verdict = outcome.failures.length === 0 ? styled('passed', 'green', color) : styled('failed', 'red', color)
    lines.push(`test ${test.name} ... ${verdict}`)
    for (const shown of outcome.shown) lines.push(indented(shown))
    if (outcome.failures.length === 0) continue
    failed = true
    details.push(`test ${test.name}:\n\n${outcome.failures.map(indented).join('\n\n')}`)
  }
  if (failed) lines.push('', 'failures:', '', details.join('\n\n'))
  return { passed: !failed, text: lines.join('\n'), tests }
}

interface Outcome {
  readonly failures: readonly string[]
  /** Events from outputs without conditions, for people to read. */
  readonly shown: readonly string[]
}

async function runTest(test: UnitTest, config: Config): Promise<Outcome> {
  const failures: string[] = []
  const shown: string[] = []
  try {
    const emitted = await run(test, config)
    for (const [index, output] of test.outputs.entries()) {
      const events = output.extractFrom.flatMap((from) => emitted.get(from) ?? [])
      const problem = await outputProblem(index, output, events, config)
      if (problem !== undefined) failures.push(problem)
      else if (output.conditions.length === 0) {
        shown.push(`check[${index}] events of ${names(output.extractFrom)}:\n${indented(payloads(events))}`)
      }
    }
    for (const from of test.noOutputsFrom) {
      const events = emitted.get(from) ?? []
      if (events.length === 0) continue
      failures.push(`expected no events from "${from}", found ${events.length}:\n${indented(payloads(events))}`)
    }
  } catch (error) {
    // If a test's event is unusable, for example because it cannot be created, only this test fails.
    failures.push(errorText(error))
  }
  return { failures, shown }
}

async function outputProblem(
  index: number,
  output: UnitTestOutput,
  events: readonly AnyEvent[],
  config: Config,
): Promise<string | undefined> {
  const from = names(output.extractFrom)
  const expected = output.expectedEventCount
  if (expected !== undefined && events.length !== expected) {
    const found = events.length === 0 ? 'none' : `${events.length}:\n${indented(payloads(events))}`
    return `check[${index}] for ${from}: expected ${counted(expected, 'event')}, found ${found}`
  }
  if (expected === 0) return undefined
  if (events.length === 0) return `check[${index}] for ${from}: expected events, found none`
  if (output.conditions.length === 0) return undefined
  const broken: string[] = []
  for (const event of events) {
    const problems: string[] = []
    for (const [number, condition] of output.conditions.entries()) {
      const problem = await conditionProblem(condition, event, config)
      if (problem !== undefined) problems.push(`condition[${number}]: ${problem}`)
    }
    if (problems.length === 0) return undefined
    broken.push(`${payloads([event])}\n${indented(problems.join('\n'))}`)
  }
  return `check[${index}] for ${from}: no event meets all conditions\n${indented(broken.join('\n'))}`
}

/** The reason why an event does not meet a condition; undefined if it does. */
async function conditionProblem(condition: string, event: AnyEvent, config: Config): Promise<string | undefined> {
  const reports: string[] = []
  try {
    const { emitted } = await runOne('filter', { condition }, event.copy(), config, reports)
    return emitted.length > 0 ? undefined : (reports[0] ?? 'is not true')
  } catch (error) {
    return errorText(error) // the condition does not compile
  }
}

// --- Running transforms ---

/** The events that each output emitted, by its id. */
async function run(test: UnitTest, config: Config): Promise<Map<string, AnyEvent[]>> {
  const emitted = new Map<string, AnyEvent[]>()
  const transforms = new Map<string, Transform>()
  for (const [id, { declaration, options }] of config.transforms) {
    transforms.set(id, await declaration.build(options, contextOf(id, declaration, config, [])))
  }
  const feed = async (id: string, events: readonly AnyEvent[]): Promise<void> => {
    const sent: { output: string; events: readonly AnyEvent[] }[] = []
    await transforms.get(id)?.transform(batchOf(events), {
      send(batch, port) {
        const output = port === undefined ? id : `${id}.${port}`
        sent.push({ output, events: batch.events })
        return undefined
      },
    })
    for (const { output, events } of sent) {
      emitted.set(output, [...(emitted.get(output) ?? []), ...events.map((event) => event.copy())])
      for (const [consumer, { inputs }] of config.transforms) {
        if (!inputs.includes(output)) continue
        const copies = events.map((event) => event.copy())
        await feed(consumer, copies)
      }
    }
  }
  try {
    for (const input of test.inputs) await feed(input.insertAt, await inputEvents(input, config))
  } finally {
    for (const transform of transforms.values()) transform.close?.()
  }
  return emitted
}

/** Builds one transform, runs one event through it, and adds its error messages to `reports`. */
async function runOne(
  type: string,
  options: object,
  event: AnyEvent,
  config: Config,
  reports: string[],
): Promise<{ emitted: AnyEvent[] }> {
  const declaration = findComponent('transform', type) as TransformDeclaration | undefined
  if (declaration === undefined) throw new Error(`The transform type "${type}" does not exist.`)
  const checked = parseOptions(declaration.options, options)
  if (!checked.ok) throw new Error(checked.problems.map((problem) => problem.message).join('\n'))
  for (const problem of declaration.check?.(checked.value, config.globals) ?? []) {
    if (problem.severity === 'warning') continue
    throw new Error(
      problem.rendered === undefined ? problem.message : `${problem.message}\n${problem.rendered.trimEnd()}`,
    )
  }
  const transform = await declaration.build(checked.value, contextOf('test', declaration, config, reports))
  const emitted: AnyEvent[] = []
  const send = (batch: Batch): undefined => void emitted.push(...batch.events)
  await transform.transform(batchOf([event]), { send })
  transform.close?.()
  return { emitted }
}

function contextOf(id: string, declaration: TransformDeclaration, config: Config, reports: string[]) {
  const events: ComponentEvents = {
    ...loggingEvents(silentLogger),
    error({ message, fields }) {
      const reason = fields?.['error'] ?? fields?.['reason']
      reports.push(reason === undefined ? message : errorText(reason))
    },
  }
  const { type } = declaration
  return { id, type, kind: 'transform' as const, globals: config.globals, logger: silentLogger, events }
}

function batchOf(events: readonly AnyEvent[]): Batch {
  return events[0] instanceof LogEvent || events[0] === undefined
    ? logBatch(events as LogEvent[], new Finalizer())
    : metricBatch(events as MetricEvent[], new Finalizer())
}

// --- Input events, and how events are shown ---

async function inputEvents(input: UnitTestInput, config: Config): Promise<readonly AnyEvent[]> {
  switch (input.type) {
    case 'raw':
      return [new LogEvent({ [config.globals.logSchema.messageKey]: input.value ?? '' })]
    case 'log': {
      const fields: ValueObject = {}
      for (const [name, value] of Object.entries(input.logFields ?? {})) {
        const path = parsePath(name)
        if (path === undefined) throw new Error(`Invalid field path ${JSON.stringify(name)} in \`log_fields\`.`)
        setPath(fields, path.segments, eventValue(value))
      }
      return [new LogEvent(fields)]
    }
    case 'metric': {
      const metric = metricFromJson(eventValue(input.metric))
      if (typeof metric === 'string') throw new Error(metric)
      return [metric]
    }
    case 'vrl': {
      const reports: string[] = []
      const options = { source: input.source ?? '', drop_on_error: true, drop_on_abort: true }
      const { emitted } = await runOne('remap', options, new LogEvent({}), config, reports)
      if (emitted.length === 0)
        throw new Error(`The program of the input created no event: ${reports[0] ?? 'it aborted'}`)
      return emitted
    }
  }
}

/** Converts a value of the configuration to a value of an event. */
function eventValue(value: unknown): Value {
  const parsed = parseJson(JSON.stringify(value ?? null))
  if (isFailedJson(parsed)) throw new Error('The test contains a value that an event cannot contain.')
  return parsed
}

function payloads(events: readonly AnyEvent[]): string {
  return events
    .map((event) => (event instanceof LogEvent ? writeJson(event.fields) : metricJson(event, 'full')))
    .join('\n')
}

function names(outputs: readonly string[]): string {
  return outputs.map((output) => `"${output}"`).join(', ')
}

function indented(text: string): string {
  return text.replace(/^(?=.)/gm, '  ')
}
