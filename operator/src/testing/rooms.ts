// The rooms of the operator, from the top floor down: `operator/src/rooms.test.ts` holds every import against them, and
// `operator/ARCHITECTURE.md` shows them.

import { type DescribedFloors, floorsOf, roomsText, tableOf } from '@penstock/agent/testing/rooms'

/** By floor, what each room holds. A room imports from the floors above its own. */
const rooms: DescribedFloors = [
  { api: 'the kinds of resources: schema, types, CRDs, and what their fields mean' },
  {
    compile: 'one Pipeline to an artifact, or to problems; pure, in processes with limits',
    workloads: 'an Agent to manifests, and the manifests of the installation; pure',
    kube: 'the only room that speaks to the API server: requests, caches, queues, leadership',
  },
  { render: 'artifacts to the bytes of a bundle; pure' },
  { context: 'what every part of the operator gets when it starts' },
  { fleet: 'what each Agent was given, and what its pods report; in memory' },
  { policy: 'what a resource depends on and may do: gathered from caches, judged' },
  { controllers: 'the loops on the leader: gather, decide (pure), apply; they write resources and status' },
  { serving: 'HTTPS for agents, probes and observers: heartbeats, bundles, tap and top' },
  { webhook: 'admission: validates resources, injects sidecars' },
  { migrate: 'configurations of other agents, read with file and line, to Pipelines; pure' },
  { cli: 'the commands; `cli/operator.ts` lists the parts of the operator' },
  { main: 'the process: arguments to a command' },
]

export const operatorTable = tableOf(floorsOf(rooms))

/** The only rooms that import a package, where it matters which: what is large, or reaches the cluster. */
export const packageRooms = {
  '@kubernetes/client-node': ['kube'],
  '@kubernetes-models/base': ['api'],
  cdk8s: ['workloads'],
  constructs: ['workloads'],
  jose: ['kube'],
  '@peculiar/x509': ['serving'],
  'tar-stream': ['cli'],
} as const

/** For the ARCHITECTURE page. */
export function roomsPage(): string {
  const packages = Object.entries(packageRooms).map(([name, [room]]) => `\`${name}\` (\`${room}\`)`)
  return roomsText(rooms, `Packages that only one room imports: ${packages.join(', ')}.`)
}
