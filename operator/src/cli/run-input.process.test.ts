// `penstock run --input FILE`: each kind of source reads a file like its real origin, and the run ends when all events are
// delivered.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'
import { stringify } from 'yaml'

const main = fileURLToPath(new URL('../main.ts', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'penstock-input-'))
afterAll(() => rmSync(folder, { recursive: true }))

function written(name: string, content: string): string {
  const file = join(folder, name)
  writeFileSync(file, content)
  return file
}

interface Source {
  readonly type: string
  readonly config?: object
  readonly multiline?: object
  readonly selector?: object
}

function pipeline(kind: 'Pipeline' | 'ClusterPipeline', source: Source): string {
  const metadata = kind === 'Pipeline' ? { name: 'given', namespace: 'shop' } : { name: 'given' }
  const sinks = [{ name: 'out', type: 'console', config: { encoding: { codec: 'json' } } }]
  const spec = { sources: [{ name: 'origin', ...source }], sinks }
  const text = stringify({ apiVersion: 'penstock.dev/v1alpha1', kind, metadata, spec })
  return written(`${kind}-${source.type}.yaml`, text)
}

function run(resources: string, inputs: readonly string[], input = '') {
  const flags = inputs.flatMap((word) => ['--input', word])
  const args = ['--conditions=source', main, 'run', resources, ...flags, '-o', 'json']
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', input })
  const events = stdout.split('\n').filter((line) => line !== '')
  return { code: status, err: stderr, events: events.map((line) => JSON.parse(line) as Record<string, never>) }
}

test('a file becomes the log of a sample pod, with the times and the bytes of its lines', () => {
  const long = 'ä'.repeat(20_000)
  const file = written('pod.log', `2026-01-02T03:04:05.6Z first\n2026-01-02T03:04:05.7Z ${long}\nno time\n`)
  const { code, err, events } = run(pipeline('Pipeline', { type: 'orchestrator_logs' }), [file])

  expect(code).toBe(0)
  expect(events.map(({ message }) => message)).toEqual(['first', long, 'no time'])
  expect(events[0]).toMatchObject({
    timestamp: '2026-01-02T03:04:05.600Z',
    orchestrator: { pod_namespace: 'shop', pod_labels: { app: 'web' } },
  })
  expect(err).toContain('read 3 events, filtered 0, delivered 3 (')
})

test.each([
  ['standard input', '-', 'Standard input is empty. Does the command before the `|` print lines?'],
  ['a file', 'empty.log', 'is empty, so there is nothing to run.'],
])('%s without a line ends the run at once', (_, name, says) => {
  const file = name === '-' ? name : written(name, '')
  const { code, err } = run(pipeline('Pipeline', { type: 'orchestrator_logs' }), [file])
  expect(code).toBe(64)
  expect(err).toContain(says)
})

test.each([
  {
    selector: { pods: { matchLabels: { app: 'other' } } },
    selection: 'labels app=other; fields metadata.namespace=shop',
  },
  {
    selector: { containers: { exclude: ['web'] } },
    selection: 'fields metadata.namespace=shop; files except **/*.gz, **/*.tmp, **/web/**',
  },
])('an input that no source reads is refused before the run: $selection', ({ selector, selection }) => {
  const file = written('unread.log', 'a line\n')
  const { code, err, events } = run(pipeline('Pipeline', { type: 'orchestrator_logs', selector }), [file])
  expect([code, events]).toEqual([64, []])
  expect(err).toBe(`No source reads the input, which is the log of pod web:
  source origin reads pods with ${selection}
The sample pods are:
  web-6d9f7c5b8-x2x7p (app=web, team=storefront)
  payments-5c8d9fd7b4-9kq4z (app=payments, team=money)
To use another pod: --input POD=FILE. See \`penstock run --help\`.
`)
})

test('an input is read if the selector of its source matches its pod', () => {
  const file = written('read.log', 'a line\n')
  const selector = { pods: { matchLabels: { app: 'payments' } }, containers: { exclude: ['web'] } }
  const { code, events } = run(pipeline('Pipeline', { type: 'orchestrator_logs', selector }), [`payments=${file}`])
  expect([code, events.map(({ message }) => message)]).toEqual([0, ['a line']])
})

test('a source that starts at the end of its files reads the whole input', () => {
  const file = written('end.log', 'first\nsecond\n')
  const { events } = run(pipeline('Pipeline', { type: 'orchestrator_logs', config: { read_from: 'end' } }), [file])
  expect(events.map(({ message }) => message)).toEqual(['first', 'second'])
})

test('files are assigned to pods by name, and other pods are silent', () => {
  const cluster = pipeline('ClusterPipeline', { type: 'orchestrator_logs', config: { metadata: 'lean' } })
  const [shop, blog] = [written('shop.log', 'of the shop\n'), written('blog.log', 'of the blog\n')]
  const { events } = run(cluster, [`shop/payments=${shop}`, `blog/web=${blog}`])

  expect(events.map(({ message }) => message).sort()).toEqual(['of the blog', 'of the shop'])
  for (const { message, orchestrator } of events) {
    const [app, namespace] = message === 'of the shop' ? ['payments', 'shop'] : ['web', 'blog']
    expect(orchestrator).toMatchObject({ pod_namespace: namespace, pod_labels: { app } })
  }
})

