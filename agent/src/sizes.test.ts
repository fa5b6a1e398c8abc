// No file of more than 600 lines and no function of more than 80, except those in this table: what is longer hides several ideas,
// which want names and files of their own.

import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAst } from 'rolldown/parseAst'
import { expect, test } from 'vitest'
import { developmentRooms, roomOf } from './testing/rooms.ts'

const maxFileLines = 600
const maxFunctionLines = 80

/** By reason, files and functions that may be longer: a path, or a path and the name of a function. */
const exceptions: Readonly<Record<string, readonly string[]>> = {
  'a grammar, in the order of its items': [
    'formats/datetime.ts', // the items of strftime, for reading and writing
    'formats/regex-linear.ts', // from a tree to a program to its two ways of running
    'remap/lexer.ts tokenize', // a case for each first character
  ],
  'a switch over the nodes or the instructions of a language': [
    'formats/regex-linear.ts #attempt',
    'formats/regex-linear.ts #together',
    'formats/regex-linear.ts compile',
    'formats/regex-linear.ts compileProgram',
  ],
  'one literal: pages, a grammar, a library of patterns, machine code': [
    'formats/crc32c.ts blockByBlock',
    'formats/grok-library.ts makeClassicPatterns',
    'remap/language.ts languagePages',
    'remap/textmate.ts textMateGrammar',
  ],
  'functions that call each other for every member of an event, and share what they work on as variables': [
    'formats/json-bytes.ts compileJsonWriter',
  ],
  'an equation over all positions of a pattern, whose terms have no use of their own': ['formats/regex-cost.ts cost'],
}

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

/** Names of the functions that are too long. A function without a name has that of what it is assigned to or stands in. */
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

const root = import.meta.dirname

test('no file and no function that ships is longer than the limits, except for a reason', () => {
  const shipped = globSync('**/*.ts', { cwd: root }).filter(
    (path) => !path.endsWith('.test.ts') && !developmentRooms.includes(roomOf(path)),
  )
  expect(shipped.length).toBeGreaterThan(500)
  const long = shipped.flatMap((path) => {
    const source = readFileSync(join(root, path), 'utf8')
    const isLong = source.split('\n').length - 1 > maxFileLines
    return [...(isLong ? [path] : []), ...longFunctions(source).map((name) => `${path} ${name}`)]
  })
  expect(long.toSorted()).toEqual(Object.values(exceptions).flat().toSorted())
})
