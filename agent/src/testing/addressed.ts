// Components that connect to an address, with options that point them to a test server. Tests use it to run all such components.

import type { AnyDeclaration } from '../component.ts'
import { optionsOf } from '../config/component-options.ts'
import { exampleOptions } from '../config/example.ts'
import { meaningOf } from '../schema/meaning.ts'
import { webPorts } from '../schema/options.ts'
import { isTable } from '../schema/walk.ts'

type Table = Readonly<Record<string, unknown>>

/** The option of a component for the address of its server, with this address as its value. */
function addressOf(component: AnyDeclaration, url: string): Table {
  const isAddress = (schema: unknown) =>
    isTable(schema) && meaningOf(schema).address?.ports === webPorts && !meaningOf(schema).address?.part
  for (const [name, schema] of Object.entries(optionsOf(component).members)) {
    if (isAddress(schema)) return { [name]: url }
    if (isAddress(schema['items'])) return { [name]: [url] }
  }
  return {}
}

/** Merges options recursively; the second ones take precedence. */
export function merged(base: unknown, over: unknown): unknown {
  if (!isTable(base) || !isTable(over)) return over
  return { ...base, ...Object.fromEntries(Object.entries(over).map(([key, value]) => [key, merged(base[key], value)])) }
}

/** Whether a component declares a web address. */
export const speaksToAddress = (component: AnyDeclaration): boolean => Object.keys(addressOf(component, '')).length > 0

/** The required options of a component, with its server at this address. */
export function exampleAt(component: AnyDeclaration, url: string): Table {
  return { ...exampleOptions(component), ...addressOf(component, url) }
}
