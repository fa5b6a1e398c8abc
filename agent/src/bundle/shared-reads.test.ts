// Pipelines that read the same pods, from pod files to destinations: pipelines at the same position share the read, no pipeline
// waits for another, and each gets every line once.

import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { RateLimitOptions } from '../component.ts'
import { registry } from '../registry.ts'
import type { TestBundle } from '../testing/bundle.ts'
import { BundleRig } from '../testing/bundle-rig.ts'
import { CountedFiles } from '../testing/counted-files.ts'
import { type Destination, fakeDestination } from '../testing/destination.ts'
import { KubeApi } from '../testing/kube-api.ts'
import { Random } from '../testing/random.ts'

vi.setConfig({ testTimeout: 120_000 })

/** Reads by the tailers. */
const files = new CountedFiles()

let folder = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-shared-'))
  mkdirSync(join(folder, 'logs'))
  files.reset()
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const eventually = (check: () => void) => vi.waitFor(check, { timeout: 60_000, interval: 20 })
const fileOf = (namespace: string) => join(folder, 'logs', `${namespace}_web_web-${namespace}`, 'app', '0.log')
const lineOf = (namespace: string, number: number, size = 60) =>
  `2026-01-01T00:00:00.${String(number % 1000).padStart(3, '0')}Z stdout F {"of":"${namespace}","n":${number},"level":"info","text":"${'x'.repeat(size)}"}\n`
const numbers = (to: number, from = 0) => Array.from({ length: to - from }, (_, index) => from + index)
const linesOf = (namespace: string, to: number, from = 0, size?: number) =>
  numbers(to, from)
    .map((number) => lineOf(namespace, number, size))
    .join('')

function podOf(api: KubeApi, namespace: string, lines: string): void {
  api.set('namespaces', { metadata: { name: namespace } })
  api.set('pods', {
    metadata: { name: 'web', namespace, uid: `web-${namespace}`, ownerReferences: [{ kind: 'Job', name: 'j' }] },
    spec: { nodeName: 'node-1', containers: [{ name: 'app', image: 'app:1' }] },
    status: { containerStatuses: [{ name: 'app', imageID: 'app@1', containerID: 'containerd://1' }] },
  })
  mkdirSync(join(fileOf(namespace), '..'), { recursive: true })
  writeFileSync(fileOf(namespace), lines)
}

interface PipelineOptions {
  /** Undefined: all. */
  readonly namespaces?: readonly string[]
  readonly limit?: RateLimitOptions
  /** `objects`: the program needs event objects. */
  readonly lane?: 'bytes' | 'objects'
  readonly options?: Record<string, unknown>
}

interface Line {
  readonly of: string
  readonly n: number
  readonly orchestrator: { readonly pod_namespace: string }
}

const programs = {
  bytes: '. = merge(., object!(parse_json!(.message)))\ndel(.message)',
  objects:
    '. = merge(., object!(parse_json!(.message)))\n.message = null\nfor_each(["a"]) -> |_, name| { .name = name }',
}

class Pipelines implements AsyncDisposable {
  readonly #destination: Destination
  readonly #got: ReadonlyMap<string, Record<string, number[]>>
  /** Pipelines whose destinations accept nothing. */
  readonly stalled: Set<string>

  private constructor(
    destination: Destination,
    got: ReadonlyMap<string, Record<string, number[]>>,
    stalled: Set<string>,
  ) {
    this.#destination = destination
    this.#got = got
    this.stalled = stalled
  }

  static async start(): Promise<Pipelines> {
    const got = new Map<string, Record<string, number[]>>()
    const stalled = new Set<string>()
    const destination = await fakeDestination((request) => {
      const name = request.path.slice(1)
      if (stalled.has(name)) return 503
      const known = got.get(name) ?? {}
      got.set(name, known)
      for (const line of request.lines() as Line[]) {
        // The pod named in the line, and the pod that the agent attributes the line to.
        const from = line.of === line.orchestrator.pod_namespace ? line.of : 'mixed up'
        known[from] ??= []
        known[from].push(line.n)
      }
      return 200
    })
    return new Pipelines(destination, got, stalled)
  }

