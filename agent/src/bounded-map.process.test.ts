// Caches under data that never repeat, through the components and functions that have them.

import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import type { Finding } from './testing/hostile-keys.ts'

/** About twice what was measured; in brackets what it was before the bounds. */
const maxMb = {
  'columns of a table': 30, // (51)
  'field names': 3, // (7)
  'shapes of records': 6, // (60)
  patterns: 25, // (39)
  'long patterns': 25, // (209)
  'user agents': 10, // (28)
  'time zones': 10, // (36)
  schemas: 10, // (166)
  'long lines': 3, // (7)
  http: 20, // (30)
  search_engine: 30, // (51)
  log_aggregator: 30, // (210)
}

test('values without number cost no memory, and every result is right', () => {
  const script = fileURLToPath(new URL('testing/hostile-keys.ts', import.meta.url))
  const { stdout, stderr, status } = spawnSync(process.execPath, ['--conditions=source', '--expose-gc', script], {
    encoding: 'utf8',
  })
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' })
  const findings = stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Finding)
  expect(findings.map(({ name }) => name)).toEqual(Object.keys(maxMb))
  for (const { name, values, right, heldMb } of findings) {
    expect(right, name).toBe(values)
    expect(heldMb, name).toBeLessThan(maxMb[name as keyof typeof maxMb])
  }
})
