// Outputs of Fluent Bit for search engines: addresses, indices, ids and signatures.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { literalTemplate } from '../escape.ts'
import { eventTime } from '../unix-time.ts'
import { addressOf, always, compressed, connection, itself, login, remap, rooted, secret, value } from './connection.ts'
import type { Context, Plugin, SinkPart } from './plugin.ts'
import { expressed, partsOf, translated } from './record-accessor.ts'
import { type Entry, entriesOf, isOn, lastValue, type Section, upstreamNode } from './sections.ts'
import { accessor, textOf } from './text.ts'
import { templateOf } from './variables.ts'

/** The counterparts of the options of outputs for search engines. */
const searchOptions = {
  ...always,
  ...login,
  index: '`bulk.index`; for `opensearch`, with the fields that it refers to',
  target_index: '`bulk.index` with the fields that it refers to; a gap with `Logstash_Format`',
  type: '`doc_type`',
  path: 'the address',
  upstream: '`endpoints`, one for each node of the file; a gap for outputs other than `es`',
  logstash_format: '`bulk.index` with the date',
  logstash_prefix: '`bulk.index`',
  logstash_prefix_key: '`bulk.index` from a field; the prefix for events without it',
  logstash_prefix_separator: '`bulk.index`',
  generate_id: '`id_key` with a hash of the record',
  logstash_dateformat: '`bulk.index`',
  time_key: 'the field for the time',
  time_key_format: 'the format of the time',
  http_api_key: 'the header `Authorization`',
  replace_dots: '`map_keys` in a remap transform',
  id_key: '`id_key`',
  write_operation: '`bulk.action`',
  pipeline: '`pipeline`',
  compress: '`compression`',
  cloud_id: 'the address',
  cloud_auth: '`auth`',
  aws_auth: '`auth` with `strategy: aws`',
  aws_region: '`aws.region`',
  aws_service_name: '`opensearch_service_type`',
  aws_role_arn: '`auth.assume_role`',
  aws_external_id: '`auth.external_id`',
  aws_profile: '`auth.profile`',
  include_tag_key: 'a field for the tag',
  tag_key: 'the name of the field for the tag',
  current_time_index: '`bulk.index` with the arrival time of the event',
}

export const search = (name: string): Plugin<SinkPart> => ({
  name,
  becomes: '`search_engine`',
  options: searchOptions,
  itself: {
    ...itself,
    suppress_type_name: 'the sink requests the version of the server, and sends types up to version 6',
    time_key_nanos: 'times keep their full precision',
  },
  build: (section, context, tag = []) => {
    const { index, lines: named } = indexOf(section, name, context)
    const operation = (lastValue(section, 'write_operation') ?? 'create').toLowerCase()
    const isKnown = ['create', 'index'].includes(operation)
    if (!isKnown) {
      context.gap(
        section,
        `${name}: Write_Operation`,
        `the sink does not send the operation \`${operation}\``,
        'The sink sends `index`; with `id_key`, it replaces an existing document with the same id.',
      )
    }
    const timeKey = lastValue(section, 'time_key') ?? '@timestamp'
    const idLines = idOf(section)
    const addresses = nodesOf(section, context) ?? [cloudAddress(section) ?? addressOf(section, '9200', '')]
    const config = {
      endpoints: addresses.map((address) => `${address}${rooted(value(section, 'path') ?? '')}`),
      bulk: { action: isKnown ? operation : 'index', index },
      ...(timeKey === 'timestamp' ? {} : { encoding: { except_fields: ['timestamp'] } }),
      ...(lastValue(section, 'type') === undefined ? {} : { doc_type: lastValue(section, 'type') }),
      ...(idLines.length === 0 ? {} : { id_key: '_id' }),
      ...(lastValue(section, 'pipeline') === undefined ? {} : { pipeline: lastValue(section, 'pipeline') }),
      ...compressed(section, context),
      ...connection(section),
      ...cloudLogin(section),
      ...signing(section, context),
    }
    const apiKey = value(section, 'http_api_key')
    const keyed = apiKey === undefined ? {} : { request: { headers: { Authorization: `ApiKey ${apiKey}` } } }
    const tagged = isOn(lastValue(section, 'include_tag_key'), false)
      ? [`${fieldLiteral([lastValue(section, 'tag_key') ?? 'flb-key'])} = tag`]
      : []
    // Outputs of Fluentd, which share this mapping, set the field themselves.
    const timed = timeKey === '' ? [] : [`${fieldLiteral([timeKey])} = ${timeText(section)}`]
    const lines = [...tag, ...named, ...tagged, ...dotLines(section), ...idLines, ...timed]
    return {
      component: { type: 'search_engine', config: withRequest(config, keyed) },
      steps: lines.length === 0 ? [] : remap(...lines),
    }
  },
})

