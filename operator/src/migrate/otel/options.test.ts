// Every option that a mapping lists changes the Pipeline or gives a gap for some value, so none is listed but ignored.

import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { Draft } from '../draft.ts'
import { connectors } from './connectors.ts'
import { convertOtel } from './convert.ts'
import { exporters } from './exporters.ts'
import { processors } from './processors.ts'
import { receivers } from './receivers.ts'

type Options = Readonly<Record<string, unknown>>
type Kind = 'receivers' | 'processors' | 'exporters' | 'connectors'

/** Companion options without which options of a component have no effect, by `type` or `type option`. */
const base: Readonly<Record<string, Options>> = {
  filelog: { include: ['/srv/a.log'] },
  attributes: { actions: [{ key: 'a', action: 'upsert', value: 1 }] },
  'clickhouse password': { endpoint: 'http://ch', username: 'u' },
  clickhouse: { endpoint: 'http://ch' },
  datadog: { api: { key: 'k' } },
  elasticsearch: { endpoints: ['http://es'] },
  opensearch: { http: { endpoint: 'http://os' } },
  pulsar: { encoding: 'otlp_json' },
  splunkhec: { endpoint: 'http://hec', token: 't' },
  otlphttp: { endpoint: 'http://o' },
  'otlphttp endpoint': {},
  'elasticsearch cloudid': { mapping: { mode: 'otel' } },
  'elasticsearch password': { endpoints: ['http://es'], user: 'u' },
  'elasticsearch logstash_format.prefix_separator': { endpoints: ['http://es'], logstash_format: { enabled: true } },
  'elasticsearch logstash_format.date_format': { endpoints: ['http://es'], logstash_format: { enabled: true } },
  'probabilisticsampler from_attribute': { attribute_source: 'record', sampling_percentage: 5 },
  'probabilisticsampler attribute_source': { from_attribute: 'a', sampling_percentage: 5 },
  'probabilisticsampler fail_closed': { attribute_source: 'record', from_attribute: 'a', sampling_percentage: 5 },
  'redaction ignored_keys': { allowed_keys: ['a'] },
  'redaction allowed_values': { blocked_values: ['x'] },
  'redaction redact_all_types': { blocked_values: ['x'] },
  resourcedetection: { detectors: ['system'] },
  'routing default_pipelines': { table: [{ condition: 'true', pipelines: ['logs/b'] }] },
  'routing match_once': {
    table: [1, 2].map(() => ({ context: 'log', condition: 'body == "x"', pipelines: ['logs/b'] })),
  },
}
const sized = [
  'otlphttp',
  'otlp',
  'loki',
  'elasticsearch',
  'opensearch',
  'splunkhec',
  'datadog',
  'clickhouse',
  'pulsar',
  'mezmo',
]
const merged = (options: Options, more: Options): Options => {
  const result: Record<string, unknown> = { ...options }
  for (const [key, value] of Object.entries(more)) {
    const below = result[key]
    const isTable = (each: unknown): each is Options =>
      typeof each === 'object' && each !== null && !Array.isArray(each)
    result[key] = isTable(below) && isTable(value) ? merged(below, value) : value
  }
  return result
}

const values: readonly unknown[] = [
  true,
  false,
  17,
  'x',
  'zstd',
  'none',
  'debug',
  'detailed',
  'beginning',
  '/srv/other.log',
  '10s',
  '2MiB',
  'items',
  'record',
  'logs/b',
  ['/srv/b.log'],
  ['a'],
  ['logs/b'],
  [['logs/b']],
  { a: 'b' },
  { 'host.name': { enabled: false } },
  { exporter: false },
  ['set(attributes["a"], 1)'],
  ['IsMatch(body, "a")'],
  [{ key: 'a', action: 'delete' }],
  [{ type: 'move', from: 'body', to: 'attributes.a' }],
  [{ name: 'events', namespaces: ['shop'] }],
  [{ tag_name: 'a', key: 'a' }],
  { match_type: 'strict', bodies: ['a'], attributes: [{ key: 'a' }] },
  [{ condition: 'true', pipelines: ['logs/b'] }],
]

function converted(kind: Kind, id: string, options: Options): string {
  const own = { [id]: options }
  const isConnector = kind === 'connectors'
  const config = {
    receivers: kind === 'receivers' ? own : { filelog: { include: ['/srv/a.log'] } },
    processors: kind === 'processors' ? own : {},
    exporters: kind === 'exporters' ? own : { nop: null },
    connectors: isConnector ? own : {},
    extensions: { x: { token: 't' } },
    service: {
      pipelines: {
        logs: {
          receivers: kind === 'receivers' ? [id] : ['filelog'],
          processors: kind === 'processors' ? [id] : [],
          exporters: isConnector || kind === 'exporters' ? [id] : ['nop'],
        },
        ...(isConnector ? { 'logs/b': { receivers: [id], exporters: ['nop'] } } : {}),
      },
    },
  }
  const draft = new Draft()
  convertOtel([{ file: 'c.yaml', text: stringify(config) }], () => [], draft)
  const gaps = draft.gaps.map(({ subject, reason }) => `${subject}: ${reason}`)
  return `${draft.document({ name: 'x' })}${gaps.join('\n')}`
}

const kinds = { receivers, processors, exporters, connectors } as const
const all = (Object.keys(kinds) as Kind[]).flatMap((kind) =>
  kinds[kind].map(({ name, options, itself = {} }) => ({ kind, name, options, itself })),
)
const listed = all.flatMap(({ kind, name, options }) => Object.keys(options).map((option) => ({ kind, name, option })))

const nested = (option: string, value: unknown): Options =>
  option.split('.').reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as Options

test.each(listed)('$name: $option has an effect', ({ kind, name, option }) => {
  const needed = base[`${name} ${option}`] ?? base[name] ?? {}
  // The unit of a queue matters only if it has a size, and vice versa.
  const other = {
    'sending_queue.sizer': { sending_queue: { queue_size: 9 } },
    'sending_queue.queue_size': { sending_queue: { sizer: 'items' } },
  }[option]
  const before = sized.includes(name) && other !== undefined ? merged(needed, other) : needed
  const without = converted(kind, name, before)
  const changing = values.filter((value) => converted(kind, name, merged(before, nested(option, value))) !== without)
  expect(changing).not.toEqual([])
})

const needless = all.flatMap(({ name, options, itself }) =>
  Object.keys(itself).map((option) => ({ name, option, isRead: Object.hasOwn(options, option) })),
)
test.each(needless)('$name: $option is in only one list', ({ isRead }) => expect(isRead).toBe(false))
