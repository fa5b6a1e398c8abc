// Converts log selectors, such as `{app="web"} |= "error" !~ "health"`, to conditions of the remap language.

import { textLiteral } from '@penstock/agent/config'
import { labelText, lineText } from './fields.ts'
import { translateRegex } from './regex.ts'

export type Condition = { readonly ok: true; readonly text: string } | { readonly ok: false; readonly reason: string }

const token =
  /\s*(?:(?<op>\|=|\|~|!=|!~|=~|=|\{|\}|,|\||(?:or|and)(?=\s))|(?<name>[A-Za-z_]\w*)|"(?<quoted>(?:[^"\\]|\\.)*)"|`(?<raw>[^`]*)`)/y

interface Token {
  readonly kind: 'op' | 'name' | 'text'
  readonly text: string
}

/** Go's escapes in quoted text. */
export function unquote(text: string): string {
  const signs: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', a: '\x07', b: '\b', f: '\f', v: '\v' }
  return text.replace(
    /\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|x([0-9a-fA-F]{2})|([0-7]{3})|(.))/gs,
    (_, four?: string, eight?: string, two?: string, octal?: string, sign?: string) => {
      const hex = four ?? eight ?? two
      if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16))
      if (octal !== undefined) return String.fromCodePoint(Number.parseInt(octal, 8))
      return signs[sign ?? ''] ?? sign ?? ''
    },
  )
}

function tokensOf(text: string): Token[] | undefined {
  const tokens: Token[] = []
  token.lastIndex = 0
  while (token.lastIndex < text.trimEnd().length) {
    const groups = token.exec(text)?.groups
    if (groups === undefined) return undefined
    const { op, name, quoted, raw } = groups
    if (op !== undefined) tokens.push({ kind: 'op', text: op })
    else if (name !== undefined) tokens.push({ kind: 'name', text: name })
    else tokens.push({ kind: 'text', text: raw ?? unquote(quoted ?? '') })
  }
  return tokens
}

/** One comparison. A pattern for a label must match the whole value. */
function comparison(value: string, op: string, operand: string, isWhole: boolean): string {
  const regex = () => {
    const translated = translateRegex(isWhole ? `^(?:${operand})$` : operand)
    if (!translated.ok) throw new Error(`its regular expression is not valid: ${translated.reason}`)
    return `match(${value}, r'${translated.text}')`
  }
  switch (op) {
    case '=':
      return `${value} == ${textLiteral(operand)}`
    case '!=':
      return isWhole ? `${value} != ${textLiteral(operand)}` : `!contains(${value}, ${textLiteral(operand)})`
    case '|=':
      return `contains(${value}, ${textLiteral(operand)})`
    case '=~':
    case '|~':
      return regex()
    case '!~':
      return `!${regex()}`
    default:
      throw new Error(`\`${op}\` is not read`)
  }
}

/** The selector as a condition on `.labels` and the line. */
export function selectorCondition(text: string): Condition {
  const tokens = tokensOf(text)
  if (tokens === undefined) return { ok: false, reason: 'the selector is not valid' }
  let at = 0
  const take = (kind: Token['kind'], ...texts: readonly string[]): string | undefined => {
    const found = tokens[at]
    if (found?.kind !== kind || (texts.length > 0 && !texts.includes(found.text))) return undefined
    at++
    return found.text
  }
  try {
    const tests: string[] = []
    if (take('op', '{') === undefined) throw new Error('the selector does not begin with labels in braces')
    while (take('op', '}') === undefined) {
      const name = take('name')
      const op = take('op', '=', '!=', '=~', '!~')
      const operand = take('text')
      if (name === undefined || op === undefined || operand === undefined)
        throw new Error('a label must be compared with a text')
      tests.push(comparison(labelText(name), op, operand, true))
      if (take('op', ',') === undefined && tokens[at]?.text !== '}') throw new Error('the braces are not closed')
    }
    while (at < tokens.length) {
      const op = take('op', '|=', '!=', '|~', '!~')
      if (op === undefined)
        throw new Error(
          'the old agent rejects the selector, because only line filters (`|=`, `!=`, `|~`, `!~`) can follow the labels',
        )
      const operands: string[] = []
      do {
        const operand = take('text')
        if (operand === undefined) throw new Error('a line filter has no text')
        operands.push(operand)
      } while (take('op', 'or') !== undefined)
      const all = operands.map((operand) => comparison(lineText, op, operand, false))
      // `!= "a" or "b"` drops lines that contain either text.
      tests.push(all.length === 1 ? (all[0] ?? '') : `(${all.join(op.startsWith('!') ? ' && ' : ' || ')})`)
    }
    return { ok: true, text: tests.length === 0 ? 'true' : tests.join(' && ') }
  } catch (error) {
    return { ok: false, reason: (error as Error).message }
  }
}
