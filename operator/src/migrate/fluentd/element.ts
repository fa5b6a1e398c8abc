// Elements as the sections that mappings read: parameters of elements within are named with the name of the element before them, such as
// `parse.@type`.

import { type Entry, lastValue, type Section } from '../fluent-bit/sections.ts'
import type { Element } from './syntax.ts'

/** An element as a section, with the elements within it. */
export interface Plugged extends Section {
  readonly element: Element
  /** The pattern of tags of a filter or a match. */
  readonly pattern: string
  /** The value of `@type`. */
  readonly type: string
}

/** Elements that may occur several times, or that hold plugins: they are read for themselves. */
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
])

export function sectionOf(element: Element): Plugged {
  const entries = entriesOf(element, '')
  const section = { kind: element.name, file: element.file, line: element.line, entries }
  const type = (lastValue(section, '@type') ?? lastValue(section, 'type') ?? '').toLowerCase()
  return { ...section, element, pattern: element.argument, type }
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

/** The elements of this name within another one. */
export function childrenOf(element: Element, name: string): readonly Element[] {
  return element.children.filter((child) => child.name === name)
}

/** The value of a parameter, the last where there are several. */
export function parameter(element: Element, key: string): string | undefined {
  return element.parameters.findLast((each) => each.key === key)?.value
}

/** Words of a list: `a,b`, or JSON. */
export function listOf(text: string | undefined): string[] {
  if (text === undefined) return []
  if (text.trim().startsWith('[')) {
    try {
      const list: unknown = JSON.parse(text)
      if (Array.isArray(list)) return list.map(String)
    } catch {
      // A list that is no JSON is one of words.
    }
  }
  return text
    .replace(/^\[|\]$/g, '')
    .split(',')
    .map((word) => word.trim().replace(/^["'](.*)["']$/, '$1'))
    .filter((word) => word !== '')
}
