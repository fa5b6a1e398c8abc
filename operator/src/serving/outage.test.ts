// The API server does not review tokens, and a thousand agents report: through the real server for agents, the real client and its rate
// limit, and a real leader election.

import { Agent, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { createLogger } from '@penstock/agent/telemetry'
import { freePort } from '@penstock/agent/testing/free-port'
import { Registry } from 'prom-client'
import { afterEach, expect, test, vi } from 'vitest'
import type { KubeObject } from '../api/object.ts'
import { FleetState } from '../fleet/state.ts'
import { createKubeClient } from '../kube/client.ts'
import { LeaderElection } from '../kube/leader.ts'
import { podType } from '../kube/resource-types.ts'
import { ReportedReviews, serverReviews } from '../kube/reviews.ts'
import { Store } from '../kube/store.ts'
import { testContext } from '../testing/context.ts'
import { startKubeServer } from '../testing/kube-server.ts'
import { labels, tokenAudience } from '../workloads/names.ts'
import { heartbeatPart } from './heartbeat.ts'

type Trouble = 'none' | '500' | '429' | 'hangs' | 'cut off'

const part = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')

function tokenOf(pod: string): string {
  const bound = { namespace: 'system', serviceaccount: { name: 'agent' }, pod: { name: pod, uid: pod } }
  const sub = 'system:serviceaccount:system:agent'
  const claims = { iss: 'cluster', aud: [tokenAudience], exp: 4_102_444_800, sub, 'kubernetes.io': bound }
  return `${part({ alg: 'RS256' })}.${part(claims)}.c2ln`
}

/** An API server with a Lease, whose reviews can be in trouble. */
async function cluster() {
  let trouble: Trouble = 'none'
  let reviews = 0
  let renewals = 0
  let lease: { metadata: object; spec?: object } | undefined
  const held: ServerResponse[] = []
  const give = (response: ServerResponse, status: number, body: object, headers = {}) =>
    response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))
  const review = (body: string, response: ServerResponse) => {
    reviews++
    if (trouble === '500') return give(response, 500, { reason: 'InternalError', message: 'etcd is away' })
    if (trouble === '429') return give(response, 429, { reason: 'TooManyRequests' }, { 'retry-after': '2' })
    if (trouble === 'hangs') return void held.push(response)
    if (trouble === 'cut off') return void response.socket?.destroy()
    const { token } = JSON.parse(body).spec
    const { sub, 'kubernetes.io': bound } = JSON.parse(Buffer.from(token.split('.')[1], 'base64url').toString())
    const extra = Object.fromEntries(
      Object.entries({ 'pod-name': bound.pod.name, 'pod-uid': bound.pod.uid, 'node-name': 'n' }).map(
        ([name, value]) => [`authentication.kubernetes.io/${name}`, [value]],
      ),
    )
    const user = { username: sub, extra }
    return give(response, 201, { status: { authenticated: true, audiences: [tokenAudience], user } })
  }
  const server = await startKubeServer(async (received, response) => {
    const body = Buffer.concat(await received.toArray()).toString()
    if (received.url === '/apis/authentication.k8s.io/v1/tokenreviews') return review(body, response)
    if (received.url?.includes('/leases') === true) {
      if (received.method !== 'GET') {
        lease = JSON.parse(body)
        renewals++
      }
      return lease === undefined ? give(response, 404, {}) : give(response, 200, lease)
    }
    return give(response, 200, {})
  })
  return {
    connection: server.connection,
    reviews: () => reviews,
    renewals: () => renewals,
    set: (next: Trouble) => {
      trouble = next
    },
    async [Symbol.asyncDispose]() {
      for (const response of held) response.destroy()
      await server[Symbol.asyncDispose]()
    },
  }
}

