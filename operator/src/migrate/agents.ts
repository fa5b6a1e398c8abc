// The agents whose configurations are converted: the command, its help and the pages of the guide follow this list.

import { convertAlloy } from './alloy/convert.ts'
import { alloyTables } from './alloy/page.ts'
import { isAlloy } from './alloy/read.ts'
import { withoutReferences } from './chart-templates.ts'
import type { Draft, Gap, Included, NamedText } from './draft.ts'
import { convertFilebeat } from './filebeat/convert.ts'
import { filebeatTables } from './filebeat/page.ts'
import { isFilebeat } from './filebeat/read.ts'
import { convertFluentBit, isFluentBit } from './fluent-bit/convert.ts'
import { fluentBitTables } from './fluent-bit/page.ts'
import { fluentBitTrial } from './fluent-bit/trial.ts'
import { convertFluentd } from './fluentd/convert.ts'
import { isFluentd } from './fluentd/files.ts'
import { fluentdTables } from './fluentd/page.ts'
import { partsOf, valuesIn } from './inner.ts'
import { convertOtel } from './otel/convert.ts'
import { otelTables } from './otel/page.ts'
import { isOtel } from './otel/read.ts'
import { convertPromtail } from './promtail/convert.ts'
import { promtailTables } from './promtail/page.ts'
import { isPromtail } from './promtail/read.ts'
import type { MakeTrial } from './trial.ts'
import { convertVector } from './vector/convert.ts'
import { vectorTables } from './vector/page.ts'
import { isVector } from './vector/read.ts'
import { vectorTrial } from './vector/trial.ts'

export interface OldAgent {
  /** As `--from` takes it; the page of the guide has this name, too. */
  readonly name: string
  readonly title: string
  /** Whether a text is a configuration of this agent, and of no other one in the list. */
  readonly recognises: (main: NamedText) => boolean
  /** Reads the files of one configuration, with those that they include, into a draft. */
  readonly convert: (files: readonly NamedText[], included: Included, draft: Draft) => void
  /** Markdown tables of what becomes of each of its plugins. */
  readonly tables: () => string
  /** How a configuration names a variable of the environment, with its default: one of the groups is the name. */
  readonly variable: RegExp
  /** Writes a variable within any text of a configuration; undefined if variables cannot stand within texts. */
  readonly write?: (name: string) => string
  /** How its binary makes events of recorded lines; without it `--prove` needs a record of them. */
  readonly trial?: MakeTrial
}

export const oldAgents: readonly OldAgent[] = [
  {
    name: 'vector',
    title: 'Vector',
    recognises: isVector,
    convert: convertVector,
    tables: vectorTables,
    variable: /\$\$|\$\{(\w+)(?::?[-?][^}]*)?\}|\$(\w+)/g,
    write: (name) => `\${${name}}`,
    trial: vectorTrial,
  },
  {
    name: 'fluent-bit',
    title: 'Fluent Bit',
    recognises: isFluentBit,
    convert: convertFluentBit,
    tables: fluentBitTables,
    variable: /\$\{(\w+)\}/g,
    write: (name) => `\${${name}}`,
    trial: fluentBitTrial,
  },
  {
    name: 'fluentd',
    title: 'Fluentd',
    recognises: isFluentd,
    convert: convertFluentd,
    tables: fluentdTables,
    variable: /#\{\s*ENV(?:\[\s*['"](\w+)['"]\s*\]|\.fetch\(\s*['"](\w+)['"][^)]*\))(?:\s*\|\|[^}]*)?\}/g,
    write: (name) => `#{ENV['${name}']}`,
  },
  {
    name: 'filebeat',
    title: 'Filebeat',
    recognises: isFilebeat,
    convert: convertFilebeat,
    tables: filebeatTables,
    variable: /\$\{(\w+)(?::[^}]*)?\}/g,
    write: (name) => `\${${name}}`,
  },
  {
    name: 'alloy',
    title: 'Alloy',
    recognises: isAlloy,
    convert: convertAlloy,
    tables: alloyTables,
    variable: /\b(?:sys\.)?env\(\s*"(\w+)"\s*\)/g,
  },
  {
    name: 'promtail',
    title: 'Promtail',
    recognises: isPromtail,
    convert: convertPromtail,
    tables: promtailTables,
    variable: /\$\{(\w+)(?::?-?[^}]*)?\}/g,
    write: (name) => `\${${name}}`,
  },
  {
    name: 'otel',
    title: 'OpenTelemetry Collector',
    recognises: isOtel,
    convert: convertOtel,
    tables: otelTables,
    variable: /\$\$|\$\{(?:env:)?(\w+)(?::-[^}]*)?\}/g,
    write: (name) => `\${env:${name}}`,
  },
]

export interface FoundAgent {
  readonly agent: OldAgent
  /** The files, or the parts of them that are a configuration of the agent. */
  readonly files: readonly NamedText[]
  /** Rows of the report about the files as they are here. */
  readonly gaps: readonly Gap[]
}

/**
 * The agent whose configuration the files are; undefined if none knows them.
 * @param name says which agent it is
 */
export function agentFor(files: readonly NamedText[], name?: string): FoundAgent | undefined {
  const candidates = oldAgents.filter((agent) => name === undefined || agent.name === name)
  // Files that are configurations come before files that may contain one.
  const known = candidates.filter(({ recognises }) => files.some(recognises))
  for (const agent of known.length > 0 ? known : candidates) {
    const own = files.map((file) => partsFor(agent, file, 0))
    if (own.some((parts) => parts !== undefined)) {
      const found = own.flatMap((parts, index) => parts ?? [files[index] as NamedText])
      return foundAgent(agent, found, files)
    }
  }
  const [agent] = candidates
  return name === undefined || agent === undefined ? undefined : foundAgent(agent, files, files)
}

function foundAgent(agent: OldAgent, texts: readonly NamedText[], files: readonly NamedText[]): FoundAgent {
  const gaps: Gap[] = []
  // A text of Alloy joins variables to others by an operator.
  const filled = agent.write === undefined ? texts : withoutReferences(texts, files, agent.write, gaps)
  return { agent, files: withValues(agent, filled, files), gaps }
}

/** The texts with the values that variables have in workloads and values of charts beside them. */
function withValues({ variable, name: agent }: OldAgent, texts: readonly NamedText[], files: readonly NamedText[]) {
  const values = new Map(files.flatMap((file) => [...valuesIn(file)]))
  if (values.size === 0) return texts
  return texts.map(({ file, text }) => ({
    file,
    text: text.replace(variable, (whole, ...groups: unknown[]) => {
      const value = values.get(String(groups.find((group) => typeof group === 'string') ?? ''))
      if (value === undefined) return whole
      return agent === 'alloy' ? JSON.stringify(value) : value
    }),
  }))
}

/** An Application holds a text of chart values. Those may hold values of another chart, and those a configuration. */
const maxWrappings = 5

/** The text itself if it is a configuration of an agent, otherwise the configurations in it; undefined if there are none. */
function partsFor(agent: OldAgent, file: NamedText, depth: number): readonly NamedText[] | undefined {
  if (agent.recognises(file)) return [file]
  if (depth === maxWrappings || !/\.(?:ya?ml|json)$/i.test(file.file)) return undefined
  const parts = partsOf(file).flatMap((part) => partsFor(agent, part, depth + 1) ?? [])
  return parts.length === 0 ? undefined : parts
}
