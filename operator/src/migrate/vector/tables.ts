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

/** A pattern of names, in which `*` stands for any text. */
export const wildcard = (text: string) => new RegExp(`^${text.split('*').map(RegExp.escape).join('.*')}$`)

/** The texts of an option that is a text or a list. */
export const texts = (value: unknown): readonly string[] =>
  (Array.isArray(value) ? value : [value]).filter((each) => typeof each === 'string')

/** `a.b` as the path of a field. */
export const field = (path: string) => fieldLiteral(path.replace(/^\./, '').split('.'))

/** A statement that sets a member of a variable with an object, such as `parsed`. */
export function setLine(name: string, value: string, variable = 'parsed'): string {
  const path = name
    .replace(/^\./, '')
    .split('.')
    .map((each) => textLiteral(each))
  return `${variable} = object(set(${variable}, [${path.join(', ')}], ${value}) ?? null) ?? ${variable}`
}
