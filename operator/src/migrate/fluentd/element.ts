// Converts elements to the sections that mappings read. The name of an inner element becomes the prefix of its parameters, as in
// `parse.@type`.

import { type Entry, lastValue, type Section } from '../fluent-bit/sections.ts'
import type { Element } from './syntax.ts'

/** An element as a section, with its inner elements. */
export interface Plugged extends Section {
  readonly element: Element
  /** The tag pattern of a filter or a match; all tags without one. */
  readonly pattern: string
  /** The value of `@type`. */
  readonly type: string
  /** Whether the configuration is in the syntax of Fluentd before version 0.14. */
  readonly isOld?: boolean
  /** Whether a filter marks events that its parser does not read, for the label `@ERROR`. */
  readonly marksFailures?: boolean
}

/** Elements that can be repeated or that contain plugins. They are read separately. */
const apart = new Set([
  'store',
  'rule',
  'regexp',
  'exclude',
  'and',
  'or',
  'pattern',
  'server',
  'route',
  'secondary',
  'replace',
  'template',
])

export function sectionOf(element: Element): Plugged {
  const entries = entriesOf(element, '')
  const section = { kind: element.name, file: element.file, line: element.line, entries }
  const type = (lastValue(section, '@type') ?? lastValue(section, 'type') ?? '').toLowerCase()
  return { ...section, element, pattern: element.argument || '**', type }
}

function entriesOf({ parameters, children }: Element, prefix: string): Entry[] {
  return [
    ...parameters.map((entry) => ({ ...entry, key: `${prefix}${entry.key}` })),
    ...children.flatMap((child) =>
      apart.has(child.name)
        ? []
        : [
            ...(child.argument === ''
              ? []
              : [{ file: child.file, line: child.line, key: `${prefix}${child.name}`, value: child.argument }]),
            ...entriesOf(child, `${prefix}${child.name}.`),
          ],
    ),
  ]
}

/** Whether an option is on: `true`, `yes`, or no value at all. Other words, such as `on`, are not words for true in Fluentd. */
export function isOn(value: string | undefined, byDefault: boolean): boolean {
  return value === undefined ? byDefault : /^(?:true|yes|#.*)?$/.test(value)
}

/** The inner elements with this name. */
export function childrenOf(element: Element, name: string): readonly Element[] {
  return element.children.filter((child) => child.name === name)
}

/** The value of a parameter; the last one if there are several. */
export function parameter(element: Element, key: string): string | undefined {
  return element.parameters.findLast((each) => each.key === key)?.value
}

/** The items of a list: `a,b`, or JSON. */
export function listOf(text: string | undefined): string[] {
  if (text === undefined) return []
  if (text.trim().startsWith('[')) {
    try {
      const list: unknown = JSON.parse(text)
      if (Array.isArray(list)) return list.map(String)
    } catch {
      // A list that is not JSON is a comma-separated list.
    }
  }
  return text
    .replace(/^\s*\[(.*)\]\s*$/s, '$1')
    .split(',')
    .map((word) => word.trim().replace(/^["'](.*)["']$/, '$1'))
    .filter((word) => word !== '')
}

/** The texts in a JSON object; empty without one, and undefined if the text is something else. */
export function objectIn(text: string | undefined): Readonly<Record<string, string>> | undefined {
  try {
    const value: unknown = JSON.parse(text ?? '{}')
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, String(each)]))
  } catch {
    return undefined
  }
}
