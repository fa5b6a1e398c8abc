// Filters in front of the filter `multiline`. A source joins lines before all transforms, so these filters receive events in place of
// lines. The result is the same only if they neither read nor change the text of the line, and do not count events.

import type { Joined } from './joining.ts'
import { lineKeys, renames } from './line-key.ts'
import { pluginOf } from './names.ts'
import type { Context } from './plugin.ts'
import { conditionKey, type Entry, entriesOf, isOn, lastValue, type Section } from './sections.ts'
import { accessor, words } from './text.ts'

/** Fields that differ between the lines of an event, in addition to the line. */
const ofLines: readonly string[] = ['time', 'logtag', '_p']

type Test = (section: Section, keys: ReadonlySet<string>) => boolean

const isLine = (given: string, keys: ReadonlySet<string>) => {
  const [name = ''] = accessor(given) ?? [given]
  return keys.has(name) || ofLines.includes(name)
}

/** Whether names, of which some end in `*`, include the line. Fluent Bit ignores their case. */
const named = (names: readonly string[], keys: ReadonlySet<string>) =>
  names.some((name) =>
    [...keys].some((key) =>
      name.endsWith('*')
        ? key.toLowerCase().startsWith(name.slice(0, -1).toLowerCase())
        : key.toLowerCase() === name.toLowerCase(),
    ),
  )

/** Whether the first word of options is the line. */
const firstWord =
  (...options: readonly string[]): Test =>
  ({ entries }, keys) =>
    entries.some(({ key, value }) => options.includes(key) && isLine(words(value)[0] ?? '', keys))

/** Conditions of `modify` that read only names of fields. */
const readsNames: readonly string[] = ['key_exists', 'key_does_not_exist', 'a_key_matches', 'no_key_matches']

function modifies({ entries }: Section, keys: ReadonlySet<string>): boolean {
  const conditions = entries.filter(({ key }) => key === 'condition').map(({ value }) => words(value))
  const isConditional = conditions.some(([kind = '', name = '']) => {
    if (readsNames.includes(kind.toLowerCase())) return false
    return kind.toLowerCase().startsWith('matching_keys') || isLine(name, keys)
  })
  return isConditional || entries.some((entry) => changesLine(entry, keys, conditions.length > 0))
}

function changesLine({ key: rule, value }: Entry, keys: ReadonlySet<string>, isConditional: boolean): boolean {
  const [from = '', to = ''] = words(value)
  if (renames.includes(rule)) {
    const isMoved = rule.endsWith('rename') && !isConditional
    return keys.has(to) ? !keys.has(from) : keys.has(from) && !isMoved
  }
  if (rule === 'remove_wildcard') return named([`${from}*`], keys)
  if (rule === 'remove_regex') return [...keys].some((key) => matchesName(from, key))
  return ['set', 'add', 'remove'].includes(rule) && keys.has(from)
}

/** A pattern that is not valid here may match. */
function matchesName(pattern: string, text: string): boolean {
  try {
    return new RegExp(pattern.replace(/^\/(.*)\/$/, '$1')).test(text)
  } catch (error) {
    if (error instanceof SyntaxError) return true
    throw error
  }
}

function modifiesRecord(section: Section, keys: ReadonlySet<string>): boolean {
  const allowed = ['allowlist_key', 'whitelist_key'].flatMap((option) => entriesOf(section, option))
  const isLeft =
    allowed.length > 0 &&
    !named(
      allowed.map(({ value }) => value.trim()),
      keys,
    )
  const removed = entriesOf(section, 'remove_key').map(({ value }) => value.trim())
  return isLeft || named(removed, keys) || firstWord('record', 'uuid_key')(section, keys)
}

/** Rules of `rewrite_tag` take the texts of fields; one that matches all texts does not depend on the line. */
const rewrites: Test = (section, keys) =>
  entriesOf(section, 'rule').some(({ value }) => {
    const [field = '', regex = ''] = words(value)
    return isLine(field, keys) && !/^\^?\.\*\$?$/.test(regex)
  })

