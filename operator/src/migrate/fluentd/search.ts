// Converts Fluentd outputs for search engines.

import { fieldLiteral } from '@penstock/agent/config'
import type { Step } from '../draft.ts'
import type { Context } from '../fluent-bit/plugin.ts'
import { isOn, lastValue } from '../fluent-bit/sections.ts'
import { listOf, type Plugged } from './element.ts'
import { recordPath } from './ruby.ts'
import type { Tag } from './tags.ts'
import {
  chunkTemplate,
  login,
  type OutputPlugin,
  objectIn,
  type Parts,
  security,
  tagLines,
  translated,
} from './translation.ts'

const searchOptions: Readonly<Record<string, string>> = {
  host: 'the address',
  hosts: '`endpoints`',
  port: 'the address',
  scheme: 'the address',
  path: 'the address',
  ssl_verify: '`tls`',
  index_name: '`bulk.index`',
  logstash_format: '`bulk.index` with the date',
  logstash_prefix: '`bulk.index`',
  logstash_dateformat: '`bulk.index`',
  logstash_prefix_separator: '`bulk.index`',
  target_index_key: '`bulk.index`',
  include_tag_key: 'a field for the tag',
  tag_key: 'a field for the tag',
  include_timestamp: 'the field `@timestamp`',
  time_key: 'the field for the time',
  write_operation: '`bulk.action`',
  data_stream_name: 'the data stream',
  pipeline: '`pipeline`',
  remove_keys: '`encoding.except_fields`',
  compression_level: '`compression`',
  bulk_message_request_threshold: '`batch.max_bytes`',
  request_timeout: '`request.timeout_secs`',
  custom_headers: '`request.headers`',
  'endpoint.url': 'the address',
  'endpoint.region': '`auth` with `strategy: aws`',
  'endpoint.assume_role_arn': '`auth.assume_role`',
  'endpoint.aws_service_name': '`opensearch_service_type`',
}

const template = {
  how: 'the destination manages its templates',
  unless: /./,
  reason: 'the sink does not create index templates, policies or aliases',
  nearest: 'Create them once with the API of the destination.',
} as const

/** Options that are a gap for some values. */
const exceptions: OutputPlugin['itself'] = {
  flatten_hashes: {
    how: 'objects stay nested',
    unless: /true|yes|^$/i,
    reason: 'the sink sends nested objects',
    nearest: 'Add a remap transform before the sink: `. = flatten(., "_")`.',
  },
  flatten_hashes_separator: 'see `flatten_hashes`',
  ...Object.fromEntries(
    [
      ...'template_name template_file template_overwrite template_pattern customize_template templates'.split(' '),
      ...'index_date_pattern deflector_alias application_name rollover_index index_prefix ilm_policy'.split(' '),
      ...'enable_ilm ilm_policy_id ilm_policies ilm_policy_overwrite use_legacy_template'.split(' '),
      ...'data_stream_template_name data_stream_template_use_index_patterns_wildcard data_stream_ilm_name'.split(' '),
      ...'data_stream_ilm_policy data_stream_ilm_policy_overwrite'.split(' '),
    ].map((name) => [name, template] as const),
  ),
}

const searchItself: OutputPlugin['itself'] = Object.fromEntries(
  [
    ...[
      'reconnect_on_error',
      'reload_on_failure',
      'reload_connections',
      'reload_after',
      'resurrect_after',
      'sniffer_class_name',
      'with_transporter_log',
    ],
    ...[
      'log_es_400_reason',
      'log_os_400_reason',
      'suppress_type_name',
      'verify_es_version_at_startup',
      'verify_os_version_at_startup',
      'default_elasticsearch_version',
    ],
    ...[
      'default_opensearch_version',
      'max_retry_get_es_version',
      'max_retry_get_os_version',
      'http_backend',
      'http_backend_excon_nonblock',
      'prefer_oj_serializer',
    ],
    ...[
      'suppress_doc_wrap',
      'ssl_version',
      'ssl_min_version',
      'ssl_max_version',
      'fail_on_detecting_es_version_retry_exceed',
      'fail_on_detecting_os_version_retry_exceed',
    ],
    ...[
      'fail_on_putting_template_retry_exceed',
      'exception_backup',
      'include_index_in_url',
      'validate_client_version',
      'utc_index',
      'unrecoverable_error_types',
      'reconnect',
    ],
    ...[
      'ignore_exceptions',
      'content_type',
      'time_precision',
      'time_key_exclude_timestamp',
      'time_key_format',
      'time_parse_error_tag',
    ],
    ...['emit_error_for_missing_id', 'emit_error_label_event', 'type_name', 'selector_class_name', 'target_type_key'],
  ].map((name) => [name, 'the sink detects the version, reuses connections, and logs rejected documents'] as const),
)

export const search = (name: string): OutputPlugin =>
  translated({
    name,
    as: 'es',
    becomes: '`search_engine`',
    names: { ...login, ...security, id_key: 'id_key', pipeline: 'pipeline' },
    options: searchOptions,
    itself: { ...searchItself, ...exceptions },
    also: (section, context, tag) => searchParts(name, section, context, tag),
  })

