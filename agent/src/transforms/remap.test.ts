import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import type { Transform } from '../component.ts'
import { DeferredEvent } from '../event/deferred.ts'
import { Finalizer } from '../event/finalizer.ts'
import type { LogEvent } from '../event/log.ts'
import { MetricEvent } from '../event/metric.ts'
import { findComponent } from '../registry.ts'
import { findFunction } from '../remap/functions.ts'
import { restrictedRules } from '../remap/rules.ts'
import { parseOptions } from '../schema/validate.ts'
import { type ErrorReport, loggingEvents } from '../telemetry/component-events.ts'
import { factsOnly } from '../telemetry/facts.ts'
import { type Logger, silentLogger } from '../telemetry/logger.ts'
import { log } from '../testing/events.ts'
import { batchOf, buildTransform, RecordedEvents, runTransform, testGlobals } from '../testing/harness.ts'

function fields(events: readonly (LogEvent | MetricEvent)[] | undefined): unknown[] {
  // Absent fields are undefined properties.
  return (events ?? []).map((event) => JSON.parse(JSON.stringify((event as LogEvent).fields)))
}

test('a program replaces, sets and removes fields', async () => {
  const source = '. = parse_json!(.message)\n.env = "prod"\n.size = to_int!(.size)\ndel(.secret)'
  const sent = await runTransform('remap', { source }, [log({ message: '{"a":1,"size":"7","secret":true}' })])
  expect(fields(sent.get(''))).toEqual([{ a: 1, size: 7, env: 'prod' }])
})

test('deferred events stay in order, and shared events stay unchanged', async () => {
  const source = '. = parse_json!(.message)\n.env = "prod"'
  const texts = ['{"a":1}', '{"a":1,"a":2}', 'no JSON', '{"a":3}']
  const batch = batchOf(texts.map((message) => log({ message })))
  const other = batch.share()
  const errors = new RecordedEvents()
  const lanes = vi.spyOn(errors, 'count')
  const transform = await buildTransform('remap', { source, drop_on_error: true }, errors)
  let kept: readonly (LogEvent | MetricEvent)[] = []
  await transform.transform(batch, {
    send({ events }) {
      kept = events
      return undefined
    },
  })
  expect(kept.map((event) => event instanceof DeferredEvent)).toEqual([true, false, true])
  expect(fields(kept)).toEqual([1, 2, 3].map((a) => ({ a, env: 'prod' })))
  expect(errors.counts.get('component_errors_total')).toBe(1)
  expect(errors.counts.get('component_discarded_events_total intentional=false')).toBe(1)
  expect(fields(other.events)).toEqual(texts.map((message) => ({ message })))
  expect(lanes.mock.calls).toEqual([
    ['byte_lane_events_total', 2, { reason: 'bytes' }],
    ['byte_lane_events_total', 2, { reason: 'text' }],
  ])
})

test('if the byte lane is off, programs run for all events', async () => {
  const globals = { remap: { network: false, byte_lane: false } }
  const events = new RecordedEvents()
  const options = { source: '. = parse_json!(.message)' }
  const transform = await buildTransform('remap', options, events, undefined, globals)
  let kept: readonly (LogEvent | MetricEvent)[] = []
  await transform.transform(batchOf([log({ message: '{"a":1}' })]), {
    send(batch) {
      kept = batch.events
      return undefined
    },
  })
  expect(kept.map((event) => event instanceof DeferredEvent)).toEqual([false])
  expect(fields(kept)).toEqual([{ a: 1 }])
  expect([...events.counts.keys()].filter((name) => name.startsWith('byte_lane'))).toEqual([])
})

test('each element of an array becomes an event, and a value that is not an object becomes the message', async () => {
  const sent = await runTransform('remap', { source: '. = [{"a": 1}, "text", 5]' }, [log({ message: 'x' })])
  expect(fields(sent.get(''))).toEqual([{ a: 1 }, { message: 'text' }, { message: 5 }])
})

test('an empty array creates no events', async () => {
  const sent = await runTransform('remap', { source: '. = []' }, [log({ message: 'x' })])
  expect(sent.size).toBe(0)
})

