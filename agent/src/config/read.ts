// Finds and reads the files of a configuration: paths, globs, and directories with a subfolder for each kind of component and for
// tables. A file that cannot be read or parsed is reported as a problem; the other files are still read.

import { globSync, readdirSync, readFileSync, type Stats, statSync } from 'node:fs'
import { join, parse, resolve } from 'node:path'
import type { Environment } from '../environment.ts'
import { fileReason } from '../errors.ts'
import type { Problem } from '../schema/problems.ts'
import { isPattern } from './graph.ts'
import { interpolate } from './interpolate.ts'
import type { ConfigPart } from './merge.ts'
import { type Located, positionAt, type SourceText } from './place.ts'
import { type Document, type Format, formatOf, knownFormat, parseText } from './syntax.ts'

const defaultPaths = ['/etc/penstock/penstock.yaml', '/etc/penstock/penstock.toml'] as const

/** The file to read if the user names none. */
export function defaultPath(): string {
  return defaultPaths.find(exists) ?? defaultPaths[0]
}

export interface ReadOptions {
  /** Files, globs or directories. The extension of a file determines its format. */
  readonly paths?: readonly string[] | undefined
  /** Directories of whole configurations, with subfolders for single components. */
  readonly dirs?: readonly string[] | undefined
  /** Files or globs for each explicit format. */
  readonly formats?: Readonly<Partial<Record<Format, readonly string[]>>> | undefined
  /** The environment; by default that of the process. */
  readonly env?: Environment | undefined
}

export interface ReadResult {
  readonly parts: readonly ConfigPart[]
  readonly problems: Problem[]
  /** The files that were read, and the directories that may gain files, to watch for changes. */
  readonly files: readonly string[]
  /** Directories without a configuration file, as the user wrote them. */
  readonly emptyDirectories: readonly string[]
}

const folders = ['sources', 'transforms', 'sinks', 'tests', 'enrichment_tables'] as const

export function readParts(options: ReadOptions): ReadResult {
  const reader = new Reader(options.env ?? process.env)
  const { paths = [], dirs = [], formats = {} } = options
  const none = paths.length + dirs.length + Object.values(formats).flat().length === 0
  for (const path of none ? [defaultPath()] : paths) reader.addPath(path, undefined)
  for (const format of ['toml', 'yaml', 'json'] as const) {
    for (const path of formats[format] ?? []) reader.addPath(path, format)
  }
  for (const dir of dirs) reader.addDirectory(dir)
  return reader
}

class Reader implements ReadResult {
  readonly parts: ConfigPart[] = []
  readonly problems: Problem[] = []
  readonly files: string[] = []
  readonly emptyDirectories: string[] = []
  readonly #environment: Environment

  constructor(environment: Environment) {
    this.#environment = environment
  }

  addPath(path: string, format: Format | undefined): void {
    if (format === undefined && isDirectory(path)) {
      this.addDirectory(path)
      return
    }
    const files = isPattern(path) && !exists(path) ? globSync(path).toSorted() : [path]
    if (files.length === 0) this.#problem(path, 'no file matches this pattern')
    for (const file of files) {
      if (isDirectory(file)) continue
      const known = format ?? knownFormat(file)
      this.#addFile(file, known ?? formatOf(file), 'all', known === undefined)
    }
  }

  addDirectory(dir: string): void {
    const before = this.parts.length + this.problems.length
    this.#addEntries(dir)
    if (this.parts.length + this.problems.length === before) this.emptyDirectories.push(dir)
  }

