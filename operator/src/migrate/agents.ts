// The agents whose configurations can be converted. The command, its help and the pages of the guide are derived from this list.

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
import { partsOf, podFieldsIn, valuesIn } from './inner.ts'
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
  /** The value of `--from`, and the name of the page in the guide. */
  readonly name: string
  readonly title: string
  /** Whether a text is a configuration of this agent and of no other agent in the list. */
  readonly recognises: (main: NamedText) => boolean
  /** Reads the files of one configuration, and the files they include, into a draft. */
  readonly convert: (files: readonly NamedText[], included: Included, draft: Draft) => void
  /** Markdown tables that show how each of its plugins is converted. */
  readonly tables: () => string
  /** Matches a reference to an environment variable, with its default. One of the groups is the name. */
  readonly variable: RegExp
  /** Writes a reference to a variable inside a text; undefined if the language does not allow this. */
  readonly write?: (name: string) => string
  /** The variable that stands for the name of the node; workloads may set others to the same value. */
  readonly nodeVariable?: string
  /** Runs the agent's binary on recorded lines; without it, `--prove` needs recorded events. */
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
    // Inside of a text, as the values of `sys.env` are read.
    write: (name) => `\${${name}}`,
    nodeVariable: 'HOSTNAME',
  },
  {
    name: 'promtail',
    title: 'Promtail',
    recognises: isPromtail,
    convert: convertPromtail,
    tables: promtailTables,
    variable: /\$\{(\w+)(?::?-?[^}]*)?\}/g,
    write: (name) => `\${${name}}`,
    nodeVariable: 'HOSTNAME',
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
  /** The files, or the parts of them that contain a configuration of the agent. */
  readonly files: readonly NamedText[]
  /** Rows of the report about the files themselves. */
  readonly gaps: readonly Gap[]
}

/**
 * The agent that the files configure; undefined if no agent recognizes them.
 * @param name the name of the agent, from `--from`
 */
export function agentFor(files: readonly NamedText[], name?: string): FoundAgent | undefined {
  const candidates = oldAgents.filter((agent) => name === undefined || agent.name === name)
  // Check files that are configurations before files that may contain one.
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

/** The agents whose configuration is, or is part of, one of the files. */
export const agentsOf = (files: readonly NamedText[]): readonly OldAgent[] =>
  oldAgents.filter((agent) => files.some((file) => partsFor(agent, file, 0) !== undefined))

/** In Alloy, the quotes of `{{ .Values.x | quote }}` are needed. */
const quotedReferences = ({ file, text }: NamedText): NamedText => ({
  file,
  text: text.replace(/(\{\{-?\s*\$?\.[\w.]+)\s*\|\s*quote\s*(-?\}\})/g, '"$1 $2"'),
})

function foundAgent(agent: OldAgent, texts: readonly NamedText[], files: readonly NamedText[]): FoundAgent {
  const gaps: Gap[] = []
  const given = agent.name === 'alloy' ? texts.map(quotedReferences) : texts
  const filled = agent.write === undefined ? given : withoutReferences(given, files, agent.write, gaps)
  return { agent, files: withValues(agent, filled, files), gaps }
}

/** The texts, with variables replaced by the values that the workloads and chart values next to them set. */
function withValues(agent: OldAgent, texts: readonly NamedText[], files: readonly NamedText[]) {
  const { variable, nodeVariable } = agent
  const values = new Map(files.flatMap((file) => [...valuesIn(file)]))
  const fields = files.flatMap((file) => (nodeVariable === undefined ? [] : [...podFieldsIn(file)]))
  const nodes = new Set(fields.flatMap(([name, path]) => (path === 'spec.nodeName' ? [name] : [])))
  if (values.size + nodes.size === 0) return texts
  return texts.map(({ file, text, ...place }) => ({
    ...place,
    file,
    text: text.replace(variable, (whole, ...groups: unknown[]) => {
      const name = String(groups.find((group) => typeof group === 'string') ?? '')
      const value = values.get(name)
      if (value !== undefined) return agent.name === 'alloy' ? JSON.stringify(value) : value
      return nodes.has(name) ? whole.replace(name, nodeVariable ?? name) : whole
    }),
  }))
}

/** An Application contains chart values as text. They may contain the values of another chart, and those a configuration. */
const maxWrappings = 5

/** The text itself if it is a configuration of an agent; otherwise the configurations in it, or undefined if there are none. */
function partsFor(agent: OldAgent, file: NamedText, depth: number): readonly NamedText[] | undefined {
  if (agent.recognises(file)) return [file]
  if (depth === maxWrappings || !/\.(?:ya?ml|json)$/i.test(file.file)) return undefined
  const parts = partsOf(file).flatMap((part) => partsFor(agent, part, depth + 1) ?? [])
  return parts.length === 0 ? undefined : parts
}
