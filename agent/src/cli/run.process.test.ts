// The real process, from the command line to its exit code.

import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { KubeApi } from '../testing/kube-api.ts'
import { version } from '../version.ts'

const main = fileURLToPath(new URL('../main.ts', import.meta.url))
let folder = ''
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'penstock-run-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

class Running {
  readonly child: ChildProcess
  out = ''
  err = ''
  readonly #closed: Promise<number>

  constructor(args: readonly string[], env: Record<string, string> = {}) {
    this.child = spawn(process.execPath, ['--conditions=source', main, ...args], { env: { ...process.env, ...env } })
    this.child.stdout?.on('data', (text) => {
      this.out += text
    })
    this.child.stderr?.on('data', (text) => {
      this.err += text
    })
    this.#closed = new Promise((resolve) => this.child.on('close', (code) => resolve(code ?? -1)))
  }
  /** Resolves when the log or the output contains the text. */
  async says(text: string, times = 1): Promise<void> {
    await vi.waitFor(() => expect(`${this.err}${this.out}`.split(text).length - 1).toBeGreaterThanOrEqual(times), {
      timeout: 55_000,
      interval: 20,
    })
  }
  async end(input = ''): Promise<number> {
    this.child.stdin?.end(input)
    return this.#closed
  }
  async [Symbol.asyncDispose]() {
    this.child.kill('SIGKILL')
    await this.#closed
  }
}

async function config(name: string, text: string): Promise<string> {
  const path = join(folder, name)
  await writeFile(path, text)
  return path
}

const lines = (format = 'codec: text') => `
sources: {in: {type: stdin}}
sinks: {out: {type: console, inputs: [in], encoding: {${format}}}}`

test('the agent passes on all lines, and ends with code 0 at the end of its input', async () => {
  await using agent = new Running(['--config', await config('lines.yaml', lines())])
  expect(await agent.end('one\ntwo\n')).toBe(0)
  expect(agent.out).toBe('one\ntwo\n')
  expect(agent.err).toContain('Penstock has stopped.')
})

test.each([
  {
    name: 'nothing at the path',
    args: ['--config', '/nonexistent/penstock.yaml'],
    code: 78,
    says: '/nonexistent/penstock.yaml',
  },
  { name: 'an unknown command', args: ['vaildate'], code: 64, says: 'Did you mean `validate`?' },
  { name: 'an unknown flag', args: ['--confg', 'x'], code: 64, says: 'Did you mean `--config`?' },
  { name: 'an agent that is not there', args: ['top', '-u', '127.0.0.1:1'], code: 69, says: 'api.enabled' },
  { name: 'help', args: ['--help'], code: 0, says: 'Commands:' },
  { name: 'help alone', args: ['help'], code: 0, says: 'Commands:' },
  { name: 'help of a command', args: ['help', 'tap'], code: 0, says: 'Usage: penstock-agent tap' },
  {
    name: 'help of an unknown command',
    args: ['help', 'explan'],
    code: 64,
    says: 'There is no command `explan`. Did you mean `explain`?',
  },
  { name: 'the version as a command', args: ['version'], code: 0, says: `penstock-agent ${version}` },
])('$name ends with code $code', async ({ args, code, says }) => {
  await using agent = new Running(args)
  expect(await agent.end()).toBe(code)
  expect(agent.err + agent.out).toContain(says)
})

test.each([[], ['run']])('a configuration may be named without a flag, after %j', async (...before) => {
  await using agent = new Running([...before, await config('named.yaml', lines())])
  expect(await agent.end('one\n')).toBe(0)
  expect(agent.out).toBe('one\n')
})

test.each([
  { name: 'binary.yaml', text: '\u0000\u0001\u0002{{{{', says: 'binary.yaml' },
  { name: 'unknown.yaml', text: lines().replace('stdin', 'stdni'), says: 'stdin' },
  { name: 'empty.yaml', text: '', says: 'No sources defined in the config.' },
  {
    name: 'pipeline.yaml',
    text: 'apiVersion: penstock.dev/v1alpha1\nkind: Pipeline\nmetadata: {name: a}',
    says: 'this file is a Kubernetes resource (Pipeline), not an agent configuration',
  },
])('the configuration $name is refused with its place and code 78', async ({ name, text, says }) => {
  await using agent = new Running(['--config', await config(name, text)])
  expect(await agent.end()).toBe(78)
  expect(agent.err).toContain(says)
  expect(agent.err).not.toContain('    at ') // no stack: this is not a bug of the agent
})

