// The filters of the extended dialect, which convert the text matched by a reference.

import { Float, float, integer, isFloat, isInteger, type Value, type ValueObject } from '../../event/value.ts'
import { isFailedJson, parseJson } from '../json.ts'
import { parseDecimal, parseInteger } from '../number.ts'
import { compileBounded } from '../regex-linear.ts'
import { parseRubyHash } from '../ruby-hash.ts'
import { parseXml } from '../xml.ts'
import { put } from './fields.ts'

/** Returns undefined for an unsupported value. */
export type Filter = (value: Value) => Value | undefined

/** An invalid pattern; caught by the functions that compile patterns. */
export class InvalidGrok extends Error {}

const largest = 2 ** 63

/** A number without fraction is an integer if it fits in 64 bits. */
function numberValue(number: number): Value {
  if (!Number.isInteger(number) || Math.abs(number) > largest) return float(number)
  return toInteger64(number)
}

/** The nearest 64-bit integer, rounded towards zero. */
function toInteger64(number: number): Value {
  const whole = Math.trunc(number)
  if (Number.isSafeInteger(whole)) return whole + 0
  return whole >= largest ? integer(2n ** 63n - 1n) : whole <= -largest ? integer(-(2n ** 63n)) : integer(BigInt(whole))
}

export function toNumber(value: Value): Value | undefined {
  const number = typeof value === 'string' ? parseDecimal(value) : undefined
  return number === undefined ? undefined : numberValue(number)
}

export function toInteger(value: Value): Value | undefined {
  return typeof value === 'string' ? parseInteger(value) : undefined
}

export function toIntegerExtended(value: Value): Value | undefined {
  const number = typeof value === 'string' ? parseDecimal(value) : undefined
  return number === undefined ? undefined : toInteger64(number)
}

export type FilterArgument = string | number | undefined

