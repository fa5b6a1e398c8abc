// One Pipeline and what it refers to, in; its components with concrete inputs, or every problem with its place, out. Pure: the
// same resources give the same result, whoever compiles them. The agent's own library checks the options (check.ts);
// this file knows only resources: references, grants, secrets, names, and the rules for tenants.

import { isSecretPlace, secretMarker } from '@penstock/agent/bundle/secret-places'
import type { ComponentKind } from '@penstock/agent/component'
import { optionsOf } from '@penstock/agent/config/component-options'
import { errorText } from '@penstock/agent/errors'
import { findComponent } from '@penstock/agent/registry'
import { platformRules, restrictedBy, unopenedRules } from '@penstock/agent/remap/rules'
import { meaningOf } from '@penstock/agent/schema/meaning'
import { isSecret } from '@penstock/agent/schema/messages'
import {
  aliasesOf,
  isTable,
  membersOf,
  type Place,
  type Schema,
  schemaBelow,
  walkOptions,
} from '@penstock/agent/schema/walk'
import { capturedFields } from '@penstock/agent/sources/orchestrator_logs/annotate'
import { compileFieldSelector } from '@penstock/agent/sources/orchestrator_logs/field-selector'
import type { Reason } from '../api/conditions.ts'
import { kindOf } from '../api/kinds.ts'
import { quantityOf } from '../api/quantity.ts'
import { type LabelSelector, selects } from '../api/selector.ts'
import { labelOf, type ShapeProblem, shapeProblems } from '../api/shape.ts'
import type { AllowedNamespaces } from '../api/source.ts'
import { type ArtifactMode, type HubLimits, type SecretPart, type SecretRef, secretKey } from './artifact.ts'
import type {
  CompiledPipeline,
  CompileOptions,
  CompileProblem,
  Origin,
  PodLogs,
  Table,
  Unresolved,
} from './compiled.ts'
import { type MultilinePreset, multilinePresets } from './multiline.ts'
import { type PathKey, type Resource, Resources } from './resources.ts'
import { placeholder, readUserTree } from './secrets.ts'
import { selectorText } from './selector.ts'
import {
  amountText,
  callViolations,
  capOf,
  fixedOptions,
  identityViolations,
  optionViolations,
  programBudgetOf,
  raisedBy,
  runsOn,
  typeViolations,
  type Violation,
} from './tenancy.ts'

export function compilePipeline(
  pipeline: Resource,
  resources: readonly Resource[] | Resources,
  options: CompileOptions,
): CompiledPipeline {
  const all = resources instanceof Resources ? resources : new Resources(resources)
  return new Compilation(pipeline, all, options).compile()
}

/** What is wrong with a Source or Sink by itself; its options are checked where a Pipeline uses it, too. */
export function sharedProblems(resource: Resource): CompileProblem[] {
  const kind = kindOf(resource.kind)
  if (kind === undefined) return []
  const problem = ({ path, message, help }: ShapeProblem, reason: Reason): CompileProblem => ({
    severity: 'error',
    reason,
    path: labelOf(path),
    message,
    help,
    ...resource.locate(path),
  })
  const { reserved } = readUserTree(resource.content['spec'], ['spec'])
  return [
    ...shapeProblems(kind, resource.content).map((one) => problem(one, 'InvalidConfig')),
    ...reserved.map(({ name, path }) => {
      const message = `\`${name}\` is a reserved name; found it at ${labelOf(path)}`
      const help =
        name === secretMarker ? 'Use `valueFrom` with `secretKeyRef` for the value of a Secret.' : 'Use another name.'
      return problem({ path, message, help }, 'ForbiddenOption')
    }),
  ]
}

/** The `spec` of a resource as everything below reads it: each field of the type that the schema of its kind gives it, or absent. */
function specOf(resource: Resource): unknown {
  const kind = kindOf(resource.kind)
  const problems = kind === undefined ? [] : shapeProblems(kind, resource.content)
  const unreadable = problems.flatMap(({ path, isUnreadable }) => (isUnreadable === true ? labelOf(path) : []))
  return readUserTree(resource.content['spec'], ['spec'], new Set(unreadable)).tree
}

type List = 'sources' | 'transforms' | 'sinks'
const kindOfList: Readonly<Record<List, ComponentKind>> = { sources: 'source', transforms: 'transform', sinks: 'sink' }

interface Entry {
  readonly name: string
  readonly content: Table
  readonly path: readonly PathKey[]
}

/** Where the type and options of an entry are written. */
interface Resolved {
  readonly resource: Resource
  readonly spec: Table
  readonly path: readonly PathKey[]
  /** Whether an author of namespaced resources wrote it: then the rules for tenants hold. */
  readonly tenant: boolean
}

class Compilation {
  readonly #pipeline: Resource
  readonly #resources: Resources
  readonly #options: CompileOptions
  readonly #cluster: boolean
  readonly #id: string
  readonly #problems: CompileProblem[] = []
  readonly #origins = new Map<string, Origin>()
  readonly #names = new Map<string, List>()
  readonly #aliases = new Map<string, { readonly name: string; readonly namespace: string }>()
  readonly #refs = new Map<string, SecretRef>()
  readonly #lent = new Set<string>()
  readonly #withheld = new Set<string>()
  readonly #references = new Set<string>()
  /** Where enforced options use what a source captures. */
  readonly #capturing: { readonly resource: Resource; readonly path: readonly PathKey[]; readonly field: string }[] = []
  readonly #platform = new Set<string>()
  #mode: ArtifactMode = 'Node'

  constructor(pipeline: Resource, resources: Resources, options: CompileOptions) {
    this.#pipeline = pipeline
    this.#resources = resources
    this.#options = options
    this.#cluster = pipeline.kind === 'ClusterPipeline'
    // Joined by a character that neither can contain, so ids never collide (T1).
    this.#id = `${this.#cluster ? '_cluster' : pipeline.namespace}/${pipeline.name}`
  }

