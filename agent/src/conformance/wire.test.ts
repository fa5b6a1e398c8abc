import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { run } from './wire.ts'

let dir = ''

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'penstock-wire-'))
})

afterEach(async () => {
  vi.restoreAllMocks()
  await rm(dir, { recursive: true, force: true })
})

/** Runs one case, and returns the output. */
async function ran(form: object): Promise<{ passed: number; failed: number; printed: string }> {
  await writeFile(join(dir, 'made.jsonl'), `${JSON.stringify({ id: 'made', ...form })}\n`)
  const printed: string[] = []
  vi.spyOn(process.stdout, 'write').mockImplementation(((text: unknown) => {
    printed.push(String(text))
    return true
  }) as never)
  const score = await run(dir, ['made'])
  return { ...score, printed: printed.join('') }
}

const toConsole = {
  type: 'codec',
  options: { encoding: { codec: 'json' } },
  input: [{ log: { message: 'a', timestamp: '2026-01-01T00:00:00Z' } }, { log: { n: 1 } }],
}

test.each([
  [['{"message":"a","timestamp":"2026-01-01T00:00:00Z"}', '{"n":1}'], 1],
  [['{"timestamp":"2026-01-01T00:00:00Z","message":"a"}', '{"n":1}'], 1],
  [['{"message":"a","timestamp":"2026-01-01T00:00:00Z"}', '{"n":1.0}'], 0],
  [['{"message":"a","timestamp":"2026-01-01T00:00:00Z"}'], 0],
  [['{"n":1}', '{"message":"a","timestamp":"2026-01-01T00:00:00Z"}'], 0],
  [['{"message":"a","timestamp":"2026-01-01T00:00:00Z"}', '{"n":1}', ''], 0],
])('printed lines are compared by value and order (%#)', async (stdout, passed) => {
  const score = await ran({ ...toConsole, stdout })
  expect(score.printed.includes('FAILED made')).toBe(passed === 0)
  expect(score).toMatchObject({ passed, failed: 1 - passed })
})

const toHttp = {
  type: 'search_engine',
  options: { endpoints: ['{E}/base'], api_version: 'v8', bulk: { index: 'i' } },
  input: [{ log: { message: 'a' } }, { log: { message: 'b' } }],
  healthcheck: { method: 'GET', path: '/base/_cluster/health' },
}
const action = '{"index":{"_index":"i"}}'
const request = {
  method: 'POST',
  path: '/base/_bulk?timeout=60s',
  headers: { 'content-type': 'application/x-ndjson' },
  body: { text: `${action}\n{"message":"a"}\n${action}\n{"message":"b"}\n` },
}

test('a request that equals the recorded one passes', async () => {
  const score = await ran({ ...toHttp, requests: [request] })
  expect(score.printed).toBe('made: 1 of 1\n')
})

test('recorded requests to the same address are compared as one', async () => {
  const requests = ['a', 'b'].map((message) => ({
    ...request,
    body: { text: `${action}\n{"message":"${message}"}\n` },
  }))
  expect(await ran({ ...toHttp, requests })).toMatchObject({ passed: 1 })
})

test.each<[string, object]>([
  ['another value', { requests: [{ ...request, body: { text: request.body.text.replace('"a"', '"x"') } }] }],
  [
    'another order',
    { requests: [{ ...request, body: { text: `${action}\n{"message":"b"}\n${action}\n{"message":"a"}\n` } }] },
  ],
  ['an additional item', { requests: [{ ...request, body: { text: `${request.body.text}${action}\n` } }] }],
  ['a missing item', { requests: [{ ...request, body: { text: `${action}\n{"message":"a"}\n` } }] }],
  ['another path', { requests: [{ ...request, path: '/_bulk?timeout=60s' }] }],
  ['another query', { requests: [{ ...request, path: '/base/_bulk?timeout=61s' }] }],
  ['another header', { requests: [{ ...request, headers: { 'content-type': 'text/plain' } }] }],
  ['a missing header', { requests: [{ ...request, headers: { 'x-missing': '1' } }] }],
  ['another method', { requests: [{ ...request, method: 'PUT' }] }],
  ['no request at all', { requests: [] }],
  ['an additional request', { requests: [request, { ...request, path: '/other' }] }],
  ['another health check', { requests: [request], healthcheck: { method: 'GET', path: '/health' } }],
])('%s fails', async (_name, changes) => {
  const score = await ran({ ...toHttp, ...changes })
  expect(score).toMatchObject({ passed: 0, failed: 1 })
})

test('an unknown sink fails with a message', async () => {
  const score = await ran({ ...toHttp, type: 'nothing', requests: [request] })
  expect(score.printed).toContain('There is no sink of type nothing.')
})
