// The runner in this process, with mounted folders and an operator on loopback that the test controls.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { pino } from 'pino'
import { expect, test, vi } from 'vitest'
import { loadConfigObject } from '../config/load.ts'
import { Metrics } from '../telemetry/metrics.ts'
import { bundleFiles, project, type TestBundle } from '../testing/bundle.ts'
import { Topology } from '../topology/run.ts'
import { type BundleManifest, type StreamBody, type StreamHead, sha256 } from './format.ts'
import { BundleRunner } from './runner.ts'
import { BundleStream } from './stream.ts'

const eventually = (check: () => void) => vi.waitFor(check, { timeout: 30_000, interval: 20 })

/** A pipeline with its own source; optionally its sink uses a secret value. */
function pipeline(id: string, { line = 'x', secret = '' } = {}): TestBundle {
  const auth = { strategy: 'basic', user: 'me', password: { $secret: secret } }
  return {
    pipelines: {
      [id]: { uid: id, generation: 1, hash: `${id} ${line}`, ...(secret === '' ? {} : { secrets: [{ key: secret }] }) },
    },
    sources: { [`${id}/in`]: { type: 'demo_logs', format: 'shuffle', lines: [line], interval: 0.05 } },
    sinks: {
      [`${id}/out`]:
        secret === ''
          ? { type: 'blackhole', inputs: [`${id}/in`] }
          : {
              ...{ type: 'http', uri: 'http://127.0.0.1:9/', encoding: { codec: 'json' }, healthcheck: false },
              ...{ inputs: [`${id}/in`], auth },
            },
    },
  }
}

const all = (...bundles: readonly TestBundle[]): TestBundle => ({
  pipelines: Object.assign({}, ...bundles.map((each) => each.pipelines)),
  sources: Object.assign({}, ...bundles.map((each) => each.sources)),
  sinks: Object.assign({}, ...bundles.map((each) => each.sinks)),
})

const head = (extra: Partial<StreamHead>): StreamHead => ({
  ...{ schema: 1, rev: 'r1', candidate: false, secretsEpoch: 'e1', minAgentVersion: '0.0.1', mark: 'm1' },
  ...extra,
})

/** A response with a bundle. */
function answer(
  bundle: TestBundle,
  extra: Partial<StreamHead> = {},
  values: Readonly<Record<string, string>> = {},
): Buffer {
  const { pipelines, sources = {}, sinks } = bundle
  const text = JSON.stringify({
    ...{ schema: 1, interpolation: 'none', hub: { subscriptions: [] }, transforms: {} },
    ...{ pipelines, sources, sinks },
  })
  const secrets = Object.fromEntries(
    Object.entries(values).map(([key, value]) => [key, { value: btoa(value), sha256: sha256(value) }]),
  )
  return gzipSync(`${JSON.stringify(head({ sha256: sha256(text), secrets, ...extra }))}\n${text}`)
}

class Rig implements AsyncDisposable {
  readonly folder = mkdtempSync(join(tmpdir(), 'penstock-stream-'))
  readonly metrics = new Metrics()
  /** Requests of agents, newest last, with their tokens. */
  readonly asked: (StreamBody & { readonly authorization: string | undefined })[] = []
  readonly lines: string[] = []
  readonly runner: BundleRunner
  readonly #stack = new AsyncDisposableStack()
  readonly #topology: Topology
  #answer: Buffer | number | undefined
  #wake = () => {}

