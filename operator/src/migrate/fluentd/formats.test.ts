// Texts that formatters of Fluentd make of records, and options without a value.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFluentd } from './convert.ts'

const time = '2026-11-24T10:11:12Z'
const source = (more = '') =>
  `<source>\n  @type tail\n  path /srv/app.log\n  tag raw.app\n  <parse>\n    @type json\n${more}  </parse>\n</source>\n`
const convert = (text: string) => converted(convertFluentd, [{ file: 'fluent.conf', text }])
const missing = (gaps: readonly { isReplaced?: true }[]) => gaps.filter(({ isReplaced }) => isReplaced !== true)
const http = '<match **>\n  @type http\n  endpoint http://h/\n</match>\n'

test.each<[format: string, record: object, expected: string]>([
  ['@type single_value\nmessage_key msg', { msg: 'x', a: 1 }, 'x'],
  ['@type single_value', { message: { a: 1 } }, '{"a":1}'],
  ['@type csv\nfields a,b,c', { a: 'x "y"', b: 2 }, '"x ""y""","2",""'],
  ['@type csv\nfields a,b,c,d\nforce_quotes false\ndelimiter ;', { a: 'x;y', b: 2, c: '' }, '"x;y";2;"";'],
  ['@type tsv\nkeys a,b', { a: 'x', b: true, c: 3 }, 'x\ttrue'],
  ['@type ltsv\ndelimiter ,\nlabel_delimiter =', { a: 'x,y', b: 2 }, 'a=x y,b=2'],
])('the format %s', async (format, record, expected) => {
  for (const output of ['@type file\n  path /srv/out', '@type http\n  endpoint http://h/']) {
    const text = `${source()}<match **>\n  ${output}\n  <format>\n${format.replace(/^/gm, '    ')}\n  </format>\n</match>\n`
    const { document, resource, gaps } = convert(text)
    expect(missing(gaps)).toEqual([])
    expect(resource.spec.sinks[0].config.encoding).toEqual({ codec: 'text' })
    withTest(document, resource, { message: JSON.stringify(record), timestamp: time }, { message: expected })
    expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
  }
})

test('a format in the syntax of early versions', async () => {
  const output = '<match **>\n  @type file\n  path /srv/out\n  format single_value\n  message_key a\n</match>\n'
  const { document, resource, gaps } = convert(`${source()}${output}`)
  expect(missing(gaps)).toEqual([])
  withTest(document, resource, { message: '{"a":"x"}', timestamp: time }, { message: 'x' })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a request states the type of its content', () => {
  const typeOf = (lines: string) =>
    convert(`${source()}<match **>\n  @type http\n  endpoint http://h/\n${lines}</match>\n`).resource.spec.sinks[0]
      .config.request.headers['Content-Type']
  expect(typeOf('  <format>\n    @type csv\n    fields a\n  </format>\n')).toBe('text/csv')
  expect(typeOf('  <format>\n    @type single_value\n  </format>\n')).toBe('text/plain')
  expect(typeOf('  content_type a/b\n  <format>\n    @type single_value\n  </format>\n')).toBe('a/b')
})

test.each([
  ['', '2026-01-02'],
  [' true', '2026-01-02'],
  [' yes # as before', '2026-01-02'],
  [' # a comment alone', '2026-01-02'],
  [' false', undefined],
  [' on', undefined],
])('an option with the value `%s`', async (value, expected) => {
  const text = `${source(`    time_format %Y-%m-%d\n    keep_time_key${value}\n`)}${http}`
  const { document, resource } = convert(text)
  const event = { message: '{"a":1,"time":"2026-01-02"}', timestamp: time }
  withTest(document, resource, event, expected === undefined ? { 'time == null && .a': 1 } : { time: expected })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a filter compares lists and objects as texts', async () => {
  const grep = '<filter **>\n  @type grep\n  <regexp>\n    key tags\n    pattern /"prod"/\n  </regexp>\n</filter>\n'
  const { document, resource } = convert(`${source()}${grep}${http}`)
  withTest(document, resource, { message: '{"tags":["prod"]}', timestamp: time }, { tags: ['prod'] })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('an element without a pattern is for all tags', async () => {
  const filter = '<filter>\n  @type record_transformer\n  <record>\n    b c\n  </record>\n</filter>\n'
  const { document, resource, gaps } = convert(`${source()}${filter}${http.replace('<match **>', '<match>')}`)
  expect(missing(gaps)).toEqual([])
  withTest(document, resource, { message: '{"a":1}', timestamp: time }, { a: 1, b: 'c' })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a list of sample records gives one line for each', () => {
  const text = `<source>\n  @type sample\n  tag a\n  sample [{"a":1},{"b":2}]\n  auto_increment_key n\n</source>\n${http}`
  const { resource, gaps } = convert(text)
  expect(resource.spec.sources[0].config.lines).toEqual(['{"a":1}', '{"b":2}'])
  expect(missing(gaps)).toMatchObject([{ subject: 'sample: auto_increment_key', line: 5 }])
})

test.each([
  ['utf-8', []],
  ['ascii-8bit:utf-8', []],
  ['utf-8:euc-jp', [{ subject: 'record_modifier: char_encoding', line: 11 }]],
])('the character set %s', (charset, expected) => {
  const filter = `<filter **>\n  @type record_modifier\n  char_encoding ${charset}\n</filter>\n`
  expect(missing(convert(`${source()}${filter}${http}`).gaps)).toMatchObject(expected)
})
