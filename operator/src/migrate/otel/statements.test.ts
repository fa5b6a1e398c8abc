// All OTTL functions with all kinds of arguments, after statements that change the known kinds of fields: programs are always valid.

import { compileProgram } from '@penstock/agent/config'
import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { Draft } from '../draft.ts'
import { convertOtel } from './convert.ts'
import { Program } from './ottl/compile.ts'
import { converters } from './ottl/converters.ts'
import { editors } from './ottl/editors.ts'
import { Unconvertible } from './ottl/syntax.ts'

/** The reasons of invalid programs. */
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

/** Locations by content, in records and in the cache of statements. */
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

/** Arguments that must be literals, by parameter. */
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
  formatString: '"%s %v"',
}
/** Optional parameters of a few functions. */
const seldom = ['function', 'replacement_format', 'depth', 'headerDelimiter', 'location', 'locale', 'nanoseconds']

/** A call with `value` for each argument that need not be a literal. */
function callOf(name: string, parameters: readonly string[], value: string, target?: string): string {
  const own = parameters.filter((parameter) => !seldom.includes(parameter))
  const texts = own.map((parameter) => {
    if (parameter === 'target' && target !== undefined) return `target=${target}`
    if (parameter === 'args') return `args=[${value}, ${value}]`
    if (parameter === 'values' && name === 'Concat') return `values=[${value}, "z"]`
    return `${parameter}=${constants[parameter] ?? value}`
  })
  return `${name}(${texts.join(', ')})`
}

/** Statements that change the kind of each location. */
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
  'preceding statements': ['delete_key(cache, "a")', 'delete_key(attributes, "a")', 'set(cache, {"a": 1})'],
}

test.each(['nothing before', 'texts before'])('converters give valid programs with all arguments: %s', (name) => {
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

test.each(Object.keys(before))('editors give valid programs with all locations and values: %s', (name) => {
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

const operators = ['==', '!=', '<', '<=', '>', '>=']
const operands = [
  ...['"text"', '5', '2.5', 'nil', '["a"]', 'SEVERITY_NUMBER_WARN', '5 + 1', 'attributes["a"] + 1'],
  ...['attributes["a"]', 'attributes["set"]', 'resource.attributes["r"]', 'attributes', 'body', 'severity_number'],
  ...['severity_text', 'time', 'time_unix_nano', 'trace_id.string', 'Now()', 'Len(body)', 'Int(attributes["a"])'],
  ...[
    'Double(attributes["a"])',
    'String(attributes["a"])',
    'Concat(["a", "b"], "")',
    'IsMatch(body, "x")',
    'ParseJSON(body)',
  ],
]

test.each(operators)('values of all types on both sides of %s give a valid program', (operator) => {
  const statements = operands.flatMap((left) =>
    operands.flatMap((right) => [
      `set(attributes["out"], 1) where ${left} ${operator} ${right}`,
      `set(attributes["out"], 1) where not (${left} ${operator} ${right})`,
    ]),
  )
  const kept = ['set(attributes["set"], "x")', 'set(attributes["out"], 0)']
  const wrong = statements.filter((statement) => {
    const one = new Program('log')
    try {
      for (const each of [...kept, statement]) one.statement(each)
    } catch (error) {
      if (error instanceof Unconvertible) return false
      throw error
    }
    return !compileProgram(one.text()).ok
  })
  expect(wrong).toEqual([])
})

const literals = ['a', 'b', 'B', '', 1, 2, 1.5, 2.0000001, -3, undefined] as const
const written = (value: (typeof literals)[number]) => (value === undefined ? 'nil' : JSON.stringify(value))

/** The collector's result of a comparison: values of different types are not equal, and cannot be ordered. */
function compared(operator: string, left: unknown, right: unknown): boolean {
  if (typeof left !== typeof right) return operator === '!='
  const isLess = left !== undefined && String(left) !== String(right) && (left as number) < (right as number)
  const isSame = left === right
  if (operator === '==' || operator === '!=') return isSame === (operator === '==')
  if (left === undefined) return false
  if (isSame) return operator.endsWith('=')
  return isLess === operator.startsWith('<')
}

test.each(operators)("%s has the collector's result for texts, numbers and nil", async (operator) => {
  const pairs = literals.flatMap((left) => literals.map((right) => ({ left, right })))
  const statements = pairs.flatMap(({ left, right }, index) => [
    `set(attributes["l"], ${written(left)})`,
    `set(attributes["known${index}"], true) where ${written(left)} ${operator} ${written(right)}`,
    `set(attributes["read${index}"], true) where attributes["${left === undefined ? 'none' : 'l'}"] ${operator} ${written(right)}`,
  ])
  const config = {
    receivers: { filelog: { include: ['/srv/app.log'] } },
    processors: { transform: { error_mode: 'ignore', log_statements: statements } },
    exporters: { nop: null },
    service: { pipelines: { logs: { receivers: ['filelog'], processors: ['transform'], exporters: ['nop'] } } },
  }
  const { document, resource, gaps } = converted(convertOtel, [{ file: 'c.yaml', text: stringify(config) }])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  const expected = Object.fromEntries(
    pairs.flatMap(({ left, right }, index) =>
      ['known', 'read'].map((way) => [`attributes.${way}${index}`, compared(operator, left, right) ? true : null]),
    ),
  )
  withTest(document, resource, { message: 'x', file: '/srv/app.log', timestamp: '2026-01-01T00:00:00Z' }, expected)
  expect(await lint(String(document))).toEqual([])
})
