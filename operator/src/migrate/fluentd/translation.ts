// Converts Fluentd outputs that also exist in Fluent Bit: renames the parameters, and lets the mapping of Fluent Bit build the sink.

import { fieldLiteral, minDiskBuffer, textLiteral } from '@penstock/agent/config'
import type { Gap, Step } from '../draft.ts'
import { secret } from '../fluent-bit/connection.ts'
import { outputs as bitOutputs } from '../fluent-bit/outputs.ts'
import type { Context, SinkPart } from '../fluent-bit/plugin.ts'
import { type Entry, lastValue, type Section } from '../fluent-bit/sections.ts'
import { eventTime, unixSeconds } from '../unix-time.ts'
import { isOn, objectIn, type Plugged } from './element.ts'
import { always, common } from './inputs.ts'
import { recordPath } from './ruby.ts'
import { rubyTimeFormat } from './ruby-time.ts'
import { type Tag, tagProgram } from './tags.ts'

export interface OutputPlugin {
  readonly name: string
  readonly becomes: string
  readonly options: Readonly<Record<string, string>>
  readonly itself?: Readonly<
    Record<
      string,
      string | { readonly how: string; readonly unless: RegExp; readonly reason: string; readonly nearest: string }
    >
  >
  readonly build: (section: Plugged, context: Context, gaps: Gap[], tag: Tag | undefined) => SinkPart
}

/** Options shared by outputs. Fluentd collects events into requests as chunks. */
export const buffered: Readonly<Record<string, string>> = {
  'buffer.flush_interval': '`batch.timeout_secs`',
  'buffer.chunk_limit_size': '`batch.max_bytes`',
  'buffer.buffer_chunk_limit': '`batch.max_bytes`',
  'buffer.retry_max_times': '`request.retry_attempts`',
  'buffer.retry_limit': '`request.retry_attempts`',
  retry_limit: '`request.retry_attempts`',
  'buffer.@type': '`buffer`',
  'buffer.type': '`buffer`',
  'buffer.buffer_type': '`buffer`',
  buffer_type: '`buffer`',
  'buffer.total_limit_size': '`buffer.max_size` of a disk buffer',
  flush_interval: '`batch.timeout_secs`',
  buffer_chunk_limit: '`batch.max_bytes`',
  'inject.time_key': 'a field for the time',
  'inject.time_format': 'the format of the time',
  'inject.time_type': 'the format of the time',
  'inject.tag_key': 'a field for the tag',
  'inject.hostname_key': 'a field',
  'inject.hostname': 'the value of that field',
}

const isInjection = (name: string) => name.startsWith('inject.')
const injection = Object.fromEntries(Object.entries(buffered).filter(([name]) => isInjection(name)))
const atOnce = Object.fromEntries(
  Object.keys(buffered)
    .filter((name) => !isInjection(name))
    .map((name) => [name, 'the sink writes each event at once'] as const),
)

/** An input that reads files waits in Fluentd, too, unless the output discards chunks. */
const overflow = 'the source waits while the buffer is full'

