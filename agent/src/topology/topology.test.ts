// Whole topologies built from configuration text, with test components.

import { existsSync } from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, test, vi } from 'vitest'
import { parse } from 'yaml'
import { componentViews } from '../api/components.ts'
import type { SinkBuffer } from '../buffers/buffer.ts'
import { bufferFolder } from '../buffers/folder.ts'
import {
  defineSink,
  defineSource,
  defineTransform,
  erased,
  registryOf,
  type Sink,
  type SourceContext,
  type Transform,
  type TransformOutput,
} from '../component.ts'
import type { Config } from '../config/config.ts'
import { loadConfigObject } from '../config/load.ts'
import { PenstockError } from '../errors.ts'
import { type Batch, type LogBatch, logBatch, metricBatch, ownEvents } from '../event/batch.ts'
import { type BatchStatus, type EventStatus, Finalizer } from '../event/finalizer.ts'
import { bool, text } from '../schema/options.ts'
import { type Logger, silentLogger } from '../telemetry/logger.ts'
import { Metrics } from '../telemetry/metrics.ts'
import { log, metric } from '../testing/events.ts'
import type { SourceNode } from './build.ts'
import { reload } from './reload.ts'
import { Topology, type TopologyOptions } from './run.ts'
import type { Leadership } from './singleton.ts'
import { Stopwatch, UtilizationMeter } from './utilization.ts'
import { watchFiles } from './watch.ts'

/** A source that sends the test's events. */
class Feed {
  readonly context: SourceContext
  readonly statuses: BatchStatus[] = []
  #end = Promise.withResolvers<void>()
  stopped = false
  /** Ignores stop requests. */
  ignoresStop = false
  settle?: () => Promise<void>

  constructor(context: SourceContext) {
    this.context = context
    context.stopping.addEventListener('abort', () => {
      this.stopped = true
      if (!this.ignoresStop) this.#end.resolve()
    })
  }
  run(): Promise<void> {
    return this.#end.promise
  }
  finish(error?: unknown): void {
    if (error === undefined) this.#end.resolve()
    else this.#end.reject(error)
  }
  send(...messages: string[]): Promise<void> | undefined {
    const finalizer = new Finalizer((status) => this.statuses.push(status))
    return this.context.output.send(
      logBatch(
        messages.map((message) => log({ message })),
        finalizer,
      ),
    )
  }
}

/** A sink that keeps its events, returns the test's answers and can be blocked. */
class Collector implements Sink {
  readonly messages: unknown[] = []
  readonly held: Batch[] = []
  answer: EventStatus = 'delivered'
  hangs = false
  throws = false
  closed = false
  healthy: true | Error | Promise<void> = true
  #resume = () => {}

  write(batch: Batch): Promise<void> | undefined {
    if (this.throws) throw new Error('The collector is broken.')
    for (const event of (batch as LogBatch).events) this.messages.push(event.fields['message'])
    if (!this.hangs) {
      batch.finalizer.release(1, this.answer)
      return undefined
    }
    this.held.push(batch)
    return new Promise((resolve) => {
      this.#resume = resolve
    })
  }
  resume(answer = this.answer): void {
    this.hangs = false
    for (const batch of this.held.splice(0)) batch.finalizer.release(1, answer)
    this.#resume()
  }
  async close(): Promise<void> {
    this.closed = true
  }
  async healthcheck(): Promise<void> {
    if (this.healthy instanceof Error) throw this.healthy
    if (this.healthy !== true) await this.healthy
  }
}

/** A transform that waits for the test's answer to each batch. */
class Asker implements Transform {
  readonly asked: { batch: LogBatch; resolve: () => void; reject: (error: Error) => void }[] = []
  closed = false
  readonly #append: string

  constructor(append: string) {
    this.#append = append
  }
  async transform(batch: Batch, output: TransformOutput): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    this.asked.push({ batch: batch as LogBatch, resolve, reject })
    await promise
    const events = ownEvents(batch as LogBatch)
    for (const event of events) event.fields['message'] = `${event.fields['message']}${this.#append}`
    await output.send(logBatch(events, batch.finalizer))
  }
  answer(): void {
    this.asked.shift()?.resolve()
  }
  close(): void {
    this.closed = true
    for (const { reject } of this.asked.splice(0)) reject(new Error('The transform was closed.'))
  }
}

const askers = new Map<string, Asker[]>()
const asker = (id: string) => newest(askers, id)
const feeds = new Map<string, Feed[]>()
const collectors = new Map<string, Collector[]>()
const newest = <T>(map: Map<string, T[]>, id: string): T => {
  const found = map.get(id)?.at(-1)
  if (found === undefined) throw new Error(`Nothing was built for ${id}.`)
  return found
}
const feed = (id: string) => newest(feeds, id)
const collector = (id: string) => newest(collectors, id)
const keep = <T>(map: Map<string, T[]>, id: string, one: T): T => {
  map.set(id, [...(map.get(id) ?? []), one])
  return one
}
let failingBuilds = new Set<string>()
let unhealthy = new Set<string>()
let silent = new Set<string>()

