// Where a configuration of the collector may stand: a file of its own, `config` among the values of its Helm chart, a ConfigMap, or a
// custom resource of its operator, as text or as an object. Several files are one configuration: later ones are laid over earlier ones.

import { parseText, positionAt, type Segments } from '@penstock/agent/config'
import { isTable } from '@penstock/agent/schema'
import type { Gap, NamedText } from '../draft.ts'
import type { Path, Place } from './mapping.ts'
import { withPresets } from './presets.ts'

type Table = Readonly<Record<string, unknown>>

interface Root {
  readonly file: string
  readonly config: Table
  lineOf(path: Path): number
}

const sections = ['receivers', 'processors', 'exporters', 'connectors', 'extensions', 'service']

const isConfig = (value: unknown): value is Table =>
  isTable(value) &&
  sections.some((name) => isTable(value[name])) &&
  !('sources' in value) &&
  !('scrape_configs' in value)

/** Whether the pipelines of a collector stand here, or a preset of its chart makes them. */
const hasPipelines = ({ config }: Root) => isTable(config['service']) && isTable(config['service']['pipelines'])

/** Whether a text holds a configuration of the collector. */
export function isOtel(given: NamedText): boolean {
  return /\.ya?ml$|\.json$/i.test(given.file) && rootsOf(given, 0, []).some(hasPipelines)
}

/** A configuration, merged from all places where a part of it stands. */
export class Config {
  readonly value: Table
  readonly #roots: readonly Root[]
  /** For what has no place of its own. */
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
          nearest: 'Name the file that has them, or `--from` the agent that it is for.',
        })
      }
      roots.push(...found)
    }
    this.#roots = roots
    this.#file = files[0]?.file ?? ''
    this.value = roots.reduce<Table>((merged, { config }) => mergeTables(merged, config), {})
  }

  /** The place of what stands at a path; where nothing stands, that of its nearest parent. */
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

/** @param above lines of the file before the text */
function rootsOf({ file, text }: NamedText, above: number, gaps: Gap[]): Root[] {
  const roots: Root[] = []
  let line = above
  for (const part of text.split(/^(?=---(?:\s|$))/m)) {
    roots.push(...documentRoots({ file, text: part.replace(/^---[^\n]*/, '') }, line, gaps))
    line += part.split('\n').length - 1
  }
  return roots
}

function documentRoots({ file, text }: NamedText, above: number, gaps: Gap[]): Root[] {
  const parsed = parseText(text, 'yaml')
  if (!parsed.ok) {
    // Most of what follows the first mistake follows from it.
    for (const { offset, message } of parsed.problems.slice(0, 1)) {
      const line = above + positionAt(text, offset).line
      gaps.push({ file, line, subject: file, reason: message, nearest: 'Correct the file.' })
    }
    return []
  }
  const { document } = parsed
  if (!isTable(document.value)) return []
  const lineOf = (path: Segments) => above + positionAt(text, document.locate(path).key).line
  const below = (path: Segments, config: Table): Root => ({
    file,
    config,
    lineOf: (inner) => lineOf([...path, ...inner]),
  })
  /** The configuration as text in a block of its own. */
  const inside = (path: Segments, inner: string): Root[] => {
    const { block } = document.locate(path)
    const start = block === undefined ? lineOf(path) - 1 : above + positionAt(text, block.offset).line - 1
    return rootsOf({ file: `${file}.yaml`, text: inner }, start, []).map((root) => ({ ...root, file }))
  }
  const { kind, spec, data, config, presets } = document.value
  if (kind === 'OpenTelemetryCollector' && isTable(spec)) {
    if (typeof spec['config'] === 'string') return inside(['spec', 'config'], spec['config'])
    return isConfig(spec['config']) ? [below(['spec', 'config'], spec['config'])] : []
  }
  if (kind === 'ConfigMap' && isTable(data)) {
    return Object.entries(data).flatMap(([name, inner]) =>
      typeof inner === 'string' ? inside(['data', name], inner) : [],
    )
  }
  if (kind !== undefined) return []
  if (isConfig(document.value)) return [below([], document.value)]
  if (!isConfig(config) && !(isTable(presets) && config === undefined)) return []
  const own = isConfig(config) ? config : {}
  const values = below(['config'], own)
  const made = withPresets(document.value, own)
  if (made === undefined) return [values]
  // Whatever the chart adds stands where its presets are switched on.
  const lineIn = (path: Path) => (has(own, path) ? values.lineOf(path) : lineOf(['presets']))
  return [{ file, config: made, lineOf: lineIn }]
}