export const itself: OutputPlugin['itself'] = {
  ...always,
  'inject.localtime': 'the zone of the time is UTC, as in containers',
  'inject.utc': 'the zone of the time is UTC',
  'buffer.overflow_action': overflow,
  buffer_queue_full_action: overflow,
  ...Object.fromEntries(
    [
      ...[
        'buffer',
        'buffer.path',
        'buffer_path',
        'buffer.flush_mode',
        'buffer.flush_thread_count',
        'num_threads',
        'buffer.queue_limit_length',
      ],
      ...['buffer.queued_chunks_limit_size', 'buffer_queue_limit', 'buffer.retry_forever', 'buffer.retry_type'],
      ...[
        'buffer.retry_wait',
        'buffer.retry_max_interval',
        'buffer.retry_timeout',
        'buffer.retry_exponential_backoff_base',
        'disable_retry_limit',
      ],
      ...[
        'buffer.retry_randomize',
        'retry_wait',
        'max_retry_wait',
        'retry_forever',
        'buffer.timekey',
        'buffer.timekey_wait',
      ],
      ...[
        'buffer.timekey_use_utc',
        'buffer.flush_at_shutdown',
        'flush_at_shutdown',
        'buffer.chunk_limit_records',
        'buffer.flush_thread_interval',
      ],
      ...[
        'buffer.flush_thread_burst_interval',
        'buffer.delayed_commit_timeout',
        'slow_flush_log_threshold',
        'buffer.compress',
        'buffer.chunk_full_threshold',
      ],
      ...[
        'buffer.disable_chunk_backup',
        'time_slice_format',
        'time_slice_wait',
        'buffer.timekey_zone',
        'buffer.flush_interval_burst',
        'buffer.buffer_queue_limit',
        'buffer.buffer_path',
        'buffer.buffer_queue_full_action',
        'buffer.num_threads',
        'buffer.max_retry_wait',
        'buffer.disable_retry_limit',
        'buffer.retry_secondary_threshold',
        'buffer_queue_limit_length',
        'try_flush_interval',
      ],
    ].map((name) => [name, '`batch`, `request` and `buffer` configure batching, retries and buffering'] as const),
  ),
}

/** Names of Fluent Bit's options by Fluentd's options. */
type Names = Readonly<Record<string, string>>

export const login: Names = { user: 'http_user', username: 'http_user', password: 'http_passwd' }
export const security: Names = {
  ca_file: 'tls.ca_file',
  ca_cert: 'tls.ca_file',
  client_cert: 'tls.crt_file',
  cert: 'tls.crt_file',
  client_cert_path: 'tls.crt_file',
  tls_ca_cert_path: 'tls.ca_file',
  tls_client_cert_path: 'tls.crt_file',
  client_key: 'tls.key_file',
  client_key_pass: 'tls.key_passwd',
  client_key_password: 'tls.key_passwd',
  private_key_passphrase: 'tls.key_passwd',
  tls_private_key_passphrase: 'tls.key_passwd',
  key: 'tls.key_file',
  private_key_path: 'tls.key_file',
  tls_private_key_path: 'tls.key_file',
}

/** Additional options, steps and configuration of one plugin. */
export interface Parts {
  readonly options?: Readonly<Record<string, string | undefined>>
  readonly several?: readonly (readonly [string, string])[]
  readonly steps?: readonly Step[]
  readonly config?: Readonly<Record<string, unknown>>
}

interface Translation {
  readonly name: string
  /** Fixed options of Fluent Bit's output. */
  readonly as: string
  readonly becomes: string
  readonly names: Names
  /** Options that `also` reads, with their counterparts. */
  readonly options?: Readonly<Record<string, string>>
  readonly itself?: OutputPlugin['itself']
  /** Further options, and steps that run before those of the output. */
  readonly also?: (section: Plugged, context: Context, tag: Tag | undefined) => Parts
}

