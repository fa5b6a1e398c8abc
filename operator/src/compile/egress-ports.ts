// The ports to which a component connects, by the addresses in its options: NetworkPolicies allow exactly these.

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

/** If the address comes from a Secret, these are the default ports of its schemes. */
export function egressPortsOf(kind: ComponentKind, options: Readonly<Record<string, unknown>>): ReadonlySet<number> {
  const ports = new Set<number>()
  const declaration = findComponent(kind, String(options['type']))
  if (declaration === undefined) return ports
  for (const { meaning, value } of addresses(declaration, options)) {
    if (typeof value !== 'string') for (const port of Object.values(meaning.ports)) ports.add(port)
    else for (const { port } of authoritiesOf(meaning, value)) if (port !== undefined) ports.add(port)
  }
  // Its address belongs to a service, and is selected by a region or is fixed.
  if (ports.size === 0 && Object.values(declaration.options).some(hasAddress)) ports.add(443)
  return ports
}

/** Hosts and ports in the options of a component; none if a region or the service determines them. */
export function authoritiesIn(kind: ComponentKind, options: Readonly<Record<string, unknown>>): readonly Authority[] {
  const declaration = findComponent(kind, String(options['type']))
  if (declaration === undefined) return []
  return addresses(declaration, options).flatMap(({ meaning, value }) =>
    typeof value === 'string' ? authoritiesOf(meaning, value) : [],
  )
}

interface Address {
  readonly meaning: AddressMeaning
  /** Text, or the place of a secret value. */
  readonly value: unknown
}

/** The addresses in a component's options, explicit or by default. */
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
