// Turns resources of the fluent-operator for Fluentd into the Fluentd elements that the operator generates: one label for each configuration,
// with the filters and outputs that its selectors match, in the order of their names, and a router that sends events to these labels. In such
// a cluster, Fluent Bit reads the logs and forwards them to Fluentd. If its resources are not among the files, each configuration gets its
// own source.

import { type LabelSelector, selects } from '../../api/selector.ts'
import type { Draft, Gap, NamedText, Step } from '../draft.ts'
import { filters as bitFilters } from '../fluent-bit/filters.ts'
import { Context } from '../fluent-bit/plugin.ts'
import { snake } from '../fluent-bit/resources.ts'
import { below, isMap, itemsOf, type Place, pairsOf, plain, type Tree, textOf, textsOf } from '../loki/tree.ts'
import { treesOf } from '../loki/yaml.ts'
import type { Described } from '../page.ts'
import { ElementMaker, element, parameter, variableFor } from './element-maker.ts'
import { selectionOf } from './selection.ts'
import { type Element, type Parameter, readFluentd } from './syntax.ts'

const group = /^\s*(?:- +)?apiVersion:\s*["']?fluentd\.fluent\.io\//m

/** Whether a text contains resources of the fluent-operator for Fluentd. */
export function holdsOperatorKinds({ file, text }: NamedText): boolean {
  return /\.(?:ya?ml|json)$/i.test(file) && (group.test(text) || /"apiVersion":\s*"fluentd\.fluent\.io\//.test(text))
}

const selected = {
  watchedNamespaces: '`selector.namespaces`',
  watchedLabels: '`selector.pods`',
  watchedHosts: 'a filter transform',
  watchedContainers: 'a filter transform',
  watchedConstainers: 'same as `watchedContainers`; early versions misspell the name',
}
const chosen = (kinds: string) => `which ${kinds} apply, by their labels`

/** The result of the conversion for each kind. */
export const operatorKinds: readonly Described[] = [
  {
    name: 'ClusterFluentdConfig, FluentdConfig',
    becomes:
      'an `orchestrator_logs` source with a selector, or, if the files contain the resources of Fluent Bit, a filter transform after its filters',
    options: {
      ...selected,
      clusterFilterSelector: chosen('filters'),
      filterSelector: chosen('filters'),
      clusterOutputSelector: chosen('outputs'),
      outputSelector: chosen('outputs'),
      clusterInputSelector: chosen('inputs'),
      inputSelector: chosen('inputs'),
    },
    itself: { emit_mode: 'the agent passes events on in its own batches', stickyTags: 'the filter checks every event' },
  },
  {
    name: 'ClusterFilter, Filter',
    becomes: 'a transform for each of its `filters`, by the tables of Fluentd filters below',
    options: {},
  },
  {
    name: 'ClusterOutput, Output',
    becomes: 'a sink for each of its `outputs`, by the tables of Fluentd matches below',
    options: {},
  },
  {
    name: 'ClusterInput, Input',
    becomes: 'a source for each of its `inputs`, by the tables of sources below',
    options: {},
  },
  {
    name: 'Fluentd',
    becomes:
      'its `globalInputs` become sources, except `forward`, which receives from Fluent Bit: the source reads those events itself',
    options: { globalInputs: 'sources', fluentdCfgSelector: chosen('configurations') },
    itself: { '…': 'options of its pods: Penstock runs its own agents' },
  },
]

/** Tables that become Fluentd elements. Other tables become objects in a parameter. */
const elements: Readonly<Record<string, string>> = Object.fromEntries([
  ...['buffer', 'format', 'parse', 'inject', 'auth', 'security', 'transport', 'regexp', 'exclude', 'and', 'or'].map(
    (name) => [name, name],
  ),
  ['servers', 'server'],
  ['serviceDiscovery', 'service_discovery'],
])

/** Plugins whose names differ by more than case and underscores. */
const types: Readonly<Record<string, string>> = {
  kafka: 'kafka2',
  cloudWatch: 'cloudwatch_logs',
  nullPlugin: 'null',
}

/** Options whose names differ by more than case and underscores. */
const keys: Readonly<Record<string, string>> = {
  id: '@id',
  logLevel: '@log_level',
  label: '@label',
  CAFile: 'ca_file',
  clientKeyPassword: 'client_key_pass',
  logEs400Reason: 'log_es_400_reason',
  logOs400Reason: 'log_os_400_reason',
  failOnPuttingTemplateRetryExceeded: 'fail_on_putting_template_retry_exceed',
}

/** Options of the output for Loki. */
const ofLoki: Readonly<Record<string, string>> = {
  http_user: 'username',
  http_password: 'password',
  tenant_id: 'tenant',
  insecure: 'insecure_tls',
  tls_ca_cert_file: 'ca_cert',
  tls_client_cert_file: 'cert',
  tls_private_key_file: 'key',
}

const parameterName = (key: string) => (Object.hasOwn(keys, key) ? (keys[key] as string) : snake(key))

interface Resource {
  readonly kind: string
  readonly name: string
  readonly namespace: string
  readonly tree: Tree
  readonly spec: Tree
}

/**
 * The elements that the operator generates from the resources in files.
 * @param isBehind whether the events come from the sections of Fluent Bit in the same files
 */
export function operatorElements(files: readonly NamedText[], draft: Draft, isBehind: boolean): readonly Element[] {
  const resources = files.flatMap((file) => treesOf(file, draft.gaps).flatMap(resourcesIn))
  return new Maker(resources, draft, isBehind).elements
}

function resourcesIn(tree: Tree): readonly Resource[] {
  const kind = textOf(below(tree, 'kind')) ?? ''
  if (kind === 'List' || kind.endsWith('List')) return itemsOf(below(tree, 'items')).flatMap(resourcesIn)
  if (!(textOf(below(tree, 'apiVersion')) ?? '').startsWith('fluentd.fluent.io/')) return []
  const name = textOf(below(tree, 'metadata', 'name')) ?? kind.toLowerCase()
  const namespace = textOf(below(tree, 'metadata', 'namespace')) ?? ''
  return [{ kind, name, namespace, tree, spec: below(tree, 'spec') ?? { ...tree, value: new Map() } }]
}

const selectors = {
  ClusterFilter: ['clusterFilterSelector'],
  ClusterOutput: ['clusterOutputSelector'],
  ClusterInput: ['clusterInputSelector'],
  Filter: ['filterSelector'],
  Output: ['outputSelector'],
  Input: ['inputSelector'],
} as const

type Chosen = keyof typeof selectors

class Maker {
  readonly elements: Element[] = []
  readonly #resources: readonly Resource[]
  readonly #draft: Draft
  readonly #gaps: Gap[]
  readonly #isBehind: boolean
  readonly #make: ElementMaker
  /** An output that several configurations select is a single element, so that it becomes a single sink. */
  readonly #made = new Map<Tree, Element>()
  readonly #used = new Set<Resource>()

  constructor(resources: readonly Resource[], draft: Draft, isBehind: boolean) {
    this.#resources = resources
    this.#draft = draft
    this.#gaps = draft.gaps
    this.#isBehind = isBehind
    this.#make = new ElementMaker({
      elements,
      parameter: parameterName,
      secret: (reference) => this.#secret(reference),
      gap: (place, subject, reason, nearest) => this.#gap(place, subject, reason, nearest),
    })
    this.#inputs()
    this.#configurations()
    this.#unused()
  }

  #gap(place: Place, subject: string, reason: string, nearest: string, isReplaced = false): void {
    const gap: Gap = { file: place.file, line: place.line, subject, reason, nearest }
    this.#gaps.push(isReplaced ? { ...gap, isReplaced } : gap)
  }

  #ofKind(...kinds: readonly string[]): readonly Resource[] {
    return this.#resources.filter(({ kind }) => kinds.includes(kind))
  }

  // --- inputs ---

  #inputs(): void {
    for (const { tree, name, spec } of this.#ofKind('Fluentd')) {
      for (const input of itemsOf(below(spec, 'globalInputs'))) this.#input(input, name)
      const nearest =
        'The Agent `node` of the installation runs Pipelines. Set resources and tolerations there, or in another Agent.'
      this.#gap(tree, `Fluentd ${name}`, 'it describes agents, which are not part of a Pipeline', nearest, true)
    }
  }

  #input(input: Tree, name: string): void {
    const [type, options] = pluginIn(input)
    if (type === 'customPlugin') {
      this.elements.push(...this.#custom(input, ['source']))
      return
    }
    if (type === undefined || options === undefined) return
    if (type === 'forward') {
      const [reason, nearest] = this.#isBehind
        ? ['Fluent Bit sends its events here, and the Pipeline contains both parts', 'Nothing.']
        : [
            'Fluent Bit sends its events here, but the sources of the Pipeline read the logs of pods themselves',
            'Remove it.',
          ]
      this.#gap(options, 'input forward', reason, nearest, true)
      return
    }
    const made = this.#make.plugin('source', snake(type), options, name, '')
    this.elements.push({ ...made, parameters: [...made.parameters, ...this.#shared(input)] })
  }

  // --- configurations ---

  #configurations(): void {
    const agents = this.#ofKind('Fluentd')
    const all = this.#ofKind('ClusterFluentdConfig', 'FluentdConfig').filter(
      (each) =>
        agents.length === 0 ||
        agents.some(({ spec }) => isSelected(below(spec, 'fluentdCfgSelector') ?? { ...spec, value: new Map() }, each)),
    )
    const routes = all.map((each) => this.#configuration(each))
    if (routes.length === 0) routes.push(...this.#withoutConfiguration())
    const [first] = all
    const place = first?.tree ?? this.#resources[0]?.tree
    if (routes.length > 0 && place !== undefined)
      this.elements.push({ ...element('match', place, '**', [['@type', 'label_router']]), children: routes })
    if (this.#isBehind || first === undefined) return
    const reason =
      'records come from Fluent Bit, whose resources are not among the files; here the line is in the field `log`'
    const nearest = 'Convert the resources of Fluent Bit together with these.'
    this.#gap(first.tree, 'records', reason, nearest, true)
  }

  /** The label of a configuration and its route. Without resources of Fluent Bit in the files, also its source. */
  #configuration(config: Resource): Element {
    const { kind, name, namespace, tree, spec } = config
    this.#used.add(config)
    for (const [key, , at] of pairsOf(spec)) {
      const known = operatorKinds[0] as Described
      if (Object.hasOwn(known.options, key) || Object.hasOwn(known.itself ?? {}, key)) continue
      const reason = `the option \`${key}\` has no counterpart`
      this.#gap(at, `${kind}: ${key}`, reason, 'Set the same condition in `selector` of the source.')
    }
    const id = kind === 'FluentdConfig' && namespace !== '' ? `${namespace}-${name}` : name
    const label = `@${kind}/${id}`
    const rule = this.#rule(config)
    if (!this.#isBehind) this.#source(config, rule, id, label)
    const filters = this.#chosen(config, 'Filter').flatMap(({ resource, items }) =>
      items.flatMap((item) => this.#filter(item, resource.name)),
    )
    const outputs = this.#chosen(config, 'Output').flatMap(({ resource, items }) =>
      items.map((item, index) => ({ item, name: `${resource.name}${index === 0 ? '' : `-${index + 1}`}` })),
    )
    for (const { resource, items } of this.#chosen(config, 'Input'))
      for (const item of items) this.#input(item, resource.name)
    const matches = this.#matches(outputs)
    if (matches.length === 0) {
      const reason = 'its selector matches no output in the files'
      this.#gap(tree, `${kind} ${name}`, reason, 'Convert it together with its outputs, or replace the sink.')
      matches.push(element('match', tree, '**', nothing(`${id}-discarded`)))
    }
    this.elements.push({ ...element('label', tree, label), children: [...filters, ...matches] })
    return { ...element('route', tree, '', [['@label', label]]), children: [matchOf(rule)] }
  }

  /** Routes to all outputs, for files without a configuration that selects them. */
  #withoutConfiguration(): readonly Element[] {
    const outputs = this.#ofKind('ClusterOutput', 'Output')
    const namespaces = [...new Set(outputs.map(({ kind, namespace }) => (kind === 'Output' ? namespace : '')))]
    return namespaces.map((namespace) => {
      const [kind, prefix] = namespace === '' ? ['ClusterFluentdConfig', 'cluster'] : ['FluentdConfig', '']
      const {
        tree,
        name,
        kind: of,
      } = outputs.find((each) => each.kind === 'ClusterOutput' || each.namespace === namespace) ??
      (outputs[0] as Resource)
      const pods = namespace === '' ? 'all pods' : `all pods of \`${namespace}\``
      const reason = `the files have no configuration that selects it, so it takes the logs of ${pods}`
      this.#gap(tree, `${of} ${name}`, reason, `Convert it together with its ${kind}.`)
      const every = { ...tree, value: new Map() }
      const keys = ['Filter', 'Output'].map((each) =>
        prefix === '' ? `${each.toLowerCase()}Selector` : `${prefix}${each}Selector`,
      )
      const spec = { ...tree, value: new Map(keys.map((each) => [each, every])) }
      return this.#configuration({ kind, name: 'all', namespace, tree, spec })
    })
  }

  /** A rule of a flow for the pods, containers and hosts that a configuration watches. */
  #rule({ kind, namespace, spec, tree }: Resource): Tree {
    const map = (entries: readonly (readonly [string, Tree | undefined])[]): Tree => ({
      ...tree,
      value: new Map(entries.flatMap(([key, value]) => (value === undefined ? [] : [[key, value] as const]))),
    })
    const own = { ...tree, value: [{ ...tree, value: namespace }] }
    return map([
      ['labels', below(spec, 'watchedLabels')],
      ['namespaces', kind === 'FluentdConfig' ? own : below(spec, 'watchedNamespaces')],
      ['hosts', below(spec, 'watchedHosts')],
      ['container_names', below(spec, 'watchedContainers') ?? below(spec, 'watchedConstainers')],
    ])
  }

  #source({ tree }: Resource, rule: Tree, id: string, label: string): void {
    const flow = {
      ...tree,
      value: new Map([['match', { ...tree, value: [{ ...tree, value: new Map([['select', rule]]) }] }]]),
    }
    const { selector, condition } = selectionOf(flow, '', this.#draft.namespace === undefined)
    const before: readonly Step[] = condition === undefined ? [] : [{ type: 'filter', text: condition }]
    const source = element('source', tree, '', [
      ['@type', 'tail'],
      ['@id', id],
      ['@label', label],
      ['path', '/var/log/containers/*.log'],
      ['tag', 'kube.*'],
    ])
    const parse = element('parse', tree, '', [['@type', 'docker']])
    this.elements.push({ ...source, children: [parse], selector, before, after: this.#kubernetes(tree) })
  }

  /** The fields that Fluent Bit adds before Fluentd receives a record. */
  #kubernetes({ file, line }: Place): readonly Step[] {
    const plugin = bitFilters.find(({ name }) => name === 'kubernetes')
    const entries = [{ file, line, key: 'name', value: 'kubernetes' }]
    return plugin?.build({ file, line, kind: 'filter', entries }, new Context([], this.#gaps)) ?? []
  }

  /** The resources of a kind that a configuration selects, in the order that the operator uses. */
  #chosen(config: Resource, what: 'Filter' | 'Output' | 'Input') {
    const isCluster = config.kind === 'ClusterFluentdConfig'
    const found = this.#resources.filter((resource) => {
      if (resource.kind !== what && resource.kind !== `Cluster${what}`) return false
      if (resource.kind === what && (isCluster || resource.namespace !== config.namespace)) return false
      // In early versions, the configuration of a cluster has a single selector.
      const names = [...selectors[resource.kind as Chosen], ...(isCluster ? selectors[what] : [])]
      return names.some((name) => isSelected(below(config.spec, name), resource))
    })
    const orderOf = ({ kind, namespace, name }: Resource) =>
      `${kind === what ? namespace : 'cluster'}::${kind.toLowerCase()}::${name}`
    for (const resource of found) this.#used.add(resource)
    return found
      .toSorted((one, next) => (orderOf(one) < orderOf(next) ? -1 : 1))
      .map((resource) => ({ resource, items: itemsOf(below(resource.spec, `${what.toLowerCase()}s`)) }))
  }

  /** Reports resources that nothing selects. */
  #unused(): void {
    for (const resource of this.#resources) {
      if (this.#used.has(resource) || resource.kind === 'Fluentd') continue
      const { kind, name, tree } = resource
      const isConfig = kind.endsWith('FluentdConfig')
      const reason = isConfig ? 'no Fluentd in the files selects it' : 'no configuration in the files selects it'
      this.#gap(tree, `${kind} ${name}`, reason, 'Remove it, or correct its labels and convert again.')
    }
  }

  // --- plugins ---

  #filter(item: Tree, name: string): readonly Element[] {
    const [type, options] = pluginIn(item)
    if (type === 'customPlugin') return this.#custom(item, ['filter', 'match'])
    if (type === undefined || options === undefined) return []
    const made = this.#make.plugin('filter', snake(type), options, `${name}-${snake(type)}`)
    const records = itemsOf(below(options, 'records'))
    const pairs = records.map((record) =>
      parameter(record, textOf(below(record, 'key')) ?? '', textOf(below(record, 'value')) ?? ''),
    )
    const children = records.length === 0 ? [] : [{ ...element('record', options), parameters: pairs }]
    return [
      {
        ...made,
        parameters: [...made.parameters.filter(({ key }) => key !== 'records'), ...this.#shared(item)],
        children: [...made.children, ...children],
      },
    ]
  }

  /** The matches of outputs: outputs with their own tag come first, and one `copy` contains all other outputs. */
  #matches(outputs: readonly { readonly item: Tree; readonly name: string }[]): Element[] {
    const tagOf = (item: Tree) => textOf(below(item, 'tag')) ?? '**'
    const tags = [...new Set(outputs.map(({ item }) => tagOf(item)))].toSorted(
      (one, next) => Number(one === '**') - Number(next === '**'),
    )
    return tags.flatMap((tag) => {
      const own = outputs.filter(({ item }) => tagOf(item) === tag)
      const copy = own.find(({ item }) => below(item, 'copy') !== undefined)
      const rest = own.filter(({ item }) => below(item, 'copy') === undefined)
      if (copy === undefined) return rest.flatMap((each) => this.#output(each.item, each.name, 'match', tag))
      const mode = textOf(below(copy.item, 'copy', 'copyMode')) ?? 'no_copy'
      const stores = rest.flatMap((each) => this.#output(each.item, each.name, 'store', ''))
      const match = element('match', copy.item, tag, [
        ['@type', 'copy'],
        ['copy_mode', mode],
      ])
      return [{ ...match, children: stores }]
    })
  }

  #output(item: Tree, name: string, kind: 'match' | 'store', tag: string): readonly Element[] {
    const known = this.#made.get(item)
    if (known !== undefined) return [known]
    const [type, options] = pluginIn(item)
    if (type === 'customPlugin') {
      const found = this.#custom(item, ['match', 'store']).map((each) => ({ ...each, name: kind }))
      if (found[0] !== undefined) this.#made.set(item, found[0])
      return found.slice(0, 1)
    }
    if (type === undefined || options === undefined) {
      this.#gap(item, name, 'the output has no plugin', 'The sink discards its events.')
      return [element(kind, item, tag, nothing(name))]
    }
    const made = this.#make.plugin(
      kind,
      Object.hasOwn(types, type) ? (types[type] as string) : snake(type),
      options,
      name,
      tag,
    )
    const parts = new Map(
      ['buffer', 'format', 'inject'].flatMap((key) => {
        const part = below(item, key)
        return part === undefined ? [] : [[key, unfolded(part)] as const]
      }),
    )
    const shared = this.#make.options({ ...item, value: parts })
    const whole = {
      ...made,
      parameters: [...made.parameters, ...this.#shared(item)],
      children: [...made.children, ...shared.children],
    }
    const found = type === 'loki' ? lokiOf(whole, options) : type === 'http' ? httpOf(whole) : whole
    this.#made.set(item, found)
    return [found]
  }

  /** Options that all plugins have. */
  #shared(item: Tree): readonly Parameter[] {
    return ['id', 'logLevel', 'label'].flatMap((key) => {
      const at = below(item, key)
      return at === undefined || isMap(at) ? [] : [parameter(at, parameterName(key), textOf(at) ?? '')]
    })
  }

  /** Elements in Fluentd's own syntax. */
  #custom(item: Tree, names: readonly string[]): readonly Element[] {
    const text = below(item, 'customPlugin', 'config')
    if (text === undefined) return []
    // A block begins on the line after its key.
    const written = textOf(text) ?? ''
    const above = text.line - (written.includes('\n') ? 0 : 1)
    const { parts, remarks } = readFluentd('\n'.repeat(above) + written, text.file)
    this.#gaps.push(...remarks)
    return parts.flatMap((part): Element[] => ('name' in part && names.includes(part.name) ? [part] : []))
  }

  /** The operator reads Secrets from the namespace of the Fluentd that runs the configuration. */
  #secret(reference: Tree): string {
    const [name = '', key = ''] = [textOf(below(reference, 'name')), textOf(below(reference, 'key'))]
    const variable = variableFor(name, key)
    const namespace = this.#ofKind('Fluentd')[0]?.namespace || undefined
    this.#draft.secrets.set(variable, { name, key, namespace, file: reference.file, line: reference.line })
    return `\${${variable}}`
  }
}

