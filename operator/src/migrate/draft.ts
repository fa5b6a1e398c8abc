// The Pipeline under construction: components in order with their comments, and gaps.
// A gap is never silent: it has a row in the report, and a comment at the component that replaces the missing one.

import { type Document, isCollection, type Node, Document as YamlDocument } from 'yaml'
import { AgentModel, ClusterPipelineModel, PipelineModel } from '../api/models.ts'
import type { PipelineSpec } from '../api/pipeline.ts'
import { runsOn } from '../compile/tenancy.ts'
import { simplified } from './simplified.ts'
import { bySize, downstreamOf } from './split.ts'

/** A file of the old configuration, or a part of one. */
export interface NamedText {
  readonly file: string
  readonly text: string
  /** Number of lines of the file before the text. */
  readonly above?: number
  /** Number of characters before each line in the file that are not part of the text. */
  readonly indent?: number
}

/** Returns the files that an include statement refers to, relative to the file that contains it; an empty list if there are none. */
export type Included = (path: string, from: string) => readonly NamedText[]

/** A difference between the old configuration and the Pipeline. */
export interface Gap {
  readonly file: string
  /** From 1. */
  readonly line: number
  /** From 1, for a place inside a line. */
  readonly column?: number
  /** The plugin or option. */
  readonly subject: string
  readonly reason: string
  /** The nearest equivalent, and the action to take. */
  readonly nearest: string
  /** The message of the compiler for a program, with the lines that it is about. */
  readonly rendered?: string
  /** Whether nothing is missing, because Penstock does this in another way. */
  readonly isReplaced?: true
  /** Whether Penstock has no such part, so that no conversion can close the gap. */
  readonly isAbsent?: true
  /** Whether the text cannot be parsed, so that a part of the old configuration may be missing. */
  readonly isUnreadable?: true
}

/** The key of a Secret. */
export interface SecretKey {
  readonly name: string
  readonly key: string
  /** The namespace of the Secret, if the old configuration contains it. */
  readonly namespace?: string | undefined
  readonly file: string
  readonly line: number
}

/** The pods that an `orchestrator_logs` source reads, as an entry of a Pipeline selects them. */
export type Selector = Readonly<Record<string, unknown>>

export interface Component {
  readonly type: string
  readonly selector?: Selector
  readonly inputs?: readonly string[]
  readonly config?: Readonly<Record<string, unknown>>
  readonly multiline?: Readonly<Record<string, unknown>>
  readonly comments?: readonly string[]
  /** The part of the old configuration that it comes from. */
  readonly origin?: Origin
}

/** One transform of a chain. */
export interface Step {
  readonly type: 'remap' | 'filter'
  /** The program or the condition. */
  readonly text: string
  readonly comments?: readonly string[]
  /** Whether the report has rows about the program, if it does not compile. */
  readonly isReported?: boolean
}

/** The part of the old configuration that a component comes from. */
export interface Origin {
  readonly file: string
  readonly line: number
  readonly subject: string
}

/** A unit test, as `spec.tests` has it. */
export type Test = { readonly name: string; readonly expect: readonly object[] } & (
  | { readonly insertAt: string; readonly input: object }
  | { readonly inputs: readonly TestInput[] }
)

/** An event of a unit test, and the transform that gets it. */
export type TestInput = { readonly insertAt: string } & object

/** The transforms that get the events of a test. */
const insertedAt = (test: Test): readonly string[] =>
  'inputs' in test ? test.inputs.map(({ insertAt }) => insertAt) : [test.insertAt]

/** A component that reads or writes files on the node. */
export interface OfFiles {
  readonly kind: 'sources' | 'sinks'
  readonly name: string
  readonly paths: readonly string[]
  /** Whether it reads nothing because the old component has no counterpart. */
  readonly isMissing: boolean
}

export type Kind = 'sources' | 'transforms' | 'sinks'

export type Components = Readonly<Record<Kind, Map<string, Component>>>

/** The pods of an old agent that did not run on every node, as `spec` of an Agent has them. */
export interface AggregatorPods {
  readonly aggregator: Readonly<Record<string, unknown>>
  readonly resources?: Readonly<Record<string, unknown>>
}

/** The label of Pipelines that a converted Agent selects. */
const aggregatorLabel = 'aggregator'

export interface Identity {
  readonly name: string
  /** The namespace of the Pipeline; without it, the result is a ClusterPipeline. */
  readonly namespace?: string | undefined
}