  bundle(pipelines: Readonly<Record<string, PipelineOptions>>): TestBundle {
    const id = (name: string, component: string) => `${name}/p/${component}`
    const names = Object.keys(pipelines)
    return {
      pipelines: Object.fromEntries(names.map((name) => [`${name}/p`, { uid: name, generation: 1, hash: name }])),
      subscriptions: Object.entries(pipelines).map(([name, { namespaces, limit, options = {} }]) => ({
        cursor: `${name}/app`,
        out: id(name, 'app'),
        options,
        ...(namespaces === undefined ? {} : { namespaces }),
        ...(limit === undefined ? {} : { limits: { pipeline: limit } }),
      })),
      transforms: Object.fromEntries(
        Object.entries(pipelines).map(([name, { lane = 'bytes' }]) => [
          id(name, 'edit'),
          { type: 'remap', inputs: [id(name, 'app')], source: programs[lane] },
        ]),
      ),
      sinks: Object.fromEntries(
        names.map((name) => [
          id(name, 'out'),
          {
            type: 'http',
            inputs: [id(name, 'edit')],
            uri: `${this.#destination.url}/${name}`,
            encoding: { codec: 'json' },
            framing: { method: 'newline_delimited' },
            batch: { timeout_secs: 0.05, max_events: 200 },
            request: { concurrency: 1, retry_initial_backoff_secs: 1, retry_max_duration_secs: 1 },
            buffer: { max_events: 200 },
            healthcheck: false,
          },
        ]),
      ),
    }
  }

  /** Numbers of the lines that a pipeline has delivered, by pod namespace, in order. */
  got(name: string): Record<string, number[]> {
    return this.#got.get(name) ?? {}
  }

  count(name: string): number {
    return Object.values(this.got(name)).reduce((sum, { length }) => sum + length, 0)
  }

  async [Symbol.asyncDispose]() {
    await this.#destination[Symbol.asyncDispose]()
  }
}

const sourceOf = (name: string) => `${name}/p/app`
/** A metric of each pipeline's source. */
const figures = (rig: BundleRig, metric: string, names: readonly string[]) =>
  names.map((name) => rig.metrics.byComponent([metric]).get(sourceOf(name))?.[metric] ?? 0)

const start = (api: KubeApi, bundle: TestBundle) =>
  BundleRig.start({ folder, components: registry, api, bundle, drainMs: 500, hub: { files } })

test.each(['bytes', 'objects'] as const)(
  'three pipelines read each chunk once, and each counts and delivers all lines like a single pipeline, as %s',
  async (lane) => {
    await using api = await KubeApi.start()
    const text = linesOf('shop', 6000)
    podOf(api, 'shop', text)
    await using pipelines = await Pipelines.start()
    const names = ['a', 'b', 'c']
    await using rig = await start(api, pipelines.bundle(Object.fromEntries(names.map((name) => [name, { lane }]))))
    for (const name of names) await eventually(() => expect(pipelines.count(name)).toBe(6000))
    for (const name of names) expect(pipelines.got(name)).toEqual({ shop: numbers(6000) })
    const received = figures(rig, 'component_received_bytes_total', names)
    expect(received).toEqual(names.map(() => text.length))
    expect(figures(rig, 'component_sent_events_total', names)).toEqual(names.map(() => 6000))
    // The third pipeline has read most of the lines of the other two.
    const [one = 0, two = 0, three = 0] = figures(rig, 'shared_reads_total', names)
    expect(one + two + three).toBeGreaterThan(text.length / 128 / 1024)
    expect(files.bytes).toBeGreaterThan(text.length)
    expect(files.bytes).toBeLessThan(2 * text.length)
    await eventually(() => expect(rig.events.gauges.get('shared_read_bytes')).toBe(0))
  },
)

test('a pipeline with a blocked destination delays no other, and gets every line later', async () => {
  await using api = await KubeApi.start()
  // More lines than may wait for it.
  podOf(api, 'shop', linesOf('shop', 8000, 0, 1200))
  await using pipelines = await Pipelines.start()
  pipelines.stalled.add('stuck')
  await using rig = await start(api, pipelines.bundle({ a: {}, stuck: {}, c: {} }))
  for (const name of ['a', 'c']) {
    await eventually(() => expect(pipelines.count(name)).toBe(8000))
  }
  // The lines waiting for it are bounded.
  expect(rig.events.gauges.get('shared_read_bytes') ?? 0).toBeLessThanOrEqual(4 << 20)
  await eventually(() => expect(rig.events.gauges.get('shared_read_bytes')).toBe(0))
  pipelines.stalled.clear()
  appendFileSync(fileOf('shop'), linesOf('shop', 8100, 8000))
  for (const name of ['a', 'stuck', 'c']) {
    await eventually(() => expect(pipelines.count(name)).toBe(8100))
    expect(pipelines.got(name)).toEqual({ shop: numbers(8100) })
  }
})

