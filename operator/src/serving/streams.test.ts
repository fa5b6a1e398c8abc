// The server's side of a streamed bundle over a real connection; the test controls the offered content and the existing
// pods.

import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { gunzipSync } from 'node:zlib'
import { type Bundle, type StreamBody, type StreamHead, sha256 } from '@penstock/agent/bundle'
import { silentLogger } from '@penstock/agent/telemetry'
import { Registry } from 'prom-client'
import { expect, test, vi } from 'vitest'
import type { KubeObject } from '../api/object.ts'
import { lingerMs, NodePods, podPlace } from '../fleet/node-pods.ts'
import { FleetState, type Offered } from '../fleet/state.ts'
import { monotonicNow } from '../kube/clock.ts'
import { namespaceType, podType } from '../kube/resource-types.ts'
import { Store } from '../kube/store.ts'
import type { Fragment } from '../render/fragment.ts'
import { testContext } from '../testing/context.ts'
import { Streams } from './streams.ts'

/** The clock of these tests, ahead of the real one by an offset. */
const clock = { aheadMs: 0, now: () => monotonicNow() + clock.aheadMs }

const fragment = (namespace: string, secret?: string): Fragment => ({
  ...{ id: `${namespace}/p`, uid: namespace, generation: 1, hash: namespace, entry: '{}', sources: [], transforms: [] },
  subscriptions: [[`${namespace}/p/app`, JSON.stringify({ cursor: namespace, namespaces: [namespace] })]],
  sinks: [[`${namespace}/p/out`, '{"type":"blackhole"}']],
  secretRefs: secret === undefined ? [] : [{ key: secret, parts: [] }],
})

const revision = (rev: string, ...fragments: readonly Fragment[]) => ({
  rev,
  fragments: new Map(fragments.map((each) => [each.id, each])),
})

const values = new Map([
  ['k-shop', Buffer.from('of the shop')],
  ['k-bank', Buffer.from('of the bank')],
])
const offer = (extra: Partial<Offered> = {}): Offered => ({
  mode: 'Node',
  account: 'penstock-node',
  stable: revision('r1', fragment('shop', 'k-shop'), fragment('bank', 'k-bank')),
  candidate: undefined,
  secretsEpoch: 'e1',
  values,
  digests: Object.fromEntries([...values].map(([key, value]) => [key, sha256(value)])),
  ...extra,
})

const pod = (namespace: string, name: string, nodeName: string, version = '1'): KubeObject =>
  podPlace.of({
    ...{ apiVersion: 'v1', kind: 'Pod', spec: { nodeName, containers: [] }, status: {} },
    metadata: { name, namespace, uid: `uid-${name}`, resourceVersion: version, labels: { app: 'web' } },
  } as KubeObject)

