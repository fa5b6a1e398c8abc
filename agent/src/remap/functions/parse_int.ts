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
      const value = integerOf(digits, base)
      return value === undefined || value > 9223372036854775807n || value < -9223372036854775808n
        ? failure(`could not parse integer: ${valueText(text)} is not an integer of base ${base} with 64 bits`)
        : integer(value)
    },
})

function integerOf(text: string, base: number): bigint | undefined {
  const match = /^([+-]?)([0-9A-Za-z]+)$/.exec(text)
  if (match === null) return undefined
  let value = 0n
  for (const character of match[2] as string) {
    const digit = Number.parseInt(character, 36)
    if (digit >= base) return undefined
    value = value * BigInt(base) + BigInt(digit)
    // Longer texts cannot fit.
    if (value > 0xffff_ffff_ffff_ffffn) return undefined
  }
  return match[1] === '-' ? -value : value
}
