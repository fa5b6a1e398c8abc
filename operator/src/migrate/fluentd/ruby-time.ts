// Times in Ruby expressions: the time of the event, the current time, and times from texts and numbers.

import { textLiteral } from '@penstock/agent/config'
import { eventTime, unixSeconds } from '../unix-time.ts'
import type { Emitter } from './ruby-emitter.ts'
import { asText, isNumber, literalOf, type Node, wholeNumber } from './ruby-node.ts'

/** A time with the zone in which Ruby writes it. */
export interface Instant {
  /** An expression for the time. */
  readonly text: string
  /** UTC, the zone of the machine (UTC in containers), or an offset that the program computes. */
  readonly zone: 'utc' | 'local' | Offset
}

interface Offset {
  /** An expression for the seconds. */
  readonly seconds: string
  /** An expression for the text, such as `+02:00`. */
  readonly text: string
}

export const eventInstant: Instant = { text: eventTime, zone: 'local' }
export const currentInstant: Instant = { text: 'now()', zone: 'local' }

export const timeAs = (format: string, time = eventTime) =>
  `(format_timestamp(${time}, ${textLiteral(format)}) ?? null)`

/** Fractions of seconds: `%L` has three digits, `%N` nine unless it contains the number. `%Q` is milliseconds. */
export const rubyTimeFormat = (format: string) =>
  format
    .replaceAll('%Q', '%s%3f')
    .replace(/(\.?)%(?:L|([369]?)N)/g, (whole, dot: string, digits: string | undefined) => {
      const count = whole.endsWith('L') ? '3' : digits || '9'
      return dot === '' ? `%${count}f` : `%.${count}f`
    })

/** Methods that return the same time, in a zone. */
export function inZone({ text, zone }: Instant, method: string, words: readonly Node[]): Instant | undefined {
  if (words.length > 1) return undefined
  if (method === 'localtime' || method === 'getlocal' || method === 'new_offset') {
    const [word] = words
    if (word === undefined) return { text, zone: 'local' }
    const found = /^([-+])(\d{2}):(\d{2})$/.exec(literalOf(word))
    if (found === null) return undefined
    const seconds = (60 * Number(found[2]) + Number(found[3])) * (found[1] === '-' ? -60 : 60)
    return { text, zone: { seconds: String(seconds), text: textLiteral(found[0]) } }
  }
  if (words.length > 0) return undefined
  if (['utc', 'getutc', 'gmtime', 'getgm'].includes(method)) return { text, zone: 'utc' }
  return ['to_time', 'to_datetime'].includes(method) ? { text, zone } : undefined
}

/** A call on a time whose result is not a time. */
export function timeCall(method: string, words: readonly Node[], at: Instant): Node | undefined {
  const [first, ...others] = words
  if (others.length > 0) return undefined
  if (method === 'strftime' && first?.kind === 'text') return written(rubyTimeFormat(literalOf(first)), at)
  if (['iso8601', 'xmlschema', 'rfc3339'].includes(method)) {
    const digits = first === undefined ? 0 : wholeNumber(first)
    if (![0, 3, 6, 9].includes(digits)) return undefined
    const fraction = digits === 0 ? '' : `%.${digits}f`
    return written(`%Y-%m-%dT%H:%M:%S${fraction}${at.zone === 'utc' ? 'Z' : '%:z'}`, at)
  }
  if (first !== undefined) return undefined
  if (method === 'to_i') return { text: `to_unix_timestamp(${at.text})`, kind: 'integer' }
  const parts = { year: '%Y', month: '%m', mon: '%m', day: '%d', mday: '%d', hour: '%H', min: '%M', sec: '%S' }
  if (Object.hasOwn(parts, method)) {
    const text = written(parts[method as keyof typeof parts], at).text
    return {
      text: `(to_int(replace(to_string(${text}) ?? "", r'^0(\\d)', "$$1")) ?? 0)`.replace('$$1', '$1'),
      kind: 'integer',
    }
  }
  if (method === 'to_s') return written(`%Y-%m-%d %H:%M:%S ${at.zone === 'utc' ? 'UTC' : '%z'}`, at)
  return method === 'to_f' ? { text: `(${unixSeconds(at.text)})`, kind: 'float' } : undefined
}

/** A time as a text. With an offset, the parts of the format for the zone are filled in. */
function written(format: string, { text, zone }: Instant): Node {
  if (typeof zone === 'string') return { text: timeAs(format, text), kind: 'any' }
  const shifted = `from_unix_timestamp(to_unix_timestamp(${text}, unit: "nanoseconds") + ${zone.seconds} * 1000000000, unit: "nanoseconds") ?? now()`
  const parts = format.split(/(%:?z)/).filter((part) => part !== '')
  const texts = parts.map((part) => {
    if (part === '%:z') return zone.text
    if (part === '%z') return `replace(${zone.text}, ":", "")`
    return `(format_timestamp(${shifted}, ${textLiteral(part)}) ?? "")`
  })
  return { text: `(${texts.join(' + ')})`, kind: 'text' }
}

