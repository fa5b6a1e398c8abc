// Function `parse_groks`.

import { fieldNames, isObject, type ValueObject } from '../../event/value.ts'
import { compileExtendedGrok, type Grok, grokEffort } from '../../formats/grok.ts'
import { isFailedJson, parseJson } from '../../formats/json.ts'
import { GivenFileError, readGivenText } from '../../given-file.ts'
import { type CallSite, defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { valueText } from '../text.ts'

export const parseGroks = defineFunction({
  name: 'parse_groks',
  category: 'Parse',
  summary: 'Parses a text with the first matching grok pattern to its fields.',
  description:
    'The patterns use an extended dialect: `%{matcher:path:filter}`. A matcher such as `integer`, `date("...")` or `regex("...")` converts the value, a path may be nested (`http.status`), and a filter such as `lowercase`, `json`, `keyvalue` or `array` changes the value. A pattern must match the whole text.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    { name: 'patterns', kind: kinds.array, static: true, description: 'The patterns, tried in order.' },
    {
      name: 'aliases',
      kind: kinds.object,
      required: false,
      default: {},
      static: true,
      description: 'Named patterns, for use in `patterns` and in each other.',
    },
    {
      name: 'alias_sources',
      kind: kinds.array,
      required: false,
      default: [],
      static: true,
      meaning: 'file',
      description: 'Paths of files with named patterns: JSON objects, or lines with a name and a pattern.',
    },
  ],
  returns: kinds.object,
  fallible: 'always',
  errors: ['No pattern matches.', 'A file with named patterns cannot be read.'],
  pure: true,
  fresh: true,
  examples: [
    {
      source:
        'parse_groks!("GET 200 0.5", patterns: ["%{integer:n}", "%{word:http.method} %{integer:http.status} %{number:took}"])',
      result: '{ "http": { "method": "GET", "status": 200 }, "took": 0.5 }',
    },
    {
      source: 'parse_groks!("k v", patterns: ["%{pair}"], aliases: {"pair": "%{word:key} %{word:value}"})',
      result: '{ "key": "k", "value": "v" }',
    },
    { source: 'parse_groks!("a=1 b=two", patterns: ["%{data::keyvalue}"])', result: '{ "a": 1, "b": "two" }' },
  ],
  compile(call: CallSite) {
    const patterns = call.constant('patterns')
    const given = call.constant('aliases')
    const sources = call.constant('alias_sources')
    if (!Array.isArray(patterns)) call.reject('patterns must be an array of literals')
    const aliases: Record<string, string> = {}
    for (const path of Array.isArray(sources) ? sources : []) {
      const problem = readAliases(String(path), aliases)
      if (problem !== undefined) call.reject(problem)
    }
    for (const name of isObject(given) ? fieldNames(given) : []) aliases[name] = String((given as ValueObject)[name])
    const groks: Grok[] = []
    const effort = grokEffort()
    for (const pattern of patterns) {
      if (typeof pattern !== 'string') call.reject(`a pattern is not a string: ${valueText(pattern)}`)
      const grok = compileExtendedGrok(pattern, aliases, effort)
      if (!grok.ok) call.reject(`invalid grok pattern: ${grok.problem}`)
      groks.push(grok)
    }
    return (text: string): Result => {
      for (const grok of groks) {
        const fields = grok.match(text)
        if (fields !== undefined) return fields
      }
      return failure('unable to parse grok: value does not match any rule')
    }
  },
})

function readAliases(path: string, into: Record<string, string>): string | undefined {
  let text: string
  try {
    text = readGivenText({ option: 'alias_sources', path })
  } catch (error) {
    if (!(error instanceof GivenFileError)) throw error
    return `the file of aliases ${path} cannot be read: ${error.reason}`
  }
  const object = parseJson(text)
  if (!isFailedJson(object) && isObject(object)) {
    for (const name of fieldNames(object)) into[name] = String(object[name])
    return undefined
  }
  for (const line of text.split('\n')) {
    const match = /^\s*([\w-]+)\s+(.*\S)\s*$/.exec(line)
    if (match !== null) into[match[1] as string] = match[2] as string
  }
  return undefined
}
