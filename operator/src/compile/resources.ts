// Resources as users write them: YAML documents in files, each value with its location, so that every problem can name file, line and
// column. This file knows kinds and names; the compile step interprets the spec.

import { readdirSync, readFileSync, statSync } from 'node:fs'
import { extname, join, sep } from 'node:path'
import { isatty } from 'node:tty'
import { positionAt, readYamlDocuments, type TextPosition } from '@penstock/agent/config'
import { closest, fileReason, type Problem } from '@penstock/agent/errors'
import { counted } from '@penstock/agent/program'
import { type Document, isMap, isNode, isScalar, type LineCounter, Scalar, type YAMLMap } from 'yaml'
import { kindOf, kinds } from '../api/kinds.ts'
import { apiVersion, apiVersions, type KubeObject } from '../api/object.ts'
import { namePattern, nameWords } from '../api/pipeline.ts'
import { labelOf } from '../api/shape.ts'

const ourKinds = kinds.map(({ kind }) => kind)
/** Kubernetes' own kinds that resources refer to. */
const referredKinds: readonly string[] = ['Secret', 'ConfigMap', 'Namespace']

export type PathKey = string | number

export interface Resource {
  readonly kind: string
  /** Empty for cluster-scoped kinds. */
  readonly namespace: string
  readonly name: string
  /** The document as plain data. */
  readonly content: Readonly<Record<string, unknown>>
  /**
   * Location of a value in the document; of the nearest existing parent if the path does not exist. @param within a
   * position in the text value
   */
  locate(path: readonly PathKey[], within?: TextPosition): ResourcePlace
}

export interface ResourcePlace {
  readonly file?: string | undefined
  readonly line?: number | undefined
  readonly column?: number | undefined
}

export interface LoadedResources {
  readonly resources: readonly Resource[]
  readonly problems: readonly Problem[]
  /** The kinds of the objects that are not read, such as a Deployment in a rendered chart. */
  readonly foreignKinds: readonly string[]
}

/** Resources by kind, namespace and name. */
export class Resources {
  readonly #byKey = new Map<string, Resource>()
  readonly all: readonly Resource[]