export class Draft {
  /** The namespace of the generated Pipeline; undefined for a ClusterPipeline. Tenancy rules reject some options in a namespace. */
  readonly namespace: string | undefined
  readonly gaps: Gap[] = []
  /** Keys of Secrets by the environment variables that refer to them. */
  readonly secrets = new Map<string, SecretKey>()
  readonly #components: Components = { sources: new Map(), transforms: new Map(), sinks: new Map() }
  readonly #names = new Set<string>()
  /** Variables whose Secrets have been reported. */
  readonly #reported = new Set<string>()
  readonly #tests: Test[] = []
  /** The pods of the Agent that runs the Pipelines, if the old agent did not run on every node. */
  aggregator: AggregatorPods | undefined

  constructor(namespace?: string) {
    this.namespace = namespace
  }

  /** Adds a component under the wanted name, or a unique variant of it, and returns the name. */
  add(kind: Kind, wanted: string, component: Component): string {
    const base = nameLike(wanted)
    let name = base
    for (let number = 2; this.#names.has(name); number++) name = `${base}-${number}`
    this.#names.add(name)
    this.#components[kind].set(name, component)
    return name
  }

  /**
   * Adds a chain of transforms with names derived from the wanted one, and returns the last. Returns the heads if there are no steps.
   * A step whose program does not compile becomes a gap and passes events unchanged.
   */
  append(heads: readonly string[], steps: readonly Step[], wanted: string, origin: Origin): string[] {
    let current = [...heads]
    for (const step of steps) {
      const { type, text, comments } = this.#checked(step, origin)
      const config = type === 'remap' ? { source: text } : { condition: text }
      current = [
        this.add('transforms', wanted, { type, inputs: current, config, ...(comments && { comments }), origin }),
      ]
    }
    return current
  }

  /** The transforms of a part of the old configuration that read no other transform of it. */
  entriesOf({ file, line, subject }: Origin): readonly string[] {
    const own = [...this.#components.transforms].filter(
      ([, { origin }]) => origin?.file === file && origin.line === line && origin.subject === subject,
    )
    const names = new Set(own.map(([name]) => name))
    const isEntry = ({ inputs = [] }: Component) => !inputs.some((input) => names.has(input.split('.')[0] ?? ''))
    return own.filter(([, component]) => isEntry(component)).map(([name]) => name)
  }

  #checked(step: Step, origin: Origin): Step {
    const { text, compiled } = simplified(step.type, step.text)
    if (compiled.ok) return text === step.text ? step : { ...step, text }
    const message = 'message' in compiled ? compiled.message : (compiled.diagnostics[0]?.message ?? compiled.rendered)
    if (step.isReported !== true) {
      this.gaps.push({
        ...origin,
        reason: `the ${step.type} transform generated for it is not valid: ${message}`,
        nearest: 'Correct the program in the comment, and replace the transform with it.',
      })
    }
    const comment = `GAP: \`${origin.subject}\` (${origin.file}:${origin.line}) gave a program that is not valid. Events pass unchanged. The program:`
    return { type: 'remap', text: '.', comments: [...(step.comments ?? []), comment, step.text] }
  }

  /** Removes transforms that nothing reads from, and then those that only removed transforms read from. */
  removeUnread(): void {
    const { transforms, sinks } = this.#components
    for (;;) {
      const read = new Set([...transforms.values(), ...sinks.values()].flatMap(({ inputs }) => inputs ?? []))
      const unread = [...transforms.keys()].filter((name) => !read.has(name))
      if (unread.length === 0 || read.has('*')) return
      for (const name of unread) transforms.delete(name)
    }
  }

  addTest(test: Test): void {
    this.#tests.push(test)
  }

  count(kind: Kind): number {
    return this.#components[kind].size
  }