const components = registryOf([
  erased(
    defineSource({
      type: 'feed',
      summary: 'Sends what the test gives it.',
      outputs: ['log'],
      acknowledges: true,
      options: { note: text('Anything.', { default: '' }) },
      build(_options, context) {
        if (failingBuilds.has(context.id)) throw new PenstockError('PEN_IO', 'The port is taken.')
        return keep(feeds, context.id, new Feed(context))
      },
    }),
  ),
  erased(
    defineSource({
      type: 'lone_feed',
      summary: 'As feed, for one of several agents.',
      outputs: ['log'],
      acknowledges: true,
      singleton: true,
      options: {},
      build(_options, context) {
        if (failingBuilds.has(context.id)) throw new PenstockError('PEN_IO', 'The port is taken.')
        return keep(feeds, context.id, new Feed(context))
      },
    }),
  ),
  erased(
    defineTransform({
      type: 'change',
      summary: 'Appends to the message.',
      accepts: ['log'],
      options: {
        append: text('The text to append.', { default: '!' }),
        fails: bool('Whether it throws.', { default: false }),
        split: bool('Whether messages with an x go to the port `x`.', { default: false }),
      },
      ports: (options) => (options.split ? ['x'] : []),
      build: (options) => ({
        transform(batch, output) {
          if (options.fails) throw new Error('The transform is broken.')
          const events = ownEvents(batch as LogBatch)
          for (const event of events) {
            event.fields['message'] = `${event.fields['message']}${options.append}`
            event.changed()
          }
          if (!options.split) {
            output.send(logBatch(events, batch.finalizer))
            return
          }
          batch.finalizer.retain(1)
          const marked = events.filter((event) => String(event.fields['message']).includes('x'))
          output.send(logBatch(marked, batch.finalizer), 'x')
          output.send(
            logBatch(
              events.filter((event) => !marked.includes(event)),
              batch.finalizer,
            ),
          )
        },
      }),
    }),
  ),
  erased(
    defineTransform({
      type: 'ask',
      summary: 'Emits a batch when the test answers for it.',
      accepts: ['log'],
      options: { append: text('The text to append.', { default: '?' }) },
      build: ({ append }, { id }) => keep(askers, id, new Asker(append)),
    }),
  ),
  erased(
    defineSink({
      type: 'collect',
      summary: 'Keeps what it gets.',
      accepts: ['log'],
      options: { note: text('Anything.', { default: '' }) },
      build(_options, context) {
        if (failingBuilds.has(context.id)) throw new PenstockError('PEN_TLS_FILE', 'The certificate is missing.')
        const made = keep(collectors, context.id, new Collector())
        if (unhealthy.has(context.id)) made.healthy = new Error('Connection refused.')
        if (silent.has(context.id)) made.healthy = Promise.withResolvers<void>().promise
        return made
      },
    }),
  ),
])

beforeEach(() => {
  askers.clear()
  feeds.clear()
  collectors.clear()
  failingBuilds = new Set()
  unhealthy = new Set()
  silent = new Set()
})

function configOf(text: string): Config {
  const result = loadConfigObject(parse(text), { components, allowEmpty: true })
  if (!result.ok) throw new Error(result.problems.map((problem) => `${problem.path}: ${problem.message}`).join('\n'))
  return result.config
}

async function start(text: string, options: Partial<TopologyOptions> = {}) {
  const metrics = new Metrics()
  const topology = await Topology.start(configOf(text), { logger: silentLogger, metrics, ...options })
  return {
    topology,
    metrics,
    [Symbol.asyncDispose]: async () => {
      await topology.stop(0)
    },
  }
}

/** A leadership that the test controls. */
class Office implements Leadership {
  members = 0
  leads = false
  readonly precededUntil = undefined
  #term = new AbortController()
  #began = Promise.withResolvers<void>()