  constructor(resources: readonly Resource[]) {
    this.all = resources
    for (const resource of resources) {
      const key = `${resource.kind} ${resource.namespace}/${resource.name}`
      if (!this.#byKey.has(key)) this.#byKey.set(key, resource)
    }
  }

  find(kind: string, namespace: string, name: string): Resource | undefined {
    return this.#byKey.get(`${kind} ${namespace}/${name}`)
  }
}

/** Standard input, as a path. */
export const standardInput = '-'

/** Paths in a sentence. */
export function pathsText(paths: readonly string[]): string {
  return paths.map((path) => (path === standardInput ? 'standard input' : path)).join(', ')
}

/**
 * Reads resources from YAML files, folders (their `.yaml` and `.yml` files) and, for `-`, standard input. @param
 * isRecursive whether to read sub-folders
 */
export function loadResources(
  paths: readonly string[],
  defaultNamespace = 'default',
  isRecursive = false,
): LoadedResources {
  const resources: Resource[] = []
  const problems: Problem[] = []
  const foreignKinds: string[] = []
  const read = (file: string) => readFile(file, defaultNamespace, resources, problems, foreignKinds)
  for (const path of paths) {
    if (path === standardInput) {
      // Without the stream of standard input, which would make its reads non-blocking.
      if (isatty(0)) console.error('Type or paste resources. Ctrl-D ends them.')
      read(path)
      continue
    }
    let files: readonly string[]
    try {
      files = statSync(path).isDirectory() ? filesOf(path, isRecursive) : [path]
    } catch (error) {
      const message = `"${path}" cannot be read: ${fileReason(error)}`
      const help = /[*?[]/.test(path) ? 'Write a pattern without quotes; or `-R FOLDER` reads a folder.' : undefined
      problems.push({ severity: 'error', path, message, help })
      continue
    }
    if (files.length === 0) {
      const help = isRecursive ? undefined : helpBelow([path])
      problems.push({ severity: 'error', path, message: `"${path}" contains no .yaml or .yml file`, help })
    }
    for (const file of files) read(file)
  }
  findDuplicates(resources, problems)
  return { resources, problems, foreignKinds }
}

/** Counts the files that `-R` would read of folders; undefined if there are none. */
export function helpBelow(paths: readonly string[]): string | undefined {
  const folders = paths.filter((path) => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true)
  const files = folders.reduce((sum, folder) => sum + filesOf(folder, true).length - filesOf(folder, false).length, 0)
  return files === 0
    ? undefined
    : `\`-R\` also reads sub-folders, which contain ${counted(files, '.yaml or .yml file')}.`
}

/** A file, or a folder with its YAML files: everything that can change the resources of a path. */
export function resourceFiles(path: string, isRecursive: boolean): readonly string[] {
  try {
    return statSync(path).isDirectory() ? [path, ...filesOf(path, isRecursive)] : [path]
  } catch {
    // It is missing for a moment, for example while an editor replaces it.
    return [path]
  }
}

/** The YAML files of a folder, sorted by name; links to folders are not followed. */
function filesOf(folder: string, isRecursive: boolean): readonly string[] {
  const isHidden = (path: string) => path.split(sep).some((part) => part.startsWith('.'))
  return readdirSync(folder, { recursive: isRecursive, encoding: 'utf8' })
    .filter((name) => ['.yaml', '.yml'].includes(extname(name)) && !isHidden(name))
    .sort()
    .map((name) => join(folder, name))
}

function readFile(
  file: string,
  defaultNamespace: string,
  resources: Resource[],
  problems: Problem[],
  foreignKinds: string[],
): void {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file === standardInput ? 0 : file))
  } catch (error) {
    const isBinary = error instanceof TypeError
    const message = isBinary ? `"${file}" is not UTF-8 text` : `"${file}" cannot be read: ${fileReason(error)}`
    problems.push({ severity: 'error', path: '', file, message })
    return
  }
  const { documents, lines, problem } = readYamlDocuments(text)
  if (problem !== undefined) {
    const { line, column } = positionAt(text, problem.offset)
    problems.push({ severity: 'error', path: '', file, line, column, message: problem.message, help: problem.help })
  }
  if (otherAgentEndings.has(extname(file)) && documents.some((document) => document.problems.length > 0)) {
    problems.push({ severity: 'error', path: '', file, message: `"${file}" is not YAML`, help: convertHelp(file) })
    return
  }
  let mistakes = 0
  for (const { document, value, problems: found } of documents) {
    for (const { offset, message, help, byAliases } of found) {
      // One mistake of YAML leads to others, and a file that is not YAML has one on every line.
      if (++mistakes > maxMistakes) continue
      const { line, col } = lines.linePos(offset)
      const problem = { severity: 'error', path: '', file, line, column: col } as const
      if (byAliases !== true) {
        problems.push({ ...problem, message, help: (mistakes === 1 ? endingHelp(file) : undefined) ?? help })
      } else {
        const written = 'Write out what its aliases (`*name`) stand for.'
        problems.push({ ...problem, message: `this document cannot be read: ${message}`, help: written })
      }
    }
    if (found.length > 0 || document.contents === null) continue
    for (const { content, at } of objectsOf(value)) {
      const kind = foreignKindOf(content)
      const place: Place = { document, file, lines, text, at }
      const resource = kind === undefined ? resourceAt(place, content, defaultNamespace, problems) : undefined
      if (kind !== undefined) foreignKinds.push(kind)
      if (resource !== undefined) resources.push(resource)
    }
  }
  if (mistakes > maxMistakes) {
    const message = `${mistakes - maxMistakes} further mistakes of YAML in this file are not shown`
    problems.push({ severity: 'error', path: '', file, message })
  }
}

/** Maximum number of YAML errors shown per file. */
const maxMistakes = 5

/** Endings of other agents' configurations, which `convert` reads. */
const otherAgentEndings: ReadonlySet<string> = new Set(['.toml', '.conf', '.alloy', '.river'])