test('each pipeline has its own limits: one waits, one drops, and the third gets every line at once', async () => {
  await using api = await KubeApi.start()
  const count = 3000
  podOf(api, 'shop', linesOf('shop', count))
  await using pipelines = await Pipelines.start()
  await using rig = await start(
    api,
    pipelines.bundle({
      free: {},
      slow: { limit: { lines: 1000, onLimit: 'lag' } },
      drops: { limit: { lines: 500, onLimit: 'drop' } },
    }),
  )
  await eventually(() => expect(pipelines.got('free')).toEqual({ shop: numbers(count) }))
  await eventually(() => expect(pipelines.got('slow')).toEqual({ shop: numbers(count) }))
  const dropped = () => figures(rig, 'rate_limited_lines_total', ['free', 'slow', 'drops'])
  await eventually(() => {
    expect(dropped()).toEqual([0, 0, expect.any(Number)])
    expect((pipelines.got('drops')['shop']?.length ?? 0) + (dropped()[2] ?? 0)).toBe(count)
  })
  expect(pipelines.got('drops')['shop']?.slice(0, 500)).toEqual(numbers(500))
  expect(dropped()[2]).toBeGreaterThan(0)
})

test('each pipeline gets lines of the pods that it selects, and no byte of others', async () => {
  await using api = await KubeApi.start()
  const namespaces = ['shop', 'bank', 'mail']
  for (const namespace of namespaces) podOf(api, namespace, linesOf(namespace, 2000))
  await using pipelines = await Pipelines.start()
  const selected = { a: ['shop', 'bank'], b: ['bank', 'mail'], c: ['mail'] }
  await using rig = await start(
    api,
    pipelines.bundle({
      ...Object.fromEntries(Object.entries(selected).map(([name, of]) => [name, { namespaces: of }])),
      all: {},
    }),
  )
  for (const namespace of namespaces) appendFileSync(fileOf(namespace), linesOf(namespace, 2100, 2000))
  for (const [name, of] of Object.entries({ ...selected, all: namespaces })) {
    const all = Object.fromEntries(of.map((namespace) => [namespace, numbers(2100)]))
    await eventually(() => expect(pipelines.count(name)).toBe(of.length * 2100))
    expect(pipelines.got(name)).toEqual(all)
  }
  expect(figures(rig, 'shared_reads_total', ['all'])).not.toEqual([undefined])
})

test('each pipeline reads rotated and truncated files to their end', async () => {
  await using api = await KubeApi.start()
  podOf(api, 'shop', linesOf('shop', 2000))
  await using pipelines = await Pipelines.start()
  await using rig = await start(api, pipelines.bundle({ a: {}, b: {}, c: { lane: 'objects' } }))
  const names = ['a', 'b', 'c']
  const path = fileOf('shop')
  let next = 2000
  const write = (count: number) => {
    appendFileSync(path, linesOf('shop', next + count, next))
    next += count
  }
  const all = async () => {
    for (const name of names) {
      await eventually(() => expect(pipelines.count(name)).toBe(next))
      expect(pipelines.got(name)).toEqual({ shop: numbers(next) })
    }
  }
  await all()
  for (let round = 0; round < 3; round++) {
    write(1500)
    renameSync(path, `${path}.2026010${round}-000000`)
    write(700)
    await all()
  }
  // Like `copytruncate`: other lines follow at positions read before, and the file is shorter than it was.
  for (const count of [500, 300, 100]) {
    truncateSync(path)
    write(count)
    await all()
  }
  expect(figures(rig, 'shared_reads_total', names).some((count) => count > 0)).toBe(true)
})

test('files that began in the same step of the clock are read in the order of their rotation', async () => {
  await using api = await KubeApi.start()
  const namespaces = ['shop', 'bank', 'mail', 'chat']
  for (const namespace of namespaces) {
    podOf(api, namespace, '')
    const path = fileOf(namespace)
    const paths = [`${path}.20260101-000000`, `${path}.20260101-000001`, path]
    // Soon, all of them begin in one step, unless the file system has a finer clock.
    for (let tries = 0; tries < 100; tries++) {
      for (const each of paths) rmSync(each, { force: true })
      for (const [at, each] of paths.entries()) writeFileSync(each, linesOf(namespace, 10 * (at + 1), 10 * at))
      if (new Set(paths.map((each) => statSync(each).birthtimeMs)).size === 1) break
    }
  }
  await using pipelines = await Pipelines.start()
  await using _rig = await start(api, pipelines.bundle({ a: {} }))
  await eventually(() => expect(pipelines.count('a')).toBe(30 * namespaces.length))
  expect(pipelines.got('a')).toEqual(Object.fromEntries(namespaces.map((namespace) => [namespace, numbers(30)])))
})

