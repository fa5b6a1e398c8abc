// Converts Fluentd outputs for the event collector of Splunk.

import { secret } from '../fluent-bit/connection.ts'
import type { Context } from '../fluent-bit/plugin.ts'
import { lastValue } from '../fluent-bit/sections.ts'
import { hostVariable } from '../fluent-bit/text.ts'
import { childrenOf, isOn, type Plugged, parameter } from './element.ts'
import { accessorOf, recordPath } from './ruby.ts'
import { matchOf, type Tag } from './tags.ts'
import {
  chunkTemplate,
  expressionOf,
  headersOf,
  type OutputPlugin,
  type Parts,
  security,
  stepsOf,
  translated,
} from './translation.ts'

/** A member of events for Splunk whose text has placeholders. A step keeps the value, because the step after it replaces the event. */
function filledMember(section: Plugged, word: string, context: Context, tag: Tag | undefined): Filled {
  const text = lastValue(section, word)
  if (text === undefined) return none
  const filled = chunkTemplate(text, tag)
  if (filled === undefined) {
    const reason = 'the value contains parts of tags, or names that Fluentd does not fill in'
    const nearest = 'Set the member in the remap transform before the sink.'
    context.gap(section, `${section.type}: ${word} ${text}`, reason, nearest)
    return none
  }
  const { template, lines } = filled
  const isFixed = !template.includes('{{') && !/%[A-Za-z]/.test(template)
  if (isFixed) return { members: template === text ? [] : [[`event_${word}`, template]], lines: [] }
  return {
    members: [[`event_${word}`, `%event_${word}`]],
    lines: [...lines, `%event_${word} = ${expressionOf(template)}`],
  }
}

interface Filled {
  readonly members: readonly (readonly [string, string])[]
  readonly lines: readonly string[]
}

const none: Filled = { members: [], lines: [] }

export const splunk = (name: string): OutputPlugin =>
  translated({
    name,
    as: 'splunk',
    becomes: '`http` to the event collector',
    names: {
      ...security,
      hec_token: 'splunk_token',
      index: 'event_index',
      source: 'event_source',
      sourcetype: 'event_sourcetype',
      host: 'event_host',
    },
    options: {
      hec_host: 'the address',
      hec_port: 'the address',
      protocol: 'the address',
      full_url: 'the address',
      hec_endpoint: 'the path of the address',
      gzip_compression: '`compression`',
      custom_headers: '`request.headers`',
      insecure_ssl: '`tls`',
      event_key: 'the value of `event`',
      host_key: 'a field, which is removed from the event unless `keep_keys` is set',
      source_key: 'as `host_key`',
      sourcetype_key: 'as `host_key`',
      index_key: 'as `host_key`',
      keep_keys: 'whether to keep these fields in the event',
      fields: 'members of `fields`',
      format: 'a gap, if the format is for some tags only',
      'format.@type': 'the value of `event`: the record, or one field',
      'format.message_key': 'the field that is the value of `event`',
    },
    itself: {
      idle_timeout: 'the sink reuses connections',
      use_ack: 'a request counts as delivered when the server responds',
      consume_chunk_on_4xx_errors: 'the sink discards and counts rejected events',
      open_timeout: '`request.timeout_secs`',
      read_timeout: '`request.timeout_secs`',
      ssl_ciphers: 'the agent negotiates TLS',
      require_ssl_min_version: 'the agent negotiates TLS',
      data_type: {
        how: 'events',
        unless: /^(?!event$)/,
        reason: 'the sink sends events, not metrics',
        nearest: 'Send these records to a destination for metrics.',
      },
      app_name: 'the sink names itself',
      app_version: 'the sink names itself',
      coerce_to_utf8: 'texts are UTF-8',
      non_utf8_replacement_string: 'texts are UTF-8',
      'format.add_newline': 'each event is a text without a line feed',
      'format.time_key': 'the time is the time of the event',
    },
    also: (section, context, tag) => {
      const { members, lines } = eventMembers(name, section, context, tag)
      return { ...requestParts(section, context), several: members, steps: stepsOf(lines) }
    },
  })

