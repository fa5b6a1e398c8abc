// Decimal numbers and booleans in text, as the coercing functions read them.

import { integer } from '../event/value.ts'

/** A decimal float: `1e3`, `.5`, `5.`, `inf`, `infinity`, with an optional sign; undefined for other text. */
export function parseDecimal(text: string): number | undefined {
  if (/^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/.test(text)) return Number(text)
  const word = /^([+-]?)inf(?:inity)?$/i.exec(text)
  if (word === null) return undefined
  return word[1] === '-' ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
}

/** Why a text is not a decimal float. */
export function decimalProblem(text: string): string {
  return text === '' ? 'cannot parse float from empty string' : 'invalid float literal'
}

/** A 64-bit integer in decimal digits, with an optional sign; undefined for other text. */
export function parseInteger(text: string): number | bigint | undefined {
  if (!/^[+-]?[0-9]+$/.test(text)) return undefined
  if (text.length <= 15) return Number(text) + 0
  const whole = text.startsWith('-') ? -BigInt(text.slice(1)) : BigInt(text.replace('+', ''))
  return BigInt.asIntN(64, whole) === whole ? integer(whole) : undefined
}

const words = new Map([
  ['true', true],
  ['t', true],
  ['yes', true],
  ['y', true],
  ['false', false],
  ['f', false],
  ['no', false],
  ['n', false],
])

/** A boolean as a word in any letter case, or as a 64-bit integer; undefined for other text. */
export function parseBoolean(text: string): boolean | undefined {
  const word = words.get(text.toLowerCase())
  if (word !== undefined) return word
  const whole = parseInteger(text)
  return whole === undefined ? undefined : whole !== 0
}

/** The maximum 96-bit decimal is one less. */
const decimalLimit = 2n ** 96n

/**
 * The float nearest to a fraction, computed in decimal arithmetic of at most 28 places and 96 bits; neither part is
 * negative.
 */
export function decimalFloat(numerator: bigint, denominator: bigint): number {
  let scale = 28
  let digits = (numerator * 10n ** 28n * 2n + denominator) / (denominator * 2n)
  if (digits % 10n === 0n || digits >= decimalLimit) {
    while (scale > 0 && digits >= decimalLimit) {
      scale--
      digits = (numerator * 10n ** BigInt(scale) * 2n + denominator) / (denominator * 2n)
    }
    while (scale > 0 && digits % 10n === 0n) {
      scale--
      digits /= 10n
    }
  }
  const unit = 10n ** BigInt(scale)
  const fraction = Number(digits % unit) / Number(unit)
  if (fraction === 0) return Number(digits / unit)
  const value = Number(digits / unit) + fraction
  return Math.round(value * Number(unit)) / Number(unit)
}
