// How long `penstock why` waits for the operator and then for the agent of the node. The test controls time.

import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { run } from './why.ts'

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

const apiVersion = 'penstock.dev/v1alpha1'
const objects: Record<string, object> = {
  'pods/web': {
    metadata: { name: 'web', namespace: 'shop', uid: 'u1' },
    spec: { nodeName: 'node-1', containers: [{ name: 'main' }] },
  },
  'namespaces/shop': { metadata: { name: 'shop' } },
}
const lists: Record<string, readonly object[]> = {
  agents: [
    {
      apiVersion,
      kind: 'Agent',
      metadata: { name: 'node', namespace: 'penstock-system' },
      spec: { mode: 'Node', pipelines: { namespaceSelector: {}, clusterPipelines: { selector: {} } } },
    },
  ],
  pipelines: [
    {
      apiVersion,
      kind: 'Pipeline',
      metadata: { name: 'web', namespace: 'shop', uid: 'u2' },
      spec: {
        sources: [{ name: 'app', type: 'orchestrator_logs', config: {} }],
        sinks: [{ name: 'out', type: 'blackhole', config: {} }],
      },
    },
  ],
}

/** Waits until pending work of this process is done, without advancing the clock. */
const turn = () => new Promise((done) => setImmediate(done))
async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await turn()
}

const row = (answered: number, positions: readonly object[]) => ({
  ...{ kind: 'Pipeline', namespace: 'shop', name: 'web' },
  agents: { asked: 1, answered },
  positions,
})
const figures = (complete: boolean, of: object) => ({ kind: 'figures', at: '', complete, pipelines: [of] })
const greeting = { kind: 'notification', message: 'wait' }
const nothingYet = figures(false, row(0, []))
const answer = figures(
  true,
  row(1, [{ container: 'main', file: '/l/0.log', size: 90, read: 80, delivered: 70, lagSeconds: 0, dropped: 0 }]),
)

/** Runs `penstock why web` in a cluster whose operator accepts the request, and sends the answers of the test. */
async function asking(more: Record<string, readonly object[]> = {}) {
  const stack = new AsyncDisposableStack()
  const folder = stack.use(await mkdtempDisposable(join(tmpdir(), 'penstock-why-')))
  const { promise: asked, resolve: ask } = Promise.withResolvers<ServerResponse>()
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://cluster')
    if (pathname.endsWith('/v1/top')) return ask(response)
    const [resource = '', name = ''] = pathname.split('/').slice(-2)
    const body = objects[`${resource}/${name}`] ?? { metadata: {}, items: { ...lists, ...more }[name] ?? [] }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(body))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  stack.defer(() => void server.close())
  stack.defer(() => server.closeAllConnections())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const kubeconfig = join(folder.path, 'kubeconfig')
  const config = {
    'current-context': 'one',
    contexts: [{ name: 'one', context: { cluster: 'one', user: 'one', namespace: 'shop' } }],
    clusters: [{ name: 'one', cluster: { server: url } }],
    users: [{ name: 'one', user: { token: 't' } }],
  }
  await writeFile(kubeconfig, JSON.stringify(config))
  let text = ''
  vi.spyOn(console, 'log').mockImplementation((line) => {
    text += `${line}\n`
  })
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  let ended = false
  const running = run(['web', '--kubeconfig', kubeconfig]).finally(() => {
    ended = true
  })
  const response = await Promise.race([asked, running.then(() => Promise.reject(new Error(`It has ended: ${text}`)))])
  const waits = vi.spyOn(globalThis, 'setTimeout')
  return {
    /** @param counts whether the command starts to wait again after it; the next calls wait for that */
    async says(line: object, counts = false) {
      const before = waits.mock.calls.length
      response.write(`${JSON.stringify(line)}\n`)
      if (counts) await until(() => waits.mock.calls.length > before)
    },
    begins: () => response.writeHead(200, { 'content-type': 'application/x-ndjson' }).flushHeaders(),
    /** Whether it has ended after this time. */
    async passes(ms: number): Promise<boolean> {
      await vi.advanceTimersByTimeAsync(ms)
      for (let turns = 0; turns < 100 && !ended; turns++) await turn()
      return ended
    },
    async text(): Promise<string> {
      await running
      return text.replaceAll(/\s+/g, ' ')
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

test('waits half a minute for a silent operator', async () => {
  await using why = await asking()
  expect(await why.passes(29_999)).toBe(false)
  await why.passes(1)
  expect(await why.text()).toContain('the operator has not answered')
})

test('waits only once for an operator that reports neither Pipelines nor ClusterPipelines', async () => {
  const [pipeline] = lists['pipelines'] as readonly [{ readonly spec: object }]
  const all = { ...pipeline, kind: 'ClusterPipeline', metadata: { name: 'all', uid: 'u3' } }
  await using why = await asking({ clusterpipelines: [all] })
  expect(await why.passes(29_999)).toBe(false)
  await why.passes(1)
  expect((await why.text()).match(/the operator has not answered/g)).toHaveLength(2)
})

test('does not abandon a slow operator', async () => {
  await using why = await asking()
  expect(await why.passes(29_000)).toBe(false)
  why.begins()
  await why.says(greeting, true)
  expect(await why.passes(5_999)).toBe(false)
  await why.says(answer)
  expect(await why.text()).toContain('80 of 90 bytes read')
})

test('waits only as long as an agent counts the lines of files that it does not read', async () => {
  const left = { container: 'main', file: '/l/0.log.1.gz', size: 77, read: 0, delivered: 0, lagSeconds: 0, dropped: 0 }
  const counting = figures(true, row(1, [{ ...left, compressed: {} }]))
  for (const isCounted of [true, false]) {
    await using why = await asking()
    why.begins()
    await why.says(greeting, true)
    await why.says(counting)
    expect(await why.passes(5_999)).toBe(false)
    if (isCounted) await why.says(figures(true, row(1, [{ ...left, compressed: { lines: 5 } }])))
    else await why.passes(1)
    expect(await why.text()).toContain(`0.log.1.gz: ${isCounted ? '5 lines' : '77 bytes'} not read`)
    vi.useRealTimers()
    vi.restoreAllMocks()
  }
})

test.each([
  { what: 'is not heard of', lines: [], says: 'the agent of its node has not answered' },
  { what: 'is only known to be asked', lines: [nothingYet, nothingYet], says: 'no agent of its node has answered' },
])('waits six seconds for an agent that $what, for any number of messages of the operator', async ({ lines, says }) => {
  await using why = await asking()
  why.begins()
  await why.says(greeting, true)
  expect(await why.passes(3_000)).toBe(false)
  for (const line of lines) await why.says(line)
  expect(await why.passes(2_999)).toBe(false)
  await why.passes(1)
  expect(await why.text()).toContain(says)
})
