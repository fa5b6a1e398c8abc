// Converts Fluentd outputs for search engines.

import { fieldLiteral } from '@penstock/agent/config'
import type { Step } from '../draft.ts'
import { isOn, lastValue } from '../fluent-bit/sections.ts'
import { listOf } from './element.ts'
import { recordPath } from './ruby.ts'
import { chunkTemplate, login, type OutputPlugin, security, tagLines, translated } from './translation.ts'

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
      'custom_headers',
      'flatten_hashes',
    ],
    ...[
      'flatten_hashes_separator',
      'emit_error_for_missing_id',
      'emit_error_label_event',
      'type_name',
      'customize_template',
      'selector_class_name',
      'target_type_key',
    ],
  ].map((name) => [name, 'the sink detects the version, reuses connections, and logs rejected documents'] as const),
)

export const search = (name: string): OutputPlugin =>
  translated({
    name,
    as: 'es',
    becomes: '`search_engine`',
    names: { ...login, ...security, id_key: 'id_key', pipeline: 'pipeline' },
    options: searchOptions,
    itself: searchItself,
    also: (section, context, tag) => {
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
      const hosts = listOf(read('hosts'))
      const [first = `${read('host') ?? 'localhost'}`] = hosts
      const address = /^(?:(https?):\/\/)?(?:[^@/]*@)?([^:/]+|\$\{\w+\})(?::(\d+|\$\{\w+\}))?/.exec(first)
      const scheme = (read('scheme') ?? address?.[1] ?? 'http').toLowerCase()
      const isSecure = scheme === 'https' || scheme.includes('${')
      const endpoints = hosts.map((host) => {
        const text = /^https?:\/\//.test(host) ? host : `${isSecure ? 'https' : 'http'}://${host}`
        return (/:\d+(\/|$)/.test(text.slice(8)) ? text : `${text}:${read('port') ?? '9200'}`).replace(
          /\$\{(\w+)\}/g,
          'SECRET[env.$1]',
        )
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
      const timeout = /^(\d+)s?$/.exec(read('request_timeout') ?? '')?.[1]
      const removed = listOf(read('remove_keys')).flatMap((key) => recordPath(key) ?? [])
      const action = (read('write_operation') ?? (name.includes('data_stream') ? 'create' : 'index')).toLowerCase()
      return {
        options: {
          host: address?.[2] ?? 'localhost',
          port: read('port') ?? address?.[3],
          tls: isSecure ? 'on' : 'off',
          'tls.verify': isOn(read('ssl_verify'), true) ? 'on' : 'off',
          path: path?.includes('${') === true ? `/${path.replace(/^\//, '')}` : path?.replace(/\/$/, ''),
          write_operation: action,
          time_key: hasTime || name.includes('data_stream') ? '@timestamp' : (read('time_key') ?? '@timestamp'),
        },
        steps: tagSteps,
        config: {
          bulk: { action: action === 'create' ? 'create' : 'index', index: index ?? 'fluentd' },
          ...(endpoints.length > 1 || hosts.length > 0 ? { endpoints } : {}),
          ...(removed.length === 0 ? {} : { encoding: { except_fields: ['timestamp', ...removed] } }),
          ...(timeout === undefined ? {} : { request: { timeout_secs: Number(timeout) } }),
          ...(/^(best|default)/.test(read('compression_level') ?? '') ? { compression: 'gzip' } : {}),
        },
      }
    },
  })
