// Parsers of documents and patterns: XML, YAML, CBOR, Ruby hashes, line protocol, grok, search queries, and small codecs.

import { expect, test } from 'vitest'
import { Float } from '../event/value.ts'
import { parseCbor } from './cbor.ts'
import { encodeCharset, findDecoder } from './charset.ts'
import { classicPatterns, compileExtendedGrok, compileGrok } from './grok.ts'
import { extendedPatterns } from './grok-patterns.ts'
import { xxh3, xxh3Wide, xxh32, xxh64 } from './hash.ts'
import { parseInfluxLines } from './influxdb.ts'
import { ipText, parseIp } from './ip.ts'
import { compressBlock, decompressBlock, decompressFrame } from './lz4.ts'
import { decodeLabel, encodeLabel } from './punycode.ts'
import { parseRubyHash } from './ruby-hash.ts'
import { compileSearchQuery } from './search-query.ts'
import { parseXml } from './xml.ts'
import { parseYaml } from './yaml-value.ts'

const xml = {
  trim: true,
  includeAttributes: true,
  attributePrefix: '@',
  textKey: 'text',
  alwaysUseTextKey: false,
  parseBoolean: true,
  parseNull: true,
  parseNumber: true,
}

test.each([
  ['<a><b>1</b><b>2</b></a>', { a: { b: [1, 2] } }],
  ['<a b="1"/>', { a: { '@b': '1' } }],
  ['<a> <b> x </b> </a>', { a: { b: ' x ' } }],
  ['<n:a xmlns:n="u"><![CDATA[<x>&]]>&lt;&#233;</n:a>', { a: '<x>&<é' }],
  ['<?xml version="1.0"?><!-- c --><r>a<i/>b</r>', { r: { i: {}, text: ['a', 'b'] } }],
  ['<a>t<!-- c --></a>', { a: { text: 't' } }],
  ['<a>t<!-- c -->u</a>', { a: { text: ['t', 'u'] } }],
  ['<a>&#32;</a>', { a: ' ' }],
  ['<a> <b/>\r\n </a>', { a: { b: {} } }],
  [
    '<a><b>inf</b><b>NaN</b><b>+5</b><b>-1e2</b></a>',
    { a: { b: [Number.POSITIVE_INFINITY, new Float(0), 5, new Float(-100)] } },
  ],
  ['<a b="x\ty&#9;" xml:lang="en"/>', { a: { '@b': 'x y\t', '@lang': 'en' } }],
  // Document types, undeclared namespace prefixes and invalid names are rejected.
  ['<!DOCTYPE r><r/>', undefined],
  ['<p:a/>', undefined],
  ['<a p:b="1"/>', undefined],
  ['<1a/>', undefined],
  ['<a>\u0001</a>', undefined],
  ['<a>', undefined],
  ['<a></b>', undefined],
  ['<a>&unknown;</a>', undefined],
  ['nope', undefined],
  ['<a/><b/>', undefined],
  [`${'<a>'.repeat(500)}${'</a>'.repeat(500)}`, undefined],
])('XML: %s', (text, value) => {
  expect(parseXml(text, xml)).toEqual(value)
})

test.each([
  ['a: yes\nb: 017\nc: 2024-01-01\nd: 0x1F\ne: "1"', { a: 'yes', b: '017', c: '2024-01-01', d: 31, e: '1' }],
  ['a: &x [1]\nb: *x', { a: [1], b: [1] }],
  ['1: x\ntrue: y', { '1': 'x', true: 'y' }],
  ['', null],
])('YAML: %j', (text, value) => {
  expect(parseYaml(text)).toEqual({ value })
})

test('invalid YAML, or YAML with huge aliases, is a problem', () => {
  // Lone surrogates, in values and keys.
  expect(parseYaml('{"a\\uDFFEb": ["\\uD800", "\\uD83D\\uDE00"]}')).toEqual({ value: { 'a\ufffdb': ['\ufffd', '😀'] } })
  expect(parseYaml('bad: : x')).toHaveProperty('problem')
  const levels = Array.from({ length: 12 }, (_, index) => `a${index + 1}: &a${index + 1} [${`*a${index},`.repeat(10)}]`)
  expect(parseYaml(`a0: &a0 [x]\n${levels.join('\n')}`)).toHaveProperty('problem')
})

