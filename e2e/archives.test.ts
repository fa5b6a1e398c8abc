// The release files for users, built from this checkout: an archive with its own Node works in an empty folder without Node, and
// package managers receive these files.

import { createHash } from 'node:crypto'
import { readFileSync, symlinkSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { version } from '@penstock/agent/program'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { command, execute, node, root } from './command.ts'
import { onArchive } from './documents/on-archive.ts'
import { isOf, shellBlocks } from './documents.ts'

const platform = `${process.platform}-${process.arch}`
const pinned = JSON.parse(readFileSync(join(root, '.ci/node.json'), 'utf8'))
const script = join(root, '.ci/archives.mjs')
const downloads = 'https://git.example/penstock/v1'
const blocks = await shellBlocks()
const missing = pinned.platforms[platform] === undefined ? `there is no archive for ${platform}` : undefined

test('archives for all platforms contain the Node version with which the sources are tested, from one package', () => {
  const lock = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')).packages
  expect(pinned.version).toBe(lock['node_modules/node'].version)
  const platforms = Object.entries<{ integrity: string }>(pinned.platforms)
  expect(platforms.map(([name]) => name)).toEqual([
    'linux-x64',
    'linux-arm64',
    'darwin-x64',
    'darwin-arm64',
    'win32-x64',
  ])
  for (const [, { integrity }] of platforms) expect(integrity).toMatch(/^sha512-[\w+/]{86}==$/)
})

test.each([
  { args: [], problem: '--out is missing' },
  { args: ['--out', 'x', '--platforms', 'linux-x64,amiga'], problem: 'found "amiga"' },
  { args: ['--out', 'x', '--downloads', 'http://example.org'], problem: '--downloads must be an https URL' },
  { args: ['--out', 'x', '--node', node], problem: `--node is a Node of this machine: use it with --platforms` },
  { args: ['--out', 'x', '--force'], problem: '--force' },
])('$args is refused', async ({ args, problem }) => {
  const { code, stderr } = await execute(node, [script, ...args], { cwd: tmpdir() })
  expect(code).toBe(2)
  expect(stderr).toContain(problem)
  expect(stderr).toContain('Usage: node .ci/archives.mjs')
})

describe.skipIf(missing !== undefined)(`an archive${missing === undefined ? '' : ` (${missing})`}`, () => {
  let folder: string
  let out: string
  let home: string
  let env: NodeJS.ProcessEnv
  const name = `penstock-${version}-${platform}`

  beforeAll(async () => {
    folder = await mkdtemp(join(process.env['PENSTOCK_TEST_RUN'] ?? tmpdir(), 'archives-'))
    out = join(folder, 'out')
    const args = ['--out', out, '--platforms', platform, '--node', node, '--downloads', downloads]
    await command(node, [script, ...args])
    home = join(folder, 'home')
    await mkdir(join(home, 'tools'), { recursive: true })
    await command('tar', ['-xzf', join(out, `${name}.tar.gz`), '-C', home])
    // Only the programs that it needs to start, without Node.
    for (const tool of ['sh', 'readlink', 'dirname'])
      symlinkSync((await command('sh', ['-c', `command -v ${tool}`])).trim(), join(home, 'tools', tool))
    env = { PATH: join(home, 'tools'), HOME: home, NODE_OPTIONS: undefined }
  })
  afterAll(() => rm(folder, { recursive: true, force: true }))

  const penstock = (...args: string[]) =>
    execute(join(home, name, 'bin/penstock'), args, { cwd: join(home, name), env })

  test('runs without Node: it prints its version, and validates and runs the included example', async () => {
    await expect(execute('node', ['--version'], { env, cwd: home })).rejects.toThrow('ENOENT')
    expect(await penstock('version')).toMatchObject({ code: 0, stdout: `penstock ${version}\n`, stderr: '' })
    expect(await penstock('lint', 'examples/quickstart')).toMatchObject({ code: 0, stderr: '' })
    const ran = await penstock('run', '-f', 'examples/quickstart', '--for', '2s', '-o', 'json')
    expect(ran.code, ran.stderr).toBe(0)
    expect(JSON.parse(ran.stdout.split('\n')[0] ?? '')).toMatchObject({ app: expect.stringMatching(/web|payments/) })
    // The archive contains the suggested command.
    expect(ran.stderr).toContain('  penstock-agent top --url')
  })

  test('works as a kubectl plugin through a link from another folder, and contains the agent', async () => {
    const bin = join(home, 'bin')
    await mkdir(bin)
    symlinkSync(join('..', name, 'bin/kubectl-penstock'), join(bin, 'linked'))
    symlinkSync('linked', join(bin, 'kubectl-penstock'))
    symlinkSync(join(home, name, 'bin/penstock-agent'), join(bin, 'penstock-agent'))
    const options = { env: { ...env, PATH: `${bin}:${env['PATH']}` }, cwd: folder }
    const plugin = await execute('sh', ['-c', 'kubectl-penstock version && penstock-agent --version'], options)
    expect(plugin).toMatchObject({ code: 0, stdout: `penstock ${version}\npenstock-agent ${version}\n`, stderr: '' })
    symlinkSync(join(home, name, 'bin/kubectl_complete-penstock'), join(bin, 'kubectl_complete-penstock'))
    const completed = await execute('sh', ['-c', 'kubectl_complete-penstock sta'], options)
    expect(completed).toMatchObject({ code: 0, stdout: expect.stringMatching(/^status\t.*\n:4\n$/), stderr: '' })
  })

  test.skipIf(platform !== 'linux-x64').each(onArchive)('the commands of $page install it: $block', async (step) => {
    const text = blocks.find((one) => isOf(one, step))?.text ?? ''
    await command('sh', ['-c', 'sha256sum -- *.* >checksums.txt'], { cwd: out })
    const bin = join(folder, 'usr/local/bin')
    for (const path of [bin, join(folder, 'opt')]) await mkdir(path, { recursive: true })
    const programs = { sudo: 'exec "$@"', kubectl: 'plugin=kubectl-$1; shift; exec "$plugin" "$@"' }
    for (const [name, program] of Object.entries(programs))
      await writeFile(join(bin, name), `#!/bin/sh\n${program}\n`, { mode: 0o755 })
    // Install to a folder of this test instead of the whole machine.
    const here = text.replaceAll('VERSION', version).replaceAll(/(?<= )\/(?=opt|usr)/g, `${folder}/`)
    const options = { cwd: out, env: { PATH: `${bin}:${process.env['PATH']}` } }
    const { code, stdout, stderr } = await execute('bash', ['-e', '-c', here], options)
    expect(code, `${here}\n${stdout}${stderr}`).toBe(0)
    expect(stdout).toMatch(/: OK$|^penstock \d.*Usage: /ms)
  })

  test('contains the libraries that components load lazily', async () => {
    const late = await readdir(join(home, name, 'lib/node_modules'))
    expect(late).toEqual(expect.arrayContaining(['@aws-sdk', 'amqplib', 'tslib']))
    const load = `for (const name of ['@aws-sdk/client-sqs', 'amqplib']) await import(name)`
    const program = ['--input-type=module', '--eval', load]
    const loaded = await execute(join(home, name, 'lib/node'), program, { cwd: join(home, name, 'lib/operator'), env })
    expect(loaded).toMatchObject({ code: 0, stderr: '' })
  })

  test('the npm package has the same commands, and depends on the libraries that it loads lazily', async () => {
    await command('tar', ['-xzf', join(out, `penstock-cli-${version}.tgz`), '-C', home])
    const manifest = JSON.parse(readFileSync(join(home, 'package/package.json'), 'utf8'))
    expect(manifest).toMatchObject({ name: '@penstock/cli', version, engines: { node: '>=26.10' } })
    expect(Object.keys(manifest.dependencies)).toEqual(['@aws-sdk/client-sqs', 'amqplib'])
    for (const bin of ['penstock', 'kubectl-penstock', 'penstock-agent']) {
      const printed = await command(node, [join(home, 'package', manifest.bin[bin]), '--version'], { cwd: home })
      expect(printed).toBe(`${bin === 'penstock-agent' ? bin : 'penstock'} ${version}\n`)
    }
    const completion = join(home, 'package', manifest.bin['kubectl_complete-penstock'])
    expect(await command(node, [completion, 'sta'], { cwd: home })).toMatch(/^status\t.*\n:4\n$/)
  })

  test('krew and Homebrew refer to the archive by URL and checksum', async () => {
    const sha256 = createHash('sha256')
      .update(readFileSync(join(out, `${name}.tar.gz`)))
      .digest('hex')
    const uri = `${downloads}/${name}.tar.gz`
    const { spec } = parse(readFileSync(join(out, 'penstock.krew.yaml'), 'utf8'))
    expect(spec.version).toBe(`v${version}`)
    const architecture = process.arch === 'x64' ? 'amd64' : process.arch
    expect(spec.platforms).toEqual([
      {
        selector: { matchLabels: { os: process.platform, arch: architecture } },
        uri,
        sha256,
        bin: 'bin/kubectl-penstock',
        files: [{ from: `${name}/*`, to: '.' }],
      },
    ])
    const formula = readFileSync(join(out, 'penstock.rb'), 'utf8')
    expect(formula).toContain(`      url "${uri}"\n      sha256 "${sha256}"\n`)
    expect(formula).toContain(`version "${version}"`)
  })
})
