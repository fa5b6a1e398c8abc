// Lists where Filebeat compares no list, and tables where it reads a list.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFilebeat } from './convert.ts'

const convert = (text: string) => converted(convertFilebeat, [{ file: 'filebeat.yml', text }])

const json =
  'filebeat.inputs:\n- type: filestream\n  paths: [/srv/app.log]\n  parsers: [{ ndjson: { target: "", expand_keys: true } }]\n'
const discard = 'output.discard: {}\n'

test.each([
  ['contains', '{ a: [x, y] }', 'a'],
  ['equals', '{ a: [x] }', 'a'],
  ['regexp', '{ b: q, a.c: [x] }', 'a.c'],
])('a condition %s %s is never true', async (kind, value, field) => {
  const { document, resource, gaps } = convert(
    `${json}processors:\n- add_tags: { tags: [met], when.${kind}: ${value} }\n- drop_event.when.not.not.${kind}: ${value}\n${discard}`,
  )
  expect(gaps.map(({ line, subject, isReplaced }) => [line, subject, isReplaced])).toEqual([
    [6, `condition ${kind}: ${field}`, true],
    [7, `condition ${kind}: ${field}`, true],
  ])
  const event = { message: '{"a":"x","b":"q"}', file: '/srv/app.log', timestamp: '2026-02-04T05:06:07Z' }
  withTest(document, resource, event, { tags: null, a: 'x' })
  expect(await lint(document.toString())).toEqual([])
})

test.each([
  ['filebeat.inputs: { type: log, paths: [/a] }\n', 'filebeat.inputs'],
  [`${json}processors: { drop_event: {} }\n`, 'processors'],
  [`${json}  processors:\n    drop_event: {}\n`, 'inputs.processors'],
  [`${json}processors: [{ rename: { fields: { from: a, to: b } } }]\n`, 'rename.fields'],
  [
    'filebeat.autodiscover.providers: [{ type: kubernetes, templates: [{ config: { type: container, paths: [/var/log/containers/*.log] } }] }]\n',
    'templates.config',
  ],
  ['filebeat.autodiscover.providers: { type: kubernetes, hints.enabled: true }\n', 'autodiscover.providers'],
])('a table in the place of a list has no effect: %s', (text, subject) => {
  const { gaps } = convert(text + discard)
  const rows = gaps.filter((gap) => gap.subject === subject)
  expect(rows.map(({ isReplaced }) => isReplaced)).toEqual([true])
})

test('fields of users may have the names of lists', () => {
  const text = json.replace('  parsers', '  fields: { processors: { a: 1 }, parsers: { b: 2 } }\n  parsers')
  expect(convert(`${text}filebeat.config.inputs: { enabled: false }\n${discard}`).gaps).toEqual([])
})

test.each([
  ['output: { file: nil, console: {} }', ['console'], ['output file']],
  ['output: { file: ~, console: {} }', ['console'], ['output file']],
  ['output.console: ~', ['console'], []],
])('outputs that are not tables have no effect: %s', (output, types, rows) => {
  const { resource, gaps } = convert(`${json}${output}\n`)
  expect(resource.spec.sinks.map(({ type }: { type: string }) => type)).toEqual(types)
  expect(gaps.map(({ subject, isReplaced }) => [subject, isReplaced])).toEqual(rows.map((subject) => [subject, true]))
})
