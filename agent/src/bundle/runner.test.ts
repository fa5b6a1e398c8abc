// The runner in this process, with pod logs in a folder and an API server on loopback. Some components are test doubles: a
// transform whose work advances the test's clock, and a sink that stores its events and may block.

import { mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { defineSink, defineTransform, erased, registryOf, type Sink } from '../component.ts'
import type { Batch, LogBatch } from '../event/batch.ts'
import { kubeConfigTarget } from '../kube/config.ts'
import { registry } from '../registry.ts'
import { float, text } from '../schema/options.ts'
import { merged, type TestBundle } from '../testing/bundle.ts'
import { BundleRig } from '../testing/bundle-rig.ts'
import { CountedFiles } from '../testing/counted-files.ts'
import { fakeDestination } from '../testing/destination.ts'
import { KubeApi } from '../testing/kube-api.ts'

/** Reads by the tailers, while the reader of logs waits for them. */
const files = new CountedFiles()

/** The events that sinks received, by pipeline id, and those held back. */
const got = new Map<string, string[]>()
const hanging = new Set<string>()
const held: Batch[] = []
const resumes: (() => void)[] = []
let clockMs = 0

const work = defineTransform({
  type: 'work',
  summary: 'Takes counted time.',
  accepts: ['log'],
  options: { cost_ms: float('Of an event.', { default: 1 }) },
  build({ cost_ms }) {
    return {
      transform(batch, output) {
        clockMs += batch.count * cost_ms
        output.send(batch)
        return undefined
      },
    }
  },
})

const keep = defineSink({
  type: 'keep',
  summary: 'Keeps what it gets.',
  accepts: ['log'],
  options: { mark: text('Changes nothing.', { default: '' }) },
  build(_, { id }): Sink {
    const pipeline = id.slice(0, id.lastIndexOf('/'))
    const lines = got.get(pipeline) ?? []
    got.set(pipeline, lines)
    return {
      write(batch) {
        if (hanging.has(pipeline)) {
          held.push(batch)
          return new Promise((resolve) => resumes.push(resolve))
        }
        for (const event of (batch as LogBatch).events) lines.push(String(event.fields['message']))
        batch.finalizer.release(1, 'delivered')
        return undefined
      },
      async close() {},
      async healthcheck() {},
    }
  },
})
const components = registryOf([...registry.all, erased(work), erased(keep)])

let folder = ''
let logs = ''
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-runner-'))
  logs = join(folder, 'logs')
  mkdirSync(logs)
  got.clear()
  hanging.clear()
  held.length = 0
  resumes.length = 0
})
afterEach(() => {
  vi.restoreAllMocks()
  rmSync(folder, { recursive: true, force: true })
})

const eventually = (check: () => void) => vi.waitFor(check, { timeout: 30_000, interval: 20 })
const fileOf = (pipeline: string) => join(logs, `${pipeline}_web_web-${pipeline}`, 'app', '0.log')
const criLine = (text: string, tag = 'F') => `2026-01-01T00:00:00.000000000Z stdout ${tag} ${text}\n`

/** A pod in a namespace of its own with these lines. */
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

/** A line of a pod that need not exist at the API. */
function podLog(namespace: string, text: string): void {
  mkdirSync(join(fileOf(namespace), '..'), { recursive: true })
  writeFileSync(fileOf(namespace), criLine(text), { flag: 'a' })
}

/** A pipeline that reads a namespace and has the same name. */
function reader(
  namespace: string,
  more: { transform?: object; sink?: object; entry?: object; options?: Record<string, unknown> } = {},
) {
  const id = `${namespace}/p`
  const changed = more.transform === undefined ? {} : { [`${id}/change`]: { inputs: [`${id}/app`], ...more.transform } }
  return {
    pipelines: { [id]: { uid: namespace, generation: 1, hash: namespace, restricted: true, ...more.entry } },
    subscriptions: [
      { cursor: `${namespace}/app`, out: `${id}/app`, namespaces: [namespace], options: more.options ?? {} },
    ],
    transforms: changed,
    sinks: {
      [`${id}/out`]: {
        type: 'keep',
        inputs: [more.transform === undefined ? `${id}/app` : `${id}/change`],
        ...more.sink,
      },
    },
  } satisfies TestBundle
}

