import { expect, test } from 'vitest'
import { Random } from '../testing/random.ts'
import { findCrc } from './crc.ts'
import { crc32c } from './crc32c.ts'

test('the check value of the algorithm', () => {
  expect(crc32c(Buffer.from('123456789'))).toBe(0xe3069283)
  expect(crc32c(Buffer.alloc(0))).toBe(0)
})

test.each([
  1, 7, 8, 9, 255, 256, 257, 4095, 4096, 4097, 16_383, 16_384, 16_385, 16_447, 16_449, 262_143, 262_144, 262_145,
  700_001,
])('%i bytes, whole and in two parts', (length) => {
  const bytes = Buffer.from(Uint8Array.from({ length }, (_, index) => (index * 2_654_435_761) >>> 13))
  const expected = Number(findCrc('CRC_32_ISCSI')?.(bytes))
  expect(crc32c(bytes)).toBe(expected)
  const middle = Math.floor(length / 3)
  expect(crc32c(bytes.subarray(middle), crc32c(bytes.subarray(0, middle)))).toBe(expected)
})

test('many inputs in a row, of any bytes and lengths', () => {
  const random = new Random(20261122)
  const reference = findCrc('CRC_32_ISCSI')
  for (let round = 0; round < 200; round++) {
    const bytes = Buffer.from(Uint8Array.from({ length: random.below(40_000) }, () => random.below(256)))
    expect(crc32c(bytes)).toBe(Number(reference?.(bytes)))
  }
})
