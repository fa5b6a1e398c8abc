// The transform `reduce` directly after sources, which joins the lines of one event: the sources join them themselves.

import { multilineProblems } from '@penstock/agent/config'
import { isTable } from '@penstock/agent/schema'
import { conditionOf, isOfFields } from './conditions.ts'
import { type Old, ownerOf } from './old.ts'
import { texts } from './tables.ts'

/** The rules of `multiline`, with the names of an `orchestrator_logs` source. */
interface Rules {
  readonly start: string
  readonly condition: string
  readonly mode: 'halt_before' | 'halt_with' | 'continue_through'
  readonly timeoutMs: number
}

export interface Joining {
  readonly reduce: Old
  readonly sources: readonly Old[]
  readonly rules: Rules
}

export const joiningNote = {
  reason: 'the source joins the lines: an event has the fields of its first line, and no field `timestamp_end`',
  nearest: 'The source limits the size of an event, not its number of lines.',
} as const

const message = String.raw`(?:\.message|(?:to_)?string!\(\s*\.message\s*\)|(?:to_)?string\(\s*\.message\s*\)\s*\?\?\s*"")`
const expression = String.raw`r'((?:[^'\\]|\\.)*)'`
const call = new RegExp(String.raw`^(!?)\s*match!?\(\s*${message}\s*,\s*${expression}\s*\)(?:\s*\?\?\s*false)?$`, 's')
/** The form in the documentation of the transform. */
const assigned = new RegExp(
  String.raw`^(\w+)\s*,\s*(\w+)\s*=\s*match\(\s*${message}\s*,\s*${expression}\s*\)\s*;?\s*if\s+\(?\s*\2\s*!=\s*null\s*\)?\s*\{\s*false;?\s*\}\s*else\s*\{\s*\1;?\s*\}$`,
  's',
)

/** The expression that decides a condition on the message, and whether it must not match. */
function expressionIn(value: unknown): { readonly pattern: string; readonly isNegated: boolean } | undefined {
  if (isOfFields(value)) {
    const { type: _, ...tests } = value
    const [[name, pattern] = []] = Object.entries(tests)
    const isOnly = Object.keys(tests).length === 1 && name === 'message.regex' && typeof pattern === 'string'
    return isOnly ? { pattern, isNegated: false } : undefined
  }
  const text = conditionOf(value)
    ?.replace(/^\s*#.*$/gm, '')
    .trim()
    .replace(/;$/, '')
  const [, not, pattern] = call.exec(text ?? '') ?? []
  const found = pattern ?? assigned.exec(text ?? '')?.[3]
  return found === undefined ? undefined : { pattern: found.replaceAll("\\'", "'"), isNegated: not === '!' }
}

function rulesOf({ starts_when: starts, ends_when: ends, expire_after_ms: expires = 30_000 }: Old['options']) {
  const found = expressionIn(starts ?? ends)
  if (found === undefined || typeof expires !== 'number' || (starts !== undefined && ends !== undefined))
    return undefined
  const { pattern, isNegated } = found
  const rest = { condition: pattern, timeoutMs: expires }
  if (starts === undefined) return isNegated ? undefined : ({ start: '^', mode: 'halt_with', ...rest } as const)
  return isNegated
    ? ({ start: '^', mode: 'continue_through', ...rest } as const)
    : ({ start: pattern, mode: 'halt_before', ...rest } as const)
}

/** Whether the groups are the streams of containers, or the files. */
function areStreams(group: readonly string[], { type, options }: Old): boolean {
  const { pod_annotation_fields: renamed, file_key: file = 'file', multiline } = options
  if (multiline !== undefined) return false
  if (type === 'file') return group.includes(String(file)) && group.every((path) => [file, 'host'].includes(path))
  if (type !== 'kubernetes_logs') return false
  const fields = isTable(renamed) ? renamed : {}
  const at = (name: string) => String(fields[name] ?? `kubernetes.${name}`)
  const isOfPod = (path: string) =>
    /^(?:kubernetes\.|(?:stream|file|source_type)$)/.test(path) || Object.values(fields).includes(path)
  const decides = ['file', ...['pod_uid', 'pod_name', 'container_id'].map(at)]
  return group.every(isOfPod) && group.some((path) => decides.includes(path))
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

/** Whether only the message changes when events are merged. */
function keepsFirst({ merge_strategies: strategies, ...options }: Old['options']): boolean {
  const { message: ofMessage, ...others } = isTable(strategies) ? strategies : {}
  const isFirst = Object.entries(others).every(
    ([name, how]) => how === 'discard' || (how === 'retain' && name !== 'timestamp'),
  )
  return ofMessage === 'concat_newline' && isFirst && Object.keys(options).every((name) => known.includes(name))
}

/** @param matching the outputs that an input matches */
export function joiningsOf(olds: readonly Old[], matching: (input: string) => readonly string[]): readonly Joining[] {
  const read = (old: Old) => new Set(old.inputs.flatMap(matching).map(ownerOf))
  return olds
    .filter(({ type }) => type === 'reduce')
    .flatMap((reduce) => {
      const inputs = read(reduce)
      const sources = olds.filter(({ kind, id }) => kind === 'sources' && inputs.has(id))
      const group = texts(reduce.options['group_by']).map((path) => path.replace(/^\./, ''))
      const isOnlyReader = olds.every((old) => old === reduce || sources.every(({ id }) => !read(old).has(id)))
      const rules = rulesOf(reduce.options)
      const fits =
        sources.length === inputs.size && sources.length > 0 && sources.every((each) => areStreams(group, each))
      return rules !== undefined && isValid(rules) && fits && isOnlyReader && keepsFirst(reduce.options)
        ? [{ reduce, sources, rules }]
        : []
    })
}

/** The options `multiline` of a source, in the entry of the Pipeline or in those of a `file` source. */
export const multilineOf = (type: string, { start, condition, mode, timeoutMs }: Rules) =>
  type === 'file'
    ? { config: { multiline: { start_pattern: start, condition_pattern: condition, mode, timeout_ms: timeoutMs } } }
    : { multiline: { custom: { start, condition, mode, timeoutMs } } }
