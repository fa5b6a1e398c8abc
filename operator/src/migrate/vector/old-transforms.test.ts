// Transforms of old Vector versions: an event that passes their replacements must be the same as with the old transform.

import { loadConfigObject, runUnitTests } from '@penstock/agent/config'
import { expect, test } from 'vitest'
import { converted, lint } from '../../testing/conversions.ts'
import { Draft } from '../draft.ts'
import { convertVector } from './convert.ts'

const counter = (tags: object) => ({ name: 'hits', kind: 'absolute', counter: { value: 1 }, tags })

test.each([
  {
    about: 'tags are set',
    options: { type: 'add_tags', tags: { a: 'b', 'x.y': '1' } },
    tags: { a: 'z' },
    expected: { a: 'b', 'x.y': '1' },
  },
  {
    about: 'existing tags stay',
    options: { type: 'add_tags', tags: { a: 'b', c: 'd' }, overwrite: false },
    tags: { a: 'z' },
    expected: { a: 'z', c: 'd' },
  },
  {
    about: 'tags are removed',
    options: { type: 'remove_tags', tags: ['a', 'x.y'] },
    tags: { a: 'z', 'x.y': '1', k: 'v' },
    expected: { k: 'v' },
  },
])('$about', async ({ options, tags, expected }) => {
  const config = {
    sources: { m: { type: 'internal_metrics' } },
    transforms: { t: { ...options, inputs: ['m'] } },
    sinks: { out: { type: 'console', inputs: ['t'], encoding: { codec: 'json' } } },
  }
  const draft = new Draft()
  convertVector([{ file: 'vector.json', text: JSON.stringify(config) }], () => [], draft)
  expect(draft.gaps).toEqual([])
  const { spec } = draft.document({ name: 'shop' }).toJS() as {
    spec: { transforms: { name: string; type: string; inputs: string[]; config: object }[] }
  }
  const [made] = spec.transforms
  const loaded = loadConfigObject({
    sources: { m: { type: 'internal_metrics' } },
    transforms: { t: { type: made?.type, inputs: ['m'], ...made?.config } },
    sinks: { out: { type: 'blackhole', inputs: ['t'] } },
    tests: [
      {
        name: 'tags',
        inputs: [{ insert_at: 't', type: 'metric', metric: counter(tags) }],
        outputs: [
          {
            extract_from: 't',
            conditions: [{ type: 'vrl', source: `assert_eq!(.tags, ${JSON.stringify(expected)})` }],
          },
        ],
      },
    ],
  })
  if (!loaded.ok) throw new Error(JSON.stringify(loaded.problems))
  const { passed, text } = await runUnitTests(loaded.config)
  expect(passed, text).toBe(true)
})

