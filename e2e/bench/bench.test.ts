import { expect, test } from 'vitest'
import { type CommandResult, execute, node } from '../command.ts'

const bench = (...args: readonly string[]): Promise<CommandResult> =>
  execute(node, ['--conditions=source', 'e2e/bench/bench.ts', ...args])

const fields = [
  'cores',
  'cpu_s_per_million',
  'doubled',
  'latency_avg_ms',
  'latency_p99_ms',
  'lines_per_s',
  'lost',
  'p_ns',
  'rss_max_mb',
  'rss_mean_mb',
  'start_cpu_s',
  'warmup_cpu_s',
]

test.each([
  { args: ['steady', '--for', '2', '--rate', '400'], lines: 800 },
  { args: ['steady', '--for', '2', '--rate', '400', '--mode', 'burst', '--format', 'raw'], lines: 800 },
])('npm run bench -- $args delivers each line once', async ({ args, lines }) => {
  const { code, stdout, stderr } = await bench(...args, '--json')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const figures = JSON.parse(stdout) as Record<string, unknown>
  expect(figures).toMatchObject({ scenario: 'steady', lines, lost: 0, doubled: 0 })
  for (const field of fields) expect(figures[field], field).toBeTypeOf('number')
  // The program of the other format parses no line.
  if (args.includes('raw')) expect(figures).not.toHaveProperty('byte_lane_share')
  else expect(figures['byte_lane_share']).toBeGreaterThanOrEqual(0.95)
})

test('peak delivers each line once', async () => {
  const { code, stdout, stderr } = await bench('peak', '--events', '5000', '--json')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  const figures = JSON.parse(stdout) as Record<string, unknown>
  expect(figures).toMatchObject({ scenario: 'peak', format: 'json', lost: 0, doubled: 0 })
  for (const field of fields) expect(figures[field], field).toBeTypeOf('number')
})

test.each([
  { fault: 'lose', problem: /^steady: Lost lines: [1-9]\d*\. Lines delivered again: 0\.$/m },
  { fault: 'repeat', problem: /^steady: Lost lines: 0\. Lines delivered again: [1-9]\d*\.$/m },
])('exit code 1 says that the receiver saw a fault: $fault', { timeout: 180_000 }, async ({ fault, problem }) => {
  const args = ['--conditions=source', 'e2e/bench/bench.ts', 'steady', '--for', '4', '--rate', '400', '--json']
  const env = {
    NODE_OPTIONS: `--import=${new URL('faulty-receiver.ts', import.meta.url)}`,
    PENSTOCK_BENCH_FAULT: fault,
  }
  const { code, stdout, stderr } = await execute(node, args, { env })
  expect(code).toBe(1)
  expect(stderr).toMatch(problem)
  expect(JSON.parse(stdout)).toMatchObject({ scenario: 'steady', cores: expect.any(Number) })
})

test('shared-3 delivers every line to each of its pipelines', async () => {
  const { code, stdout, stderr } = await bench('shared-3', '--events', '2000', '--runs', '1', '--json')
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  expect(JSON.parse(stdout)).toMatchObject({ scenario: 'shared-3', cpu_p: expect.any(Number) })
})

test('an unknown scenario is a usage error', async () => {
  const { code, stderr } = await bench('stedy')
  expect(code).toBe(2)
  expect(stderr).toContain('There is no scenario "stedy"')
})

test('a flag that the scenario does not support is a usage error', async () => {
  const { code, stderr } = await bench('keys', '--format', 'raw')
  expect(code).toBe(2)
  expect(stderr).toContain('keys does not support --format, which is for steady, peak.')
})