  join(): Disposable {
    this.members++
    return { [Symbol.dispose]: () => this.members-- }
  }
  async term(signal: AbortSignal): Promise<AbortSignal | undefined> {
    const stopped = new Promise<void>((resolve) => signal.addEventListener('abort', () => resolve()))
    while (!this.leads && !signal.aborted) await Promise.race([this.#began.promise, stopped])
    return signal.aborted ? undefined : this.#term.signal
  }
  begin(): void {
    this.leads = true
    this.#term = new AbortController()
    this.#began.resolve()
  }
  /** @param settled whether the end is noticed at once, or by a later check of the clock */
  end(settled = true): void {
    this.leads = false
    this.#began = Promise.withResolvers()
    if (settled) this.#term.abort()
  }
}

/** Lets all pending work continue. */
const settled = () => new Promise<void>((done) => setImmediate(done))

const withLoneFeed = `
    sources: {in: {type: lone_feed}, other: {type: feed}}
    sinks: {out: {type: collect, inputs: [in, other]}}`

test('a singleton source runs while this agent leads, without an effect on other components', async () => {
  const leadership = new Office()
  await using running = await start(withLoneFeed, {
    bundle: { hub: undefined, programLog: () => undefined, leadership },
  })
  await vi.waitFor(() => expect(leadership.members).toBe(1))
  const first = feed('in')
  const run = vi.spyOn(first, 'run')
  feed('other').send('one')
  await settled()
  expect(run).not.toHaveBeenCalled()

  leadership.begin()
  await vi.waitFor(() => expect(run).toHaveBeenCalledOnce())
  first.send('two')
  leadership.end()
  await settled()
  expect(first.stopped).toBe(true)
  expect(first.context.stopping.aborted).toBe(true)
  feed('other').send('three')
  expect(feeds.get('in')).toEqual([first])

  leadership.begin()
  await vi.waitFor(() => expect(feeds.get('in')).toHaveLength(2))
  feed('in').send('four')
  // By the clock, the term ends before a timer fires: another agent sends the event.
  leadership.end(false)
  feed('in').send('five')
  expect(feed('in').statuses).toEqual(['delivered', 'errored'])
  expect(collector('out').messages).toEqual(['one', 'two', 'three', 'four'])
  expect([feeds.get('other')?.length, collectors.get('out')?.length]).toEqual([1, 1])
  expect(running.topology.sources.size).toBe(2)
})

test('a singleton source passes on its events when the agent stops, and then leaves the election', async () => {
  const leadership = new Office()
  await using running = await start(withLoneFeed, {
    bundle: { hub: undefined, programLog: () => undefined, leadership },
  })
  leadership.begin()
  await vi.waitFor(() => expect(leadership.members).toBe(1))
  const { context } = feed('in')
  context.stopping.addEventListener('abort', () => {
    expect(leadership.members).toBe(1)
    feed('in').send('last')
  })
  expect(await running.topology.stop(1000)).toEqual([])
  expect(leadership.members).toBe(0)
  expect(collector('out').messages).toEqual(['last'])
})

test('a singleton source that cannot be built is reported before this agent leads', async () => {
  failingBuilds.add('in')
  const leadership = new Office()
  const bundle = { hub: undefined, programLog: () => undefined, leadership }
  await expect(start(withLoneFeed, { bundle })).rejects.toMatchObject({ code: 'PEN_IO' })
})

test('without other agents, a singleton source runs immediately', async () => {
  await using running = await start(withLoneFeed)
  feed('in').send('one')
  expect(collector('out').messages).toEqual(['one'])
  expect(running.topology.sources.size).toBe(2)
})

const messages = (count: number, prefix = 'm') => Array.from({ length: count }, (_, index) => `${prefix}${index}`)

test('events go from a source through transforms to sinks, counted at each', async () => {
  await using running = await start(`
    sources: {in: {type: feed}}
    transforms: {a: {type: change, inputs: [in]}, b: {type: change, inputs: [a], append: "?"}}
    sinks: {out: {type: collect, inputs: [b]}, raw: {type: collect, inputs: [in]}}`)
  expect(feed('in').send('one', 'two')).toBeUndefined()
  expect(collector('out').messages).toEqual(['one!?', 'two!?'])
  expect(collector('raw').messages).toEqual(['one', 'two'])
  expect(feed('in').statuses).toEqual(['delivered'])
  const count = (name: string, id: string) => running.metrics.sum(name, { component_id: id })
  for (const id of ['in', 'a', 'b', 'out', 'raw']) expect(count('component_received_events_total', id)).toBe(2)
  for (const id of ['in', 'a', 'b']) expect(count('component_sent_events_total', id)).toBe(2)
  expect(count('component_received_event_bytes_total', 'in')).toBe(2 * log({ message: 'one' }).size)
})

test('a sink skips events of types that it does not accept', async () => {
  await using running = await start(`
    sources: {in: {type: feed}}
    sinks: {a: {type: collect, inputs: [in]}}`)
  const { context, statuses } = feed('in')
  const metrics = metricBatch(
    [metric('m', { type: 'gauge', value: 1 })],
    new Finalizer((status) => statuses.push(status)),
  )
  expect(context.output.send(metrics)).toBeUndefined()
  feed('in').send('one')
  expect(collector('a').messages).toEqual(['one'])
  expect(statuses).toEqual(['delivered', 'delivered'])
  const left = { component_id: 'a', intentional: 'true' }
  expect(running.metrics.sum('component_discarded_events_total', left)).toBe(1)
})

test('named outputs have their own readers; events without a reader count as done', async () => {
  await using _running = await start(`
    sources: {in: {type: feed}}
    transforms: {a: {type: change, inputs: [in], split: true}}
    sinks: {x: {type: collect, inputs: [a.x]}}`)
  feed('in').send('x1', 'y1')
  expect(collector('x').messages).toEqual(['x1!'])
  expect(feed('in').statuses).toEqual(['delivered'])
})

test.each([
  { answers: ['delivered', 'delivered'], status: 'delivered' },
  { answers: ['delivered', 'errored'], status: 'errored' },
  { answers: ['rejected', 'errored'], status: 'rejected' },
  { answers: ['dropped', 'delivered'], status: 'delivered' },
] as const)('a batch that ends as $answers in two sinks is $status for the source', async ({ answers, status }) => {
  await using _running = await start(`
    acknowledgements: true
    sources: {in: {type: feed}}
    sinks: {a: {type: collect, inputs: [in]}, b: {type: collect, inputs: [in]}}`)
  const sinks = ['a', 'b'].map(collector)
  for (const [index, sink] of sinks.entries()) {
    sink.hangs = true
    sink.answer = answers[index] ?? 'delivered'
  }
  expect(feed('in').context.acknowledgements).toBe(true)
  feed('in').send('one')
  sinks[0]?.resume()
  expect(feed('in').statuses).toEqual([])
  sinks[1]?.resume()
  expect(feed('in').statuses).toEqual([status])
})

test('a hanging sink blocks its source only when its buffer is full, and never another sink', async () => {
  await using running = await start(`
    sources: {in: {type: feed}}
    sinks:
      slow: {type: collect, inputs: [in], buffer: {max_events: 10}}
      fast: {type: collect, inputs: [in]}`)
  const slow = collector('slow')
  slow.hangs = true
  expect(feed('in').send('first')).toBeUndefined() // in the sink
  expect(feed('in').send(...messages(10))).toBeUndefined() // in the buffer
  let free = false
  const wait = feed('in').send('last')
  void wait?.then(() => {
    free = true
  })
  await Promise.resolve()
  expect(wait).toBeDefined()
  expect(free).toBe(false)
  expect(collector('fast').messages).toHaveLength(12) // the sibling has received all events
  const waited = (id: string) => running.metrics.sum('sink_wait_seconds', { component_id: id })
  const shown = () => componentViews(running.topology).map((view) => view.inputs_wait_seconds)
  expect([waited('slow') > 0, waited('fast')]).toEqual([true, 0])
  await vi.waitFor(() => expect(shown()).toEqual([undefined, 1, undefined]), { timeout: 1900 })
  slow.resume()
  await wait
  expect([waited('slow'), shown()]).toEqual([0, [undefined, undefined, undefined]])
  expect(slow.messages).toEqual(['first', ...messages(10), 'last'])
})

test('with drop_newest, a hanging sink never blocks its source', async () => {
  await using running = await start(`
    sources: {in: {type: feed}}
    sinks:
      slow: {type: collect, inputs: [in], buffer: {max_events: 10, when_full: drop_newest}}
      fast: {type: collect, inputs: [in]}`)
  collector('slow').hangs = true
  for (let round = 0; round < 5; round++) expect(feed('in').send(...messages(10))).toBeUndefined()
  expect(collector('fast').messages).toHaveLength(50)
  expect(running.metrics.sum('buffer_discarded_events_total', { component_id: 'slow', intentional: 'true' })).toBe(30)
  // The total of discarded events includes these events.
  expect(running.metrics.sum('component_discarded_events_total', { component_id: 'slow', intentional: 'true' })).toBe(
    30,
  )
  expect(componentViews(running.topology).find((view) => view.component_id === 'slow')?.discarded_events_total).toBe(30)
  expect(running.metrics.sum('buffer_events', { component_id: 'slow' })).toBe(10)
  collector('slow').resume()
  await vi.waitFor(() => expect(collector('slow').messages).toHaveLength(20))
  expect(feed('in').statuses).toHaveLength(5)
})

test('a component that throws is counted, and the rest continues', async () => {
  await using running = await start(`
    sources: {in: {type: feed}}
    transforms: {bad: {type: change, inputs: [in], fails: true}}
    sinks:
      behind: {type: collect, inputs: [bad]}
      broken: {type: collect, inputs: [in]}
      good: {type: collect, inputs: [in]}`)
  collector('broken').throws = true
  feed('in').send('one', 'two')
  collector('broken').throws = false
  feed('in').send('three')
  expect(collector('good').messages).toEqual(['one', 'two', 'three'])
  expect(collector('broken').messages).toEqual(['three'])
  expect(feed('in').statuses).toEqual(['errored', 'delivered'])
  const count = (name: string, id: string) => running.metrics.sum(name, { component_id: id })
  expect(count('component_errors_total', 'bad')).toBe(2)
  expect(count('component_discarded_events_total', 'bad')).toBe(3)
  expect(count('component_errors_total', 'broken')).toBe(1)
  expect(count('component_discarded_events_total', 'broken')).toBe(2)
})

test('the topology ends after all of its sources, and a stop delivers the content of buffers', async () => {
  const { topology } = await start(`
    sources: {a: {type: feed}, b: {type: feed}}
    sinks: {out: {type: collect, inputs: ["*"]}}`)
  const sink = collector('out')
  sink.hangs = true
  feed('a').send('1')
  feed('b').send('2')
  feed('a').finish()
  feed('b').finish()
  expect(await topology.ended).toEqual({})
  const stopping = topology.stop(10_000)
  expect(sink.closed).toBe(false)
  sink.resume()
  expect(await stopping).toEqual([])
  expect(sink.messages).toEqual(['1', '2'])
  expect(sink.closed).toBe(true)
})

test('a stop waits until sources have acknowledged the last deliveries at their origin', async () => {
  const { topology } = await start('{sources: {in: {type: feed}}, sinks: {out: {type: collect, inputs: [in]}}}')
  const settled = Promise.withResolvers<void>()
  const source = feed('in')
  source.settle = () => settled.promise
  collector('out').hangs = true
  source.send('1')
  const ended: string[] = []
  const stopping = topology.stop(10_000).then((late) => ended.push('agent', ...late))
  collector('out').resume()
  await vi.waitFor(() => expect(collector('out').closed).toBe(true))
  expect(source.statuses).toEqual(['delivered'])
  ended.push('settled')
  settled.resolve()
  await stopping
  expect(ended).toEqual(['settled', 'agent'])
})

test('a stop aborts the sources, and names components that did not end within the limit', async () => {
  const { topology } = await start(`
    sources: {in: {type: feed}}
    sinks: {stuck: {type: collect, inputs: [in]}, fine: {type: collect, inputs: [in]}}`)
  collector('stuck').hangs = true
  feed('in').send('1')
  feed('in').send('2')
  expect(await topology.stop(20)).toEqual(['stuck'])
  expect(feed('in').stopped).toBe(true)
  expect(collector('fine').closed).toBe(true)
  expect(topology.context.abandoning.aborted).toBe(true)
})

test('a source that does not stop does not reduce the time of the sinks', async () => {
  const { topology } = await start('{sources: {in: {type: feed}}, sinks: {out: {type: collect, inputs: [in]}}}')
  feed('in').ignoresStop = true
  expect(await topology.stop(40)).toEqual(['in'])
  expect(collector('out').closed).toBe(true)
  feed('in').send('late')
  expect(feed('in').statuses).toEqual(['errored'])
})

test('a stop logs every five seconds which components it waits for', async () => {
  const written: unknown[] = []
  const logger = {
    info: (fields: object, message: string) => written.push({ ...fields, message }),
    error() {},
    debug() {},
    isLevelEnabled: () => false,
    child: () => logger,
  } as unknown as Logger
  const { topology } = await start('{sources: {in: {type: feed}}, sinks: {out: {type: collect, inputs: [in]}}}', {
    logger,
  })
  collector('out').hangs = true
  feed('in').send('1')
  feed('in').send('2')
  vi.useFakeTimers()
  try {
    const stopping = topology.stop(60_000)
    await vi.advanceTimersByTimeAsync(5000)
    vi.useRealTimers()
    expect(written.at(-1)).toEqual({
      remaining_components: 'out',
      time_remaining: '55 seconds left',
      message: 'Shutting down... Waiting on running components.',
    })
    collector('out').resume()
    expect(await stopping).toEqual([])
  } finally {
    vi.useRealTimers()
  }
})

test('utilization is the busy time of each component, without the time of its consumers', () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  try {
    const [outer, inner] = [new UtilizationMeter(), new UtilizationMeter()]
    const watch = new Stopwatch()
    const before = watch.enter(outer)
    vi.advanceTimersByTime(1000)
    const caller = watch.enter(inner)
    vi.advanceTimersByTime(3000)
    watch.leave(caller)
    watch.leave(before)
    vi.advanceTimersByTime(1000)
    for (const meter of [outer, inner]) meter.tick(5000, 5000)
    expect([outer.average, inner.average]).toEqual([0.2, 0.6])
    inner.tick(10_000, 5000)
    expect(inner.average).toBeCloseTo(0.06)
    inner.waitingSince = 10_000 // waiting for the destination counts as busy
    inner.tick(15_000, 5000)
    expect(inner.average).toBeCloseTo(0.906)
  } finally {
    vi.useRealTimers()
  }
})

test('the utilization of a source includes the time in which it is blocked', async () => {
  await using running = await start(`
    sources: {in: {type: feed}}
    sinks: {slow: {type: collect, inputs: [in], buffer: {max_events: 1}}}`)
  const utilization = () =>
    running.metrics
      .snapshot()
      .find(({ name }) => name === 'utilization')
      ?.samples.find((one) => one.labels['component_id'] === 'in')
  expect(utilization()).toMatchObject({ value: 0 })
  collector('slow').hangs = true
  let wait: Promise<void> | undefined
  while (wait === undefined) wait = feed('in').send('more')
  const { meter } = running.topology.sources.get('in') as SourceNode
  expect(meter.waitingSince).toBeDefined()
  meter.tick(performance.now(), 5000)
  const held = meter.average
  expect(held).toBeGreaterThan(0)
  expect(utilization()).toMatchObject({ value: held })
  collector('slow').resume()
  await wait
  expect(meter.waitingSince).toBeUndefined()
})

test('a source that rejects ends the topology with its error', async () => {
  await using running = await start('{sources: {in: {type: feed}}, sinks: {out: {type: collect, inputs: [in]}}}')
  const failure = new PenstockError('PEN_KUBERNETES', 'Refused.')
  feed('in').finish(failure)
  expect(await running.topology.ended).toEqual({ failure })
})

test('components that cannot be built are all named', async () => {
  failingBuilds = new Set(['in', 'out'])
  const starting = start(`
    sources: {in: {type: feed}}
    sinks: {out: {type: collect, inputs: [in]}, other: {type: collect, inputs: [in]}}`)
  await expect(starting).rejects.toThrow(
    'Sink "out" cannot be built: The certificate is missing.\nSource "in" cannot be built: The port is taken.',
  )
  await expect(starting).rejects.toMatchObject({ code: 'PEN_TLS_FILE' })
  expect(collector('other').closed).toBe(true)
})

const onDisk = (folder: string, more = '') => `
    data_dir: ${folder}
    sources: {in: {type: feed}}
    sinks: {out: {type: collect, inputs: [in], buffer: {type: disk, max_size: 268435488}${more}}}`

async function dataFolder() {
  const folder = await mkdtemp(join(tmpdir(), 'penstock-topology-'))
  return { folder, [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }) }
}

