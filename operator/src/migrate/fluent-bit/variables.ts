// Environment variables. Programs read them for texts of fields. In options of a sink, they become references to a Secret, except for the name
// of the host and that of the node, which an event can carry. In other places, their value decides about the Pipeline, so they are gaps.

import { nodeRead, readReport } from '../environment.ts'
import type { Described } from '../page.ts'
import { secret } from './connection.ts'
import { pluginOf } from './names.ts'
import { type Context, common, isGeneral, matched, type Plugin, type SinkPart } from './plugin.ts'
import { type Entry, lastValue, type Section } from './sections.ts'
import { hostVariable, isOfNode } from './text.ts'

interface Templated {
  readonly text: string
  /** Lines that set what the template refers to. */
  readonly lines: readonly string[]
}

/**
 * The variables of a text that is a template.
 * @param readsEnvironment whether programs may read the environment of the agent
 */
export function templateOf(text: string, readsEnvironment: boolean): Templated {
  const lines = new Set<string>()
  const replaced = text.replace(/\$\{([A-Za-z0-9_]+)\}/g, (whole, name: string) => {
    if (whole === hostVariable) {
      lines.add('%hostname = get_hostname() ?? ""')
      return '{{ %hostname }}'
    }
    if (!isOfNode(name)) return secret(whole)
    lines.add(`%node_name = ${nodeRead(readsEnvironment)}`)
    return '{{ %node_name }}'
  })
  return { text: replaced, lines: [...lines] }
}

function withSecrets(value: unknown): unknown {
  if (typeof value === 'string') return secret(value)
  if (Array.isArray(value)) return value.map(withSecrets)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, withSecrets(item)]))
}

/** A sink whose options refer to the Secret, and reports of the variables that it lacks. */
export function withVariables(part: SinkPart, section: Section, plugin: Described, context: Context): SinkPart {
  const { config } = part.component
  const own = withSecrets(config)
  const component = config === undefined ? part.component : { ...part.component, config: own as typeof config }
  const text = JSON.stringify(own ?? {})
  const program = part.steps.map((step) => step.text).join('\n')
  for (const entry of section.entries) {
    if (!Object.hasOwn(plugin.options, entry.key) || Object.hasOwn({ ...common, ...matched }, entry.key)) continue
    for (const [whole, name = ''] of entry.value.matchAll(/\$\{([A-Za-z0-9_]+)\}/g)) {
      if (context.hasReportedAt(entry, whole)) continue
      const isSecret = text.includes(`SECRET[env.${name}]`)
      if (isSecret && (whole === hostVariable || isOfNode(name))) reportNode(entry, whole, context)
      else if (!isSecret && !isRead(program, whole, name)) reportMissing(entry, whole, context)
    }
  }
  return { ...part, component }
}

const isRead = (program: string, whole: string, name: string) =>
  whole === hostVariable
    ? program.includes('get_hostname()')
    : program.includes(isOfNode(name) ? '%orchestrator.pod_node_name' : `get_env_var("${name}")`)

function reportNode(entry: Entry, whole: string, context: Context): void {
  const reason = 'its value differs between nodes, and the Secret has one value for all of them'
  context.gap(entry, whole, reason, 'Write a text that is the same for all nodes, or add the name to the event.')
}

function reportMissing(entry: Entry, whole: string, context: Context): void {
  const reason = `the conversion needs the value of the variable for the option \`${entry.key}\``
  context.gap(entry, whole, reason, 'Replace it with its value, and convert again.')
}

/** Reports the variables of an input, a filter or a processor. Options that are left out need no value. */
export function reportVariables(
  section: Section,
  plugins: readonly (Described & Pick<Plugin<unknown>, 'expresses'>)[],
  context: Context,
): void {
  const { itself = {}, expresses = [] } = plugins.find(({ name }) => name === pluginOf(section)) ?? {}
  for (const entry of section.entries) {
    if (typeof itself[entry.key] === 'string' || isGeneral(section.kind, entry.key)) continue
    const from = expresses.includes(entry.key) ? startOfText(section, entry) : Infinity
    for (const { 0: whole, 1: name = '', index } of entry.value.matchAll(/\$\{([A-Za-z0-9_]+)\}/g)) {
      const isText = index >= from
      // Tags have the name of the host, and patterns for tags compare the variable itself.
      if (whole === hostVariable && (isText || ['tag', 'match'].includes(entry.key))) continue
      if (isText && isOfNode(name)) continue
      if (isText && context.readsEnvironment) {
        const { reason, nearest } = readReport(name)
        context.replaced(entry, whole, reason, nearest)
        continue
      }
      context.gap(
        entry,
        whole,
        'a resource is literal text, and the environment variable has no value here',
        'Replace it with its value, or set the field from `.kubernetes`.',
      )
    }
  }
}

/** Where the text for a field begins: after its name, or with the option `value`, unless that is a name as well. */
function startOfText(section: Section, { key, value }: Entry): number {
  if (key === 'value') return /^rename$/i.test(lastValue(section, 'action') ?? '') ? Infinity : 0
  return /^\s*\S+\s+/.exec(value)?.[0].length ?? Infinity
}
