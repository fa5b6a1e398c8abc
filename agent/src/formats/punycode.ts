// International domain names in ASCII form (RFC 3492, UTS 46), label by label. Node checks whole names (`domainToASCII`), but
// cannot convert a single label or a label of an invalid name.
// punycode, which tr46 uses, is not used here: its work grows with the square of the length without a limit. A label of 5,000
// different characters, which an event may contain, took half a second.

import { domainToASCII } from 'node:url'

const base = 36
const smallest = 1
const largest = 26
const skew = 38
const damp = 700

function adapted(delta: number, points: number, first: boolean): number {
  let rest = first ? Math.floor(delta / damp) : delta >> 1
  rest += Math.floor(rest / points)
  let k = 0
  while (rest > ((base - smallest) * largest) >> 1) {
    rest = Math.floor(rest / (base - smallest))
    k += base
  }
  return k + Math.floor(((base - smallest + 1) * rest) / (rest + skew))
}

function threshold(k: number, bias: number): number {
  return k <= bias ? smallest : k >= bias + largest ? largest : k - bias
}

// Limited because the work grows with the square of the length.
const maxEncodedLength = 1000
const maxDecodedLength = 2000

/** The encoded label without `xn--`; undefined if it is too long. */
export function encodeLabel(label: string): string | undefined {
  const points = Array.from(label, (character) => character.codePointAt(0) as number)
  if (points.length > maxEncodedLength) return undefined
  const basic = points.filter((point) => point < 0x80)
  let result = String.fromCodePoint(...basic)
  let handled = basic.length
  if (handled > 0) result += '-'
  let next = 0x80
  let delta = 0
  let bias = 72
  while (handled < points.length) {
    const lowest = Math.min(...points.filter((point) => point >= next))
    delta += (lowest - next) * (handled + 1)
    next = lowest
    for (const point of points) {
      if (point < next) delta++
      if (point !== next) continue
      let rest = delta
      for (let k = base; ; k += base) {
        const t = threshold(k, bias)
        if (rest < t) break
        result += digit(t + ((rest - t) % (base - t)))
        rest = Math.floor((rest - t) / (base - t))
      }
      result += digit(rest)
      bias = adapted(delta, handled + 1, handled === basic.length)
      delta = 0
      handled++
    }
    delta++
    next++
  }
  return result
}

/** Decodes the text after `xn--`; undefined if it is invalid. */
export function decodeLabel(text: string): string | undefined {
  if (text.length > maxDecodedLength) return undefined
  const delimiter = text.lastIndexOf('-')
  const points = Array.from(
    delimiter > 0 ? text.slice(0, delimiter) : '',
    (character) => character.codePointAt(0) as number,
  )
  if (points.some((point) => point >= 0x80)) return undefined
  let at = delimiter > 0 ? delimiter + 1 : 0
  let next = 0x80
  let index = 0
  let bias = 72
  while (at < text.length) {
    const before = index
    let weight = 1
    for (let k = base; ; k += base) {
      const value = digitValue(text.charCodeAt(at++))
      if (value < 0) return undefined
      index += value * weight
      if (index > 0x7fffffff) return undefined
      const t = threshold(k, bias)
      if (value < t) break
      weight *= base - t
    }
    bias = adapted(index - before, points.length + 1, before === 0)
    next += Math.floor(index / (points.length + 1))
    index %= points.length + 1
    if (next > 0x10ffff || (next >= 0xd800 && next < 0xe000)) return undefined
    points.splice(index++, 0, next)
  }
  return String.fromCodePoint(...points)
}

function digit(value: number): string {
  return String.fromCharCode(value < 26 ? value + 97 : value + 22)
}

function digitValue(code: number): number {
  if (code >= 48 && code <= 57) return code - 22
  if (code >= 65 && code <= 90) return code - 65
  return code >= 97 && code <= 122 ? code - 97 : -1
}

const prefix = 'xn--'

/** The ASCII form of a name; undefined if it is invalid. */
export function domainToAscii(name: string): string | undefined {
  const encoded: string[] = []
  for (const label of validLabels(name) ?? [undefined]) {
    const ascii = label === undefined || /^\p{ASCII}*$/u.test(label) ? label : encodeLabel(label)
    if (ascii === undefined) return undefined
    encoded.push(ascii === label ? label : prefix + ascii)
  }
  return encoded.join('.')
}

/** The Unicode form of a name; undefined if it is invalid. */
export function domainToUnicode(name: string): string | undefined {
  return validLabels(name)?.join('.')
}

/** The labels in Unicode. */
function validLabels(name: string): string[] | undefined {
  const labels: string[] = []
  for (const label of mapped(name).split('.')) {
    const decoded = label.startsWith(prefix) ? decodeLabel(label.slice(prefix.length)) : label
    if (decoded === undefined || !isValid(decoded, decoded !== label || label === prefix)) return undefined
    labels.push(decoded)
  }
  return labels.some((label) => /[\p{L}\p{N}]/u.test(label) && rightToLeft.test(label)) &&
    !labels.every(isBidirectional)
    ? undefined
    : labels
}

/** Normalises letter case, compatible forms and ignored characters. */
function mapped(name: string): string {
  return name
    .replace(/\u00ad|\u034f|[\u180b-\u180d]|\u200b|\u2060|[\ufe00-\ufe0f]|\ufeff/g, '')
    .normalize('NFKC')
    .toLowerCase()
    .normalize('NFKC')
    .replaceAll('。', '.')
}

/** @param wasEncoded whether the label was in ASCII form, which must then be its only valid form */
function isValid(label: string, wasEncoded: boolean): boolean {
  if (/^\p{ASCII}*$/u.test(label)) return !wasEncoded
  if (wasEncoded && mapped(label) !== label) return false
  // ASCII characters that are invalid in host names are ignored here.
  return (
    domainToASCII(
      `${label.replace(/\p{ASCII}/gu, (character) => (/[a-z0-9-]/.test(character) ? character : 'a'))}.a`,
    ) !== ''
  )
}

const rightToLeft = /[\u0590-\u08ff\u200f\ufb1d-\ufdff\ufe70-\ufefe\u{10800}-\u{10fff}\u{1e800}-\u{1efff}]/u
const arabicDigit =
  /[\u0600-\u0605\u0660-\u0669\u066b\u066c\u06dd\u0890\u0891\u08e2\u{10d30}-\u{10d39}\u{10e60}-\u{10e7e}]/u
const europeanDigit = /[0-9²³¹\u06f0-\u06f9\u2070-\u2089\u2488-\u249b]/u

/** Whether a label may be part of a name with right-to-left letters (RFC 5893). */
function isBidirectional(label: string): boolean {
  const classes = Array.from(label, (character) =>
    /\p{Mn}/u.test(character)
      ? 'mark'
      : arabicDigit.test(character)
        ? 'arabic'
        : europeanDigit.test(character)
          ? 'european'
          : rightToLeft.test(character)
            ? 'right'
            : /[\p{L}\p{N}\p{Mc}]/u.test(character)
              ? 'left'
              : 'other',
  )
  const last = classes.findLast((each) => each !== 'mark')
  if (classes[0] === undefined) return true
  if (classes[0] === 'left') {
    return (last === 'left' || last === 'european') && !classes.includes('right') && !classes.includes('arabic')
  }
  return (
    classes[0] === 'right' &&
    (last === 'right' || last === 'european' || last === 'arabic') &&
    !classes.includes('left') &&
    !(classes.includes('european') && classes.includes('arabic'))
  )
}
