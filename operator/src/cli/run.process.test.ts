// `penstock run` as a new user sees it, on a terminal created by `script`, and without one.

import { execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { freePort } from '@penstock/agent/testing/free-port'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

const main = fileURLToPath(new URL('../main.ts', import.meta.url))
const quickstart = fileURLToPath(new URL('../../../examples/quickstart', import.meta.url))
const noTerminals = spawnSync('script', ['--version']).status !== 0

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-run-test-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

function run(...args: readonly string[]) {
  const result = spawnSync(process.execPath, ['--conditions=source', main, 'run', ...args], { encoding: 'utf8' })
  return { code: result.status, out: result.stdout, err: result.stderr, lines: result.stdout.trimEnd().split('\n') }
}

test('without a terminal, each event is one plain short line, and the first three follow their original lines', () => {
  const { code, out, err, lines } = run('-f', quickstart, '--for', '3s')

  expect(code).toBe(0)
  expect(out).not.toContain('\u001b')
  const pairs = lines.slice(0, 6)
  expect(pairs.map((line) => line.slice(0, 5))).toEqual(['in   ', 'out  ', 'in   ', 'out  ', 'in   ', 'out  '])
  expect(pairs[0]).toMatch(/^in {3}\{"level":"debug",/)
  expect(pairs[1]).toBe('out  nothing: it was filtered')
  for (const [index, line] of pairs.entries()) {
    if (index % 2 === 0 || !line.includes('INFO')) continue
    const { msg } = JSON.parse((pairs[index - 1] as string).slice(5)) as { msg: string }
    expect(line).toMatch(/^out {2}\d\d:\d\d:\d\d\.\d{3} INFO {2}(?:web|payments)-\S+ /)
    expect(line).toContain(` ${msg} `)
  }
  for (const line of lines.slice(6))
    expect(line).toMatch(/^\d\d:\d\d:\d\d\.\d{3} (?:INFO|ERROR) {1,2}(?:web|payments)-\S+ \S/)
  expect(err).toContain('Pipeline shop/shop: pods -> parse -> keep -> store')
  expect(err).toContain('npx penstock-agent tap --url')
})

test('at the end, it prints the numbers of read, filtered and delivered events', () => {
  const { out, err } = run('-f', quickstart, '--for', '2s', '-o', 'json')

  const events = out.trimEnd().split('\n')
  for (const event of events)
    expect(JSON.parse(event)).toMatchObject({ app: /^(web|payments)$/.exec(JSON.parse(event).app)?.[1] })
  const [, read, filtered, delivered] = /: read (\d+) events, filtered (\d+), delivered (\d+) \(/.exec(err) ?? []
  expect(Number(delivered)).toBe(events.length)
  expect(Number(read)).toBe(Number(filtered) + Number(delivered))
  expect(Number(filtered)).toBeGreaterThan(0)
})

test('fields excluded by a console sink stay excluded, with any codec', () => {
  const file = join(folder, 'text.yaml')
  writeFileSync(
    file,
    `apiVersion: penstock.dev/v1alpha1
kind: Pipeline
metadata: { name: text, namespace: shop }
spec:
  sources: [{ name: app, type: orchestrator_logs }]
  sinks: [{ name: out, type: console, config: { encoding: { codec: text, only_fields: [message] } } }]
`,
  )
  const { code, out } = run('-f', file, '--for', '1s', '-o', 'json')
  expect(code).toBe(0)
  for (const line of out.trimEnd().split('\n')) expect(Object.keys(JSON.parse(line))).toEqual(['message'])
})

const pipeline = (sinks: string) => `apiVersion: penstock.dev/v1alpha1
kind: Pipeline
metadata: { name: away, namespace: shop }
spec:
  sources: [{ name: app, type: orchestrator_logs }]
  sinks: ${sinks}
`

test('a sink that cannot deliver locally is replaced by the screen, and the run ends in time', async () => {
  const file = join(folder, 'away.yaml')
  // A server that never responds, and a port on which no server listens.
  const silent = createServer((socket) => socket.resume()).listen(0, '127.0.0.1')
  await once(silent, 'listening')
  const ports = [(silent.address() as AddressInfo).port, await freePort()]
  const sink = (name: string, port?: number) =>
    `{ name: ${name}, type: http, config: { uri: "http://127.0.0.1:${port}", encoding: { codec: json } } }`
  writeFileSync(file, pipeline(`[${sink('gone', ports[1])}, ${sink('silent', ports[0])}]`))

  const { code, out, err } = await new Promise<ReturnType<typeof run>>((resolve) => {
    const args = ['--conditions=source', main, 'run', '-f', file, '--for', '1s']
    execFile(process.execPath, args, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), out: stdout, err: stderr, lines: stdout.split('\n') }),
    )
  })
  silent.close()

  expect(code).toBe(0)
  expect(err).toContain(
    `Sink gone cannot deliver from here (127.0.0.1:${ports[1]}: ECONNREFUSED).\nIts events are printed instead.\n`,
  )
  expect(err).not.toContain('silent cannot deliver')
  expect(out).toContain('request served')
  // It does not wait for the agent's limit of a minute: this command's limit ends first.
  expect(err).toContain('The time limit for a graceful stop is over')
})

