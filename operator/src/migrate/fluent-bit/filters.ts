// Converts Fluent Bit filters to remap and filter transforms. Programs change the record: all fields of the event except `timestamp`,
// which is the time that Fluent Bit keeps outside of the record.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import type { Step } from '../draft.ts'
import { none, type Refusal } from '../page.ts'
import { kubernetes } from './kubernetes.ts'
import { apart, includesOwnTime, ownName, reportParsedTime, together } from './own-time.ts'
import { parserLines } from './parsers.ts'
import { type Context, common, matched, type Plugin } from './plugin.ts'
import { type Entry, entriesOf, isOn, lastValue, type Section } from './sections.ts'
import { accessor, matches, pattern, textOf, words } from './text.ts'

type Steps = readonly Step[]

const split = (entry: Entry): [string, string] => {
  const found = /^(\S+)\s*(.*)$/s.exec(entry.value)
  return [found?.[1] ?? '', found?.[2] ?? '']
}

function pathOf(text: string, entry: Entry, context: Context): readonly string[] | undefined {
  const path = accessor(text)
  if (path === undefined) {
    context.gap(
      entry,
      entry.key,
      `\`${text}\` is not a field that a program can refer to`,
      'Rewrite the step as a remap transform.',
    )
  }
  return path
}

/**
 * The rules of a filter without `Logical_Op`. Fluent Bit checks them in order, keeps a record at the first `Regex` that matches, and drops
 * it at the first that does not, so it never reaches the rules after a `Regex`.
 */
function effectiveRules(rules: readonly Entry[], context: Context): readonly Entry[] {
  const first = rules.findIndex(({ key }) => key === 'regex')
  if (first < 0) return rules
  for (const rule of rules.slice(first + 1)) {
    context.replaced(
      rule,
      `grep: ${rule.key} ${rule.value}`,
      'without `Logical_Op`, Fluent Bit decides at the first `Regex`, and never checks the rules after it',
      'Nothing to do for the same events. To check this rule too, add its condition to the filter transform.',
    )
  }
  return rules.slice(0, first + 1)
}

/** Whether a rule has a field and an expression; reports it otherwise. */
function isWhole(rule: Entry, context: Context): boolean {
  if (split(rule)[1] !== '') return true
  const reason = 'a rule must be a field and an expression, and Fluent Bit does not start with this one'
  context.gap(rule, `grep: ${rule.key} ${rule.value}`, reason, 'Correct the rule, and convert again.')
  return false
}

const grep: Plugin<Steps> = {
  name: 'grep',
  becomes: 'a filter transform',
  options: {
    ...common,
    ...matched,
    regex: 'keeps events that match',
    exclude: 'drops events that match',
    logical_op: '`&&` or `||`',
  },
  build: (section, context) => {
    const operator = (lastValue(section, 'logical_op') ?? 'legacy').toLowerCase()
    const tests: string[] = []
    const all = section.entries
      .filter(({ key }) => key === 'regex' || key === 'exclude')
      .filter((rule) => isWhole(rule, context))
    const rules = operator === 'legacy' ? effectiveRules(all, context) : all
    for (const rule of rules) {
      const [name, regex] = split(rule)
      const path = pathOf(name, rule, context)
      if (path === undefined) continue
      const test = matches(path, regex)
      tests.push(rule.key === 'regex' || operator !== 'legacy' ? test : `!${test}`)
    }
    if (tests.length === 0) return []
    // With a logical operation, all rules are of one kind and form one condition.
    if (operator === 'legacy') return [{ type: 'filter', text: tests.join(' && ') }]
    const joined = tests.join(operator === 'or' ? ' || ' : ' && ')
    return [{ type: 'filter', text: rules[0]?.key === 'exclude' ? `!(${joined})` : joined }]
  },
}

/** The text of a rule of `record_modifier`, which may be in quotes. */
const unquoted = (text: string) => {
  const inner = /^"(.*)"$/s.exec(text)?.[1]
  return inner === undefined ? text : inner.replaceAll('\\"', '"')
}