/** Forms of times that Ruby reads from a text. A date alone is the beginning of the day. */
const forms = [
  '%+',
  '%Y-%m-%dT%H:%M:%S%.f%z',
  '%Y-%m-%d %H:%M:%S%.f %z',
  '%Y-%m-%d %H:%M:%S%.f%z',
  '%Y-%m-%d %H:%M:%S%.f UTC',
  '%Y-%m-%dT%H:%M:%S%.f',
  '%Y-%m-%d %H:%M:%S%.f',
  '%Y-%m-%d %H:%M:%S,%f',
  '%Y/%m/%d %H:%M:%S%.f',
  '%d/%b/%Y:%H:%M:%S %z',
  '%d/%b/%Y %H:%M:%S',
  '%a, %d %b %Y %H:%M:%S %z',
  '%a, %d %b %Y %H:%M:%S GMT',
  '%a %b %d %H:%M:%S %Y',
  '%a %b %d %H:%M:%S %z %Y',
  '%Y-%m-%d %H:%M',
  '%Y-%m-%dT%H:%M',
]

/**
 * A time from a text, with the offset that the text ends in. Ruby raises an error for any other text.
 * @param format the format of `strptime`
 */
export function parsedTime(word: Node, format: string | undefined, isDate: boolean, emitter: Emitter): Instant {
  const text = emitter.kept(emitter.textOf(word).text, 'text').text
  const wanted = format === undefined ? forms : [rubyTimeFormat(format)]
  const isDay = format !== undefined && !/%[HIkMSTcRrXs]/.test(format)
  const calls = wanted.map((form) =>
    isDay
      ? `parse_timestamp(${text} + " 00:00:00", ${textLiteral(`${form} %H:%M:%S`)})`
      : `parse_timestamp(${text}, ${textLiteral(form)})`,
  )
  if (format === undefined) calls.push(`parse_timestamp(${text} + " 00:00:00", "%Y-%m-%d %H:%M:%S")`)
  const time = emitter.kept(`${calls.join(' ?? ')} ?? null`, 'any').text
  emitter.failIf(`${time} == null`)
  const at = emitter.kept(`timestamp(${time}) ?? now()`, 'any').text
  const offset = emitter.kept(
    `parse_regex(${text}, r':\\d{2}(?:[.,]\\d+)? ?(?P<sign>[-+])(?P<h>\\d{2}):?(?P<m>\\d{2})$') ?? {}`,
    'any',
  ).text
  const number = (name: string) => `(to_int(to_float(to_string(${offset}.${name}) ?? "0") ?? 0.0))`
  const minute = emitter.kept(`if ${offset}.sign == "-" { -60 } else { 60 }`, 'integer').text
  const seconds = emitter.kept(`(${number('h')} * 60 + ${number('m')}) * ${minute}`, 'integer').text
  const isUtc = isDate ? 'false' : `match(${text}, r'(?:Z|UTC|GMT)$')`
  const written = emitter.kept(
    `if is_string(${offset}.sign) { (to_string(${offset}.sign) ?? "") + (to_string(${offset}.h) ?? "") + ":" + (to_string(${offset}.m) ?? "") } else if ${isUtc} { "Z" } else { "+00:00" }`,
    'text',
  ).text
  return { text: `timestamp(${at}) ?? now()`, zone: { seconds, text: written } }
}

const units: Readonly<Record<string, number>> = { millisecond: 6, microsecond: 3, usec: 3, nanosecond: 0, nsec: 0 }

/** `Time.at(n)`, in seconds, or in the unit of the last word: `Time.at(0, n, :millisecond)`. */
export function timeAt(words: readonly Node[], emitter: Emitter): Instant | undefined {
  const [first, second, unit, ...others] = words
  if (first === undefined || others.length > 0) return undefined
  const digits = unit?.literal === undefined ? undefined : units[unit.literal]
  if (second !== undefined && (first.text !== '0' || digits === undefined)) return undefined
  const amount = second ?? first
  const factor = `1${'0'.repeat(digits ?? 9)}`
  const checked = isNumber(amount)
    ? amount.text
    : emitter.kept(`if is_integer(${amount.text}) || is_float(${amount.text}) { ${amount.text} } else { null }`, 'any')
        .text
  if (!isNumber(amount)) emitter.failIf(`${checked} == null`)
  const whole = `(to_int(${checked}) ?? 0) * ${factor}`
  const broken = `to_int((to_float(${checked}) ?? 0.0) * ${digits === 0 ? '1.0' : `1${'0'.repeat(Math.max(0, (digits ?? 9) - 3))}.0`}) * ${digits === 0 ? 1 : 1000}`
  const nanoseconds =
    amount.kind === 'integer'
      ? whole
      : amount.kind === 'float'
        ? broken
        : emitter.kept(`if is_integer(${checked}) { ${whole} } else { ${broken} }`, 'integer').text
  const at = emitter.kept(`from_unix_timestamp(${nanoseconds}, unit: "nanoseconds") ?? now()`, 'any').text
  return { text: `timestamp(${at}) ?? now()`, zone: 'local' }
}

/** The seconds between two times. */
export const secondsBetween = (one: Instant, other: Instant): Node => ({
  text: `((to_unix_timestamp(${one.text}, unit: "nanoseconds") - to_unix_timestamp(${other.text}, unit: "nanoseconds")) / 1000000000.0)`,
  kind: 'float',
})

/** A time as its text, where Ruby would convert it. */
export const timeText = (at: Instant): Node => ({ text: asText(timeCall('to_s', [], at) as Node), kind: 'text' })
