// Names of components: the id by which others refer to one, and the wanted name of its counterpart.

import type { Block } from './syntax.ts'

export function idOf({ name, label }: Block): string {
  return label === undefined ? name : `${name}.${label}`
}

export function nameOf({ name, label }: Block): string {
  const kind = name.split('.').at(-1) ?? name
  return label === undefined || label === 'default' ? kind : `${kind}-${label}`
}
