// Operators of filelog and other log receivers. They form a graph: an operator passes records to the next one in the list, or to the one
// that `output` names. Operators without a counterpart pass records unchanged.

import type { Step } from '../draft.ts'
import { nodeRead, readReport, variableRead } from '../environment.ts'
import type { Described } from '../page.ts'
import { isNodeVariable } from './environment.ts'
import { failureOf, negated, valueText } from './expression.ts'
import { parseExpression, UnknownExpression } from './expression-parser.ts'
import { type Field, fieldOf, storeLines } from './field.ts'
import { type Outputs, typeOfOperator } from './joining.ts'
import { type Context, gapComment, type Mapping, type Part } from './mapping.ts'
import {
  common,
  condition,
  containerParser,
  csvParser,
  errorOption,
  failingLines,
  field,
  jsonArrayParser,
  jsonParser,
  keyValueParser,
  type Lines,
  regexParser,
  syslogParser,
  uriParser,
} from './parsers.ts'
import { fieldAt } from './record.ts'
import { severityLines, severityOptions, timeLines, timeOptions } from './record-time.ts'
import { scopeLines, scopeOptions, traceLines, traceOptions } from './record-trace.ts'
import { decimal, indent, regexLiteral, valueLiteral } from './text.ts'

/**
 * An operator that changes fields.
 * @param build returns statements, which run the given ones for an event for which the operator fails
 */
function change(
  name: string,
  options: Readonly<Record<string, string>>,
  build: (part: Part, context: Context, failing: readonly string[]) => readonly string[],
): Mapping<Lines> {
  return {
    name,
    becomes: 'a remap transform',
    options: { ...common, ...errorOption, ...options },
    build: (part, context) => build(part, context, failingLines(part)),
  }
}

/** Statements under a condition, and others if it is false. */
function ifElse(test: string, lines: readonly string[], otherwise: readonly string[]): string[] {
  const rest = otherwise.length === 0 ? [] : ['} else {', ...otherwise.map((line) => `  ${line}`)]
  return [`if ${test} {`, ...lines.map((line) => `  ${line}`), ...rest, '}']
}

/** Removes a field, or the content of a root. */
function takeOut(from: Field): string {
  return from.below.length === 0 && from.root !== 'body' ? `${fieldAt(from.path)} = {}` : `del(${fieldAt(from.path)})`
}

const move = change('move', { from: 'the source field', to: 'the target field' }, (part, context, failing) => {
  const from = field(part, 'from', context)
  const to = field(part, 'to', context)
  if (from === undefined || to === undefined) return []
  const at = fieldAt(from.path)
  return ifElse(`exists(${at})`, [`value = ${at}`, takeOut(from), ...storeLines(to, 'value')], failing)
})

const copy = change('copy', { from: 'the field', to: 'the target field' }, (part, context, failing) => {
  const from = field(part, 'from', context)
  const to = field(part, 'to', context)
  if (from === undefined || to === undefined) return []
  const at = fieldAt(from.path)
  return ifElse(`exists(${at})`, [`value = ${at}`, ...storeLines(to, 'value')], failing)
})

