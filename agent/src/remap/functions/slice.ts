// Function `slice`.

import { Bytes, type Value } from '../../event/value.ts'
import { isAscii, textOf } from '../byte-text.ts'
import { defineFunction, failure, type Result } from '../function.ts'
import { kinds } from '../kind.ts'

export const slice = defineFunction({
  name: 'slice',
  category: 'String',
  summary: 'Returns a part of a string, in bytes, or of an array.',
  description: 'A negative position counts from the end. An `end` beyond the length means the end.',
  parameters: [
    { name: 'value', kind: kinds.string.or(kinds.array), bytes: true, description: 'The string or array.' },
    { name: 'start', kind: kinds.integer, description: 'Position of the first item or byte.' },
    { name: 'end', kind: kinds.integer, required: false, description: 'Position after the last item or byte.' },
  ],
  returns: (call) => {
    const kind = call.kind('value')
    let result = kind.and(kinds.string)
    if (kind.overlaps(kinds.array)) result = result.or(kind.and(kinds.array))
    return result.isNever ? kinds.string.or(kinds.array) : result
  },
  // The language declares the items of the whole array for the slice.
  nominal: (call) => (call.kind('value').array?.known.size ?? 0) > 0,
  fallible: 'always',
  errors: ['The start is out of range.', 'The end is before the start.'],
  pure: true,
  examples: [
    { source: 'slice!("abcdef", 1, 3)', result: '"bc"' },
    { source: 'slice!([1, 2, 3], -2)', result: '[2, 3]' },
    { source: 'slice!("abcdef", -3)', result: '"def"' },
  ],
  compile:
    () =>
    (value: string | Bytes | Value[], start: number | bigint, end: number | bigint | undefined): Result => {
      const whole =
        typeof value === 'string'
          ? isAscii(value)
            ? value
            : Buffer.from(value)
          : value instanceof Bytes
            ? value.bytes
            : value
      const length = whole.length
      let from = Number(start)
      if (from < -length || from > length) return failure(`"start" must be between "${-length}" and "${length}"`)
      if (from < 0) from += length
      let to = end === undefined ? length : Number(end)
      if (to < 0) to += length
      if (to > length) to = length
      if (to < from) return failure('"end" must be greater or equal to "start"')
      return Buffer.isBuffer(whole) ? textOf(whole.subarray(from, to)) : whole.slice(from, to)
    },
})
