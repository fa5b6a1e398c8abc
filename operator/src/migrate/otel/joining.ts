// Multiline rules from the option `multiline` of files or from operators `recombine`. Sources join lines before all transforms. Behind a
// router, each route that joins lines in its own way gets a source of its own.

import { isDeepStrictEqual } from 'node:util'
import { multilineProblems } from '@penstock/agent/config'
import type { MultilineMode } from '@penstock/agent/schema'
import { escapedText } from '../escape.ts'
import { pathsIn } from './expression.ts'
import { type Expression, parseExpression, UnknownExpression } from './expression-parser.ts'
import { type Field, fieldOf } from './field.ts'
import { type Context, type Part, seconds } from './mapping.ts'
import type { Key } from './record.ts'
import { regexLiteral } from './text.ts'

export const isPodLog = (path: string) => /^\/var\/log\/(?:containers|pods)(?:\/|$)/.test(path)

/** The type without underscores. */
export const typeOfOperator = (part: Part) => (part.text('type') ?? '').replaceAll('_', '').toLowerCase()

/** Rules in the form of `multiline.custom` of `orchestrator_logs`. */
interface Rules {
  readonly start: string
  readonly condition: string
  readonly mode: MultilineMode
  readonly timeoutMs: number
}

/** The same rules in the form of a `file` source. */
export const fileRules = ({ start, condition, mode, timeoutMs }: Rules) => ({
  start_pattern: start,
  condition_pattern: condition,
  mode,
  timeout_ms: timeoutMs,
})

/** Outputs of a router: the indexes of routes, and the default. */
export interface Outputs {
  readonly router: Part
  readonly followed: ReadonlySet<number | 'default'>
}

/** A part of the records of a receiver, which a separate source reads. */
export interface Branch {
  readonly rules: Rules | undefined
  /** The text between joined lines, unless it is a line feed. */
  readonly between?: string
  /** The operators that the source replaces. */
  readonly done: ReadonlySet<Part>
  /** The outputs that the records take; undefined without a router, or if they take all. */
  readonly outputs?: Outputs
  /** Values of resource attributes that all of these records have. */
  readonly same?: ReadonlyMap<string, string>
}

const fieldsOf = (texts: readonly string[]) => texts.flatMap((text) => fieldOf(text) ?? [])

/** Whether neither of two paths contains the other. */
function isApart(one: readonly Key[], other: readonly Key[]): boolean {
  const shared = Math.min(one.length, other.length)
  return !isDeepStrictEqual(one.slice(0, shared), other.slice(0, shared))
}

const isElsewhere = (field: Field | undefined, lines: readonly Field[]) =>
  field !== undefined && lines.every((line) => isApart(field.path, line.path))

function parsed(text: string): Expression | undefined {
  try {
    return parseExpression(text)
  } catch (error) {
    if (error instanceof UnknownExpression) return undefined
    throw error
  }
}

/** Whether an expression has the same value for the first line as for all lines that are joined to it. */
function isSame(text: string, lines: readonly Field[]): boolean {
  const expression = parsed(text)
  return (
    expression !== undefined && pathsIn(expression).every(({ path }) => lines.every((line) => isApart(path, line.path)))
  )
}

/**
 * The operators, with a router for each condition of `recombine` that has the same value for all lines that are joined.
 * @param texts fields in which parsers for lines of the container runtime put the program's own text
 * @param kept operators that stay as they are
 */
export function withRouters(
  operators: readonly Part[],
  texts: readonly string[] = [],
  kept: readonly Part[] = [],
): readonly Part[] {
  const lines = fieldsOf(['body', ...texts])
  const testOf = (operator: Part) => {
    const test = typeOfOperator(operator) === 'recombine' ? operator.text('if') : undefined
    return test === undefined || kept.includes(operator) || !isSame(test, lines) ? undefined : test
  }
  const made: Part[] = []
  for (let at = 0; at < operators.length; at++) {
    const first = operators[at] as Part
    const tests = [testOf(first)].filter((test) => test !== undefined)
    const joins = [first]
    // Records that one of several conditions selects pass the others.
    while (tests.length > 0 && (joins.at(-1) as Part).list('output').length === 0) {
      const next = operators[at + 1]
      const test = next === undefined ? undefined : testOf(next)
      if (next === undefined || test === undefined || !tests.every((each) => areApart(each, test))) break
      joins.push(next)
      tests.push(test)
      at++
    }
    made.push(...(tests.length === 0 ? joins : routed(joins, tests, at)))
  }
  return made
}

