// Options that configurations of other versions and agents have for the same components, and that are not options here: what to write
// instead. The messages about unknown options and the conversion read this one table, whose rows a test tries one by one.

import { isTable } from '../schema/walk.ts'
import type { Segments } from './syntax.ts'

type Table = Readonly<Record<string, unknown>>

export interface OtherOption {
  /** `global` for the settings of a whole agent. */
  readonly kind: 'global' | 'source' | 'transform' | 'sink'
  /** Types as they are here; all of the kind without it. */
  readonly types?: readonly string[]
  /** The path of the option, its names joined by dots; `*` stands for a name that users choose. */
  readonly path: string
  /** A value of it. */
  readonly example: unknown
  /** Which values this is about; all without it. */
  readonly when?: (value: unknown) => boolean
  /** The replacement: full sentences. */
  readonly instead: string
  /** The options that mean the same; none if it can be left out. */
  readonly rewrite?: (value: unknown) => Table | undefined
  /** The differences after the rewriting. */
  readonly differs?: string
}

const isOff = (value: unknown) => value === false
const isText = (value: unknown) => typeof value === 'string'
const nothing = () => ({})

const globals: readonly OtherOption[] = [
  { kind: 'global', path: 'api.playground', example: false, instead: 'Leave it out: there is no playground.' },
  {
    kind: 'global',
    path: 'api.graphql',
    example: true,
    instead: 'Leave it out: `top` and `tap` read plain HTTP, which `api.enabled` switches.',
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
    instead: 'Write `expire_metrics_secs`, which counts for all metrics.',
  },
  {
    kind: 'global',
    path: 'schema',
    example: { enabled: true },
    instead: 'Leave it out: programs are typed without it.',
  },
  {
    kind: 'global',
    path: 'provider',
    example: { type: 'http', url: 'http://config' },
    instead: 'Leave it out, and let the operator give agents their configuration.',
  },
  {
    kind: 'global',
    path: 'enterprise',
    example: { api_key: 'k' },
    instead: 'Leave it out, and read the metrics of the agent at /metrics.',
  },
  {
    kind: 'global',
    path: 'telemetry',
    example: { tags: { emit_source: true } },
    instead: 'Leave it out: the agent counts events of each component without further tags.',
  },
  {
    kind: 'global',
    path: 'metrics_storage_refresh_period_secs',
    example: 5,
    instead: 'Leave it out: metrics are current whenever they are read.',
  },
  {
    kind: 'global',
    path: 'buffer_utilization_ewma_alpha',
    example: 0.9,
    instead: 'Leave it out: agents report the present use of a buffer.',
  },
  {
    kind: 'global',
    path: 'buffer_utilization_ewma_half_life_seconds',
    example: 5,
    instead: 'Leave it out: agents report the present use of a buffer.',
  },
  {
    kind: 'global',
    path: 'enrichment_tables.*.flush_interval',
    example: 5,
    instead: 'Leave it out: what is written to the table is found at once.',
  },
  {
    kind: 'global',
    path: 'enrichment_tables.*.source_config',
    example: { export_interval: 5 },
    instead: 'Leave it out: a table is no source. Send the events that fill it to a sink, too.',
  },
  {
    kind: 'global',
    path: 'enrichment_tables.*.ttl_field',
    example: { path: 'ttl' },
    instead: 'Leave it out: `ttl` of the table holds for all entries.',
  },
  {
    kind: 'global',
    path: 'enrichment_tables.*.internal_metrics',
    example: { include_key_tag: true },
    instead: 'Leave it out: metrics carry no keys of a table.',
  },
]

