// The status of a Pipeline whose reconcile throws. The test fills stores that serve as caches, and brings its own compiler.

import { silentLogger } from '@penstock/agent/telemetry'
import { Registry } from 'prom-client'
import { expect, test, vi } from 'vitest'
import type { Finding } from '../api/conditions.ts'
import { pipelineKind } from '../api/kinds.ts'
import { type KubeObject, keyOf, type ResourceType } from '../api/object.ts'
import type { CompileJob, CompileResult } from '../compile/job.ts'
import type { CompilePool } from '../compile/pool.ts'
import type { StatusWriter } from '../context.ts'
import { KubeError } from '../kube/client.ts'
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

/** An operator that compiles two Pipelines of a namespace, `odd` and `plain`. */
async function started(compileOdd: () => CompileResult) {
  const stack = new AsyncDisposableStack()
  const stores = new Map<ResourceType, Store<KubeObject>>()
  const cache = (type: ResourceType) => {
    const store = stores.get(type) ?? new Store<KubeObject>(type, [''], silentLogger)
    stores.set(type, store)
    return store
  }
  for (const name of ['odd', 'plain'])
    cache(pipelineKind).set({
      ...{ apiVersion: 'penstock.dev/v1alpha1', kind: 'Pipeline' },
      metadata: { name, namespace: 'shop', uid: name, generation: 3, resourceVersion: '1' },
      ...{ spec: { sources: [], sinks: [] } },
    })
  const found = new Map<string, readonly Finding[]>()
  const status = {
    report: (...[, object, , { findings }]: Parameters<StatusWriter['report']>) =>
      void found.set(keyOf(object), findings),
    reported: () => undefined,
  }
  const plain: CompileResult = {
    ...{ ...verdicts, artifact: undefined, tests: undefined, warnings: [], problems: [], diskBufferBytes: 0 },
  }
  const compile = async ({ pipeline }: CompileJob) => (pipeline.metadata.name === 'odd' ? compileOdd() : plain)
  const ending = new AbortController()
  const metrics = new Registry()
  const artifacts = new Artifacts()
  const context = testContext({
    ...{ logger: silentLogger, metrics, signal: ending.signal, artifacts, status, events: { record: () => {} } },
    kube: { as: () => ({ list: async () => [], delete: async () => {} }) },
    caches: { cache, synced: async () => {} },
    settings: { namespace: 'system', secretsMode: 'All', clusterName: '', refGracePeriodMs: 0 },
  })
  const controller = stack.use(
    new PipelineController(context, {
      ...{ artifacts, metrics: new ControllerMetrics(metrics), apiAddresses: new ApiAddresses([]) },
      pool: { compile } as unknown as CompilePool,
    }),
  )
  stack.defer(() => ending.abort())
  await controller.start()
  const says = (name: string) => found.get(`shop/${name}`)?.map(({ type, status, reason }) => [type, status, reason])
  return { artifacts, found, says, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

test('a Pipeline whose reconcile throws says so, and does not keep the others from starting', async () => {
  await using operator = await started(() => {
    throw new TypeError('Secret place x has no reference.')
  })
  await vi.waitFor(() => expect(operator.artifacts.complete).toBe(true), 30_000)
  expect(operator.says('odd')).toEqual([['Accepted', 'Unknown', 'InternalError']])
  expect(operator.found.get('shop/odd')?.[0]?.message).toContain('(TypeError: Secret place x has no reference.)')
  expect(operator.says('plain')?.[0]).toEqual(['Accepted', 'False', 'CompileFailed'])
})

test('what the API server does not take is tried again, and is no error of the operator', async () => {
  let tried = 0
  await using operator = await started(() => {
    tried++
    throw new KubeError('no answer', { status: 0, reason: 'Unreachable' })
  })
  await vi.waitFor(() => expect(tried).toBeGreaterThan(2), 30_000)
  expect(operator.says('odd')).toBeUndefined()
  expect(operator.artifacts.complete).toBe(false)
})
