// Values of Secrets and ConfigMaps in options: found on the parsed tree, replaced by a place that names a key, and put in again by
// whoever holds the values. No value passes through the compile step.

import type { ComponentKind } from '@penstock/agent/component'
import { optionsOf } from '@penstock/agent/config/component-options'
import { findComponent } from '@penstock/agent/registry'
import { isTable, type Schema, schemaBelow } from '@penstock/agent/schema/walk'
import type { SecretPart, SecretPlace, SecretRef } from './artifact.ts'
import type { PathKey } from './resources.ts'

/** `SECRET[alias.key]`, `SECRET[alias.key|uri]` */
export const placeholder = /SECRET\[([\w-]+)\.([\w.-]+?)(\|\w+)?\]/g

export function isSecretPlace(value: unknown): value is SecretPlace {
  return isTable(value) && typeof value['$secret'] === 'string' && Object.keys(value).length === 1
}

/** Options with something in each secret's place; `undefined` leaves the option out. */
export function withSecrets(
  value: unknown,
  fill: (key: string, path: readonly PathKey[]) => string | undefined,
  path: readonly PathKey[] = [],
): unknown {
  if (isSecretPlace(value)) return fill(value.$secret, path)
  if (Array.isArray(value)) return value.map((item, index) => withSecrets(item, fill, [...path, index]))
  if (!isTable(value)) return value
  const members = Object.entries(value).map(
    ([name, member]) => [name, withSecrets(member, fill, [...path, name])] as const,
  )
  return Object.fromEntries(members.filter(([, member]) => member !== undefined))
}

/** Text that stands for a secret while options are checked: of the form that the option wants. */
export function standIn(kind: ComponentKind, type: string, path: readonly PathKey[], ref: SecretRef): string {
  const composed = ref.parts.length > 1
  if (composed) return ref.parts.map((part) => (typeof part === 'string' ? part : 'secret')).join('')
  const declaration = findComponent(kind, type)
  let schema: Schema | undefined = declaration === undefined ? undefined : optionsOf(declaration).schema
  for (const key of path) schema = schema === undefined ? undefined : schemaBelow(schema, key)
  if (schema?.['format'] === 'url') return 'https://secret.invalid'
  if (type === 'amqp' && path[0] === 'connection_string') return 'amqp://secret.invalid'
  return 'secret'
}

/** Every Secret and ConfigMap that options or aliases refer to, before anything is known to be right about them. */
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
  visit(spec)
  const aliases = isTable(spec) ? spec['secrets'] : undefined
  for (const alias of Array.isArray(aliases) ? aliases : []) {
    if (isTable(alias)) note('Secret', alias['namespace'], alias['secretName'])
  }
  return [...found.values()]
}
