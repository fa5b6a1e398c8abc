// Fluent Bit's YAML syntax: lists of plugins in `pipeline`, and top-level lists of parsers. Each item becomes a section, and each value an
// entry. A list becomes a repeated key, as in the classic syntax.

import { isMap, isScalar, isSeq, LineCounter, type Node, parseDocument } from 'yaml'
import {
  conditionKey,
  type Entry,
  type Place,
  routeFallback,
  routeOutput,
  type Section,
  type SectionFile,
  type Unread,
  upstreamNode,
} from './sections.ts'

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
  const reader = new Reader(file, lines)
  const unread = document.errors.map((error) => ({
    ...reader.placeAt(error.pos[0]),
    reason: `the YAML is not valid: ${error.message.split('\n')[0] ?? ''}`,
    ...(error.code === 'DUPLICATE_KEY' ? {} : { isUnreadable: true as const }),
  }))
  reader.take(document.contents)
  const { sections, variables, includes } = reader
  return { sections, variables, includes, unread: [...unread, ...reader.unread] }
}

const pairsOf = (node: unknown): [string, unknown, unknown][] =>
  isMap(node) ? node.items.map(({ key, value }) => [String(isScalar(key) ? key.value : key), value, key]) : []
const itemsOf = (node: unknown): unknown[] => (isSeq(node) ? node.items : [])
const textIn = (node: unknown) => String(isScalar(node) ? node.value : '')

/** Names of variables with values: a map, or a list in which variables with a value from elsewhere have none. */
function variablesIn(node: unknown): [string, string][] {
  if (isMap(node)) return pairsOf(node).map(([name, value]) => [name, textIn(value)])
  return itemsOf(node).flatMap((item): [string, string][] => {
    const own = new Map(pairsOf(item).map(([key, value]) => [key, value]))
    return own.has('value') ? [[textIn(own.get('name')), textIn(own.get('value'))]] : []
  })
}

class Reader {
  readonly sections: Section[] = []
  readonly variables = new Map<string, string>()
  readonly includes: Entry[] = []
  readonly unread: Unread[] = []
  readonly #file: string
  readonly #lines: LineCounter

  constructor(file: string, lines: LineCounter) {
    this.#file = file
    this.#lines = lines
  }

  placeAt(offset: number | undefined): Place {
    return { file: this.#file, line: this.#lines.linePos(offset ?? 0).line || 1 }
  }

  #placeOf(node: unknown): Place {
    return this.placeAt((node as Node | null)?.range?.[0])
  }

