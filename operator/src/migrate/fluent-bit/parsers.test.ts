// Parsers and outputs of Fluent Bit: the results for a line, and options whose effect is not visible in an event.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFluentBit } from './convert.ts'

const convert = (text: string) => converted(convertFluentBit, [{ file: 'fluent-bit.conf', text }])
const sections = (all: Readonly<Record<string, readonly string[]>>) =>
  Object.entries(all)
    .map(([name, lines]) => `[${name}]\n${lines.map((line) => `    ${line}\n`).join('')}`)
    .join('')
const year = new Date().getUTCFullYear()

const parsed = (...parser: readonly string[]) =>
  convert(
    sections({
      INPUT: ['Name tail', 'Path /srv/a.log', 'Tag a', 'Parser app'],
      PARSER: ['Name app', ...parser],
      OUTPUT: ['Name null', 'Match a'],
    }),
  )

type Case = readonly [string, readonly string[], string, Readonly<Record<string, unknown>>]

test.each<Case>([
  [
    'numbers, of which what begins a text counts',
    ['Format regex', 'Regex ^(?<n>\\S+) (?<x>\\S+) (?<f>\\S+)$', 'Types n:integer x:integer f:float'],
    '12ms - 1.5',
    { n: 12, x: 0, f: 1.5 },
  ],
  [
    'times without a year and a zone',
    ['Format regex', 'Regex ^(?<time>\\w+ +\\d+ \\S+) (?<m>.*)$', 'Time_Key time', 'Time_Format %b %d %H:%M:%S'],
    'Feb  3 04:05:06 x',
    { m: 'x', timestamp: `${year}-02-03T04:05:06Z` },
  ],
  [
    'times with their own offset',
    ['Format json', 'Time_Key t', 'Time_Format %Y-%m-%d %H:%M:%S', 'Time_Offset +0200', 'Time_Keep On'],
    '{"t":"2026-01-02 03:04:05"}',
    { t: '2026-01-02 03:04:05', timestamp: '2026-01-02T01:04:05Z' },
  ],
  ...[
    ['%Y-%m-%dT%H:%M:%S.%L', '2026-01-02T03:04:05.25Z', '2026-01-02T03:04:05.25Z'],
    ['%Y-%m-%dT%H:%M:%S.%L', '2026-01-02T03:04:05.25+01:00', '2026-01-02T03:04:05.25Z'],
    ['%Y-%m-%dT%H:%M:%S', '2026-01-02T03:04:05.25Z', '2026-01-02T03:04:05Z'],
    ['%Y-%m-%d %H:%M:%S,%L', '2026-01-02 03:04:05,25', '2026-01-02T03:04:05.25Z'],
    ['%Y-%m-%d %H:%M:%S:%L', '2026-01-02 03:04:05:007 x', '2026-01-02T03:04:05.007Z'],
    ['%b %d %H:%M:%S', 'Feb  3 04:05:06 2020', `${year}-02-03T04:05:06Z`],
    ['%d/%b/%Y:%H:%M:%S %z', '02/Jan/2026:03:04:05 +0100', '2026-01-02T02:04:05Z'],
    ['%s.%L', '1767323045.5s', '2026-01-02T03:04:05.5Z'],
    ['%Y-%m-%d %H:%M:%S %Z', '2026-01-02 03:04:05 UTC', '2026-01-02T03:04:05Z'],
    ['%a, %d %b %Y %H:%M:%S %Z', 'Fri, 02 Jan 2026 03:04:05 GMT', '2026-01-02T03:04:05Z'],
  ].map(
    ([format = '', time = '', timestamp = '']): Case => [
      `a time of the format ${format}, with ${time}`,
      ['Format json', 'Time_Key t', `Time_Format ${format}`],
      JSON.stringify({ t: time, m: 'x' }),
      { m: 'x', timestamp },
    ],
  ),
  [
    'a time of another format, which the parser of JSON keeps',
    ['Format json', 'Time_Key t', 'Time_Format %Y-%m-%d'],
    '{"t":"today"}',
    { t: 'today', timestamp: '2020-01-01T00:00:00Z' },
  ],
  [
    'a time of another format, which the parser of expressions removes',
    ['Format regex', 'Regex ^(?<t>\\S+) (?<m>.*)$', 'Time_Key t', 'Time_Format %Y-%m-%d'],
    'today x',
    { m: 'x', timestamp: '2020-01-01T00:00:00Z' },
  ],
  [
    'truths, of which what begins a text counts; other texts stay',
    ['Format logfmt', 'Types a:bool b:bool c:bool'],
    'a=TRUEish b=false c=yes',
    { a: true, b: false, c: 'yes' },
  ],
  ['types of JSON, which keeps its own', ['Format json', 'Types n:integer'], '{"n":"12ms"}', { n: '12ms' }],
  [
    'JSON within a field, next to other fields',
    ['Format json', 'Decode_Field json p'],
    '{"p":"{\\"a\\":1}","b":2}',
    { p: '{"a":1}', a: 1, b: 2 },
  ],
  [
    'JSON within a field, in its place',
    ['Format regex', 'Regex ^(?<p>.*)$', 'Decode_Field_As escaped_utf8 p do_next', 'Decode_Field_As json p'],
    '{\\"a\\":1}',
    { p: { a: 1 } },
  ],
])('%s', async (_, parser, message, expected) => {
  const { document, resource, gaps } = parsed(...parser)
  expect(gaps).toEqual([])
  withTest(document, resource, { message, timestamp: '2020-01-01T00:00:00Z' }, expected)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  [['Parser docker'], true],
  [['Parser cri'], false],
  [['multiline.parser docker'], true],
])('pods with %j: the record contains the time: %j', (lines, expected) => {
  const { resource } = convert(
    sections({
      INPUT: ['Name tail', 'Path /var/log/containers/*.log', 'Tag kube.*', ...lines],
      OUTPUT: ['Name null', 'Match *'],
    }),
  )
  const source: string = resource.spec.transforms[0].config.source
  expect(source.includes('"time": format_timestamp(')).toBe(expected)
})

const search = (...lines: readonly string[]) =>
  convert(
    sections({
      INPUT: ['Name tail', 'Path /srv/a.log', 'Tag a'],
      FILTER: ['Name record_modifier', 'Match *', 'Record a b'],
      OUTPUT: ['Name es', 'Match a', ...lines],
    }),
  )

test('the name of an index can contain a date, and a field with a prefix', async () => {
  const dated = search('Index app-%Y.%m', 'storage.total_limit_size 5G', 'net.keepalive off')
  expect(dated.gaps).toEqual([])
  expect(dated.resource.spec.sinks[0].config).toMatchObject({
    bulk: { index: 'app-%Y.%m' },
    buffer: { type: 'disk', max_size: 5_000_000_000 },
  })
  const { resource, document, gaps } = search(
    'Logstash_Format On',
    "Logstash_Prefix_Key $kubernetes['ns']",
    'Logstash_Prefix rest',
    'Generate_ID On',
  )
  expect(gaps).toEqual([])
  expect(resource.spec.sinks[0].config).toMatchObject({
    bulk: { index: '{{ %logstash_prefix }}-%Y.%m.%d' },
    id_key: '_id',
  })
  withTest(document, resource, { message: 'x', kubernetes: { ns: 'shop' } }, { log: 'x', a: 'b' })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})
