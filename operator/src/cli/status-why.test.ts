// The status of a Pipeline in every state of a rollout: each combination of the delivered content, the version that ran before, and two
// agents and their pods. The real components compute its status and the text of `penstock status`; the expectation is counted by hand.

import type { HeartbeatBody } from '@penstock/agent/bundle'
import { silentLogger } from '@penstock/agent/telemetry'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import type { Condition, Finding } from '../api/conditions.ts'
import { agentKind, pipelineKind } from '../api/kinds.ts'
import type { KubeObject, ResourceType } from '../api/object.ts'
import type { Pipeline } from '../api/pipeline.ts'
import type { Artifact } from '../compile/artifact.ts'
import type { StatusContribution } from '../context.ts'
import { Artifacts } from '../controllers/artifacts.ts'
import { RolloutStatus } from '../controllers/rollout.ts'
import { type StatusObject, statusOf } from '../controllers/status.ts'
import { type Delivered, FleetState } from '../fleet/state.ts'
import { monotonicNow } from '../kube/clock.ts'
import { podType } from '../kube/resource-types.ts'
import { Store } from '../kube/store.ts'
import type { Fragment } from '../render/fragment.ts'
import { testContext } from '../testing/context.ts'
import { labels } from '../workloads/names.ts'
import { statusText } from './status.ts'
import { readingStateOf } from './why-state.ts'

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] })
})
afterEach(() => {
  vi.useRealTimers()
})

const id = 'shop/p'
const system = 'system/node'

/**
 * An agent and its pod. `new`, `old`: it runs the revision with the current version, or the previous one; `fails`: it has loaded the new
 * revision without this Pipeline; `starts`: its pod is young and has not reported; `silent`: it ran the old one and no longer reports;
 * `ends`: its pod is being deleted; `none`: there is no pod.
 */
const pods = ['new', 'old', 'fails', 'starts', 'silent', 'ends', 'none'] as const
type Pod = (typeof pods)[number]
const pairs = pods.flatMap((a, index) => pods.slice(index).map((b) => [a, b] as const))

const deliveries = {
  'runs everywhere': {},
  'is tried': {},
  'waits for the rollout of others': {},
  'was rolled back': { reason: 'RolledBack' },
  'was undone': { reason: 'Undone' },
  'does not fit': { reason: 'BundleTooLarge' },
} as const
type Deliverable = keyof typeof deliveries

function deliveredAs(what: Deliverable, hasEarlier: boolean): Delivered {
  const old = { id, hash: 'sha256:old' } as Fragment
  const current = { id, hash: 'sha256:new' } as Fragment
  const known = (rev: string, ...fragments: Fragment[]) =>
    [rev, { rev, shards: [], fragments: new Map(fragments.map((each) => [each.id, each])) }] as const
  const earlier = hasEarlier ? [old] : []
  const revision = (rev: string) => ({ rev, shards: [] })
  const other = { id: 'team/q', hash: 'sha256:q' } as Fragment
  const isSelected = what !== 'was rolled back' && what !== 'does not fit'
  const selected = isSelected ? [current] : earlier
  const tried = what === 'is tried' ? 'r-new' : what === 'waits for the rollout of others' ? 'r-other' : undefined
  return {
    stable: revision(what === 'runs everywhere' ? 'r-new' : 'r-old'),
    candidate: tried === undefined ? undefined : { ...revision(tried), percent: 50, salt: '' },
    record: {
      rolledBack: what === 'was rolled back' ? { [id]: { hash: 'sha256:new', why: 'node-a: no such host' } } : {},
      history: [],
      ...(what === 'was undone' ? { undone: { request: 'x', to: 'r-old', from: 'r-new' } } : {}),
    },
    revisions: new Map([known('r-old', ...earlier), known('r-new', current), known('r-other', ...earlier, other)]),
    selected: new Map(selected.map((each) => [each.id, each])),
    evicted: new Map(what === 'does not fit' ? [[id, "The Agent's bundle is full."]] : []),
    startSpreadMs: 0,
    why: '',
  } as Delivered
}

const heard = (revision: string, failed: readonly string[] = []) =>
  ({
    ...{ startedAt: '2026-01-01T00:00:00Z', state: 'Loaded', pipelines: {}, revision, failed },
    failures: failed.map((pipeline) => ({ pipeline, reason: 'BufferUnwritable', message: 'EACCES: mkdir' })),
  }) as unknown as HeartbeatBody