test('the agent does not start if the address is in use', async () => {
  const { createServer } = await import('node:net')
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  try {
    const text = `api: {enabled: true, address: "127.0.0.1:${port}"}\n${lines()}`
    await using agent = new Running(['--config', await config('bind.yaml', text)])
    expect(await agent.end()).toBe(74)
    expect(agent.err).toContain(`cannot listen on 127.0.0.1:${port}: another program uses this address. `)
  } finally {
    server.close()
  }
})

test('a signal ends the agent gracefully, with code 0', async () => {
  const text = 'sources: {in: {type: demo_logs, format: json}}\nsinks: {out: {type: blackhole, inputs: [in]}}'
  await using agent = new Running(['--config', await config('demo.yaml', text)])
  await agent.says('Penstock has started.')
  agent.child.kill('SIGTERM')
  expect(await agent.end()).toBe(0)
  expect(agent.err).toContain('Penstock has stopped.')
})

test('the metrics show the space on the disk of data_dir', async () => {
  const text = 'sources: {in: {type: demo_logs, format: json}}\nsinks: {out: {type: blackhole, inputs: [in]}}'
  const settings = `data_dir: ${folder}\napi: {enabled: true, address: "127.0.0.1:0"}\n${text}`
  await using agent = new Running(['--config', await config('disk.yaml', settings)])
  await agent.says('Penstock has started.')
  const address = /address=(\S+)/.exec(agent.err)?.[1]
  const metrics = await (await fetch(`http://${address}/metrics`)).text()
  const bytes = (metric: string) => Number(new RegExp(`^${metric}\\{.*\\} (\\d+)$`, 'm').exec(metrics)?.[1])
  expect(bytes('data_dir_available_bytes')).toBeGreaterThan(0)
  expect(bytes('data_dir_size_bytes')).toBeGreaterThanOrEqual(bytes('data_dir_available_bytes'))
})

test.skipIf(process.platform !== 'linux')('nothing of the memory of an agent is in its core dumps', async () => {
  const text = 'sources: {in: {type: demo_logs, format: json}}\nsinks: {out: {type: blackhole, inputs: [in]}}'
  await using agent = new Running(['--config', await config('demo.yaml', text)])
  await agent.says('Penstock has started.')
  expect(Number.parseInt(await readFile(`/proc/${agent.child.pid}/coredump_filter`, 'utf8'), 16)).toBe(0)
})

test('an unhealthy sink ends the agent with code 78 if health is required', async () => {
  const sink =
    '{type: log_aggregator, inputs: [in], endpoint: "http://127.0.0.1:1", labels: {a: b}, encoding: {codec: json}}'
  const path = await config('unhealthy.yaml', `sources: {in: {type: stdin}}\nsinks: {out: ${sink}}`)
  await using agent = new Running(['--config', path, '--require-healthy'])
  expect(await agent.end()).toBe(78)
  expect(agent.err).toContain('Healthcheck failed.')
  expect(agent.err).toContain('Sinks unhealthy.')
})

test('a second signal immediately ends an agent that waits for a destination', async () => {
  const { createServer } = await import('node:http')
  const server = createServer(() => {}).listen(0, '127.0.0.1') // never responds
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  try {
    const uri = `http://127.0.0.1:${port}/`
    const sink = `{type: http, inputs: [in], uri: "${uri}", encoding: {codec: json}, batch: {timeout_secs: 0.01}}`
    await using agent = new Running([
      '--config',
      await config('hang.yaml', `sources: {in: {type: stdin}}\nsinks: {out: ${sink}}`),
    ])
    await agent.says('Penstock has started.')
    const asked = new Promise((resolve) => server.once('request', resolve))
    agent.child.stdin?.write('one\n')
    await asked
    agent.child.kill('SIGINT')
    await agent.says('Penstock is stopping.')
    agent.child.kill('SIGINT')
    expect(await agent.end()).toBe(0)
    expect(agent.err).toContain('Penstock stops at once')
  } finally {
    server.close()
    server.closeAllConnections()
  }
})

