import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { ByteBatch } from '../bytes/byte-batch.ts'
import { LineTarget } from '../delivery/line-target.ts'
import { OpenRequest } from '../delivery/request.ts'
import type { Batch } from '../event/batch.ts'
import { Body } from '../event/body.ts'
import type { LogEvent } from '../event/log.ts'
import { sharedObject } from '../event/shared-object.ts'
import { Bytes, type Value, type ValueObject } from '../event/value.ts'
import { writeJson, writeJsonTo } from '../formats/json.ts'
import { at } from '../testing/events.ts'
import { problemsOf, startSource, type TestSource, type TestSourceOptions } from '../testing/harness.ts'
import { type ApiObject, KubeApi } from '../testing/kube-api.ts'
import { Random } from '../testing/random.ts'

// No wait here has a fixed time, because a machine that builds and tests at once is slow.

let folder: string
let api: KubeApi
beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-pods-'))
  api = await KubeApi.start()
  api.set('nodes', { metadata: { name: 'node-1', labels: { zone: 'a' } } })
  api.set('namespaces', { metadata: { name: 'shop', labels: { team: 'blue' } } })
  writeFileSync(join(folder, 'kubeconfig'), api.kubeConfig())
})
afterEach(async () => {
  await api[Symbol.asyncDispose]()
  rmSync(folder, { recursive: true, force: true })
})

function pod(name: string, more: { metadata?: object; status?: object; spec?: object } = {}): ApiObject {
  return {
    metadata: { name, namespace: 'shop', uid: `uid-${name}`, ...more.metadata },
    spec: { nodeName: 'node-1', containers: [{ name: 'app', image: 'shop/web:1' }], ...more.spec },
    status: {
      podIP: '10.0.0.7',
      podIPs: [{ ip: '10.0.0.7' }, { ip: 'fd00::7' }],
      containerStatuses: [{ name: 'app', imageID: 'shop/web@sha256:1', containerID: 'containerd://c1' }],
      ...more.status,
    },
  }
}

/** A pod with every known field. */
const describedPod = pod('web-1', {
  metadata: {
    labels: { app: 'web' },
    annotations: { note: 'hello' },
    ownerReferences: [{ kind: 'ReplicaSet', name: 'web-5d4' }],
  },
})

function write(podFolder: string, content: string | Buffer, file = '0.log', container = 'app'): string {
  const directory = join(folder, 'pods', podFolder, container)
  mkdirSync(directory, { recursive: true })
  const path = join(directory, file)
  appendFileSync(path, content)
  return path
}

function start(options: object = {}, extra: TestSourceOptions = {}): Promise<TestSource> {
  mkdirSync(join(folder, 'pods'), { recursive: true })
  return startSource(
    'orchestrator_logs',
    {
      logs_dir: join(folder, 'pods'),
      kube_config_file: join(folder, 'kubeconfig'),
      self_node_name: 'node-1',
      ...options,
    },
    extra,
  )
}

const cri = (text: string, tag = 'F', stream = 'stdout') => `2026-01-01T00:00:02.123456789Z ${stream} ${tag} ${text}\n`
const field = (source: TestSource, name: string) => source.sent.map((event) => (event as LogEvent).fields[name])
const messages = (source: TestSource) => field(source, 'message')

test('a line becomes an event with everything known about its pod', async () => {
  api.set('pods', describedPod)
  const path = write('shop_web-1_uid-web-1', cri('hello') + cri('wörld', 'F', 'stderr'))
  await using source = await start()
  const [first, second] = (await source.received(2)) as LogEvent[]
  expect(first?.fields).toEqual({
    file: path,
    message: 'hello',
    source_type: 'orchestrator_logs',
    stream: 'stdout',
    timestamp: at('2026-01-01T00:00:02.123456789Z'),
    orchestrator: {
      container_id: 'containerd://c1',
      container_image: 'shop/web:1',
      container_image_id: 'shop/web@sha256:1',
      container_name: 'app',
      namespace_labels: { team: 'blue' },
      node_labels: { zone: 'a' },
      pod_annotations: { note: 'hello' },
      pod_ip: '10.0.0.7',
      pod_ips: ['10.0.0.7', 'fd00::7'],
      pod_labels: { app: 'web' },
      pod_name: 'web-1',
      pod_namespace: 'shop',
      pod_node_name: 'node-1',
      pod_owner: 'ReplicaSet/web-5d4',
      pod_uid: 'uid-web-1',
    },
  })
  expect(second?.fields).toMatchObject({ message: 'wörld', stream: 'stderr' })
  expect(second?.fields['orchestrator']).toBe(first?.fields['orchestrator'])
})

