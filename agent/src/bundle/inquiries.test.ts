// The agent's work while an observer watches, and the end of that work with the observer, tested against an operator on
// loopback.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { loadConfigObject } from '../config/load.ts'
import { silentLogger } from '../telemetry/logger.ts'
import { Metrics } from '../telemetry/metrics.ts'
import { Topology } from '../topology/run.ts'
import { type Inquiry, InquiryAnswers } from './inquiries.ts'

const demo = (line: string) => ({ type: 'demo_logs', format: 'shuffle', lines: [line], interval: 0.01 })
const config = {
  sources: {
    'shop/one/in': demo('of one'),
    'shop/one-more/in': demo('of another'),
    'shop/large/in': demo('x'.repeat(70_000)),
  },
  transforms: { 'shop/one/mark': { type: 'remap', inputs: ['shop/one/in'], source: '.mark = true' } },
  sinks: {
    'shop/one/out': { type: 'blackhole', inputs: ['shop/one/mark'] },
    'shop/rest/out': { type: 'blackhole', inputs: ['shop/one-more/in', 'shop/large/in'] },
  },
}

/** An operator with configurable inquiries, which accepts answers until the test stops it. */
async function lookedAt() {
  const stack = new AsyncDisposableStack()
  const answers: { readonly path: string; readonly text: string; readonly authorization: string | undefined }[] = []
  const exchange = { wanted: true, serving: [] as readonly string[] }
  let ask: readonly Inquiry[] | undefined
  let wake = () => {}
  const server = createServer(async (request, response) => {
    let text = ''
    for await (const part of request) text += part
    if (request.url !== '/v1/inquiries') {
      answers.push({ path: request.url ?? '', text, authorization: request.headers.authorization })
      response.writeHead(exchange.wanted ? 200 : 410).end('{}')
      return
    }
    exchange.serving = JSON.parse(text).serving
    while (ask === undefined) await new Promise<void>((done) => (wake = done))
    response.writeHead(200).end(JSON.stringify({ inquiries: ask }))
    ask = undefined
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  stack.defer(() => {
    server.closeAllConnections()
    server.close()
  })
  const folder = mkdtempSync(join(tmpdir(), 'penstock-inquiries-'))
  stack.defer(() => rmSync(folder, { recursive: true }))
  writeFileSync(join(folder, 'token'), 'of-the-pod\n')
  const loaded = loadConfigObject(config)
  if (!loaded.ok) throw new Error(loaded.problems.map(({ message }) => message).join('\n'))
  const topology = await Topology.start(loaded.config, { logger: silentLogger, metrics: new Metrics() })
  stack.defer(() => topology.stop(0).then(() => {}))
  const inquiries = new InquiryAnswers({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    tokenFile: join(folder, 'token'),
    caFile: join(folder, 'none'),
    logger: silentLogger,
    topology,
    figures: () => ({
      'shop/one': {
        eventsIn: 7,
        eventsOut: 5,
        dropped: 1,
        errors: 2,
        bufferedEvents: 3,
        bufferedBytes: 4,
        lagSeconds: 0,
      },
      'shop/other': {
        eventsIn: 1,
        eventsOut: 1,
        dropped: 0,
        errors: 0,
        bufferedEvents: 0,
        bufferedBytes: 0,
        lagSeconds: 0,
      },
    }),
  })
  stack.defer(() => inquiries.stop())
  return {
    answers,
    exchange,
    ask(...inquiry: Inquiry[]) {
      ask = inquiry
      wake()
    },
    lines: () =>
      answers.flatMap(({ text }) => text.split('\n').filter((line) => line !== '')).map((line) => JSON.parse(line)),
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

const tap = (id: string, pipeline: string, more: object = {}): Inquiry => ({
  ...{ kind: 'tap', id, pipeline, limit: 3, intervalMs: 100, forMs: 60_000 },
  ...more,
})

test('a tap sends events of one pipeline, in samples of a fixed size, until its reader disconnects', async () => {
  await using looked = await lookedAt()
  looked.ask(tap('t1', 'shop/one'))
  await vi.waitFor(() => expect(looked.lines().length).toBeGreaterThan(5), 30_000)
  // It names the inquiries that it answers in its next request.
  await vi.waitFor(() => expect(looked.exchange.serving).toEqual(['t1']), 30_000)
  for (const { path, text, authorization } of looked.answers) {
    expect([path, authorization]).toEqual(['/v1/inquiries/t1', 'Bearer of-the-pod'])
    expect(text.split('\n').length - 1).toBeLessThanOrEqual(3)
  }
  for (const { component_id: id, event } of looked.lines()) {
    expect(['shop/one/in', 'shop/one/mark']).toContain(id)
    expect(event.message).toBe('of one')
  }
  looked.exchange.wanted = false
  // The agent learns this from the response to its next answer, and confirms it with its next request.
  await vi.waitFor(() => {
    looked.ask()
    expect(looked.exchange.serving).toEqual([])
  }, 30_000)
  const answered = looked.answers.length
  looked.ask(tap('t2', 'shop/one', { component: { name: 'out', kind: 'sink' } }))
  await vi.waitFor(() => expect(looked.answers.at(-1)?.path).toBe('/v1/inquiries/t2'), 30_000)
  expect(looked.answers.slice(answered).map(({ path }) => path)).not.toContain('/v1/inquiries/t1')
})

test('an event that is too large is skipped and counted', async () => {
  await using looked = await lookedAt()
  looked.ask(tap('t', 'shop/large'))
  await vi.waitFor(() => expect(looked.lines()).not.toEqual([]), 30_000)
  for (const line of looked.lines()) expect(line).toEqual({ kind: 'skipped', events: expect.any(Number) })
})

test('figures cover the requested pipelines, with the age of the unread lines', async () => {
  await using looked = await lookedAt()
  looked.ask({ kind: 'figures', id: 'f', pipelines: ['shop/one'], intervalMs: 100, forMs: 60_000 })
  await vi.waitFor(() => expect(looked.lines().at(-1)?.pipelines['shop/one']?.lagSeconds).toBeDefined(), 30_000)
  const { pipelines } = looked.lines().at(-1)
  expect(pipelines).toEqual({
    'shop/one': {
      ...{ eventsIn: 7, eventsOut: 5, dropped: 1, errors: 2, bufferedEvents: 3, bufferedBytes: 4 },
      lagSeconds: expect.any(Number),
    },
  })
  expect(pipelines['shop/one'].lagSeconds).toBeLessThan(60)
})
