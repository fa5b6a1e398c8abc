// Changes to the sections of a configuration before their conversion: defaults that depend on other sections, and sections that need no
// counterpart.

import type { Included } from '../draft.ts'
import { readClassic } from './classic.ts'
import { labelsIn } from './label-map.ts'
import { pluginOf } from './names.ts'
import type { Context } from './plugin.ts'
import { type Entry, lastValue, type Section, upstreamNode } from './sections.ts'
import { matchesOf, tagOf } from './tags.ts'

/** The sections without inputs of Fluent Bit's own metrics and outputs that only serve them, because agents do this themselves. */
export function withoutOwnMetrics(inputs: readonly Section[], outputs: readonly Section[], context: Context) {
  const isOwn = (section: Section) => pluginOf(section) === 'fluentbit_metrics'
  const others = inputs.filter((section) => !isOwn(section))
  const own = inputs.filter(isOwn)
  const isOf = (given: readonly Section[], output: Section) =>
    given.some((input) => matchesOf(tagOf(input), [output]).size > 0)
  const exporters = ['prometheus_exporter', 'prometheus_remote_write', 'vivo_exporter']
  const serving = outputs.filter(
    (output) => exporters.includes(pluginOf(output)) && isOf(own, output) && !isOf(others, output),
  )
  for (const section of [...own, ...serving]) {
    const reason = 'agents serve their own metrics at /metrics'
    const nearest = 'Let your Prometheus server scrape the agents.'
    context.replaced(section, `${section.kind} ${pluginOf(section)}`, reason, nearest)
  }
  return { inputs: others, outputs: outputs.filter((output) => !serving.includes(output)) }
}

/** Fluent Bit connects a single input with a single output, even if the output names no tags. */
export function withMatch(inputs: readonly Section[], outputs: readonly Section[]): readonly Section[] {
  const [only] = outputs
  const isOpen = (section: Section) => ['match', 'match_regex'].every((key) => lastValue(section, key) === undefined)
  if (only === undefined || outputs.length > 1 || inputs.length !== 1 || !isOpen(only)) return outputs
  if (inputs[0]?.routes !== undefined) return outputs
  return [{ ...only, entries: [...only.entries, { file: only.file, line: only.line, key: 'match', value: '*' }] }]
}

/** Replaces the file with labels for Loki by the option for labels. */
export function withLabelMaps(outputs: readonly Section[], included: Included): readonly Section[] {
  return outputs.map((section) => ({
    ...section,
    entries: section.entries.flatMap((entry) => {
      if (entry.key !== 'label_map_path' || pluginOf(section) !== 'loki') return [entry]
      const labels = included(entry.value, entry.file).map(({ text }) => labelsIn(text))[0]
      return labels === undefined ? [entry] : labels.map((value) => ({ ...entry, key: 'labels', value }))
    }),
  }))
}

/** Gives outputs the nodes of the upstream that they name: that of a file, or one of the YAML syntax. */
export function withUpstreams(
  outputs: readonly Section[],
  sections: readonly Section[],
  included: Included,
): readonly Section[] {
  const known = new Map(
    sections
      .filter(({ kind }) => kind === 'upstream_servers')
      .map(
        (section) => [lastValue(section, 'name'), section.entries.filter(({ key }) => key === upstreamNode)] as const,
      ),
  )
  const nodesIn = ({ value, file }: Entry): readonly Entry[] => {
    const files = included(value, file).flatMap((given) => readClassic(given.text, given.file).sections)
    return files
      .filter(({ kind }) => kind === 'node')
      .map((node) => ({
        file: node.file,
        line: node.line,
        key: upstreamNode,
        value: JSON.stringify(
          Object.fromEntries(
            node.entries.filter(({ key }) => /^(?:host|port|tls)$/.test(key)).map((each) => [each.key, each.value]),
          ),
        ),
      }))
  }
  return outputs.map((section) => {
    const named = section.entries.filter(({ key }) => key === 'upstream' && pluginOf(section) === 'es')
    const nodes = named.flatMap((entry) => known.get(entry.value) ?? nodesIn(entry))
    return nodes.length === 0 ? section : { ...section, entries: [...section.entries, ...nodes] }
  })
}

/** Gives inputs without a tag the one that Fluent Bit gives them: the plugin, and the number of the input. */
export const withTags = (inputs: readonly Section[]): readonly Section[] =>
  inputs.map((section, index) => {
    const { file, line, entries } = section
    if (index === 0 || lastValue(section, 'tag') !== undefined) return section
    return { ...section, entries: [...entries, { file, line, key: 'tag', value: `${pluginOf(section)}.${index}` }] }
  })

const diskSize = '1G'

/** Adds a limit to outputs without one if an input keeps its chunks on disk. */
export function onDisk(inputs: readonly Section[], outputs: readonly Section[], context: Context): readonly Section[] {
  const at = inputs
    .flatMap(({ entries }) => entries)
    .find(({ key, value }) => key === 'storage.type' && /^filesystem$/i.test(value.trim()))
  const isOpen = (section: Section) =>
    lastValue(section, 'storage.total_limit_size') === undefined &&
    !['stdout', 'file', 'null'].includes(pluginOf(section))
  if (at === undefined || !outputs.some(isOpen)) return outputs
  context.replaced(
    at,
    'storage.type',
    `Fluent Bit does not limit chunks on disk; each sink keeps up to ${diskSize}B on disk, and further lines wait in their files`,
    'Set `buffer.max_size` of the sinks.',
  )
  const limit = { file: at.file, line: at.line, key: 'storage.total_limit_size', value: diskSize }
  return outputs.map((section) => (isOpen(section) ? { ...section, entries: [...section.entries, limit] } : section))
}