/** Operators that join lines behind a router with their conditions. */
function routed(joins: readonly Part[], tests: readonly string[], at: number): readonly Part[] {
  const [first, last] = [joins[0] as Part, joins.at(-1) as Part]
  const id = first.text('id') ?? first.text('type') ?? ''
  const end = `${id}-end-${at}`
  const idOf = (index: number) => `${id}-join-${at}-${index}`
  const routes = tests.map((expr, index) => ({ expr, output: idOf(index) }))
  const { output } = last.config
  return [
    first.within([], { type: 'router', id, routes, default: end }, first.id),
    ...joins.map((join, index) => {
      const { if: _test, ...options } = join.config
      return join.within([], { ...options, id: idOf(index), output: end }, join.id)
    }),
    last.within([], { type: 'noop', id: end, ...(output === undefined ? {} : { output }) }, last.id),
  ]
}

/** Whether two conditions are never true for the same record, because they demand different values of an attribute. */
function areApart(one: string, other: string): boolean {
  const [a, b] = [one, other].map((text) => sameValues(parsed(text))) as [Map<string, string>, Map<string, string>]
  return [...a].some(([name, value]) => b.has(name) && b.get(name) !== value)
}

/**
 * The fields with the line after an operator; undefined if its result for the first line differs from that for all lines that are joined
 * to it.
 */
function linesAfter(operator: Part, lines: readonly Field[]): readonly Field[] | undefined {
  const type = typeOfOperator(operator)
  const field = (option: string) => fieldOf(operator.text(option) ?? '')
  const kept = (isKept: boolean) => (isKept ? lines : undefined)
  if (operator.has('if') && !isSame(operator.text('if') ?? '', lines)) return undefined
  switch (type) {
    case 'noop':
      return lines
    case 'regexparser':
      return kept(operator.has('parse_from') && isElsewhere(field('parse_from'), lines))
    case 'copy':
      return kept(isElsewhere(field('from'), lines) && isElsewhere(field('to'), lines))
    case 'move': {
      const [from, to] = [field('from'), field('to')]
      const isLine = lines.some((line) => isDeepStrictEqual(line.path, from?.path))
      if (isLine && to !== undefined && !operator.has('if')) return [to]
      return kept(isElsewhere(from, lines) && isElsewhere(to, lines))
    }
    case 'remove':
      return kept(isElsewhere(field('field'), lines))
    case 'add': {
      const inner = /^EXPR\((.*)\)$/s.exec(operator.text('value') ?? '')?.[1]
      return kept(isElsewhere(field('field'), lines) && (inner === undefined || isSame(inner, lines)))
    }
    default:
      return undefined
  }
}

/** The first operator for which a line is not the same as all lines that are joined to it, and the fields with the line there. */
function firstOf(operators: readonly Part[], texts: readonly string[]) {
  let lines: readonly Field[] = fieldsOf(['body', ...texts])
  for (const operator of operators) {
    const after = linesAfter(operator, lines)
    if (after === undefined) return { operator, lines }
    lines = after
  }
  return undefined
}

/**
 * The sources for a receiver: with rules from its option `multiline`, or from operators that come before all others.
 * @param texts fields in which parsers for lines of the container runtime put the program's own text
 */
export function branchesOf(
  part: Part,
  operators: readonly Part[],
  context: Context,
  texts: readonly string[] = [],
): readonly Branch[] {
  const start = part.text('multiline.line_start_pattern')
  const end = part.text('multiline.line_end_pattern')
  const isFile = !part.list('include').every(isPodLog)
  if (isFile && start !== undefined) {
    const pattern = bare(start)
    return [checked(part, { start: pattern, condition: pattern, mode: 'halt_before', timeoutMs: 500 }, part, context)]
  }
  if (isFile && end !== undefined) {
    return [checked(part, { start: '', condition: bare(end), mode: 'end_with', timeoutMs: 500 }, part, context)]
  }
  const first = firstOf(operators, texts)
  const type = first === undefined ? '' : typeOfOperator(first.operator)
  if (first !== undefined && type === 'recombine') return [joinedBy(part, first.operator, first.lines, context)]
  if (first !== undefined && type === 'router') {
    return routesOf(part, first.operator, first.lines, operators, context) ?? [{ rules: undefined, done: new Set() }]
  }
  return [{ rules: undefined, done: new Set() }]
}

