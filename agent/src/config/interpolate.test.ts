// The meaning of each placeholder.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: they are what is tested

import { expect, test } from 'vitest'
import { interpolate } from './interpolate.ts'

const environment = { A: 'one', 'A.b': 'dotted', EMPTY: '', LINES: 'a\nb', RETURN: 'a\rb' }

test.each([
  { text: 'x: $A', result: 'x: one' },
  { text: 'x: ${A}', result: 'x: one' },
  { text: '$A.b', result: 'dotted' },
  { text: '${A.b}', result: 'dotted' },
  { text: '$A-b $A/c', result: 'one-b one/c' },
  { text: '$$A $${A} $$$A', result: '$A ${A} $one' },
  { text: '${A:-no} ${A-no} ${A:?no} ${A?no}', result: 'one one one one' },
  { text: '${EMPTY}|${EMPTY-no}|${EMPTY?no}', result: '||' },
  { text: '${EMPTY:-default}', result: 'default' },
  { text: '${GONE:-default}|${GONE-default}', result: 'default|default' },
  { text: '${GONE:-}|${GONE-}', result: '|' },
  { text: '${GONE:-$A}', result: '$A' }, // default text is literal
  { text: '${GONE:-a: b-?c}', result: 'a: b-?c' },
  { text: '# $A\n$A: ${A}', result: '# one\none: one' }, // comments and keys too
  { text: 'a $ b ${ c $- ${A b}', result: 'a $ b ${ c $- ${A b}' }, // no placeholders
])('$text becomes $result', ({ text, result }) => {
  expect(interpolate(text, environment)).toMatchObject({ text: result, problems: [] })
})

test.each([
  { text: 'x: $GONE', offset: 3, message: 'Missing environment variable in config. name = "GONE"' },
  { text: '${GONE}', offset: 0, message: 'Missing environment variable in config. name = "GONE"' },
  {
    text: '${GONE?set it}',
    offset: 0,
    message: 'Missing environment variable required in config. name = "GONE", error = "set it"',
  },
  {
    text: '${GONE:?set it}',
    offset: 0,
    message: 'Missing environment variable required in config. name = "GONE", error = "set it"',
  },
  {
    text: '${EMPTY:?set it}',
    offset: 0,
    message: 'Non-empty environment variable required in config. name = "EMPTY", error = "set it"',
  },
  { text: '$LINES', offset: 0, message: 'Environment variable contains newline character. name = "LINES"' },
  { text: '${RETURN:-x}', offset: 0, message: 'Environment variable contains newline character. name = "RETURN"' },
])('$text: $message', ({ text, offset, message }) => {
  expect(interpolate(text, environment).problems).toEqual([{ offset, message }])
})

test('the name of the host is known even if the environment has none', () => {
  expect(interpolate('$HOSTNAME', {}).text).not.toBe('')
  expect(interpolate('$HOSTNAME', { HOSTNAME: 'mine' }).text).toBe('mine')
})

test('an offset maps back to the original text', () => {
  const written = 'a: $A, b: ${GONE:-x}, c: 1'
  const { text, sourceOffset } = interpolate(written, environment)

  expect(text).toBe('a: one, b: x, c: 1')
  expect(sourceOffset(text.indexOf('b:'))).toBe(written.indexOf('b:'))
  expect(sourceOffset(text.indexOf('x'))).toBe(written.indexOf('${GONE'))
  expect(sourceOffset(text.indexOf('c:'))).toBe(written.indexOf('c:'))
})
