// Secret values in the runner: each pipeline reads those that the operator lists for it, and waits or fails for them alone.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { loadConfigObject } from '../config/load.ts'
import { Metrics } from '../telemetry/metrics.ts'
import { bundleFiles, project, type TestBundle } from '../testing/bundle.ts'
import { fakeDestination } from '../testing/destination.ts'
import { Topology } from '../topology/run.ts'
import { BundleRunner } from './runner.ts'

vi.setConfig({ testTimeout: 60_000 })
const eventually = (check: () => void) => vi.waitFor(check, { timeout: 30_000, interval: 20 })

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-secrets-'))
  for (const name of ['bundle', 'secrets', 'data']) mkdirSync(join(folder, name))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

class Rig implements AsyncDisposable {
  readonly said: string[] = []
  readonly runner: BundleRunner
  readonly #topology: Topology

  private constructor(lateMs: number | undefined) {
    const metrics = new Metrics()
    const logger = pino({ level: 'trace' }, { write: (line) => void this.said.push(line) })
    const dataDir = join(folder, 'data')
    const loaded = loadConfigObject({ data_dir: dataDir }, { env: {}, allowEmpty: true })
    if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems))
    this.runner = new BundleRunner({
      bundleDir: join(folder, 'bundle'),
      secretsDir: join(folder, 'secrets'),
      dataDir,
      node: 'node-1',
      denied: [],
      logger,
      metrics,
      openHub: async () => ({}),
      ...(lateMs === undefined ? {} : { lateMs }),
    })
    this.#topology = new Topology(loaded.config, { logger, metrics, bundle: this.runner.parts, drainMs: 1000 })
  }

  static async start(lateMs?: number): Promise<Rig> {
    const rig = new Rig(lateMs)
    await rig.runner.start(rig.#topology)
    return rig
  }

  get running(): string[] {
    return [...this.runner.pipelines()].map(({ id, part }) => `${id} ${part.pipeline.hash}`).sort()
  }

  async [Symbol.asyncDispose]() {
    await this.runner.stop()
    await this.#topology.stop(1000)
  }
}

/** A pipeline whose sink sends these headers. */
function pipeline(id: string, hash: string, url: string, headers: object, listed: readonly string[]): TestBundle {
  return {
    pipelines: { [id]: { uid: id, generation: 1, hash, secrets: listed.map((key) => ({ key })) } },
    sources: { [`${id}/in`]: { type: 'demo_logs', format: 'shuffle', lines: ['x'], interval: 0.05 } },
    sinks: {
      [`${id}/out`]: {
        ...{ type: 'http', uri: url, encoding: { codec: 'json' }, healthcheck: false, inputs: [`${id}/in`] },
        ...{ batch: { timeout_secs: 0.05 }, request: { headers } },
      },
    },
  }
}

const all = (...bundles: readonly TestBundle[]): TestBundle => ({
  pipelines: Object.assign({}, ...bundles.map((each) => each.pipelines)),
  sources: Object.assign({}, ...bundles.map((each) => each.sources)),
  sinks: Object.assign({}, ...bundles.map((each) => each.sinks)),
})

const values = { own: 'value-of-evil', theirs: 'value-of-shop' }
const requested = ({ requests }: Awaited<ReturnType<typeof fakeDestination>>) =>
  JSON.stringify(requests.map(({ headers }) => headers))

test.each([
  { what: 'a key of another pipeline', key: 'theirs' },
  { what: 'a key of nobody', key: 'ffff' },
  { what: 'a way to another folder', key: '../data/x' },
  { what: 'an inherited name', key: 'constructor' },
])('$what that a pipeline does not list is that pipeline’s failure alone', async ({ key }) => {
  await using destination = await fakeDestination(200)
  project(join(folder, 'secrets'), values)
  const bundle = all(
    pipeline('evil/p', '1', destination.url, { a: { $secret: key } }, ['own']),
    pipeline('shop/p', '1', destination.url, { b: { $secret: 'theirs' } }, ['theirs']),
  )
  const { files, rev } = bundleFiles(bundle, values)
  project(join(folder, 'bundle'), files)
  await using rig = await Rig.start()
  await eventually(() => expect(requested(destination)).toContain('"b":"value-of-shop"'))
  await eventually(() =>
    expect(rig.runner.state).toMatchObject({
      revision: rev,
      state: 'Loaded',
      failures: [{ pipeline: 'evil/p', reason: 'SecretNotListed' }],
    }),
  )
  expect(rig.running).toEqual(['shop/p 1'])
  expect(requested(destination)).not.toContain('"a":"value-of-shop"')
})

