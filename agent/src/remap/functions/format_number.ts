// Function `format_number`.

import { type Float, isInteger } from '../../event/value.ts'
import { decimalText } from '../../formats/decimal.ts'
import { floatText } from '../../formats/json.ts'
import { defineFunction, toNumber } from '../function.ts'
import { kinds } from '../kind.ts'

export const formatNumber = defineFunction({
  name: 'format_number',
  category: 'Number',
  summary: 'Formats a number with a fixed number of decimals and separators.',
  description:
    'A float is formatted with its 15 or 16 exact digits. A sign counts as a digit of the groups, so a first group of three gets a separator before it.',
  parameters: [
    { name: 'value', kind: kinds.number, description: 'The number.' },
    {
      name: 'scale',
      kind: kinds.integer,
      required: false,
      description: 'Number of decimals; excess decimals are cut off, and missing ones are zeros.',
    },
    {
      name: 'decimal_separator',
      kind: kinds.string,
      required: false,
      default: '.',
      description: 'The decimal separator.',
    },
    {
      name: 'grouping_separator',
      kind: kinds.string,
      required: false,
      description: 'The separator of groups of three digits.',
    },
  ],
  returns: kinds.string,
  fallible: 'never',
  pure: true,
  examples: [
    { source: 'format_number(1234567.891, 2, grouping_separator: ",")', result: '"1,234,567.89"' },
    { source: 'format_number(3.14159, scale: 2, decimal_separator: ",")', result: '"3,14"' },
    { source: 'format_number(12, 0)', result: '"12"' },
    { source: 'format_number(0.1 + 0.2)', result: '"0.3"' },
    { source: 'format_number(-12345.678, 2, grouping_separator: ",")', result: '",-12,345.67"' },
  ],
  compile:
    () =>
    (
      value: number | bigint | Float,
      scale: number | bigint | undefined,
      separator: string,
      grouping: string | undefined,
    ) => {
      const text = isInteger(value) ? String(value) : (decimalText(toNumber(value)) ?? floatText(toNumber(value)))
      const match = /^(-?\d+)(?:\.(\d+))?$/.exec(text)
      if (match === null) return text
      const [, digits = '', decimals = ''] = match
      let whole = digits
      if (grouping !== undefined) {
        // Like the reference: a sign counts as a digit, and a first group of three gets a separator before it.
        const first = digits.length % 3
        whole = digits.slice(0, first)
        for (let at = first; at < digits.length; at += 3) whole += grouping + digits.slice(at, at + 3)
      }
      if (scale === undefined) return whole + (decimals === '' ? '' : separator + decimals)
      const places = Math.max(0, Math.min(Number(scale), 1000))
      return whole + (places === 0 ? '' : separator + decimals.slice(0, places).padEnd(places, '0'))
    },
})
