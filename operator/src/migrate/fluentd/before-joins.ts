// Filters that come before a filter or match that joins lines. A source joins lines before all of them, so they get the joined text. This
// changes nothing for filters that only add fields, or whose conditions are the same for all lines of a container.

import type { Context } from '../fluent-bit/plugin.ts'
import { lastValue } from '../fluent-bit/sections.ts'
import { childrenOf, isOn, listOf, type Plugged, parameter } from './element.ts'
import { recordPath } from './ruby.ts'

/** Fields that have one value for all lines that a source joins. */
const ofContainer: ReadonlySet<string> = new Set(['kubernetes', 'docker', 'stream', 'tag', 'hostname', 'host'])

/** How a filter uses the text of lines: it drops records by it, changes it, or reads it. */
type Use = 'drops' | 'changes' | 'reads'

interface Texts {
  /** Fields that the rules are for. */
  readonly keys: ReadonlySet<string>
  /** All fields that may contain the line: also those of the parsers for lines of containers. */
  readonly all: ReadonlySet<string>
}

function textsOf(join: Plugged): Texts {
  const key = lastValue(join, join.kind === 'filter' ? 'key' : 'message')
  // Without the option, `detect_exceptions` reads the one that the record has.
  const keys = key === undefined || key === '' ? ['message', 'log'] : [rootOf(key)]
  return { keys: new Set(keys), all: new Set(['log', 'message', ...keys]) }
}

/** The name of the outermost field. */
const rootOf = (key: string) => recordPath(key)?.[0] ?? key

const isFixed = (key: string) => ofContainer.has(rootOf(key))

/** The keys of all rules of a filter `grep`. */
function grepKeys({ element, entries }: Plugged): readonly string[] {
  const groups = [element, ...['and', 'or'].flatMap((name) => childrenOf(element, name))]
  const rules = groups.flatMap((group) => ['regexp', 'exclude'].flatMap((name) => childrenOf(group, name)))
  const numbered = entries.filter(({ key }) => /^(?:regexp|exclude)\d+$/.test(key))
  return [
    ...rules.map((rule) => parameter(rule, 'key') ?? ''),
    ...numbered.map(({ value }) => value.split(/\s/)[0] ?? ''),
  ]
}

