// Conditions and statements that fail: a key below a text, an item that a list lacks, and a failing side of `and` and `or`.

import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { type Case, type Given, problems, record } from '../../testing/collector.ts'
import { Draft } from '../draft.ts'
import { convertOtel } from './convert.ts'

const statements = (...list: string[]): Given => ({
  processors: { transform: { error_mode: 'ignore', log_statements: list } },
})
const filter = (...log_record: string[]): Given => ({
  processors: { filter: { error_mode: 'ignore', logs: { log_record } } },
})

/** Conditions, with their results for a record whose body is a text and for one whose body is an object. */
const conditions: readonly (readonly [condition: string, ofText: boolean, ofObject: boolean])[] = [
  ['body["level"] == nil', false, false],
  ['body["none"] == nil', false, true],
  ['body["level"] != "debug"', false, true],
  ['not (body["level"] == "debug")', false, true],
  ['not (body["level"] != "error")', false, true],
  ['body["level"] == "error"', false, true],
  ['body["list"][0] == "x"', false, true],
  ['body["list"][7] == nil', false, false],
  ['not IsMatch(body["level"], "debug")', false, true],
  ['body["level"] == body["same"]', false, true],
  ['body["level"] == "debug" or attributes["a"] == "x"', false, true],
  ['attributes["a"] == "x" or body["level"] == "debug"', true, true],
  ['attributes["a"] == "x" and body["level"] != "debug"', false, true],
  ['attributes["a"] != "x" and body["level"] == "debug"', false, false],
  ['not (attributes["a"] != "x" and body["level"] == "debug")', true, true],
  ['not (body["level"] == "debug" and attributes["a"] != "x")', false, true],
  ['not (body["level"] == "debug" or attributes["a"] != "x")', false, true],
  ['(body["level"] == "debug" or attributes["a"] == "x") or attributes["a"] == "x"', false, true],
  ['(attributes["a"] != "x" and not (body["level"] == "debug")) or attributes["a"] == "x"', true, true],
  ['HasPrefix(body, "t") or attributes["a"] == "x"', true, false],
  ['attributes["a"]["b"] == nil', false, false],
  ['attributes["none"]["b"] == nil', true, true],
]

test.each(conditions)('the condition %s', async (condition, ofText, ofObject) => {
  const given = statements(`set(attributes["is"], "true") where ${condition}`)
  const object = { level: 'error', same: 'error', list: ['x'] }
  const results: readonly (readonly [body: unknown, isTrue: boolean])[] = [
    ['text', ofText],
    [object, ofObject],
  ]
  for (const [message, isTrue] of results) {
    const more = { message, attributes: { a: 'x' } }
    expect(await problems(given, 1, record(more), `exists(.attributes.is) == ${isTrue}`)).toEqual([])
  }
})

const cases: readonly Case[] = [
  {
    name: 'a filter keeps a record for which its condition fails',
    given: filter('body["level"] != "error"'),
    record: { message: 'text' },
    assert: '.message == "text"',
  },
  {
    name: 'a filter discards records by its other conditions if one fails',
    given: filter('body["level"] != "error"', 'attributes["a"] == "x"'),
    record: { message: 'text', attributes: { a: 'x' } },
  },
  {
    name: 'a member that cannot be read sets nothing',
    given: statements('set(attributes["level"], body["level"])', 'set(attributes["c"], Concat([body["a"], "z"], "-"))'),
    record: { message: 'text' },
    assert: '.attributes == {}',
  },
  {
    name: 'a value that fails counts only after missing ones',
    given: statements(
      'set(attributes["a"], Coalesce([attributes["x"], body["k"], "z"]))',
      'set(attributes["b"], Coalesce([attributes["none"], body["k"], "z"]))',
    ),
    record: { message: 'text', attributes: { x: 'y' } },
    assert: '.attributes == {"x": "y", "a": "y"}',
  },
  {
    name: 'a missing identifier has zeros',
    given: statements(
      'set(attributes["text"], trace_id.string)',
      'set(attributes["none"], true) where span_id == SpanID(0x0000000000000000)',
    ),
    record: {},
    assert: '.attributes == {"text": "00000000000000000000000000000000", "none": true}',
  },
]

test.each(cases)('$name', async ({ given, record: more, assert }) => {
  expect(await problems(given, 1, record(more), assert)).toEqual([])
})