test.each([
  ['83f4f6fb3ff8000000000000', { value: [false, null, 1.5] }],
  ['bf6161019f0203ffff', undefined],
  ['bf6161019fff', undefined],
  ['bf6161186461629f0203ffff', { value: { a: 100, b: [2, 3] } }],
  ['f93e00', { value: 1.5 }],
  ['9bffffffffffffffff', undefined],
])('CBOR: %s', (hex, value) => {
  if (value === undefined) expect(parseCbor(Buffer.from(hex, 'hex'))).toHaveProperty('problem')
  else expect(parseCbor(Buffer.from(hex, 'hex'))).toEqual(value)
})

test('Ruby hashes', () => {
  expect(parseRubyHash('{ :a => "x\\"y", "b" => [nil, true], c: {} }')).toEqual({ a: 'x\\"y', b: [null, true], c: {} })
  expect(parseRubyHash('{:\'a b\': :"c", 1=>[ ]}')).toEqual({ 'a b': 'c', 1: [] })
  for (const bad of ['{ a: }', ' {}', '{a: 1,}', '{a: [1,]}', '{"a" 1}', '{a: "\\n"}', '{a: x}']) {
    expect(parseRubyHash(bad)).toBeUndefined()
  }
  expect(parseRubyHash('[1]')).toBeUndefined()
})

test('line protocol', () => {
  expect(parseInfluxLines('m\\ x,t=a\\,b f=1i,g="q\\"" 5')).toEqual([
    {
      measurement: 'm x',
      tags: [['t', 'a,b']],
      fields: [
        ['f', 1],
        ['g', 'q\\"'],
      ],
      timestamp: 5n,
    },
  ])
})

test.each([
  ['m f=1 7 ', [['f', 1]]],
  [
    ' \t# a comment\n\n m a=-2i,b=3u,c=1.5,d=2e+3,e=-0.5E-1,i=1e5,j=-2E1,g=t,h=FALSE',
    [
      ['a', -2],
      ['b', 3],
      ['c', 1.5],
      ['d', 2000],
      ['e', -0.05],
      ['i', 100_000],
      ['j', -20],
      ['g', true],
      ['h', false],
    ],
  ],
])('line protocol: the fields of %j', (text, fields) => {
  expect(parseInfluxLines(text)).toMatchObject([{ fields }])
})

test('line protocol: a comma in front of the fields means that there are tags, even if there are none', () => {
  expect(parseInfluxLines('m, f=1\nm f=1')).toMatchObject([{ tags: [] }, { tags: undefined }])
})

test('line protocol: a backslash stays unless it escapes a delimiter or another backslash', () => {
  const [line] = parseInfluxLines(String.raw`a\=b\ c,\\k\n=v\,w f\ g=1`) as { measurement: string }[]
  expect(line).toMatchObject({
    measurement: String.raw`a\=b c`,
    tags: [[String.raw`\k\n`, 'v,w']],
    fields: [['f g', 1]],
  })
})

test.each([
  'm f=',
  'm f=1e',
  'm f=1e+',
  'm f=.5',
  'm f=1.',
  'm f=+1',
  'm f=1 ',
  'm f=1\r',
  'm f=1 9223372036854775808',
  'm f=9223372036854775808i',
  'm f=18446744073709551616u',
  'm f=trueish',
  'm,a f=1',
  'm,a= f=1',
  'm\\ f=1',
])('line protocol: %j is refused', (text) => {
  expect(parseInfluxLines(text)).toBeTypeOf('string')
})

test.each(Object.keys(classicPatterns()))('the pattern %s compiles', (name) => {
  expect(compileGrok(`%{${name}}`)).toMatchObject({ ok: true })
})

test('the classic library is complete', () => {
  expect(Object.keys(classicPatterns())).toHaveLength(320)
})

// The same results as the reference library.
test.each([
  ['%{GREEDYDATA:g}', 'foo\nbar', { g: 'foo' }],
  ['%{URI:u}', 'http://h:80/p', { port: '80', u: 'http://h:80/p' }],
  ['%{WORD:a} %{WORD:a}', 'one two', { a: 'one', 'a[1]': 'two' }],
  ['%{VERSION:v=\\d+\\.\\d+}', 'x 1.25', { v: '1.25' }],
  [
    '%{SYSLOGLINE}',
    'Oct 11 22:14:15 host app[123]: text',
    { timestamp: 'Oct 11 22:14:15', logsource: 'host', program: 'app', pid: '123', message: 'text' },
  ],
  [
    '%{SYSLOGPAMSESSION}',
    'Feb  8 13:37:01 jump sshd[1]: pam_unix(sshd:session): session opened for user anna by (uid=0)',
    {
      timestamp: 'Feb  8 13:37:01',
      logsource: 'jump',
      program: 'sshd',
      pid: '1',
      message: 'pam_unix(sshd:session): session opened for user anna by (uid=0)',
      pam_module: 'pam_unix',
      pam_caller: 'sshd:session',
      pam_session_state: 'opened',
      username: 'anna',
      pam_by: '(uid=0)',
    },
  ],
])('the classic pattern %s finds its fields', (pattern, text, expected) => {
  const grok = compileGrok(pattern)
  expect(grok.ok && grok.match(text)).toEqual(expected)
})