  #addEntries(dir: string): void {
    this.files.push(resolve(dir))
    for (const entry of this.#entries(dir)) {
      const path = join(dir, entry)
      if (isDirectory(path)) {
        const kind = folders.find((folder) => folder === entry)
        if (kind === undefined) continue
        this.files.push(resolve(path))
        for (const file of this.#entries(path)) {
          const format = knownFormat(file)
          const id = parse(file).name
          if (format !== undefined) this.#addFile(join(path, file), format, { kind, id })
        }
      } else {
        const format = knownFormat(entry)
        if (format !== undefined) this.#addFile(path, format, 'all')
      }
    }
  }

  #entries(dir: string): string[] {
    try {
      return readdirSync(dir)
        .filter((name) => !name.startsWith('.'))
        .toSorted()
    } catch (error) {
      this.#problem(dir, `cannot read the directory: ${fileReason(error)}`)
      return []
    }
  }

  /** @param isGuessed whether neither a flag nor the extension states the format */
  #addFile(file: string, format: Format, holds: Holds, isGuessed = false): void {
    let source: string
    try {
      source = new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
    } catch (error) {
      const message =
        error instanceof TypeError ? 'the file is not UTF-8 text' : `cannot read the file: ${fileReason(error)}`
      this.#problem(file, message, file === defaultPath() ? withoutPath : undefined)
      return
    }
    this.files.push(resolve(file))
    const text = parseSource(file, source, format, this.#environment, this.problems)
    if (text === undefined) {
      if (isGuessed) this.#explainGuess(file, format)
      return
    }
    const path = holds === 'all' ? [] : [holds.kind, holds.id]
    const { value } = text.document
    const kind = kindOfResource(value)
    if (kind !== undefined) {
      const help = `\`penstock run -f ${file}\` runs it here, and \`penstock render -f ${file}\` prints its agent configuration.`
      this.#problem(file, `this file is a Kubernetes resource (${kind}), not an agent configuration`, help)
      return
    }
    if (holds !== 'all' && holds.kind === 'enrichment_tables') {
      this.parts.push({ located: underTables(text, holds.id), holds: 'all' })
      return
    }
    const located = { value: holds === 'all' ? value : (value ?? {}), path, origins: [{ text, path: [], value }] }
    this.parts.push({ located, holds })
  }

  /** Adds to the file's first problem which format the agent assumed. */
  #explainGuess(file: string, format: Format): void {
    const at = this.problems.findIndex((problem) => problem.file === file)
    const first = this.problems[at]
    if (first === undefined || first.help !== undefined) return
    const help = `The extension of ${file} does not determine a format, so the agent reads it as ${format.toUpperCase()}; \`--config-yaml ${file}\` reads it as YAML.`
    this.problems[at] = { ...first, help }
  }

  #problem(file: string, message: string, help?: string): void {
    this.problems.push({ severity: 'error', path: '', message, help, file })
  }
}

const withoutPath =
  'The agent reads this file by default; to read another one, run `penstock-agent PATH`. `penstock-agent generate demo_logs//console` prints a first configuration.'

/** The kind of a Kubernetes resource; undefined for any other value. */
function kindOfResource(value: unknown): string | undefined {
  const { apiVersion, kind } = (value ?? {}) as { readonly apiVersion?: unknown; readonly kind?: unknown }
  return typeof apiVersion === 'string' && typeof kind === 'string' ? kind : undefined
}

type Holds = ConfigPart['holds'] | { readonly kind: 'enrichment_tables'; readonly id: string }

/** Wraps a table from its own file, as if the file contained it below `enrichment_tables`. */
function underTables(text: SourceText, id: string): Located {
  const { document } = text
  const value = { enrichment_tables: { [id]: document.value ?? {} } }
  const within: Document = { ...document, value, locate: (segments) => document.locate(segments.slice(2)) }
  return { value, path: [], origins: [{ text: { ...text, document: within }, path: [], value }] }
}

/** Interpolates and parses a text; undefined if there were problems. */
function parseSource(
  file: string,
  source: string,
  format: Format,
  environment: Environment,
  problems: Problem[],
): SourceText | undefined {
  const interpolated = interpolate(source, environment)
  for (const { offset, message } of interpolated.problems) {
    problems.push({ severity: 'error', path: '', message, file, ...positionAt(source, offset) })
  }
  // Without its variables the text is incomplete, so further problems would mislead.
  if (interpolated.problems.length > 0) return undefined
  const parsed = parseText(interpolated.text, format)
  if (parsed.ok) return { file, source, interpolated, document: parsed.document }
  for (const { offset, message, help } of parsed.problems) {
    const place = positionAt(source, interpolated.sourceOffset(offset))
    problems.push({ severity: 'error', path: '', message, help, file, ...place })
  }
  return undefined
}

/** The status of a path; undefined if it does not exist or is not accessible. Reading it reports the reason. */
function statusOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch {
    return undefined
  }
}

function isDirectory(path: string): boolean {
  return statusOf(path)?.isDirectory() === true
}

function exists(path: string): boolean {
  return statusOf(path) !== undefined
}
