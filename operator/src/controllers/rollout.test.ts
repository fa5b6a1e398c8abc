// The status of a Pipeline from agents' reports. The test fills stores that serve as caches, and controls time.

import type { HeartbeatBody, PipelineReport } from '@penstock/agent/bundle'
import { version } from '@penstock/agent/program'
import { silentLogger } from '@penstock/agent/telemetry'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Finding } from '../api/conditions.ts'
import { agentKind, pipelineKind, sinkKind } from '../api/kinds.ts'
import type { KubeObject, ResourceType } from '../api/object.ts'
import type { Artifact } from '../compile/artifact.ts'
import type { StatusContribution } from '../context.ts'
import { FleetState } from '../fleet/state.ts'
import { monotonicNow } from '../kube/clock.ts'
import { podType } from '../kube/resource-types.ts'
import { Store } from '../kube/store.ts'
import type { Fragment } from '../render/fragment.ts'
import { testContext } from '../testing/context.ts'
import { labels } from '../workloads/names.ts'
import { Artifacts } from './artifacts.ts'
import { RolloutStatus } from './rollout.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] })
})
afterEach(() => {
  vi.useRealTimers()
})

/** A Pipeline that two agents run, with the status left by an earlier process. */
async function running(sources: Artifact['sources'] = {}, earlier: object = {}) {
  const stack = new AsyncDisposableStack()
  const stores = new Map<ResourceType, Store<KubeObject>>()
  const cache = (type: ResourceType) => {
    const store = stores.get(type) ?? new Store<KubeObject>(type, [''], silentLogger)
    stores.set(type, store)
    return store
  }
  const put = (type: ResourceType, namespace: string, name: string, more: object) => {
    const { metadata, ...rest } = { metadata: {}, ...more }
    cache(type).set({ apiVersion: 'v1', kind: type.kind, metadata: { namespace, name, ...metadata }, ...rest })
  }
  put(agentKind, 'system', 'node', { spec: { mode: 'Node' } })
  const putPipeline = (status: object) =>
    put(pipelineKind, 'shop', 'p', {
      metadata: { uid: 'u', generation: 1 },
      spec: {
        sources: [],
        sinks: [
          { name: 'out', type: 'http' },
          { name: 'store', ref: { kind: 'Sink', name: 'store' } },
        ],
      },
      status,
    })
  const refused = { type: 'Reachable', status: 'False', reason: 'Unauthorized', message: 'no', observedGeneration: 1 }
  const putSink = (reachable: object) =>
    put(sinkKind, 'shop', 'store', { metadata: { uid: 's', generation: 1 }, status: { conditions: [reachable] } })
  putSink(refused)
  putPipeline(earlier)
  for (const name of ['a', 'b'])
    put(podType, 'system', name, { metadata: { uid: name, labels: { [labels.agent]: 'node' } } })
  const artifacts = new Artifacts()
  const subscription = {
    cursor: 'u/app',
    podSelector: 'app=web',
    excludeContainers: [],
    out: 'shop/p/app',
    options: {},
  }
  artifacts.set({
    ...{ id: 'shop/p', kind: 'Pipeline', namespace: 'shop', name: 'p', uid: 'u', generation: 1, createdAt: '' },
    ...{ labels: {}, hash: 'sha256:1', mode: 'Node', hub: { subscriptions: [subscription] }, sources },
    sinks: { 'shop/p/out': { type: 'http', uri: 'https://store.example/in' } },
  } as unknown as Artifact)
  artifacts.markComplete()
  const fleet = new FleetState()
  const fragments = new Map([['shop/p', { id: 'shop/p', hash: 'sha256:1' } as Fragment]])
  fleet.set('system/node', {
    ...{ stable: { rev: 'r1', shards: [] }, candidate: undefined, record: { rolledBack: {}, history: [] } },
    ...{ revisions: new Map([['r1', { rev: 'r1', shards: [], fragments }]]), selected: fragments },
    ...{ evicted: new Map(), startSpreadMs: 0, why: '' },
  })
  let flowing: Finding | undefined
  let reachable: Finding | undefined
  let summary: unknown
  let programmed: Finding | undefined
  /** `Reachable` of a shared Sink, once it is reported. */
  let shared: Finding | undefined
  const ending = new AbortController()
  stack.defer(() => ending.abort())
  const context = testContext({
    ...{ artifacts, signal: ending.signal, logger: silentLogger, events: { record: () => {} } },
    ...{ caches: { cache, synced: async () => {} }, reviews: {} },
    status: {
      reported: () => undefined,
      report: (_: unknown, object: KubeObject, __: unknown, { findings, fields = {} }: StatusContribution) => {
        if (object.metadata.name === 'node') programmed = findings.find(({ type }) => type === 'Programmed')
        if (object.metadata.name === 'store') {
          shared = findings.find(({ type }) => type === 'Reachable')
          putSink({ ...shared, observedGeneration: 1 })
        }
        if (object.metadata.name !== 'p') return
        flowing = findings.find(({ type }) => type === 'Flowing')
        reachable = findings.find(({ type }) => type === 'Reachable')
        summary = fields['summary']
        putPipeline({
          ...fields,
          conditions: findings.map((one) => ({ ...one, observedGeneration: 1 })),
          observedGeneration: 1,
        })
      },
    },
  })
  await stack.use(new RolloutStatus(context, fleet)).start()
  return {
    /** The Agent's status after one of its agents has reported this version. */
    async agentWith(version: string) {
      const body = { version, revision: 'r1', state: 'Loaded', pipelines: {}, failures: [], failed: [] }
      const sender = { pod: 'a', podUid: 'a', node: 'node-a' }
      fleet.hear('system/node', sender, body as unknown as HeartbeatBody, monotonicNow())
      await vi.advanceTimersByTimeAsync(15_000)
      return programmed
    },
    /** Lets time pass while agents report that they have found logs for these. */
    async pass(seconds: number, reading: Readonly<Record<string, readonly string[] | undefined>>) {
      for (let second = 0; second < seconds; second += 15) {
        for (const [pod, ids] of Object.entries(reading)) {
          const body = { revision: 'r1', state: 'Loaded', pipelines: {}, failures: [], failed: [], reading: ids }
          const sender = { pod, podUid: pod, node: `node-${pod}` }
          fleet.hear('system/node', sender, body as unknown as HeartbeatBody, monotonicNow())
        }
        await vi.advanceTimersByTimeAsync(15_000)
      }
      return flowing?.message
    },
    /** An agent reports its activity since its last report, and then time passes. */
    async hear(pod: string, sums: Partial<PipelineReport>, seconds: number) {
      const none = { eventsIn: 0, eventsOut: 0, filtered: 0, dropped: 0, errors: 0, bufferedEvents: 0, components: {} }
      const body = {
        revision: 'r1',
        state: 'Loaded',
        pipelines: { 'shop/p': { ...none, ...sums } },
        reading: ['shop/p'],
      }
      const sender = { pod, podUid: pod, node: `node-${pod}` }
      fleet.hear('system/node', sender, body as unknown as HeartbeatBody, monotonicNow())
      await vi.advanceTimersByTimeAsync(seconds * 1000)
      return `${flowing?.status} ${flowing?.reason}`
    },
    summary: () => summary,
    flowing: () => flowing,
    reachable: () => reachable,
    shared: () => shared,
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

const notFound = /^No events were read, and no agent has found a log of a selected pod\. .*kubectl penstock why POD/

test('a Pipeline whose selectors match no pod reports it after some minutes, until a log is found', async () => {
  await using operator = await running()
  expect(await operator.pass(240, { a: [], b: [] })).toBe('No events were read.')
  expect(await operator.pass(120, { a: [], b: [] })).toMatch(notFound)
  // Replacing an agent does not change the status of the Pipeline.
  expect(await operator.pass(180, { a: [] })).toMatch(notFound)
  expect(await operator.pass(30, { a: [], b: ['shop/p'] })).toBe('No events were read.')
  expect(await operator.pass(240, { a: [], b: [] })).toBe('No events were read.')
  expect(await operator.pass(120, { a: [], b: [] })).toMatch(notFound)
})

test.each([
  ['a pod on one node has a log', { a: [], b: ['shop/p'] }, {}],
  ['an agent of an older version does not say', { a: [], b: undefined }, {}],
  ['an agent has not reported', { a: [] }, {}],
  ['it also reads another source', { a: [], b: [] }, { 'shop/p/queue': { type: 'amqp' } }],
])('reports nothing about pods if %s', async (_, reading, sources) => {
  await using operator = await running(sources)
  expect(await operator.pass(900, reading)).toBe('No events were read.')
})

test('waits for a second report without a delivery, because lines that were just read may still be in transit', async () => {
  await using operator = await running()
  const isRead = { eventsIn: 1000 }
  await operator.hear('b', {}, 1)
  expect(await operator.hear('a', isRead, 28)).toBe('Unknown NoData')
  expect(await operator.hear('a', isRead, 20)).toBe('False NoEventsDelivered')
  expect(await operator.hear('a', { ...isRead, eventsOut: 500 }, 20)).toBe('True Flowing')
})

test('batches every minute cause no alarm in between, but errors of a sink do', async () => {
  await using operator = await running()
  await operator.hear('b', {}, 1)
  await operator.hear('a', { eventsIn: 10, eventsOut: 10 }, 30)
  for (let report = 0; report < 4; report++) expect(await operator.hear('a', { eventsIn: 10 }, 30)).toBe('True Flowing')
  const components = { out: { kind: 'sink', errors: 1, dropped: 0, sent: 0 } } as const
  expect(await operator.hear('a', { eventsIn: 10, components }, 20)).toBe('False NoEventsDelivered')
  // The next attempt is a while away.
  expect(await operator.hear('a', { eventsIn: 10 }, 30)).toBe('False NoEventsDelivered')
  expect(await operator.hear('a', { eventsIn: 10, eventsOut: 60 }, 30)).toBe('True Flowing')
  expect(await operator.hear('a', { eventsIn: 10 }, 30)).toBe('True Flowing')
})

test('counts filtered events neither as lost nor as late', async () => {
  await using operator = await running()
  await operator.hear('b', {}, 1)
  for (let report = 0; report < 4; report++) {
    expect(await operator.hear('a', { eventsIn: 100, filtered: 100 }, 30)).toBe('True Flowing')
  }
  expect(await operator.hear('a', { eventsIn: 100, filtered: 90, eventsOut: 10 }, 30)).toBe('True Flowing')
  expect(await operator.hear('a', { eventsIn: 100, filtered: 90, dropped: 10 }, 20)).toBe('False AllEventsDropped')
  expect(await operator.hear('a', { eventsIn: 100, filtered: 90, dropped: 1, eventsOut: 9 }, 20)).toBe(
    'False SomeEventsDropped',
  )
})

test('figures are current from the first minute on', async () => {
  await using operator = await running()
  await operator.hear('b', {}, 0)
  for (let report = 0; report < 4; report++) await operator.hear('a', { eventsIn: 15_000, eventsOut: 14_970 }, 30)
  expect(operator.summary()).toMatchObject({ inPerSecond: '500', outPerSecond: '500', dropped: '0' })
})

test('figures of an earlier process stay until equally long ones of this process exist', async () => {
  const flow = { window: '5m', eventsIn: 9000, eventsOut: 9000, dropped: 0, errors: 0, lagSeconds: 0, buffered: 0 }
  const summary = { agents: '2/2', inPerSecond: '30', outPerSecond: '30', dropped: '0' }
  await using operator = await running({}, { flow, summary, observedGeneration: 1 })
  await operator.hear('b', {}, 0)
  for (let report = 0; report < 4; report++) await operator.hear('a', { eventsIn: 15_000, eventsOut: 15_000 }, 30)
  expect(operator.summary()).toMatchObject({ inPerSecond: '30', outPerSecond: '30' })
  for (let report = 0; report < 12; report++) await operator.hear('a', { eventsIn: 15_000, eventsOut: 15_000 }, 30)
  expect(operator.summary()).toMatchObject({ inPerSecond: '500', outPerSecond: '500' })
})

test('a condition soon reports a refused sink of the Pipeline itself, with place and cause', async () => {
  await using operator = await running()
  await operator.hear('b', {}, 1)
  expect(operator.reachable()).toBeUndefined()
  const lastError = { reason: 'Unauthorized', message: 'Request failed. Status 401.', at: '2026-01-01T00:00:00Z' }
  const out = { kind: 'sink', errors: 1, dropped: 10, sent: 0, lastError } as const
  await operator.hear('a', { eventsIn: 10, dropped: 10, components: { out } }, 12)
  const fails = '1 of 1 node fails at store.example:443: Request failed. Status 401.'
  expect(operator.reachable()).toMatchObject({
    ...{ status: 'False', reason: 'Unauthorized', message: `sinks[out]: ${fails}` },
  })
  expect(operator.flowing()).toMatchObject({
    ...{ reason: 'AllEventsDropped' },
    message: 'All events that were read were discarded. sinks[out] on node-a: Request failed. Status 401.',
  })
  // The next attempt is some time away, and nothing is sent until then.
  await operator.hear('a', {}, 30)
  await operator.hear('b', {}, 30)
  expect(operator.reachable()?.status).toBe('False')
  const taken = { kind: 'sink', errors: 0, dropped: 0, sent: 10 } as const
  await operator.hear('a', { eventsIn: 10, eventsOut: 10, components: { out: taken } }, 12)
  expect(operator.reachable()).toMatchObject({ status: 'True', reason: 'Reachable' })
})

test('a pod that reaches a destination does not count as a recovery of others that have not reported to a new process yet', async () => {
  const refused = { type: 'Reachable', status: 'False', reason: 'Unauthorized', message: 'no', observedGeneration: 1 }
  const programmed = { type: 'Programmed', status: 'True', reason: 'Programmed', message: '', observedGeneration: 1 }
  await using operator = await running({}, { conditions: [refused, programmed], observedGeneration: 1 })
  const taken = { kind: 'sink', errors: 0, dropped: 0, sent: 10 } as const
  const sent = { eventsIn: 10, eventsOut: 10, components: { out: taken, store: taken } }
  const lastError = { reason: 'Unauthorized', message: 'Request failed. Status 401.', at: '2026-01-01T00:00:00Z' }
  const failing = { kind: 'sink', errors: 1, dropped: 0, sent: 0, lastError } as const
  await operator.hear('a', sent, 15)
  await operator.hear('b', { eventsIn: 10 }, 15)
  await operator.hear('a', sent, 30)
  expect(operator.shared()).toBeUndefined()
  expect(operator.reachable()).toMatchObject({ status: 'False', message: 'no' })
  // The next attempt of the other one.
  await operator.hear('b', { eventsIn: 10, components: { out: failing, store: failing } }, 15)
  await operator.hear('a', sent, 15)
  await operator.hear('a', sent, 30)
  await operator.hear('a', sent, 30)
  const still = { status: 'False', message: expect.stringContaining('1 of 2 nodes fails') }
  expect([operator.shared(), operator.reachable()]).toMatchObject([still, still])
  await operator.hear('b', sent, 15)
  const recovered = { status: 'True', reason: 'Reachable' }
  expect([operator.shared(), operator.reachable()]).toMatchObject([recovered, recovered])
})

test('an Agent reports an agent more than one minor version apart from the operator', async () => {
  await using operator = await running()
  const [major, minor] = version.split('.').map(Number)
  expect((await operator.agentWith(`${major}.${(minor ?? 0) + 1}.0`))?.message).not.toContain('not supported')
  const far = `${major}.${(minor ?? 0) + 2}.0`
  expect((await operator.agentWith(far))?.message).toContain(
    `1 agent runs version ${far}, which differs by more than one minor version from the operator's ${version}. This is not supported`,
  )
})
