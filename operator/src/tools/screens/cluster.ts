// A recorded cluster for pictures of commands: a loopback server that responds like the API server and the operator of a small shop. It
// never changes, so pictures are reproducible.

import { writeFileSync } from 'node:fs'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Condition } from '../../api/conditions.ts'
import type { TopRow } from '../../serving/observe/top-look.ts'

const apiVersion = 'penstock.dev/v1alpha1'
const webPod = 'web-6d9f7c5b8-x2x7p'
const node = 'worker-2'

function condition(type: string, status: Condition['status'], reason: string, message = ''): object {
  return { type, status, reason, message, lastTransitionTime: '2026-03-02T09:15:00Z', observedGeneration: 3 }
}

const running = [
  condition('Ready', 'True', 'Ready'),
  condition('Accepted', 'True', 'Valid'),
  condition('ResolvedRefs', 'True', 'Resolved'),
  condition('Programmed', 'True', 'Programmed', '3 of 3 agents run revision 9f3c2a.'),
]

const agents = [{ name: 'penstock-system/node', revision: '9f3c2a', desired: 3, current: 3 }]

const checkout = {
  apiVersion,
  kind: 'Pipeline',
  metadata: { name: 'checkout', namespace: 'shop', uid: 'u-checkout', generation: 3 },
  spec: {
    sources: [
      { name: 'pods', type: 'orchestrator_logs', config: {}, selector: { pods: { matchLabels: { app: 'web' } } } },
    ],
    transforms: [
      { name: 'parse', type: 'remap', inputs: ['pods'], config: { source: '. = parse_json!(.message)' } },
      { name: 'keep', type: 'filter', inputs: ['parse'], config: { condition: '.level != "debug"' } },
    ],
    sinks: [
      { name: 'store', type: 'log_aggregator', inputs: ['keep'], config: { endpoint: 'http://loki.monitoring:3100' } },
      { name: 'search', type: 'search_engine', inputs: ['keep'], config: { endpoints: ['http://search.shop:9200'] } },
    ],
  },
  status: {
    observedGeneration: 3,
    conditions: [
      ...running,
      condition(
        'Flowing',
        'False',
        'BufferFillingUp',
        'A buffer is filling up. sinks[search] on worker-2: connect ECONNREFUSED 10.96.4.7:9200',
      ),
      condition(
        'Reachable',
        'False',
        'ConnectFailed',
        'sinks[search]: 3 of 3 nodes fail at http://search.shop:9200: connect ECONNREFUSED 10.96.4.7:9200',
      ),
    ],
    components: [
      {
        name: 'search',
        errors: 42,
        lastError: {
          reason: 'ConnectFailed',
          message: 'connect ECONNREFUSED 10.96.4.7:9200',
          node,
          at: '2026-03-02T09:20:31Z',
        },
      },
    ],
    agents,
    flow: {
      window: '5m',
      eventsIn: 21_480,
      eventsOut: 19_310,
      dropped: 0,
      errors: 42,
      lagSeconds: 1,
      buffered: 39_845_888,
    },
    tests: { passed: 2, failed: 0 },
  },
}

const audit = {
  apiVersion,
  kind: 'Pipeline',
  metadata: { name: 'audit', namespace: 'shop', uid: 'u-audit', generation: 3 },
  spec: {
    sources: [
      { name: 'pods', type: 'orchestrator_logs', config: {}, selector: { pods: { matchLabels: { team: 'money' } } } },
    ],
    sinks: [{ name: 'store', type: 'log_aggregator', config: { endpoint: 'http://loki.monitoring:3100' } }],
  },
  status: {
    observedGeneration: 3,
    conditions: [...running, condition('Flowing', 'True', 'Flowing', 'Events are delivered.')],
    agents,
    flow: { window: '5m', eventsIn: 640, eventsOut: 640, dropped: 0, errors: 0, lagSeconds: 0 },
  },
}

const agent = {
  apiVersion,
  kind: 'Agent',
  metadata: { name: 'node', namespace: 'penstock-system' },
  spec: { mode: 'Node', pipelines: { namespaceSelector: {} } },
}