test('lean metadata contains the origin of a line, and fields with configured paths', async () => {
  api.set('pods', describedPod)
  write('shop_web-1_uid-web-1', cri('a par', 'P') + cri('t') + cri('whole'))
  await using source = await start({ metadata: 'lean', annotation_fields: { pod_uid: '.uid', pod_owner: '' } })
  const [joined, whole] = (await source.received(2)) as LogEvent[]
  expect(joined?.fields).toEqual({ ...whole?.fields, message: 'a part' })
  expect(whole?.fields).toEqual({
    message: 'whole',
    source_type: 'orchestrator_logs',
    stream: 'stdout',
    timestamp: at('2026-01-01T00:00:02.123456789Z'),
    uid: 'uid-web-1',
    orchestrator: {
      container_image: 'shop/web:1',
      container_name: 'app',
      pod_labels: { app: 'web' },
      pod_name: 'web-1',
      pod_namespace: 'shop',
      pod_node_name: 'node-1',
    },
  })
})

test('with default settings, a new pod is read long before the next scan', async () => {
  await using source = await start()
  await vi.waitFor(() => expect(api.watches).toBe(3))
  api.set('pods', pod('web-1'))
  write('shop_web-1_uid-web-1', cri('hello'))
  await source.received(1)
  expect(messages(source)).toEqual(['hello'])
})

test('fields have the configured paths, or are omitted', async () => {
  api.set('pods', pod('web-1', { metadata: { labels: { app: 'web' } } }))
  write('shop_web-1_uid-web-1', cri('hello'))
  await using source = await start({
    annotation_fields: {
      container_id: '',
      container_image: '',
      container_image_id: '',
      container_name: '.container',
      pod_annotations: '',
      pod_ip: '',
      pod_ips: '',
      pod_labels: '.k8s."pod labels"',
      pod_name: '.k8s.name',
      pod_namespace: '',
      pod_node_name: '',
      pod_owner: '',
      pod_uid: '',
    },
    namespace_annotation_fields: { namespace_labels: '' },
    node_annotation_fields: { node_labels: '' },
    ingestion_timestamp_field: '.ingested',
  })
  const [event] = (await source.received(1)) as LogEvent[]
  expect(event?.fields).toEqual({
    file: expect.any(String),
    message: 'hello',
    source_type: 'orchestrator_logs',
    stream: 'stdout',
    timestamp: at('2026-01-01T00:00:02.123456789Z'),
    ingested: expect.anything(),
    container: 'app',
    k8s: { name: 'web-1', 'pod labels': { app: 'web' } },
  })
})

test('the creation time of a pod has no field, unless one is configured', async () => {
  api.set('pods', pod('web-1', { metadata: { creationTimestamp: '2026-01-01T08:00:00Z' } }))
  write('shop_web-1_uid-web-1', cri('hello'))
  const created = '.orchestrator.pod_creation_timestamp'
  await using source = await start({ pod_annotation_fields: { pod_creation_timestamp: created }, metadata: 'lean' })
  const [event] = (await source.received(1)) as LogEvent[]
  expect(event?.fields['orchestrator']).toMatchObject({ pod_creation_timestamp: '2026-01-01T08:00:00Z' })
  await using other = await start()
  const [plain] = (await other.received(1)) as LogEvent[]
  expect(plain?.fields['orchestrator']).not.toHaveProperty('pod_creation_timestamp')
})

test('parts of a line are joined for each stream, even if a character is split', async () => {
  api.set('pods', pod('web-1'))
  const euro = Buffer.from('€')
  write(
    'shop_web-1_uid-web-1',
    Buffer.concat([
      Buffer.from(cri('out ', 'P').slice(0, -1)),
      euro.subarray(0, 1),
      Buffer.from('\n'),
      Buffer.from(cri('err ', 'P', 'stderr')),
      Buffer.from('2026-01-01T00:00:03Z stdout F '),
      euro.subarray(1),
      Buffer.from('\n'),
      Buffer.from(cri('end', 'F', 'stderr')),
    ]),
  )
  await using source = await start()
  const events = (await source.received(2)) as LogEvent[]
  expect(events.map(({ fields }) => [fields['message'], fields['stream'], String(fields['timestamp'])])).toEqual([
    ['out €', 'stdout', '2026-01-01T00:00:02.123456789Z'],
    ['err end', 'stderr', '2026-01-01T00:00:02.123456789Z'],
  ])
})

test.each([
  { options: { auto_partial_merge: false }, expected: ['abc', 'def', 'x'], discarded: 0 },
  { options: { max_merged_line_bytes: 5 }, expected: ['x'], discarded: 1 },
  {
    options: { max_merged_line_bytes: 5, max_merged_line_action: 'truncate' },
    expected: ['abcde..TRUNCATED', 'x'],
    discarded: 0,
  },
])('parts with $options', async ({ options, expected, discarded }) => {
  api.set('pods', pod('web-1'))
  write('shop_web-1_uid-web-1', cri('abc', 'P') + cri('def') + cri('x'))
  await using source = await start(options)
  await source.received(expected.length)
  expect(messages(source)).toEqual(expected)
  expect(source.events.counts.get('component_discarded_events_total intentional=false') ?? 0).toBe(discarded)
})

