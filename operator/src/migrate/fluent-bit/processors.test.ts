// Processors of inputs and outputs: the resulting records.

import { expect, test } from 'vitest'
import { converted, lint } from '../../testing/conversions.ts'
import { convertFluentBit } from './convert.ts'

const configuration = (ofInput: string, ofOutput = '') => `pipeline:
  inputs:
    - name: tail
      path: /srv/app.log
      tag: app
${ofInput}
  outputs:
    - name: stdout
      match: '*'
      format: json_lines
      json_date_key: false
${ofOutput}`

const list = (...items: string[]) =>
  `      processors:\n        logs:\n${items.map((item) => item.replace(/^/gm, '            ').replace(/^ {12}/, '          - ')).join('\n')}\n`
const modifier = (...lines: string[]) => ['name: content_modifier', ...lines].join('\n')

async function check(text: string, message: string, assert: string | undefined, missing: readonly string[] = []) {
  const { document, resource, gaps } = converted(convertFluentBit, [{ file: 'fluent-bit.yaml', text }])
  const at = resource.spec.sinks[0].inputs[0]
  const insertAt = resource.spec.transforms[0].name
  const expected = assert === undefined ? { at, count: 0 } : { at, assert }
  document.setIn(['spec', 'tests'], [{ name: 'a', insertAt, input: { log: { message } }, expect: [expected] }])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true).map(({ subject }) => subject)).toEqual(missing)
}

test.each([
  ['insert', modifier('action: insert', 'key: log', 'value: new'), '.log == "12"'],
  ['upsert', modifier('action: upsert', 'key: log', 'value: new'), '.log == "new"'],
  ['delete', modifier('action: delete', 'key: log'), '!exists(.log)'],
  ['rename', modifier('action: rename', 'key: log', 'value: text'), '.text == "12" && !exists(.log)'],
  ['hash', modifier('action: hash', 'key: log'), '.log == sha2("12", variant: "SHA-256")'],
  ['extract', modifier('action: extract', 'key: log', "pattern: '^(?<one>.)(?<two>.)$'"), '.one == "1" && .two == "2"'],
  ['convert', modifier('action: convert', 'key: log', 'converted_type: int'), '.log == 12'],
  [
    'the context of the record',
    modifier('action: upsert', 'context: record', 'key: log', 'value: new'),
    '.log == "new"',
  ],
  [
    'the context of attributes',
    modifier('action: upsert', 'context: attributes', 'key: log', 'value: x'),
    '.log == "12"',
  ],
  [
    'the context of a resource',
    modifier('action: insert', 'context: otel_resource_attributes', 'key: new', 'value: x'),
    '.log == "12" && !exists(.new)',
  ],
  ['an envelope', 'name: opentelemetry_envelope', '.log == "12"'],
  ['a filter', 'name: modify\nadd: seen yes', '.seen == "yes"'],
  ['a filter that leaves records out', 'name: grep\nexclude: log ^1', undefined],
  [
    'a condition that is met',
    `name: content_modifier\naction: upsert\nkey: log\nvalue: new\ncondition:\n  op: and\n  rules:\n    - field: "$log"\n      op: regex\n      value: "^1"\n    - field: "$log"\n      op: in\n      value: ["12", "13"]`,
    '.log == "new"',
  ],
  [
    'a condition that is not met',
    `name: grep\nexclude: log ^1\ncondition:\n  op: or\n  rules:\n    - field: "$log"\n      op: gt\n      value: 12`,
    '.log == "12"',
  ],
])('a processor of an input or output: %s', async (_, processor, assert) => {
  await check(configuration(list(processor)), '12', assert)
  await check(configuration('', list(processor)), '12', assert)
})

test.each([
  ['{"n":5}', 'field: $n\n      op: eq\n      value: "5"', true],
  ['{"n":5}', 'field: $n\n      op: eq\n      value: 5', true],
  ['{"n":503}', 'field: $n\n      op: regex\n      value: ^5', true],
  ['{"n":true}', 'field: $n\n      op: in\n      value: ["true"]', true],
  ['{"n":"5"}', 'field: $n\n      op: gt\n      value: 4', true],
  // A missing field is an empty text.
  ['{"m":1}', 'field: $n\n      op: neq\n      value: x', true],
  ['{"m":1}', 'field: $n\n      op: not_regex\n      value: ^5', true],
  ['{"m":1}', 'field: $n\n      op: not_in\n      value: [x]', true],
  ['{"m":1}', 'field: $n\n      op: regex\n      value: ^$', true],
  ['{"m":1}', 'field: $n\n      op: eq\n      value: x', false],
  ['{"n":{"a":"b"}}', "field: $n['a']\n      op: eq\n      value: b", true],
])('conditions compare texts: %s with %j', async (message, rule, isMet) => {
  const parser = 'name: parser\nkey_name: log\nparser: json'
  const change = `name: content_modifier\naction: upsert\nkey: hit\nvalue: new\ncondition:\n  op: and\n  rules:\n    - ${rule}`
  await check(configuration(list(parser, change)), message, isMet ? '.hit == "new"' : '!exists(.hit)')
})

