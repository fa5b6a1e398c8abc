// Function `parse_int`.

import { integer } from '../../event/value.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'
import { valueText } from '../text.ts'

const prefixes: readonly (readonly [string, number])[] = [
  ['0b', 2],
  ['0o', 8],
  ['0x', 16],
]

export const parseIntFunction = defineFunction({
  name: 'parse_int',
  category: 'Parse',
  summary: 'Parses an integer in a base.',
  description: 'Without a base, the prefixes `0b`, `0o`, `0x` and `0` (octal) determine it; otherwise the base is ten.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    { name: 'base', kind: kinds.integer, required: false, description: 'The base, 2 to 36.' },
  ],
  returns: kinds.integer,
  fallible: 'always',
  errors: [
    'A character is not a digit of the base.',
    'The base is not between 2 and 36.',
    'The number does not fit in 64 bits.',
  ],
  pure: true,
  examples: [
    { source: 'parse_int!("-42")', result: '-42' },
    { source: 'parse_int!("0xff")', result: '255' },
    { source: 'parse_int!("zz", base: 36)', result: '1295' },
  ],
  compile:
    () =>
    (text: string, given: number | bigint | undefined): Result => {
      let base = given === undefined ? 10 : Number(given)
      let digits = text
      if (base < 2 || base > 36) {
        return failure(`invalid base ${valueText(text)}: must be be between 2 and 36 (inclusive)`)
      }
      if (given === undefined) {
        for (const [prefix, of] of prefixes) {
          if (!text.startsWith(prefix)) continue
          base = of
          digits = text.slice(2)
        }
        if (base === 10 && text.length > 1 && text[0] === '0') base = 8
      }
      if (given === undefined && text === '') return failure('value is empty')
      const value = integerOf(digits, base)
      return typeof value === 'string' ? failure(`could not parse integer: ${value}`) : integer(value)
    },
})

/** The integer, or what is wrong first: a character that is not a digit, or too many digits. */
function integerOf(text: string, base: number): bigint | string {
  if (text === '') return 'cannot parse integer from empty string'
  const sign = /^[+-]/.exec(text)?.[0] ?? ''
  const negative = sign === '-'
  if (text === sign) return 'invalid digit found in string'
  let value = 0n
  for (const character of text.slice(sign.length)) {
    const digit = /[0-9A-Za-z]/.test(character) ? Number.parseInt(character, 36) : base
    if (digit >= base) return 'invalid digit found in string'
    value = value * BigInt(base) + BigInt(digit)
    if (value > (negative ? 2n ** 63n : 2n ** 63n - 1n))
      return `number too ${negative ? 'small' : 'large'} to fit in target type`
  }
  return negative ? -value : value
}
