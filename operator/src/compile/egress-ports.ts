// The ports that a component connects to, by the addresses in its options: NetworkPolicies open these and no others.

import { isSecretPlace } from '@penstock/agent/bundle/secret-places'
import type { ComponentKind } from '@penstock/agent/component'
import { optionsOf } from '@penstock/agent/config/component-options'
import { findComponent } from '@penstock/agent/registry'
import { type AddressMeaning, authoritiesOf, meaningOf } from '@penstock/agent/schema/meaning'
import { declaredMembers, isTable, type Schema, walkOptions } from '@penstock/agent/schema/walk'

/** Where the address comes from a Secret, these are the usual ports of its schemes. */
export function egressPortsOf(kind: ComponentKind, options: Readonly<Record<string, unknown>>): ReadonlySet<number> {
  const ports = new Set<number>()
  const declaration = findComponent(kind, String(options['type']))
  if (declaration === undefined) return ports
  const add = (meaning: AddressMeaning, text: string): void => {
    for (const { port } of authoritiesOf(meaning, text)) if (port !== undefined) ports.add(port)
  }
  const { schema } = optionsOf(declaration)
  walkOptions(
    schema,
    options,
    ({ value, schemas }) => {
      for (const { address } of schemas.map(meaningOf)) {
        if (address === undefined) continue
        if (typeof value === 'string') add(address, value)
        else if (isSecretPlace(value)) for (const port of Object.values(address.ports)) ports.add(port)
      }
      return undefined
    },
    isSecretPlace,
  )
  for (const { schema: member, value } of declaredMembers(schema, options)) {
    const { address } = meaningOf(member)
    const usual = member['default']
    if (value === undefined && address !== undefined && typeof usual === 'string') add(address, usual)
  }
  // Its address is that of a service, chosen by a region or by nothing at all.
  if (ports.size === 0 && Object.values(declaration.options).some(hasAddress)) ports.add(443)
  return ports
}

function hasAddress(schema: Schema): boolean {
  return meaningOf(schema).address !== undefined || (isTable(schema['items']) && hasAddress(schema['items']))
}
