// `penstock-agent top` with a double of the agent's API, in a pipe and in a terminal created by `script`.

import { spawn, spawnSync } from 'node:child_process'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const main = join(import.meta.dirname, '..', 'main.ts')
const noTerminals = spawnSync('script', ['--version']).status !== 0

const component = (component_id: string, component_kind: string, component_type: string, errors_total = 0) => ({
  ...{ component_id, component_kind, component_type, errors_total },
  ...{ received_events_total: 12_345, sent_events_total: 12_345, discarded_events_total: 0, filtered_events_total: 0 },
  ...{
    received_bytes_total: 1_234_567,
    sent_bytes_total: 1_234_567,
    sent_event_bytes_total: 1_234_567,
    utilization: 0.5,
  },
  ...(component_kind === 'sink' ? { buffer_events: 41_877 } : {}),
})

interface Calling {
  /** Width of the terminal; undefined: a pipe. */
  readonly columns?: number
  readonly args?: readonly string[]
  readonly env?: NodeJS.ProcessEnv
  /** The key pressed once a text has appeared twice; Ctrl-C if not given. */
  readonly press?: string
}

/** The output of `top` until it exits, or is ended because a text has appeared twice. */
async function top(
  components: readonly object[],
  until: string,
  { columns, args = [], env: more = {}, press = '\u0003' }: Calling = {},
): Promise<string> {
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ version: '1.2.3', hostname: 'laptop', uptime_seconds: 7, components }))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const command = [process.execPath, '--conditions=source', main, 'top', '--url', url, '--interval', '100', ...args]
  const words = command.map((word) => `'${word}'`).join(' ')
  const { NO_COLOR: _, FORCE_COLOR: _1, CI: _2, ...environment } = process.env
  const env = { ...environment, TERM: 'xterm-256color', ...more }
  const child =
    columns === undefined
      ? spawn(process.execPath, command.slice(1), { env })
      : spawn('script', ['-qefc', `stty cols ${columns} -echoctl; exec ${words}`, '/dev/null'], { env })
  let shown = ''
  let isEnded = false
  child.stdin.on('error', () => {})
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    shown += text
    if (isEnded || shown.split(until).length < 3) return
    isEnded = true
    if (columns === undefined) child.kill('SIGINT')
    else child.stdin.write(press)
  })
  try {
    await new Promise((done) => child.on('close', done))
    return shown
  } finally {
    server.close()
    server.closeAllConnections()
  }
}

const pipeline = [
  component('shop/checkout/pods', 'source', 'orchestrator_logs'),
  component('shop/checkout/search', 'sink', 'search_engine', 3),
]

test.skipIf(noTerminals)('on a terminal, no line is wider than it, and one Pipeline is named once', async () => {
  const shown = await top(pipeline, '41877', { columns: 80 })
  expect(shown.startsWith('\u001b[?1049h')).toBe(true)
  expect(shown.endsWith('\u001b[?1049l')).toBe(true)
  const [, look = ''] = shown.split('\u001b[H\u001b[2J')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters
  const lines = look.replace(/\u001b\[\d+m/g, '').split('\r\n')
  expect(lines[0]).toBe('penstock-agent 1.2.3 on laptop, shop/checkout, up 7 s')
  expect(lines[1]).toMatch(
    /^ID +KIND +IN +IN\/s +OUT +OUT\/s +(?:BYTES +)?ERRORS +FILTERED +LOST(?: +BUSY)?(?: +BUFFER)?$/,
  )
  expect(lines[2]).toMatch(/^pods +source +12345 /)
  for (const line of lines) expect(line.length, line).toBeLessThanOrEqual(80)
  expect(look).toContain('\u001b[31msearch ')
})

test.skipIf(noTerminals)('components of several Pipelines keep their whole ids', async () => {
  const shown = await top([...pipeline, component('blog/all/pods', 'source', 'orchestrator_logs')], '41877', {
    columns: 120,
  })
  expect(shown).toContain('shop/checkout/pods')
  expect(shown).toContain('blog/all/pods')
})

test('in a pipe, each screen is complete', async () => {
  const shown = await top(pipeline, '41877')
  expect(shown).toMatch(/^ID +KIND +TYPE +IN +IN\/s +OUT +OUT\/s +BYTES +ERRORS +FILTERED +LOST +BUSY +BUFFER$/m)
  expect(shown).toMatch(/^shop\/checkout\/search +sink +search_engine +12345 .* 41877$/m)
  expect(shown).not.toContain('\u001b')
})

test.skipIf(noTerminals)('q quits, and the terminal is restored', async () => {
  const shown = await top(pipeline, '41877', { columns: 80, press: 'q' })
  expect(shown).toContain('q: quit')
  expect(shown.endsWith('\u001b[?25h\u001b[?1049l')).toBe(true)
})

test.skipIf(noTerminals)('a terminal that cannot be redrawn gets plain lines', async () => {
  const shown = await top(pipeline, '41877', { columns: 80, env: { TERM: 'dumb' } })
  expect(shown).not.toContain('\u001b')
})

test('--once prints one table, and JSON has a line for each measurement, both with rates', async () => {
  const table = await top(pipeline, 'nothing', { args: ['--once'] })
  expect(table.match(/^ID /gm)).toHaveLength(1)
  expect(table).toMatch(/^shop\/checkout\/pods +source +orchestrator_logs +12345 +0 /m)
  const line = await top(pipeline, 'nothing', { args: ['--once', '-o', 'json'] })
  expect(JSON.parse(line)).toMatchObject({
    hostname: 'laptop',
    components: [
      { component_id: 'shop/checkout/pods', received_per_second: 0 },
      { component_id: 'shop/checkout/search', errors_total: 3 },
    ],
  })
})

test.each([
  { args: ['--once'], code: 69, says: /^No agent answers at /, times: 1 },
  { args: [], code: 0, says: /^The connection was lost; trying again\.$/gm, times: 1 },
])('top $args reports once that the agent has ended', async ({ args, code, says, times }) => {
  const look = { version: '1.2.3', hostname: 'laptop', uptime_seconds: 7, components: pipeline }
  const { promise: isOver, resolve: over } = Promise.withResolvers<void>()
  const server = createServer((_, response) => {
    response.setHeader('content-type', 'application/json')
    response.setHeader('connection', 'close')
    response.end(JSON.stringify(look), () => server.close(() => over()))
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const words = ['--conditions=source', main, 'top', '--url', url, '--interval', '100', ...args]
  const child = spawn(process.execPath, words)
  let printed = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    printed += text
  })
  const ended = new Promise((done) => child.on('close', done))
  await isOver
  if (args.length === 0) {
    // Several attempts, of which each would be reported.
    await expect.poll(() => printed).toContain('The connection was lost')
    await new Promise((done) => setTimeout(done, 1000))
    child.kill('SIGINT')
  }
  expect(await ended).toBe(code)
  expect(printed.match(says)).toHaveLength(times)
})
