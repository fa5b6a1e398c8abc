// The parsers and writers of line formats: syslog, key-value, logfmt, csv, web server logs.

import { expect, test } from 'vitest'
import { Timestamp } from '../event/timestamp.ts'
import { parseCombinedLog, parseCommonLog, parseErrorLog } from './common-log.ts'
import { compileCsvWriter, parseCsv, parseCsvRecord, standardCsv } from './csv.ts'
import { strftime } from './datetime.ts'
import { parseKeyValue, writeKeyValue } from './key-value.ts'
import { parseLogfmt, writeLogfmt } from './logfmt.ts'
import { parseSyslog } from './syslog.ts'
import { utc } from './timezone.ts'

const june = Date.UTC(2026, 5, 1)
const january = Date.UTC(2026, 0, 2)
const plain = (value: unknown): unknown => JSON.parse(JSON.stringify(value ?? null))

test.each([
  [
    '<150>1 2023-07-08T09:10:13.000001+05:30 198.51.100.77 meter 99 - - ## that',
    {
      appname: 'meter',
      facility: 'local2',
      hostname: '198.51.100.77',
      message: '## that',
      procid: 99,
      severity: 'info',
      timestamp: '2023-07-08T03:40:13.000001Z',
      version: 1,
    },
  ],
  [
    '<190>1 2024-01-01T00:00:00Z h app 1 2 [a@1 x="y \\"q\\""][b@2 z="w"] msg',
    {
      'a@1': { x: 'y "q"' },
      'b@2': { z: 'w' },
      appname: 'app',
      facility: 'local7',
      hostname: 'h',
      message: 'msg',
      msgid: '2',
      procid: 1,
      severity: 'info',
      timestamp: '2024-01-01T00:00:00Z',
      version: 1,
    },
  ],
  [
    '<13>1 2020-03-13T20:45:38Z h a - - [x@1 iut="3" source= "A" id="1]"] m',
    {
      appname: 'a',
      facility: 'user',
      hostname: 'h',
      message: 'm',
      severity: 'notice',
      timestamp: '2020-03-13T20:45:38Z',
      version: 1,
      'x@1': { id: '1]', iut: '3', source: 'A' },
    },
  ],
  [
    '<0>1 2024-01-01T00:00:00Z - - - - -',
    { facility: 'kern', message: '', severity: 'emerg', timestamp: '2024-01-01T00:00:00Z', version: 1 },
  ],
  [
    "<34>Oct 11 22:14:15 mymachine su: 'su root' failed",
    {
      appname: 'su',
      facility: 'auth',
      hostname: 'mymachine',
      message: "'su root' failed",
      severity: 'crit',
      timestamp: '2026-10-11T22:14:15Z',
    },
  ],
  [
    '<133>Jun 13 16:33:35 haproxy[73411]: Proxy started.',
    {
      appname: 'haproxy',
      facility: 'local0',
      message: 'Proxy started.',
      procid: 73411,
      severity: 'notice',
      timestamp: '2026-06-13T16:33:35Z',
    },
  ],
  [
    'Sep  2 13:14:15 gatehouse sshd[22x]: Failed: password',
    {
      appname: 'sshd',
      hostname: 'gatehouse',
      message: 'Failed: password',
      procid: '22x',
      timestamp: '2026-09-02T13:14:15Z',
    },
  ],
  ['not syslog at all', null],
  ['', null],
  ['<200>1 2024-01-01T00:00:00Z - - - - -', null],
  ['<34>Oct 32 22:14:15 mymachine su: x', null],
])('syslog: %s', (line, expected) => {
  expect(plain(parseSyslog(line, utc, june))).toEqual(expected)
})

test('a syslog line of December that arrives in January belongs to the last year', () => {
  expect(parseSyslog('<34>Dec 31 23:59:59 h a: x', utc, january)?.['timestamp']).toEqual(
    new Timestamp(Date.UTC(2025, 11, 31, 23, 59, 59), 0),
  )
})

const standard = { keyValueDelimiter: '=', fieldDelimiter: ' ', lenient: true, standaloneKeys: true }

test.each([
  ['a=1 b=two c="three four"', {}, { a: '1', b: 'two', c: 'three four' }],
  ['a=1 standalone b=2', {}, { a: '1', b: '2', standalone: true }],
  ['  a=1   b=2  ', {}, { a: '1', b: '2' }],
  ['a==1', {}, { a: '=1' }],
  ['"quoted key"=v', {}, { 'quoted key': 'v' }],
  ['a=\'x y\' b="q \\"z\\""', {}, { a: 'x y', b: 'q "z"' }],
  ['a=1 a=2 a=3', {}, { a: ['1', '2', '3'] }],
  ['', {}, null],
  ['=v', {}, { '=v': true }],
  ['k="a=b c"', {}, { k: 'a=b c' }],
  ['a=1 flag b=2', { standaloneKeys: false }, { a: '1', 'flag b': '2' }],
  ['flag', { standaloneKeys: false }, null],
  ['a = 1', { lenient: false }, { '1': true, a: '' }],
  ['a = 1', {}, { a: '1' }],
  ['a:1 , b:"2,3",c:4', { keyValueDelimiter: ':', fieldDelimiter: ',' }, { a: '1', b: '2,3', c: '4' }],
])('key-value: %s', (text, form, expected) => {
  expect(plain(parseKeyValue(text, { ...standard, ...form }))).toEqual(expected)
})