const regex = {
  type: 'regex_parser',
  patterns: ['^(?P<level>\\w+) (?P<status>\\d+)$'],
  types: { level: 'string', status: 'int' },
}
test.each([
  {
    about: 'fields from a regular expression get their types',
    options: regex,
    event: { message: 'info 200' },
    expected: { level: 'info', status: 200 },
  },
  {
    about: 'a line that does not match stays unchanged',
    options: regex,
    event: { message: 'other' },
    expected: { message: 'other' },
  },
  {
    about: 'a renamed field takes its empty parent along',
    options: { type: 'rename_fields', fields: { 'a.b': 'c' }, drop_empty: true },
    event: { a: { b: 1 } },
    expected: { c: 1 },
  },
  {
    about: 'the parent of a renamed field stays',
    options: { type: 'rename_fields', fields: { 'a.b': 'c' } },
    event: { a: { b: 1 } },
    expected: { a: {}, c: 1 },
  },
  {
    about: 'a field is set from a template',
    options: { type: 'add_fields', fields: { a: 'x-{{ message }}', b: '{{ missing }}', 'c.d': 1 } },
    event: { message: 'm' },
    expected: { message: 'm', a: 'x-m', c: { d: 1 } },
  },
  {
    about: 'a template does not replace a field that must stay',
    options: { type: 'add_fields', overwrite: false, fields: { a: '{{ message }}' } },
    event: { message: 'm', a: 1 },
    expected: { message: 'm', a: 1 },
  },
  {
    about: 'grok',
    options: { type: 'grok_parser', pattern: '%{LOGLEVEL:level} %{NUMBER:took}', types: { took: 'float' } },
    event: { message: 'WARN 1.5' },
    expected: { level: 'WARN', took: 1.5 },
  },
  {
    about: 'key-value pairs in a field',
    options: {
      type: 'key_value_parser',
      field: 'raw',
      field_split: ':',
      separator: ';',
      target_field: 'kv',
      types: { 'kv.n': 'int', n: 'float' },
    },
    event: { raw: 'a:b;n:1;c', message: 'm' },
    expected: { message: 'm', kv: { a: 'b', n: 1 } },
  },
  {
    about: 'key-value pairs with other signs around them',
    options: { type: 'key_value_parser', separator: ',', trim_key: '{"', trim_value: '"}', drop_field: false },
    event: { message: '{"a"="x y", b.c = {1}, =2' },
    expected: { message: '{"a"="x y", b.c = {1}, =2', a: 'x y', b: { c: '{1' } },
  },
  {
    about: 'an existing target of pairs stays on request',
    options: { type: 'key_value_parser', target_field: 'kv', overwrite_target: false },
    event: { message: 'a=b', kv: 1 },
    expected: { message: 'a=b', kv: 1 },
  },
  {
    about: 'logfmt without keys that have no value',
    options: { type: 'logfmt_parser', drop_field: false, types: { ok: 'bool' } },
    event: { message: 'a=b ok=true alone' },
    expected: { message: 'a=b ok=true alone', a: 'b', ok: true },
  },
  {
    about: 'escape sequences of terminals',
    options: { type: 'ansi_stripper' },
    event: { message: '\u001b[31mred\u001b[0m' },
    expected: { message: 'red' },
  },
  {
    about: 'parts of a text',
    options: { type: 'split', separator: ',', field_names: ['a', 'b', 'c'], types: { b: 'int' }, drop_field: true },
    event: { message: 'x,2' },
    expected: { a: 'x', b: 2 },
  },
  {
    about: 'a part that cannot be converted is left out, and the text stays by default',
    options: { type: 'split', separator: ',', field_names: ['a', 'b.c'], types: { 'b.c': 'int' } },
    event: { message: 'x,y' },
    expected: { message: 'x,y', a: 'x' },
  },
  {
    about: 'words in brackets and quotes',
    options: {
      type: 'tokenizer',
      field_names: ['ip', 'who', 'time', 'request', 'status', 'bytes', 'empty'],
      types: { status: 'int', bytes: 'int' },
      drop_field: true,
    },
    event: { message: '5.86.210.12 - [19/06/2019:17:20:49 -0400] "GET \\"/x\\" HTTP/2.0" 206 - ""' },
    expected: {
      ip: '5.86.210.12',
      who: '-',
      time: '19/06/2019:17:20:49 -0400',
      request: 'GET \\"/x\\" HTTP/2.0',
      status: 206,
      empty: '',
    },
  },
  {
    about: 'words without an end are the rest of the text',
    options: { type: 'tokenizer', field_names: ['a', 'b', 'c', 'd'] },
    event: { message: 'foo\t bar[baz quux' },
    expected: { message: 'foo\t bar[baz quux', a: 'foo', b: 'bar', c: '[baz quux' },
  },
  {
    about: 'ranges of texts are joined',
    options: {
      type: 'concat',
      items: ['second[..1]', 'second[-4..2]', 'second[-3..-2]', 'absent', 'second[3..-1]', 'second[4..]', 'n'],
      target: 'a.b',
    },
    event: { second: 'World', n: 5 },
    expected: { second: 'World', n: 5, a: { b: 'W o r l d 5' } },
  },
  {
    about: 'a range beyond the text drops the event',
    options: { type: 'concat', items: ['message[..11]'], target: 'out', joiner: '' },
    event: { message: 'World' },
    expected: undefined,
  },
  {
    about: 'a range without characters drops the event',
    options: { type: 'concat', items: ['message[3..1]'], target: 'out' },
    event: { message: 'World' },
    expected: undefined,
  },
  {
    about: 'other fields are dropped on request, and values that cannot be converted always',
    options: { type: 'coercer', drop_unspecified: true, types: { n: 'int', 'a.b': 'string', bad: 'float' } },
    event: { n: '7', a: { b: 1, c: 2 }, bad: 'x', other: 1 },
    expected: { n: 7, a: { b: '1' } },
  },
  {
    about: 'a group without a match sets no field, and an existing target stays on request',
    options: { ...regex, patterns: ['^(?P<a>x)?(?P<b>.*)$'], types: {}, target_field: 't', overwrite_target: false },
    event: { message: 'y' },
    expected: { t: { b: 'y' } },
  },
  {
    about: 'JSON does not replace its target',
    options: { type: 'json_parser', target_field: 't' },
    event: { message: '{"a":1}', t: 'x' },
    expected: { message: '{"a":1}', t: 'x' },
  },
  {
    about: 'JSON replaces its target on request',
    options: { type: 'json_parser', target_field: 't', overwrite_target: true },
    event: { message: '{"a":1}', t: 'x' },
    expected: { t: { a: 1 } },
  },
  {
    about: 'JSON that is not an object has no target',
    options: { type: 'json_parser', target_field: 't', drop_invalid: true },
    event: { message: '[1]' },
    expected: undefined,
  },
  {
    about: 'words of a text',
    options: { type: 'split', field_names: ['a', 'message'] },
    event: { message: ' x   y z' },
    expected: { a: 'x', message: 'y' },
  },
])('$about', async ({ options, event, expected }) => {
  const config = {
    sources: { in: { type: 'demo_logs', format: 'json' } },
    transforms: { t: { ...options, inputs: ['in'] } },
    sinks: { out: { type: 'console', inputs: ['t'], encoding: { codec: 'json' } } },
  }
  const { document, gaps, resource } = converted(convertVector, [{ file: 'v.json', text: JSON.stringify(config) }])
  expect(gaps).toEqual([])
  const source = `${resource.spec.transforms[0].config.source}\ndel(.timestamp)\ndel(.source_type)`
  document.setIn(['spec', 'transforms', 0, 'config', 'source'], source)
  const test = {
    name: 'event',
    insertAt: 't',
    input: { log: event },
    expect: [expected === undefined ? { at: 't', count: 0 } : { at: 't', assert: `. == ${JSON.stringify(expected)}` }],
  }
  document.setIn(['spec', 'tests'], document.createNode([test]))
  expect(await lint(String(document))).toEqual([])
})