/** The status that the operator writes for the Pipeline after the status `before`. */
async function statusIn(what: Deliverable, hasEarlier: boolean, pair: readonly Pod[], before: object | undefined) {
  await using stack = new AsyncDisposableStack()
  const stores = new Map<ResourceType, Store<KubeObject>>()
  const cache = (type: ResourceType) => {
    const store = stores.get(type) ?? new Store<KubeObject>(type, [''], silentLogger)
    stores.set(type, store)
    return store
  }
  const put = (type: ResourceType, namespace: string, name: string, { metadata = {}, ...more }: PutObject) =>
    cache(type).set({ apiVersion: 'v1', kind: type.kind, metadata: { namespace, name, ...metadata }, ...more })
  const putPod = (name: string, more: object = {}) =>
    put(podType, 'system', name, { metadata: { uid: name, labels: { [labels.agent]: 'node' }, ...more } })
  put(agentKind, 'system', 'node', { spec: { mode: 'Node' } })
  const spec = { sources: [], sinks: [{ name: 'out', type: 'http' }] }
  put(pipelineKind, 'shop', 'p', { metadata: { uid: 'u', generation: 2 }, spec, status: before })
  const object = cache(pipelineKind).get('shop', 'p') as KubeObject
  const artifacts = new Artifacts()
  artifacts.set({
    ...{ id, kind: 'Pipeline', namespace: 'shop', name: 'p', uid: 'u', generation: 2, createdAt: '', labels: {} },
    ...{ hash: 'sha256:new', mode: 'Node', hub: { subscriptions: [] }, sources: {}, sinks: {} },
  } as unknown as Artifact)
  artifacts.markComplete()
  const fleet = new FleetState()
  const names = ['a', 'b']
  const hear = (name: string, body: HeartbeatBody) =>
    fleet.hear(system, { pod: name, podUid: name, node: `node-${name}` }, body, monotonicNow())

  // All of them ran the previous revision.
  fleet.set(system, { ...deliveredAs('was undone', hasEarlier), record: { rolledBack: {}, history: [] } })
  for (const [index, pod] of pair.entries()) {
    const name = names[index] as string
    if (pod === 'none' || pod === 'starts') continue
    putPod(name)
    hear(name, heard('r-old'))
  }
  const ending = new AbortController()
  stack.defer(() => ending.abort())
  let contributed: StatusContribution | undefined
  const context = testContext({
    ...{ artifacts, signal: ending.signal, logger: silentLogger, events: { record: () => {} } },
    ...{ caches: { cache, synced: async () => {} }, reviews: {} },
    status: {
      report: (_: unknown, { metadata }: KubeObject, __: unknown, contribution: StatusContribution) => {
        if (metadata.name === 'p') contributed = contribution
      },
      reported: () => undefined,
    },
  })
  stack.use(await new RolloutStatus(context, fleet).start())
  await vi.advanceTimersByTimeAsync(100_000)

  fleet.set(system, deliveredAs(what, hasEarlier))
  for (const [index, pod] of pair.entries()) {
    const name = names[index] as string
    if (pod === 'starts') putPod(name, { creationTimestamp: new Date(monotonicNow()).toISOString() })
    if (pod === 'ends') putPod(name, { deletionTimestamp: '2026-01-01T00:00:00Z' })
    if (pod === 'new' || pod === 'ends') hear(name, heard('r-new'))
    if (pod === 'old') hear(name, heard('r-old'))
    if (pod === 'fails') hear(name, heard('r-new', [id]))
  }
  await vi.advanceTimersByTimeAsync(12_000)
  const accepted: StatusContribution = {
    generation: 2,
    findings: [
      { type: 'Accepted', status: 'True', reason: 'Valid', message: '' },
      { type: 'ResolvedRefs', status: 'True', reason: 'Resolved', message: '' },
    ],
  }
  const reports = { compile: accepted, ...(contributed === undefined ? {} : { rollout: contributed }) }
  const status = statusOf(pipelineKind, object as StatusObject, reports, new Date(0))
  return { ...object, status } as unknown as Pipeline
}

type PutObject = Readonly<Record<string, unknown>> & { readonly metadata?: object }