const dotLines = (section: Section) =>
  isOn(lastValue(section, 'replace_dots'), false)
    ? ['. = map_keys(., recursive: true) -> |key| { replace(key, ".", "_") }']
    : []

/** Options with those of another `request`. */
const withRequest = (config: Readonly<Record<string, unknown>>, { request }: { readonly request?: object }) =>
  request === undefined ? config : { ...config, request: { ...(config['request'] as object | undefined), ...request } }

/** The time for `time_key`. Fluent Bit writes fractions of a second after its format. */
function timeText(section: Section): string {
  const format = lastValue(section, 'time_key_format')
  if (format === undefined || format === '%Y-%m-%dT%H:%M:%S') return '.timestamp'
  const digits = isOn(lastValue(section, 'time_key_nanos'), false) ? 9 : 3
  return `format_timestamp(${eventTime}, ${textLiteral(`${format}.%${digits}fZ`)}) ?? null`
}

/** The addresses of the nodes in the file of `Upstream`; undefined without the option. */
function nodesOf(section: Section, context: Context): readonly string[] | undefined {
  const entry = entriesOf(section, 'upstream').at(-1)
  if (entry === undefined) return undefined
  const nodes = entriesOf(section, upstreamNode)
  if (nodes.length > 0) return nodes.map((node) => addressOf(ofNode(section, node), '9200', ''))
  const reason = 'the file with the nodes cannot be read, or the output does not support it'
  context.gap(entry, `upstream ${entry.value}`, reason, 'Set `endpoints` of the sink to the addresses of the nodes.')
  return undefined
}

/** The output with the address of a node, which is `host`, `port` and `tls` in JSON. */
function ofNode(section: Section, { value: text, ...place }: Entry): Section {
  const own = Object.entries(JSON.parse(text) as Record<string, string>)
  return { ...section, entries: [...section.entries, ...own.map(([key, value]) => ({ ...place, key, value }))] }
}

/** The address for an Elastic Cloud id: a name, and the base64 text of the host and the parts of the cluster. */
function cloudAddress(section: Section): string | undefined {
  const [, code] = /^[^:]*:(\S+)$/.exec(lastValue(section, 'cloud_id') ?? '') ?? []
  const [host = '', cluster] = Buffer.from(code ?? '', 'base64')
    .toString('utf8')
    .split('$')
  const [domain, port = '443'] = host.split(':')
  return cluster === undefined ? undefined : `https://${cluster}.${domain}:${port}`
}

function cloudLogin(section: Section): Record<string, unknown> {
  const found = /^([^:]*):(.*)$/s.exec(lastValue(section, 'cloud_auth') ?? '')
  return found === null
    ? {}
    : { auth: { strategy: 'basic', user: secret(found[1] ?? ''), password: secret(found[2] ?? '') } }
}

interface Index {
  /** The name, which may contain a date. */
  readonly index: string
  /** Lines that set the fields that it refers to. */
  readonly lines: readonly string[]
}

function indexOf(section: Section, plugin: string, context: Context): Index {
  const wanted = entriesOf(section, 'target_index').at(-1)
  if (!isOn(lastValue(section, 'logstash_format'), false)) {
    const plain = plainIndex(section, plugin, context)
    return wanted === undefined ? plain : targetIndex(wanted, plain, context)
  }
  if (wanted !== undefined) {
    const reason = 'a name from fields and a name with the date exclude each other in `bulk.index`'
    context.gap(wanted, `target_index ${wanted.value}`, reason, 'The sink uses the name with the date.')
  }
  const isCurrent = isOn(lastValue(section, 'current_time_index'), false)
  const form = lastValue(section, 'logstash_dateformat') ?? '%Y.%m.%d'
  const date = isCurrent ? '{{ %index_date }}' : form
  const dated = isCurrent ? [`%index_date = format_timestamp(now(), ${textLiteral(form)}) ?? ""`] : []
  const fixed = entriesOf(section, 'logstash_prefix').at(-1)
  const prefix = fixed?.value ?? 'logstash'
  const end = `${lastValue(section, 'logstash_prefix_separator') ?? '-'}${date}`
  const named = templateOf(literalTemplate(prefix), context.readsEnvironment)
  const plain = { index: `${named.text}${end}`, lines: [...dated, ...named.lines] }
  const entry = entriesOf(section, 'logstash_prefix_key').at(-1)
  if (entry === undefined || entry.value === '') return plain
  const found = translated(prefixAccessor(entry.value))
  if (found === undefined) {
    const reason = 'a program cannot refer to the field'
    context.gap(entry, `logstash_prefix_key ${entry.value}`, reason, 'Set `%logstash_prefix` in the transform.')
    return plain
  }
  const lines = [
    ...dated,
    `prefix = ${found}`,
    `%logstash_prefix = if prefix != "" { prefix } else { ${textOf(prefix, context.readsEnvironment)} }`,
  ]
  if (fixed !== undefined) context.variables(fixed, 'logstash_prefix', prefix)
  return { index: `{{ %logstash_prefix }}${end}`, lines }
}