test('an event becomes the events of a subscription', async () => {
  const config = {
    sources: { in: { type: 'demo_logs', format: 'json' } },
    transforms: { t: { type: 'aws_cloudwatch_logs_subscription_parser', inputs: ['in'] } },
    sinks: { out: { type: 'console', inputs: ['t'], encoding: { codec: 'json' } } },
  }
  const { document, gaps } = converted(convertVector, [{ file: 'v.json', text: JSON.stringify(config) }])
  expect(gaps).toEqual([])
  const entry = (id: string) => ({ id, timestamp: 1_600_110_569_039, message: `m${id}` })
  const message = {
    messageType: 'DATA_MESSAGE',
    owner: 'o',
    logGroup: 'g',
    logStream: 's',
    subscriptionFilters: ['f'],
    logEvents: [entry('1'), entry('2')],
  }
  const second =
    '.message == "m2" && .id == "2" && .log_group == "g" && .log_stream == "s" && .owner == "o" && .keep == "x" && .subscription_filters == ["f"] && .timestamp == t\'2020-09-14T19:09:29.039Z\''
  const input = (type: string) => ({ log: { message: JSON.stringify({ ...message, messageType: type }), keep: 'x' } })
  document.setIn(
    ['spec', 'tests'],
    document.createNode([
      {
        name: 'data',
        insertAt: 't',
        input: input('DATA_MESSAGE'),
        expect: [
          { at: 't', count: 2 },
          { at: 't', assert: second },
        ],
      },
      { name: 'control', insertAt: 't', input: input('CONTROL_MESSAGE'), expect: [{ at: 't', count: 0 }] },
    ]),
  )
  expect(await lint(String(document))).toEqual([])
})
