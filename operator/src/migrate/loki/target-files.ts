// Files of targets, which `file_sd_configs` and `discovery.file` name: YAML or JSON with groups of targets and their labels.

import type { Included, NamedText } from '../draft.ts'
import { below, isList, isMap, itemsOf, type Tree } from './tree.ts'
import { treesOf } from './yaml.ts'

/** The groups of a file of targets; undefined for other files. */
function groupsOf(given: NamedText): readonly Tree[] | undefined {
  if (!/\.(?:ya?ml|json)$/i.test(given.file)) return undefined
  const [tree, ...more] = treesOf(given, [])
  if (!isList(tree) || more.length > 0) return undefined
  const groups = itemsOf(tree)
  const isGroup = (group: Tree) => isMap(below(group, 'labels')) || isList(below(group, 'targets'))
  return groups.length > 0 && groups.every(isGroup) ? groups : undefined
}

export const isTargetFile = (given: NamedText): boolean => groupsOf(given) !== undefined

/**
 * The groups of the files that match a path or pattern: those among the given files, which may be elsewhere than where the agent reads
 * them, or files beside the configuration. Undefined if there are none.
 */
export function targetGroups(
  path: string,
  from: string,
  files: readonly NamedText[],
  included: Included,
): readonly Tree[] | undefined {
  const base = path.split('/').at(-1) ?? path
  const pattern = new RegExp(`^${base.split('*').map(RegExp.escape).join('.*')}$`)
  const groupsIn = (all: readonly NamedText[]) => all.flatMap((each) => groupsOf(each) ?? [])
  const given = groupsIn(files.filter(({ file }) => file !== from && pattern.test(file.split('/').at(-1) ?? '')))
  if (given.length > 0) return given
  const beside = path.startsWith('/') ? [] : groupsIn(included(path, from))
  return beside.length > 0 ? beside : undefined
}
