// Every string option declares its meaning, because the rules for tenants depend on it. opens.test.ts verifies options of plain text.

import { expect, test } from 'vitest'
import { components } from '../registry.ts'
import { optionLeaves } from '../testing/option-places.ts'
import { authoritiesOf, isInline, limits, meaningOf, namesFile } from './meaning.ts'

const leaves = components.flatMap((each) => optionLeaves(each))

test('every string option declares its meaning or its allowed words', () => {
  const strings = leaves.filter(({ schema }) => schema['type'] === 'string')
  expect(strings.length).toBeGreaterThan(200)
  const silent = strings.filter(({ schema }) => {
    const { text, secret, program, file, address } = meaningOf(schema)
    const isChoice = schema['enum'] !== undefined || schema['const'] !== undefined
    return !isChoice && [text, secret, program, file, address].every((facet) => facet === undefined)
  })
  expect(silent.map(({ name }) => name)).toEqual([])
})

test('an option of plain text has no other meaning', () => {
  const both = leaves.filter(({ schema }) => {
    const { text, ...others } = meaningOf(schema)
    return text === true && (others.file ?? others.address ?? others.program ?? others.secret) !== undefined
  })
  expect(both.map(({ name }) => name)).toEqual([])
})

test('every number of bytes has a limit for tenants, unless it limits no memory', () => {
  const unbounded = leaves.filter(({ schema }) => schema['x-unit'] === 'bytes' && meaningOf(schema).limit === undefined)
  expect(
    unbounded.map(({ name }) => name.replace(/^\w+ \w+/, '')).filter((path) => path !== '.encoding.csv.capacity'),
  ).toEqual(
    // Options of `stdin`, which tenants cannot use.
    ['.max_length'],
  )
})

test('every default is below the limit for tenants', () => {
  for (const { name, schema } of leaves) {
    const { limit } = meaningOf(schema)
    const defaultValue = schema['default']
    if (limit !== undefined && typeof defaultValue === 'number')
      expect(defaultValue, name).toBeLessThanOrEqual(limits[limit].cap)
  }
})

test.each([
  ['pem', '-----BEGIN CERTIFICATE-----', true],
  ['pem', '/x-----BEGIN /../etc/passwd', false],
  ['pem', ' -----BEGIN CERTIFICATE-----', false], // the option treats it as a file name
  ['json', ' \n{"a":1}', true],
  ['json', '/etc/{passwd', false],
  ['data', 'data:application/json;base64,e30=', true],
  ['data', 'file:///etc/passwd', false],
  [undefined, '{"a":1}', false],
] as const)('whether text is content of the form %s: %j', (form, text, expected) => {
  expect(isInline(form, text)).toBe(expected)
})

test.each(['file:///a', '\u0001file:///a', 'fi\tle:///a', 'fi\nle:///a', ' FILE:///a', 'file:a'])(
  '%j names a file',
  (text) => {
    expect(namesFile([{ address: { ports: {} } }], text)).toBe(true)
    expect(namesFile([{ secret: true }], text)).toBe(true)
    expect(namesFile([{ text: true }], text)).toBe(true)
    expect(namesFile([{ program: 'program' }], text)).toBe(false)
  },
)

const web = { ports: { http: 80, https: 443 } }
test.each([
  [web, 'https://a.b/c', [{ host: 'a.b', port: 443 }]],
  [web, 'http://user:p@A.b.:8080', [{ host: 'a.b', port: 8080 }]],
  [web, 'ht\ttp://127.\n0.0.1/', [{ host: '127.0.0.1', port: 80 }]],
  [web, 'http:/\\2130706433', [{ host: '127.0.0.1', port: 80 }]],
  [web, 'http://good\\@127.0.0.1/', [{ host: 'good', port: 80 }]],
  [web, 'http://[::ffff:7f00:1]:80', [{ host: '::ffff:7f00:1', port: 80 }]],
  [web, 'http://{{ a }}.b:8080/x', [{ host: '{{ a }}.b', port: 8080 }]],
  [web, 'no address', []],
  [{ ...web, bare: 'https' }, 'host:8080', [{ host: 'host', port: 8080 }]],
  [{ ...web, bare: 'https' }, '127.1/x', [{ host: '127.0.0.1', port: 443 }]],
  [{ ...web, bare: 'http' }, '//127.1:3128', [{ host: '127.0.0.1', port: 3128 }]],
  [{ ...web, bare: 'http' }, '\\/a.b/c', [{ host: 'a.b', port: 80 }]],
  [
    { ports: { pulsar: 6650 } },
    'pulsar://a,b:1/x',
    [
      { host: 'a', port: 6650 },
      { host: 'b', port: 1 },
    ],
  ],
] as const)('%j: the hosts of %j', (meaning, text, expected) => {
  expect(authoritiesOf(meaning, text)).toEqual(expected)
})