/** An expression that only reads a variable, as a value; undefined if it is another expression. */
export function variableIn(
  expression: string,
  part: Part,
  path: readonly (string | number)[],
  context: Context,
): string | undefined {
  const name = /^\s*env\(\s*["'](\w+)["']\s*\)\s*$/.exec(expression)?.[1]
  if (name === undefined) return undefined
  if (isNodeVariable(name)) return nodeRead(context.readsEnvironment)
  if (!context.readsEnvironment) return undefined
  const { reason, nearest } = readReport(name)
  context.replaced(part.place(path), `${part.id}: ${name}`, reason, nearest)
  return variableRead(name)
}

/** Statements that set a field to an expression, or run `failing` for an event for which it fails. */
function setLines(at: string, inner: string, failing: readonly string[]): readonly string[] {
  const expression = parseExpression(inner)
  const failure = failureOf(expression)
  const line = `${at} = ${valueText(expression)}`
  return failure === undefined ? [line] : ifElse(negated(failure), [line], failing)
}

const add = change(
  'add',
  { field: 'the field', value: 'a value, or an expression in `EXPR(…)`' },
  (part, context, failing) => {
    const to = field(part, 'field', context)
    if (to === undefined) return []
    const given = part.get('value')
    const inner = typeof given === 'string' ? /^EXPR\((.*)\)$/s.exec(given)?.[1] : undefined
    if (inner === undefined) return [`${fieldAt(to.path)} = ${valueLiteral(given)}`]
    const read = variableIn(inner, part, ['value'], context)
    if (read !== undefined) return [`${fieldAt(to.path)} = ${read}`]
    try {
      return setLines(fieldAt(to.path), inner, failing)
    } catch (error) {
      if (!(error instanceof UnknownExpression)) throw error
      context.gap(
        part.place(['value']),
        `${part.id}: value`,
        `the expression \`${inner}\` has no counterpart: ${error.message}`,
        'Rewrite the operator as a remap transform.',
      )
      return []
    }
  },
)

const remove = change('remove', { field: '`del`' }, (part, context, failing) => {
  const from = field(part, 'field', context)
  if (from === undefined) return []
  return failing.length === 0 ? [takeOut(from)] : ifElse(`exists(${fieldAt(from.path)})`, [takeOut(from)], failing)
})

/** Statements that remove the parts of a record that no field names. */
const otherParts = ['severity_text', 'severity_number', 'trace_id', 'span_id', 'flags', 'scope'].map(
  (name) => `del(.${name})`,
)

const retain = change('retain', { fields: 'the fields to keep within their roots' }, (part, context) => {
  const fields = part.list('fields').flatMap((text, index) => {
    const found = fieldOf(text)
    if (found === undefined) {
      context.gap(part.place(['fields', index]), `${part.id}: ${text}`, 'it is not a field', 'Correct `fields`.')
    }
    return found === undefined ? [] : [found]
  })
  const kept = [...Map.groupBy(fields, ({ root }) => root)].flatMap(([, ofRoot]) => {
    if (ofRoot.some(({ below }) => below.length === 0)) return []
    const root = fieldAt(
      (ofRoot[0] as Field).path.slice(0, (ofRoot[0] as Field).path.length - (ofRoot[0] as Field).below.length),
    )
    return [
      'kept = {}',
      ...ofRoot.map(({ path, below }) => `if exists(${fieldAt(path)}) { kept${fieldAt(below)} = ${fieldAt(path)} }`),
      `${root} = kept`,
    ]
  })
  return [...kept, '# The operator keeps only the times, body, attributes and resource of a record.', ...otherParts]
})

const flatten = change('flatten', { field: 'the object whose members to move up' }, (part, context, failing) => {
  const from = field(part, 'field', context)
  if (from === undefined || from.below.length === 0) return []
  const above = fieldAt(from.path.slice(0, -1))
  const at = fieldAt(from.path)
  const lines = [`nested = object!(del(${at}))`, `${above} = merge(object(${above}) ?? {}, nested)`]
  return ifElse(`is_object(${at})`, lines, failing)
})

const regexReplace = change(
  'regexreplace',
  {
    field: 'the field',
    regex: 'the pattern',
    regex_name: '`ansi_control_sequences`',
    replace_with: 'the replacement text',
  },
  (part, context, failing) => {
    const at = field(part, 'field', context)
    if (at === undefined) return []
    const place = fieldAt(at.path)
    const regex = part.text('regex')
    const replaced = (call: string) => ifElse(`is_string(${place})`, [`${place} = ${call}`], failing)
    if (part.text('regex_name') === 'ansi_control_sequences') {
      return replaced(`strip_ansi_escape_codes(string!(${place}))`)
    }
    if (regex === undefined) {
      context.gap(part.place(), `${part.id}: regex`, 'the operator has no known pattern', 'Set `regex`.')
      return []
    }
    const text = valueLiteral(part.text('replace_with') ?? '')
    return replaced(`replace(string!(${place}), ${regexLiteral(regex)}, ${text})`)
  },
)

/** A text in Go's quotes. Escapes that JSON lacks become its own. */
const unquote = change('unquote', { field: 'the field' }, (part, context, failing) => {
  const from = field(part, 'field', context)
  if (from === undefined) return []
  const at = fieldAt(from.path)
  return [
    `text = if is_string(${at}) { string!(${at}) } else { "" }`,
    "if match(text, r'^`[^`]*`$') {",
    `  ${at} = replace(text, "\`", "")`,
    '} else if match(text, r\'^".*"$\') {',
    "  text = replace_with(text, r'\\\\(?:x(?P<hex>[0-9a-fA-F]{2})|.)') -> |m| {",
    '    sign = get({ "\\\\a": "\\\\u0007", "\\\\v": "\\\\u000b", "\\\\\'": "\'" }, [m.string]) ?? null',
    '    if is_string(m.hex) { "\\\\u00" + string!(m.hex) } else if is_string(sign) { string!(sign) } else { m.string }',
    '  }',
    '  found = parse_json(text) ?? null',
    ...ifElse('is_string(found)', [`${at} = found`], failing).map((line) => `  ${line}`),
    ...(failing.length === 0 ? [] : ['} else {', ...failing.map((line) => `  ${line}`)]),
    '}',
  ]
})

const assignKeys = change('assignkeys', { field: 'the list', keys: 'the names' }, (part, context, failing) => {
  const from = field(part, 'field', context)
  if (from === undefined) return []
  const at = fieldAt(from.path)
  const keys = part.list('keys')
  return ifElse(
    `is_array(${at}) && length(array!(${at})) == ${keys.length}`,
    [`${at} = object_from_array(zip([${keys.map(valueLiteral).join(', ')}], array!(${at})))`],
    failing,
  )
})

const traceParser = change('traceparser', traceOptions, traceLines)
const scopeNameParser = change('scopenameparser', scopeOptions, scopeLines)
const timeParser = change('timeparser', timeOptions, timeLines)
const severityParser = change('severityparser', severityOptions, severityLines)
const noop = change('noop', {}, () => [])
const sanitizeUtf8: Mapping<Lines> = {
  ...change('sanitizeutf8', { field: 'the field' }, () => []),
  becomes: 'nothing: texts are valid UTF-8',
}

/** Operators that become one program. */
const statements: readonly Mapping<Lines>[] = [
  containerParser,
  jsonParser,
  jsonArrayParser,
  regexParser,
  keyValueParser,
  csvParser,
  uriParser,
  syslogParser,
  move,
  copy,
  add,
  remove,
  retain,
  flatten,
  regexReplace,
  timeParser,
  severityParser,
  traceParser,
  scopeNameParser,
  unquote,
  assignKeys,
  noop,
  sanitizeUtf8,
]

const filterOptions = {
  ...common,
  expr: 'drops records for which it is true, or fails',
  drop_ratio: 'the share of these records to drop, at random',
}
const routeOptions = { name: 'route', options: { expr: '', output: '', attributes: '' } } as const
const routerOptions = {
  ...common,
  routes: 'a filter transform for each route',
  default: 'a filter transform for other records',
}

/** Operators that select records or that the source replaces; for the guide only. */
const others: readonly Described[] = [
  { name: 'filter', becomes: 'a filter transform', options: filterOptions },
  { name: 'router', becomes: 'a filter transform for each route', options: routerOptions },
]

export const operatorTable: readonly Described[] = [...others, ...statements].map((each) => ({
  ...each,
  name: each.name.replace('array', '_array').replace(/(parser|replace|utf8)$/, '_$1'),
}))

const refusals: Readonly<Record<string, readonly [string, string]>> = {
  recombine: [
    'only sources join records, before all other operators',
    'Set `multiline` of the source. To join the lines of some containers only, read them with a source of their own.',
  ],
  fileoutput: ['an operator cannot be an output', 'Add a sink `file`.'],
  stdout: ['an operator cannot be an output', 'Use `penstock tap`.'],
}

/** Passes events to the operators with these ids, or without any to the operator after the one at an index. */
type Pass = (heads: readonly string[], outputs: readonly string[], from: number) => void

/**
 * @param skipped operators that the source replaces
 * @param taken the only outputs of a router that the records take
 */
export function followOperators(
  operators: readonly Part[],
  skipped: ReadonlySet<Part>,
  start: readonly string[],
  context: Context,
  taken?: Outputs,
): string[] {
  const idOf = (part: Part) => part.text('id') ?? part.text('type') ?? ''
  const arriving = new Map<Part | undefined, string[]>()
  const pass: Pass = (heads, outputs, from) => {
    const named = outputs.map((output) => operators.find((part) => idOf(part) === output))
    for (const next of outputs.length === 0 ? [operators[from + 1]] : named) {
      arriving.set(next, [...(arriving.get(next) ?? []), ...heads])
    }
  }
  if (operators.length === 0) return [...start]
  arriving.set(operators[0], [...start])
  for (const [index, part] of operators.entries()) {
    const heads = [...new Set(arriving.get(part) ?? [])]
    const type = typeOfOperator(part)
    if (heads.length === 0) {
      reportAlone(part, type, context)
      continue
    }
    const outputs = part.list('output')
    if (type === 'router' && !skipped.has(part)) {
      route(part, heads, index, pass, context, taken?.router === part ? taken.followed : undefined)
    } else if (skipped.has(part)) {
      reportAlone(part, type, context)
      pass(heads, type === 'router' ? firstRoute(part) : outputs, index)
    } else pass(context.append(heads, stepsOf(part, type, context), `${part.name}-${idOf(part)}`, part), outputs, index)
  }
  return [...new Set(arriving.get(undefined) ?? [])]
}

/** Reports the options of an operator that the source replaces, or that no record reaches. */
function reportAlone(part: Part, type: string, context: Context): void {
  const known =
    type === 'router' ? { name: type, options: routerOptions } : statements.find(({ name }) => name === type)
  if (known !== undefined) context.reportOptions(part, known)
}

function firstRoute(part: Part): readonly string[] {
  const [first] = part.tables('routes')
  return part
    .within(['routes', 0], first ?? {}, part.id)
    .list('output')
    .slice(0, 1)
}

function route(
  part: Part,
  heads: readonly string[],
  index: number,
  pass: Pass,
  context: Context,
  followed?: ReadonlySet<number | 'default'>,
): void {
  const isFollowed = (key: number | 'default') => followed?.has(key) ?? true
  context.reportOptions(part, { name: 'router', options: routerOptions })
  const before: string[] = []
  for (const [number, table] of part.tables('routes').entries()) {
    const inner = part.within(['routes', number], table, part.id)
    const test = condition(inner, 'expr', context) ?? 'false'
    const steps: Step[] = [{ type: 'filter', text: [...before.map((text) => `!${text}`), test].join(' && ') }]
    before.push(test)
    if (!isFollowed(number)) continue
    context.reportOptions(inner, routeOptions)
    const added = Object.entries(inner.table('attributes')).map(
      ([name, value]) => `${fieldAt(['attributes', name])} = ${valueLiteral(value)}`,
    )
    if (added.length > 0) steps.push({ type: 'remap', text: added.join('\n') })
    const made = context.append(heads, steps, `${part.name}-route`, part)
    pass(made, inner.list('output'), index)
  }
  const byDefault = part.list('default')
  if (byDefault.length === 0 || !isFollowed('default')) return
  const rest: Step[] = [{ type: 'filter', text: before.map((text) => `!${text}`).join(' && ') || 'true' }]
  pass(context.append(heads, rest, `${part.name}-route`, part), byDefault, index)
}

function stepsOf(part: Part, type: string, context: Context): readonly Step[] {
  if (type === 'filter') {
    context.reportOptions(part, { name: type, options: filterOptions })
    const ratio = Number(part.text('drop_ratio') ?? 1)
    const test = condition(part, 'expr', context)
    if (test === undefined) return []
    const dropped = ratio === 1 ? test : `(${test} && random_float(0.0, 1.0) < ${decimal(ratio)})`
    // Unlike other operators, it discards records for which the expression fails.
    const failure = failureOf(parseExpression(part.text('expr') ?? ''))
    return [{ type: 'filter', text: failure === undefined ? `!${dropped}` : `${negated(failure)} && !${dropped}` }]
  }
  const mapping = statements.find(({ name }) => name === type)
  if (mapping === undefined) {
    const name = part.text('type') ?? ''
    const [reason, nearest] = refusals[type] ?? ['the operator is unknown', 'Rewrite it as a remap transform.']
    context.gap(part.place(), `${part.id}: operator ${name}`, reason, nearest)
    const { file, line } = part.place()
    const comment = `GAP: the operator \`${name}\` (${file}:${line}) has no counterpart. Records pass unchanged.`
    return [{ type: 'remap', text: '.', comments: [comment] }]
  }
  context.reportOptions(part, mapping)
  const lines = mapping.build(part, context)
  if (lines.length === 0) return []
  if (!part.has('if')) return [{ type: 'remap', text: lines.join('\n') }]
  const test = condition(part, 'if', context)
  if (test === undefined) return [{ type: 'remap', text: '.', comments: [gapComment(part, 'Records pass unchanged.')] }]
  return [{ type: 'remap', text: `if ${test} {\n${indent(lines.join('\n'))}\n}` }]
}