test('SIGHUP loads a changed file, and keeps the old configuration if the new one is invalid', async () => {
  const text = lines()
  const path = await config('reload.yaml', text)
  await using agent = new Running(['--config', path, '--log-format', 'json'])
  await agent.says('Penstock has started.')
  await writeFile(path, text.replace('inputs: [in]', 'inputs: [gone]'))
  agent.child.kill('SIGHUP')
  await agent.says('The active configuration stays.')
  agent.child.stdin?.write('before\n')
  await agent.says('before')
  await writeFile(path, text.replace('codec: text', 'codec: json'))
  agent.child.kill('SIGHUP')
  await agent.says('The new configuration is active.')
  expect(await agent.end('after\n')).toBe(0)
  expect(agent.out).toMatch(/^before\n\{.*"message":"after".*\}\n$/)
  for (const line of agent.err.trim().split('\n')) expect(JSON.parse(line)).toHaveProperty('timestamp')
})

test('with --watch-config, a changed file is loaded automatically', async () => {
  const path = await config('watch.yaml', lines())
  await using agent = new Running(['--config', path, '--watch-config'])
  await agent.says('Penstock has started.')
  await writeFile(path, lines('codec: json'))
  await agent.says('The new configuration is active.')
  expect(await agent.end('x\n')).toBe(0)
  expect(agent.out).toContain('"message":"x"')
})

test('flags can come from the environment', async () => {
  const path = await config('env.yaml', lines())
  await using agent = new Running([], { PENSTOCK_CONFIG: path, PENSTOCK_LOG: 'error' })
  expect(await agent.end('one\n')).toBe(0)
  expect(agent.out).toBe('one\n')
  expect(agent.err).toBe('')
})

test.each([
  { minor: '18', says: 'The Kubernetes API server is older than the agent supports' },
  { minor: '19', says: 'Connected to the Kubernetes API server.' },
])('an agent that watches pods at Kubernetes 1.$minor says so at its start', async ({ minor, says }) => {
  await using api = await KubeApi.start()
  api.minor = minor
  const kubeConfig = await config(`kubeconfig-${minor}`, api.kubeConfig())
  const source = `{type: orchestrator_logs, kube_config_file: ${kubeConfig}, logs_dir: ${folder}, self_node_name: n}`
  const text = `data_dir: ${folder}\nsources: {in: ${source}}\nsinks: {out: {type: blackhole, inputs: [in]}}`
  await using agent = new Running(['--config', await config(`pods-${minor}.yaml`, text)])
  await agent.says(says)
  expect(agent.err).toContain(`v1.${minor}.0`)
})

test('the configuration in the manifest of the agent alone is valid', async () => {
  const manifest = await readFile(join(import.meta.dirname, '../../../examples/agent-alone/agent.yaml'), 'utf8')
  const objects = parseAllDocuments(manifest).map((document) => document.toJS())
  const { data } = objects.find(({ kind }) => kind === 'ConfigMap')
  await using agent = new Running(['validate', '--no-environment', await config('alone.yaml', data['agent.yaml'])])
  expect(await agent.end()).toBe(0)
  expect(agent.err).not.toContain('warning')
})

// Flags that an operator of another version may pass.
test.each([[['--no-such-flag', 'x']], [['--bundle', '/bundle', '--secrets', '/secrets', '--no-such-flag=x']]])(
  'an agent ends with code 64 and names the unknown flag: %j',
  async (args) => {
    await using agent = new Running(args)
    expect(await agent.end()).toBe(64)
    expect(agent.err).toContain('There is no flag `--no-such-flag`.')
    expect(agent.err).not.toContain('Penstock has started.')
  },
)
