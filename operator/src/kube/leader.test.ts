import { silentLogger } from '@penstock/agent/telemetry'
import { expect, test, vi } from 'vitest'
import { startKubeServer } from '../testing/kube-server.ts'
import { LeaderElection } from './leader.ts'

/** An API server with one Lease, and a connection to it. */
async function leaseHeldBy(holder: string) {
  const spec: Record<string, unknown> = { holderIdentity: holder, leaseDurationSeconds: 15 }
  const metadata = { name: 'operator', namespace: 'system' }
  let version = 1
  let lease: { metadata: object; spec: Record<string, unknown> } | undefined
  const put = (spec: Record<string, unknown>) => {
    lease = { metadata: { ...metadata, resourceVersion: `${version++}` }, spec }
  }
  put(spec)
  let takenAt = 0
  /** Whether requests are answered. */
  let isAway = false
  const server = await startKubeServer(async (request, response) => {
    const body = Buffer.concat(await request.toArray()).toString()
    if (isAway) return
    if (request.method !== 'GET') {
      if (takenAt === 0) takenAt = performance.now()
      put(JSON.parse(body).spec)
    }
    if (lease === undefined) response.writeHead(404)
    response.end(JSON.stringify(lease ?? {}))
  })
  return {
    connection: server.connection,
    holder: () => lease?.spec['holderIdentity'],
    takenAt: () => takenAt,
    remove: () => {
      lease = undefined
    },
    setAway: (away: boolean) => {
      isAway = away
    },
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

test('a deleted Lease is not free before its holder must have noticed', async () => {
  await using api = await leaseHeldBy('other')
  const startedAt = performance.now()
  await using election = new LeaderElection({
    ...{ connection: api.connection, namespace: 'system', name: 'operator', identity: 'next', logger: silentLogger },
    onLost: () => {},
    ...{ leaseMs: 3000, renewDeadlineMs: 2000, retryMs: 50 },
  })
  await vi.waitFor(() => expect(election.leader).toBe('other'), 60_000)
  api.remove()
  expect(await election.elected(AbortSignal.timeout(60_000))).toBe(true)
  expect(api.takenAt() - startedAt).toBeGreaterThanOrEqual(3000)
}, 120_000)

test('a Lease that was released before it was deleted, or never seen, is free at once, and its holder creates it again', async () => {
  for (const holder of ['', undefined]) {
    await using api = await leaseHeldBy(holder ?? '')
    if (holder === undefined) api.remove()
    let isLost = false
    await using election = new LeaderElection({
      ...{ connection: api.connection, namespace: 'system', name: 'operator', identity: 'next', logger: silentLogger },
      onLost: () => (isLost = true),
      ...{ leaseMs: 600_000, renewDeadlineMs: 300_000, retryMs: 50 },
    })
    expect(await election.elected(AbortSignal.timeout(60_000))).toBe(true)
    api.remove()
    await vi.waitFor(() => expect(api.holder()).toBe('next'), 60_000)
    expect([election.leads, isLost]).toEqual([true, false])
  }
}, 120_000)

test('a leader whose API server does not answer stops writing at its deadline, and exits', async () => {
  await using api = await leaseHeldBy('')
  const lost = Promise.withResolvers<void>()
  const election = new LeaderElection({
    ...{ connection: api.connection, namespace: 'system', name: 'operator', identity: 'next', logger: silentLogger },
    onLost: lost.resolve,
    ...{ leaseMs: 3000, renewDeadlineMs: 1000, retryMs: 50 },
  })
  expect(await election.elected(AbortSignal.timeout(60_000))).toBe(true)
  expect(election.leads).toBe(true)
  api.setAway(true)
  await vi.waitFor(() => expect(election.leads).toBe(false), 60_000)
  await lost.promise
  api.setAway(false)
  expect(election.leads).toBe(false)
  await election[Symbol.asyncDispose]()
}, 120_000)
