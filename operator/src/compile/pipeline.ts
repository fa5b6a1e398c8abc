// One Pipeline and what it refers to, in; one agent configuration, or every problem with its place, out. Pure: the same
// resources give the same configuration. The agent's own library checks the options; this file knows only resources.

import type { Problem } from '@penstock/agent/schema/problems'
import { type MultilinePreset, multilinePresets } from './multiline.ts'
import { namePattern, type PathKey, pathLabel, type Resource } from './resources.ts'
import { type LabelSelector, selectorText } from './selector.ts'

type Table = Record<string, unknown>

export interface CompileOptions {
  /** True on a user's own machine: the rules that protect a shared node from its tenants do not hold there. */
  readonly ownMachine: boolean
}

export interface CompiledPipeline {
  /** Sources, transforms, sinks and tests as an agent configuration has them; text values are literal. */
  readonly config: {
    readonly sources: Readonly<Record<string, Table>>
    readonly transforms: Readonly<Record<string, Table>>
    readonly sinks: Readonly<Record<string, Table>>
    readonly tests: readonly Table[]
  }
  /** Where each component stands in the resources, to turn a path of the configuration into a place. */
  readonly origins: ReadonlyMap<string, Origin>
  readonly problems: readonly Problem[]
}

/** The resource and the path in it where the options of a component were written. */
export interface Origin {
  readonly resource: Resource
  readonly path: readonly PathKey[]
}

const specMembers = ['mode', 'suspend', 'secrets', 'sources', 'transforms', 'sinks', 'tests']
/** Members of a Pipeline that need an operator: an agent alone cannot honour them. */
const operatorMembers = ['limits', 'onError']

export function compilePipeline(
  pipeline: Resource,
  resources: readonly Resource[],
  options: CompileOptions,
): CompiledPipeline {
  return new Compilation(pipeline, resources, options).compile()
}

class Compilation {
  readonly #pipeline: Resource
  readonly #resources: readonly Resource[]
  readonly #options: CompileOptions
  readonly #problems: Problem[] = []
  readonly #origins = new Map<string, Origin>()
  readonly #names = new Map<string, string>()
  readonly #aliases = new Map<string, string>()

  constructor(pipeline: Resource, resources: readonly Resource[], options: CompileOptions) {
    this.#pipeline = pipeline
    this.#resources = resources
    this.#options = options
  }