/** The conditions in the status from an earlier generation, or from this one. */
const ran = (generation: number, revision: string) => {
  const condition = (type: string): Condition => ({
    ...{ type, status: 'True', reason: type === 'Programmed' ? 'Programmed' : 'Valid', message: 'as it was' },
    ...{ observedGeneration: generation, lastTransitionTime: '2026-01-01T00:00:00Z' },
  })
  return {
    observedGeneration: generation,
    programmedGeneration: generation,
    conditions: [condition('Accepted'), condition('Programmed')],
    agents: [{ name: system, revision, desired: 2, current: 2, failed: 0, stale: 0 }],
  }
}
const histories = {
  'never ran': { before: undefined, hasEarlier: false },
  'ran in an earlier version': { before: ran(1, 'old'), hasEarlier: true },
  'ran in this version': { before: ran(2, 'new'), hasEarlier: true },
} as const

interface Expected {
  readonly programmed: Pick<Finding, 'status' | 'reason'>
  /** Numbers of its row. */
  readonly row: object
}

function expected(what: Deliverable, hasEarlier: boolean, pair: readonly Pod[], hasRun: boolean): Expected {
  const count = (...wanted: Pod[]) => pair.filter((pod) => wanted.includes(pod)).length
  const serving = count('new', 'old', 'fails')
  const [current, earlier, failed] = [count('new'), hasEarlier ? count('old') : 0, count('fails')]
  const desired = serving + count('starts', 'silent')
  const stale = count('silent')
  const row = { desired, current, ...(earlier === 0 ? {} : { earlier }), failed, stale }
  const given: { readonly reason?: Finding['reason'] } = deliveries[what]
  if (given.reason !== undefined) return { programmed: { status: 'False', reason: given.reason }, row }
  if (failed > 0) return { programmed: { status: 'False', reason: 'NodesFailed' }, row }
  // A pod that appears or disappears does not change the status of a running Pipeline.
  if (hasRun && (serving === 0 || current === serving))
    return { programmed: { status: 'True', reason: 'Programmed' }, row: { desired: 2, current: 2 } }
  if (serving > 0 && current === serving) return { programmed: { status: 'True', reason: 'Programmed' }, row }
  const reason = current + earlier > 0 ? 'RollingOut' : 'Pending'
  return { programmed: { status: 'False', reason }, row }
}

describe.each(Object.keys(deliveries) as Deliverable[])('a Pipeline that %s', (what) => {
  describe.each(Object.entries(histories))('and %s', (history, { before, hasEarlier }) => {
    test.each(pairs)('with agents of which one is %s and one %s', async (...pair) => {
      const pipeline = await statusIn(what, hasEarlier, pair, before)

      const { programmed, row } = expected(what, hasEarlier, pair, history === 'ran in this version')
      const { conditions = [], agents = [] } = pipeline.status ?? {}
      expect(conditions.find(({ type }) => type === 'Programmed')).toMatchObject(programmed)
      expect(conditions.find(({ type }) => type === 'Ready')?.status).toBe(programmed.status)
      expect(agents).toEqual([{ ...agents[0], ...row, name: system, revision: 'new' }])
      if (programmed.reason === 'NodesFailed')
        expect(conditions.map(({ message }) => message).join(' ')).toContain(
          agents[0]?.failed === 1 ? `1 agent of ${system}: ` : `2 agents of ${system}: `,
        )
      // The command shows the same state, with the cause if there is one.
      const text = statusText(pipeline, { color: false, columns: undefined })
      const { desired, current, earlier, failed } = agents[0] ?? {}
      expect(text).toContain(`agent     ${system}: ${current}/${desired} run revision new`)
      expect(text.includes(`${earlier} run an earlier one`)).toBe(earlier !== undefined)
      expect(text.includes('BufferUnwritable: node-')).toBe((failed ?? 0) > 0)
      if (what === 'was rolled back') expect(text).toContain('node-a: no such host')
      // `why` assumes no version if no agent can run one.
      const found = readingStateOf(pipeline, true, 'unknown')
      if (earlier !== undefined || programmed.status === 'True') expect(found.reads).toBe(true)
      if (!hasEarlier && programmed.status === 'False') expect(found.reads).toBe(false)
    })
  })
})
