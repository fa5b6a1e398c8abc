import { expect, test } from 'vitest'
import { findCrc } from './crc.ts'
import { crc32c } from './crc32c.ts'

test('the check value is the known one', () => {
  expect(crc32c(Buffer.from('123456789'))).toBe(0xe3069283)
  expect(crc32c(Buffer.alloc(0))).toBe(0)
})

test('it agrees with the general algorithm for every length and in parts', () => {
  const general = findCrc('CRC_32_ISCSI')
  const bytes = Buffer.from(Array.from({ length: 100 }, (_, index) => (index * 167 + 13) & 255))
  for (let length = 0; length <= bytes.length; length++) {
    const part = bytes.subarray(0, length)
    expect(BigInt(crc32c(part))).toBe(general?.(part))
    expect(crc32c(bytes.subarray(length), crc32c(part))).toBe(crc32c(bytes))
  }
})
