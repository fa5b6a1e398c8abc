import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Batch } from '../event/batch.ts'
import type { LogEvent } from '../event/log.ts'
import { at } from '../testing/events.ts'
import { problemsOf, startSource, type TestSource, type TestSourceOptions } from '../testing/harness.ts'
import { type ApiObject, KubeApi } from '../testing/kube-api.ts'

// No wait here has a fixed time, because a machine that builds and tests at once is slow.

let folder: string
let api: KubeApi
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-events-'))
  api = await KubeApi.start()
  writeFileSync(join(folder, 'kubeconfig'), api.kubeConfig())
})
afterEach(async () => {
  await api[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

const ago = (secs: number) => new Date(Date.now() - secs * 1000).toISOString()
const happened = (name: string, more: object = {}, secsAgo = -1, namespace = 'shop'): ApiObject => ({
  metadata: { name, namespace, uid: `uid-${name}`, creationTimestamp: ago(secsAgo) },
  note: name,
  eventTime: ago(secsAgo),
  ...more,
})
const start = (options: object = {}, extra: TestSourceOptions = {}): Promise<TestSource> =>
  startSource(
    'orchestrator_events',
    { kube_config_file: join(folder, 'kubeconfig'), ...options },
    { dataDir: folder, ...extra },
  )
const messages = (source: TestSource) => source.sent.map((event) => (event as LogEvent).fields['message'])
const watched = (count = 1) => vi.waitFor(() => expect(api.watches).toBe(count), { timeout: 10_000 })
const saved = () =>
  JSON.parse(readFileSync(join(folder, 'in', 'cursor.json'), 'utf8')).cursors[''] as Record<string, unknown>

test('an event becomes a log event with all of its fields', async () => {
  await using source = await start()
  await watched()
  api.set('events', {
    metadata: { name: 'web.1', namespace: 'shop', uid: 'u1', creationTimestamp: '2026-01-01T00:00:00Z' },
    note: 'Back-off restarting failed container',
    reason: 'BackOff',
    type: 'Warning',
    action: 'Restarting',
    eventTime: '2026-01-01T00:00:01.000002Z',
    series: { count: 3, lastObservedTime: '2026-01-01T00:01:00.123456Z' },
    regarding: {
      apiVersion: 'v1',
      kind: 'Pod',
      namespace: 'shop',
      name: 'web',
      uid: 'p1',
      fieldPath: 'spec.containers{app}',
      resourceVersion: '7',
    },
    related: { kind: 'Node', name: 'node-1' },
    reportingController: 'kubelet',
    reportingInstance: 'node-1',
  })
  const [event] = (await source.received(1)) as LogEvent[]
  expect(event?.fields).toEqual({
    message: 'Back-off restarting failed container',
    timestamp: at('2026-01-01T00:01:00.123456Z'),
    source_type: 'orchestrator_events',
    orchestrator: {
      event_name: 'web.1',
      event_namespace: 'shop',
      event_uid: 'u1',
      type: 'Warning',
      reason: 'BackOff',
      action: 'Restarting',
      count: 3,
      first_timestamp: at('2026-01-01T00:00:01.000002Z'),
      last_timestamp: at('2026-01-01T00:01:00.123456Z'),
      regarding: {
        api_version: 'v1',
        kind: 'Pod',
        namespace: 'shop',
        name: 'web',
        uid: 'p1',
        field_path: 'spec.containers{app}',
      },
      related: { kind: 'Node', name: 'node-1' },
      reporting_controller: 'kubelet',
      reporting_instance: 'node-1',
    },
  })
})

test('with include_object, an event contains the object of the API server', async () => {
  await using source = await start({ include_object: true })
  await watched()
  const given = happened('web', { regarding: { kind: 'Pod', resourceVersion: '7' }, deprecatedSource: { host: 'n1' } })
  api.set('events', given)
  const [event] = (await source.received(1)) as LogEvent[]
  const orchestrator = event?.fields['orchestrator'] as { object: ApiObject } | undefined
  expect(orchestrator?.object).toMatchObject(given)
  expect(orchestrator?.object.metadata).toMatchObject({ resourceVersion: expect.any(String) })
})

test('an event of an old client is emitted again with a higher count', async () => {
  await using source = await start()
  await watched()
  const old = (count: number, second: number) =>
    happened('old', {
      eventTime: null,
      deprecatedCount: count,
      deprecatedFirstTimestamp: '2026-01-01T00:00:01Z',
      deprecatedLastTimestamp: `2026-01-01T00:00:0${second}Z`,
      deprecatedSource: { component: 'scheduler', host: 'node-2' },
    })
  api.set('events', old(1, 1))
  api.set('events', old(2, 5))
  const sent = (await source.received(2)) as LogEvent[]
  expect(sent.map(({ fields }) => fields['orchestrator'])).toMatchObject([
    { count: 1, reporting_controller: 'scheduler', reporting_instance: 'node-2' },
    { count: 2, first_timestamp: at('2026-01-01T00:00:01Z'), last_timestamp: at('2026-01-01T00:00:05Z') },
  ])
})

test.each([
  { read_from: 'end', expected: ['new'] },
  { read_from: 'beginning', expected: ['old', 'new'] },
])('the first start reads from the $read_from', async ({ read_from, expected }) => {
  api.set('events', happened('old', {}, 120))
  await using source = await start({ read_from })
  await watched()
  api.set('events', happened('new'))
  await source.received(expected.length)
  expect(messages(source)).toEqual(expected)
})

test('after a restart it continues at its position, without losses or duplicates', async () => {
  const first = await start()
  await watched()
  api.set('events', happened('one'))
  await first.received(1)
  await first.stop()
  expect(saved()).toMatchObject({ uid: 'uid-one', version: '1001' })
  api.set('events', happened('two', {}, 3600))
  api.remove('events', 'two', 'shop')
  await using second = await start()
  await watched()
  api.set('events', happened('three'))
  await second.received(2)
  expect(messages(second)).toEqual(['two', 'three'])
  expect(api.requests.filter((path) => !path.includes('watch=true'))).toHaveLength(1)
})

test.each(['in a restart', 'while it runs'])(
  'after a version is forgotten %s, only newer events are emitted',
  async (when) => {
    const options = { read_from: 'beginning' }
    let source = await start(options)
    await watched()
    api.set('events', happened('delivered', {}, 10))
    await source.received(1)
    if (when === 'in a restart') await source.stop()
    else await api.pause()
    api.set('events', happened('ancient', {}, 3600))
    api.set('events', happened('late', {}, 20)) // older than the newest event, but not seen yet
    api.set('events', happened('new'))
    api.compact()
    if (when === 'in a restart') source = await start(options)
    else await api.resume()
    const expected = when === 'in a restart' ? ['late', 'new'] : ['delivered', 'late', 'new']
    await source.received(expected.length)
    await watched()
    api.set('events', happened('next'))
    await source.received(expected.length + 1)
    expect(messages(source)).toEqual([...expected, 'next'])
    await source.stop()
    expect(source.events.counts.get('k8s_reflector_relists_total')).toBe(when === 'in a restart' ? 1 : 2)
  },
)

test('the position does not advance beyond undelivered events, which are read again', async () => {
  let fails = true
  const consume = (batch: Batch) => {
    const name = (batch.events[0] as LogEvent).fields['message']
    batch.finalizer.release(1, name === 'two' && fails ? 'errored' : 'delivered')
    return undefined
  }
  const first = await start({}, { consume })
  await watched()
  api.set('events', happened('one'))
  api.set('events', happened('two'))
  await first.received(2)
  await first.stop()
  expect(saved()).toMatchObject({ uid: 'uid-one', version: '1001' })
  const second = await start({}, { consume })
  await second.received(1)
  fails = false
  await second.received(2) // again, in the same run
  await second.stop()
  expect([...new Set(messages(second))]).toEqual(['two'])
  expect(saved()).toMatchObject({ uid: 'uid-two', version: '1002' })
})

test('does not advance the position beyond events that are not acknowledged', async () => {
  const held: Batch[] = []
  const consume = (batch: Batch) => {
    if (held.push(batch) > 1) batch.finalizer.release(1, 'delivered')
    return undefined
  }
  const source = await start({}, { consume })
  await watched()
  for (const name of ['one', 'two']) api.set('events', happened(name))
  await source.received(2)
  await vi.waitFor(() => expect(saved()['version']).toBe('1000'), { timeout: 10_000 })
  held[0]?.finalizer.release(1, 'delivered')
  await source.stop()
  expect(saved()['version']).toBe('1002')
})

test('objects that are not events are counted and skipped', async () => {
  await using source = await start()
  await watched()
  const bad: object[] = [
    { eventTime: null, metadata: { name: 'no-time', namespace: 'shop', uid: 'u' } },
    { metadata: { name: 'no-uid', namespace: 'shop' } },
    { eventTime: 5, series: 'x', metadata: { name: 'numbers', namespace: 'shop', uid: 7 } },
  ]
  for (const one of bad) api.set('events', { ...happened('bad'), ...one } as ApiObject)
  api.set('events', happened('odd', { note: 9, series: [], regarding: 'pod', deprecatedCount: -1, related: null }))
  const [odd] = (await source.received(1)) as LogEvent[]
  expect(source.events.counts.get('component_errors_total')).toBe(3)
  expect(odd?.fields).toMatchObject({ message: '', orchestrator: { event_name: 'odd', count: 1 } })
})

test('an event with a future time does not make others too old', async () => {
  const first = await start()
  await watched()
  api.set('events', happened('joke', { eventTime: '9999-01-01T00:00:00Z' }))
  await first.received(1)
  await first.stop()
  api.set('events', happened('real'))
  api.compact()
  await using second = await start()
  await second.received(1)
  expect(messages(second)).toEqual(['real'])
})

test('thousands of events are read page by page, at the speed of the pipeline', async () => {
  for (let index = 0; index < 5200; index++) api.set('events', happened(`e${index}`, {}, 100))
  let open = () => {}
  const gate = new Promise<void>((resolve) => {
    open = resolve
  })
  const source = await start(
    { read_from: 'beginning' },
    {
      consume(batch) {
        batch.finalizer.release(1, 'delivered')
        return gate
      },
    },
  )
  await source.received(500)
  expect(api.requests).toHaveLength(1)
  open()
  await source.received(5200)
  await watched()
  expect(new Set(messages(source)).size).toBe(5200)
  expect(api.requests.filter((path) => path.includes('limit=500'))).toHaveLength(11)
  await source.stop()
})

test('namespaces and selectors limit the requests', async () => {
  api.within = ['shop', 'blog']
  await using source = await start({
    namespaces: ['shop', 'blog', 'shop'],
    extra_field_selector: 'type=Warning',
    ignore_older_secs: 600,
  })
  await watched(2)
  api.set('events', happened('a', { type: 'Warning' }))
  api.set('events', happened('b', { type: 'Normal' }))
  api.set('events', happened('c', { type: 'Warning' }, 3600))
  api.set('events', happened('d', { type: 'Warning' }, -1, 'other'))
  api.set('events', happened('e', { type: 'Warning' }, -1, 'blog'))
  await source.received(2)
  expect(messages(source).sort()).toEqual(['a', 'e'])
  expect(problemsOf('source', 'orchestrator_events', { namespaces: ['shop', '../x'] })).toMatchObject([
    { path: 'namespaces.1' },
  ])
})

test.each([
  { what: 'no position', ledBefore: false, expected: ['recent', 'new'] },
  { what: 'a position from before', ledBefore: true, expected: ['recent', 'new'] },
])('with $what, it continues at the last known position of its predecessor', async ({ ledBefore, expected }) => {
  const earlier = Date.now()
  if (ledBefore) {
    const first = await start()
    await watched()
    api.set('events', happened('mine'))
    await first.received(1)
    await first.stop()
  }
  api.set('events', happened('theirs', {}, 600))
  api.set('events', happened('recent', {}, -20))
  await using source = await start({}, { precededUntil: () => earlier + (ledBefore ? 60_000 : 0) })
  await watched()
  api.set('events', happened('new'))
  await source.received(expected.length)
  expect(messages(source)).toEqual(expected)
})

test('a version that the API server never reaches is abandoned', async () => {
  const first = await start()
  await watched()
  api.set('events', happened('one'))
  await first.received(1)
  await first.stop()
  api.set('events', happened('two'))
  // Resembles a cluster restored from a backup.
  api.failures.push(504, 504, 504, 504, 504)
  await using second = await start()
  await second.received(1)
  expect(messages(second)).toEqual(['two'])
  await vi.waitFor(() => expect(second.events.counts.get('k8s_reflector_relists_total')).toBe(1))
})
