// Every function of OTTL on every kind of argument, after statements that change what is known of fields: the program is always valid.

import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { Draft } from '../draft.ts'
import { convertOtel } from './convert.ts'
import { converters } from './ottl/converters.ts'
import { editors } from './ottl/editors.ts'

/** Reasons of programs that the language refuses. */
function refusals(statements: readonly string[]): string[] {
  const draft = new Draft()
  const config = {
    receivers: { filelog: { include: ['/srv/app.log'] } },
    processors: { transform: { error_mode: 'ignore', log_statements: statements } },
    exporters: { nop: null },
    service: { pipelines: { logs: { receivers: ['filelog'], processors: ['transform'], exporters: ['nop'] } } },
  }
  convertOtel([{ file: 'c.yaml', text: stringify(config) }], () => [], draft)
  return draft.gaps
    .filter(({ reason }) => reason.includes('is not valid'))
    .map(({ reason }) => `${statements.join('; ')}: ${reason}`)
}

/** Places by what they hold: of records, and of what statements keep. */
const places = [
  'body',
  'attributes["a"]',
  'attributes',
  'resource.attributes',
  'cache',
  'cache["a"]',
  'cache["a"]["b"]',
]
const values = [...places, '"text"', '5', '1.5', 'true', 'nil', '["x", 1]', '{"k": 1}', 'time', 'severity_number']

/** Arguments that must stand in the statement, by their parameters. */
const constants: Readonly<Record<string, string>> = {
  key: '"k"',
  keys: '["k", "l"]',
  pattern: '"^(?P<k>x)"',
  regex: '"x+"',
  replacement: '"y"',
  strategy: '"upsert"',
  mode: '"value"',
  limit: '3',
  priority_keys: '["k"]',
  prefix: '"p"',
  suffix: '"s"',
  delimiter: '"="',
  pair_delimiter: '","',
  headers: '"k,l"',
  format: '"%Y-%m-%d"',
  toCase: '"upper"',
  encoding: '"base64"',
  networks: '["10.0.0.0/8"]',
  base: '10',
  start: '0',
  length: '2',
  namedCapturesOnly: 'true',
}
/** Parameters of few statements that make a call longer than most are. */
const seldom = ['function', 'replacement_format', 'depth', 'headerDelimiter', 'location', 'locale', 'nanoseconds']

/** A call with `value` for each argument that need not be a constant. */
function callOf(name: string, parameters: readonly string[], value: string, target?: string): string {
  const own = parameters.filter((parameter) => !seldom.includes(parameter))
  const texts = own.map((parameter) => {
    if (parameter === 'target' && target !== undefined) return `target=${target}`
    if (parameter === 'values' && name === 'Concat') return `values=[${value}, "z"]`
    return `${parameter}=${constants[parameter] ?? value}`
  })
  return `${name}(${texts.join(', ')})`
}

/** Statements that leave each place with another kind than it had. */
const before: Readonly<Record<string, readonly string[]>> = {
  'nothing before': [],
  'objects before': [
    'set(cache, ParseJSON(body))',
    'set(attributes["a"], ParseJSON(body))',
    'set(body, ParseJSON(body))',
    'flatten(cache, "")',
  ],
  'texts before': [
    'set(cache["a"], "text")',
    'set(attributes["a"], "text")',
    'set(body, "text")',
    'set(attributes["a"]["b"], 1)',
    'set(cache["a"]["b"], 1)',
  ],
  'what goes before': ['delete_key(cache, "a")', 'delete_key(attributes, "a")', 'set(cache, {"a": 1})'],
}

test.each(['nothing before', 'texts before'])('converters give valid programs for all arguments: %s', (name) => {
  const found = Object.entries(converters).flatMap(([converter, { parameters }]) =>
    values.flatMap((value) => {
      const call = callOf(converter, parameters, value)
      const uses = [
        `set(attributes["to"], ${call})`,
        `set(cache, ${call})`,
        `set(cache["to"], ${call}) where ${call} == "x"`,
        `merge_maps(attributes, ${call}, "upsert")`,
        `set(body, ${call}["k"])`,
      ]
      return refusals([...(before[name] ?? []), ...uses])
    }),
  )
  expect(found).toEqual([])
})

test.each(Object.keys(before))('editors give valid programs for all places and values: %s', (name) => {
  const found = Object.entries(editors).flatMap(([editor, { parameters }]) =>
    places.flatMap((target) =>
      [...new Set(values.map((value) => callOf(editor, parameters, value, target)))].flatMap((call) =>
        refusals([
          ...(before[name] ?? []),
          call,
          `set(attributes["read"], ${target})`,
          `flatten(${target}) where Len(${target}) > 0`,
        ]),
      ),
    ),
  )
  expect(found).toEqual([])
})
