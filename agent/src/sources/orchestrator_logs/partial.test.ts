import { expect, test } from 'vitest'
import { Timestamp } from '../../event/timestamp.ts'
import { PartialLine } from './partial.ts'

test('parts that wait for the reader do not expire, and wait their whole time when it has read all', () => {
  const line = new PartialLine(undefined)
  line.add(Buffer.from('a'), Timestamp.now(), 0, 0)
  const behind = () => true
  const atEnd = () => false
  expect(line.expired(29_999, atEnd)).toBe(false)
  expect(line.expired(60_000, behind)).toBe(false)
  expect(line.expired(89_999, atEnd)).toBe(false)
  expect(line.expired(90_000, atEnd)).toBe(true)
})
