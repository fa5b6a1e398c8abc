// Converts resources of the fluent-operator to the Fluent Bit sections that the operator would generate. Filters and outputs are sorted by
// name, as the operator does.

import type { Gap, NamedText, SecretKey } from '../draft.ts'
import { innerTexts } from '../inner.ts'
import { below, flagOf, isList, isMap, itemsOf, pairsOf, plain, type Tree, textOf, textsOf } from '../loki/tree.ts'
import { treesOf } from '../loki/yaml.ts'
import type { Described } from '../page.ts'
import { conditionKey, type Entry, type Section } from './sections.ts'
import { isSelected } from './selectors.ts'

const group = /^\s*(?:- +)?apiVersion:\s*["']?(?:fluentbit\.fluent\.io|logging\.kubesphere\.io)\//m

/** Whether a text contains resources of the fluent-operator. */
export function holdsResources({ file, text }: NamedText): boolean {
  return /\.(?:ya?ml|json)$/i.test(file) && (group.test(text) || /"apiVersion":\s*"fluentbit\.fluent\.io\//.test(text))
}

/** The counterpart of each kind. */
export const resourceKinds: readonly Described[] = [
  { name: 'ClusterInput', becomes: 'a source, as the inputs below', options: {} },
  {
    name: 'ClusterFilter, Filter',
    becomes:
      'a transform for each item of `filters`, in the order of resource names; that of a Filter applies to its namespace',
    options: {},
  },
  {
    name: 'ClusterOutput, Output',
    becomes: 'a sink, as the outputs below; an Output also gets a filter by its namespace',
    options: {},
  },
  {
    name: 'ClusterParser, ClusterMultilineParser, Parser, MultilineParser',
    becomes: 'parts of transforms and sources',
    options: {},
  },
  {
    name: 'FluentBit, ClusterFluentBitConfig, FluentBitConfig',
    becomes: 'nothing: Penstock has its own agents',
    options: {},
  },
]

/** Plugins whose names differ by more than case and underscores. */
const plugins: Readonly<Record<string, string>> = {
  fluentBitMetrics: 'fluentbit_metrics',
  prometheusScrapeMetrics: 'prometheus_scrape',
  openTelemetry: 'opentelemetry',
  cloudWatch: 'cloudwatch_logs',
  firehose: 'kinesis_firehose',
  kinesis: 'kinesis_streams',
  azureLogAnalytics: 'azure',
  influxDB: 'influxdb',
}

/** Options whose names differ by more than case and underscores. */
const keys: Readonly<Record<string, string>> = {
  refreshIntervalSeconds: 'refresh_interval',
  rotateWaitSeconds: 'rotate_wait',
  ignoredOlder: 'ignore_older',
  dbSync: 'db.sync',
  multilineFlushSeconds: 'multiline_flush',
  dockerModeFlushSeconds: 'docker_mode_flush',
  multilineParser: 'multiline.parser',
  storageType: 'storage.type',
  pauseOnChunksOverlimit: 'storage.pause_on_chunks_overlimit',
  totalLimitSize: 'storage.total_limit_size',
  httpPassword: 'http_passwd',
  logstashDateFormat: 'logstash_dateformat',
  k8sLoggingParser: 'k8s-logging.parser',
  k8sLoggingExclude: 'k8s-logging.exclude',
  tlsVerify: 'tls.verify',
  tlsDebug: 'tls.debug',
  uuidKeys: 'uuid_key',
  removeKeys: 'remove_key',
  allowlistKeys: 'allowlist_key',
  whitelistKeys: 'whitelist_key',
  records: 'record',
  headers: 'header',
  eventFields: 'event_field',
  structuredMetadataKeys: 'structured_metadata_map_keys',
  emitterStorageType: 'emitter_storage.type',
}

/** Lists that become one value with commas. Other lists become a repeated key. */
const joined: ReadonlySet<string> = new Set([
  ...['loki.labels', 'loki.labelKeys', 'loki.removeKeys', 'loki.structuredMetadataKeys'],
])

/** `aB` becomes `a_b`, as options of the resources do. */
export const snake = (name: string) =>
  name
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replace(/([A-Z]+)([A-Z][a-z])/g, '$1_$2')
    .toLowerCase()

interface Resource {
  readonly kind: string
  readonly name: string
  readonly namespace: string | undefined
  readonly tree: Tree
}

export interface Resources {
  readonly sections: readonly Section[]
  /** Scripts in ConfigMaps in the same files. */
  readonly scripts: readonly (NamedText & { readonly name: string })[]
  readonly secrets: ReadonlyMap<string, SecretKey>
}

export function sectionsOf(files: readonly NamedText[], gaps: Gap[]): Resources {
  const maker = new Maker(gaps)
  const resources = files.flatMap((file) => treesOf(file, gaps).flatMap(resourcesIn))
  const byName = resources.toSorted((one, next) => ordinal(one) - ordinal(next) || (one.name < next.name ? -1 : 1))
  for (const resource of byName) {
    if (isSelected(resource, resources)) maker.take(resource)
    else maker.leaveOut(resource)
  }
  maker.addInput()
  const scripts = files.flatMap((file) => innerTexts(file, (text) => /^\s*function\s+[\w.]+\s*\(/m.test(text)))
  return { sections: maker.sections, scripts, secrets: maker.secrets }
}

function ordinal({ tree }: Resource): number {
  return Number(textOf(below(tree, 'spec', 'ordinal')) ?? 0)
}

function resourcesIn(tree: Tree): readonly Resource[] {
  const kind = textOf(below(tree, 'kind')) ?? ''
  if (kind === 'List') return itemsOf(below(tree, 'items')).flatMap(resourcesIn)
  if (!group.test(`apiVersion: ${textOf(below(tree, 'apiVersion'))}`)) return []
  const name = textOf(below(tree, 'metadata', 'name')) ?? kind.toLowerCase()
  return [{ kind, name, namespace: textOf(below(tree, 'metadata', 'namespace')), tree }]
}

class Maker {
  readonly sections: Section[] = []
  readonly secrets = new Map<string, SecretKey>()
  readonly #gaps: Gap[]

  constructor(gaps: Gap[]) {
    this.#gaps = gaps
  }

  take(resource: Resource): void {
    const { kind, tree } = resource
    const spec = below(tree, 'spec')
    if (!isMap(spec)) {
      const nearest = 'Convert the Secret with the configuration that the operator generates from them.'
      this.#gap(tree, `${kind} ${resource.name}`, 'it has no `spec`', nearest)
    } else if (kind === 'ClusterInput' || kind === 'Input') this.#plugin('input', resource, spec, spec)
    else if (kind === 'ClusterOutput' || kind === 'Output') this.#plugin('output', resource, spec, spec)
    else if (kind === 'ClusterFilter' || kind === 'Filter') {
      for (const filter of itemsOf(below(spec, 'filters'))) this.#plugin('filter', resource, spec, filter)
    } else if (kind === 'ClusterParser' || kind === 'Parser') this.#parser(resource, spec)
    else if (kind === 'ClusterMultilineParser' || kind === 'MultilineParser') this.#multiline(resource, spec)
    else {
      const nearest =
        'The Agent `node` of the installation runs Pipelines. Set resources and tolerations there, or in another Agent.'
      this.#gap(
        tree,
        `${kind} ${resource.name}`,
        'it describes agents, which are not part of a Pipeline',
        nearest,
        true,
      )
    }
  }

  leaveOut({ kind, name, tree }: Resource): void {
    const reason = 'the configuration of the operator does not select its labels'
    this.#gap(tree, `${kind} ${name}`, reason, 'Nothing to do: it had no effect.', true)
  }

  /** The input that the operator installs, for files with resources of a namespace only. */
  addInput(): void {
    const own = this.sections.find(({ namespace }) => namespace !== undefined)
    if (own === undefined || this.sections.some(({ kind }) => kind === 'input')) return
    const add = (kind: string, values: Readonly<Record<string, string>>): Section => {
      const entries = Object.entries(values).map(([key, value]) => ({ file: own.file, line: own.line, key, value }))
      return { file: own.file, line: own.line, kind, entries }
    }
    const path = '/var/log/containers/*.log'
    this.sections.unshift(
      add('input', { name: 'tail', alias: 'pods', tag: 'kube.*', path, 'multiline.parser': 'docker, cri' }),
      add('filter', { name: 'kubernetes', match: 'kube.*' }),
    )
    this.#gaps.push({
      file: own.file,
      line: own.line,
      subject: 'inputs',
      reason: 'the files name no input; the conversion reads the logs of pods, with their metadata',
      nearest: 'Convert them together with the ClusterInputs and ClusterFilters of the cluster.',
    })
  }

  #gap(place: Tree, subject: string, reason: string, nearest: string, isReplaced = false): void {
    const gap: Gap = { file: place.file, line: place.line, subject, reason, nearest }
    this.#gaps.push(isReplaced ? { ...gap, isReplaced } : gap)
  }

  /** A section for each plugin in a table. Options that all plugins have are in `spec`. */
  #plugin(kind: string, resource: Resource, spec: Tree, table: Tree): void {
    const shared: Entry[] = []
    for (const [from, to] of [
      ['match', 'match'],
      ['matchRegex', 'match_regex'],
      ['alias', 'alias'],
      ['retry_limit', 'retry_limit'],
    ] as const) {
      const found = below(spec, from)
      if (found !== undefined) shared.push(entry(found, to, textOf(found) ?? ''))
    }
    const isOfNamespace = resource.kind === 'Filter' || resource.kind === 'Output'
    const only = isOfNamespace ? { namespace: resource.namespace ?? 'default' } : {}
    if (isOfNamespace && resource.namespace === undefined) {
      this.#gap(
        resource.tree,
        `${resource.kind} ${resource.name}`,
        'it applies to the logs of its namespace, but the file does not name one',
        'The conversion uses the namespace `default`. Add the namespace to the resource, and convert again.',
      )
    }
    for (const [key, options] of isMap(table) ? table.value : []) {
      if (!isMap(options)) continue
      if (key === 'customPlugin') {
        this.#custom(kind, options, shared, only)
        continue
      }
      if (kind !== 'filter' && key === 'processors') continue
      if (kind !== 'filter' && key === 'selector') {
        this.#gap(options, `${kind} ${key}`, 'labels of resources do not select plugins here', 'Remove it.')
        continue
      }
      const name = plugins[key] ?? snake(key)
      const named = shared.some((each) => each.key === 'alias') ? [] : [entry(options, 'alias', resource.name)]
      const own = kind === 'filter' ? [] : named
      const entries = [entry(options, 'name', name), ...own, ...shared, ...this.#options(key, options)]
      const processors = kind === 'filter' ? [] : this.#processors(below(table, 'processors'))
      const worked = processors.length === 0 ? {} : { processors }
      this.sections.push({ file: options.file, line: options.line, kind, entries, ...only, ...worked })
    }
  }

  #processors(table: Tree | undefined): readonly Section[] {
    return itemsOf(below(table, 'logs')).map((item) => {
      const entries = (isMap(item) ? [...item.value] : []).flatMap(([key, value]) =>
        key === 'condition' && isMap(value)
          ? [entry(value, conditionKey, JSON.stringify(plain(value)))]
          : this.#option('', key, value),
      )
      return { file: item.file, line: item.line, kind: 'processor', entries }
    })
  }

  /** A section from text in the classic syntax, or from a table. */
  #custom(kind: string, options: Tree, shared: readonly Entry[], only: Pick<Section, 'namespace'>): void {
    const text = below(options, 'config')
    const lines = (textOf(text) ?? '').split('\n')
    const classic = lines.flatMap((line, index): Entry[] => {
      const [, key, value = ''] = /^\s*([^#\s]\S*)\s*(.*?)\s*$/.exec(line) ?? []
      if (key === undefined || text === undefined) return []
      return [{ file: text.file, line: text.line + (lines.length > 1 ? index + 1 : 0), key: key.toLowerCase(), value }]
    })
    const table = pairsOf(below(options, 'yamlConfig')).map(([key, value, tree]) =>
      entry(tree, key.toLowerCase(), value),
    )
    const entries = [...classic, ...table]
    const more = shared.filter(({ key }) => !entries.some((each) => each.key === key))
    this.sections.push({ file: options.file, line: options.line, kind, entries: [...more, ...entries], ...only })
  }

  #options(plugin: string, options: Tree): Entry[] {
    const entries: Entry[] = []
    for (const [key, item] of isMap(options) ? options.value : []) {
      if (plugin === 'modify' && (key === 'rules' || key === 'conditions')) {
        for (const rule of itemsOf(item)) entries.push(...modifications(rule, key === 'conditions'))
      } else if (key === 'tls' && isMap(item)) {
        entries.push(entry(item, 'tls', 'on'))
        for (const [name, value] of item.value)
          entries.push(entry(value, `tls.${name === 'keyPassword' ? 'key_passwd' : snake(name)}`, this.#value(value)))
      } else if (key === 'networking' && isMap(item)) {
        for (const [name, value] of item.value)
          entries.push(entry(value, `net.${snake(name).replace(/^dns_/, 'dns.')}`, this.#value(value)))
      } else if (key === 'script') {
        entries.push(entry(item, 'script', textOf(below(item, 'key')) ?? textOf(item) ?? ''))
      } else if (key === 'disableInotifyWatcher') {
        entries.push(entry(item, 'inotify_watcher', flagOf(item) === true ? 'off' : 'on'))
      } else if (key === 'parserN') {
        for (const [index, parser] of itemsOf(item).entries())
          entries.push(entry(parser, `parser_${index + 1}`, textOf(parser) ?? ''))
      } else if (plugin === 'parser' && key === 'parser') {
        for (const name of (textOf(item) ?? '').split(',')) entries.push(entry(item, 'parser', name.trim()))
      } else if (plugin === 'multiline' && key === 'parser')
        entries.push(entry(item, 'multiline.parser', textOf(item) ?? ''))
      else if (plugin === 'multiline' && key === 'keyContent')
        entries.push(entry(item, 'multiline.key_content', textOf(item) ?? ''))
      else entries.push(...this.#option(plugin, key, item))
    }
    return entries
  }

  #option(plugin: string, key: string, item: Tree): Entry[] {
    const name = this.#nameOf(plugin, key)
    if (isList(item)) {
      const texts = textsOf(item)
      if (joined.has(`${plugin}.${key}`)) return [entry(item, name, texts.join(','))]
      return item.value.map((each) => entry(each, name, this.#value(each)))
    }
    const isObject = isMap(item) && below(item, 'valueFrom') === undefined
    if (!isObject) return [entry(item, name, this.#value(item))]
    if (plugin === 'loki')
      return [
        entry(
          item,
          name,
          pairsOf(item)
            .map(([word, value]) => `${word}=${value}`)
            .join(','),
        ),
      ]
    return pairsOf(item).map(([word, value, tree]) => entry(tree, name, `${word} ${value}`))
  }

  #nameOf(plugin: string, key: string): string {
    if (plugin === 'loki' && key === 'removeKeys') return 'remove_keys'
    if (key === 'rules') return 'rule'
    return keys[key] ?? snake(key)
  }

  /** A text, or the variable for the key of a Secret. */
  #value(item: Tree): string {
    const reference = below(item, 'valueFrom', 'secretKeyRef')
    if (reference === undefined) return textOf(item) ?? ''
    const [name = '', key = ''] = [textOf(below(reference, 'name')), textOf(below(reference, 'key'))]
    const variable = `SECRET_${name}_${key}`.toUpperCase().replace(/[^A-Z0-9]+/g, '_')
    this.secrets.set(variable, { name, key, file: reference.file, line: reference.line })
    return `\${${variable}}`
  }

  #parser({ name, tree }: Resource, spec: Tree): void {
    const formats = ['json', 'regex', 'ltsv', 'logfmt'].filter((format) => below(spec, format) !== undefined)
    for (const format of formats) {
      const options = below(spec, format) ?? tree
      const decoders = itemsOf(below(spec, 'decoders')).flatMap((decoder) => this.#options('', decoder))
      const entries = [
        entry(options, 'name', name),
        entry(options, 'format', format),
        ...this.#options('', options),
        ...decoders,
      ]
      this.sections.push({ file: options.file, line: options.line, kind: 'parser', entries })
    }
  }

  #multiline({ name, tree }: Resource, spec: Tree): void {
    const text = (rule: Tree, key: string) => textOf(below(rule, key)) ?? ''
    const rules = itemsOf(below(spec, 'rules')).map((rule) =>
      entry(rule, 'rule', `"${text(rule, 'start')}" "${text(rule, 'regex')}" "${text(rule, 'next')}"`),
    )
    const options = pairsOf(spec).filter(([key]) => key !== 'rules')
    const entries = [
      entry(tree, 'name', name),
      ...options.map(([key, value, item]) => entry(item, snake(key), value)),
      ...rules,
    ]
    this.sections.push({ file: tree.file, line: tree.line, kind: 'multiline_parser', entries })
  }
}

const entry = ({ file, line }: Tree, key: string, value: string): Entry => ({ file, line, key, value })

/** Rules or conditions of the filter `modify`: an operator, and a key with or without a value. */
function modifications(rule: Tree, isCondition: boolean): Entry[] {
  return (isMap(rule) ? [...rule.value] : []).flatMap(([key, item]) => {
    const word = snake(key)
    const made = (value: string, tree: Tree) =>
      isCondition ? entry(tree, 'condition', `${word} ${value}`) : entry(tree, word, value)
    return isMap(item)
      ? pairsOf(item).map(([name, value, tree]) => made(`${name} ${value}`.trim(), tree))
      : [made(textOf(item) ?? '', item)]
  })
}
