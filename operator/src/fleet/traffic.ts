// The pods' reports about the events of each pipeline, read from heartbeats and summed up over pods and Agents.

import type { PipelineReport } from '@penstock/agent/bundle'
import type { Report } from './state.ts'

/** Cumulative figures of a pipeline's report, which are added over pods. */
const addedFigures = [
  'eventsIn',
  'eventsOut',
  'filtered',
  'dropped',
  'lostBytes',
  'bufferedEvents',
  'bufferedBytes',
] as const satisfies readonly (keyof PipelineReport)[]

/** Figures of a pipeline's report that are numbers. */
export const pipelineFigures = [
  ...addedFigures,
  'generation',
  'errors',
  'bufferUse',
  'lagSeconds',
] as const satisfies readonly (keyof PipelineReport)[]

/** Sums for one pipeline; `PipelineReport` defines each figure. */
export interface Traffic extends Record<(typeof addedFigures)[number], number> {
  bufferUse: number
  /** Maximum reading lag, and its node. */
  lagSeconds: number
  lagNode: string
  /** Errors of sinks. */
  sinkErrors: number
  /** Longest time a pod with pending events has gone without a delivery, by its reports. */
  silentMs: number
}

/** Pipelines for which a node has found files; undefined until every pod has reported. */
export function readingOf(live: readonly Report[]): ReadonlySet<string> | undefined {
  const all = new Set<string>()
  for (const { reading } of live) {
    if (reading === undefined) return undefined
    for (const id of reading) all.add(id)
  }
  return all
}

export const noTraffic = (): Traffic => ({
  ...{ eventsIn: 0, eventsOut: 0, filtered: 0, dropped: 0, lostBytes: 0, sinkErrors: 0, silentMs: 0 },
  ...{ bufferedEvents: 0, bufferedBytes: 0, bufferUse: 0, lagSeconds: 0, lagNode: '' },
})

export function addTraffic(sum: Traffic, part: Readonly<Traffic>): void {
  for (const figure of addedFigures) sum[figure] += part[figure]
  sum.sinkErrors += part.sinkErrors
  sum.silentMs = Math.max(sum.silentMs, part.silentMs)
  sum.bufferUse = Math.max(sum.bufferUse, part.bufferUse)
  if (part.lagSeconds > sum.lagSeconds) {
    sum.lagSeconds = part.lagSeconds
    sum.lagNode = part.lagNode
  }
}

/** Sums of the last reports, by pipeline. Most pods report only a few pipelines. */
export function trafficOf(live: readonly Report[]): Map<string, Traffic> {
  const sums = new Map<string, Traffic>()
  for (const { node, pipelines, silentSince, at } of live) {
    for (const [id, figures] of Object.entries(pipelines)) {
      let sinkErrors = 0
      for (const { kind, errors } of Object.values(figures.components)) if (kind === 'sink') sinkErrors += errors
      const silentMs = at - (silentSince.get(id) ?? at)
      let sum = sums.get(id)
      if (sum === undefined) {
        sum = noTraffic()
        sums.set(id, sum)
      }
      addTraffic(sum, { ...figures, filtered: figures.filtered ?? 0, sinkErrors, silentMs, lagNode: node })
    }
  }
  return sums
}