test('an object with the marker and something else is no place for a value', async () => {
  await using destination = await fakeDestination(200)
  project(join(folder, 'secrets'), values)
  const headers = { nested: 'x', $secret: 'theirs' }
  const bundle = all(
    pipeline('evil/p', '1', destination.url, headers, ['own']),
    pipeline('shop/p', '1', destination.url, { b: { $secret: 'theirs' } }, ['theirs']),
  )
  project(join(folder, 'bundle'), bundleFiles(bundle, values).files)
  await using rig = await Rig.start()
  await eventually(() => expect(requested(destination)).toContain('"b":"value-of-shop"'))
  await eventually(() => expect(requested(destination)).toContain('"nested":"x"'))
  expect(rig.runner.state).toMatchObject({ state: 'Loaded', failures: [] })
  for (const { headers: sent } of destination.requests) {
    if (sent['nested'] !== undefined) expect(JSON.stringify(sent)).not.toContain('value-of-shop')
  }
})

test('a value that is late holds up the pipelines that list it; the others go on, and it fails when it does not come', async () => {
  await using destination = await fakeDestination(200)
  const bundleOf = (hash: string) =>
    all(
      pipeline('shop/p', hash, destination.url, { b: { $secret: 'theirs' } }, ['theirs']),
      pipeline('free/p', hash, destination.url, { c: hash }, []),
    )
  const put = (hash: string, secrets: Record<string, string>) => {
    const { files, rev } = bundleFiles(bundleOf(hash), secrets)
    project(join(folder, 'bundle'), files)
    return rev
  }
  project(join(folder, 'secrets'), { theirs: 'one' })
  const first = put('1', { theirs: 'one' })
  await using rig = await Rig.start(60_000)
  expect(rig.running).toEqual(['free/p 1', 'shop/p 1'])

  // The manifest is there before the value.
  const second = put('2', { theirs: 'two' })
  await eventually(() => expect(rig.running).toEqual(['free/p 2', 'shop/p 1']))
  expect(rig.runner.state).toMatchObject({ revision: first, state: 'Waiting', failures: [] })
  expect(rig.runner.state.reason).toBe('The secret theirs of shop/p is of another age than the manifest.')
  project(join(folder, 'secrets'), { theirs: 'two' })
  await eventually(() => expect(rig.running).toEqual(['free/p 2', 'shop/p 2']))
  await eventually(() => expect(rig.runner.state).toMatchObject({ revision: second, state: 'Loaded', failures: [] }))
})

test('a value that does not come in time fails its pipeline, whose last good version runs on', async () => {
  await using destination = await fakeDestination(200)
  const bundleOf = (hash: string) =>
    all(
      pipeline('shop/p', hash, destination.url, { b: { $secret: 'theirs' } }, ['theirs']),
      pipeline('free/p', hash, destination.url, { c: hash }, []),
    )
  project(join(folder, 'secrets'), { theirs: 'one' })
  project(join(folder, 'bundle'), bundleFiles(bundleOf('1'), { theirs: 'one' }).files)
  await using rig = await Rig.start(200)
  const { files, rev } = bundleFiles(bundleOf('2'), { theirs: 'two' })
  project(join(folder, 'bundle'), files)
  await eventually(() =>
    expect(rig.runner.state).toMatchObject({
      revision: rev,
      state: 'Loaded',
      failures: [{ pipeline: 'shop/p', reason: 'SecretMissing' }],
    }),
  )
  expect(rig.running).toEqual(['free/p 2', 'shop/p 1'])
  const count = destination.requests.length
  await eventually(() => expect(requested(destination).slice(count)).toContain('"b":"one"'))
  project(join(folder, 'secrets'), { theirs: 'two' })
  await eventually(() => expect(rig.running).toEqual(['free/p 2', 'shop/p 2']))
  await eventually(() => expect(rig.runner.state).toMatchObject({ state: 'Loaded', failures: [] }))
})

test('after a restart a pipeline whose value is late runs the version that was kept', async () => {
  await using destination = await fakeDestination(200)
  const bundleOf = (hash: string) =>
    all(
      pipeline('shop/p', hash, destination.url, { b: { $secret: 'theirs' } }, ['theirs']),
      pipeline('free/p', hash, destination.url, { c: hash }, []),
    )
  project(join(folder, 'secrets'), { theirs: 'one' })
  project(join(folder, 'bundle'), bundleFiles(bundleOf('1'), { theirs: 'one' }).files)
  await using first = await Rig.start()
  expect(first.running).toEqual(['free/p 1', 'shop/p 1'])
  await first[Symbol.asyncDispose]()

  project(join(folder, 'bundle'), bundleFiles(bundleOf('2'), { theirs: 'two' }).files)
  await using second = await Rig.start()
  expect(second.running).toEqual(['free/p 2', 'shop/p 1'])
  expect(second.runner.state).toMatchObject({ state: 'Waiting', failures: [] })
})