/** The index without `Logstash_Format`. That of `opensearch` may refer to fields. */
function plainIndex(section: Section, plugin: string, context: Context): Index {
  const entry = entriesOf(section, 'index').at(-1)
  const { text, lines } = templateOf((entry?.value ?? 'fluent-bit').replaceAll('{{', '\\{{'), context.readsEnvironment)
  const plain = { index: text, lines }
  if (entry === undefined || plugin !== 'opensearch' || !/\$(?!\{)/.test(entry.value)) return plain
  const found = expressed(entry.value, context.readsEnvironment)
  context.variables(entry, 'opensearch: index', entry.value)
  if (found !== undefined) return { index: '{{ %index }}', lines: [`%index = ${found}`] }
  const reason = 'a program cannot refer to the field'
  context.gap(entry, `opensearch: index ${entry.value}`, reason, 'Set `bulk.index` of the sink.')
  return plain
}

/** The index with fields of the record; the other one for records that lack one of them. */
function targetIndex(entry: Entry, plain: Index, context: Context): Index {
  const found = expressed(entry.value, context.readsEnvironment)
  context.variables(entry, 'target_index', entry.value)
  const fields = partsOf(entry.value)
    .filter((part) => /^\$(?!TAG\b)/.test(part))
    .map((part) => accessor(part))
  if (found === undefined || fields.includes(undefined)) {
    const reason = 'a program cannot refer to the field'
    context.gap(entry, `target_index ${entry.value}`, reason, 'Set `bulk.index` of the sink.')
    return plain
  }
  const tests = fields.map((path) => `exists(${fieldLiteral(path ?? [])})`).join(' && ') || 'true'
  const name = textLiteral(plain.index)
  const dated = `(format_timestamp(${eventTime}, ${name}) ?? "")`
  const other = plain.index === '{{ %index }}' ? '%index' : /%[A-Za-z]/.test(name) ? dated : name
  return { index: '{{ %index }}', lines: [...plain.lines, `%index = if ${tests} { ${found} } else { ${other} }`] }
}

/** The record accessor of `Logstash_Prefix_Key`, which may omit the sign at its beginning. */
export const prefixAccessor = (key: string) => (key.startsWith('$') ? key : `$${key}`)

/** Lines that set `_id`, which the sink removes from the event. The original field stays, because Fluent Bit sends it. */
function idOf(section: Section): readonly string[] {
  const key = lastValue(section, 'id_key')
  if (key === undefined) return isOn(lastValue(section, 'generate_id'), false) ? ['._id = sha1(encode_json(.))'] : []
  const field = fieldLiteral(accessor(key) ?? [key.replace(/^\$/, '')])
  return [`if exists(${field}) { ._id = ${field} }`]
}

/** Options of a sink that signs its requests for AWS. */
function signing(section: Section, context: Context): Record<string, unknown> {
  if (!isOn(lastValue(section, 'aws_auth'), false)) return {}
  const entry = entriesOf(section, 'aws_service_name').at(-1)
  if (entry !== undefined && !['es', 'aoss'].includes(entry.value)) {
    const reason = `requests are signed for \`es\` or \`aoss\`, but not for \`${entry.value}\``
    context.gap(entry, `aws_service_name ${entry.value}`, reason, 'Choose one of them.')
  }
  const [role, id, profile] = ['role_arn', 'external_id', 'profile'].map((name) => value(section, `aws_${name}`))
  return {
    auth: {
      strategy: 'aws',
      ...(role === undefined ? {} : { assume_role: role }),
      ...(id === undefined ? {} : { external_id: id }),
      ...(profile === undefined ? {} : { profile }),
    },
    aws: { region: value(section, 'aws_region') ?? 'us-east-1' },
    // This service does not answer questions about its version.
    ...(entry?.value === 'aoss' ? { opensearch_service_type: 'serverless', api_version: 'v8' } : {}),
  }
}
