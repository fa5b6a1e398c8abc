import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { silentLogger } from '@penstock/agent/telemetry'
import { expect, test, vi } from 'vitest'
import { KubeConnection } from './connection.ts'
import { LeaderElection } from './leader.ts'

/** An API server with one Lease, and a connection to it. */
async function leaseHeldBy(holder: string) {
  const stack = new AsyncDisposableStack()
  const spec: Record<string, unknown> = { holderIdentity: holder, leaseDurationSeconds: 15 }
  let lease = { metadata: { name: 'operator', namespace: 'system', resourceVersion: '1' }, spec }
  const server = createServer(async (request, response) => {
    if (request.method === 'PUT') {
      const { spec } = JSON.parse(Buffer.concat(await request.toArray()).toString())
      lease = {
        metadata: { ...lease.metadata, resourceVersion: `${Number(lease.metadata.resourceVersion) + 1}` },
        spec,
      }
    }
    response.end(JSON.stringify(lease))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  stack.defer(() => new Promise<void>((done) => server.close(() => done())))
  const folder = mkdtempSync(join(tmpdir(), 'penstock-lease-'))
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
  return { connection, holder: () => lease.spec['holderIdentity'], [Symbol.asyncDispose]: () => stack.disposeAsync() }
}

test('a Lease whose holder is silent is taken when it ends, however seldom it is looked at, and is given back', async () => {
  await using api = await leaseHeldBy('killed')
  const election = new LeaderElection({
    ...{ connection: api.connection, namespace: 'system', name: 'operator', identity: 'next', logger: silentLogger },
    onLost: () => {},
    ...{ leaseMs: 2000, renewDeadlineMs: 600_000, retryMs: 600_000 },
  })
  await vi.waitFor(() => expect(election.leader).toBe('killed'), 60_000)
  expect(await election.elected(AbortSignal.timeout(60_000))).toBe(true)
  expect(api.holder()).toBe('next')
  await election[Symbol.asyncDispose]()
  expect(api.holder()).toBeFalsy()
}, 120_000)
