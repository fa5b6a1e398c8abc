import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test, vi } from 'vitest'
import { CountedEvents } from './component-events.ts'
import { Exposition } from './exposition.ts'
import { type Logger, silentLogger } from './logger.ts'
import { metricTable } from './metric-table.ts'
import { histogramBounds, Metrics } from './metrics.ts'
import { RepetitionLimit } from './repetition-limit.ts'

const component = { id: 'out', kind: 'sink', type: 'console' }

function counted(metrics: Metrics, logger: Logger = silentLogger) {
  return new CountedEvents(metrics, logger, new RepetitionLimit(10_000), component)
}

test('the page for scrapers shows counters with component, host and pid, and their old names', async () => {
  const metrics = new Metrics()
  const events = counted(metrics)
  events.received(3, 90, { file: '/a' })
  events.sent(2, 60)
  events.error({ type: 'io_failed', stage: 'sending', message: 'Failed.', count: 2 })
  events.discarded(4, true, 'Not wanted.')
  const { text, contentType } = await new Exposition(metrics, { host: 'node', pid: '7' }).render()
  const tags = 'component_id="out",component_kind="sink",component_type="console"'
  const rest = 'component_name="out",host="node",pid="7"'
  const lines = text.split('\n')
  for (const name of ['component_received_events_total', 'events_in_total', 'processed_events_total']) {
    expect(
      lines.filter((line) => line.startsWith(`${name}{`) && line.includes('file="/a"') && line.endsWith(' 3')),
    ).toHaveLength(1)
    expect(lines).toContain(`# TYPE ${name} counter`)
  }
  expect(sorted(lines, 'component_sent_events_total')).toEqual([`${tags},${rest}`.split(',').sort().join(','), '2'])
  expect(sorted(lines, 'events_discarded_total')).toEqual([
    `${tags},intentional="true",${rest}`.split(',').sort().join(','),
    '4',
  ])
  expect(text).toContain('processing_errors_total{')
  expect(contentType).toContain('text/plain')
})

/** Labels in alphabetical order and the value of the first line of a metric. */
function sorted(lines: string[], name: string): [string, string] {
  const match = /\{(.*)\} (.*)$/.exec(lines.find((line) => line.startsWith(`${name}{`)) ?? '')
  return [(match?.[1] ?? '').split(',').sort().join(','), match?.[2] ?? '']
}

test('a histogram has the bounds 0.015625 · 2^n and cumulative counts', async () => {
  const metrics = new Metrics()
  expect(histogramBounds).toHaveLength(20)
  expect(histogramBounds.slice(0, 3)).toEqual([0.015625, 0.03125, 0.0625])
  const series = metrics.histogram('source_lag_time_seconds')
  for (const value of [0.01, 0.02, 1e9]) series.observe(value)
  const { text } = await new Exposition(metrics, {}).render()
  expect(text).toContain('source_lag_time_seconds_bucket{le="0.015625"} 1\n')
  expect(text).toContain('source_lag_time_seconds_bucket{le="0.03125"} 2\n')
  expect(text).toContain('source_lag_time_seconds_bucket{le="8192"} 2\n')
  expect(text).toContain('source_lag_time_seconds_bucket{le="+Inf"} 3\n')
  expect(text).toContain('source_lag_time_seconds_count 3\n')
})