async function operator(api: Awaited<ReturnType<typeof cluster>>, pods: readonly string[]) {
  const stack = new AsyncDisposableStack()
  const ending = new AbortController()
  stack.defer(() => ending.abort())
  const store = new Store<KubeObject>(podType, [''], createLogger({ level: 'silent', format: 'json' }))
  const objects = pods.map((name) => ({
    ...{ apiVersion: 'v1', kind: 'Pod', spec: { nodeName: 'n' }, status: { podIPs: [{ ip: '127.0.0.1' }] } },
    metadata: { name, namespace: 'system', uid: name, resourceVersion: '1', labels: { [labels.agent]: 'node' } },
  }))
  store.replace(objects as KubeObject[], '', () => true)
  const lines: string[] = []
  const note = (level: string) => (facts: object, message?: string) =>
    void lines.push(`${level}: ${message ?? String(facts)} ${JSON.stringify(facts)}`)
  const logger = { ...createLogger({ level: 'silent', format: 'json' }), warn: note('warn'), info: note('info') }
  const metrics = new Registry()
  const kube = createKubeClient(api.connection, { perSecond: 100_000, burst: 100_000 })
  const reviews = new ReportedReviews(serverReviews(kube), metrics, logger as never)
  const fleet = new FleetState()
  const port = await freePort()
  const context = testContext({
    ...{ logger, metrics, signal: ending.signal, isLeader: () => true, kube, reviews },
    artifacts: { complete: true, subscribe: () => ({ [Symbol.dispose]() {} }) },
    caches: { cache: () => store, synced: async () => {} },
    settings: { heartbeatAddress: `127.0.0.1:${port}`, heartbeatPeriodMs: 30_000, rolesOnly: false },
  })
  stack.use(await heartbeatPart(fleet).start(context))
  const agent = stack.adopt(new Agent({ keepAlive: true, maxSockets: 64 }), (each) => each.destroy())
  const send = (method: string, path: string, token: string, body?: object) =>
    new Promise<{ status: number; text: string; retryAfter: string | undefined }>((done, failed) => {
      const take = async (answer: IncomingMessage) => {
        const text = Buffer.concat(await answer.toArray()).toString()
        done({ status: answer.statusCode ?? 0, text, retryAfter: answer.headers['retry-after'] })
      }
      const headers = { authorization: `Bearer ${token}` }
      request({ host: '127.0.0.1', port, path, method, headers, agent }, (answer) => void take(answer))
        .on('error', failed)
        .end(body === undefined ? undefined : JSON.stringify(body))
    })
  const report = (pod: string) =>
    send('POST', '/v1/heartbeat', tokenOf(pod), {
      ...{ schema: 1, state: 'Loaded', failures: [], failed: [], pipelines: {} },
    })
  return {
    ...{ kube, fleet, send, report, lines, reviews, metrics },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

afterEach(() => void vi.useRealTimers())

const names = (prefix: string, count: number) => Array.from({ length: count }, (_, index) => `${prefix}-${index}`)

test.each(['500', '429', 'hangs', 'cut off'] as const)(
  'known agents stay accepted, and new ones do not use up the requests, while reviews have trouble: %s',
  async (trouble) => {
    // The clock of tokens and limits; connections and the election use others.
    vi.useFakeTimers({ toFake: ['performance'] })
    const [known, added] = [names('known', 1000), names('added', 300)]
    await using api = await cluster()
    await using system = await operator(api, [...known, ...added])
    const identity = 'operator@127.0.0.1:1'
    let isLost = false
    await using election = new LeaderElection({
      ...{ connection: api.connection, namespace: 'system', name: 'operator', identity },
      ...{ logger: createLogger({ level: 'silent', format: 'json' }), onLost: () => (isLost = true) },
      ...{ leaseMs: 600_000, renewDeadlineMs: 300_000, retryMs: 100 },
    })
    expect(await election.elected(AbortSignal.timeout(60_000))).toBe(true)
    const statuses = async (pods: readonly string[]) =>
      new Set((await Promise.all(pods.map(system.report))).map(({ status }) => status))
    expect(await statuses(known)).toEqual(new Set([200]))
    expect(api.reviews()).toBe(1000)

    api.set(trouble)
    // The reviews of all agents are over.
    vi.advanceTimersByTime(700_000)
    // The first ones meet the trouble; with requests that hang, that takes until their time limit.
    await Promise.all(known.slice(0, 4).map(system.report))
    const before = api.reviews()
    expect(await statuses(known)).toEqual(new Set([200]))
    for (const pod of known) expect(system.fleet.report('system/node', pod)?.at).toBe(system.fleet.now())
    const refused = await Promise.all(added.map(system.report))
    expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([503]))
    expect(refused.every(({ retryAfter }) => Number(retryAfter) > 0)).toBe(true)
    expect(api.reviews() - before, 'reviews of 1,300 agents').toBeLessThanOrEqual(8)
    expect(await system.kube.request('GET', '/version')).toEqual({})
    const top = await system.send('GET', '/v1/top?namespace=shop', 'a-user')
    expect(top).toMatchObject({ status: 503, text: expect.stringMatching(/API server does not answer the reviews/) })
    expect(system.reviews.problem).toMatch(/^The API server (does not answer reviews|answers reviews with status \d+)$/)
    expect(system.lines.filter((line) => line.startsWith('warn: '))).toEqual([
      expect.stringMatching(/^warn: The API server does not answer reviews; the operator rejects/),
    ])
    expect(await system.metrics.metrics()).toMatch(/penstock_reviews_total\{review="token",result="failed"\} \d+/)
    const renewed = api.renewals()
    await vi.waitFor(() => expect(api.renewals()).toBeGreaterThan(renewed), 60_000)
    expect([election.leads, isLost]).toEqual([true, false])

    api.set('none')
    vi.advanceTimersByTime(60_000)
    expect(await statuses([...known, ...added])).toEqual(new Set([200]))
    expect(system.reviews.problem).toBeUndefined()
    expect(system.lines).toContainEqual(expect.stringMatching(/^info: .*The API server answers reviews again/))
  },
  300_000,
)
