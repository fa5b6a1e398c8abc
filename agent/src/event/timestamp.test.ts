import { expect, test } from 'vitest'
import { Random } from '../testing/random.ts'
import { Timestamp } from './timestamp.ts'

test('the bytes of a timestamp equal its text', () => {
  const random = new Random(20261122)
  const times = [
    new Timestamp(0, 0),
    new Timestamp(-1, 999_999),
    new Timestamp(-62_135_596_800_000, 1), // the year 1
    new Timestamp(253_402_300_800_000, 1000), // the year 10000
    new Timestamp(1_763_848_290_000, 0),
    new Timestamp(1_763_848_290_120, 0),
    new Timestamp(1_763_848_290_120, 5000),
    new Timestamp(1_763_848_290_000, 5),
  ]
  for (let round = 0; round < 2000; round++) {
    times.push(new Timestamp(random.below(2 ** 31) * 1000 + random.below(1000), random.below(1_000_000)))
  }
  const bytes = Buffer.alloc(64)
  for (const time of times) expect(bytes.toString('latin1', 3, time.writeTo(bytes, 3))).toBe(time.toString())
})
