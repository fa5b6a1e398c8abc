// The status of a Pipeline whose reconcile throws. The test fills stores that serve as caches, and uses its own compiler.

import { silentLogger } from '@penstock/agent/telemetry'
import { Registry } from 'prom-client'
import { expect, test, vi } from 'vitest'
import type { Finding } from '../api/conditions.ts'
import { pipelineKind, tenantPolicyKind } from '../api/kinds.ts'
import { type KubeObject, keyOf, type ResourceType } from '../api/object.ts'
import type { Artifact } from '../compile/artifact.ts'
import type { CompileJob, CompileResult } from '../compile/job.ts'
import type { CompilePool } from '../compile/pool.ts'
import type { StatusWriter } from '../context.ts'
import { KubeError } from '../kube/client.ts'
import { namespaceType } from '../kube/resource-types.ts'
import { Store } from '../kube/store.ts'
import { ApiAddresses } from '../policy/api-addresses.ts'
import { testContext } from '../testing/context.ts'
import { Artifacts } from './artifacts.ts'
import { ControllerMetrics } from './controller.ts'
import { PipelineController } from './pipeline.ts'

const verdicts = {
  accepted: { status: 'False', reason: 'CompileFailed', message: 'E103' },
  resolved: { status: 'True', reason: 'Resolved', message: '' },
} as const

interface Existing {
  /** `shop/checkout` */
  readonly key: string
  /** Generation of the last `Accepted`; the Pipeline itself is at 3. */
  readonly judged?: number
  readonly createdAt?: string
}

