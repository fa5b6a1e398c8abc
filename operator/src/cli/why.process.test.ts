// The real `penstock why` with doubles of the API server and of the operator: user rights, and unfinished rollouts.

import { expect, test } from 'vitest'
import { forbidden, notFound, runAtDouble } from '../testing/command.ts'

const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name: 'web-1', namespace: 'shop', uid: 'u1', labels: { app: 'web' } },
  spec: { nodeName: 'node-1', containers: [{ name: 'web' }] },
  status: { phase: 'Running' },
}
const agent = {
  apiVersion: 'penstock.dev/v1alpha1',
  kind: 'Agent',
  metadata: { name: 'node', namespace: 'penstock-system' },
  spec: { mode: 'Node', pipelines: { namespaceSelector: {} } },
}
const pipeline = (status: 'True' | 'False', { flow, flowing }: Pick<Cluster, 'flow' | 'flowing'> = {}) => ({
  apiVersion: 'penstock.dev/v1alpha1',
  kind: 'Pipeline',
  metadata: { name: 'web', namespace: 'shop', uid: 'u2' },
  spec: {
    sources: [{ name: 'app', type: 'orchestrator_logs', config: {} }],
    sinks: [{ name: 'out', type: 'blackhole', config: {} }],
  },
  status: {
    flow,
    conditions: [
      { type: 'Accepted', status: 'True', reason: 'Valid', message: '' },
      ...(flowing === undefined ? [] : [{ type: 'Flowing', status: 'False', reason: flowing, message: '' }]),
      {
        type: 'Programmed',
        status,
        reason: status === 'True' ? 'Programmed' : 'RollingOut',
        message: '1 of 2 agents runs it.',
      },
    ],
  },
})
const open = [{ container: 'web', file: '/l/0.log', size: 90, read: 80, delivered: 70, lagSeconds: 0, dropped: 0 }]

interface Cluster {
  readonly programmed: 'True' | 'False'
  readonly forbidden: readonly string[]
  readonly positions: readonly object[]
  /** The operator's knowledge of the node's agents; one agent that has answered if not given. */
  readonly agents?: object
  /** Whether every agent has had time to report. */
  readonly complete?: boolean
  /** For a pod that no longer exists. */
  readonly events?: readonly object[]
  readonly flags?: readonly string[]
  readonly flow?: object
  /** The reason of the condition `Flowing`. */
  readonly flowing?: string
  /** The status of the pod. */
  readonly status?: object
  /** Whether no agent of the node runs the Pipeline. */
  readonly isUnheard?: boolean
  /** Containers that were added to debug the running pod. */
  readonly ephemeral?: readonly object[]
}

async function why({
  programmed,
  forbidden: unreadable,
  positions,
  events,
  agents,
  complete = true,
  flags = [],
  status = pod.status,
  ephemeral = [],
  isUnheard = false,
  ...more
}: Cluster) {
  const asked: string[] = []
  const run = await runAtDouble(
    ({ url }) => ['why', 'web-1', '--operator-url', url, '--token', 'secret', ...flags],
    ({ pathname, searchParams }) => {
      const resource = pathname.split('/').at(-1) ?? ''
      const found = (body: object) => ({ status: 200, body })
      const lists: Record<string, readonly object[]> = { pipelines: [pipeline(programmed, more)], agents: [agent] }
      if (unreadable.includes(resource)) return forbidden
      if (pathname === '/v1/top') {
        asked.push(`${searchParams.get('kind')} ${searchParams.get('pod')} ${searchParams.get('node')}`)
        const row = {
          kind: 'Pipeline',
          namespace: 'shop',
          name: 'web',
          agents: agents ?? { asked: 1, answered: 1 },
          positions,
        }
        return found({ kind: 'figures', at: '', complete, pipelines: isUnheard ? [] : [row] })
      }
      if (resource === 'web-1' && events !== undefined) return notFound('pods "web-1" not found')
      if (resource === 'events') return found({ metadata: {}, items: events ?? [] })
      if (resource === 'web-1') return found({ ...pod, status, spec: { ...pod.spec, ephemeralContainers: ephemeral } })
      if (resource === 'shop') return found({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } })
      return found({ metadata: {}, items: lists[resource] ?? [] })
    },
    { namespace: 'shop' },
  )
  return { ...run, asked }
}

const clusterKinds = ['clusterpipelines', 'clustersources']
const platform = [...clusterKinds, 'agents', 'shop']