test('a disk buffer acknowledges synced events, and keeps undelivered ones for the next start', async () => {
  await using data = await dataFolder()
  {
    await using running = await start(onDisk(data.folder))
    collector('out').hangs = true
    void feed('in').send('a', 'b')
    void feed('in').send('c')
    await vi.waitFor(() => expect(feed('in').statuses).toEqual(['delivered', 'delivered']), 5000)
    expect(running.metrics.sum('buffer_events')).toBe(3)
    await running.topology.stop(0)
  }
  await using running = await start(onDisk(data.folder))
  void feed('in').send('d')
  await vi.waitFor(() => expect(collector('out').messages).toEqual(['a', 'b', 'c', 'd']))
  expect(running.metrics.sum('buffer_events')).toBe(0)
  expect(running.metrics.sum('component_discarded_events_total')).toBe(0)
})

test('a stopped agent leaves events in the disk buffer; if its sources have ended, it delivers them', async () => {
  await using data = await dataFolder()
  {
    await using running = await start(onDisk(data.folder))
    collector('out').hangs = true
    void feed('in').send('a')
    await new Promise((resolve) => setImmediate(resolve)) // the agent processes the events of one turn together
    void feed('in').send('b')
    const stopping = running.topology.stop(60_000)
    await new Promise((resolve) => setImmediate(resolve)) // the source has ended
    collector('out').resume()
    expect(await stopping).toEqual([])
    expect(collector('out').messages).toEqual(['a'])
  }
  await using running = await start(onDisk(data.folder))
  collector('out').hangs = true
  feed('in').finish()
  await running.topology.ended
  const stopping = running.topology.stop(60_000)
  collector('out').resume()
  expect(await stopping).toEqual([])
  expect(collector('out').messages).toEqual(['b'])
})

