// Elections over a Lease with the semantics of the API server, on a clock that the test advances: requests may be slow or get lost in
// either direction, and processes may stall. The test with a real API server is e2e/operator/aggregator.test.ts.

import { expect, test } from 'vitest'
import type { Clock } from '../clock.ts'
import type { Lease } from '../kube/lease.ts'
import { silentLogger } from '../telemetry/logger.ts'
import { Metrics } from '../telemetry/metrics.ts'
import { FakeClock } from '../testing/clock.ts'
import { Random } from '../testing/random.ts'
import { Election, type LeaseApi } from './election.ts'

const path = '/apis/coordination.k8s.io/v1/namespaces/shop/leases/penstock-aggregator-7'

/** One Lease with versions. */
class LeaseServer {
  lease: Lease | undefined
  #version = 0
  reads = 0
  writes = 0

  /** Creates it like the operator: with labels, and without a holder. */
  make(uid = 'u1'): void {
    const metadata = { name: 'penstock-aggregator-7', namespace: 'shop', uid, resourceVersion: `${++this.#version}` }
    const labels = { 'penstock.dev/agent': 'hub' }
    this.lease = { apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { ...metadata, ...{ labels } } }
  }

  read(): { status: number; body: unknown } {
    this.reads++
    return this.lease === undefined ? { status: 404, body: {} } : { status: 200, body: structuredClone(this.lease) }
  }

  write(sent: Lease): { status: number; body: unknown } {
    this.writes++
    if (sent.metadata.resourceVersion !== this.lease?.metadata.resourceVersion) return { status: 409, body: {} }
    const { uid = `by-an-agent-${this.#version}` } = sent.metadata
    const isNew = this.lease === undefined
    this.lease = structuredClone({
      ...sent,
      metadata: { ...sent.metadata, uid, resourceVersion: `${++this.#version}` },
    })
    return { status: isNew ? 201 : 200, body: structuredClone(this.lease) }
  }
}

interface Wire {
  /** How long a request takes in each direction, in milliseconds; undefined: it is lost. */
  there(): number | undefined
  back(): number | undefined
}

const quick: Wire = { there: () => 5, back: () => 5 }
const cut: Wire = { there: () => undefined, back: () => undefined }

class TestAgent {
  readonly election: Election
  readonly metrics = new Metrics()
  readonly terms: AbortSignal[] = []
  wire: Wire = quick
  #isSuspended = false
  #due: (() => void)[] = []
  readonly #stopping = new AbortController()
  readonly #source: Promise<void>