test('an endless line is passed on in pieces, with the bytes of each part once', async () => {
  api.set('pods', pod('web-1'))
  const part = '0123456789abcdef'.repeat(1024)
  write('shop_web-1_uid-web-1', cri(part, 'P').repeat(600) + cri('end') + cri('next'))
  await using source = await start()
  const events = (await source.received(4)) as LogEvent[]
  const texts = messages(source) as string[]
  expect(texts.join('')).toBe(`${part.repeat(600)}endnext`)
  expect(texts.map((text) => text.length)).toEqual([4_194_304, 4_194_304, 88 * part.length + 3, 4])
  expect(events.map(({ fields }) => fields['_partial'])).toEqual([true, true, undefined, undefined])
})

test('a waiting part is passed on when the agent ends', async () => {
  api.set('pods', pod('web-1'))
  write('shop_web-1_uid-web-1', cri('x') + cri('abc', 'P'))
  await using source = await start()
  await source.received(1)
  await source.stop()
  expect(messages(source)).toEqual(['x', 'abc'])
})

test('the docker format is detected by its first byte', async () => {
  api.set('pods', pod('web-1'))
  const line = (log: string) => `${JSON.stringify({ log, stream: 'stderr', time: '2024-01-02T03:04:05.1Z' })}\n`
  const long = 'x'.repeat(16384)
  write('shop_web-1_uid-web-1', `${line('one\n')}not json\n${line(long)}${line('two\n')}`)
  await using source = await start()
  const [first] = (await source.received(2)) as LogEvent[]
  expect(messages(source)).toEqual(['one', `${long}two`])
  expect(first?.fields).toMatchObject({ stream: 'stderr', timestamp: at('2024-01-02T03:04:05.1Z') })
  expect(source.events.counts.get('k8s_docker_format_parse_failures_total')).toBe(1)
})

test('lines in another format are counted and skipped', async () => {
  api.set('pods', pod('web-1'))
  write(
    'shop_web-1_uid-web-1',
    Buffer.concat([
      Buffer.from(
        `${cri('one')}garbage\n2026-13-01T00:00:00Z stdout F x\n2026-01-01T00:00:00Z stdin F x\n2026-01-01T00:00:00Z stdout X x\n\n`,
      ),
      Buffer.from('2026-01-01T00:00:00Z stdout F \xff\n', 'latin1'),
      Buffer.from('2026-01-01T00:00:00Z stdout F \n2026-01-01T00:00:00Z stdout F:tag  two \n'),
    ]),
  )
  await using source = await start()
  await source.received(4)
  expect(messages(source)).toEqual(['one', new Bytes(Buffer.from([0xff])), '', ' two '])
  expect(source.events.counts.get('component_discarded_events_total intentional=false')).toBe(5)
  expect(source.events.errors).toEqual([expect.objectContaining({ type: 'parser_failed', count: 5 })])
})

test('times without a zone use the configured one', async () => {
  api.set('pods', pod('web-1'))
  write('shop_web-1_uid-web-1', '2026-07-01T12:00:00.5 stdout F x\n2026-01-01T12:00:00+05:30 stdout F y\n')
  await using source = await start({ timezone: 'Europe/Berlin' })
  await source.received(2)
  expect(field(source, 'timestamp').map(String)).toEqual(['2026-07-01T10:00:00.500Z', '2026-01-01T06:30:00Z'])
})

test('excluded pods, namespaces and containers are skipped', async () => {
  api.set('namespaces', { metadata: { name: 'secret', labels: { 'penstock.dev/exclude': 'true' } } })
  api.set('pods', pod('web-1', { metadata: { annotations: { 'penstock.dev/exclude-containers': ' side , other' } } }))
  api.set('pods', pod('web-2', { metadata: { labels: { 'vector.dev/exclude': 'true' } } }))
  api.set('pods', pod('web-3', { metadata: { namespace: 'secret' } }))
  write('shop_web-1_uid-web-1', cri('one'))
  write('shop_web-1_uid-web-1', cri('side'), '0.log', 'side')
  write('shop_web-1_uid-web-1', cri('old'), '0.log.gz')
  write('shop_web-2_uid-web-2', cri('two'))
  write('secret_web-3_uid-web-3', cri('three'))
  await using source = await start()
  await source.received(1)
  // The source looks up the pod that the label hides before excluding it.
  await vi.waitFor(() => expect(api.requests).toContain('/api/v1/namespaces/shop/pods/web-2'), 3000)
  api.set('pods', pod('web-4'))
  write('shop_web-4_uid-web-4', cri('four'))
  await source.received(2)
  expect(messages(source)).toEqual(['one', 'four'])
})

