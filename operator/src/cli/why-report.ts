// The results of `penstock why` about a pod, as text for people and as rows for tables and programs.

import type { Field } from '@penstock/agent/output'
import { styled } from '@penstock/agent/output'
import { counted, type Sheet, wrapped } from '@penstock/agent/program'
import type { Reason } from '../api/conditions.ts'
import type { TopRow } from '../serving/observe/top-look.ts'

/** The reports of the node's agents about the Pipelines of one kind, by name. */
export type PodPosition = ReadonlyMap<string, TopRow> | { readonly problem: string }

/** The positions of the node's agents in the files of the pod and the number of these agents, or why they are unknown. */
type Reading =
  | { readonly positions: NonNullable<TopRow['positions']>; readonly agents: number }
  | { readonly problem: string; readonly isAbsent?: boolean }

interface SourceAnswer {
  readonly name: string
  readonly reads: boolean
  readonly why: string
}

/** How one Pipeline treats the pod. */
export interface PipelineAnswer {
  readonly kind: string
  readonly name: string
  readonly reads: boolean
  readonly sources: readonly SourceAnswer[]
  /** Why no agent of the node reads the logs that a source selects. */
  readonly obstacles: readonly string[]
  /** Why the current version does not run on all nodes, if some version reads the pod. */
  readonly rollout?: string | undefined
  /** Whether that version is known to be an earlier one. */
  readonly isEarlier?: boolean | undefined
  readonly events?: { readonly reason: string; readonly message: string } | undefined
  /** On all nodes. */
  readonly lagSeconds?: number | undefined
  readonly dropped?: number | string | undefined
  readonly reading?: Reading | undefined
}

export interface WhyReport {
  readonly pod: string
  readonly phase: string | undefined
  readonly node: string | undefined
  readonly namespace: string
  /** The containers of a pod of which none has ever started. */
  readonly unstarted?: string | undefined
  /** Resources that the user may not read. */
  readonly unread: readonly string[]
  readonly hasClusterPipelines: boolean
  /** The object whose label makes all agents exclude the pod. */
  readonly excluded?: string
  /** The pod was deleted: selectors can no longer be evaluated, and only Pipelines with open files are listed. */
  readonly isGone?: boolean
  /** Kinds of Pipelines for which no agent reported positions, with the reason. */
  readonly unknown?: readonly string[]
  readonly pipelines: readonly PipelineAnswer[]
}

export const fields: readonly Field<PipelineAnswer>[] = [
  { name: 'kind', column: 'KIND', value: ({ kind }) => kind },
  { name: 'name', column: 'PIPELINE', value: ({ name }) => name },
  { name: 'reads', column: 'READS IT', value: ({ reads }) => reads },
  {
    name: 'sources',
    column: 'WHY',
    value: ({ sources }) => sources,
    cell: ({ sources, obstacles, rollout }) => {
      const selecting = sources.filter(({ reads }) => reads)
      const why = (selecting.length > 0 ? selecting : sources).map((source) => `${source.name}: ${source.why}`)
      return [...obstacles, ...(rollout === undefined ? [] : [rollout]), ...why].join('; ')
    },
  },
  { name: 'obstacles', value: ({ obstacles }) => obstacles },
  { name: 'rollout', value: ({ rollout }) => rollout },
  { name: 'events', column: 'EVENTS', value: ({ events }) => events?.reason },
  { name: 'lagSeconds', column: 'LAG SECONDS', value: ({ lagSeconds }) => lagSeconds },
  { name: 'dropped', column: 'DROPPED', value: ({ dropped }) => dropped },
  {
    name: 'positions',
    value: ({ reading }) => (reading !== undefined && 'positions' in reading ? reading.positions : undefined),
  },
  {
    name: 'positionsProblem',
    value: ({ reading }) => (reading !== undefined && 'problem' in reading ? reading.problem : undefined),
  },
]

/** Whether a Pipeline reads the logs of the pod. */
export function isRead({ pipelines }: WhyReport): boolean {
  return pipelines.some(({ reads }) => reads)
}

export function readingOf(found: PodPosition, name: string): Reading {
  if ('problem' in found) return found
  const row = found.get(name)
  if (row?.agents.asked === 0) {
    return (row.agents.silent ?? 0) > 0
      ? { problem: 'the agent of its node is silent' }
      : { problem: 'no agent reports from its node', isAbsent: true }
  }
  if (row === undefined || row.agents.answered === 0) return { problem: 'no agent of its node has answered' }
  return { positions: row.positions ?? [], agents: row.agents.answered }
}

/** The facts about the pod that do not depend on Pipelines. */
export function notes({ node, unread, unknown = [], excluded, unstarted }: WhyReport): readonly string[] {
  const lines = unknown.map((reason) => `  Read positions are unknown for ${reason}`)
  if (node === undefined) lines.push('  It has no node, so it has no logs yet.')
  if (unstarted !== undefined) lines.push(`  None of its containers has started yet, so it has no logs: ${unstarted}.`)
  if (unread.length > 0) lines.push(`  Omitted, because you may not read them: ${unread.join(', ')}.`)
  if (excluded !== undefined) {
    lines.push(`  ${excluded} has the label penstock.dev/exclude: "true": agents skip it, whatever Pipelines select.`)
  }
  return lines
}

