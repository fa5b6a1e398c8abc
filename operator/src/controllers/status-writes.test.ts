// How often statuses are written while agents appear and disappear, counted at the client. Caches are stores that the test fills;
// the test controls time.

import type { HeartbeatBody } from '@penstock/agent/bundle'
import { countedOf } from '@penstock/agent/program'
import { silentLogger } from '@penstock/agent/telemetry'
import { Registry } from 'prom-client'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type Condition, conditionOf, type Finding } from '../api/conditions.ts'
import { agentKind, pipelineKind, type ResourceKind } from '../api/kinds.ts'
import type { KubeObject, ResourceType } from '../api/object.ts'
import type { Pipeline } from '../api/pipeline.ts'
import type { Artifact } from '../compile/artifact.ts'
import { type Delivered, FleetState } from '../fleet/state.ts'
import { settledMs } from '../fleet/turnout.ts'
import type { Cache } from '../kube/cache.ts'
import type { KubeClient } from '../kube/client.ts'
import { monotonicNow } from '../kube/clock.ts'
import { namespaceType, podType } from '../kube/resource-types.ts'
import { Store } from '../kube/store.ts'
import type { Fragment } from '../render/fragment.ts'
import { testContext } from '../testing/context.ts'
import { labels } from '../workloads/names.ts'
import { Artifacts } from './artifacts.ts'
import { ControllerMetrics } from './controller.ts'
import { RolloutStatus } from './rollout.ts'
import { Statuses, type StatusObject } from './status.ts'

