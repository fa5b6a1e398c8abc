// Processors of the YAML syntax, which change the records of one input or one output. Filters can be processors too. A condition limits a
// processor to some records.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import type { Step } from '../draft.ts'
import { none, type Refusal } from '../page.ts'
import { apart, ownPath, reportOwnTime, reportParsedTime } from './own-time.ts'
import { type Context, common, type Plugin } from './plugin.ts'
import { conditionKey, type Entry, entriesOf, lastValue, type Section } from './sections.ts'
import { parseQuery } from './sql.ts'
import { accessor, pattern, textOf } from './text.ts'

/** Statements of `content_modifier` by action, for a field, a value and an expression. */
const actions: Readonly<
  Record<string, (field: string, value: string, regex: string, reads: boolean) => readonly string[]>
> = {
  insert: (field, value, _regex, reads) => [`if !exists(${field}) { ${field} = ${textOf(value, reads)} }`],
  upsert: (field, value, _regex, reads) => [`${field} = ${textOf(value, reads)}`],
  delete: (field) => [`del(${field})`],
  rename: (field, value) => [`if exists(${field}) { ${fieldLiteral([value])} = del(${field}) }`],
  hash: (field) => [
    `if exists(${field}) && ${field} != "" {`,
    `  ${field} = sha2(string(${field}) ?? encode_json(${field}), variant: "SHA-256")`,
    '}',
  ],
  extract: (field, _value, regex) => [
    `found = parse_grok(string(${field}) ?? "", ${pattern(regex)}) ?? null`,
    'if is_object(found) {',
    ...(findsOwnTime(regex) ? [`  ${apart('found')}`] : []),
    '  . = merge(., object!(found))',
    '}',
  ],
}

