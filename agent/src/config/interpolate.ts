// Environment variables in configuration text: `$NAME`, `${NAME}`, `${NAME:-default}`, `${NAME:?error}`, and `$$` for a dollar sign.
// The agent replaces them before it parses the text, even in comments and keys. It rejects a value with a line break, so that a
// variable cannot add options.

import { hostname } from 'node:os'
import type { Environment } from '../environment.ts'

export interface Interpolated {
  readonly text: string
  readonly problems: readonly { readonly offset: number; readonly message: string }[]
  /** Converts an offset in `text` to an offset in the original text. */
  sourceOffset(offset: number): number
}

interface Replacement {
  /** The range of the replacement in the new text, and in the original text below. */
  readonly start: number
  readonly end: number
  readonly sourceStart: number
  readonly sourceEnd: number
}

const placeholder = /\$\$|\$([A-Za-z0-9_.]+)|\$\{([A-Za-z0-9_.]+)(?:(:?-|:?\?)([^}]*))?\}/g

export function interpolate(source: string, environment: Environment): Interpolated {
  const problems: { offset: number; message: string }[] = []
  const replacements: Replacement[] = []
  let text = ''
  let copied = 0
  for (const match of source.matchAll(placeholder)) {
    const answer = replacement(match, environment)
    if ('message' in answer && !problems.some((problem) => problem.message === answer.message)) {
      problems.push({ offset: match.index, message: answer.message })
    }
    text += source.slice(copied, match.index)
    const start = text.length
    text += 'value' in answer ? answer.value : ''
    copied = match.index + match[0].length
    replacements.push({ start, end: text.length, sourceStart: match.index, sourceEnd: copied })
  }
  return { text: text + source.slice(copied), problems, sourceOffset: (offset) => before(replacements, offset) }
}

function replacement(match: RegExpExecArray, environment: Environment): { value: string } | { message: string } {
  const name = match[1] ?? match[2]
  if (name === undefined) return { value: '$' }
  const value = environment[name] ?? (name === 'HOSTNAME' ? hostname() : undefined)
  const [, , , operator, text = ''] = match
  if (value !== undefined && /[\r\n]/.test(value)) {
    return { message: `Environment variable contains newline character. name = "${name}"` }
  }
  if (operator === ':-' && (value === undefined || value === '')) return { value: text }
  if (operator === ':?' && value === '') {
    return { message: `Non-empty environment variable required in config. name = "${name}", error = "${text}"` }
  }
  if (value !== undefined) return { value }
  if (operator === '-') return { value: text }
  if (operator === '?' || operator === ':?') {
    return { message: `Missing environment variable required in config. name = "${name}", error = "${text}"` }
  }
  return { message: `Missing environment variable in config. name = "${name}"` }
}

function before(replacements: readonly Replacement[], offset: number): number {
  let shift = 0
  for (const { start, end, sourceStart, sourceEnd } of replacements) {
    if (offset < start) break
    if (offset < end) return sourceStart
    shift = sourceEnd - end
  }
  return offset + shift
}
