// Placeholders in values: `${record["a"]}`, `${tag}`, `${hostname}` and the simple Ruby that people commonly use in them. Other Ruby
// is reported as a gap.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { isTable } from '@penstock/agent/schema'
import { variableRead } from '../environment.ts'
import { ownName } from '../fluent-bit/own-time.ts'
import { rubyValue } from './expression.ts'
import { fieldNode, type Node, textNode } from './ruby-node.ts'
import { timeAs } from './ruby-time.ts'
import { closing } from './ruby-tokens.ts'

/** Expressions other than the record that placeholders can name. */
export interface RecordFacts {
  /** The tag: a text, or the name of the variable that contains it; undefined if unknown. */
  readonly tag: { readonly text: string } | { readonly variable: string } | undefined
  /** Whether the program may read variables from the environment of the agent. */
  readonly readsEnvironment: boolean
  /** Whether placeholders contain Ruby. Without it, they are names, and a placeholder of any other form has no value. */
  readonly isRuby: boolean
  /** Whether code that sets members changes the record itself, not a copy. */
  readonly changesRecord?: boolean
  /** Whether names are fields of the record, as in Fluentd before version 0.14. */
  readonly namesFields?: boolean
  /** Whether code that raises an error has no value. Without it, the event is discarded. */
  readonly isLenient?: boolean
}

/** Expressions that always return a text. */
const isText = /^(?:"|\(get_env_var\(|\(get_hostname\()/

/** The value of an expression as a text. */
function textOf(expression: string): string {
  return isText.test(expression) ? expression : `(to_string(${expression}) ?? encode_json(${expression}))`
}

/** A value with placeholders as an expression, or the part that cannot be converted. */
export type Expressed =
  | {
      readonly ok: true
      readonly text: string
      /** Statements that must run before. */
      readonly before: readonly string[]
      /** Placeholders without a value. */
      readonly unknown: readonly string[]
      /** Whether the statements delete a part of the record. */
      readonly hasDeleted: boolean
    }
  | { readonly ok: false; readonly problem: string }

/**
 * A value of `<record>`: a text with placeholders, or JSON whose texts have them.
 * @param keepsTypes whether a value that is one placeholder keeps its type; otherwise it becomes a text
 */
export function recordValue(value: string, facts: RecordFacts, name: string, keepsTypes: boolean): Expressed {
  const json = /^[{[]/.test(value) ? jsonIn(value) : undefined
  if (json === undefined) return expressed(value, facts, name, keepsTypes)
  const before: string[] = []
  const unknown: string[] = []
  const problems: string[] = []
  let hasDeleted = false
  const visit = (item: unknown): string => {
    if (Array.isArray(item)) return `[${item.map(visit).join(', ')}]`
    if (isTable(item)) {
      const members = Object.entries(item).map(([key, inner]) => `${textLiteral(key)}: ${visit(inner)}`)
      return members.length === 0 ? '{}' : `{ ${members.join(', ')} }`
    }
    if (typeof item !== 'string') return JSON.stringify(item)
    const found = expressed(item, facts, `${name}_${before.length}`, keepsTypes)
    if (!found.ok) {
      problems.push(found.problem)
      return 'null'
    }
    before.push(...found.before)
    unknown.push(...found.unknown)
    hasDeleted ||= found.hasDeleted
    return found.text
  }
  const text = visit(json)
  const [problem] = problems
  return problem === undefined ? { ok: true, text, before, unknown, hasDeleted } : { ok: false, problem }
}

/** The value of a text in JSON; undefined for another text, which is a plain text in Fluentd, too. */
export function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The text is not JSON.
    return undefined
  }
}

interface Placeholder {
  readonly text: string
  readonly asText: string
  readonly before: readonly string[]
  readonly hasDeleted: boolean
  readonly isUnknown?: true
}

export function expressed(value: string, facts: RecordFacts, name = 'value', keepsTypes = true): Expressed {
  const parts: string[] = []
  const before: string[] = []
  const unknown: string[] = []
  let hasDeleted = false
  let literal = ''
  for (let at = 0; at < value.length; ) {
    if (!value.startsWith('${', at)) {
      literal += value[at++]
      continue
    }
    const end = facts.isRuby ? closing(value, at + 2) : value.indexOf('}', at)
    if (end < 0) return { ok: false, problem: value.slice(at) }
    const code = value.slice(at + 2, end)
    const found = placeholder(code, facts, `${name}_${before.length}`)
    if (found === undefined) return { ok: false, problem: `\${${code.trim()}}` }
    before.push(...found.before)
    hasDeleted ||= found.hasDeleted
    if (found.isUnknown) unknown.push(`\${${code}}`)
    const isSingle = keepsTypes && at === 0 && end === value.length - 1
    if (literal !== '') parts.push(textLiteral(literal))
    literal = ''
    parts.push(isSingle ? found.text : found.asText)
    at = end + 1
  }
  if (literal !== '' || parts.length === 0) parts.push(textLiteral(literal))
  return { ok: true, text: parts.join(' + '), before, unknown, hasDeleted }
}

function placeholder(code: string, facts: RecordFacts, name: string): Placeholder | undefined {
  const plain = { before: [], hasDeleted: false }
  if (!facts.isRuby) {
    const named = /^record\["([^"]*)"\]$/.exec(code)?.[1]
    const isField = facts.namesFields === true && /^[\w@.-]+$/.test(code)
    const text =
      named === undefined
        ? (nameExpression(code, facts) ?? (isField ? fieldLiteral([ownName(code)]) : undefined))
        : fieldLiteral([ownName(named)])
    return text === undefined
      ? { ...plain, text: 'null', asText: '""', isUnknown: true }
      : { ...plain, text, asText: textOf(text) }
  }
  const text = nameExpression(code.trim(), facts)
  if (text !== undefined) return { ...plain, text, asText: textOf(text) }
  const value = (text: string) => rubyValue(text, (word) => wordOf(word, facts), name, facts.changesRecord)
  const found = value(code)
  const mayFail = found !== undefined && /\babort\b/.test([...found.before, found.text].join('\n'))
  return mayFail && facts.isLenient === true ? value(`begin\n${code}\nrescue\nnil\nend`) : found
}

