// The order of requests when the rate limit delays them: a server records the requests of the real client.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLogger } from '@penstock/agent/telemetry'
import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { pipelineKind } from '../api/kinds.ts'
import type { KubeObject } from '../api/object.ts'
import type { Cache } from '../kube/cache.ts'
import { createKubeClient } from '../kube/client.ts'
import { KubeConnection } from '../kube/connection.ts'
import { serverReviews } from '../kube/reviews.ts'
import { Store } from '../kube/store.ts'
import { ControllerMetrics } from './controller.ts'
import { Statuses, type StatusObject } from './status.ts'

/** An API server that always responds with an empty object, and a client that may send a request every 50 ms. */
async function served() {
  const stack = new AsyncDisposableStack()
  const requests: string[] = []
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.url?.split('?')[0]?.split('/').slice(-2).join('/')}`)
    response.end('{"metadata":{},"status":{}}')
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  stack.defer(() => new Promise<void>((done) => server.close(() => done())))
  const folder = mkdtempSync(join(tmpdir(), 'penstock-turns-'))
  stack.defer(() => rmSync(folder, { recursive: true }))
  const { port } = server.address() as AddressInfo
  const config = {
    ...{ apiVersion: 'v1', kind: 'Config', 'current-context': 'c' },
    clusters: [{ name: 'c', cluster: { server: `http://127.0.0.1:${port}` } }],
    ...{ users: [{ name: 'u', user: {} }], contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }] },
  }
  writeFileSync(join(folder, 'config'), JSON.stringify(config))
  const connection = await KubeConnection.open({ kubeconfig: join(folder, 'config') })
  stack.defer(() => connection.close())
  const kube = createKubeClient(connection, { perSecond: 20, burst: 1 })
  return { kube, requests, [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

test.each([
  { what: 'the verdict about a new generation', observed: 1, behind: 0 },
  // Requests for which no one waits have every fifth turn.
  { what: 'news about a known generation', observed: 2, behind: 4 },
])('$what does not wait for all reviews of tokens, but for $behind at least', async ({ observed, behind }) => {
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