test.each(['', '%{NOPE}', '%{WORD:a b}', '(?s)a', '(a)\\1'])('the classic pattern %j is refused', (pattern) => {
  expect(compileGrok(pattern)).toMatchObject({ ok: false })
})

test.each(Object.keys(extendedPatterns))('the matcher %s compiles', (name) => {
  expect(compileExtendedGrok(`%{${name}:x}`, {})).toMatchObject({ ok: true })
})

test('a line of a web server matches its classic pattern', () => {
  const grok = compileGrok('%{COMBINEDAPACHELOG}')
  const line = '1.2.3.4 - bob [10/Oct/2000:13:55:36 -0700] "GET /a?b=c HTTP/1.0" 200 2326 "http://x/" "curl/8"'
  expect(grok.ok && grok.match(line)).toMatchObject({
    clientip: '1.2.3.4',
    auth: 'bob',
    timestamp: '10/Oct/2000:13:55:36 -0700',
    verb: 'GET',
    request: '/a?b=c',
    response: '200',
    bytes: '2326',
    agent: '"curl/8"',
  })
})

test.each([
  ['%{word:a.b} %{integer:n}', 'x 5', { a: { b: 'x' }, n: 5 }],
  ['%{data:k:keyvalue}', 'a=1 b="two words" c=true', { k: { a: 1, b: 'two words', c: true } }],
  ['%{data::keyvalue(": ")}', 'a: 1, b: x', { a: 1, b: 'x' }],
  ['%{data:l:array("[]", ",", integer)}', '[1,2]', { l: [1, 2] }],
  ['%{data:l:array("[]", ",", integer)}', '[1, 2]', {}],
  ['%{data:l:array("{}", ";", scale(10))}', '{1;2.1}', { l: [10, 21] }],
  ['%{data:l:array("", "-")}', '1-2', { l: ['1', '2'] }],
  ['%{data:l:array}', '[]', { l: [''] }],
  [
    '%{data::keyvalue}',
    '"k"=\'v\' a.b=1,a.c=07;d=08 e=null, f= g =h a.b=2',
    { k: 'v', a: { b: [1, 2], c: 7 }, d: '08' },
  ],
  ['%{data::keyvalue(":=", "", "<>")}', 'k1:=v k2:=</w> k3:="x"', { k1: 'v', k2: '/w' }],
  ['%{data::keyvalue("=", "", "", "|")}', 'a="1"|b=two', { a: '1', b: 'two' }],
  ['%{data::json}', '{"a.b": "c", "d": {"e": {}}, "f": null}', { a: { b: 'c' } }],
  ['%{data:x:json} %{notSpace:y:integer}', 'no no', {}],
  ['%{data:x:xml}', '<a b="1"><c>2</c></a>', { x: { a: { b: '1', c: '2' } } }],
  ['%{integerExt:n}%{data:x}', '-1e+2', { n: -100 }],
  ['%{number:n}', '10000000000000000', { n: 10000000000000000n }],
  ['%{data:x}', 'a\nb', { x: 'a\nb' }],
  ['(?-s)%{data:x} (?s)%{data:x}', 'a b\nc', { x: ['a', 'b\nc'] }],
  ['(?-m)%{data:x}', 'a\nb', undefined],
  ['(%{integer:n}|%{data:x["a b"].c})', 'abc', { x: { 'a b': { c: 'abc' } } }],
  ['%{date("dd/MMM/yyyy"):t}', '06/Mar/2013', { t: 1362528000000 }],
  ['%{date("yyyy-MM-dd\'T\'HH:mm:ss.SSSZ"):t}', '2016-09-02T15:02:29.648Z', { t: 1472828549648 }],
  ['%{date("EEE MMM dd HH:mm:ss yyyy", "UTC+5"):t}', 'Thu Jun 16 08:29:03 2016', { t: 1466047743000 }],
  ['%{date("EEE MMM dd HH:mm:ss yyyy", "-0300"):t}', 'Thu Jun 16 08:29:03 2016', { t: 1466076543000 }],
  ['%{date("yyyy-MM-dd HH:mm:ss,SSS"):t}', '2024-02-29 10:11:12,345', { t: 1709201472345 }],
  ['%{date("dd/MMM/yyyy:HH:mm:ss Z"):t}', '29/Feb/2024:10:11:12 +0100', { t: 1709197872000 }],
  ['%{date("yyyy-MM-dd HH:mm", "Europe/Rome"):t}', '2024-07-01 12:00', { t: 1719828000000 }],
  ['%{regex("[a-c]+"):x}%{notSpace:y}', 'abcd', { x: 'abc', y: 'd' }],
  ['%{integer:n:scale(10)}', '5', { n: 50 }],
  ['%{word:w}', 'two words', undefined],
  ['%{data:a} %{data:b}', 'one two three', { a: 'one two', b: 'three' }],
  ['%{qs:a} %{singleQuotedString:b}', `"a b" 'c'`, { a: '"a b"', b: "'c'" }],
  ['%{doubleQuotedString:a}%{data:b}', '"x\\"y"', { a: '"x\\"', b: 'y"' }],
  ['%{host:h}%{space}%{hostPort:p}', 'my_host  web-1.test:99999', { h: 'my_host', p: 'web-1.test:99999' }],
  ['%{ciscoMac:a} %{mac:b}', '00aa.11bb.22cc 0a:1b:2c:3d:4e:5f', { a: '00aa.11bb.22cc', b: '0a:1b:2c:3d:4e:5f' }],
  [
    '%{path:a} %{path:b} %{tty:c}',
    '/var/log/a.log C:\\x\\y /dev/pts/0',
    { a: '/var/log/a.log', b: 'C:\\x\\y', c: '/dev/pts/0' },
  ],
  ['%{uri:u}', 'https://me@host_1:8080/a/b?c=d', { u: 'https://me@host_1:8080/a/b?c=d' }],
  ['%{integerExt:n}', '15e-1', { n: 1 }],
  ['%{number:n:scale(1e3)}', '0.5', { n: 500 }],
  ['%{boolean:b}', 'boolean', { b: 'boolean' }],
  ['%{date("H:mm d/M/yy"):t}', '9:05 29/2/24', { t: 1709197500000 }],
  ['%{date("yyyy-MM-dd HH:mm:ss:SSS z"):t}', '2024-02-29 10:11:12:345 CET', { t: 1709197872345 }],
  ['%{date("yyyy-MM-dd HH:mm:ss z"):t}', '2024-02-29 10:11:12 NOWHERE', {}],
  ['%{date("yyyy-MM-dd HH:mm:ss.SSSSSS"):t}', '2024-02-29 10:11:12.345678', { t: 1709201472345 }],
  // A number has as many digits as the format has letters.
  ['%{date("H:mm"):t}', '10:30', undefined],
  ['%{date("ss.SSS"):t}', '12.3456', undefined],
])('grok: %s', (pattern, text, fields) => {
  const grok = compileExtendedGrok(pattern, {})
  if (!grok.ok) throw new TypeError(grok.problem)
  expect(grok.match(text)).toEqual(fields)
})