const file = { kind: 'source', types: ['file'] } as const
const sources: readonly OtherOption[] = [
  {
    kind: 'source',
    path: 'log_namespace',
    example: false,
    when: isOff,
    instead: 'Leave it out: fields stand at the root of an event.',
    rewrite: nothing,
  },
  {
    kind: 'source',
    path: 'log_namespace',
    example: true,
    instead:
      'Leave it out, and change programs: fields stand at the root of an event, where the other layout has them below `%`.',
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
    instead: 'Write `strategy: checksum` beside the other options.',
    rewrite: (value) => (isTable(value) ? { fingerprint: { strategy: 'checksum', ...value } } : undefined),
  },
  {
    ...file,
    path: 'fingerprint.ignored_header_bytes',
    example: 0,
    when: (value) => value === 0,
    instead: 'Leave it out: no bytes are ignored.',
    rewrite: nothing,
  },
  {
    ...file,
    path: 'fingerprint.ignored_header_bytes',
    example: 64,
    instead: 'Leave it out, and give `fingerprint.lines` more lines than the header has.',
    rewrite: nothing,
    differs: 'the header is a part of the lines by which a file is known',
  },
  {
    ...file,
    path: 'fingerprint.bytes',
    example: 256,
    instead: 'Write `fingerprint.lines`, a number of first lines.',
    rewrite: nothing,
    differs: 'a file is known by its first line, and not by a number of bytes',
  },
  // Before the expression, whose rewriting has the time that counted without this option.
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
      'Write `multiline` with the expression as `start_pattern` and `condition_pattern`, `mode: halt_before`, and `timeout_ms`.',
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
    instead: 'Leave it out: the source looks for files every `glob_minimum_cooldown_ms`.',
    rewrite: nothing,
  },
  {
    ...file,
    path: 'reconcile_interval_secs',
    example: 300,
    instead: 'Leave it out: the source looks for files every `glob_minimum_cooldown_ms`.',
    rewrite: nothing,
  },
  {
    ...file,
    path: 'idle_timeout_secs',
    example: 60,
    instead: 'Leave it out, and give `ignore_older_secs`, so that old files are not opened.',
  },
  {
    ...file,
    path: 'ignore_not_found',
    example: true,
    instead: 'Leave it out, and name dangling links in `exclude`.',
  },
  {
    ...file,
    path: 'internal_metrics',
    example: { include_file_tag: true },
    instead: 'Leave it out: metrics of the agent do not name files.',
  },
]

const transforms: readonly OtherOption[] = [
  {
    kind: 'transform',
    types: ['tag_cardinality_limit'],
    path: 'mode',
    example: 'exact',
    when: (value) => value === 'exact',
    instead: 'Leave it out: values are always counted exactly.',
    rewrite: nothing,
  },
  {
    kind: 'transform',
    types: ['tag_cardinality_limit'],
    path: 'mode',
    example: 'probabilistic',
    instead: 'Leave it out: values are counted exactly, in at most 16 MiB of memory.',
    rewrite: nothing,
    differs: 'values are counted exactly, and not by a filter that takes some new values for known ones',
  },
  {
    kind: 'transform',
    types: ['tag_cardinality_limit'],
    path: 'cache_size_per_key',
    example: 5120,
    instead: 'Leave it out: values are counted exactly, in at most 16 MiB of memory.',
    rewrite: nothing,
  },
  {
    kind: 'transform',
    types: ['tag_cardinality_limit'],
    path: 'per_metric_limits',
    example: { m: { value_limit: 1 } },
    instead: 'Write a transform with a limit of its own for each of these metrics, behind a `filter` by `.name`.',
  },
]

/** A chain whose last stage is on disk and whose other stages only pass on what they cannot hold: none of its events is lost. */
const endsOnDisk = (value: unknown) => {
  const stages = Array.isArray(value) ? value.filter(isTable) : []
  return (
    /^disk/.test(String(stages.at(-1)?.['type'])) &&
    stages.slice(0, -1).every(({ when_full: full }) => full === 'overflow')
  )
}

/** The last stage of a chain of buffers. */
const lastStage = (value: unknown) => {
  const last = Array.isArray(value) ? value.filter(isTable).at(-1) : undefined
  if (last === undefined) return {}
  const { when_full: full, ...rest } = last
  return { buffer: full === undefined || full === 'overflow' ? rest : last }
}

