// Finds a configuration of the collector in a file, in `config` of Helm values, in a ConfigMap, or in a custom resource of its operator,
// as text or as an object. Several files form one configuration, in which later files override earlier ones.

import { isTable, tableOf } from '@penstock/agent/schema'
import { type Root, type Table, type TableDocument, tableDocuments } from '../documents.ts'
import type { Gap, NamedText } from '../draft.ts'
import type { Path, Place } from './mapping.ts'
import { withPresets } from './presets.ts'
import { isOfSplunkChart, settingOf, splunkChartConfig } from './splunk-chart.ts'

const sections = ['receivers', 'processors', 'exporters', 'connectors', 'extensions', 'service']

const isConfig = (value: unknown): value is Table =>
  isTable(value) &&
  sections.some((name) => isTable(value[name])) &&
  !('sources' in value) &&
  !('scrape_configs' in value)

/** Whether a value contains pipelines of a collector, or presets of the chart that generate them. */
const hasPipelines = ({ config }: Root) => isTable(config['service']) && isTable(config['service']['pipelines'])

/** Whether a text contains a configuration of the collector. */
export function isOtel(given: NamedText): boolean {
  return /\.ya?ml$|\.json$/i.test(given.file) && rootsOf(given, 0, []).some(hasPipelines)
}

/** A configuration, merged from all of its parts. */
export class Config {
  readonly value: Table
  readonly #roots: readonly Root[]
  /** The place of gaps that belong to no line. */
  readonly #file: string

  constructor(files: readonly NamedText[], gaps: Gap[]) {
    const roots: Root[] = []
    for (const given of files) {
      const before = gaps.length
      const found = rootsOf(given, 0, gaps)
      if (found.length === 0 && gaps.length === before) {
        gaps.push({
          file: given.file,
          line: 1,
          subject: given.file,
          reason: 'the file has no `receivers`, `processors`, `exporters` or `service`',
          nearest: 'Pass the file that has them, or set `--from` to the agent that the file configures.',
        })
      }
      roots.push(...found)
    }
    this.#roots = roots
    this.#file = files[0]?.file ?? ''
    this.value = roots.reduce<Table>((merged, { config }) => mergeTables(merged, config), {})
  }

  /** The file and line of the value at a path, or of its nearest parent that exists. */
  place(path: Path): Place {
    for (let length = path.length; length > 0; length--) {
      const part = path.slice(0, length)
      const root = this.#roots.findLast(({ config }) => has(config, part))
      if (root !== undefined) return { file: root.file, line: root.lineOf(part) }
    }
    const [first] = this.#roots
    return { file: first?.file ?? this.#file, line: first?.lineOf([]) ?? 1 }
  }
}

function has(value: unknown, path: Path): boolean {
  let current = value
  for (const key of path) {
    if (typeof current !== 'object' || current === null || !Object.hasOwn(current, key)) return false
    current = (current as Readonly<Record<string | number, unknown>>)[key]
  }
  return true
}

function mergeTables(under: Table, over: Table): Table {
  const merged: Record<string, unknown> = { ...under }
  for (const [key, value] of Object.entries(over)) {
    const below = merged[key]
    merged[key] = isTable(below) && isTable(value) ? mergeTables(below, value) : value
  }
  return merged
}

/** @param above number of lines of the file before the text */
function rootsOf(given: NamedText, above: number, gaps: Gap[]): readonly Root[] {
  // Most later problems are consequences of the first one.
  return tableDocuments(given, { format: 'yaml', above, gaps, maxProblems: 1 }).flatMap((document) =>
    rootsIn(document, gaps),
  )
}

function rootsIn({ file, value, lineOf, below, inside }: TableDocument, gaps: Gap[]): readonly Root[] {
  const nested = (path: Path, inner: string) => {
    const { text, above } = inside(path, inner)
    return rootsOf({ file, text }, above, [])
  }
  const { kind, spec, data, presets, alternateConfig } = value
  // The chart uses the other configuration in place of `config`, without merging it with its default one.
  const isWhole = isConfig(alternateConfig)
  const at = isWhole ? 'alternateConfig' : 'config'
  const config = value[at]
  if (kind === 'OpenTelemetryCollector' && isTable(spec)) {
    if (typeof spec['config'] === 'string') return nested(['spec', 'config'], spec['config'])
    return isConfig(spec['config']) ? [below(['spec', 'config'], spec['config'])] : []
  }
  if (kind === 'ConfigMap' && isTable(data)) {
    return Object.entries(data).flatMap(([name, inner]) =>
      typeof inner === 'string' ? nested(['data', name], inner) : [],
    )
  }
  if (kind !== undefined) return []
  if (isOfSplunkChart(value)) {
    const path = ['agent', 'config']
    const changes = tableOf(tableOf(value['agent'])['config'])
    const lineIn = (part: Path) => (has(changes, part) ? lineOf([...path, ...part]) : lineOf(settingOf(part)))
    return [{ file, config: mergeTables(splunkChartConfig(value), changes), lineOf: lineIn }]
  }
  const isOfChart = isConfig(config) || (isTable(presets) && config === undefined)
  // Values may have `service` for the Service of the chart.
  if (!isOfChart) return isConfig(value) ? [below([], value)] : []
  const own = isConfig(config) ? config : {}
  const values = below([at], own)
  const made = withPresets(value, own, isWhole)
  if (made === undefined) return [values]
  for (const { preset, ...report } of made.reports) {
    const path = ['presets', ...preset.split('.')]
    gaps.push({ file, line: lineOf(path), subject: `presets.${preset}`, ...report })
  }
  // The chart adds parts for enabled presets.
  const lineIn = (path: Path) => (has(own, path) ? values.lineOf(path) : lineOf(['presets']))
  return [{ file, config: made.config, lineOf: lineIn }]
}
