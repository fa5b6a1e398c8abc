// The blocks `trace` and `scope_name` of parsers, which are also operators: statements that set the ids of a trace and the name of a scope.

import { fieldOf } from './field.ts'
import type { Context, Part } from './mapping.ts'
import { fieldAt } from './record.ts'

export const traceOptions = {
  'trace_id.parse_from': '`.trace_id`',
  'span_id.parse_from': '`.span_id`',
  'trace_flags.parse_from': '`.flags`',
} as const

export const scopeOptions = { parse_from: 'the field with the name' } as const

/** The parts of a trace context, with the text of a valid value and the field in the event. */
const traceParts = {
  trace_id: ['^[0-9a-fA-F]{32}$', '.trace_id', 'downcase(text)'],
  span_id: ['^[0-9a-fA-F]{16}$', '.span_id', 'downcase(text)'],
  trace_flags: ['^[0-9a-fA-F]{2}$', '.flags', 'parse_int(text, 16) ?? 0'],
} as const

function fieldText(part: Part, option: string, context: Context, byDefault: string): string | undefined {
  const text = part.text(option) ?? byDefault
  const found = fieldOf(text)
  if (found !== undefined) return fieldAt(found.path)
  context.gap(
    part.place([option]),
    `${part.id}: ${option}`,
    `\`${text}\` is not a field of body, attributes or resource`,
    'Rewrite the operator as a remap transform.',
  )
  return undefined
}

/** Statements that set the ids and flags, or run `failing` for an invalid value. */
export function traceLines(part: Part, context: Context, failing: readonly string[] = []): string[] {
  return Object.entries(traceParts).flatMap(([name, [pattern, target, value]]) => {
    const at = fieldText(part, `${name}.parse_from`, context, `body.${name}`)
    if (at === undefined) return []
    const otherwise = failing.length === 0 ? [] : [`if exists(${at}) && !match(text, r'${pattern}') {`, ...failing, '}']
    return [
      `text = if is_string(${at}) { string!(${at}) } else { "" }`,
      `if match(text, r'${pattern}') { ${target} = ${value} }`,
      ...otherwise,
    ]
  })
}

/** Statements that set the name of the scope, or run `failing`. */
export function scopeLines(part: Part, context: Context, failing: readonly string[] = []): string[] {
  const at = fieldText(part, 'parse_from', context, 'body')
  if (at === undefined) return []
  const otherwise = failing.length === 0 ? '' : ` else { ${failing.join('\n')} }`
  return [`if is_string(${at}) { .scope.name = ${at} }${otherwise}`]
}