/** The words of a rule of `modify`, which may be in quotes of both kinds. */
const ruleWords = (text: string) =>
  [...text.matchAll(/"((?:\\.|[^"\\])*)"|'((?:\\.|[^'\\])*)'|\S+/gs)].map(([word, double, single]) =>
    double === undefined ? (single?.replace(/\\(['\\])/g, '$1') ?? word) : double.replace(/\\(["\\])/g, '$1'),
  )

const added = (key: string, text: string, reads: boolean) =>
  `if !exists(${fieldLiteral([key])}) { ${fieldLiteral([key])} = ${textOf(text, reads)} }`

/** A test of `key` for a beginning. */
const beginsWith = (start: string) => [`starts_with(key, ${textLiteral(start)})`, ...ownTest(`${start}*`)].join(' || ')

/** A test of `key` for the field of the record that has another name in events, if a name with an asterisk at its end includes it. */
const ownTest = (name: string) =>
  name.endsWith('*') && name !== '*' && includesOwnTime(name) ? [`key == ${textLiteral(ownName('timestamp'))}`] : []

/** Statements for the rules of `modify`. */
const modifyRules: Readonly<Record<string, (from: string, to: string, reads: boolean) => string>> = {
  set: (key, text, reads) => `${fieldLiteral([key])} = ${textOf(text, reads)}`,
  add: added,
  add_if_not_present: added,
  rename: (key, to) =>
    `if exists(${fieldLiteral([key])}) && !exists(${fieldLiteral([to])}) { ${fieldLiteral([to])} = del(${fieldLiteral([key])}) }`,
  hard_rename: (key, to) => `if exists(${fieldLiteral([key])}) { ${fieldLiteral([to])} = del(${fieldLiteral([key])}) }`,
  copy: (key, to) =>
    `if exists(${fieldLiteral([key])}) && !exists(${fieldLiteral([to])}) { ${fieldLiteral([to])} = ${fieldLiteral([key])} }`,
  hard_copy: (key, to) => `if exists(${fieldLiteral([key])}) { ${fieldLiteral([to])} = ${fieldLiteral([key])} }`,
  remove: (key) => `del(${fieldLiteral([key])})`,
  remove_wildcard: (key) => keep(`!(${beginsWith(key)})`),
  remove_regex: (key) => keep(`!is_object(parse_grok(key, ${pattern(key)}) ?? null)`),
}

function keep(test: string): string {
  return `. = filter(.) -> |key, _value| { key == "timestamp" || ${test} }`
}

const modifyConditions: Readonly<Record<string, (path: readonly string[], text: string) => string>> = {
  key_exists: (path) => `exists(${fieldLiteral(path)})`,
  key_does_not_exist: (path) => `!exists(${fieldLiteral(path)})`,
  key_value_equals: (path, text) => `${fieldLiteral(path)} == ${textLiteral(text)}`,
  key_value_does_not_equal: (path, text) =>
    `(exists(${fieldLiteral(path)}) && ${fieldLiteral(path)} != ${textLiteral(text)})`,
  key_value_matches: (path, text) => isLikeValue(fieldLiteral(path), text),
  key_value_does_not_match: (path, text) =>
    `(exists(${fieldLiteral(path)}) && !${isLikeValue(fieldLiteral(path), text)})`,
}

/** Conditions on all fields whose names match an expression, and whose values match another one. */
const anyConditions: Readonly<Record<string, (key: string, value: string) => string>> = {
  a_key_matches: (key) => someField(isLike('key', key), '_value'),
  no_key_matches: (key) => `!${someField(isLike('key', key), '_value')}`,
  matching_keys_have_matching_values: (key, text) =>
    `!${someField(`${isLike('key', key)} && !${isLikeValue('value', text)}`, 'value')}`,
  // The opposite of the condition above, as in Fluent Bit: it is met by one value that does not match.
  matching_keys_do_not_have_matching_values: (key, text) =>
    someField(`${isLike('key', key)} && !${isLikeValue('value', text)}`, 'value'),
}

/** Conditions of `modify` match texts, and the words for booleans. */
const isLikeValue = (value: string, regex: string) =>
  `((is_string(${value}) || is_boolean(${value})) && ${isLike(`to_string(${value}) ?? ""`, regex)})`
const isLike = (text: string, regex: string) => `is_object(parse_grok(${text}, ${pattern(regex)}) ?? null)`
const someField = (test: string, value: string) =>
  `!is_empty(filter(.) -> |key, ${value}| { key != "timestamp" && ${test} })`

/** Reports a rule with too many or too few words. */
function reportWords(entry: Entry, count: number, context: Context): void {
  const [takes, number] = entry.key.startsWith('remove') ? [1, 'one word'] : [2, 'two words']
  if (count === takes) return
  const reason = `Fluent Bit reads ${number} in this rule, and a text with spaces only in quotes; it refuses other rules, or reads them as a renaming`
  const nearest =
    'The statement takes all words after the first as one text. Write the rule with quotes, and convert again.'
  context.replaced(entry, `modify: ${entry.key} ${entry.value}`, reason, nearest)
}

const modify: Plugin<Steps> = {
  name: 'modify',
  becomes: 'a remap transform',
  options: {
    ...common,
    ...matched,
    ...Object.fromEntries(Object.keys(modifyRules).map((rule) => [rule, 'a statement'])),
    condition: '`if` around the statements',
  },
  itself: { move_to_start: 'fields of an event have no order', move_to_end: 'fields of an event have no order' },
  expresses: ['set', 'add', 'add_if_not_present'],
  build: (section, context) => {
    const conditions: string[] = []
    for (const entry of entriesOf(section, 'condition')) {
      const [kind = '', name = '', ...rest] = ruleWords(entry.value)
      const make = Object.hasOwn(modifyConditions, kind.toLowerCase())
        ? modifyConditions[kind.toLowerCase()]
        : undefined
      const any = Object.hasOwn(anyConditions, kind.toLowerCase()) ? anyConditions[kind.toLowerCase()] : undefined
      if (any !== undefined) {
        conditions.push(any(name, rest.join(' ')))
        continue
      }
      const path = pathOf(name, entry, context)
      if (make === undefined || path === undefined) {
        context.gap(
          entry,
          `modify: condition ${kind}`,
          'the filter is left out, because its condition has no counterpart',
          'Rewrite the filter as a remap transform with `if`.',
        )
        return []
      }
      conditions.push(make(path, rest.join(' ')))
    }
    for (const entry of entriesOf(section, 'remove_wildcard').filter(({ value }) => value.includes('*'))) {
      const reason =
        'Fluent Bit compares the beginning of names with the whole text, so the asterisk is one of the characters of a name'
      const nearest =
        'Nothing to do for the same records. To remove the fields with this beginning, remove the asterisk, and convert again.'
      context.replaced(entry, `modify: remove_wildcard ${entry.value}`, reason, nearest)
    }
    const statements = section.entries.flatMap((entry) => {
      const make = Object.hasOwn(modifyRules, entry.key) ? modifyRules[entry.key] : undefined
      if (make === undefined) return []
      const [name = '', ...rest] = ruleWords(entry.value)
      reportWords(entry, rest.length + 1, context)
      return [make(name, rest.join(' '), context.readsEnvironment)]
    })
    if (statements.length === 0) return []
    const text = statements.join('\n')
    return [
      { type: 'remap', text: conditions.length === 0 ? text : `if ${conditions.join(' && ')} {\n${indent(text)}\n}` },
    ]
  },
}

function indent(text: string): string {
  return text.replace(/^/gm, '  ')
}

const nest: Plugin<Steps> = {
  name: 'nest',
  becomes: 'a remap transform',
  options: {
    ...common,
    ...matched,
    operation: '`nest` and `lift`',
    wildcard: 'which fields',
    nest_under: 'the new object',
    nested_under: 'the object to flatten',
    add_prefix: '`map_keys`',
    prefix_with: 'as `Add_prefix`, under its older name',
    remove_prefix: '`map_keys`',
  },
  build: (section, context) => {
    const rename = renaming(section)
    // Both operations accept the name of the object under either option.
    const object = section.entries.findLast(({ key }) => key === 'nest_under' || key === 'nested_under')?.value
    if (lastValue(section, 'operation')?.toLowerCase().startsWith('lift') === true) {
      const field = fieldLiteral([object ?? ''])
      // The metadata of a pod has no such field.
      const mayHaveTime = rename.mayMakeOwnTime && object !== 'kubernetes'
      if (mayHaveTime) reportParsedTime(section, context)
      const text = [
        `if is_object(${field}) {`,
        `  nested = ${rename.call(`object!(del(${field}))`)}`,
        ...(mayHaveTime ? [`  ${apart('nested')}`] : []),
        '  . = merge(., nested)',
        '}',
      ].join('\n')
      return [{ type: 'remap', text }]
    }
    const names = entriesOf(section, 'wildcard').map(({ value }) => value)
    if (object === undefined || names.length === 0) {
      context.gap(
        section,
        'nest',
        'the filter names no fields, or no object for them',
        'Rewrite it as a remap transform.',
      )
      return []
    }
    const tests = names.map((name) =>
      name === '*' ? 'true' : name.endsWith('*') ? beginsWith(name.slice(0, -1)) : `key == ${textLiteral(name)}`,
    )
    const test = `key != "timestamp" && (${tests.join(' || ')})`
    const text = [
      `nested = filter(.) -> |key, _value| { ${test} }`,
      'if !is_empty(nested) {',
      `  . = filter(.) -> |key, _value| { !(${test}) }`,
      ...(names.some(includesOwnTime) ? [`  ${together('nested')}`] : []),
      `  ${fieldLiteral([object])} = ${rename.call('nested')}`,
      '}',
    ].join('\n')
    return [{ type: 'remap', text }]
  },
}

interface Renaming {
  /** An expression for an object with other names of its members. */
  readonly call: (object: string) => string
  /** Whether a new name may be that of the time of the event. */
  readonly mayMakeOwnTime: boolean
}

/** How the filter `nest` renames members. */
function renaming(section: Section): Renaming {
  const add = section.entries.findLast(({ key }) => key === 'add_prefix' || key === 'prefix_with')?.value ?? ''
  const remove = lastValue(section, 'remove_prefix') ?? ''
  const shorter =
    remove === '' ? [] : [`  if starts_with(key, ${textLiteral(remove)}) { name = slice!(key, ${[...remove].length}) }`]
  const call = (object: string) =>
    add === '' && remove === ''
      ? object
      : [`map_keys(${object}) -> |key| {`, '  name = key', ...shorter, `  ${textLiteral(add)} + name`, '}'].join('\n')
  return { call, mayMakeOwnTime: 'timestamp'.startsWith(add) }
}

/** A test of `key` against names, of which some end in `*`. Fluent Bit ignores their case. */
function isOneOf(names: readonly string[]): string {
  const all = names.map((name) => name.toLowerCase())
  const exact = all.filter((name) => !name.endsWith('*'))
  const starts = all.filter((name) => name.endsWith('*')).map((name) => name.slice(0, -1))
  return [
    ...(exact.length === 0 ? [] : [`includes([${exact.map(textLiteral).join(', ')}], downcase(key))`]),
    ...starts.flatMap((start) => [`starts_with(downcase(key), ${textLiteral(start)})`, ...ownTest(`${start}*`)]),
  ].join(' || ')
}

const recordModifier: Plugin<Steps> = {
  name: 'record_modifier',
  becomes: 'a remap transform',
  options: {
    ...common,
    ...matched,
    record: 'a field with a text',
    remove_key: '`del`',
    allowlist_key: 'a filter of fields',
    whitelist_key: 'a filter of fields',
    uuid_key: '`uuid_v4`',
  },
  expresses: ['record'],
  build: (section, context) => {
    const names = (key: string) => entriesOf(section, key).map((entry) => entry.value.trim())
    const taken = names('remove_key')
    const removed = taken.length === 0 ? [] : [keep(`!(${isOneOf(taken)})`)]
    const allowed = [...names('allowlist_key'), ...names('whitelist_key')]
    const only = allowed.length === 0 ? [] : [keep(isOneOf(allowed))]
    const records = entriesOf(section, 'record').map((entry) => {
      const [name, text] = split(entry)
      return `${fieldLiteral([name])} = ${textOf(unquoted(text), context.readsEnvironment)}`
    })
    const ids = names('uuid_key').map((name) => `${fieldLiteral([name])} = uuid_v4()`)
    const lines = [...removed, ...only, ...records, ...ids]
    return lines.length === 0 ? [] : [{ type: 'remap', text: lines.join('\n') }]
  },
}

const parser: Plugin<Steps> = {
  name: 'parser',
  becomes: 'a remap transform',
  options: {
    ...common,
    ...matched,
    key_name: 'the field to parse',
    parser:
      "`parse_json`, `parse_grok` (in Ruby's dialect), `parse_logfmt` or `parse_key_value`; the first parser that matches wins",
    reserve_data: 'whether to keep other fields',
    preserve_key: 'whether to keep the source field',
  },
  itself: {
    unescape_key: {
      how: 'the parsers read the text as it is',
      unless: /^(?:on|true|yes|1)$/i,
      reason: 'the parsers read the text as it is, with its escape sequences',
      nearest: 'Decode the field in a remap transform before the parser.',
    },
  },
  build: (section, context) => {
    const key = lastValue(section, 'key_name') ?? 'log'
    const path = accessor(key)
    if (path === undefined) {
      context.gap(
        section,
        `parser: ${key}`,
        'a program cannot refer to the field',
        'Rewrite the filter as a remap transform.',
      )
      return []
    }
    const from = `string(${fieldLiteral(path)}) ?? ""`
    const keepsKey = isOn(lastValue(section, 'preserve_key'), false)
    const keepsOthers = isOn(lastValue(section, 'reserve_data'), false)
    if (keepsKey && !keepsOthers) {
      const reason =
        'without `Reserve_Data`, most versions of Fluent Bit remove the parsed field in spite of the option; here, it stays'
      context.replaced(
        section,
        'parser: Preserve_Key',
        reason,
        'To remove the field, delete the option, and convert again.',
      )
    }
    const base = keepsOthers
      ? '.'
      : `{ ${keepsKey ? `${textLiteral(path[0] ?? '')}: ${fieldLiteral(path.slice(0, 1))}, ` : ''}"timestamp": .timestamp }`
    const parsers = entriesOf(section, 'parser').flatMap((entry) => {
      const lines = parserLines(entry.value, from, context, entry)
      return lines === undefined ? [] : [lines]
    })
    if (parsers.length === 0) return []
    const text = parsers.map((lines, index) =>
      index === 0 ? lines.join('\n') : `if !is_object(parsed) {\n${indent(lines.join('\n'))}\n}`,
    )
    text.push(
      'if is_object(parsed) {',
      ...(keepsOthers && !keepsKey ? [`  del(${fieldLiteral(path)})`] : []),
      `  . = merge(${base}, object!(parsed))`,
      '}',
    )
    return [{ type: 'remap', text: ['parsed = null', ...text].join('\n') }]
  },
}

/** Type checks of `type_converter` for the source field, by option. */
const convertedKinds: Readonly<Record<string, (field: string) => string>> = {
  int_key: (field) => `is_integer(${field})`,
  uint_key: (field) => `is_integer(${field}) && int!(${field}) >= 0`,
  float_key: (field) => `is_float(${field})`,
  str_key: (field) => `is_string(${field})`,
}

/** Reads the number at the beginning of a text; zero if there is none. */
const number = (field: string, to: string, digits: string, call: string): string[] => [
  `  parsed = parse_regex(string!(${field}), r'^\\s*(?P<number>${digits})') ?? {}`,
  `  ${to} = ${call}`,
]

/** Statements of `type_converter` by source and target type; undefined for other targets. */
function converted(kind: string, target: string, field: string, to: string): string[] | undefined {
  const isText = kind === 'str_key'
  switch (target.toLowerCase()) {
    case 'int':
      return isText ? number(field, to, '[-+]?\\d+', 'to_int(parsed.number) ?? 0') : [`  ${to} = to_int!(${field})`]
    case 'uint':
      return isText ? number(field, to, '\\+?\\d+', 'to_int(parsed.number) ?? 0') : [`  ${to} = abs(to_int!(${field}))`]
    case 'float': {
      const digits = '[-+]?(?:\\d+\\.?\\d*|\\.\\d+)(?:[eE][-+]?\\d+)?'
      return isText ? number(field, to, digits, 'to_float(parsed.number) ?? 0.0') : [`  ${to} = to_float!(${field})`]
    }
    case 'string':
      if (isText) return [`  ${to} = ${field}`]
      return [`  ${to} = ${kind === 'float_key' ? `format_number!(${field}, scale: 6)` : `to_string!(${field})`}`]
    default:
      return undefined
  }
}

const typeConverter: Plugin<Steps> = {
  name: 'type_converter',
  becomes: 'a remap transform',
  options: {
    ...common,
    ...matched,
    ...Object.fromEntries(Object.keys(convertedKinds).map((option) => [option, 'a field of another type'])),
  },
  build: (section, context) => {
    const lines = section.entries.flatMap((entry) => {
      const test = Object.hasOwn(convertedKinds, entry.key) ? convertedKinds[entry.key] : undefined
      if (test === undefined) return []
      const [from = '', to = '', target = ''] = words(entry.value)
      const path = pathOf(from, entry, context)
      if (path === undefined) return []
      const field = fieldLiteral(path)
      const statements = to === '' ? undefined : converted(entry.key, target, field, fieldLiteral([to]))
      if (statements === undefined) {
        const known = 'int, uint, float or string'
        context.gap(
          entry,
          `type_converter: ${entry.key}`,
          `\`${entry.value}\` must be a field, its new name and ${known}`,
          'Rewrite the step as a remap transform.',
        )
        return []
      }
      return [`if ${test(field)} {`, ...statements, '}']
    })
    return lines.length === 0 ? [] : [{ type: 'remap', text: lines.join('\n') }]
  },
}

/** Filters that only show records and do not change them. */
const passing = (name: string, does: string, nearest: string): Plugin<Steps> => ({
  name,
  becomes: `nothing: ${nearest.replace(/\.$/, '')}`,
  options: { ...common, ...matched },
  itself: Object.fromEntries(
    ['format', 'json_date_key', 'json_date_format', 'key_exists', 'key_not_exists', 'key_val_is_null']
      .concat(['key_val_is_not_null', 'key_val_eq', 'action'])
      .map((option) => [option, 'records pass unchanged'] as const),
  ),
  build: (section, context) => {
    context.replaced(section, `filter ${name}`, does, nearest)
    return []
  },
})

const stdout = passing('stdout', 'it only prints records', 'Use `penstock tap`.')
const expectation = passing(
  'expect',
  'it only tests records, and logs unexpected ones',
  'Add `spec.tests` to the Pipeline.',
)

export const filters: readonly Plugin<Steps>[] = [
  stdout,
  expectation,
  grep,
  modify,
  nest,
  recordModifier,
  kubernetes,
  parser,
  typeConverter,
]

export const refusedFilters: readonly Refusal[] = [
  none('lua', 'Penstock does not run Lua', 'Rewrite the program as a remap transform; the comment contains its text.'),
  none('wasm', 'Penstock does not run WebAssembly', 'Rewrite the program as a remap transform.'),
  none(
    'throttle',
    'no transform counts events over time, so events beyond `Rate` are not discarded',
    'Set `limits: {perContainer: {linesPerSecond: N, onLimit: Drop}}` of the Pipeline, where N is `Rate` per container and second; or `request.rate_limit_num` of the sink, which slows sources down and discards nothing.',
  ),
  {
    name: 'multiline',
    reason: 'sources join lines',
    nearest: 'Set `multiline` of the source.',
    isHere: true,
  },
  none('geoip2', 'Penstock has no tables of IP addresses', 'Look up addresses at the destination.'),
  none('log_to_metrics', 'no transform derives metrics from events', 'Count at the destination.'),
  none('aws', 'Penstock does not look up metadata of the machine', 'Set fields in a remap transform.'),
  none('ecs', 'Penstock does not look up metadata of the task', 'Set fields in a remap transform.'),
  none('checklist', 'Penstock has no tables for this', 'Use `includes` in a remap transform.'),
  none('nightfall', 'Penstock does not send events to a scanner', 'Use `redact` in a remap transform.'),
  none('tensorflow', 'Penstock does not run models', 'Run the model at the destination.'),
  none(
    'throttle_size',
    'no transform counts bytes over time',
    'Set `limits: {perContainer: {linesPerSecond: N, onLimit: Drop}}` of the Pipeline.',
  ),
  none('alter_size', 'it changes the size of chunks for tests', 'Remove it.'),
  none('sysinfo', 'Penstock does not look up metadata of the machine', 'Set fields in a remap transform.'),
]
