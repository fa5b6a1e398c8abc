// The time of the event in Ruby expressions.

import { textLiteral } from '@penstock/agent/config'
import { eventTime, unixSeconds } from '../unix-time.ts'
import { literalOf, type Node, wholeNumber } from './ruby-node.ts'

export const timeAs = (format: string) => `(format_timestamp(${eventTime}, ${textLiteral(format)}) ?? null)`

/** Fractions of seconds: `%L` has three digits, `%N` nine unless it contains the number. */
const rubyTimeFormat = (format: string) =>
  format.replace(/(\.?)%(?:L|([369]?)N)/g, (whole, dot: string, digits: string | undefined) => {
    const count = whole.endsWith('L') ? '3' : digits || '9'
    return dot === '' ? `%${count}f` : `%.${count}f`
  })

export function timeCall(method: string, words: readonly Node[], isUtc: boolean): Node | undefined {
  const [first, ...others] = words
  if (others.length > 0) return undefined
  if (method === 'strftime' && first?.kind === 'text')
    return { text: timeAs(rubyTimeFormat(literalOf(first))), kind: 'any' }
  if (method === 'iso8601' || method === 'xmlschema') {
    const digits = first === undefined ? 0 : wholeNumber(first)
    if (![0, 3, 6, 9].includes(digits)) return undefined
    const fraction = digits === 0 ? '' : `%.${digits}f`
    return { text: timeAs(`%Y-%m-%dT%H:%M:%S${fraction}${isUtc ? 'Z' : '%:z'}`), kind: 'any' }
  }
  if (first !== undefined) return undefined
  if (method === 'to_i') return { text: `to_unix_timestamp(${eventTime})`, kind: 'integer' }
  if (method !== 'to_f') return undefined
  return { text: `(${unixSeconds()})`, kind: 'float' }
}