  compile(): CompiledPipeline {
    const sources: Record<string, Table> = {}
    const transforms: Record<string, Table> = {}
    const sinks: Record<string, Table> = {}
    const spec = this.#pipeline.content['spec']
    if (!isTable(spec)) {
      this.#report(this.#pipeline, ['spec'], '`spec` is missing', 'It lists `sources`, `transforms` and `sinks`.')
      return { config: { sources, transforms, sinks, tests: [] }, origins: this.#origins, problems: this.#problems }
    }
    this.#checkMembers(this.#pipeline, ['spec'], spec, [...specMembers, ...operatorMembers])
    for (const member of operatorMembers) {
      if (spec[member] !== undefined) {
        this.#report(
          this.#pipeline,
          ['spec', member],
          `\`spec.${member}\` is not available in this version`,
          'Remove it: it would have no effect.',
        )
      }
    }
    this.#readAliases(spec)
    const lists = {
      sources: this.#entries(spec, 'sources'),
      transforms: this.#entries(spec, 'transforms'),
      sinks: this.#entries(spec, 'sinks'),
    }
    for (const kind of ['sources', 'sinks'] as const) {
      if (lists[kind].length === 0) {
        this.#report(this.#pipeline, ['spec', kind], `\`spec.${kind}\` needs at least one entry`)
      }
    }
    const sourceNames = lists.sources.map((entry) => entry.name)
    let previous = sourceNames
    for (const entry of lists.sources) sources[this.#id(entry.name)] = this.#source(entry)
    for (const entry of lists.transforms) {
      transforms[this.#id(entry.name)] = { ...this.#component(entry), inputs: this.#inputs(entry, previous) }
      previous = [entry.name]
    }
    for (const entry of lists.sinks) {
      sinks[this.#id(entry.name)] = { ...this.#component(entry, 'Sink'), inputs: this.#inputs(entry, previous) }
    }
    const config = { sources, transforms, sinks, tests: this.#tests(spec) }
    return { config, origins: this.#origins, problems: this.#problems }
  }

  /** Ids hold the namespace and the pipeline, joined by a character that neither can contain, so they never collide. */
  #id(component: string): string {
    return `${this.#pipeline.namespace}/${this.#pipeline.name}/${component}`
  }

  #entries(spec: Table, list: 'sources' | 'transforms' | 'sinks'): Entry[] {
    const items = spec[list] ?? []
    if (!Array.isArray(items)) {
      this.#report(this.#pipeline, ['spec', list], `\`spec.${list}\` must be a list`)
      return []
    }
    const entries: Entry[] = []
    for (const [index, content] of items.entries()) {
      const path: PathKey[] = ['spec', list, index]
      if (!isTable(content)) {
        this.#report(this.#pipeline, path, `\`${pathLabel(path)}\` must be a mapping`)
        continue
      }
      const name = content['name']
      if (typeof name !== 'string' || !namePattern.test(name)) {
        const found = JSON.stringify(name) ?? 'none'
        this.#report(this.#pipeline, [...path, 'name'], `\`name\` must match ${namePattern.source}; found ${found}`)
        continue
      }
      const earlier = this.#names.get(name)
      if (earlier !== undefined) {
        const help = `${earlier} has the same name; names are unique across sources, transforms and sinks.`
        this.#report(this.#pipeline, [...path, 'name'], `The name "${name}" is used twice`, help)
        continue
      }
      this.#names.set(name, pathLabel(path))
      const known = { sources: ['ref', 'selector', 'multiline'], transforms: ['inputs'], sinks: ['ref', 'inputs'] }[
        list
      ]
      this.#checkMembers(this.#pipeline, path, content, ['name', 'type', 'config', ...known])
      entries.push({ name, content, path })
    }
    return entries
  }

  /** The type and options of an entry, written inline or in the resource that it refers to. */
  #resolve(entry: Entry, kind?: 'Source' | 'Sink'): { spec: Table; resource: Resource; path: PathKey[] } | undefined {
    const reference = entry.content['ref']
    if ((reference === undefined) === (entry.content['type'] === undefined)) {
      const message = `"${entry.name}" needs ${kind === undefined ? 'a `type`' : 'either `type` with `config`, or `ref`'}`
      this.#report(this.#pipeline, entry.path, message)
      return undefined
    }
    if (reference === undefined) return { spec: entry.content, resource: this.#pipeline, path: [...entry.path] }
    const path = [...entry.path, 'ref']
    if (!isTable(reference) || reference['kind'] !== kind) {
      const found = isTable(reference) ? JSON.stringify(reference['kind']) : 'none'
      this.#report(this.#pipeline, [...path, 'kind'], `\`ref.kind\` must be \`${kind}\` here; found ${found}`)
      return undefined
    }
    if (entry.content['config'] !== undefined) {
      this.#report(this.#pipeline, [...entry.path, 'config'], '`config` and `ref` cannot both be given')
    }
    const target = this.#find(kind as string, String(reference['name']))
    if (target === undefined) {
      const known = this.#resources
        .filter((resource) => resource.kind === kind && resource.namespace === this.#pipeline.namespace)
        .map((resource) => resource.name)
      const help = known.length === 0 ? `There is no ${kind} in it.` : `It has: ${known.join(', ')}.`
      const message = `${kind} "${reference['name']}" is not in namespace "${this.#pipeline.namespace}"`
      this.#report(this.#pipeline, [...path, 'name'], message, help)
      return undefined
    }
    const spec = target.content['spec']
    if (!isTable(spec) || typeof spec['type'] !== 'string') {
      this.#report(target, ['spec', 'type'], `\`spec.type\` of ${kind} "${target.name}" is missing`)
      return undefined
    }
    const members = kind === 'Source' ? ['type', 'selector', 'multiline', 'config'] : ['type', 'config']
    this.#checkMembers(target, ['spec'], spec, members)
    return { spec, resource: target, path: ['spec'] }
  }

  #component(entry: Entry, kind?: 'Source' | 'Sink'): Table {
    const resolved = this.#resolve(entry, kind)
    if (resolved === undefined) return {}
    const { spec, resource, path } = resolved
    const config = spec['config'] ?? {}
    if (!isTable(config)) {
      this.#report(resource, [...path, 'config'], '`config` must be a mapping')
      return {}
    }
    for (const member of ['type', 'inputs']) {
      if (config[member] !== undefined) {
        const help = `It stands beside \`config\`, not in it.`
        this.#report(resource, [...path, 'config', member], `\`${member}\` is not an option of a component`, help)
      }
    }
    const list = entry.path[1] as string
    this.#origins.set(`${list}.${this.#id(entry.name)}`, { resource, path: [...path, 'config'] })
    const type = spec['type']
    this.#checkTenancy(resource, path, list, String(type), config)
    return { type, ...(this.#substitute(resource, [...path, 'config'], config) as Table) }
  }

  #source(entry: Entry): Table {
    const component = this.#component(entry, 'Source')
    const type = component['type']
    const resolved =
      entry.content['ref'] === undefined
        ? undefined
        : this.#find('Source', String((entry.content['ref'] as Table)['name']))
    const places: { resource: Resource; path: PathKey[]; spec: Table }[] = [
      { resource: this.#pipeline, path: [...entry.path], spec: entry.content },
    ]
    if (resolved !== undefined)
      places.push({ resource: resolved, path: ['spec'], spec: resolved.content['spec'] as Table })
    const labels: string[] = []
    const excluded: string[] = []
    for (const { resource, path, spec } of places) {
      for (const member of ['selector', 'multiline']) {
        if (spec[member] !== undefined && type !== 'orchestrator_logs') {
          this.#report(resource, [...path, member], `\`${member}\` is only for sources of type \`orchestrator_logs\``)
        }
      }
      const selector = spec['selector']
      if (isTable(selector)) {
        this.#checkMembers(resource, [...path, 'selector'], selector, ['pods', 'containers'])
        const text = selectorText((selector['pods'] ?? {}) as LabelSelector)
        if (text !== '') labels.push(text)
        const containers = (selector['containers'] ?? {}) as Table
        this.#checkMembers(resource, [...path, 'selector', 'containers'], containers, ['exclude'])
        excluded.push(...((containers['exclude'] ?? []) as string[]))
      }
      if (spec['multiline'] !== undefined) {
        const multiline = this.#multiline(resource, [...path, 'multiline'], spec['multiline'])
        if (multiline !== undefined) component['multiline'] = multiline
      }
    }
    if (type !== 'orchestrator_logs') return component
    // A namespaced Pipeline reads its own namespace and no other.
    component['extra_field_selector'] = joined(
      ',',
      component['extra_field_selector'],
      `metadata.namespace=${this.#pipeline.namespace}`,
    )
    if (labels.length > 0)
      component['extra_label_selector'] = joined(',', component['extra_label_selector'], labels.join(','))
    if (excluded.length > 0) {
      // The defaults of the option, which a value would replace.
      const own = (component['exclude_paths_glob_patterns'] ?? ['**/*.gz', '**/*.tmp']) as string[]
      component['exclude_paths_glob_patterns'] = [...own, ...excluded.map((container) => `**/${container}/**`)]
    }
    return component
  }

  #multiline(resource: Resource, path: PathKey[], value: unknown): Table | undefined {
    if (!isTable(value)) {
      this.#report(resource, path, '`multiline` must be a mapping with `preset` or `custom`')
      return undefined
    }
    this.#checkMembers(resource, path, value, ['preset', 'custom'])
    const custom = value['custom']
    if (isTable(custom)) {
      this.#checkMembers(resource, [...path, 'custom'], custom, ['start', 'condition', 'mode', 'timeoutMs'])
      return {
        start_pattern: custom['start'],
        condition_pattern: custom['condition'],
        mode: custom['mode'],
        timeout_ms: custom['timeoutMs'] ?? 1000,
      }
    }
    const preset = multilinePresets[value['preset'] as MultilinePreset]
    if (preset === undefined) {
      const known = Object.keys(multilinePresets).join(', ')
      const found = JSON.stringify(value['preset']) ?? 'none'
      this.#report(resource, [...path, 'preset'], `\`preset\` must be one of ${known}; found ${found}`)
      return undefined
    }
    return { ...preset }
  }

  /** Inputs as ids. Names mean entries of this Pipeline; wildcards are expanded here and never reach the agent. */
  #inputs(entry: Entry, fallback: readonly string[]): string[] {
    const inputs = entry.content['inputs']
    if (inputs === undefined) return fallback.map((name) => this.#id(name))
    const path = [...entry.path, 'inputs']
    if (!Array.isArray(inputs) || inputs.some((input) => typeof input !== 'string')) {
      this.#report(this.#pipeline, path, '`inputs` must be a list of names')
      return []
    }
    const ids: string[] = []
    const names = [...this.#names.keys()].filter(
      (name) => name !== entry.name && !this.#names.get(name)?.startsWith('spec.sinks'),
    )
    for (const [index, input] of (inputs as string[]).entries()) {
      const [name, port] = input.split('.', 2) as [string, string | undefined]
      const matching = name.includes('*')
        ? names.filter((known) => new RegExp(`^${name.replaceAll('*', '[a-z0-9-]*')}$`).test(known))
        : names.filter((known) => known === name)
      if (matching.length === 0) {
        const help = `Known names: ${names.join(', ')}.`
        this.#report(
          this.#pipeline,
          [...path, index],
          `No source or transform of this Pipeline is named "${name}"`,
          help,
        )
      }
      for (const match of matching) ids.push(port === undefined ? this.#id(match) : `${this.#id(match)}.${port}`)
    }
    return [...new Set(ids)]
  }

  #readAliases(spec: Table): void {
    const secrets = spec['secrets'] ?? []
    if (!Array.isArray(secrets)) {
      this.#report(this.#pipeline, ['spec', 'secrets'], '`spec.secrets` must be a list')
      return
    }
    for (const [index, entry] of secrets.entries()) {
      if (isTable(entry) && typeof entry['alias'] === 'string' && typeof entry['secretName'] === 'string') {
        this.#aliases.set(entry['alias'], entry['secretName'])
      } else {
        this.#report(
          this.#pipeline,
          ['spec', 'secrets', index],
          'An entry of `spec.secrets` needs `alias` and `secretName`',
        )
      }
    }
  }

  /** The options with `valueFrom` and `SECRET[alias.key]` replaced on the parsed tree: any text is a legal value. */
  #substitute(resource: Resource, path: PathKey[], value: unknown): unknown {
    if (typeof value === 'string') {
      return value.replace(
        /SECRET\[([\w-]+)\.([\w.-]+?)(\|uri)?\]/g,
        (whole, alias: string, key: string, uri?: string) => {
          const secretName = this.#aliases.get(alias)
          if (secretName === undefined) {
            this.#report(resource, path, `"${alias}" in ${whole} is no alias of \`spec.secrets\``)
            return whole
          }
          const text = this.#value(resource, path, 'Secret', secretName, key, false) ?? ''
          return uri === undefined ? text : encodeURIComponent(text)
        },
      )
    }
    if (Array.isArray(value)) return value.map((item, index) => this.#substitute(resource, [...path, index], item))
    if (!isTable(value)) return value
    if (isTable(value['valueFrom'])) return this.#valueFrom(resource, [...path, 'valueFrom'], value['valueFrom'])
    const entries = Object.entries(value).map(([key, item]) => [key, this.#substitute(resource, [...path, key], item)])
    return Object.fromEntries(entries.filter(([, item]) => item !== undefined))
  }

  #valueFrom(resource: Resource, path: PathKey[], from: Table): string | undefined {
    for (const [member, kind] of [
      ['secretKeyRef', 'Secret'],
      ['configMapKeyRef', 'ConfigMap'],
    ] as const) {
      const reference = from[member]
      if (!isTable(reference)) continue
      if (reference['namespace'] !== undefined) {
        const help = 'Only values of the same namespace can be used.'
        this.#report(resource, [...path, member, 'namespace'], `\`${member}.namespace\` is not allowed here`, help)
        return undefined
      }
      const optional = reference['optional'] === true
      return this.#value(
        resource,
        [...path, member],
        kind,
        String(reference['name']),
        String(reference['key']),
        optional,
      )
    }
    if (isTable(from['fieldRef']) && from['fieldRef']['fieldPath'] === 'metadata.namespace')
      return this.#pipeline.namespace
    this.#report(
      resource,
      path,
      '`valueFrom` needs `secretKeyRef`, `configMapKeyRef` or `fieldRef` with `metadata.namespace`',
    )
    return undefined
  }

  #value(
    resource: Resource,
    path: PathKey[],
    kind: 'Secret' | 'ConfigMap',
    name: string,
    key: string,
    optional: boolean,
  ): string | undefined {
    const found = this.#find(kind, name)
    const plain = (found?.content[kind === 'Secret' ? 'stringData' : 'data'] as Table | undefined)?.[key]
    if (typeof plain === 'string') return plain
    const encoded = kind === 'Secret' ? (found?.content['data'] as Table | undefined)?.[key] : undefined
    if (typeof encoded === 'string') return Buffer.from(encoded, 'base64').toString('utf8')
    if (optional) return undefined
    const message = `${kind} "${name}" ${found === undefined ? `is not in namespace "${this.#pipeline.namespace}"` : `has no key "${key}"`}`
    this.#report(resource, path, message)
    return undefined
  }

