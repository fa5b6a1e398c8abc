// Outputs of Fluent Bit to services that take lines of text with a few members beside them.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { literalTemplate } from '../escape.ts'
import { connection, delivery, itself, local, remap, security, sized, value } from './connection.ts'
import type { Plugin, SinkPart } from './plugin.ts'
import { entriesOf, isOn, lastValue } from './sections.ts'
import { accessor } from './text.ts'

const promoted = ['meta', 'level', 'severity', 'file', 'app']

export const logDna: Plugin<SinkPart> = {
  name: 'logdna',
  becomes: '`logsvc_a`; the line is the record in JSON',
  options: {
    ...local,
    ...security,
    ...delivery,
    ...sized,
    api_key: '`api_key`',
    hostname: '`hostname`; by default the name of the host',
    logdna_host: '`endpoint`',
    logdna_port: '`endpoint`',
    logdna_endpoint: '`endpoint`',
    mac: '`mac`',
    ip: '`ip`',
    tags: '`tags`',
    file: 'a field, for records without one',
    app: 'a field, for records without one',
    exclude_promoted_keys: 'fields that the line does not repeat',
  },
  itself: { ...itself, tls: 'the sink uses TLS' },
  build: (section, context) => {
    const host = value(section, 'hostname')
    const address = `https://${value(section, 'logdna_host') ?? 'logs.logdna.com'}`
    const port = value(section, 'logdna_port')
    const tags = entriesOf(section, 'tags')
      .flatMap((entry) => entry.value.split(/[,\s]+/))
      .filter((tag) => tag !== '')
    const file = lastValue(section, 'file')
    context.replaced(
      section,
      'logdna: env',
      'the sink also sends the member `env`, and sends `level` only within the line',
      'Set `default_env` of the sink.',
    )
    const config = {
      api_key: value(section, 'api_key') ?? '',
      hostname: host === undefined ? '{{ %hostname }}' : literalTemplate(host),
      endpoint: `${address}${port === undefined ? '' : `:${port}`}${value(section, 'logdna_endpoint') ?? '/logs/ingest'}`,
      ...Object.fromEntries(['mac', 'ip'].flatMap((key) => [[key, value(section, key)]]).filter(([, text]) => text)),
      ...(tags.length === 0 ? {} : { tags: tags.map(literalTemplate) }),
      ...connection(section),
    }
    const isShort = isOn(lastValue(section, 'exclude_promoted_keys'), false)
    const lines = [
      ...(host === undefined ? ['%hostname = get_hostname() ?? "unknown"'] : []),
      'record = .',
      'del(record.timestamp)',
      'line = record',
      ...(isShort ? promoted.map((name) => `del(line.${name})`) : []),
      // The sink sends the members of `meta` from fields of the event.
      'meta = object(record.meta) ?? {}',
      '. = merge(meta, { "timestamp": .timestamp, "message": encode_json(line) })',
      `.app = if exists(record.app) { record.app } else { ${textLiteral(lastValue(section, 'app') ?? 'Fluent Bit')} }`,
      'if exists(record.file) { .file = record.file }',
      ...(file === undefined ? [] : [`if !exists(.file) { .file = ${textLiteral(file)} }`]),
    ]
    return { component: { type: 'logsvc_a', config }, steps: remap(...lines) }
  },
}

const regions: Readonly<Record<string, string>> = { us: 'us', eu: 'eu', uk: 'london', asia: 'asia' }

export const chronicle: Plugin<SinkPart> = {
  name: 'chronicle',
  becomes: '`siem_unstructured`',
  options: {
    ...local,
    ...security,
    ...delivery,
    ...sized,
    customer_id: '`customer_id`',
    log_type: '`log_type`',
    region: '`region`',
    log_key: 'the field with the text of the entry; by default the record in JSON',
    google_service_credentials: '`credentials_path`',
    service_account_email: 'a gap',
    service_account_secret: 'a gap',
  },
  itself: { ...itself, project_id: 'the sink needs only the customer', tls: 'the sink uses TLS' },
  build: (section, context) => {
    for (const key of ['service_account_email', 'service_account_secret']) {
      const entry = entriesOf(section, key).at(-1)
      const nearest = 'Set `credentials_path` of the sink.'
      if (entry !== undefined)
        context.gap(entry, `chronicle: ${key}`, 'the sink reads credentials from one file', nearest)
    }
    const wanted = lastValue(section, 'region') ?? 'us'
    const region = regions[wanted.toLowerCase()]
    if (region === undefined)
      context.gap(section, `chronicle: region ${wanted}`, 'the region is unknown', 'Set `region` of the sink.')
    const key = lastValue(section, 'log_key')
    const field = fieldLiteral(accessor(key ?? '') ?? [key ?? ''])
    const credentials = value(section, 'google_service_credentials')
    const config = {
      customer_id: value(section, 'customer_id') ?? '',
      log_type: literalTemplate(value(section, 'log_type') ?? ''),
      region: region ?? 'us',
      ...(credentials === undefined ? {} : { credentials_path: credentials }),
      encoding: key === undefined ? { codec: 'json', except_fields: ['timestamp'] } : { codec: 'text' },
      ...connection(section),
    }
    const steps = key === undefined ? [] : remap(`.message = string(${field}) ?? encode_json(${field})`)
    return { component: { type: 'siem_unstructured', config }, steps }
  },
}
