// Caches under data that never repeat, through the components and functions that have them. Without bounds in bytes these cases
// held up to 330 MB.

import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { expect, test, vi } from 'vitest'
import type { Finding } from './testing/hostile-keys.ts'

vi.setConfig({ testTimeout: 180_000 })

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
  expect(findings.map(({ name }) => name)).toEqual([
    'patterns',
    'long patterns',
    'user agents',
    'time zones',
    'schemas',
    'http',
    'search_engine',
    'log_aggregator',
  ])
  for (const { name, values, right, heldMb } of findings) {
    expect(right, name).toBe(values)
    expect(heldMb, name).toBeLessThan(25)
  }
})