  /** The sources and sinks that use files on the node, in order. The tenancy rules reject them in a namespace. */
  ofFiles(): readonly OfFiles[] {
    return (['sources', 'sinks'] as const).flatMap((kind) =>
      [...this.#components[kind]]
        .filter(([, { type }]) => type === 'file')
        .map(([name, { config = {} }]) => {
          const { include, path } = config
          const paths = (Array.isArray(include) ? include : [path]).map(String)
          return { kind, name, paths, isMissing: paths.every((each) => each.startsWith('/var/empty/')) }
        }),
    )
  }

  #reportSecrets(used: ReadonlySet<string>, namespace: string | undefined): void {
    for (const variable of used) {
      const key = this.secrets.get(variable)
      if (key === undefined || this.#reported.has(variable)) continue
      this.#reported.add(variable)
      if (namespace === undefined && key.namespace !== undefined) continue
      this.gaps.push({
        file: key.file,
        line: key.line,
        subject: `Secret ${key.name}`,
        reason: `the Pipeline reads the Secret in namespace \`${namespace ?? 'penstock-system'}\``,
        nearest:
          namespace === undefined
            ? 'Set the namespace of the Secret, or copy the Secret.'
            : 'Copy the Secret, unless it already exists there.',
        isReplaced: true,
      })
    }
  }

  /** The resource as a YAML document with comments; if there are two, the first, which has the sources that run on nodes. */
  document(identity: Identity): Document {
    return this.documents(identity)[0] as Document
  }

  /**
   * The resources as YAML documents with comments. There are two if some sources run on nodes and others on an aggregator, because one
   * Pipeline runs in one place. In that case, Secrets whose namespace is uncertain become gaps. There are several if one would have more
   * transforms than a Pipeline may have: each has some of the sinks or of their inputs, and everything that they read from. Transforms that
   * do not fit become gaps.
   */
  documents(identity: Identity): readonly Document[] {
    return this.#places(identity).flatMap(([own, parts]) =>
      bySize(parts, this.#tested(), this.gaps).map((part, index) =>
        this.#document(index === 0 ? own : { ...own, name: `${own.name}-${index + 1}` }, part, identity.name),
      ),
    )
  }