const search = { kind: 'sink', types: ['search_engine'] } as const
const sinks: readonly OtherOption[] = [
  {
    kind: 'sink',
    path: 'buffer',
    example: [
      { type: 'memory', max_events: 500, when_full: 'overflow' },
      { type: 'disk', max_size: 300_000_000 },
    ],
    when: endsOnDisk,
    instead:
      'Write the buffer on disk alone, as a table: `buffer: {type: disk, max_size: BYTES}`. It holds the events that the others held, too, so give it their room.',
    rewrite: lastStage,
  },
  {
    kind: 'sink',
    path: 'buffer',
    example: [
      { type: 'memory', max_events: 500, when_full: 'overflow' },
      { type: 'memory', max_events: 1000 },
    ],
    when: Array.isArray,
    instead:
      'Write one buffer as a table: `buffer: {type: disk, max_size: BYTES}` takes what does not fit into memory, too.',
    // A chain overflows from stage to stage, so the last stage holds the remaining events.
    rewrite: lastStage,
    differs: 'a sink has one buffer: the last of the chain takes all events',
  },
  {
    kind: 'sink',
    path: 'buffer.when_full',
    example: 'overflow',
    when: (value) => value === 'overflow',
    instead: 'Write `block`, or `drop_newest`: there is no second buffer that events could overflow into.',
    rewrite: () => ({ buffer: { when_full: 'block' } }),
    differs: 'there is no second buffer that events could overflow into, so sources wait',
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
    path: 'healthcheck_uri',
    example: 'http://other/health',
    instead: 'Write `healthcheck: {uri: ADDRESS}`.',
    rewrite: (value) => (isText(value) ? { healthcheck: { uri: value } } : undefined),
  },
  {
    kind: 'sink',
    path: 'headers',
    example: { 'x-team': 'ops' },
    instead: 'Write `request: {headers: …}`.',
    rewrite: (value) => (isTable(value) ? { request: { headers: value } } : undefined),
  },
  {
    kind: 'sink',
    path: 'basic_auth',
    example: { user: 'u', password: 'p' },
    instead: 'Write `auth: {strategy: basic, user: …, password: …}`.',
    rewrite: (value) => (isTable(value) ? { auth: { strategy: 'basic', ...value } } : undefined),
  },
  {
    kind: 'sink',
    path: 'request.in_flight_limit',
    example: 5,
    instead: 'Write `request.concurrency`.',
    rewrite: (value) => ({ request: { concurrency: value } }),
  },
  {
    kind: 'sink',
    path: 'batch.max_size',
    example: 1_000_000,
    instead: 'Write `batch.max_bytes`, or `batch.max_events` where events were counted.',
  },
  {
    kind: 'sink',
    path: 'dangerously_allow_unconfined_template_resolution',
    example: true,
    instead: 'Leave it out: templates may hold fields of events without it.',
    rewrite: nothing,
  },
  {
    kind: 'sink',
    path: 'retry_strategy',
    example: { type: 'none' },
    instead:
      'Leave it out: the sink tries again where an answer says so (408, 429, most of 5xx); `request.retry_attempts` limits it.',
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
    instead: 'Make the text in a `remap` transform as `.message`, and write `codec: text`.',
    rewrite: () => ({ encoding: { codec: 'text' } }),
    differs: 'there is no such codec, so the sink sends `.message`',
  },
  {
    ...search,
    path: 'encoding',
    example: 'json',
    when: isText,
    instead: 'Leave `encoding.codec` out: documents are always JSON.',
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
  {
    ...search,
    path: 'encoding.codec',
    example: 'json',
    instead: 'Leave `encoding.codec` out: documents are always JSON.',
    rewrite: nothing,
  },
  {
    ...search,
    path: 'host',
    example: 'http://other:9200',
    instead: 'Write `endpoints` with the address in a list.',
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

export const otherOptions: readonly OtherOption[] = [...globals, ...sources, ...transforms, ...sinks]

/** The row about an option that is not known, or not in this form; undefined if there is none. */
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
  // A setting for one type overrides a setting for all types.
  const ordered = rows.toSorted((one, other) => Number(one.types === undefined) - Number(other.types === undefined))
  return ordered.find(({ when }) => when?.(value) ?? true)
}

/** The value at a path. */
export function valueAt(table: unknown, segments: Segments): unknown {
  let value = table
  for (const segment of segments) value = isTable(value) && Object.hasOwn(value, segment) ? value[segment] : undefined
  return value
}
