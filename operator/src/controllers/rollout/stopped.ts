// The status of a Pipeline that should run nowhere: it is suspended, or its last good version was stopped. Agents run it until they
// load content without it. Pure.

import { counted } from '@penstock/agent/program'
import { conditionOf, type Finding } from '../../api/conditions.ts'
import type { Pipeline } from '../../api/pipeline.ts'
import type { StatusContribution } from '../../context.ts'
import type { AgentView } from './view.ts'

/** Number of reporting agents that run some version of a Pipeline. */
export function runningAny(id: string, views: readonly Pick<AgentView, 'delivered' | 'byRevision'>[]): number {
  let running = 0
  for (const { delivered, byRevision } of views)
    for (const [revision, reports] of byRevision)
      if (delivered.revisions.get(revision)?.fragments.has(id) === true) running += reports.length
  return running
}

/**
 * Undefined: the Pipeline has not run, so its status needs no correction. @param before the result reported since the
 * start @param running how many agents still run it; undefined: not all have reported
 */
export function stoppedStatus(
  { spec, status, metadata }: Pipeline,
  before: StatusContribution | undefined,
  running: number | undefined,
): StatusContribution | undefined {
  const isSuspended = spec.suspend === true
  const known = conditionOf(status?.conditions, 'Programmed')
  if (!isSuspended && before === undefined && (known === undefined || known.status === 'Unknown')) return undefined
  const why = isSuspended ? 'spec.suspend is true' : 'Its last good version was stopped'
  const programmed: Finding = {
    ...{ type: 'Programmed', status: 'False', reason: isSuspended ? 'Suspended' : 'Stopped' },
    message: `${why}: ${extentText(running)}.`,
  }
  const { programmedGeneration } = status ?? {}
  return {
    generation: metadata.generation ?? 0,
    findings: [programmed],
    fields: {
      ...(running === 0 || programmedGeneration === undefined ? {} : { programmedGeneration }),
      summary: { agents: `${running ?? 0}/0` },
    },
  }
}

function extentText(running: number | undefined): string {
  if (running === undefined) return 'not all agents have reported yet whether they run it'
  if (running === 0) return 'no agent runs it'
  return `${counted(running, 'agent')} still ${running === 1 ? 'runs' : 'run'} it`
}
