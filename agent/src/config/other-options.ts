// Options of other versions and agents that do not exist here, each with its replacement. Messages about unknown options and the
// conversion both use this table, and a test tries every row.

import { isTable } from '../schema/walk.ts'
import { oldSinkOptions } from './old-sink-options.ts'
import type { OtherOption } from './other-option.ts'
import type { Segments } from './syntax.ts'

export type { OtherOption } from './other-option.ts'

const isOff = (value: unknown) => value === false
const isText = (value: unknown) => typeof value === 'string'
const nothing = () => ({})
const hasNoFileTag = (value: unknown) => isTable(value) && value['include_file_tag'] !== true

const globals: readonly OtherOption[] = [
  {
    kind: 'global',
    path: 'api.playground',
    example: false,
    instead: 'Remove this option: Penstock has no playground.',
  },
  {
    kind: 'global',
    path: 'api.graphql',
    example: true,
    instead: 'Remove this option: `top` and `tap` use plain HTTP, which `api.enabled` turns on.',
  },
  {
    kind: 'global',
    path: 'expire_metrics',
    example: { secs: 60, nanos: 0 },
    instead: 'Write `expire_metrics_secs` with the number of seconds.',
  },
  {
    kind: 'global',
    path: 'expire_metrics_per_metric_set',
    example: [{ expire_secs: 60 }],
    instead: 'Write `expire_metrics_secs`, which applies to all metrics.',
  },
  {
    kind: 'global',
    path: 'schema',
    example: { enabled: true },
    instead: 'Remove this option: the compiler always checks the types in programs.',
  },
  {
    kind: 'global',
    path: 'provider',
    example: { type: 'http', url: 'http://config' },
    instead: 'Remove this option, and use the operator to configure agents.',
  },
  {
    kind: 'global',
    path: 'enterprise',
    example: { api_key: 'k' },
    instead: 'Remove this option, and read the metrics of the agent at `/metrics`.',
  },
  {
    kind: 'global',
    path: 'telemetry',
    example: { tags: { emit_source: true } },
    instead: 'Remove this option: the agent counts the events of each component without additional tags.',
  },
  {
    kind: 'global',
    path: 'metrics_storage_refresh_period_secs',
    example: 5,
    instead: 'Remove this option: metrics are always current.',
  },
  {
    kind: 'global',
    path: 'buffer_utilization_ewma_alpha',
    example: 0.9,
    instead: 'Remove this option: agents report the current utilization of a buffer.',
  },
  {
    kind: 'global',
    path: 'buffer_utilization_ewma_half_life_seconds',
    example: 5,
    instead: 'Remove this option: agents report the current utilization of a buffer.',
  },
  {
    kind: 'global',
    path: 'enrichment_tables.*.flush_interval',
    example: 5,
    instead: 'Remove this option: programs see a new entry of the table immediately.',
  },
  {
    kind: 'global',
    path: 'enrichment_tables.*.source_config',
    example: { export_interval: 5 },
    instead: 'Remove this option: a table cannot be a source. Send the events that fill the table to a sink as well.',
  },
  {
    kind: 'global',
    path: 'enrichment_tables.*.ttl_field',
    example: { path: 'ttl' },
    instead: 'Remove this option: `ttl` of the table applies to all entries.',
  },
  {
    kind: 'global',
    path: 'enrichment_tables.*.internal_metrics',
    example: { include_key_tag: true },
    instead: 'Remove this option: metrics have no tags for the keys of a table.',
  },
]