  static async start(
    first: Buffer | number,
    mounted: TestBundle = pipeline('shop/mounted'),
    awayMs = 600_000,
  ): Promise<Rig> {
    let rig: Rig | undefined
    const server = createServer(async (request, response) => {
      let text = ''
      for await (const part of request) text += part
      if (rig === undefined) throw new Error('There is no agent yet.')
      rig.asked.push({ ...(JSON.parse(text) as StreamBody), authorization: request.headers.authorization })
      const answer = await rig.#next()
      if (typeof answer === 'number') response.writeHead(answer).end()
      else response.writeHead(200, { 'content-type': 'application/gzip' }).end(answer)
    })
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
    rig = new Rig(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, awayMs)
    rig.#stack.defer(() => {
      server.closeAllConnections()
      server.close()
    })
    rig.say(first)
    rig.mount(mounted)
    await rig.runner.start(rig.#topology)
    return rig
  }

  private constructor(url: string, awayMs: number) {
    for (const name of ['bundle', 'secrets', 'data']) mkdirSync(join(this.folder, name))
    project(join(this.folder, 'secrets'), {})
    writeFileSync(join(this.folder, 'token'), 'of-the-pod\n')
    const { metrics } = this
    const logger = pino({ level: 'info' }, { write: (line) => void this.lines.push(line) })
    const loaded = loadConfigObject({ data_dir: join(this.folder, 'data') }, { env: {}, allowEmpty: true })
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems))
    const stream = new BundleStream({
      ...{ url, tokenFile: join(this.folder, 'token'), caFile: join(this.folder, 'none'), logger, metrics },
      busy: () => this.runner.busy(),
      startMs: 1000,
      awayMs,
    })
    this.runner = new BundleRunner({
      bundleDir: join(this.folder, 'bundle'),
      secretsDir: join(this.folder, 'secrets'),
      dataDir: join(this.folder, 'data'),
      node: 'node-1',
      denied: [],
      stream,
      logger,
      metrics,
      openHub: () => Promise.reject(new Error('No pods are read here.')),
    })
    this.#topology = new Topology(loaded.config, { logger, metrics, bundle: this.runner.parts, drainMs: 1000 })
  }

  mount(bundle: TestBundle, delivery: 'Stream' | 'Mounted' = 'Stream'): void {
    const { files } = bundleFiles(bundle)
    const manifest = JSON.parse(String(files['manifest.json'])) as BundleManifest
    const text = JSON.stringify({ ...manifest, ...(delivery === 'Mounted' ? {} : { delivery }) })
    project(join(this.folder, 'bundle'), { ...files, 'manifest.json': text })
  }

  /** Sets the operator's next response; a status is repeated until it changes. */
  say(what: Buffer | number): void {
    this.#answer = what
    this.#wake()
  }

  async #next(): Promise<Buffer | number> {
    while (this.#answer === undefined) await new Promise<void>((done) => (this.#wake = done))
    const answer = this.#answer
    if (typeof answer !== 'number') this.#answer = undefined
    return answer
  }

  /** All logged text. */
  get logText(): string {
    return this.lines.join('')
  }

  get running(): string[] {
    return [...this.runner.pipelines()].map(({ id }) => id).sort()
  }

  async [Symbol.asyncDispose]() {
    const stopped = this.runner.stop()
    this.say(503)
    await stopped
    await this.#topology.stop(1000)
    await this.#stack.disposeAsync()
    rmSync(this.folder, { recursive: true, force: true })
  }
}

test('a streamed bundle runs in place of the mounted one, and the agent reports its revision', async () => {
  const secret = 'keep-quiet'
  const given = answer(all(pipeline('shop/one', { secret: 'k1' }), pipeline('shop/two')), {}, { k1: secret })
  await using rig = await Rig.start(given)
  await eventually(() => expect(rig.running).toEqual(['shop/one', 'shop/two']))
  expect(rig.runner.state).toMatchObject({ revision: 'r1', secretsEpoch: 'e1', delivery: 'Stream', state: 'Loaded' })
  expect(rig.runner.state.failures).toEqual([])
  expect(rig.metrics.sum('config_delivery_info', { delivery: 'stream' })).toBe(1)
  expect(rig.metrics.sum('config_delivery_info', { delivery: 'mounted' })).toBe(0)
  expect(rig.asked[0]).toMatchObject({ schema: 1, authorization: 'Bearer of-the-pod' })
  expect(rig.asked[0]?.have).toBeUndefined()
  await eventually(() => expect(rig.asked.length).toBeGreaterThan(1))
  expect(rig.asked[1]?.have).toEqual({ rev: 'r1', candidate: false, mark: 'm1' })
  expect(rig.asked[1]?.waitMs).toBeGreaterThanOrEqual(30_000)

  // The same bundle under another revision: no pipeline is built again.
  const before = rig.metrics.sum('component_received_events_total', { component_id: 'shop/two/out' })
  rig.say(gzipSync(JSON.stringify(head({ rev: 'r2', candidate: true, secretsEpoch: 'e2' }))))
  await eventually(() =>
    expect(rig.runner.state).toMatchObject({ revision: 'r2', candidate: true, secretsEpoch: 'e2' }),
  )
  expect(rig.running).toEqual(['shop/one', 'shop/two'])
  await eventually(() =>
    expect(rig.metrics.sum('component_received_events_total', { component_id: 'shop/two/out' })).toBeGreaterThan(
      before,
    ),
  )
  // An undeliverable event makes a pipeline busy.
  await eventually(() => expect(rig.runner.busy()).toContain('shop/one'))
  await eventually(() => expect(rig.asked.at(-1)?.have).toEqual({ rev: 'r2', candidate: true, mark: 'm1' }))

  rig.say(answer(pipeline('shop/two'), { rev: 'r2', candidate: true, mark: 'm2' }))
  await eventually(() => expect(rig.running).toEqual(['shop/two']))
  expect(rig.logText).not.toContain(secret)
  expect(rig.logText).not.toContain(btoa(secret))
})