type HubOptions = Parameters<typeof BundleRig.start>[0]['hub']
const Rig = {
  start: (api: KubeApi, bundle: TestBundle, drainMs?: number, hub?: HubOptions) =>
    BundleRig.start({ folder, components, api, bundle, drainMs, hub: { files, ...hub } }),
}

test('an expensive pipeline gets no more CPU time than its neighbours, and they continue', async () => {
  // Only counted work advances the clock, so the test does not depend on the machine's speed.
  vi.spyOn(performance, 'now').mockImplementation(() => clockMs)
  await using api = await KubeApi.start()
  const lines = 12_000
  const light = ['a', 'b', 'c', 'd']
  const text = Array.from({ length: lines }, (_, index) => criLine(`line ${index} ${'x'.repeat(60)}`)).join('')
  for (const namespace of [...light, 'heavy', 'wide']) podOf(api, namespace, text)
  /** The lines written and read for each, when the first of the light ones had finished. */
  let after: Record<string, { usedMs: number; lines: number }> | undefined
  const bundle = merged(
    ...light.map((name) => reader(name, { transform: { type: 'work', cost_ms: 0.05 }, entry: { cpuShare: 50 } })),
    reader('heavy', { transform: { type: 'work', cost_ms: 0.5 }, entry: { cpuShare: 50 } }),
    reader('wide', { transform: { type: 'work', cost_ms: 0.5 }, entry: { cpuShare: 150 } }),
  )
  await using rig = await Rig.start(api, bundle)
  const watched = got.get('a/p') as string[]
  const push = watched.push.bind(watched)
  watched.push = (...items) => {
    const length = push(...items)
    if (length >= lines && after === undefined) {
      after = Object.fromEntries(
        [...got].map(([id, kept]) => [
          id.slice(0, -2),
          { usedMs: rig.runner.parts.shares?.get(id)?.usedMs ?? 0, lines: kept.length },
        ]),
      )
    }
    return length
  }
  await eventually(() => expect(got.get('heavy/p')).toHaveLength(lines))
  for (const name of light) expect(got.get(`${name}/p`)).toHaveLength(lines)

  const { a, heavy, wide } = after as unknown as Record<string, { usedMs: number; lines: number }>
  const piece = 700 * 0.5 // the maximum cost of one chunk's lines
  expect(a?.usedMs).toBeGreaterThan(lines * 0.05 - 50)
  expect(Math.abs((heavy?.usedMs ?? 0) - (a?.usedMs ?? 0))).toBeLessThanOrEqual(2 * piece)
  expect(Math.abs((wide?.usedMs ?? 0) - 3 * (a?.usedMs ?? 0))).toBeLessThanOrEqual(2 * piece)
  expect(heavy?.lines).toBeLessThan(lines / 2) // it lags behind only at its own position
})

const nothing = reader('other')

test.each([
  { buffer: { type: 'memory' }, kept: 'is discarded' },
  { buffer: { type: 'disk', max_size: 268_435_488 }, kept: 'stays in its buffer' },
])(
  'a removed pipeline delivers its events for a limited time; then the rest $kept, and returns with it',
  async ({ buffer, kept }) => {
    await using api = await KubeApi.start()
    podOf(api, 'shop', criLine('one') + criLine('two'))
    podOf(api, 'other', criLine('other'))
    let answers: 'hang' | 200 = 'hang'
    await using destination = await fakeDestination(() => answers)
    const sink = {
      type: 'http',
      uri: destination.url,
      encoding: { codec: 'text' },
      framing: { method: 'newline_delimited' },
      batch: { timeout_secs: 0.05 },
      healthcheck: false,
      acknowledgements: true,
      buffer,
    }
    const both = merged(reader('shop', { sink }), nothing)
    await using rig = await Rig.start(api, both, 500)
    await destination.received(1)
    rig.put(nothing)
    await eventually(() => expect(rig.logged.join('')).toContain(`the rest ${kept}`))
    expect(rig.logged.join('')).toContain('"component_id":"shop/p/out"')

    answers = 200
    const before = destination.requests.length
    rig.put(both)
    await eventually(() => {
      const lines = destination.requests.slice(before).flatMap((request) => request.text().trim().split('\n'))
      expect(lines).toEqual(['one', 'two'])
    })
  },
)

