// Fluent Bit's YAML syntax: lists of plugins in `pipeline`, and top-level lists of parsers. Each item becomes a section, and each value an
// entry. A list becomes a repeated key, as in the classic syntax.

import { isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml'
import { conditionKey, type Entry, type Place, type Section, type SectionFile, type Unread } from './sections.ts'

const pipelineLists: Readonly<Record<string, string>> = { inputs: 'input', filters: 'filter', outputs: 'output' }
const topLists: Readonly<Record<string, string>> = {
  parsers: 'parser',
  multiline_parsers: 'multiline_parser',
  customs: 'custom',
  plugins: 'plugins',
  stream_processor: 'stream_processor',
  upstream_servers: 'upstream_servers',
}

export function readYaml(text: string, file: string): SectionFile {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines })
  const placeAt = (offset: number | undefined): Place => ({ file, line: lines.linePos(offset ?? 0).line || 1 })
  const placeOf = (node: unknown): Place => placeAt((node as Node | null)?.range?.[0])
  const sections: Section[] = []
  const variables = new Map<string, string>()
  const includes: Entry[] = []
  const unread: Unread[] = document.errors.map((error) => ({
    ...placeAt(error.pos[0]),
    reason: `the YAML is not valid: ${error.message.split('\n')[0] ?? ''}`,
  }))

  const entriesAt = (key: string, node: unknown): Entry[] => {
    const place = placeOf(node)
    if (isSeq(node)) return node.items.flatMap((item) => entriesAt(key, item))
    if (isMap(node)) {
      // A rule of a multiline parser. The classic syntax writes it as one line of three quoted words.
      const { state, regex, next_state: next } = node.toJSON() as Record<string, unknown>
      if (state !== undefined && regex !== undefined)
        return [{ ...place, key: 'rule', value: `"${state}" "${regex}" "${next}"` }]
      // A group of options. The classic syntax joins the names with a period.
      return pairsOf(node).flatMap(([below, value]) => entriesAt(`${key}.${below}`, value))
    }
    // Fluent Bit uses the text as written: `null` is a plugin.
    const value = isScalar(node) ? (node.value ?? node.source) : node
    return [{ ...place, key, value: value === null || value === undefined ? '' : String(value) }]
  }
  const pairsOf = (node: unknown): [string, unknown, unknown][] =>
    isMap(node) ? node.items.map(({ key, value }) => [String(isScalar(key) ? key.value : key), value, key]) : []
  const itemsOf = (node: unknown): unknown[] => (isSeq(node) ? node.items : [])
  const sectionOf = (kind: string, node: unknown): Section => {
    const entries: Entry[] = []
    const processors: Section[] = []
    for (const [key, value] of pairsOf(node)) {
      // The condition of a processor. Filters have conditions that are texts.
      if (key === 'condition' && isMap(value))
        entries.push({ ...placeOf(value), key: conditionKey, value: JSON.stringify(value.toJSON()) })
      else if (key !== 'processors') entries.push(...entriesAt(key.toLowerCase(), value))
      else {
        for (const [signal, list] of pairsOf(value)) {
          const own = itemsOf(list).map((item) => sectionOf('processor', item))
          if (signal === 'logs') processors.push(...own)
          else
            for (const { entries: _, ...place } of own)
              entries.push({ ...place, key: `processors.${signal}`, value: signal })
        }
      }
    }
    return { ...placeOf(node), kind, entries, ...(processors.length === 0 ? {} : { processors }) }
  }
  const addSection = (kind: string, node: unknown): void => {
    sections.push(sectionOf(kind, node))
  }

  for (const [key, value, at] of pairsOf(document.contents)) {
    const list = Object.hasOwn(topLists, key) ? topLists[key] : undefined
    if (key === 'pipeline') {
      for (const [part, plugins, partAt] of pairsOf(value)) {
        const kind = Object.hasOwn(pipelineLists, part) ? pipelineLists[part] : undefined
        if (kind === undefined) unread.push({ ...placeOf(partAt), reason: `\`pipeline.${part}\` is unknown` })
        else for (const plugin of itemsOf(plugins)) addSection(kind, plugin)
      }
    } else if (key === 'env') {
      for (const [name, node] of pairsOf(value)) variables.set(name, String(isScalar(node) ? node.value : ''))
    } else if (key === 'includes') includes.push(...entriesAt('include', value))
    else if (key === 'service') addSection('service', value)
    else if (list !== undefined) for (const item of itemsOf(value)) addSection(list, item)
    else unread.push({ ...placeOf(at), reason: `\`${key}\` is unknown` })
  }
  return { sections, variables, includes, unread }
}
