// Outputs of Fluent Bit that wrap records in another document: the Kafka REST proxy, and a cloud monitor.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { literalTemplate } from '../escape.ts'
import { addressOf, always, connection, itself, local, login, remap, secret, sized, value } from './connection.ts'
import type { Plugin, SinkPart } from './plugin.ts'
import { isOn, lastValue } from './sections.ts'

const proxyHeaders = { 'content-type': 'application/vnd.kafka.json.v2+json' }

export const kafkaRest: Plugin<SinkPart> = {
  name: 'kafka-rest',
  becomes: '`http` to the Kafka REST proxy',
  options: {
    ...always,
    ...login,
    url_path: 'the address',
    topic: 'the address',
    partition: 'a field of each record',
    message_key: 'a field of each record',
    time_key: 'a field of the value',
    time_key_format: 'the format of the time',
    include_tag_key: 'a field of the value for the tag',
    tag_key: 'the name of the field for the tag',
  },
  itself,
  build: (section, context, tag = []) => {
    const topic = value(section, 'topic') ?? 'fluent-bit'
    const partition = lastValue(section, 'partition')
    const key = lastValue(section, 'message_key')
    const timeKey = lastValue(section, 'time_key') ?? '@timestamp'
    // Fluent Bit appends milliseconds to the format.
    const form = `${lastValue(section, 'time_key_format') ?? '%Y-%m-%dT%H:%M:%S'}%.3fZ`
    const isNumber = partition !== undefined && /^\d{1,9}$/.test(partition)
    if (partition !== undefined && !isNumber) {
      context.gap(
        section,
        'kafka-rest: partition',
        `the partition \`${partition}\` is not a number`,
        'Without it, the proxy chooses the partition.',
      )
    }
    const members = [
      ...(key === undefined ? [] : [`"key": ${textLiteral(key)}`]),
      ...(isNumber ? [`"partition": ${partition}`] : []),
      '"value": record',
    ]
    const { request, ...others } = connection(section)
    const config = {
      uri: literalTemplate(addressOf(section, '8082', `${value(section, 'url_path') ?? ''}/topics/${topic}`)),
      payload_prefix: '{"records":',
      payload_suffix: '}',
      encoding: { codec: 'json' },
      ...others,
      request: { ...(request as object | undefined), headers: proxyHeaders },
    }
    const lines = [
      `time = format_timestamp(timestamp(.timestamp) ?? now(), ${textLiteral(form)}) ?? null`,
      'del(.timestamp)',
      'record = .',
      `record${fieldLiteral([timeKey])} = time`,
      ...(isOn(lastValue(section, 'include_tag_key'), false)
        ? [...tag, `record${fieldLiteral([lastValue(section, 'tag_key') ?? '_flb-key'])} = tag`]
        : []),
      `. = { ${members.join(', ')} }`,
    ]
    return { component: { type: 'http', config }, steps: remap(...lines) }
  },
}

export const azure: Plugin<SinkPart> = {
  name: 'azure',
  becomes: '`cloud_monitor_logs`',
  options: {
    ...local,
    ...sized,
    retry_limit: always.retry_limit,
    customer_id: '`customer_id`',
    shared_key: '`shared_key`',
    log_type: '`log_type`',
    time_key: '`time_generated_key`',
  },
  itself: {
    ...itself,
    time_generated: 'the sink always names the field with the time',
  },
  build: (section) => {
    const timeKey = lastValue(section, 'time_key') ?? '@timestamp'
    const config = {
      customer_id: secret(lastValue(section, 'customer_id') ?? ''),
      shared_key: secret(lastValue(section, 'shared_key') ?? ''),
      log_type: lastValue(section, 'log_type') ?? 'fluentbit',
      time_generated_key: timeKey,
      ...connection(section),
    }
    return {
      component: { type: 'cloud_monitor_logs', config },
      steps: remap(`${fieldLiteral([timeKey])} = del(.timestamp)`),
    }
  },
}