  /** Options and components that a tenant may not use, because they reach the node or the agent itself. */
  #checkTenancy(resource: Resource, path: PathKey[], list: string, type: string, config: Table): void {
    if (list === 'sources' && type === 'orchestrator_logs') {
      for (const option of [
        'data_dir',
        'extra_field_selector',
        'extra_namespace_label_selector',
        'kube_config_file',
        'logs_dir',
        'self_node_name',
      ]) {
        if (config[option] !== undefined) {
          const help = 'It is set for the Pipeline: its own namespace on the node where the agent runs.'
          this.#report(
            resource,
            [...path, 'config', option],
            `\`${option}\` is not allowed in a namespaced resource`,
            help,
          )
        }
      }
    }
    if (this.#options.ownMachine) return
    const refused =
      list === 'sources'
        ? ['stdin', 'file', 'internal_logs', 'internal_metrics']
        : list === 'sinks'
          ? ['console', 'file']
          : []
    if (refused.includes(type)) {
      const help =
        'It reads or writes the node or the agent; `penstock run` allows it on your own machine, and so does `penstock lint --own-machine`.'
      this.#report(resource, [...path, 'type'], `Type \`${type}\` is not allowed in a namespaced resource`, help)
    }
  }

  #tests(spec: Table): Table[] {
    const tests = spec['tests'] ?? []
    if (!Array.isArray(tests)) {
      this.#report(this.#pipeline, ['spec', 'tests'], '`spec.tests` must be a list')
      return []
    }
    return tests.flatMap((test, index) => this.#test(test, ['spec', 'tests', index]))
  }

  #test(test: unknown, path: PathKey[]): Table[] {
    if (!isTable(test) || typeof test['name'] !== 'string' || typeof test['insertAt'] !== 'string') {
      this.#report(this.#pipeline, path, 'A test needs `name`, `insertAt`, `input` and `expect`')
      return []
    }
    this.#checkMembers(this.#pipeline, path, test, ['name', 'insertAt', 'input', 'expect'])
    const input = (test['input'] ?? {}) as Table
    const insertAt = this.#id(test['insertAt'])
    const events: Table =
      input['log'] === undefined
        ? { insert_at: insertAt, type: 'raw', value: input['raw'] }
        : { insert_at: insertAt, type: 'log', log_fields: input['log'] }
    const outputs: Table[] = []
    const silent: string[] = []
    for (const [index, check] of ((test['expect'] ?? []) as unknown[]).entries()) {
      if (!isTable(check) || typeof check['at'] !== 'string') {
        this.#report(this.#pipeline, [...path, 'expect', index], 'An expectation needs `at` and `count` or `assert`')
        continue
      }
      this.#checkMembers(this.#pipeline, [...path, 'expect', index], check, ['at', 'count', 'assert'])
      if (check['count'] === 0) {
        silent.push(this.#id(check['at']))
        continue
      }
      outputs.push({
        extract_from: this.#id(check['at']),
        ...(check['assert'] === undefined ? {} : { conditions: [{ type: 'vrl', source: check['assert'] }] }),
        ...(check['count'] === undefined ? {} : { expected_event_count: check['count'] }),
      })
    }
    const name = `${this.#pipeline.namespace}/${this.#pipeline.name}: ${test['name']}`
    return [{ name, inputs: [events], outputs, ...(silent.length === 0 ? {} : { no_outputs_from: silent }) }]
  }

  #find(kind: string, name: string): Resource | undefined {
    return this.#resources.find(
      (resource) => resource.kind === kind && resource.name === name && resource.namespace === this.#pipeline.namespace,
    )
  }

  #checkMembers(resource: Resource, path: PathKey[], table: Table, known: readonly string[]): void {
    for (const member of Object.keys(table)) {
      if (known.includes(member)) continue
      this.#report(
        resource,
        [...path, member],
        `unknown field \`${member}\`, expected ${known.map((name) => `\`${name}\``).join(', ')}`,
      )
    }
  }

  #report(resource: Resource, path: readonly PathKey[], message: string, help?: string): void {
    this.#problems.push({ severity: 'error', path: pathLabel(path), message, help, ...resource.locate(path) })
  }
}

interface Entry {
  readonly name: string
  readonly content: Table
  readonly path: readonly PathKey[]
}

function isTable(value: unknown): value is Table {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function joined(separator: string, ...parts: unknown[]): string {
  return parts.filter((part) => typeof part === 'string' && part !== '').join(separator)
}
