// The setting `log_schema` of Vector, which renames the fields that sources set and sinks read. A Pipeline has the default names, so a
// transform after each source renames the fields, and one before a sink gives those it reads their default names.

import { fieldLiteral } from '@penstock/agent/config'
import { isTable } from '@penstock/agent/schema'
import type { Table } from '../documents.ts'
import type { Step } from '../draft.ts'
import { namesIn } from './tables.ts'

const defaults = { message: 'message', timestamp: 'timestamp', host: 'host', source_type: 'source_type' } as const
type Name = keyof typeof defaults
const names = Object.keys(defaults) as readonly Name[]

/** Sinks that put the message, time and host into members of their own. */
const consuming: ReadonlySet<string> = new Set([
  'monitor_a_logs',
  'logsvc_a',
  'logsvc_a_old',
  'observability_d',
  'monitor_c_logs',
  'siem_unstructured',
])

/** Whether a template contains a part of the time of an event. */
const isDated = (template: unknown) => typeof template === 'string' && /%[a-zA-Z]/.test(template.replaceAll('%%', ''))

export class LogSchema {
  /** The paths of fields whose names differ from the default. */
  readonly #paths = new Map<Name, readonly string[]>()
  /** Whether programs find the reason of a dropped event under another name. */
  readonly renamesMetadata: boolean

  constructor(given: unknown) {
    const table = isTable(given) ? given : {}
    for (const name of names) {
      const value = table[`${name}_key`]
      const path = typeof value === 'string' ? namesIn(value) : []
      if (path.length > 0 && path.join('.') !== name) this.#paths.set(name, path)
    }
    const metadata = table['metadata_key']
    this.renamesMetadata = typeof metadata === 'string' && metadata.replace(/^\./, '') !== 'metadata'
  }

  get isDefault(): boolean {
    return this.#paths.size === 0 && !this.renamesMetadata
  }

  /** The path of the message in a program. */
  get message(): string {
    return this.#at('message')
  }

  /** The path of the type of the source in a program. */
  get sourceType(): string {
    return this.#at('source_type')
  }

  /** The transforms after a source of lines. */
  ofText(): readonly Step[] {
    return this.#moves(names, (name) => [fieldLiteral([name]), this.#at(name)])
  }

  /** The input of a unit test that is a line. */
  line(text: string): object {
    const path = this.#paths.get('message')
    if (path === undefined) return { raw: text }
    return { log: path.toReversed().reduce<unknown>((value, name) => ({ [name]: value }), text) }
  }

  /** The transforms after a component that sets such fields. @param gap reports an event that may differ */
  after(
    { kind, type, outputs }: { readonly kind: string; readonly type: string; readonly outputs?: readonly string[] },
    config: Table,
    gap: (option: string, reason: string, nearest: string) => void,
  ): readonly Step[] {
    if (type === 'remap' && this.renamesMetadata && config['reroute_dropped'] === true)
      gap(
        'reroute_dropped',
        'the reason of a dropped event is in `.metadata`',
        'Rename the field after the output `dropped`.',
      )
    if (type !== 'metric_to_log' && (kind !== 'source' || outputs?.includes('log') !== true)) return []
    const { decoding } = config
    const codec = isTable(decoding) ? decoding['codec'] : undefined
    const isText = codec === undefined || codec === 'bytes'
    if (isText) return this.ofText()
    const uncertain = names.filter((name) => name !== 'source_type' && this.#paths.has(name))
    if (uncertain.length > 0) {
      const reason = '`log_schema` renames fields of the agent, but not those of a decoded message with the same name'
      const fields = uncertain.map((name) => `\`.${name}\``).join(', ')
      gap('decoding', reason, `Rename those of the fields ${fields} that the messages do not contain.`)
    }
    return this.#moves(['source_type'], (name) => [fieldLiteral([name]), this.#at(name)])
  }

  /** Gives fields that a sink reads their default names, and changes its options so that it delivers the same as before. */
  beforeSink(type: string, config: Record<string, unknown>): readonly Step[] {
    if (this.#paths.size === 0) return []
    if (consuming.has(type)) return this.#back(['message', 'timestamp', 'host'])
    if (type === 'logsvc_b_logs') {
      for (const name of ['timestamp', 'host'] as const)
        if (this.#paths.has(name)) config[`${name}_key`] ??= this.#at(name).slice(1)
      return []
    }
    if (type === 'cloud_monitor_logs') {
      if (this.#paths.has('timestamp')) config['time_generated_key'] ??= this.#at('timestamp').slice(1)
      return []
    }
    const { encoding } = config
    const codec = isTable(encoding) ? encoding['codec'] : encoding
    const ofText = codec === 'text' || codec === 'raw_message' ? this.#copy('message') : []
    if (!this.#paths.has('timestamp')) return ofText
    if (type === 'log_aggregator' && config['remove_timestamp'] !== false)
      return [...ofText, ...this.#back(['timestamp'])]
    if (type === 'search_engine' && /^data_stream$/.test(String(config['mode']))) return this.#back(['timestamp'])
    if (!this.#readsTime(type, config)) return ofText
    if (ofText.length === 0) withoutField(config, 'timestamp')
    return [...ofText, ...this.#copy('timestamp')]
  }

  /** The options of a sink whose envelope has the time and host of an event. */
  ofEnvelope(): Table {
    const keys = (['timestamp', 'host'] as const).filter((name) => this.#paths.has(name))
    return Object.fromEntries(keys.map((name) => [`${name}_key`, this.#paths.get(name)?.join('.')]))
  }

  #readsTime(type: string, config: Table): boolean {
    const { bulk, uri, path } = config
    if (type === 'search_engine') return !isTable(bulk) || bulk['index'] === undefined || isDated(bulk['index'])
    return ['log_aggregator', 'message_broker'].includes(type) || isDated(uri) || isDated(path)
  }

  #at(name: Name): string {
    return fieldLiteral(this.#paths.get(name) ?? [name])
  }

  #back(wanted: readonly Name[]): readonly Step[] {
    return this.#moves(wanted, (name) => [this.#at(name), fieldLiteral([name])])
  }

  #moves(wanted: readonly Name[], way: (name: Name) => readonly [from: string, to: string]): readonly Step[] {
    const lines = wanted
      .filter((name) => this.#paths.has(name))
      .map(way)
      .map(([from, to]) => `if exists(${from}) { ${to} = del(${from}) }`)
    return lines.length === 0 ? [] : [{ type: 'remap', text: lines.join('\n') }]
  }

  #copy(name: Name): readonly Step[] {
    if (!this.#paths.has(name)) return []
    const [from, to] = [this.#at(name), fieldLiteral([name])]
    return [{ type: 'remap', text: `if exists(${from}) { ${to} = ${from} }` }]
  }
}

/** Keeps a field out of the delivered events. */
export function withoutField(config: Record<string, unknown>, name: string): void {
  const encoding = isTable(config['encoding'])
    ? config['encoding']
    : config['encoding'] === undefined
      ? {}
      : { codec: config['encoding'] }
  if (encoding['only_fields'] !== undefined) return
  const given = Array.isArray(encoding['except_fields']) ? encoding['except_fields'] : []
  config['encoding'] = { ...encoding, except_fields: [...given, name] }
}