test('grok: a date without a year is not in the future', () => {
  const grok = compileExtendedGrok('%{date("d/M HH:mm:ss"):t}', {})
  const present = new Date()
  const given = grok.ok ? grok.match('31/12 23:59:59') : undefined
  expect([0, 1].map((back) => Date.UTC(present.getUTCFullYear() - back, 11, 31, 23, 59, 59))).toContain(given?.['t'])
  expect(given?.['t']).toBeLessThanOrEqual(Date.now())
})

test.each([
  '%{NOPE:x}',
  '%{word:x:nope}',
  '%{word',
  '%{date("QQ"):x}',
  '%{date("EE"):x}',
  '%{number:x:scale(-1)}',
  '(',
])('grok: %s is refused', (pattern) => {
  expect(compileExtendedGrok(pattern, {})).toMatchObject({ ok: false })
})

test('grok: a self-referencing alias is refused', () => {
  expect(compileExtendedGrok('%{a}', { a: 'x%{b}', b: '%{a}' })).toMatchObject({ ok: false })
})

test.each([
  ['service:(web OR api)', { service: 'api' }, true],
  ['-host:h* status:error', { host: 'x', status: 'error' }, true],
  ['NOT (@a:1 OR @b:2)', { b: 2 }, false],
  ['@n:[1 TO *]', { n: 5 }, true],
  ['@n:{1 TO 5}', { n: 5 }, false],
  ['env:prod*', { tags: ['env:production'] }, true],
  ['_missing_:host', {}, true],
  ['"a \\"b\\" y"', { message: 'x a "b" y' }, true],
  // Adjacent words are a phrase; the word before an operator does not belong to it.
  ['a b', { message: 'b a' }, false],
  ['a b AND c', { message: 'c b a' }, true],
  ['-a b', { message: 'b' }, true],
  ['@a:(x OR y)', { a: 'y' }, true],
  ['@a:(x y)', { a: 'x y' }, true],
  ['message:foo', { message: 'a foo b' }, true],
  ['foo', { custom: { title: 'a foo b' } }, true],
  ['é', { message: 'café' }, false],
  ['@n:x', { n: ['x'] }, false],
  ['_exists_:@a-b', { 'a-b': null }, true],
  ['tags:a', { tags: ['a'] }, true],
  ['b:["x" TO "z"]', { tags: ['a:x', 'b:y'] }, true],
  ['@n:>=1.5', { n: 2 }, true],
  ['*tor', { message: 'vec\ntor' }, true],
  ['*:*', {}, true],
  ['', {}, true],
  // An operator needs no blank after it.
  ['one ORtwo', { message: 'two' }, true],
  ['NOTE', { message: 'a b' }, true],
  ['NOTE', { message: 'E' }, false],
  // An operator without a clause in front of it is a word.
  ['OR a', { message: 'a OR b' }, true],
  ['OR a', { message: 'a' }, false],
  ['env: prod', { tags: ['env:prod'] }, true],
  ['_default_:word', { message: 'a word' }, true],
  // Bounds do not compare the key of a tag.
  ['size:>5', { tags: ['weight:7'] }, true],
  ['size:>5', { tags: ['7'] }, false],
  ['@n:["4" TO "10"]', { n: 7 }, true],
  ['@n:{4 TO 7}', { n: 7 }, false],
  ['@n:>9007199254740992', { n: 9007199254740993n }, true],
])('search: %s', (query, object, matches) => {
  const compiled = compileSearchQuery(query)
  if (typeof compiled === 'string') throw new TypeError(compiled)
  expect(compiled(object)).toBe(matches)
})

