import { expect, test } from 'vitest'
import { comparableText } from './diff.ts'

const sink = { type: 'http', uri: 'http://x/', batch: { timeout_secs: 1, max_events: 2 }, inputs: ['b', 'a'] }

test('the order of keys does not matter, at any depth', () => {
  const sorted = { batch: { max_events: 2, timeout_secs: 1 }, inputs: ['b', 'a'], type: 'http', uri: 'http://x/' }
  expect(comparableText({ sinks: { out: sink } })).toBe(comparableText({ sinks: { out: sorted } }))
})

test('the order of a list is a difference', () => {
  expect(comparableText(sink)).not.toBe(comparableText({ ...sink, inputs: ['a', 'b'] }))
})