export function translated({
  name,
  as,
  becomes,
  names,
  options = {},
  itself: more = {},
  also,
}: Translation): OutputPlugin {
  // Retries are limited unless `retry_forever` is set.
  const retries = ['buffer.retry_max_times', 'buffer.retry_limit', 'retry_limit']
  const forever = ['buffer.retry_forever', 'retry_forever', 'disable_retry_limit', 'buffer.disable_retry_limit']
  return {
    name,
    becomes,
    options: {
      ...common,
      ...(unbatched.has(as) ? injection : buffered),
      ...Object.fromEntries(Object.entries(names).map(([from, to]) => [from, `as \`${to}\` of Fluent Bit`])),
      ...options,
    },
    itself: { ...(unbatched.has(as) ? atOnce : {}), ...itself, ...more },
    build: (section, context, _gaps, tag) => {
      const { options: given = {}, several = [], steps = [], config = {} } = also?.(section, context, tag) ?? {}
      const place = { file: section.file, line: section.line }
      const entries: Entry[] = section.entries.flatMap((entry) => {
        const to = Object.hasOwn(names, entry.key) ? names[entry.key] : undefined
        return to === undefined ? [] : [{ ...entry, key: to }]
      })
      const isForever = forever.some((key) => isOn(lastValue(section, key), false))
      const limit = retries.map((key) => lastValue(section, key)).find((value) => value !== undefined)
      const overflows = ['buffer.overflow_action', 'buffer_queue_full_action', 'buffer.buffer_queue_full_action']
      if (overflows.some((key) => lastValue(section, key) === 'drop_oldest_chunk')) {
        const reason =
          'Fluentd discards its oldest events when its buffer is full; the source waits, so lines wait in their files'
        const nearest = 'To discard events, set `buffer: {type: memory, when_full: drop_newest}` of the sink.'
        context.replaced(section, `${name}: overflow_action`, reason, nearest)
      }
      // Events that Fluentd would pass to a secondary output wait for the sink instead.
      const hasSecondary = section.element.children.some((child) => child.name === 'secondary')
      if (limit !== undefined && !isForever && !hasSecondary)
        entries.push({ ...place, key: 'retry_limit', value: limit })
      for (const [key, value] of Object.entries(given)) if (value !== undefined) entries.push({ ...place, key, value })
      for (const [key, value] of several) entries.push({ ...place, key, value })
      const plugin = bitOutputs.find((each) => each.name === as)
      if (plugin === undefined) throw new TypeError(`There is no output ${as}.`)
      const built = plugin.build({ kind: 'output', ...place, entries } satisfies Section, context)
      return {
        component: {
          ...built.component,
          config: {
            ...built.component.config,
            ...(unbatched.has(as) ? {} : batchOf(section, as)),
            ...waiting(section, context),
            ...config,
            ...requestOf(built.component.config, config),
            ...(lastValue(section, 'inject.time_key') === 'timestamp' && plain.has(as)
              ? { encoding: { codec: 'json' } }
              : {}),
          },
        },
        steps: [...injected(section, context, tag, plain.has(as)), ...steps, ...built.steps],
      }
    },
  }
}

type Config = Readonly<Record<string, unknown>>

/** The options of requests of both mappings. */
function requestOf(one: Config = {}, other: Config): Config {
  const [first, second] = [one['request'], other['request']] as (Readonly<Record<string, object>> | undefined)[]
  if (first === undefined || second === undefined) return {}
  const headers = { ...first['headers'], ...second['headers'] }
  return { request: { ...first, ...second, ...(Object.keys(headers).length === 0 ? {} : { headers }) } }
}

/** Outputs whose sinks write the fields of an event as they are. */
const plain: ReadonlySet<string> = new Set(['http', 'stdout', 'file'])

/** Outputs whose sinks write each event immediately. */
const unbatched: ReadonlySet<string> = new Set(['file', 'stdout', 'null'])

/** The largest batch in bytes that a sink accepts, by output of Fluent Bit; 10 MB for other outputs. */
const maxBatch: Readonly<Record<string, number>> = { datadog: 4_250_000, nrlogs: 1_000_000 }

/** A disk buffer with the total size limit of chunks. */
function waiting(section: Section, context: Context): Record<string, unknown> {
  const read = (key: string) => lastValue(section, `buffer.${key}`)
  const type = read('@type') ?? read('type') ?? read('buffer_type') ?? lastValue(section, 'buffer_type')
  if (type === undefined || !/^file/.test(type)) return {}
  const size = bytesOf(read('total_limit_size'))
  if (size === undefined) {
    const reason =
      'in Fluentd, up to 64 GiB of chunks wait on disk; the sink keeps up to 1 GiB, and further lines wait in their files'
    context.replaced(
      section,
      `${lastValue(section, '@type') ?? lastValue(section, 'type')}: buffer.@type`,
      reason,
      'Set `buffer.max_size` of the sink.',
    )
    return { buffer: { type: 'disk', max_size: 1 << 30 } }
  }
  return { buffer: { type: 'disk', max_size: Math.max(size, minDiskBuffer) } }
}