beforeEach(() => {
  vi.useFakeTimers({
    toFake: ['performance', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate'],
  })
})
afterEach(() => {
  vi.useRealTimers()
})

const system = 'system/node'

function summaryOf({ metadata, status }: Pipeline) {
  const ready = conditionOf(status?.conditions, 'Ready')
  const programmed = conditionOf(status?.conditions, 'Programmed')
  return {
    generation: metadata.generation ?? 0,
    observed: status?.observedGeneration ?? 0,
    ready: `${ready?.status} ${ready?.reason}`,
    programmed: `${programmed?.status} ${programmed?.reason} ${programmed?.message}`,
  }
}

/** Pipelines that all agents of a cluster run, and an API server that counts their status writes. */
async function cluster(size: { readonly agents: number; readonly pipelines: number; readonly writeMs?: number }) {
  const stack = new AsyncDisposableStack()
  const stores = new Map<ResourceType, Store<KubeObject>>()
  const cache = (type: ResourceType) => {
    const store = stores.get(type) ?? new Store<KubeObject>(type, [''], silentLogger)
    stores.set(type, store)
    return store
  }
  let version = 0
  let writes = 0
  const happened: string[] = []
  /** Each written status of a Pipeline. */
  const shown: ({ readonly name: string } & ReturnType<typeof summaryOf>)[] = []
  const apply = async (kind: ResourceKind, written: StatusObject) => {
    if (size.writeMs !== undefined) await new Promise((done) => setTimeout(done, size.writeMs))
    writes++
    const { namespace, name } = written.metadata
    const known = cache(kind).get(namespace, name) as StatusObject
    const stored = {
      ...known,
      metadata: { ...known.metadata, resourceVersion: String(++version) },
      status: written.status,
    }
    cache(kind).set(stored)
    if (kind === pipelineKind) shown.push({ name, ...summaryOf(stored as unknown as Pipeline) })
    return stored
  }
  const put = (type: ResourceType, namespace: string, name: string, more: object) => {
    const { metadata, ...rest } = { metadata: {}, ...more }
    const resourceVersion = String(++version)
    cache(type).set({
      ...{ apiVersion: 'v1', kind: type.kind },
      ...{ metadata: { namespace, name, uid: name, generation: 1, resourceVersion, ...metadata }, ...rest },
    })
  }
  const putPod = (name: string, more: object = {}) =>
    put(podType, 'system', name, { metadata: { labels: { [labels.agent]: 'node' } }, ...more })
  put(agentKind, 'system', 'node', { spec: { mode: 'Node', pipelines: { namespaceSelector: {} } } })
  cache(namespaceType).set({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop', uid: 'shop' } })
  const fragments = new Map<string, Fragment>()
  for (let index = 0; index < size.pipelines; index++) {
    put(pipelineKind, 'shop', `p-${index}`, { spec: { sources: [], sinks: [] } })
    fragments.set(`shop/p-${index}`, { id: `shop/p-${index}`, hash: `sha256:${index}` } as Fragment)
  }
  /** An operator that has begun to lead, and has compiled nothing yet. */
  const begin = async () => {
    const ending = new AbortController()
    const stack = new AsyncDisposableStack()
    const statuses = stack.use(
      new Statuses({
        kube: { apply } as unknown as KubeClient,
        cacheOf: (kind) =>
          kind === pipelineKind || kind === agentKind ? (cache(kind) as unknown as Cache<StatusObject>) : undefined,
        events: { record: ({ metadata }, type, reason) => void happened.push(`${metadata.name}: ${type} ${reason}`) },
        logger: silentLogger,
        metrics: new ControllerMetrics(new Registry()),
        signal: ending.signal,
        periodMs: 30_000,
      }),
    )
    const artifacts = new Artifacts()
    const fleet = new FleetState()
    const context = testContext({
      ...{ artifacts, signal: ending.signal, logger: silentLogger, events: { record: () => {} } },
      settings: { namespace: 'system', agentNamespaces: ['system'] },
      ...{ caches: { cache, synced: async () => {} }, reviews: {}, status: statuses.start() },
    })
    stack.use(await new RolloutStatus(context, fleet).start())
    stack.defer(() => ending.abort())
    return { artifacts, fleet, statuses, stop: () => stack.disposeAsync() }
  }
  /** All Pipelines have been compiled. */
  const compile = ({ artifacts, statuses }: Awaited<ReturnType<typeof begin>>) => {
    for (const { id, hash } of fragments.values()) {
      const name = id.replace('shop/', '')
      const findings = [
        { type: 'Accepted', status: 'True', reason: 'Valid', message: '' },
        { type: 'ResolvedRefs', status: 'True', reason: 'Resolved', message: '' },
      ] as const
      const object = cache(pipelineKind).get('shop', name) as KubeObject
      statuses.report(pipelineKind, object, 'compile', { generation: 1, findings })
      artifacts.set({
        ...{ id, kind: 'Pipeline', namespace: 'shop', name, uid: name, generation: 1, createdAt: '', labels: {} },
        ...{ hash, mode: 'Node', hub: { subscriptions: [] }, sources: {}, secretRefs: [] },
      } as unknown as Artifact)
    }
    artifacts.markComplete()
  }
  /** The content of the Agent is known. */
  const deliver = ({ fleet }: Awaited<ReturnType<typeof begin>>) => {
    fleet.set(system, {
      ...{ stable: { rev: 'r1', shards: [] }, candidate: undefined, record: { rolledBack: {}, history: [] } },
      ...{ revisions: new Map([['r1', { rev: 'r1', shards: [], fragments }]]), selected: fragments },
      ...{ evicted: new Map(), startSpreadMs: 0, why: '' },
    })
    fleet.changed(system)
  }
  let leader = await begin()
  stack.defer(() => leader.stop())
  compile(leader)
  deliver(leader)
  const latest = new Map<string, string | undefined>()
  const hear = (pod: string, revision: string | undefined) => {
    latest.set(pod, revision)
    const body = { startedAt: pod, revision, state: 'Loaded', pipelines: {}, failures: [], failed: [], reading: [] }
    const sender = { pod, podUid: pod, node: `node-of-${pod}` }
    leader.fleet.hear(system, sender, body as unknown as HeartbeatBody, monotonicNow())
  }
  return {
    hear,
    putPod,
    happened,
    shown,
    /** The sum of a Pipeline's reports throws. */
    breakPipeline(id: string) {
      const { artifacts } = leader
      artifacts.set({ ...artifacts.get(id), generation: 2, hub: undefined } as unknown as Artifact)
    },
    /** Another operator leads: it compiles all Pipelines while agents report, and after a while it knows the content of the Agent. */
    async restart({
      compileSeconds,
      renderSeconds,
    }: {
      readonly compileSeconds: number
      readonly renderSeconds: number
    }) {
      await leader.stop()
      leader = await begin()
      const before = writes
      await this.pass(compileSeconds)
      compile(leader)
      await this.pass(renderSeconds)
      deliver(leader)
      await this.pass(2 * compileSeconds)
      return writes - before
    },
    /** A pod is deleted, and so are its reports. */
    remove(pod: string) {
      cache(podType).remove(cache(podType).get('system', pod) as KubeObject)
      latest.delete(pod)
      leader.fleet.keep(system, new Set(latest.keys()))
    },
    /** An agent falls silent. */
    silence: (pod: string) => void latest.delete(pod),
    /** Lets time pass while agents report; returns the number of writes. */
    async pass(seconds: number): Promise<number> {
      const before = writes
      for (let passed = 0; passed < seconds; passed += 15) {
        for (const [pod, revision] of latest) hear(pod, revision)
        await vi.advanceTimersByTimeAsync(Math.min(15, seconds - passed) * 1000)
      }
      return writes - before
    },
    says(name: string, type: 'Programmed' | 'Ready') {
      const { status } = cache(pipelineKind).get('shop', name) as Pipeline
      const condition = conditionOf(status?.conditions as readonly Condition[], type)
      return `${condition?.status} ${condition?.reason} ${condition?.message}`
    },
    /** The author applies another spec, or a new object with the name; the compiler has not processed it yet. */
    edit(name: string, { uid = name, ...spec }: { readonly uid?: string; readonly suspend?: boolean } = {}) {
      const { metadata, status } = cache(pipelineKind).get('shop', name) as StatusObject
      const isNew = uid !== metadata.uid
      const generation = isNew ? 1 : (metadata.generation ?? 0) + 1
      put(pipelineKind, 'shop', name, {
        metadata: { uid, generation },
        spec: { sources: [], sinks: [], ...spec },
        ...(isNew ? {} : { status }),
      })
    },
    /**
     * The compiler has processed it: accepted with new content or the same, or the running version is stopped, or kept.
     */
    judge(name: string, verdict: 'changed' | 'same' | 'stopped' | 'kept') {
      const object = cache(pipelineKind).get('shop', name) as KubeObject
      const { generation = 0, uid = '' } = object.metadata
      const isUsable = verdict === 'changed' || verdict === 'same'
      const accepted: Finding = isUsable
        ? { type: 'Accepted', status: 'True', reason: 'Valid', message: '' }
        : { type: 'Accepted', status: 'False', reason: 'ForbiddenOption', message: 'no' }
      const resolved: Finding = { type: 'ResolvedRefs', status: 'True', reason: 'Resolved', message: '' }
      const id = `shop/${name}`
      const { artifacts, statuses } = leader
      const before = artifacts.get(id) as Artifact
      if (verdict === 'stopped') artifacts.remove(id)
      else if (isUsable)
        artifacts.set({ ...before, uid, generation, hash: verdict === 'same' ? before.hash : `${before.hash}+` })
      statuses.report(pipelineKind, object, 'compile', { generation, findings: [accepted, resolved] })
    },
    /** Agents receive a revision without a Pipeline. */
    withdraw(name: string, revision: string) {
      const left = new Map([...fragments].filter(([id]) => id !== `shop/${name}`))
      const { fleet } = leader
      const delivered = fleet.get(system) as Delivered
      delivered.revisions.set(revision, { rev: revision, shards: [], fragments: left })
      fleet.set(system, { ...delivered, stable: { rev: revision, shards: [] }, selected: left })
      fleet.changed(system)
    },
    status: (name: string) => (cache(pipelineKind).get('shop', name) as Pipeline).status,
    agents: (name: string) => (cache(pipelineKind).get('shop', name) as Pipeline).status?.agents?.[0],
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

/** Before and after the agents of a cluster have reported what they run. */
async function settled(size: { readonly agents: number; readonly pipelines: number }) {
  const operator = await cluster(size)
  for (let index = 0; index < size.agents; index++) {
    operator.putPod(`agent-${index}`)
    operator.hear(`agent-${index}`, 'r1')
  }
  await operator.pass(settledMs / 1000 + 60)
  expect(operator.says('p-0', 'Programmed')).toBe(
    `True Programmed ${countedOf(size.agents, size.agents, 'agent', 'runs', 'run')} it.`,
  )
  return operator
}

/** Each state of a replaced agent that a controller may observe; then it runs. */
async function restart(operator: Awaited<ReturnType<typeof cluster>>, pod: string, after: () => void = () => {}) {
  let writes = 0
  const moment = async (seconds: number) => {
    writes += await operator.pass(seconds)
    after()
  }
  operator.putPod(pod, { deletionTimestamp: '2026-01-01T00:00:00Z' })
  await moment(4)
  operator.remove(pod)
  await moment(3)
  operator.putPod(`${pod}-new`)
  await moment(15)
  operator.hear(`${pod}-new`, undefined)
  await moment(5)
  // It starts with the content on its disk.
  operator.hear(`${pod}-new`, 'r0')
  await moment(5)
  operator.hear(`${pod}-new`, 'r1')
  await moment(settledMs / 1000 + 60)
  return writes
}

test('a restart of one of 1,000 agents with 5,000 Pipelines causes at most 100 writes', async () => {
  await using operator = await settled({ agents: 1000, pipelines: 5000 })
  expect(await restart(operator, 'agent-7')).toBeLessThanOrEqual(100)
}, 600_000)

test('a Pipeline counts all agents as soon as all run it, although the first ones had it earlier', async () => {
  await using operator = await cluster({ agents: 2, pipelines: 1 })
  operator.putPod('agent-0')
  operator.putPod('agent-1')
  operator.hear('agent-0', 'r1')
  await operator.pass(15)
  expect(operator.says('p-0', 'Programmed')).toBe('True Programmed 1 of 2 agents runs it; 1 starts.')
  operator.hear('agent-1', 'r1')
  await operator.pass(15)
  expect(operator.says('p-0', 'Programmed')).toBe('True Programmed 2 of 2 agents run it.')
  expect(operator.agents('p-0')).toMatchObject({ desired: 2, current: 2 })
})

test.each([5, 300])(
  'an operator that needs %i s to compile all Pipelines after its start writes nothing',
  async (compileSeconds) => {
    await using operator = await settled({ agents: 3, pipelines: 20 })
    expect(await operator.restart({ compileSeconds, renderSeconds: 10 })).toBe(0)
    expect(operator.says('p-0', 'Programmed')).toBe('True Programmed 3 of 3 agents run it.')
  },
)

test('authors do not wait for each other if the API server needs a second for each write', async () => {
  await using operator = await cluster({ agents: 1, pipelines: 90, writeMs: 1000 })
  const soon = await operator.pass(4)
  await operator.pass(60) // what is under way ends
  expect(soon).toBeGreaterThanOrEqual(90)
})

test.each([1, 2])('a Pipeline stays ready while one agent of %i is replaced', async (agents) => {
  await using operator = await settled({ agents, pipelines: 1 })
  const calm = () => {
    expect(operator.says('p-0', 'Programmed')).toBe(
      `True Programmed ${countedOf(agents, agents, 'agent', 'runs', 'run')} it.`,
    )
    expect(operator.says('p-0', 'Ready')).toBe('True Ready ')
  }
  await restart(operator, 'agent-0', calm)
})

test('an agent that joins or is lost is counted when the others are stable, and changes nothing before', async () => {
  await using operator = await settled({ agents: 3, pipelines: 1 })
  operator.putPod('joined')
  expect(await operator.pass(20)).toBeLessThanOrEqual(1) // of the Agent
  operator.hear('joined', 'r1')
  await operator.pass(60)
  expect(operator.agents('p-0')).toMatchObject({ desired: 3, current: 3 })
  await operator.pass(settledMs / 1000)
  expect(operator.agents('p-0')).toMatchObject({ desired: 4, current: 4, stale: 0 })

  operator.silence('joined')
  await operator.pass(120)
  expect(operator.agents('p-0')).toMatchObject({ desired: 4, current: 4, stale: 0 })
  await operator.pass(settledMs / 1000 + 60)
  expect(operator.agents('p-0')).toMatchObject({ desired: 4, current: 3, stale: 1 })
  expect(operator.says('p-0', 'Programmed')).toBe('True Programmed 3 of 4 agents run it; 1 is silent.')
})

test('if agents always come and go, the numbers are still updated', async () => {
  await using operator = await settled({ agents: 1, pipelines: 1 })
  for (let joined = 0; joined < 31; joined++) {
    operator.putPod(`joined-${joined}`)
    operator.hear(`joined-${joined}`, 'r1')
    await operator.pass(60)
  }
  expect(operator.agents('p-0')?.desired).toBeGreaterThan(20)
})

test('an agent that runs another version, or cannot load it, is not counted as current', async () => {
  await using operator = await settled({ agents: 3, pipelines: 1 })
  operator.hear('agent-1', 'r0')
  await operator.pass(5)
  expect(operator.says('p-0', 'Programmed')).toBe('False RollingOut 2 of 3 agents run it.')
  operator.hear('agent-1', 'r1')
  await operator.pass(5)
  expect(operator.says('p-0', 'Programmed')).toBe('True Programmed 3 of 3 agents run it.')

  operator.putPod('joined')
  operator.hear('joined', undefined)
  await operator.pass(110)
  expect(operator.says('p-0', 'Programmed')).toBe('True Programmed 3 of 3 agents run it.')
  await operator.pass(30)
  expect(operator.says('p-0', 'Programmed')).toBe('False RollingOut 3 of 4 agents run it.')
})

test('reports that cannot be summed affect only their Pipeline', async () => {
  await using operator = await cluster({ agents: 1, pipelines: 2 })
  operator.breakPipeline('shop/p-0')
  operator.putPod('agent-0')
  operator.hear('agent-0', 'r1')
  await operator.pass(60)
  expect(operator.says('p-0', 'Programmed')).toMatch(/^Unknown InternalError .*TypeError/)
  expect(operator.says('p-1', 'Programmed')).toMatch(/^True Programmed/)
  expect(operator.happened).toContain('p-0: Warning InternalError')
})

test('reports an event once, when its status is written', async () => {
  await using operator = await settled({ agents: 2, pipelines: 1 })
  await restart(operator, 'agent-0')
  expect(operator.happened).toEqual(['p-0: Normal Accepted', 'p-0: Normal Programmed'])
})

test('no written status shows a changed Pipeline as ready before agents run the change', async () => {
  await using operator = await settled({ agents: 2, pipelines: 1 })
  operator.shown.length = 0
  operator.edit('p-0')
  await operator.pass(5)
  // The compiler is slow: there is no result for the new generation.
  expect(operator.status('p-0')?.observedGeneration).toBe(1)
  expect(operator.says('p-0', 'Programmed')).toBe('True Programmed 2 of 2 agents run it.')
  operator.judge('p-0', 'changed')
  await operator.pass(15)
  expect(operator.says('p-0', 'Programmed')).toBe('False RollingOut 0 of 2 agents run it; 2 run an earlier version.')
  const ofNew = operator.shown.filter(({ observed }) => observed === 2)
  expect(ofNew.length).toBeGreaterThan(0)
  for (const { ready } of ofNew) expect(ready).not.toBe('True Ready')
})

test('a change without effect on the agents is ready again at once', async () => {
  await using operator = await settled({ agents: 2, pipelines: 1 })
  operator.edit('p-0')
  operator.judge('p-0', 'same')
  await operator.pass(15)
  expect(operator.says('p-0', 'Ready')).toBe('True Ready ')
  expect(operator.status('p-0')?.observedGeneration).toBe(2)
})

test('a refused change reports that the previous version runs, but not before the check', async () => {
  await using operator = await settled({ agents: 2, pipelines: 1 })
  operator.shown.length = 0
  operator.edit('p-0')
  await operator.pass(15)
  for (const { programmed } of operator.shown) expect(programmed).not.toContain('not accepted')
  operator.judge('p-0', 'kept')
  await operator.pass(15)
  expect(operator.says('p-0', 'Programmed')).toBe(
    'True PreviousGeneration 2 of 2 agents run it. It is generation 1; the newest is not accepted.',
  )
})

test.each([
  { what: 'is suspended', spec: { suspend: true }, reason: 'Suspended spec.suspend is true' },
  { what: 'was stopped by a policy', spec: {}, reason: 'Stopped Its last good version was stopped' },
])('a Pipeline that $what runs on no agent after they have loaded the change', async ({ spec, reason }) => {
  await using operator = await settled({ agents: 2, pipelines: 2 })
  operator.edit('p-0', spec)
  operator.judge('p-0', 'stopped')
  await operator.pass(15)
  expect(operator.says('p-0', 'Programmed')).toBe(`False ${reason}: 2 agents still run it.`)
  operator.withdraw('p-0', 'r2')
  operator.hear('agent-0', 'r2')
  operator.hear('agent-1', 'r2')
  await operator.pass(15)
  expect(operator.says('p-0', 'Programmed')).toBe(`False ${reason}: no agent runs it.`)
  expect(operator.status('p-0')).toMatchObject({ summary: { agents: '0/0' } })
  expect(operator.status('p-0')?.agents).toBeUndefined()
  expect(operator.status('p-0')?.programmedGeneration).toBeUndefined()
  expect(operator.says('p-1', 'Programmed')).toBe('True Programmed 2 of 2 agents run it.')
  expect(await operator.pass(120)).toBe(0)
})

test('a Pipeline that replaces another one with its name does not inherit the status', async () => {
  await using operator = await settled({ agents: 2, pipelines: 1 })
  operator.edit('p-0', { uid: 'another' })
  await operator.pass(15)
  expect(operator.status('p-0')).toBeUndefined()
})
