// Makes the downloads of a release: for each platform an archive with the command and its own Node, the npm package, and from these the
// manifest of krew and the formula of Homebrew. Plain JavaScript, because any version of Node must run it. The same commit gives the same
// bytes: names are sorted, the time of each file is that of the commit, and the checksums in node.json determine the build of Node.
//   node .ci/archives.mjs --out FOLDER [--platforms LIST] [--downloads URL] [--node FILE] [--source FOLDER]

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'

const pinned = JSON.parse(readFileSync(new URL('node.json', import.meta.url), 'utf8'))
const platforms = Object.keys(pinned.platforms)

const usage = `Usage: node .ci/archives.mjs --out FOLDER [OPTION…]

Writes penstock-VERSION-PLATFORM.tar.gz for each platform, the npm package penstock-cli-VERSION.tgz, and with --downloads also
penstock.krew.yaml and penstock.rb.

  --out FOLDER        folder for the files
  --platforms LIST    platforms of the archives (${platforms.join(',')})
  --downloads URL     future address of the release's files, for krew and Homebrew
  --node FILE         program to use as Node for the platform of this machine, instead of the registry's, for tests
  --source FOLDER     the repository, after npm ci (by default that of this script)
`

function misuse(problem) {
  process.stderr.write(`.ci/archives.mjs: ${problem}\n${usage}`)
  process.exit(2)
}

