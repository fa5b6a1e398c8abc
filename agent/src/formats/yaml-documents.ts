// YAML files of users, as documents with positions. Limits are enforced before the parser allocates anything: text length, number and
// nesting of nodes, and nodes repeated by aliases. So code that walks the values needs no limits.

import {
  type Document,
  isAlias,
  isMap,
  isPair,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  parseAllDocuments,
  type YAMLMap,
} from 'yaml'
import { bareTemplate, isKeyOfParts, mistakesOf } from './yaml-mistakes.ts'

export const yamlLimits = { characters: 16 << 20, parts: 300_000, depth: 128, aliases: 1000 } as const

export interface YamlProblem {
  readonly offset: number
  readonly message: string
  /** Advice for the user. */
  readonly help?: string
  /** Set if only aliases exceed the limit: written out, the text would be readable. */
  readonly byAliases?: true
}

export interface YamlDocument {
  readonly document: Document
  /** Undefined if there are problems. */
  readonly value: unknown
  readonly problems: readonly YamlProblem[]
}

export interface YamlText {
  readonly documents: readonly YamlDocument[]
  readonly lines: LineCounter
  /** Why the text cannot be read. */
  readonly problem?: YamlProblem
}

/** Reads all documents of a text. Merge keys (`<<`) are supported; `stringKeys`: keys of other types are rejected. */
export function readYamlDocuments(text: string, { stringKeys = false } = {}): YamlText {
  const lines = new LineCounter()
  const problem = excessOf(text)
  if (problem !== undefined) return { documents: [], lines, problem }
  // The library compares each key with all earlier keys.
  const options = { lineCounter: lines, merge: true, prettyErrors: false, uniqueKeys: false, stringKeys } as const
  return { documents: parseAllDocuments(text, options).map((document) => readDocument(text, document, lines)), lines }
}

function readDocument(text: string, document: Document, lines: LineCounter): YamlDocument {
  const exhausted = document.errors.find(({ code }) => code === 'RESOURCE_EXHAUSTION')
  if (exhausted !== undefined) {
    return { document, value: undefined, problems: [{ offset: exhausted.pos[0], message: tooDeep }] }
  }
  if (document.errors.length > 0) return { document, value: undefined, problems: mistakesOf(text, document, lines) }
  const { problems, excess } = new Walk(document)
  if (problems.length > 0) return { document, value: undefined, problems }
  try {
    const value: unknown = document.toJS({ maxAliasCount: yamlLimits.aliases })
    if (excess === undefined) return { document, value, problems: [] }
    return { document, value: undefined, problems: [excess] }
  } catch (error) {
    const offset = document.contents?.range?.[0] ?? 0
    return { document, value: undefined, problems: [{ offset, message: (error as Error).message, byAliases: true }] }
  }
}

const tooDeep = `The document is nested deeper than ${yamlLimits.depth} levels`
const tooMany = `The document has more than ${yamlLimits.parts} parts`

/** Why a text is not parsed; checked first, because the parser builds the whole tree recursively. */
function excessOf(text: string): YamlProblem | undefined {
  if (text.length > yamlLimits.characters) {
    return {
      offset: 0,
      message: `The text has ${text.length} characters; at most ${yamlLimits.characters} are read`,
      help: 'Is this the file that you mean? If it is, split it.',
    }
  }
  // A text this short cannot exceed the limits.
  if (text.length < yamlLimits.depth) return undefined
  let [offset, depth, parts, onLine] = [0, 0, 0, 0]
  for (const token of new Lexer().lex(text)) {
    switch (token[0]) {
      case '\u0002': // marks of the lexer, which are not part of the text
      case '\u0018':
        continue
      case '\u001f':
        parts++
        continue
      case '[':
      case '{':
        depth++
        parts++
        break
      case ']':
      case '}':
        depth--
        break
      case '-':
      case '?':
        // `- - -` nests without brackets.
        if (token.length === 1) onLine++
        break
      case '\n':
      case '\r':
        onLine = 0
        break
    }
    if (depth > yamlLimits.depth || onLine > yamlLimits.depth) return { offset, message: tooDeep }
    if (parts > yamlLimits.parts) return { offset, message: tooMany }
    offset += token.length
  }
  return undefined
}

