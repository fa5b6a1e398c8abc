// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of Fluentd are meant
// Matches that change the tag: `record_reformer`, and rules in the syntax before version 2 of `rewrite_tag_filter`.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFluentd } from './convert.ts'

const time = '2026-11-24T10:11:12Z'
const source =
  '<source>\n  @type tail\n  path /srv/app.log\n  tag app.web\n  <parse>\n    @type json\n  </parse>\n</source>\n'
const convert = (
  match: string,
  ends = '<match **>\n  @type stdout\n  <inject>\n    tag_key tag\n  </inject>\n</match>\n',
) => converted(convertFluentd, [{ file: 'fluent.conf', text: `${source}<match app.**>\n${match}\n</match>\n${ends}` }])
const missing = (gaps: readonly { isReplaced?: true }[]) => gaps.filter(({ isReplaced }) => isReplaced !== true)

test.each<[about: string, lines: string, record: object, expected: Readonly<Record<string, unknown>>]>([
  [
    'fields next to the options',
    'tag x.${tag}\nhost ${hostname}\nenv prod',
    { a: 1 },
    { tag: 'x.app.web', env: 'prod', a: 1 },
  ],
  [
    'names of fields as placeholders',
    'tag x\nenable_ruby false\n<record>\n  b ${a}-${tags[0]}\n</record>',
    { a: 1 },
    { b: '1-app' },
  ],
  ['a value is a text', 'tag x\n<record>\n  b ${record["a"] + 1}\n</record>', { a: 1 }, { b: '2' }],
  [
    'a value keeps its type',
    'tag x\nauto_typecast true\n<record>\n  b ${record["a"] + 1}\n</record>',
    { a: 1 },
    { b: 2 },
  ],
  [
    'code that fails gives no value',
    'tag x\nauto_typecast true\n<record>\n  b ${record["n"]["m"]["o"]}\n</record>',
    { a: 1 },
    { 'b == null && .a': 1 },
  ],
  [
    'a new record',
    'tag x\nrenew_record true\nkeep_keys a\n<record>\n  b c\n</record>',
    { a: 1, d: 2 },
    { 'd == null && .a': 1, b: 'c' },
  ],
  [
    'a tag from the record as it was',
    'tag x.${record["a"]}.${tag_suffix[1]}\nremove_keys a',
    { a: 'y', b: 1 },
    { tag: 'x.y.web', 'a == null && .b': 1 },
  ],
  ['a tag from code', "tag ${if record['a'] == 1 then 'one' else 'other' end}", { a: 1 }, { tag: 'one' }],
  ['a time', 'tag x\nrenew_time_key t', { t: 1767323045.9 }, { timestamp: '2026-01-02T03:04:05Z' }],
])('record_reformer: %s', async (_, lines, record, expected) => {
  const { document, resource, gaps } = convert(`@type record_reformer\n${lines}`)
  expect(missing(gaps)).toEqual([])
  withTest(document, resource, { message: JSON.stringify(record), timestamp: time }, expected)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('the new tag of record_reformer selects the matches', async () => {
  const ends = '<match x.one>\n  @type stdout\n</match>\n<match x.**>\n  @type null\n</match>\n'
  for (const [a, isThere] of [
    ['one', true],
    ['two', false],
  ] as const) {
    const { document, resource, gaps } = convert('@type record_reformer\ntag x.${record["a"]}', ends)
    expect(missing(gaps)).toEqual([])
    resource.spec.sinks = resource.spec.sinks.slice(0, 1)
    withTest(document, resource, { message: JSON.stringify({ a }), timestamp: time }, isThere ? { a } : undefined)
    expect(await lint(document.toString({ lineWidth: 0 })), a).toEqual([])
  }
})

test.each([
  [{ code: 500, path: '/a' }, 'error'],
  [{ code: 200, path: '/shop/a' }, 'site.Shop'],
  [{ code: 200, path: '/' }, 'rest'],
])('rewrite_tag_filter with old rules: %j', async (record, tag) => {
  const rules = [
    'rewriterule2 path ^/(shop|blog)/ site.$1',
    'rewriterule1 code !^200$ error',
    'rewriterule3 path .+ rest',
  ]
  const { document, resource, gaps } = convert(
    `@type rewrite_tag_filter\ncapitalize_regex_backreference yes\n${rules.join('\n')}`,
  )
  expect(missing(gaps)).toEqual([])
  withTest(document, resource, { message: JSON.stringify(record), timestamp: time }, { tag })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a pattern between slashes is an expression', async () => {
  const ends = '<match /^(?!app).*$/>\n  @type null\n</match>\n<match /app\\..+/>\n  @type stdout\n</match>\n'
  const { resource, gaps } = converted(convertFluentd, [{ file: 'fluent.conf', text: `${source}${ends}` }])
  expect(gaps.map(({ subject }) => subject)).toContain('match /^(?!app).*$/')
  expect(resource.spec.sinks).toMatchObject([{ type: 'console' }])
})

test('a store for the time when others fail is left out', () => {
  const stores =
    '@type copy\n<store ignore_error>\n  @type stdout\n</store>\n<store ignore_if_prev_success>\n  @type null\n</store>'
  const { resource, gaps } = convert(stores, '')
  expect(gaps).toMatchObject([{ subject: 'store null', isReplaced: true }])
  expect(resource.spec.sinks).toHaveLength(1)
})

test.each([
  [{ m: '{"b":1}' }, 1, { b: 1 }],
  [{ m: 'text' }, 0, { m: 'text' }],
  [{ a: 1 }, 0, { a: 1, p: null }],
  [{ m: '{"b":1}' }, 0, undefined],
])('events that a parser does not read go to the label @ERROR: %j to sink %i', async (record, at, expected) => {
  const parser =
    '<filter **>\n  @type parser\n  key_name m\n  hash_value_field p\n  reserve_data true\n  <parse>\n    @type json\n  </parse>\n</filter>\n'
  const error = '<label @ERROR>\n  <match **>\n    @type file\n    path /tmp/errors\n  </match>\n</label>\n'
  const text = `${source}${parser}<match **>\n  @type stdout\n</match>\n${error}`
  const { document, resource, gaps } = converted(convertFluentd, [{ file: 'fluent.conf', text }])
  expect(missing(gaps)).toEqual([])
  expect(resource.spec.sinks).toMatchObject([{ type: 'file' }, { type: 'console' }])
  resource.spec.sinks = [resource.spec.sinks[at]]
  const wanted = at === 1 ? { p: expected } : expected
  withTest(document, resource, { message: JSON.stringify(record), timestamp: time }, wanted)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a path with a date reads the files of all dates', () => {
  const text = `${source.replace('/srv/app.log', '/srv/%Y/%m-%d/app.log')}<match **>\n  @type stdout\n</match>\n`
  const { resource, gaps } = converted(convertFluentd, [{ file: 'fluent.conf', text }])
  expect(gaps).toMatchObject([{ subject: 'tail: path', isReplaced: true }])
  expect(resource.spec.sources[0].config.include).toEqual(['/srv/[0-9][0-9][0-9][0-9]/[0-9][0-9]-[0-9][0-9]/app.log'])
})