const pod = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: {
    name: webPod,
    namespace: 'shop',
    uid: 'u-web',
    labels: { app: 'web', team: 'storefront' },
  },
  spec: { nodeName: node, containers: [{ name: 'web' }] },
  status: { phase: 'Running' },
}

const row = (namespace: string, name: string, figures: readonly number[], lagSeconds?: number): TopRow => {
  const [
    inPerSecond = 0,
    outPerSecond = 0,
    droppedPerSecond = 0,
    errorsPerSecond = 0,
    bufferedEvents = 0,
    bufferedBytes = 0,
  ] = figures
  return {
    ...{ kind: 'Pipeline', namespace, name, agents: { asked: 3, answered: 3 } },
    ...{ inPerSecond, outPerSecond, droppedPerSecond, errorsPerSecond, bufferedEvents, bufferedBytes },
    ...(lagSeconds === undefined ? {} : { lagSeconds }),
  }
}

const figures: readonly TopRow[] = [
  row('blog', 'comments', [3.2, 3.2, 0, 0, 2, 1204], 0.2),
  row('data', 'clickstream', [1840.5, 1790.1, 0, 0, 812, 1_204_877], 0.4),
  row('shop', 'audit', [2.1, 2.1, 0, 0, 1, 402], 0.3),
  row('shop', 'checkout', [71.6, 64.4, 0, 1.4, 41_877, 39_845_888], 1),
  row('shop', 'payments', [12.4, 9.8, 2.6, 0, 3, 2210], 0.3),
  row('web', 'nightly-report', [0, 0, 0, 0, 0, 0]),
]

const position = {
  ...{ container: 'web', file: '/var/log/pods/shop_web-6d9f7c5b8-x2x7p_u-web/web/0.log' },
  ...{ size: 184_320, read: 184_320, delivered: 183_904, lagSeconds: 0, dropped: 0 },
}

const lists: Readonly<Record<string, readonly object[]>> = { pipelines: [audit, checkout], agents: [agent] }

function answer(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, { 'content-type': 'application/json' })
  response.end(`${JSON.stringify(body)}\n`)
}

/** Lines of figures that the operator sends until the client disconnects. */
function look(response: ServerResponse, pipelines: readonly object[]): void {
  const line = `${JSON.stringify({ kind: 'figures', at: '2026-03-02T09:20:40Z', complete: true, pipelines })}\n`
  response.writeHead(200, { 'content-type': 'application/x-ndjson' })
  response.write(line)
  const timer = setInterval(() => response.write(line), 200)
  response.on('close', () => clearInterval(timer))
}

/** Starts the server, and writes a kubeconfig for it into a folder. */
export async function recordedCluster(folder: string): Promise<AsyncDisposable & { readonly kubeconfig: string }> {
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://cluster')
    const parts = pathname.split('/')
    const name = parts.at(-1) ?? ''
    if (pathname.endsWith('/proxy/v1/top')) {
      if (!searchParams.has('pod')) look(response, figures)
      else look(response, [{ ...figures[3], agents: { asked: 1, answered: 1 }, positions: [position] }])
    } else if (name === webPod) answer(response, 200, pod)
    else if (parts.at(-2) === 'namespaces' && name === 'shop')
      answer(response, 200, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
    else if (parts.at(-2) === 'pipelines') {
      const found = lists['pipelines']?.find((object) => (object as typeof audit).metadata.name === name)
      answer(response, found === undefined ? 404 : 200, found ?? { kind: 'Status', code: 404, reason: 'NotFound' })
    } else answer(response, 200, { metadata: {}, items: lists[name] ?? [] })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const kubeconfig = join(folder, 'kubeconfig')
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      'current-context': 'shop',
      contexts: [{ name: 'shop', context: { cluster: 'shop', user: 'shop', namespace: 'shop' } }],
      clusters: [{ name: 'shop', cluster: { server: address, 'insecure-skip-tls-verify': true } }],
      users: [{ name: 'shop', user: { token: 'token' } }],
    }),
  )
  return {
    kubeconfig,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}