test('without a response of the API server, pods excluded before the start stay excluded', async () => {
  const dataDir = join(folder, 'data')
  mkdirSync(dataDir)
  api.set('namespaces', { metadata: { name: 'secret', labels: { 'penstock.dev/exclude': 'true' } } })
  api.set('pods', pod('web-1'))
  api.set('pods', pod('web-2', { metadata: { labels: { 'penstock.dev/exclude': 'true' } } }))
  api.set('pods', pod('web-3', { metadata: { namespace: 'secret' } }))
  write('shop_web-1_uid-web-1', cri('one'))
  write('shop_web-2_uid-web-2', cri('two'))
  write('secret_web-3_uid-web-3', cri('three'))
  {
    await using source = await start({}, { dataDir })
    await source.received(1)
    const remembered = () => JSON.parse(readFileSync(join(dataDir, 'in', 'left-out.json'), 'utf8')) as string[]
    await vi.waitFor(
      () => expect(remembered().toSorted()).toEqual(['secret_web-3_uid-web-3', 'shop_web-2_uid-web-2']),
      10_000,
    )
  }
  await api.pause()
  const setTimer = setTimeout
  vi.spyOn(globalThis, 'setTimeout').mockImplementation(((run: () => void, ms: number) =>
    setTimer(run, ms === 60_000 ? 50 : ms)) as typeof setTimeout) // the time limit of the first answer
  try {
    write('shop_web-1_uid-web-1', cri('four'))
    write('shop_web-9_uid-web-9', cri('nine'))
    await using source = await start({}, { dataDir })
    await source.received(2)
    expect(messages(source).toSorted()).toEqual(['four', 'nine'])
    // The API answers again and reports the pod as no longer excluded.
    await api.resume()
    api.set('pods', pod('web-2'))
    await source.received(3)
    expect(messages(source).at(-1)).toBe('two')
  } finally {
    vi.restoreAllMocks()
  }
})

test('the logs of a deleted pod are read with the names from their folder', async () => {
  write('shop_lost_uid-lost', cri('late'))
  await using source = await start()
  const [event] = (await source.received(1)) as LogEvent[]
  expect(event?.fields['orchestrator']).toEqual({
    container_name: 'app',
    namespace_labels: { team: 'blue' },
    node_labels: { zone: 'a' },
    pod_name: 'lost',
    pod_namespace: 'shop',
    pod_uid: 'uid-lost',
  })
  expect(source.events.counts.get('k8s_event_annotation_failures_total')).toBe(1)
  expect(source.events.errors).toEqual([expect.objectContaining({ code: 'annotation_failed', stage: 'processing' })])
})

test('a static pod is found by the hash of its manifest', async () => {
  api.set('pods', pod('etcd-node-1', { metadata: { annotations: { 'kubernetes.io/config.mirror': 'hash1' } } }))
  write('shop_etcd-node-1_hash1', cri('x'))
  await using source = await start()
  const [event] = (await source.received(1)) as LogEvent[]
  expect(event?.fields['orchestrator']).toMatchObject({ pod_uid: 'uid-etcd-node-1' })
})

test('a deleted pod is known for a while, and labels follow changes', async () => {
  api.set('pods', pod('web-1', { metadata: { labels: { version: '1' } } }))
  write('shop_web-1_uid-web-1', cri('one'))
  await using source = await start({ delay_deletion_ms: 100 })
  await source.received(1)
  const last = () => (source.sent.at(-1) as LogEvent).fields['orchestrator'] as Record<string, Value>
  expect(last()).toMatchObject({ pod_labels: { version: '1' } })
  await vi.waitFor(() => expect(api.watches).toBe(3))
  api.set('pods', pod('web-1', { metadata: { labels: { version: '2' } } }))
  await vi.waitFor(async () => {
    write('shop_web-1_uid-web-1', cri('two'))
    expect(last()).toMatchObject({ pod_labels: { version: '2' } })
  }, 3000)
  api.remove('pods', 'web-1', 'shop')
  await vi.waitFor(async () => {
    write('shop_web-1_uid-web-1', cri('three'))
    expect(last()['pod_labels']).toBe(undefined)
    expect(last()['pod_name']).toBe('web-1')
  }, 4000)
})

