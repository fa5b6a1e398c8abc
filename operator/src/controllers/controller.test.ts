// The controller loop with a client for a server on loopback that responds like real servers under load.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLogger } from '@penstock/agent/telemetry'
import { Registry } from 'prom-client'
import { expect, test, vi } from 'vitest'
import { createKubeClient } from '../kube/client.ts'
import { KubeConnection } from '../kube/connection.ts'
import { configMapType } from '../kube/resource-types.ts'
import { Controller, ControllerMetrics } from './controller.ts'

test('after many responses with 429, every key is written, and none before the requested time', async () => {
  const keys = Array.from({ length: 40 }, (_, index) => `key-${index}`)
  const refusedAt = new Map<string, number>()
  const tooEarly: string[] = []
  const written = new Set<string>()
  const server = createServer((request, response) => {
    const key = new URL(request.url ?? '', 'http://api').pathname.split('/').at(-1) as string
    const refused = refusedAt.get(key)
    const status = refused === undefined ? 429 : 200
    if (refused === undefined) refusedAt.set(key, performance.now())
    else if (performance.now() - refused < 950) tooEarly.push(key)
    else written.add(key)
    request.resume()
    request.on('end', () => {
      response.writeHead(status, {
        'content-type': 'application/json',
        ...(status === 429 ? { 'retry-after': '1' } : {}),
      })
      const body =
        status === 429 ? { kind: 'Status', code: 429, reason: 'TooManyRequests' } : { metadata: { name: key } }
      response.end(JSON.stringify(body))
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  const folder = mkdtempSync(join(tmpdir(), 'penstock-controller-'))
  const kubeconfig = join(folder, 'kubeconfig')
  writeFileSync(
    kubeconfig,
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'Config',
      clusters: [{ name: 'one', cluster: { server: `http://127.0.0.1:${port}`, 'insecure-skip-tls-verify': true } }],
      users: [{ name: 'one', user: {} }],
      contexts: [{ name: 'one', context: { cluster: 'one', user: 'one' } }],
      'current-context': 'one',
    }),
  )
  const stop = new AbortController()
  const connection = await KubeConnection.open({ kubeconfig })
  const client = createKubeClient(connection, { perSecond: 1000, burst: 1000 })
  try {
    await using controller = new Controller({
      name: 'test',
      logger: silentLogger,
      metrics: new ControllerMetrics(new Registry()),
      signal: stop.signal,
      async reconcile(key, signal) {
        const map = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: key, namespace: 'shop' } }
        await client.apply(configMapType, map, { signal })
        return undefined
      },
    }).start(() => keys)
    for (const key of keys) controller.add(key)
    await vi.waitFor(() => expect(written.size).toBe(keys.length), { timeout: 25_000 })
    expect(tooEarly).toEqual([])
  } finally {
    stop.abort()
    connection.close()
    server.closeAllConnections()
    await new Promise((done) => server.close(done))
    rmSync(folder, { recursive: true })
  }
})
