// The author of a ClusterPipeline, as admission records it and reconciles use it. The mock API server has a table of ConfigMaps and
// of the users who may collect.

import { silentLogger } from '@penstock/agent/telemetry'
import { beforeEach, expect, test, vi } from 'vitest'
import { clusterPipelineKind } from '../api/kinds.ts'
import type { KubeObject, ResourceType } from '../api/object.ts'
import type { OperatorContext } from '../context.ts'
import { configMapType } from '../kube/resource-types.ts'
import { Store } from '../kube/store.ts'
import { testContext } from '../testing/context.ts'
import { Authors } from './authors.ts'

const alice = { username: 'alice', groups: ['platform'], extra: { scope: ['all'] } }
const pipeline = (mark: number, uid = 'u1') =>
  ({
    apiVersion: 'penstock.dev/v1alpha1',
    kind: 'ClusterPipeline',
    metadata: { name: 'all', uid },
    spec: { mark },
  }) as KubeObject
const { signal } = new AbortController()

let stored: Map<string, KubeObject>
let mayCollect: Set<string>
let reviewed: unknown[]
let pipelines: Store<KubeObject>
let records: Store<KubeObject>
beforeEach(() => {
  stored = new Map()
  mayCollect = new Set(['alice', 'operator'])
  reviewed = []
  pipelines = new Store(clusterPipelineKind, [''], silentLogger)
  records = new Store(configMapType, [''], silentLogger)
})

const kube = {
  as: () => kube,
  get: async (_: ResourceType, __: string, name: string) => stored.get(name),
  apply: async (_: ResourceType, object: KubeObject) => {
    stored.set(object.metadata.name, object)
    return object
  },
  delete: async (_: ResourceType, __: string, name: string) => stored.delete(name),
  request: async (_: string, path: string, body: { spec: { user: string } }) => {
    if (path.endsWith('/selfsubjectreviews')) return { status: { userInfo: { username: 'operator' } } }
    reviewed.push(body.spec)
    return { status: { allowed: mayCollect.has(body.spec.user) } }
  },
}
function context(): OperatorContext {
  const cache = (type: ResourceType) => (type === configMapType ? records : pipelines)
  const settings = { namespace: 'system', authorizeClusterPipelines: true }
  return testContext({ kube, settings, caches: { cache } })
}
const webhook = () => Authors.of(context(), 'webhook') as Authors
const reconcile = () => Authors.following(context(), 'pipeline') as Authors

test('attributes an object to the authorized user who applied it, and checks groups and scopes again later', async () => {
  await webhook().record(pipeline(1), alice)
  expect(await reconcile().look(pipeline(1), signal)).toEqual({ name: 'alice', problem: undefined })
  expect(reviewed).toEqual([
    {
      ...{ user: 'alice', groups: ['platform'], extra: { scope: ['all'] } },
      resourceAttributes: { group: 'penstock.dev', resource: 'logs', verb: 'collect' },
    },
  ])
})

test.each([
  ['nothing is known of it', async () => {}, pipeline(1)],
  ['another content of it was applied', () => webhook().record(pipeline(1), alice), pipeline(2)],
  ['it was created again', () => webhook().record(pipeline(1), alice), pipeline(1, 'u2')],
])('it is refused if %s', async (_, before, now) => {
  await before()
  const { name, problem } = await reconcile().look(now, signal)
  expect(name).toBeUndefined()
  expect(problem).toContain('The author of this version is unknown')
  expect(problem).toContain('kubectl annotate clusterpipeline all penstock.dev/retry')
})

test('a revoked right is noticed within minutes, and so is a granted one', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  try {
    const authors = reconcile()
    await webhook().record(pipeline(1), alice)
    expect((await authors.look(pipeline(1), signal)).problem).toBeUndefined()
    mayCollect.clear()
    expect((await authors.look(pipeline(1), signal)).problem).toBeUndefined()
    expect(reviewed).toHaveLength(1)
    vi.advanceTimersByTime(61_000)
    const { name, problem } = await authors.look(pipeline(1), signal)
    expect(name).toBe('alice')
    expect(problem).toMatch(/^"alice", who applied it, may not `collect` logs\.penstock\.dev/)
    mayCollect.add('alice')
    vi.advanceTimersByTime(61_000)
    expect((await authors.look(pipeline(1), signal)).problem).toBeUndefined()
  } finally {
    vi.useRealTimers()
  }
})

test('the operator is the author of objects that it applies itself, but not of additions by others', async () => {
  const authors = webhook()
  await authors.recordOwn(pipeline(1), pipeline(2))
  expect(await authors.knows(pipeline(1))).toBe(false)
  await authors.recordOwn(pipeline(1), pipeline(1))
  expect(await reconcile().look(pipeline(1), signal)).toEqual({ name: 'operator', problem: undefined })
  // A known author stays.
  await authors.record(pipeline(3), alice)
  await authors.recordOwn(pipeline(3), pipeline(3))
  expect((await reconcile().look(pipeline(3), signal)).name).toBe('alice')
})

test('records of deleted objects are removed, but not one of a possibly pending write', async () => {
  const author = webhook()
  for (const mark of [1, 2, 3]) await author.record(pipeline(mark), alice)
  const old = new Date(Date.now() - 3_600_000).toISOString()
  const [first, current, young] = [...stored.values()].map((object, index) => ({
    ...object,
    metadata: { ...object.metadata, creationTimestamp: index < 2 ? old : new Date().toISOString() },
  })) as [KubeObject, KubeObject, KubeObject]
  for (const object of [first, current, young]) records.set(object)
  pipelines.set(pipeline(2))
  await reconcile().look(pipeline(2), signal)
  expect([...stored.keys()]).toEqual([current.metadata.name, young.metadata.name])
})