test.each([
  { lane: 'as bytes', takesBytes: true },
  { lane: 'as objects', takesBytes: false },
])(
  'lines $lane share the metadata of their container, whose JSON is created once, and again after a change of labels',
  async ({ takesBytes }) => {
    const versionOne = pod('web-1', { metadata: { labels: { version: '1' } } })
    api.set('pods', versionOne)
    write('shop_web-1_uid-web-1', cri('first'))
    const origins = new Set<unknown>()
    const look = (batch: Batch) => {
      if (batch instanceof ByteBatch) origins.add(batch.lines.origin)
      return batch.events
    }
    await using source = await start({}, { takesBytes, look })
    await source.received(1)
    await vi.waitFor(() => expect(api.watches).toBe(3))
    const metadataOf = (event: LogEvent) => event.fields['orchestrator'] as ValueObject
    const last = () => metadataOf(source.sent.at(-1) as LogEvent)
    /** Writes lines one by one; returns the objects with their metadata. */
    const metadata = async () => {
      const before = source.sent.length
      for (let line = 1; line <= 5; line++) {
        write('shop_web-1_uid-web-1', cri('line'))
        await source.received(before + line)
      }
      const events = source.sent.slice(before) as LogEvent[]
      const jsonOf = (event: LogEvent) => {
        writeJson(event.fields)
        return sharedObject(metadataOf(event))?.json
      }
      const objects = new Set(events.map(metadataOf))
      const texts = new Set(events.map(jsonOf))
      expect([objects.size, texts.size]).toEqual([1, 1])
      const [[object], [text]] = [[...objects], [...texts]] as [[ValueObject], [Uint8Array]]
      expect(Buffer.from(text).toString()).toBe(JSON.stringify(JSON.parse(writeJson({ ...object }))))
      return { object, text: Buffer.from(text).toString() }
    }
    const one = await metadata()
    expect(one.text).toContain('"version":"1"')
    expect(origins.size).toBe(takesBytes ? 1 : 0)
    api.set('pods', pod('web-1', { metadata: { labels: { version: '2' } } }))
    await vi.waitFor(() => {
      write('shop_web-1_uid-web-1', cri('line'))
      expect(last()).toMatchObject({ pod_labels: { version: '2' } })
    }, 3000)
    const two = await metadata()
    expect(two.text).toBe(one.text.replace('"version":"1"', '"version":"2"'))
    expect(two.object).not.toBe(one.object)
    expect(origins.size).toBe(takesBytes ? 2 : 0)
  },
)

test('the first lines of a container wait a moment for its id', async () => {
  await using source = await start()
  await vi.waitFor(() => expect(api.watches).toBe(3))
  api.set('pods', pod('web-1', { status: { containerStatuses: [] } }))
  write('shop_web-1_uid-web-1', cri('one'))
  await vi.waitFor(() => expect(source.events.counts.get('files_added_total')).toBe(1))
  api.set('pods', pod('web-1'))
  api.set('pods', pod('web-2', { status: { containerStatuses: [] } }))
  write('shop_web-2_uid-web-2', cri('two'))
  const events = (await source.received(2)) as LogEvent[]
  expect(events.map(({ fields }) => (fields['orchestrator'] as Record<string, Value>)['container_id'])).toEqual([
    'containerd://c1',
    undefined,
  ])
})

test('a pod that is excluded by a new label is no longer read', async () => {
  api.set('pods', pod('web-1'))
  write('shop_web-1_uid-web-1', cri('one'))
  await using source = await start({ delay_deletion_ms: 100 })
  await source.received(1)
  await vi.waitFor(() => expect(api.watches).toBe(3))
  api.set('pods', pod('web-1', { metadata: { labels: { 'penstock.dev/exclude': 'true' } } }))
  await vi.waitFor(() => expect(source.events.counts.get('files_unwatched_total')).toBe(1), 10_000)
  write('shop_web-1_uid-web-1', cri('two'))
  api.set('pods', pod('web-2'))
  write('shop_web-2_uid-web-2', cri('three'))
  await source.received(2)
  expect(messages(source)).toEqual(['one', 'three'])
})

test('a log behind a replaced symbolic link is followed', async () => {
  api.set('pods', pod('web-1'))
  const id = 'c0ffee'.padEnd(64, '0')
  const target = join(folder, `docker/${id}/${id}-json.log`)
  mkdirSync(dirname(target), { recursive: true })
  writeFileSync(target, cri('one'))
  mkdirSync(join(folder, 'pods/shop_web-1_uid-web-1/app'), { recursive: true })
  symlinkSync(target, join(folder, 'pods/shop_web-1_uid-web-1/app/0.log'))
  await using source = await start()
  await source.received(1)
  appendFileSync(target, cri('two'))
  renameSync(target, `${target}.1`)
  writeFileSync(target, cri('three'))
  await source.received(3)
  expect(messages(source)).toEqual(['one', 'two', 'three'])
})

