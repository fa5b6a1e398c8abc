// The answer of an agent about a pod is untrusted data: only known members are passed on, in their form.

import { expect, test } from 'vitest'
import type { Artifact } from '../../compile/artifact.ts'
import { type Delivered, FleetState } from '../../fleet/state.ts'
import type { Runner } from './observers.ts'
import { TopLook } from './top-look.ts'

const asked = { agent: 'system/node', pod: 'a', podUid: 'a', node: 'n' }
const artifact = { id: 'shop/web', kind: 'Pipeline', namespace: 'shop', name: 'web' } as Artifact

/** The positions from an agent's answer that are passed on to a reader. */
function shown(positions: unknown): unknown {
  const fleet = new FleetState()
  fleet.set(asked.agent, { selected: new Map([[artifact.id, {}]]), revisions: new Map() } as unknown as Delivered)
  const live = [{ agent: asked.agent, report: { podUid: 'a', node: 'n' } }] as unknown as Runner[]
  const look = new TopLook(
    { id: '1', intervalMs: 1000, pod: { uid: 'u', node: 'n' } },
    { fleet, chosen: () => [artifact], runners: () => ({ live, silent: [] }), isHearing: () => false },
  )
  look.take(asked, Buffer.from(JSON.stringify({ pipelines: { 'shop/web': { positions } } })))
  return look.line().pipelines[0]?.positions
}

const open = { container: 'c', file: '/l/0.log', size: 9, read: 8, delivered: 7, lagSeconds: 1.5, dropped: 1 }

test.each([
  { what: 'an open file', sent: open, is: open },
  { what: 'a compressed one', sent: { ...open, compressed: { lines: 3 } }, is: { ...open, compressed: { lines: 3 } } },
  { what: 'a position that is being counted', sent: { ...open, compressed: {} }, is: { ...open, compressed: {} } },
  {
    what: 'nonsense',
    sent: { ...open, size: -1, file: 'f'.repeat(2000), more: { a: 1 }, compressed: { lines: 'many', more: 1 } },
    is: { ...open, size: 0, file: 'f'.repeat(1024), compressed: { lines: 0 } },
  },
])('the position in $what is passed on', ({ sent, is }) => {
  expect(shown([sent])).toEqual([is])
})
