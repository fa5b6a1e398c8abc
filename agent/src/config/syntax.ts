// Parses a configuration file in YAML, JSON or TOML into plain values, with the place of every key and value. Equivalent texts in the
// three formats result in equal values.

import { extname } from 'node:path'
import { isAlias, isMap, isPair, isScalar, isSeq, type Node, type Pair, Scalar, type YAMLMap } from 'yaml'
import { readYamlDocuments } from '../formats/yaml-documents.ts'
import { parseToml } from './toml.ts'

export type Format = 'toml' | 'yaml' | 'json'

export type Segments = readonly (string | number)[]

export interface TextBlock {
  readonly offset: number
  readonly indent: number
  /** Whether its lines are joined by blanks. */
  readonly isFolded?: boolean
}

/** The position of a key and its value in a text. */
export interface ValueSpan {
  /** Offset of the key or list item. */
  readonly key: number
  /** Offset of the value. */
  readonly value: number
  /** For multi-line text, the offset of its first line, and the indentation that is not part of the text. */
  readonly block?: TextBlock | undefined
}

export interface TextProblem {
  readonly offset: number
  readonly message: string
  /** Advice for the user. */
  readonly help?: string | undefined
}

export interface Document {
  /** The value; undefined for an empty file. */
  readonly value: unknown
  /** The place of the value at a path, or of its nearest parent. */
  locate(path: Segments): ValueSpan
}

export type ParseResult =
  | { readonly ok: true; readonly document: Document }
  | { readonly ok: false; readonly problems: readonly TextProblem[] }

/** The format for a file's extension; `toml` if the extension is unknown. */
export function formatOf(file: string): Format {
  return knownFormat(file) ?? 'toml'
}

export function knownFormat(file: string): Format | undefined {
  const extension = extname(file).toLowerCase()
  if (extension === '.yaml' || extension === '.yml') return 'yaml'
  if (extension === '.json') return 'json'
  if (extension === '.toml') return 'toml'
  return undefined
}

export function parseText(text: string, format: Format): ParseResult {
  if (format === 'toml') return parseToml(text)
  if (format === 'yaml' || text.trim() === '') return parseYaml(text)
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return { ok: false, problems: [jsonProblem(text)] }
  }
  // JSON is also YAML, and the YAML parser records positions.
  const places = parseYaml(text)
  if (!places.ok) return places
  return { ok: true, document: { value, locate: places.document.locate } }
}

function parseYaml(text: string): ParseResult {
  const { documents, problem } = readYamlDocuments(text, { stringKeys: true })
  const found = problem === undefined ? (documents[0]?.problems ?? []) : [problem]
  const second = documents[1]
  if (second !== undefined && found.length === 0) {
    const offset = second.document.range?.[0] ?? 0
    return {
      ok: false,
      problems: [{ offset, message: yamlProblem('expected one document, found several') }],
    }
  }
  if (found.length > 0) {
    return {
      ok: false,
      problems: found.map(({ offset, message, help }) => ({ offset, message: yamlProblem(message), help })),
    }
  }
  const { document, value } = documents[0] ?? {}
  const root = (document?.contents ?? null) as Node | null
  return {
    ok: true,
    document: {
      value: value ?? undefined,
      locate: (path) =>
        locateNode(root, path, text, (node) =>
          isAlias(node) && document !== undefined ? node.resolve(document) : node,
        ),
    },
  }
}

type Resolve = (node: unknown) => unknown

function locateNode(root: Node | null, path: Segments, text: string, resolve: Resolve): ValueSpan {
  let node: unknown = root
  let key = root?.range?.[0] ?? 0
  for (const segment of path) {
    const table = resolve(node)
    if (isMap(table)) {
      const pair = findPair(table, String(segment), resolve)
      if (pair === undefined) break
      key = (pair.key as Node | null)?.range?.[0] ?? key
      node = pair.value ?? pair.key
    } else if (isSeq(table)) {
      const item = table.items[Number(segment)]
      if (item === undefined) break
      node = isPair(item) ? item.value : item
      key = (node as Node | null)?.range?.[0] ?? key
    } else break
  }
  const start = (node as Node | null)?.range?.[0] ?? key
  return { key, value: start, block: blockOf(node, text) }
}

/** The pair for a key, in the table or in the tables that it merges. */
function findPair(table: YAMLMap, key: string, resolve: Resolve): Pair | undefined {
  let merged: Pair | undefined
  for (const pair of table.items) {
    const name = isScalar(pair.key) ? String(pair.key.value) : String(pair.key)
    if (name === key) return pair
    if (name !== '<<' && !(isScalar(pair.key) && typeof pair.key.value === 'symbol')) continue
    const source = resolve(pair.value)
    for (const part of isSeq(source) ? source.items : [source]) {
      const from = resolve(part)
      if (isMap(from)) merged ??= findPair(from, key, resolve)
    }
  }
  return merged
}

function blockOf(node: unknown, text: string): ValueSpan['block'] {
  if (!isScalar(node) || (node.type !== Scalar.BLOCK_LITERAL && node.type !== Scalar.BLOCK_FOLDED)) return undefined
  const start = node.range?.[0] ?? 0
  const end = node.range?.[1] ?? start
  const header = text.indexOf('\n', start)
  if (header < 0 || header >= end) return undefined
  let indent = Number.POSITIVE_INFINITY
  for (const line of text.slice(header + 1, end).split('\n')) {
    if (line.trim() !== '') indent = Math.min(indent, line.length - line.trimStart().length)
  }
  const isFolded = node.type === Scalar.BLOCK_FOLDED
  return { offset: header + 1, indent: Number.isFinite(indent) ? indent : 0, ...(isFolded && { isFolded }) }
}

/** Finds the offset at which a text stops being valid JSON, because `JSON.parse` does not always report it. */
function jsonProblem(text: string): TextProblem {
  let at = 0
  const skip = (pattern: RegExp): boolean => {
    pattern.lastIndex = at
    const match = pattern.exec(text)
    if (match !== null) at = pattern.lastIndex
    return match !== null
  }
  const space = () => skip(/[ \t\r\n]*/y)
  const members = (open: string, close: string, member: () => string | undefined): string | undefined => {
    at += open.length
    space()
    if (text[at] === close) {
      at++
      return undefined
    }
    for (;;) {
      const problem = member()
      if (problem !== undefined) return problem
      space()
      if (text[at] === close) {
        at++
        return undefined
      }
      if (text[at] !== ',') return `expected \`,\` or \`${close}\``
      at++
    }
  }
  const quoted = /"(?:[^"\\\p{Cc}]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/uy
  const value = (): string | undefined => {
    space()
    if (text[at] === '[') return members('[', ']', value)
    if (text[at] === '{') {
      return members('{', '}', () => {
        space()
        if (!skip(quoted)) return 'expected a name in double quotes'
        space()
        if (text[at] !== ':') return 'expected `:`'
        at++
        return value()
      })
    }
    if (skip(quoted) || skip(/-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y) || skip(/true|false|null/y))
      return undefined
    return 'expected a value'
  }
  let message = value()
  if (message === undefined) {
    space()
    message = 'expected the end of the text'
  }
  const found = at >= text.length ? 'the end of the text' : `\`${text[at]}\``
  return { offset: at, message: `not valid JSON: ${message}, found ${found}` }
}

function yamlProblem(message: string): string {
  const first = (message.split('\n')[0] ?? message).trim()
  return `not valid YAML: ${first}`
}
