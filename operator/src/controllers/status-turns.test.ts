// The order of requests when the rate limit delays them: a server records the requests of the real client.

import { silentLogger } from '@penstock/agent/telemetry'
import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { pipelineKind } from '../api/kinds.ts'
import type { KubeObject } from '../api/object.ts'
import type { Cache } from '../kube/cache.ts'
import { createKubeClient } from '../kube/client.ts'
import { serverReviews } from '../kube/reviews.ts'
import { Store } from '../kube/store.ts'
import { startKubeServer } from '../testing/kube-server.ts'
import { ControllerMetrics } from './controller.ts'
import { Statuses, type StatusObject } from './status.ts'

/** An API server that always responds with an empty object, and a client that may send a request every 50 ms. */
async function served() {
  const requests: string[] = []
  const server = await startKubeServer((request, response) => {
    requests.push(`${request.method} ${request.url?.split('?')[0]?.split('/').slice(-2).join('/')}`)
    response.end('{"metadata":{},"status":{}}')
  })
  const kube = createKubeClient(server.connection, { perSecond: 20, burst: 1 })
  return { kube, requests, [Symbol.asyncDispose]: () => server[Symbol.asyncDispose]() }
}

test.each([
  { what: 'the verdict about a new generation', observed: 1, behind: 0 },
  // Requests for which no one waits have every fifth turn.
  { what: 'news about a known generation', observed: 2, behind: 4 },
])('$what does not wait for all reviews of tokens, but at least for $behind', async ({ observed, behind }) => {
  await using api = await served()
  const ending = new AbortController()
  const pipelines = new Store<KubeObject>(pipelineKind, [''], silentLogger)
  const metadata = { namespace: 'shop', name: 'web', uid: 'web', generation: 2, resourceVersion: '1' }
  const pipeline = { apiVersion: 'penstock.dev/v1alpha1', kind: 'Pipeline', metadata, spec: {} }
  const status = { observedGeneration: observed, conditions: [] }
  pipelines.set({ ...pipeline, status } as unknown as KubeObject)
  await using statuses = new Statuses({
    ...{ kube: api.kube, events: { record: () => {} }, logger: silentLogger, signal: ending.signal, periodMs: 30_000 },
    cacheOf: (kind) => (kind === pipelineKind ? (pipelines as unknown as Cache<StatusObject>) : undefined),
    metrics: new ControllerMetrics(new Registry()),
  })
  statuses.start()
  const reviews = Array.from({ length: 30 }, (_, index) => serverReviews(api.kube).userOf(`token ${index}`))
  const findings = [{ type: 'Accepted', status: 'True', reason: 'Valid', message: '' }] as const
  statuses.report(pipelineKind, pipelines.get('shop', 'web') as KubeObject, 'compile', { generation: 2, findings })
  await Promise.all(reviews)
  const place = api.requests.indexOf('PATCH web/status')
  expect(place).toBeGreaterThanOrEqual(behind)
  expect(place).toBeLessThan(15)
  ending.abort()
})
