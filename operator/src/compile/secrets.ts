// Values of Secrets and ConfigMaps in options: found in the parsed tree, replaced by a place with a key, and restored by the part
// that has the values. No value passes through the compile step.

import { secretMarker } from '@penstock/agent/bundle'
import { findComponent, optionsOf } from '@penstock/agent/config'
import { type ComponentKind, isTable, meaningOf, type Schema, schemaBelow } from '@penstock/agent/schema'
import { isTooDeep } from '../api/depth.ts'
import { labelOf } from '../api/shape.ts'
import type { SecretPart, SecretRef } from './artifact.ts'
import type { PathKey } from './resources.ts'

/** `SECRET[alias.key]`, `SECRET[alias.key|uri]` */
export const placeholder = /SECRET\[([\w-]+)\.([\w.-]+?)(\|\w+)?\]/g

/** Whether a text contains a reference to a Secret. */
export function holdsPlaceholder(text: string): boolean {
  return text.search(placeholder) >= 0
}

/** Whether a text is exactly one reference to a Secret. */
export function isPlaceholder(text: string): boolean {
  const [match] = text.matchAll(placeholder)
  return match?.[0] === text
}

/** Names that users may not use: the operator's own marker, and the name for inheritance in objects. */
const reservedNames: ReadonlySet<string> = new Set([secretMarker, '__proto__'])

export interface ReservedName {
  readonly name: string
  readonly path: readonly PathKey[]
}

/**
 * The reader of every user-written tree: returns a copy without names that have a meaning between operator and agent, and their
 * locations. Everything below a `spec` is only used through this reader. @param unreadable labels of values whose type does not
 * match their field; they are omitted
 */
export function readUserTree(
  tree: unknown,
  path: readonly PathKey[],
  unreadable: ReadonlySet<string> = new Set(),
): { readonly tree: unknown; readonly reserved: readonly ReservedName[] } {
  const reserved: ReservedName[] = []
  const read = (value: unknown, at: readonly PathKey[]): unknown => {
    if (unreadable.size > 0 && unreadable.has(labelOf(at))) return undefined
    if (Array.isArray(value)) {
      const items = value.map((item, index) => read(item, [...at, index]))
      // Entries keep their indices, which problems refer to.
      return at.length <= 2 ? items : items.filter((item) => item !== undefined)
    }
    if (!isTable(value)) return value
    const members: [string, unknown][] = []
    for (const [name, member] of Object.entries(value)) {
      const below = [...at, name]
      if (reservedNames.has(name)) reserved.push({ name, path: below })
      const kept = read(member, below)
      if (!reservedNames.has(name) && kept !== undefined) members.push([name, kept])
    }
    return Object.fromEntries(members)
  }
  return { tree: read(tree, path), reserved }
}

/**
 * Text that replaces a secret during option checks, in the form that the option requires. @param word replaces a value
 * of any form
 */
export function standIn(
  kind: ComponentKind,
  type: string,
  path: readonly PathKey[],
  ref: SecretRef,
  word = 'secret',
): string {
  const declaration = findComponent(kind, type)
  let schema: Schema | undefined = declaration === undefined ? undefined : optionsOf(declaration).schema
  for (const key of path) schema = schema === undefined ? undefined : schemaBelow(schema, key)
  const { address, file } = schema === undefined ? {} : meaningOf(schema)
  const scheme = address?.bare === undefined ? Object.keys(address?.ports ?? {}).at(-1) : undefined
  const base = scheme === undefined ? word : `${scheme}://secret.invalid`
  if (ref.parts.length > 1) return composed(ref, base, word)
  return file?.inline === 'data' ? 'data:application/json;base64,e30=' : base
}

/** Text of several parts: a secret at the beginning is the base of an address if a path follows, and one after a host is a port. */
function composed({ parts }: SecretRef, base: string, word: string): string {
  let text = ''
  for (const [index, part] of parts.entries()) {
    const next = parts[index + 1]
    const isPort =
      /^[a-z][a-z0-9+.-]*:\/\/[^/?#@]+:$/i.test(text) && !(typeof next === 'string' && /^[^/?#]*@/.test(next))
    const isBase = index === 0 && typeof next === 'string' && /^(?:[/?]|:\d)/.test(next)
    text += typeof part === 'string' ? part : isPort ? '80' : isBase ? base : word
  }
  return text
}

/** Every Secret and ConfigMap that options or aliases refer to, before any validation. */
export function referredObjects(
  spec: unknown,
  namespace: string | undefined,
): { readonly kind: 'Secret' | 'ConfigMap'; readonly namespace: string; readonly name: string }[] {
  const found = new Map<string, { kind: 'Secret' | 'ConfigMap'; namespace: string; name: string }>()
  const note = (kind: SecretPart['kind'], where: unknown, name: unknown) => {
    const own = namespace ?? where
    if (typeof own !== 'string' || typeof name !== 'string') return
    found.set(`${kind}/${own}/${name}`, { kind, namespace: own, name })
  }
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) {
      for (const item of value) visit(item)
    } else if (isTable(value)) {
      const from = value['valueFrom']
      if (isTable(from)) {
        const { secretKeyRef, configMapKeyRef } = from
        if (isTable(secretKeyRef)) note('Secret', secretKeyRef['namespace'], secretKeyRef['name'])
        if (isTable(configMapKeyRef)) note('ConfigMap', configMapKeyRef['namespace'], configMapKeyRef['name'])
      }
      for (const member of Object.values(value)) visit(member)
    }
  }
  if (isTooDeep(spec)) return [] // the structure check rejects it as a whole
  visit(spec)
  const aliases = isTable(spec) ? spec['secrets'] : undefined
  for (const alias of Array.isArray(aliases) ? aliases : []) {
    if (isTable(alias)) note('Secret', alias['namespace'], alias['secretName'])
  }
  return [...found.values()]
}