const file = { kind: 'source', types: ['file'] } as const
const sources: readonly OtherOption[] = [
  {
    kind: 'source',
    path: 'log_namespace',
    example: false,
    when: isOff,
    instead: 'Remove this option: fields are always at the root of an event.',
    rewrite: nothing,
  },
  {
    kind: 'source',
    path: 'log_namespace',
    example: true,
    instead: 'Remove this option, and change your programs: fields are at the root of an event, not below `%`.',
  },
  {
    ...file,
    path: 'start_at_beginning',
    example: true,
    instead: 'Write `read_from: beginning`, or `read_from: end` for `false`.',
    rewrite: (value) => (typeof value === 'boolean' ? { read_from: value ? 'beginning' : 'end' } : undefined),
  },
  {
    ...file,
    path: 'fingerprinting',
    example: { strategy: 'device_and_inode' },
    instead: 'Write `fingerprint` with the same options.',
    rewrite: (value) => (isTable(value) ? { fingerprint: value } : undefined),
  },
  {
    ...file,
    path: 'fingerprint',
    example: { lines: 2 },
    when: (value) => isTable(value) && !Object.hasOwn(value, 'strategy'),
    instead: 'Add `strategy: checksum` to the other options.',
    rewrite: (value) => (isTable(value) ? { fingerprint: { strategy: 'checksum', ...value } } : undefined),
  },
  {
    ...file,
    path: 'fingerprint.ignored_header_bytes',
    example: 0,
    when: (value) => value === 0,
    instead: 'Remove this option: the source ignores no bytes.',
    rewrite: nothing,
  },
  {
    ...file,
    path: 'fingerprint.ignored_header_bytes',
    example: 64,
    instead: 'Remove this option, and set `fingerprint.lines` to more lines than the header has.',
    rewrite: nothing,
    differs: 'the header is one of the lines that identify a file',
  },
  ...['bytes', 'fingerprint_bytes'].map((name) => ({
    ...file,
    path: `fingerprint.${name}`,
    example: 256,
    instead: 'Write `fingerprint.lines`, the number of lines at the beginning of a file.',
    rewrite: nothing,
    differs: 'the first line identifies a file, not a number of bytes',
  })),
  {
    kind: 'source',
    types: ['orchestrator_logs'],
    path: 'rotate_wait_ms',
    example: 5000,
    instead: 'Write `rotate_wait_secs` with the number of seconds.',
    rewrite: (value) => (typeof value === 'number' ? { rotate_wait_secs: Math.ceil(value / 1000) } : undefined),
  },
  {
    kind: 'source',
    types: ['demo_logs'],
    path: 'batch_interval',
    example: 1,
    instead: 'Write `interval`.',
    rewrite: (value) => ({ interval: value }),
  },
  // Must come before `message_start_indicator`, whose rewrite sets the default timeout.
  {
    ...file,
    path: 'multi_line_timeout',
    example: 500,
    instead: 'Write `multiline.timeout_ms`.',
    rewrite: (value) => (typeof value === 'number' ? { multiline: { timeout_ms: value } } : undefined),
  },
  {
    ...file,
    path: 'message_start_indicator',
    example: '^\\d',
    instead:
      'Write `multiline` with the expression as both `start_pattern` and `condition_pattern`, `mode: halt_before`, and `timeout_ms`.',
    rewrite: (value) =>
      isText(value)
        ? {
            multiline: {
              start_pattern: value,
              condition_pattern: value,
              mode: 'halt_before',
              timeout_ms: 1000,
            },
          }
        : undefined,
  },
  {
    ...file,
    path: 'file_discovery_mode',
    example: 'notify',
    instead: 'Remove this option: the source searches for files every `glob_minimum_cooldown_ms`.',
    rewrite: nothing,
  },
  {
    ...file,
    path: 'reconcile_interval_secs',
    example: 300,
    instead: 'Remove this option: the source searches for files every `glob_minimum_cooldown_ms`.',
    rewrite: nothing,
  },
  {
    ...file,
    path: 'idle_timeout_secs',
    example: 60,
    instead: 'Remove this option, and set `ignore_older_secs`, so that the source does not open old files.',
  },
  {
    ...file,
    path: 'ignore_not_found',
    example: true,
    instead: 'Remove this option, and list dangling links in `exclude`.',
  },
  {
    ...file,
    path: 'internal_metrics',
    example: { include_file_tag: false },
    when: hasNoFileTag,
    instead: 'Remove this option: metrics of the agent have no tags for files.',
    rewrite: nothing,
  },
  {
    ...file,
    path: 'internal_metrics',
    example: { include_file_tag: true },
    instead: 'Remove this option: metrics of the agent have no tags for files.',
  },
]

