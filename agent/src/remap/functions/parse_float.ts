// Function `parse_float`.

import { float } from '../../event/value.ts'
import { decimalProblem, parseDecimal } from '../../formats/number.ts'
import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'

export const parseFloatFunction = defineFunction({
  name: 'parse_float',
  category: 'String',
  summary: 'Parses a decimal float.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The text.' }],
  returns: kinds.float,
  fallible: 'always',
  errors: ['The text is not a number.'],
  pure: true,
  isConstant: true,
  examples: [
    { source: 'parse_float!("-1.5e3")', result: '-1500' },
    { source: 'parse_float!("7")', result: '7' },
    { source: 'parse_float("seven") ?? 0.0', result: '0' },
  ],
  compile: () => (text: string) => {
    const value = parseDecimal(text)
    if (value !== undefined) return float(value)
    return failure(
      /^[+-]?nan$/i.test(text) ? 'NaN number not supported' : `could not parse float: ${decimalProblem(text)}`,
    )
  },
})