test('a removed pipeline loses nothing if its destination responds in time', async () => {
  await using api = await KubeApi.start()
  podOf(api, 'shop', criLine('one') + criLine('two'))
  podOf(api, 'other', criLine('other'))
  hanging.add('shop/p')
  await using rig = await Rig.start(api, merged(reader('shop'), nothing), 60_000)
  await eventually(() => expect(held).toHaveLength(1))
  rig.put(nothing)
  await eventually(() => expect([...rig.runner.pipelines()].map(({ id }) => id)).toEqual(['other/p']))
  writeFileSync(fileOf('other'), criLine('more'), { flag: 'a' })
  await eventually(() => expect(got.get('other/p')).toEqual(['other', 'more']))
  hanging.clear()
  for (const batch of held) batch.finalizer.release(1, 'delivered')
  for (const resume of resumes) resume()
  rig.put(merged(reader('shop'), nothing))
  writeFileSync(fileOf('shop'), criLine('three'), { flag: 'a' })
  await eventually(() => expect(got.get('shop/p')).toEqual(['three']))
})

test.each([
  ['.orchestrator.pod_namespace = "forged"', 1],
  ['. = {"message": "m", "orchestrator": {"pod_namespace": "forged"}}', 1],
  ['. = [{"message": "m"}, {"message": "n"}]', 2], // events created by a program keep their origin
  ['. = merge(., {"vector": {"orchestrator": {"pod_namespace": "forged"}}})', 1],
  ['x = object!(%vector.orchestrator); x.pod_namespace = "forged"; .x = x; .message = "m"', 1],
  ['x = %; x.vector.orchestrator.pod_namespace = "forged"; .message = string!(x.vector.orchestrator.pod_namespace)', 1],
  ['.x = %vector; .x.orchestrator.pod_namespace = "forged"; .message = "m"', 1],
  ['.x = remove!(%, ["vector", "orchestrator", "pod_namespace"]); .message = "m"', 1],
  ['.x = set!(%, ["vector", "orchestrator", "pod_namespace"], "forged"); .message = "m"', 1],
  ['for_each(object!(%vector.orchestrator)) -> |_, value| { value = "forged" }; .message = "m"', 1],
  ['%orchestrator = {"pod_namespace": "forged"}; %mine.vector.orchestrator.pod_namespace = "forged"', 1],
  ['del(.); .message = "m"', 1],
  ['abort', 0],
])('does not let users forge the inputs of an enforced value by: %s', async (source, events) => {
  await using api = await KubeApi.start()
  podOf(api, 'shop', criLine('one'))
  podOf(api, 'other', criLine('other'))
  await using destination = await fakeDestination()
  const sink = {
    type: 'http',
    uri: `${destination.url}/{{ %vector.orchestrator.pod_namespace }}`,
    encoding: { codec: 'json' },
    framing: { method: 'newline_delimited' },
    batch: { timeout_secs: 0.05 },
    healthcheck: false,
  }
  const more = { transform: { type: 'remap', source }, sink }
  await using rig = await Rig.start(api, merged(reader('shop', more), reader('other')))
  await eventually(() => expect(got.get('other/p')).toEqual(['other']))
  expect(rig.runner.state.failures).toEqual([])
  const lines = () => destination.requests.flatMap((request) => request.lines())
  await eventually(() => expect(lines()).toHaveLength(events))
  for (const { path } of destination.requests) expect(path).toBe('/shop')
})

test.each([
  '%vector.orchestrator.pod_namespace = "forged"',
  '%vector = {}',
  '% = {}',
  'del(%vector)',
  'del(%)',
  '%"vector".a = 1',
  'if true { for_each([1]) -> |_, v| { %vector.a = v } }',
  '%vector, err = parse_json(.message)',
  '.a, %vector = parse_json(.message)',
])('a program that would overwrite facts about a pod is refused: %s', async (source) => {
  await using api = await KubeApi.start()
  podOf(api, 'shop', criLine('one'))
  await using rig = await Rig.start(api, reader('shop', { transform: { type: 'remap', source } }))
  expect(rig.runner.state.failures).toMatchObject([
    { pipeline: 'shop/p', component: 'change', reason: 'InvalidConfig' },
  ])
  expect(got.get('shop/p')).toBeUndefined()
})