test.each([
  { options: {}, kept: 2, discarded: undefined },
  { options: { drop_on_error: true }, kept: 1, discarded: 'component_discarded_events_total intentional=false' },
])('if the program fails, its changes to the event are undone ($options)', async ({ options, kept, discarded }) => {
  const events = new RecordedEvents()
  const source = '.seen = true\n.n = to_int!(.n)'
  const sent = await runTransform('remap', { source, ...options }, [log({ n: '5' }), log({ n: 'x' })], events)
  expect(fields(sent.get(''))).toEqual([{ n: 5, seen: true }, { n: 'x' }].slice(0, kept))
  expect(events.counts.get('component_errors_total')).toBe(1)
  expect(events.errors[0]?.message).toBe('Mapping failed with event.')
  expect(events.errors[0]?.fields).toMatchObject({ line: 2, column: 6 })
  if (discarded !== undefined) expect(events.counts.get(discarded)).toBe(1)
})

test('aborted events are discarded by default', async () => {
  const source = '.seen = true\nif .drop == true { abort "no" }'
  const input = () => [log({ drop: true }), log({ drop: false })]
  const events = new RecordedEvents()
  const dropped = await runTransform('remap', { source }, input(), events)
  expect(fields(dropped.get(''))).toEqual([{ drop: false, seen: true }])
  expect(events.counts.get('component_discarded_events_total intentional=true')).toBe(1)
  const kept = await runTransform('remap', { source, drop_on_abort: false }, input())
  expect(fields(kept.get(''))).toEqual([{ drop: true }, { drop: false, seen: true }])
})

test('dropped events are sent to their own output with the reason', async () => {
  const options = { source: '.n = to_int!(.n)', drop_on_error: true, reroute_dropped: true }
  const sent = await runTransform('remap', options, [log({ n: 'x' }), log({ n: '1' })])
  expect(fields(sent.get(''))).toEqual([{ n: 1 }])
  expect(fields(sent.get('dropped'))).toEqual([
    {
      n: 'x',
      metadata: {
        dropped: {
          reason: 'error',
          message: 'function call error for "to_int" at (5:16): Invalid integer "x": invalid digit found in string',
          component_id: 'change',
          component_type: 'remap',
          component_kind: 'transform',
        },
      },
    },
  ])
})

test('the number of rerouted events is limited; the others are counted as discarded', async () => {
  const events = new RecordedEvents()
  const options = {
    source: '.n = to_int!(.n)',
    drop_on_error: true,
    reroute_dropped: true,
    reroute_dropped_limit: 0.001,
  }
  const sent = await runTransform('remap', options, [log({ n: 'x' }), log({ n: 'y' }), log({ n: 'z' })], events)
  expect(fields(sent.get('dropped'))).toMatchObject([{ n: 'x' }])
  expect(events.counts.get('component_discarded_events_total intentional=false')).toBe(2)
})

/** The transform itself, for tests that inspect batches. */
async function built(options: object, logger = silentLogger): Promise<Transform> {
  const declaration = findComponent('transform', 'remap')
  if (declaration?.kind !== 'transform') throw new Error('there is no remap transform')
  const parsed = parseOptions(declaration.options, options)
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems))
  return declaration.build(parsed.value, {
    id: 'change',
    type: 'remap',
    kind: 'transform',
    globals: testGlobals(tmpdir()),
    logger,
    events: new RecordedEvents(),
  })
}

test('each event of a split batch is finalized once', async () => {
  const heard: string[] = []
  const transform = await built({ source: '.n = to_int!(.n)', drop_on_error: true, reroute_dropped: true })
  const finalizer = new Finalizer((status) => heard.push(status))
  void transform.transform(batchOf([log({ n: 'x' }), log({ n: '1' })], finalizer), {
    send: (batch, port) => void batch.finalizer.release(1, port === undefined ? 'delivered' : 'rejected'),
  })
  expect(heard).toEqual(['rejected'])
})

test('only the event that a program nests too deeply is discarded', async () => {
  const items = JSON.stringify(new Array(400).fill(0))
  const source = `if .deep == true { v = {}
    for_each(${items}) -> |_i, _x| { for_each(${items}) -> |_j, _y| { v = {"a": v} } }
    .v = v }`
  const events = new RecordedEvents()
  const sent = await runTransform('remap', { source }, [log({ n: 1 }), log({ deep: true }), log({ n: 2 })], events)
  expect(fields(sent.get(''))).toEqual([{ n: 1 }, { n: 2 }])
  expect(events.counts.get('component_discarded_events_total intentional=false')).toBe(1)
})