test('a second topology cannot use the folder of a disk buffer, and names it', async () => {
  await using data = await dataFolder()
  await using _ = await start(onDisk(data.folder))
  await expect(start(onDisk(data.folder))).rejects.toThrow(/Sink "out" cannot be built: The disk buffer is in use/)
  await expect(start(onDisk(data.folder))).rejects.toMatchObject({ component: 'out' })
})

test('a changed sink inherits its disk buffer, also with other limits, and a removed sink deletes its files', async () => {
  await using data = await dataFolder()
  await using running = await start(onDisk(data.folder))
  const first = collector('out')
  first.hangs = true
  for (const message of ['a', 'b', 'c']) void feed('in').send(message)
  const larger = onDisk(data.folder, ', note: changed').replace('268435488', '300000000')
  expect(await reload(running.topology, configOf(larger))).toMatchObject({ outcome: 'reloaded' })
  await vi.waitFor(() => expect(collector('out').messages).toEqual(['b', 'c']))
  expect(running.metrics.sum('buffer_max_byte_size')).toBe(300_000_000)
  expect(running.metrics.sum('buffer_events')).toBe(3) // in order: no event is emitted before the first
  first.resume()
  await vi.waitFor(() => expect(running.metrics.sum('buffer_events')).toBe(0))

  const folder = bufferFolder(data.folder, 'out')
  expect(existsSync(folder)).toBe(true)
  const without = 'sources: {in: {type: feed}}\nsinks: {other: {type: collect, inputs: [in]}}'
  await reload(running.topology, configOf(`data_dir: ${data.folder}\n${without}`))
  await vi.waitFor(() => expect(existsSync(folder)).toBe(false))
})

