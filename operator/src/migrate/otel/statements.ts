// The processors `transform` and `filter`: OTTL statements and conditions, and the older lists `include` and `exclude`.

import { isTable, listOf } from '@penstock/agent/schema'
import type { Step } from '../draft.ts'
import { conditionOf } from './expression.ts'
import { parseExpression, UnknownExpression } from './expression-parser.ts'
import type { Context, Mapping, Part } from './mapping.ts'
import { Program } from './ottl/compile.ts'
import type { ContextName } from './ottl/paths.ts'
import { parseCondition, Unconvertible } from './ottl/syntax.ts'
import { fieldAt, severityNumber } from './record.ts'
import { matchesNothing, regexLiteral, valueLiteral } from './text.ts'

type Steps = readonly Step[]

/** Runs a function for each text. A text that cannot be converted becomes a gap at its line. */
function convertEach(
  part: Part,
  path: readonly (string | number)[],
  texts: readonly string[],
  context: Context,
  program: Program,
  convert: (text: string) => void,
): string[] {
  return texts.flatMap((text, index) => {
    const short = text.length > 60 ? `${text.slice(0, 57)}…` : text
    try {
      convert(text)
      for (const { reason, nearest } of program.takeNotes()) {
        context.replaced(part.place([...path, index]), `${part.id}: ${short}`, reason, nearest)
      }
      return []
    } catch (error) {
      if (!(error instanceof Unconvertible)) throw error
      program.takeNotes()
      context.gap(
        part.place([...path, index]),
        `${part.id}: ${short}`,
        `the statement has no counterpart: ${error.message}`,
        error.nearest,
      )
      return [`GAP: ${text}`]
    }
  })
}

/** Reports that a failing statement has another effect, if the collector does not ignore the failure. */
function reportPropagation(part: Part, context: Context, mode = part.text('error_mode')): void {
  if (/^(?:ignore|silent)$/.test(mode ?? '')) return
  context.replaced(
    part.place(part.has('error_mode') ? ['error_mode'] : []),
    `${part.id}: error_mode`,
    'without `ignore`, the collector discards a whole batch if a statement fails for one of its records; here the record continues unchanged',
    'Nothing, unless such records must not continue: discard them in a remap transform.',
  )
}

const contexts: Readonly<Record<string, ContextName>> = {
  log: 'log',
  resource: 'resource',
  scope: 'scope',
  instrumentation_scope: 'scope',
}

/** Converts a list of statements to a program. */
function group(
  part: Part,
  path: readonly (string | number)[],
  name: string,
  conditions: readonly string[],
  statements: readonly string[],
  context: Context,
  mode?: string,
): Step[] {
  const known = contexts[name]
  if (known === undefined) {
    context.gap(part.place(path), `${part.id}: context ${name}`, 'the context is not for log records', 'Remove it.')
    return []
  }
  const program = new Program(known)
  const at = conditions.length === 0 && path.length === 1 ? path : [...path, 'statements']
  const comments = convertEach(part, at, statements, context, program, (text) => program.statement(text))
  let text = '.'
  let tests = ''
  const left = convertEach(
    part,
    [...path, 'conditions'],
    conditions.length === 0 ? [] : [conditions.join(' || ')],
    context,
    program,
    () => {
      tests = program.text(conditions)
    },
  )
  if (conditions.length === 0) tests = program.text()
  if (!program.isEmpty && left.length === 0) text = tests
  if (program.hasFloats) context.makeFloats()
  if (program.canFail) reportPropagation(part, context, mode)
  const all = [...comments, ...left, ...(left.length === 0 ? [] : ['Its statements:', ...statements])]
  if (text === '.' && all.length === 0) return []
  return [{ type: 'remap', text, ...(all.length > 0 ? { comments: all } : {}) }]
}

const groupOptions = { context: '', conditions: '', statements: '', error_mode: '' }

export const transform: Mapping<Steps> = {
  name: 'transform',
  becomes: 'a remap transform; see [Functions of OTTL](#functions-of-ottl)',
  options: { log_statements: 'statements' },
  itself: {
    error_mode: 'a failing statement changes nothing',
    trace_statements: 'Penstock does not collect traces',
    metric_statements: 'the pipeline has only logs',
    profile_statements: 'Penstock does not collect profiles',
    flatten_data: 'each record has its own resource',
  },
  build: (part, context) => {
    const entries = listOf(part.get('log_statements'))
    const flat = entries.filter((entry) => typeof entry === 'string')
    const steps = flat.length === 0 ? [] : group(part, ['log_statements'], 'log', [], flat, context)
    for (const [index, entry] of entries.entries()) {
      if (!isTable(entry)) continue
      const { context: name, conditions, statements } = entry
      const row = part.within(['log_statements', index], entry, part.id)
      context.reportOptions(row, { name: 'statements', options: groupOptions })
      steps.push(
        ...group(
          part,
          ['log_statements', index],
          typeof name === 'string' ? name : 'log',
          listOf(conditions).map(String),
          listOf(statements).map(String),
          context,
          row.text('error_mode') ?? part.text('error_mode'),
        ),
      )
    }
    return steps
  },
}

/** A condition that discards records for which one of the texts is true. */
function anyOf(
  part: Part,
  path: readonly (string | number)[],
  texts: readonly string[],
  contextName: ContextName,
  context: Context,
): string | undefined {
  const program = new Program(contextName)
  const lines = program.newLines()
  const tests: string[] = []
  convertEach(part, path, texts, context, program, (text) => {
    const own = program.newLines()
    const test = program.condition(parseCondition(text), own)
    lines.add(...own.text())
    tests.push(test)
  })
  if (program.canFail) reportPropagation(part, context)
  if (tests.length === 0) return undefined
  return [...lines.text(), tests.length === 1 ? tests[0] : `(${tests.join(' || ')})`].join('\n')
}

