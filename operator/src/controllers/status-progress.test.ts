// Limits the writes that only report the progress of rollouts, without delaying results. The test controls time.

import { silentLogger } from '@penstock/agent/telemetry'
import { Registry } from 'prom-client'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type Condition, conditionOf, type Finding } from '../api/conditions.ts'
import { pipelineKind, type ResourceKind } from '../api/kinds.ts'
import type { KubeObject } from '../api/object.ts'
import type { Cache } from '../kube/cache.ts'
import type { KubeClient } from '../kube/client.ts'
import { Store } from '../kube/store.ts'
import { ControllerMetrics } from './controller.ts'
import { Statuses, type StatusObject } from './status.ts'

beforeEach(() => {
  vi.useFakeTimers({
    toFake: ['performance', 'setTimeout', 'clearTimeout', 'setInterval', 'clearInterval', 'setImmediate'],
  })
})
afterEach(() => {
  vi.useRealTimers()
})

function operator(pipelines: number) {
  const store = new Store<KubeObject>(pipelineKind, [''], silentLogger)
  const ending = new AbortController()
  let writes = 0
  const apply = async (_: ResourceKind, written: StatusObject) => {
    writes++
    const { namespace, name } = written.metadata
    const known = store.get(namespace, name) as StatusObject
    const stored = { ...known, metadata: { ...known.metadata, resourceVersion: `w${writes}` }, status: written.status }
    store.set(stored as KubeObject)
    return stored
  }
  const names = Array.from({ length: pipelines }, (_, index) => `p-${index}`)
  for (const name of names)
    store.set({
      ...{ apiVersion: 'penstock.dev/v1alpha1', kind: 'Pipeline' },
      metadata: { namespace: 'shop', name, uid: name, generation: 1, resourceVersion: '1' },
    })
  const statuses = new Statuses({
    ...{ kube: { apply } as unknown as KubeClient, events: { record: () => {} }, logger: silentLogger },
    ...{ signal: ending.signal, periodMs: 30_000, metrics: new ControllerMetrics(new Registry()) },
    cacheOf: (kind) => (kind === pipelineKind ? (store as unknown as Cache<StatusObject>) : undefined),
  }).start()
  const objectOf = (name: string) => store.get('shop', name) as StatusObject
  return {
    names,
    compile(name: string) {
      const findings: Finding[] = [
        { type: 'Accepted', status: 'True', reason: 'Valid', message: '' },
        { type: 'ResolvedRefs', status: 'True', reason: 'Resolved', message: '' },
      ]
      statuses.report(pipelineKind, objectOf(name), 'compile', { generation: 1, findings })
    },
    rollOut(name: string, status: Finding['status'], reason: Finding['reason'], message: string) {
      const findings: Finding[] = [{ type: 'Programmed', status, reason, message }]
      statuses.report(pipelineKind, objectOf(name), 'rollout', { generation: 1, findings })
    },
    programmed(name: string) {
      const { status, reason, message } = conditionOf(
        objectOf(name).status?.conditions as readonly Condition[],
        'Programmed',
      ) as Condition
      return `${status} ${reason} ${message}`
    },
    /** Returns the number of writes. */
    async pass(seconds: number): Promise<number> {
      const before = writes
      await vi.advanceTimersByTimeAsync(seconds * 1000)
      return writes - before
    },
    async [Symbol.asyncDispose]() {
      ending.abort()
      await statuses[Symbol.asyncDispose]()
    },
  }
}

/** Pipelines whose rollouts have begun, with their first status written. */
async function starting(pipelines: number) {
  const many = operator(pipelines)
  for (const name of many.names) {
    many.compile(name)
    many.rollOut(name, 'False', 'Pending', 'No agent runs it yet.')
  }
  await many.pass(5)
  return many
}

test('the progress of one Pipeline is written as it happens', async () => {
  await using one = operator(1)
  one.compile('p-0')
  for (let agents = 0; agents < 20; agents++) {
    one.rollOut('p-0', 'False', agents === 0 ? 'Pending' : 'RollingOut', `${agents} of 20 agents run it.`)
    expect(await one.pass(1)).toBe(1)
    expect(one.programmed('p-0')).toContain(`${agents} of 20 agents`)
  }
})

test('with 300 concurrent rollouts, few writes report progress, and results are not delayed', async () => {
  await using many = await starting(300)
  let writes = 0
  for (let agents = 1; agents <= 60; agents++) {
    for (const name of many.names) many.rollOut(name, 'False', 'RollingOut', `${agents} of 60 agents run it.`)
    writes += await many.pass(2)
  }
  // A burst of fifty, then five per second.
  expect(writes).toBeGreaterThan(300)
  expect(writes).toBeLessThanOrEqual(50 + 5 * 120 + 5)
  for (const name of many.names) many.rollOut(name, 'True', 'Programmed', '60 of 60 agents run it.')
  expect(await many.pass(1)).toBe(300)
  for (const name of many.names) expect(many.programmed(name)).toBe('True Programmed 60 of 60 agents run it.')
  expect(await many.pass(600)).toBe(0)
})

test('a failure during a rollout is written at once, and the last progress is written later', async () => {
  await using many = await starting(200)
  for (const name of many.names) many.rollOut(name, 'False', 'RollingOut', '1 of 60 agents runs it.')
  many.rollOut('p-199', 'False', 'RolledBack', 'The agent on n1 ended.')
  await many.pass(1)
  expect(many.programmed('p-199')).toBe('False RolledBack The agent on n1 ended.')
  await many.pass(60)
  for (const name of many.names.slice(0, -1))
    expect(many.programmed(name)).toBe('False RollingOut 1 of 60 agents runs it.')
})
