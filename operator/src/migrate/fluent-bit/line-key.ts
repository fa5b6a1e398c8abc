// The field that the filter `multiline` joins. A source joins the lines as read, so the field must contain the line.

import { findParser } from './parsers.ts'
import { type Context, common, matched } from './plugin.ts'
import { podLineKey } from './pod-logs.ts'
import { isOn, lastValue, listOf, type Section } from './sections.ts'
import { isPodLog } from './tags.ts'
import { words } from './text.ts'

/** The filter is part of a source; see `multilineOf`. */
export const multilineFilter = {
  name: 'multiline',
  options: {
    ...common,
    ...matched,
    'multiline.parser': '`multiline` of the source',
    'multiline.key_content': 'the source joins lines as read; another field is a gap',
  },
  itself: {
    mode: 'the source joins partial lines itself',
    flush_ms: 'the timeout of the parser applies',
    buffer: 'the source joins lines only within one file or container',
    emitter_name: 'there is no emitter',
    emitter_mem_buf_limit: 'there is no emitter',
    'emitter_storage.type': 'there is no emitter',
  },
} as const

/** The field with the line as read, before the filters; undefined if the record does not have it. */
function keyOf(input: Section, context: Context): string | undefined {
  const paths = listOf(input, 'path')
  if (paths.length > 0 && paths.every(isPodLog)) return podLineKey(input, context)
  const isParsed = isOn(lastValue(input, 'multiline'), false) || findParser(lastValue(input, 'parser') ?? '', context)
  return isParsed ? undefined : (lastValue(input, 'key') ?? 'log')
}

export const renames: readonly string[] = ['rename', 'hard_rename', 'copy', 'hard_copy']

/**
 * The fields with the line when its record reaches a filter.
 * @param before the filters that change the record first, in order
 */
export function lineKeys(input: Section, before: readonly Section[], context: Context): ReadonlySet<string> {
  const key = keyOf(input, context)
  const keys = new Set(key === undefined ? [] : [key])
  for (const { entries } of before) {
    for (const { key: rule, value } of entries) {
      const [from = '', to = ''] = words(value)
      if (renames.includes(rule) && keys.has(from)) keys.add(to)
    }
  }
  return keys
}