function readOptions() {
  const text = { type: 'string' }
  const options = { out: text, platforms: text, downloads: text, node: text, source: text, help: { type: 'boolean' } }
  let given
  try {
    given = parseArgs({ options }).values
  } catch (error) {
    misuse(error.message)
  }
  if (given.help) {
    process.stdout.write(usage)
    process.exit(0)
  }
  if (given.out === undefined) misuse('--out is missing')
  const wanted = (given.platforms ?? platforms.join(',')).split(',')
  const unknown = wanted.find((platform) => !platforms.includes(platform))
  if (unknown !== undefined) misuse(`--platforms takes some of ${platforms.join(', ')}; found "${unknown}"`)
  if (given.downloads !== undefined && !/^https:\/\/[^\s"\\@]+$/.test(given.downloads))
    misuse(`--downloads must be an https URL without a user; found "${given.downloads}"`)
  const own = `${process.platform}-${process.arch}`
  if (given.node !== undefined && (wanted.length > 1 || wanted[0] !== own))
    misuse(`--node is a Node of this machine: use it with --platforms ${own}`)
  if (given.node !== undefined && !existsSync(given.node)) misuse(`--node: there is no file ${given.node}`)
  const source = resolve(given.source ?? join(import.meta.dirname, '..'))
  if (!existsSync(join(source, 'node_modules/.bin/rolldown')))
    misuse(`--source: ${source} has no node_modules with rolldown; run npm ci there`)
  return { out: resolve(given.out), wanted, downloads: given.downloads?.replace(/\/$/, ''), node: given.node, source }
}

const { out, wanted, downloads, node: givenNode, source } = readOptions()
const readJson = (file) => JSON.parse(readFileSync(file, 'utf8'))
const { version, description } = readJson(join(source, 'package.json'))
const lock = readJson(join(source, 'package-lock.json')).packages
const run = (program, args, options = {}) =>
  execFileSync(program, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'], ...options })

function commitTime() {
  const given = process.env['SOURCE_DATE_EPOCH']
  return given ?? run('git', ['log', '-1', '--format=%ct'], { cwd: source }).trim()
}

/** Packages that the packed files load on demand, because .rolldown.ts does not pack them. */
const late = ['@aws-sdk/client-sqs', 'amqplib']

/** Paths of packages and all their dependencies in the repository, as resolved by the lock file. */
function closure(names) {
  const found = new Set()
  const add = (name, from) => {
    let folder = from
    for (;;) {
      const path = join(folder, 'node_modules', name)
      if (lock[path] !== undefined) {
        if (!found.has(path)) {
          found.add(path)
          for (const next of Object.keys(lock[path].dependencies ?? {})) add(next, path)
        }
        return
      }
      if (folder === '') throw new Error(`package-lock.json has no ${name} for ${from}`)
      const above = folder.lastIndexOf('/node_modules/')
      folder = above < 0 ? '' : folder.slice(0, above)
    }
  }
  for (const name of names) add(name, '')
  return [...found].sort()
}

/** The packed command and agent, with the paths of the operator's image. */
function packInto(folder) {
  mkdirSync(join(folder, 'operator'), { recursive: true })
  const packed = join(folder, 'operator/packed')
  run('npm', ['run', '--silent', 'build:image', '--workspace', 'operator', '--', '--dir', packed], { cwd: source })
  // Source maps only help developers, who have the sources.
  for (const name of readdirSync(packed)) if (name.endsWith('.map')) rmSync(join(packed, name))
  writeFileSync(join(folder, 'operator/package.json'), `${JSON.stringify({ type: 'module', version })}\n`)
}

const examples = ['quickstart']

/** The entry point of each command, and its first argument, which precedes the arguments of the user. */
const commands = {
  penstock: { entry: 'main.js' },
  'kubectl-penstock': { entry: 'main.js' },
  'kubectl_complete-penstock': { entry: 'main.js', word: '__complete' },
  'penstock-agent': { entry: 'agent.js' },
}

/** A script that finds its own folder through links, which package managers create. */
const shellStart = ({ entry, word }) => `#!/bin/sh
file=$0
while [ -L "$file" ]; do
  target=$(readlink "$file")
  case $target in /*) file=$target ;; *) file=$(dirname "$file")/$target ;; esac
done
home=$(cd "$(dirname "$file")/.." && pwd)
exec "$home/lib/node" "$home/lib/operator/packed/${entry}"${word === undefined ? '' : ` ${word}`} "$@"
`
const windowsStart = ({ entry, word }) =>
  `@"%~dp0..\\lib\\node.exe" "%~dp0..\\lib\\operator\\packed\\${entry}"${word === undefined ? '' : ` ${word}`} %*\r\n`

/** Unpacks Node and its licence from packages of the registry. */
function fetchNode(platform, work) {
  const { package: name, integrity } = pinned.platforms[platform]
  const folder = join(work, name)
  if (!existsSync(folder)) {
    mkdirSync(folder)
    const words = ['pack', `${name}@${pinned.version}`, '--json', '--silent', '--pack-destination', folder]
    const [{ filename }] = JSON.parse(run('npm', words, { cwd: work }))
    const bytes = readFileSync(join(folder, filename))
    const found = `sha512-${createHash('sha512').update(bytes).digest('base64')}`
    if (found !== integrity)
      throw new Error(`${name}@${pinned.version} of the registry has ${found}; .ci/node.json expects ${integrity}`)
    run('tar', ['-xzf', join(folder, filename), '-C', folder])
  }
  return join(folder, 'package')
}

function addNode(platform, lib, work) {
  const name = platform.startsWith('win32') ? 'node.exe' : 'node'
  if (givenNode === undefined) {
    cpSync(join(fetchNode(platform, work), 'bin', name), join(lib, name))
    // The package for Windows contains no licence, so that of another platform is used; all platforms have the same.
    cpSync(join(fetchNode('linux-x64', work), 'LICENSE'), join(lib, 'node.LICENSE'))
  } else cpSync(givenNode, join(lib, name), { dereference: true })
  chmodSync(join(lib, name), 0o755)
}

const readme = (windows) => `Penstock ${version}

bin/penstock works on Pipelines, Sources and Sinks, with a cluster or without; bin/penstock-agent is the agent alone.
${windows ? 'Put bin' : 'Put bin, or links to its files,'} into your PATH. kubectl then finds bin/kubectl-penstock as \`kubectl penstock\`,
and bin/kubectl_complete-penstock for its Tab.
Everything else is beside it in lib, also Node ${pinned.version}: nothing has to be installed.

  penstock run -f examples/quickstart    runs a Pipeline on sample pods, until Ctrl-C
  penstock init                          writes a first Pipeline
  penstock completion bash               prints the completion of a shell
`

function archive(platform, common, work) {
  const name = `penstock-${version}-${platform}`
  const folder = join(work, name)
  const lib = join(folder, 'lib')
  const windows = platform.startsWith('win32')
  cpSync(common, lib, { recursive: true })
  mkdirSync(join(folder, 'bin'))
  for (const [command, program] of Object.entries(commands)) {
    const file = join(folder, 'bin', windows ? `${command}.cmd` : command)
    writeFileSync(file, windows ? windowsStart(program) : shellStart(program), { mode: 0o755 })
  }
  addNode(platform, lib, work)
  for (const example of examples)
    cpSync(join(source, 'examples', example), join(folder, 'examples', example), { recursive: true })
  cpSync(join(source, 'LICENSE'), join(folder, 'LICENSE'))
  writeFileSync(join(folder, 'README.txt'), readme(windows))
  const file = join(out, `${name}.tar.gz`)
  const same = [
    '--sort=name',
    `--mtime=@${commitTime()}`,
    '--owner=0',
    '--group=0',
    '--numeric-owner',
    '--mode=u=rwX,go=rX',
  ]
  run('tar', ['-C', work, ...same, '--format=gnu', '-I', 'gzip -n9', '-cf', file, name])
  return { platform, file: `${name}.tar.gz`, sha256: createHash('sha256').update(readFileSync(file)).digest('hex') }
}

/** The package @penstock/cli, for users with their own Node: the same packed files. */
function npmPackage(common, work) {
  const folder = join(work, 'npm')
  cpSync(join(common, 'operator'), join(folder, 'operator'), { recursive: true })
  cpSync(join(source, 'agent/bin/node-version.js'), join(folder, 'bin/node-version.js'))
  for (const [command, { entry, word }] of Object.entries(commands)) {
    const words = word === undefined ? '' : `process.argv.splice(2, 0, '${word}')\n`
    const start = `await start('${command}', new URL('../operator/packed/${entry}', import.meta.url))`
    writeFileSync(
      join(folder, `bin/${command}.js`),
      `#!/usr/bin/env node\nimport { start } from './node-version.js'\n\n${words}${start}\n`,
      { mode: 0o755 },
    )
  }
  cpSync(join(source, 'LICENSE'), join(folder, 'LICENSE'))
  writeFileSync(
    join(folder, 'README.md'),
    `# Penstock\n\n${description}\n\nThe commands \`penstock\`, \`kubectl-penstock\` and \`penstock-agent\`; kubectl runs \`kubectl_complete-penstock\` for Tab.\n`,
  )
  const manifest = {
    name: '@penstock/cli',
    version,
    description,
    license: 'Apache-2.0',
    type: 'module',
    bin: Object.fromEntries(Object.keys(commands).map((command) => [command, `bin/${command}.js`])),
    files: ['bin', 'operator'],
    engines: { node: '>=26.10' },
    dependencies: Object.fromEntries(late.map((name) => [name, lock[`node_modules/${name}`].version])),
  }
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`)
  run('npm', ['pack', '--silent', '--pack-destination', out], { cwd: folder })
}

const architectures = { x64: 'amd64', arm64: 'arm64' }

/** The manifest of krew, the package manager of kubectl. Not for Windows, where krew can only link .exe files. */
function krew(archives) {
  const each = archives
    .filter(({ platform }) => !platform.startsWith('win32'))
    .map(({ platform, file, sha256 }) => {
      const [os, arch] = platform.split('-')
      return `  - selector:
      matchLabels: { os: ${os}, arch: ${architectures[arch]} }
    uri: ${downloads}/${file}
    sha256: ${sha256}
    bin: bin/kubectl-penstock
    files:
      - { from: "penstock-${version}-${platform}/*", to: "." }
`
    })
  return `apiVersion: krew.googlecontainertools.github.com/v1alpha2
kind: Plugin
metadata: { name: penstock }
spec:
  version: v${version}
  homepage: ${downloads}
  shortDescription: Pipelines of logs and metrics
  description: |
    Checks Pipelines without a cluster, shows what runs where, why the logs
    of a pod are read or not, live events and figures, and undoes rollouts.
  platforms:
${each.join('')}`
}

/** The formula of Homebrew, for macOS and Linux. */
function formula(archives) {
  const part = (os, arch) => {
    const found = archives.find(({ platform }) => platform === `${os}-${arch}`)
    if (found === undefined) return ''
    return `    on_${arch === 'x64' ? 'intel' : 'arm'} do
      url "${downloads}/${found.file}"
      sha256 "${found.sha256}"
    end
`
  }
  const system = (name, os) => {
    const parts = part(os, 'arm64') + part(os, 'x64')
    return parts === '' ? '' : `  on_${name} do\n${parts}  end\n\n`
  }
  return `class Penstock < Formula
  desc "${description.replace(/\.$/, '')}"
  homepage "${downloads}"
  version "${version}"
  license "Apache-2.0"

${system('macos', 'darwin')}${system('linux', 'linux')}  def install
    libexec.install Dir["*"]
    bin.install_symlink Dir[libexec/"bin/*"]
    generate_completions_from_executable(bin/"penstock", "completion", shells: [:bash, :zsh, :fish])
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/penstock version")
    system bin/"penstock", "lint", libexec/"examples/quickstart"
  end
end
`
}

mkdirSync(out, { recursive: true })
const work = mkdtempSync(join(tmpdir(), 'penstock-archives-'))
try {
  const common = join(work, 'lib')
  packInto(common)
  for (const path of closure(late)) cpSync(join(source, path), join(common, path), { recursive: true })
  const archives = wanted.map((platform) => archive(platform, common, work))
  npmPackage(common, work)
  if (downloads === undefined) process.stderr.write('Without --downloads, there is no krew manifest and no formula.\n')
  else {
    writeFileSync(join(out, 'penstock.krew.yaml'), krew(archives))
    writeFileSync(join(out, 'penstock.rb'), formula(archives))
  }
  for (const { file, sha256 } of archives) process.stdout.write(`${sha256}  ${file}\n`)
} finally {
  rmSync(work, { recursive: true, force: true })
}
