// The field `timestamp` of events is their time, which old agents keep outside of the record. A field of the record with this name becomes
// `log_timestamp`, wherever the configuration refers to it. Each place is reported.

import type { Context } from './plugin.ts'
import type { Entry, Place, Section } from './sections.ts'

/** The name of a field in events. */
export const ownName = (name: string) => (name === 'timestamp' ? 'log_timestamp' : name)

/** The path of a field in events. */
export const ownPath = (path: readonly string[] | undefined): readonly string[] | undefined =>
  path?.map((name, index) => (index === 0 ? ownName(name) : name))

/** A statement for an object whose members become fields of the record. */
export const apart = (root: string) => `if exists(${root}.timestamp) { ${root}.log_timestamp = del(${root}.timestamp) }`

/** A statement for an object whose members were fields of the record. */
export const together = (root: string) =>
  `if exists(${root}.log_timestamp) { ${root}.timestamp = del(${root}.log_timestamp) }`

/** Whether a name with an asterisk at its end includes the field. The names in the configuration are those that events have. */
export const includesOwnTime = (name: string) =>
  name === ownName('timestamp') || (name.endsWith('*') && 'timestamp'.startsWith(name.slice(0, -1)))

export function reportOwnTime(place: Place, subject: string, context: Context): void {
  const reason = '`timestamp` is the time of the event, so a field of the record with this name becomes `log_timestamp`'
  context.replaced(place, subject, reason, 'Use `log_timestamp` in the transforms, and in queries at the destination.')
}

/** The subject of the report about fields that parsers may find. */
export const parsedTime = 'field timestamp'

/** Reports once that parsers may find such a field. */
export function reportParsedTime(place: Place, context: Context): void {
  if (!context.hasReported(parsedTime)) reportOwnTime(place, parsedTime, context)
}

/** Positions of names of fields among the words of an option, by plugin. */
const names: Readonly<Record<string, Readonly<Record<string, readonly number[]>>>> = {
  grep: { regex: [0], exclude: [0] },
  modify: {
    ...Object.fromEntries(['set', 'add', 'remove'].map((rule) => [rule, [0]])),
    ...Object.fromEntries(['rename', 'hard_rename', 'copy', 'hard_copy'].map((rule) => [rule, [0, 1]])),
    condition: [1],
  },
  record_modifier: { record: [0], remove_key: [0], allowlist_key: [0], whitelist_key: [0], uuid_key: [0] },
  nest: { wildcard: [0], nest_under: [0], nested_under: [0] },
  parser: { key_name: [0] },
  kubernetes: { merge_log_key: [0] },
  type_converter: { int_key: [0, 1], uint_key: [0, 1], float_key: [0, 1], str_key: [0, 1] },
  content_modifier: { key: [0] },
  rewrite_tag: { rule: [0] },
}

/** Options of outputs with names of fields, which may be lists, and those with texts in which accessors refer to fields. */
const keyOptions: readonly string[] = [
  ...['label_keys', 'remove_keys', 'structured_metadata_map_keys', 'tenant_id_key', 'labelkeys', 'removekeys'],
  ...['id_key', 'logstash_prefix_key', 'event_key', 'event_remove', 'event_value', 'dd_message_key', 'log_key'],
]
const textOptions: readonly string[] = [
  ...['labels', 'structured_metadata', 'index', 'target_index', 'event_field'],
  ...['event_host', 'event_source', 'event_sourcetype_key', 'event_index_key'],
]

/** An output whose options name the field of the record as events have it. */
function outputWithOwnNames(section: Section, plugin: string, context: Context): Section {
  const entries = section.entries.map((entry): Entry => {
    const value = keyOptions.includes(entry.key)
      ? entry.value.replace(/(^|[\s,])(\$?)timestamp(?=$|[\s,[])/g, '$1$2log_timestamp')
      : textOptions.includes(entry.key)
        ? entry.value.replace(/\$timestamp(?!\w)/g, '$log_timestamp')
        : entry.value
    if (value === entry.value) return entry
    reportOwnTime(entry, `${plugin}: ${entry.key} ${entry.value}`, context)
    return { ...entry, value }
  })
  return { ...section, entries }
}

/** A filter, a processor or an output whose options name the field of the record as events have it. */
export function withOwnNames(section: Section, plugin: string, context: Context): Section {
  if (section.kind === 'output') return outputWithOwnNames(section, plugin, context)
  const known = Object.hasOwn(names, plugin) ? names[plugin] : undefined
  if (known === undefined) return section
  const renames = plugin === 'content_modifier' && section.entries.some(({ value }) => /^rename$/i.test(value))
  const entries = section.entries.map((entry): Entry => {
    const isName = renames && entry.key === 'value'
    const places = isName ? [0] : Object.hasOwn(known, entry.key) ? (known[entry.key] ?? []) : []
    const value = renamed(entry.value, places)
    if (value === entry.value) return entry
    reportOwnTime(entry, `${plugin}: ${entry.key} ${entry.value}`, context)
    return { ...entry, value }
  })
  return { ...section, entries }
}

function renamed(text: string, places: readonly number[]): string {
  let index = -1
  return text.replace(/\S+/g, (word) => {
    index++
    return places.includes(index) ? word.replace(/^\$?timestamp(?=$|\[)/, (name) => name.replace('t', 'log_t')) : word
  })
}