function endingHelp(file: string): string | undefined {
  const ending = extname(file)
  if (file === standardInput || ['.yaml', '.yml', '.json', ''].includes(ending)) return undefined
  return `Resources are written in YAML; is this ${ending} file the right one?`
}

/** Help for a table without a kind. */
function otherConfigHelp(content: Readonly<Record<string, unknown>>, file: string): string | undefined {
  if (['sources', 'transforms', 'sinks'].some((part) => part in content))
    return `A configuration for the agent without an operator: \`penstock-agent --config ${file}\` runs it, and \`penstock convert -f ${file}\` makes a Pipeline of it.`
  return content['apiVersion'] === undefined ? convertHelp(file) : undefined
}

const convertHelp = (file: string) =>
  `If this is the configuration of another agent, \`penstock convert -f ${file}\` makes a Pipeline of it.`

/** The kind of an object that another program reads. Rendered charts contain objects of all kinds; only those that may be ours are read. */
function foreignKindOf(value: unknown): string | undefined {
  const { kind, apiVersion: version } = (value ?? {}) as Readonly<Record<string, unknown>>
  if (typeof kind !== 'string' || typeof version !== 'string' || version.startsWith('penstock.dev/')) return undefined
  const known = [...ourKinds, ...referredKinds]
  return known.includes(kind) || closest(kind, known) !== undefined ? undefined : kind
}

/** The object of a document, or those of a List, as `kubectl get -o yaml` prints several. */
function objectsOf(value: unknown): readonly { readonly content: unknown; readonly at: readonly PathKey[] }[] {
  const { kind, items } = (value ?? {}) as Readonly<Record<string, unknown>>
  if (typeof kind !== 'string' || !kind.endsWith('List') || !Array.isArray(items)) return [{ content: value, at: [] }]
  return items.map((content, index) => ({ content, at: ['items', index] }))
}

/** The place of an object in a file: a whole document, or the part of it at `at`. */
interface Place {
  readonly document: Document
  readonly file: string
  readonly lines: LineCounter
  readonly text: string
  readonly at: readonly PathKey[]
}

