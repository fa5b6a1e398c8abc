// Replaces sink options that Vector accepts and the agent would reject, and references to secrets of an agent.

import { findComponent, minDiskBuffer, optionsOf } from '@penstock/agent/config'
import { type AnyDeclaration, isTable } from '@penstock/agent/schema'
import type { Table } from '../documents.ts'
import type { Kind } from '../draft.ts'
import { conditionOf, isOfFields } from './conditions.ts'
import { settings } from './settings.ts'
import { merged, withScheme } from './tables.ts'

/** Reports the replacement of the option at a path. */
type Note = (path: readonly string[], reason: string, nearest: string, isReplaced: boolean) => void

/** Removes the options of a source that the agent sets itself. */
export function adjustSource(config: Record<string, unknown>, note: Note): void {
  if (!('data_dir' in config)) return
  note(['data_dir'], 'the cluster provides it', settings['data_dir']?.becomes ?? '', true)
  delete config['data_dir']
}

/** Moves the fields of a pod to the place where `kubernetes_logs` puts them, beside those that options have put there. */
export const podFields = (options: Table) =>
  /"\.?kubernetes\b/.test(JSON.stringify(options))
    ? 'if exists(.orchestrator) { .kubernetes = merge(object(.kubernetes) ?? {}, object!(del(.orchestrator)), deep: true) }'
    : 'if exists(.orchestrator) { .kubernetes = del(.orchestrator) }'

const ofItself = /^metadata\.name\s*!=\s*\$\{?\w*POD_NAME\}?$/

/**
 * The component without references of an agent to itself: `self_node_name` from a variable, as in the default of Vector, because each agent
 * knows its own node, and a selector that leaves out its own pod, because agents never read the logs of agents.
 */
export function withoutSelf<Component extends { readonly options: Table }>(old: Component): Component {
  const { self_node_name: node, extra_field_selector: selector, ...options } = old.options
  const parts = typeof selector === 'string' ? selector.split(',').map((part) => part.trim()) : []
  const left = parts.filter((part) => !ofItself.test(part))
  return {
    ...old,
    options: {
      ...options,
      ...(node !== undefined && !(typeof node === 'string' && node.includes('$')) && { self_node_name: node }),
      ...(left.length < parts.length
        ? left.length > 0 && { extra_field_selector: left.join(',') }
        : selector !== undefined && { extra_field_selector: selector }),
    },
  }
}

/** Defaults of Vector that contain its name, by the kind and type of the counterpart. */
const namedDefaults: Readonly<Record<string, Table>> = {
  'source amqp': { queue: 'vector', consumer: 'vector' },
  'source internal_metrics': { namespace: 'vector' },
  'sink search_engine': { bulk: { index: 'vector-%Y.%m.%d' } },
  'sink logsvc_a': { default_app: 'vector' },
  'sink logsvc_a_old': { default_app: 'vector' },
}

/** The options with these defaults, so that queues, indices and metrics keep their names. */
export function withNamedDefaults(
  kind: string,
  type: string,
  config: Record<string, unknown>,
): Record<string, unknown> {
  // In the other mode, the name of the data stream takes the place of the index.
  const isOtherMode = type === 'search_engine' && (config['mode'] ?? 'bulk') !== 'bulk'
  return isOtherMode ? config : merged(namedDefaults[`${kind} ${type}`] ?? {}, config)
}

/** The program of a condition with predicates on fields, which are the default in old versions. */
export function adjustCondition(config: Record<string, unknown>): void {
  const { condition } = config
  if (isOfFields(condition)) config['condition'] = conditionOf(condition) ?? condition
}

/** Adjusts buffer sizes to the limits of the agent. */
function adjustBuffer(config: Record<string, unknown>, note: Note): void {
  const { buffer } = config
  // A chain with one buffer is the same as the buffer.
  if (Array.isArray(buffer) && buffer.length === 1 && isTable(buffer[0])) config['buffer'] = buffer[0]
  const own = config['buffer']
  if (!isTable(own) || !/^disk/.test(String(own['type'])) || typeof own['max_size'] !== 'number') return
  if (own['max_size'] >= minDiskBuffer) return
  config['buffer'] = merged(own, { max_size: minDiskBuffer })
  const reason = `a disk buffer must have at least ${minDiskBuffer} bytes; found ${own['max_size']}`
  note(['buffer', 'max_size'], reason, 'The minimum replaces it.', true)
}

/** Templates in which a backslash stands before the dots of a name, as in old versions: such a name is in quotes. */
export function withQuotedNames(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withQuotedNames)
  if (isTable(value)) {
    return Object.fromEntries(
      Object.entries(value).map(([name, below]) => [String(withQuotedNames(name)), withQuotedNames(below)]),
    )
  }
  if (typeof value !== 'string') return value
  return value.replace(/\{\{\s*([^{}"]*\\\.[^{}"]*?)\s*\}\}/g, (_, path: string) => {
    const names = path
      .split(/(?<!\\)\./)
      .map((name) => (name.includes('\\.') ? JSON.stringify(name.replaceAll('\\.', '.')) : name))
    return `{{ ${names.join('.')} }}`
  })
}

