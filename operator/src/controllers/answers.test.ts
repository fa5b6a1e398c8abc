// A status is written in the end, whatever the API server answers before: through the real controller, the real client and a server on
// loopback.

import type { ServerResponse } from 'node:http'
import { silentLogger } from '@penstock/agent/telemetry'
import { Registry } from 'prom-client'
import { expect, test, vi } from 'vitest'
import { conditionOf } from '../api/conditions.ts'
import { pipelineKind } from '../api/kinds.ts'
import type { KubeObject } from '../api/object.ts'
import type { Cache } from '../kube/cache.ts'
import { createKubeClient } from '../kube/client.ts'
import { Store } from '../kube/store.ts'
import { startKubeServer } from '../testing/kube-server.ts'
import { ControllerMetrics } from './controller.ts'
import { Statuses, type StatusObject } from './status.ts'

type Answer = (response: ServerResponse) => void

const status =
  (code: number, reason: string, headers = {}): Answer =>
  (response) => {
    response.writeHead(code, headers).end(JSON.stringify({ kind: 'Status', code, reason, message: 'not now' }))
  }

test.each<[string, Answer]>([
  ['409', status(409, 'Conflict')],
  ['410', status(410, 'Expired')],
  ['429 with Retry-After', status(429, 'TooManyRequests', { 'retry-after': '0' })],
  [
    '429 with a date as Retry-After',
    status(429, 'TooManyRequests', { 'retry-after': 'Fri, 31 Dec 1999 23:59:59 GMT' }),
  ],
  ['500', status(500, 'InternalError')],
  ['503 of a proxy, as HTML', (response) => void response.writeHead(503).end('<html>unavailable</html>')],
  ['504', status(504, 'Timeout')],
  ['a login page', (response) => void response.writeHead(200).end('<html>log in</html>')],
  ['nothing, and closes the connection', (response) => void response.socket?.destroy()],
  [
    'a half body',
    (response) => {
      response.writeHead(200, { 'content-length': '1000' }).write('{"metadata":{"name":')
      setImmediate(() => response.socket?.destroy())
    },
  ],
])('if the API server answers %s, the status is written by a later attempt', async (_name, odd) => {
  let left = 6
  const written: StatusObject[] = []
  await using server = await startKubeServer(async (request, response) => {
    const body = JSON.parse(Buffer.concat(await request.toArray()).toString()) as StatusObject
    if (left-- > 0) return odd(response)
    written.push(body)
    response.end(JSON.stringify({ ...body, metadata: { ...body.metadata, uid: 'web', resourceVersion: '2' } }))
  })
  const ending = new AbortController()
  const pipelines = new Store<KubeObject>(pipelineKind, [''], silentLogger)
  const metadata = { namespace: 'shop', name: 'web', uid: 'web', generation: 2, resourceVersion: '1' }
  const pipeline = { apiVersion: 'penstock.dev/v1alpha1', kind: 'Pipeline', metadata, spec: {} } as KubeObject
  pipelines.set(pipeline)
  const events: string[] = []
  await using statuses = new Statuses({
    kube: createKubeClient(server.connection, { perSecond: 10_000, burst: 10_000 }),
    events: { record: (_, __, reason) => void events.push(reason) },
    ...{
      logger: silentLogger,
      signal: ending.signal,
      periodMs: 30_000,
      metrics: new ControllerMetrics(new Registry()),
    },
    cacheOf: (kind) => (kind === pipelineKind ? (pipelines as unknown as Cache<StatusObject>) : undefined),
  }).start()
  const findings = [{ type: 'Accepted', status: 'False', reason: 'CompileFailed', message: 'E103' }] as const
  statuses.report(pipelineKind, pipeline, 'compile', { generation: 2, findings })
  await vi.waitFor(() => expect(written).toHaveLength(1), 30_000)
  expect(conditionOf(written[0]?.status?.conditions, 'Accepted')).toMatchObject({ message: 'E103', status: 'False' })
  await vi.waitFor(() => expect(events).toEqual(['Rejected']), 10_000)
  ending.abort()
})