for (const programmed of ['True', 'False'] as const) {
  for (const forbidden of [[], clusterKinds, platform]) {
    for (const positions of [open, []]) {
      const rights = forbidden.length === 0 ? 'all rights' : `no right to ${forbidden.join(', ')}`
      const files = positions.length === 0 ? 'no file' : 'a file'
      test(`Programmed ${programmed}, ${files} open on the node of the pod, ${rights}`, async () => {
        const { code, output } = await why({ programmed, forbidden, positions })
        // An unfinished rollout does not hide logs that the agent of the node already reads.
        const read = programmed === 'True' || positions.length > 0
        expect(code, output).toBe(read ? 0 : 1)
        expect(output.includes('Its logs are read.'), output).toBe(read)
        expect(output.includes('80 of 90 bytes read'), output).toBe(positions.length > 0)
        expect(output.includes('not yet running on all nodes: RollingOut'), output).toBe(programmed === 'False' && read)
        expect(output.includes('Omitted, because you may not read them:'), output).toBe(forbidden.length > 0)
      })
    }
  }
}

test.each([
  { what: 'no agent reports from the node', agents: { asked: 0, answered: 0, silent: 0 }, complete: true, read: false },
  {
    what: 'agents may not have reported yet',
    agents: { asked: 0, answered: 0, silent: 0 },
    complete: false,
    read: true,
  },
  { what: 'the agent of the node is silent', agents: { asked: 0, answered: 0, silent: 1 }, complete: true, read: true },
])('all agents run it, and $what', async ({ agents, complete, read }) => {
  const { code, output } = await why({ programmed: 'True', forbidden: [], positions: [], agents, complete })
  expect(code, output).toBe(read ? 0 : 1)
  expect(output.includes('Its logs are read.'), output).toBe(read)
  expect(output.includes('no agent that runs it reports from the node of the pod'), output).toBe(!read)
  expect(output).toContain('read positions are unknown')
})

test.each([
  { lines: 1234, says: 'web: 0.log.20260101-000000.gz: 1234 lines not read, because the file was compressed' },
  { lines: 0, says: 'web: 0.log.20260101-000000.gz: 0 lines not read, because the file was compressed' },
])('a file compressed before its first read is reported with its $lines lines', async ({ lines, says }) => {
  const left = { ...open[0], file: '/l/0.log.20260101-000000.gz', read: 0, compressed: { lines } }
  const { output } = await why({ programmed: 'True', forbidden: [], positions: [left, ...open] })
  expect(output.replaceAll(/\s+/g, ' ')).toContain(says)
  expect(output).toContain('web: 0.log: 80 of 90 bytes read')
})

test.each([
  { flow: { dropped: 0 }, flowing: undefined, says: '70 delivered' },
  { flow: { dropped: 3 }, flowing: undefined, says: '70 delivered or discarded' },
  { flow: { dropped: 0 }, flowing: 'AllEventsDropped', says: '70 delivered or discarded' },
  { flow: { dropped: 0 }, flowing: 'SomeEventsDropped', says: '70 delivered or discarded' },
  { flow: { dropped: 0 }, flowing: 'NoEventsDelivered', says: '70 delivered' },
  { flow: undefined, flowing: undefined, says: '70 delivered or discarded' },
])('lines count as delivered only without losses: $flowing, $flow', async ({ says, flow, flowing }) => {
  const seen = { ...(flow === undefined ? {} : { flow }), ...(flowing === undefined ? {} : { flowing }) }
  const { output } = await why({ programmed: 'True', forbidden: [], positions: open, ...seen })
  expect(output).toMatch(new RegExp(`80 of 90 bytes read, ${says}$`, 'm'))
})

test.each([
  { what: 'two agents read one file', answered: 2, files: ['/l/0.log', '/l/0.log'], twice: true },
  { what: 'two agents read different files', answered: 2, files: ['/l/0.log', '/l/1.log'], twice: false },
  { what: 'one agent reads a file for two sources', answered: 1, files: ['/l/0.log', '/l/0.log'], twice: false },
])('lines that arrive several times are reported: $what', async ({ answered, files, twice }) => {
  const positions = files.map((file) => ({ ...open[0], file }))
  const agents = { asked: answered, answered }
  const { output } = await why({ programmed: 'True', forbidden: [], positions, agents })
  expect(output.includes('2 agents of its node read it, so its lines arrive 2 times'), output).toBe(twice)
})