  compile(): CompiledPipeline {
    this.#problems.push(...sharedProblems(this.#pipeline))
    const given = specOf(this.#pipeline)
    const spec: Table = isTable(given) ? given : {}
    this.#readAliases(spec)
    const entries = {
      sources: this.#entries(spec, 'sources'),
      transforms: this.#entries(spec, 'transforms'),
      sinks: this.#entries(spec, 'sinks'),
    }
    const resolved = new Map<Entry, Resolved>()
    for (const list of ['sources', 'transforms', 'sinks'] as const) {
      for (const entry of entries[list]) {
        const found = this.#resolve(entry, list)
        if (found !== undefined) resolved.set(entry, found)
      }
    }
    const sourceTypes = entries.sources.flatMap(
      (entry) => canonicalType('source', resolved.get(entry)?.spec['type']) ?? [],
    )
    this.#mode = this.#modeOf(spec, sourceTypes)

    const podLogs: PodLogs[] = []
    const sources: Record<string, Table> = {}
    const transforms: Record<string, Table> = {}
    const sinks: Record<string, Table> = {}
    const unresolved: Unresolved[] = []
    for (const entry of entries.sources) {
      const found = resolved.get(entry)
      if (found === undefined) {
        unresolved.push({ list: 'sources', id: this.#idOf(entry.name), inputs: [] })
        continue
      }
      const { type, ...options } = this.#component(entry, found, 'sources')
      if (canonicalType('source', type) === 'orchestrator_logs')
        podLogs.push(this.#podLogs(entry, found, options, spec))
      else {
        this.#refuseSelectors(entry, found)
        // Whoever wrote the options, a Pipeline of a namespace reads no other (T3).
        const isBound = canonicalType('source', type) === 'orchestrator_events' && !this.#cluster
        const bound = isBound ? { namespaces: [this.#pipeline.namespace] } : {}
        sources[this.#idOf(entry.name)] = { type, ...options, ...bound }
        this.#notePlatform(entry, found)
      }
    }
    let previous = entries.sources.map((entry) => entry.name)
    for (const entry of entries.transforms) {
      const found = resolved.get(entry)
      const inputs = this.#inputs(entry, previous)
      previous = [entry.name]
      if (found === undefined) unresolved.push({ list: 'transforms', id: this.#idOf(entry.name), inputs })
      else transforms[this.#idOf(entry.name)] = { ...this.#component(entry, found, 'transforms'), inputs }
    }
    for (const entry of entries.sinks) {
      const found = resolved.get(entry)
      const inputs = this.#inputs(entry, previous)
      if (found === undefined) {
        unresolved.push({ list: 'sinks', id: this.#idOf(entry.name), inputs })
        continue
      }
      sinks[this.#idOf(entry.name)] = { ...this.#component(entry, found, 'sinks'), inputs }
      this.#notePlatform(entry, found)
    }
    this.#checkCaptured(sources)
    this.#checkBuffers(sinks)
    const deadLetter = this.#deadLetter(spec, transforms, sinks)
    const tests = this.#tests(spec)
    return {
      id: this.#id,
      mode: this.#mode,
      podLogs,
      sources,
      transforms,
      sinks,
      programs: this.#options.ownMachine
        ? platformRules
        : this.#cluster
          ? unopenedRules
          : restrictedBy(programBudgetOf(this.#options.policy)),
      tests,
      secretRefs: [...this.#refs.values()].toSorted((left, right) => (left.key < right.key ? -1 : 1)),
      lent: [...this.#lent].toSorted(),
      withheld: [...this.#withheld].toSorted(),
      sourceTypes: [...new Set(sourceTypes)].toSorted(),
      references: [...this.#references].toSorted(),
      platform: [...this.#platform].toSorted(),
      deadLetter,
      origins: this.#origins,
      unresolved,
      problems: this.#problems,
    }
  }

  #idOf(name: string): string {
    return `${this.#id}/${name}`
  }

  // --- Entries and what they refer to ---

  #entries(spec: Table, list: List): Entry[] {
    const items = spec[list]
    const entries: Entry[] = []
    for (const [index, content] of Array.isArray(items) ? items.entries() : []) {
      const path: PathKey[] = ['spec', list, index]
      if (!isTable(content) || typeof content['name'] !== 'string') continue // its shape is told already
      const { name } = content
      const earlier = this.#names.get(name)
      if (earlier !== undefined) {
        const help = `An entry of \`spec.${earlier}\` has the same name; names are unique across sources, transforms and sinks.`
        this.#report(this.#pipeline, [...path, 'name'], `The name "${name}" is used twice`, help)
        continue
      }
      this.#names.set(name, list)
      entries.push({ name, content, path })
    }
    return entries
  }

  #resolve(entry: Entry, list: List): Resolved | undefined {
    const reference = entry.content['ref']
    if (list === 'transforms' || (reference === undefined) !== (entry.content['type'] === undefined)) {
      if (reference === undefined) {
        return { spec: entry.content, resource: this.#pipeline, path: entry.path, tenant: !this.#cluster }
      }
    } else {
      this.#report(this.#pipeline, entry.path, `"${entry.name}" needs either \`type\` with \`config\`, or \`ref\``)
      return undefined
    }
    if (!isTable(reference)) return undefined
    if (entry.content['config'] !== undefined) {
      this.#report(this.#pipeline, [...entry.path, 'config'], '`config` and `ref` cannot both be given')
    }
    const kind = String(reference['kind'])
    const name = String(reference['name'])
    const word = list === 'sources' ? 'Source' : 'Sink'
    if (kind !== `Cluster${word}` && (kind !== word || this.#cluster)) return undefined // told by the shape
    const shared = kind.startsWith('Cluster')
    const path = [...entry.path, 'ref']
    const namespace = shared ? '' : this.#pipeline.namespace
    this.#references.add(`${kind} ${shared ? '' : `${namespace}/`}${name}`)
    const target = this.#resources.find(kind, namespace, name)
    if (target === undefined) {
      const known = this.#resources.all
        .filter((each) => each.kind === kind && each.namespace === namespace)
        .map((each) => each.name)
      const where = shared ? 'in the cluster' : `in namespace "${namespace}"`
      const help = known.length === 0 ? `There is no ${kind} ${where}.` : `There are: ${known.join(', ')}.`
      const reason = list === 'sources' ? 'SourceNotFound' : 'SinkNotFound'
      if (shared && this.#options.unseen?.clusterKinds === true) {
        const message = `${kind} "${name}" is not seen: this operator watches namespaces one by one, and Cluster kinds are off then`
        const own = `Use a ${kind.slice('Cluster'.length)} of namespace "${this.#pipeline.namespace}".`
        this.#report(this.#pipeline, [...path, 'name'], message, own, reason)
        return undefined
      }
      this.#report(this.#pipeline, [...path, 'name'], `${kind} "${name}" is not ${where}`, help, reason)
      return undefined
    }
    const spec = specOf(target)
    this.#problems.push(...sharedProblems(target))
    if (!isTable(spec)) return undefined
    if (shared && !this.#cluster && !this.#isGranted(spec['allowedNamespaces'] as AllowedNamespaces | undefined)) {
      const message = `${kind} "${name}" is not open to namespace "${this.#pipeline.namespace}"`
      const help = 'Its owner opens it by `spec.allowedNamespaces`.'
      this.#report(this.#pipeline, path, message, help, 'RefNotPermitted')
      return undefined
    }
    return { spec, resource: target, path: ['spec'], tenant: !shared && !this.#cluster }
  }

  #isGranted(allowed: AllowedNamespaces | undefined): boolean {
    if (allowed?.from === 'All') return true
    if (allowed?.from !== 'Selector') return false
    const { namespace } = this.#pipeline
    const metadata = this.#resources.find('Namespace', '', namespace)?.content['metadata'] as
      | { labels?: Record<string, string> }
      | undefined
    return selects(allowed.selector, { 'kubernetes.io/metadata.name': namespace, ...metadata?.labels })
  }

  #modeOf(spec: Table, types: readonly string[]): ArtifactMode {
    const mode = spec['mode'] ?? 'Auto'
    const elsewhere = types.filter((type) => runsOn(type) === 'aggregator')
    const onNode = types.filter((type) => runsOn(type) === 'node')
    if (mode === 'Auto' || (mode !== 'Node' && mode !== 'Aggregator' && mode !== 'Sidecar')) {
      if (elsewhere.length > 0 && onNode.length > 0) {
        const message = `Sources of type ${onNode[0]} run on nodes and those of type ${elsewhere[0]} on an aggregator`
        this.#report(this.#pipeline, ['spec', 'sources'], message, 'Make a Pipeline of each.')
      }
      return elsewhere.length > 0 ? 'Aggregator' : 'Node'
    }
    if (mode !== 'Aggregator' && types.includes('orchestrator_events')) {
      const message = `Sources of type orchestrator_events need \`mode: Aggregator\`; found ${mode}`
      const help = 'Every agent would collect all events. Set `spec.mode` to Aggregator, or leave it out.'
      this.#report(this.#pipeline, ['spec', 'mode'], message, help)
    }
    if (mode !== 'Node' && types.includes('orchestrator_logs')) {
      this.#report(
        this.#pipeline,
        ['spec', 'mode'],
        `Sources of type orchestrator_logs need \`mode: Node\`; found ${mode}`,
      )
    }
    return mode
  }

  // --- Options ---

  #component(entry: Entry, resolved: Resolved, list: List): Table {
    const { spec, resource, path } = resolved
    const kind = kindOfList[list]
    const type = spec['type']
    const config = isTable(spec['config']) ? spec['config'] : {}
    const below = [...path, 'config']
    this.#origins.set(`${list}.${this.#idOf(entry.name)}`, { resource, path: below })
    for (const member of ['type', 'inputs']) {
      if (config[member] === undefined) continue
      const message = `\`${member}\` is not an option of a component`
      this.#report(resource, [...below, member], message, 'It stands beside `config`, not in it.')
    }
    let options = config
    if (resolved.tenant && typeof type === 'string') {
      this.#forbid(resource, path, typeViolations(kind, type, this.#mode, this.#options))
      this.#forbid(resource, below, optionViolations(kind, type, config, this.#mode, this.#options))
    }
    if (typeof type === 'string' && !this.#options.ownMachine) {
      for (const { path: inner, message, help } of fixedOptions(kind, type, config, resolved.tenant)) {
        const at = [...below, ...inner]
        const place = { path: labelOf(at), ...resource.locate(at) }
        this.#problems.push({ severity: 'warning', reason: 'InvalidConfig', message, help, ...place })
      }
    }
    if (isShared(resource) && !isLent(resource) && holdsPlainSecret(kind, type, config))
      this.#withheld.add(`${resource.kind} ${resource.name}`)
    const values = this.#substituteMembers(resolved, below, options)
    options = values
    if (list === 'sinks' && entry.content['ref'] !== undefined) options = this.#sharedOptions(entry, resolved, values)
    // Credentials are judged as they will be used: a reference that is optional and absent has left its option out.
    if (typeof type === 'string') {
      const found = identityViolations(kind, type, options, this.#options)
      if (resolved.tenant) this.#forbid(resource, below, found)
      else if (!this.#cluster && isTable(entry.content['overrides'])) {
        // The owner of a cluster kind may use the identity of the agent. An override may not begin to.
        const owners = new Set(identityViolations(kind, type, values, this.#options).map(({ path }) => labelOf(path)))
        const begun = found.filter(({ path }) => !owners.has(labelOf(path)))
        this.#forbid(this.#pipeline, [...entry.path, 'overrides'], begun)
      }
    }
    const { inputs: _, type: __, ...rest } = options
    return { type, ...rest }
  }

  /** Options of a shared sink with what the Pipeline may change, and under it what the owner enforces (T13). */
  #sharedOptions(entry: Entry, resolved: Resolved, values: Table): Table {
    const { spec, resource } = resolved
    let options = values
    const overrides = entry.content['overrides']
    if (isTable(overrides)) {
      const path = [...entry.path, 'overrides']
      const allowed = (spec['overridable'] ?? []) as readonly string[]
      for (const [leaf] of leaves(overrides)) {
        const text = leaf.join('.')
        if (allowed.some((each) => text === each || text.startsWith(`${each}.`))) continue
        const help =
          allowed.length === 0 ? 'Its owner lists none in `spec.overridable`.' : `It allows ${allowed.join(', ')}.`
        const message = `\`${text}\` of ${resource.kind} "${resource.name}" cannot be overridden`
        this.#report(this.#pipeline, [...path, ...leaf], message, help, 'ForbiddenOption')
      }
      const mine: Resolved = { resource: this.#pipeline, spec: entry.content, path: entry.path, tenant: !this.#cluster }
      if (mine.tenant) {
        // An option that is forbidden in a config is forbidden in an override.
        const found = optionViolations('sink', String(spec['type']), overrides, this.#mode, this.#options)
        this.#forbid(this.#pipeline, path, found)
      }
      options = merged(options, this.#substituteMembers(mine, path, overrides))
    }
    const enforced = spec['enforced']
    if (!isTable(enforced)) return options
    const fixed = this.#enforced(resource, ['spec', 'enforced'], enforced) as Table
    const declaration = findComponent('sink', String(spec['type']))
    const schema = declaration === undefined ? undefined : optionsOf(declaration).schema
    this.#checkEnforcedNames(resource, ['spec', 'enforced'], fixed, schema)
    return merged(withoutOthers(options, fixed, schema), fixed)
  }

  /**
   * Enforced values. Programs of a Pipeline can write what they like into events, but not into what the source has captured:
   * templates see that instead, and the namespace is written out.
   */
  #enforced(resource: Resource, path: readonly PathKey[], value: unknown): unknown {
    if (this.#cluster) return value
    if (typeof value === 'string') {
      return value.replace(/\{\{\s*([^}]+?)\s*\}\}/g, (whole, field: string) => {
        const [, name, rest = ''] = /^\.?orchestrator\.([a-z_]+)(.*)$/.exec(field) ?? []
        if (name === 'pod_namespace' && rest === '') return this.#pipeline.namespace
        if (name !== undefined && capturedFields.includes(name)) {
          this.#capturing.push({ resource, path, field })
          const root = this.#options.standalone === true ? '.' : '%vector.'
          return `{{ ${root}orchestrator.${name}${rest} }}`
        }
        const message = `\`enforced\` may only use what a source captures; found ${whole}`
        const help = `Other fields can be changed by the programs of a Pipeline. There are, below \`orchestrator.\`: ${capturedFields.join(', ')}.`
        this.#report(resource, path, message, help)
        return whole
      })
    }
    if (Array.isArray(value)) return value.map((item, index) => this.#enforced(resource, [...path, index], item))
    if (!isTable(value)) return value
    return Object.fromEntries(
      Object.entries(value).map(([name, member]) => [name, this.#enforced(resource, [...path, name], member)]),
    )
  }

  /** A name that is made of an event's fields may come out as any other, and as one that is enforced. */
  #checkEnforcedNames(resource: Resource, path: readonly PathKey[], value: unknown, schema: Schema | undefined): void {
    if (schema === undefined || !isTable(value)) return
    for (const [name, member] of Object.entries(value)) {
      if (schema['x-names'] === 'template' && (name.includes('{{') || name.endsWith('*'))) {
        const message = `\`${path.slice(2).join('.')}\` of \`enforced\` must have names that are written out; found ${JSON.stringify(name)}`
        this.#report(resource, [...path, name], message, 'Write a name for each; values may be templates.')
      }
      this.#checkEnforcedNames(resource, [...path, name], member, schemaBelow(schema, name))
    }
  }

  /** Events of other sources have no pod. */
  #checkCaptured(sources: Readonly<Record<string, Table>>): void {
    const [other] = Object.entries(sources)
    if (other === undefined) return
    for (const { resource, path, field } of this.#capturing) {
      const message = `\`enforced\` uses {{ ${field} }}, which only pod logs have; "${other[0].split('/')[2]}" is a source of type ${other[1]['type']}`
      this.#report(resource, path, message, 'Make a Pipeline of the pod logs alone.')
    }
  }

  /** Memory buffers are bounded one by one, and all of a Pipeline together (T11). */
  #checkBuffers(sinks: Readonly<Record<string, Table>>): void {
    if (this.#cluster || this.#options.ownMachine) return
    let sum = 0
    for (const { type, ...options } of Object.values(sinks)) sum += bufferedEvents(String(type), options)
    const limit = 'pipelineBufferEvents'
    const cap = capOf(limit, this.#options.policy)
    if (sum <= cap) return
    const message = `The memory buffers of a Pipeline must hold ${amountText(limit, cap)} events or fewer together (T11); found ${sum}`
    this.#report(this.#pipeline, ['spec', 'sinks'], message, raisedBy(limit), 'ForbiddenOption')
  }

  /** A component that its owner in the platform answers for, wherever it connects to. */
  #notePlatform(entry: Entry, { spec, tenant }: Resolved): void {
    if (this.#cluster || tenant) return
    if (isOwnersAddress(String(spec['type']), spec['config'], entry.content['overrides']))
      this.#platform.add(this.#idOf(entry.name))
  }

  #forbid(resource: Resource, base: readonly PathKey[], violations: readonly Violation[]): void {
    for (const { path, message, help } of violations) {
      this.#report(resource, [...base, ...path], message, help, 'ForbiddenOption')
    }
  }

  // --- Pod logs ---

  #podLogs(entry: Entry, resolved: Resolved, options: Table, spec: Table): PodLogs {
    const places = [{ resource: this.#pipeline, path: entry.path, spec: entry.content }]
    if (resolved.resource !== this.#pipeline) places.push(resolved)
    const labels: string[] = []
    const namespaces: string[] = []
    const excluded: string[] = []
    let optIn = false
    let multiline = options['multiline']
    for (const { resource, path, spec: own } of places) {
      const selector = own['selector']
      if (isTable(selector)) {
        labels.push(selectorText((selector['pods'] ?? {}) as LabelSelector))
        const wanted = selector['namespaces']
        if (wanted !== undefined && resource.kind !== 'ClusterPipeline' && resource.kind !== 'ClusterSource') {
          const message = '`selector.namespaces` is not allowed in a namespaced resource (T3)'
          const help = 'A Pipeline reads the pods of its own namespace.'
          this.#report(resource, [...path, 'selector', 'namespaces'], message, help, 'ForbiddenOption')
        } else if (isTable(wanted)) {
          namespaces.push(selectorText(wanted as LabelSelector))
        }
        const containers = isTable(selector['containers']) ? selector['containers'] : {}
        excluded.push(...((containers['exclude'] ?? []) as string[]))
        if (selector['optIn'] === true) optIn = true
      }
      if (own['multiline'] !== undefined)
        multiline = this.#multiline(resource, [...path, 'multiline'], own['multiline'])
    }
    const nodeFields = options['node_annotation_fields']
    if (this.#options.unseen?.nodeLabels === true && isTable(nodeFields) && nodeFields['node_labels']) {
      const path = [...resolved.path, 'config', 'node_annotation_fields', 'node_labels']
      const message = '`node_labels` needs the labels of nodes, which agents with the rights of namespaces cannot see'
      this.#report(resolved.resource, path, message, 'Leave it out, or set it to "".')
    }
    const {
      extra_label_selector: extraLabels,
      extra_namespace_label_selector: extraNamespaces,
      extra_field_selector: extraFields,
      ...rest
    } = options
    const fieldSelector = typeof extraFields === 'string' ? extraFields : ''
    this.#checkFieldSelector(resolved, fieldSelector)
    return {
      name: entry.name,
      id: this.#idOf(entry.name),
      namespaces: this.#cluster ? undefined : [this.#pipeline.namespace],
      namespaceSelector: this.#cluster ? joined(extraNamespaces, ...namespaces) : '',
      podSelector: joined(extraLabels, ...labels),
      fieldSelector,
      excludeContainers: [...new Set(excluded)],
      optIn,
      limits: this.#limits(spec),
      options: { ...rest, ...(multiline === undefined ? {} : { multiline }) },
    }
  }

  #checkFieldSelector({ resource, path }: Resolved, text: string): void {
    try {
      compileFieldSelector(text)
    } catch (error) {
      this.#report(resource, [...path, 'config', 'extra_field_selector'], errorText(error))
    }
  }

  #refuseSelectors(entry: Entry, resolved: Resolved): void {
    const places = [{ resource: this.#pipeline, path: entry.path, spec: entry.content }]
    if (resolved.resource !== this.#pipeline) places.push(resolved)
    for (const { resource, path, spec } of places) {
      for (const member of ['selector', 'multiline']) {
        if (spec[member] === undefined) continue
        this.#report(resource, [...path, member], `\`${member}\` is only for sources of type \`orchestrator_logs\``)
      }
    }
  }

  #limits(spec: Table): HubLimits | undefined {
    const limits = isTable(spec['limits']) ? spec['limits'] : {}
    const own = isTable(limits['perContainer']) ? limits['perContainer'] : undefined
    const whole = isTable(limits['pipeline']) ? limits['pipeline'] : undefined
    const bytes = quantityOf(whole?.['bytesPerSecond'] as string | undefined)
    const shared = this.#cluster ? [] : this.#sharedLimits(spec)
    const onLimit = (table: Table | undefined) => (table?.['onLimit'] === 'Drop' ? 'drop' : 'lag')
    const perContainer =
      own === undefined
        ? undefined
        : {
            lines: own['linesPerSecond'] as number | undefined,
            bytes: quantityOf(own['bytesPerSecond'] as string | undefined),
            onLimit: onLimit(own) as 'drop' | 'lag',
          }
    const pipeline = bytes === undefined ? undefined : { bytes, onLimit: onLimit(whole) as 'drop' | 'lag' }
    if (perContainer === undefined && pipeline === undefined && shared.length === 0) return undefined
    return { perContainer, pipeline, shared: shared.length === 0 ? undefined : shared }
  }

  /** What the namespace may read for its policy's quota, and for each shared sink that a Pipeline sends to. */
  #sharedLimits(spec: Table): { readonly key: string; readonly bytes: number }[] {
    const { namespace } = this.#pipeline
    const limits = new Map<string, number>()
    const quota = quantityOf(this.#options.policy?.quota?.bytesPerSecond)
    if (quota !== undefined) limits.set(`${namespace}/quota`, quota)
    for (const entry of (spec['sinks'] ?? []) as readonly unknown[]) {
      if (!isTable(entry) || !isTable(entry['ref'])) continue
      const { kind, name } = entry['ref']
      const shared = this.#resources.find(String(kind), kind === 'Sink' ? namespace : '', String(name))
      const sink = (shared === undefined ? undefined : specOf(shared)) as
        | { limits?: { perNamespace?: { bytesPerSecond?: string | number } } }
        | undefined
      const bytes = quantityOf(sink?.limits?.perNamespace?.bytesPerSecond)
      if (bytes !== undefined) limits.set(`${namespace}/${kind}/${name}`, bytes)
    }
    return [...limits].map(([key, bytes]) => ({ key, bytes })).sort((left, right) => (left.key < right.key ? -1 : 1))
  }

  #multiline(resource: Resource, path: PathKey[], value: unknown): Table | undefined {
    if (!isTable(value)) return undefined
    const { custom, preset } = value
    if ((custom === undefined) === (preset === undefined)) {
      this.#report(resource, path, '`multiline` needs either `preset` or `custom`')
      return undefined
    }
    if (isTable(custom)) {
      return {
        start_pattern: custom['start'],
        condition_pattern: custom['condition'],
        mode: custom['mode'],
        timeout_ms: custom['timeoutMs'] ?? 1000,
      }
    }
    const isKnown = typeof preset === 'string' && Object.hasOwn(multilinePresets, preset)
    return isKnown ? { ...multilinePresets[preset as MultilinePreset] } : undefined
  }

  // --- Inputs ---

  /** Inputs as ids. Names mean entries of this Pipeline; wildcards are expanded here and never reach the agent (T2). */
  #inputs(entry: Entry, fallback: readonly string[]): string[] {
    const inputs = entry.content['inputs']
    if (!Array.isArray(inputs)) return fallback.map((name) => this.#idOf(name))
    const path = [...entry.path, 'inputs']
    const ids: string[] = []
    const names = [...this.#names.keys()].filter((name) => name !== entry.name && this.#names.get(name) !== 'sinks')
    for (const [index, input] of inputs.entries()) {
      if (typeof input !== 'string') continue
      const [name, port] = input.split('.', 2) as [string, string | undefined]
      const matching = names.filter((known) => isMeant(known, name))
      if (matching.length === 0) {
        const help = names.length === 0 ? undefined : `Known names: ${names.join(', ')}.`
        const message = `No source or transform of this Pipeline is named "${name}"`
        this.#report(this.#pipeline, [...path, index], message, help)
      }
      for (const match of matching) ids.push(`${this.#idOf(match)}${port === undefined ? '' : `.${port}`}`)
    }
    return [...new Set(ids)]
  }

  // --- Secrets ---

  #readAliases(spec: Table): void {
    const secrets = spec['secrets']
    for (const [index, entry] of Array.isArray(secrets) ? secrets.entries() : []) {
      if (!isTable(entry) || typeof entry['alias'] !== 'string' || typeof entry['secretName'] !== 'string') continue
      const namespace = this.#cluster ? entry['namespace'] : this.#pipeline.namespace
      const path = ['spec', 'secrets', index]
      if (typeof namespace !== 'string') {
        this.#report(this.#pipeline, path, 'A Secret of a ClusterPipeline needs `namespace`')
        continue
      }
      this.#aliases.set(entry['alias'], { name: entry['secretName'], namespace })
    }
  }

  /** The options with `valueFrom` and `SECRET[alias.key]` replaced on the parsed tree: any text is a legal value. */
  #substitute(from: Resolved, path: readonly PathKey[], value: unknown): unknown {
    if (typeof value === 'string') return this.#placeholders(from, path, value)
    if (Array.isArray(value)) return value.map((item, index) => this.#substitute(from, [...path, index], item))
    if (!isTable(value)) return value
    if (Object.hasOwn(value, 'valueFrom')) {
      const others = Object.keys(value).filter((name) => name !== 'valueFrom')
      if (others.length === 0) return this.#valueFrom(from, [...path, 'valueFrom'], value['valueFrom'])
      const message = `\`valueFrom\` must stand alone; found ${others.map((name) => `\`${name}\``).join(', ')} beside it`
      this.#report(from.resource, [...path, 'valueFrom'], message)
      return undefined
    }
    return this.#substituteMembers(from, path, value)
  }

  /** A table that is no value itself, as a component's options are. */
  #substituteMembers(from: Resolved, path: readonly PathKey[], table: Table): Table {
    const members = Object.entries(table).map(([key, item]) => [key, this.#substitute(from, [...path, key], item)])
    return Object.fromEntries(members.filter(([, item]) => item !== undefined))
  }

  #placeholders(from: Resolved, path: readonly PathKey[], text: string): unknown {
    const parts: (string | SecretPart)[] = []
    let end = 0
    for (const match of text.matchAll(placeholder)) {
      const [whole, alias, key, filter] = match as unknown as [string, string, string, string | undefined]
      if (match.index > end) parts.push(text.slice(end, match.index))
      end = match.index + whole.length
      const part = this.#aliased(from, path, whole, alias, key, filter)
      if (part === undefined) return text
      parts.push(part)
    }
    if (parts.length === 0) return text
    if (end < text.length) parts.push(text.slice(end))
    return this.#place(parts)
  }

  #aliased(
    { resource }: Resolved,
    path: readonly PathKey[],
    whole: string,
    alias: string,
    key: string,
    filter: string | undefined,
  ): SecretPart | undefined {
    if (resource.kind === 'ClusterSink' || resource.kind === 'ClusterSource') {
      const help = 'Aliases belong to Pipelines; use `valueFrom` with `secretKeyRef` and its namespace.'
      this.#report(resource, path, `${whole} cannot be used in a ${resource.kind}`, help)
      return undefined
    }
    const secret = this.#aliases.get(alias)
    if (secret === undefined) {
      this.#report(resource, path, `"${alias}" in ${whole} is no alias of \`spec.secrets\``)
      return undefined
    }
    if (filter !== undefined && filter !== '|uri') {
      this.#report(resource, path, `"${filter.slice(1)}" in ${whole} is no filter; there is \`uri\``)
      return undefined
    }
    const part: SecretPart = { kind: 'Secret', ...secret, key, ...(filter === undefined ? {} : { filter: 'uri' }) }
    this.#isThere(resource, path, part, false)
    return part
  }

  #valueFrom(from: Resolved, path: PathKey[], value: unknown): unknown {
    const { resource } = from
    const given = Object.entries(isTable(value) ? value : {})
    const [member, reference] = given[0] ?? []
    if (given.length !== 1 || member === undefined || !isTable(reference)) {
      const message = '`valueFrom` needs exactly one of `secretKeyRef`, `configMapKeyRef` and `fieldRef`'
      this.#report(resource, path, message)
      return undefined
    }
    if (member === 'fieldRef') return this.#field(resource, [...path, member], reference)
    const kind = member === 'secretKeyRef' ? 'Secret' : member === 'configMapKeyRef' ? 'ConfigMap' : undefined
    const { name, key } = reference
    if (kind === undefined || typeof name !== 'string' || typeof key !== 'string') {
      this.#report(resource, path, '`valueFrom` needs `secretKeyRef` or `configMapKeyRef` with `name` and `key`')
      return undefined
    }
    const namespaced = kindOf(resource.kind)?.namespaced !== false
    const below = [...path, member]
    let namespace = this.#pipeline.namespace
    if (namespaced) {
      if (reference['namespace'] !== undefined) {
        const message = `\`${member}.namespace\` is not allowed in a namespaced resource (T8)`
        const help = 'Only values of the same namespace can be used.'
        this.#report(resource, [...below, 'namespace'], message, help, 'ForbiddenOption')
        return undefined
      }
    } else if (typeof reference['namespace'] === 'string') {
      namespace = reference['namespace']
    } else {
      this.#report(resource, below, `\`${member}\` of a ${resource.kind} needs \`namespace\``)
      return undefined
    }
    const part: SecretPart = { kind, namespace, name, key }
    const optional = reference['optional'] === true
    // What is missing is told; a place is kept for it, so that everything else can be checked.
    if (!this.#isThere(resource, below, part, optional) && optional) return undefined
    const place = this.#place([part])
    if (isLent(resource)) this.#lent.add(place.$secret)
    return place
  }

  #field(resource: Resource, path: PathKey[], reference: Table): unknown {
    const field = reference['fieldPath']
    if (field === 'metadata.namespace') return this.#pipeline.namespace
    if (field === 'clusterName' && this.#options.clusterName) return this.#options.clusterName
    const help =
      field === 'clusterName'
        ? 'The operator was not told it: --cluster-name.'
        : field === 'spec.nodeName'
          ? 'A configuration is the same on every node; use the template {{ orchestrator.pod_node_name }}.'
          : undefined
    const message = `\`fieldPath\` must be metadata.namespace or clusterName; found ${JSON.stringify(field) ?? 'none'}`
    this.#report(resource, path, message, help)
    return undefined
  }

  #isThere(resource: Resource, path: readonly PathKey[], part: SecretPart, optional: boolean): boolean {
    const keys = this.#keysOf(part)
    if (keys === 'any' || keys?.has(part.key)) return true
    if (optional) return false
    const what = `${part.kind} "${part.name}"`
    if (keys === undefined) {
      this.#report(resource, path, `${what} is not in namespace "${part.namespace}"`, undefined, 'SecretNotFound')
    } else {
      this.#report(resource, path, `${what} has no key "${part.key}"`, undefined, 'SecretKeyNotFound')
    }
    return false
  }

  #keysOf({ kind, namespace, name }: SecretPart): ReadonlySet<string> | 'any' | undefined {
    if (this.#options.keysOf !== undefined) return this.#options.keysOf(kind, namespace, name)
    const found = this.#resources.find(kind, namespace, name)
    if (found === undefined) return this.#options.secretsRequired === true ? undefined : 'any'
    const { data, stringData } = found.content as { data?: Table; stringData?: Table }
    return new Set([...Object.keys(data ?? {}), ...Object.keys(stringData ?? {})])
  }

  #place(parts: readonly (string | SecretPart)[]): { readonly $secret: string } {
    const key = secretKey(this.#id, parts)
    this.#refs.set(key, { key, parts })
    return { $secret: key }
  }

  // --- Failed events and tests ---

  /**
   * Events that a program gave up on leave through a port of their own and go to the dead letter sink. Gives that sink for what
   * destinations reject.
   */
  #deadLetter(
    spec: Table,
    transforms: Record<string, Table>,
    sinks: Record<string, Table>,
  ): CompiledPipeline['deadLetter'] {
    const letter = isTable(spec['onError']) ? spec['onError']['deadLetter'] : undefined
    if (!isTable(letter)) return undefined
    const path = ['spec', 'onError', 'deadLetter']
    const id = this.#idOf(String(letter['sink']))
    const sink = sinks[id]
    if (this.#names.get(String(letter['sink'])) !== 'sinks') {
      const known = [...this.#names].filter(([, list]) => list === 'sinks').map(([name]) => name)
      const message = `No sink of this Pipeline is named "${letter['sink']}"`
      this.#report(this.#pipeline, [...path, 'sink'], message, `Known names: ${known.join(', ')}.`)
      return undefined
    }
    const dropped: string[] = []
    const programs = Object.entries(transforms).filter(([, { type }]) => type === 'remap')
    // What a destination rejects has no event any more, and so not what its source has captured: a sink whose owner enforces values by
    // that (T13), or that uses it itself, does not get it.
    const takesRejected = sink !== undefined && !mentions(sink, '%vector.')
    const others = takesRejected ? Object.keys(sinks).filter((each) => each !== id).length : 0
    const most = letter['maxEventsPerSecond']
    // Programs and sinks know nothing of each other: each has its part of the whole.
    const part = typeof most === 'number' ? most / (programs.length + others) : undefined
    const limit = part === undefined ? {} : { reroute_dropped_limit: part }
    for (const [program, transform] of programs) {
      transforms[program] = { drop_on_error: true, drop_on_abort: true, ...transform, reroute_dropped: true, ...limit }
      dropped.push(`${program}.dropped`)
    }
    if (sink === undefined) return undefined
    const inputs = sink['inputs'] as readonly string[]
    sinks[id] = { ...sink, inputs: [...new Set([...inputs, ...dropped])] }
    if (others === 0) return undefined
    return { sink: id, ...(part === undefined ? {} : { perSecond: part }) }
  }

  #tests(spec: Table): Table[] {
    const tests = spec['tests']
    if (!Array.isArray(tests)) {
      const needed = this.#options.policy?.tests?.required === true && !this.#cluster
      if (needed && Array.isArray(spec['transforms']) && spec['transforms'].length > 0) {
        this.#report(
          this.#pipeline,
          ['spec', 'tests'],
          'The TenantPolicy asks for `tests` of Pipelines with transforms',
        )
      }
      return []
    }
    const names = new Set<unknown>()
    return tests.flatMap((test, index) => {
      const path: PathKey[] = ['spec', 'tests', index]
      if (!isTable(test) || typeof test['name'] !== 'string' || typeof test['insertAt'] !== 'string') return []
      if (names.has(test['name']))
        this.#report(this.#pipeline, [...path, 'name'], `The name "${test['name']}" is used twice`)
      names.add(test['name'])
      return this.#test(test, path)
    })
  }

  #test(test: Table, path: PathKey[]): Table[] {
    const input = isTable(test['input']) ? test['input'] : {}
    const insertAt = this.#idOf(String(test['insertAt']))
    if ((input['log'] === undefined) === (input['raw'] === undefined)) {
      this.#report(this.#pipeline, [...path, 'input'], '`input` needs either `raw` or `log`')
      return []
    }
    const events: Table =
      input['log'] === undefined
        ? { insert_at: insertAt, type: 'raw', value: input['raw'] }
        : { insert_at: insertAt, type: 'log', log_fields: input['log'] }
    const outputs: Table[] = []
    const silent: string[] = []
    const checks = Array.isArray(test['expect']) ? test['expect'] : []
    for (const [index, check] of checks.entries()) {
      if (!isTable(check) || typeof check['at'] !== 'string') continue
      const { count, assert } = check
      if (typeof assert === 'string' && !this.#cluster && !this.#options.ownMachine) {
        this.#forbid(this.#pipeline, [...path, 'expect', index, 'assert'], callViolations(assert, []))
      }
      if (count === 0) {
        silent.push(this.#idOf(check['at']))
        continue
      }
      outputs.push({
        extract_from: this.#idOf(check['at']),
        ...(assert === undefined ? {} : { conditions: [{ type: 'vrl', source: assert }] }),
        ...(count === undefined ? {} : { expected_event_count: count }),
      })
    }
    const name = `${this.#id}: ${test['name']}`
    return [{ name, inputs: [events], outputs, ...(silent.length === 0 ? {} : { no_outputs_from: silent }) }]
  }

  #report(
    resource: Resource,
    path: readonly PathKey[],
    message: string,
    help?: string,
    reason: Reason = 'InvalidConfig',
  ): void {
    this.#problems.push({ severity: 'error', reason, path: labelOf(path), message, help, ...resource.locate(path) })
  }
}

/**
 * Whether a pattern means a name, `*` being any characters. Each part is looked for once, at the first place where it can be: a regular
 * expression would try all places of each part with all of the others.
 */
function isMeant(name: string, pattern: string): boolean {
  const [first = '', ...rest] = pattern.split('*')
  const last = rest.pop()
  if (last === undefined) return name === pattern
  if (!name.startsWith(first)) return false
  let at = first.length
  for (const part of rest) {
    const found = name.indexOf(part, at)
    if (found < 0) return false
    at = found + part.length
  }
  return name.length - last.length >= at && name.endsWith(last)
}

function canonicalType(kind: ComponentKind, type: unknown): string | undefined {
  return typeof type === 'string' ? (findComponent(kind, type)?.type ?? type) : undefined
}

/** Whether a text below a value, or a key, has a part. */
function mentions(value: unknown, part: string): boolean {
  if (typeof value === 'string') return value.includes(part)
  if (Array.isArray(value)) return value.some((item) => mentions(item, part))
  return isTable(value) && Object.entries(value).some(([key, item]) => key.includes(part) || mentions(item, part))
}

/** Events in the memory buffer of a sink, as far as it says so. */
function bufferedEvents(type: string, options: Table): number {
  let events = 0
  visitOptions(type, options, ({ value, schemas }) => {
    if (typeof value === 'number' && schemas.some((each) => meaningOf(each).limit === 'bufferEvents')) events += value
    return undefined
  })
  return events
}

const isShared = ({ kind }: Resource) => kind === 'ClusterSink' || kind === 'ClusterSource'

/** Whether the owner of a shared object lets Agents of tenants carry its secrets. */
function isLent(resource: Resource): boolean {
  const spec = resource.content['spec']
  return isShared(resource) && isTable(spec) && spec['allowedAgents'] === 'Tenant'
}

/** Whether options hold a secret as text: an option that is declared to be one, or the credentials of an address. */
function holdsPlainSecret(kind: ComponentKind, type: unknown, config: Table): boolean {
  const declaration = typeof type === 'string' ? findComponent(kind, type) : undefined
  if (declaration === undefined) return false
  let isFound = false
  walkOptions(optionsOf(declaration).schema, config, ({ value, schemas }) => {
    if (isTable(value) && isTable(value['valueFrom'])) return false
    if (typeof value !== 'string') return undefined
    const address = URL.parse(value)
    if (schemas.some(isSecret) || address?.username || address?.password) isFound = true
    return undefined
  })
  return isFound
}

function visitOptions(type: string, options: unknown, visit: (place: Place) => boolean | undefined): void {
  for (const kind of ['source', 'sink'] as const) {
    const declaration = findComponent(kind, type)
    if (declaration !== undefined) walkOptions(optionsOf(declaration).schema, options, visit)
  }
}

/**
 * Whether all addresses, files and credentials of a shared object are its owner's: neither an override nor an event gives a part of one. A
 * table that an override gives as a whole may hold anything.
 */
function isOwnersAddress(type: string, config: unknown, overrides: unknown): boolean {
  let isOwners = true
  const reaches = ({ schemas }: Place) =>
    schemas.length === 0 ||
    schemas.map(meaningOf).some(({ address, file, explicit }) => (address ?? file ?? explicit) !== undefined)
  visitOptions(type, config, (place) => {
    const isTemplate = typeof place.value === 'string' && place.value.includes('{{')
    if (isTemplate && reaches(place)) isOwners = false
    return undefined
  })
  visitOptions(type, overrides, (place) => {
    const isLeaf = !isTable(place.value) && !Array.isArray(place.value)
    if (isLeaf ? reaches(place) : isTable(place.value) && isTable(place.value['valueFrom'])) isOwners = false
    return undefined
  })
  return isOwners
}

/** Every value that is no table, with its path. A `valueFrom` is a value. */
function* leaves(value: Table, path: readonly string[] = []): Generator<[readonly string[], unknown]> {
  for (const [name, member] of Object.entries(value)) {
    if (isTable(member) && member['valueFrom'] === undefined && Object.keys(member).length > 0)
      yield* leaves(member, [...path, name])
    else yield [[...path, name], member]
  }
}

/** `over` upon `base`: tables are joined, everything else is replaced. */
function merged(base: Table, over: Table): Table {
  const result = new Map(Object.entries(base))
  for (const [name, value] of Object.entries(over)) {
    const below = result.get(name)
    const isWhole = !isTable(below) || !isTable(value) || isSecretPlace(below) || isSecretPlace(value)
    result.set(name, isWhole ? value : merged(below, value))
  }
  return Object.fromEntries(result)
}

/** `base` without what means the same as an option of `over` by another name: an alias, or a header in other case. */
function withoutOthers(base: Table, over: Table, schema: Schema | undefined): Table {
  if (schema === undefined) return base
  const same = (name: string, other: string) => {
    if (schema['x-names'] === 'header') return name.toLowerCase() === other.toLowerCase()
    return canonicalName(schema, name) === canonicalName(schema, other)
  }
  const names = Object.keys(over)
  const kept: Table = {}
  for (const [name, value] of Object.entries(base)) {
    const enforced = names.find((each) => same(each, name))
    if (enforced === undefined) kept[name] = value
    else {
      const below = over[enforced]
      const isJoined = isTable(value) && isTable(below)
      if (enforced === name || isJoined) {
        kept[enforced] = isJoined ? withoutOthers(value, below, schemaBelow(schema, name)) : value
      }
    }
  }
  return kept
}

/** The name that an option is declared by. */
function canonicalName(schema: Schema, name: string): string {
  const members = membersOf(schema)
  if (Object.hasOwn(members, name)) return name
  return Object.keys(members).find((each) => aliasesOf(members[each] as Schema).includes(name)) ?? name
}

/** Selectors as one: all must match. */
function joined(...parts: unknown[]): string {
  return parts.filter((part) => typeof part === 'string' && part !== '').join(',')
}