function resourceAt(
  { document, file, lines, text, at }: Place,
  value: unknown,
  defaultNamespace: string,
  problems: Problem[],
): Resource | undefined {
  const locate: Resource['locate'] = (path, within) =>
    (within === undefined ? undefined : placeWithin(document, [...at, ...path], within, file, lines, text)) ??
    placeOf(document, [...at, ...path], file, lines)
  const report = (path: readonly PathKey[], message: string, help?: string): undefined => {
    problems.push({ severity: 'error', path: labelOf(path), message, help, ...locate(path) })
    return undefined
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    return report(
      [],
      `A resource must be a mapping with apiVersion, kind, metadata and spec; found ${Array.isArray(value) ? 'a list' : `a ${typeof value}`}`,
    )
  const content = value as Record<string, unknown>
  const kind = content['kind']
  const isOurs = typeof kind === 'string' && ourKinds.includes(kind)
  const isReferred = typeof kind === 'string' && referredKinds.includes(kind)
  if (!isOurs && !isReferred) {
    const known = [...ourKinds, ...referredKinds]
    const meant = typeof kind === 'string' ? closest(kind, known) : undefined
    return report(
      ['kind'],
      `\`kind\` must be one of ${known.join(', ')}; found ${JSON.stringify(kind) ?? 'none'}`,
      kind === undefined
        ? otherConfigHelp(content, file)
        : meant === undefined
          ? undefined
          : `Did you mean \`${meant}\`?`,
    )
  }
  const accepted = isOurs ? apiVersions : ['v1']
  if (!accepted.includes(content['apiVersion'] as string)) {
    const expected = accepted.map((name) => `\`${name}\``).join(' or ')
    return report(
      ['apiVersion'],
      `\`apiVersion\` of a ${kind} must be ${expected}; found ${JSON.stringify(content['apiVersion']) ?? 'none'}`,
    )
  }
  const metadata = content['metadata'] as Record<string, unknown> | undefined
  const name = metadata?.['name']
  // A dot would end a component id; other kinds have the names that Kubernetes allows.
  const isPipeline = kind === 'Pipeline' || kind === 'ClusterPipeline'
  const names = new RegExp(isPipeline ? namePattern : objectNamePattern)
  if (typeof name !== 'string' || !names.test(name)) {
    const expected = isPipeline ? nameWords : objectNameWords
    return report(
      ['metadata', 'name'],
      `\`metadata.name\` must be ${expected}; found ${JSON.stringify(name) ?? 'none'}`,
    )
  }
  const namespaced = kind !== 'Namespace' && kindOf(kind as string)?.namespaced !== false
  const namespace = namespaced ? (metadata?.['namespace'] ?? defaultNamespace) : ''
  if (typeof namespace !== 'string') return report(['metadata', 'namespace'], '`metadata.namespace` must be a string')
  // The served versions have the same structure, so all later code sees one version, as for objects of the API server.
  return { kind: kind as string, namespace, name, content: isOurs ? { ...content, apiVersion } : content, locate }
}

const objectNamePattern = '^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$'
const objectNameWords = 'at most 253 lower-case letters, digits, `-` and `.`, with a letter or digit first and last'

/** An object of the API server as a resource; its locations are only paths. */
export function resourceOf(object: KubeObject): Resource {
  const { name, namespace = '' } = object.metadata
  return { kind: object.kind, namespace, name, content: object as unknown as Resource['content'], locate: () => ({}) }
}

function placeOf(document: Document, path: readonly PathKey[], file: string, lines: LineCounter): ResourcePlace {
  for (let length = path.length; length >= 0; length--) {
    const parent = document.getIn(path.slice(0, length - 1), true)
    const key = path[length - 1]
    const node =
      length > 0 && isMap(parent)
        ? (parent as YAMLMap).items.find((pair) => isNode(pair.key) && String(pair.key) === String(key))?.key
        : document.getIn(path.slice(0, length), true)
    if (isNode(node) && node.range) {
      const { line, col } = lines.linePos(node.range[0])
      return { file, line, column: col }
    }
  }
  return { file }
}

/** A position within a text value whose lines match the file; undefined for folded text or text with escapes. */
function placeWithin(
  document: Document,
  path: readonly PathKey[],
  { line, column }: TextPosition,
  file: string,
  lines: LineCounter,
  text: string,
): ResourcePlace | undefined {
  const node = document.getIn(path, true)
  if (!isScalar(node) || typeof node.value !== 'string' || !node.range) return undefined
  const wanted = node.value.split('\n')[line - 1]
  if (wanted === undefined) return undefined
  const start = lines.linePos(node.range[0])
  const isBlock = node.type === Scalar.BLOCK_LITERAL
  const lineInFile = isBlock ? start.line + line : start.line + line - 1
  const from = lines.lineStarts[lineInFile - 1]
  if (from === undefined) return undefined
  const written = text.slice(from, lines.lineStarts[lineInFile]).replace(/\r?\n$/, '')
  const indent = isBlock ? written.length - wanted.length : written.indexOf(wanted, line === 1 ? start.col - 1 : 0)
  if (indent < 0 || written.slice(indent, indent + wanted.length) !== wanted) return undefined
  return { file, line: lineInFile, column: indent + column }
}

function findDuplicates(resources: readonly Resource[], problems: Problem[]): void {
  const seen = new Map<string, Resource>()
  for (const resource of resources) {
    const id = `${resource.kind} ${resource.namespace === '' ? '' : `${resource.namespace}/`}${resource.name}`
    const first = seen.get(id)
    if (first === undefined) {
      seen.set(id, resource)
      continue
    }
    const place = first.locate(['metadata', 'name'])
    problems.push({
      severity: 'error',
      path: 'metadata.name',
      message: `${id} is defined twice`,
      help: `The first one is at ${place.file}:${place.line}.`,
      ...resource.locate(['metadata', 'name']),
    })
  }
}