export function bytesOf(text: string | undefined): number | undefined {
  const found = /^(\d+)\s*([kmgt])?b?$/i.exec(text ?? '')
  if (found === null) return undefined
  const unit = { k: 1024, m: 1 << 20, g: 1 << 30, t: 2 ** 40 }[(found[2] ?? '').toLowerCase() as 'k'] ?? 1
  return Number(found[1]) * unit
}

export function batchOf(section: Section, as: string): { readonly batch?: Readonly<Record<string, unknown>> } {
  const interval = /^(\d+(?:\.\d+)?)(s|m|h)?$/.exec(
    lastValue(section, 'buffer.flush_interval') ?? lastValue(section, 'flush_interval') ?? '',
  )
  const seconds = interval === null ? 0 : Number(interval[1]) * ({ s: 1, m: 60, h: 3600 }[interval[2] ?? 's'] ?? 1)
  const sizes = ['buffer.chunk_limit_size', 'buffer.buffer_chunk_limit', 'buffer_chunk_limit']
  const bytes = bytesOf(sizes.map((key) => lastValue(section, key)).find((text) => text !== undefined)) ?? 0
  const batch = {
    ...(seconds > 0 ? { timeout_secs: Math.min(seconds, 300) } : {}),
    ...(bytes > 0 ? { max_bytes: Math.min(bytes, maxBatch[as] ?? 10_000_000) } : {}),
  }
  return Object.keys(batch).length === 0 ? {} : { batch }
}

/** Units of times that are whole numbers. */
const timeUnits: Readonly<Record<string, string>> = {
  unixtime: 'seconds',
  unixtime_millis: 'milliseconds',
  unixtime_micros: 'microseconds',
  unixtime_nanos: 'nanoseconds',
}

/** Adds the fields of `<inject>`. */
function injected(section: Section, context: Context, tag: Tag | undefined, isPlain: boolean): Step[] {
  const lines: string[] = []
  const timeKey = lastValue(section, 'inject.time_key')
  if (timeKey === 'timestamp' && !isPlain) {
    const reason = 'the sink needs `timestamp`, which is the time of the event'
    context.gap(section, 'inject: time_key timestamp', reason, 'Choose another name.')
  } else if (timeKey !== undefined) {
    const type = lastValue(section, 'inject.time_type') ?? 'float'
    const format = lastValue(section, 'inject.time_format')
    const time = 'timestamp(.timestamp) ?? now()'
    const value =
      format !== undefined || type === 'string'
        ? `format_timestamp(${time}, ${textLiteral(rubyTimeFormat(format ?? '%Y-%m-%dT%H:%M:%S%:z'))}) ?? null`
        : Object.hasOwn(timeUnits, type)
          ? `to_unix_timestamp(${time}, unit: ${textLiteral(timeUnits[type] ?? '')})`
          : unixSeconds(time)
    lines.push(`${fieldLiteral([timeKey])} = ${value}`)
  }
  const tagKey = lastValue(section, 'inject.tag_key')
  if (tagKey !== undefined) lines.push(...tagLines(tagKey, section, context, tag))
  const hostKey = lastValue(section, 'inject.hostname_key')
  if (hostKey !== undefined) {
    const named = lastValue(section, 'inject.hostname')
    lines.push(`${fieldLiteral([hostKey])} = ${named === undefined ? 'get_hostname() ?? null' : textLiteral(named)}`)
  }
  return lines.length === 0 ? [] : [{ type: 'remap', text: lines.join('\n') }]
}

export function tagLines(key: string, section: Section, context: Context, tag: Tag | undefined): string[] {
  if (tag === undefined) {
    context.gap(
      section,
      `tag as ${key}`,
      'the sink receives events from several tags, and events have no tags',
      'Set the field in a remap transform of each source.',
    )
    return []
  }
  if (!tag.text.includes('*')) return [`${fieldLiteral([key])} = ${textLiteral(tag.text)}`]
  return [tagProgram(tag), `${fieldLiteral([key])} = tag`]
}

