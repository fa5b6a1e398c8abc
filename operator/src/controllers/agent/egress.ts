// Ports that an Agent's NetworkPolicy must allow.

import { egressPortsOf } from '../../compile/egress-ports.ts'
import type { Fragment } from '../../render/fragment.ts'

const portsByFragment = new WeakMap<Fragment, ReadonlySet<number>>()

/** Ports to which the components of pipelines connect. */
export function egressPorts(fragments: Iterable<Fragment>): number[] {
  const ports = new Set<number>()
  for (const fragment of fragments) {
    let known = portsByFragment.get(fragment)
    if (known === undefined) {
      const of = (kind: 'source' | 'sink', members: Fragment['sinks']) =>
        members.flatMap(([, json]) => [...egressPortsOf(kind, JSON.parse(json) as Record<string, unknown>)])
      known = new Set([...of('source', fragment.sources), ...of('sink', fragment.sinks)])
      portsByFragment.set(fragment, known)
    }
    for (const port of known) ports.add(port)
  }
  return [...ports].sort((left, right) => left - right)
}