test('a sink that returns while its disk buffer is drained gets the rest', async () => {
  await using data = await dataFolder()
  await using running = await start(onDisk(data.folder))
  const first = collector('out')
  first.hangs = true
  for (const message of ['a', 'b', 'c']) void feed('in').send(message)
  const without = `data_dir: ${data.folder}\nsources: {in: {type: feed}}\nsinks: {other: {type: collect, inputs: [in]}}`
  await reload(running.topology, configOf(without))
  expect(await reload(running.topology, configOf(onDisk(data.folder)))).toMatchObject({ outcome: 'reloaded' })
  await vi.waitFor(() => expect(collector('out').messages).toEqual(['b', 'c']))
  first.resume()
  await vi.waitFor(() => expect(running.metrics.sum('buffer_events')).toBe(0))
})

test('a sink that returns while its disk buffer is closed gets its content', async () => {
  await using data = await dataFolder()
  await using running = await start(onDisk(data.folder), { drainMs: 1 })
  const first = collector('out')
  first.hangs = true
  const slow = vi.spyOn(running.topology.sinks.get('out')?.buffer as SinkBuffer, 'close')
  const closing = new Promise<() => void>((begun) => {
    slow.mockImplementation(async () => {
      await new Promise<void>((go) => begun(go))
      slow.mockRestore()
      await running.topology.retiringSink('out')?.buffer.close()
    })
  })
  for (const message of ['a', 'b']) {
    void feed('in').send(message)
    await new Promise((resolve) => setImmediate(resolve)) // the agent processes the events of one turn together
  }
  const without = `data_dir: ${data.folder}\nsources: {in: {type: feed}}\nsinks: {other: {type: collect, inputs: [in]}}`
  await reload(running.topology, configOf(without))
  await vi.waitFor(() => expect(running.topology.retiringSink('out')?.abandon.signal.aborted).toBe(true))
  first.resume('errored')
  const go = await closing
  const coming = reload(running.topology, configOf(onDisk(data.folder)))
  go()
  expect(await coming).toMatchObject({ outcome: 'reloaded' })
  await vi.waitFor(() => expect(collector('out').messages).toEqual(['a', 'b']))
})

test.each([
  { option: '{}', enabled: true },
  { option: 'false', enabled: false },
  { option: '{enabled: false}', enabled: false },
])(
  'with healthcheck $option an unhealthy sink keeps the agent from starting: $enabled',
  async ({ option, enabled }) => {
    unhealthy = new Set(['out'])
    const text = `{sources: {in: {type: feed}}, sinks: {out: {type: collect, inputs: [in], healthcheck: ${option}}}}`
    const starting = start(text, { requireHealthy: true })
    if (enabled)
      await expect(starting).rejects.toMatchObject({
        code: 'PEN_HEALTHCHECK',
        message: expect.stringContaining('Sinks unhealthy. out: '),
      })
    else await (await starting).topology.stop(0)
  },
)

test('if health is required, the first failure ends the start, even while another check is pending', async () => {
  unhealthy = new Set(['out', 'second'])
  silent = new Set(['hung'])
  const sink = (id: string) => `${id}: {type: collect, inputs: [in]}`
  const text = `{sources: {in: {type: feed}}, sinks: {${sink('hung')}, ${sink('out')}, ${sink('second')}}}`
  // The hanging check would have an hour.
  const hour = text.replace('hung: {', 'hung: {healthcheck: {timeout: 3600}, ')
  await expect(start(hour, { requireHealthy: true })).rejects.toMatchObject({
    code: 'PEN_HEALTHCHECK',
    message: expect.stringMatching(/^Sinks unhealthy\. out: .*; second: /),
  })
})

