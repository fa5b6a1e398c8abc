// Outputs of Fluent Bit to New Relic: its own one, and that of a program beside it.

import { compressed, connection, delivery, itself, local, remap, security, sized, value } from './connection.ts'
import type { Plugin, SinkPart } from './plugin.ts'
import { lastValue } from './sections.ts'

export const newRelic: Plugin<SinkPart> = {
  name: 'nrlogs',
  becomes: '`observability_d` with `api: logs`',
  options: {
    ...local,
    ...security,
    ...delivery,
    ...sized,
    license_key: '`license_key`',
    api_key: 'a gap',
    base_uri: '`override_uri`',
    compress: '`compression`',
  },
  itself,
  build: (section, context) => {
    if (lastValue(section, 'api_key') !== undefined) {
      context.gap(section, 'nrlogs: api_key', 'the sink authenticates with a license key', 'Set `license_key`.')
    }
    const uri = value(section, 'base_uri')
    const config = {
      api: 'logs',
      license_key: value(section, 'license_key') ?? value(section, 'api_key') ?? '',
      ...(uri === undefined ? {} : { override_uri: uri }),
      compression: compressed(section, context).compression ?? 'none',
      ...connection(section),
    }
    return { component: { type: 'observability_d', config }, steps: remap('if exists(.log) { .message = del(.log) }') }
  },
}

/** The program of New Relic beside Fluent Bit. Options are in lower case here. */
export const newRelicPlugin: Plugin<SinkPart> = {
  name: 'newrelic',
  becomes: '`observability_d` with `api: logs`',
  options: {
    ...local,
    ...delivery,
    ...sized,
    licensekey: '`license_key`',
    apikey: 'a gap',
    endpoint: '`override_uri`',
  },
  itself: {
    ...itself,
    maxbuffersize: '`batch` of the sink',
    maxrecords: '`batch` of the sink',
    sendmetrics: 'agents serve their own metrics at /metrics',
  },
  build(section, context) {
    const names: Readonly<Record<string, string>> = {
      licensekey: 'license_key',
      apikey: 'api_key',
      endpoint: 'base_uri',
    }
    const entries = section.entries.map((entry) => ({ ...entry, key: names[entry.key] ?? entry.key }))
    const gzip = { file: section.file, line: section.line, key: 'compress', value: 'gzip' }
    return newRelic.build({ ...section, entries: [...entries, gzip] }, context)
  },
}