function checked(part: Part, rules: Rules, at: Part, context: Context, done: readonly Part[] = []): Branch {
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

function joinedBy(part: Part, recombine: Part, lines: readonly Field[], context: Context): Branch {
  context.reportOptions(recombine, recombineOperator)
  const rules = recombined(recombine, lines, context)
  if (rules === undefined) return { rules, done: new Set([recombine]) }
  if (recombine.text('overwrite_with') !== 'oldest') {
    context.replaced(
      recombine.place(recombine.has('overwrite_with') ? ['overwrite_with'] : []),
      `${part.id}: operator recombine`,
      'a joined event has the time of its first line, and in the collector that of its last',
      'Nothing, unless you compare times with those of the collector.',
    )
  }
  const between = recombine.text('combine_with') ?? '\n'
  return {
    ...checked(part, rules, recombine, context, [recombine]),
    ...(between === '\n' ? {} : { between }),
  }
}

/** A source for each route that joins lines, and one for the others; undefined if there are none. */
function routesOf(
  part: Part,
  router: Part,
  lines: readonly Field[],
  operators: readonly Part[],
  context: Context,
): readonly Branch[] | undefined {
  const routes = router.tables('routes').map((table, index) => {
    const row = router.within(['routes', index], table, router.id)
    return { key: index as number | 'default', outputs: row.list('output'), expression: row.text('expr') }
  })
  const byDefault = router.text('default')
  const all = [
    ...routes,
    ...(byDefault === undefined
      ? []
      : [{ key: 'default' as const, outputs: [byDefault], expression: undefined as string | undefined }]),
  ]
  if (!routes.every(({ expression }) => expression !== undefined && isSame(expression, lines))) return undefined
  const named = (id: string | undefined) => operators.find((each) => (each.text('id') ?? each.text('type')) === id)
  const recombineOf = ({ outputs }: { readonly outputs: readonly string[] }) => {
    let target = outputs.length === 1 ? named(outputs[0]) : undefined
    const passed = new Set<Part>()
    // Records pass a `noop` unchanged.
    while (target !== undefined && typeOfOperator(target) === 'noop' && !passed.has(target)) {
      passed.add(target)
      const next = target.list('output')
      target =
        next.length === 0 ? operators[operators.indexOf(target) + 1] : next.length === 1 ? named(next[0]) : undefined
    }
    return target !== undefined && typeOfOperator(target) === 'recombine' ? target : undefined
  }
  const joined = all.flatMap((route): readonly Branch[] => {
    const recombine = recombineOf(route)
    if (recombine === undefined) return []
    const outputs: Outputs = { router, followed: new Set([route.key]) }
    const same = sameValues(parsed(route.expression ?? 'true'))
    return [{ ...joinedBy(part, recombine, lines, context), outputs, same }]
  })
  if (joined.length === 0) return undefined
  const others = all.filter((route) => recombineOf(route) === undefined)
  if (others.length === 0) return joined
  const outputs: Outputs = { router, followed: new Set(others.map(({ key }) => key)) }
  return [...joined, { rules: undefined, done: new Set(), outputs }]
}

/** The values of attributes of the resource for which an expression is true. */
function sameValues(expression: Expression | undefined, found = new Map<string, string>()): Map<string, string> {
  if (expression?.type !== 'operation') return found
  const { operator, left, right } = expression
  if (operator === '&&' || operator === 'and') return sameValues(right, sameValues(left, found))
  const [root, group, name] = left.type === 'path' ? left.path : []
  const isLiteral = right.type === 'literal' && typeof right.value === 'string'
  if (operator === '==' && root === 'resource' && group === 'attributes' && isLiteral) {
    found.set(String(name), String(right.value))
  }
  return found
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
    overwrite_with: 'the joined event has the time of its first line; other fields are the same in all lines',
    max_batch_size: 'the source joins lines up to its limit',
    max_unmatched_batch_size: 'lines that do not begin an event become separate events',
    on_error: 'lines that cannot be joined become separate events',
  },
}

/** A pattern without the outer group that configurations add for Go. */
const bare = (pattern: string) => regexLiteral(pattern).slice(2, -1)

function recombined(part: Part, lines: readonly Field[], context: Context): Rules | undefined {
  const refuse = (reason: string) => {
    context.gap(
      part.place(),
      `${part.id}: operator recombine`,
      reason,
      'Set `multiline` of the source: start, condition and mode.',
    )
    return undefined
  }
  const timeoutMs = Math.ceil((seconds(part.text('force_flush_period')) ?? 5) * 1000)
  const option = part.has('is_first_entry') ? 'is_first_entry' : 'is_last_entry'
  const combined = part.text('combine_field') ?? 'body'
  if (!lines.some((line) => isDeepStrictEqual(line.path, fieldOf(combined)?.path)))
    return refuse(`the source joins lines before \`${combined}\` exists`)
  const found = patternIn(part.text(option) ?? '', combined)
  if (found === undefined) return refuse(`\`${option}\` is not a test of the text in \`${combined}\``)
  const condition = bare(found.pattern)
  if (option === 'is_last_entry') {
    return found.isNegated
      ? refuse('the last line would be one that does not match')
      : { start: '', condition, mode: 'end_with', timeoutMs }
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
  const expression = parsed(text)
  if (expression === undefined) return undefined
  const isNegated = expression.type === 'not'
  const pattern = patternOf(expression.type === 'not' ? expression.value : expression, combined)
  return pattern === undefined ? undefined : { pattern, isNegated }
}

/** Tests of a text, as patterns. */
const patterns: Readonly<Record<string, (text: string) => string>> = {
  matches: (text) => text,
  startsWith: (text) => `^${escapedText(text)}`,
  endsWith: (text) => `${escapedText(text)}$`,
  contains: escapedText,
  '==': (text) => `^${escapedText(text)}$`,
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