export function argumentsOf(text: string | undefined): FilterArgument[] {
  if (text === undefined) return []
  const found: FilterArgument[] = []
  const part = /\s*(?:"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|([^,"'()]+))\s*(,|$)/gy
  const inner = text.slice(1, -1)
  for (let match = part.exec(inner); match !== null && match[0] !== ''; match = part.exec(inner)) {
    const quoted = match[1] ?? match[2]
    if (quoted !== undefined) found.push(quoted.replace(/\\(["'\\])/g, '$1'))
    else if (/^\.?\d[\d.eE+-]*$/.test((match[3] as string).trim())) found.push(Number(match[3]))
    else found.push((match[3] as string).trim())
  }
  return found
}

const plainXml = {
  trim: true,
  includeAttributes: true,
  attributePrefix: '',
  textKey: 'value',
  alwaysUseTextKey: false,
  parseBoolean: false,
  parseNull: false,
  parseNumber: false,
}

export function filterOf(text: string): Filter {
  const match = /^(\w+)\s*(\([\s\S]*\))?$/.exec(text)
  const name = match?.[1] ?? text
  const args = argumentsOf(match?.[2])
  const onText =
    (work: (text: string) => Value | undefined): Filter =>
    (value) =>
      typeof value === 'string' ? work(value) : undefined
  switch (name) {
    case 'integer':
      return toInteger
    case 'integerExt':
      return toIntegerExtended
    case 'number':
    case 'numberExt':
      return toNumber
    case 'scale': {
      const [factor] = args
      if (typeof factor !== 'number') throw new InvalidGrok('scale needs a number')
      return (value) => {
        const number =
          typeof value === 'string'
            ? parseDecimal(value)
            : isInteger(value) || isFloat(value)
              ? Number(value instanceof Float ? value.value : value)
              : undefined
        return number === undefined || Number.isNaN(number * factor) ? undefined : numberValue(number * factor)
      }
    }
    case 'lowercase':
      return onText((value) => value.toLowerCase())
    case 'uppercase':
      return onText((value) => value.toUpperCase())
    case 'nullIf':
      if (typeof args[0] !== 'string') throw new InvalidGrok('nullIf needs a text')
      return onText((value) => (value === args[0] ? null : value))
    case 'boolean':
      return onText((value) => value.toLowerCase() === 'true')
    case 'json':
      return onText((value) => {
        const parsed = parseJson(value)
        return isFailedJson(parsed) ? undefined : parsed
      })
    case 'rubyhash':
      return onText(parseRubyHash)
    case 'querystring':
      return onText((value) => {
        const fields: ValueObject = {}
        for (const [key, item] of new URLSearchParams(value)) put(fields, [key], item)
        return fields
      })
    case 'decodeuricomponent':
      return onText((value) =>
        value.replace(/(?:%[0-9A-Fa-f]{2})+/g, (part) => Buffer.from(part.replaceAll('%', ''), 'hex').toString()),
      )
    case 'xml':
      return onText((value) => parseXml(value, plainXml))
    case 'array':
      return arrayFilter(match?.[2], args)
    case 'keyvalue':
      return keyValueFilter(args)
    default:
      throw new InvalidGrok(`unknown filter '${name}'`)
  }
}

/** `array([brackets,] delimiter, filter)`; each argument is optional. */
function arrayFilter(text: string | undefined, args: readonly FilterArgument[]): Filter {
  const inner = /(?:^\(|,)\s*([A-Za-z]\w*(?:\([^)]*\))?)\s*\)$/.exec(text ?? '')
  const filter = inner === null ? undefined : filterOf(inner[1] as string)
  const texts = filter === undefined ? args : args.slice(0, argumentCount(text) - 1)
  if (texts.length > 2 || texts.some((argument) => typeof argument !== 'string')) {
    throw new InvalidGrok('array needs brackets and a delimiter')
  }
  const brackets = texts.length === 2 ? String(texts[0]) : '[]'
  if (brackets.length > 2) throw new InvalidGrok('brackets are two characters')
  const delimiter = String(texts.at(-1) ?? ',').replace(/\\[nrt]/g, (escaped) =>
    escaped === '\\n' ? '\n' : escaped === '\\r' ? '\r' : '\t',
  )
  return (value) => {
    if (typeof value !== 'string') return undefined
    const items = brackets === '' ? value.split(delimiter) : bracketed(value, brackets, delimiter)
    if (items === undefined || filter === undefined) return items
    const results = items.map(filter)
    return results.every((result) => result !== undefined) ? results : undefined
  }
}

function argumentCount(text: string | undefined): number {
  return (text ?? '').replace(/"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\([^()]*\)(?=\s*\)$)/g, '').split(',').length
}

/** Splits the text between brackets; undefined if the brackets are missing. */
function bracketed(text: string, brackets: string, delimiter: string): string[] | undefined {
  const open = brackets[0] as string
  const close = brackets.at(-1) as string
  if (!text.startsWith(open)) return undefined
  const items: string[] = []
  let at = 1
  for (;;) {
    // The last item ends at the bracket.
    const next = text.indexOf(delimiter, at)
    const end = next < 0 ? text.indexOf(close, at) : next
    if (end < 0) return undefined
    items.push(text.slice(at, end))
    at = end
    if (!text.startsWith(delimiter, at)) break
    at += delimiter.length
  }
  return text.startsWith(close, at) && text.slice(at + 1).trim() === '' ? items : undefined
}

/** `keyvalue(separator, additional value characters, quotes, delimiters)`; the separator is a regular expression. */
function keyValueFilter(args: readonly FilterArgument[]): Filter {
  if (args.some((argument) => typeof argument !== 'string')) throw new InvalidGrok('keyvalue needs texts')
  const [separator = '=', more = '', quotes = '', delimiters] = args as (string | undefined)[]
  if (quotes !== '' && quotes.length !== 2) throw new InvalidGrok('quotes are two characters')
  if (delimiters === '') throw new InvalidGrok('the delimiter of keyvalue is empty')
  const literal = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')
  const pairs = quotes === '' ? ['""', "''", '<>'] : [quotes]
  const left = delimiters === undefined ? '\\s,;(\\[{' : delimiters[0]
  const right = delimiters === undefined ? '\\s,;)\\]}' : delimiters.length > 1 ? delimiters.slice(1) : delimiters
  const quoted = pairs.map(
    (pair) => `${literal(pair[0] as string)}[^${literal(pair[0] as string)}]+${literal(pair[1] as string)}|`,
  )
  const word = `(${quoted.join('')}[\\w\\u00aa-\\uffff.\\-@${more}]+)`
  const pattern = compileBounded(`(?<=[${left}]|^)${word}${separator}${word}(?:[${right}]|$)`, 'g')
  const unquoted = (text: string): string | undefined => {
    for (const [open, close] of pairs) {
      const end = text.startsWith(open as string) ? text.indexOf(close as string, 1) : -1
      if (end > 0) return text.slice(1, end)
    }
    return undefined
  }
  const scalar = (text: string): Value => {
    if (text.startsWith('null')) return null
    if (text.startsWith('true')) return true
    if (text.startsWith('false')) return false
    const number = parseDecimal(text)
    const octal = number !== undefined && Number.isInteger(number) && text.startsWith('0') && /[89]/.test(text)
    if (number !== undefined && !octal) return numberValue(number)
    return (unquoted(text) ?? text).trim()
  }
  return (value) => {
    if (typeof value !== 'string') return undefined
    const fields: ValueObject = {}
    for (const match of value.matchAll(pattern)) {
      const name = (match[1] as string).trim()
      const key = unquoted(name) ?? name
      const item = scalar((match[2] as string).trim().replace(/,+$/, ''))
      if (key !== '' && !key.includes(' ') && item !== null && item !== '') put(fields, [key], item)
    }
    return fields
  }
}