test.each([
  ['{"n":"5 s"}', 'int', '.n == 5'],
  ['{"n":"s"}', 'int', '.n == 0'],
  ['{"n":2.5}', 'int', '.n == 3'],
  ['{"n":true}', 'int', '.n == 1'],
  ['{"n":" 2.5 s"}', 'double', '.n == 2.5'],
  ['{"n":"s"}', 'double', '.n == "s"'],
  ['{"n":2}', 'double', '.n == 2.0'],
  ['{"n":"TRUE"}', 'boolean', '.n == true'],
  ['{"n":"1"}', 'boolean', '.n == false'],
  ['{"n":3}', 'boolean', '.n == true'],
  ['{"n":3}', 'string', '.n == "3"'],
  ['{"n":{"a":1}}', 'string', '.n == {"a":1}'],
  ['{"m":1}', 'int', '!exists(.n)'],
])('%s is converted to %s as in C', async (message, type, assert) => {
  const parser = 'name: parser\nkey_name: log\nparser: json'
  const convert = modifier('action: convert', 'key: n', `converted_type: ${type}`)
  await check(configuration(list(parser, convert)), message, assert)
})

test('a condition on the metadata of a record is a gap', async () => {
  const rule = 'field: $n\n      op: eq\n      value: x\n      context: metadata'
  const change = `name: content_modifier\naction: upsert\nkey: hit\nvalue: new\ncondition:\n  op: and\n  rules:\n    - ${rule}`
  await check(configuration(list(change)), '12', '.hit == "new"', ['condition'])
})

test.each([
  ['SELECT * FROM STREAM;', '. == { "n": 5, "s": "a", "o": { "p": true }, "timestamp": .timestamp }'],
  [
    "select n, s AS text, o['p'] as p from stream where s = 'a'",
    '. == { "n": 5, "text": "a", "p": true, "timestamp": .timestamp }',
  ],
  ["SELECT n FROM STREAM WHERE n >= 5 AND NOT (s = 'b' OR n < 2.5);", '. == { "n": 5, "timestamp": .timestamp }'],
  ["SELECT n FROM STREAM WHERE s != 'b' AND o['p'] = true AND m IS NULL AND @record.contains(s);", '.n == 5'],
  ["SELECT n FROM STREAM WHERE s = 'it\\'s';", undefined],
  ['SELECT n FROM STREAM WHERE s > 1;', undefined],
  ['SELECT n FROM STREAM WHERE n IS NULL OR @record.contains(m);', undefined],
  ['SELECT m FROM STREAM;', undefined],
  ["SELECT o['p'] FROM STREAM;", '."o[\'p\']" == true'],
])('SQL: %s', async (query, assert) => {
  const json = 'name: parser\nkey_name: log\nparser: json'
  const all = list(json, `name: sql\nquery: ${JSON.stringify(query)}`)
  await check(configuration(all), '{"n":5,"s":"a","o":{"p":true}}', assert)
})

test.each([
  'SELECT COUNT(*) FROM STREAM;',
  'SELECT n FROM STREAM GROUP BY n;',
  'SELECT n FROM STREAM WINDOW TUMBLING (5 SECOND);',
  "SELECT n FROM STREAM WHERE s < 'a';",
  'SELECT n FROM ? WHERE',
  'SELECT',
])('SQL without a counterpart is a gap: %s', async (query) => {
  const text = configuration(
    list(`name: sql\nquery: ${JSON.stringify(query)}`, modifier('action: insert', 'key: a', 'value: b')),
  )
  await check(text, '12', '.log == "12" && .a == "b"', ['processor sql'])
})

test('a processor without a counterpart is a gap', async () => {
  const text = configuration(
    list('name: sql\nquery: SELECT COUNT(a) FROM STREAM;', modifier('action: turn', 'key: log')),
  )
  await check(text, '12', '.log == "12"', ['processor sql', 'content_modifier: turn'])
})

test('multiline in the older way: the first parser, further parsers, and the rest appended to the last field', async () => {
  const text = `[PARSER]
    Name first
    Format regex
    Regex ^(?<time>\\S+) (?<level>[A-Z]+) (?<message>.*)$
    Time_Key time
    Time_Format %Y-%m-%dT%H:%M:%SZ
[PARSER]
    Name more
    Format regex
    Regex ^  (?<key>\\w+)=(?<value>\\w+)$
[INPUT]
    Name tail
    Tag app
    Path /srv/app.log
    Multiline On
    Parser_Firstline first
    Parser_1 more
    Multiline_Flush 9
[OUTPUT]
    Name null
    Match *
`
  const { resource } = converted(convertFluentBit, [{ file: 'fluent-bit.conf', text }])
  const start = '(?m)^(\\S+) ([A-Z]+) (.*)$'
  expect(resource.spec.sources[0].config.multiline).toEqual({
    start_pattern: start,
    condition_pattern: start,
    mode: 'halt_before',
    timeout_ms: 9000,
  })
  const record =
    '.level == "E" && .message == "broke\\n at x" && .key == "k" && .timestamp == t\'2026-01-02T03:04:05Z\''
  await check(text, '2026-01-02T03:04:05Z E broke\n at x\n  k=v', record)
  await check(text, 'nothing', '.log == "nothing"')
})