const nothing = (id: string) =>
  [
    ['@type', 'null'],
    ['@id', id],
  ] as const

/** The plugin in a list item, with its options. The options that all plugins have are members of the item itself. */
function pluginIn(item: Tree): readonly [string | undefined, Tree | undefined] {
  const commonOptions = new Set(['buffer', 'format', 'inject', 'tag', 'logLevel', 'id', 'label', 'type'])
  const [found] = isMap(item) ? [...item.value].filter(([key]) => !commonOptions.has(key)) : []
  return found ?? [undefined, undefined]
}

/** Time options are in their own table. */
function unfolded(part: Tree): Tree {
  const inline = below(part, 'inline')
  if (!isMap(part) || !isMap(inline)) return part
  return { ...part, value: new Map([...part.value, ...inline.value].filter(([key]) => key !== 'inline')) }
}

/** The condition of a route, from a rule. */
function matchOf(rule: Tree): Element {
  const parameters = (isMap(rule) ? [...rule.value] : []).map(([key, item]) =>
    parameter(item, key, key === 'labels' ? JSON.stringify(plain(item)) : textsOf(item).join(',')),
  )
  return { ...element('match', rule), parameters }
}

/** Labels become a list of pairs, and record keys become Fluentd elements. */
function lokiOf(output: Element, options: Tree): Element {
  const parameters = output.parameters
    .filter(({ key }) => !['labels', 'label_keys', 'remove_keys'].includes(key))
    .map((each) => (Object.hasOwn(ofLoki, each.key) ? { ...each, key: ofLoki[each.key] as string } : each))
  const pairs = textsOf(below(options, 'labels')).flatMap((text) => {
    const [, name, value] = /^\s*([^=]*?)\s*=\s*(.*?)\s*$/s.exec(text) ?? []
    return name === undefined ? [] : [[name, value] as const]
  })
  const removed = textsOf(below(options, 'removeKeys'))
  const named = itemsOf(below(options, 'labelKeys')).map((item) =>
    parameter(item, textOf(item) ?? '', textOf(item) ?? ''),
  )
  return {
    ...output,
    parameters: [
      ...parameters,
      ...(pairs.length === 0 ? [] : [parameter(options, 'extra_labels', JSON.stringify(Object.fromEntries(pairs)))]),
      ...(removed.length === 0 ? [] : [parameter(options, 'remove_keys', removed.join(','))]),
    ],
    children: [
      ...output.children,
      ...(named.length === 0 ? [] : [{ ...element('label', options), parameters: named }]),
    ],
  }
}

/** The name of the table is the method of `<auth>`. */
function httpOf(output: Element): Element {
  const children = output.children.map((child) =>
    child.name === 'auth'
      ? {
          ...child,
          parameters: child.parameters.map((each) => (each.key === 'auth' ? { ...each, key: 'method' } : each)),
        }
      : child,
  )
  return { ...output, children }
}

/** Whether a label selector selects a resource. A missing selector selects nothing. */
function isSelected(selector: Tree | undefined, { tree }: Resource): boolean {
  if (selector === undefined || !isMap(selector)) return false
  const labels = pairsOf(below(tree, 'metadata', 'labels')).map(([key, value]) => [key, value] as const)
  return selects(plain(selector) as LabelSelector, Object.fromEntries(labels))
}
