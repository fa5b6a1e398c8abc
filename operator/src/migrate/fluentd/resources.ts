// Converts resources of the logging-operator to the Fluentd elements that the operator would generate: a source for each flow, a label with
// the filters of the flow, and a label for each output.

import type { Draft, Gap, NamedText, SecretKey, Step } from '../draft.ts'
import { below, flagOf, isList, isMap, itemsOf, type Place, plain, type Tree, textOf, textsOf } from '../loki/tree.ts'
import { treesOf } from '../loki/yaml.ts'
import type { Described } from '../page.ts'
import { holdsChartValues, resourcesOfValues } from './chart-values.ts'
import { type Collector, collectorOf } from './collector.ts'
import { ElementMaker, element, parameter, variableFor } from './element-maker.ts'
import {
  eventPodsOf,
  eventSourceOf,
  filesOf,
  isOfTailers,
  journalsOf,
  selectsFile,
  sourceOf,
  type Tailed,
} from './host-tailers.ts'
import { selectionOf } from './selection.ts'
import type { Element, Parameter } from './syntax.ts'
import { conditionOf as conditionOfMatch, filterSteps, outputElements, UnknownSyntax } from './syslog-ng.ts'

const group = /^\s*(?:- +)?apiVersion:\s*["']?logging\.banzaicloud\.io\//m

/** Whether a text contains resources of the logging-operator, or values of its charts. */
export function holdsResources({ file, text }: NamedText): boolean {
  if (!/\.(?:ya?ml|json)$/i.test(file)) return false
  return group.test(text) || /"apiVersion":\s*"logging\.banzaicloud\.io\//.test(text) || holdsChartValues(text)
}

/** The counterpart of each kind. */
export const resourceKinds: readonly Described[] = [
  {
    name: 'Flow, ClusterFlow',
    becomes: 'an `orchestrator_logs` source with a selector, and a transform for each filter',
    options: {
      match: '`selector` of the source; a filter transform if the order of rules or the names of hosts matter',
      selectors: '`selector.pods`',
      filters: 'as the filters of Fluentd below',
      localOutputRefs: 'the inputs of sinks',
      globalOutputRefs: 'the inputs of sinks',
      outputRefs: 'the inputs of sinks',
      flowLabel: 'the inputs of its filters: outputs `relabel` name it',
      includeLabelInRouter: 'whether the flow has a source of its own',
    },
    itself: {
      loggingRef: 'all agents run the Pipeline',
    },
  },
  {
    name: 'SyslogNGFlow, SyslogNGClusterFlow',
    becomes: 'an `orchestrator_logs` source, and a transform for `match` and for each filter',
    options: {
      match: 'a filter transform',
      filters: 'transforms: `match`, `rewrite`, and `parser` with `regexp`; other parsers are gaps',
      localOutputRefs: 'the inputs of sinks',
      globalOutputRefs: 'the inputs of sinks',
    },
  },
  {
    name: 'SyslogNGOutput, SyslogNGClusterOutput',
    becomes:
      'a sink for `elasticsearch`, `http`, `loki`, `splunk_hec_event` and `file`, after a transform for the template; a gap for other destinations',
    options: {},
  },
  {
    name: 'HostTailer',
    becomes: 'a `file` source for each of its `fileTailers` in each flow that selects its pods; a gap for the journal',
    options: {},
  },
  {
    name: 'EventTailer',
    becomes: 'an `orchestrator_events` source in each flow that selects its pod, and a line for each Event',
    options: {},
  },
  { name: 'Output, ClusterOutput', becomes: 'a sink, as the matches of Fluentd below', options: {} },
  {
    name: 'Logging',
    becomes: 'its `globalFilters` run before the filters of each flow; Penstock has its own agents',
    options: {
      globalFilters: 'transforms',
      defaultFlow: 'a gap if there are flows; otherwise a flow for all pods',
      errorOutputRef: 'the sink for events that a `parser` filter does not read',
      fluentbit:
        'options of the sources from `inputTail`, and transforms from `filterKubernetes`, `filterModify` and `filterGrep`; so do those of a `FluentbitAgent`',
    },
  },
]

/** Kinds that describe agents. */
const ofAgents: ReadonlySet<string> = new Set([
  'FluentbitAgent',
  'NodeAgent',
  'FluentdConfig',
  'SyslogNGConfig',
  'LoggingRoute',
])

const ofAgent = 'it describes agents, which are not part of a Pipeline'
const ofCollector = 'apart from its input and its filters, it describes agents, which are not part of a Pipeline'

/** Outputs whose plugin has a different name. */
const outputTypes: Readonly<Record<string, string>> = {
  nullout: 'null',
  kafka: 'kafka2',
  azurestorage: 'azure-storage-append-blob',
  cloudwatch: 'cloudwatch_logs',
  kinesisFirehose: 'kinesis_firehose',
  kinesisStream: 'kinesis_streams',
  logz: 'logzio_buffered',
  splunkHec: 'splunk_hec',
  awsElasticsearch: 'aws-elasticsearch-service',
}

const filterTypes: Readonly<Record<string, string>> = {
  detectExceptions: 'detect_exceptions',
  useragent: 'ua_parser',
  enhanceK8s: 'enhance_k8s_metadata',
  sumologic: 'kubernetes_sumologic',
}

/** Tables that become Fluentd elements. Other tables become objects in a parameter. */
const elementNames: Readonly<Record<string, string>> = {
  buffer: 'buffer',
  format: 'format',
  parse: 'parse',
  inject: 'inject',
  auth: 'auth',
  security: 'security',
  labels: 'label',
  records: 'record',
  record: 'record',
  replaces: 'replace',
  regexp: 'regexp',
  exclude: 'exclude',
  and: 'and',
  or: 'or',
  servers: 'server',
  patterns: 'pattern',
  grok_patterns: 'grok',
  // Early versions had a list.
  parsers: 'parse',
}

interface Resource {
  readonly kind: string
  readonly name: string
  readonly namespace: string
  readonly tree: Tree
}

/** The elements that the operator would generate from the resources in files. */
export function elementsOf(files: readonly NamedText[], draft: Draft): readonly Element[] {
  const resources = files.flatMap((file) => treesOf(file, draft.gaps).flatMap((tree) => resourcesIn(tree)))
  return new Maker(resources, draft).elements
}

function resourcesIn(tree: Tree): readonly Resource[] {
  const kind = textOf(below(tree, 'kind')) ?? ''
  if (kind === 'List') return itemsOf(below(tree, 'items')).flatMap(resourcesIn)
  if (!(textOf(below(tree, 'apiVersion')) ?? '').startsWith('logging')) return resourcesOfValues(tree)
  const name = textOf(below(tree, 'metadata', 'name')) ?? kind.toLowerCase()
  return [{ kind, name, namespace: textOf(below(tree, 'metadata', 'namespace')) ?? '', tree }]
}

class Maker {
  readonly elements: Element[] = []
  readonly #resources: readonly Resource[]
  readonly #tailers: readonly Resource[]
  readonly #eventTailers: readonly Resource[]
  readonly #draft: Draft
  readonly #gaps: Gap[]
  readonly #collector: Collector
  /** The namespaces whose flows have an effect; empty for all. */
  readonly #watched: readonly string[]
  readonly #make = new ElementMaker({
    elements: elementNames,
    secret: (reference) => this.#secret(reference),
    gap: (place, subject, reason, nearest) => this.#gap(place, subject, reason, nearest),
  })

  constructor(resources: readonly Resource[], draft: Draft) {
    this.#resources = resources
    this.#draft = draft
    this.#gaps = draft.gaps
    const ofKinds = (...kinds: readonly string[]) => resources.filter(({ kind }) => kinds.includes(kind))
    const loggings = ofKinds('Logging')
    const shared = loggings.flatMap(({ tree }) => itemsOf(below(tree, 'spec', 'globalFilters')))
    const flows = ofKinds('Flow', 'ClusterFlow')
    const [first] = resources.filter(({ kind }) => /Flow$/.test(kind))
    this.#watched = loggings.flatMap(({ tree }) => textsOf(below(tree, 'spec', 'watchNamespaces')))
    this.#collector = collectorOf(resources, first?.tree ?? { file: '', line: 1 }, this.#gaps)
    if (flows[0] !== undefined && this.#collector.key === undefined) {
      const reason = 'the line is in `message`, as with containerd; with Docker, and in early versions, it is in `log`'
      const nearest = 'Rename the field after the sources if filters or queries use `log`.'
      this.#gap(flows[0].tree, 'records', reason, nearest, true)
    }
    this.#tailers = ofKinds('HostTailer')
    this.#eventTailers = ofKinds('EventTailer')
    for (const flow of flows) this.#flow(flow, below(flow.tree, 'spec') ?? flow.tree, shared)
    for (const { tree, name } of loggings) this.#logging(tree, name, shared, flows.length > 0)
    for (const output of ofKinds('Output', 'ClusterOutput')) this.#output(output)
    for (const other of resources) this.#other(other)
  }

  #gap(place: Place, subject: string, reason: string, nearest: string, isReplaced = false): void {
    const gap: Gap = { file: place.file, line: place.line, subject, reason, nearest }
    this.#gaps.push(isReplaced ? { ...gap, isReplaced } : gap)
  }

  // --- flows ---

  #flow({ kind, name, namespace, tree }: Resource, spec: Tree, shared: readonly Tree[]): void {
    const id = namespace === '' ? name : `${namespace}-${name}`
    const own = kind === 'Flow' && this.#draft.namespace === undefined ? namespace : ''
    if (kind === 'Flow' && namespace === '' && this.#draft.namespace === undefined) {
      this.#gap(
        tree,
        `Flow ${name}`,
        'a Flow reads the pods of its namespace, but the file does not name one',
        'Set `selector.namespaces` of the source, or convert with `-n`.',
      )
    }
    if (kind === 'Flow' && this.#watched.length > 0 && !this.#watched.includes(namespace)) {
      const reason = 'the operator ignores it, because `watchNamespaces` does not name its namespace'
      this.#gap(tree, `Flow ${name}`, reason, 'Leave it out, and convert again.')
    }
    const { selector, condition } = selectionOf(spec, own, this.#draft.namespace === undefined)
    const label = textOf(below(spec, 'flowLabel')) ?? `@${kind}/${id}`
    const before: readonly Step[] = condition === undefined ? [] : [{ type: 'filter', text: condition }]
    const source = podSource(tree, id, label, this.#collector)
    const files = this.#tailers
      .flatMap(filesOf)
      .filter((file) => selectsFile(spec, kind === 'Flow' ? namespace : '', file))
    const events = this.#eventTailers.flatMap((tailer) =>
      eventPodsOf(tailer)
        .filter((pod) => selectsFile(spec, kind === 'Flow' ? namespace : '', pod))
        .slice(0, 1),
    )
    // Without a source of its own, a flow gets the events of outputs that name its label.
    if (flagOf(below(spec, 'includeLabelInRouter')) !== false) {
      if (files.length + events.length === 0 || !isOfTailers(spec))
        this.elements.push({ ...source, selector, before, after: this.#collected() })
      for (const file of files) this.elements.push(sourceOf(file, id, label))
      for (const pod of events) this.elements.push(eventSourceOf(pod, id, label))
    }
    const filters = [...shared, ...itemsOf(below(spec, 'filters'))].flatMap((filter) => this.#filter(filter, id))
    this.elements.push({
      ...element('label', tree, label),
      children: [...filters, this.#outputsOf(spec, namespace, tree, id)],
    })
  }

  /** The filters of the collector, before Fluentd receives a record. */
  #collected(): readonly Step[] {
    return this.#collector.steps.map((step) => ({ ...step }))
  }

  #logging(tree: Tree, name: string, shared: readonly Tree[], hasFlows: boolean): void {
    for (const part of ['fluentbit', 'fluentd', 'syslogNG', 'nodeAgents']) {
      const found = below(tree, 'spec', part)
      if (found === undefined) continue
      const isCollector = part === 'fluentbit' || part === 'nodeAgents'
      this.#gap(
        found,
        `Logging: ${part}`,
        isCollector ? ofCollector : ofAgent,
        'The Agent `node` of the installation runs Pipelines.',
        true,
      )
    }
    const override = below(tree, 'spec', 'flowConfigOverride')
    if (override !== undefined) {
      const reason = 'the operator runs this configuration in place of the one that the resources describe'
      this.#gap(override, 'Logging: flowConfigOverride', reason, 'Convert its text as a file.')
    }
    const errors = below(tree, 'spec', 'errorOutputRef')
    if (errors !== undefined) {
      const refs = new Map([['globalOutputRefs', { ...errors, value: [errors] }]])
      const match = this.#outputsOf({ ...errors, value: refs }, '', errors, `${name}-errors`)
      this.elements.push({ ...element('label', errors, '@ERROR'), children: [match] })
    }
    const rest = below(tree, 'spec', 'defaultFlow')
    if (rest === undefined) return
    if (!hasFlows) {
      this.#flow({ kind: 'ClusterFlow', name: `${name}-default`, namespace: '', tree: rest }, rest, shared)
      return
    }
    const reason = 'it receives the events that no flow selects, and a source does not know what other sources read'
    this.#gap(
      rest,
      'Logging: defaultFlow',
      reason,
      'Add a ClusterPipeline whose selector excludes the pods of the flows.',
    )
  }

  /** The match that passes events to the labels of outputs. */
  #outputsOf(spec: Tree, namespace: string, place: Tree, id: string, of = ''): Element {
    const named = (option: string, kind: string) =>
      itemsOf(below(spec, option)).map((ref) => ({ ref, kind, name: textOf(ref) ?? '' }))
    const refs = [
      ...named('localOutputRefs', 'Output'),
      ...named('globalOutputRefs', 'ClusterOutput'),
      ...named('outputRefs', namespace === '' ? 'ClusterOutput' : 'Output'),
    ]
    const found = refs.flatMap(({ ref, kind, name }) => {
      const output = this.#resources.find(
        (each) =>
          each.kind === `${of}${kind}` &&
          each.name === name &&
          (kind === 'ClusterOutput' || each.namespace === namespace),
      )
      if (output === undefined) {
        const nearest = 'Convert it together with the flow, or replace the sink that discards its events.'
        this.#gap(ref, `${kind} ${name}`, 'the files do not contain this output', nearest)
      }
      return output === undefined ? [] : [output]
    })
    if (found.length === 0) {
      if (refs.length === 0)
        this.#gap(place, id, 'the flow names no output', 'Replace the sink that discards its events.')
      return element('match', place, '**', [
        ['@type', 'null'],
        ['@id', `${id}-discarded`],
      ])
    }
    const stores = found.map((output) =>
      element('store', output.tree, '', [
        ['@type', 'relabel'],
        ['@label', labelOf(output)],
      ]),
    )
    return { ...element('match', place, '**', [['@type', 'copy']]), children: stores }
  }

  // --- filters ---

  #filter(filter: Tree, id: string): readonly Element[] {
    if (!isMap(filter)) return []
    return [...filter.value].flatMap(([key, options]): Element[] => {
      if (key === 'tag_normaliser') {
        // Without an output that writes tags, nothing depends on them.
        const readsTags = this.#resources.some(
          ({ kind, tree }) =>
            /Output$/.test(kind) && /\$\{tag|"(?:include_)?tag_key"/.test(JSON.stringify(plain(tree))),
        )
        if (readsTags) return [this.#make.plugin('match', key, options, `${id}-tag`, 'kubernetes.**')]
        this.#gap(options, key, 'no output in the files writes tags', 'Remove it.', true)
        return []
      }
      const type = filterTypes[key] ?? key
      const own = this.#make.plugin(key === 'detectExceptions' ? 'match' : 'filter', type, options, `${id}-${type}`)
      const hasKey = own.parameters.some((parameter) => parameter.key === 'key_name')
      const line = parameter(options, 'key_name', this.#collector.key ?? 'message')
      return [key === 'parser' && !hasKey ? { ...own, parameters: [...own.parameters, line] } : own]
    })
  }

  /** The variable for the key of a Secret. */
  #secret(reference: Tree): string {
    const [name = '', key = ''] = [textOf(below(reference, 'name')), textOf(below(reference, 'key'))]
    const variable = variableFor(name, key)
    const owner = this.#resources.find(({ tree }) => tree.file === reference.file && holds(tree, reference))
    const secret: SecretKey = {
      name,
      key,
      namespace: owner?.namespace || undefined,
      file: reference.file,
      line: reference.line,
    }
    this.#draft.secrets.set(variable, secret)
    return `\${${variable}}`
  }

  // --- outputs ---

  #output(output: Resource): void {
    const { tree, name, kind } = output
    const spec = below(tree, 'spec')
    const found = isMap(spec)
      ? [...spec.value].find(([key]) => !['loggingRef', 'enabledNamespaces', 'protected'].includes(key))
      : undefined
    const [key = 'null', options = tree] = found ?? []
    if (found === undefined)
      this.#gap(tree, `${kind} ${name}`, 'the output has no plugin', 'The sink discards its events.')
    const isStream = flagOf(below(options, 'data_stream_enable')) === true
    const type = isStream ? `${key}_data_stream` : (outputTypes[key] ?? key)
    const made = this.#make.plugin('match', type, options, name)
    const match = { ...made, parameters: made.parameters.filter((each) => each.key !== 'data_stream_enable') }
    const whole = type === 'loki' ? this.#loki(match, options) : type === 'relabel' ? relabelled(match) : match
    this.elements.push({ ...element('label', tree, labelOf(output)), children: [whole] })
  }

  /** The operator has its own defaults for Loki, and labels for pod metadata. */
  #loki(match: Element, options: Tree): Element {
    const isFacts = flagOf(below(options, 'configure_kubernetes_labels')) === true
    const parameters = match.parameters.filter(
      ({ key }) => key !== 'configure_kubernetes_labels' && key !== 'remove_keys',
    )
    const has = (key: string) => parameters.some((each) => each.key === key)
    const removed = textsOf(below(options, 'remove_keys'))
    const more: Parameter[] = [
      ...(has('line_format') ? [] : [parameter(options, 'line_format', 'json')]),
      ...(isFacts && !has('extract_kubernetes_labels')
        ? [parameter(options, 'extract_kubernetes_labels', 'true')]
        : []),
    ]
    const without = isFacts && !removed.includes('kubernetes') ? [...removed, 'kubernetes'] : removed
    if (without.length > 0) more.push(parameter(options, 'remove_keys', without.join(',')))
    const facts = element('label', options, '', [
      ['namespace', '$.kubernetes.namespace_name'],
      ['pod', '$.kubernetes.pod_name'],
      ['container_id', '$.kubernetes.docker_id'],
      ['container', '$.kubernetes.container_name'],
      ['pod_id', '$.kubernetes.pod_id'],
      ['host', '$.kubernetes.host'],
    ])
    return {
      ...match,
      parameters: [...parameters, ...more],
      children: isFacts ? [...match.children, facts] : match.children,
    }
  }

  // --- others ---

  #other({ kind, name, namespace, tree }: Resource): void {
    if (ofAgents.has(kind)) {
      const nearest =
        'The Agent `node` of the installation runs Pipelines. Set resources and tolerations there, or in another Agent.'
      this.#gap(tree, kind, /^(?:Fluentbit|Node)Agent$/.test(kind) ? ofCollector : ofAgent, nearest, true)
    } else if (/^SyslogNG\w*Flow$/.test(kind)) this.#syslogFlow({ kind, name, namespace, tree })
    else if (/^SyslogNG\w*Output$/.test(kind)) this.#syslogOutput({ kind, name, namespace, tree })
    else if (kind === 'HostTailer') this.#hostTailer({ kind, name, namespace, tree })
    else if (kind === 'EventTailer') this.#eventTailer({ kind, name, namespace, tree })
  }

  /** Reports what the lines of an EventTailer lack, or that no flow selects them. */
  #eventTailer(tailer: Resource): void {
    const { name, tree } = tailer
    const isSelected = eventPodsOf(tailer).some((pod) => this.#isSelected(pod))
    if (!isSelected) {
      this.#gap(
        tree,
        `EventTailer ${name}`,
        'no flow in the files selects its lines',
        'Convert it together with the flow.',
      )
      return
    }
    const reason = 'the lines have no `old_event`, and an Event that has occurred again is `UPDATED`'
    this.#gap(tree, `EventTailer ${name}`, reason, 'Nothing, unless a query reads them.', true)
  }

  #isSelected(file: Tailed): boolean {
    return this.#resources.some(
      ({ kind, namespace, tree }) =>
        /^(?:Cluster)?Flow$/.test(kind) &&
        selectsFile(below(tree, 'spec') ?? tree, kind === 'Flow' ? namespace : '', file),
    )
  }

  // --- syslog-ng ---

  #syslogFlow({ kind, name, namespace, tree }: Resource): void {
    const spec = below(tree, 'spec') ?? tree
    const id = namespace === '' ? name : `${namespace}-${name}`
    const isCluster = kind === 'SyslogNGClusterFlow'
    const label = `@${kind}/${id}`
    const own = isCluster || this.#draft.namespace !== undefined ? '' : namespace
    const { selector } = selectionOf({ ...tree, value: new Map() }, own, this.#draft.namespace === undefined)
    const source = podSource(tree, id, label, this.#collector)
    const match = below(spec, 'match')
    const steps = [
      ...this.#syslogSteps(match ?? tree, `${kind} ${name}: match`, () =>
        match === undefined ? [] : [{ type: 'filter', text: conditionOfMatch(match) }],
      ),
      ...itemsOf(below(spec, 'filters')).flatMap((filter) =>
        this.#syslogSteps(filter, `${kind} ${name}: filter`, () => filterSteps(filter)),
      ),
    ]
    this.elements.push({ ...source, selector, after: [...this.#collected(), ...steps] })
    this.elements.push({
      ...element('label', tree, label),
      children: [this.#outputsOf(spec, namespace, tree, id, 'SyslogNG')],
    })
  }

  /** Steps that `make` builds; a gap if a part has no counterpart. */
  #syslogSteps(place: Place, subject: string, make: () => readonly Step[]): readonly Step[] {
    try {
      return make()
    } catch (error) {
      if (!(error instanceof UnknownSyntax)) throw error
      this.#gap(place, subject, error.message, 'Rewrite it as a transform after the source.')
      return []
    }
  }

  #syslogOutput(output: Resource): void {
    const { kind, name, tree } = output
    const spec = below(tree, 'spec')
    const found = isMap(spec)
      ? [...spec.value].find(([key]) => !['loggingRef', 'enabledNamespaces'].includes(key))
      : undefined
    const [key = '', options = tree] = found ?? []
    const label = { ...element('label', tree, labelOf(output)) }
    const secretOf = (item: Tree | undefined) => (item === undefined ? undefined : this.#make.value('ca_file', item))
    try {
      const made = outputElements(key, options, secretOf, (place, subject, reason, nearest, kinds) =>
        this.#gaps.push({ file: place.file, line: place.line, subject, reason, nearest, ...kinds }),
      )
      if (made !== undefined) {
        const children = made.map((each) => ({
          ...each,
          parameters: [...each.parameters, parameter(tree, '@id', each.name === 'match' ? name : `${name}-record`)],
        }))
        this.elements.push({ ...label, children })
        return
      }
      const nearest = 'Use the sink `http`, with a receiver that writes to this destination.'
      const gap = { reason: 'there is no sink for this destination', nearest, isAbsent: true as const }
      this.#gaps.push({ file: options.file, line: options.line, subject: `${kind} ${name}: ${key}`, ...gap })
    } catch (error) {
      if (!(error instanceof UnknownSyntax)) throw error
      this.#gap(options, `${kind} ${name}: ${key}`, error.message, 'Replace the sink that discards its events.')
    }
    const discarded = element('match', tree, '**', [
      ['@type', 'null'],
      ['@id', name],
    ])
    this.elements.push({ ...label, children: [discarded] })
  }

  /** Reports what a HostTailer does apart from the files that flows select. */
  #hostTailer(tailer: Resource): void {
    for (const { tree, name } of journalsOf(tailer)) {
      const nearest = 'Let the program write to a file that a `file` source reads.'
      this.#gaps.push({
        file: tree.file,
        line: tree.line,
        subject: `HostTailer ${tailer.name}: ${name}`,
        reason: 'there is no source that reads the journal',
        nearest,
        isAbsent: true,
      })
    }
    const files = filesOf(tailer)
    for (const file of files.filter((each) => !this.#isSelected(each)))
      this.#gap(
        file.tree,
        `HostTailer ${tailer.name}: ${file.container}`,
        'no flow in the files selects its lines',
        'Convert it together with the flow.',
      )
  }
}

/** The source of a flow: the lines of all pods, as the collector reads them, for the label with its steps. */
const podSource = (tree: Tree, id: string, label: string, { tail, parse }: Collector): Element => ({
  ...element('source', tree, '', [
    ['@type', 'tail'],
    ['@id', id],
    ['@label', label],
    ['path', '/var/log/containers/*.log'],
    ['tag', 'kubernetes.*'],
    ...tail,
  ]),
  children: [element('parse', tree, '', parse)],
})

/** An output that sends events to the flow with a label. */
const relabelled = (match: Element): Element => ({
  ...match,
  parameters: match.parameters.map((each) => (each.key === 'label' ? { ...each, key: '@label' } : each)),
})

const labelOf = ({ kind, namespace, name }: Resource) =>
  `@${kind}/${/^(?:SyslogNG)?Output$/.test(kind) ? `${namespace}/` : ''}${name}`

/** Whether a tree contains another. */
function holds(tree: Tree, wanted: Tree): boolean {
  if (tree === wanted) return true
  if (isList(tree)) return tree.value.some((item) => holds(item, wanted))
  return isMap(tree) && [...tree.value.values()].some((item) => holds(item, wanted))
}