/** An operator that starts with existing Pipelines. */
async function startedWith(
  pipelines: readonly Existing[],
  compile: (key: string) => CompileResult | Promise<CompileResult>,
  policies: readonly KubeObject[] = [],
  apply: () => KubeObject = () => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'kept' } }),
) {
  const stack = new AsyncDisposableStack()
  const stores = new Map<ResourceType, Store<KubeObject>>()
  const cache = (type: ResourceType) => {
    const store = stores.get(type) ?? new Store<KubeObject>(type, [''], silentLogger)
    stores.set(type, store)
    return store
  }
  for (const { key, judged, createdAt } of pipelines) {
    const [namespace = '', name = ''] = key.split('/')
    const accepted = { type: 'Accepted', status: 'True', reason: 'Valid', message: '', observedGeneration: judged }
    cache(pipelineKind).set({
      ...{ apiVersion: 'penstock.dev/v1alpha1', kind: 'Pipeline' },
      metadata: {
        ...{ name, namespace, uid: key, generation: 3, resourceVersion: '1' },
        ...(createdAt === undefined ? {} : { creationTimestamp: createdAt }),
      },
      ...{ spec: { sources: [], sinks: [] }, status: { conditions: judged === undefined ? [] : [accepted] } },
    } as KubeObject)
    const metadata = { name: namespace, uid: namespace, resourceVersion: '1' }
    cache(namespaceType).set({ apiVersion: 'v1', kind: 'Namespace', metadata })
  }
  for (const policy of policies) cache(tenantPolicyKind).set(policy)
  const found = new Map<string, readonly Finding[]>()
  const history: string[] = []
  const status = {
    report: (...[, object, , { findings }]: Parameters<StatusWriter['report']>) => {
      found.set(keyOf(object), findings)
      history.push(`${keyOf(object)} ${findings[0]?.reason}`)
    },
    reported: () => undefined,
  }
  const ending = new AbortController()
  const metrics = new Registry()
  const artifacts = new Artifacts()
  const context = testContext({
    ...{ logger: silentLogger, metrics, signal: ending.signal, artifacts, status, events: { record: () => {} } },
    kube: { as: () => ({ list: async () => [], delete: async () => {}, apply: async () => apply() }) },
    caches: { cache, synced: async () => {} },
    settings: { namespace: 'system', secretsMode: 'All', clusterName: '', refGracePeriodMs: 0 },
  })
  const { promise: ended, reject: end } = Promise.withResolvers<never>()
  ended.catch(() => {}) // no Pipeline may be compiled at that moment
  ending.signal.addEventListener('abort', () => end(new Error('The test is over.')))
  const pool = { compile: async ({ pipeline }: CompileJob) => Promise.race([compile(keyOf(pipeline)), ended]) }
  const controller = stack.use(
    new PipelineController(context, {
      ...{ artifacts, metrics: new ControllerMetrics(metrics), apiAddresses: new ApiAddresses([]) },
      pool: pool as unknown as CompilePool,
    }),
  )
  stack.defer(() => ending.abort())
  await controller.start()
  const says = (key: string) => found.get(key)?.map(({ type, status, reason }) => [type, status, reason])
  /** The author applies another version. */
  const edit = (key: string) => {
    const [namespace, name = ''] = key.split('/')
    const known = cache(pipelineKind).get(namespace, name) as KubeObject
    const { generation = 0 } = known.metadata
    cache(pipelineKind).set({
      ...known,
      metadata: { ...known.metadata, generation: generation + 1, resourceVersion: '2' },
    })
  }
  return { artifacts, found, history, says, edit, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

const rejected: CompileResult = {
  ...{ ...verdicts, artifact: undefined, tests: undefined, warnings: [], problems: [], diskBufferBytes: 0 },
}

/** A result that quotas, and then Agents, must check. */
function compiled(key: string, diskBufferBytes = 0): CompileResult {
  const [namespace = '', name = ''] = key.split('/')
  const artifact = {
    ...{ id: key, kind: 'Pipeline', namespace, name, uid: key, generation: 3, hash: key, mode: 'Node', labels: {} },
    ...{ secretRefs: [], hub: { subscriptions: [] }, sources: {}, transforms: {}, sinks: {}, diskBufferBytes },
  } as unknown as Artifact
  return { ...rejected, accepted: { status: 'True', reason: 'Valid', message: '' }, artifact, diskBufferBytes }
}

/** An operator that compiles two Pipelines of a namespace, `odd` and `plain`. */
const started = (compileOdd: () => CompileResult) =>
  startedWith([{ key: 'shop/odd' }, { key: 'shop/plain' }], (key) => (key === 'shop/odd' ? compileOdd() : rejected))

test('a Pipeline whose reconcile throws reports it, and does not keep the others from starting', async () => {
  await using operator = await started(() => {
    throw new TypeError('Secret place x has no reference.')
  })
  await vi.waitFor(() => expect(operator.artifacts.complete).toBe(true), 30_000)
  expect(operator.says('shop/odd')).toEqual([['Accepted', 'Unknown', 'InternalError']])
  expect(operator.found.get('shop/odd')?.[0]?.message).toContain('(TypeError: Secret place x has no reference.)')
  expect(operator.says('shop/plain')?.[0]).toEqual(['Accepted', 'False', 'CompileFailed'])
  expect([...operator.artifacts.unknown], 'agents keep its version').toEqual(['shop/odd'])
})

test.each([
  [
    new KubeError('GET /secrets/creds: 500 cannot decrypt', { status: 500, reason: 'InternalError' }),
    /status 500: GET/,
  ],
  [new KubeError('no answer', { status: 0, reason: 'Unreachable' }), /The API server does not answer\./],
  [new DOMException('The operation timed out', 'TimeoutError'), /A step takes too long\./],
])(
  'a Pipeline whose reconcile keeps failing with %s reports it, and does not keep the others from starting',
  async (error, text) => {
    let fails = true
    let tried = 0
    await using operator = await startedWith([{ key: 'shop/odd' }, { key: 'shop/plain' }], (key) => {
      if (key === 'shop/plain') return rejected
      tried++
      if (fails) throw error
      return compiled(key)
    })
    await vi.waitFor(() => expect(tried).toBeGreaterThan(2), 30_000)
    expect(operator.says('shop/odd'), 'it may be over in a moment').toBeUndefined()
    await vi.waitFor(() => expect(operator.artifacts.complete).toBe(true), 30_000)
    expect(operator.says('shop/odd')).toEqual([['Accepted', 'Unknown', 'Pending']])
    expect(operator.found.get('shop/odd')?.[0]?.message).toMatch(text)
    expect([...operator.artifacts.unknown]).toEqual(['shop/odd'])
    fails = false
    await vi.waitFor(() => expect(operator.artifacts.get('shop/odd')).toBeDefined(), 60_000)
    expect(operator.artifacts.unknown.size).toBe(0)
  },
)

test('an author sees that a version is rejected even if the last good one cannot be stored', async () => {
  let result = compiled('shop/p')
  let tried = 0
  const refuse = () => {
    tried++
    throw new KubeError('exceeded quota', { status: 403, reason: 'Forbidden' })
  }
  await using operator = await startedWith([{ key: 'shop/p' }], () => result, [], refuse)
  await vi.waitFor(() => expect(operator.artifacts.get('shop/p')).toBeDefined(), 30_000)
  result = rejected
  operator.edit('shop/p')
  await vi.waitFor(() => expect(tried).toBeGreaterThan(0), 30_000)
  expect(operator.says('shop/p')?.[0]).toEqual(['Accepted', 'False', 'CompileFailed'])
  expect(operator.artifacts.get('shop/p')).toBeDefined()
})

/** A compiler that is blocked for all Pipelines but some until it is released. */
function compilerOf(quick: readonly string[], resultOf: (key: string) => CompileResult) {
  const { promise, resolve } = Promise.withResolvers<void>()
  const taken: string[] = []
  const compile = async (key: string) => {
    taken.push(key)
    if (!quick.includes(key)) await promise
    return resultOf(key)
  }
  return { taken, compile, release: resolve }
}

const others = Array.from({ length: 40 }, (_, index) => ({ key: `team-${index % 10}/p-${index}`, judged: 3 }))

test('a start checks changed Pipelines before it compiles the others again', async () => {
  const changed = ['shop/new', 'shop/changed']
  const compiler = compilerOf(changed, (key) => compiled(key))
  await using operator = await startedWith(
    [...others, { key: 'shop/new' }, { key: 'shop/changed', judged: 2 }],
    compiler.compile,
  )
  await vi.waitFor(() => expect(changed.map((key) => operator.says(key)?.[0]?.[2])).not.toContain(undefined), 30_000)
  expect(compiler.taken.slice(0, 2).toSorted()).toEqual(changed.toSorted())
  expect(operator.artifacts.complete).toBe(false)
  compiler.release()
  await vi.waitFor(() => expect(operator.artifacts.complete).toBe(true), 30_000)
  expect(operator.found.size).toBe(others.length + 2)
})

test('a start applies a quota to a Pipeline only after the others of its namespace have been compiled', async () => {
  const policy = {
    ...{ apiVersion: 'penstock.dev/v1alpha1', kind: 'TenantPolicy' },
    metadata: { name: 'small', uid: 'small', resourceVersion: '1' },
    spec: { namespaceSelector: {}, quota: { pipelines: 1 } },
  } as KubeObject
  const old = { key: 'shop/old', judged: 3, createdAt: '2026-01-01T00:00:00Z' }
  const young = { key: 'shop/young', createdAt: '2026-02-01T00:00:00Z' }
  const compiler = compilerOf([old.key, young.key], (key) => compiled(key))
  await using operator = await startedWith([...others, young, old], compiler.compile, [policy])
  await vi.waitFor(() => expect(operator.says(young.key)?.[0]).toEqual(['Accepted', 'False', 'QuotaExceeded']), 30_000)
  expect(operator.artifacts.complete).toBe(false)
  compiler.release()
  await vi.waitFor(() => expect(operator.artifacts.complete).toBe(true), 30_000)
  expect(operator.history.filter((line) => line.startsWith(young.key))).not.toContain(`${young.key} NoMatchingAgent`)
})

test('a start checks a Pipeline with a disk buffer after all Pipelines have been compiled', async () => {
  const compiler = compilerOf(['shop/disk', 'shop/plain'], (key) => compiled(key, key === 'shop/disk' ? 1024 : 0))
  await using operator = await startedWith([...others, { key: 'shop/disk' }, { key: 'shop/plain' }], compiler.compile)
  await vi.waitFor(() => expect(operator.says('shop/plain')).toBeDefined(), 30_000)
  expect(operator.says('shop/disk')).toBeUndefined()
  compiler.release()
  await vi.waitFor(() => expect(operator.says('shop/disk')).toBeDefined(), 30_000)
})
