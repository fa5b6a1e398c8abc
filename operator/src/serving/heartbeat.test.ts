// The server for agents over a real connection, on the leader. The test fills the caches, and its reviews trust every token.

import { connect } from 'node:net'
import { gzipSync } from 'node:zlib'
import { silentLogger } from '@penstock/agent/telemetry'
import { freePort } from '@penstock/agent/testing/free-port'
import { Registry } from 'prom-client'
import { expect, test, vi } from 'vitest'
import type { KubeObject } from '../api/object.ts'
import { FleetState } from '../fleet/state.ts'
import { podType } from '../kube/resource-types.ts'
import { Store } from '../kube/store.ts'
import { testContext } from '../testing/context.ts'
import { flood } from '../testing/flood.ts'
import { labels, tokenAudience } from '../workloads/names.ts'
import { type HeartbeatServerOptions, heartbeatPart } from './heartbeat.ts'

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

/** Pods are in namespace shop unless their name has another: `bank/agent`. */
function placeOf(pod: string) {
  const [name = '', namespace = 'shop'] = pod.split('/').reverse()
  return { name, namespace }
}

function tokenOf(pod: string): string {
  const { name, namespace } = placeOf(pod)
  const bound = { namespace, serviceaccount: { name: 'default' }, pod: { name, uid: pod } }
  const claims = { iss: 'cluster', aud: [tokenAudience], exp: 4_102_444_800, 'kubernetes.io': bound }
  return `${part({ alg: 'RS256' })}.${part({ ...claims, sub: `system:serviceaccount:${namespace}:default` })}.c2ln`
}

async function serving(...pods: readonly string[]) {
  return servingWith({}, ...pods)
}

async function servingWith(options: HeartbeatServerOptions, ...pods: readonly string[]) {
  const ending = new AbortController()
  const store = new Store<KubeObject>(podType, [''], silentLogger)
  const objects = pods.map((name) => ({
    ...{ apiVersion: 'v1', kind: 'Pod', spec: { nodeName: 'n' }, status: { podIPs: [{ ip: '127.0.0.1' }] } },
    metadata: { ...placeOf(name), uid: name, resourceVersion: '1', labels: { [labels.agent]: 'side' } },
  }))
  store.replace(objects as KubeObject[], '', () => true)
  const fleet = new FleetState()
  const port = await freePort()
  const userOf = async (token: string) => {
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString())
    const { pod } = claims['kubernetes.io']
    const extra = (name: string) => `authentication.kubernetes.io/${name}`
    return {
      username: claims.sub,
      extra: { [extra('pod-name')]: [pod.name], [extra('pod-uid')]: [pod.uid], [extra('node-name')]: ['n'] },
    }
  }
  const context = testContext({
    ...{ logger: silentLogger, metrics: new Registry(), signal: ending.signal, isLeader: () => true },
    artifacts: { complete: true, subscribe: () => ({ [Symbol.dispose]() {} }) },
    ...{ kube: { as: () => ({}) }, reviews: { userOf }, caches: { cache: () => store, synced: async () => {} } },
    settings: { heartbeatAddress: `127.0.0.1:${port}`, heartbeatPeriodMs: 30_000 },
  })
  const server = await heartbeatPart(fleet, options).start(context)
  return {
    ...{ fleet, port },
    post: (path: string, token: string, body: string | Uint8Array<ArrayBuffer>, headers: Record<string, string> = {}) =>
      fetch(`http://127.0.0.1:${port}${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${token}`, ...headers },
        body,
      }),
    report: async (pod: string, more: object = {}) => {
      const response = await fetch(`http://127.0.0.1:${port}/v1/heartbeat`, {
        method: 'POST',
        headers: { authorization: `Bearer ${tokenOf(pod)}` },
        body: JSON.stringify({ schema: 1, state: 'Loaded', failures: [], failed: [], pipelines: {}, ...more }),
      })
      await response.arrayBuffer()
      return response.status
    },
    async [Symbol.asyncDispose]() {
      ending.abort()
      await server[Symbol.asyncDispose]()
    },
  }
}

/** A report whose last bytes never arrive. */
async function slowPost(port: number, token: string, bytes: number) {
  const socket = connect({ host: '127.0.0.1', port })
  socket.on('error', () => {}) // the server may close it
  const head = `POST /v1/heartbeat HTTP/1.1\r\nhost: o\r\nauthorization: Bearer ${token}\r\ncontent-length: ${bytes + 10}\r\n\r\n`
  await new Promise<void>((written) => socket.write(head + 'x'.repeat(bytes), () => written()))
  return { isOpen: () => !socket.closed, [Symbol.dispose]: () => void socket.destroy() }
}

