// The components between sources and a `reduce` that joins lines. If each of them treats all lines of a stream alike, it gives the same
// result after the lines are joined.

import { compileCondition, compileProgram, isPattern, readsOf } from '@penstock/agent/config'
import { isTable } from '@penstock/agent/schema'
import { conditionOf } from './conditions.ts'
import { type Old, ownerOf } from './old.ts'

/** Returns the outputs that an input matches. */
export type Matching = (input: string) => readonly string[]

export interface Upstream {
  /** All sources and transforms before it. */
  readonly path: ReadonlySet<Old>
  readonly sources: readonly Old[]
  /** Root fields that the transforms change. */
  readonly changed: ReadonlySet<string>
  /** Sources and transforms that need a copy, because other components read them. */
  readonly shared: readonly Old[]
}

const root = (path: string) => path.replace(/^\./, '').replace(/[.["].*$/s, '')

/** Root fields whose values differ between the lines of a stream. */
const varying = (sources: readonly Old[]): ReadonlySet<string> =>
  new Set([
    ...['message', 'timestamp'],
    ...sources.flatMap(({ options }) =>
      ['offset_key', 'ingestion_timestamp_field'].flatMap((name) =>
        typeof options[name] === 'string' ? [root(options[name])] : [],
      ),
    ),
  ])

/** The root fields that a transform reads and changes; undefined if they are not known, or if it is of another type. */
function effectsOf({ type, options }: Old): { reads: readonly string[]; changes: readonly string[] } | undefined {
  if (type === 'remap') {
    const { source } = options
    const compiled = typeof source === 'string' ? compileProgram(source) : undefined
    if (compiled?.ok !== true) return undefined
    const reads = readsOf(compiled.program)
    const { changes } = compiled.program
    return reads.ok && changes !== undefined ? { reads: reads.fields, changes } : undefined
  }
  const { condition, route, routes } = options
  const conditions =
    type === 'filter'
      ? [condition]
      : type === 'route' && isTable(route)
        ? Object.values(route)
        : type === 'exclusive_route' && Array.isArray(routes)
          ? routes.map((each) => (isTable(each) ? each['condition'] : undefined))
          : [undefined]
  const reads = conditions.map((each) => {
    const text = conditionOf(each)
    const compiled = text === undefined ? undefined : compileCondition(text)
    return compiled?.ok === true && compiled.condition.reads.ok ? compiled.condition.reads.fields : undefined
  })
  return reads.includes(undefined) ? undefined : { reads: reads.flatMap((each) => each ?? []), changes: [] }
}

/** The components whose outputs an input names; undefined for one that does not exist. A pattern does not name the component that reads by it. */
function readBy(reader: Old, input: string, olds: readonly Old[], matching: Matching): readonly (Old | undefined)[] {
  const emitting = olds.filter(({ kind }) => kind !== 'sinks')
  return matching(input)
    .map((output) => emitting.find(({ id }) => id === output || id === ownerOf(output)))
    .filter((each) => each !== reader || !isPattern(input))
}

/** The components before a `reduce`; undefined if one of them must get single lines. */
export function upstreamOf(reduce: Old, olds: readonly Old[], matching: Matching): Upstream | undefined {
  const before = (old: Old) => old.inputs.flatMap((input) => readBy(old, input, olds, matching))
  const found = new Set<Old>()
  const left = [reduce]
  for (let old = left.pop(); old !== undefined; old = left.pop()) {
    for (const each of before(old)) {
      if (each === undefined || each === reduce) return undefined
      if (found.has(each)) continue
      found.add(each)
      left.push(each)
    }
  }
  const sources = [...found].filter(({ kind }) => kind === 'sources')
  const differing = varying(sources)
  const changed = new Set<string>()
  for (const transform of found) {
    if (transform.kind === 'sources') continue
    const effects = effectsOf(transform)
    if (effects === undefined || [...effects.reads, ...effects.changes].some((name) => differing.has(name)))
      return undefined
    for (const name of effects.changes) changed.add(name)
  }
  const readers = new Map<Old, Old[]>([...found].map((each) => [each, []]))
  for (const old of olds) for (const each of before(old)) if (each !== undefined) readers.get(each)?.push(old)
  const shared = new Set<Old>()
  for (let size = -1; size !== shared.size; ) {
    size = shared.size
    for (const [each, all] of readers)
      if (all.some((reader) => (reader !== reduce && !found.has(reader)) || shared.has(reader))) shared.add(each)
  }
  return { path: found, sources, changed, shared: [...shared] }
}
