// The contract of a mapping: the plugin, its counterpart, and the counterpart of each option. The tables of the guide and the reports of
// options without a counterpart are derived from it.

import { missingPart } from '../absence.ts'
import type { Component, Gap, Step } from '../draft.ts'
import { readReport } from '../environment.ts'
import { type Described, type Refusal, withoutOption } from '../page.ts'
import { conditionKey, lastValue, type Place, type Section, upstreamNode } from './sections.ts'
import { hostVariable, isOfNode } from './text.ts'

/** A plugin. An option that is named neither in `options` nor in `itself` is reported as a gap. */
export interface Plugin<Result> extends Described {
  /** Options whose texts a program gives to fields, and may take from the environment. */
  readonly expresses?: readonly string[]
  /** @param tag lines that set the variable `tag`, for outputs that write the tag */
  readonly build: (section: Section, context: Context, tag?: readonly string[]) => Result
}

export interface SourcePart {
  readonly component: Component
  readonly steps: readonly Step[]
}

export interface SinkPart {
  readonly component: Component
  readonly steps: readonly Step[]
}

export class Context {
  readonly parsers: ReadonlyMap<string, Section>
  readonly multilineParsers: ReadonlyMap<string, Section>
  /** Whether programs may read the environment of the agent, as those of a ClusterPipeline may. */
  readonly readsEnvironment: boolean
  readonly #gaps: Gap[]

  constructor(sections: readonly Section[], gaps: Gap[], readsEnvironment = true) {
    this.readsEnvironment = readsEnvironment
    const named = (kind: string) =>
      new Map(
        sections
          .filter((section) => section.kind === kind)
          .map((section) => [lastValue(section, 'name') ?? '', section]),
      )
    this.parsers = named('parser')
    this.multilineParsers = named('multiline_parser')
    this.#gaps = gaps
  }

  /** The same parsers without reports, because the gaps are reported elsewhere. */
  silent(): Context {
    return new Context([...this.parsers.values(), ...this.multilineParsers.values()], [], this.readsEnvironment)
  }

  gap(place: Place, subject: string, reason: string, nearest: string): void {
    this.#gaps.push({ file: place.file, line: place.line, subject, reason, nearest })
  }

  /** Reports a plugin without a mapping; the refusal gives the reason. */
  missing(place: Place, subject: string, refusal: Refusal | undefined): void {
    this.#gaps.push(missingPart(place, subject, refusal, 'plugin'))
  }

  hasReported(wanted: string): boolean {
    return this.#gaps.some(({ subject }) => subject === wanted)
  }

  /** Whether there is a report about a text at a place. */
  hasReportedAt({ file, line }: Place, text: string): boolean {
    return this.#gaps.some((gap) => gap.file === file && gap.line === line && gap.subject.includes(text))
  }

  /** Reports a part whose work Penstock does in another way. */
  replaced(place: Place, subject: string, reason: string, nearest: string): void {
    this.#gaps.push({ file: place.file, line: place.line, subject, reason, nearest, isReplaced: true })
  }

  /** Reports the variables in a text that a program assigns to a field. */
  variables(place: Place, subject: string, text: string): void {
    for (const [whole, name = ''] of text.matchAll(/\$\{([A-Za-z0-9_]+)\}/g)) {
      if (whole === hostVariable || isOfNode(name)) continue
      const { reason, nearest } = readReport(name)
      if (this.readsEnvironment) this.replaced(place, `${subject}: ${whole}`, reason, nearest)
      else
        this.gap(
          place,
          `${subject}: ${whole}`,
          'a program has no variables of the environment',
          'Replace it with its value.',
        )
    }
  }

  /** Reports the options of a section that have no counterpart. */
  reportOptions(section: Section, plugin: Pick<Plugin<unknown>, 'name' | 'options' | 'itself'>): void {
    const { name, options, itself = {} } = plugin
    for (const entry of section.entries) {
      if (Object.hasOwn(options, entry.key) || entry.key === upstreamNode) continue
      if (entry.key === conditionKey && section.kind !== 'input' && section.kind !== 'output') continue
      const [, part] = /^(processors|routes)\./.exec(entry.key) ?? []
      if (part !== undefined) {
        const reason = `the plugin produces no ${entry.value}`
        this.replaced(entry, `${name}: ${part} of ${entry.value}`, reason, 'Remove them.')
        continue
      }
      if (isGeneral(section.kind, entry.key)) continue
      const own = Object.hasOwn(itself, entry.key) ? itself[entry.key] : undefined
      if (typeof own === 'string') continue
      if (own !== undefined) {
        if (own.unless.test(entry.value)) this.gap(entry, `${name}: ${entry.key}`, own.reason, own.nearest)
        continue
      }
      const nearest = withoutOption(entry.key, Object.keys(options))
      this.gap(entry, `${name}: ${entry.key}`, `the option \`${entry.key}\` has no counterpart`, nearest)
    }
  }
}

/** Options that all plugins of a kind have, and whose work the agent does in its own way. */
const general: Readonly<Record<string, RegExp>> = {
  input: /^(?:mem_buf_limit|storage\.type|storage\.pause_on_chunks_overlimit|threaded|thread\.ring_buffer\.\w+)$/,
  filter: /^active$/,
  output: /^workers$/,
}

/** Whether all plugins of a kind have an option. The agent has one log level, and manages its connections itself. */
export const isGeneral = (kind: string, key: string) =>
  /^(?:net\.|log_level$|log_suppress_interval$)/.test(key) || general[kind]?.test(key) === true

/** Options that every plugin has. */
export const common = { name: 'the type', alias: 'the name of the component' } as const
export const matched = { match: 'the inputs', match_regex: 'the inputs' } as const
export const tagged = { tag: 'selects filters and outputs' } as const
