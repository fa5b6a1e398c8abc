// Reads YAML documents into settings with line numbers, including YAML that is embedded as text in ConfigMaps and chart values.

import { isAlias, isMap, isScalar, isSeq, LineCounter, type Node, parseAllDocuments } from 'yaml'
import type { Gap, NamedText } from '../draft.ts'
import { isList, isMap as isTable, type Tree, textOf } from './tree.ts'

interface Reading {
  /** Lines of the file before the text. */
  readonly above?: number
  /** Whether words such as `yes` and `off` are booleans, as in YAML 1.1, which some agents read. */
  readonly hasOldBooleans?: boolean | undefined
}

interface Embedding extends Pick<Reading, 'hasOldBooleans'> {
  /** Changes the text before it is parsed. */
  readonly change?: (text: string) => string
}

/** Spellings of booleans that are texts in YAML 1.2. */
const oldBooleans: ReadonlyMap<string, boolean> = new Map(
  [
    ['y', 'Y', 'yes', 'Yes', 'YES', 'on', 'On', 'ON'],
    ['n', 'N', 'no', 'No', 'NO', 'off', 'Off', 'OFF'],
  ].flatMap((words, index) => words.map((word) => [word, index === 0] as const)),
)

export function treesOf({ file, text }: NamedText, gaps: Gap[], reading: Reading = {}): readonly Tree[] {
  const { above = 0, hasOldBooleans = false } = reading
  const lines = new LineCounter()
  const documents = parseAllDocuments(text, { lineCounter: lines })
  if (!Array.isArray(documents)) return []
  const lineAt = (offset: number | undefined) => above + (lines.linePos(offset ?? 0).line || 1)
  return documents.map((document) => {
    for (const error of document.errors) {
      const reason = `the YAML is not valid: ${error.message.split('\n')[0] ?? ''}`
      const gap = { file, line: lineAt(error.pos[0]), subject: file, reason, nearest: 'Correct the file.' }
      // The last value of a repeated key is read, as by older agents.
      gaps.push(error.code === 'DUPLICATE_KEY' ? gap : { ...gap, isUnreadable: true })
    }
    const treeOf = (node: unknown, depth: number): Tree => {
      const resolved = isAlias(node) ? node.resolve(document) : node
      const line = lineAt((node as Node | null)?.range?.[0])
      if (depth > 64) return { file, line, value: null }
      if (isMap(resolved)) {
        const items = resolved.items.map(({ key, value }): [string, Tree] => {
          const name = String(isScalar(key) ? key.value : key)
          const below = treeOf(value, depth + 1)
          const keyLine = lineAt((key as Node | null)?.range?.[0])
          const isBlock = isScalar(value) && (value.type === 'BLOCK_LITERAL' || value.type === 'BLOCK_FOLDED')
          return [name, isBlock ? below : { ...below, line: keyLine }]
        })
        return { file, line, value: withMerges(items) }
      }
      if (isSeq(resolved)) return { file, line, value: resolved.items.map((item) => treeOf(item, depth + 1)) }
      const value = isScalar(resolved) ? resolved.value : null
      const old = hasOldBooleans && isScalar(resolved) && resolved.type === 'PLAIN' && typeof value === 'string'
      const boolean = old ? oldBooleans.get(value) : undefined
      if (boolean !== undefined) return { file, line, value: boolean }
      const isPlain = ['string', 'number', 'boolean'].includes(typeof value)
      // Keep the digits of a number as written.
      const source = isScalar(resolved) && typeof value === 'number' ? resolved.source : undefined
      if (source !== undefined) return { file, line, value: source, isNumber: true }
      return { file, line, value: isPlain ? (value as string | number | boolean) : null }
    }
    return treeOf(document.contents, 0)
  })
}

/** The members of a map, with those of merged maps (`<<`). A member of the map itself comes first, then one of the first merged map. */
function withMerges(items: readonly (readonly [string, Tree])[]): ReadonlyMap<string, Tree> {
  const own = new Set(items.map(([name]) => name))
  const all = new Map<string, Tree>()
  for (const [name, tree] of items) {
    const maps = (isList(tree) ? tree.value : [tree]).filter(isTable)
    if (name !== '<<' || maps.length === 0) all.set(name, tree)
    else
      for (const [key, item] of maps.flatMap(({ value }) => [...value]))
        if (!own.has(key) && !all.has(key)) all.set(key, item)
  }
  return all
}

/** Parses the text of a setting as YAML. Line numbers refer to the outer file. */
export function embedded(tree: Tree, gaps: Gap[], { change, hasOldBooleans }: Embedding = {}): Tree | undefined {
  const text = textOf(tree)
  if (text === undefined) return undefined
  // The text of a block begins on the line after its key.
  return treesOf({ file: tree.file, text: change?.(text) ?? text }, gaps, { hasOldBooleans, above: tree.line })[0]
}