const transforms: readonly OtherOption[] = [
  {
    kind: 'transform',
    types: ['tag_cardinality_limit'],
    path: 'mode',
    example: 'exact',
    when: (value) => value === 'exact',
    instead: 'Remove this option: the transform always counts values exactly.',
    rewrite: nothing,
  },
  {
    kind: 'transform',
    types: ['tag_cardinality_limit'],
    path: 'mode',
    example: 'probabilistic',
    instead:
      'Remove this option: the transform counts values exactly, in at most 16 MiB of memory, so it mistakes no new value for a known one.',
    rewrite: nothing,
  },
  {
    kind: 'transform',
    types: ['tag_cardinality_limit'],
    path: 'cache_size_per_key',
    example: 5120,
    instead: 'Remove this option: the transform counts values exactly, in at most 16 MiB of memory.',
    rewrite: nothing,
  },
  {
    kind: 'transform',
    types: ['tag_cardinality_limit'],
    path: 'per_metric_limits',
    example: { m: { value_limit: 1 } },
    instead: 'Write a separate transform with its own limit for each of these metrics, after a `filter` on `.name`.',
  },
]

/** The stages of a chain of buffers. */
const stagesOf = (value: unknown) => (Array.isArray(value) ? value.filter(isTable) : [])
const isOnDisk = ({ type }: Readonly<Record<string, unknown>>) => /^disk/.test(String(type))

/** Whether all stages but the last overflow into the next one, so that the chain loses no event before its last stage is full. */
const overflows = (value: unknown) =>
  stagesOf(value)
    .slice(0, -1)
    .every(({ when_full: full }) => full === 'overflow')

const hasDisk = (value: unknown) => overflows(value) && stagesOf(value).some(isOnDisk)

/** The options that limit the stages of a chain in memory. */
const limitsOf = (value: unknown) =>
  stagesOf(value).map(({ max_events: events, max_size: bytes }) =>
    bytes === undefined ? { max_events: events ?? defaultEvents } : { max_size: bytes },
  )

/** Whether all stages are in memory and have the same kind of limit. */
const isInMemory = (value: unknown) => {
  const names = new Set(limitsOf(value).flatMap((limit) => Object.keys(limit)))
  return overflows(value) && names.size === 1 && !stagesOf(value).some(isOnDisk)
}

/** The number of events in a memory buffer without a limit. */
const defaultEvents = 500

const sum = (values: readonly unknown[]) => values.reduce((total: number, each) => total + Number(each), 0)

/** A chain that overflows ends as its last stage does when it is full. */
function withEnd(value: unknown, buffer: Record<string, unknown>) {
  const full = stagesOf(value).at(-1)?.['when_full']
  return { buffer: full === undefined || full === 'overflow' ? buffer : { ...buffer, when_full: full } }
}

/** One buffer on disk with the size of all stages on disk. */
const diskBuffer = (value: unknown) => {
  const disks = stagesOf(value).filter(isOnDisk)
  const { when_full: _, ...first } = disks[0] ?? {}
  return withEnd(value, { ...first, max_size: sum(disks.map(({ max_size: size }) => size)) })
}

/** One buffer in memory with the size of all stages. */
const memoryBuffer = (value: unknown) => {
  const limits = limitsOf(value)
  const [name = 'max_events'] = Object.keys(limits[0] ?? {})
  return withEnd(value, { type: 'memory', [name]: sum(limits.flatMap((limit) => Object.values(limit))) })
}

