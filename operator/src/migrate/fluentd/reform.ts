// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of Fluentd are meant
// The match `record_reformer`: fields as those of `record_transformer`, and a new tag with which events enter the matches again.

import type { Gap, Step } from '../draft.ts'
import type { Context } from '../fluent-bit/plugin.ts'
import { lastValue } from '../fluent-bit/sections.ts'
import type { Described } from '../page.ts'
import { isOn, type Plugged } from './element.ts'
import { transformer } from './filters.ts'
import { reportNames, reportVariables } from './reports.ts'
import { retagged } from './retag.ts'
import { expressed } from './ruby.ts'
import { isKnown, type Tag, tagProgram } from './tags.ts'

const base = transformer('record_reformer', 'remove_keys')
const ownOptions = ['remove_keys', 'renew_record', 'keep_keys', 'enable_ruby', 'renew_time_key', 'auto_typecast']
const notFields: ReadonlySet<string> = new Set(
  ['@id', 'id', '@type', 'type', '@label', '@log_level', 'log_level', 'tag', 'output_tag'].concat(ownOptions),
)

export const recordReformer: Described = {
  name: 'record_reformer',
  becomes:
    'a remap transform, followed by the filters and matches of the new tag; other options are fields of the record',
  options: {
    record: 'the fields to set',
    ...Object.fromEntries(ownOptions.map((option) => [option, base.options[option] ?? ''])),
    tag: 'the new tag',
    output_tag: 'as `tag`',
  },
}

/** Events with the new fields, and their new tag; undefined if the tag cannot be converted. */
export function reformed(
  given: Plugged,
  context: Context,
  gaps: Gap[],
  old: Tag,
): { readonly tag: Tag; readonly steps: readonly Step[] } | undefined {
  // Every unknown option is a field.
  const entries = given.entries.map((entry) => ({
    ...entry,
    key: notFields.has(entry.key) || entry.key.startsWith('record.') ? entry.key : `record.${entry.key}`,
    value: entry.value.replaceAll('${tags[', '${tag_parts['),
  }))
  const section = { ...given, entries }
  reportVariables(section, [], context)
  reportNames(section, context)
  const text = lastValue(section, 'tag') ?? lastValue(section, 'output_tag') ?? ''
  const found = tagOf(text, section, context, old)
  if (found === undefined) return undefined
  return { tag: found.tag, steps: [...found.steps, ...base.build(section, context, gaps, old)] }
}

/** Placeholders whose values do not depend on the record. */
const simple = /^(?:[^$]|\$(?!\{)|\$\{tag\}|\$\{tag_parts\[\d+\]\}|\$\{hostname\})*$/

/** The new tag. It is computed before the fields change. */
function tagOf(
  text: string,
  section: Plugged,
  context: Context,
  old: Tag,
): { readonly tag: Tag; readonly steps: readonly Step[] } | undefined {
  if (simple.test(text)) return retagged(section, { tag: text, value: '', pattern: '' }, old)
  const isFixed = !old.text.includes('*')
  const known = isKnown(old) ? (isFixed ? { text: old.text } : { variable: 'tag' }) : undefined
  const isRuby = isOn(lastValue(section, 'enable_ruby'), true)
  const facts = { tag: known, readsEnvironment: context.readsEnvironment, isRuby, namesFields: true }
  const found = expressed(text, facts, 'tag', false)
  if (!found.ok) {
    const reason = `\`${found.problem}\` is Ruby code, or names a value that events do not have`
    context.gap(section, 'record_reformer: tag', reason, 'Rewrite the tag with fields of the record.')
    return undefined
  }
  const lines = [...(known !== undefined && !isFixed ? [tagProgram(old)] : []), ...found.before, `%tag = ${found.text}`]
  const fixed = text.split(/\$\{(?:[^{}]|\{[^}]*\})*\}/)
  return {
    tag: { text: fixed.join('*'), isOfPods: false, isKept: true },
    steps: [{ type: 'remap', text: lines.join('\n') }],
  }
}