/** A template for a text with placeholders, and the lines that set the fields of the template. */
export interface ChunkText {
  readonly template: string
  readonly lines: readonly string[]
}

/**
 * Converts a text with `${key}`, `${tag}` and chunk times to a template; undefined if it contains anything else. A field that a record does not
 * have is an empty text in Fluentd, so the template refers to a copy that always exists.
 */
export function chunkTemplate(text: string, tag: Tag | undefined): ChunkText | undefined {
  let isKnown = true
  const copies = new Map<string, string>()
  const placed = (name: string, expression: string): string => {
    const base = `%chunk_${name.toLowerCase().replace(/[^a-z0-9]+/g, '_')}`
    const known = [...copies].find(([, each]) => each === expression)?.[0]
    const copy = known ?? (copies.has(base) ? `${base}_${copies.size}` : base)
    copies.set(copy, expression)
    return `{{ ${copy} }}`
  }
  const template = text.replace(/\$\{([^}]*)\}/g, (whole, name: string) => {
    if (name === 'tag' && tag !== undefined && !tag.text.includes('*')) return tag.text
    const index = /^tag(?:_parts)?\[(-?\d+)\]$/.exec(name)?.[1]
    if (tag?.isKept && name === 'tag') return '{{ %tag }}'
    if (tag?.isKept && index !== undefined)
      return placed(`tag_${index}`, `string(get(%tag_parts, [${index}]) ?? null) ?? ""`)
    const part = tag?.text.includes('*') ? undefined : tag?.text.split('.').at(Number(index ?? Number.NaN))
    if (index !== undefined && part !== undefined) return part
    // A tag has no such part. Fluentd knows the other name of parts only in some options.
    if (index !== undefined && tag?.text.includes('*') === false && name.startsWith('tag[')) return ''
    if (/^tag(?:_parts|_prefix|_suffix)?(?:\[|$)/.test(name)) isKnown = false
    if (/^[A-Z][A-Z0-9_]*$/.test(name)) return whole
    // Fluentd fills in no other names.
    if (!/^[-\w.@$]+$/.test(name)) isKnown = false
    const path = recordPath(name)
    if (path === undefined) isKnown = false
    return path === undefined ? whole : placed(path.at(-1) ?? '', `to_string(${fieldLiteral(path)}) ?? ""`)
  })
  return isKnown ? { template, lines: [...copies].map(([copy, expression]) => `${copy} = ${expression}`) } : undefined
}

/** A step with these lines; none without lines. */
export const stepsOf = (lines: readonly string[]): readonly Step[] =>
  lines.length === 0 ? [] : [{ type: 'remap', text: lines.join('\n') }]

/** A template as an expression. */
export function expressionOf(template: string): string {
  const parts = template.split(/(\{\{ .*? \}\})/).filter((part) => part !== '')
  const texts = parts.map((part) => {
    const field = /^\{\{ (.*) \}\}$/.exec(part)?.[1]
    if (field !== undefined) return `(to_string(${field.startsWith('%') ? field : `.${field}`}) ?? "")`
    return /%[A-Za-z]/.test(part) ? `(format_timestamp(${eventTime}, ${textLiteral(part)}) ?? "")` : textLiteral(part)
  })
  return texts.join(' + ')
}

/** Headers in a JSON object. */
export function headersOf(section: Plugged, option: string, context: Context): Readonly<Record<string, string>> {
  const headers = objectIn(lastValue(section, option))
  if (headers === undefined) {
    context.gap(section, `${section.type}: ${option}`, 'the value is not an object', 'Set `request.headers`.')
  }
  return Object.fromEntries(Object.entries(headers ?? {}).map(([name, value]) => [name, secret(value)]))
}
