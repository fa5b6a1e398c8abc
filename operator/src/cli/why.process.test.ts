// The real `penstock why` at a double of the API server and of the operator: rights of users, and rollouts that are not over.

import { spawn } from 'node:child_process'
import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const main = fileURLToPath(new URL('../main.ts', import.meta.url))
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
const pipeline = (status: 'True' | 'False') => ({
  apiVersion: 'penstock.dev/v1alpha1',
  kind: 'Pipeline',
  metadata: { name: 'web', namespace: 'shop', uid: 'u2' },
  spec: {
    sources: [{ name: 'app', type: 'orchestrator_logs', config: {} }],
    sinks: [{ name: 'out', type: 'blackhole', config: {} }],
  },
  status: {
    conditions: [
      { type: 'Accepted', status: 'True', reason: 'Valid', message: '' },
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
  /** The operator's knowledge of the node's agents; one that has answered if not given. */
  readonly agents?: object
  /** Whether every agent has had time to report. */
  readonly complete?: boolean
  /** Of a pod that is not there any more. */
  readonly events?: readonly object[]
}

async function why({ programmed, forbidden, positions, events, agents, complete = true }: Cluster) {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'penstock-why-'))
  const asked: string[] = []
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://cluster')
    const resource = pathname.split('/').at(-1) ?? ''
    const answer = (status: number, body: object) => {
      response.writeHead(status, { 'content-type': 'application/json' })
      response.end(`${JSON.stringify(body)}\n`)
    }
    const lists: Record<string, readonly object[]> = { pipelines: [pipeline(programmed)], agents: [agent] }
    if (forbidden.includes(resource)) answer(403, { kind: 'Status', reason: 'Forbidden', message: 'no', code: 403 })
    else if (pathname === '/v1/top') {
      asked.push(`${searchParams.get('kind')} ${searchParams.get('pod')} ${searchParams.get('node')}`)
      const row = {
        kind: 'Pipeline',
        namespace: 'shop',
        name: 'web',
        agents: agents ?? { asked: 1, answered: 1 },
        positions,
      }
      answer(200, { kind: 'figures', at: '', complete, pipelines: [row] })
    } else if (resource === 'web-1' && events !== undefined)
      answer(404, { kind: 'Status', reason: 'NotFound', message: 'pods "web-1" not found', code: 404 })
    else if (resource === 'events') answer(200, { metadata: {}, items: events ?? [] })
    else if (resource === 'web-1') answer(200, pod)
    else if (resource === 'shop') answer(200, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } })
    else answer(200, { metadata: {}, items: lists[resource] ?? [] })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const kubeconfig = join(folder.path, 'kubeconfig')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const config = {
    'current-context': 'one',
    contexts: [{ name: 'one', context: { cluster: 'one', user: 'one', namespace: 'shop' } }],
    clusters: [{ name: 'one', cluster: { server: url, 'insecure-skip-tls-verify': true } }],
    users: [{ name: 'one', user: { token: 'secret' } }],
  }
  await writeFile(kubeconfig, JSON.stringify(config))
  const flags = ['--kubeconfig', kubeconfig, '--operator-url', url, '--token', 'secret']
  const command = spawn(process.execPath, ['--conditions=source', main, 'why', 'web-1', ...flags])
  let said = ''
  const hear = (text: Buffer) => {
    said += text
  }
  command.stdout.on('data', hear)
  command.stderr.on('data', hear)
  try {
    const code = await new Promise<number | null>((done) => command.on('close', done))
    return { code, said, asked }
  } finally {
    command.kill('SIGKILL')
    server.close()
    server.closeAllConnections()
  }
}

const clusterKinds = ['clusterpipelines', 'clustersources']
const platform = [...clusterKinds, 'agents', 'shop']

for (const programmed of ['True', 'False'] as const) {
  for (const forbidden of [[], clusterKinds, platform]) {
    for (const positions of [open, []]) {
      const rights = forbidden.length === 0 ? 'all rights' : `no right to ${forbidden.join(', ')}`
      const files = positions.length === 0 ? 'no file' : 'a file'
      test(`Programmed ${programmed}, ${files} open on the node of the pod, ${rights}`, async () => {
        const { code, said } = await why({ programmed, forbidden, positions })
        // A rollout that is not over hides nothing that the agent of the node reads already.
        const read = programmed === 'True' || positions.length > 0
        expect(code, said).toBe(read ? 0 : 1)
        expect(said.includes('Its logs are read.'), said).toBe(read)
        expect(said.includes('80 of 90 bytes read'), said).toBe(positions.length > 0)
        expect(said.includes('not yet on all nodes: RollingOut'), said).toBe(programmed === 'False' && read)
        expect(said.includes('Left out, as you may not read them:'), said).toBe(forbidden.length > 0)
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
  const { code, said } = await why({ programmed: 'True', forbidden: [], positions: [], agents, complete })
  expect(code, said).toBe(read ? 0 : 1)
  expect(said.includes('Its logs are read.'), said).toBe(read)
  expect(said.includes('no agent that runs it reports from the node of the pod'), said).toBe(!read)
  expect(said).toContain('where reading stands is not known')
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
    says: 'its logs are still read.',
  },
  {
    what: 'closed there',
    positions: [],
    events: ofGone,
    forbidden: [],
    code: 1,
    says: 'all was read, or nothing reads it',
  },
  { what: 'without an event', positions: open, events: [], forbidden: [], code: 1, says: 'There is no pod web-1' },
  {
    what: 'whose events are secret',
    positions: open,
    events: ofGone,
    forbidden: ['events'],
    code: 1,
    says: 'no event of',
  },
])('a pod that was deleted, with files $what', async ({ positions, events, forbidden, code: expected, says }) => {
  const { code, said, asked } = await why({ programmed: 'True', forbidden, positions, events })
  expect(code, said).toBe(expected)
  expect(said).toContain(says)
  const isKnown = events.length > 0 && forbidden.length === 0
  // The last pod of the name, on the node of its kubelet.
  expect(asked.toSorted()).toEqual(isKnown ? ['ClusterPipeline u1 node-1', 'Pipeline u1 node-1'] : [])
  expect(said.includes('Pod shop/web-1 (deleted) on node node-1'), said).toBe(isKnown)
  expect(said.includes('80 of 90 bytes read, 70 delivered'), said).toBe(isKnown && positions.length > 0)
})
