// Finds files and functions that exceed the size limits. A longer one contains several ideas, which need their own names and files.

import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAst } from 'rolldown/parseAst'

const maxFileLines = 600
const maxFunctionLines = 80

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
  readonly [member: string]: unknown
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'type' in value && 'start' in value

function nameOf(node: Node): string | undefined {
  const named = node['id'] ?? node['key']
  if (!isNode(named) || typeof named['name'] !== 'string') return undefined
  return named.type === 'PrivateIdentifier' ? `#${named['name']}` : named['name']
}

/** Names of functions that are too long. An anonymous function has the name of its variable or its parent. */
function longFunctions(source: string): string[] {
  const found: string[] = []
  const visit = (value: unknown, name: string): void => {
    if (Array.isArray(value)) for (const each of value) visit(each, name)
    if (!isNode(value)) return
    const own = nameOf(value) ?? name
    const isFunction = /^(?:Arrow)?Function(?:Declaration|Expression)?/.test(value.type) && isNode(value['body'])
    const lines = isFunction ? source.slice(value.start, value.end).split('\n').length : 0
    if (lines > maxFunctionLines) found.push(own)
    for (const member of Object.values(value)) visit(member, own)
  }
  visit(parseAst(source, { lang: 'ts' }), '')
  return found
}

export interface Sizes {
  /** Number of files read. */
  readonly files: number
  /** Entries that are too long: a path, or a path and the name of a function. */
  readonly long: readonly string[]
}

/** Checks a folder of sources, without test files, whose functions are lists of cases. */
export function sizesIn(root: string, isLeftOut: (path: string) => boolean = () => false): Sizes {
  const paths = globSync('**/*.ts', { cwd: root }).filter(
    (path) => !/\.(?:test|as)\.ts$/.test(path) && !isLeftOut(path),
  )
  const long = paths.flatMap((path) => {
    const source = readFileSync(join(root, path), 'utf8')
    const isLong = source.split('\n').length - 1 > maxFileLines
    return [...(isLong ? [path] : []), ...longFunctions(source).map((name) => `${path} ${name}`)]
  })
  return { files: paths.length, long: long.toSorted() }
}
