// The rooms of the operator from the top floor down. `operator/src/rooms.test.ts` checks all imports against this table, and
// `operator/ARCHITECTURE.md` shows it.

import { type DescribedFloors, floorsOf, roomsText, tableOf } from '@penstock/agent/testing/rooms'

/** The content of each room, by floor. A room imports from the floors above its own. */
const rooms: DescribedFloors = [
  { api: 'the kinds of resources: schema, types, CRDs, and the meaning of their fields' },
  {
    compile: 'compiles one Pipeline to an artifact or to problems; pure, in processes with limits',
    workloads: 'the manifests of an Agent and of the installation; pure',
    kube: 'the only room that connects to the API server: requests, caches, queues, leadership',
  },
  { render: 'turns artifacts into the bytes of a bundle; pure' },
  { context: 'the context that every part of the operator receives at its start' },
  { fleet: 'the content delivered to each Agent, and the reports of its pods; in memory' },
  { policy: 'gathers the dependencies of a resource from caches, and decides what it may do' },
  { controllers: 'the loops on the leader: gather, decide (pure), apply; they write resources and status' },
  { serving: 'HTTPS for agents, probes and observers: heartbeats, bundles, tap and top' },
  { webhook: 'admission: validates resources, injects sidecars' },
  { migrate: 'converts configurations of other agents to Pipelines, with file and line; pure' },
  { cli: 'the commands; `cli/operator.ts` lists the parts of the operator' },
  { main: 'the process: runs the command that the arguments name' },
]

export const operatorTable = tableOf(floorsOf(rooms))

/** Packages that are large or access the cluster, with the only rooms that may import them. */
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
