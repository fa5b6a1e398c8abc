// Values of the first chart for agents: switches for usual components, and components with options as TOML text in `rawConfig`.

import { parseText, type Segments } from '@penstock/agent/config'
import { isTable } from '@penstock/agent/schema'
import type { Table } from '../documents.ts'
import { merged } from './tables.ts'

/** The usual sources by the value that switches them, with their default ids. */
const usualSources: Readonly<Record<string, string>> = {
  kubernetesLogsSource: 'kubernetes_logs',
  hostMetricsSource: 'host_metrics',
  internalMetricsSource: 'internal_metrics',
}
const switches = [...Object.keys(usualSources), 'vectorSink', 'prometheusSink', 'globalOptions', 'logSchema']

const tableOf = (value: unknown): Table => (isTable(value) ? value : {})

/** Whether a table contains such values. */
export const isOldChart = (values: Table): boolean =>
  values['kind'] === undefined && switches.some((name) => isTable(values[name]))

/** The options of a component with those of its text. */
function withRaw(value: unknown): unknown {
  if (!isTable(value) || typeof value['rawConfig'] !== 'string') return value
  const { rawConfig: text, ...options } = value
  const parsed = parseText(String(text), 'toml')
  // Text that is not TOML stays, and is reported as an unknown option.
  return parsed.ok && isTable(parsed.document.value) ? merged(options, parsed.document.value) : value
}

const components = (value: unknown) =>
  Object.fromEntries(Object.entries(tableOf(value)).map(([id, given]) => [id, withRaw(given)]))

const snake = (name: string) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)

/** The configuration in the values, and the path in them for a path in it. */
export function oldChartConfig(values: Table): { readonly config: Table; readonly at: (path: Segments) => Segments } {
  const places = new Map<string, string>()
  const usual: Record<string, unknown> = {}
  for (const [name, type] of Object.entries(usualSources)) {
    const { enabled, sourceId: id = type, rawConfig, config } = tableOf(values[name])
    const isOn = name === 'kubernetesLogsSource' ? enabled !== false : enabled === true
    if (!isOn) continue
    usual[String(id)] = withRaw({ type, ...tableOf(config), ...(rawConfig !== undefined && { rawConfig }) })
    places.set(`sources.${String(id)}`, name)
  }
  const ids = (type: string) => Object.keys(usual).filter((id) => tableOf(usual[id])['type'] === type)
  const { vectorSink, prometheusSink, logSchema, globalOptions } = values
  const sinks: Record<string, unknown> = {}
  if (tableOf(vectorSink)['enabled'] === true) {
    const { sinkId = 'vector_sink', host, port } = tableOf(vectorSink)
    sinks[String(sinkId)] = {
      type: 'vector',
      inputs: ids('kubernetes_logs'),
      address: `${String(host)}:${String(port)}`,
    }
    places.set(`sinks.${String(sinkId)}`, 'vectorSink')
  }
  if (tableOf(prometheusSink)['enabled'] === true) {
    const { sinkId = 'prometheus_sink', listenAddress = '0.0.0.0', listenPort = 9090 } = tableOf(prometheusSink)
    const inputs = [...ids('host_metrics'), ...ids('internal_metrics')]
    const address = `${String(listenAddress)}:${String(listenPort)}`
    sinks[String(sinkId)] = { type: 'prometheus_exporter', inputs, address }
    places.set(`sinks.${String(sinkId)}`, 'prometheusSink')
  }
  const { enabled: hasSchema, ...keys } = tableOf(logSchema)
  const { enabled: hasOptions, dataDir } = tableOf(globalOptions)
  const config = {
    ...(hasOptions === true && dataDir !== undefined && { data_dir: dataDir }),
    ...(hasSchema === true && {
      log_schema: Object.fromEntries(Object.entries(keys).map(([name, value]) => [snake(name), value])),
    }),
    sources: { ...usual, ...components(values['sources']) },
    transforms: components(values['transforms']),
    sinks: { ...sinks, ...components(values['sinks']) },
  }
  const settings: Readonly<Record<string, string>> = { data_dir: 'globalOptions', log_schema: 'logSchema' }
  const at = (path: Segments): Segments => {
    const [first = '', second = ''] = path
    const place = places.get(`${first}.${second}`) ?? settings[String(first)]
    return place === undefined ? path : [place]
  }
  return { config, at }
}
