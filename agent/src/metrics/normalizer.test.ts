import { describe, expect, test } from 'vitest'
import type { MetricEvent, MetricKind, MetricValue } from '../event/metric.ts'
import { at, metric } from '../testing/events.ts'
import { aggregate } from './aggregate.ts'
import { maxValueBytes, type Normalised, Normalizer, type TargetForm } from './normalizer.ts'
import { bucketsOf, statisticsOf } from './statistics.ts'

const counter = (value: number): MetricValue => ({ type: 'counter', value })
const gauge = (value: number): MetricValue => ({ type: 'gauge', value })
const set = (...values: string[]): MetricValue => ({ type: 'set', values })
const samples = (...pairs: [value: number, rate: number][]): MetricValue => ({
  type: 'distribution',
  samples: pairs.map(([value, rate]) => ({ value, rate })),
  statistic: 'histogram',
})
const histogram = (buckets: [limit: number, count: number][], count: number, sum: number): MetricValue => ({
  type: 'histogram',
  buckets: buckets.map(([upperLimit, count]) => ({ upperLimit, count })),
  count,
  sum,
})
const summary: MetricValue = { type: 'summary', quantiles: [], count: 1, sum: 1 }

const shown = (result: Normalised) => (typeof result === 'string' ? result : [result.kind, result.value])

function run(target: TargetForm, events: readonly (readonly [MetricKind, MetricValue])[]) {
  const normalizer = new Normalizer(() => target)
  return events.map(([kind, value]) => shown(normalizer.normalize(metric('m', value, { kind, tags: { a: 'b' } }))))
}

test.each<{ what: string; values: [MetricKind, MetricValue][]; totals: MetricValue[] }>([
  {
    what: 'a gauge, whose absolute values do not change the total',
    values: [
      ['incremental', gauge(2)],
      ['incremental', gauge(3)],
      ['absolute', gauge(100)],
      ['incremental', gauge(-1)],
    ],
    totals: [gauge(2), gauge(5), gauge(100), gauge(4)],
  },
  {
    what: 'a counter',
    values: [
      ['incremental', counter(1)],
      ['incremental', counter(2)],
    ],
    totals: [counter(1), counter(3)],
  },
  {
    what: 'a set',
    values: [
      ['incremental', set('a', 'b')],
      ['incremental', set('b', 'c')],
    ],
    totals: [set('a', 'b'), set('a', 'b', 'c')],
  },
  {
    what: 'a distribution, with equal samples merged',
    values: [
      ['incremental', samples([1, 2])],
      ['incremental', samples([1, 1], [2, 1])],
    ],
    totals: [samples([1, 2]), samples([1, 3], [2, 1])],
  },
  {
    what: 'a histogram, which starts again with other limits',
    values: [
      ['incremental', histogram([[1, 1]], 2, 5)],
      ['incremental', histogram([[1, 2]], 2, 1)],
      ['incremental', histogram([[2, 1]], 1, 1)],
    ],
    totals: [histogram([[1, 1]], 2, 5), histogram([[1, 3]], 4, 6), histogram([[2, 1]], 1, 1)],
  },
])('adds up $what', ({ values, totals }) => {
  expect(run('absolute', values)).toEqual(totals.map((value) => ['absolute', value]))
})

test.each<{ what: string; totals: MetricValue[]; increments: (MetricValue | 'kept' | 'refused')[] }>([
  {
    what: 'a counter, which starts again when it decreases',
    totals: [counter(10), counter(15), counter(12), counter(20)],
    increments: ['kept', counter(5), 'kept', counter(8)],
  },
  { what: 'a set', totals: [set('a'), set('a', 'b')], increments: ['kept', set('b')] },
  {
    what: 'a distribution',
    totals: [samples([1, 1]), samples([1, 3], [2, 1]), samples([1, 3], [2, 1])],
    increments: ['kept', samples([1, 2], [2, 1]), 'kept'],
  },
  {
    what: 'a histogram',
    totals: [
      histogram([[1, 1]], 2, 5),
      histogram([[1, 2]], 4, 6),
      histogram([[1, 1]], 4, 6),
      histogram([[2, 1]], 4, 6),
      histogram([[2, 1]], 5, 9),
    ],
    increments: ['kept', histogram([[1, 1]], 2, 1), 'kept', 'kept', histogram([[2, 0]], 1, 3)],
  },
  { what: 'no summary', totals: [summary, summary], increments: ['refused', 'refused'] },
])('computes the difference of $what', ({ totals, increments }) => {
  expect(
    run(
      'incremental',
      totals.map((value) => ['absolute', value]),
    ),
  ).toEqual(increments.map((value) => (typeof value === 'string' ? value : ['incremental', value])))
})