test.each(['2>/dev/null', '2>&1'])('a reader that closes the output, %s, ends it without an error', (streams) => {
  const script = '"$0" --conditions=source "$@" '
  const words = [main, 'run', '-f', quickstart, '--for', '20s']
  const piped = ['-c', `${script}${streams} | head -1; exit "\${PIPESTATUS[0]}"`, process.execPath, ...words]
  const { status, stdout } = spawnSync('bash', piped, { encoding: 'utf8', env: { ...process.env, TMPDIR: folder } })
  expect([status, stdout.trimEnd().split('\n').length]).toEqual([0, 1])
  // Its files are removed, too.
  expect(readdirSync(folder).filter((name) => name.startsWith('penstock-run-'))).toEqual([])
})

test('a run without a selected sample pod ends with the reason', () => {
  const file = join(folder, 'other.yaml')
  const selector = 'selector: { pods: { matchLabels: { app: checkout } } }'
  writeFileSync(
    file,
    pipeline('[{ name: out, type: blackhole, config: {} }]').replace(
      'orchestrator_logs',
      `orchestrator_logs, ${selector}`,
    ),
  )
  const { code, err } = run('-f', file, '--for', '1s')
  expect(code).toBe(0)
  expect(err).toContain('web-6d9f7c5b8-x2x7p (app=web, team=storefront)')
  expect(err).toContain(
    '\nSource app reads none of them: it reads pods with labels app=checkout; fields metadata.namespace=shop.\n',
  )
  expect(err).toContain(': read 0 events,')
  expect(err).toContain("Nothing was read. Do the sources' selectors match the labels of a sample pod above?")
})

test.each([
  ['SIGINT', true, 'In '],
  ['SIGHUP', true, 'In '],
  ['SIGINT', false, 'In '],
  ['SIGKILL', false, undefined],
] as const)('%s ends the agent with the run (to all of its group: %s)', async (signal, isForGroup, summary) => {
  const args = ['--conditions=source', main, 'run', '-f', quickstart, '-o', 'json']
  const child = spawn(process.execPath, args, { detached: true, stdio: ['ignore', 'pipe', 'pipe'] })
  const ended = once(child, 'exit')
  let err = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    err += text
  })
  await once(child.stdout, 'data')
  const [, url] = /curl (http:\S+)\/metrics/.exec(err) ?? []
  expect((await fetch(`${url}/health`)).ok).toBe(true)

  process.kill(isForGroup ? -(child.pid as number) : (child.pid as number), signal)

  const [code] = await ended
  if (summary === undefined) expect(code).toBe(null)
  else expect([code, err]).toEqual([0, expect.stringContaining(summary)])
  expect(err).not.toContain('stops at once')
  // The agent is gone, too.
  await vi.waitFor(() => expect(fetch(`${url}/health`)).rejects.toThrow(), 20_000)
})

test('--print delivers nothing, and needs no Secrets', () => {
  const file = join(folder, 'secret.yaml')
  const password = 'password: { valueFrom: { secretKeyRef: { name: store, key: password } } }'
  const auth = `auth: { strategy: basic, user: penstock, ${password} }`
  writeFileSync(
    file,
    pipeline(`[{ name: out, type: search_engine, config: { endpoints: ["https://127.0.0.1:1"], ${auth} } }]`),
  )
  const without = run('-f', file, '--for', '1s')
  expect(without.code).toBe(78)
  expect(without.err).toContain('Secret "store" does not exist in namespace "')
  expect(without.err).toMatch(/help: Add a file with this Secret and its key "password"; or use `--print`/)
  const { code, out } = run('-f', file, '--for', '1s', '--print', '-o', 'json')
  expect(code).toBe(0)
  expect(JSON.parse(out.split('\n')[0] as string)).toMatchObject({ source_type: 'orchestrator_logs' })
})

test.skipIf(noTerminals)('on a terminal, lines have colours and end at the edge, and a hint stays below them', () => {
  // A long path, so that the result does not depend on the folder of this clone.
  const resources = join(folder, 'a'.repeat(80))
  cpSync(quickstart, resources, { recursive: true })
  const command = `stty cols 80; ${process.execPath} --conditions=source ${main} run -f ${resources} --for 2s`
  // Removes variables that affect colours.
  const { NO_COLOR: _, FORCE_COLOR: _1, CI: _2, ...environment } = process.env
  const onTerminal = (env: object) =>
    spawnSync('script', ['-qec', command, '/dev/null'], {
      encoding: 'utf8',
      env: { ...environment, TERM: 'xterm-256color', ...env },
    }).stdout

  const shown = onTerminal({})
  expect(shown).toContain('\u001b[32m INFO \u001b[0m')
  expect(shown).toContain('\u001b[2mCtrl-C exits.')
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are the characters
  const plain = shown.replace(/\u001b\[[0-9;]*[mK]/g, '')
  const events = plain.split(/[\r\n]+/).filter((line) => /^(?:in|out) {2,3}|^\d\d:\d\d/.test(line))
  expect(events.length).toBeGreaterThan(3)
  for (const line of events) expect(line.length).toBeLessThanOrEqual(80)
  // Except paths and commands, which can be copied, so they stay whole.
  const texts = plain.split(/[\r\n]+/).filter((line) => !line.startsWith('  '))
  for (const line of texts) expect(line.length, line).toBeLessThanOrEqual(80)
  // Pods alternate, and a narrow terminal shows a shorter time and origin.
  expect(plain).toMatch(/\d\d:\d\d:\d\d INFO {2}payments-…9kq4z payment captured amount=/)

  for (const env of [{ NO_COLOR: '1' }, { TERM: 'dumb' }]) expect(onTerminal(env)).not.toContain('\u001b[32m')
})