test('no link, pipe or folder among the logs of a pod leads to a file of the agent', async () => {
  api.set('pods', pod('web-1'))
  const outside = join(folder, 'secrets')
  const logs = join(folder, 'pods/shop_web-1_uid-web-1')
  const id = 'c0ffee'.padEnd(64, '0')
  for (const each of [outside, join(logs, 'app'), join(folder, id)]) mkdirSync(each, { recursive: true })
  writeFileSync(join(outside, '0.log'), cri('secret 1'))
  writeFileSync(join(folder, id, 'token'), cri('secret 2'))
  execFileSync('mkfifo', [join(outside, 'pipe')])
  const links = {
    'app/1.log': join(outside, '0.log'),
    'app/2.log': join(folder, id, 'token'),
    'app/3.log': join(outside, 'pipe'),
    'app/4.log': '/dev/zero',
    'app/5.log': `/proc/self/root${outside}/0.log`,
    other: outside,
  }
  for (const [name, target] of Object.entries(links)) symlinkSync(target, join(logs, name))
  execFileSync('mkfifo', [join(logs, 'app/6.log')])
  await using source = await start()
  await vi.waitFor(() => expect(source.events.errors).toHaveLength(6), 10_000)
  write('shop_web-1_uid-web-1', cri('one'))
  await source.received(1)
  expect(messages(source)).toEqual(['one'])
  expect(source.events.errors.map(({ code, fields }) => [code, fields?.['file']]).sort()).toEqual(
    ['app/1.log', 'app/2.log', 'app/3.log', 'app/4.log', 'app/5.log', 'other/0.log'].map((name) => [
      'outside_of_volume',
      join(logs, name),
    ]),
  )
})

test('rotation by the kubelet loses and duplicates nothing', async () => {
  api.set('pods', pod('web-1'))
  const path = write('shop_web-1_uid-web-1', '')
  await using source = await start()
  let written = 0
  for (let rotation = 0; rotation < 4; rotation++) {
    for (let line = 0; line < 50; line++) write('shop_web-1_uid-web-1', cri(`line ${written++}`))
    const rotated = `${path}.2026010${rotation}-000000`
    renameSync(path, rotated)
    write('shop_web-1_uid-web-1', cri(`line ${written++}`))
    writeFileSync(`${rotated}.tmp`, gzipSync(readFileSync(rotated)))
    renameSync(`${rotated}.tmp`, `${rotated}.gz`)
    await source.received(written - 1)
    rmSync(rotated)
  }
  await source.received(written)
  expect(new Set(messages(source)).size).toBe(written)
  expect(source.sent).toHaveLength(written)
})

test('files that were compressed before the start of a source are reported with their lines, without files that it has read', async () => {
  api.set('pods', pod('web-1'))
  const folderOf = 'shop_web-1_uid-web-1'
  const compressed = (name: string, lines: number) =>
    write(folderOf, gzipSync(Array.from({ length: lines }, (_, n) => cri(`old ${n}`)).join('')), name)
  const old = [compressed('0.log.20260101-000000.gz', 3), compressed('0.log.20260102-000000.gz', 70_000)]
  const damaged = write(folderOf, readFileSync(old[1] as string).subarray(0, 30), '0.log.20260103-000000.gz')
  for (const path of [...old, damaged]) utimesSync(path, 1_767_225_600, 1_767_225_600)
  write('shop_web-2_uid-web-2', gzipSync(cri('another pod')), '0.log.20260101-000000.gz')
  const path = write(folderOf, cri('one'))
  await using source = await start()
  await source.received(1)
  // As the kubelet does with a file that was read.
  const rotated = `${path}.20260104-000000`
  renameSync(path, rotated)
  write(folderOf, cri('two'))
  writeFileSync(`${rotated}.gz`, gzipSync(readFileSync(rotated)))
  await source.received(2)
  rmSync(rotated)
  const left = (of: TestSource) =>
    (of.source.positions?.('uid-web-1') ?? [])
      .filter((position) => position.compressed !== undefined)
      .map((position) => [position.file, position.container, position.size, position.read, position.compressed?.lines])
  const expected = [...old, damaged].map((file) => [file, 'app', statSync(file).size, 0])
  await vi.waitFor(() =>
    expect(left(source)).toEqual([
      [...(expected[0] ?? []), 3],
      [...(expected[1] ?? []), 70_000],
      [...(expected[2] ?? []), expect.any(Number)],
    ]),
  )
  const { dataDir } = source
  await source.stop()
  // It is not known how much of them the run before has read.
  await using successor = await start({}, { dataDir })
  write(folderOf, cri('three'))
  await successor.received(1)
  expect(left(successor)).toEqual([])
})

test('compressed files that a source reads are not reported as unread', async () => {
  api.set('pods', pod('web-1'))
  const old = write('shop_web-1_uid-web-1', gzipSync(cri('old')), '0.log.20260101-000000.gz')
  utimesSync(old, 1_767_225_600, 1_767_225_600)
  write('shop_web-1_uid-web-1', cri('new'))
  await using source = await start({ exclude_paths_glob_patterns: ['**/*.tmp'] })
  await source.received(2)
  expect(source.source.positions?.('uid-web-1').filter(({ compressed }) => compressed !== undefined)).toEqual([])
})