test.each(['a:(', '(a', '@n:[1 TO', '@n:[1 TO 2}', ')', '@a:', 'a:b:c', 'a OR', 'NOT', '()', '('.repeat(5000)])(
  'search: %s is refused',
  (query) => {
    expect(compileSearchQuery(query)).toBeTypeOf('string')
  },
)

test('addresses', () => {
  const there = (text: string): string | undefined => {
    const bytes = parseIp(text)
    return bytes && ipText(bytes)
  }
  expect(there('2001:0DB8:0:0:1:0:0:1')).toBe('2001:db8::1:0:0:1')
  expect(there('::')).toBe('::')
  expect(there('::ffff:1.2.3.4')).toBe('::ffff:1.2.3.4')
  expect(there('1:2:3:4:5:6:7::')).toBe('1:2:3:4:5:6:7:0')
  for (const bad of ['1.2.3', '01.2.3.4', '1.2.3.256', ':::', '1::2::3', '1:2:3:4:5:6:7:8:9', 'fe80::1%eth0', '']) {
    expect(there(bad)).toBeUndefined()
  }
})

test('punycode both ways', () => {
  for (const label of ['bücher', 'größe', '他们为什么不说中文', 'ü', '😀x']) {
    expect(decodeLabel(encodeLabel(label) ?? '')).toBe(label)
  }
  expect(encodeLabel('bücher')).toBe('bcher-kva')
  expect(decodeLabel('99999999')).toBeUndefined()
  expect(encodeLabel('é'.repeat(1001))).toBeUndefined()
  expect(decodeLabel('a'.repeat(2001))).toBeUndefined()
})

test('LZ4 blocks come back', () => {
  for (const length of [0, 1, 12, 13, 64, 1000, 65_534, 65_535, 65_536, 300_000]) {
    const data = Buffer.from(Array.from({ length }, (_, index) => (index * index + (index >> 9)) % 7))
    expect(decompressBlock(compressBlock(data), length)).toEqual(data)
    const noise = Buffer.from(Array.from({ length }, (_, index) => Math.imul(index, 2654435761) >>> 23))
    expect(decompressBlock(compressBlock(noise), length)).toEqual(noise)
  }
})

