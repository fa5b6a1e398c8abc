// Work that agents do themselves: they serve their own metrics, so exporters of these metrics are not needed.

import { type Old, ownerOf } from './old.ts'

/** @param matching the outputs that an input matches */
export function workOfAgents(
  olds: readonly Old[],
  matching: (input: string) => readonly string[],
): { readonly exporters: readonly Old[]; readonly all: ReadonlySet<Old> } {
  const isOwn = (id: string): boolean => {
    const old = olds.find((each) => each.id === ownerOf(id))
    if (old === undefined) return false
    if (old.kind === 'sources') return old.type === 'internal_metrics'
    return old.inputs.length > 0 && old.inputs.every(isOwn)
  }
  const exporters = olds.filter(
    ({ kind, type, inputs }) =>
      kind === 'sinks' &&
      type === 'prometheus_exporter' &&
      inputs.length > 0 &&
      inputs.every((input) => matching(input).every(isOwn)),
  )
  const all = new Set(exporters)
  // A component that feeds nothing else is also removed.
  for (let size = -1; size !== all.size; ) {
    size = all.size
    for (const old of olds) {
      if (all.has(old) || old.kind === 'sinks' || !isOwn(old.id)) continue
      const readers = olds.filter(({ inputs }) =>
        inputs.some((input) => matching(input).some((output) => ownerOf(output) === old.id)),
      )
      if (readers.length > 0 && readers.every((reader) => all.has(reader))) all.add(old)
    }
  }
  return { exporters, all }
}
