// Converts `multiline` of Filebeat to `multiline` of a source. Filebeat decides for every two adjacent lines whether they belong together. A
// source has one pattern for the first line of a group and one for its end.

import { multilineProblems } from '@penstock/agent/config'
import type { MultilineMode } from '@penstock/agent/schema'
import type { Report } from '../loki/context.ts'
import { millisecondsOf, type Tree } from '../loki/tree.ts'
import { regexLiteral } from '../otel/text.ts'
import { flagLine } from './processor.ts'

export interface Joined {
  readonly file: Readonly<Record<string, unknown>>
  readonly pods: Readonly<Record<string, unknown>>
}

interface Form {
  readonly start: string
  readonly condition: string
  readonly mode: MultilineMode
}

/** Filebeat drops further lines of an event. */
const defaultMaxLines = 500

const anyLine = '.*'
const custom = 'Set `multiline.custom` of the source.'

/**
 * The options of `multiline`; undefined if lines are not joined.
 * @param read reads an option of Filebeat
 */
export function joinedBy(tree: Tree, read: (name: string) => string | undefined, report: Report): Joined | undefined {
  const form = read('type') === 'count' ? counted(tree, read, report) : byPattern(tree, read, report)
  if (form === undefined) return undefined
  const { mode } = form
  const [start, condition] = [form.start, form.condition].map(known) as [string, string]
  const timeoutMs = millisecondsOf(read('timeout')) ?? 5000
  const flush = flushOf(tree, mode, read, report)
  const file = {
    start_pattern: start,
    condition_pattern: condition,
    mode,
    timeout_ms: timeoutMs,
    ...(flush === undefined ? {} : { flush_pattern: flush }),
  }
  const [problem] = multilineProblems(file)
  if (problem !== undefined) {
    const nearest = 'Set `multiline.custom` of the source, with patterns that use neither look-ahead nor look-behind.'
    report.gap(tree, `multiline ${read('pattern')}`, problem.message, nearest)
    return undefined
  }
  return { file, pods: { custom: { start, condition, mode, timeoutMs, ...(flush === undefined ? {} : { flush }) } } }
}

/** The pattern of the last line of an event; Filebeat reads it only beside `pattern`. */
function flushOf(
  tree: Tree,
  mode: Form['mode'],
  read: (name: string) => string | undefined,
  report: Report,
): string | undefined {
  const regex = read('flush_pattern')
  if (regex === undefined || (read('type') ?? 'pattern') !== 'pattern') return undefined
  if (mode === 'halt_before' || mode === 'continue_through') return known(regex)
  const reason = 'with `match: before`, the next line already decides where an event ends'
  report.gap(tree, 'multiline flush_pattern', reason, 'Use `match: after`, and convert again.')
  return undefined
}

/** The pattern, or the same one without signs that only Go reads as text, such as the brace of `^{`. */
function known(pattern: string): string {
  const [problem] = multilineProblems({
    start_pattern: pattern,
    condition_pattern: pattern,
    mode: 'halt_before',
    timeout_ms: 1,
  })
  return problem === undefined ? pattern : regexLiteral(pattern).slice(2, -1)
}

/** Joins any line with the next one. */
function counted(tree: Tree, read: (name: string) => string | undefined, report: Report): Form | undefined {
  const given = read('count_lines') ?? '1'
  const count = Number(given)
  if (count === 2) return { start: anyLine, condition: anyLine, mode: 'halt_with' }
  if (count === 1) return undefined
  const reason = `a source can join pairs of lines, or lines that match patterns, but not every ${given} lines`
  report.gap(tree, 'multiline count', reason, `${custom} Its patterns match the lines that begin or end an event.`)
  return undefined
}

function byPattern(tree: Tree, read: (name: string) => string | undefined, report: Report): Form | undefined {
  const regex = read('pattern')
  if (regex === undefined) return undefined
  const isNegated = read('negate') === 'true'
  if (read('type') === 'while_pattern') {
    if (!isNegated) return { start: regex, condition: regex, mode: 'continue_through' }
    const reason = 'a line that does not match a pattern cannot start a message'
    report.gap(tree, 'multiline while_pattern', reason, custom)
    return undefined
  }
  const isAfter = (read('match') ?? 'after') === 'after'
  // A line belongs to the previous line if it matches, or, negated, if it does not match. The previous line may be any line.
  if (isAfter) return { start: anyLine, condition: regex, mode: isNegated ? 'halt_before' : 'continue_through' }
  // A line that matches belongs to the next line.
  if (!isNegated) return { start: regex, condition: regex, mode: 'continue_past' }
  // A line that matches ends an event, also as its only line.
  return { start: anyLine, condition: regex, mode: 'end_with' }
}

/** Statements for joined lines: the flags of Filebeat, the maximum number of lines, and how lines are separated. */
export function joinedLines(read: (name: string) => string | undefined): readonly string[] {
  const limit = Number(read('max_lines') ?? defaultMaxLines)
  const isLimited = Number.isInteger(limit) && limit > 0
  const cut = [
    `  if length(lines) > ${limit} {`,
    `    .message = join(slice(lines, 0, ${limit}) ?? [], "\\n") ?? .message`,
    `    ${flagLine('truncated')}`,
    '  }',
  ]
  const one = isLimited && limit === 1 ? [] : [`  ${flagLine('multiline')}`]
  return [
    'if contains(string(.message) ?? "", "\\n") {',
    ...(isLimited ? ['  lines = split(string(.message) ?? "", "\\n")', ...cut] : []),
    ...one,
    ...(read('skip_newline') === 'true' ? ['  .message = replace(string(.message) ?? "", "\\n", "")'] : []),
    '}',
  ]
}
