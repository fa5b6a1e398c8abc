// The receiver of the benchmarks: accepts bodies of all formats, counts the events in them, and reports to the parent process. It also
// responds to the few requests that an agent sends to the Kubernetes API, so that pod logs are read and enriched as on a node. With a
// number of pods as argument, it checks the lines of the generator instead of counting events. Further arguments are namespaces with one
// pod each.

import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gunzipSync, zstdDecompressSync } from 'node:zlib'
import { Delivered, type Delivery } from './delivered.ts'
import { benchNamespaces, benchNode, benchPods, namespaceOf, podOf } from './pods.ts'

const pod = {
  metadata: {
    name: 'web-1',
    namespace: 'default',
    uid: 'uid-1',
    labels: { app: 'web', team: 'storefront' },
    annotations: { 'example.com/owner': 'storefront' },
    ownerReferences: [{ kind: 'ReplicaSet', name: 'web' }],
  },
  spec: { nodeName: 'bench', containers: [{ name: 'app', image: 'shop/web:1' }] },
  status: {
    podIP: '10.0.0.1',
    podIPs: [{ ip: '10.0.0.1' }],
    containerStatuses: [{ name: 'app', imageID: 'shop/web@sha256:1', containerID: 'containerd://1' }],
  },
}
/** Namespaces of the scenario `neighbours`, with one pod each. */
const tenants = [...Array.from({ length: 9 }, (_, index) => `light-${index}`), 'heavy']
const checkedPods = Number(process.argv[2] ?? 0)
const others = process.argv.slice(3)
const delivered = checkedPods > 0 ? new Delivered() : undefined
interface ApiObject {
  readonly metadata: { readonly name: string; readonly namespace?: string; readonly [member: string]: unknown }
}

const usual: Record<string, ApiObject[]> = {
  pods: [
    pod,
    ...tenants.map((namespace) => ({ ...pod, metadata: { name: 'web', namespace, uid: `uid-${namespace}` } })),
  ],
  namespaces: ['default', ...tenants].map(namespaceOf),
  nodes: [{ metadata: { name: 'bench', uid: 'node-1', labels: { 'kubernetes.io/os': 'linux' } } }],
}

const objects: Record<string, readonly ApiObject[]> =
  delivered === undefined
    ? usual
    : {
        pods: [...benchPods(checkedPods), ...others.map(podOf)].map((each) => each.object),
        namespaces: [...benchNamespaces, ...others.map(namespaceOf)],
        nodes: [benchNode],
      }

export interface ReceiverMessage {
  readonly port?: number
  readonly counts?: Readonly<Record<string, number>>
  readonly delivery?: Delivery
}

const send = (message: ReceiverMessage) => process.send?.(message)

const counts: Record<string, number> = {}

const server = createServer((request, response) => {
  const url = new URL(request.url ?? '/', 'http://localhost')
  if (request.method === 'GET' && url.pathname.startsWith('/api/v1/')) {
    answerAsApi(url, response)
    return
  }
  if (request.method !== 'POST') {
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end('{"version":{"number":"8.19.0"}}')
    return
  }
  // A destination that fails for half a second of every five seconds.
  if (url.pathname === '/flaky' && Date.now() % 5000 < 500) {
    request.resume()
    response.writeHead(503).end()
    return
  }
  const chunks: Buffer[] = []
  request.on('data', (chunk: Buffer) => chunks.push(chunk))
  request.on('end', () => {
    const arrived = performance.timeOrigin + performance.now()
    let body = Buffer.concat(chunks)
    const encoding = request.headers['content-encoding']
    if (encoding === 'gzip') body = gunzipSync(body)
    else if (encoding === 'zstd') body = zstdDecompressSync(body)
    if (delivered !== undefined) {
      delivered.take(body, arrived)
      counts[url.pathname] = delivered.received
    } else counts[url.pathname] = (counts[url.pathname] ?? 0) + eventsIn(url.pathname, body)
    const bulk = url.pathname.endsWith('/_bulk')
    response.writeHead(bulk ? 200 : 204, bulk ? { 'content-type': 'application/json' } : {})
    response.end(bulk ? '{"took":1,"errors":false,"items":[]}' : undefined)
    send({ counts })
  })
})

/** Lists, single objects, and watches. A watch without a version begins with one event per object. */
function answerAsApi(url: URL, response: ServerResponse): void {
  const segments = url.pathname.slice('/api/v1/'.length).split('/')
  const [namespace, rest] = segments.length > 2 ? [segments[1], segments.slice(2)] : [undefined, segments]
  const [resource = '', name] = rest
  const found = (objects[resource] ?? []).filter(
    ({ metadata }) =>
      (namespace === undefined || metadata.namespace === namespace) && (name === undefined || metadata.name === name),
  )
  response.writeHead(name === undefined || found.length > 0 ? 200 : 404, { 'content-type': 'application/json' })
  if (url.searchParams.has('watch')) {
    response.flushHeaders()
    const ends = setTimeout(() => response.end(), Number(url.searchParams.get('timeoutSeconds') ?? 3600) * 1000)
    response.on('close', () => clearTimeout(ends))
    if ((url.searchParams.get('resourceVersion') ?? '') !== '') return
    for (const object of found) response.write(`${JSON.stringify({ type: 'ADDED', object })}\n`)
  } else if (name !== undefined) response.end(JSON.stringify(found[0] ?? {}))
  else response.end(JSON.stringify({ metadata: { resourceVersion: '1' }, items: found }))
}

function eventsIn(path: string, body: Buffer): number {
  if (path.endsWith('/push')) {
    const { streams } = JSON.parse(body.toString('utf8')) as { streams: { values: unknown[] }[] }
    return streams.reduce((sum, stream) => sum + stream.values.length, 0)
  }
  let lines = 0
  for (let at = body.indexOf(10); at >= 0; at = body.indexOf(10, at + 1)) lines++
  if (body.length > 0 && body[body.length - 1] !== 10) lines++
  return path.endsWith('/_bulk') ? lines / 2 : lines
}

// A watch stays open for as long as the client requests.
server.requestTimeout = 0

// A message from the parent requests the report, or sets the start of latency for existing lines.
process.on('message', ({ originMs }: { originMs?: number }) => {
  if (delivered === undefined) return
  if (originMs === undefined) send({ delivery: delivered.delivery() })
  else delivered.originMs = originMs
})
process.on('disconnect', () => process.exit(0))
server.listen(0, '127.0.0.1', () => send({ port: (server.address() as AddressInfo).port }))
