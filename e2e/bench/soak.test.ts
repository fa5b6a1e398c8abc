import { expect, test } from 'vitest'
import { execute, node } from '../command.ts'

test('npm run soak delivers each line once, together with hostile pipelines', { timeout: 900_000 }, async () => {
  const args = ['--conditions=source', 'e2e/bench/soak.ts', '--minutes', '0.15', '--rate', '200']
  const { code, stdout, stderr } = await execute(node, args, { timeoutMs: 800_000 })
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const figures = JSON.parse(stdout) as Record<string, number>
  expect(figures).toMatchObject({ scenario: 'soak-hostile', lines: 1800, lost: 0, doubled: 0 })
  expect(figures['hostile_lines']).toBeGreaterThan(100)
  // The hostile pipelines use all the CPU they get, but not unlimited memory.
  expect(figures['rss_max_mb']).toBeLessThan(400)
})