const good = answer(pipeline('shop/next', { secret: 'k1' }), { rev: 'r2', mark: 'm2' }, { k1: 'a-secret' })
test.each([
  { what: 'cut off', file: good.subarray(0, 60), message: /cannot be decompressed/ },
  { what: 'not what it says', file: gzipSync('no JSON {"k1":"a-secret"}\n{}'), message: /has schema undefined/ },
  {
    what: 'of another digest',
    file: answer(pipeline('shop/next'), { rev: 'r2', sha256: sha256('other') }),
    message: /does not match the digest/,
  },
  {
    what: 'with another secret',
    file: answer(pipeline('shop/next', { secret: 'k1' }), {
      secrets: { k1: { value: btoa('a-secret'), sha256: sha256('another') } },
    }),
    message: /a value of the secret k1 that does not match/,
  },
  { what: 'about another bundle', file: gzipSync(JSON.stringify(head({ mark: 'm7' }))), message: /has no bundle/ },
  {
    what: 'for a newer agent',
    file: answer(pipeline('shop/next'), { minAgentVersion: '99.0.0' }),
    message: /99\.0\.0/,
  },
])('an answer that is $what has no effect', async ({ file, message }) => {
  await using rig = await Rig.start(answer(pipeline('shop/one')))
  await eventually(() => expect(rig.running).toEqual(['shop/one']))
  rig.say(file)
  await eventually(() => expect(rig.metrics.sum('config_stream_failures_total')).toBeGreaterThan(0))
  expect(rig.logText).toMatch(message)
  expect(rig.logText).not.toContain('a-secret')
  expect(rig.logText).not.toContain(btoa('a-secret'))
  expect(rig.running).toEqual(['shop/one'])
  expect(rig.runner.state).toMatchObject({ revision: 'r1', state: 'Loaded' })
  // The next valid one is accepted.
  rig.say(answer(pipeline('shop/after'), { rev: 'r3', mark: 'm3' }))
  await eventually(() => expect(rig.running).toEqual(['shop/after']))
})

test('a value that is absent from an answer is missing only for the pipelines that list it', async () => {
  await using rig = await Rig.start(answer(all(pipeline('shop/one', { secret: 'k1' }), pipeline('shop/two'))))
  await eventually(() => expect(rig.running).toEqual(['shop/two']))
  await eventually(() =>
    expect(rig.runner.state).toMatchObject({
      revision: 'r1',
      state: 'Loaded',
      failures: [{ pipeline: 'shop/one', reason: 'SecretMissing' }],
    }),
  )
})

test('without an operator the mounted bundle runs, until an operator responds, and again after a long outage', async () => {
  await using rig = await Rig.start(503, undefined, 1000)
  expect(rig.running).toEqual(['shop/mounted'])
  expect(rig.runner.state).toMatchObject({ delivery: 'Mounted', state: 'Loaded' })
  rig.say(answer(pipeline('shop/one')))
  await eventually(() => expect(rig.running).toEqual(['shop/one']))
  const failures = rig.metrics.sum('config_stream_failures_total')
  rig.say(503)
  await eventually(() => expect(rig.metrics.sum('config_stream_failures_total')).toBeGreaterThan(failures))
  expect(rig.running).toEqual(['shop/one'])
  await eventually(() => expect(rig.running).toEqual(['shop/mounted']))
  expect(rig.metrics.sum('config_delivery_info', { delivery: 'mounted' })).toBe(1)
  rig.say(answer(pipeline('shop/one')))
  await eventually(() => expect(rig.running).toEqual(['shop/one']))
})

test('the manifest determines whether the agent requests bundles from the operator', async () => {
  await using rig = await Rig.start(answer(pipeline('shop/one')))
  await eventually(() => expect(rig.running).toEqual(['shop/one']))
  rig.mount(pipeline('shop/mounted'), 'Mounted')
  await eventually(() => expect(rig.running).toEqual(['shop/mounted']))
  const { length } = rig.asked
  rig.mount(all(pipeline('shop/mounted'), pipeline('shop/more')), 'Mounted')
  await eventually(() => expect(rig.running).toEqual(['shop/more', 'shop/mounted']))
  expect(rig.asked.length).toBe(length)
  rig.say(answer(pipeline('shop/one'), { rev: 'r2' }))
  rig.mount(pipeline('shop/mounted'))
  await eventually(() => expect(rig.running).toEqual(['shop/one']))
})
