// Converts Fluentd outputs that also exist in Fluent Bit: renames the parameters, and lets the mapping of Fluent Bit build the sink.

import { fieldLiteral, minDiskBuffer, textLiteral } from '@penstock/agent/config'
import type { Gap, Step } from '../draft.ts'
import { outputs as bitOutputs } from '../fluent-bit/outputs.ts'
import type { Context, SinkPart } from '../fluent-bit/plugin.ts'
import { type Entry, isOn, lastValue, type Section } from '../fluent-bit/sections.ts'
import { unixSeconds } from '../unix-time.ts'
import type { Plugged } from './element.ts'
import { always, common } from './inputs.ts'
import { recordPath } from './ruby.ts'
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

const overflow = {
  how: 'the source waits while the buffer is full',
  unless: /drop_oldest_chunk|throw_exception/i,
  reason: 'Fluentd discards events when its buffer is full; the source waits',
  nearest: 'To discard events, set `buffer: {type: memory, when_full: drop_newest}` of the sink.',
}

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
      const isForever = forever.some((key) =>
        isOn(lastValue(section, key) || undefined, lastValue(section, key) === ''),
      )
      const limit = retries.map((key) => lastValue(section, key)).find((value) => value !== undefined)
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
        ? `format_timestamp(${time}, ${textLiteral((format ?? '%Y-%m-%dT%H:%M:%S%:z').replaceAll(/\.%[369]?N|\.%L/g, '%.f'))}) ?? null`
        : type === 'unixtime'
          ? `to_unix_timestamp(${time})`
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

/** Converts a text with `${key}`, `${tag}` and chunk times to a template; undefined if it contains anything else. */
export function chunkTemplate(text: string, tag: Tag | undefined): string | undefined {
  let isKnown = true
  const template = text.replace(/\$\{([^}]*)\}/g, (whole, name: string) => {
    if (name === 'tag' && tag !== undefined && !tag.text.includes('*')) return tag.text
    const index = /^tag(?:_parts)?\[(\d+)\]$/.exec(name)?.[1]
    if (tag?.isKept && name === 'tag') return '{{ %tag }}'
    if (tag?.isKept && index !== undefined) return `{{ %tag_parts[${index}] }}`
    const part = index === undefined || tag?.text.includes('*') ? undefined : tag?.text.split('.')[Number(index)]
    if (part !== undefined) return part
    if (/^tag(?:_parts|_prefix|_suffix)?(?:\[|$)/.test(name)) isKnown = false
    if (/^[A-Z][A-Z0-9_]*$/.test(name)) return whole
    // Fluentd fills in no other names.
    if (!/^[-\w.@$]+$/.test(name)) isKnown = false
    const path = recordPath(name)
    if (path === undefined) isKnown = false
    return path === undefined ? whole : `{{ ${fieldLiteral(path).slice(1)} }}`
  })
  return isKnown ? template : undefined
}
