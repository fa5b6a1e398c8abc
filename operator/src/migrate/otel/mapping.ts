// The contract of a mapping: the component of the collector, its counterpart, and the counterpart of each option. The tables of the guide
// and the reports of options without a counterpart are derived from it.

import { isTable } from '@penstock/agent/schema'
import { missingPart } from '../absence.ts'
import type { Component, Gap, Step } from '../draft.ts'
import { type Described, none, type Refusal, withoutOption } from '../page.ts'

export interface Place {
  readonly file: string
  /** From 1. */
  readonly line: number
}

export type Path = readonly (string | number)[]

/**
 * A component. Its name is the type without underscores, because `filelog` and `file_log` are one. An option's name may contain dots: it
 * then includes all options below it. An option that is missing in both `options` and `itself` is reported as a gap.
 */
export interface Mapping<Result> extends Described {
  /** Options whose texts a program gives to fields, and may take from the environment. */
  readonly expresses?: readonly string[]
  readonly build: (part: Part, context: Context) => Result
}

export interface SourcePart {
  readonly component: Component
  /** Adds the transforms of a source, and returns the names of those whose events are records. */
  readonly follow: (source: string, context: Context) => readonly string[]
}

export interface SinkPart {
  readonly component: Component
  readonly steps: readonly Step[]
}

/** Names of a part that do not follow from its id. */
interface Names {
  readonly type?: string
  readonly name?: string
  readonly title?: string
}

/** One component of the configuration. */
export class Part {
  readonly kind: string
  /** The id in the configuration, such as `otlphttp/loki`. */
  readonly id: string
  readonly config: Readonly<Record<string, unknown>>
  readonly #placeOf: (path: Path) => Place
  readonly #names: Names

  constructor(
    kind: string,
    id: string,
    config: Readonly<Record<string, unknown>>,
    placeOf: (path: Path) => Place,
    names: Names = {},
  ) {
    this.kind = kind
    this.id = id
    this.config = config
    this.#placeOf = placeOf
    this.#names = names
  }

  get type(): string {
    return this.#names.type ?? typeOf(this.id)
  }

  /** For components of the Pipeline. */
  get name(): string {
    return this.#names.name ?? this.id
  }

  /** For reports. */
  get title(): string {
    return this.#names.title ?? `${this.kind} ${this.id}`
  }