test('a call to a deprecated function is logged as a warning once', async () => {
  // No function is currently deprecated, so this test deprecates one temporarily.
  const declaration = findFunction('upcase') as { deprecated?: string }
  const warnings: unknown[] = []
  const logger = { ...silentLogger, warn: (...given: unknown[]) => void warnings.push(given) } as Logger
  try {
    declaration.deprecated = 'Use `downcase`.'
    const transform = await built({ source: '.a = upcase("b")' }, logger)
    for (let round = 0; round < 2; round++) void transform.transform(batchOf([log({})]), { send: () => undefined })
  } finally {
    delete declaration.deprecated
  }
  expect(warnings).toEqual([[{ warnings: expect.stringContaining('warning[E801]') }, 'The program has warnings.']])
  expect(JSON.stringify(warnings)).toContain('Use `downcase`.')
})

test('shared events do not change', async () => {
  const held = log({ a: 1 })
  const batch = batchOf([held])
  batch.share()
  const transform = await built({ source: '.a = 2' })
  const seen: unknown[] = []
  void transform.transform(batch, { send: (sent) => void seen.push(...sent.events) })
  expect(fields(seen as LogEvent[])).toEqual([{ a: 2 }])
  expect(held.fields).toEqual({ a: 1 })
})

test('programs edit metrics through their fields; unsupported changes have no effect', async () => {
  const metric = new MetricEvent({
    name: 'requests',
    kind: 'incremental',
    value: { type: 'counter', value: 3 },
    tags: new Map<string, string | string[]>([
      ['host', 'a'],
      ['path', ['x', 'y']],
      ['gone', '1'],
    ]),
  })
  const source =
    '.name = upcase!(.name)\n.tags.env = "prod"\n.tags.copy = .tags.path\ndel(.tags.gone)\n.namespace = 5\n.kind = "absolute"\n. = {}\n.other = 1'
  const sent = await runTransform('remap', { source }, [metric])
  const [changed] = sent.get('') as MetricEvent[]
  expect(changed).toMatchObject({ name: 'REQUESTS', namespace: undefined, kind: 'absolute' })
  expect([...(changed?.tags ?? [])]).toEqual([
    ['host', 'a'],
    ['path', ['x', 'y']],
    ['env', 'prod'],
    ['copy', 'y'],
  ])
})

test('a program can consist of several files, joined in order', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'penstock-remap-'))
  try {
    const files = [join(directory, 'a.remap'), join(directory, 'b.remap')]
    await writeFile(files[0] as string, 'x = 1')
    await writeFile(files[1] as string, '.x = x')
    const sent = await runTransform('remap', { files }, [log({})])
    expect(fields(sent.get(''))).toEqual([{ x: 1 }])
  } finally {
    await rm(directory, { recursive: true })
  }
})

test.each([
  { options: { source: '.a = to_int("x")' }, path: 'source', message: /E103/ },
  { options: {}, path: '', message: /Exactly one/ },
  { options: { source: '.', file: 'a' }, path: '', message: /Exactly one/ },
  { options: { source: '.', timezone: 'Nowhere' }, path: 'timezone', message: /not a time zone/ },
  { options: { file: '/nonexistent/program' }, path: 'file', message: /cannot be read/ },
])('problems are found before anything runs: $options', ({ options, path, message }) => {
  const declaration = findComponent('transform', 'remap')
  const problems = declaration?.check?.(options as never, testGlobals(tmpdir())) ?? []
  expect(problems).toMatchObject([{ path, message: expect.stringMatching(message) }])
})

test('a program that does not compile is shown with the place', () => {
  const declaration = findComponent('transform', 'remap')
  const [problem] = declaration?.check?.({ source: '.x = 1\n.a = to_int("x")' } as never, testGlobals(tmpdir())) ?? []
  expect(problem?.position).toEqual({ line: 2, column: 6 })
  expect(problem?.rendered).toContain('error[E103]')
})

test('annotating a shared event makes a copy', async () => {
  const held = log({ n: 'x' })
  const batch = batchOf([held])
  batch.share()
  const transform = await built({ source: 'to_int!(.n)', drop_on_error: true, reroute_dropped: true })
  const seen: unknown[] = []
  void transform.transform(batch, { send: (sent) => void seen.push(...sent.events) })
  expect(fields(seen as LogEvent[])).toMatchObject([{ n: 'x', metadata: { dropped: { reason: 'error' } } }])
  expect(held.fields).toEqual({ n: 'x' })
})

