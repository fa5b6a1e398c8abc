// Lines that Filebeat joins, as `multiline` of a source. Filebeat asks of each two lines whether they belong together; a source has a pattern
// for the first line of a group and one for its end.

import { multilineProblems } from '@penstock/agent/config'
import type { Report } from '../loki/context.ts'
import { millisecondsOf, type Tree } from '../loki/tree.ts'

export interface Joined {
  readonly file: Readonly<Record<string, unknown>>
  readonly pods: Readonly<Record<string, unknown>>
}

interface Form {
  readonly start: string
  readonly condition: string
  readonly mode: 'continue_through' | 'continue_past' | 'halt_before' | 'halt_with'
}

const anyLine = '.*'
const custom = 'Set `multiline.custom` of the source.'

/** The options of `multiline`, by what reads one of them; undefined if lines are not joined. */
export function joinedBy(tree: Tree, read: (name: string) => string | undefined, report: Report): Joined | undefined {
  for (const name of ['flush_pattern', 'skip_newline']) {
    if (read(name) === undefined || read(name) === 'false') continue
    report.gap(
      tree,
      `multiline ${name}`,
      'joined lines are separated by line feeds, and only a pattern or the timeout ends a message',
      'Change the message in a remap transform.',
    )
  }
  const form = read('type') === 'count' ? counted(tree, read, report) : byPattern(tree, read, report)
  if (form === undefined) return undefined
  const { start, condition, mode } = form
  const timeoutMs = millisecondsOf(read('timeout')) ?? 5000
  const file = { start_pattern: start, condition_pattern: condition, mode, timeout_ms: timeoutMs }
  const [problem] = multilineProblems(file)
  if (problem !== undefined) {
    const nearest = 'Set `multiline.custom` of the source, with patterns that use neither look-ahead nor look-behind.'
    report.gap(tree, `multiline ${read('pattern')}`, problem.message, nearest)
    return undefined
  }
  return { file, pods: { custom: { start, condition, mode, timeoutMs } } }
}

/** Any line with the one after it. */
function counted(tree: Tree, read: (name: string) => string | undefined, report: Report): Form | undefined {
  const count = Number(read('count_lines') ?? 1)
  if (count === 2) return { start: anyLine, condition: anyLine, mode: 'halt_with' }
  if (count === 1) return undefined
  const reason = `a source counts no lines: it joins two of them, or lines by patterns, but not ${count}`
  report.gap(tree, 'multiline count', reason, `${custom} Its patterns say which lines begin or end an event.`)
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
  // A line belongs to the one before it, whatever that is, if it matches, or if it does not.
  if (isAfter) return { start: anyLine, condition: regex, mode: isNegated ? 'halt_before' : 'continue_through' }
  // A line that matches belongs to the one after it.
  if (!isNegated) return { start: regex, condition: regex, mode: 'continue_past' }
  const reason =
    'a line that matches ends an event; one that matches and directly follows another end begins the next event here'
  const nearest = 'Nothing, unless events may consist of their last line alone.'
  report.replaced(tree, 'multiline negate', reason, nearest)
  return { start: anyLine, condition: regex, mode: 'halt_with' }
}