  take(contents: unknown): void {
    for (const [key, value, at] of pairsOf(contents)) {
      const list = Object.hasOwn(topLists, key) ? topLists[key] : undefined
      if (key === 'pipeline') this.#takePipeline(value)
      else if (key === 'env') for (const [name, text] of variablesIn(value)) this.variables.set(name, text)
      else if (key === 'includes') this.includes.push(...this.#entriesAt('include', value))
      else if (key === 'service') this.sections.push(this.#sectionOf('service', value))
      else if (list !== undefined) for (const item of itemsOf(value)) this.sections.push(this.#sectionOf(list, item))
      else this.unread.push({ ...this.#placeOf(at), reason: `\`${key}\` is unknown` })
    }
  }

  #takePipeline(node: unknown): void {
    for (const [part, plugins, at] of pairsOf(node)) {
      const kind = Object.hasOwn(pipelineLists, part) ? pipelineLists[part] : undefined
      if (kind === undefined) this.unread.push({ ...this.#placeOf(at), reason: `\`pipeline.${part}\` is unknown` })
      else for (const plugin of itemsOf(plugins)) this.sections.push(this.#pluginOf(kind, plugin))
    }
  }

  /** A plugin, also in the older form, in which its name is the key of its options. */
  #pluginOf(kind: string, node: unknown): Section {
    const [[name, options, at] = ['', undefined, undefined], ...others] = pairsOf(node)
    if (others.length > 0 || !isMap(options)) return this.#sectionOf(kind, node)
    const own = this.#sectionOf(kind, options)
    return { ...own, entries: [{ ...this.#placeOf(at), key: 'name', value: name }, ...own.entries] }
  }

  #sectionOf(kind: string, node: unknown): Section {
    const entries: Entry[] = []
    const processors: Section[] = []
    const routes: Section[] = []
    for (const [key, value] of pairsOf(node)) {
      // The condition of a filter or a processor. The filter `modify` has conditions that are texts.
      if (key === 'condition' && isMap(value))
        entries.push({ ...this.#placeOf(value), key: conditionKey, value: JSON.stringify(value.toJSON()) })
      else if (key === 'nodes' && kind === 'upstream_servers')
        entries.push(...itemsOf(value).map((item) => this.#node(item)))
      else if (key === 'routes' && kind === 'input') {
        for (const [signal, list] of pairsOf(value)) {
          const own = isSeq(list) ? list.items : isMap(list) ? [list] : []
          if (/\b(?:logs|any)\b/i.test(signal)) routes.push(...own.map((item) => this.#routeOf(item)))
          else for (const item of own) entries.push({ ...this.#placeOf(item), key: `routes.${signal}`, value: signal })
        }
      } else if (key !== 'processors') entries.push(...this.#entriesAt(key.toLowerCase(), value))
      else {
        for (const [signal, list] of pairsOf(value)) {
          const own = itemsOf(list).map((item) => this.#sectionOf('processor', item))
          if (signal === 'logs') processors.push(...own)
          else
            for (const { entries: _, ...place } of own)
              entries.push({ ...place, key: `processors.${signal}`, value: signal })
        }
      }
    }
    return {
      ...this.#placeOf(node),
      kind,
      entries,
      ...(processors.length === 0 ? {} : { processors }),
      ...(routes.length === 0 ? {} : { routes }),
    }
  }

  /** A route, whose processors may be a list without a signal. */
  #routeOf(node: unknown): Section {
    const entries: Entry[] = []
    const processors: Section[] = []
    for (const [key, value] of pairsOf(node)) {
      if (key === 'condition' && isMap(value))
        entries.push({ ...this.#placeOf(value), key: conditionKey, value: JSON.stringify(value.toJSON()) })
      else if (key === 'to') entries.push(...this.#targetsOf(value))
      else if (key === 'processors') {
        const own = isSeq(value)
          ? value.items
          : pairsOf(value).flatMap(([signal, list]) => (signal === 'logs' ? itemsOf(list) : []))
        processors.push(...own.map((item) => this.#sectionOf('processor', item)))
      } else entries.push(...this.#entriesAt(key.toLowerCase(), value))
    }
    return { ...this.#placeOf(node), kind: 'route', entries, ...(processors.length === 0 ? {} : { processors }) }
  }

  /** The outputs of a route: names, or objects with a name. */
  #targetsOf(node: unknown): Entry[] {
    const [, list = node] = pairsOf(node).find(([key]) => key === 'outputs') ?? []
    return (isSeq(list) ? list.items : [list]).flatMap((item) => {
      const own = isMap(item) ? pairsOf(item) : [['name', item] as const]
      return own.flatMap(([key, value]) => {
        const name = key === 'name' ? routeOutput : key === 'fallback' ? routeFallback : key
        return [{ ...this.#placeOf(value), key: name, value: textIn(value) }]
      })
    })
  }

  #node(node: unknown): Entry {
    const texts = pairsOf(node).map(([name, value]) => [name, textIn(value)])
    return { ...this.#placeOf(node), key: upstreamNode, value: JSON.stringify(Object.fromEntries(texts)) }
  }

  #entriesAt(key: string, node: unknown): Entry[] {
    const place = this.#placeOf(node)
    if (isSeq(node)) return node.items.flatMap((item) => this.#entriesAt(key, item))
    if (isMap(node)) {
      // A rule of a multiline parser. The classic syntax writes it as one line of three quoted words.
      const { state, regex, next_state: next } = node.toJSON() as Record<string, unknown>
      if (state !== undefined && regex !== undefined)
        return [{ ...place, key: 'rule', value: `"${state}" "${regex}" "${next}"` }]
      // A group of options. The classic syntax joins the names with a period.
      return pairsOf(node).flatMap(([below, value]) => this.#entriesAt(`${key}.${below}`, value))
    }
    // Fluent Bit uses the text as written: `null` is a plugin.
    const value = isScalar(node) ? (node.value ?? node.source) : node
    return [{ ...place, key, value: value === null || value === undefined ? '' : String(value) }]
  }
}
