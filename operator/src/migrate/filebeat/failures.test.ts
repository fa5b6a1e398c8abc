// Processors of Filebeat that find no field, or a value that they cannot read: the event that comes out, as the sources of Filebeat have it.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFilebeat } from './convert.ts'

const convert = (text: string) => converted(convertFilebeat, [{ file: 'filebeat.yml', text }])

const json =
  'filebeat.inputs:\n- type: filestream\n  id: a\n  paths: [/srv/app.log]\n  parsers: [{ ndjson: { target: "" } }]\n'
const processor = (step: string) => `${json}processors:\n- ${step}\noutput.discard: {}\n`

interface Case {
  readonly name: string
  readonly step: string
  readonly message: object
  readonly expected: Readonly<Record<string, unknown>>
}

async function run({ step, message, expected }: Case): Promise<void> {
  const { document, resource, gaps } = convert(processor(step))
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  withTest(document, resource, { message: JSON.stringify(message), file: '/srv/app.log' }, expected)
  expect(await lint(document.toString())).toEqual([])
}

const failed = 'Failed to process fields in'
test.each<Case>([
  {
    name: 'a list of columns replaces its text',
    step: 'decode_csv_fields.fields: { a: a }',
    message: { a: 'x,y' },
    expected: { a: ['x', 'y'] },
  },
  {
    name: 'a field whose name has a dot',
    step: 'decode_csv_fields.fields: { a.b: a.c }',
    message: { a: { b: 'x,y' } },
    expected: { 'a.c': ['x', 'y'] },
  },
  {
    name: 'one field undoes the others',
    step: 'decode_csv_fields.fields: { a: x, b: y }',
    message: { a: '1,2' },
    expected: { x: null, y: null },
  },
  {
    name: 'a missing field on request does not',
    step: 'decode_csv_fields: { fields: { a: x, b: y }, ignore_missing: true }',
    message: { a: '1,2' },
    expected: { x: ['1', '2'], y: null },
  },
  {
    name: 'nor does any, if the step may fail',
    step: 'decode_csv_fields: { fields: { a: x, b: y }, fail_on_error: false }',
    message: { a: '1,2', b: 3 },
    expected: { x: ['1', '2'], y: null },
  },
])('CSV: $name', run)

test.each<Case>([
  {
    name: 'base64',
    step: 'decode_base64_field.field: { from: a, to: b }',
    message: { a: '%' },
    expected: { b: null, 'error.message': `${failed} decode_base64_field processor: failed on a` },
  },
  {
    name: 'base64 without an error',
    step: 'decode_base64_field: { field: { from: a, to: b }, fail_on_error: false }',
    message: { a: '%' },
    expected: { b: null, error: null },
  },
  {
    name: 'XML',
    step: 'decode_xml: { field: a, target_field: b }',
    message: { a: '<' },
    expected: { b: null, 'error.message': 'failed in decode_xml on the field a' },
  },
  {
    name: 'XML without an error',
    step: 'decode_xml: { field: a, target_field: b, ignore_failure: true }',
    message: { a: '<' },
    expected: { b: null, error: null },
  },
  {
    name: 'a missing text with XML',
    step: 'decode_xml: { field: c, ignore_missing: true }',
    message: { a: '<' },
    expected: { error: null },
  },
  {
    name: 'syslog',
    step: 'syslog.field: b',
    message: { a: 1 },
    expected: { 'error.message': 'failed in syslog on the field b' },
  },
  {
    name: 'a percent sign that encodes nothing',
    step: 'urldecode.fields: [{ from: a, to: b }]',
    message: { a: '100%+more' },
    expected: { b: null, 'error.message': `${failed} urldecode processor: failed on a` },
  },
  {
    name: 'texts of which one is missing stay whole on request',
    step: 'truncate_fields: { fields: [a, b], max_characters: 1, fail_on_error: true }',
    message: { a: 'xyz' },
    expected: { a: 'xyz' },
  },
])('a failure with $name', run)

test.each<Case>([
  {
    name: 'an existing object does not keep XML from its target',
    step: 'decode_xml: { field: a, target_field: b, overwrite_keys: false }',
    message: { a: '<r>x</r>', b: 1 },
    expected: { b: { r: 'x' } },
  },
  {
    name: 'members of XML do not replace those of the event',
    step: 'decode_xml: { field: a, target_field: "", overwrite_keys: false }',
    message: { a: '<r><x>1</x><y>2</y></r>', r: { x: 3 } },
    expected: { r: { x: 3, y: '2' } },
  },
  {
    name: 'the id of a document in XML',
    step: 'decode_xml: { field: a, target_field: b, document_id: r.id }',
    message: { a: '<r><id>7</id><x>1</x></r>' },
    expected: { b: { r: { x: '1' } } },
  },
  {
    name: 'the type of an event is always kept',
    step: 'include_fields.fields: [a]',
    message: { a: 1, b: 2, type: 'x' },
    expected: { a: 1, b: null, type: 'x' },
  },
  {
    name: 'each item of a list on its own, if the step may fail',
    step: 'extract_array: { field: a, mappings: { x: 0, y: 1, z: 2 }, fail_on_error: false }',
    message: { a: ['p', 'q'], y: 'own' },
    expected: { x: 'p', y: 'own', z: null },
  },
  {
    name: 'an empty item may belong to an existing field',
    step: 'extract_array: { field: a, mappings: { x: 0, y: 1 }, omit_empty: true }',
    message: { a: ['', 'q'], x: 'own' },
    expected: { x: 'own', y: 'q' },
  },
  {
    name: 'tags are not added to a text',
    step: 'add_tags.tags: [x]',
    message: { tags: 'own' },
    expected: { tags: 'own' },
  },
  {
    name: 'a text gets no members by a rename',
    step: 'rename.fields: [{ from: b, to: a.c }]',
    message: { a: 'x', b: 1 },
    expected: { a: 'x', b: 1, 'error.message': `${failed} rename processor: failed on b` },
  },
  {
    name: 'names with dots beside the object that they start with',
    step: 'add_tags.tags: [x]',
    message: { 'log.level': 'info', log: { logger: 'a', 'origin.line': 7 }, 'a.b': 1, 'a.c': 2 },
    expected: { 'log.level': 'info', 'log.logger': 'a', 'log.origin.line': 7, a: { b: 1, c: 2 } },
  },
  {
    name: 'names with dots beside a text that they start with',
    step: 'decode_json_fields: { fields: [m], target: j }',
    message: { m: '{"error":"boom","error.stack":"s","x.y":1}' },
    expected: { j: { error: 'boom', 'error.stack': 's', x: { y: 1 } } },
  },
])('other rules: $name', run)