test('keeps messages that programs of a namespace write with `log` for its authors, and nowhere else', async () => {
  const stdout = vi.spyOn(process.stdout, 'write')
  const stderr = vi.spyOn(process.stderr, 'write')
  await using api = await KubeApi.start()
  podOf(api, 'shop', criLine('one') + criLine('two'))
  podOf(api, 'open', criLine('one'))
  const source = 'log("seen: " + string!(.message), level: "warn", rate_limit_secs: 0)'
  const transform = { type: 'remap', source }
  await using rig = await Rig.start(
    api,
    merged(reader('shop', { transform }), reader('open', { transform, entry: { restricted: false } })),
  )
  await eventually(() => expect(got.get('shop/p')).toHaveLength(2))
  await eventually(() => expect(got.get('open/p')).toHaveLength(1))
  expect(rig.runner.lines('shop/p')).toMatchObject([
    { component: 'change', level: 'warn', text: 'seen: one' },
    { component: 'change', level: 'warn', text: 'seen: two' },
  ])
  expect(rig.runner.lines('open/p')).toEqual([])
  const logged = rig.logged.join('')
  expect(logged).toContain('seen: one') // a platform pipeline logs to the agent's log
  expect(logged.match(/seen:/g)).toHaveLength(1)
  for (const spied of [stdout, stderr]) expect(JSON.stringify(spied.mock.calls)).not.toContain('seen:')
})

const stack = {
  multiline: { start_pattern: '^\\S', condition_pattern: '^\\s', mode: 'continue_through', timeout_ms: 60_000 },
}
const append = (text: string) => writeFileSync(fileOf('shop'), text, { flag: 'a' })

test.each([
  { what: 'a line of parts', options: {}, first: criLine('whole ', 'P'), rest: criLine('line'), line: 'whole line' },
  {
    what: 'a group of lines',
    options: stack,
    first: criLine('Error') + criLine('  at a'),
    rest: criLine('  at b') + criLine('next'),
    line: 'Error\n  at a\n  at b',
  },
  {
    what: 'a line of parts that a rotation has cut',
    options: {},
    first: criLine('whole ', 'P'),
    between: async () => {
      renameSync(fileOf('shop'), `${fileOf('shop')}.20260101-000000`)
      writeFileSync(fileOf('shop'), criLine('big ', 'P'))
    },
    rest: criLine('line'),
    line: 'whole big line',
  },
])(
  'an open $what is complete after a reload of its source, after a restart, and after both',
  async ({ options, first, between, rest, line }) => {
    await using api = await KubeApi.start()
    podOf(api, 'shop', criLine('before') + first)
    const bundle = (more: object) => reader('shop', { options: { ...options, ...more } })
    const before = async () => {
      await eventually(() => expect(got.get('shop/p')).toContain('before'))
      const read = () => rig.metrics.sum('component_received_bytes_total', { component_kind: 'source' })
      const size = Buffer.byteLength(criLine('before') + first)
      await eventually(() => expect(read()).toBe(size))
      if (between === undefined) return
      await between()
      await eventually(() => expect(read()).toBe(size + Buffer.byteLength(criLine('big ', 'P'))))
    }
    let rig = await Rig.start(api, bundle({}))
    try {
      await before()
      rig.put(bundle({ max_read_bytes: 4096 }))
      await eventually(() => expect(rig.metrics.sum('config_reloads_total', { result: 'succeeded' })).toBe(2))
    } finally {
      await rig[Symbol.asyncDispose]()
    }
    expect(got.get('shop/p')?.filter((text) => text !== 'before')).toEqual([])
    rig = await Rig.start(api, bundle({}))
    try {
      await eventually(() => expect([...rig.runner.pipelines()]).toHaveLength(1))
      append(rest)
      await eventually(() => expect(got.get('shop/p')).toContain(line))
    } finally {
      await rig[Symbol.asyncDispose]()
    }
    expect(got.get('shop/p')?.filter((text) => text !== 'next')).toEqual(['before', line])
  },
)

