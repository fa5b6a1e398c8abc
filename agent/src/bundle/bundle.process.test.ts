// The real process with folders that change like those of a pod, sample pod logs, and an API server and an operator on
// loopback.

import { type ChildProcess, spawn } from 'node:child_process'
import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { bundleFiles, project, type TestBundle } from '../testing/bundle.ts'
import { KubeApi } from '../testing/kube-api.ts'
import { version } from '../version.ts'
import { heartbeatPeriods, takesCandidate } from './format.ts'
import type { HeartbeatBody } from './heartbeat.ts'

const main = fileURLToPath(new URL('../main.ts', import.meta.url))

/** Receives and stores heartbeats. */
class Operator implements AsyncDisposable {
  readonly beats: (HeartbeatBody & { authorization: string | undefined })[] = []
  readonly #server: Server
  status = 200
  answer: object = {}

  private constructor() {
    this.#server = createServer((request, response) => {
      let text = ''
      request.on('data', (part) => {
        text += part
      })
      request.on('end', () => {
        if (request.url !== '/v1/heartbeat') {
          response.writeHead(404).end()
          return
        }
        if (this.status === 200) {
          this.beats.push({ ...(JSON.parse(text) as HeartbeatBody), authorization: request.headers.authorization })
        }
        response.writeHead(this.status).end(JSON.stringify(this.answer))
      })
    })
  }

  static async start(): Promise<Operator> {
    const operator = new Operator()
    await new Promise<void>((resolve) => operator.#server.listen(0, '127.0.0.1', resolve))
    return operator
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  get last(): HeartbeatBody | undefined {
    return this.beats.at(-1)
  }

  async [Symbol.asyncDispose]() {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

/** The agent's process. */
class Agent implements AsyncDisposable {
  readonly child: ChildProcess
  err = ''
  readonly #closed: Promise<number>

  /** @param wrapper a program that starts the agent, with its arguments */
  constructor(
    args: readonly string[],
    env: Record<string, string> = {},
    wrapper: readonly string[] = [],
    apiAddress = '',
  ) {
    const [program = process.execPath, ...before] = [...wrapper, process.execPath]
    this.child = spawn(
      program,
      [
        ...before,
        '--conditions=source',
        main,
        '--bundle',
        bundleDir,
        '--secrets',
        secretsDir,
        '--data-dir',
        join(folder, 'data'),
        '--logs-dir',
        logs,
        '--api-address',
        apiAddress,
        ...args,
      ],
      {
        env: {
          ...process.env,
          AGENT_SELF_NODE_NAME: 'node-1',
          POD_NAME: 'agent-x',
          POD_NAMESPACE: 'penstock-system',
          ...env,
        },
      },
    )
    this.child.stderr?.on('data', (text) => {
      this.err += text
    })
    this.#closed = new Promise((resolve) => this.child.on('close', (code) => resolve(code ?? -1)))
  }

  async stop(): Promise<number> {
    this.child.kill('SIGTERM')
    return this.#closed
  }

  async [Symbol.asyncDispose]() {
    this.child.kill('SIGKILL')
    await this.#closed
  }
}

let folder = ''
let bundleDir = ''
let secretsDir = ''
let logs = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-bundle-'))
  bundleDir = join(folder, 'bundle')
  secretsDir = join(folder, 'secrets')
  logs = join(folder, 'logs')
  for (const each of [bundleDir, secretsDir, logs, join(folder, 'data')]) mkdirSync(each)
  writeFileSync(join(folder, 'token'), 'agent-token')
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const eventually = (check: () => void) => vi.waitFor(check, { timeout: 55_000, interval: 50 })
const out = (name: string) => join(folder, `${name}.out`)
const read = (name: string) =>
  existsSync(out(name)) ? readFileSync(out(name), 'utf8').split('\n').filter(Boolean) : []
const toFile = (name: string, input: string) => ({
  type: 'file',
  inputs: [input],
  path: out(name),
  encoding: { codec: 'text' },
})

const pod = (namespace: string, name: string, labels: Record<string, string> = {}) => ({
  metadata: { name, namespace, uid: `${name}-uid`, labels },
  spec: { nodeName: 'node-1', containers: [{ name: 'app', image: 'app:1' }] },
  status: { podIP: '10.0.0.1', containerStatuses: [{ name: 'app', imageID: 'app@1', containerID: 'containerd://1' }] },
})

function log(namespace: string, name: string, text: string, container = 'app'): void {
  const directory = join(logs, `${namespace}_${name}_${name}-uid`, container)
  mkdirSync(directory, { recursive: true })
  appendFileSync(join(directory, '0.log'), `${new Date().toISOString()} stdout F ${text}\n`)
}

async function cluster(): Promise<{ api: KubeApi; kubeConfig: string }> {
  const api = await KubeApi.start()
  for (const name of ['shop', 'team'])
    api.set('namespaces', { metadata: { name, labels: { 'kubernetes.io/metadata.name': name } } })
  api.set('nodes', { metadata: { name: 'node-1', labels: { zone: 'a' } } })
  const kubeConfig = join(folder, 'kubeconfig')
  writeFileSync(
    kubeConfig,
    JSON.stringify({
      'current-context': 'test',
      contexts: [{ name: 'test', context: { cluster: 'test', user: 'test' } }],
      clusters: [{ name: 'test', cluster: { server: api.url } }],
      users: [{ name: 'test', user: {} }],
    }),
  )
  return { api, kubeConfig }
}

const identity = (uid: string, generation = 1) => ({ uid, generation, hash: `sha256:${uid}-${generation}` })

/** A pipeline of a namespace that writes its lines to a file. */
function reader(namespace: string, name: string, extra: object = {}): TestBundle {
  return {
    pipelines: { [`${namespace}/${name}`]: identity(`uid-${name}`) },
    subscriptions: [{ cursor: `uid-${name}/app`, out: `${namespace}/${name}/app`, namespaces: [namespace], ...extra }],
    sinks: { [`${namespace}/${name}/out`]: toFile(name, `${namespace}/${name}/app`) },
  }
}

function merged(...bundles: readonly TestBundle[]): TestBundle {
  return {
    pipelines: Object.assign({}, ...bundles.map((bundle) => bundle.pipelines)),
    subscriptions: bundles.flatMap((bundle) => bundle.subscriptions ?? []),
    sources: Object.assign({}, ...bundles.map((bundle) => bundle.sources)),
    transforms: Object.assign({}, ...bundles.map((bundle) => bundle.transforms)),
    sinks: Object.assign({}, ...bundles.map((bundle) => bundle.sinks)),
  }
}

test('pipelines of two namespaces read their own pods over one connection, and the operator gets reports', async () => {
  const { api, kubeConfig } = await cluster()
  await using _ = api
  await using operator = await Operator.start()
  api.set('pods', pod('shop', 'web', { app: 'web' }))
  api.set('pods', pod('shop', 'db', { app: 'db' }))
  api.set('pods', pod('team', 'job'))
  log('shop', 'web', 'web one')
  log('shop', 'web', 'proxy one', 'istio-proxy')
  log('shop', 'db', 'db one')
  log('team', 'job', 'job one')
  const bundle = merged(
    reader('shop', 'all', { excludeContainers: ['istio-proxy'] }),
    reader('shop', 'web-only', { podSelector: 'app=web', includeContainers: ['app'] }),
    reader('team', 'jobs'),
    ...Array.from({ length: 20 }, (_, index) => reader('shop', `more-${index}`, { podSelector: 'app=none' })),
  )
  const { files, rev } = bundleFiles(bundle)
  project(secretsDir, {})
  project(bundleDir, files)
  await using agent = new Agent([
    '--kube-config',
    kubeConfig,
    '--operator',
    operator.url,
    '--operator-token',
    join(folder, 'token'),
  ])

  await eventually(() => {
    expect(read('all').sort(), agent.err).toEqual(['db one', 'web one'])
    expect(read('web-only')).toEqual(['web one'])
    expect(read('jobs')).toEqual(['job one'])
  })
  await eventually(() => expect(operator.last).toMatchObject({ revision: rev, state: 'Loaded', failures: [] }))
  operator.answer = { periodMs: heartbeatPeriods.minMs }
  await eventually(() => expect(operator.last?.reading?.toSorted()).toEqual(['shop/all', 'shop/web-only', 'team/jobs']))
  expect(operator.beats[0]?.authorization).toBe('Bearer agent-token')
  expect(operator.last).toMatchObject({ node: 'node-1', pod: 'agent-x', namespace: 'penstock-system' })
  // One list and one watch per kind, for any number of pipelines.
  const watches = api.requests.filter((path) => path.includes('watch=') && path.includes('/pods'))
  expect(watches).toHaveLength(1)

  // A pod that appears later, and one whose changed labels no longer match.
  api.set('pods', pod('shop', 'late', { app: 'web' }))
  log('shop', 'late', 'late one')
  await eventually(() => expect(read('web-only')).toEqual(['web one', 'late one']))
  api.set('pods', pod('shop', 'web', { app: 'other' }))
  log('shop', 'late', 'late two')
  await eventually(() => expect(read('web-only')).toContain('late two'))
  await eventually(() => {
    log('shop', 'web', 'web two')
    expect(read('all')).toContain('web two')
  })
  expect(read('web-only')).toEqual(['web one', 'late one', 'late two'])
  log('shop', 'web', 'web three')
  await eventually(() => expect(read('all')).toContain('web three'))
  expect(await agent.stop()).toBe(0)
  // The last report contains the last figures.
  const reportedSum = (name: 'eventsIn' | 'eventsOut') =>
    operator.beats.reduce((sum, { pipelines }) => sum + (pipelines['shop/all']?.[name] ?? 0), 0)
  expect([reportedSum('eventsIn'), reportedSum('eventsOut')]).toEqual([read('all').length, read('all').length])
})

/** A bundle of an operator with many agents: each may wait up to this long at start. */
function spread(bundle: TestBundle, startSpreadMs: number): Record<string, string | Buffer> {
  const { files } = bundleFiles(bundle)
  return { ...files, 'manifest.json': JSON.stringify({ ...JSON.parse(String(files['manifest.json'])), startSpreadMs }) }
}
/** Longer than any test; the maximum timer is 24 days. */
const forever = 20 * 86_400_000
const asked = (api: KubeApi) => api.requests.filter((path) => /^\/api\/v1\/(pods|namespaces|nodes)/.test(path))

test('among many agents, a starting agent waits before its requests to the API server, and a stop ends the wait', async () => {
  const { api, kubeConfig } = await cluster()
  await using _ = api
  api.set('pods', pod('shop', 'web'))
  log('shop', 'web', 'one')
  project(secretsDir, {})
  project(bundleDir, spread(reader('shop', 'all'), forever))
  await using agent = new Agent(['--kube-config', kubeConfig])
  await eventually(() => expect(agent.err).toContain('The bundle is active.'))
  expect(agent.err).toContain('sending the first request to the Kubernetes API after a delay')
  expect(await agent.stop()).toBe(0)
  expect(asked(api)).toEqual([])

  project(bundleDir, spread(reader('shop', 'all'), 1))
  await using next = new Agent(['--kube-config', kubeConfig])
  await eventually(() => expect(read('all'), next.err).toEqual(['one']))
  expect(await next.stop()).toBe(0)
})

test('does not delay a later bundle by a pause', async () => {
  const { api, kubeConfig } = await cluster()
  await using _ = api
  api.set('pods', pod('shop', 'web'))
  log('shop', 'web', 'one')
  project(secretsDir, {})
  project(bundleDir, spread({ pipelines: {}, sinks: {} }, forever))
  await using agent = new Agent(['--kube-config', kubeConfig])
  await eventually(() => expect(agent.err).toContain('The bundle is active.'))
  project(bundleDir, spread(reader('shop', 'all'), forever))
  await eventually(() => expect(read('all'), agent.err).toEqual(['one']))
  expect(await agent.stop()).toBe(0)
})

test('a pipeline that cannot be built keeps its old version, and the others continue', async () => {
  const { api, kubeConfig } = await cluster()
  await using _ = api
  await using operator = await Operator.start()
  api.set('pods', pod('shop', 'web'))
  log('shop', 'web', 'one')
  project(secretsDir, {})
  project(bundleDir, bundleFiles(merged(reader('shop', 'a'), reader('shop', 'b'))).files)
  await using agent = new Agent([
    '--kube-config',
    kubeConfig,
    '--operator',
    operator.url,
    '--operator-token',
    join(folder, 'token'),
  ])
  await eventually(() => expect([read('a'), read('b')]).toEqual([['one'], ['one']]))

  const broken = reader('shop', 'a')
  const next = bundleFiles(
    merged(
      { ...broken, transforms: { 'shop/a/parse': { type: 'remap', inputs: ['shop/a/app'], source: '.a = nothing(' } } },
      reader('shop', 'b', { excludeContainers: ['other'] }),
      reader('shop', 'c'),
    ),
  )
  project(bundleDir, next.files)
  await eventually(() =>
    expect(operator.last).toMatchObject({ revision: next.rev, state: 'Loaded', failed: ['shop/a'] }),
  )
  expect(operator.last?.failures).toEqual([
    expect.objectContaining({ pipeline: 'shop/a', component: 'parse', reason: 'InvalidConfig' }),
  ])
  log('shop', 'web', 'two')
  await eventually(() =>
    expect([read('a'), read('b'), read('c')]).toEqual([
      ['one', 'two'],
      ['one', 'two'],
      ['one', 'two'],
    ]),
  )

  // Repaired again; a removed pipeline stops.
  const last = bundleFiles(merged(reader('shop', 'a'), reader('shop', 'c')))
  project(bundleDir, last.files)
  await eventually(() => expect(operator.last).toMatchObject({ revision: last.rev, failed: [] }))
  // The agent asks the operator whether the pipeline will return.
  expect(operator.last?.leftovers).toEqual([{ kind: 'cursors', id: 'uid-b', pipeline: 'shop/b' }])
  log('shop', 'web', 'three')
  await eventually(() => expect([read('a').at(-1), read('c').at(-1)]).toEqual(['three', 'three']))
  expect(read('b')).toEqual(['one', 'two'])
  expect(await agent.stop()).toBe(0)
})

test('a bundle with a missing or outdated part is not loaded, and after a restart the last good bundle runs', async () => {
  const { api, kubeConfig } = await cluster()
  await using _ = api
  await using operator = await Operator.start()
  api.set('pods', pod('shop', 'web'))
  log('shop', 'web', 'one')
  const args = ['--kube-config', kubeConfig, '--operator', operator.url, '--operator-token', join(folder, 'token')]
  const good = bundleFiles(reader('shop', 'a'))
  const next = bundleFiles(merged(reader('shop', 'a'), reader('shop', 'b')))
  const [shard = ''] = Object.keys(next.files).filter((name) => name.startsWith('r'))
  project(secretsDir, {})
  project(bundleDir, good.files)
  {
    await using agent = new Agent(args)
    await eventually(() => expect(read('a')).toEqual(['one']))
    const { [shard]: _missing, ...rest } = next.files
    project(bundleDir, rest)
    await eventually(() => expect(operator.last).toMatchObject({ revision: good.rev, state: 'Waiting' }))
    project(bundleDir, { ...next.files, [shard]: 'something else' })
    await eventually(() => expect(operator.last?.reason).toContain('digest'))
    expect(operator.last).toMatchObject({ revision: good.rev })
    expect(await agent.stop()).toBe(0)
  }
  log('shop', 'web', 'two')
  await using agent = new Agent(args)
  await eventually(() => expect(read('a')).toEqual(['one', 'two']))
  expect(agent.err).toContain('using the last valid one')
  project(bundleDir, next.files)
  await eventually(() => expect(read('b')).toEqual(['one', 'two']))
  expect(read('a')).toEqual(['one', 'two'])
  expect(await agent.stop()).toBe(0)
})

test('secrets are put in after parsing, rotate without a restart, and stay out of logs and heartbeats', async () => {
  await using operator = await Operator.start()
  const { createServer: create } = await import('node:http')
  const seen: string[] = []
  const destination = create((request, response) => {
    seen.push(request.headers.authorization ?? '')
    request.resume()
    response.writeHead(200).end()
  })
  await new Promise<void>((resolve) => destination.listen(0, '127.0.0.1', resolve))
  using _ = { [Symbol.dispose]: () => void destination.close() }
  const port = (destination.address() as AddressInfo).port
  // biome-ignore lint/suspicious/noTemplateCurlyInString: must not be interpolated
  const password = 'p"a\\s\ns ${HOME} SECRET[x.y]'
  const bundle = (generation: number): TestBundle => ({
    pipelines: { '_cluster/p': { ...identity('uid-p', generation), secrets: [{ key: 'k1' }] } },
    sources: { '_cluster/p/in': { type: 'demo_logs', format: 'json', interval: 0.1 } },
    sinks: {
      '_cluster/p/out': {
        type: 'http',
        inputs: ['_cluster/p/in'],
        uri: `http://127.0.0.1:${port}/`,
        encoding: { codec: 'json' },
        batch: { timeout_secs: 0.1 },
        auth: { strategy: 'basic', user: 'me', password: { $secret: 'k1' } },
      },
    },
  })
  project(secretsDir, { k1: password })
  project(bundleDir, bundleFiles(bundle(1), { k1: password }).files)
  await using agent = new Agent(['--operator', operator.url, '--operator-token', join(folder, 'token')])
  const basic = (text: string) => `Basic ${Buffer.from(`me:${text}`).toString('base64')}`
  await eventually(() => expect(seen).toContain(basic(password)))

  // The value arrives before the manifest: a value that does not match the manifest is not loaded.
  const { files } = bundleFiles(bundle(1), { k1: 'new-password' })
  project(bundleDir, files)
  await eventually(() => expect(operator.last).toMatchObject({ state: 'Waiting' }))
  project(secretsDir, { k1: 'new-password' })
  await eventually(() => expect(seen.at(-1)).toBe(basic('new-password')))
  await eventually(() => expect(operator.last).toMatchObject({ state: 'Loaded' }))
  expect(await agent.stop()).toBe(0)
  for (const text of [agent.err, JSON.stringify(operator.beats)]) {
    expect(text).not.toContain('new-password')
    expect(text).not.toContain(JSON.stringify(password).slice(1, -1))
  }
})

test('namespaced pipelines reach no address of the node, and what their programs write stays out of the log', async () => {
  await using operator = await Operator.start()
  operator.answer = { periodMs: heartbeatPeriods.minMs }
  let reached = 0
  const paths: string[] = []
  const { createServer: create } = await import('node:http')
  const destination = create((request, response) => {
    reached++
    paths.push(request.url ?? '')
    response.end()
  })
  await new Promise<void>((resolve) => destination.listen(0, '127.0.0.1', resolve))
  using _ = { [Symbol.dispose]: () => void destination.close() }
  const port = (destination.address() as AddressInfo).port
  const sink = (host: string, input: string) => ({
    type: 'http',
    inputs: [input],
    uri: `http://${host}:${port}/`,
    encoding: { codec: 'json' },
    healthcheck: false,
    batch: { timeout_secs: 0.1 },
  })
  const restricted = {
    ...identity('uid-p'),
    restricted: true,
    egress: { deny: ['169.254.0.0/16', '127.0.0.0/8', '::1/128', 'fe80::/10'] },
  }
  project(secretsDir, {})
  project(
    bundleDir,
    bundleFiles({
      pipelines: { 'shop/p': restricted },
      sources: { 'shop/p/in': { type: 'demo_logs', format: 'json', interval: 0.1 } },
      transforms: { 'shop/p/say': { type: 'remap', inputs: ['shop/p/in'], source: 'log("a tenant speaks")' } },
      sinks: {
        'shop/p/name': sink('localhost', 'shop/p/say'),
        'shop/p/address': sink('127.0.0.1', 'shop/p/say'),
        'shop/p/mapped': sink('[::ffff:127.0.0.1]', 'shop/p/say'),
        'shop/p/file': toFile('file', 'shop/p/say'),
      },
    }).files,
  )
  await using agent = new Agent(['--operator', operator.url, '--operator-token', join(folder, 'token')])
  await eventually(() => {
    for (const name of ['name', 'address', 'mapped']) expect(agent.err).toContain(`id=shop/p/${name}`)
    expect(agent.err).toContain('rule T7')
    expect(read('file').length).toBeGreaterThan(2)
  })
  expect(reached).toBe(0)
  expect(agent.err).not.toContain('a tenant speaks')
  // The log limits repeated errors; the operator gets all of them.
  await eventually(() => expect(agent.err).toContain('The message is being suppressed'))
  const before = operator.beats.length
  await eventually(() => expect(operator.beats.length).toBeGreaterThan(before + 1))
  const complaints = operator.beats
    .flatMap(({ pipelines }) => Object.values(pipelines['shop/p']?.components ?? {}))
    .flatMap(({ lastError }) => (lastError === undefined ? [] : [lastError]))
  expect(complaints).not.toEqual([])
  for (const { reason, message } of complaints) {
    expect(message).toContain('rule T7')
    expect(reason).toBe('ConnectFailed')
  }
  // Destinations that the platform offers may be anywhere, even outside the hosts allowed for its tenants.
  project(
    bundleDir,
    bundleFiles({
      pipelines: {
        'shop/p': { ...restricted, egress: { deny: [], allowHosts: ['es.shop.test'] }, platform: ['shop/p/shared'] },
      },
      sources: { 'shop/p/in': { type: 'demo_logs', format: 'json', interval: 0.1 } },
      transforms: {},
      sinks: {
        'shop/p/shared': sink('localhost', 'shop/p/in'),
        'shop/p/own': { ...sink('127.0.0.1', 'shop/p/in'), uri: `http://127.0.0.1:${port}/own` },
      },
    }).files,
  )
  await eventually(() => {
    expect(paths).toContain('/')
    expect(agent.err).toContain(
      'is not among the hosts that the TenantPolicy permits for the namespace (rule T7): es.shop.test',
    )
  })
  expect(paths).not.toContain('/own')
})

test('errors of namespaced programs contain kind, function and place in log and heartbeat, but no content of event or program', async () => {
  await using operator = await Operator.start()
  operator.answer = { periodMs: heartbeatPeriods.minMs }
  const card = 'CARD-4111-1111'
  const failing: Readonly<Record<string, { readonly transform: object; readonly shown: string }>> = {
    call: {
      transform: { type: 'remap', source: '.n = to_int!(.message)' },
      shown: 'the call or operation failed for its values: "to_int" at (5:22)',
    },
    assertion: {
      transform: { type: 'remap', source: 'assert!(false, string!(.message))' },
      shown: 'an assertion is false: "assert" at (0:33)',
    },
    condition: {
      transform: { type: 'filter', condition: 'to_int!(.message) == 1' },
      shown: 'the call or operation failed for its values: "to_int" at (0:17)',
    },
    abort: {
      transform: { type: 'filter', condition: 'if exists(.message) { abort string!(.message) }\ntrue' },
      shown: 'the program was aborted',
    },
  }
  const names = Object.keys(failing)
  project(secretsDir, {})
  project(
    bundleDir,
    bundleFiles({
      pipelines: { 'shop/p': { ...identity('uid-p'), restricted: true } },
      sources: { 'shop/p/in': { type: 'demo_logs', format: 'shuffle', lines: [card], interval: 0.1 } },
      transforms: Object.fromEntries(
        names.map((name) => [`shop/p/${name}`, { ...failing[name]?.transform, inputs: ['shop/p/in'] }]),
      ),
      sinks: { 'shop/p/out': { type: 'blackhole', inputs: names.map((name) => `shop/p/${name}`) } },
    }).files,
  )
  await using agent = new Agent(['--operator', operator.url, '--operator-token', join(folder, 'token')])
  await eventually(() => {
    const { components } = operator.last?.pipelines['shop/p'] ?? {}
    for (const [name, { shown }] of Object.entries(failing)) {
      expect(agent.err).toContain(JSON.stringify(shown))
      expect(components?.[name]?.lastError?.message).toContain(shown)
    }
  })
  expect(await agent.stop()).toBe(0)
  for (const text of [agent.err, JSON.stringify(operator.beats)]) expect(text).not.toContain('4111')
})

test.each([
  {
    option: { tls: { ca_file: { $secret: 'k' } } },
    value: '/etc/hostname',
    refusal: 'tls.ca_file: must not name a file',
  },
  {
    option: { tls: { ca_file: { $secret: 'k' } } },
    value: 'file:///etc/hostname',
    refusal: 'tls.ca_file: must not name',
  },
  { option: { auth: { strategy: 'bearer', token: { $secret: 'k' } } }, value: '/etc/hostname', refusal: undefined },
  {
    option: { request: { headers: { a: { $secret: 'k' } } } },
    value: 'file:///x',
    refusal: 'headers.a: must not name',
  },
])('in a namespaced pipeline a secret cannot name a file of the agent: $option', async ({ option, value, refusal }) => {
  await using operator = await Operator.start()
  const bundle = (restricted: boolean) => ({
    pipelines: { 'shop/p': { ...identity('uid-p'), restricted, secrets: [{ key: 'k' }] } },
    sources: { 'shop/p/in': { type: 'demo_logs', format: 'json', interval: 60 } },
    transforms: {},
    sinks: {
      'shop/p/out': {
        type: 'http',
        inputs: ['shop/p/in'],
        uri: 'http://127.0.0.1:1/',
        encoding: { codec: 'json' },
        healthcheck: false,
        ...option,
      },
    },
  })
  project(secretsDir, { k: value })
  project(bundleDir, bundleFiles(bundle(true), { k: value }).files)
  await using agent = new Agent(['--operator', operator.url, '--operator-token', join(folder, 'token')])
  await eventually(() => {
    expect(operator.last?.state).toBe('Loaded')
    if (refusal === undefined) expect(operator.last?.failures).toEqual([])
    else expect(operator.last?.failures).toMatchObject([{ pipeline: 'shop/p', component: 'out' }])
  })
  if (refusal !== undefined) expect(operator.last?.failures[0]?.message).toContain(refusal)
  expect(agent.err).not.toContain(value)
})

test('a candidate runs on the nodes that its salt selects', async () => {
  const stable = reader('shop', 'a')
  const candidate = merged(reader('shop', 'a'), reader('shop', 'b'))
  const { api, kubeConfig } = await cluster()
  await using _ = api
  await using operator = await Operator.start()
  project(secretsDir, {})
  const salts = Array.from({ length: 1000 }, (_, index) => `salt-${index}`)
  const chosen = salts.find((salt) => takesCandidate({ percent: 5, salt }, 'node-1')) as string
  const other = salts.find((salt) => !takesCandidate({ percent: 95, salt }, 'node-1')) as string
  const tried = bundleFiles(stable, {}, { ...candidate, percent: 5, salt: chosen })
  project(bundleDir, bundleFiles(stable, {}, { ...candidate, percent: 95, salt: other }).files)
  await using agent = new Agent([
    '--kube-config',
    kubeConfig,
    '--operator',
    operator.url,
    '--operator-token',
    join(folder, 'token'),
  ])
  await eventually(() => expect(operator.last).toMatchObject({ state: 'Loaded', candidate: false }))
  project(bundleDir, tried.files)
  await eventually(() => expect(operator.last).toMatchObject({ revision: tried.rev, candidate: true }))
  // Rolled back.
  const back = bundleFiles(stable)
  project(bundleDir, back.files)
  await eventually(() => expect(operator.last).toMatchObject({ revision: back.rev, candidate: false }))
  operator.status = 503
  expect(await agent.stop()).toBe(0)
})

test('drops and counts lines over a limit, or leaves them in the file, without any effect on other containers', async () => {
  const { api, kubeConfig } = await cluster()
  await using _ = api
  await using operator = await Operator.start()
  for (const name of ['loud', 'quiet']) api.set('pods', pod('shop', name))
  const limit = (onLimit: 'drop' | 'lag') => ({ limits: { perContainer: { lines: 100, onLimit } } })
  const bytes = { limits: { pipeline: { bytes: 20_000, onLimit: 'lag' as const } } }
  const together = { limits: { shared: [{ key: 'shop/ClusterSink/store', bytes: 100_000 }] } }
  project(secretsDir, {})
  project(
    bundleDir,
    bundleFiles(
      merged(
        reader('shop', 'drops', limit('drop')),
        reader('shop', 'lags', limit('lag')),
        reader('shop', 'bytes', bytes),
        reader('shop', 'one', together),
        reader('shop', 'other', together),
      ),
    ).files,
  )
  // A chunk is one read: several chunks, so that the later ones have to wait.
  const line = 'x'.repeat(200)
  for (let index = 0; index < 900; index++) log('shop', 'loud', `${index} ${line}`)
  log('shop', 'quiet', 'hello')
  await using agent = new Agent([
    ...['--kube-config', kubeConfig, '--operator', operator.url, '--operator-token', join(folder, 'token')],
    ...['--api-address', '127.0.0.1:0'],
  ])
  await eventually(() => {
    for (const name of ['drops', 'lags', 'bytes', 'one', 'other']) expect(read(name), name).toContain('hello')
  })
  const loud = (name: string) => read(name).filter((text) => text !== 'hello')
  await eventually(() => expect(loud('lags')).toHaveLength(900))
  await eventually(() => expect(loud('bytes')).toHaveLength(900))
  for (const name of ['one', 'other']) await eventually(() => expect(loud(name)).toHaveLength(900))
  const kept = loud('drops').length
  expect(kept).toBeGreaterThanOrEqual(100)
  expect(kept).toBeLessThan(900)
  const address = /address=(\S+)/.exec(agent.err)?.[1]
  const metrics = await (await fetch(`http://${address}/metrics`)).text()
  const dropped = /^rate_limited_lines_total\{.*component_id="shop\/drops\/app".*limit="container".*\} (\d+)/m.exec(
    metrics,
  )?.[1]
  expect(Number(dropped)).toBe(900 - kept)
  expect(await agent.stop()).toBe(0)
})

test('a limit of 0 passes no lines, and a tiny limit almost none', async () => {
  const { api, kubeConfig } = await cluster()
  await using _ = api
  await using operator = await Operator.start()
  operator.answer = { periodMs: heartbeatPeriods.minMs }
  api.set('pods', pod('shop', 'loud'))
  const limited = {
    'drop-lines': { perContainer: { lines: 0, onLimit: 'drop' } },
    'drop-bytes': { perContainer: { bytes: 0, onLimit: 'drop' } },
    'lag-lines': { perContainer: { lines: 0, onLimit: 'lag' } },
    'lag-bytes': { perContainer: { bytes: 0, onLimit: 'lag' } },
    'drop-pipeline': { pipeline: { bytes: 0, onLimit: 'drop' } },
    'lag-pipeline': { pipeline: { bytes: 0, onLimit: 'lag' } },
    shared: { shared: [{ key: 'shop/quota', bytes: 0 }] },
  }
  const tiny = { shared: [{ key: 'shop/ClusterSink/store', bytes: 1e-9 }] }
  project(secretsDir, {})
  const readers = Object.entries({ ...limited, tiny }).map(([name, limits]) => reader('shop', name, { limits }))
  project(bundleDir, bundleFiles(merged(...readers, reader('shop', 'all'))).files)
  // More than one chunk, so that even the smallest limit delays the second.
  for (let index = 0; index < 900; index++) log('shop', 'loud', `${index} ${'x'.repeat(200)}`)
  await using agent = new Agent([
    ...['--kube-config', kubeConfig, '--operator', operator.url, '--operator-token', join(folder, 'token')],
  ])
  await eventually(() => expect(read('all')).toHaveLength(900))
  log('shop', 'loud', 'later')
  await eventually(() => expect(read('all')).toHaveLength(901))
  operator.beats.length = 0
  await eventually(() => expect(operator.beats.length).toBeGreaterThan(2))
  for (const name of Object.keys(limited)) expect([name, read(name)]).toEqual([name, []])
  expect(read('tiny').length).toBeLessThan(900)
  expect(await agent.stop()).toBe(0)
})

test('log files that the agent cannot read are reported with the fix', async () => {
  const { api, kubeConfig } = await cluster()
  await using _ = api
  await using operator = await Operator.start()
  operator.answer = { periodMs: heartbeatPeriods.minMs }
  for (const name of ['open', 'closed']) api.set('pods', pod('shop', name))
  project(secretsDir, {})
  project(bundleDir, bundleFiles(reader('shop', 'p')).files)
  for (const name of ['open', 'closed']) log('shop', name, name)
  chmodSync(join(logs, 'shop_closed_closed-uid', 'app', '0.log'), 0)
  // Root can read unreadable files too, unless it drops that capability.
  const wrapper = process.getuid?.() === 0 ? ['setpriv', '--bounding-set=-all'] : []
  const flags = ['--kube-config', kubeConfig, '--operator', operator.url, '--operator-token', join(folder, 'token')]
  await using agent = new Agent(flags, {}, wrapper)
  await eventually(() => {
    expect(read('p')).toEqual(['open'])
    const errors = operator.beats.flatMap(({ pipelines }) => pipelines['shop/p']?.components['app']?.lastError ?? [])
    expect(errors.map(({ reason }) => reason)).toContain('LogsUnreadable')
    expect(errors[0]?.message).toContain('0.log')
    expect(errors[0]?.message).toContain('node.runAsRoot: true')
  })
  expect(await agent.stop()).toBe(0)
})

test('the lag of reading is reported while it exists', async () => {
  const { api, kubeConfig } = await cluster()
  await using _ = api
  await using operator = await Operator.start()
  operator.answer = { periodMs: heartbeatPeriods.minMs }
  for (const name of ['old', 'quiet']) api.set('pods', pod('shop', name))
  project(secretsDir, {})
  const limits = { perContainer: { lines: 30, onLimit: 'lag' } }
  project(bundleDir, bundleFiles(merged(reader('shop', 'slow', { limits }), reader('shop', 'quick'))).files)
  // Several chunks of lines written ten minutes ago, after a line written now.
  const written = new Date(Date.now() - 600_000).toISOString()
  const folderOf = join(logs, 'shop_old_old-uid', 'app')
  mkdirSync(folderOf, { recursive: true })
  const line = (index: number) => `${written} stdout F ${index} ${'x'.repeat(800)}\n`
  writeFileSync(join(folderOf, '0.log'), Array.from({ length: 400 }, (_, index) => line(index)).join(''))
  log('shop', 'quiet', 'hello')
  await using agent = new Agent([
    ...['--kube-config', kubeConfig, '--operator', operator.url, '--operator-token', join(folder, 'token')],
    ...['--api-address', '127.0.0.1:0'],
  ])
  const lags = (pipeline: string) => operator.beats.map(({ pipelines }) => pipelines[`shop/${pipeline}`]?.lagSeconds)
  const gauge = async (pipeline: string) => {
    const address = /address=(\S+)/.exec(agent.err)?.[1]
    const metrics = await (await fetch(`http://${address}/metrics`)).text()
    const found = new RegExp(`^log_lag_seconds\\{.*component_id="shop/${pipeline}/app".*\\} (\\S+)`, 'm').exec(metrics)
    return Number(found?.[1])
  }
  await eventually(() => expect(Math.max(0, ...lags('slow').map((lag) => lag ?? 0))).toBeGreaterThan(590))
  expect(await gauge('slow')).toBeGreaterThan(590)
  await eventually(() => expect(read('quick')).toHaveLength(401))
  expect(await gauge('quick')).toBe(0)
  await eventually(() => expect(read('slow')).toHaveLength(401))
  expect(await gauge('slow')).toBe(0)
  operator.beats.length = 0
  await eventually(() => expect(operator.beats.length).toBeGreaterThan(1))
  for (const pipeline of ['slow', 'quick'])
    expect(lags(pipeline).filter((lag) => lag !== undefined && lag > 60)).toEqual([])
  expect(await agent.stop()).toBe(0)
})

test('sends permanently rejected events to the dead letter sink at a limited rate, and drops events that it rejects too', async () => {
  const { api, kubeConfig } = await cluster()
  await using _ = api
  type Letter = { message: string; metadata?: { dropped?: Record<string, string> } }
  const seen: Record<string, Letter[]> = { '/out': [], '/dead': [] }
  const refused = new Set(['/out'])
  const server = createServer((request, response) => {
    let text = ''
    request.on('data', (part) => {
      text += part
    })
    request.on('end', () => {
      const path = request.url ?? ''
      seen[path]?.push(...(JSON.parse(text) as Letter[]))
      response.writeHead(refused.has(path) ? 400 : 200).end()
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const { port } = server.address() as AddressInfo
  const sink = (path: string, input: string) => ({
    ...{ type: 'http', inputs: [input], encoding: { codec: 'json' }, healthcheck: false },
    ...{ uri: `http://127.0.0.1:${port}${path}`, batch: { timeout_secs: 0.1 } },
  })
  api.set('pods', pod('shop', 'web'))
  project(secretsDir, {})
  const { files } = bundleFiles({
    pipelines: { 'shop/a': { ...identity('uid-a'), deadLetter: { sink: 'shop/a/dead', perSecond: 2 } } },
    subscriptions: [{ cursor: 'uid-a/app', out: 'shop/a/app', namespaces: ['shop'] }],
    transforms: {
      'shop/a/keep': { type: 'remap', inputs: ['shop/a/app'], source: '. = {"text": .message}', reroute_dropped: true },
    },
    sinks: { 'shop/a/out': sink('/out', 'shop/a/keep'), 'shop/a/dead': sink('/dead', 'shop/a/keep.dropped') },
  })
  project(bundleDir, files)
  await using agent = new Agent(['--kube-config', kubeConfig])
  const letters = (text: string) => seen['/dead']?.filter(({ message }) => message.includes(text)) ?? []

  log('shop', 'web', 'first')
  await eventually(() => expect(letters('first'), agent.err).toHaveLength(1))
  expect(letters('first')[0]).toMatchObject({
    message: '{"text":"first"}',
    metadata: {
      dropped: {
        ...{ component_id: 'shop/a/out', component_kind: 'sink', component_type: 'http' },
        ...{ reason: 'rejected', message: expect.stringContaining('status 400') },
      },
    },
  })

  refused.add('/dead')
  log('shop', 'web', 'second')
  await eventually(() => expect(letters('second')).toHaveLength(1))
  refused.delete('/dead')
  await eventually(() => {
    log('shop', 'web', 'third')
    expect(letters('third').length).toBeGreaterThan(0)
  })
  expect(letters('second')).toHaveLength(1)

  for (let line = 0; line < 500; line++) log('shop', 'web', 'flood')
  await eventually(() =>
    expect(seen['/out']?.filter((event) => JSON.stringify(event).includes('flood'))).toHaveLength(500),
  )
  await eventually(() => {
    log('shop', 'web', 'last')
    expect(letters('last').length).toBeGreaterThan(0)
  })
  expect(letters('flood').length).toBeLessThan(250)
  expect(await agent.stop()).toBe(0)
  server.closeAllConnections()
  await new Promise((done) => server.close(done))
})

test('an agent older than the configuration requires keeps its current revision, and reports both versions', async () => {
  const { api, kubeConfig } = await cluster()
  await using _ = api
  await using operator = await Operator.start()
  api.set('pods', pod('shop', 'web'))
  log('shop', 'web', 'one')
  const args = ['--kube-config', kubeConfig, '--operator', operator.url, '--operator-token', join(folder, 'token')]
  const good = bundleFiles(reader('shop', 'a'))
  project(secretsDir, {})
  project(bundleDir, good.files)
  await using agent = new Agent(args)
  await eventually(() => expect(read('a')).toEqual(['one']))
  const next = bundleFiles(merged(reader('shop', 'a'), reader('shop', 'b')))
  const manifest = { ...JSON.parse(String(next.files['manifest.json'])), minAgentVersion: '99.0.0' }
  project(bundleDir, { ...next.files, 'manifest.json': JSON.stringify(manifest) })
  const reason = `The bundle needs an agent of version 99.0.0; this is ${version}.`
  await eventually(() => expect(operator.last).toMatchObject({ revision: good.rev, state: 'Waiting', reason }))
  log('shop', 'web', 'two')
  await eventually(() => expect(read('a')).toEqual(['one', 'two']))
  expect(read('b')).toEqual([])
  expect(await agent.stop()).toBe(0)
})

test('an agent with a read-only data folder is not ready, and reports the reason', async () => {
  const { kubeConfig, api } = await cluster()
  await using _ = api
  const port = await freePort()
  const ready = async () => {
    const answer = await fetch(`http://127.0.0.1:${port}/ready`)
    return [answer.status, await answer.text()]
  }
  project(secretsDir, {})
  project(bundleDir, bundleFiles(reader('shop', 'a')).files)
  // Root can write to every folder, so the folder must not exist.
  rmSync(join(folder, 'data'), { recursive: true })
  writeFileSync(join(folder, 'data'), '')
  await using agent = new Agent(['--kube-config', kubeConfig], {}, [], `127.0.0.1:${port}`)
  await vi.waitFor(
    async () => {
      const [status, text] = await ready()
      expect(status).toBe(503)
      expect(text).toContain(`Cannot write to the data folder ${join(folder, 'data')}`)
    },
    { timeout: 55_000, interval: 50 },
  )
  expect(agent.err).toContain('The agent is not ready.')
  rmSync(join(folder, 'data'))
  mkdirSync(join(folder, 'data'))
  await vi.waitFor(async () => expect(await ready()).toEqual([200, '{"ok":true}\n']), { timeout: 55_000, interval: 50 })
  await agent.stop()
})

/** A port on which no server listens. */
async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return port
}
