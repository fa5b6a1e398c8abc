// Runs the real process twice: an agent that cannot deliver leaves events in its buffer, and a later one delivers them without
// reading.

import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { inspectBuffer } from '../buffers/disk/inspect.ts'
import { bufferFolder } from '../buffers/folder.ts'
import { bundleFiles, project, type TestBundle } from '../testing/bundle.ts'

const main = fileURLToPath(new URL('../main.ts', import.meta.url))

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-drain-'))
  for (const name of ['bundle', 'secrets', 'data']) mkdirSync(join(folder, name))
  project(join(folder, 'secrets'), {})
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

/** A log store that refuses all requests until it is opened. */
async function store() {
  const lines: string[] = []
  const state = { open: false, refused: 0 }
  const server = createServer((request, response) => {
    let text = ''
    request.on('data', (part) => {
      text += part
    })
    request.on('end', () => {
      if (state.open) {
        const { streams } = JSON.parse(text) as { streams: { values: [string, string][] }[] }
        lines.push(...streams.flatMap(({ values }) => values.map(([, line]) => line)))
      } else state.refused++
      response.writeHead(state.open ? 204 : 503).end()
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return {
    state,
    lines,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}

const bundle = (endpoint: string, name = 'a'): TestBundle => ({
  pipelines: { [`shop/${name}`]: { uid: name, generation: 1, hash: `sha256:${name}` } },
  sources: { [`shop/${name}/in`]: { type: 'file', include: [join(folder, 'in.log')], read_from: 'beginning' } },
  sinks: {
    [`shop/${name}/out`]: {
      type: 'log_aggregator',
      inputs: [`shop/${name}/in`],
      endpoint,
      labels: { app: 'x' },
      encoding: { codec: 'text' },
      batch: { timeout_secs: 0.1, max_events: 10 },
      request: { retry_initial_backoff_secs: 1, retry_max_duration_secs: 1 },
      healthcheck: { enabled: false },
      buffer: { type: 'disk', max_size: 268_435_488 },
    },
  },
})

function start(content: TestBundle, ...args: readonly string[]) {
  project(join(folder, 'bundle'), bundleFiles(content).files)
  const child = spawn(
    process.execPath,
    [
      ...['--conditions=source', main, '--bundle', join(folder, 'bundle'), '--secrets', join(folder, 'secrets')],
      ...['--data-dir', join(folder, 'data'), '--api-address', '', ...args],
    ],
    { env: { ...process.env, AGENT_SELF_NODE_NAME: 'node-1' } },
  )
  let output = ''
  child.stderr.on('data', (text) => {
    output += text
  })
  const closed = once(child, 'close').then(([code]) => code as number | null)
  return {
    output: () => output,
    closed,
    async [Symbol.asyncDispose]() {
      child.kill('SIGKILL')
      await closed
    },
  }
}

const eventually = (check: () => void) => vi.waitFor(check, { timeout: 40_000, interval: 50 })
const numbers = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => `line ${from + index}`)
const write = (lines: readonly string[]) =>
  appendFileSync(join(folder, 'in.log'), lines.map((line) => `${line}\n`).join(''))

async function leaveEvents(endpoint: string, refused: () => number) {
  write(numbers(0, 200))
  await using _ = start(bundle(endpoint)) // killed at the end, because a graceful stop would keep retrying
  await eventually(() => expect(refused()).toBeGreaterThan(0))
  // The sink may not have written everything it received: until then the file must deliver it again.
  await eventually(() => expect(inspectBuffer(bufferFolder(join(folder, 'data'), 'shop/a/out')).lag_events).toBe(200))
}

test('delivers the events that a former agent left in its buffer, reads nothing else, and ends', async () => {
  await using destination = await store()
  const { state, lines, url } = destination
  await leaveEvents(url, () => state.refused)
  expect(lines).toEqual([])
  write(numbers(200, 300)) // for the next reader

  const before = state.refused
  await using drain = start(bundle(url), '--drain')
  await eventually(() => expect(state.refused).toBeGreaterThan(before)) // it waits for the destination
  state.open = true
  expect(await drain.closed, drain.output()).toBe(0)
  expect([...new Set(lines)].sort()).toEqual(numbers(0, 200).sort())
  expect(drain.output()).toContain('All buffers are empty')

  // A second run has no work left.
  const count = lines.length
  await using again = start(bundle(url), '--drain')
  expect(await again.closed, again.output()).toBe(0)
  expect(lines).toHaveLength(count)
})

test('a buffer whose sink was removed from all Pipelines is reported and kept', async () => {
  await using destination = await store()
  const { state, url } = destination
  await leaveEvents(url, () => state.refused)
  state.open = true
  await using drain = start(bundle(url, 'other'), '--drain')
  expect(await drain.closed, drain.output()).toBe(69)
  expect(drain.output()).toMatch(/removed Pipelines: shop\/a\/out/)
  const [kept] = readdirSync(join(folder, 'data/buffer/v2')).filter((name) => name.includes('shop%2Fa'))
  expect(kept).toBeDefined()
})

test('without a bundle, draining has no destination', async () => {
  const child = spawn(process.execPath, ['--conditions=source', main, '--drain'], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let output = ''
  child.stderr.on('data', (text) => {
    output += text
  })
  const [code] = await once(child, 'close')
  expect(code).toBe(64)
  expect(output).toContain('--drain needs --bundle')
  expect(existsSync(join(folder, 'data/buffer'))).toBe(false)
})