  /** The Agent that runs the Pipelines; none if agents on nodes run them. */
  agents({ name, namespace }: Identity): readonly Document[] {
    const isOfNodes = [...this.#components.sources.values()].every(({ type }) => runsOn(type) === 'node')
    if (this.aggregator === undefined || isOfNodes) return []
    const selector = { matchLabels: { [aggregatorLabel]: name } }
    const own = { matchLabels: { 'kubernetes.io/metadata.name': namespace } }
    const pipelines =
      namespace === undefined ? { clusterPipelines: { selector } } : { namespaceSelector: own, selector }
    const { aggregator, resources } = this.aggregator
    const agent = new AgentModel({
      metadata: { name, namespace: namespace ?? 'penstock-system' },
      spec: { mode: 'Aggregator', pipelines, ...(resources && { resources }), aggregator },
    } as ConstructorParameters<typeof AgentModel>[0])
    return [new YamlDocument(agent, { aliasDuplicateObjects: false })]
  }

  /** Names of transforms that tests refer to. */
  #tested(): ReadonlySet<string> {
    return new Set(
      this.#tests.flatMap((test) => [
        ...insertedAt(test),
        ...test.expect.map((each) => String(Reflect.get(each, 'at'))),
      ]),
    )
  }

  /** The components by the place where they run. */
  #places(identity: Identity): readonly (readonly [Identity, Components])[] {
    const sources = [...this.#components.sources]
    const isElsewhere = ([, { type }]: (typeof sources)[number]) => runsOn(type) === 'aggregator'
    const elsewhere = sources.filter(isElsewhere).map(([name]) => name)
    if (elsewhere.length === 0 || !sources.some(([, { type }]) => runsOn(type) === 'node'))
      return [[identity, this.#components]]
    const rest = sources.map(([name]) => name).filter((name) => !elsewhere.includes(name))
    return [
      [identity, withSink(downstreamOf(rest, this.#components))],
      [{ ...identity, name: `${identity.name}-aggregator` }, withSink(downstreamOf(elsewhere, this.#components))],
    ]
  }

  /** @param agent the name of the Agent that runs it, if the old agent did not run on every node */
  #document(identity: Identity, parts: Components, agent: string): Document {
    const { name, namespace } = identity
    const spec: Record<string, unknown> = {}
    const isOfNodes = [...parts.sources.values()].some(({ type }) => runsOn(type) === 'node')
    const isAggregated = this.aggregator !== undefined && !isOfNodes
    if (isAggregated) spec['mode'] = 'Aggregator'
    const references = new References(this.secrets, namespace)
    for (const [kind, components] of Object.entries(parts)) {
      if (components.size === 0) continue
      spec[kind] = [...components].map(([entry, { type, inputs, config: given, multiline, selector }]) => {
        const config = references.in(given) as Component['config']
        return {
          name: entry,
          type,
          ...(inputs === undefined ? {} : { inputs }),
          ...(selector === undefined ? {} : { selector }),
          ...(multiline === undefined ? {} : { multiline }),
          ...(config === undefined || Object.keys(config).length === 0 ? {} : { config }),
        }
      })
    }
    const tests = this.#tests.filter((test) => insertedAt(test).every((name) => parts.transforms.has(name)))
    if (tests.length > 0) spec['tests'] = tests
    const secrets = references.secrets(`${name}-environment`)
    if (secrets.length > 0) spec['secrets'] = secrets
    this.#reportSecrets(references.used, namespace)
    const Model = namespace === undefined ? ClusterPipelineModel : PipelineModel
    const labels = isAggregated ? { labels: { [aggregatorLabel]: agent } } : {}
    const metadata = { name, ...(namespace === undefined ? {} : { namespace }), ...labels }
    const document = new YamlDocument(new Model({ metadata, spec: spec as unknown as PipelineSpec }), {
      aliasDuplicateObjects: false,
    })
    for (const [kind, components] of Object.entries(parts)) {
      for (const [index, { comments }] of [...components.values()].entries()) {
        const node = document.getIn(['spec', kind, index], true) as Node | undefined
        if (node === undefined || !isCollection(node) || (comments?.length ?? 0) === 0) continue
        node.commentBefore = (comments ?? [])
          .flatMap((text) => text.split('\n'))
          .map((line) => ` ${line}`)
          .join('\n')
      }
    }
    return document
  }
}

/** The components of one place, with a sink that discards the events if no other sink gets them. */
function withSink(parts: Components): Components {
  if (parts.sinks.size > 0) return parts
  const comments = ['No sink receives the events of these sources.']
  return { ...parts, sinks: new Map([['discarded', { type: 'blackhole', inputs: ['*'], comments }]]) }
}

/** A valid name for a component, derived from the wanted one. */
export function nameLike(wanted: string): string {
  const letters = wanted
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^[^a-z]+/, '')
  return letters.slice(0, 55).replace(/-+$/, '') || 'component'
}

/** References to Secrets in the options of a Pipeline. A variable for the key of a Secret becomes a reference to that key. */
class References {
  /** Variables for keys of Secrets that the Pipeline uses. */
  readonly used = new Set<string>()
  readonly #known: ReadonlyMap<string, SecretKey>
  readonly #namespace: string | undefined
  /** Names and namespaces of Secrets by alias. */
  readonly #aliases = new Map<string, SecretKey>()
  #hasVariables = false

  constructor(known: ReadonlyMap<string, SecretKey>, namespace: string | undefined) {
    this.#known = known
    this.#namespace = namespace
  }

  in(value: unknown): unknown {
    if (typeof value === 'string') return this.#inText(value)
    if (Array.isArray(value)) return value.map((item) => this.in(item))
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, this.in(item)]))
  }

  #inText(text: string): unknown {
    const whole = /^SECRET\[env\.([A-Za-z0-9_]+)\]$/.exec(text)?.[1]
    const secret = whole === undefined ? undefined : this.#known.get(whole)
    if (whole !== undefined && secret !== undefined) {
      this.used.add(whole)
      return { valueFrom: { secretKeyRef: { name: secret.name, ...this.#placeOf(secret), key: secret.key } } }
    }
    return text.replace(/SECRET\[env\.([A-Za-z0-9_]+)\]/g, (reference, variable: string) => {
      const key = this.#known.get(variable)
      if (key === undefined) {
        this.#hasVariables = true
        return reference
      }
      this.used.add(variable)
      const alias = nameLike(key.name)
      this.#aliases.set(alias, key)
      return `SECRET[${alias}.${key.key}]`
    })
  }

  /** A Pipeline in a namespace reads the Secrets of this namespace. */
  #placeOf({ namespace }: { readonly namespace?: string | undefined }): { readonly namespace?: string } {
    return this.#namespace === undefined ? { namespace: namespace ?? 'penstock-system' } : {}
  }

  /** @param own the name of the Secret for variables that do not refer to a key of another Secret */
  secrets(own: string): object[] {
    const all = [...this.#aliases].map(([alias, key]) => ({ alias, secretName: key.name, ...this.#placeOf(key) }))
    return this.#hasVariables ? [{ alias: 'env', secretName: own, ...this.#placeOf({}) }, ...all] : all
  }
}
