// Converts the Fluentd output for the logs of Datadog.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { lastValue } from '../fluent-bit/sections.ts'
import { eventTime } from '../unix-time.ts'
import { isOn, type Plugged } from './element.ts'
import { tagLines, translated } from './translation.ts'

export const datadog = translated({
  name: 'datadog',
  as: 'datadog',
  becomes: '`monitor_a_logs`',
  names: { api_key: 'apikey', host: 'host' },
  options: {
    service: 'a field, unless the record has it',
    dd_source: 'the field `ddsource`, unless the record has it',
    dd_tags: 'the field `ddtags`, unless the record has it; tags for the pod follow',
    dd_sourcecategory: 'the field `ddsourcecategory`, unless the record has it',
    dd_hostname: 'the field `hostname`, unless the record has it; by default, the name of the host',
    use_ssl: 'the address',
    port: 'the address',
    ssl_port: 'the address',
    no_ssl_validation: '`tls`',
    include_tag_key: 'a field for the tag',
    tag_key: 'a field for the tag',
    timestamp_key: 'a field for the time, unless the record has it',
    use_compression: '`compression`',
    delete_extracted_tag_attributes: 'a gap if enabled',
  },
  itself: Object.fromEntries(
    ['use_json', 'use_http', 'compression_level', 'max_retries', 'max_backoff', 'tcp_ping_rate', 'force_v1_routes'].map(
      (name) => [name, 'the sink uses the intake API'] as const,
    ),
  ),
  also: (section, context, tag) => {
    const read = (key: string) => lastValue(section, key)
    if (isOn(read('delete_extracted_tag_attributes'), false)) {
      const reason = 'the transform does not remove the fields that become tags'
      const nearest = 'Remove `.kubernetes` and `.docker` in the remap transform before the sink.'
      context.gap(section, 'datadog: delete_extracted_tag_attributes', reason, nearest)
    }
    const isSecure = isOn(read('use_ssl'), true)
    const text = [
      ...extraFields(section),
      ...(isOn(read('include_tag_key'), false) ? tagLines(read('tag_key') ?? 'tag', section, context, tag) : []),
      ...podTags,
    ].join('\n')
    return {
      options: {
        compress: isOn(read('use_compression'), true) ? 'gzip' : 'none',
        tls: isSecure ? 'on' : 'off',
        port: isSecure ? read('ssl_port') : read('port'),
        'tls.verify': isOn(read('no_ssl_validation'), false) ? 'off' : 'on',
        // The plugin does not rename the field with the line.
        dd_message_key: 'message',
      },
      steps: [{ type: 'remap', text }],
    }
  },
})

/** Fields that the plugin adds to records without them. */
function extraFields(section: Plugged): readonly string[] {
  const read = (key: string) => lastValue(section, key)
  const unless = (name: string, value: string) => {
    const field = fieldLiteral([name])
    return `if ${field} == null { ${field} = ${value} }`
  }
  const texts = { ddsourcecategory: 'dd_sourcecategory', ddsource: 'dd_source', ddtags: 'dd_tags', service: 'service' }
  const host = read('dd_hostname')
  const time = read('timestamp_key') ?? '@timestamp'
  return [
    ...Object.entries(texts).flatMap(([name, option]) => {
      const text = read(option)
      return text === undefined ? [] : [unless(name, textLiteral(text))]
    }),
    unless('hostname', host === undefined ? 'get_hostname() ?? null' : textLiteral(host)),
    unless(time, `format_timestamp(${eventTime}, "%Y-%m-%dT%H:%M:%S%.3fZ") ?? null`),
  ]
}

/** Tags for the pod of a record. */
const podTags: readonly string[] = [
  'names = { "image_name": .kubernetes.container_image, "container_name": .kubernetes.container_name, "kube_namespace": .kubernetes.namespace_name, "pod_name": .kubernetes.pod_name, "container_id": .docker.container_id }',
  'tags = [string(.ddtags) ?? ""]',
  'for_each(names) -> |name, value| { if value != null { tags = push(tags, name + ":" + (to_string(value) ?? "")) } }',
  'tags = filter(tags) -> |_index, tag| { tag != "" }',
  'if !is_empty(tags) { .ddtags = join(tags, ",") ?? null }',
]