test.each<Case>([
  {
    name: 'a name in any case',
    step: 'lowercase.fields: [level]',
    message: { LEVEL: 'x' },
    expected: { LEVEL: null, level: 'x' },
  },
  {
    name: 'all names of a path',
    step: 'uppercase.fields: [a.bc]',
    message: { a: { bC: 1, d: 2 } },
    expected: { A: { BC: 1, d: 2 }, a: null },
  },
  {
    name: 'a missing name',
    step: 'lowercase.fields: [Level, other]',
    message: { Level: 1 },
    expected: { Level: 1, 'error.message': `${failed} lowercase processor: could not fetch value for key: other` },
  },
  {
    name: 'a missing name on request',
    step: 'lowercase: { fields: [Level, other], ignore_missing: true }',
    message: { Level: 1 },
    expected: { level: 1, error: null },
  },
  {
    name: 'two names that become one',
    step: 'lowercase: { fields: [level], ignore_missing: true }',
    message: { Level: 1, LEVEL: 2 },
    expected: { Level: 1, LEVEL: 2 },
  },
  {
    name: 'a value that is not a text',
    step: 'uppercase.values: [a]',
    message: { a: 1 },
    expected: { a: 1, 'error.message': `${failed} uppercase processor: failed on a` },
  },
])('the case of names: $name', run)

test.each([
  ['', '  tags: [x]\n'],
  ['tags: [x]\n', ''],
])('tags of %s%s do not replace a text of the line', async (before, after) => {
  const { document, resource } = convert(`${before}${json}${after}output.discard: {}\n`)
  withTest(document, resource, { message: '{"tags":"own"}', file: '/srv/app.log' }, { tags: 'own' })
  expect(await lint(document.toString())).toEqual([])
})

test('an unknown member of a choice is a gap', () => {
  const { gaps } = convert(processor('if.has_fields: [a]\n  then: { add_tags.tags: [x] }\n  otherwise: []'))
  expect(gaps.map(({ subject }) => subject).filter((subject) => subject.startsWith('if'))).toEqual(['if: otherwise'])
})

const parts = (tokenizer: string) => `dissect: { field: a, target_prefix: "", tokenizer: "${tokenizer}" }`
test.each<Case>([
  {
    name: 'words that are not booleans',
    step: parts('%{x|boolean} %{y|boolean}'),
    message: { a: 'yes T' },
    expected: { x: 'yes', y: true },
  },
  {
    name: 'integers of more than 32 bits',
    step: parts('%{x|integer},%{y|integer},%{z|long}'),
    message: { a: '4294967296,7 ,4294967296' },
    expected: { x: '4294967296', y: 7, z: 4294967296 },
  },
  {
    name: 'spaces after a number',
    step: parts('%{x|double},%{y|string},%{z}'),
    message: { a: '1.5  ,b ,c ' },
    expected: { x: 1.5, y: 'b', z: 'c ' },
  },
  {
    name: 'an address',
    step: parts('%{x|ip},%{y|ip}'),
    message: { a: '10.0.0.1 ,here ' },
    expected: { x: '10.0.0.1', y: 'here ' },
  },
  {
    name: 'more delimiters than one, each of two signs',
    step: parts('%{x->}  %{y}'),
    message: { a: 'p      q' },
    expected: { x: 'p', y: 'q' },
  },
])('parts of a text: $name', run)

const written = { message: { t: 'x y', u: '2026-02-04T05:06:07Z' } }
test.each<Case>([
  {
    name: 'a part of a text',
    step: 'dissect: { tokenizer: "%{@timestamp} %{b}", field: t, target_prefix: "", overwrite_keys: true }',
    ...written,
    expected: { b: 'y' },
  },
  {
    name: 'a text of a list of fields',
    step: 'add_fields: { target: "", fields: { "@timestamp": now, c: d } }',
    ...written,
    expected: { c: 'd' },
  },
  {
    name: 'a text with another type',
    step: 'convert: { fields: [{ from: u, to: "@timestamp", type: string }] }',
    ...written,
    expected: { u: '2026-02-04T05:06:07Z' },
  },
])('a text does not become the time of an event: $name', async ({ step, message, expected }) => {
  const { document, resource } = convert(processor(step))
  const timestamp = '2026-11-24T10:11:12Z'
  const event = { message: JSON.stringify(message), file: '/srv/app.log', timestamp }
  withTest(document, resource, event, { ...expected, timestamp })
  expect(await lint(document.toString())).toEqual([])
})
