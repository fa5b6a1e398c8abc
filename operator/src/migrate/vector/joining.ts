// The transform `reduce` after sources, which joins the lines of one event: the sources join them themselves.

import { multilineProblems } from '@penstock/agent/config'
import { isTable, type MultilineMode } from '@penstock/agent/schema'
import type { Step } from '../draft.ts'
import { conditionOf, isOfFields } from './conditions.ts'
import { type Matching, type Upstream, upstreamOf } from './joining-path.ts'
import type { Old } from './old.ts'
import { texts } from './tables.ts'

/** The rules of `multiline`, with the names of an `orchestrator_logs` source. */
interface Rules {
  readonly start: string
  readonly condition: string
  readonly mode: MultilineMode
  readonly timeoutMs: number
}

export interface Joining {
  readonly reduce: Old
  readonly sources: readonly Old[]
  readonly upstream: Upstream
  readonly rules: Rules
  /** The transform that takes the place of `reduce`, if it joins lines by something else than a line feed. */
  readonly steps: readonly Step[]
}

export const joiningNote = {
  reason:
    'the source joins the lines of each container and stream, or of each file: an event has the fields of its first line, and no field `timestamp_end`',
  nearest: 'The source limits the size of an event, not its number of lines.',
} as const

const message = String.raw`(?:\.message|(?:to_)?string!\(\s*\.message\s*\)|\(?(?:to_)?string\(\s*\.message\s*\)\s*\?\?\s*""\)?)`
const regex = String.raw`r'(?:[^'\\]|\\.)*'`
const quoted = String.raw`"(?:[^"\\]|\\.)*"`
/** The form in the documentation of the transform. */
const assigned = new RegExp(
  String.raw`^(\w+)\s*,\s*(\w+)\s*=\s*match\(\s*${message}\s*,\s*(${regex})\s*\)\s*;?\s*if\s+\(?\s*\2\s*!=\s*null\s*\)?\s*\{\s*false;?\s*\}\s*else\s*\{\s*\1;?\s*\}$`,
  's',
)
/** One test of the message, and the rest of a condition. */
const call = new RegExp(
  String.raw`^(match|match_any|starts_with|ends_with|contains)!?\(\s*${message}\s*,\s*(\[[^\]]*?(?:${regex}[^\]]*?)*\]|${regex}|${quoted})\s*(?:,\s*(?:case_sensitive:\s*)?(true|false)\s*)?,?\s*\)(?:\s*\?\?\s*false)?\s*(?:\|\|\s*(.*))?$`,
  's',
)

const inRegex = (literal: string) => literal.slice(2, -1).replaceAll("\\'", "'")
const literally = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')