/** Size and depth of a node with its expanded aliases. */
interface Extent {
  readonly parts: number
  readonly depth: number
}

/** Finds repeated keys, aliases of an enclosing node, and values that aliases make too large. */
class Walk {
  readonly problems: YamlProblem[] = []
  /** The excessive size caused by aliases, if any; the library may report more about it. */
  readonly excess: YamlProblem | undefined
  readonly #anchors = new Map<string, Node>()
  readonly #extents = new Map<unknown, Extent>()
  /** The enclosing nodes, outermost first. */
  readonly #around = new Set<unknown>()

  constructor(document: Document) {
    const { parts, depth } = this.#extentOf(document.contents, 0)
    const message =
      depth > yamlLimits.depth
        ? `${tooDeep}, with those that aliases add`
        : parts > yamlLimits.parts
          ? `${tooMany}, with those that aliases repeat`
          : undefined
    const offset = document.contents?.range?.[0] ?? 0
    this.excess = message === undefined ? undefined : { offset, message, byAliases: true }
  }

  #report(node: unknown, message: string, more: Pick<YamlProblem, 'help' | 'byAliases'> = {}): void {
    const offset = (node as Node | null)?.range?.[0] ?? 0
    this.problems.push({ offset, message, ...more })
  }

  #extentOf(node: unknown, level: number): Extent {
    if (level > yamlLimits.depth) {
      if (this.problems.length === 0) this.#report(node, tooDeep)
      return one
    }
    if (isAlias(node)) {
      const meant = this.#anchors.get(node.source)
      if (meant === undefined) {
        const help = `A text that starts with \`*\` needs quotes: \`'*${node.source}'\`.`
        this.#report(
          node,
          `Unresolved alias \`*${node.source}\`: nothing before it has the anchor \`&${node.source}\``,
          { help },
        )
        return one
      }
      if (!this.#around.has(meant)) return this.#extents.get(meant) ?? one
      this.#report(node, `The alias *${node.source} refers to a part that contains it`, { byAliases: true })
      return one
    }
    const { anchor } = (node ?? {}) as { readonly anchor?: string }
    if (anchor !== undefined) this.#anchors.set(anchor, node as Node)
    if (!isMap(node) && !isSeq(node)) return one
    if (isMap(node)) this.#findTwice(node)
    this.#around.add(node)
    let parts = 1
    let depth = 0
    for (const item of node.items) {
      if (isPair(item) && isKeyOfParts(item.key)) this.#reportKey(item.key, node)
      for (const part of isPair(item) ? [item.key, item.value] : [item]) {
        const extent = this.#extentOf(part, level + 1)
        parts += extent.parts
        depth = Math.max(depth, extent.depth)
      }
    }
    this.#around.delete(node)
    const extent = { parts, depth: depth + 1 }
    if (anchor !== undefined) this.#extents.set(node, extent)
    return extent
  }

  #reportKey(key: Node, { flow }: { flow?: boolean }): void {
    if (isMap(key) && key.flow === true && flow === true) this.#report(key, bareTemplate.message, bareTemplate)
    else this.#report(key, `A key is a text, and this one is a ${isMap(key) ? 'table' : 'list'}`)
  }

  #findTwice({ items }: YAMLMap): void {
    const seen = new Set<unknown>()
    for (const { key } of items) {
      const name = isScalar(key) ? key.value : key
      // Several merges apply in order.
      if (typeof name !== 'symbol' && name !== '<<' && seen.has(name)) this.#report(key, 'Map keys must be unique')
      seen.add(name)
    }
  }
}

const one: Extent = { parts: 1, depth: 1 }