/** Gives options of a sink the meaning that they have in Vector. @param type its type in Vector */
export function adjustSink(type: string, config: Record<string, unknown>, note: Note): void {
  adjustEncoding(type, config)
  adjustBuffer(config, note)
  if (type === 'http') adjustBody(config, note)
  // The old agent does not ask a service without versions for its version.
  if (config['opensearch_service_type'] === 'serverless' && (config['api_version'] ?? 'auto') === 'auto')
    config['api_version'] = 'v8'
  if (type !== 'loki') return
  if (typeof config['endpoint'] === 'string') config['endpoint'] = withScheme(config['endpoint'])
  if (config['encoding'] === undefined) {
    config['encoding'] = { codec: 'json' }
    note(['encoding'], 'the option is missing, and old versions sent JSON', 'It is set to `codec: json`.', true)
  }
  // Vector sends late lines since version 0.31; the sink discards them by default.
  config['out_of_order_action'] ??= 'accept'
  if (typeof config['tenant_id'] !== 'string' || !config['tenant_id'].includes('{{')) return
  const reason =
    'the sink discards an event without the fields of its tenant, which the old agent sends without a tenant'
  note(['tenant_id'], reason, 'If some events have no such field, set it in a `remap` transform.', true)
}

/**
 * Gives a request the form that it has in Vector: events of JSON with commas between them are an array, and the texts around the events are
 * only around an array.
 */
function adjustBody(config: Record<string, unknown>, note: Note): void {
  const { encoding, framing } = config
  const codec = isTable(encoding) ? encoding['codec'] : encoding
  const separated = isTable(framing) && framing['method'] === 'character_delimited' && framing['character_delimited']
  if (codec === 'json' && isTable(separated) && [',', 44].some((comma) => separated['delimiter'] === comma))
    delete config['framing']
  if (codec === 'json' && config['framing'] === undefined) return
  for (const name of ['payload_prefix', 'payload_suffix']) {
    if (config[name] === undefined || config[name] === '') continue
    delete config[name]
    note([name], 'the old agent writes it only around an array of JSON', 'It is left out.', true)
  }
}

/** Codecs that a sink names differently in Penstock, with the same result. */
function adjustEncoding(type: string, config: Record<string, unknown>): void {
  const { encoding } = config
  const codec = isTable(encoding) ? encoding['codec'] : encoding
  if (type === 'loki' && codec === 'raw_message')
    config['encoding'] = merged(isTable(encoding) ? encoding : {}, { codec: 'text' })
  if (type !== 'new_relic_logs') return
  // The older sink was for logs only, and had an option for the codec of its bodies, which are always JSON.
  config['api'] ??= 'logs'
  if (codec !== 'json') return
  const { codec: _, ...rest } = isTable(encoding) ? encoding : {}
  config['encoding'] = rest
}

/** Global settings of the agent that are component options in Penstock, with the components that have them. */
const passedOn: Readonly<Record<string, { readonly kind: Kind; readonly types?: readonly string[] }>> = {
  timezone: { kind: 'transforms', types: ['remap'] },
  acknowledgements: { kind: 'sinks' },
  proxy: { kind: 'sinks' },
}

export const isPassedOn = (name: string) => Object.hasOwn(passedOn, name)

/** Acknowledgements have no effect if no source waits for them, and `lint` warns of the option. */
function isInEffect(name: string, olds: Iterable<{ readonly kind: Kind; readonly type: string }>): boolean {
  if (name !== 'acknowledgements') return true
  const sources = [...olds].flatMap(({ kind, type }) =>
    kind === 'sources' ? (findComponent('source', type) ?? []) : [],
  )
  return sources.some((source) => source.kind === 'source' && source.acknowledges)
}

/** Adds the global settings to a component that has such options, unless it sets its own. @param olds all components */
export function passOn(
  agent: Table,
  olds: Iterable<{ readonly kind: Kind; readonly type: string }>,
  declaration: AnyDeclaration,
  config: Record<string, unknown>,
): void {
  for (const [name, { kind, types }] of Object.entries(passedOn)) {
    if (kind !== `${declaration.kind}s` || agent[name] === undefined || types?.includes(declaration.type) === false)
      continue
    if (Object.hasOwn(optionsOf(declaration).members, name) && isInEffect(name, olds)) config[name] ??= agent[name]
  }
  const { healthchecks } = agent
  const isOff = isTable(healthchecks) && healthchecks['enabled'] === false && declaration.kind === 'sink'
  if (isOff && Object.hasOwn(optionsOf(declaration).members, 'healthcheck')) config['healthcheck'] = { enabled: false }
}

/** Replaces references to secret backends of the agent with references to the Secret of the Pipeline. */
export function withoutBackends(value: unknown, onKey: (key: string) => void): unknown {
  if (typeof value === 'string') {
    return value.replace(/SECRET\[([\w-]+)\.([^\]]+)\]/g, (_, backend: string, name: string) => {
      const key = `${backend}_${name}`.replace(/\W/g, '_')
      onKey(key)
      return `SECRET[env.${key}]`
    })
  }
  if (Array.isArray(value)) return value.map((item) => withoutBackends(item, onKey))
  if (!isTable(value)) return value
  return Object.fromEntries(Object.entries(value).map(([name, below]) => [name, withoutBackends(below, onKey)]))
}