/** Negates the last line of a condition. */
const denied = (condition: string) => condition.replace(/([^\n]*)$/, '!$1')

export const filter: Mapping<Steps> = {
  name: 'filter',
  becomes: 'a filter transform',
  options: {
    'logs.log_record': 'drops records for which a condition is true',
    'logs.resource': 'drops records for whose resource a condition is true',
    'logs.include': 'keeps records that match',
    'logs.exclude': 'drops records that match',
    log_conditions: 'drops records for which a condition is true',
  },
  itself: {
    error_mode: 'a failing condition is false',
    metrics: 'the pipeline has only logs',
    traces: 'Penstock does not collect traces',
    spans: 'Penstock does not collect traces',
    profiles: 'Penstock does not collect profiles',
    metric_conditions: 'the pipeline has only logs',
    trace_conditions: 'Penstock does not collect traces',
  },
  build: (part, context) => {
    const steps: Step[] = []
    const conditions = (path: readonly string[], list: readonly unknown[], name: ContextName = 'log') => {
      const texts = list.filter((entry) => typeof entry === 'string')
      const groups: [readonly (string | number)[], ContextName, readonly string[]][] = [[path, name, texts]]
      for (const [index, entry] of list.entries()) {
        if (!isTable(entry)) continue
        const own = contexts[String(entry['context'] ?? 'log')] ?? 'log'
        groups.push([[...path, index, 'conditions'], own, listOf(entry['conditions']).map(String)])
      }
      for (const [at, own, given] of groups) {
        const test = given.length === 0 ? undefined : anyOf(part, at, given, own, context)
        if (test !== undefined) steps.push({ type: 'filter', text: denied(test) })
      }
    }
    for (const name of ['include', 'exclude'] as const) {
      const inner = part.within(['logs', name], part.table(`logs.${name}`), part.id)
      const test = part.has(`logs.${name}`) ? matching(inner, name, context) : undefined
      if (test !== undefined) steps.push({ type: 'filter', text: name === 'include' ? test : `!${test}` })
    }
    conditions(['logs', 'resource'], listOf(part.get('logs.resource')), 'resource')
    conditions(['logs', 'log_record'], listOf(part.get('logs.log_record')))
    conditions(['log_conditions'], listOf(part.get('log_conditions')))
    return steps
  },
}

const matchOptions = {
  match_type: '',
  resource_attributes: '',
  record_attributes: '',
  attributes: '',
  resources: '',
  bodies: '',
  log_bodies: '',
  severity_texts: '',
  log_severity_texts: '',
  severity_number: '',
  log_severity_number: '',
  expressions: '',
  'regexp.cacheenabled': '',
}

/**
 * The older lists, which `attributes` and `resource` also have. All attributes in a list must match, and one entry of each other list,
 * although the documentation of the collector describes alternatives for some lists of attributes.
 */
export function matching(part: Part, name: string, context: Context): string | undefined {
  context.reportOptions(part, {
    name,
    options: matchOptions,
    itself: { regexp: 'patterns need no cache', libraries: 'a record has one scope' },
  })
  const isRegex = part.text('match_type') === 'regexp'
  const equals = (field: string, value: unknown) => {
    // An integer does not match a float, for instance a number from JSON.
    if (typeof value === 'number') return `includes([${valueLiteral(value)}], ${field})`
    if (!isRegex || typeof value !== 'string') return `${field} == ${valueLiteral(value)}`
    const test = `match(to_string(${field}) ?? encode_json(${field}), ${regexLiteral(value)})`
    return matchesNothing(value) ? `(exists(${field}) && ${test})` : test
  }
  const tests: string[] = []
  const attributes = (option: string, base: readonly string[]) => {
    const found = part.tables(option).map(({ key, value }) => {
      const field = fieldAt([...base, String(key)])
      return value === undefined || value === null ? `exists(${field})` : equals(field, value)
    })
    if (found.length > 0) tests.push(`(${found.join(' && ')})`)
  }
  attributes('resource_attributes', ['resource', 'attributes'])
  attributes('record_attributes', ['attributes'])
  attributes('resources', ['resource', 'attributes'])
  attributes('attributes', ['attributes'])
  const texts = (options: readonly string[], field: string) => {
    const found = options.flatMap((option) => part.list(option)).map((text) => equals(field, text))
    if (found.length > 0) tests.push(`(${found.join(' || ')})`)
  }
  texts(['bodies', 'log_bodies'], '.message')
  texts(['severity_texts', 'log_severity_texts'], '.severity_text')
  for (const option of ['severity_number', 'log_severity_number']) {
    const min = part.text(`${option}.min`)
    if (min === undefined) continue
    const number = severityNumber(min.replace(/^SEVERITY_NUMBER_/, '')) ?? Number(min)
    const unknown = part.flag(`${option}.match_undefined`, false) ? ' || (int(.severity_number) ?? 0) == 0' : ''
    tests.push(`((int(.severity_number) ?? 0) >= ${number}${unknown})`)
  }
  for (const [index, text] of part.list('expressions').entries()) {
    try {
      tests.push(conditionOf(parseExpression(text)))
    } catch (error) {
      if (!(error instanceof UnknownExpression)) throw error
      context.gap(
        part.place(['expressions', index]),
        `${part.id}: ${text}`,
        `the expression has no counterpart: ${error.message}`,
        'Add a filter transform.',
      )
    }
  }
  return tests.length === 0 ? undefined : `(${tests.join(' && ')})`
}
