// The content that an Agent's agents may fetch from a stream.

import type { Candidate } from '@penstock/agent/bundle'
import { type Agent, deliveryOf } from '../../api/agent.ts'
import type { Delivered, Offered } from '../../fleet/state.ts'
import type { Digests } from '../../render/manifest.ts'
import { workloadName } from '../../workloads/names.ts'
import { fragmentsIn } from '../revisions.ts'

/** The content that agents may request; undefined if they do not use streams. */
export function offeredOf(
  agent: Agent,
  delivered: Delivered,
  values: ReadonlyMap<string, Buffer>,
  { of: digests, epoch }: Digests,
): Offered | undefined {
  const { mode } = agent.spec
  if (deliveryOf(agent.spec) !== 'Stream') return undefined
  const { stable, candidate, later = [] } = delivered
  const tried = (each: Candidate) => {
    const { rev, percent, salt, also } = each
    return { rev, fragments: fragmentsIn(delivered, each), percent, salt, also }
  }
  return {
    mode,
    account: mode === 'Sidecar' ? undefined : workloadName(agent),
    stable: stable === undefined ? undefined : { rev: stable.rev, fragments: fragmentsIn(delivered, stable) },
    candidate: candidate && tried(candidate),
    later: later.map(tried),
    secretsEpoch: epoch,
    values,
    digests,
  }
}
