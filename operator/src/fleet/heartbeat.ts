// The content of a heartbeat. The sending pod is authenticated, but its statements are untrusted data: every member is checked, and
// texts and lists have limits.

import type { HeartbeatBody, LoadFailure } from '@penstock/agent/bundle'
import { ownText, printable } from '@penstock/agent/program'
import { listOf, tableOf } from '@penstock/agent/schema'
import { pipelineFigures } from './traffic.ts'

/** The report of an agent about itself and the pipelines of its Agent. */
export interface HeartbeatContent {
  readonly version: string
  readonly startedAt: string
  readonly revision: string | undefined
  /** Whether the operator sent it its bundle. */
  readonly isStreamed: boolean
  readonly state: string
  readonly reason: string | undefined
  readonly failures: readonly LoadFailure[]
  readonly failed: ReadonlySet<string>
  readonly pipelines: HeartbeatBody['pipelines']
  /** Pipelines that have found files to read; undefined: not reported. */
  readonly reading: ReadonlySet<string> | undefined
}

const maxFailures = 20
const maxComponents = 200
const maxFailed = 10_000

/**
 * Parses a heartbeat. Missing members and members of the wrong type become empty or zero. @param isSelected whether the
 * Agent selects the pipeline with an id; those of others are omitted
 */
export function readHeartbeat(body: HeartbeatBody, isSelected: (id: string) => boolean): HeartbeatContent {
  return {
    version: text(body.version),
    startedAt: text(body.startedAt),
    revision: body.revision === undefined ? undefined : text(body.revision),
    isStreamed: body.delivery === 'Stream',
    state: text(body.state),
    reason: body.reason === undefined ? undefined : text(body.reason),
    failures: listOf(body.failures).slice(0, maxFailures).map(failureOf),
    failed: new Set(listOf(body.failed).slice(0, maxFailed).map(text)),
    pipelines: Object.fromEntries(
      Object.entries(tableOf(body.pipelines))
        .filter(([id]) => isSelected(id))
        .map(([id, table]) => [id, pipelineOf(table)]),
    ),
    reading: body.reading === undefined ? undefined : new Set(listOf(body.reading).map(text).filter(isSelected)),
  }
}

function failureOf(value: unknown): LoadFailure {
  const { pipeline, component, reason, message } = tableOf(value)
  return {
    pipeline: text(pipeline),
    component: component === undefined ? undefined : text(component),
    reason: text(reason),
    message: text(message),
  }
}

type PipelineFigures = Readonly<Record<(typeof pipelineFigures)[number], number>>

function pipelineOf(value: unknown): HeartbeatBody['pipelines'][string] {
  const table = tableOf(value)
  const components = Object.entries(tableOf(table['components'])).slice(0, maxComponents)
  const figures = Object.fromEntries(pipelineFigures.map((name) => [name, countOf(table[name])])) as PipelineFigures
  return {
    ...figures,
    bufferUse: Math.min(1, figures.bufferUse),
    uid: text(table['uid']),
    hash: text(table['hash']),
    components: Object.fromEntries(components.map(([name, component]) => [text(name), componentOf(component)])),
  }
}

function componentOf(value: unknown): HeartbeatBody['pipelines'][string]['components'][string] {
  const table = tableOf(value)
  const kind: 'source' | 'transform' | 'sink' =
    table['kind'] === 'source' || table['kind'] === 'transform' ? table['kind'] : 'sink'
  const counts = {
    kind,
    errors: countOf(table['errors']),
    dropped: countOf(table['dropped']),
    sent: countOf(table['sent']),
  }
  if (table['lastError'] === undefined) return counts
  const { reason, message, at } = tableOf(table['lastError'])
  const time = Date.parse(text(at))
  return {
    ...counts,
    lastError: {
      reason: text(reason),
      message: text(message),
      at: new Date(Number.isNaN(time) ? Date.now() : time).toISOString(),
    },
  }
}

const maxText = 1024

/** Texts in a heartbeat are untrusted data: plain text of limited length. */
function text(value: unknown): string {
  if (typeof value !== 'string') return ''
  // A slice would keep the whole text in memory.
  return printable(value.length <= maxText ? value : ownText(value.slice(0, maxText).toWellFormed()))
}

/** A non-negative number; 0 for any other value. */
export function countOf(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : 0
}