async function serving(namedPerSecond?: number) {
  const stack = new AsyncDisposableStack()
  const pods = new Store<KubeObject>(podType, [''], silentLogger)
  const namespaces = new Store<KubeObject>(namespaceType, [''], silentLogger)
  namespaces.replace([], '', () => true)
  const fleet = new FleetState(undefined, clock.now)
  const ending = new AbortController()
  const context = testContext({
    ...{ logger: silentLogger, metrics: new Registry(), signal: ending.signal },
    caches: {
      cache: (type: typeof podType) => (type === podType ? pods : namespaces),
      synced: (signal: AbortSignal) => pods.whenSynced(signal),
    },
  })
  const streams = new Streams(context, fleet, namedPerSecond)
  stack.defer(() => {
    streams[Symbol.dispose]()
    ending.abort()
  })
  const server = createServer(async (request, response) => {
    const parts: Buffer[] = []
    for await (const part of request as AsyncIterable<Buffer>) parts.push(part)
    const [agent = '', node = '', name = '', account = ''] = String(request.headers['x-who']).split(' ')
    const asked = { agent, pod: name, podUid: `uid-${name}`, node }
    await streams.serve(asked, account, JSON.parse(Buffer.concat(parts).toString()), response)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  stack.defer(() => {
    server.closeAllConnections()
    server.close()
  })
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  interface Got {
    readonly status: number
    readonly text: string
    readonly head?: StreamHead
    readonly have?: NonNullable<StreamBody['have']>
    readonly pipelines?: readonly string[]
  }
  /** Asks as the agent of a node. */
  const ask = async (
    node: string,
    body: Partial<StreamBody> = {},
    who = `system/node ${node} on-${node} penstock-node`,
  ): Promise<Got> => {
    const answer = await fetch(url, {
      method: 'POST',
      headers: { 'x-who': who },
      body: JSON.stringify({ schema: 1, waitMs: 20_000, busy: [], ...body }),
    })
    const file = Buffer.from(await answer.arrayBuffer())
    if (answer.status !== 200) return { status: answer.status, text: file.toString() }
    const [first = '', second] = gunzipSync(file).toString().split('\n')
    const head = JSON.parse(first) as StreamHead
    if (second !== undefined) expect(sha256(second)).toBe(head.sha256)
    const { rev, candidate, mark } = head
    return {
      ...{ status: answer.status, text: first, head, have: { rev, candidate, mark } },
      ...(second === undefined ? {} : { pipelines: Object.keys((JSON.parse(second) as Bundle).pipelines) }),
    }
  }
  const waiting = async () => Number(/^penstock_streams_waiting (\d+)$/m.exec(await context.metrics.metrics())?.[1])
  /** Asks, and never reads the answer. */
  const ignore = async (who: string): Promise<void> => {
    const asked = request(url, { method: 'POST', headers: { 'x-who': who }, agent: false })
    stack.defer(() => void asked.destroy())
    asked.on('error', () => {})
    asked.end(JSON.stringify({ schema: 1, waitMs: 20_000, busy: [] }))
    await once(asked, 'response')
  }
  return { pods, fleet, ask, ignore, waiting, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

const unknown = { rev: '', candidate: false, mark: '' }

const until = async (holds: () => Promise<boolean>) => {
  while (!(await holds())) await new Promise((done) => setTimeout(done, 5))
}

test('an agent gets the Pipelines for its node and their secrets, but nothing before the pods are known', async () => {
  await using rig = await serving()
  rig.fleet.offer('system/node', offer())
  const early = rig.ask('a')
  await until(async () => (await rig.waiting()) === 1)
  rig.pods.replace([pod('shop', 'web', 'a')], '', () => true)
  const first = await early
  expect(first).toMatchObject({ status: 200, pipelines: ['shop/p'], head: { rev: 'r1', secretsEpoch: 'e1' } })
  expect(first.head?.secrets).toEqual({
    'k-shop': { value: btoa('of the shop'), sha256: sha256('of the shop') },
  })
  expect((await rig.ask('b')).pipelines).toEqual([])
})

test('a delivered pipeline stays while it is busy; a false claim to be busy has no effect', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })
  using _ = { [Symbol.dispose]: () => void vi.useRealTimers() }
  await using rig = await serving()
  rig.pods.replace([pod('shop', 'web', 'a')], '', () => true)
  rig.fleet.offer('system/node', offer())
  const busy = ['bank/p', 'shop/p', 'bank/gone']
  const claimed = await rig.ask('b', { busy })
  expect([claimed.pipelines, claimed.head?.secrets]).toEqual([[], {}])
  // Nor does a forged or borrowed mark.
  const first = await rig.ask('a', { busy })
  expect(first.pipelines).toEqual(['shop/p'])
  for (const have of [first.have ?? unknown, unknown]) {
    const again = await rig.ask('b', { have, busy }, 'system/node b another penstock-node')
    expect(again.pipelines).toEqual([])
  }

  // The pod that it reads was deleted, but some of its lines are still undelivered.
  rig.pods.remove(pod('shop', 'web', 'a', '2'))
  clock.aheadMs += lingerMs + 1000
  vi.advanceTimersByTime(60_000)
  const kept = await rig.ask('a', { busy })
  expect(kept.pipelines).toEqual(['shop/p'])
  expect((await rig.ask('a', { busy: [] })).pipelines).toEqual([])
  expect((await rig.ask('a', { busy })).pipelines).toEqual([])
})

test('a restarted operator recognizes the content of a pod by its mark', async () => {
  const lines = { busy: ['shop/p'], waitMs: 50 }
  let have = unknown
  {
    await using before = await serving()
    before.pods.replace([pod('shop', 'web', 'a')], '', () => true)
    before.fleet.offer('system/node', offer())
    have = (await before.ask('a')).have ?? unknown
  }
  await using rig = await serving()
  rig.pods.replace([], '', () => true)
  rig.fleet.offer('system/node', offer())
  expect((await rig.ask('a', { ...lines, have })).status).toBe(204) // what it has is what it needs
  const stable = revision('r2', fragment('shop', 'k-shop'), fragment('bank', 'k-bank'))
  rig.fleet.offer('system/node', offer({ stable }))
  const next = await rig.ask('a', { ...lines, have })
  expect([next.head?.rev, next.head?.mark]).toEqual(['r2', have.mark])
  // The same mark proves nothing else.
  const greedy = await rig.ask('b', { have, busy: ['shop/p', 'bank/p'] })
  expect(greedy.pipelines).toEqual([])
})

test('holds the request of an agent with the newest configuration until a newer one exists', async () => {
  await using rig = await serving()
  rig.pods.replace([pod('shop', 'web', 'a')], '', () => true)
  rig.fleet.offer('system/node', offer())
  const { have = unknown } = await rig.ask('a')
  expect((await rig.ask('a', { have, waitMs: 50 })).status).toBe(204)
  expect((await rig.ask('a', { have, waitMs: 0 })).status).toBe(204)

  const held = rig.ask('a', { have })
  const other = rig.ask('b', { have: (await rig.ask('b')).have ?? unknown })
  await until(async () => (await rig.waiting()) === 2)
  rig.pods.set(pod('bank', 'teller', 'a'))
  const grown = await held
  expect(grown.pipelines).toEqual(['bank/p', 'shop/p'])

  // A change of another namespace's Pipeline: the same content under another revision.
  const next = rig.ask('a', { have: grown.have ?? unknown })
  await until(async () => (await rig.waiting()) === 2)
  const stable = revision('r2', fragment('shop', 'k-shop'), fragment('bank', 'k-bank'), fragment('third'))
  rig.fleet.offer('system/node', offer({ stable }))
  for (const same of [await next, await other]) {
    expect(same.head?.rev).toBe('r2')
    expect(same.pipelines).toBeUndefined()
  }

  // Only a value changes.
  const { have: newest = unknown } = await next
  const rotated = rig.ask('a', { have: newest })
  await until(async () => (await rig.waiting()) === 1)
  const changed = new Map([...values, ['k-bank', Buffer.from('another')]])
  const digests = Object.fromEntries([...changed].map(([key, value]) => [key, sha256(value)]))
  rig.fleet.offer('system/node', offer({ stable, secretsEpoch: 'e2', values: changed, digests }))
  expect((await rotated).head?.secrets?.['k-bank']?.value).toBe(btoa('another'))
})

test('the nodes of a candidate get the candidate, and others the stable revision', async () => {
  await using rig = await serving()
  rig.pods.replace([], '', () => true)
  const candidate = { ...revision('r2', fragment('shop')), percent: 100, salt: 's' }
  rig.fleet.offer('system/node', offer({ candidate }))
  const tried = await rig.ask('a')
  expect(tried.head).toMatchObject({ rev: 'r2', candidate: true })
  const back = rig.ask('a', { have: tried.have ?? unknown })
  await until(async () => (await rig.waiting()) === 1)
  rig.fleet.offer('system/node', offer({ candidate: { ...candidate, percent: 0 } }))
  expect((await back).head).toMatchObject({ rev: 'r1', candidate: false })
})

test('only pods of an Agent get its bundle, and nobody gets one without an Agent', async () => {
  await using rig = await serving()
  rig.pods.replace([pod('shop', 'web', 'a')], '', () => true)
  rig.fleet.offer('system/node', offer())
  const foreign = await rig.ask('a', {}, 'system/node a impostor default')
  expect(foreign.status).toBe(403)
  expect(foreign.text).toContain('default')
  expect(foreign.text).not.toContain('of the shop')
  expect((await rig.ask('a', { waitMs: 50 }, 'system/other a other penstock-other')).status).toBe(204)
  // A request that waited before there was an offer is rejected like any other.
  rig.fleet.offer('system/node', undefined)
  const early = rig.ask('a', { waitMs: 500 }, 'system/node a impostor default')
  await until(async () => (await rig.waiting()) === 1)
  rig.fleet.offer('system/node', offer())
  expect((await early).status).toBe(204)
})

test('pods of users with a sidecar, and aggregators, get the whole bundle', async () => {
  await using rig = await serving()
  rig.fleet.offer('shop/sidecar', offer({ mode: 'Sidecar', account: undefined }))
  const got = await rig.ask('a', {}, 'shop/sidecar a web default')
  expect(got.pipelines).toEqual(['bank/p', 'shop/p'])
})

test('a deleted pod counts for some time', () => {
  const pods = new Store<KubeObject>(podType, [''], silentLogger)
  const changed: string[] = []
  using placed = new NodePods(pods, (node) => changed.push(node), clock.now)
  pods.set(pod('shop', 'web', 'a'))
  pods.set(pod('shop', 'web', 'a', '2')) // only its status has changed
  expect(changed).toEqual(['a'])
  pods.remove(pod('shop', 'web', 'a', '3'))
  placed.sweep(clock.now() + lingerMs / 2)
  expect(placed.on('a')).toMatchObject([{ namespace: 'shop', labels: { app: 'web' } }])
  placed.sweep(clock.now() + lingerMs + 1000)
  expect(placed.on('a')).toEqual([])
  expect(changed).toEqual(['a', 'a'])
})

test('each of many waiting agents gets an answer', async () => {
  await using rig = await serving()
  rig.pods.replace([], '', () => true)
  rig.fleet.offer('system/node', offer())
  const nodes = Array.from({ length: 200 }, (_, index) => `n${index}`)
  const { have = unknown } = await rig.ask('a')
  const answers = nodes.map((node) => rig.ask(node, { have }))
  await until(async () => (await rig.waiting()) === nodes.length)
  rig.fleet.offer('system/node', offer({ stable: revision('r2', fragment('shop')) }))
  expect(new Set((await Promise.all(answers)).map(({ head }) => head?.rev))).toEqual(new Set(['r2']))
})

test('an agent gets new names of the same content at intervals, and new content at once', async () => {
  await using rig = await serving(0.01)
  rig.pods.replace([pod('shop', 'web', 'a')], '', () => true)
  const [shop, bank] = [fragment('shop', 'k-shop'), fragment('bank', 'k-bank')]
  const next = (rev: string, ...fragments: readonly Fragment[]) =>
    rig.fleet.offer('system/node', offer({ stable: revision(rev, ...fragments) }))
  next('r1', shop)
  const first = await rig.ask('a')
  next('r2', shop, bank)
  const second = await rig.ask('a', { have: first.have })
  expect(second).toMatchObject({ status: 200, head: { rev: 'r2' } })
  expect(second.pipelines).toBeUndefined()
  next('r3', shop)
  expect((await rig.ask('a', { have: second.have, waitMs: 300 })).status).toBe(204)
  next('r4', { ...shop, hash: 'other', entry: '{"other":1}' })
  const changed = await rig.ask('a', { have: second.have })
  expect([changed.head?.rev, changed.pipelines]).toEqual(['r4', ['shop/p']])
})

test('pods of a tenant that never read their bundle delay no agents of nodes, and no pods of other tenants', async () => {
  await using rig = await serving()
  rig.pods.replace([pod('shop', 'web', 'a')], '', () => true)
  rig.fleet.offer('system/node', offer())
  const sidecars = (own: Fragment) =>
    offer({ mode: 'Sidecar', account: undefined, stable: revision('r1', own), values: new Map(), digests: {} })
  // More than the buffers of a connection hold.
  const large = {
    ...fragment('evil'),
    entry: JSON.stringify({ text: randomBytes(12 * 1024 * 1024).toString('base64') }),
  }
  rig.fleet.offer('evil/side', sidecars(large))
  rig.fleet.offer('shop/side', sidecars(fragment('shop')))
  const ignoring = Array.from({ length: 10 }, (_, index) => rig.ignore(`evil/side a evil-${index} default`))
  for (const each of ignoring) each.catch(() => {}) // when the test ends
  await Promise.any(ignoring)
  const answers = Promise.all([rig.ask('a'), rig.ask('b', {}, 'shop/side b side default')])
  const late = new Promise((done) => setTimeout(() => done('late'), 5000))
  expect(await Promise.race([answers, late])).toMatchObject([{ status: 200 }, { status: 200, pipelines: ['shop/p'] }])
}, 60_000)