test('a line that was split by a rotation is joined', async () => {
  api.set('pods', pod('web-1'))
  const path = write('shop_web-1_uid-web-1', cri('one') + cri('tw', 'P'))
  await using source = await start()
  await source.received(1)
  renameSync(path, `${path}.20260101-000000`)
  write('shop_web-1_uid-web-1', cri('o') + cri('three'))
  await source.received(3)
  expect(messages(source)).toEqual(['one', 'two', 'three'])
  await source.stop()
  const { checkpoints } = JSON.parse(readFileSync(join(source.dataDir, 'in/checkpoints.json'), 'utf8'))
  expect(checkpoints.map((checkpoint: { position: number }) => checkpoint.position)).toEqual([
    (cri('one') + cri('tw')).length,
    (cri('o') + cri('three')).length,
  ])
})

test.each([
  { fault: 'a forgotten version', cause: async () => api.compact() },
  { fault: 'cut watches', cause: async () => {} },
  {
    fault: 'a restart of the server',
    cause: async () => {
      await api.pause()
      await api.resume()
    },
  },
  { fault: 'errors of the server', cause: async () => void api.failures.push(500, 503, 429) },
])('after $fault new pods are still found', async ({ cause }) => {
  api.set('pods', pod('web-1'))
  write('shop_web-1_uid-web-1', cri('one'))
  await using source = await start()
  await source.received(1)
  await vi.waitFor(() => expect(api.watches).toBe(3))
  await cause()
  api.cutWatches()
  api.set('pods', pod('web-2'))
  write('shop_web-2_uid-web-2', cri('two'))
  await source.received(2)
  expect(messages(source)).toEqual(['one', 'two'])
})

test('lists are read in pages, or completely from the cache', async () => {
  for (let index = 0; index < 600; index++) api.set('pods', pod(`web-${index}`))
  write('shop_web-599_uid-web-599', cri('x'))
  {
    await using source = await start()
    await source.received(1)
  }
  expect(api.requests.filter((request) => request.includes('continue=500'))).toHaveLength(1)
  api.requests.length = 0
  await using source = await start({ use_apiserver_cache: true, insert_namespace_fields: false })
  await source.received(1)
  expect(api.requests.some((request) => request.includes('limit='))).toBe(false)
  expect(api.requests.some((request) => request.startsWith('/api/v1/namespaces'))).toBe(false)
  expect(api.requests.some((request) => request.startsWith('/api/v1/pods?resourceVersion=0'))).toBe(true)
})

test('a replaced token is read again', async () => {
  writeFileSync(join(folder, 'token'), 'first\n')
  writeFileSync(join(folder, 'kubeconfig'), api.kubeConfig({ tokenFile: 'token' }))
  api.token = 'first'
  await using source = await start()
  await vi.waitFor(() => expect(api.watches).toBe(3))
  api.token = 'second'
  writeFileSync(join(folder, 'token'), 'second\n')
  api.cutWatches()
  api.set('pods', pod('web-1'))
  write('shop_web-1_uid-web-1', cri('x'))
  await source.received(1)
})

test('multiline joins the lines of one stream', async () => {
  api.set('pods', pod('web-1'))
  write(
    'shop_web-1_uid-web-1',
    cri('Error: a') + cri('noise', 'F', 'stderr') + cri('  at b') + cri('  at c') + cri('next'),
  )
  await using source = await start({
    multiline: { start_pattern: '^\\S', condition_pattern: '^\\s', mode: 'continue_through', timeout_ms: 50 },
  })
  await source.received(3)
  expect(messages(source).sort()).toEqual(['Error: a\n  at b\n  at c', 'next', 'noise'])
})

test('a line of 100 MB is discarded, and the next one read', async () => {
  api.set('pods', pod('web-1'))
  write('shop_web-1_uid-web-1', cri('one'))
  for (let part = 0; part < 100; part++) write('shop_web-1_uid-web-1', Buffer.alloc(1_000_000, 'x'))
  write('shop_web-1_uid-web-1', `\n${cri('two')}`)
  await using source = await start()
  await source.received(2)
  expect(messages(source)).toEqual(['one', 'two'])
  expect(source.events.errors).toEqual([expect.objectContaining({ code: 'reading_line_from_file', count: 1 })])
})