test.each([
  { reason: 'rotated_files', hub: { maxRotatedFiles: 1 }, remove: false, left: [2, 3] },
  { reason: 'disk_pressure', hub: { freeSpace: () => 0.05 }, remove: true, left: [3] },
  { reason: undefined, hub: { freeSpace: () => 0.5 }, remove: true, left: [0, 1, 2, 3] },
])('the oldest waiting rotated files are abandoned and counted ($reason)', async ({ reason, hub, remove, left }) => {
  await using api = await KubeApi.start()
  // Longer than what a pipeline accepts before it makes its source wait: some chunks.
  const count = 2000
  const linesOf = (file: number) =>
    Array.from({ length: count }, (_, line) => criLine(`${file}.${line} ${'x'.repeat(200)}`)).join('')
  podOf(api, 'shop', linesOf(0))
  hanging.add('shop/p')
  await using rig = await Rig.start(api, reader('shop'), undefined, hub)
  await eventually(() => expect(held).toHaveLength(1))
  for (const file of [1, 2, 3]) {
    const rotated = `${fileOf('shop')}.20260101-00000${file}`
    renameSync(fileOf('shop'), rotated)
    writeFileSync(fileOf('shop'), linesOf(file))
    const opened = () => rig.metrics.sum('files_added_total', {})
    await eventually(() => expect(opened()).toBe(file + 1))
    if (remove) rmSync(rotated)
  }
  const sum = (name: string, labels: Record<string, string> = {}) => rig.metrics.sum(name, labels)
  const size = 4 * linesOf(0).length
  await eventually(() => expect(sum('log_bytes_written_total', { namespace: 'shop' })).toBe(size))
  const files = () => new Set(got.get('shop/p')?.map((line) => Number(line.split('.')[0])))
  const lost = () => sum('log_bytes_lost_total', { namespace: 'shop' })
  const series = rig.metrics.snapshot().find(({ name }) => name === 'log_bytes_lost_total')?.samples ?? []
  // Each exists from the start, so that a scraper sees the first loss as an increase.
  expect(new Set(series.map(({ labels }) => labels['reason']))).toEqual(
    new Set(['rotated_files', 'disk_pressure', 'rotate_wait']),
  )
  if (reason !== undefined)
    await eventually(() => expect(lost()).toBeGreaterThan(linesOf(0).length * (3 - left.length)))

  hanging.clear()
  for (const batch of held) {
    for (const event of (batch as LogBatch).events) got.get('shop/p')?.push(String(event.fields['message']))
    batch.finalizer.release(1, 'delivered')
  }
  for (const resume of resumes) resume()
  await eventually(() => {
    expect(got.get('shop/p')?.at(-1)).toMatch(/^3\.1999 /)
    // Every written line has been read, or counted as lost.
    expect(sum('component_received_bytes_total', { component_kind: 'source' }) + lost()).toBe(size)
  })
  for (const file of left) expect(got.get('shop/p')?.filter((line) => line.startsWith(`${file}.`))).toHaveLength(count)
  expect(files().size).toBeGreaterThanOrEqual(left.length)
  expect(new Set(got.get('shop/p')).size).toBe(got.get('shop/p')?.length)
  if (reason === undefined) expect(lost()).toBe(0)
  else {
    expect(sum('log_bytes_lost_total', { reason })).toBe(lost())
    expect(rig.logged.join('')).toContain('closed before it was read to its end')
  }
})

test('a reload of the source does not repeat lines of the other stream beside an open group', async () => {
  await using api = await KubeApi.start()
  const other = (text: string) => criLine(text).replace('stdout', 'stderr')
  const [group, beside] = [criLine('Error') + criLine('  at a'), other('one') + other('two')]
  podOf(api, 'shop', criLine('before') + group.slice(0, criLine('Error').length) + beside + criLine('  at a'))
  const options = { multiline: { ...stack.multiline, start_pattern: '^E' } }
  const bundle = (size: number) => reader('shop', { options: { ...options, max_read_bytes: size } })
  await using rig = await Rig.start(api, bundle(4096))
  await eventually(() => expect(got.get('shop/p')).toEqual(['before', 'one', 'two']))
  for (const round of [2, 3]) {
    rig.put(bundle(4096 * round))
    await eventually(() => expect(rig.metrics.sum('config_reloads_total', { result: 'succeeded' })).toBe(round))
    append(other(`round ${round}`))
    await eventually(() => expect(got.get('shop/p')).toContain(`round ${round}`))
  }
  append(criLine('  at b') + criLine('next'))
  await eventually(() => expect(got.get('shop/p')).toContain('next'))
  const expected = ['before', 'one', 'two', 'round 2', 'round 3', 'Error\n  at a\n  at b', 'next']
  expect(got.get('shop/p')).toEqual(expected)
})

