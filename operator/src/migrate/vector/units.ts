// Several configurations at once, such as those of an agent and of an aggregator in the values of one chart. Their components may have the
// same ids, and a pattern in `inputs` matches only those of its own configuration.

import { isTable } from '@penstock/agent/schema'
import type { Root } from './read.ts'

const idsIn = ({ config }: Root): readonly string[] =>
  ['sources', 'transforms', 'sinks'].flatMap((kind) => Object.keys(isTable(config[kind]) ? config[kind] : {}))

/** The parts of each configuration. Parts without an id in common, such as the files of a folder, are one configuration. */
export function unitsOf(roots: readonly Root[]): readonly (readonly Root[])[] {
  const units = [...Map.groupBy(roots, ({ unit }) => unit).values()]
  const ids = units.map((unit) => new Set(unit.flatMap(idsIn)))
  const isShared = ids.some((own, index) => ids.slice(0, index).some((other) => !own.isDisjointFrom(other)))
  const whole = units.filter((unit) => unit.some(({ isWhole }) => isWhole === true))
  return isShared || whole.length > 1 ? units : [roots]
}
