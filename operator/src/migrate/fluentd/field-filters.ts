// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of Fluentd are meant
// Converts Fluentd filters for single fields: new names, parts of user agents, and times of Kubernetes Events.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { lastValue } from '../fluent-bit/sections.ts'
import { eventTime } from '../unix-time.ts'
import { isOn, listOf, type Plugged } from './element.ts'
import type { FilterPlugin } from './filters.ts'
import { always, common } from './inputs.ts'
import { recordPath } from './ruby.ts'
import { regexFlags, rubyRegex } from './ruby-text.ts'

interface NameRule {
  readonly regex: string
  readonly text: string
}

/** Rules in the order of their numbers: an expression, and a text. */
function rulesOf(section: Plugged, name: string): readonly NameRule[] {
  return section.entries
    .flatMap(({ key, value }) => {
      const number = new RegExp(`^${name}(\\d+)$`).exec(key)?.[1]
      const [, regex, text = ''] = /^(\S+)(?:\s+(.+))?$/s.exec(value) ?? []
      return number === undefined || regex === undefined ? [] : [{ number: Number(number), regex, text }]
    })
    .toSorted((one, other) => one.number - other.number)
}

/** A text with groups of a match, such as `${md[1]}`. */
function withGroups(text: string): string {
  const parts = text.split(/(\$\{md\[\d+\]\})/).filter((part) => part !== '')
  const texts = parts.map((part) => {
    const group = /^\$\{md\[(\d+)\]\}$/.exec(part)?.[1]
    return group === undefined ? textLiteral(part) : `(string(get(groups, ["${group}"]) ?? null) ?? "")`
  })
  return texts.join(' + ') || '""'
}

/** The name of a field by the first rule that matches it. */
function renamed(rules: readonly NameRule[], isWhole: boolean): readonly string[] {
  const tests = rules.flatMap(({ regex, text }): string[] => {
    const literal = `r'${regexFlags('')}${rubyRegex(regex)}'`
    const found = withGroups(text)
    const name = isWhole ? found : `replace_with(key, ${literal}) -> |_part| { ${found} }`
    return [
      'if !is_done {',
      `  groups, error = parse_regex(key, ${literal}, numeric_groups: true)`,
      `  if error == null {`,
      `    name = ${name}`,
      '    is_done = true',
      '  }',
      '}',
    ]
  })
  return ['is_done = false', 'name = key', ...tests, 'name']
}

const renameKey: FilterPlugin = {
  name: 'rename_key',
  becomes: '`map_keys` in a remap transform',
  options: {
    ...common,
    deep_rename: 'whether to include nested objects',
    ...Object.fromEntries(
      Array.from({ length: 20 }, (_, index) => [
        [`rename_rule${index + 1}`, 'new names for fields; other rules have higher numbers'],
        [`replace_rule${index + 1}`, 'new parts of names; other rules have higher numbers'],
      ]).flat() as [string, string][],
    ),
  },
  itself: { ...always, enable_ruby: 'names contain groups alone' },
  build: (section) => {
    const deep = isOn(lastValue(section, 'deep_rename'), true) ? ', recursive: true' : ''
    const steps = [
      { rules: rulesOf(section, 'rename_rule'), isWhole: true },
      { rules: rulesOf(section, 'replace_rule'), isWhole: false },
    ].flatMap(({ rules, isWhole }) =>
      rules.length === 0
        ? []
        : [`. = map_keys(.${deep}) -> |key| {`, ...renamed(rules, isWhole).map((line) => `  ${line}`), '}'],
    )
    if (steps.length === 0) return []
    const text = [
      // The record does not contain the time of the event, and a field with the same name is `log_timestamp`.
      'time = del(.timestamp)',
      'if exists(.log_timestamp) { .timestamp = del(.log_timestamp) }',
      ...steps,
      'if exists(.timestamp) { .log_timestamp = del(.timestamp) }',
      '.timestamp = time',
    ]
    return [{ type: 'remap', text: text.join('\n') }]
  },
}

const userAgent: FilterPlugin = {
  name: 'ua_parser',
  becomes: '`parse_user_agent` in a remap transform',
  options: {
    ...common,
    key_name: 'the field with the user agent',
    delete_key: 'whether to remove it',
    out_key: 'the field for the result',
    flatten: 'whether the parts become fields of the record',
  },
  itself: {
    ...always,
    patterns_path: {
      how: 'the function has its own patterns',
      unless: /./,
      reason: 'the function has its own patterns',
      nearest: 'Compare the results with `penstock run`.',
    },
  },
  build: (section, context) => {
    const at = fieldLiteral(recordPath(lastValue(section, 'key_name') ?? 'user_agent') ?? ['user_agent'])
    const out = lastValue(section, 'out_key') ?? 'ua'
    const reason = 'the function has other patterns than the plugin, so some names of programs and devices differ'
    context.replaced(section, 'ua_parser', reason, 'Compare the results with `penstock run`.')
    const part = (name: string) => [
      `version = to_string(found.${name}.version) ?? ""`,
      `family = found.${name}.family`,
      'if family == null { family = "Other" }',
      'part = { "family": family, "version": version }',
      `if version != "" { part.major_version = to_int(get(parse_regex(version, r'^(?P<major>\\d+)') ?? {}, ["major"]) ?? null) ?? 0 }`,
      `agent.${name} = part`,
    ]
    const text = [
      `value = ${at}`,
      ...(isOn(lastValue(section, 'delete_key'), false) ? [`del(${at})`] : []),
      'if value != null {',
      '  found = parse_user_agent(to_string(value) ?? "", mode: "enriched")',
      '  agent = {}',
      ...[...part('browser'), ...part('os')].map((line) => `  ${line}`),
      '  device = found.device.family',
      '  if device == null { device = "Other" }',
      '  agent.device = device',
      isOn(lastValue(section, 'flatten'), false)
        ? `  . = merge(., flatten({ ${textLiteral(out)}: agent }, "_"))`
        : `  ${fieldLiteral([out])} = agent`,
      '}',
    ]
    return [{ type: 'remap', text: text.join('\n') }]
  },
}

const eventsTime: FilterPlugin = {
  name: 'kube_events_timestamp',
  becomes: 'a remap transform',
  options: { ...common, timestamp_fields: 'the fields with a time', mapped_time_key: 'the field for the time' },
  itself: always,
  build: (section) => {
    const given = listOf(lastValue(section, 'timestamp_fields'))
    const names = given.length > 0 ? given : ['event.eventTime', 'event.lastTimestamp', 'event.firstTimestamp']
    const at = fieldLiteral([lastValue(section, 'mapped_time_key') || 'triggerts'])
    const tries = names.map(
      (name) => `if is_empty { value = ${fieldLiteral([name])}\n  is_empty = value == null || value == "" }`,
    )
    const text = [
      'value = null',
      'is_empty = true',
      ...tries,
      `if is_empty { value = format_timestamp(${eventTime}, "%Y-%m-%dT%H:%M:%S.000%z") ?? null }`,
      `${at} = value`,
    ]
    return [{ type: 'remap', text: text.join('\n') }]
  },
}

export const fieldFilters: readonly FilterPlugin[] = [renameKey, userAgent, eventsTime]