test('a group of lines at the end of the input is complete before the run ends', () => {
  const source = { type: 'orchestrator_logs', multiline: { preset: 'java' } }
  const { events } = run(pipeline('Pipeline', source), ['-'], 'ended\nIOException: gone\n\tat a.b(C.java:1)\n')
  expect(events.map(({ message }) => message)).toEqual(['ended', 'IOException: gone\n\tat a.b(C.java:1)'])
})

test('Events of the API server, in both of its groups', () => {
  const event = (name: string, fields: object) => ({
    kind: 'Event',
    metadata: { name, namespace: 'shop', uid: name, resourceVersion: '7', creationTimestamp: '2026-01-02T03:04:05Z' },
    type: 'Warning',
    ...fields,
  })
  const items = [
    event('old', {
      apiVersion: 'v1',
      message: 'Back-off',
      involvedObject: { kind: 'Pod', name: 'web-1' },
      lastTimestamp: '2026-01-02T04:00:00Z',
      count: 3,
    }),
    event('new', { apiVersion: 'events.k8s.io/v1', note: 'Pulled', regarding: { kind: 'Pod', name: 'web-2' } }),
  ]
  const file = written('events.yaml', stringify({ apiVersion: 'v1', kind: 'List', items }))
  const { events } = run(pipeline('ClusterPipeline', { type: 'orchestrator_events' }), [file])

  expect(events).toMatchObject([
    {
      message: 'Back-off',
      timestamp: '2026-01-02T04:00:00Z',
      orchestrator: { count: 3, regarding: { name: 'web-1' } },
    },
    { message: 'Pulled', timestamp: '2026-01-02T03:04:05Z', orchestrator: { count: 1, regarding: { name: 'web-2' } } },
  ])
})

test.each([
  {
    what: 'messages of a queue',
    source: { type: 'amqp', config: { connection_string: 'amqp://broker:5672/%2f', decoding: { codec: 'json' } } },
    content: '{"order":1}\n{"order":2}\n',
    events: [{ order: 1 }, { order: 2 }],
  },
  {
    what: 'a log file',
    source: { type: 'file', config: { include: ['/logs/*.log'] } },
    content: 'a\nb\n',
    events: [{ message: 'a' }, { message: 'b' }],
  },
])('$what', ({ source, content, events }) => {
  const file = written('origin.txt', content)
  expect(run(pipeline('ClusterPipeline', source), [`origin=${file}`]).events).toMatchObject(events)
})

test('the status page of a web server', () => {
  const source = { type: 'webserver_metrics', config: { endpoints: ['http://web.shop.svc/server-status?auto'] } }
  const { events } = run(pipeline('ClusterPipeline', source), [
    written('status', 'Total Accesses: 12\nIdleWorkers: 3\n'),
  ])
  const values = Object.fromEntries(events.map(({ name, counter, gauge }) => [name, counter ?? gauge]))
  expect(events[0]).toMatchObject({ tags: { endpoint: 'http://web.shop.svc/server-status?auto' } })
  expect(values).toMatchObject({ up: { value: 1 }, access_total: { value: 12 }, workers: { value: 3 } })
})

test.each([
  { inputs: ['gone.log'], says: '"gone.log" cannot be read' },
  { inputs: [folder], says: 'it is a folder' },
  { inputs: ['-', 'web=-'], says: '`--input -` reads standard input, which can only be used once.' },
  {
    inputs: [`nobody=${main}`],
    says: 'There is no sample pod and no source `nobody`. Pods: web, payments; sources: origin.',
  },
  { inputs: [`webb=${main}`], says: 'no source `webb`. Did you mean `web`?' },
  { inputs: [`origin=${main}`], says: `Source \`origin\` reads the logs of pods: name the pod that wrote the file` },
])('$inputs is refused before anything starts', ({ inputs, says }) => {
  const { code, err } = run(pipeline('Pipeline', { type: 'orchestrator_logs' }), inputs)
  expect(code).toBe(64)
  expect(err).toContain(says)
})

test('a file that no source can read', () => {
  const logs = pipeline('ClusterPipeline', { type: 'internal_logs' })
  expect(run(logs, [main]).err).toContain('No source can read')
  expect(run(logs, [`origin=${main}`]).err).toContain('Source origin of type internal_logs cannot read a file.')
})

test('two queues cannot both be standard input', () => {
  const queue = (name: string) => ({ name, type: 'amqp', config: { connection_string: 'amqp://broker:5672/%2f' } })
  const spec = { sources: [queue('a'), queue('b')], sinks: [{ name: 'out', type: 'blackhole' }] }
  const metadata = { name: 'queues' }
  const resource = { apiVersion: 'penstock.dev/v1alpha1', kind: 'ClusterPipeline', metadata, spec }
  const { code, err } = run(written('queues.yaml', stringify(resource)), [main])
  expect(code).toBe(64)
  expect(err).toContain('Source b cannot read a file, because another source already reads messages.')
})
