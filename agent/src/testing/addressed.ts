// Components that speak to an address, with options that lead them to a server of a test. The walks over all of them use it.

import type { AnyDeclaration } from '../component.ts'
import { optionsOf } from '../config/component-options.ts'
import { exampleOptions } from '../config/example.ts'
import { meaningOf } from '../schema/meaning.ts'
import { webPorts } from '../schema/options.ts'
import { isTable } from '../schema/walk.ts'

type Table = Readonly<Record<string, unknown>>

/** The option of a component that is the address of its server, with this address as its value. */
function addressOf(component: AnyDeclaration, url: string): Table {
  const isAddress = (schema: unknown) =>
    isTable(schema) && meaningOf(schema).address?.ports === webPorts && !meaningOf(schema).address?.part
  for (const [name, schema] of Object.entries(optionsOf(component).members)) {
    if (isAddress(schema)) return { [name]: url }
    if (isAddress(schema['items'])) return { [name]: [url] }
  }
  return {}
}

/** Options merged with others, which take precedence, table by table. */
export function merged(base: unknown, over: unknown): unknown {
  if (!isTable(base) || !isTable(over)) return over
  return { ...base, ...Object.fromEntries(Object.entries(over).map(([key, value]) => [key, merged(base[key], value)])) }
}

/** Whether a component declares an address of the web. */
export const speaksToAddress = (component: AnyDeclaration): boolean => Object.keys(addressOf(component, '')).length > 0

/** The required options of a component, with its server at this address. */
export function exampleAt(component: AnyDeclaration, url: string): Table {
  return { ...exampleOptions(component), ...addressOf(component, url) }
}
