// Texts inside other texts: files in a ConfigMap or a Secret, blocks in chart values, and values inside a HelmRelease or an
// Application. They keep their line numbers, so reports name the line of the given file.

import { isScalar, isSeq, isMap as isYamlMap, type Node, parseAllDocuments, type YAMLMap } from 'yaml'
import type { Included, NamedText, SecretKey } from './draft.ts'
import { below, isList, isMap, type Tree, textOf } from './loki/tree.ts'
import { treesOf } from './loki/yaml.ts'

/** An inner text with the file name that it has there. */
export interface Inner extends NamedText {
  readonly name: string
}

/** Structures nested deeper than this are not searched. */
const maxDepth = 8

/** Whether the beginning of a text looks like YAML or JSON. */
export function isYamlLike(text: string): boolean {
  const line = /^\uFEFF?(?:\s*(?:#.*)?\n)*(.*)/.exec(text)?.[1] ?? ''
  return /^(?:---|%YAML|[\w"'./-]+\s*:(?:\s|$)|- |\{)/.test(line)
}

/** Whether a text contains only comments and document markers. */
export function isBlank(text: string): boolean {
  return text.split(/\r?\n/).every((line) => /^\s*(?:#.*|;.*|\/\/.*|---.*|\{\s*\})?$/.test(line))
}

/** The text of a setting with its own lines. A block begins on the line after its key. */
function innerText(tree: Tree): string {
  const text = textOf(tree) ?? ''
  return '\n'.repeat(text.includes('\n') ? tree.line : tree.line - 1) + text
}

/** All matching texts of a document, with the names of their keys. In a Secret, they may be base64-encoded. */
export function innerTexts(given: NamedText, isWanted: (text: string) => boolean): readonly Inner[] {
  const found: Inner[] = []
  const walk = (name: string, tree: Tree, depth: number): void => {
    if (depth > maxDepth) return
    if (isMap(tree)) for (const [key, item] of tree.value) walk(key, item, depth + 1)
    else if (isList(tree)) for (const item of tree.value) walk(name, item, depth + 1)
    else {
      const text = textOf(tree)
      if (text !== undefined && isWanted(text)) found.push({ file: given.file, name, text: innerText(tree) })
    }
  }
  for (const tree of treesOf(given, [])) {
    walk('', tree, 0)
    if (textOf(below(tree, 'kind')) !== 'Secret') continue
    const data = below(tree, 'data')
    if (!isMap(data)) continue
    for (const [name, item] of data.value) {
      const text = Buffer.from(textOf(item) ?? '', 'base64').toString('utf8')
      if (isWanted(text)) found.push({ file: given.file, name, text: '\n'.repeat(item.line - 1) + text })
    }
  }
  return found
}

/** Resolves includes between the files of a ConfigMap by the last part of their path. */
export function includedFrom(inners: readonly Inner[], included: Included): Included {
  return (path, from) => {
    const wanted = path.split('/').at(-1) ?? path
    const pattern = new RegExp(`^${wanted.split('*').map(RegExp.escape).join('.*')}$`)
    const neighbours = inners.filter(({ name }) => pattern.test(name))
    return neighbours.length > 0 ? neighbours : included(path, from)
  }
}

/**
 * The documents and tables of a text that may contain a configuration: documents of a file, items of a list, chart values in an object or in
 * a release of Helmfile, and the values of each subchart in those of an umbrella chart.
 */
export function partsOf({ file, text, indent: outer = 0 }: NamedText): readonly NamedText[] {
  const documents = parseAllDocuments(text)
  if (!Array.isArray(documents) || documents.some(({ errors }) => errors.length > 0)) return []
  const parts: NamedText[] = []
  const add = (node: unknown): void => {
    const [start, end] = (node as Node | null)?.range ?? []
    if (start === undefined || end === undefined) return
    if (isScalar(node)) {
      if (typeof node.value !== 'string') return
      const lines = text.slice(0, start).split('\n').length
      const isBlock = node.type === 'BLOCK_LITERAL' || node.type === 'BLOCK_FOLDED'
      const indent = isBlock ? (/\n( *)\S/.exec(text.slice(start, end))?.[1]?.length ?? 0) : 0
      parts.push({ file, text: '\n'.repeat(isBlock ? lines : lines - 1) + node.value, indent: outer + indent })
    } else if (isYamlMap(node))
      parts.push({ file, text: text.slice(0, start).replace(/[^\n]/g, ' ') + text.slice(start, end), indent: outer })
  }
  for (const { contents } of documents) {
    if (!isYamlMap(contents)) continue
    if (documents.length > 1) {
      add(contents)
      continue
    }
    const items = contents.get('items')
    if (isSeq(items)) for (const item of items.items) add(item)
    if (contents.has('kind')) for (const node of valuesBelow(contents)) add(node)
    else {
      for (const { value } of contents.items) if (isYamlMap(value)) add(value)
      for (const release of mapsIn(contents.get('releases')))
        for (const values of mapsIn(release.get('values'))) add(values)
    }
  }
  return parts
}

const mapsIn = (list: unknown): readonly YAMLMap[] => (isSeq(list) ? list.items.filter((item) => isYamlMap(item)) : [])

/** Chart values in an object of Flux, Argo CD, K3s or Kustomize. */
function valuesBelow(object: YAMLMap): readonly unknown[] {
  const found = [object.getIn(['spec', 'values'], true), object.getIn(['spec', 'valuesContent'], true)]
  for (const spec of [['spec'], ['spec', 'template', 'spec']]) {
    const one = object.getIn([...spec, 'source'])
    for (const source of [...(isYamlMap(one) ? [one] : []), ...mapsIn(object.getIn([...spec, 'sources']))])
      found.push(source.getIn(['helm', 'valuesObject'], true), source.getIn(['helm', 'values'], true))
  }
  for (const chart of mapsIn(object.get('helmCharts'))) found.push(chart.get('valuesInline', true))
  return found
}

/** Entries of `env` and similar lists in chart values and resources, with the namespace of their object. */
function* entriesIn(given: NamedText): Iterable<{ readonly entry: Tree; readonly namespace: string | undefined }> {
  if (!/\.(?:ya?ml|json)$/i.test(given.file)) return
  function* walk(tree: Tree, namespace: string | undefined, depth: number): ReturnType<typeof entriesIn> {
    if (depth > maxDepth + 2) return
    if (isList(tree)) for (const item of tree.value) yield* walk(item, namespace, depth + 1)
    if (!isMap(tree)) return
    if (textOf(below(tree, 'name')) !== undefined) yield { entry: tree, namespace }
    for (const item of tree.value.values()) yield* walk(item, namespace, depth + 1)
  }
  for (const tree of treesOf(given, [])) yield* walk(tree, textOf(below(tree, 'metadata', 'namespace')), 0)
}

/** Variables whose `env` entries refer to keys of Secrets. */
export function secretsIn(given: NamedText): ReadonlyMap<string, SecretKey> {
  const found = new Map<string, SecretKey>()
  if (!/secretKeyRef/.test(given.text)) return found
  for (const { entry, namespace } of entriesIn(given)) {
    const reference = below(entry, 'valueFrom', 'secretKeyRef')
    const variable = textOf(below(entry, 'name')) ?? ''
    const [name, key] = [textOf(below(reference, 'name')), textOf(below(reference, 'key'))]
    if (name !== undefined && key !== undefined)
      found.set(variable, { name, key, namespace, file: entry.file, line: entry.line })
  }
  return found
}

/** Variables whose `env` entries refer to a field of the pod, such as `spec.nodeName`. */
export function podFieldsIn(given: NamedText): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  if (!/\bfieldPath\b/.test(given.text)) return found
  for (const { entry } of entriesIn(given)) {
    const [name, path] = [textOf(below(entry, 'name')), textOf(below(entry, 'valueFrom', 'fieldRef', 'fieldPath'))]
    if (name !== undefined && path !== undefined) found.set(name, path)
  }
  return found
}

/** A value that can replace a variable in any context. */
const plainValue = /^[\w./:@%+,=-]*$/

/** Variables to which `env` entries assign values. An entry without a value is empty. */
export function valuesIn(given: NamedText): ReadonlyMap<string, string> {
  const found = new Map<string, string>()
  if (!/env/i.test(given.text)) return found
  for (const { entry } of entriesIn(given)) {
    const given = below(entry, 'value')
    const [name, value] = [textOf(below(entry, 'name')) ?? '', given?.value === null ? '' : textOf(given)]
    const isEntry = isMap(entry) && entry.value.size === 2
    if (isEntry && value !== undefined && /^[A-Za-z_]\w*$/.test(name) && plainValue.test(value)) found.set(name, value)
  }
  return found
}

/** References of Kubernetes to variables in arguments, as configurations write them. */
export const asVariables = (text: string) => text.replace(/\$\((\w+)\)/g, (_, name: string) => '$'.concat(`{${name}}`))
