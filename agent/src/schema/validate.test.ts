// Parses options as users write them, into typed options or messages.

import { expect, test } from 'vitest'
import { encoding } from './groups.ts'
import { bool, either, float, group, list, map, oneOf, optional, secret, tagged, text, uint, url } from './options.ts'
import { parseOptions } from './validate.ts'
import { pathOf } from './walk.ts'

const members = {
  name: text('A name.', { default: 'none' }),
  file: optional(text('A file.', { aliases: ['path', 'filename'] })),
  check: either(bool('Shorthand.'), group({ enabled: bool('Whether.', { default: true }) }, 'A table.'), 'Either.', {
    default: {} as never,
  }),
  auth: optional(
    tagged(
      'strategy',
      {
        basic: { user: text('A user.'), password: secret('A password.', { aliases: ['pass'] }) },
        none: {},
      },
      'How to log in.',
    ),
  ),
  nested: group({ inner: group({ deep: uint('A number.', { default: 7 }) }, 'Inner.') }, 'Outer.'),
  rows: list(group({ at: uint('A number.', { zero: 'none', default: 1 }) }, 'A row.'), 'Rows.', { default: [] }),
  headers: map(text('A value.'), 'Headers.', { default: {} }),
}

test('defaults are filled in at every depth', () => {
  expect(parseOptions(members, { rows: [{}], auth: { strategy: 'none' }, nested: {} })).toEqual({
    ok: true,
    value: {
      name: 'none',
      check: { enabled: true },
      auth: { strategy: 'none' },
      nested: { inner: { deep: 7 } },
      rows: [{ at: 1 }],
      headers: {},
    },
  })
})

test('parsing keeps the given values and does not change the input object', () => {
  const given = {
    path: '/x',
    check: false,
    auth: { strategy: 'basic', user: 'me', pass: 'x' },
    headers: { 'a.b': 'c' },
  }
  const before = structuredClone(given)

  const checked = parseOptions(members, given)

  expect(given).toEqual(before)
  expect(checked.ok && checked.value).toMatchObject({
    file: '/x',
    check: false,
    auth: { strategy: 'basic', user: 'me', password: 'x' },
    headers: { 'a.b': 'c' },
  })
})

test('an option without a value counts as omitted', () => {
  expect(parseOptions(members, { name: null, auth: null, nested: null, headers: null }).ok).toBe(true)
})

const problems = [
  { given: { nam: 'x' }, path: 'nam', message: /^unknown field `nam`, expected one of `auth`, /, help: /`name`/ },
  { given: { name: 5 }, path: 'name', message: '`name` must be a string, found 5' },
  { given: { name: ['a'] }, path: 'name', message: '`name` must be a string, found a list' },
  { given: { file: 'a', path: 'b' }, path: 'path', message: /^unknown field `path`/ },
  { given: { check: 'on' }, path: 'check', message: '`check` must be `true` or `false` or a table, found "on"' },
  { given: { check: { enable: true } }, path: 'check.enable', message: 'unknown field `enable`, expected `enabled`' },
  { given: { auth: {} }, path: 'auth', message: 'missing field `strategy`' },
  {
    given: { auth: { strategy: 'basik', user: 'me' } },
    path: 'auth.strategy',
    message: 'unknown variant `basik` of `strategy`, expected one of `basic`, `none`',
    help: /`basic`/,
  },
  { given: { auth: { strategy: 'basic', user: 'me' } }, path: 'auth', message: 'missing field `password`' },
  {
    given: { auth: { strategy: 'basic', user: 'me', password: { is: 'hunter2' } } },
    path: 'auth.password',
    message: '`password` must be a string, found a table',
  },
  {
    given: { auth: { strategy: 'basic', user: 'me', password: 12345 } },
    path: 'auth.password',
    message: '`password` must be a string, found a number',
  },
  { given: { rows: [{}, { at: -1 }] }, path: 'rows[1].at', message: '`at` must be at least 0, found -1' },
  { given: { rows: [{}, { at: 1.5 }] }, path: 'rows[1].at', message: '`at` must be a whole number, found 1.5' },
  { given: { rows: {} }, path: 'rows', message: '`rows` must be a list (each item a table), found a table' },
  { given: { headers: { 'X-A': 1 } }, path: 'headers.X-A', message: '`X-A` must be a string, found 1' },
  { given: { headers: { 'a.b': 1 } }, path: 'headers."a.b"', message: '`"a.b"` must be a string, found 1' },
  { given: [], path: '', message: 'the component must be a table, found a list' },
]

test.each(problems)('$given: $message', ({ given, path, message, help }) => {
  const checked = parseOptions(members, given)

  expect(checked.ok ? [] : checked.problems).toHaveLength(1)
  const problem = checked.ok ? undefined : checked.problems[0]
  expect(problem?.path).toBe(path)
  expect(problem?.message).toMatch(message)
  expect(problem?.help ?? '').toMatch(help ?? '')
})

test('one problem reports a malformed encoding', () => {
  const options = { encoding: encoding(['json', 'text']), other: optional(uint('A number.', { zero: 'none' })) }

  const checked = parseOptions(options, { encoding: { codec: 'jason', only_fields: 'a', x: 1 }, other: 'x' })

  expect(checked.ok ? [] : checked.problems.map(({ message, help }) => [message, help?.split('\n').length])).toEqual([
    ['`other` must be a whole number, found "x"', undefined],
    ['data did not match any variant of untagged enum EncodingConfig', 3],
  ])
})

test('a number of the wrong type is reported once, without its range', () => {
  const checked = parseOptions({ secs: uint('A time.', { minimum: 1 }) }, { secs: 0.5 })
  expect(checked.ok ? [] : checked.problems.map(({ message }) => message)).toEqual([
    '`secs` must be a positive integer, found 0.5',
  ])
})

test('messages describe ranges in words', () => {
  const options = {
    ratio: float('A ratio.', { exclusiveMinimum: 0, exclusiveMaximum: 1 }),
    size: uint('A size.', { minimum: 1, maximum: 10 }),
    words: list(oneOf(['a', 'b'], 'A word.'), 'Words.', { minItems: 1 }),
    at: url('An address.'),
  }
  const messages = (given: object) => {
    const checked = parseOptions(options, given)
    return checked.ok ? [] : checked.problems.map((problem) => problem.message)
  }

  expect(messages({ ratio: 0, size: 0, words: [], at: 'http://me:hunter2@' })).toEqual([
    '`ratio` must be greater than zero',
    '`size` must be greater than zero',
    '`words` must not be empty',
    '`at` must be an absolute URL with scheme http or https, found "http://…@"',
  ])
  expect(messages({ ratio: 1, size: 11, words: ['a', 'c'], at: 'http://localhost' })).toEqual([
    '`ratio` must be less than 1, found 1',
    '`size` must be at most 10, found 11',
    'unknown variant `c` of `words[1]`, expected one of `a`, `b`',
  ])
})

test('problems contain paths as users write them', () => {
  expect(pathOf(['sinks', 'ns/pipe/out', 'inputs', 0])).toBe('sinks.ns/pipe/out.inputs[0]')
  expect(pathOf(['labels', 'a.b', 'c d'])).toBe('labels."a.b"."c d"')
})
