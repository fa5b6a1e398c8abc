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
      types: { n: 'int' },
    },
    event: { raw: 'a:b;n:1', message: 'm' },
    expected: { message: 'm', kv: { a: 'b', n: 1 } },
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
    options: { type: 'split', separator: ',', field_names: ['a', 'b', 'c'], types: { b: 'int' } },
    event: { message: 'x,2' },
    expected: { a: 'x', b: 2 },
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
    expect: [{ at: 't', assert: `. == ${JSON.stringify(expected)}` }],
  }
  document.setIn(['spec', 'tests'], document.createNode([test]))
  expect(await lint(String(document))).toEqual([])
})
