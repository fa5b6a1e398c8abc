// Function `parse_duration`.

import { float } from '../../event/value.ts'
import { decimalFloat } from '../../formats/number.ts'
import { whiteSpace } from '../../formats/white-space.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

const units: Readonly<Record<string, bigint>> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  ms: 1_000_000n,
  cs: 10_000_000n,
  ds: 100_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
  d: 86_400_000_000_000n,
}

export const parseDuration = defineFunction({
  name: 'parse_duration',
  category: 'Parse',
  summary: 'Parses a duration such as `1h30m` to a number in a unit.',
  parameters: [
    { name: 'value', kind: kinds.string, description: 'The text.' },
    { name: 'unit', kind: kinds.string, description: `The unit of the result: ${Object.keys(units).join(', ')}.` },
  ],
  returns: kinds.float,
  fallible: 'always',
  errors: ['The text is not a duration.', 'A unit is unknown.'],
  pure: true,
  examples: [
    { source: 'parse_duration!("1307ms", unit: "s")', result: '1.307' },
    { source: 'parse_duration!("1h30m", unit: "m")', result: '90' },
    { source: '[parse_duration!("-3cs", unit: "ms"), parse_duration!("", unit: "s")]', result: '[30, 0]' },
    {
      source: '[parse_duration("1H", unit: "m") ?? null, parse_duration("1  s", unit: "m") ?? null]',
      result: '[null, null]',
    },
    { source: 'parse_duration!("2d 4h", unit: "h")', result: '52' },
  ],
  compile:
    () =>
    (text: string, unit: string): Result => {
      const divisor = Object.hasOwn(units, unit) ? units[unit] : undefined
      if (divisor === undefined) return failure(`unknown unit format: '${unit}'`)
      // No valid duration is that long, and the search time grows faster than the text.
      if (text.length > 1000) return failure('unable to parse duration: the text is too long')
      const piece = new RegExp(`([0-9]*)(?:\\.([0-9]+))?${whiteSpace}?([µa-z]{1,2})`, 'gi')
      let total = 0
      let at = 0
      while (at < text.length) {
        piece.lastIndex = at
        let match = piece.exec(text)
        while (match !== null && match[1] === '' && match[2] === undefined) {
          piece.lastIndex = match.index + 1
          match = piece.exec(text)
        }
        if (match === null) return failure(`unable to parse duration: '${text.slice(at)}'`)
        const scale = Object.hasOwn(units, match[3] as string) ? units[match[3] as string] : undefined
        if (scale === undefined) return failure(`unknown duration unit: '${match[3]}'`)
        const decimals = match[2] ?? ''
        // Parts are decimals, but their sum is a sum of floats.
        total += decimalFloat(BigInt((match[1] as string) + decimals) * scale, 10n ** BigInt(decimals.length) * divisor)
        at = piece.lastIndex
      }
      return float(total)
    },
})
