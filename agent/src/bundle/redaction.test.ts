import { expect, test } from 'vitest'
import { redactorOf } from './redaction.ts'

const values = ['S3cr&t "pässwörd"\\with\nlines+and/more', 'hunter2', 'ghp_aBcDeFgHiJkLmNoPqRsT', 'abc']
const redact = redactorOf(values.map((value) => Buffer.from(value)))

const ways: Readonly<Record<string, (value: string) => string>> = {
  whole: (value) => value,
  'as JSON': (value) => JSON.stringify(value),
  'percent-encoded': encodeURIComponent,
  'in a form': (value) => new URLSearchParams({ value }).toString().slice('value='.length),
  'in base64': (value) => Buffer.from(value).toString('base64'),
  'in base64url': (value) => Buffer.from(value).toString('base64url'),
  'in hex': (value) => Buffer.from(value).toString('hex'),
  'in an Authorization header': (value) => `Basic ${Buffer.from(`me:${value}`).toString('base64')}`,
  'in another Authorization header': (value) => Buffer.from(`user:${value}`).toString('base64'),
  'in upper case': (value) => value.toUpperCase(),
  'as a host': (value) => value.toLowerCase(),
  'first 10 characters': (value) => value.slice(0, 10),
  'last 10 characters': (value) => value.slice(-10),
  'cut off in the middle': (value) => `${value.slice(0, 8)}…`,
}

/** Whether a text contains six consecutive characters of a value's encoding. */
const shows = (text: string, shown: string) =>
  Array.from({ length: Math.max(1, shown.length - 5) }, (_, at) => shown.slice(at, at + 6)).some((piece) =>
    text.includes(piece),
  )

test.each(Object.entries(ways))('a value is hidden: %s', (_, way) => {
  for (const value of values.slice(0, 3)) {
    const shown = way(value)
    const text = redact(`\`query\` must be a table, found ${shown} instead.`)
    expect(text).toContain('`query` must be a table')
    // The text around the value in a header is not secret.
    const own = shown.replace(/^Basic /, '').replace(/^(?:bWU6|dXNlcj)/, '')
    expect(shows(text, own.replace('…', ''))).toBe(false)
  }
})

test('a short value is removed completely, and text without values is unchanged', () => {
  expect(redact('token abc of ABC')).toBe('token *** of ***')
  expect(redact('nothing to hide, İstanbul')).toBe('nothing to hide, İstanbul')
  expect(redactorOf([])('text')).toBe('text')
})