test('after a restart each pipeline continues at its position, and they share reads again', async () => {
  await using api = await KubeApi.start()
  podOf(api, 'shop', linesOf('shop', 10_000))
  await using pipelines = await Pipelines.start()
  const bundle = pipelines.bundle({ a: {}, stuck: {}, c: {} })
  pipelines.stalled.add('stuck')
  {
    await using _rig = await start(api, bundle)
    for (const name of ['a', 'c']) await eventually(() => expect(pipelines.count(name)).toBe(10_000))
  }
  pipelines.stalled.clear()
  appendFileSync(fileOf('shop'), linesOf('shop', 12_000, 10_000))
  await using rig = await start(api, bundle)
  const names = ['a', 'stuck', 'c']
  for (const name of names) {
    await eventually(() => expect(pipelines.got(name)['shop']?.at(-1)).toBe(11_999))
    expect(pipelines.got(name)).toEqual({ shop: numbers(12_000) })
  }
  const [, before = 0] = figures(rig, 'shared_reads_total', names)
  for (let round = 0; round < 20; round++) {
    appendFileSync(fileOf('shop'), linesOf('shop', 12_000 + 100 * (round + 1), 12_000 + 100 * round))
    for (const name of names) {
      await eventually(() => expect(pipelines.count(name)).toBe(12_000 + 100 * (round + 1)))
    }
  }
  const [one = 0, two = 0, three = 0] = figures(rig, 'shared_reads_total', names)
  expect(one + two + three - before).toBeGreaterThan(20)
})

test('removing or changing a pipeline does not affect the others', async () => {
  await using api = await KubeApi.start()
  podOf(api, 'shop', linesOf('shop', 8000))
  await using pipelines = await Pipelines.start()
  await using rig = await start(api, pipelines.bundle({ a: {}, b: {}, c: {} }))
  await eventually(() => expect(pipelines.got('b')['shop']?.length ?? 0).toBeGreaterThan(1000))
  rig.put(pipelines.bundle({ a: {}, c: { lane: 'objects' } }))
  await eventually(() => expect([...rig.runner.pipelines()].map(({ id }) => id)).toEqual(['a/p', 'c/p']))
  appendFileSync(fileOf('shop'), linesOf('shop', 9000, 8000))
  for (const name of ['a', 'c']) {
    await eventually(() => expect(pipelines.count(name)).toBe(9000))
    expect(pipelines.got(name)).toEqual({ shop: numbers(9000) })
  }
})

test('each pipeline gets each line once, with any order of changes', async () => {
  const seed = Date.now() % 1_000_000
  const random = new Random(seed)
  await using api = await KubeApi.start()
  const namespaces = ['shop', 'bank', 'mail']
  const written: Record<string, number> = {}
  const write = (namespace: string, count: number) => {
    const from = written[namespace] ?? 0
    const lines = numbers(from + count, from).map((number) => lineOf(namespace, number, random.pick([5, 60, 3000])))
    const text = lines.join('')
    // A line may be written in two parts.
    const cut = random.below(text.length)
    appendFileSync(fileOf(namespace), text.slice(0, cut))
    appendFileSync(fileOf(namespace), text.slice(cut))
    written[namespace] = from + count
  }
  for (const namespace of namespaces) {
    podOf(api, namespace, '')
    write(namespace, 50)
  }
  await using pipelines = await Pipelines.start()
  const some: Record<string, PipelineOptions> = { a: {}, b: { lane: 'objects' }, c: {}, d: { namespaces: ['bank'] } }
  const names = Object.keys(some)
  await using rig = await start(api, pipelines.bundle(some))
  for (let step = 0; step < 150; step++) {
    const choice = random.next()
    const namespace = random.pick(namespaces)
    if (choice < 0.7) write(namespace, random.between(1, random.pick([5, 50, 400])))
    else if (choice < 0.8) {
      renameSync(fileOf(namespace), `${fileOf(namespace)}.2026${String(step).padStart(4, '0')}-000000`)
      write(namespace, 5)
    } else if (choice < 0.9) pipelines.stalled.add(random.pick(names))
    else pipelines.stalled.clear()
    await new Promise((resolve) => setTimeout(resolve, random.below(30)))
  }
  pipelines.stalled.clear()
  for (const name of names) {
    const expected = Object.fromEntries(
      (some[name]?.namespaces ?? namespaces).map((of) => [of, numbers(written[of] ?? 0)]),
    )
    await eventually(() => expect(pipelines.got(name), `${name}, seed ${seed}`).toEqual(expected))
  }
  expect(figures(rig, 'shared_reads_total', names).some((count) => count > 0)).toBe(true)
})
