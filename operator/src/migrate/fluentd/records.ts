// The fields that `<record>` of a filter sets, as statements of a program.

import { textLiteral } from '@penstock/agent/config'
import { readReport } from '../environment.ts'
import { ownName } from '../fluent-bit/own-time.ts'
import type { Context } from '../fluent-bit/plugin.ts'
import { lastValue, type Place } from '../fluent-bit/sections.ts'
import { isOn, type Plugged } from './element.ts'
import { expressed, recordValue } from './ruby.ts'
import { isKnown, type Tag, tagProgram } from './tags.ts'

/** Whether a value of `<record>` reads a field that an earlier one sets. */
export function readsOwnFields({ entries }: Plugged): boolean {
  const own = entries.filter(({ key }) => key.startsWith('record.'))
  return own.some(({ value }, index) =>
    own.slice(0, index).some(({ key }) => /["'](.*)["']/s.exec(value)?.[1]?.includes(key.slice('record.'.length))),
  )
}

/** How a plugin computes the values of `<record>`. */
export interface Manner {
  /** Whether placeholders contain Ruby. */
  readonly isRuby: boolean
  /** Whether a value is computed from the record with the fields before it. */
  readonly isStepwise: boolean
  /** Whether an error in Ruby gives no value, names are fields, and values become texts unless `auto_typecast` is set. */
  readonly isReformer?: boolean
}

/** Statements that set the fields of `<record>`. All values are computed from the incoming record, unless they are computed stepwise. */
export function recordLines(
  section: Plugged,
  context: Context,
  tag: Tag | undefined,
  { isRuby, isStepwise, isReformer = false }: Manner,
): { lines: string[]; after: string[]; names: string[]; kept: string[] } {
  const entries = section.entries.filter(({ key }) => key.startsWith('record.'))
  const kept: string[] = []
  const values: { name: string; named: string | undefined; before: readonly string[]; text: string }[] = []
  const keepsTypes = isOn(lastValue(section, 'auto_typecast'), !isReformer)
  let usesTag = false
  let hasDeleted = false
  const isFixed = tag?.text.includes('*') === false
  for (const { key, value, ...place } of entries) {
    const name = ownName(key.slice('record.'.length))
    const known = tag === undefined || !isKnown(tag) ? undefined : tag
    const { readsEnvironment } = context
    const facts = {
      tag: known && (isFixed ? { text: known.text } : { variable: 'tag' }),
      readsEnvironment,
      isRuby,
      changesRecord: isStepwise,
      namesFields: section.isOld === true || isReformer,
      isLenient: isReformer,
    }
    const found = recordValue(value, facts, `value_${values.length}`, keepsTypes)
    const named = name.includes('${') ? expressed(name, facts, `name_${values.length}`, false) : undefined
    const problem = found.ok ? (named?.ok === false ? named.problem : undefined) : found.problem
    if (!found.ok || problem !== undefined) {
      context.gap(
        place,
        `${section.type}: ${name}`,
        `\`${problem}\` is Ruby code, or names a value that events do not have`,
        'Set the field in a remap transform; the comment contains the text.',
      )
      kept.push(`${name} ${value}`)
      continue
    }
    reportPlaceholders(found.unknown, `${section.type}: ${name}`, value, place, context)
    usesTag ||= !isFixed && /\$\{[^}]*\btag/.test(`${name} ${value}`)
    hasDeleted ||= found.hasDeleted
    const before = [...found.before, ...(named?.ok === true ? named.before : [])]
    values.push({ name, named: named?.ok === true ? named.text : undefined, before, text: found.text })
  }
  const statements = isStepwise || hasDeleted ? inOrder(values, isStepwise) : atOnce(values)
  const start = [
    ...(usesTag && tag !== undefined && isKnown(tag) ? [tagProgram(tag)] : []),
    ...(hasDeleted ? ['restored = {}'] : []),
  ]
  const names = values.map(({ name }) => name)
  // Fluentd sets the values on a copy of the record, which keeps the fields that code deletes.
  const after = hasDeleted && !isStepwise ? ['. = merge(., restored)'] : []
  return { lines: values.length === 0 ? [] : [...start, ...statements], after, names, kept }
}

type Value = {
  readonly name: string
  readonly named: string | undefined
  readonly before: readonly string[]
  readonly text: string
}

/** All values in one object. Fields with placeholders in their names follow. */
function atOnce(values: readonly Value[]): string[] {
  const fields = values.filter(({ named }) => named === undefined)
  return [
    ...values.flatMap(({ before }) => before),
    `changed = { ${fields.map(({ name, text }) => `${textLiteral(name)}: ${text}`).join(', ')} }`,
    ...values.flatMap(({ named, text }) =>
      named === undefined ? [] : [`changed = object(set(changed, [${named}], ${text}) ?? null) ?? changed`],
    ),
  ]
}

/** Each value before the next one, in the record itself or in one object. */
function inOrder(values: readonly Value[], isStepwise: boolean): string[] {
  // After an assignment, the compiler would know the kind of the field, but the statements that read it accept any kind.
  const set = ({ name, named, text }: Value) =>
    isStepwise
      ? `. = set!(., [${named ?? textLiteral(name)}], ${text})`
      : `changed = object(set(changed, [${named ?? textLiteral(name)}], ${text}) ?? null) ?? changed`
  const lines = values.flatMap((value) => [...value.before, set(value)])
  return isStepwise ? lines : ['changed = {}', ...lines]
}

/** Reports placeholders without a value, and variables of the environment in Ruby code. */
function reportPlaceholders(
  unknown: readonly string[],
  subject: string,
  value: string,
  place: Place,
  context: Context,
): void {
  for (const each of unknown) {
    const reason = `without \`enable_ruby\`, Fluentd knows no placeholder \`${each}\`, so it sets nothing; so does the transform`
    context.replaced(place, subject, reason, 'To get the value, set `enable_ruby true`, and convert again.')
  }
  for (const [, name = ''] of value.matchAll(/\bENV(?:\[|\.fetch\()\s*["'](\w+)/g)) {
    const { reason, nearest } = readReport(name)
    context.replaced(place, `ENV ${name}`, reason, nearest)
  }
}