/** The last stage of a chain of buffers. */
const lastStage = (value: unknown) => {
  const { when_full: _, ...last } = stagesOf(value).at(-1) ?? {}
  return withEnd(value, last)
}

const fileSink = { kind: 'sink', types: ['file'], path: 'internal_metrics' } as const
const search = { kind: 'sink', types: ['search_engine'] } as const
/** Sinks whose events are always JSON. */
const ofJson = {
  kind: 'sink',
  types: [
    ...['cloud_monitor_logs', 'logsvc_a', 'logsvc_a_old', 'monitor_a_logs', 'monitor_c_logs', 'observability_d'],
    'tsdb_metrics',
  ],
} as const
const sinks: readonly OtherOption[] = [
  {
    ...fileSink,
    example: { include_file_tag: false },
    when: hasNoFileTag,
    instead: 'Remove this option: metrics of the agent have no tags for files.',
    rewrite: nothing,
  },
  {
    ...fileSink,
    example: { include_file_tag: true },
    instead: 'Remove this option: metrics of the agent have no tags for files.',
  },
  {
    kind: 'sink',
    path: 'buffer',
    example: [
      { type: 'memory', max_events: 500, when_full: 'overflow' },
      { type: 'disk', max_size: 300_000_000 },
    ],
    when: hasDisk,
    instead:
      'Write only the disk buffer, as a table: `buffer: {type: disk, max_size: BYTES}`. It also stores the events of the stages in memory, so make it large enough.',
    rewrite: diskBuffer,
  },
  {
    kind: 'sink',
    path: 'buffer',
    example: [
      { type: 'memory', max_events: 300, when_full: 'overflow' },
      { type: 'memory', when_full: 'drop_newest' },
    ],
    when: isInMemory,
    instead: 'Write one buffer, as a table, with the sum of the limits: `buffer: {type: memory, max_events: NUMBER}`.',
    rewrite: memoryBuffer,
  },
  {
    kind: 'sink',
    path: 'buffer',
    example: [
      { type: 'memory', max_events: 500, when_full: 'block' },
      { type: 'memory', max_events: 1000 },
    ],
    when: Array.isArray,
    instead:
      'Write one buffer, as a table: `buffer: {type: disk, max_size: BYTES}` can also store events that do not fit into memory.',
    rewrite: lastStage,
    differs: 'a sink has one buffer: the last stage of the chain stores all events',
  },
  {
    kind: 'sink',
    path: 'buffer.when_full',
    example: 'overflow',
    when: (value) => value === 'overflow',
    instead: 'Write `block` or `drop_newest`: a sink has no second buffer for events to overflow into.',
    rewrite: () => ({ buffer: { when_full: 'block' } }),
    differs: 'a sink has no second buffer for events to overflow into, so sources wait',
  },
  {
    kind: 'sink',
    path: 'buffer.type',
    example: 'disk_v2',
    when: (value) => isText(value) && /^disk_v[12]$/.test(value),
    instead: 'Write `type: disk`.',
    rewrite: () => ({ buffer: { type: 'disk' } }),
  },
  {
    kind: 'sink',
    path: 'dangerously_allow_unconfined_template_resolution',
    example: true,
    instead: 'Remove this option: templates may always contain event fields.',
    rewrite: nothing,
  },
  {
    kind: 'sink',
    path: 'retry_strategy',
    example: { type: 'default' },
    when: (value) => isTable(value) && value['type'] === 'default',
    instead: 'Remove this option: the sink retries a request after status 408, 429 and most 5xx.',
    rewrite: nothing,
  },
  {
    kind: 'sink',
    path: 'retry_strategy',
    example: { type: 'none' },
    instead:
      'Remove this option: the sink retries a request after status 408, 429 and most 5xx; `request.retry_attempts` limits the retries.',
  },
  {
    kind: 'sink',
    path: 'encoding.codec',
    example: 'ndjson',
    when: (value) => value === 'ndjson',
    instead: 'Write `encoding: {codec: json}` and `framing: {method: newline_delimited}`.',
    rewrite: () => ({ encoding: { codec: 'json' }, framing: { method: 'newline_delimited' } }),
  },
  {
    kind: 'sink',
    path: 'encoding',
    example: 'ndjson',
    when: (value) => value === 'ndjson',
    instead: 'Write `encoding: {codec: json}` and `framing: {method: newline_delimited}`.',
    rewrite: () => ({ encoding: { codec: 'json' }, framing: { method: 'newline_delimited' } }),
  },
  {
    kind: 'sink',
    path: 'encoding.codec',
    example: 'cef',
    when: (value) => isText(value) && ['cef', 'otlp', 'protobuf', 'syslog'].includes(value),
    instead: 'Build the text in a `remap` transform, assign it to `.message`, and write `codec: text`.',
    rewrite: () => ({ encoding: { codec: 'text' } }),
    differs: 'this codec does not exist here, so the sink sends `.message`',
  },
  {
    ...search,
    path: 'encoding',
    example: 'json',
    when: isText,
    instead: 'Remove `encoding.codec`: documents are always JSON.',
    rewrite: nothing,
  },
  {
    kind: 'sink',
    path: 'encoding',
    example: 'json',
    when: isText,
    instead: 'Write `encoding: {codec: …}`.',
    rewrite: (value) => ({ encoding: { codec: value } }),
  },
  ...['encoding', 'encoding.codec'].map(
    (path): OtherOption => ({
      ...ofJson,
      path,
      example: 'json',
      when: (value) => value === 'json',
      instead: 'Remove `encoding.codec`: events are always JSON.',
      rewrite: nothing,
    }),
  ),
  {
    ...search,
    path: 'encoding.codec',
    example: 'json',
    instead: 'Remove `encoding.codec`: documents are always JSON.',
    rewrite: nothing,
  },
  {
    ...search,
    path: 'host',
    example: 'http://other:9200',
    instead: 'Write `endpoints`, a list with the address.',
    rewrite: (value) => (isText(value) ? { endpoints: [value] } : undefined),
  },
  {
    ...search,
    path: 'index',
    example: 'logs',
    instead: 'Write `bulk.index`.',
    rewrite: (value) => ({ bulk: { index: value } }),
  },
  {
    ...search,
    path: 'bulk_action',
    example: 'create',
    instead: 'Write `bulk.action`.',
    rewrite: (value) => ({ bulk: { action: value } }),
  },
  {
    ...search,
    path: 'provider',
    example: 'aws',
    when: (value) => value === 'aws',
    instead: 'Write `auth: {strategy: aws}`.',
    rewrite: () => ({ auth: { strategy: 'aws' } }),
  },
]

export const otherOptions: readonly OtherOption[] = [...globals, ...sources, ...transforms, ...sinks, ...oldSinkOptions]

/** The row for an option that is unknown, or has an unsupported form; undefined if there is none. */
export function otherOption(
  kind: OtherOption['kind'],
  type: string | undefined,
  segments: Segments,
  value: unknown,
): OtherOption | undefined {
  const isAt = (path: string) => {
    const names = path.split('.')
    return names.length === segments.length && names.every((name, index) => name === '*' || name === segments[index])
  }
  const rows = otherOptions.filter(
    (row) => row.kind === kind && isAt(row.path) && (row.types === undefined || row.types.includes(type ?? '')),
  )
  // A row for specific types takes precedence over a row for all types.
  const ordered = rows.toSorted((one, other) => Number(one.types === undefined) - Number(other.types === undefined))
  return ordered.find(({ when }) => when?.(value) ?? true)
}

/** The value at a path. */
export function valueAt(table: unknown, segments: Segments): unknown {
  let value = table
  for (const segment of segments) value = isTable(value) && Object.hasOwn(value, segment) ? value[segment] : undefined
  return value
}