  constructor(server: LeaseServer, time: FakeClock, identity: string) {
    const clock: Clock = {
      now: () => time.now(),
      after: (ms, action) => {
        let cancelled = false
        const run = () => {
          if (!cancelled) action()
        }
        const cancel = time.after(ms, () => (this.#isSuspended ? this.#due.push(run) : run()))
        return () => {
          cancelled = true
          cancel()
        }
      },
    }
    const wait = (ms: number | undefined) =>
      new Promise<void>((resolve) => {
        if (ms !== undefined) time.after(ms, () => (this.#isSuspended ? this.#due.push(resolve) : resolve()))
      })
    const api: LeaseApi = {
      async json(asked, _signal, body, method) {
        expect([asked, method]).toEqual([path, body === undefined ? undefined : 'PUT'])
        const there = agent.wire.there()
        // A sent request arrives, whatever its sender does meanwhile.
        await new Promise<void>((resolve) => {
          if (there !== undefined) time.after(there, resolve)
        })
        const answer = body === undefined ? server.read() : server.write(body as Lease)
        await wait(agent.wire.back())
        return answer
      },
      async disconnect() {},
    }
    const agent = this
    this.election = new Election({
      ...{ namespace: 'shop', name: 'penstock-aggregator-7', identity, clock },
      open: async () => api,
      logger: silentLogger,
      metrics: this.metrics,
    })
    this.#source = this.#run()
  }

  /** Behaves like a singleton source. */
  async #run(): Promise<void> {
    using _ = this.election.join()
    for (;;) {
      const term = await this.election.term(this.#stopping.signal)
      if (term === undefined) return
      this.terms.push(term)
      await new Promise<void>((resolve) => {
        for (const signal of [term, this.#stopping.signal]) {
          if (signal.aborted) resolve()
          signal.addEventListener('abort', () => resolve())
        }
      })
      if (this.#stopping.signal.aborted) return
    }
  }

  /** Whether it would pass on an event. */
  get leads(): boolean {
    return !this.#isSuspended && this.election.leads
  }

  stand(): void {
    this.#isSuspended = true
  }
  resume(): void {
    this.#isSuspended = false
    for (const action of this.#due.splice(0)) action()
  }

  async stop(): Promise<void> {
    this.election.leave()
    this.#stopping.abort()
    await this.#source
  }
}

function setUp(count: number) {
  const time = new FakeClock()
  const server = new LeaseServer()
  server.make()
  const agents = Array.from({ length: count }, (_, index) => new TestAgent(server, time, `agent-${index}`))
  return { time, server, agents, leaders: () => agents.filter((agent) => agent.leads) }
}

/** Advances time in small steps until a condition holds; returns the elapsed time. */
async function passUntil(time: FakeClock, holds: () => boolean, limitMs: number, always = () => {}): Promise<number> {
  const start = time.now()
  while (!holds()) {
    if (time.now() - start > limitMs) throw new Error(`It did not happen within ${limitMs} ms.`)
    await time.advance(50)
    always()
  }
  return time.now() - start
}

test('one of several agents leads, and only its renewals are written', async () => {
  const { time, server, agents, leaders } = setUp(3)
  await passUntil(time, () => leaders().length === 1, 5000)
  const { reads, writes } = server
  await time.advance(60_000)
  expect(leaders()).toHaveLength(1)
  expect(server.writes - writes).toBeLessThanOrEqual(30)
  expect(server.reads - reads).toBeLessThanOrEqual(60)
  expect(server.lease?.metadata).toMatchObject({ uid: 'u1', labels: { 'penstock.dev/agent': 'hub' } })
  expect(server.lease?.spec?.leaseDurationSeconds).toBe(15)
  const shown = agents.map((agent) => agent.metrics.sum('singleton_leader'))
  expect(shown.toSorted()).toEqual([0, 0, 1])
})

test('the next agent leads after the claim of a silent leader expires, and the silent leader stops before that', async () => {
  const { time, agents, leaders } = setUp(2)
  await passUntil(time, () => leaders().length === 1, 5000)
  const [first] = leaders() as [TestAgent]
  const other = agents.find((agent) => agent !== first) as TestAgent
  first.wire = cut
  await passUntil(time, () => !first.leads, 10_000)
  expect(first.terms.at(-1)?.aborted).toBe(true)
  expect(other.leads).toBe(false)
  await passUntil(time, () => other.leads, 10_000)
  // When it returns, it waits like any other.
  first.wire = quick
  await time.advance(30_000)
  expect(leaders()).toEqual([other])
})

test('the leader takes the time up to which its predecessor led only from that predecessor', async () => {
  const server = new LeaseServer()
  server.make()
  const time = new FakeClock()
  const first = new TestAgent(server, time, 'a')
  await time.advance(30_000)
  expect([first.election.leads, first.election.precededUntil]).toEqual([true, undefined])
  const renewed = Date.parse(server.lease?.spec?.renewTime ?? '')
  first.wire = cut
  const second = new TestAgent(server, time, 'b')
  await time.advance(60_000)
  expect([second.election.leads, second.election.precededUntil]).toEqual([true, renewed])
  // An agent that starts much later takes no sources over.
  await time.advance(60_000)
  expect([second.election.leads, second.election.precededUntil]).toEqual([true, undefined])
  await first.stop()
  await second.stop()
})

test('a leader that stops releases its claim, and the next agent leads after its next request', async () => {
  const { time, agents, server, leaders } = setUp(2)
  await passUntil(time, () => leaders().length === 1, 5000)
  const [first] = leaders() as [TestAgent]
  const other = agents.find((agent) => agent !== first) as TestAgent
  const stopped = first.stop()
  await passUntil(time, () => other.leads, 2100)
  await stopped
  const { reads, writes } = server
  await other.stop()
  await time.advance(60_000)
  expect(server.lease?.spec?.holderIdentity).toBe('')
  expect(server.reads - reads).toBe(0)
  expect(server.writes - writes).toBe(1)
})

test('without singleton sources, no requests are sent, and a held Lease is released', async () => {
  const { time, server } = setUp(0)
  const agent = new TestAgent(server, time, 'one')
  await passUntil(time, () => agent.leads, 5000)
  await agent.stop()
  await time.advance(10_000)
  expect(server.lease?.spec?.holderIdentity).toBe('')
})

test('replacing a source does not lose the claim', async () => {
  const { time, server } = setUp(0)
  const agent = new TestAgent(server, time, 'one')
  await passUntil(time, () => agent.leads, 5000)
  const [term] = agent.terms as [AbortSignal]
  const more = agent.election.join()
  more[Symbol.dispose]()
  using _ = agent.election.join()
  await time.advance(20_000)
  expect(term.aborted).toBe(false)
  expect(server.lease?.spec?.leaseTransitions).toBe(1)
})

test('a process that was suspended does not lead when it continues, even before a timer fires', async () => {
  const { time, agents, leaders } = setUp(2)
  await passUntil(time, () => leaders().length === 1, 5000)
  const [first] = leaders() as [TestAgent]
  const other = agents.find((agent) => agent !== first) as TestAgent
  first.stand()
  await passUntil(time, () => other.leads, 25_000)
  expect(first.terms.at(-1)?.aborted).toBe(false)
  expect(first.election.leads).toBe(false)
  first.resume()
  expect(first.terms.at(-1)?.aborted).toBe(true)
  await time.advance(30_000)
  expect(leaders()).toEqual([other])
})

test.each(['removed', 'created again'])(
  'a Lease that was %s is not taken while its holder may still lead',
  async (what) => {
    const { time, server, agents, leaders } = setUp(2)
    await passUntil(time, () => leaders().length === 1, 5000)
    await time.advance(5000)
    const [first] = leaders() as [TestAgent]
    const other = agents.find((agent) => agent !== first) as TestAgent
    first.wire = cut
    if (what === 'removed') server.lease = undefined
    else server.make('u2')
    await passUntil(
      time,
      () => other.leads,
      20_000,
      () => expect(leaders().length).toBeLessThanOrEqual(1),
    )
    expect(first.leads).toBe(false)
  },
)

test('a label set by another client does not lose the claim', async () => {
  const { time, server, leaders } = setUp(2)
  await passUntil(time, () => leaders().length === 1, 5000)
  const [first] = leaders() as [TestAgent]
  const { lease } = server
  server.write({ ...(lease as Lease), metadata: { ...(lease as Lease).metadata, ...{ labels: { a: 'b' } } } })
  await time.advance(30_000)
  expect(leaders()).toEqual([first])
  expect(first.terms).toHaveLength(1)
  expect(server.lease?.metadata).toMatchObject({ labels: { a: 'b' } })
})

test.each([1, 2, 3, 4, 5, 6, 7, 8])(
  'no two agents lead at the same time, and finally one leads (seed %i)',
  async (seed) => {
    const numbers = new Random(seed)
    const random = () => numbers.next()
    const { time, server, agents, leaders } = setUp(3)
    const wild: Wire = {
      there: () => (random() < 0.2 ? undefined : random() * 3000),
      back: () => (random() < 0.2 ? undefined : random() * 3000),
    }
    const removedAt = numbers.below(2000)
    let changes = 0
    let before: TestAgent | undefined
    for (let step = 0; step < 2000; step++) {
      const agent = agents[Math.floor(random() * agents.length)] as TestAgent
      const dice = random()
      if (dice < 0.02) agent.wire = wild
      else if (dice < 0.035) agent.wire = cut
      else if (dice < 0.06) agent.wire = quick
      else if (dice < 0.07) agent.stand()
      else if (dice < 0.09) agent.resume()
      if (step === removedAt) server.lease = undefined
      await time.advance(100 + random() * 200)
      const leading = leaders()
      expect(leading.length).toBeLessThanOrEqual(1)
      if (leading[0] !== undefined && leading[0] !== before) {
        changes++
        before = leading[0]
      }
    }
    expect(changes).toBeGreaterThan(2)
    for (const agent of agents) {
      agent.wire = quick
      agent.resume()
    }
    await passUntil(time, () => leaders().length === 1, 30_000)
  },
)