/** Whether an expression has a group for a field that has another name in events. */
const findsOwnTime = (regex: string) => /\(\?<timestamp>/.test(regex)

const assign = (field: string, value: string) => `  ${field} = ${value}`

/** Reads the number at the beginning of a text. */
const numberIn = (field: string, digits: string) =>
  `  found = parse_regex(string!(${field}), r'^\\s*(?P<number>${digits})') ?? {}`

/** Statements that convert a field. As in C, only the beginning of a text counts, and an object or array stays unchanged. */
const conversions: Readonly<Record<string, (field: string) => readonly string[]>> = {
  string: (field) => [`if exists(${field}) {`, assign(field, `to_string(${field}) ?? ${field}`), '}'],
  boolean: (field) => [
    `if is_string(${field}) {`,
    assign(field, `downcase(string!(${field})) == "true"`),
    `} else if exists(${field}) {`,
    assign(field, `to_bool(${field}) ?? ${field}`),
    '}',
  ],
  int: (field) => [
    `if is_string(${field}) {`,
    numberIn(field, '[-+]?\\d+'),
    assign(field, 'to_int(found.number) ?? 0'),
    `} else if is_float(${field}) {`,
    assign(field, `to_int(round(float!(${field})))`),
    `} else if exists(${field}) {`,
    assign(field, `to_int(${field}) ?? ${field}`),
    '}',
  ],
  double: (field) => [
    `if is_string(${field}) {`,
    numberIn(field, '[-+]?(?:\\d+\\.?\\d*|\\.\\d+)(?:[eE][-+]?\\d+)?'),
    assign(field, `if exists(found.number) { to_float(found.number) ?? ${field} } else { ${field} }`),
    `} else if exists(${field}) {`,
    assign(field, `to_float(${field}) ?? ${field}`),
    '}',
  ],
}

/** Contexts of `content_modifier` for the record, and for data that accompanies it. */
const ofRecord: readonly string[] = ['body', 'message', 'record']
const ofMetadata = /^(?:metadata|attributes|otel_\w+)$/

const contentModifier: Plugin<readonly Step[]> = {
  name: 'content_modifier',
  becomes: 'a remap transform',
  options: {
    name: common.name,
    action: 'the statement',
    key: 'the field',
    value: 'the text',
    pattern: 'the expression of `extract`',
    converted_type: 'the function of `convert`',
    context: 'without effect for metadata, which no sink sends; a gap for unknown contexts',
    condition: '`if` around the statement',
  },
  expresses: ['value'],
  build: (section, context) => {
    const action = (lastValue(section, 'action') ?? '').toLowerCase()
    const field = fieldLiteral([lastValue(section, 'key') ?? ''])
    const scope = (lastValue(section, 'context') ?? 'body').toLowerCase()
    if (ofMetadata.test(scope)) {
      reportMetadata(section, `content_modifier: context ${scope}`, context)
      return []
    }
    const type = (lastValue(section, 'converted_type') ?? '').toLowerCase()
    const convert = Object.hasOwn(conversions, type) ? conversions[type] : undefined
    const make = Object.hasOwn(actions, action) ? actions[action] : undefined
    if (!ofRecord.includes(scope) || (make === undefined && (action !== 'convert' || convert === undefined))) {
      context.gap(
        section,
        `content_modifier: ${action} ${scope === 'body' ? type : scope}`.trim(),
        'the action has no counterpart for records',
        'Rewrite it as a remap transform.',
      )
      return []
    }
    if (action === 'extract' && findsOwnTime(lastValue(section, 'pattern') ?? '')) reportParsedTime(section, context)
    const lines =
      make === undefined
        ? (convert?.(field) ?? [])
        : make(field, lastValue(section, 'value') ?? '', lastValue(section, 'pattern') ?? '', context.readsEnvironment)
    return [{ type: 'remap', text: lines.join('\n') }]
  },
}

function reportMetadata(section: Section, subject: string, context: Context): void {
  const reason = 'it changes only metadata beside the record, which no sink sends'
  context.replaced(section, subject, reason, 'Nothing to do. To send the value, add a field in a remap transform.')
}

const envelope: Plugin<readonly Step[]> = {
  name: 'opentelemetry_envelope',
  becomes: 'nothing, because it adds only metadata, which no sink sends',
  options: { name: common.name },
  build: (section, context) => {
    reportMetadata(section, 'opentelemetry_envelope', context)
    return []
  },
}

const sql: Plugin<readonly Step[]> = {
  name: 'sql',
  becomes: 'a filter transform for the condition, and a remap transform for the keys',
  options: { name: common.name, query: 'the steps', condition: contentModifier.options['condition'] ?? '' },
  build: (section, context) => {
    const query = parseQuery(lastValue(section, 'query') ?? '')
    for (const entry of entriesOf(section, 'query')) reportOwnTimeIn(entry, 'sql', context)
    if (!('problem' in query)) return query.steps
    context.gap(section, 'processor sql', query.problem, 'Rewrite the query as remap and filter transforms.')
    return []
  },
}

export const processors: readonly Plugin<readonly Step[]>[] = [contentModifier, sql, envelope]

export const refusedProcessors: readonly Refusal[] = [
  none('labels', 'it changes labels of metrics', 'Change labels at the destination.'),
  none('metrics_selector', 'it chooses metrics', 'Choose them at the destination.'),
  none('sampling', 'Penstock does not collect traces', 'Remove it.'),
  none('tda', 'it processes metrics', 'Remove it.'),
]

interface Rule {
  readonly field?: unknown
  readonly op?: unknown
  readonly value?: unknown
  readonly context?: unknown
}

/** The text of a field, as conditions see it: nothing for a missing field. */
const textAt = (field: string) => `(to_string(${field}) ?? "")`
const numberAt = (field: string) => `(to_float(${field}) ?? 0.0)`
const isLike = (field: string, value: unknown) =>
  `is_object(parse_grok(${textAt(field)}, ${pattern(String(value))}) ?? null)`

/** Tests of a field against a value, by operator. Fluent Bit compares texts, except for `gt` and similar operators. */
const tests: Readonly<Record<string, (field: string, value: unknown) => string>> = {
  eq: (field, value) => `${textAt(field)} == ${textLiteral(String(value))}`,
  neq: (field, value) => `${textAt(field)} != ${textLiteral(String(value))}`,
  gt: (field, value) => `${numberAt(field)} > ${Number(value)}`,
  gte: (field, value) => `${numberAt(field)} >= ${Number(value)}`,
  lt: (field, value) => `${numberAt(field)} < ${Number(value)}`,
  lte: (field, value) => `${numberAt(field)} <= ${Number(value)}`,
  in: (field, value) => `includes(${listOf(value)}, ${textAt(field)})`,
  not_in: (field, value) => `!includes(${listOf(value)}, ${textAt(field)})`,
  regex: isLike,
  not_regex: (field, value) => `!${isLike(field, value)}`,
  exists: (field) => `exists(${field})`,
  not_exists: (field) => `!exists(${field})`,
}

const listOf = (value: unknown) =>
  `[${(Array.isArray(value) ? value : [value]).map((item) => textLiteral(String(item))).join(', ')}]`

/** The condition of a processor or a filter as an expression; undefined if there is none, or if it is unknown, which is reported. */
export function conditionOf(section: Section, context: Context): string | undefined {
  const entry = section.entries.find(({ key }) => key === conditionKey)
  if (entry === undefined) return undefined
  const condition = conditionIn(entry)
  if (condition === undefined) report(entry, context)
  reportOwnTimeIn(entry, 'condition', context)
  return condition
}

/** Reports that a condition or a query reads the field that has another name in events. */
export function reportOwnTimeIn(entry: Entry, subject: string, context: Context): void {
  if (/(?:^|[\s,"$])timestamp(?:$|[\s,"[=<>!)])/.test(entry.value))
    reportOwnTime(entry, `${subject}: timestamp`, context)
}

/** Rules in JSON as an expression; undefined if there are none, or if one is unknown. */
export function conditionIn({ value }: Entry): string | undefined {
  const { op = 'and', rules = [] } = JSON.parse(value) as { op?: unknown; rules?: readonly Rule[] }
  const parts = rules.map((rule) => ruleOf(rule))
  if (parts.length === 0 || parts.includes(undefined)) return undefined
  return parts.map((part) => `(${part})`).join(String(op).toLowerCase() === 'or' ? ' || ' : ' && ')
}

function report(entry: Entry, context: Context): void {
  context.gap(
    entry,
    'condition',
    'the condition has an unknown rule, so the step applies to all records',
    'Put `if` around the statements of its transform.',
  )
}

function ruleOf({ field, op, value, context = 'body' }: Rule): string | undefined {
  const path = ownPath(accessor(String(field ?? '')))
  const word = String(op ?? '').toLowerCase()
  const test = Object.hasOwn(tests, word) ? tests[word] : undefined
  // Events have the fields of the record, but not its metadata.
  return path === undefined || context !== 'body' ? undefined : test?.(fieldLiteral(path), value)
}