export function whyText(report: WhyReport, { color, columns }: Sheet): string {
  const { pod, phase = 'no phase', node = 'none yet', namespace, unread, excluded, pipelines } = report
  const lines = [
    `Pod ${pod} (${phase}) on node ${node}`,
    ...notes(report),
    ...pipelines.flatMap((answer) => answerLines(answer, color)),
  ]
  const text = () => lines.map((line) => wrapped(line, columns, line.search(/\S/) + 2)).join('\n')
  if (excluded !== undefined) return text()
  if (report.isGone === true) {
    const verdict = isRead(report)
      ? 'It was deleted, and its logs are still being read.'
      : `It was deleted, and no agent of node ${node} is known to have one of its log files open: either all were read, or no Pipeline reads them.`
    lines.push(styled(verdict, isRead(report) ? 'green' : 'yellow', color))
    return text()
  }
  if (pipelines.length === 0) {
    const cluster = report.hasClusterPipelines ? ' and no ClusterPipeline' : ''
    lines.push(`  There is no Pipeline in namespace ${namespace}${cluster}.`)
  }
  const scope = unread.length === 0 ? '' : ' by any resource that you may read'
  const reads = report.unstarted === undefined ? 'Its logs are read.' : 'Its logs are read once a container starts.'
  const verdict = isRead(report) ? reads : `Its logs are not read${scope}.`
  lines.push(styled(verdict, isRead(report) ? 'green' : 'red', color))
  return text()
}

function answerLines(answer: PipelineAnswer, color: boolean): readonly string[] {
  const { kind, name, sources, obstacles, rollout, isEarlier, events, lagSeconds, dropped, reading } = answer
  const lines = [`  ${styled(`${kind} ${name}`, 'bold', color)}`]
  for (const { reads, name: source, why } of sources) {
    lines.push(
      `    ${reads ? styled('reads it', 'green', color) : styled('does not', 'yellow', color)}: source ${source}: ${why}`,
    )
  }
  if (rollout !== undefined) {
    const head =
      isEarlier === true
        ? 'an earlier version reads it'
        : 'the agent of its node reads it; not yet running on all nodes'
    lines.push(`    ${head}: ${rollout}`)
  }
  for (const obstacle of obstacles) lines.push(`    ${styled('but', 'red', color)} ${obstacle}`)
  if (events !== undefined) {
    lines.push(`    events: ${events.reason}${events.message === '' ? '' : `: ${events.message}`}`)
  }
  if (lagSeconds !== undefined) lines.push(`    reading is at most ${lagSeconds} s behind, on all nodes`)
  if (dropped !== undefined) lines.push(`    recently dropped, on all nodes: ${dropped}`)
  if (reading !== undefined) lines.push(...readingLines(reading, answer))
  return lines
}

/** The reasons of `Flowing` with which events were lost. */
const losing: ReadonlySet<string> = new Set<Reason>(['AllEventsDropped', 'SomeEventsDropped'])

function readingLines(reading: Reading, { events, dropped }: PipelineAnswer): readonly string[] {
  if ('problem' in reading) return [`    read positions are unknown: ${reading.problem}`]
  if (reading.positions.length === 0) return ['    no log file of it is open there yet']
  // The position of a file moves past events that a sink gave up, too.
  const isLossless = Number(dropped) === 0 && !losing.has(events?.reason ?? '')
  const done = isLossless ? 'delivered' : 'delivered or discarded'
  const lines = reading.positions.map(({ container, file, size, read, delivered, lagSeconds, dropped, compressed }) => {
    if (compressed !== undefined) {
      const { lines } = compressed
      const what = lines === undefined ? counted(size, 'byte') : counted(lines, 'line')
      return `    ${container}: ${file.split('/').at(-1)}: ${what} not read, because the file was compressed before reading began`
    }
    const progress = [`${read} of ${counted(size, 'byte')} read`, `${delivered} ${done}`]
    if (lagSeconds > 0) progress.push(`${lagSeconds} s behind`)
    if (dropped > 0) progress.push(`${counted(dropped, 'line')} dropped by limits`)
    return `    ${container}: ${file.split('/').at(-1)}: ${progress.join(', ')}`
  })
  if (isReadTwice(reading)) {
    const { agents } = reading
    lines.push(
      `    ${agents} agents of its node read it, so its lines arrive ${agents} times: let only one Agent of mode Node select the Pipeline there`,
    )
  }
  return lines
}

/** Whether several agents read the same file. One agent also reads it twice for two sources. */
function isReadTwice({ positions, agents }: Extract<Reading, { readonly agents: number }>): boolean {
  const files = positions.filter(({ compressed }) => compressed === undefined).map(({ file }) => file)
  return agents > 1 && new Set(files).size < files.length
}
