// The patterns and replacements of `redact`, compiled from its constant arguments.

import { createHash } from 'node:crypto'
import { getField, isObject, Regex, type Value } from '../event/value.ts'
import { eachMatch } from './matching.ts'
import { compileRegex } from './regex.ts'
import { valueText } from './text.ts'

/** Replaces sensitive parts of a text. */
export type Redaction = (text: string, maxBytes: number) => string | undefined

// The last group may not be all zeros; 000, 666 and 9xx are not valid areas.
const socialSecurityNumber = compileRegex(
  '(?:00[1-9]|0[1-9]\\d|[1-578]\\d\\d|6[0-57-9]\\d|66[0-57-9])-(?:0[1-9]|[1-9]\\d)-(?:000[1-9]|00[1-9]\\d|0[1-9]\\d\\d|[1-9]\\d{3})',
) as Regex

/** The redaction; a sentence if the arguments are invalid. */
export function compileRedaction(filters: Value | undefined, redactor: Value | undefined): Redaction | string {
  if (!Array.isArray(filters)) return 'filters must be a literal array'
  const patterns: (Regex | string)[] = []
  for (const filter of filters) {
    const found = patternsOf(filter)
    if (typeof found === 'string') return found
    patterns.push(...found)
  }
  const replace = replacerOf(redactor)
  if (typeof replace === 'string') return replace
  return (text, maxBytes) => {
    let result: string | undefined = text
    for (const pattern of patterns) {
      result = redacted(result, pattern, replace, maxBytes)
      if (result === undefined) return undefined
    }
    return result
  }
}

/** Undefined if the result would exceed the limit. */
function redacted(
  text: string,
  pattern: Regex | string,
  replace: (match: string) => string,
  maxBytes: number,
): string | undefined {
  if (typeof pattern === 'string') {
    if (pattern === '') return text
    const parts = text.split(pattern)
    const replacement = replace(pattern)
    return text.length + parts.length * replacement.length > maxBytes ? undefined : parts.join(replacement)
  }
  let result = ''
  let at = 0
  eachMatch(pattern, text, (match) => {
    result += text.slice(at, match.index) + replace(match[0])
    at = match.index + match[0].length
    return result.length <= maxBytes
  })
  return result.length <= maxBytes ? result + text.slice(at) : undefined
}

const filters = '"us_social_security_number" or { "type": "pattern", "patterns": [...] }'
const redactors = '"full", { "type": "text", "replacement": "..." }, "sha2" or "sha3"'

function patternsOf(filter: Value): (Regex | string)[] | string {
  if (filter instanceof Regex) return [filter]
  const type = isObject(filter) ? getField(filter, 'type') : filter
  if (type === 'us_social_security_number') return [socialSecurityNumber]
  if (type !== 'pattern' || !isObject(filter))
    return `unknown filter ${valueText(filter)}: expected a regex, ${filters}`
  const patterns = getField(filter, 'patterns')
  if (!Array.isArray(patterns)) return 'a filter of type "pattern" needs an array "patterns"'
  for (const pattern of patterns) {
    if (typeof pattern !== 'string' && !(pattern instanceof Regex))
      return `unknown pattern ${valueText(pattern)}: expected a string or a regex`
  }
  return patterns as (Regex | string)[]
}

const hashes: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  sha2: {
    'SHA-224': 'sha224',
    'SHA-256': 'sha256',
    'SHA-384': 'sha384',
    'SHA-512': 'sha512',
    'SHA-512/224': 'sha512-224',
    'SHA-512/256': 'sha512-256',
  },
  sha3: { 'SHA3-224': 'sha3-224', 'SHA3-256': 'sha3-256', 'SHA3-384': 'sha3-384', 'SHA3-512': 'sha3-512' },
}

function replacerOf(redactor: Value | undefined): ((match: string) => string) | string {
  const option = (name: string): Value | undefined => (isObject(redactor) ? getField(redactor, name) : undefined)
  const type = isObject(redactor) ? option('type') : redactor
  if (type === 'full') return () => '[REDACTED]'
  if (type === 'text') {
    const replacement = option('replacement')
    return typeof replacement === 'string'
      ? () => replacement
      : 'a redactor of type "text" needs a string "replacement"'
  }
  if (type !== 'sha2' && type !== 'sha3')
    return `unknown redactor ${valueText(redactor ?? null)}: expected ${redactors}`
  const variant = option('variant') ?? (type === 'sha2' ? 'SHA-512/256' : 'SHA3-512')
  const algorithm = hashes[type]?.[String(variant)]
  if (algorithm === undefined)
    return `unknown variant ${valueText(variant)}: expected ${Object.keys(hashes[type] ?? {}).join(', ')}`
  const encoding = option('encoding') ?? 'base64'
  if (encoding !== 'base64' && encoding !== 'base16')
    return `unknown encoding ${valueText(encoding)}: expected base64 or base16`
  return (match) =>
    createHash(algorithm)
      .update(match)
      .digest(encoding === 'base16' ? 'hex' : 'base64')
}