test('no agent is called silent about a Pipeline that none runs', async () => {
  const { code, output } = await why({ programmed: 'False', forbidden: [], positions: [], isUnheard: true })
  expect(code).toBe(1)
  expect(output).toContain('has shown no open log file: RollingOut')
  expect(output).not.toContain('read positions are unknown')
})

test('containers that were added to debug a pod are read, too', async () => {
  const { output } = await why({ programmed: 'True', forbidden: [], positions: open, ephemeral: [{ name: 'debug' }] })
  expect(output).toContain('source app: containers web, debug')
})

const waiting = { name: 'web', restartCount: 0, state: { waiting: { reason: 'ImagePullBackOff' } } }
test.each([
  { what: 'waits', containers: [waiting], inits: [], says: 'so it has no logs: web (ImagePullBackOff).' },
  {
    what: 'waits for a first container that also waits',
    containers: [{ ...waiting, state: { waiting: { reason: 'PodInitializing' } } }],
    inits: [{ ...waiting, name: 'prepare' }],
    says: 'so it has no logs: prepare (ImagePullBackOff), web (PodInitializing).',
  },
  { what: 'waits after a first container', containers: [waiting], inits: [{ name: 'p', state: { terminated: {} } }] },
  { what: 'waits for a restart', containers: [{ ...waiting, restartCount: 3 }], inits: [] },
  { what: 'has ended', containers: [{ name: 'web', state: { terminated: {} } }], inits: [] },
  { what: 'has no status', containers: [], inits: [] },
])('a pod whose container $what', async ({ containers, inits, says }) => {
  const status = { phase: 'Pending', initContainerStatuses: inits, containerStatuses: containers }
  const { code, output } = await why({ programmed: 'True', forbidden: [], positions: [], status })
  expect(code).toBe(0)
  expect(output.includes('None of its containers has started yet'), output).toBe(says !== undefined)
  expect(output).toContain(says === undefined ? 'Its logs are read.' : says)
  expect(output.includes('Its logs are read once a container starts.')).toBe(says !== undefined)
})

test('an operator shows positions with the rights of the caller, not of another user', async () => {
  const { code, output } = await why({ programmed: 'True', forbidden: [], positions: open, flags: ['--as', 'alice'] })
  expect(code, output).toBe(0)
  expect(output).toContain('cannot act as another user')
  expect(output).not.toContain('bytes read')
})

const eventOf = (uid: string, host: string | undefined, lastTimestamp: string) => ({
  metadata: { name: `web-1.${uid}`, namespace: 'shop' },
  involvedObject: { kind: 'Pod', namespace: 'shop', name: 'web-1', uid },
  source: host === undefined ? { component: 'default-scheduler' } : { component: 'kubelet', host },
  lastTimestamp,
})
const ofGone = [
  eventOf('u1', 'node-1', '2026-01-01T00:00:05Z'),
  eventOf('u0', 'node-0', '2026-01-01T00:00:01Z'),
  eventOf('u2', undefined, '2026-01-01T00:00:09Z'),
]

test.each([
  {
    what: 'still open there',
    positions: open,
    events: ofGone,
    forbidden: [],
    code: 0,
    says: 'its logs are still being read.',
  },
  {
    what: 'closed there',
    positions: [],
    events: ofGone,
    forbidden: [],
    code: 1,
    says: 'either all were read, or no Pipeline reads them',
  },
  { what: 'without an event', positions: open, events: [], forbidden: [], code: 1, says: 'There is no pod web-1' },
  {
    what: 'and hidden events',
    positions: open,
    events: ofGone,
    forbidden: ['events'],
    code: 1,
    says: 'no event of',
  },
])('a pod that was deleted, with files $what', async ({ positions, events, forbidden, code: expected, says }) => {
  const { code, output, asked } = await why({ programmed: 'True', forbidden, positions, events })
  expect(code, output).toBe(expected)
  expect(output).toContain(says)
  const isKnown = events.length > 0 && forbidden.length === 0
  // The last pod with the name, on the node of its kubelet.
  expect(asked.toSorted()).toEqual(isKnown ? ['ClusterPipeline u1 node-1', 'Pipeline u1 node-1'] : [])
  expect(output.includes('Pod shop/web-1 (deleted) on node node-1'), output).toBe(isKnown)
  expect(output.includes('80 of 90 bytes read, 70 delivered'), output).toBe(isKnown && positions.length > 0)
})
