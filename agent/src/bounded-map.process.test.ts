// Caches under data that never repeat, through the components and functions that have them.

import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import type { Finding } from './testing/hostile-keys.ts'
import { developmentRooms, roomOf } from './testing/rooms.ts'

interface Bound {
  /** About twice what was measured; in brackets what it was before the bounds. */
  readonly maxMb: number
  /** Files whose bounded maps the case fills. */
  readonly fills?: readonly string[]
}

const bounds: Readonly<Record<string, Bound>> = {
  'columns of a table': { maxMb: 30, fills: ['enrichment/csv-table.ts'] }, // (51)
  'values of a table': { maxMb: 6 }, // (181)
  'field names': { maxMb: 3 }, // (7)
  'shapes of records': { maxMb: 6 }, // (60)
  'paths of files': { maxMb: 3, fills: ['tailing/reports.ts'] }, // (16)
  'answers of the network': { maxMb: 22, fills: ['remap/network.ts'] }, // (44)
  patterns: { maxMb: 25, fills: ['remap/regex.ts', 'formats/regex-linear.ts'] }, // (39)
  'long patterns': { maxMb: 25 }, // (209)
  'user agents': { maxMb: 10, fills: ['remap/functions/parse_user_agent.ts'] }, // (28)
  'user agents that are known': { maxMb: 8 },
  'keys of texts': { maxMb: 3 }, // (67)
  'time zones that are there': { maxMb: 3 },
  'time zones': { maxMb: 10, fills: ['formats/timezone.ts'] }, // (36)
  schemas: { maxMb: 10, fills: ['remap/functions/validate_json_schema.ts'] }, // (166)
  'long lines': { maxMb: 3 }, // (7)
  http: { maxMb: 20, fills: ['http/sink.ts'] }, // (30)
  search_engine: { maxMb: 30, fills: ['sinks/search_engine/action-lines.ts'] }, // (51)
  log_aggregator: { maxMb: 30, fills: ['sinks/log_aggregator/entries.ts'] }, // (210)
  'search_engine, short names': { maxMb: 28 }, // (73)
  'log_aggregator, short names': { maxMb: 8 }, // (66)
}

test('every bounded map has a case', () => {
  const files = globSync('**/*.ts', { cwd: import.meta.dirname }).filter(
    (file) =>
      !file.endsWith('.test.ts') &&
      !developmentRooms.includes(roomOf(file)) &&
      readFileSync(join(import.meta.dirname, file), 'utf8').includes('new BoundedMap'),
  )
  expect(
    Object.values(bounds)
      .flatMap(({ fills = [] }) => fills)
      .toSorted(),
  ).toEqual(files.toSorted())
})

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
  expect(findings.map(({ name }) => name)).toEqual(Object.keys(bounds))
  for (const { name, values, right, heldMb } of findings) {
    expect(right, name).toBe(values)
    expect(heldMb, name).toBeLessThan(bounds[name]?.maxMb ?? 0)
  }
})
