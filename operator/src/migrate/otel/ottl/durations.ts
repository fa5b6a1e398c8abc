// Durations, as integers of nanoseconds, and calculations with them and with times.

import { seconds } from '../mapping.ts'
import type { Lines, Value } from './code.ts'
import { type Converter, textAt } from './converter.ts'
import { constantText, required } from './editors.ts'
import { Unconvertible } from './syntax.ts'

export const duration: Converter = {
  becomes: 'a number of nanoseconds',
  parameters: ['duration'],
  run: (program, lines, values) => {
    if (required(values, 'duration').type !== 'literal')
      return parsedDuration(textAt(program, lines, values, 'duration'), lines)
    const text = constantText(values, 'duration')
    const length = seconds(/^\d+$/.test(text) ? undefined : text.replace(/^-/, ''))
    if (length === undefined) throw new Unconvertible(`\`${text}\` is not a duration`)
    const number = Math.round(length * 1e9)
    return { code: String(text.startsWith('-') ? -number : number), kind: 'duration' }
  },
}

/** The texts that are durations in the collector. */
const durationPattern = '^[-+]?(?:(?:[0-9]+(?:\\.[0-9]*)?|\\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+$'

function parsedDuration(given: string, lines: Lines): Value {
  const text = lines.keep({ code: `replace(${given}, r'^[-+]?0$', "0s")`, kind: 'text' }).code
  lines.require(`match(${text}, r'${durationPattern}')`, true)
  // Remap knows no signs, only one of the two signs for micro, and no point without digits after it.
  const plain = `replace(replace(replace(${text}, r'^[-+]', ""), "μ", "µ"), r'\\.([a-zµ])', "$1")`
  const length = lines.fallible(`parse_duration(${plain}, unit: "ns")`, 'float').code
  const number = lines.keep({ code: `to_int(round(${length}))`, kind: 'integer' }).code
  return lines.keep({ code: `if starts_with(${text}, "-") { 0 - ${number} } else { ${number} }`, kind: 'duration' })
}

/** The length of a duration in a unit. Units below a minute have no fraction, except seconds. */
export const lengthIn = (unit: number, isFloat: boolean): Converter => ({
  becomes: isFloat ? 'a division to a float' : 'a division to an integer',
  parameters: ['value'],
  run: (program, lines, values) => {
    const { code, kind } = program.value(required(values, 'value'), lines)
    if (kind !== 'duration') throw new Unconvertible('the value is not known to be a duration')
    if (isFloat) return { code: `(to_float(${code}) / ${unit}.0)`, kind: 'float' }
    if (unit === 1) return { code, kind: 'integer' }
    return { code: `to_int((${code} - mod(${code}, ${unit})) / ${unit})`, kind: 'integer' }
  },
})

const nanoseconds = (time: string) => `to_unix_timestamp(${time}, unit: "nanoseconds")`

/** A sum or difference with a time or duration; undefined if neither side is one. */
export function withTimes(operator: string, a: Value, b: Value, lines: Lines): Value | undefined {
  const kinds = `${a.kind} ${operator} ${b.kind}`
  switch (kinds) {
    case 'time + duration':
    case 'time - duration':
      return lines.fallible(
        `from_unix_timestamp(${nanoseconds(a.code)} ${operator} ${b.code}, unit: "nanoseconds")`,
        'time',
      )
    case 'duration + time':
      return lines.fallible(`from_unix_timestamp(${nanoseconds(b.code)} + ${a.code}, unit: "nanoseconds")`, 'time')
    case 'time - time':
      return { code: `(${nanoseconds(a.code)} - ${nanoseconds(b.code)})`, kind: 'duration' }
    case 'duration + duration':
    case 'duration - duration':
      return { code: `(${a.code} ${operator} ${b.code})`, kind: 'duration' }
    default:
      if (!/time|duration/.test(kinds)) return undefined
      throw new Unconvertible('times and durations can only be added to and subtracted from each other')
  }
}
