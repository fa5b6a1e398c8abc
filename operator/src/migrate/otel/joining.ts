// Multiline rules from the option `multiline` of files or an operator `recombine`. Sources join lines before all transforms.

import { multilineProblems } from '@penstock/agent/config'
import { type Expression, parseExpression, UnknownExpression } from './expression.ts'
import { type Context, type Part, seconds } from './mapping.ts'
import { regexLiteral } from './text.ts'

export const isPodLog = (path: string) => /^\/var\/log\/(?:containers|pods)(?:\/|$)/.test(path)

/** The type without underscores. */
export const typeOfOperator = (part: Part) => (part.text('type') ?? '').replaceAll('_', '').toLowerCase()

/** Rules in the form of `multiline.custom` of `orchestrator_logs`. */
interface Rules {
  readonly start: string
  readonly condition: string
  readonly mode: 'continue_through' | 'halt_before' | 'halt_with'
  readonly timeoutMs: number
}

/** The same rules in the form of a `file` source. */
export const fileRules = ({ start, condition, mode, timeoutMs }: Rules) => ({
  start_pattern: start,
  condition_pattern: condition,
  mode,
  timeout_ms: timeoutMs,
})

interface Joined {
  readonly rules: Rules | undefined
  /** The operators that the source replaces. */
  readonly done: ReadonlySet<Part>
}

/** Whether an operator has the same result for the first line as for all lines that are joined to it. */
function isIndifferent(operator: Part): boolean {
  const type = typeOfOperator(operator)
  if (type === 'regexparser') return /log\.file\.(?:path|name)/.test(operator.text('parse_from') ?? '')
  if (type === 'move') return !/^body/.test(operator.text('from') ?? '') && !/^body/.test(operator.text('to') ?? '')
  return (
    type === 'noop' ||
    (type === 'add' && typeof operator.get('value') === 'string' && !/EXPR/.test(operator.text('value') ?? ''))
  )
}

/** Rules from the option `multiline` of files, or from an operator that comes before all others. */
export function joinedBy(part: Part, operators: readonly Part[], context: Context): Joined {
  const start = part.text('multiline.line_start_pattern')
  const end = part.text('multiline.line_end_pattern')
  const isFile = !part.list('include').every(isPodLog)
  const first = operators.find((operator) => !isIndifferent(operator))
  const checked = (rules: Rules, at: Part, done: readonly Part[]): Joined => {
    const [problem] = multilineProblems(fileRules(rules))
    if (problem === undefined) return { rules, done: new Set(done) }
    context.gap(
      at.place(),
      `${part.id}: multiline`,
      problem.message,
      'Set `multiline` of the source, with patterns that use neither look-ahead nor look-behind.',
    )
    return { rules: undefined, done: new Set(done) }
  }
  if (isFile && start !== undefined) {
    const pattern = bare(start)
    return checked({ start: pattern, condition: pattern, mode: 'halt_before', timeoutMs: 500 }, part, [])
  }
  if (isFile && end !== undefined) {
    return checked({ start: '', condition: bare(end), mode: 'halt_with', timeoutMs: 500 }, part, [])
  }
  if (first !== undefined && typeOfOperator(first) === 'recombine') {
    context.reportOptions(first, recombineOperator)
    const rules = recombined(first, context)
    return rules === undefined ? { rules, done: new Set([first]) } : checked(rules, first, [first])
  }
  return { rules: undefined, done: new Set() }
}

const recombineOperator = {
  name: 'recombine',
  options: {
    type: '',
    id: '',
    output: '',
    is_first_entry: '',
    is_last_entry: '',
    combine_field: '',
    force_flush_period: '',
    combine_with: '',
  },
  itself: {
    source_identifier: 'the source joins lines only within one file or container',
    max_sources: 'the source joins lines only within one file or container',
    max_log_size: 'the source joins lines up to its limit',
    overwrite_with: 'the joined event keeps the fields of the first line',
    max_batch_size: 'the source joins lines up to its limit',
    max_unmatched_batch_size: 'lines that do not begin an event become separate events',
    on_error: 'lines that cannot be joined become separate events',
  },
}

/** A pattern without the outer group that configurations add for Go. */
const bare = (pattern: string) => regexLiteral(pattern).slice(2, -1)

function recombined(part: Part, context: Context): Rules | undefined {
  const refuse = (reason: string) => {
    context.gap(
      part.place(),
      `${part.id}: operator recombine`,
      reason,
      'Set `multiline` of the source: start, condition and mode.',
    )
    return undefined
  }
  if (part.has('combine_with') && part.text('combine_with') !== '\n')
    return refuse('the source joins lines with a line feed')
  const timeoutMs = Math.ceil((seconds(part.text('force_flush_period')) ?? 5) * 1000)
  const option = part.has('is_first_entry') ? 'is_first_entry' : 'is_last_entry'
  const found = patternIn(part.text(option) ?? '')
  if (found === undefined) return refuse(`\`${option}\` is not a test with \`matches\``)
  const condition = bare(found.pattern)
  if (option === 'is_last_entry') {
    return found.isNegated
      ? refuse('the last line would be one that does not match')
      : { start: '', condition, mode: 'halt_with', timeoutMs }
  }
  return found.isNegated
    ? { start: '', condition, mode: 'continue_through', timeoutMs }
    : { start: condition, condition, mode: 'halt_before', timeoutMs }
}

function patternIn(text: string): { readonly pattern: string; readonly isNegated: boolean } | undefined {
  let expression: Expression
  try {
    expression = parseExpression(text)
  } catch (error) {
    if (error instanceof UnknownExpression) return undefined
    throw error
  }
  const isNegated = expression.type === 'not'
  const inner = expression.type === 'not' ? expression.value : expression
  if (inner.type !== 'operation' || inner.operator !== 'matches' || inner.right.type !== 'literal') return undefined
  return { pattern: String(inner.right.value), isNegated }
}
