// Function `parse_float`.

import { float } from '../../event/value.ts'
import { parseDecimal } from '../../formats/number.ts'
import { defineFunction, failure } from '../function.ts'
import { kinds } from '../kind.ts'
import { valueText } from '../text.ts'

export const parseFloatFunction = defineFunction({
  name: 'parse_float',
  category: 'String',
  summary: 'Parses a decimal float.',
  parameters: [{ name: 'value', kind: kinds.string, description: 'The text.' }],
  returns: kinds.float,
  fallible: 'always',
  errors: ['The text is not a number.'],
  pure: true,
  examples: [
    { source: 'parse_float!("-1.5e3")', result: '-1500' },
    { source: 'parse_float!("7")', result: '7' },
    { source: 'parse_float("seven") ?? 0.0', result: '0' },
  ],
  compile: () => (text: string) => {
    const value = parseDecimal(text)
    return value === undefined ? failure(`could not parse float: ${valueText(text)} is not a number`) : float(value)
  },
})