test('without the name of the node, the source does not start', async () => {
  vi.stubEnv('AGENT_SELF_NODE_NAME', '')
  vi.stubEnv('VECTOR_SELF_NODE_NAME', '')
  await expect(start({ self_node_name: '' })).rejects.toMatchObject({
    code: 'PEN_NODE_NAME',
    message: expect.stringContaining('self_node_name config value or AGENT_SELF_NODE_NAME env var is not set'),
  })
  vi.stubEnv('VECTOR_SELF_NODE_NAME', 'node-1')
  await using source = await start({ self_node_name: '' })
  await vi.waitFor(() => expect(api.requests.some((request) => request.includes('spec.nodeName%3Dnode-1'))).toBe(true))
  await source.stop()
  vi.unstubAllEnvs()
})

test.each([
  { config: '{', says: 'is not valid YAML' },
  { config: '{}', says: 'has no `current-context`' },
  {
    config: JSON.stringify({
      'current-context': 'a',
      contexts: [{ name: 'a', context: { cluster: 'c', user: 'u' } }],
      clusters: [{ name: 'c', cluster: { server: 'https://127.0.0.1:1' } }],
      users: [{ name: 'u', user: { exec: { command: 'aws' } } }],
    }),
    says: 'has `exec`',
  },
])('an unusable kubeconfig is refused: $says', async ({ config, says }) => {
  writeFileSync(join(folder, 'kubeconfig'), config)
  await expect(start()).rejects.toMatchObject({ code: 'PEN_KUBERNETES', message: expect.stringContaining(says) })
})

test('the time zone of the machine has a name, and other zones must be known', async () => {
  const problems = (timezone: string) => problemsOf('source', 'orchestrator_logs', { timezone })
  expect(problems('local')).toEqual([])
  expect(problems('Mars/Phobos')).toMatchObject([{ path: 'timezone' }])
  await using source = await start({ timezone: 'local' })
  await source.stop()
})

test('lines that remain bytes result in the same events as objects, for any content of the file', async () => {
  const seed = (Math.random() * 2 ** 32) >>> 0
  const random = new Random(seed)
  const text = () =>
    random.pick(['{"a":1,"b":"ü"}', '{"b":1.50,"a":[2,1]}', 'no JSON', '', '{"t":"\\u003c"}', 'x'.repeat(300)])
  const pieces: Buffer[] = []
  for (let line = 0; line < 3000; line++) {
    const time = `2026-11-23T10:11:${10 + random.below(50)}.${random.below(1e9)}Z`
    const stream = random.pick(['stdout', 'stderr'])
    const message = Buffer.from(`${line} ${text()} é`)
    const cut = random.below(message.length)
    const parts = random.chance(0.05) ? [message.subarray(0, cut), message.subarray(cut)] : [message]
    for (const [index, part] of parts.entries()) {
      const tag = index === parts.length - 1 ? 'F' : 'P'
      pieces.push(Buffer.from(`${time} ${stream} ${tag} `), part, Buffer.from('\n'))
    }
    if (random.chance(0.02)) pieces.push(Buffer.from('no line of the runtime\n'))
    if (random.chance(0.02)) pieces.push(Buffer.from(`${time} stdout F \xff\xc3\n`, 'latin1'))
    if (random.chance(0.02)) pieces.push(Buffer.from('2026-11-23T10:11:12.5+02:00 stdout F local time\n'))
  }
  write('shop_web-1_uid-web-1', Buffer.concat(pieces))
  api.set('pods', describedPod)
  const read = async (takesBytes: boolean) => {
    const lines: string[] = []
    let asBytes = 0
    const look = (batch: Batch) => {
      if (batch instanceof ByteBatch) {
        asBytes += batch.lineCount
        const request = new OpenRequest('', new Body(64))
        const target = new LineTarget({ delimiter: 0x0a, isSeparator: false }, (events, from, to, into) => {
          for (let index = from; index < to; index++) {
            const start = into.body.length
            writeJsonTo(into.body, (events[index] as LogEvent).fields)
            into.body.writeByte(0x0a)
            into.mark(start)
          }
        })
        target.encode(batch, 0, batch.count, request)
        lines.push(...request.body.view().toString().split('\n').slice(0, -1))
      } else lines.push(...batch.events.map((event) => writeJson((event as LogEvent).fields)))
      return batch.events
    }
    await using source = await start({}, { takesBytes, look })
    await expect.poll(() => lines.length).toBeGreaterThan(2990)
    await expect.poll(() => lines.some((line) => line.includes('"message":"2999 '))).toBe(true)
    return { lines, asBytes, events: source.sent.map((event) => writeJson((event as LogEvent).fields)) }
  }
  const objects = await read(false)
  const bytes = await read(true)
  expect(bytes.lines, `Seed ${seed}`).toEqual(objects.lines)
  expect(bytes.events, `Seed ${seed}`).toEqual(objects.lines)
  expect(objects.asBytes).toBe(0)
  expect(bytes.asBytes).toBeGreaterThan(2000)
})
