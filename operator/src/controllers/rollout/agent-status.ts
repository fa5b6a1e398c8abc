// The status of an Agent from the reports of its pods: what they run, and the progress of a rollout.

import { counted, countedOf, version } from '@penstock/agent/program'
import type { Finding, Reason } from '../../api/conditions.ts'
import { skewText } from '../../fleet/skew.ts'
import { fragmentsIn, shortRevision } from '../revisions.ts'
import { type AgentView, failureText, undoneText } from './view.ts'

/** Why the rollout makes no progress, and what follows it. */
function pendingIn({ why, record: { aside = {}, turn } }: AgentView['delivered']): string[] {
  const later = Object.values(aside).filter(({ group }) => group !== turn).length
  return [
    ...(why === '' ? [] : [why]),
    ...(later === 0 ? [] : [`${counted(later, 'change')} ${later === 1 ? 'is' : 'are'} set aside and tried later.`]),
  ]
}

/** Undefined until something is delivered. @param unreviewed why nobody can be authenticated at the moment */
export function agentStatus(
  { key, delivered, desired, live, stale, byRevision, failing, isSidecar }: AgentView,
  unreviewed?: string,
) {
  const { stable, candidate, later = [] } = delivered
  const newest = later.at(-1) ?? candidate ?? stable
  if (newest === undefined) return undefined
  const current = byRevision.get(newest.rev)?.length ?? 0
  const failed = new Set([...failing.values()].flat().map((report) => report.podUid)).size
  const total = fragmentsIn(delivered, newest).size
  const streamed = live.filter((report) => report.isStreamed).length
  const nodes = { desired, ready: live.length, current, failed, stale, ...(streamed === 0 ? {} : { streamed }) }
  const programmed = [...fragmentsIn(delivered, newest).keys()].filter((id) => !failing.has(id)).length
  const finding = (status: Finding['status'], reason: Reason, message: string): Finding => ({
    type: 'Programmed',
    status,
    reason,
    message,
  })
  const revision = shortRevision(newest.rev)
  const [firstFailing] = failing
  const [rolledBack] = Object.entries(delivered.record.rolledBack)
  const programmedNow =
    firstFailing !== undefined
      ? finding(
          'False',
          'NodesFailed',
          `${countedOf(failed, desired, 'agent', 'fails', 'fail')}: ${failureText(firstFailing[1], firstFailing[0])}`,
        )
      : delivered.record.undone?.to !== undefined
        ? finding('False', 'Undone', undoneText(key, delivered))
        : rolledBack !== undefined && candidate === undefined
          ? finding('False', 'RolledBack', `${rolledBack[0]} was rolled back: ${rolledBack[1].why}.`)
          : current >= desired && (desired > 0 || isSidecar)
            ? finding(
                'True',
                'Programmed',
                `${countedOf(current, desired, 'agent', 'runs', 'run')} revision ${revision}.`,
              )
            : finding(
                'False',
                candidate === undefined && current === 0 ? 'Pending' : 'RollingOut',
                [
                  `${countedOf(current, desired, 'agent', 'runs', 'run')} revision ${revision}.`,
                  ...pendingIn(delivered),
                ].join(' '),
              )
  const skew = skewText(
    version,
    live.map((report) => report.version),
  )
  // Missing reports then say nothing about the agents.
  const silent =
    unreviewed === undefined || stale === 0
      ? undefined
      : `${unreviewed}, so the operator cannot accept the reports of ${counted(stale, 'agent')}.`
  const message = [programmedNow.message, skew, silent].filter((text) => text !== undefined).join(' ')
  return {
    findings: [{ ...programmedNow, message }],
    fields: {
      revision,
      stableRevision: stable === undefined ? undefined : shortRevision(stable.rev),
      pipelines: {
        selected: delivered.selected.size + delivered.evicted.size,
        accepted: delivered.selected.size,
        programmed: current === 0 && desired > 0 ? 0 : Math.min(programmed, total),
      },
      ...(isSidecar
        ? { sidecars: { pods: desired, current, stale, ...(streamed === 0 ? {} : { streamed }) } }
        : { nodes }),
      history: delivered.record.history.map(({ revision: rev, at, result }) => ({
        revision: shortRevision(rev),
        at,
        result,
      })),
      summary: { nodes: `${current}/${desired}` },
    },
  }
}
