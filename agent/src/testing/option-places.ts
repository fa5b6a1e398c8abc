// All places for values in the options of a component, for tests that check a rule everywhere.

import type { AnyDeclaration } from '../component.ts'
import { optionsOf } from '../config/component-options.ts'
import { aliasesOf, isTable, membersOf, type Schema, variantsOf } from '../schema/walk.ts'

export interface OptionPlace {
  readonly component: AnyDeclaration
  /** `sink http.tls.ca_file`; `[]` is an entry of a list, and `.*` one of a map. */
  readonly name: string
  /** The path in options that `with` creates, in which lists have one entry and maps one member. */
  readonly path: readonly (string | number)[]
  readonly schema: Schema
  /** The schema of the list that contains the place. */
  readonly list: Schema | undefined
  /** Whether there are no places below: it is not a table, a list or a union. */
  readonly isLeaf: boolean
  /** Options with the value at the place, and otherwise only tags and `siblings`. */
  readonly with: (value: unknown) => Record<string, unknown>
}

interface PlaceOptions {
  /** Whether a place is repeated for each name of its option. */
  readonly aliases?: boolean
  /** Further members of a table, by its members. */
  readonly siblings?: (members: Readonly<Record<string, Schema>>) => Readonly<Record<string, unknown>>
}

export function optionPlaces(
  component: AnyDeclaration,
  { aliases = false, siblings }: PlaceOptions = {},
): OptionPlace[] {
  const places: OptionPlace[] = []
  const visit = (
    place: Omit<OptionPlace, 'component' | 'isLeaf' | 'with'>,
    build: (value: unknown) => unknown,
  ): void => {
    const { name, path, schema } = place
    const variants = variantsOf(schema) ?? []
    const members = membersOf(schema)
    const { items, additionalProperties: others } = schema
    const isLeaf = variants.length === 0 && !isTable(items) && schema['type'] !== 'object'
    places.push({ ...place, component, isLeaf, with: (value) => build(value) as Record<string, unknown> })
    for (const variant of variants) visit({ ...place, schema: variant }, build)
    if (isTable(items)) {
      visit({ name: `${name}[]`, path: [...path, 0], schema: items, list: schema }, (value) => build([value]))
    }
    const tags = Object.entries(members).flatMap(([key, { const: tag }]) => (tag === undefined ? [] : [[key, tag]]))
    const around = { ...siblings?.(members), ...Object.fromEntries(tags) }
    for (const [key, member] of Object.entries(members)) {
      for (const written of aliases ? [key, ...aliasesOf(member)] : [key]) {
        const below = { name: `${name}.${written}`, path: [...path, written], schema: member, list: undefined }
        visit(below, (value) => build({ ...around, [written]: value }))
      }
    }
    if (isTable(others)) {
      const below = { name: `${name}.*`, path: [...path, 'any'], schema: others, list: undefined }
      visit(below, (value) => build({ any: value }))
    }
  }
  const root = {
    name: `${component.kind} ${component.type}`,
    path: [],
    schema: optionsOf(component).schema,
    list: undefined,
  }
  visit(root, (value) => value)
  return places
}

/** The places for a single value. */
export function optionLeaves(component: AnyDeclaration, options?: PlaceOptions): OptionPlace[] {
  return optionPlaces(component, options).filter(({ isLeaf }) => isLeaf)
}
