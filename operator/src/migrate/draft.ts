// The Pipeline that a conversion makes, as it grows: components in their order with comments, and the gaps that no component fills.
// A gap is never silent: it has a row in the report, and a comment at the component that stands in its place.

import { compileCondition, compileProgram } from '@penstock/agent/config'
import { type Document, isCollection, type Node, Document as YamlDocument } from 'yaml'
import { ClusterPipelineModel, PipelineModel } from '../api/models.ts'
import type { PipelineSpec } from '../api/pipeline.ts'

/** A file of the old configuration. */
export interface NamedText {
  readonly file: string
  readonly text: string
}

/** Gives the files that an include names, seen from the file that names them; none if there are none. */
export type Included = (path: string, from: string) => readonly NamedText[]

/** A difference between the old configuration and the Pipeline. */
export interface Gap {
  readonly file: string
  /** From 1. */
  readonly line: number
  /** The plugin or option. */
  readonly subject: string
  readonly reason: string
  /** The nearest equivalent, and what to do. */
  readonly nearest: string
  /** Whether nothing is missing: something else does it. */
  readonly isReplaced?: true
}

export interface Component {
  readonly type: string
  readonly inputs?: readonly string[]
  readonly config?: Readonly<Record<string, unknown>>
  readonly multiline?: Readonly<Record<string, unknown>>
  readonly comments?: readonly string[]
}

/** One transform of a chain. */
export interface Step {
  readonly type: 'remap' | 'filter'
  /** The program or the condition. */
  readonly text: string
  readonly comments?: readonly string[]
}

/** What of the old configuration a component stands for. */
export interface Origin {
  readonly file: string
  readonly line: number
  readonly subject: string
}

/** A unit test, as `spec.tests` has it. */
export interface Test {
  readonly name: string
  readonly insertAt: string
  readonly input: object
  readonly expect: readonly object[]
}

export type Kind = 'sources' | 'transforms' | 'sinks'

export interface Identity {
  readonly name: string
  /** Of the Pipeline; without it a ClusterPipeline is made. */
  readonly namespace?: string | undefined
}

export class Draft {
  /** Of the Pipeline that is made; undefined for a ClusterPipeline. Rules for namespaces refuse some options. */
  readonly namespace: string | undefined
  readonly gaps: Gap[] = []
  readonly #components = { sources: new Map(), transforms: new Map(), sinks: new Map() } as Record<
    Kind,
    Map<string, Component>
  >
  readonly #names = new Set<string>()
  readonly #tests: Test[] = []

  constructor(namespace?: string) {
    this.namespace = namespace
  }

  /** Adds a component below a name like the wanted one, and gives the name. */
  add(kind: Kind, wanted: string, component: Component): string {
    const base = nameLike(wanted)
    let name = base
    for (let number = 2; this.#names.has(name); number++) name = `${base}-${number}`
    this.#names.add(name)
    this.#components[kind].set(name, component)
    return name
  }

  /**
   * Adds transforms one after another below names like the wanted one, and gives the last; the heads themselves if there are no steps.
   * A step whose program does not compile passes events on, which is a gap.
   */
  append(heads: readonly string[], steps: readonly Step[], wanted: string, origin: Origin): string[] {
    let current = [...heads]
    for (const step of steps) {
      const { type, text, comments } = this.#checked(step, origin)
      const config = type === 'remap' ? { source: text } : { condition: text }
      current = [this.add('transforms', wanted, { type, inputs: current, config, ...(comments && { comments }) })]
    }
    return current
  }

  #checked(step: Step, origin: Origin): Step {
    const compiled = step.type === 'filter' ? compileCondition(step.text) : compileProgram(step.text)
    if (compiled.ok) return step
    const message = 'message' in compiled ? compiled.message : (compiled.diagnostics[0]?.message ?? compiled.rendered)
    this.gaps.push({
      ...origin,
      reason: `the ${step.type} transform that would stand for it is not valid: ${message}`,
      nearest: 'Correct the program that stands in the comment, and put it in place of the transform.',
    })
    const comment = `GAP: \`${origin.subject}\` (${origin.file}:${origin.line}) made a program that is not valid. Events pass unchanged. The program:`
    return { type: 'remap', text: '.', comments: [...(step.comments ?? []), comment, step.text] }
  }

  /** Takes out transforms whose events nothing reads, and then those that only these read. */
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

  /** Types of all sources and sinks. */
  types(): readonly string[] {
    const { sources, sinks } = this.#components
    return [...sources.values(), ...sinks.values()].map(({ type }) => type)
  }

  /** The resource as a YAML document with its comments. */
  document(identity: Identity): Document {
    const { name, namespace } = identity
    const spec: Record<string, unknown> = {}
    const variables = new Set<string>()
    for (const [kind, components] of Object.entries(this.#components)) {
      if (components.size === 0) continue
      spec[kind] = [...components].map(([entry, { type, inputs, config, multiline }]) => {
        collectVariables(config, variables)
        return {
          name: entry,
          type,
          ...(inputs === undefined ? {} : { inputs }),
          ...(multiline === undefined ? {} : { multiline }),
          ...(config === undefined || Object.keys(config).length === 0 ? {} : { config }),
        }
      })
    }
    if (this.#tests.length > 0) spec['tests'] = this.#tests
    if (variables.size > 0) {
      const place = namespace === undefined ? { namespace: 'penstock-system' } : {}
      spec['secrets'] = [{ alias: 'env', secretName: `${name}-environment`, ...place }]
    }
    const Model = namespace === undefined ? ClusterPipelineModel : PipelineModel
    const metadata = { name, ...(namespace === undefined ? {} : { namespace }) }
    const document = new YamlDocument(new Model({ metadata, spec: spec as unknown as PipelineSpec }), {
      aliasDuplicateObjects: false,
    })
    for (const [kind, components] of Object.entries(this.#components)) {
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

/** The name of a component that is like the wanted one. */
export function nameLike(wanted: string): string {
  const letters = wanted
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^[^a-z]+/, '')
  return letters.slice(0, 55).replace(/-+$/, '') || 'component'
}

/** The variables of the environment that became references to a Secret. */
function collectVariables(value: unknown, into: Set<string>): void {
  if (typeof value === 'string') {
    for (const [, name] of value.matchAll(/SECRET\[env\.([A-Za-z0-9_]+)\]/g)) if (name !== undefined) into.add(name)
  } else if (typeof value === 'object' && value !== null) {
    for (const below of Object.values(value)) collectVariables(below, into)
  }
}
