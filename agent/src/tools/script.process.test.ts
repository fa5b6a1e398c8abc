// The scripts of the repository, called with mistakes.

import { spawnSync } from 'node:child_process'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'

const root = fileURLToPath(new URL('../../..', import.meta.url))

function called(script: string, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--conditions=source', script, ...args], {
    cwd: root,
    encoding: 'utf8',
  })
  return { status, stdout, stderr }
}

const scripts = [
  {
    script: 'agent/src/bench/bench-budgets.ts',
    usage: 'npx node --conditions=source agent/src/bench/bench-budgets.ts [--rounds N] [--only TEXT]',
  },
  { script: 'agent/src/conformance/conformance.ts', usage: 'npm run conformance -- remap|wire DIR [--only STEM,…]' },
  { script: 'agent/src/fuzz/fuzz.ts', usage: 'npm run fuzz -- [--seconds N] [--seed N] [--cases N]' },
  { script: 'agent/src/fuzz/fuzz-lanes.ts', usage: 'npm run fuzz:lanes -- [--seconds N] [--seed N] [--cases N]' },
  {
    script: 'e2e/bench/bench.ts',
    usage:
      'npm run bench -- SCENARIO… [--json] [--for SECONDS] [--events N] [--runs N] [--mode MODE] [--format FORMAT] [--rate N]',
  },
  { script: 'e2e/cluster/cluster.ts', usage: 'npm run cluster -- up|down [--nodes N]' },
  {
    script: 'e2e/faults/kills.ts',
    usage: 'npx node --conditions=source e2e/faults/kills.ts [--kills N] [--seed N]',
  },
  {
    script: 'operator/src/fuzz/fuzz-tenants.ts',
    usage: 'npm run fuzz:tenants -- [--cases N] [--seed N] [--go-on]',
  },
  {
    script: 'e2e/faults/lane-kills.ts',
    usage: 'npx node --conditions=source e2e/faults/lane-kills.ts [--kills N] [--seed N]',
  },
  { script: 'e2e/bench/soak.ts', usage: 'npm run soak -- [--minutes N] [--rate N]' },
  {
    script: 'e2e/operator/scale.ts',
    usage:
      'npm run scale -- [--pipelines N] [--namespaces N] [--agents N] [--churn N] [--for SECONDS] [--delivery HOW] [--pods N] [--look SECONDS] [--kill WHAT]',
  },
  { script: 'operator/src/tools/screens.ts', usage: 'npm run screens -- [--check] [--only NAME]' },
  { script: 'e2e/run-tests.ts', usage: 'npm test -- [--only STAGE]' },
]

test('the list contains all scripts of package.json and all other scripts with a table of flags', () => {
  const { scripts: commands } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
    scripts: Record<string, string>
  }
  const named = Object.values(commands).flatMap((line) => /^node --conditions=source (\S+)$/.exec(line)?.[1] ?? [])
  const inTables = globSync('{agent,operator}/src/**/*.ts', { cwd: root })
    .concat(globSync('e2e/**/*.ts', { cwd: root, exclude: ['**/node_modules'] }))
    .filter((path) => /^\s*await runScript\(/m.test(readFileSync(join(root, path), 'utf8')))
  expect(scripts.map(({ script }) => script).toSorted()).toEqual([...new Set([...named, ...inTables])].toSorted())
})

test.each(scripts)('$script prints its usage', ({ script, usage }) => {
  const { status, stdout, stderr } = called(script, '--help')
  expect([status, stderr]).toEqual([0, ''])
  expect(stdout.split('\n')[0]).toBe(`Usage: ${usage}`)
  expect(stdout).toContain('-h, --help')
})

test.each([
  {
    script: 'agent/src/bench/bench-budgets.ts',
    args: ['--only', 'nope'],
    says: '--only is "nope"; the programs are edit fields;',
  },
  {
    script: 'agent/src/conformance/conformance.ts',
    args: ['remap', 'nowhere'],
    says: 'DIR is "nowhere", which cannot be read',
  },
  {
    script: 'agent/src/conformance/conformance.ts',
    args: ['wire', 'e2e/conformance/wire', '--only', 'codec,nope*'],
    says: '--only is "codec,nope*"; "nope*" matches none of codec, log_aggregator,',
  },
  { script: 'agent/src/fuzz/fuzz.ts', args: ['60'], says: 'Unexpected argument "60"; only flags are allowed.' },
  { script: 'operator/src/fuzz/fuzz-tenants.ts', args: ['--cases', '0'], says: '--cases is "0"' },
  { script: 'e2e/bench/bench.ts', args: ['tail', 'nope'], says: 'There is no scenario "nope": steady, peak,' },
  { script: 'e2e/cluster/cluster.ts', args: ['down', '--nodes', '2'], says: '--nodes belongs to `up`.' },
  { script: 'e2e/faults/kills.ts', args: ['--nope'], says: 'There is no flag `--nope`. See `--help`.' },
  {
    script: 'e2e/operator/scale.ts',
    args: ['--kill', 'nobody'],
    says: '--kill is "nobody"; it must be one of process,',
  },
  {
    script: 'e2e/operator/scale.ts',
    args: ['--churn', '0'],
    says: '--churn is "0"; it must be a whole number from 1.',
  },
  { script: 'e2e/run-tests.ts', args: ['--only', 'nope'], says: '--only is "nope"; it must be one of unit,' },
])('$script $args is rejected', ({ script, args, says }) => {
  const { status, stdout, stderr } = called(script, ...args)
  expect([status, stdout]).toEqual([2, ''])
  const [first, second] = stderr.split('\n')
  expect(first).toContain(says)
  expect(second).toBe(`Usage: ${scripts.find((one) => one.script === script)?.usage}`)
})
