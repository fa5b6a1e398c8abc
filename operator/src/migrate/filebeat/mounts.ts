// Files out of Secrets that are mounted into the pods of Filebeat. A sink reads the key of the Secret, because the agent does not have the file.

import type { NamedText, SecretKey } from '../draft.ts'
import { below, isList, isMap, itemsOf, type Tree, textOf } from '../loki/tree.ts'
import { documentsOf } from './read.ts'

/** A Secret at a path: its files, or with `file` only one of them. */
interface Mount {
  readonly path: string
  readonly file: string | undefined
  readonly secret: string
  /** Keys by the names of their files, if these differ. */
  readonly keys: ReadonlyMap<string, string>
  readonly namespace: string | undefined
  readonly place: Tree
}

/** Names of lists with volumes, and of the lists that mount them. */
const pairs = [
  ['volumes', 'volumeMounts'],
  ['extraVolumes', 'extraVolumeMounts'],
] as const

/** The Secrets that chart values and pods mount. */
export function mountsIn(given: NamedText): readonly Mount[] {
  if (!/\bsecretName\b/.test(given.text)) return []
  return documentsOf(given, []).flatMap((tree) => mountsBelow(tree, textOf(below(tree, 'metadata', 'namespace'))))
}

function mountsBelow(tree: Tree, namespace: string | undefined): readonly Mount[] {
  if (isList(tree)) return tree.value.flatMap((item) => mountsBelow(item, namespace))
  if (!isMap(tree)) return []
  const ofChart = itemsOf(below(tree, 'secretMounts')).flatMap((item) =>
    mountOf(item, textOf(below(item, 'secretName')), below(item, 'path'), new Map(), namespace),
  )
  const containers = ['containers', 'initContainers'].flatMap((name) => itemsOf(below(tree, name)))
  const mounted = pairs.flatMap(([volumes, mounts]) =>
    [tree, ...containers]
      .flatMap((each) => itemsOf(below(each, mounts)))
      .flatMap((item) => {
        const name = textOf(below(item, 'name'))
        const volume = itemsOf(below(tree, volumes)).find((each) => textOf(below(each, 'name')) === name)
        const secret = below(volume, 'secret')
        const keys = itemsOf(below(secret, 'items')).map(
          (each) => [textOf(below(each, 'path')) ?? '', textOf(below(each, 'key')) ?? ''] as const,
        )
        return mountOf(item, textOf(below(secret, 'secretName')), below(item, 'mountPath'), new Map(keys), namespace)
      }),
  )
  return [...ofChart, ...mounted, ...[...tree.value.values()].flatMap((item) => mountsBelow(item, namespace))]
}

function mountOf(
  item: Tree,
  secret: string | undefined,
  path: Tree | undefined,
  keys: ReadonlyMap<string, string>,
  namespace: string | undefined,
): readonly Mount[] {
  const at = textOf(path)?.replace(/\/+$/, '')
  if (secret === undefined || at === undefined) return []
  return [{ path: at, file: textOf(below(item, 'subPath')), secret, keys, namespace, place: item }]
}

/** The key of a Secret that is a file at a path. */
function keyAt(path: string, mounts: readonly Mount[]): SecretKey | undefined {
  for (const { path: at, file, secret, keys, namespace, place } of mounts) {
    const found =
      file === undefined ? (path.startsWith(`${at}/`) ? path.slice(at.length + 1) : '') : path === at ? file : ''
    if (found === '' || found.includes('/')) continue
    return { name: secret, key: keys.get(found) ?? found, namespace, file: place.file, line: place.line }
  }
  return undefined
}

/**
 * The configuration with variables in place of the files of its output that Secrets contain.
 * @param secrets receives the keys of these variables
 */
export function withMounted(config: Tree, mounts: readonly Mount[], secrets: Map<string, SecretKey>): Tree {
  if (mounts.length === 0) return config
  const replaced = (tree: Tree): Tree => {
    if (isList(tree)) return { ...tree, value: tree.value.map(replaced) }
    if (isMap(tree)) return { ...tree, value: new Map([...tree.value].map(([name, item]) => [name, replaced(item)])) }
    const key = keyAt(textOf(tree) ?? '', mounts)
    if (key === undefined) return tree
    const variable = `${key.name}_${key.key}`.replace(/\W+/g, '_').toUpperCase()
    secrets.set(variable, key)
    return { ...tree, value: `\${${variable}}` }
  }
  return changedAt(config, ['output', 'elasticsearch', 'ssl'], replaced)
}

/** The tree with another value at a path. */
function changedAt(tree: Tree, [name, ...rest]: readonly string[], change: (tree: Tree) => Tree): Tree {
  if (name === undefined) return change(tree)
  const item = below(tree, name)
  if (!isMap(tree) || item === undefined) return tree
  return { ...tree, value: new Map([...tree.value, [name, changedAt(item, rest, change)]]) }
}
