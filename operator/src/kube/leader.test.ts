import { silentLogger } from '@penstock/agent/telemetry'
import { expect, test, vi } from 'vitest'
import { startKubeServer } from '../testing/kube-server.ts'
import { LeaderElection } from './leader.ts'

/** An API server with one Lease, and a connection to it. */
async function leaseHeldBy(holder: string) {
  const spec: Record<string, unknown> = { holderIdentity: holder, leaseDurationSeconds: 15 }
  let lease = { metadata: { name: 'operator', namespace: 'system', resourceVersion: '1' }, spec }
  const server = await startKubeServer(async (request, response) => {
    if (request.method === 'PUT') {
      const { spec } = JSON.parse(Buffer.concat(await request.toArray()).toString())
      lease = {
        metadata: { ...lease.metadata, resourceVersion: `${Number(lease.metadata.resourceVersion) + 1}` },
        spec,
      }
    }
    response.end(JSON.stringify(lease))
  })
  return {
    connection: server.connection,
    holder: () => lease.spec['holderIdentity'],
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

test('an expired Lease of a silent holder is acquired, even with rare checks, and is released', async () => {
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
