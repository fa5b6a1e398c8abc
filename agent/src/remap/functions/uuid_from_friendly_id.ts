// Function `uuid_from_friendly_id`.

import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { valueText } from '../text.ts'

const limit = 1n << 128n
const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'

export const uuidFromFriendlyId = defineFunction({
  name: 'uuid_from_friendly_id',
  category: 'Random',
  summary: 'Decodes a number in base 62 to a UUID.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The number.' }],
  returns: kinds.string,
  fallible: 'always',
  errors: ['A character is not a base 62 digit.', 'The number does not fit in 128 bits.'],
  pure: true,
  examples: [
    { source: 'uuid_from_friendly_id!("3s87yEvnmkiPBMHsj8bwwc")', result: '"7f41deed-d5e2-8b5e-7a13-ab4ff93cfad2"' },
    { source: 'uuid_from_friendly_id("!") ?? "no id"', result: '"no id"' },
    { source: 'length(uuid_from_friendly_id!("3s87yEvnmkiPBMHsj8bwwc"))', result: '36' },
  ],
  compile:
    () =>
    (value: string): Result => {
      let number = 0n
      for (const character of value) {
        const digit = digits.indexOf(character)
        if (digit < 0) return failure(`failed to decode friendly id: ${valueText(character)} is not a digit of base 62`)
        if (number < limit) number = number * 62n + BigInt(digit) // bounded, because an arbitrarily long text would give an arbitrarily large number
      }
      if (value === '' || number >= limit) return failure('failed to decode friendly id: it is empty or too large')
      const hex = number.toString(16).padStart(32, '0')
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
    },
})