test('LZ4 matches reach backwards, and the search takes larger steps', () => {
  // After 32 positions without a match, the search looks at every second: at the first "s" in one text, at "ev" in the other.
  const filler = 'Two ships waited at noon, and no gate was open to them.'
  for (const between of [filler, `${filler}!`]) {
    const text = `seven locks${between}seven locks of a very wide canal`
    const block = compressBlock(Buffer.from(text))
    const literals = text.lastIndexOf('seven')
    expect(block.subarray(0, 2)).toEqual(Buffer.from([0xf7, literals - 15]))
    expect(block.readUInt16LE(2 + literals)).toBe(literals)
  }
})

test('problems of LZ4 blocks', () => {
  const problem = (block: string, maxBytes = 100): Buffer | string =>
    decompressBlock(Buffer.from(block, 'hex'), maxBytes)
  const cutOff = 'expected another byte, found none'
  expect(problem('')).toBe(cutOff)
  expect(problem('f0')).toBe(cutOff)
  expect(problem('106101')).toBe(cutOff)
  expect(problem('1f610100ff')).toBe(cutOff)
  expect(problem('3061')).toBe('literal is out of bounds of the input')
  expect(problem('10610200')).toBe('the offset to copy is not contained in the decompressed buffer')
  const small = 'provided output is too small for the decompressed data, actual'
  expect(problem('40616263640100', 3)).toBe(`${small} 3, expected 4`)
  expect(problem('116101001062', 4)).toBe(`${small} 4, expected 6`)
})

test('LZ4 frames', () => {
  const read = (hex: string): string => decompressFrame(Buffer.from(hex, 'hex'), 1000).toString()
  // Written by the command-line tool `lz4`, with all checksums and the size.
  const whole = '04224d187c402300000000000000eb0f0000005f676174652005000650736576656e85aa42d500000000d54b81a6'
  expect(read(whole)).toBe('gate gate gate gate gate gate seven')
  expect(read(`${whole}00`)).toBe('gate gate gate gate gate gate seven')
  const changed = (at: number, byte: string): string => read(whole.slice(0, 2 * at) + byte + whole.slice(2 * at + 2))
  expect(changed(4, '3c')).toBe('UnsupportedVersion(0)')
  expect(changed(4, '7e')).toBe('ReservedBitsSet')
  expect(changed(5, '30')).toBe('UnsupportedBlocksize(3)')
  expect(changed(6, '22')).toBe('HeaderChecksumError')
  expect(changed(17, '7f')).toBe('BlockTooBig')
  expect(changed(21, '78')).toBe('BlockChecksumError')
  expect(changed(whole.length / 2 - 1, '00')).toBe('ContentChecksumError')
  expect(read(whole.slice(0, -2))).toBe('failed to fill whole buffer')
  expect(read('04224d18')).toBe('failed to fill whole buffer')
  // Neither a size nor checksums: a block of literals that is cut off, and one that is empty.
  expect(read('04224d1860408202000000306100000000')).toBe('DecompressionError(LiteralOutOfBounds)')
  expect(read('04224d186040820100008061000000807a')).toBe('a')
})

test('character sets', () => {
  const encoded = (text: string, name: string): string => {
    const decoder = findDecoder(name)
    return decoder === undefined ? 'unknown' : encodeCharset(text, decoder).toString('hex')
  }
  expect(encoded('テ', 'Shift_JIS')).toBe('8365')
  expect(encoded('żółw', 'iso-8859-2')).toBe('bff3b377')
  expect(Buffer.from(encoded('漢', 'iso-8859-1'), 'hex').toString()).toBe('&#28450;')
  expect(encoded('a', 'NOPE')).toBe('unknown')
})

// The value that the authors of the hash published for this text.
test('xxHash of an empty and a long text', () => {
  expect(xxh32(Buffer.from(''))).toBe(0x02cc5d05)
  expect(xxh64(Buffer.from(''))).toBe(0xef46db3751d8e999n)
  expect(xxh3(Buffer.from(''))).toBe(0x2d06800538d394c2n)
  expect(xxh3Wide(Buffer.from(''))).toBe(0x99aa06d3014798d86001c324468d497fn)
  expect(xxh64(Buffer.from('Nobody inspects the spammish repetition'))).toBe(0xfbcea83c8a378bf1n)
  expect(xxh32(Buffer.from('Nobody inspects the spammish repetition'))).toBe(0xe2293b2f)
})
