// Parsers of Fluentd: the record that Fluentd would create from a line of a file.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFluentd } from './convert.ts'

const convert = (parse: string, more = '') =>
  converted(convertFluentd, [
    {
      file: 'fluent.conf',
      text: `<source>\n  @type tail\n  path /srv/a.log\n  tag a\n  <parse>\n${parse.replace(/^/gm, '    ')}\n  </parse>\n</source>\n<match a>\n  @type stdout\n${more}</match>\n`,
    },
  ])

const year = new Date().getUTCFullYear()
const today = new Date().toISOString().slice(0, 10)

test.each([
  [
    'columns with types and a time',
    '@type tsv\nkeys time,host,bytes\ntime_key time\ntypes bytes:integer',
    '2026-01-02T03:04:05Z\tweb\t17 bytes',
    { host: 'web', bytes: 17, timestamp: '2026-01-02T03:04:05Z' },
  ],
  [
    'a column named time, without the option for it, and quotes in a column',
    '@type tsv\nkeys time,b,c',
    'x\t"y\tz\tw"',
    { time: 'x', b: '"y', c: 'z\tw"' },
  ],
  ['fewer columns than names', '@type csv\nkeys a,b,c', 'x,', { a: 'x', b: null, c: null }],
  ['more columns than names', '@type csv\nkeys a', '"x,y",z', { a: 'x,y' }],
  ['members in quotes, and a part without a name', '@type ltsv', 'a:"x y"\tb\tc::', { a: '"x y"', c: ':' }],
  [
    'an empty group, and one that is not part of the match',
    '@type regexp\nexpression /^(?<a>\\w+)(?:=(?<b>\\w+))? ?(?<c>.*)$/',
    'x',
    { a: 'x', c: '' },
  ],
  [
    'texts that become null before they become numbers',
    '@type regexp\nexpression /^(?<a>\\S+) (?<b>\\S+)$/\nnull_value_pattern ^-$\ntypes a:integer,b:integer',
    '- 5',
    { a: null, b: 5 },
  ],
  ['types as an object', '@type csv\nkeys a,b\ntypes {"a":"integer","b":"bool"}', '7,yes', { a: 7, b: true }],
  [
    'a format of the time for web servers',
    '@type nginx\ntime_format %Y-%m-%dT%H:%M:%S%z',
    '10.0.0.1 - - [2026-01-02T03:04:05+0000] "GET /a HTTP/1.1" 200 5 "-" "curl"',
    { code: '200', referer: '-', timestamp: '2026-01-02T03:04:05Z' },
  ],
  [
    'a time with a date alone',
    '@type json\ntime_format %Y-%m-%d',
    '{"a":1,"time":"2026-01-02"}',
    { a: 1, timestamp: '2026-01-02T00:00:00Z' },
  ],
  [
    'a time with a date alone, in a zone',
    '@type json\ntime_format %d.%m.%Y\ntimezone +0200',
    '{"time":"02.01.2026"}',
    { timestamp: '2026-01-01T22:00:00Z' },
  ],
  [
    'a time with an hour alone',
    '@type json\ntime_format %Y%m%d%H',
    '{"a":1,"time":"2026010205"}',
    { a: 1, timestamp: '2026-01-02T05:00:00Z' },
  ],
  [
    'a time of the current day',
    '@type json\ntime_format %H:%M:%S',
    '{"a":1,"time":"03:04:05"}',
    { a: 1, timestamp: `${today}T03:04:05Z` },
  ],
  [
    'a line of a program of Kubernetes',
    '@type kubernetes',
    'I0204 07:32:30.020537    3368 server.go:1048] POST /stats',
    {
      severity: 'I',
      pid: '3368',
      source: 'server.go:1048',
      message: 'POST /stats',
      timestamp: `${year}-02-04T07:32:30.020537Z`,
    },
  ],
  [
    'lines of a program of Kubernetes',
    '@type multiline_kubernetes',
    'W0204 07:32:30.020537    3368 server.go:1048] one\n  two',
    { severity: 'W', message: 'one\n  two' },
  ],
  [
    'syslog of RFC 5424',
    '@type syslog\nmessage_format rfc5424\nwith_priority true',
    '<34>1 2026-01-02T03:04:05.678Z web app 7 ID1 [a@1 b="c"] text here',
    { pri: 34, host: 'web', ident: 'app', pid: '7', msgid: 'ID1', extradata: '[a@1 b="c"]', message: 'text here' },
  ],
  [
    'syslog in either form: the new one',
    '@type syslog\nmessage_format auto\nwith_priority true',
    '<34>1 2026-01-02T03:04:05Z web app - - - text',
    { pri: 34, pid: '-', extradata: '-', message: 'text', timestamp: '2026-01-02T03:04:05Z' },
  ],
  [
    'syslog in either form: the old one',
    '@type syslog\nmessage_format auto\nwith_priority true\nutc true',
    '<13>Feb  3 04:05:06 web app: text',
    { pri: 13, ident: 'app', message: 'text', timestamp: `${year}-02-03T04:05:06Z` },
  ],
  [
    'several lines, of which the last part has a line feed',
    '@type multiline\nformat_firstline /^\\d/\nformat1 /^(?<n>\\d+) /\nformat2 /(?<rest>.*)/\ntypes n:integer',
    '7 a\n  b',
    { n: 7, rest: 'a\n  b' },
  ],
  [
    'seconds with a fraction keep all digits',
    '@type json',
    '{"time":1767323045.123456,"a":1}',
    { a: 1, timestamp: '2026-01-02T03:04:05.123456Z' },
  ],
  [
    'a text for a number of seconds counts by its first digits, as in Fluentd',
    '@type json',
    '{"time":"2026-01-02T03:04:05Z","a":1}',
    { 'time == null && .a': 1, timestamp: '1970-01-01T00:33:46Z' },
  ],
  [
    'a time without a format, with a comma',
    '@type regexp\nexpression /^(?<time>\\S+ \\S+) (?<m>.*)$/',
    '2026-01-02 03:04:05,678 x',
    { m: 'x', timestamp: '2026-01-02T03:04:05.678Z' },
  ],
  [
    'a line of a container runtime in a file of another folder',
    '@type cri',
    '2026-01-02T03:04:05.678901Z stderr F x y',
    {
      stream: 'stderr',
      logtag: 'F',
      message: 'x y',
      time: '2026-01-02T03:04:05.678901Z',
      timestamp: '2026-01-02T03:04:05.678901Z',
    },
  ],
  [
    'numbers of logfmt, with a type for one of them',
    '@type logfmt\ntypes c:string',
    'a=14 b=0.5 c=7 d=x1 e',
    { a: 14, b: 0.5, c: '7', d: 'x1', e: true },
  ],
  ['a line in a field of its own', '@type none\nmessage_key raw', 'x y', { raw: 'x y' }],
  [
    'several forms of time: seconds',
    '@type json\ntime_key at\ntime_type mixed\ntime_format_fallbacks unixtime, %Y-%m-%d %H:%M:%S\nutc true',
    '{"at":1767323045,"a":1}',
    { a: 1, timestamp: '2026-01-02T03:04:05Z' },
  ],
  [
    'several forms of time: a text',
    '@type json\ntime_key at\ntime_type mixed\ntime_format_fallbacks unixtime, %Y-%m-%d %H:%M:%S\ntimezone +0900',
    '{"at":"2026-01-02 12:04:05","a":1}',
    { a: 1, timestamp: '2026-01-02T03:04:05Z' },
  ],
  [
    'members with custom delimiters',
    '@type ltsv\ndelimiter_pattern /\\s+/\nlabel_delimiter =\ntypes n:float,l:array:|',
    'n=1.5x   l=a|b',
    { n: 1.5 },
  ],
  [
    'JSON with values that stand for none',
    '@type json\nnull_value_pattern ^-$\nnull_empty_string true\ntypes ok:bool',
    '{"a":"-","b":"","c":"x","ok":"yes"}',
    { a: null, b: null, c: 'x', ok: true },
  ],
  [
    'Apache, with null for fields that are not there',
    '@type apache2',
    '10.0.0.1 - - [02/Jan/2026:03:04:05 +0000] "GET /a HTTP/1.1" 200 -',
    {
      host: '10.0.0.1',
      user: null,
      code: 200,
      size: null,
      path: '/a',
      referer: null,
      timestamp: '2026-01-02T03:04:05Z',
    },
  ],
  [
    'syslog, whose times have no year',
    '@type syslog\nutc true',
    'Feb  3 04:05:06 web app[7]: text',
    { host: 'web', ident: 'app', pid: '7', message: 'text', timestamp: `${year}-02-03T04:05:06Z` },
  ],
  [
    'a time without a zone',
    '@type regexp\nexpression /^(?<at>\\S+ \\S+) (?<m>.*)$/\ntime_key at\ntime_format %Y-%m-%d %H:%M:%S\ntimezone +0900\nkeep_time_key true',
    '2026-01-02 03:04:05 x',
    { at: '2026-01-02 03:04:05', m: 'x', timestamp: '2026-01-01T18:04:05Z' },
  ],
  [
    'grok, the first of several patterns',
    '@type grok\n<grok>\n  pattern %{IP:ip} never\n</grok>\n<grok>\n  pattern %{WORD:verb} %{NUMBER:n:integer}\n</grok>',
    'GET 12',
    { verb: 'GET', n: 12 },
  ],
  [
    'grok without a match',
    '@type grok\ngrok_pattern %{IP:ip} never\ngrok_failure_key failed',
    "it's",
    { message: "it's", failed: 'No grok pattern matched' },
  ],
])('%s', async (_, parse, message, expected) => {
  const { document, resource, gaps } = convert(parse)
  expect(gaps).toEqual([])
  withTest(document, resource, { message, timestamp: '2020-01-01T00:00:00Z' }, expected)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

const dated = '@type regexp\nexpression /^(?<at>\\S+) (?<m>.*)$/\ntime_key at\ntime_format %Y-%m-%d'

test.each([
  ['a line', dated],
  ['a line of JSON', '@type json\ntime_key at\ntime_format %Y-%m-%d'],
  ['a line with several forms of time', '@type json\ntime_key at\ntime_type mixed\ntime_format_fallbacks %Y,%H:%M'],
])('%s whose time is not valid is dropped', async (_, parse) => {
  const { document, resource, gaps } = convert(parse)
  expect(gaps).toEqual([])
  const message = parse.includes('json') ? '{"at":"soon","a":1}' : 'soon x'
  withTest(document, resource, { message, timestamp: '2020-01-01T00:00:00Z' }, undefined)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('the next parser of several reads a line whose time is not valid', async () => {
  const patterns = [dated, '@type none'].map((lines) => `<pattern>\n${lines.replace('@type', 'format')}\n</pattern>`)
  const { document, resource } = convert(`@type multi_format\n${patterns.join('\n')}`)
  withTest(document, resource, { message: 'soon x', timestamp: '2020-01-01T00:00:00Z' }, { message: 'soon x' })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

const parsing = (more: string, parse: string) =>
  converted(convertFluentd, [
    {
      file: 'fluent.conf',
      text: `<source>\n  @type tail\n  path /srv/a.log\n  tag a\n  <parse>\n    @type json\n  </parse>\n</source>\n<filter a>\n  @type parser\n  key_name m\n${more}\n  <parse>\n${parse}\n  </parse>\n</filter>\n<match a>\n  @type stdout\n</match>\n`,
    },
  ])

test.each<[about: string, more: string, parse: string, record: object, expected: Record<string, unknown> | undefined]>([
  [
    'without the field, no expression matches',
    'reserve_data true',
    '@type regexp\nexpression /^(?<x>.*)$/',
    { a: 1 },
    { a: 1, x: null },
  ],
  ['without the field, an event is dropped', '', '@type none', { a: 1 }, undefined],
  [
    'with a time that is not valid, an event is dropped even if others stay',
    'reserve_data true',
    dated,
    { m: 'soon x' },
    undefined,
  ],
  ['a text that does not match stays', 'reserve_data true', dated, { m: 'soon' }, { m: 'soon' }],
])('a filter parser: %s', async (_, more, parse, record, expected) => {
  const { document, resource, gaps } = parsing(more, parse)
  expect(gaps).toEqual([])
  withTest(document, resource, { message: JSON.stringify(record), timestamp: '2020-01-01T00:00:00Z' }, expected)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  ['retry_max_times 7', { request: { retry_attempts: 7 } }],
  ['retry_max_times 7\nretry_forever true', {}],
  ['@type file\npath /x\ntotal_limit_size 5G', { buffer: { type: 'disk', max_size: 5_368_709_120 } }],
  ['@type file\npath /x\ntotal_limit_size 1m', { buffer: { type: 'disk', max_size: 268_435_488 } }],
  ['buffer_chunk_limit 2m', { batch: { max_bytes: 2_097_152 } }],
])('a buffer with %j', async (lines, expected) => {
  const match = `<source>\n  @type tail\n  path /srv/a\n  tag a\n  <parse>\n    @type none\n  </parse>\n</source>\n<match a>\n  @type http\n  endpoint http://x\n  <buffer>\n${lines.replace(/^/gm, '    ')}\n  </buffer>\n</match>\n`
  const { document, resource, gaps } = converted(convertFluentd, [{ file: 'fluent.conf', text: match }])
  expect(gaps).toEqual([])
  const { uri: _, encoding: __, framing: ___, ...rest } = resource.spec.sinks[0].config
  expect(rest).toEqual(expected)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

// With another key, the time of the line is a field like any other.
test.each(['time', 'at'])('pods keep the time field of the line with the key %s', (key) => {
  const text = `<source>\n  @type tail\n  path /var/log/containers/*.log\n  tag kube.*\n  format json\n  time_key ${key}\n  keep_time_key true\n</source>\n<match **>\n  @type stdout\n</match>\n`
  const { resource } = converted(convertFluentd, [{ file: 'fluent.conf', text }])
  expect(resource.spec.transforms[0].config.source).toContain('"time": format_timestamp(')
})

test.each([
  ['the time stays in the record', '', 'x', { message: 'x', logtag: 'F', time: '2026-01-02T03:04:05.500Z' }],
  ['the time may go', 'keep_time_key false', 'x', { 'time == null && .message': 'x' }],
  [
    'an inner parser reads the text',
    '<parse>\n@type json\n</parse>',
    '{"a":1}',
    { 'time == null && .a': 1, logtag: 'F' },
  ],
  ['a text that an inner parser does not read is dropped', '<parse>\n@type json\n</parse>', 'x', undefined],
])('the parser cri of pods: %s', async (_, more, message, expected) => {
  const text = `<source>\n  @type tail\n  path /var/log/containers/*.log\n  tag kube.*\n  <parse>\n@type cri\n${more}\n  </parse>\n</source>\n<match **>\n  @type stdout\n</match>\n`
  const { document, resource, gaps } = converted(convertFluentd, [{ file: 'fluent.conf', text }])
  expect(gaps).toEqual([])
  withTest(document, resource, { message, stream: 'stdout', timestamp: '2026-01-02T03:04:05.5Z' }, expected)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('the first line of a program of Kubernetes begins an event', () => {
  expect(convert('@type multiline_kubernetes').resource.spec.sources[0].config.multiline).toMatchObject({
    start_pattern: '^\\w\\d{4}',
    mode: 'halt_before',
  })
})