/** The field of a placeholder that is the field alone. */
const copied = (value: string) =>
  /^\$\{\s*record(?:\[["'](\w+)["']\]|\.(?:dig|fetch)\(["'](\w+)["']\))\s*\}$/.exec(value)?.slice(1).find(Boolean)

/** Whether placeholders read a text, or the record as a whole. */
function readsText(value: string, texts: ReadonlySet<string>): boolean {
  const codes = [...value.matchAll(/\$\{((?:[^{}]|\{[^{}]*\})*)\}/g)].map(([, code = '']) => code)
  const isWhole = (code: string) =>
    /\brecord\b(?!\s*(?:\[|\.(?:dig|fetch|key\?|has_key\?|include\?)\b))/.test(code) || /\brecord\[[^"']/.test(code)
  const names = (code: string) =>
    [...texts].some((text) => new RegExp(`(?<![\\w-])${RegExp.escape(text)}(?![\\w-])`).test(code))
  return codes.some((code) => isWhole(code) || names(code))
}

/** Whether a filter that sets fields removes the text that the rules are for. */
function removesText(section: Plugged, keys: ReadonlySet<string>, names: ReadonlySet<string>): boolean {
  const read = (option: string) => listOf(lastValue(section, option)).map(rootOf)
  const [removed, only, kept] = [read('remove_keys'), read('whitelist_keys'), read('keep_keys')]
  const isLeft = (key: string) =>
    !removed.includes(key) &&
    (only.length === 0 || removed.length > 0 || only.includes(key)) &&
    (!isOn(lastValue(section, 'renew_record'), false) || kept.includes(key) || names.has(key))
  return ![...keys].some(isLeft)
}

/** How a filter that sets fields uses the text. A copy of the text is the joined text in both. */
function ofTransformer(section: Plugged, { keys, all }: Texts): Use | undefined {
  const nameOf = ({ key }: { readonly key: string }) => key.slice('record.'.length)
  const set = section.entries.filter(({ key }) => key.startsWith('record.'))
  const isCopy = (entry: (typeof set)[number]) => all.has(nameOf(entry)) && all.has(copied(entry.value) ?? '')
  const others = set.filter((entry) => !isCopy(entry))
  const replaced = childrenOf(section.element, 'replace').map((child) => rootOf(parameter(child, 'key') ?? ''))
  const isChanged = [...others.map(nameOf), ...replaced].some((name) => all.has(name))
  if (isChanged || removesText(section, keys, new Set(set.map(nameOf)))) return 'changes'
  const readsTime = all.has(rootOf(lastValue(section, 'renew_time_key') ?? ''))
  if (readsTime || others.some(({ value }) => readsText(value, all))) return 'reads'
  const removed = listOf(lastValue(section, 'remove_keys')).map(rootOf)
  const copies = set.filter(isCopy).flatMap(({ value }) => copied(value) ?? [])
  const isBase = (name: string) => isOn(lastValue(section, 'renew_record'), false) || removed.includes(name)
  return copies.every(isBase) ? undefined : 'reads'
}

function useOf(section: Plugged, texts: Texts): Use | undefined {
  const key = (name: string, byDefault: string) => rootOf(lastValue(section, name) ?? byDefault)
  switch (section.type) {
    case 'grep':
      return grepKeys(section).every(isFixed) ? undefined : 'drops'
    case 'parser':
      if (!isOn(lastValue(section, 'reserve_data'), false)) return 'changes'
      if (isFixed(key('key_name', 'log'))) return undefined
      // The members may include the text that the rules are for.
      return isOn(lastValue(section, 'remove_key_name_field'), false) || !texts.keys.has(key('key_name', 'log'))
        ? 'changes'
        : 'reads'
    case 'record_transformer':
    case 'record_modifier':
      return ofTransformer(section, texts)
    case 'kubernetes_metadata':
      return isOn(lastValue(section, 'merge_json_log'), false) ? 'reads' : undefined
    case 'ua_parser':
      return texts.all.has(key('key_name', 'user_agent')) ? 'reads' : undefined
    default:
      return undefined
  }
}

/** Whether two patterns of tags have no tag in common: their texts before the first wildcard differ. */
function areApart(one: string, other: string): boolean {
  const starts = (text: string) =>
    text
      .trim()
      .split(/\s+/)
      .map((word) => /^[^*{/]*/.exec(word)?.[0] ?? '')
  return starts(one).every((a) => starts(other).every((b) => !a.startsWith(b) && !b.startsWith(a)))
}

const effects: Readonly<Record<Use, { readonly what: string; readonly nearest: string }>> = {
  drops: {
    what: 'drops single lines in Fluentd, and whole joined events here',
    nearest:
      'To remove lines from the joined text, use `split`, `filter` and `join` in a remap transform in place of the filter.',
  },
  changes: {
    what: 'changes single lines before the rules see them in Fluentd, and gets the joined text here',
    nearest:
      'Let the patterns of `multiline` match the lines as they are in the file, and change the joined text in a remap transform.',
  },
  reads: {
    what: 'reads the first line in Fluentd, and the joined text here',
    nearest: 'To read the first line alone, use `split(…, "\\n", limit: 2)` in a remap transform.',
  },
}

/** Reports filters before a filter or match for which the joined text makes a difference. */
export function reportEarlier(join: Plugged, before: readonly Plugged[], context: Context): void {
  const texts = textsOf(join)
  const shared = before.filter(({ pattern }) => !areApart(pattern, join.pattern))
  for (const use of ['drops', 'changes', 'reads'] as const) {
    const filters = shared.filter((section) => useOf(section, texts) === use)
    const [first] = filters
    if (first === undefined) continue
    const names = filters.map(({ type, line }) => `\`${type}\` (line ${line})`).join(', ')
    const { what, nearest } = effects[use]
    const subject = `${join.type}: after ${[...new Set(filters.map(({ type }) => type))].join(', ')}`
    const reason = `the source joins lines before all filters: ${names} ${what}`
    context.gap(join, subject, reason, nearest)
  }
}