test.each([
  { what: 'reports all the time', count: 600, more: {} },
  { what: 'sends large reports', count: 20, more: { reason: 'x'.repeat(3_000_000) } },
])(
  'a pod that $what is limited, and others are not',
  async ({ count, more }) => {
    await using operator = await serving('evil', 'good')
    const statuses: number[] = []
    for (let sent = 0; sent < count; sent += 20)
      statuses.push(
        ...(await Promise.all(Array.from({ length: Math.min(20, count) }, () => operator.report('evil', more)))),
      )
    expect(new Set(statuses)).toEqual(new Set([200, 429]))
    expect(await operator.report('good')).toBe(200)
    expect(operator.fleet.report('shop/side', 'good')).toBeDefined()
  },
  60_000,
)

test('an agent may report several times a second', async () => {
  await using operator = await serving('agent')
  for (let sent = 0; sent < 50; sent++) expect(await operator.report('agent')).toBe(200)
})

test.each(['/v1/heartbeat', '/v1/bundle', '/v1/inquiries', '/v1/readers'])(
  '%s rejects a body that is too large, malformed or not an object, and closes the connection',
  async (path) => {
    await using operator = await serving('agent')
    const token = tokenOf('agent')
    const gzip = { 'content-encoding': 'gzip' }
    const cases: [string, string | Uint8Array<ArrayBuffer>, Record<string, string>, number, RegExp][] = [
      ['no JSON', '{', {}, 400, /^The body is not JSON: /],
      ['no object', '7', {}, 400, /^The body is not a JSON object\.$/],
      ['no gzip', '{}', gzip, 400, /not compressed with gzip/],
      ['large', 'x'.repeat(5_000_000), {}, 413, /at most \d+ bytes/],
      ['a bomb', new Uint8Array(gzipSync('x'.repeat(50_000_000))), gzip, 413, /at most \d+ bytes/],
    ]
    for (const [what, body, headers, status, text] of cases) {
      const response = await operator.post(path, token, body, headers)
      expect([what, response.status]).toEqual([what, status])
      expect(((await response.json()) as { error: string }).error).toMatch(text)
      expect(response.headers.get('connection')).toBe('close')
    }
    expect(await operator.report('agent')).toBe(200)
  },
)

test('a malformed path or an invalid token gets an answer, and closes the connection', async () => {
  await using operator = await serving('agent')
  for (const [path, token, status] of [
    ['/v1/nothing', tokenOf('agent'), 404],
    ['//', tokenOf('agent'), 404],
    ['/v1/inquiries/%E0%A4%A', tokenOf('agent'), 404],
    ['/v1/heartbeat', 'no token', 401],
  ] as const) {
    const response = await operator.post(path, token, '{}')
    expect([path, response.status, response.headers.get('connection')]).toEqual([path, status, 'close'])
    await response.arrayBuffer()
  }
})

test('connections without a request do not lock agents out, even if they come from the address of one', async () => {
  await using operator = await servingWith({ maxStrangers: 20 }, 'agent')
  const held = new AbortController()
  const waiting = fetch(`http://127.0.0.1:${operator.port}/v1/inquiries`, {
    method: 'POST',
    headers: { authorization: `Bearer ${tokenOf('agent')}` },
    body: JSON.stringify({ serving: [] }),
    signal: held.signal,
  })
  let ended: unknown
  waiting.catch((error: unknown) => {
    ended = error
  })
  using hostile = await flood(operator.port, '127.0.0.1', 60, false)
  await vi.waitFor(() => expect(hostile.open()).toBeLessThanOrEqual(20), 30_000)
  expect(await operator.report('agent')).toBe(200)
  expect(ended).toBeUndefined()
  held.abort()
  await expect(waiting).rejects.toThrow()
})

test('bodies of one namespace do not use up the memory for others', async () => {
  const tenantBodies = { perNamespace: 2_000_000, total: 3_000_000 }
  await using operator = await servingWith({ tenantBodies }, 'evil', 'bank/good')
  using slow = await slowPost(operator.port, tokenOf('evil'), 1_990_000)
  await vi.waitFor(async () => expect(await operator.report('evil', { reason: 'x'.repeat(50_000) })).toBe(429), 30_000)
  expect(slow.isOpen()).toBe(true)
  expect(await operator.report('bank/good', { reason: 'x'.repeat(50_000) })).toBe(200)
})
