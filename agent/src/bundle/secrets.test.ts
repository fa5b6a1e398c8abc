// Secret values in the runner: each pipeline reads the values that the operator lists for it, and only these can delay it
// or make it fail.

import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { optionsOf } from '../config/component-options.ts'
import { loadConfigObject } from '../config/load.ts'
import { components } from '../registry.ts'
import { membersOf, type Schema, variantsOf } from '../schema/walk.ts'
import { Metrics } from '../telemetry/metrics.ts'
import { bundleFiles, project, type TestBundle } from '../testing/bundle.ts'
import { fakeDestination } from '../testing/destination.ts'
import { Topology } from '../topology/run.ts'
import type { Secrets } from './folder.ts'
import { loadPart, type PipelinePart } from './part.ts'
import { BundleRunner } from './runner.ts'

const eventually = (check: () => void) => vi.waitFor(check, { timeout: 30_000, interval: 20 })

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-secrets-'))
  for (const name of ['bundle', 'secrets', 'data']) mkdirSync(join(folder, name))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

class Rig implements AsyncDisposable {
  readonly logged: string[] = []
  readonly runner: BundleRunner
  readonly #topology: Topology

  private constructor(lateMs: number | undefined) {
    const metrics = new Metrics()
    const logger = pino({ level: 'trace' }, { write: (line) => void this.logged.push(line) })
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
])('$what that a pipeline does not list fails only this pipeline', async ({ key }) => {
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

test('an object with the marker and other members is not a placeholder', async () => {
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

test('a late value delays only the pipelines that list it, and they fail if it does not arrive', async () => {
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

  // The manifest arrives before the value.
  const second = put('2', { theirs: 'two' })
  await eventually(() => expect(rig.running).toEqual(['free/p 2', 'shop/p 1']))
  expect(rig.runner.state).toMatchObject({ revision: first, state: 'Waiting', failures: [] })
  expect(rig.runner.state.reason).toBe('The secret theirs of shop/p does not match its digest in the manifest.')
  project(join(folder, 'secrets'), { theirs: 'two' })
  await eventually(() => expect(rig.running).toEqual(['free/p 2', 'shop/p 2']))
  await eventually(() => expect(rig.runner.state).toMatchObject({ revision: second, state: 'Loaded', failures: [] }))
})

test('a value that does not arrive in time fails its pipeline, whose last good version continues', async () => {
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

test('after a restart, a pipeline with a late value runs its stored version', async () => {
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

/** Places for a value in every option of a schema, each filled at random. */
function placesIn(schema: Schema, path: readonly string[] = []): (readonly string[])[] {
  const variants = variantsOf(schema)
  if (variants !== undefined) return [path, ...variants.flatMap((variant) => placesIn(variant, path).slice(1))]
  return [path, ...Object.entries(membersOf(schema)).flatMap(([name, member]) => placesIn(member, [...path, name]))]
}

function optionsWith(path: readonly string[], value: unknown): Record<string, unknown> {
  const [name, ...rest] = path as [string, ...string[]]
  return { [name]: rest.length === 0 ? value : optionsWith(rest, value) }
}

test('no problem of an option with a secret shows a part of the value', () => {
  const kinds = { sink: 'sinks', source: 'sources', transform: 'transforms' } as const
  const secretTexts = [
    'S3cretMarker0123456789-abcdefghijklmnopqrstuvwxyz-S3cretMarker0123456789-and-more',
    'http://S3cretMarker0123456789@no/{{ S3cretMarker',
    '{"S3cretMarker0123456789": "S3cretMarker"',
  ]
  let judged = 0
  for (const component of components) {
    for (const path of placesIn(optionsOf(component).schema)) {
      const [first] = path
      if (first === undefined || first === 'type' || first === 'inputs') continue
      for (const text of secretTexts) {
        const id = 'evil/p/it'
        const options = { ...optionsWith(path, { $secret: 'own' }), type: component.type }
        const part: PipelinePart = {
          ...{ id: 'evil/p', subscriptions: [], sources: {}, transforms: {}, sinks: {} },
          [kinds[component.kind]]: {
            [id]: component.kind === 'source' ? options : { ...options, inputs: ['evil/p/in'] },
          },
          pipeline: { uid: 'u', generation: 1, hash: '1', restricted: true, secrets: [{ key: 'own' }] },
        }
        const own: Secrets = { value: () => Buffer.from(text), digest: () => 'digest' }
        const loaded = loadPart(part, own, { dataDir: folder, denied: [], env: {} })
        if (loaded.ok) continue
        judged++
        for (const problem of loaded.problems) {
          expect(
            `${problem.path} ${problem.message} ${problem.help ?? ''}`,
            `${component.type} ${path.join('.')}`,
          ).not.toMatch(/S3cretM|cretMarker|0123456/)
        }
      }
    }
  }
  expect(judged).toBeGreaterThan(1000)
})

test('the failure to build a component with a secret shows no part of the value', async () => {
  await using destination = await fakeDestination(200)
  const marker = 'S3cretMarker0123456789'
  const sinkWith = (options: object) => ({
    ...{ type: 'http', uri: destination.url, encoding: { codec: 'json' }, healthcheck: false },
    ...options,
  })
  const sinksWith: Readonly<Record<string, object>> = {
    map: { type: 'search_engine', endpoints: [destination.url], query: { $secret: 'own' } },
    address: sinkWith({ uri: { $secret: 'own' } }),
    header: sinkWith({ request: { headers: { authorization: { $secret: 'own' } } } }),
    key: sinkWith({ tls: { key_file: { $secret: 'own' }, crt_file: { $secret: 'own' } } }),
    account: {
      ...{ type: 'siem_unstructured', customer_id: 'c8c65bfa-5f2c-42d4-9189-64bb7b939f2c', log_type: 'L' },
      ...{ encoding: { codec: 'text' }, credentials_path: { $secret: 'own' } },
    },
  }
  const secretTexts = [`{"type":"${marker}\n"`, `-----BEGIN ${marker}`, `http://${marker}:${marker}@[`, `${marker}\n\r`]
  for (const [index, text] of secretTexts.entries()) {
    const ids = Object.keys(sinksWith).map((name) => `evil/${name}-${index}`)
    const bundle: TestBundle = {
      pipelines: Object.fromEntries(
        ids.map((id) => [id, { uid: id, generation: 1, hash: '1', restricted: true, secrets: [{ key: 'own' }] }]),
      ),
      sources: Object.fromEntries(ids.map((id) => [`${id}/in`, { type: 'demo_logs', format: 'json', interval: 0.05 }])),
      sinks: Object.fromEntries(
        Object.values(sinksWith).map((sink, at) => [`${ids[at]}/out`, { ...sink, inputs: [`${ids[at]}/in`] }]),
      ),
    }
    project(join(folder, 'secrets'), { own: text })
    project(join(folder, 'bundle'), bundleFiles(bundle, { own: text }).files)
    await using rig = await Rig.start()
    await eventually(() => expect(rig.runner.state).toMatchObject({ state: 'Loaded' }))
    expect(rig.runner.state.failures.length).toBeGreaterThan(0)
    for (const logged of [JSON.stringify(rig.runner.state), rig.logged.join('')]) {
      expect(logged).not.toMatch(/S3cretM|cretMarker|0123456/)
    }
  }
})

test('the log of a tenant’s components contains facts, but no events or responses that quote them', async () => {
  const card = 'CARD-4111-1111'
  const item = (status: number) => ({
    index: { status, error: { type: card, reason: `failed to parse field [message] with value [${card}]` } },
  })
  await using rejecting = await fakeDestination((request) => ({ status: 400, body: request.text() }))
  await using partly = await fakeDestination((request) =>
    request.method === 'GET'
      ? { status: 200, body: '{"version":{"number":"8.0.0"}}' }
      : { status: 200, body: JSON.stringify({ errors: true, items: [item(400)] }) },
  )
  const ids = ['rejected', 'bulk', 'template', 'address', 'program', 'codec'].map((name) => `shop/${name}`)
  const common = { encoding: { codec: 'json' }, healthcheck: false, batch: { timeout_secs: 0.05, max_events: 1 } }
  const sinks: readonly object[] = [
    { type: 'http', uri: rejecting.url, ...common },
    { type: 'search_engine', endpoints: [partly.url], batch: common.batch, api_version: 'v8', healthcheck: false },
    { type: 'http', uri: `${rejecting.url}/{{ none }}`, ...common },
    { type: 'http', uri: 'http://{{ message }}.invalid/', ...common, request: { retry_attempts: 0 } },
    { type: 'http', uri: rejecting.url, ...common },
    { type: 'http', uri: rejecting.url, ...common, encoding: { codec: 'csv', csv: { fields: ['none'] } } },
  ]
  const bundle: TestBundle = {
    pipelines: Object.fromEntries(ids.map((id) => [id, { uid: id, generation: 1, hash: '1', restricted: true }])),
    sources: Object.fromEntries(
      ids.map((id) => [`${id}/in`, { type: 'demo_logs', format: 'shuffle', lines: [card], interval: 0.05 }]),
    ),
    transforms: Object.fromEntries(
      ids.map((id) => [`${id}/change`, { type: 'remap', source: '.n = to_int!(.message)', inputs: [`${id}/in`] }]),
    ),
    sinks: Object.fromEntries(sinks.map((sink, at) => [`${ids[at]}/out`, { ...sink, inputs: [`${ids[at]}/change`] }])),
  }
  project(join(folder, 'secrets'), {})
  project(join(folder, 'bundle'), bundleFiles(bundle).files)
  await using rig = await Rig.start()
  const of = (id: string, level: number) =>
    rig.logged
      .map((line) => JSON.parse(line) as Record<string, unknown>)
      .filter((record) => String(record['component_id']).startsWith(`${id}/`) && Number(record['level']) >= level)
  await eventually(() => {
    for (const id of ids.slice(0, 4)) {
      expect(
        of(id, 40).some((record) => record['component_id'] === `${id}/out`),
        id,
      ).toBe(true)
    }
    expect(of('shop/program', 40).some((record) => record['component_id'] === 'shop/program/change')).toBe(true)
  })
  // The useful facts remain.
  expect(of('shop/rejected', 40)).toContainEqual(
    expect.objectContaining({ status: 400, error_type: 'request_failed', error_code: 'http_response_400' }),
  )
  expect(of('shop/template', 40)).toContainEqual(expect.objectContaining({ missing: ['none'] }))
  expect(rig.logged.join('')).not.toContain('4111')
  expect(rig.logged.join('').toLowerCase()).not.toContain(card.toLowerCase())
})
