// Multiline rules from the option `multiline` of files or an operator `recombine`. Sources join lines before all transforms.

import { isDeepStrictEqual } from 'node:util'
import { multilineProblems } from '@penstock/agent/config'
import { type Expression, parseExpression, UnknownExpression } from './expression.ts'
import { fieldOf } from './field.ts'
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

/** The attribute in which parsers for lines of the container runtime put the program's own text. */
const ofRuntime = /^attributes(?:\.|\[["'])(?:log|message|content)(?:["']\])?$/

/**
 * Whether an operator has the same result for the first line as for all lines that are joined to it.
 * @param isPods whether the source parses lines of the container runtime itself
 */
function isIndifferent(operator: Part, isPods: boolean): boolean {
  const type = typeOfOperator(operator)
  const isElsewhere = (option: string) => !/^\$?body/.test(operator.text(option) ?? 'body')
  if (type === 'regexparser') return /log\.file\.(?:path|name)/.test(operator.text('parse_from') ?? '')
  if (type === 'move' || type === 'copy') {
    const restoresLine = isPods && operator.text('to') === 'body' && ofRuntime.test(operator.text('from') ?? '')
    return restoresLine || (isElsewhere('from') && isElsewhere('to'))
  }
  if (type === 'remove') return isElsewhere('field')
  return (
    type === 'noop' ||
    (type === 'add' &&
      isElsewhere('field') &&
      typeof operator.get('value') === 'string' &&
      !/EXPR/.test(operator.text('value') ?? ''))
  )
}

/** Rules from the option `multiline` of files, or from an operator that comes before all others. */
export function joinedBy(part: Part, operators: readonly Part[], context: Context): Joined {
  const start = part.text('multiline.line_start_pattern')
  const end = part.text('multiline.line_end_pattern')
  const isFile = !part.list('include').every(isPodLog)
  const first = operators.find((operator) => !isIndifferent(operator, !isFile))
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
    const rules = recombined(first, !isFile, context)
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

function recombined(part: Part, isPods: boolean, context: Context): Rules | undefined {
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
  const combined = part.text('combine_field') ?? 'body'
  if (combined !== 'body' && !(isPods && ofRuntime.test(combined)))
    return refuse(`the source joins lines before \`${combined}\` exists`)
  const found = patternIn(part.text(option) ?? '', combined)
  if (found === undefined) return refuse(`\`${option}\` is not a test of the text in \`${combined}\``)
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

/** The pattern of the texts for which an expression is true; undefined if it is not a test of the field. */
function patternIn(
  text: string,
  combined: string,
): { readonly pattern: string; readonly isNegated: boolean } | undefined {
  let expression: Expression
  try {
    expression = parseExpression(text)
  } catch (error) {
    if (error instanceof UnknownExpression) return undefined
    throw error
  }
  const isNegated = expression.type === 'not'
  const pattern = patternOf(expression.type === 'not' ? expression.value : expression, combined)
  return pattern === undefined ? undefined : { pattern, isNegated }
}

const escaped = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')

/** Tests of a text, as patterns. */
const patterns: Readonly<Record<string, (text: string) => string>> = {
  matches: (text) => text,
  startsWith: (text) => `^${escaped(text)}`,
  endsWith: (text) => `${escaped(text)}$`,
  contains: escaped,
  '==': (text) => `^${escaped(text)}$`,
}

function patternOf(expression: Expression, combined: string): string | undefined {
  if (expression.type !== 'operation') return undefined
  const { operator, left, right } = expression
  if (operator === 'or' || operator === '||') {
    const both = [left, right].map((part) => patternOf(part, combined))
    return both.includes(undefined) ? undefined : both.map((part) => `(?:${part})`).join('|')
  }
  const of = Object.hasOwn(patterns, operator) ? patterns[operator] : undefined
  const isField = left.type === 'path' && isDeepStrictEqual(left.path, fieldOf(combined)?.path)
  if (of === undefined || !isField || right.type !== 'literal' || typeof right.value !== 'string') return undefined
  return of(right.value)
}