test('an unhealthy sink does not prevent the start by default', async () => {
  unhealthy = new Set(['out'])
  await using _running = await start('{sources: {in: {type: feed}}, sinks: {out: {type: collect, inputs: [in]}}}')
  feed('in').send('one')
  expect(collector('out').messages).toEqual(['one'])
})

const reloadable = `
  sources: {in: {type: feed}, other: {type: feed}}
  transforms: {a: {type: change, inputs: [in]}}
  sinks: {out: {type: collect, inputs: [a]}, same: {type: collect, inputs: [other]}}`

test('a reload replaces changed components, and the others continue', async () => {
  await using running = await start(reloadable)
  const { topology, metrics } = running
  const [oldIn, other, same] = [feed('in'), feed('other'), collector('same')]
  const next = reloadable
    .replace('{in: {type: feed}', '{in: {type: feed, note: new}')
    .replace('a: {', 'a: {append: "#", ')
  expect(await reload(topology, configOf(next))).toMatchObject({
    outcome: 'reloaded',
    diff: {
      sources: { changed: ['in'] },
      transforms: { changed: ['a'] },
      sinks: { changed: [], added: [], removed: [] },
    },
  })
  expect(oldIn.stopped).toBe(true)
  expect(feed('in')).not.toBe(oldIn)
  expect(feed('other')).toBe(other)
  expect(collector('same')).toBe(same)
  feed('in').send('one')
  other.send('two')
  expect(collector('out').messages).toEqual(['one#'])
  expect(same.messages).toEqual(['two'])
  expect(metrics.sum('component_sent_events_total', { component_id: 'other' })).toBe(1)
  expect(await reload(topology, configOf(next))).toEqual({ outcome: 'unchanged' })
})

test('inputs change without a restart of either end', async () => {
  await using running = await start(reloadable)
  const [input, out] = [feed('in'), collector('out')]
  const next = reloadable.replace('out: {type: collect, inputs: [a]}', 'out: {type: collect, inputs: [in, other]}')
  await reload(running.topology, configOf(next))
  input.send('one')
  feed('other').send('two')
  expect(feed('in')).toBe(input)
  expect(out.messages).toEqual(['one', 'two'])
})

test('a changed sink gets the buffer of the old one, which delivers the events that it had taken', async () => {
  await using running = await start(reloadable)
  const old = collector('out')
  old.hangs = true
  feed('in').send('taken')
  feed('in').send('waiting')
  await reload(running.topology, configOf(reloadable.replace('out: {type: collect', 'out: {type: collect, note: new')))
  expect(old.messages).toEqual(['taken!'])
  expect(collector('out').messages).toEqual(['waiting!'])
  expect(old.closed).toBe(false)
  old.resume()
  await vi.waitFor(() => expect(old.closed).toBe(true))
  expect(feed('in').statuses).toEqual(['delivered', 'delivered'])
})

test('a removed sink, or one with a changed buffer, delivers the old buffer in the background', async () => {
  await using running = await start(reloadable)
  const old = collector('out')
  old.hangs = true
  feed('in').send('taken')
  feed('in').send('waiting')
  const changed = reloadable.replace('out: {type: collect', 'out: {type: collect, buffer: {max_events: 9}')
  await reload(running.topology, configOf(changed))
  feed('in').send('new')
  expect(collector('out').messages).toEqual(['new!'])
  await reload(running.topology, configOf(reloadable.replace('out: {type: collect, inputs: [a]}, ', '')))
  old.resume()
  await vi.waitFor(() => expect(old.closed).toBe(true))
  expect(old.messages).toEqual(['taken!', 'waiting!'])
  expect(running.topology.sinks.has('out')).toBe(false)
})

test('keeps the current configuration if the new one cannot be built', async () => {
  await using running = await start(reloadable)
  const input = feed('in')
  failingBuilds = new Set(['out'])
  const next = reloadable.replace('out: {type: collect', 'out: {type: collect, note: new')
  expect(await reload(running.topology, configOf(next))).toMatchObject({ outcome: 'rejected', reason: 'build' })
  input.send('one')
  expect(collector('out').messages).toEqual(['one!'])
  expect(running.topology.config.sinks.get('out')?.options).toMatchObject({ note: '' })
})

test('if a new source cannot be built, the old one runs again', async () => {
  await using running = await start(reloadable)
  const old = feed('in')
  failingBuilds = new Set(['more'])
  const next = reloadable.replace('{in: {type: feed}', '{in: {type: feed, note: new}, more: {type: feed}')
  expect(await reload(running.topology, configOf(next))).toMatchObject({ outcome: 'rejected', reason: 'build' })
  expect(old.stopped).toBe(true)
  expect(feed('in')).not.toBe(old)
  feed('in').send('one')
  expect(collector('out').messages).toEqual(['one!'])
})

test('globals cannot be changed while running', async () => {
  await using running = await start(reloadable)
  expect(await reload(running.topology, configOf(`\n  timezone: Europe/Vienna${reloadable}`))).toEqual({
    outcome: 'rejected',
    reason: 'globals',
    changed: ['timezone'],
  })
})

test('a sink that starts to wait for acknowledgement restarts its sources', async () => {
  await using running = await start(reloadable)
  const [input, other] = [feed('in'), feed('other')]
  await reload(
    running.topology,
    configOf(reloadable.replace('out: {type: collect', 'out: {type: collect, acknowledgements: true')),
  )
  expect(feed('in')).not.toBe(input)
  expect(feed('in').context.acknowledgements).toBe(true)
  expect(feed('other')).toBe(other)
})

