// Tables of `kubectl get`: each column is as wide as its longest cell, with three spaces between columns.

import { expect, test } from 'vitest'
import { kinds } from './kinds.ts'

/** A long but realistic cell for each column that appears without `-o wide`. */
const longest: Readonly<Record<string, string>> = {
  Ready: 'Unknown',
  Flowing: 'Unknown',
  Reachable: 'Unknown',
  Agents: '1000/1000',
  Nodes: '1000/1000',
  Pipelines: '5000',
  Namespaces: '500',
  Mode: 'Aggregator',
  Type: 'remote_write_metrics',
  Revision: '0123456789ab',
  Age: '364d',
}

/** The longest name that a label can contain. Most names in Kubernetes stay within this length. */
const maxNameLength = 63

test.each(kinds.map((kind) => [kind.kind, kind] as const))('kubectl get %s fits 120 characters', (_, kind) => {
  const shown = kind.columns.filter(({ priority = 0 }) => priority === 0)
  const widths = shown.map(({ name }) => {
    const cell = longest[name]
    if (cell === undefined)
      throw new Error(
        `Column ${name} of ${kind.kind} has no longest cell in operator/src/api/columns.test.ts; add one.`,
      )
    return Math.max(name.length, cell.length)
  })
  const line = [maxNameLength, ...widths]
  expect(line.reduce((sum, width) => sum + width + 3, -3)).toBeLessThanOrEqual(120)
})
