// The commands of a checkout, as a shell finds them: by a link, from any folder, and with a Node that is too old for them.

import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'penstock-bins-'))
afterAll(() => rmSync(folder, { recursive: true }))

const bins = ['agent', 'operator'].flatMap((workspace) => {
  const { bin } = JSON.parse(readFileSync(join(root, workspace, 'package.json'), 'utf8')) as {
    bin: Readonly<Record<string, string>>
  }
  return Object.entries(bin).map(([name, file]) => ({ name, file: join(root, workspace, file) }))
})

function linked(name: string, file: string, flags = '') {
  const link = join(folder, name)
  rmSync(link, { force: true })
  symlinkSync(file, link)
  const path = `${dirname(process.execPath)}:/usr/bin:/bin`
  return spawnSync(link, ['--help'], {
    cwd: folder,
    encoding: 'utf8',
    env: { PATH: path, HOME: folder, NODE_OPTIONS: flags },
  })
}

test.each(bins)('$name works through a link, from any folder', ({ name, file }) => {
  const { status, stdout, stderr } = linked(name, file)
  expect([status, stderr]).toEqual([0, ''])
  // All words are for completion there.
  if (name.startsWith('kubectl_complete-')) expect(stdout).toBe(':4\n')
  else expect(stdout).toContain('Usage: penstock')
})

test.each([
  'penstock list',
  'penstock completion bash',
  'penstock explain --schema',
  'penstock lint FILE',
  'penstock-agent list',
])('%s is silent if nobody reads its output', (words) => {
  const [name = '', ...args] = words.split(' ')
  const file = join(folder, 'first.yaml')
  if (args.includes('FILE')) spawnSync(bins.find((bin) => bin.name === 'penstock')?.file ?? '', ['init', file])
  const command = [bins.find((bin) => bin.name === name)?.file, ...args].join(' ').replace('FILE', file)
  const path = `${dirname(process.execPath)}:/usr/bin:/bin`
  const { stdout, stderr } = spawnSync('bash', ['-c', `${command} | true; echo "\${PIPESTATUS[0]}"`], {
    encoding: 'utf8',
    env: { PATH: path, HOME: folder },
  })
  expect([stdout, stderr]).toEqual(['0\n', ''])
})

test('the packages of the programs name the required Node version', () => {
  const root = join(import.meta.dirname, '../..')
  const check = readFileSync(join(root, 'agent/bin/node-version.js'), 'utf8')
  const needed = /const needed = \[(\d+), (\d+)\]/.exec(check)?.slice(1).join('.')
  // A checkout brings its own Node along, which an older one can install.
  for (const folder of ['agent', 'operator']) {
    const { engines } = JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))
    expect(engines, folder).toEqual({ node: `>=${needed}` })
  }
})

test.each(bins)('$name names the required Node version, without a stack', ({ name, file }) => {
  // The entry reads only the version of an old Node.
  const old = join(folder, 'old.cjs')
  writeFileSync(
    old,
    `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } })\n`,
  )

  const { status, stdout, stderr } = linked(name, file, `--require=${old}`)

  expect([status, stdout]).toEqual([69, ''])
  expect(stderr).toContain('needs Node 26.10 or newer; this is Node 20.20.2')
  expect(stderr).not.toContain('    at ')
})