test.each([
  { mode: 'single', shown: 'y', written: 'b' },
  { mode: 'full', shown: ['x', 'y'], written: ['b', 'c'] },
  { mode: 'auto', shown: ['x', 'y'], written: ['b', 'c'] },
])('tags of metrics in mode $mode', async ({ mode, shown, written }) => {
  const metric = new MetricEvent({
    name: JSON.stringify(shown),
    kind: 'absolute',
    value: { type: 'gauge', value: 1 },
    tags: new Map<string, string | string[]>([
      ['many', ['x', 'y']],
      ['one', 'a'],
    ]),
  })
  const source =
    'if .tags.many != parse_json!(.name) { abort }\n.tags.one = "b"\n.tags.one = ["b", "c"]\n.tags.bare = null'
  const sent = await runTransform('remap', { source, metric_tag_values: mode }, [metric])
  const [changed] = sent.get('') as MetricEvent[]
  expect([...(changed?.tags ?? [])].sort()).toEqual([
    ['bare', null],
    ['many', ['x', 'y']],
    ['one', written],
  ])
})

test.each(['remap', 'filter'])('%s permits programs to use the network if the configuration does', (type) => {
  const declaration = findComponent('transform', type)
  const program = 'reverse_dns!(.ip) == "localhost"'
  const given = type === 'remap' ? { source: `.local = ${program}` } : { condition: program }
  const parsed = parseOptions(declaration?.options ?? {}, given)
  if (!parsed.ok) throw new Error('the options fit their schema')
  const problems = (network: boolean) =>
    declaration?.check?.(parsed.value, { ...testGlobals(tmpdir()), remap: { network } })
  expect(problems(true)).toEqual([])
  expect(problems(false)?.[0]?.rendered).toContain('remap.network')
})

test.each([
  ['.n = to_int!(.message)', 'the call or operation failed for its values: "to_int" at (5:22)'],
  ['assert!(false, string!(.message))', 'an assertion is false: "assert" at (0:33)'],
  ['.n = upcase!(.size)', 'an argument has the wrong kind'],
  ['.n = map_values([.message]) -> |v| { to_int!(v) }', 'the call or operation failed for its values: "to_int"'],
])('errors of a restricted pipeline contain the place and kind, but no event data: %s', async (source, expected) => {
  const declaration = findComponent('transform', 'remap')
  if (declaration?.kind !== 'transform') throw new TypeError('no remap')
  const options = parseOptions(declaration.options, { source, drop_on_error: true })
  if (!options.ok) throw new TypeError('bad options')
  const reports: ErrorReport[] = []
  const events = { ...loggingEvents(silentLogger), error: (report: ErrorReport) => void reports.push(report) }
  const transform = await declaration.build(options.value, {
    id: 'change',
    type: 'remap',
    kind: 'transform',
    globals: { ...testGlobals(tmpdir()), programs: restrictedRules },
    logger: silentLogger,
    events,
  })
  await transform.transform(batchOf([log({ message: 'CARD-4111 hunter2', size: 7 })]), { send: () => undefined })
  const shown = reports.map(({ fields }) => factsOnly(fields ?? {}))
  expect(shown).toMatchObject([{ error: expect.stringContaining(expected) }])
  expect(JSON.stringify(shown)).not.toMatch(/CARD|hunter2/)
})

test('a dropped event contains the full text of its error, even in a restricted pipeline', async () => {
  const declaration = findComponent('transform', 'remap')
  if (declaration?.kind !== 'transform') throw new TypeError('no remap')
  const options = parseOptions(declaration.options, {
    source: '.n = to_int!(.message)',
    drop_on_error: true,
    reroute_dropped: true,
  })
  if (!options.ok) throw new TypeError('bad options')
  const sent: unknown[] = []
  const transform = await declaration.build(options.value, {
    id: 'change',
    type: 'remap',
    kind: 'transform',
    globals: { ...testGlobals(tmpdir()), programs: restrictedRules },
    logger: silentLogger,
    events: new RecordedEvents(),
  })
  await transform.transform(batchOf([log({ message: 'CARD-4111' })]), {
    send: (batch) => void sent.push(...batch.events.map((event) => (event as LogEvent).fields)),
  })
  expect(JSON.stringify(sent)).toContain('Invalid integer \\"CARD-4111')
})