/** The expression for the argument of a test. */
function patternOf(name: string, argument: string, isSensitive: boolean): string | undefined {
  if (name === 'match') return argument.startsWith('r') ? inRegex(argument) : undefined
  if (name === 'match_any') {
    const all = [...argument.matchAll(new RegExp(regex, 'gs'))].map(([literal]) => `(?:${inRegex(literal)})`)
    return argument.startsWith('[') && all.length > 0 ? all.join('|') : undefined
  }
  if (!argument.startsWith('"') || /\\[^"\\/nrt]/.test(argument)) return undefined
  const text = literally(String(JSON.parse(argument.replaceAll('\n', '\\n').replaceAll('\t', '\\t'))))
  const flags = isSensitive ? '' : '(?i)'
  return `${flags}${name === 'starts_with' ? '^' : ''}${text}${name === 'ends_with' ? '$' : ''}`
}

/** The expression of tests of the message, one of which must hold. */
function patternIn(text: string): string | undefined {
  const [, name = '', argument = '', sensitive, rest] = call.exec(text) ?? []
  const pattern = name === '' ? undefined : patternOf(name, argument, sensitive !== 'false')
  if (pattern === undefined || rest === undefined) return pattern
  const others = patternIn(rest)
  return others === undefined ? undefined : `(?:${pattern})|(?:${others})`
}

/** The expression that decides a condition on the message, and whether it must not match. */
function expressionIn(value: unknown): { readonly pattern: string; readonly isNegated: boolean } | undefined {
  if (isOfFields(value)) {
    const { type: _, ...tests } = value
    const [[name, pattern] = []] = Object.entries(tests)
    const isOnly = Object.keys(tests).length === 1 && name === 'message.regex' && typeof pattern === 'string'
    return isOnly ? { pattern, isNegated: false } : undefined
  }
  const text = (conditionOf(value) ?? '')
    .replace(/^\s*#.*$/gm, '')
    .trim()
    .replace(/;$/, '')
  const documented = assigned.exec(text)?.[3]
  if (documented !== undefined) return { pattern: inRegex(documented), isNegated: false }
  const isNegated = text.startsWith('!')
  const tests = (isNegated ? text.slice(1) : text).trim().replace(/^\((.*)\)$/s, '$1')
  // Only in brackets, the sign applies to several tests.
  const pattern = isNegated && !text.startsWith('!(') && /\|\|/.test(tests) ? undefined : patternIn(tests.trim())
  return pattern === undefined ? undefined : { pattern, isNegated }
}

/**
 * The rules that join the same lines. `reduce` joins the first lines, too, wherever an event begins, so every line can be the first one; and
 * a line that ends an event can be its only one.
 */
function rulesOf({ starts_when: starts, ends_when: ends, expire_after_ms: expires = 30_000 }: Old['options']) {
  const found = expressionIn(starts ?? ends)
  if (found === undefined || typeof expires !== 'number' || (starts !== undefined && ends !== undefined))
    return undefined
  const { pattern, isNegated } = found
  const rest = { condition: pattern, timeoutMs: expires }
  if (starts !== undefined)
    return { start: '^', mode: isNegated ? 'continue_through' : 'halt_before', ...rest } satisfies Rules
  return isNegated
    ? ({ start: pattern, mode: 'continue_past', ...rest } satisfies Rules)
    : ({ start: '^', mode: 'end_with', ...rest } satisfies Rules)
}

/** Whether the groups are the streams of containers, or the files. @param changed fields that transforms before it change */
function areStreams(group: readonly string[], changed: ReadonlySet<string>, { type, options }: Old): boolean {
  const { pod_annotation_fields: renamed, file_key: file = 'file', multiline } = options
  if (multiline !== undefined) return false
  const isConstant = (path: string) => !/^(?:message|timestamp)(?:$|[.[])/.test(path)
  const isKept = (path: string) => !changed.has(path.replace(/[.[].*$/s, ''))
  if (type === 'file') {
    const at = String(file)
    return group.includes(at) && isKept(at) && group.every((path) => path === at || isConstant(path))
  }
  if (type !== 'kubernetes_logs') return false
  const fields = isTable(renamed) ? renamed : {}
  const at = (name: string) => String(fields[name] ?? `kubernetes.${name}`)
  const decides = ['file', ...['pod_uid', 'pod_name', 'container_id'].map(at)]
  return group.every(isConstant) && group.some((path) => decides.includes(path) && isKept(path))
}

const isValid = ({ start, condition, mode, timeoutMs }: Rules) =>
  multilineProblems({ start_pattern: start, condition_pattern: condition, mode, timeout_ms: timeoutMs }).length === 0

const known = [
  'group_by',
  'starts_when',
  'ends_when',
  'expire_after_ms',
  'flush_period_ms',
  'max_events',
  'merge_strategies',
]

/** The text between the lines by the strategy that joins them. */
const separators: Readonly<Record<string, string>> = { concat_newline: '\n', concat: ' ', concat_raw: '' }

/** The text between the lines, if only the message changes when events are merged. */
function separatorOf({ merge_strategies: strategies, ...options }: Old['options']): string | undefined {
  const { message: ofMessage, ...others } = isTable(strategies) ? strategies : {}
  const isFirst = Object.entries(others).every(
    ([name, how]) => how === 'discard' || (how === 'retain' && name !== 'timestamp'),
  )
  const isKnown = Object.keys(options).every((name) => known.includes(name))
  return isFirst && isKnown && Object.hasOwn(separators, String(ofMessage)) ? separators[String(ofMessage)] : undefined
}

/** The lines that a `reduce` joins, if its sources can join the same ones. Other components may still read the sources. */
export function joinable(reduce: Old, olds: readonly Old[], matching: Matching): Joining | undefined {
  const upstream = upstreamOf(reduce, olds, matching)
  const rules = rulesOf(reduce.options)
  const separator = separatorOf(reduce.options)
  if (upstream === undefined || rules === undefined || separator === undefined || !isValid(rules)) return undefined
  const { sources, changed } = upstream
  const group = texts(reduce.options['group_by']).map((path) => path.replace(/^\./, ''))
  if (sources.length === 0 || !sources.every((each) => areStreams(group, changed, each))) return undefined
  const text = `.message = replace(string(.message) ?? "", "\\n", "${separator}")`
  return { reduce, sources, upstream, rules, steps: separator === '\n' ? [] : [{ type: 'remap', text }] }
}

export const joiningsOf = (olds: readonly Old[], matching: Matching): readonly Joining[] =>
  olds
    .filter(({ type }) => type === 'reduce')
    .flatMap((reduce) => joinable(reduce, olds, matching) ?? [])
    .filter(({ upstream }) => upstream.shared.length === 0)

/** The options `multiline` of a source, in the entry of the Pipeline or in those of a `file` source. */
export const multilineOf = (type: string, { start, condition, mode, timeoutMs }: Rules) =>
  type === 'file'
    ? { config: { multiline: { start_pattern: start, condition_pattern: condition, mode, timeout_ms: timeoutMs } } }
    : { multiline: { custom: { start, condition, mode, timeoutMs } } }