/** Expressions of operators, with their results for the same two records. */
const expressions: readonly (readonly [expression: string, ofText: boolean, ofObject: boolean])[] = [
  ['body.level != "debug"', false, true],
  ['body.level == nil', false, false],
  ['not (body.level == "debug")', false, true],
  ['body?.level != "debug"', false, true],
  ['attributes?.none?.b == nil', true, true],
  ['get(attributes.none, "level") != "debug"', true, true],
  ['attributes.none.b == nil', false, false],
  ['attributes.none == nil', true, true],
  ['not (body.level matches "debug")', false, true],
  ['not (body.level in ["debug"])', false, true],
  ['body.level == "debug" or attributes.a == "x"', false, true],
  ['attributes.a == "x" or body.level == "debug"', true, true],
  ['body matches "t" or attributes.a == "x"', true, false],
  ['body matches "z" or body matches "t"', true, false],
  ['not (body.level == "debug" and attributes.a == "y")', false, true],
  ['attributes.a == "x" && body.level != "debug"', false, true],
]

test.each(expressions)('the expression %s', async (expression, ofText, ofObject) => {
  const given: Given = { operators: [{ type: 'add', field: 'attributes.is', value: 'true', if: expression }] }
  const results: readonly (readonly [body: unknown, isTrue: boolean])[] = [
    ['text', ofText],
    [{ level: 'error' }, ofObject],
  ]
  for (const [message, isTrue] of results) {
    const more = { message, attributes: { a: 'x' } }
    expect(await problems(given, 1, record(more), `exists(.attributes.is) == ${isTrue}`)).toEqual([])
  }
})

test.each([
  ['int(attributes.n) >= 500 ? "bad" : "good"', { n: '503' }, 'bad'],
  ['int(attributes.n) >= 500 ? "bad" : "good"', { n: '-' }, null],
  ['int(attributes.n) >= 500 ? "bad" : "good"', {}, null],
  ['attributes.n + "x"', { n: 'a' }, 'ax'],
  ['attributes.n + "x"', {}, null],
  ['upper(attributes.n)', {}, null],
  ['upper(attributes.n) + "-" + string(attributes.m)', { n: 'a', m: 5 }, 'A-5'],
  ['upper(attributes.n) + "-" + string(attributes.m)', { m: 5 }, null],
])('the value EXPR(%s) for %j', async (expression, attributes, expected) => {
  const given: Given = { operators: [{ type: 'add', field: 'resource.made', value: `EXPR(${expression})` }] }
  const assert = `.resource.attributes.made == ${JSON.stringify(expected)}`
  expect(await problems(given, 1, record({ attributes }), assert)).toEqual([])
})

test('a statement of a route changes the records of the route', async () => {
  const config = {
    receivers: { filelog: { include: ['/srv/app.log'] } },
    connectors: {
      routing: {
        default_pipelines: ['logs/other'],
        table: [
          { statement: 'delete_key(attributes, "tenant") where attributes["tenant"] == "a"', pipelines: ['logs/a'] },
          { condition: 'attributes["tenant"] == "b"', action: 'copy', pipelines: ['logs/b'] },
        ],
      },
    },
    exporters: { nop: null, 'nop/b': null, 'nop/other': null },
    service: {
      pipelines: {
        'logs/in': { receivers: ['filelog'], exporters: ['routing'] },
        'logs/a': { receivers: ['routing'], exporters: ['nop'] },
        'logs/b': { receivers: ['routing'], exporters: ['nop/b'] },
        'logs/other': { receivers: ['routing'], exporters: ['nop/other'] },
      },
    },
  }
  const draft = new Draft()
  convertOtel([{ file: 'c.yaml', text: stringify(config) }], () => [], draft)
  expect(draft.gaps).toEqual([])
  const { transforms, sinks } = draft.document({ name: 'converted' }).toJSON().spec
  const inputOf = (name: string) => sinks.find((sink: { name: string }) => sink.name === name).inputs[0]
  const stepOf = (name: string) => transforms.find((step: { name: string }) => step.name === name)
  expect(stepOf(inputOf('nop')).config.source).toContain('del(.resource.attributes.tenant)')
  expect(stepOf(inputOf('nop-other')).config.condition).toMatch(/\(!route1\)$/)
})
