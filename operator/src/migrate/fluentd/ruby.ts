// Placeholders in values: `${record["a"]}`, `${tag}`, `${hostname}` and the simple Ruby that people commonly use in them. Other Ruby
// is reported as a gap.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { isTable } from '@penstock/agent/schema'
import { variableRead } from '../environment.ts'
import { rubyValue } from './expression.ts'
import { timeAs } from './ruby-time.ts'

/** Expressions other than the record that placeholders can name. */
export interface RecordFacts {
  /** The tag: a text, or the name of the variable that contains it; undefined if unknown. */
  readonly tag: { readonly text: string } | { readonly variable: string } | undefined
  /** Whether the program may read variables from the environment of the agent. */
  readonly readsEnvironment: boolean
}

/** Expressions that always return a text. */
const isText =
  /^(?:"|\(get_env_var\(|downcase\(|upcase\(|strip_whitespace\(|replace\(|encode_json\(|\(to_string\(|\(get_hostname\()/

/** Expressions that always return a number. */
const isNumber = /^\((?:to_int|to_float)\(.*\) \?\? 0(?:\.0)?\)$/s

/** The value of an expression as a text. A number becomes one in any case. */
function textOf(expression: string): string {
  if (isText.test(expression)) return expression
  return isNumber.test(expression) ? `to_string(${expression})` : `(to_string(${expression}) ?? "")`
}

/** Converts a value with placeholders to an expression, or returns the part that cannot be converted. */
export type Expressed =
  | { readonly ok: true; readonly text: string; readonly before: readonly string[] }
  | { readonly ok: false; readonly problem: string }

/**
 * A value of `<record>`: a text with placeholders, or JSON whose texts have them.
 * @param keepsTypes whether a value that is one placeholder keeps its type; otherwise it becomes a text
 */
export function recordValue(value: string, facts: RecordFacts, name: string, keepsTypes: boolean): Expressed {
  const json = /^[{[]/.test(value) ? jsonIn(value) : undefined
  if (json === undefined) return expressed(value, facts, name, keepsTypes)
  const before: string[] = []
  const problems: string[] = []
  const visit = (item: unknown): string => {
    if (Array.isArray(item)) return `[${item.map(visit).join(', ')}]`
    if (isTable(item)) {
      const members = Object.entries(item).map(([key, inner]) => `${textLiteral(key)}: ${visit(inner)}`)
      return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`
    }
    if (typeof item !== 'string') return JSON.stringify(item)
    const found = expressed(item, facts, `${name}_${before.length}`, keepsTypes)
    if (!found.ok) problems.push(found.problem)
    before.push(...(found.ok ? found.before : []))
    return found.ok ? found.text : 'null'
  }
  const text = visit(json)
  const [problem] = problems
  return problem === undefined ? { ok: true, text, before } : { ok: false, problem }
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // As in Fluentd, it is a text then.
    return undefined
  }
}

export function expressed(value: string, facts: RecordFacts, name = 'value', keepsTypes = true): Expressed {
  const parts: string[] = []
  const before: string[] = []
  let literal = ''
  let isSingle = false
  for (let at = 0; at < value.length; ) {
    if (!value.startsWith('${', at)) {
      literal += value[at++]
      continue
    }
    const end = closing(value, at + 2)
    if (end < 0) return { ok: false, problem: value.slice(at) }
    const code = value.slice(at + 2, end).trim()
    const found = rubyExpression(code, facts)
    const other =
      found === undefined ? rubyValue(code, (word) => wordOf(word, facts), `${name}_${before.length}`) : undefined
    before.push(...(other?.before ?? []))
    const expression = found ?? other?.text
    if (expression === undefined) return { ok: false, problem: `\${${code}}` }
    isSingle = keepsTypes && at === 0 && end === value.length - 1
    if (literal !== '') parts.push(textLiteral(literal))
    literal = ''
    parts.push(isSingle ? expression : (other?.asText ?? textOf(expression)))
    at = end + 1
  }
  if (literal !== '' || parts.length === 0) parts.push(textLiteral(literal))
  return { ok: true, text: parts.join(' + '), before }
}

/** Ruby names that are not fields. */
function wordOf(word: string, { tag }: RecordFacts): string | undefined {
  if (word === 'hostname') return '(get_hostname() ?? "")'
  const text = tag && ('text' in tag ? textLiteral(tag.text) : tag.variable)
  if (word === 'tag') return text
  if (word === 'tag_parts') return text && `split(${text}, ".")`
  return undefined
}

function closing(text: string, from: number): number {
  let depth = 0
  let quote = ''
  for (let at = from; at < text.length; at++) {
    const sign = text[at] as string
    if (quote !== '') {
      if (sign === '\\') at++
      else if (sign === quote) quote = ''
    } else if (sign === '"' || sign === "'") quote = sign
    else if (sign === '{') depth++
    else if (sign === '}' && depth-- === 0) return at
  }
  return -1
}

/** Converts Ruby to an expression; undefined if it is unsupported. */
function rubyExpression(code: string, facts: RecordFacts): string | undefined {
  const alternatives = splitOutside(code, '||')
  if (alternatives.length > 1) {
    const all = alternatives.map((part) => rubyExpression(part.trim(), facts))
    if (all.some((part) => part === undefined)) return undefined
    return `(${all.join(' || ')})`
  }
  const text = /^(?:"([^"\\#]*)"|'([^'\\]*)')$/.exec(code)
  if (text !== null) return textLiteral(text[1] ?? text[2] ?? '')
  if (/^-?\d+$/.test(code)) return code
  if (code === 'hostname' || code === 'Socket.gethostname') return '(get_hostname() ?? "")'
  const { tag, readsEnvironment } = facts
  if (/^[A-Z][A-Z0-9_]*$/.test(code)) return readsEnvironment ? variableRead(code) : textLiteral(`\${${code}}`)
  if (code === 'tag') return tag && ('text' in tag ? textLiteral(tag.text) : tag.variable)
  const tagPart = /^tag_parts\[(-?\d+)\]$/.exec(code)?.[1]
  if (tagPart !== undefined) {
    if (tag === undefined) return undefined
    return 'text' in tag
      ? textLiteral(tag.text.split('.').at(Number(tagPart)) ?? '')
      : `split(${tag.variable}, ".")[${tagPart}]`
  }
  const some = /^tag_(prefix|suffix)\[(\d+)\]$/.exec(code)
  if (some !== null) {
    if (tag === undefined) return undefined
    const index = Number(some[2])
    const [from, to] = some[1] === 'prefix' ? [0, index + 1] : [index, undefined]
    return 'text' in tag
      ? textLiteral(tag.text.split('.').slice(from, to).join('.'))
      : `(join(slice(split(${tag.variable}, "."), ${from}${to === undefined ? '' : `, ${to}`}) ?? []) ?? "")`.replace(
          ' ?? [])',
          ' ?? [], ".")',
        )
  }
  // As in a container, whose zone is UTC.
  if (code === 'time') return timeAs('%Y-%m-%d %H:%M:%S %z')
  const name = /^record\[\s*(?:"([^"\\#]*)"|'([^'\\]*)')\s*\]$/.exec(code)
  return name === null ? undefined : fieldLiteral([name[1] ?? name[2] ?? ''])
}

/** Splits at a separator outside of quotes and brackets. */
function splitOutside(text: string, separator: string): string[] {
  const parts: string[] = []
  let quote = ''
  let start = 0
  for (let at = 0; at < text.length; at++) {
    const sign = text[at] as string
    if (quote !== '') {
      if (sign === quote) quote = ''
    } else if (sign === '"' || sign === "'") quote = sign
    else if (text.startsWith(separator, at)) {
      parts.push(text.slice(start, at))
      start = at + separator.length
      at = start - 1
    }
  }
  return [...parts, text.slice(start)]
}

/** Parses `$.a.b`, `$["a"]["b"]` or a plain name to field names; undefined if it is none of these. */
export function recordPath(text: string): readonly string[] | undefined {
  if (!text.startsWith('$')) return text === '' ? undefined : [text]
  const bracketed = /^\$((?:\[(?:'[^']*'|"[^"]*")\])+)$/.exec(text)
  if (bracketed?.[1] !== undefined) return [...bracketed[1].matchAll(/['"]([^'"]*)['"]/g)].map((part) => part[1] ?? '')
  const dotted = /^\$\.([^[\]$]+)$/.exec(text)
  return dotted?.[1]?.split('.')
}