test.each([
  {
    detail: 'container',
    lines: 4,
    first: 'component_id="shop/a/in",component_kind="source",component_type="file",file="/1"',
  },
  { detail: 'component', lines: 3, first: 'component_id="shop/a/in",component_kind="source",component_type="file"' },
  { detail: 'pipeline', lines: 2, first: 'component_id="shop/a",component_kind="source"' },
] as const)(
  'with detail $detail there are $lines series, and the sum stays the same',
  async ({ detail, lines, first }) => {
    const metrics = new Metrics()
    for (const [id, file, count] of [
      ['shop/a/in', '/1', 1],
      ['shop/a/in', '/2', 2],
      ['shop/a/more', '/3', 4],
      ['shop/b/in', '/4', 8],
    ] as const) {
      const labels = { component_id: id, component_kind: 'source', component_type: 'file' }
      metrics.counter('component_received_events_total', { ...labels, file }).add(count)
      metrics.gauge('utilization', labels).set(count / 10)
      metrics.histogram('source_lag_time_seconds', labels).observe(count)
    }
    metrics.counter('started_total').add(1)
    const { text } = await new Exposition(metrics, {}, { detail }).render()
    const series = (name: string) =>
      text.split('\n').flatMap((line) => {
        const [, labels = '', value] = new RegExp(`^${name}\\{(.*)\\} (\\S+)$`).exec(line) ?? []
        return value === undefined
          ? []
          : [{ labels: labels.replace(/,?component_name="[^"]*"/, ''), value: Number(value) }]
      })
    const received = series('component_received_events_total')
    expect(received).toHaveLength(lines)
    expect(received.reduce((sum, { value }) => sum + value, 0)).toBe(15)
    expect(received[0]?.labels.split(',').sort().join(',')).toBe(first)
    const lag = series('source_lag_time_seconds_count').reduce((sum, { value }) => sum + value, 0)
    expect(lag).toBe(4)
    // Ratios are not added up.
    expect(Math.max(...series('utilization').map(({ value }) => value))).toBe(0.8)
    expect(text).toContain('started_total 1')
  },
)

test('the prefix applies only to the names of metrics', async () => {
  const metrics = new Metrics()
  counted(metrics).received(3, 90)
  metrics.histogram('source_lag_time_seconds').observe(1)
  const bare = await new Exposition(metrics, {}).render()
  const { text } = await new Exposition(metrics, {}, { prefix: 'penstock_' }).render()
  const expected = bare.text.replace(/^(# (?:HELP|TYPE) )?(?=[a-z])/gm, '$1penstock_')
  expect(text).toBe(expected)
  expect(text).toContain('penstock_source_lag_time_seconds_bucket{le="+Inf"} 1\n')
})

test('an idle series is removed, and continues when it changes again', () => {
  const metrics = new Metrics()
  const series = metrics.counter('component_sent_events_total', { component_id: 'a' })
  series.add(5)
  metrics.expire(0, 1000)
  metrics.expire(999, 1000)
  expect(metrics.sum('component_sent_events_total')).toBe(5)
  metrics.expire(1000, 1000)
  expect(metrics.snapshot()).toEqual([])
  series.add(1)
  expect(metrics.sum('component_sent_events_total')).toBe(6)
})

test('equal tags in different objects count in one series', () => {
  const metrics = new Metrics()
  const events = counted(metrics)
  const tags = { status: '200' }
  for (const each of [tags, { status: '200' }, tags]) {
    events.count('http_client_responses_total', 1, each)
    events.observe('http_client_response_rtt_seconds', 0.5, each)
  }
  const samplesOf = (name: string) => metrics.snapshot().find((snapshot) => snapshot.name === name)?.samples
  expect(samplesOf('http_client_responses_total')).toMatchObject([{ value: 3 }])
  expect(samplesOf('http_client_response_rtt_seconds')).toMatchObject([{ histogram: { count: 3, sum: 1.5 } }])
})

test('beyond the limit, further names share a series, and sums stay correct', () => {
  const metrics = new Metrics()
  const events = counted(metrics)
  for (let index = 0; index < 50_000; index++) {
    events.received(1, 10, { file: `/var/log/${index}`.padEnd(2000, 'x') })
    events.count('files_added_total', 1, { file: `/var/log/${index}` })
  }
  expect(metrics.bytes).toBeLessThan(34 << 20)
  expect(metrics.sum('component_received_events_total')).toBe(50_000)
  expect(metrics.sum('component_received_event_bytes_total')).toBe(500_000)
  expect(metrics.sum('files_added_total')).toBe(50_000)
  const others = metrics.sum('component_received_events_total', { file: 'other' })
  expect(others).toBeGreaterThan(30_000)
  expect(metrics.sum('metric_series_limited_total', { metric: 'component_received_events_total' })).toBe(others)
  // An existing series continues independently.
  const first = { file: '/var/log/0'.padEnd(2000, 'x') }
  events.received(1, 10, first)
  expect(metrics.sum('component_received_events_total', first)).toBe(2)
})

test('idle series make space for new ones, and their counts are added to `other`', () => {
  const time = { now: 0 }
  const metrics = new Metrics(() => time.now)
  const series = (file: string) => metrics.counter('files_added_total', { file })
  const busy = series('busy')
  for (let index = 1; index < 10_000; index++) series(`${index}`).add(1)
  const idle = series('1')
  series('too many').add(1)
  expect(metrics.sum('files_added_total', { file: 'other' })).toBe(1)
  time.now = 600_000
  busy.add(5)
  series('new').add(1)
  expect(metrics.sum('files_added_total', { file: 'new' })).toBe(1)
  expect(metrics.sum('files_added_total', { file: 'busy' })).toBe(5)
  expect(metrics.sum('files_added_total', { file: 'other' })).toBe(10_000)
  // The component continues from zero, because the earlier count is already in the sum.
  idle.add(1)
  expect(metrics.sum('files_added_total', { file: '1' })).toBe(1)
  expect(metrics.sum('files_added_total')).toBe(10_007)
})

test('a computed gauge is evaluated on each read', () => {
  const metrics = new Metrics()
  let value = 1
  metrics.computed('buffer_events', { component_id: 'a' }, () => value)
  value = 9
  expect(metrics.sum('buffer_events')).toBe(9)
  metrics.expire(0, 1)
  metrics.expire(10, 1)
  expect(metrics.sum('buffer_events')).toBe(9)
})

test('a name that is not in the table is an error', () => {
  expect(() => counted(new Metrics()).count('no_such_metric')).toThrow('no_such_metric')
})

test('a repeated message is written once, announced as suppressed, and summarized after the window', () => {
  vi.useFakeTimers()
  try {
    const written: unknown[] = []
    const logger = {
      isLevelEnabled: () => true,
      error: (fields: object, message: string) => written.push([message, fields]),
    } as unknown as Logger
    const metrics = new Metrics()
    const events = counted(metrics, logger)
    const report = { type: 'io_failed', stage: 'sending', message: 'Cannot write.' } as const
    for (let index = 0; index < 5; index++) events.error(report)
    expect(written.map((entry) => (entry as [string])[0])).toEqual([
      'Cannot write.',
      'The message is being suppressed to avoid flooding.',
    ])
    vi.advanceTimersByTime(10_000)
    expect(JSON.parse(JSON.stringify(written[2]))).toEqual([
      'The message has been suppressed.',
      { suppressed_message: 'Cannot write.', times: 4 },
    ])
    expect(metrics.sum('component_errors_total')).toBe(5)
    events.error(report)
    expect(written).toHaveLength(4)
    events.discarded(1, false, report.message)
    expect(JSON.parse(JSON.stringify(written[4]))).toEqual([
      'Events dropped.',
      { count: 1, intentional: false, reason: report.message },
    ])
  } finally {
    vi.useRealTimers()
  }
})

test('a source with an origin for every batch has no series without an origin', () => {
  const metrics = new Metrics()
  const source = new CountedEvents(metrics, silentLogger, new RepetitionLimit(10_000), { ...component, kind: 'source' })
  source.received(3, 90, { file: '/a' })
  const received = metrics.snapshot().find(({ name }) => name === 'component_received_events_total')
  expect(received?.samples).toMatchObject([{ labels: { file: '/a' }, value: 3 }])
  expect(received?.samples).toHaveLength(1)
  source.received(2, 10)
  expect(metrics.sum('component_received_events_total')).toBe(5)
})

test('every metric of the requirements is in the table', () => {
  expect(Object.keys(metricTable)).toEqual(
    expect.arrayContaining([
      'buffer_byte_size',
      'buffer_discarded_events_total',
      'component_received_events_count',
      'utilization',
      'source_lag_time_seconds',
      'events_out_total',
      'adaptive_concurrency_limit',
    ]),
  )
})

test('every metric name that a component uses is in the table', () => {
  const source = fileURLToPath(new URL('..', import.meta.url))
  const missing: string[] = []
  for (const file of globSync('**/*.ts', { cwd: source, exclude: (path) => path.endsWith('.test.ts') })) {
    const text = readFileSync(join(source, file), 'utf8')
    for (const [, name] of text.matchAll(/\.(?:count|gauge|observe)\(\s*'(\w+)'/g)) {
      if (!Object.hasOwn(metricTable, name as string)) missing.push(`${file}: ${name}`)
    }
  }
  expect(missing).toEqual([])
})