  /** The same part with other options. */
  with(config: Readonly<Record<string, unknown>>): Part {
    return new Part(this.kind, this.id, config, this.#placeOf, this.#names)
  }

  place(path: Path = []): Place {
    return this.#placeOf(path)
  }

  /** A part configured inside this one, such as an operator. */
  within(path: Path, config: Readonly<Record<string, unknown>>, id: string): Part {
    return new Part(this.kind, id, config, (below) => this.#placeOf([...path, ...below]), this.#names)
  }

  /** The value of an option. Dots in the name separate groups. */
  get(name: string): unknown {
    let value: unknown = this.config
    for (const key of name.split('.')) value = isTable(value) && Object.hasOwn(value, key) ? value[key] : undefined
    return value ?? undefined
  }

  has(name: string): boolean {
    return this.get(name) !== undefined
  }

  text(name: string): string | undefined {
    const value = this.get(name)
    return value === undefined || typeof value === 'object' ? undefined : String(value)
  }

  flag(name: string, byDefault: boolean): boolean {
    const value = this.text(name)
    return value === undefined ? byDefault : value.toLowerCase() === 'true'
  }

  /** The texts of a list. A single text is a list with one item. */
  list(name: string): string[] {
    const value = this.get(name)
    if (value === undefined) return []
    return (Array.isArray(value) ? value : [value]).map(String)
  }

  table(name: string): Readonly<Record<string, unknown>> {
    const value = this.get(name)
    return isTable(value) ? value : {}
  }

  tables(name: string): readonly Readonly<Record<string, unknown>>[] {
    const value = this.get(name)
    return Array.isArray(value) ? value.filter(isTable) : []
  }
}

/** The type in the id of a component, without underscores: `k8sattributes` has been renamed to `k8s_attributes`. */
export function typeOf(id: string): string {
  const type = (id.split('/')[0] ?? '').trim().replaceAll('_', '').toLowerCase()
  return type === 'otlpgrpc' ? 'otlp' : type
}

export class Context {
  readonly gaps: Gap[]
  /** Returns an extension by its id. */
  readonly extension: (id: string) => Part | undefined
  /** Adds transforms after the heads, as `Draft.append` does. */
  readonly append: (heads: readonly string[], steps: readonly Step[], wanted: string, part: Part) => string[]

  /** Whether programs may read the environment of the agent, as those of a ClusterPipeline may. */
  readonly readsEnvironment: boolean

  /** Whether the configuration contains a text anywhere. */
  readonly mentions: (text: string) => boolean

  /** The options of the sources of pod logs. */
  readonly #podOptions: Record<string, unknown>[] = []
  #readsCreation = false
  #hasFloats = false

  constructor(
    gaps: Gap[],
    extension: Context['extension'],
    append: Context['append'],
    readsEnvironment = true,
    mentions: Context['mentions'] = () => false,
  ) {
    this.mentions = mentions
    this.gaps = gaps
    this.readsEnvironment = readsEnvironment
    this.extension = extension
    this.append = append
  }

  /** The options of a source of pod logs, to which processors add what they need. */
  podOptions(options: Record<string, unknown>): Record<string, unknown> {
    this.#podOptions.push(options)
    if (this.#readsCreation) this.readCreation()
    return options
  }

  /** Lets the sources of pod logs add the creation time of the pod. */
  readCreation(): void {
    this.#readsCreation = true
    const fields = { pod_creation_timestamp: '.orchestrator.pod_creation_timestamp' }
    for (const options of this.#podOptions) options['pod_annotation_fields'] = fields
  }

  /** Records that a destination gets may have floats without a fraction, for instance from JSON. */
  makeFloats(): void {
    this.#hasFloats = true
  }

  /** Whether a component before the current one makes such floats. */
  get hasFloats(): boolean {
    return this.#hasFloats
  }

  gap(place: Place, subject: string, reason: string, nearest: string): void {
    this.#add({ file: place.file, line: place.line, subject, reason, nearest })
  }

  /** Reports that another mechanism does the work of an option. */
  replaced(place: Place, subject: string, reason: string, nearest: string): void {
    this.#add({ file: place.file, line: place.line, subject, reason, nearest, isReplaced: true })
  }

  /** Reports a part without a mapping; the refusal gives the reason. */
  missing(
    place: Place,
    subject: string,
    refusal: Omit<Refusal, 'name'> | undefined,
    kind: string,
    nearest?: string,
  ): void {
    this.#add(missingPart(place, subject, refusal, kind, nearest))
  }

  /** A component that is used in several pipelines is reported once. */
  #add(gap: Gap): void {
    const isKnown = this.gaps.some(
      (each) =>
        each.file === gap.file && each.line === gap.line && each.subject === gap.subject && each.reason === gap.reason,
    )
    if (!isKnown) this.gaps.push(gap)
  }

  /** Reports the options of a component that have no counterpart. */
  reportOptions(part: Part, mapping: Pick<Mapping<unknown>, 'name' | 'options' | 'itself'>): void {
    const { options, itself = {} } = mapping
    const known = [...Object.keys(options), ...Object.keys(itself)]
    const visit = (table: Readonly<Record<string, unknown>>, above: readonly string[]): void => {
      for (const [key, value] of Object.entries(table)) {
        const path = [...above, key]
        const name = path.join('.')
        if (Object.hasOwn(options, name)) continue
        const own = Object.hasOwn(itself, name) ? itself[name] : undefined
        if (typeof own === 'string') continue
        const place = part.place(path)
        const subject = `${part.id}: ${name}`
        if (own !== undefined) {
          if (own.unless.test(JSON.stringify(value) ?? '')) this.gap(place, subject, own.reason, own.nearest)
        } else if (known.some((each) => each.startsWith(`${name}.`)) && (isTable(value) || value === null)) {
          if (isTable(value)) visit(value, path)
        } else {
          const nearest = withoutOption(name, Object.keys(options))
          this.gap(place, subject, `the option \`${name}\` has no counterpart`, nearest)
        }
      }
    }
    visit(part.config, [])
  }
}

/** The mapping of a part. If there is none, reports a gap with the reason of the refusal. */
export function findMapping<Result>(
  part: Part,
  mappings: readonly Mapping<Result>[],
  refusals: readonly Refusal[],
  context: Context,
): Mapping<Result> | undefined {
  const mapping = mappings.find(({ name }) => name === part.type)
  if (mapping !== undefined) return mapping
  const refusal = refusals.find(({ name }) => name.replaceAll('_', '') === part.type)
  context.missing(part.place(), part.title, refusal, part.kind)
  return undefined
}

/** The comment of a component that replaces one without a counterpart. */
export function gapComment(part: Part, effect: string, reason = 'has no counterpart'): string {
  const { file, line } = part.place()
  return `GAP: the ${part.kind} \`${part.id}\` (${file}:${line}) ${reason}. ${effect}`
}

/** Refusals for several names with the same reason. */
export const each = (names: readonly string[], reason: string, nearest: string): Refusal[] =>
  names.map((name) => none(name, reason, nearest))

/** Parses a duration such as `1m30s` or `500ms` to seconds; undefined if it is not valid. */
export function seconds(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^\d+$/.test(text)) return Number(text) / 1e9
  const units: Readonly<Record<string, number>> = { ns: 1e-9, us: 1e-6, µs: 1e-6, ms: 1e-3, s: 1, m: 60, h: 3600 }
  if (!/^(?:\d+(?:\.\d+)?(?:ns|us|µs|ms|s|m|h))+$/.test(text)) return undefined
  let total = 0
  for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)/g)) {
    total += Number(amount) * (units[unit ?? ''] ?? 0)
  }
  return total
}