test.each(['recommended', 'poll'] as const)('a changed file is noticed by the method %s', async (method) => {
  const folder = await mkdtemp(join(tmpdir(), 'penstock-watch-'))
  const file = join(folder, 'a.yaml')
  await writeFile(file, 'a: 1')
  let changes = 0
  const unwatch = watchFiles([file], { method, pollSecs: method === 'poll' ? 0.02 : 600, quietMs: 20 }, () => changes++)
  try {
    await writeFile(file, 'a: 22')
    await vi.waitFor(() => expect(changes).toBeGreaterThan(0), { timeout: 5000 })
  } finally {
    unwatch()
    await rm(folder, { recursive: true })
  }
})

const turn = () => new Promise((resolve) => setImmediate(resolve))

test('reloads while events flow lose and duplicate nothing', async () => {
  await using running = await start(reloadable)
  const input = feed('in')
  let sent = 0
  let flowing = true
  const flow = (async () => {
    while (flowing) {
      await input.send(...messages(7, `${sent}-`))
      sent += 7
      await turn()
    }
  })()
  for (let round = 0; round < 20; round++) {
    const next = reloadable
      .replace('a: {', `a: {append: "${round}", `)
      .replace('out: {', `out: {note: "${round}", buffer: {max_events: ${5 + (round % 2)}}, `)
    expect(await reload(running.topology, configOf(next))).toMatchObject({ outcome: 'reloaded' })
    await turn()
  }
  flowing = false
  await flow
  expect(collectors.get('out')).toHaveLength(21)
  const arrived = [...(collectors.get('out') ?? [])].flatMap((one) => one.messages)
  expect(arrived).toHaveLength(sent)
  expect(new Set(input.statuses)).toEqual(new Set(['delivered']))
  expect(input.statuses).toHaveLength(sent / 7)
})

const asking = (append = '?', note = '') => `
  sources: {in: {type: feed}, other: {type: feed}}
  transforms: {ask: {type: ask, inputs: [in], append: '${append}'}}
  sinks: {out: {type: collect, inputs: [ask], note: '${note}'}, plain: {type: collect, inputs: [other]}}`

test('a waiting transform only blocks its own source', async () => {
  await using _running = await start(asking())
  let held = true
  void feed('in')
    .send('a')
    ?.then(() => {
      held = false
    })
  expect(feed('other').send('b')).toBeUndefined()
  await vi.waitFor(() => expect(collector('plain').messages).toEqual(['b']))
  expect(held).toBe(true)
  expect(collector('out').messages).toEqual([])
  asker('ask').answer()
  await vi.waitFor(() => expect(held).toBe(false))
  expect(collector('out').messages).toEqual(['a?'])
  expect(feed('in').statuses).toEqual(['delivered'])
})

test('a sink behind a waiting transform blocks its source through the transform', async () => {
  await using _running = await start(`
    sources: {in: {type: feed}}
    transforms: {ask: {type: ask, inputs: [in]}}
    sinks: {out: {type: collect, inputs: [ask], buffer: {max_events: 1}}}`)
  collector('out').hangs = true
  const sent: boolean[] = []
  for (const message of messages(3)) {
    void feed('in')
      .send(message)
      ?.then(() => sent.push(true))
    asker('ask').answer()
  }
  await vi.waitFor(() => expect(sent.length).toBeGreaterThan(0))
  expect(sent.length).toBeLessThan(3)
  collector('out').resume()
  await vi.waitFor(() => expect(sent).toHaveLength(3))
  expect(collector('out').messages).toEqual(['m0?', 'm1?', 'm2?'])
})

test('a stop waits for waiting transforms; after its limit their events still get a status', async () => {
  const { topology } = await start(asking())
  void feed('in').send('a')
  const stopped = topology.stop(undefined)
  asker('ask').answer()
  expect(await stopped).toEqual([])
  expect(feed('in').statuses).toEqual(['delivered'])
  expect(asker('ask').closed).toBe(true)

  const second = await start(asking())
  void feed('in').send('b')
  await second.topology.stop(50)
  expect(feed('in').statuses).toEqual(['errored'])
  expect(collector('out').closed).toBe(true)
  expect(second.metrics.snapshot().find(({ name }) => name === 'component_discarded_events_total')).toBeDefined()
})

test('a replaced transform passes on its pending events to the readers of its successor', async () => {
  await using running = await start(asking())
  void feed('in').send('a')
  const old = asker('ask')
  const outcome = await reload(running.topology, configOf(asking('!', 'changed')))
  expect(outcome.outcome).toBe('reloaded')
  void feed('in').send('b')
  asker('ask').answer()
  old.answer()
  await vi.waitFor(() => expect([...collector('out').messages].sort()).toEqual(['a?', 'b!']))
  await vi.waitFor(() => expect(old.closed).toBe(true))
  expect(feed('in').statuses).toEqual(['delivered', 'delivered'])
})

test('a removed transform passes on its pending events to its former readers', async () => {
  await using running = await start(asking())
  void feed('in').send('a')
  const old = asker('ask')
  const next = `
    sources: {in: {type: feed}, other: {type: feed}}
    sinks: {out: {type: collect, inputs: [in]}, plain: {type: collect, inputs: [other]}}`
  expect((await reload(running.topology, configOf(next))).outcome).toBe('reloaded')
  old.answer()
  await vi.waitFor(() => expect(collector('out').messages).toEqual(['a?']))
})