test('the lag is computed by one look at the unread lines, for any number of requests', async () => {
  await using api = await KubeApi.start()
  const lines = Array.from({ length: 3000 }, (_, index) => `line ${index} ${'x'.repeat(60)}`)
  podOf(api, 'shop', lines.map((line) => criLine(line)).join(''))
  hanging.add('shop/p')
  await using rig = await Rig.start(api, reader('shop', { sink: { buffer: { type: 'memory', max_events: 100 } } }))
  const lag = () => rig.metrics.sum('log_lag_seconds', { component_id: 'shop/p/app' })
  await eventually(() => {
    expect(lag()).toBeGreaterThan(0)
    const before = files.bytes
    expect(before).toBeGreaterThan(0)
    for (let look = 0; look < 10; look++) expect(lag()).toBeGreaterThan(0)
    expect(files.bytes - before).toBe(0)
  })
  hanging.clear()
  for (const batch of held) batch.finalizer.release(1, 'delivered')
  for (const resume of resumes) resume()
  await eventually(() => expect(got.get('shop/p')?.at(-1)).toBe(lines.at(-1)))
  await eventually(() => expect(lag()).toBe(0))
})

test('with rights in only some namespaces, pods and labels are watched in each of them, without other requests', async () => {
  await using api = await KubeApi.start()
  api.within = ['shop', 'blog']
  const facts =
    '[.orchestrator.pod_namespace, .orchestrator.pod_labels.app, .orchestrator.namespace_labels.team, .message]'
  const revealed = { transform: { type: 'remap', source: `.message = encode_json(${facts})` } }
  for (const namespace of ['shop', 'blog', 'other']) {
    podOf(api, namespace, criLine('one'))
    api.set('pods', podObject(namespace, { app: namespace }))
    api.set('namespaces', { metadata: { name: namespace, labels: { team: 'blue' } } })
  }
  const bundle = merged(reader('shop', revealed), reader('blog', revealed), reader('other', revealed))
  await using rig = await Rig.start(api, bundle, undefined, { namespaces: ['shop', 'blog'] })
  await eventually(() => expect(got.get('shop/p')).toEqual(['["shop","shop","blue","one"]']))
  await eventually(() => expect(got.get('blog/p')).toEqual(['["blog","blog","blue","one"]']))
  // A new list of one namespace must not affect the pods of other namespaces.
  api.compact()
  api.cutWatches()
  api.set('namespaces', { metadata: { name: 'shop', labels: { team: 'green' } } })
  await eventually(() => {
    podLog('shop', 'two')
    expect(got.get('shop/p')).toContain('["shop","shop","green","two"]')
  })
  podLog('blog', 'three')
  await eventually(() => expect(got.get('blog/p')?.at(-1)).toBe('["blog","blog","blue","three"]'))

  expect(got.get('other/p') ?? []).toEqual([])
  const allowed =
    /^\/(?:version$|api\/v1\/(?:(?:watch\/)?namespaces\/(?:shop|blog)(?:\?|$)|namespaces\/(?:shop|blog)\/pods[?/]))/
  expect(api.requests.filter((path) => !allowed.test(path))).toEqual([])
  expect(rig.logged.join('')).not.toContain('403')
})

/** A kubelet that lists these pods. */
async function fakeKubelet(pods: () => readonly object[] | number) {
  const destination = await fakeDestination(() => {
    const revealed = pods()
    return typeof revealed === 'number' ? revealed : { body: JSON.stringify({ kind: 'PodList', items: revealed }) }
  })
  const target = { ...(await kubeConfigTarget(join(folder, 'kubeconfig'))), server: new URL(destination.url) }
  return { destination, target, [Symbol.asyncDispose]: () => destination[Symbol.asyncDispose]() }
}

const podObject = (namespace: string, labels: Record<string, string> = {}) => ({
  metadata: { name: 'web', namespace, uid: `web-${namespace}`, labels },
  spec: { nodeName: 'node-1', containers: [{ name: 'app', image: 'app:1' }] },
  status: { containerStatuses: [{ name: 'app', imageID: 'app@1', containerID: 'containerd://1' }] },
})
const named = {
  transform: { type: 'remap', source: '.message = string!(.orchestrator.pod_labels.app) + " " + string!(.message)' },
}

