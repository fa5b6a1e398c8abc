// Copies of the components before a `reduce` that joins lines, if other components read them, too: the others read single lines.

import { globPattern, isPattern } from '@penstock/agent/config'
import { withPaths } from '../documents.ts'
import type { Gap } from '../draft.ts'
import { joinable } from './joining.ts'
import type { Matching } from './joining-path.ts'
import { type Old, ownerOf } from './old.ts'

/** All components, with copies of those that a `reduce` that joins lines shares with others. */
export function withOwnSources(olds: readonly Old[], matching: Matching, gaps: Gap[]): readonly Old[] {
  let all = olds
  for (const { id } of olds.filter(({ type }) => type === 'reduce')) {
    const reduce = all.find((old) => old.kind === 'transforms' && old.id === id)
    const joining = reduce === undefined ? undefined : joinable(reduce, all, matching)
    if (reduce === undefined || joining === undefined) continue
    const { shared, path } = joining.upstream
    const names = new Map(shared.map((old) => [old.id, `${old.id}-${id}`]))
    const patterns = all.flatMap(({ inputs }) => inputs.filter(isPattern))
    // A pattern that another component reads by would match a copy, too.
    const isUnclear = [...names.values()].some((name) => patterns.some((each) => globPattern(ownerOf(each)).test(name)))
    const hasPattern = [reduce, ...path].some(({ inputs }) => inputs.some(isPattern))
    if (shared.length === 0 || isUnclear || hasPattern) continue
    const renamed = (input: string) => {
      const owner = names.has(input) ? input : ownerOf(input)
      const name = names.get(owner)
      return name === undefined ? input : `${name}${input.slice(owner.length)}`
    }
    const own = ({ inputs }: Old) => inputs.map(renamed)
    const keeps = (old: Old) => (old === reduce || path.has(old)) && !shared.includes(old)
    const copies = shared.map((old) => copyOf(old, names.get(old.id) ?? old.id, own(old)))
    all = [...all.map((old) => (keeps(old) ? { ...old, inputs: own(old) } : old)), ...copies]
    const sources = shared.filter(({ kind }) => kind === 'sources').map((old) => `\`${old.id}\``)
    gaps.push({
      file: reduce.root.file,
      line: reduce.root.lineOf([reduce.kind, reduce.id]),
      subject: reduce.id,
      reason: `other components read single lines of ${sources.join(', ')}, so a second source reads the same files`,
      nearest: 'Set a `selector` in both sources, so that each container is read only once.',
      isReplaced: true,
    })
  }
  return all
}

/** The same component under another name, with the places of the first. */
const copyOf = (old: Old, id: string, inputs: readonly string[]): Old => ({
  ...old,
  id,
  inputs,
  root: {
    ...old.root,
    ...withPaths(old.root, (path) => path.map((segment, index) => (index === 1 && segment === id ? old.id : segment))),
  },
})