test('key-value text of nested fields', () => {
  const fields = { é: 'ü ö', a: { b: { c: 1 } }, l: [1, 'x'], n: null, e: '', q: 'a"b\nc', t: true, f: 1e-9 }
  expect(
    writeKeyValue(fields, { keyValueDelimiter: '=', fieldDelimiter: ' ', first: ['n', 'zz'], flattenBoolean: false }),
  ).toBe('n=null a.b.c=1 e= f=0.000000001 l.0=1 l.1=x q="a\\"b\\\\nc" t=true é="ü ö"')
})

test('logfmt both ways', () => {
  expect(writeLogfmt({ a: { b: 1 }, msg: 'hi there', ok: true, no: false })).toBe('a.b=1 msg="hi there" ok')
  expect(parseLogfmt('a.b=1 msg="hi there" ok')).toEqual({ 'a.b': '1', msg: 'hi there', ok: true })
})

test.each([
  ['a,b,c', ['a', 'b', 'c']],
  ['a\nb', ['a']],
  [',,', ['', '', '']],
  ['"unterminated', ['unterminated']],
  [' a , b ', [' a ', ' b ']],
  ['a,"b\nc"', ['a', 'b\nc']],
  ['"a ""b"""', ['a "b"']],
  ['', []],
])('csv record: %j', (text, columns) => {
  expect(parseCsvRecord(text)).toEqual(columns)
})

test('csv records', () => {
  expect(parseCsv('a,b\r\n"1\n2",3\n\n4,5')).toEqual([
    ['a', 'b'],
    ['1\n2', '3'],
    ['4', '5'],
  ])
})

test.each([
  ['necessary', '"hi, ""x""",7,'],
  ['always', '"hi, ""x""","7",""'],
  ['non_numeric', '"hi, ""x""",7,""'],
  ['never', 'hi, "x",7,'],
] as const)('csv columns quoted as %s', (quoteStyle, record) => {
  expect(compileCsvWriter({ ...standardCsv, quoteStyle })(['hi, "x"', '7', ''])).toBe(record)
})

const clf = strftime('%d/%b/%Y:%T %z')

test('a line of the common log format', () => {
  const line = '198.51.100.23 - mira [03/Apr/2023:08:09:10 +0200] "PUT /tank/7?x=1 HTTP/1.1" 204 5120'
  expect(plain(parseCommonLog(line, clf, utc))).toEqual({
    host: '198.51.100.23',
    message: 'PUT /tank/7?x=1 HTTP/1.1',
    method: 'PUT',
    path: '/tank/7?x=1',
    protocol: 'HTTP/1.1',
    size: 5120,
    status: 204,
    timestamp: '2023-04-03T06:09:10Z',
    user: 'mira',
  })
  expect(parseCommonLog('- - - - - - -', clf, utc)).toEqual({})
  for (const bad of ['bad line', '', '1.2.3.4 - u [29/Feb/2023:00:00:00 +0000] "GET / HTTP/1.1" 200 1']) {
    expect(parseCommonLog(bad, clf, utc)).toHaveProperty('problem')
  }
})

test('a line of the combined log format', () => {
  const line = '::1 ident - [01/Jan/2024:00:00:00 +0000] "POST / HTTP/2" 500 - "-" "-"'
  expect(plain(parseCombinedLog(line, clf, utc))).toEqual({
    host: '::1',
    identity: 'ident',
    message: 'POST / HTTP/2',
    method: 'POST',
    path: '/',
    protocol: 'HTTP/2',
    referrer: '-',
    status: 500,
    timestamp: '2024-01-01T00:00:00Z',
  })
})

test('ignores everything after the user agent, and rejects a user agent that begins with a dash', () => {
  const line = '::1 - u [01/Jan/2024:00:00:00 +0000] "POST /a\\"b HTTP/2 " 500 - " r" '
  expect(parseCombinedLog(`${line}"a b" more`, clf, utc)).toMatchObject({ agent: 'a b', referrer: 'r', path: '/a\\"b' })
  expect(parseCombinedLog(`${line}"-a"`, clf, utc)).not.toHaveProperty('agent')
})

test.each([
  [
    '[01/Mar/2021:12:00:19 +0000] [ab:alert] [pid 4803:tid 3814] [client 147.159.108.175:24259] I will bypass it',
    {
      client: '147.159.108.175',
      message: 'I will bypass it',
      module: 'ab',
      pid: 4803,
      port: 24259,
      severity: 'alert',
      thread: '3814',
      timestamp: '2021-03-01T12:00:19Z',
    },
  ],
  [
    '[01/Mar/2021:12:00:19 +0000] [proxy:error] [pid 1:tid 2] (70007)Too late: [client 10.0.0.1:80] AH01075: Error',
    {
      client: '10.0.0.1',
      message1: '(70007)Too late: ',
      message2: 'AH01075: Error',
      module: 'proxy',
      pid: 1,
      port: 80,
      severity: 'error',
      thread: '2',
      timestamp: '2021-03-01T12:00:19Z',
    },
  ],
  [
    '[01/Mar/2021:12:00:19 +0000] [a:error] [pid 1] [client ::1:80]  two blanks  ',
    {
      client: '::1',
      message: ' two blanks  ',
      module: 'a',
      pid: 1,
      port: 80,
      severity: 'error',
      timestamp: '2021-03-01T12:00:19Z',
    },
  ],
  ['- - - - text', { message: 'text' }],
])('error log: %s', (line, expected) => {
  expect(plain(parseErrorLog(line, clf, utc))).toEqual(expected)
})

test('the time for long lines without a delimiter grows linearly', () => {
  const words = 'word '.repeat(50_000).trim()
  expect(parseLogfmt(words)).toEqual({ word: true })
})