/** A query that keeps the line, and whose condition does not read it. */
const queries: Test = (section, keys) => {
  const [chosen = '', ...conditions] = (lastValue(section, 'query') ?? '').split(/\bwhere\b/i)
  const mentions = (text: string) => text.split(/[^\w.-]+/).some((word) => isLine(word, keys))
  return mentions(conditions.join(' ')) || !(chosen.includes('*') || mentions(chosen))
}

const never: Test = () => false

/** Whether a filter puts the fields of lines in JSON into the record. */
function mergesLog(section: Section): boolean {
  return pluginOf(section) === 'kubernetes' && isOn(lastValue(section, 'merge_log'), false)
}

/** Whether rules join a line in JSON to the line before it. */
function joinsJson({ file: { mode, condition_pattern: condition } }: Joined): boolean {
  return mode !== 'continue_through' || matchesName(String(condition).replaceAll('(?m)', ''), '{"log":"text"}')
}

/** Whether the result of a filter for an event can differ from that for its lines. Filters without an entry are reported. */
const tests: Readonly<Record<string, Test>> = {
  grep: firstWord('regex', 'exclude'),
  modify: modifies,
  nest: (section, keys) =>
    named(
      entriesOf(section, 'wildcard').map(({ value }) => value),
      keys,
    ) || keys.has(lastValue(section, 'nested_under') ?? ''),
  record_modifier: modifiesRecord,
  kubernetes: mergesLog,
  parser: (section, keys) =>
    isLine(lastValue(section, 'key_name') ?? 'log', keys) || !isOn(lastValue(section, 'reserve_data'), false),
  type_converter: firstWord('int_key', 'uint_key', 'float_key', 'str_key'),
  rewrite_tag: rewrites,
  sql: queries,
  content_modifier: (section, keys) => isLine(lastValue(section, 'key') ?? '', keys),
  ...Object.fromEntries(
    ['multiline', 'stdout', 'expect', 'aws', 'ecs', 'sysinfo', 'alter_size', 'opentelemetry_envelope']
      // A task makes other records, and leaves those that it reads.
      .concat(['geoip2', 'stream_task'])
      .map((name) => [name, never]),
  ),
}

/** Whether a filter or a processor depends on single lines. */
function dependsOnLines(section: Section, keys: ReadonlySet<string>): boolean {
  const condition = lastValue(section, conditionKey)
  if (condition !== undefined && [...keys].some((key) => condition.includes(`$${key}`))) return true
  const name = pluginOf(section)
  const test = Object.hasOwn(tests, name) ? tests[name] : undefined
  return test === undefined || test(section, keys)
}

/** Reports filters and processors of the input that Fluent Bit runs for each line, before it joins them. */
export function reportEarlier(
  filter: Section,
  joined: Joined,
  input: Section,
  before: readonly Section[],
  context: Context,
): void {
  const own = input.processors ?? []
  const affected = [
    ...own.filter((each) => dependsOnLines(each, lineKeys(input, [], context))),
    ...before.filter((each, index) => dependsOnLines(each, lineKeys(input, before.slice(0, index), context))),
  ]
  if (affected.length === 0) return
  if (affected.every(mergesLog) && !joinsJson(joined)) {
    const reason =
      'Fluent Bit merges lines in JSON before it joins lines, and these rules continue no event with such a line; only if other lines follow one that begins an event, the source joins them to it, so its fields are not merged'
    context.replaced(
      filter,
      'multiline: order',
      reason,
      'Nothing, if programs write stack traces as text or within JSON, but not both.',
    )
    return
  }
  const names = affected.map((each) => `\`${pluginOf(each)}\` (line ${each.line})`).join(', ')
  context.gap(
    filter,
    'multiline: order',
    `Fluent Bit joins lines after ${names}, which drop, read or change single lines; the source joins lines before all filters, so these receive joined events now, and a condition that one line meets decides about the whole event`,
    'If that is what you want, move the filter `multiline` to the first place, and convert again. Otherwise, remove it, set `multiline.custom` of the source (`multiline` for files) to patterns that fit the lines as read, and compare a few events with `penstock run`.',
  )
}
