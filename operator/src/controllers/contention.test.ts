// Two operators with the same objects, and other clients that keep changing what the operator writes.

import { createLogger } from '@penstock/agent/telemetry'
import { Registry } from 'prom-client'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Agent } from '../api/agent.ts'
import { conditionOf } from '../api/conditions.ts'
import { pipelineKind } from '../api/kinds.ts'
import type { KubeObject, ResourceType } from '../api/object.ts'
import type { Cache } from '../kube/cache.ts'
import type { KubeClient } from '../kube/client.ts'
import { Store } from '../kube/store.ts'
import { AgentSecrets } from './agent-secrets.ts'
import { ControllerMetrics } from './controller.ts'
import { Statuses, type StatusObject } from './status.ts'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const logger = createLogger({ level: 'silent', format: 'json' })

/** A Pipeline in an API server, with the caches of any number of operators. */
function cluster() {
  const metadata = { namespace: 'shop', name: 'web', uid: 'web', generation: 1, resourceVersion: '1' }
  let live = { apiVersion: 'penstock.dev/v1alpha1', kind: 'Pipeline', metadata, spec: {} } as StatusObject
  const stores: Store<KubeObject>[] = []
  let writes = 0
  const put = (status: StatusObject['status']) => {
    writes++
    if (writes > 10_000) throw new Error('The operators write without end.')
    const version = String(Number(live.metadata.resourceVersion) + 1)
    live = { ...live, metadata: { ...live.metadata, resourceVersion: version }, ...(status && { status }) }
    // A watch reports each version, in order.
    const next = live
    for (const store of stores) setTimeout(() => store.set(next), 5)
    return next
  }
  const ending = new AbortController()
  const operator = () => {
    const store = new Store<KubeObject>(pipelineKind, [''], logger)
    store.set(live)
    stores.push(store)
    const events: string[] = []
    const warnings: string[] = []
    const metrics = new Registry()
    const statuses = new Statuses({
      kube: { apply: async (_: ResourceType, object: StatusObject) => put(object.status) } as unknown as KubeClient,
      events: { record: (_, __, reason, message) => void events.push(`${reason}: ${message}`) },
      logger: { ...logger, warn: (_: object, text: string) => void warnings.push(text) } as never,
      ...{ signal: ending.signal, periodMs: 30_000, metrics: new ControllerMetrics(metrics) },
      cacheOf: (kind) => (kind === pipelineKind ? (store as unknown as Cache<StatusObject>) : undefined),
    }).start()
    const say = (message: string) => {
      const findings = [{ type: 'Accepted', status: 'True', reason: 'Valid', message }] as const
      statuses.report(pipelineKind, live, 'compile', { generation: 1, findings })
    }
    return { events, warnings, metrics, say }
  }
  return {
    ...{ operator, put },
    live: () => live,
    writes: () => writes,
    [Symbol.dispose]: () => ending.abort(),
  }
}

const messageOf = (object: StatusObject) => conditionOf(object.status?.conditions, 'Accepted')?.message

test('two operators that report different results about an object notice it, and soon write rarely', async () => {
  using api = cluster()
  const [first, second] = [api.operator(), api.operator()]
  first.say('first')
  second.say('second')
  await vi.advanceTimersByTimeAsync(3_600_000)
  expect(api.writes()).toBeLessThan(80)
  for (const { events, warnings, metrics } of [first, second]) {
    expect(events).toContainEqual(expect.stringMatching(/^Contended: .* probably another operator of Penstock/))
    expect(warnings.length).toBeGreaterThan(0)
    expect(warnings.length).toBeLessThanOrEqual(6)
    expect(await metrics.metrics()).toMatch(/^penstock_status_contended_total [1-9]/m)
  }
  // A new result is not a correction, so it is written at once.
  first.say('first, again')
  await vi.advanceTimersByTimeAsync(10)
  expect(messageOf(api.live())).toBe('first, again')
})

test('a few changes of a status by hand are corrected at once, and nobody is blamed', async () => {
  using api = cluster()
  const operator = api.operator()
  operator.say('the result')
  await vi.advanceTimersByTimeAsync(1000)
  for (let round = 0; round < 4; round++) {
    const conditions = api.live().status?.conditions?.map((each) => ({ ...each, message: 'by hand' })) ?? []
    api.put({ ...api.live().status, conditions })
    expect(messageOf(api.live())).toBe('by hand')
    await vi.advanceTimersByTimeAsync(1000)
    expect(messageOf(api.live())).toBe('the result')
  }
  expect(operator.warnings).toEqual([])
  expect(operator.events.filter((event) => event.startsWith('Contended'))).toEqual([])
})

test('two operators that deliver different content to one Agent soon write its Secrets rarely, and know each other', async () => {
  const agent = { metadata: { name: 'hub', namespace: 'shop', uid: 'a' }, spec: { mode: 'Aggregator' } } as Agent
  const live = new Map<string, KubeObject>()
  let writes = 0
  const kube = {
    get: async (_: ResourceType, __: string, name: string) => live.get(name),
    apply: async (_: ResourceType, object: KubeObject) => {
      const managedFields = [{ manager: 'penstock-operator', operation: 'Apply' }]
      const next = { ...object, metadata: { ...object.metadata, resourceVersion: `${++writes}`, managedFields } }
      live.set(object.metadata.name, next)
      return next
    },
  } as unknown as KubeClient
  const cache = { get: (_: string, name: string) => live.get(name), expect() {} } as unknown as Cache
  const operators = ['first', 'second'].map((content) => ({
    secrets: new AgentSecrets(agent, kube, cache, logger),
    shards: [new Map([['manifest.json', Buffer.from(content)]])],
  }))
  for (let second = 0; second < 3600; second++) {
    for (const { secrets, shards } of operators) {
      await secrets.read(AbortSignal.timeout(600_000))
      if (secrets.heldMs === 0) await secrets.write([], shards, '', AbortSignal.timeout(600_000))
    }
    vi.advanceTimersByTime(1000)
  }
  expect(writes).toBeGreaterThan(10)
  expect(writes).toBeLessThan(80)
  for (const { secrets } of operators)
    expect([...secrets.reverts].map(([id, { manager }]) => [id, manager])).toEqual([
      ['Secret/penstock-hub-cfg-0', undefined],
    ])
})