function searchParts(name: string, section: Plugged, context: Context, tag: Tag | undefined): Parts {
  const read = (key: string) => lastValue(section, key)
  const isDated = isOn(read('logstash_format'), false)
  const index = indexOf(name, section, context, tag)
  // The plugin for services of a cloud names one address in an element.
  const service = read('endpoint.url')
  const hosts = service === undefined ? listOf(read('hosts')) : [service.replace(/\/+$/, '')]
  const [first = `${read('host') ?? 'localhost'}`] = hosts
  const address = /^(?:(https?):\/\/)?(?:[^@/]*@)?([^:/]+|\$\{\w+\})(?::(\d+|\$\{\w+\}))?/.exec(first)
  const scheme = (read('scheme') ?? address?.[1] ?? 'http').toLowerCase()
  const isSecure = scheme === 'https' || scheme.includes('${')
  const endpoints = hosts.map((host) => {
    const text = /^https?:\/\//.test(host) ? host : `${isSecure ? 'https' : 'http'}://${host}`
    const port = service === undefined ? (read('port') ?? '9200') : isSecure ? '443' : '80'
    return (/:\d+(\/|$)/.test(text.slice(8)) ? text : `${text}:${port}`).replace(/\$\{(\w+)\}/g, 'SECRET[env.$1]')
  })
  const hasTime = isDated || isOn(read('include_timestamp'), false)
  const tagSteps: Step[] = isOn(read('include_tag_key'), false)
    ? [{ type: 'remap', text: tagLines(read('tag_key') ?? 'tag', section, context, tag).join('\n') || '.' }]
    : []
  const path = read('path')
  if (path?.includes('${') === true) {
    context.replaced(
      section,
      `${name}: path`,
      'the path of the address comes from a variable, and the address has a slash before it',
      'Put the value into the Secret without a leading slash.',
    )
  }
  const removed = listOf(read('remove_keys')).flatMap((key) => recordPath(key) ?? [])
  const request = requestOf(name, section, context)
  const action = (read('write_operation') ?? (name.includes('data_stream') ? 'create' : 'index')).toLowerCase()
  return {
    options: {
      host: address?.[2] ?? 'localhost',
      port: read('port') ?? address?.[3],
      tls: isSecure ? 'on' : 'off',
      'tls.verify': isOn(read('ssl_verify'), true) ? 'on' : 'off',
      path: path?.includes('${') === true ? `/${path.replace(/^\//, '')}` : path?.replace(/\/$/, ''),
      write_operation: action,
      ...(service === undefined
        ? {}
        : {
            aws_auth: 'on',
            aws_region: read('endpoint.region'),
            aws_role_arn: read('endpoint.assume_role_arn'),
            aws_service_name: read('endpoint.aws_service_name'),
          }),
      time_key: hasTime || name.includes('data_stream') ? '@timestamp' : (read('time_key') ?? '@timestamp'),
    },
    steps: tagSteps,
    config: {
      bulk: { action: action === 'create' ? 'create' : 'index', index: index ?? 'fluentd' },
      ...(endpoints.length > 1 || hosts.length > 0 ? { endpoints } : {}),
      ...(removed.length === 0 ? {} : { encoding: { except_fields: ['timestamp', ...removed] } }),
      ...(Object.keys(request).length === 0 ? {} : { request }),
      ...(/^(best|default)/.test(read('compression_level') ?? '') ? { compression: 'gzip' } : {}),
    },
  }
}

/** The template of the index; undefined if it contains parts of tags, which is reported. */
function indexOf(name: string, section: Plugged, context: Context, tag: Tag | undefined): string | undefined {
  const read = (key: string) => lastValue(section, key)
  const isDated = isOn(read('logstash_format'), false)
  const separator = read('logstash_prefix_separator') ?? '-'
  const wanted = read('target_index_key') ?? undefined
  const target = wanted === undefined ? undefined : recordPath(wanted)
  const given = isDated
    ? `${read('logstash_prefix') ?? 'logstash'}${separator}${read('logstash_dateformat') ?? '%Y.%m.%d'}`
    : (read('data_stream_name') ?? read('index_name') ?? 'fluentd')
  const index = target === undefined ? chunkTemplate(given, tag) : `{{ ${fieldLiteral(target).slice(1)} }}`
  if (index === undefined) {
    context.gap(
      section,
      `${name}: ${given}`,
      'the name of the index contains parts of tags',
      'Set `bulk.index` to a template with fields, such as `{{ kubernetes.namespace_name }}`.',
    )
  }
  return index
}

/** Options of the sink's `request`. */
function requestOf(name: string, section: Plugged, context: Context): Readonly<Record<string, unknown>> {
  const read = (key: string) => lastValue(section, key)
  const timeout = /^(\d+)s?$/.exec(read('request_timeout') ?? '')?.[1]
  const headers = objectIn(read('custom_headers'))
  if (headers === undefined) {
    const nearest = 'Set `request.headers` of the sink.'
    context.gap(section, `${name}: custom_headers`, 'the value is not an object', nearest)
  }
  return {
    ...(timeout === undefined ? {} : { timeout_secs: Number(timeout) }),
    ...(headers === undefined || Object.keys(headers).length === 0 ? {} : { headers }),
  }
}
