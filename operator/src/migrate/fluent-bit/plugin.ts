// The contract of a mapping: which plugin it takes, what the plugin becomes, and what becomes of each of its options. The guide's
// table and the report of options without a counterpart are derived from it.

import type { Component, Gap } from '../draft.ts'
import { lastValue, type Place, type Section } from './sections.ts'

/** What stands for a plugin: components of a chain, in their order. */
export interface Step {
  readonly type: 'remap' | 'filter'
  readonly text: string
  readonly comments?: readonly string[]
}

export interface Plugin<Result> {
  readonly name: string
  /** For the guide: what it becomes. */
  readonly becomes: string
  /** Options that the mapping takes, with what becomes of each; of all others a gap is reported. */
  readonly options: Readonly<Record<string, string>>
  readonly build: (section: Section, context: Context) => Result
}

/** A plugin without a counterpart. */
export interface Refusal {
  readonly name: string
  readonly reason: string
  readonly nearest: string
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
  readonly #gaps: Gap[]

  constructor(sections: readonly Section[], gaps: Gap[]) {
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

  gap(place: Place, subject: string, reason: string, nearest: string): void {
    this.#gaps.push({ file: place.file, line: place.line, subject, reason, nearest })
  }

  /** Reports the options of a section that its mapping does not take. */
  reportOptions(section: Section, plugin: Plugin<unknown>): void {
    for (const entry of section.entries) {
      if (Object.hasOwn(plugin.options, entry.key)) continue
      const others = Object.keys(plugin.options).slice(0, 8).join(', ')
      this.gap(
        entry,
        `${plugin.name}: ${entry.key}`,
        `the option \`${entry.key}\` has no counterpart`,
        `The Pipeline behaves as if it were not given. Options that are converted: ${others}.`,
      )
    }
  }
}

/** Options that every plugin has. */
export const common = { name: 'the type', alias: 'the name of the component' } as const
export const matched = { match: 'the inputs', match_regex: 'the inputs' } as const