/** Ruby names that are not fields, and variables of the environment as `ENV NAME default`. */
function wordOf(word: string, facts: RecordFacts): Node | undefined {
  const known = knownWord(word, facts)
  const isField = known === undefined && facts.namesFields === true && /^[a-z_]\w*$/.test(word)
  return isField && !/^(?:tag|time)(?:_|$)/.test(word) ? fieldNode(undefined, [ownName(word)]) : known
}

function knownWord(word: string, { tag, readsEnvironment }: RecordFacts): Node | undefined {
  if (word.startsWith('tag_') && word.endsWith(']')) {
    const part = nameExpression(word, { tag, readsEnvironment, isRuby: true })
    if (part === undefined) return undefined
    return part.startsWith('"') ? textNode(part) : { text: part, kind: 'any' }
  }
  if (word === 'hostname') return textNode('(get_hostname() ?? "")')
  const [, variable, byDefault] = /^ENV (\w+) (.*)$/s.exec(word) ?? []
  if (variable !== undefined) return readsEnvironment ? textNode(variableRead(variable, byDefault)) : undefined
  const text = tag && ('text' in tag ? textLiteral(tag.text) : tag.variable)
  if (text === undefined) return undefined
  if (word === 'tag') return textNode(text)
  return word === 'tag_parts' ? { text: `split(${text}, ".")`, kind: 'list' } : undefined
}

/** A name that needs no Ruby: the tag and its parts, the host, the time, or a variable of the environment. */
function nameExpression(code: string, { tag, readsEnvironment }: RecordFacts): string | undefined {
  if (code === 'hostname') return '(get_hostname() ?? "")'
  if (/^[A-Z][A-Z0-9_]*$/.test(code)) return readsEnvironment ? variableRead(code) : textLiteral(`\${${code}}`)
  // As in a container, whose zone is UTC.
  if (code === 'time') return timeAs('%Y-%m-%d %H:%M:%S %z')
  if (tag === undefined) return undefined
  if (code === 'tag') return 'text' in tag ? textLiteral(tag.text) : tag.variable
  const [, kind, number] = /^tag_(parts|prefix|suffix)\[(-?\d+)\]$/.exec(code) ?? []
  if (kind === undefined) return undefined
  const index = Number(number)
  if ('text' in tag) {
    const parts = tag.text.split('.')
    const at = index < 0 ? index + parts.length : index
    if (at < 0 || at >= parts.length) return 'null'
    if (kind === 'parts') return textLiteral(parts[at] ?? '')
    return textLiteral((kind === 'prefix' ? parts.slice(0, at + 1) : parts.slice(at)).join('.'))
  }
  if (kind === 'parts') return `(get(split(${tag.variable}, "."), [${index}]) ?? null)`
  if (index < 0) return undefined
  const range = kind === 'prefix' ? `0, ${index + 1}` : `${index}`
  return `(join(slice(split(${tag.variable}, "."), ${range}) ?? [], ".") ?? "")`
}

/** Parses `$.a.b`, `$["a"]["b"]` or a plain name to the names of a field in events; undefined if it is none of these. */
export function recordPath(text: string): readonly string[] | undefined {
  const [first, ...rest] = pathIn(text) ?? []
  return first === undefined ? undefined : [ownName(first), ...rest]
}

function pathIn(text: string): readonly string[] | undefined {
  if (!text.startsWith('$')) return text === '' ? undefined : [text]
  const bracketed = /^\$((?:\[(?:'[^']*'|"[^"]*")\])+)$/.exec(text)
  if (bracketed?.[1] !== undefined) return [...bracketed[1].matchAll(/['"]([^'"]*)['"]/g)].map((part) => part[1] ?? '')
  const dotted = /^\$\.([^[\]$]+)$/.exec(text)
  return dotted?.[1]?.split('.')
}

/** A field in the syntax of Fluent Bit. */
export const accessorOf = ([first = '', ...rest]: readonly string[]) =>
  `$${first}${rest.map((part) => `['${part}']`).join('')}`
