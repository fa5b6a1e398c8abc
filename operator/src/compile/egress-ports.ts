// The ports that a component connects to, by the addresses in its options: NetworkPolicies open these and no others.

import { isSecretPlace } from '@penstock/agent/bundle'
import { findComponent, optionsOf } from '@penstock/agent/config'
import {
  type AddressMeaning,
  type AnyDeclaration,
  type Authority,
  authoritiesOf,
  type ComponentKind,
  declaredMembers,
  isTable,
  meaningOf,
  type Schema,
  walkOptions,
} from '@penstock/agent/schema'

/** Where the address comes from a Secret, these are the usual ports of its schemes. */
export function egressPortsOf(kind: ComponentKind, options: Readonly<Record<string, unknown>>): ReadonlySet<number> {
  const ports = new Set<number>()
  const declaration = findComponent(kind, String(options['type']))
  if (declaration === undefined) return ports
  for (const { meaning, value } of addresses(declaration, options)) {
    if (typeof value !== 'string') for (const port of Object.values(meaning.ports)) ports.add(port)
    else for (const { port } of authoritiesOf(meaning, value)) if (port !== undefined) ports.add(port)
  }
  // Its address is that of a service, chosen by a region or by nothing at all.
  if (ports.size === 0 && Object.values(declaration.options).some(hasAddress)) ports.add(443)
  return ports
}

/** Hosts and ports that the options of a component name; none where a region or the service chooses them. */
export function authoritiesIn(kind: ComponentKind, options: Readonly<Record<string, unknown>>): readonly Authority[] {
  const declaration = findComponent(kind, String(options['type']))
  if (declaration === undefined) return []
  return addresses(declaration, options).flatMap(({ meaning, value }) =>
    typeof value === 'string' ? authoritiesOf(meaning, value) : [],
  )
}

interface Address {
  readonly meaning: AddressMeaning
  /** Text, or the place of a value in a Secret. */
  readonly value: unknown
}

/** The addresses among the options of a component, given or by default. */
function addresses(declaration: AnyDeclaration, options: Readonly<Record<string, unknown>>): readonly Address[] {
  const found: Address[] = []
  const { schema } = optionsOf(declaration)
  walkOptions(
    schema,
    options,
    ({ value, schemas }) => {
      for (const { address: meaning } of schemas.map(meaningOf)) {
        if (meaning !== undefined && (typeof value === 'string' || isSecretPlace(value))) found.push({ meaning, value })
      }
      return undefined
    },
    isSecretPlace,
  )
  for (const { schema: member, value } of declaredMembers(schema, options)) {
    const { address: meaning } = meaningOf(member)
    const usual = member['default']
    if (value === undefined && meaning !== undefined && typeof usual === 'string') found.push({ meaning, value: usual })
  }
  return found
}

function hasAddress(schema: Schema): boolean {
  return meaningOf(schema).address !== undefined || (isTable(schema['items']) && hasAddress(schema['items']))
}
