import { expect, test } from 'vitest'
import { crcNames, findCrc, knownCheck } from './crc.ts'

test.each(crcNames)('%s gives its published check', (name) => {
  expect(findCrc(name)?.(Buffer.from('123456789'))).toBe(knownCheck(name))
})
