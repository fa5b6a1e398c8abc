// The reflector with a server on loopback that responds like real ones at bad moments; e2e/operator runs it with a real one.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Transport } from '@penstock/agent/kube'
import { type Logger, silentLogger } from '@penstock/agent/telemetry'
import { expect, test, vi } from 'vitest'
import type { KubeObject } from '../api/object.ts'
import type { Sender } from './client.ts'
import { Reflector, type ReflectorOptions } from './reflector.ts'
import { podType } from './resource-types.ts'
import { Store } from './store.ts'

// The waits between attempts are real, and the machine may be busy.

const pod = (name: string, version: number, labels = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name, namespace: 'shop', uid: `uid-${name}`, resourceVersion: String(version), labels },
})
const event = (type: string, object: object) => `${JSON.stringify({ type, object })}\n`
const bookmark = (version: number, end = false) =>
  event('BOOKMARK', {
    metadata: { resourceVersion: String(version), annotations: end ? { 'k8s.io/initial-events-end': 'true' } : {} },
  })
const failure = (code: number, reason: string) => JSON.stringify({ kind: 'Status', code, reason, message: 'no' })

type Answer = (request: URL, response: ServerResponse) => void

/** A server that responds to each request with the next response, and a reflector that follows it. */
async function following(answers: readonly Answer[], options: Partial<ReflectorOptions<KubeObject>> = {}) {
  const asked: URL[] = []
  const server = createServer((request: IncomingMessage, response) => {
    const url = new URL(request.url ?? '', 'http://api')
    const answer = answers[asked.length]
    asked.push(url)
    if (answer === undefined)
      response.writeHead(200).flushHeaders() // a watch in which nothing happens
    else answer(url, response)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const transport = new Transport()
  const { port } = server.address() as AddressInfo
  const access = { server: `http://127.0.0.1:${port}`, headers: {}, tls: {} }
  const send: Sender['send'] = (method, path, _, signal) => transport.send(access, { method, path, signal })
  const stop = new AbortController()
  const store = new Store<KubeObject>(podType, [''], silentLogger)
  const seen: string[] = []
  store.subscribe(({ type, object }) => seen.push(`${type} ${object.metadata.name}`))
  const reflector = new Reflector<KubeObject>({
    sender: { send } as Sender,
    type: podType,
    store,
    logger: silentLogger,
    ...options,
  })
  const running = reflector.run(stop.signal)
  return {
    asked,
    store,
    seen,
    reflector,
    async [Symbol.asyncDispose]() {
      stop.abort()
      await running
      transport.close()
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}

const stream =
  (...parts: string[]): Answer =>
  (_, response) => {
    response.writeHead(200).flushHeaders()
    for (const part of parts) response.write(part)
  }
const ended =
  (...parts: string[]): Answer =>
  (_, response) => {
    response.writeHead(200).end(parts.join(''))
  }
const status =
  (code: number, reason: string, headers = {}): Answer =>
  (_, response) => {
    response.writeHead(code, headers).end(failure(code, reason))
  }

test('the first state is streamed, changes follow, and bookmarks advance the version', async () => {
  await using world = await following([
    ended(
      event('ADDED', pod('a', 1)),
      event('ADDED', pod('b', 2)),
      bookmark(5, true),
      event('MODIFIED', pod('a', 6)),
      event('DELETED', pod('b', 7)),
      bookmark(9),
    ),
  ])
  await vi.waitFor(() => expect(world.asked).toHaveLength(2))
  expect(world.seen).toEqual(['added a', 'added b', 'changed a', 'deleted b'])
  expect(world.asked[0]?.searchParams.get('sendInitialEvents')).toBe('true')
  expect(world.asked[1]?.searchParams.get('resourceVersion')).toBe('9')
  expect(Number(world.asked[1]?.searchParams.get('timeoutSeconds'))).toBeGreaterThanOrEqual(300)
})

test('a server without streamed lists is read page by page, or completely if pages have expired', async () => {
  const part = (items: KubeObject[], next?: string) =>
    ended(JSON.stringify({ metadata: { resourceVersion: '4', continue: next }, items }))
  await using world = await following([
    status(422, 'Invalid'),
    part([pod('a', 1)], 'more'),
    status(410, 'Expired'),
    part([pod('a', 1), pod('b', 2)]),
  ])
  await vi.waitFor(() => expect(world.asked).toHaveLength(5))
  expect(world.store.size).toBe(2)
  expect(
    world.asked.slice(1, 4).map((url) => [url.searchParams.get('limit'), url.searchParams.get('continue')]),
  ).toEqual([
    ['500', null],
    ['500', 'more'],
    [null, null],
  ])
  expect(world.asked[4]?.searchParams.get('resourceVersion')).toBe('4')
})

test('an expired version causes a new list; missing objects are reported as deleted', async () => {
  await using world = await following([
    stream(
      event('ADDED', pod('a', 1)),
      event('ADDED', pod('b', 2)),
      bookmark(5, true),
      event('ERROR', { code: 410, reason: 'Expired' }),
    ),
    stream(event('ADDED', pod('b', 8)), bookmark(9, true)),
  ])
  await vi.waitFor(() => expect(world.seen).toEqual(['added a', 'added b', 'changed b', 'deleted a']))
  // The newest state, and no older one.
  expect(world.asked[1]?.searchParams.get('resourceVersion')).toBeNull()
  expect(world.reflector.liveness.relists).toBe(1)
})

test.each([
  ['a line that is not JSON', '{"type":"ADDED",\n'],
  ['a line that is too long', `${'x'.repeat(3000)}`],
  ['an event of an unknown kind', event('SURPRISE', pod('a', 1))],
])('%s leads to a new list', async (_, line) => {
  await using world = await following(
    [
      stream(event('ADDED', pod('a', 1)), bookmark(5, true), line),
      stream(event('ADDED', pod('a', 1)), bookmark(6, true)),
    ],
    { maxLineBytes: 2000 },
  )
  await vi.waitFor(() => expect(world.reflector.liveness.relists).toBe(1), { timeout: 15_000 })
  await vi.waitFor(() => expect(world.asked[1]?.searchParams.get('sendInitialEvents')).toBe('true'))
  expect(world.seen).toEqual(['added a'])
})

const page = (items: KubeObject[], resourceVersion = '4') =>
  ended(JSON.stringify({ metadata: { resourceVersion }, items }))

test.each([
  ['never ends', stream(event('ADDED', pod('a', 1)))],
  ['is cut off', ended(event('ADDED', pod('a', 1)))],
])('a streamed list that %s is read page by page, and the next one is streamed again', async (_, first) => {
  await using world = await following(
    [first, page([pod('a', 1), pod('b', 2)]), ended(event('ERROR', { code: 410 })), ended(bookmark(9, true))],
    { watchSeconds: () => 0, silenceSeconds: 0.3 },
  )
  await vi.waitFor(() => expect(world.asked.length).toBeGreaterThanOrEqual(4), { timeout: 25_000 })
  const streamed = world.asked.slice(0, 4).map((url) => url.searchParams.get('sendInitialEvents'))
  expect(streamed).toEqual(['true', null, null, 'true'])
  expect(world.seen).toEqual(['added a', 'added b', 'deleted a', 'deleted b'])
})

test('a version that the server does not have yet, because it was restored, causes a new list', async () => {
  const details = { causes: [{ reason: 'ResourceVersionTooLarge' }], retryAfterSeconds: 0 }
  const future: Answer = (_, response) =>
    void response.writeHead(504).end(JSON.stringify({ code: 504, reason: 'Timeout', details }))
  await using world = await following([
    ended(event('ADDED', pod('a', 90)), bookmark(99, true)),
    future,
    stream(event('ADDED', pod('b', 3)), bookmark(5, true)),
  ])
  await vi.waitFor(() => expect(world.seen).toEqual(['added a', 'added b', 'deleted a']), { timeout: 15_000 })
  expect(world.asked[2]?.searchParams.get('resourceVersion')).toBeNull()
})

test.each([
  ['ends every watch at once', ended(), ended()],
  ['sends the same bookmark and ends', ended(bookmark(5)), ended(bookmark(5))],
  ['expires every version at once', ended(event('ERROR', { code: 410, reason: 'Expired' })), ended(bookmark(5, true))],
  ['rejects every watch as expired', status(410, 'Expired'), ended(bookmark(5, true))],
])('a server that %s does not receive requests in a tight loop', async (_name, odd, even) => {
  vi.spyOn(Math, 'random').mockReturnValue(0.5)
  const times: number[] = []
  const noted =
    (answer: Answer): Answer =>
    (url, response) => {
      times.push(performance.now())
      answer(url, response)
    }
  const answers = Array.from({ length: 100 }, (_, index) => noted(index % 2 === 0 ? odd : even))
  await using _server = await following([ended(bookmark(5, true)), ...answers])
  await vi.waitFor(() => expect(times.length).toBeGreaterThanOrEqual(5), { timeout: 25_000 })
  vi.restoreAllMocks()
  expect((times[4] as number) - (times[0] as number), 'at least the first two waits').toBeGreaterThanOrEqual(1_100)
})

test('waits as long as the server requests', async () => {
  const times: number[] = []
  const note =
    (answer: Answer): Answer =>
    (url, response) => {
      times.push(performance.now())
      answer(url, response)
    }
  await using world = await following([
    note(status(429, 'TooManyRequests', { 'retry-after': '2' })),
    note(stream(event('ADDED', pod('a', 1)), bookmark(5, true))),
  ])
  await vi.waitFor(() => expect(world.store.synced).toBe(true), { timeout: 15_000 })
  expect((times[1] as number) - (times[0] as number)).toBeGreaterThanOrEqual(1_900)
})

test('a watch that is silent for too long is reopened at its version', async () => {
  await using world = await following([ended(event('ADDED', pod('a', 1)), bookmark(5, true)), stream()], {
    watchSeconds: () => 0,
    silenceSeconds: 0.3,
  })
  await vi.waitFor(() => expect(world.asked.length).toBeGreaterThanOrEqual(3), { timeout: 15_000 })
  expect(world.asked[2]?.searchParams.get('resourceVersion')).toBe('5')
})

test('a failing handler is called again with the next state, and the others are not affected', async () => {
  await using world = await following([
    stream(event('ADDED', pod('a', 1)), bookmark(5, true), event('MODIFIED', pod('a', 6))),
    stream(event('ADDED', pod('a', 6)), bookmark(7, true), event('MODIFIED', pod('a', 8))),
  ])
  let calls = 0
  world.store.subscribe(() => {
    calls++
    if (calls === 2) throw new Error('once')
  })
  await vi.waitFor(() => expect(world.seen).toEqual(['added a', 'changed a', 'changed a']), { timeout: 15_000 })
})

test('an unknown kind of the API server is logged, and the reflector waits for it', async () => {
  const missing: Answer = (_, response) => void response.writeHead(404).end('404 page not found\n')
  const warnings: object[] = []
  const logger = { ...silentLogger, warn: (facts: object) => warnings.push(facts) } as unknown as Logger
  await using world = await following([missing, missing, stream(event('ADDED', pod('a', 1)), bookmark(5, true))], {
    logger,
  })
  await vi.waitFor(() => expect(world.seen).toEqual(['added a']), { timeout: 25_000 })
  expect(world.asked).toHaveLength(3)
  expect(warnings).toHaveLength(2)
  for (const facts of warnings) {
    expect(facts).toMatchObject({ resource: 'pods' })
    expect(facts).toHaveProperty('wait_ms')
    expect(JSON.stringify(facts)).toContain('404')
  }
})
