// The worker of one program that needs the network. It runs batches in order and returns the outcomes of each.

import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import type { LoadedTable } from '../enrichment/table.ts'
import { errorText } from '../errors.ts'
import { MetricEvent, type MetricValue } from '../event/metric.ts'
import type { Value, ValueObject } from '../event/value.ts'
import { isFailure, type Result } from './function.ts'
import { compileProgram, type Program } from './program.ts'
import {
  type FromWorker,
  type PackedEvent,
  packLog,
  packMetric,
  type RemoteOutcome,
  type RemoteSetup,
  type ToWorker,
  unpackMetadata,
  unpackTags,
  unpackTimestamp,
  type WorkerQuestion,
} from './remote.ts'
import { SyncPort } from './sync-port.ts'
import { fromTagged, type Tagged, toTagged } from './tagged.ts'

const metricsKeptMs = 1000

const setup = workerData as RemoteSetup & { readonly port: MessagePort }
const main = new SyncPort<WorkerQuestion, Tagged>(setup.port)
const program = compiled()

parentPort?.on('message', ({ id, events }: ToWorker) => {
  const outcomes = (JSON.parse(events) as (PackedEvent | null)[]).map((event) => JSON.stringify(outcomeOf(event)))
  post({ id, outcomes: `[${outcomes.join(',')}]` })
})

function post(message: FromWorker): void {
  parentPort?.postMessage(message)
}

function compiled(): Program {
  const { source, timezone, readOnly, tableNames } = setup
  let metrics: readonly Value[] = []
  let metricsUntil = Number.NEGATIVE_INFINITY
  const result = compileProgram(source, {
    ...(timezone === undefined ? {} : { timezone }),
    readOnly,
    tableNames,
    keepResult: readOnly,
    network: true,
    log: (level, text) => post({ level, text }),
    table,
    metrics() {
      const now = performance.now()
      if (now >= metricsUntil) {
        metricsUntil = now + metricsKeptMs
        metrics = (main.ask({ kind: 'metrics' }) as Tagged[]).map(fromTagged)
      }
      return metrics
    },
  })
  if (!result.ok) throw new Error(result.rendered)
  return result.program
}

function table(name: string): LoadedTable {
  return {
    find(condition, select, caseSensitive, wildcard) {
      const found = main.ask({
        kind: 'records',
        table: name,
        condition: toTagged(condition as ValueObject),
        select,
        caseSensitive,
        wildcard: wildcard === undefined ? undefined : toTagged(wildcard),
      })
      return Array.isArray(found) ? found.map(fromTagged) : String(found)
    },
  }
}

function outcomeOf(event: PackedEvent | null): RemoteOutcome {
  if (event === null) return failed('the event is nested too deep')
  try {
    return event.metric === undefined ? logOutcome(event) : metricOutcome(event)
  } catch (error) {
    return failed(errorText(error))
  }
}

function failed(message: string): RemoteOutcome {
  return { failure: { message: `the program could not continue: ${message}`, outcome: 'fatal', given: null } }
}

function logOutcome(event: PackedEvent): RemoteOutcome {
  const before = unpackMetadata(event)
  const result = program.run(fromTagged(event.fields as Tagged) as ValueObject, before, true)
  return judged(result) ?? (program.writes ? packLog(program.frame.root, program.metadataAfter(before)) : {})
}

function metricOutcome(event: PackedEvent): RemoteOutcome {
  const packed = event.metric as NonNullable<PackedEvent['metric']>
  const metric = new MetricEvent({
    name: packed.name,
    namespace: packed.namespace,
    kind: packed.kind,
    // Programs only see the type of the value.
    value: { type: packed.type } as MetricValue,
    timestamp: unpackTimestamp(packed),
    intervalMs: packed.intervalMs,
    tags: unpackTags(packed),
    metadata: unpackMetadata(event),
  })
  return judged(program.runOnMetric(metric, setup.tagMode)) ?? packMetric(metric)
}

/** The outcome of a failure or a condition; undefined if the program may have changed its event. */
function judged(result: Result): RemoteOutcome | undefined {
  if (isFailure(result)) return { failure: { message: result.message, outcome: result.outcome, given: result.given } }
  if (setup.readOnly) return typeof result === 'boolean' ? { holds: result } : {}
  return undefined
}