/** The address, and the options of requests. */
function requestParts(section: Plugged, context: Context): Pick<Parts, 'options' | 'config'> {
  const read = (key: string) => lastValue(section, key)
  const url = read('full_url')
  const [host, port] = [read('hec_host') ?? 'localhost', read('hec_port') ?? '8088']
  const scheme = (url?.split(':')[0] ?? read('protocol') ?? 'https') === 'http' ? 'http' : 'https'
  const path = read('hec_endpoint')
  const address = url ?? (path === undefined ? undefined : `${scheme}://${host}:${port}/${path.replace(/^\/+/, '')}`)
  const headers = headersOf(section, 'custom_headers', context)
  return {
    options: {
      host,
      port,
      compress: isOn(read('gzip_compression'), false) ? 'gzip' : undefined,
      tls: scheme === 'http' ? 'off' : 'on',
      'tls.verify': isOn(read('insecure_ssl'), false) ? 'off' : 'on',
    },
    config: {
      // The plugin sends to this address without appending a path.
      ...(address === undefined ? {} : { uri: secret(address) }),
      ...(Object.keys(headers).length === 0 ? {} : { request: { headers } }),
    },
  }
}

/** The options of `splunk` for members of the event, from texts and from fields of the record. */
function eventMembers(name: string, section: Plugged, context: Context, tag: Tag | undefined): Filled {
  const read = (key: string) => lastValue(section, key)
  const pathIn = (key: string): string | undefined => {
    const path = recordPath(key)
    if (path !== undefined) return accessorOf(path)
    context.gap(section, `${name}: ${key}`, 'a program cannot refer to the field', 'Set it in a remap transform.')
    return undefined
  }
  const several: (readonly [string, string])[] = []
  const lines: string[] = []
  const keepsKeys = isOn(read('keep_keys'), false)
  for (const word of ['host', 'source', 'sourcetype', 'index']) {
    const filled = filledMember(section, word, context, tag)
    several.push(...filled.members)
    lines.push(...filled.lines)
    // Without an address of its own, an event is from the machine of Fluentd.
    if (word === 'host' && read('host') === undefined && read('host_key') === undefined)
      several.push(['event_host', hostVariable])
    const path = read(`${word}_key`) === undefined ? undefined : pathIn(read(`${word}_key`) ?? '')
    if (path === undefined) continue
    several.push([word === 'host' || word === 'source' ? `event_${word}` : `event_${word}_key`, path])
    if (!keepsKeys) several.push(['event_remove', path])
  }
  const members = childrenOf(section.element, 'fields').flatMap(({ parameters }) => parameters)
  for (const { key, value } of members) {
    const path = pathIn(value === '' ? key : value)
    if (path === undefined) continue
    several.push(['event_field', `${key} ${path}`])
    if (!keepsKeys) several.push(['event_remove', path])
  }
  several.push(...formatOf(name, section, context, tag))
  const whole = read('event_key') === undefined ? undefined : pathIn(read('event_key') ?? '')
  if (whole !== undefined) several.push(['event_value', whole])
  return { members: several, lines }
}

/** The value of `event`: with the format `single_value`, one field of the record. */
function formatOf(name: string, section: Plugged, context: Context, tag: Tag | undefined): [string, string][] {
  // The first format whose pattern matches the tag applies.
  const formats = childrenOf(section.element, 'format')
    .map((format) => ({ format, match: tag === undefined ? 'some' : matchOf(tag, format.argument || '**') }))
    .filter(({ match, format: { argument } }) => match !== 'none' || argument === '')
  const found = formats
    .filter(({ match, format: { argument } }) => match === 'all' || /^(?:\*\*)?$/.test(argument))
    .map(({ format }) => format)
  for (const { format: each } of formats.filter(({ format }) => !found.includes(format)))
    context.gap(
      each,
      `${name}: format ${each.argument}`,
      'a sink has one format',
      'Use a match of its own for these tags.',
    )
  const [format] = found
  const type = format === undefined ? 'json' : (parameter(format, '@type') ?? 'json').toLowerCase()
  if (format === undefined || type === 'json' || type === 'hash') return []
  if (type === 'single_value') {
    const path = recordPath(parameter(format, 'message_key') ?? 'message')
    if (path !== undefined) return [['event_value', accessorOf(path)]]
  }
  const nearest = 'Build the text in a remap transform before the sink, and set `event_key`.'
  context.gap(format, `${name}: format ${type}`, 'the sink sends the whole record as an object', nearest)
  return []
}