test('an event of the required kind is unchanged, and so is any event if no kind is required', () => {
  const increment = metric('m', counter(1))
  expect(new Normalizer(() => 'incremental').normalize(increment)).toBe(increment)
  expect(new Normalizer(() => 'as_is').normalize(increment)).toBe(increment)
  expect(new Normalizer(() => 'none').normalize(increment)).toBe('refused')
})

test('a total has no interval, and the original event stays unchanged', () => {
  const increment = metric('m', counter(1), { intervalMs: 1000 })
  expect(new Normalizer(() => 'absolute').normalize(increment)).toMatchObject({ intervalMs: undefined })
  expect(increment).toMatchObject({ kind: 'incremental', intervalMs: 1000 })
})

test('series differ by name, namespace and tags, not by the order of tags', () => {
  const normalizer = new Normalizer(() => 'absolute')
  const total = (event: MetricEvent) => (normalizer.normalize(event) as MetricEvent).value
  expect(total(metric('m', counter(1), { tags: { a: '1', b: '2' } }))).toEqual(counter(1))
  expect(total(metric('m', counter(1), { tags: { b: '2', a: '1' } }))).toEqual(counter(2))
  expect(total(metric('m', counter(1), { tags: { a: '1', b: '3' } }))).toEqual(counter(1))
  expect(total(metric('m', counter(1), { tags: { a: '1', b: '2' }, namespace: 'n' }))).toEqual(counter(1))
  expect(total(metric('m', counter(1), { tags: { a: '1,"b":"2"' } }))).toEqual(counter(1))
})

test('an idle series starts again, and its memory is released', () => {
  let now = 0
  const normalizer = new Normalizer(
    () => 'absolute',
    300_000,
    () => now,
  )
  const total = (name: string) => (normalizer.normalize(metric(name, counter(1))) as MetricEvent).value
  total('idle')
  total('busy')
  now = 299_000
  expect(total('busy')).toEqual(counter(2))
  now = 300_000
  expect(total('idle')).toEqual(counter(1))
  now = 640_000
  expect(total('busy')).toEqual(counter(1))
  expect(normalizer.size).toBe(1)
})

test('a batch has one event for each series and kind: increments are added, the latest absolute value stays', () => {
  const later = metric('c', counter(2), { tags: { k: '1' } })
  const merged = aggregate([
    metric('c', counter(1), { tags: { k: '1' } }),
    metric('g', gauge(5), { kind: 'absolute' }),
    later,
    metric('c', counter(7), { tags: { k: '2' } }),
    metric('g', gauge(4), { kind: 'absolute' }),
    metric('g', gauge(9), { kind: 'absolute', timestamp: at('2025-01-01T00:00:00Z') }),
    metric('s', set('a')),
    metric('s', set('b', 'a')),
    metric('h', histogram([[1, 1]], 1, 1)),
    metric('h', histogram([[2, 1]], 1, 1)),
  ])
  expect(merged.map(({ name, value }) => [name, value])).toEqual([
    ['c', counter(3)],
    ['g', gauge(4)],
    ['c', counter(7)],
    ['s', set('a', 'b')],
    ['h', histogram([[1, 1]], 1, 1)],
    ['h', histogram([[2, 1]], 1, 1)],
  ])
  expect(later.value).toEqual(counter(2))
})

