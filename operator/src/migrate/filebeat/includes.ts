// Files with inputs and modules that `filebeat.config` names: given files, files beside the configuration, and other keys of a ConfigMap or
// of chart values.

import type { Gap, Included, NamedText } from '../draft.ts'
import { below, isList, isMap, itemsOf, type Tree, textOf } from '../loki/tree.ts'
import { embedded, treesOf } from '../loki/yaml.ts'
import { asFilebeat, expanded } from './read.ts'

/** A list in a file, with the name of the file. */
interface Listed {
  readonly name: string
  readonly tree: Tree
}

const nameOf = (path: string) => path.split(/[\\/]/).at(-1) ?? path

/** The lists of a given file, or of the files in a ConfigMap or in chart values. */
function listsIn(given: NamedText): readonly Listed[] {
  if (!/\.ya?ml$/i.test(given.file)) return []
  return treesOf(given, [], asFilebeat).flatMap((tree): readonly Listed[] => {
    if (isList(tree)) return [{ name: nameOf(given.file), tree }]
    const files = [
      ...(textOf(below(tree, 'kind')) === 'ConfigMap' ? [below(tree, 'data')] : []),
      below(tree, 'daemonset', 'filebeatConfig'),
      below(tree, 'deployment', 'filebeatConfig'),
      below(tree, 'filebeatConfig'),
    ]
    return files.flatMap((table) =>
      (isMap(table) ? [...table.value] : []).flatMap(([name, item]) => {
        const inner = embedded(item, [], asFilebeat)
        return isList(inner) ? [{ name, tree: inner }] : []
      }),
    )
  })
}

/** The items of the files at a path, which may be a pattern. */
export type Find = (path: string, from: string, gaps: Gap[]) => readonly Tree[]

/** Finds files among the given ones by their names, and other files at their paths. */
export function finderOf(files: readonly NamedText[], included: Included): Find {
  const lists = files.flatMap(listsIn)
  return (path, from, gaps) => {
    const pattern = new RegExp(`^${nameOf(path).split('*').map(RegExp.escape).join('.*')}$`)
    const own = lists.filter(({ name }) => pattern.test(name)).map(({ tree }) => tree)
    const relative = path.replace(/^(?:\$\{path\.\w+\}|\.)\//, '')
    const others = relative.startsWith('/') || relative.includes('$') ? [] : included(relative, from)
    const read = others.filter(({ file }) => !own.some((tree) => nameOf(tree.file) === nameOf(file)))
    const found = [...own, ...read.flatMap((each) => treesOf(each, gaps, asFilebeat))]
    return found.flatMap(itemsOf).map(expanded)
  }
}

/** Whether a module or a file set is not turned off. */
export const isEnabled = (part: Tree): boolean => textOf(below(part, 'enabled')) !== 'false'

/** Whether a module reads at least one file set. */
export function readsSomething(module: Tree): boolean {
  const sets = isMap(module) ? [...module.value.values()].filter(isMap) : []
  return isEnabled(module) && (sets.length === 0 || sets.some(isEnabled))
}