test('a subscription reads the pods that match its field selector', async () => {
  await using api = await KubeApi.start()
  podOf(api, 'shop', criLine('of shop'))
  podOf(api, 'other', criLine('of other'))
  const all = reader('all')
  const subscription = { cursor: 'all/app', out: 'all/p/app', options: {} }
  await using _ = await Rig.start(
    api,
    merged(
      { ...all, subscriptions: [{ ...subscription, fieldSelector: 'metadata.namespace!=other,spec.nodeName=node-1' }] },
      reader('other'),
    ),
  )
  await eventually(() => expect([got.get('all/p'), got.get('other/p')]).toEqual([['of shop'], ['of other']]))
})

test('each source knows a deleted pod for its own time, counted from the write time of the lines', async () => {
  await using api = await KubeApi.start()
  const known = (namespace: string, delayMs: number) =>
    reader(namespace, {
      options: { delay_deletion_ms: delayMs },
      transform: { type: 'remap', source: '.message = join!([.message, .orchestrator.pod_owner || "unknown"], " ")' },
    })
  const namespaces = ['short', 'long', 'behind']
  for (const namespace of namespaces) podOf(api, namespace, criLine('first'))
  await using _ = await Rig.start(api, merged(known('short', 50), known('long', 600_000), known('behind', 50)))
  await eventually(() => {
    for (const namespace of namespaces) expect(got.get(`${namespace}/p`)).toEqual(['first Job/j'])
  })

  const write = (namespace: string, text: string) =>
    writeFileSync(fileOf(namespace), `${new Date().toISOString()} stdout F ${text}\n`, { flag: 'a' })
  for (const namespace of namespaces) api.remove('pods', 'web', namespace)
  await eventually(() => {
    write('short', 'late')
    expect(got.get('short/p')?.at(-1)).toBe('late unknown')
  })
  write('long', 'late')
  await eventually(() => expect(got.get('long/p')).toEqual(['first Job/j', 'late Job/j']))
  // Lines written before the deletion belong to the pod, even if they are read much later.
  podLog('behind', 'old')
  await eventually(() => expect(got.get('behind/p')).toEqual(['first Job/j', 'old Job/j']))
})

test('the kubelet provides pods, new ones as soon as their logs exist, without requests to the API server', async () => {
  await using api = await KubeApi.start()
  writeFileSync(join(folder, 'kubeconfig'), api.kubeConfig())
  const pods = [podObject('shop', { app: 'web' }), podObject('out', { 'penstock.dev/exclude': 'true' })]
  for (const { metadata } of [...pods, podObject('late')]) {
    api.set('namespaces', { metadata: { name: metadata.namespace } })
    if (metadata.namespace !== 'late') podLog(metadata.namespace, 'one')
  }
  await using kubelet = await fakeKubelet(() => pods)
  const bundle = merged(reader('shop', named), reader('out'), reader('late', named))
  await using rig = await Rig.start(api, bundle, undefined, { kubelet: kubelet.target })
  await eventually(() => expect(got.get('shop/p')).toEqual(['web one']))
  pods.push(podObject('late', { app: 'late' }))
  podLog('late', 'two')
  await eventually(() => expect(got.get('late/p')).toEqual(['late two']))
  pods[0] = podObject('shop', { app: 'renamed' })
  podLog('late', 'three')
  mkdirSync(join(logs, 'shop_new_uid-new', 'app'), { recursive: true }) // an unknown pod: the agent looks it up
  await eventually(() => {
    podLog('shop', 'again')
    expect(got.get('shop/p')?.at(-1)).toBe('renamed again')
  })
  expect(got.get('out/p')).toEqual([])
  expect(kubelet.destination.requests.every(({ path }) => path === '/pods')).toBe(true)
  expect(api.requests.filter((path) => path.startsWith('/api/v1/pods'))).toEqual([])
  expect(rig.logged.join('')).not.toContain('kubelet')
})

test.each([403, 500])('if the kubelet answers %s, pods are watched at the API server', async (status) => {
  await using api = await KubeApi.start()
  writeFileSync(join(folder, 'kubeconfig'), api.kubeConfig())
  podOf(api, 'shop', criLine('one'))
  await using kubelet = await fakeKubelet(() => status)
  await using rig = await Rig.start(api, reader('shop'), undefined, { kubelet: kubelet.target })
  await eventually(() => expect(got.get('shop/p')).toEqual(['one']))
  expect(rig.logged.join('')).toContain('The kubelet does not list its pods')
  expect(kubelet.destination.requests).toHaveLength(status === 403 ? 1 : 3)
  expect(api.requests.some((path) => path.startsWith('/api/v1/pods'))).toBe(true)
})