describe('statistics', () => {
  const three = [
    { value: 3, rate: 2 },
    { value: 1, rate: 3 },
    { value: 2, rate: 3 },
  ]
  test('of several samples', () => {
    expect(statisticsOf(three, [0, 0.5, 0.95, 1])).toEqual({
      min: 1,
      max: 3,
      median: 2,
      avg: 1.875,
      sum: 15,
      count: 8,
      quantiles: [
        { quantile: 0, value: 1 },
        { quantile: 0.5, value: 2 },
        { quantile: 0.95, value: 3 },
        { quantile: 1, value: 3 },
      ],
    })
  })
  test('of one sample', () => {
    expect(statisticsOf([{ value: 0.1, rate: 3 }], [0.9])).toEqual({
      min: 0.1,
      max: 0.1,
      median: 0.1,
      avg: 0.1,
      sum: 0.1 * 3,
      count: 3,
      quantiles: [{ quantile: 0.9, value: 0.1 }],
    })
  })
  test('of none', () => expect(statisticsOf([{ value: 1, rate: 0 }], [0.5])).toBeUndefined())
  test('in buckets', () => {
    expect(bucketsOf(three, [1, 2.5])).toEqual({
      buckets: [
        { upperLimit: 1, count: 3 },
        { upperLimit: 2.5, count: 3 },
      ],
      count: 8,
      sum: 15,
    })
  })
})

describe('with an unlimited number of series', () => {
  const start = (target: TargetForm, maxBytes?: number) => {
    const time = { now: 0 }
    const normalizer = new Normalizer(
      () => target,
      undefined,
      () => time.now,
      maxBytes,
    )
    return { time, normalizer, count: (name: string, value = counter(1)) => normalizer.normalize(metric(name, value)) }
  }

  test('the memory stays within its limit, and known series continue', () => {
    const { normalizer, count } = start('absolute')
    let full = 0
    for (let index = 0; index < 200_000; index++) if (count(`${index}`.padEnd(1000, 'x')) === 'full') full++
    expect(normalizer.bytes).toBeLessThanOrEqual(64 << 20)
    expect(normalizer.size + full).toBe(200_000)
    expect(shown(count('0'.padEnd(1000, 'x')))).toEqual(['absolute', counter(2)])
    expect(normalizer.takeForgotten()).toBe(0)
  })

  test('a set that grows indefinitely is rejected, and keeps its members', () => {
    const { normalizer, count } = start('absolute', 100_000)
    let full = 0
    for (let index = 0; index < 2000; index++) if (count('s', set(`member ${index}`)) === 'full') full++
    expect(full).toBeGreaterThan(0)
    expect(normalizer.bytes).toBeLessThanOrEqual(100_000)
    const total = normalizer.normalize(metric('s', set('member 0'))) as MetricEvent
    expect((total.value as Extract<MetricValue, { type: 'set' }>).values).toHaveLength(2000 - full)
  })

  test('a single series can use only a part of the memory, and others continue', () => {
    const normalizer = new Normalizer(() => 'absolute')
    const add = (name: string, ...members: string[]) =>
      normalizer.normalize(metric(name, set(...members), { kind: 'incremental' }))
    const results: Normalised[] = []
    for (let index = 0; index < 12; index++) {
      results.push(add('large', ...Array.from({ length: 10_000 }, (_, member) => `${index}-${member}`)))
    }
    expect(results.filter((result) => result === 'full').length).toBeGreaterThan(0)
    expect(results[0]).toMatchObject({ kind: 'absolute' })
    expect(normalizer.bytes).toBeLessThan(maxValueBytes)
    expect(add('small', 'a')).toMatchObject({ kind: 'absolute' })
  })

  test('series that are idle for an hour are removed at the limit, and counted', () => {
    const { time, normalizer, count } = start('absolute', 10_000)
    for (let index = 0; index < 100; index++) count(`old ${index}`)
    const remembered = normalizer.size
    expect(count('new')).toBe('full')
    time.now = 3_500_000
    count('old 0')
    time.now = 3_700_000
    expect(shown(count('new'))).toEqual(['absolute', counter(1)])
    expect(shown(count('old 0'))).toEqual(['absolute', counter(3)])
    expect(normalizer.takeForgotten()).toBe(remembered - 1)
    expect(normalizer.takeForgotten()).toBe(0)
  })
})
