// Operations on tables of options and on names: merging two tables, removing the value at a path, and matching patterns.

import { fieldLiteral, type Segments, textLiteral } from '@penstock/agent/config'
import { isTable } from '@penstock/agent/schema'
import type { Table } from '../documents.ts'

/** Merges two tables recursively. Options of the second table win. */
export function merged(first: Table, second: Table): Record<string, unknown> {
  const both = Object.entries(second).map(([name, value]) => {
    const below = first[name]
    return [name, isTable(below) && isTable(value) ? merged(below, value) : value]
  })
  return { ...first, ...Object.fromEntries(both) }
}

/** Removes the value at a path, and objects that become empty. Returns false if there is no value. */
export function removeAt(config: Record<string, unknown>, segments: Segments): boolean {
  const last = segments.at(-1)
  if (last === undefined) return false
  const parents: unknown[] = [config]
  for (const segment of segments.slice(0, -1)) {
    const parent = parents.at(-1)
    parents.push(Array.isArray(parent) ? parent[Number(segment)] : isTable(parent) ? parent[segment] : undefined)
  }
  const holder = parents.at(-1)
  if (Array.isArray(holder)) {
    if (Number(last) >= holder.length) return false
    holder.splice(Number(last), 1)
    return true
  }
  if (!isTable(holder) || !Object.hasOwn(holder, last)) return false
  delete (holder as Record<string, unknown>)[last]
  return true
}

/** The items of a list. Any other value is a list with one item. */
export const listOf = (value: unknown): readonly unknown[] =>
  Array.isArray(value) ? value : value === undefined || value === null ? [] : [value]

/** The texts of an option that is a text or a list. */
export const texts = (value: unknown): readonly string[] =>
  (Array.isArray(value) ? value : [value]).filter((each) => typeof each === 'string')

/** The names of a path. A name with dots is in quotes, or in old versions each dot has a backslash. */
export const namesIn = (path: string): readonly string[] => partsOf(path).map(({ name }) => name)

interface PathPart {
  readonly name: string
  /** Indices after the name, such as `[0]`. */
  readonly indices: string
}

const partsOf = (path: string): readonly PathPart[] =>
  [...path.matchAll(/(?:"((?:[^"\\]|\\.)*)"|((?:[^."[\\]|\\.)+))((?:\[-?\d+\])*)/g)].map(
    ([, quoted, plain = '', indices = '']) => ({ name: (quoted ?? plain).replace(/\\(.)/g, '$1'), indices }),
  )

/** `a.b[0]` as the path of a field, `%a` as that of metadata. */
export function field(path: string): string {
  const isMetadata = path.startsWith('%')
  const text = partsOf(isMetadata ? path.slice(1) : path)
    .map(({ name, indices }) => `${fieldLiteral([name])}${indices}`)
    .join('')
  return isMetadata ? text.replace(/^\./, '%') : text
}

/** A statement that sets a member of a variable with an object, such as `parsed`. */
export function setLine(name: string, value: string, variable = 'parsed'): string {
  const path = partsOf(name).flatMap(({ name: own, indices }) => [textLiteral(own), ...(indices.match(/-?\d+/g) ?? [])])
  return `${variable} = object(set(${variable}, [${path.join(', ')}], ${value}) ?? null) ?? ${variable}`
}

/** An address, which Vector completes if it has no scheme. The value of a variable may contain one. */
export const withScheme = (address: string) =>
  /^[a-z][a-z0-9+.-]*:\/\/|^\$|^\{\{|^SECRET\[/i.test(address) ? address : `http://${address}`
