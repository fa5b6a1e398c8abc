import { expect, test } from 'vitest'
import { Timestamp } from '../../event/timestamp.ts'
import { PartialLine } from './partial.ts'

test('parts that wait for the reader do not expire, and then wait their full time', () => {
  const line = new PartialLine(undefined)
  line.add(Buffer.from('a'), Timestamp.now(), 0, 0)
  const behind = () => true
  const atEnd = () => false
  expect(line.expired(29_999, atEnd)).toBe(false)
  expect(line.expired(60_000, behind)).toBe(false)
  expect(line.expired(89_999, atEnd)).toBe(false)
  expect(line.expired(90_000, atEnd)).toBe(true)
})

test.each([
  { what: 'without text', bytes: 0, count: 1_000_000 },
  { what: 'of one byte', bytes: 1, count: 1_000_000 },
  { what: 'of 16 KiB', bytes: 16_384, count: 64 },
])('countless parts $what take little more memory than their bytes', ({ bytes, count }) => {
  const line = new PartialLine(undefined)
  const part = Buffer.alloc(bytes, 'x')
  const [time, before] = [Timestamp.now(), process.memoryUsage()]
  for (let index = 0; index < count; index++) line.add(part, time, 0, 0)
  const after = process.memoryUsage()
  expect(after.heapUsed + after.external - before.heapUsed - before.external).toBeLessThan(2 * bytes * count + 30e6)
  expect(line.take()).toEqual({ text: 'x'.repeat(bytes * count), truncated: false })
})

test('a truncated or discarded line keeps its bytes up to the limit', () => {
  const parts = (action: 'drop' | 'truncate') => {
    const line = new PartialLine({ maxBytes: 5, action })
    for (const text of ['abc', '', 'defg', 'hi']) line.add(Buffer.from(text), Timestamp.now(), 0, 0)
    return line.take()
  }
  expect(parts('truncate')).toEqual({ text: 'abcde..TRUNCATED', truncated: true })
  expect(parts('drop')).toBe('too_long')
})
