// The commands of README and guide as a reader tries them: every command, flag and file exists, and commands that need no cluster
// run as shown.

import { execFileSync, spawn } from 'node:child_process'
import { copyFileSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { parseArgs } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { consoleBlocks, shownLine } from '../testing/console-blocks.ts'
import { commands } from './commands.ts'

const root = join(import.meta.dirname, '../../..')
const read = (path: string) => readFileSync(join(root, path), 'utf8')
const pages = execFileSync('git', ['ls-files', '*.md'], { cwd: root, encoding: 'utf8' })
  .split('\n')
  .filter((path) => /^(?:README|CONTRIBUTING|operator\/guide\/.*|charts\/.*|examples\/quickstart\/.*)\.md$/.test(path))

/** Extracts the commands in a page's `sh` and `console` blocks, without comments; a backslash joins two lines. */
function blocksOf(page: string): readonly (readonly string[])[] {
  const text = read(page)
  const shown = consoleBlocks(text).map((block) => block.map(({ command }) => command).join('\n'))
  return [...[...text.matchAll(/^```sh\n(.*?)^```$/gms)].map(([, block = '']) => block), ...shown].map((block) =>
    block
      .replaceAll('\\\n', ' ')
      .split('\n')
      .map((line) => line.replace(/(?:^|\s+)#\s.*$/, '').trim())
      .filter((line) => line !== ''),
  )
}

/** The arguments of every call of a program in a page's commands. */
function callsOf(page: string, program: RegExp): readonly (readonly string[])[] {
  const words = blocksOf(page)
    .flat()
    .flatMap((line) => line.split(/\s*(?:\|\||&&|[|;&])\s*/))
    .map((call) => (call.replace(/\s*\d?>.*$/, '').match(/"(?:[^"\\]|\\.)*"|'[^']*'|\S+/g) ?? []).map(unquoted))
  return words.flatMap((call) => {
    const [, rest] = program.exec(call.join('\0')) ?? []
    return rest === undefined ? [] : [rest === '' ? [] : rest.slice(1).split('\0')]
  })
}

const unquoted = (word: string) => word.replace(/^(["'])(.*)\1$/s, '$2')

test('every command and flag of `penstock` in a document exists', async () => {
  const calls = pages.flatMap((page) =>
    callsOf(page, /^(?:npx\0|kubectl\0)?penstock((?:\0.*)?)$/s).map((words) => ({ page, words })),
  )
  expect(calls.length).toBeGreaterThan(40)
  const wrong: string[] = []
  for (const { page, words } of calls) {
    const [name = '', ...args] = words
    if (name === '--help' || name === 'version') continue
    const { options } = (await commands[name]?.load()) ?? {}
    try {
      if (options === undefined) throw new Error('there is no such command')
      parseArgs({ args, options, allowPositionals: true })
    } catch (error) {
      wrong.push(`${page}: penstock ${words.join(' ')}: ${error}`)
    }
  }
  expect(wrong).toEqual([])
})

test('every npm script in a document exists', () => {
  const { scripts } = JSON.parse(read('package.json'))
  const known = new Set(Object.keys(scripts))
  const runs = pages.flatMap((page) => callsOf(page, /^npm((?:\0.*)?)$/s).map(([word, name]) => ({ page, word, name })))
  const missing = runs.filter(({ word, name = '' }) =>
    word === 'run' ? !known.has(name) : (word === 'start' || word === 'test') && !known.has(word),
  )
  expect(runs.some(({ word }) => word === 'start')).toBe(true)
  expect(missing).toEqual([])
})

test('every file of the repository in a command exists', () => {
  const folders = /^(?:charts|crds|examples|operator|agent|e2e|\.ci)(?:\/|$)|^kind-config\.yaml$/
  const named = pages.flatMap((page) =>
    callsOf(page, /^((?:\0|.)*)$/s)
      .flat()
      .filter((word) => folders.test(word) && !word.includes('$'))
      .map((path) => ({ page, path })),
  )
  expect(named.map(({ path }) => path)).toContain('charts/penstock')
  expect(named.filter(({ path }) => !existsSync(join(root, path)))).toEqual([])
})

/** A folder in which a reader works, with the programs of this source. */
const bin = mkdtempSync(join(tmpdir(), 'penstock-documents-'))
afterAll(() => rmSync(bin, { recursive: true }))
for (const [name, main] of [
  ['penstock', 'operator/src/main.ts'],
  ['kubectl-penstock', 'operator/src/main.ts'],
  ['penstock-agent', 'agent/src/main.ts'],
] as const) {
  const start = `#!/bin/sh\nexec '${process.execPath}' --conditions=source '${join(root, main)}' "$@"\n`
  writeFileSync(join(bin, name), start, { mode: 0o755 })
}
writeFileSync(join(bin, 'npx'), '#!/bin/sh\nexec "$@"\n', { mode: 0o755 })
// kubectl finds the plugin in the PATH. Commands that need a cluster are not run here.
writeFileSync(join(bin, 'kubectl'), '#!/bin/sh\nplugin=kubectl-$1\nshift\nexec "$plugin" "$@"\n', { mode: 0o755 })
// `npm ci` is done, and `npm start` is the command of package.json in the reader's copy.
const { start } = JSON.parse(read('package.json')).scripts
const npm = `#!/bin/sh\ncase $1 in ci) ;; start) exec penstock ${start.split('main.ts ')[1]} ;; *) exit 64 ;; esac\n`
writeFileSync(join(bin, 'npm'), npm, { mode: 0o755 })

/**
 * Runs a command as a reader pastes it. @param isDone whether the output shows that an endless command has finished its
 * work; the command then gets Ctrl-C
 */
async function pasted(command: string, cwd: string, isDone: (printed: string) => boolean = () => false) {
  const { FORCE_COLOR: _, ...environment } = process.env
  const env = { ...environment, PATH: `${bin}:${process.env['PATH']}` }
  const shell = spawn('bash', ['-o', 'pipefail', '-c', command], { cwd, env, detached: true })
  shell.stdin.end()
  let printed = ''
  let isEnded = false
  for (const stream of [shell.stdout, shell.stderr])
    stream.setEncoding('utf8').on('data', (chunk: string) => {
      printed += chunk
      if (isEnded || shell.pid === undefined || !isDone(printed)) return
      isEnded = true
      process.kill(-shell.pid, 'SIGINT')
    })
  const { promise, resolve } = Promise.withResolvers<number | null>()
  shell.on('close', resolve)
  return { code: await promise, printed }
}

interface Walk {
  readonly page: string
  /** A command of this block. */
  readonly block: string
  /** The reader's files, by name: a path in the repository, or the text. */
  readonly files: Readonly<Record<string, string>>
}

const example = (name: string, file: string) => join('examples', name, file)
const walks: readonly Walk[] = [
  {
    page: 'operator/guide/cli.md',
    block: '--input web.log',
    files: {
      'pipeline.yaml': example('drop-debug-logs', 'pipeline.yaml'),
      'web.log': example('drop-debug-logs', 'input.log'),
      'money.log': example('drop-debug-logs', 'input.log'),
    },
  },
]

describe.each(walks)('$page, $block', ({ page, block, files }) => {
  test('each command that needs no cluster succeeds', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'penstock-walk-'))
    try {
      for (const [name, path] of Object.entries(files)) copyFileSync(join(root, path), join(folder, name))
      const shown = blocksOf(page).find((lines) => lines.some((line) => line.includes(block))) ?? []
      const local = shown.filter((line) => !/\bkubectl\b/.test(line))
      expect(local.length).toBeGreaterThan(2)
      for (const command of local) {
        const { code, printed } = await pasted(command, folder, (text) =>
          /From here on, events only\.|Waiting for a change/.test(text),
        )
        expect(code, `${command}\n${printed}`).toBe(0)
        expect(printed).not.toMatch(/\n {4}at /)
      }
    } finally {
      rmSync(folder, { recursive: true })
    }
  })
})

test('the agent of the README prints its input line', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-walk-'))
  try {
    const [, config] = /^```yaml\n(# agent\.yaml\n.*?)^```$/ms.exec(read('README.md')) ?? []
    const [command] = blocksOf('README.md')
      .flat()
      .filter((line) => line.includes('penstock-agent --config'))
    writeFileSync(join(folder, 'agent.yaml'), config ?? '')
    const { code, printed } = await pasted(command ?? '', folder)
    expect(printed.split('\n')).toContain('{"hello":"world"}')
    expect(code).toBe(0)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('the first Pipeline of the README has no problems', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-walk-'))
  try {
    const [, pipeline] = /^```yaml\n(apiVersion: .*?)^```$/ms.exec(read('README.md')) ?? []
    writeFileSync(join(folder, 'FILE'), pipeline ?? '')
    const { code, printed } = await pasted('npx penstock lint -f FILE', folder)
    expect(printed).toContain('no problems')
    expect(code).toBe(0)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

/** Events, and lines with their results; those of several pods may come in any order. */
const isEvent = (line: string) => /^(?:in |out|\S* (?:INFO|WARN|ERROR) )/.test(line)

/** Compares a command's output with the documented output. A line `…` matches any lines; `…` within a line matches any text. */
function expectShown(printed: string, shown: string): void {
  const lines = printed.trimEnd().split('\n')
  const patterns = shown.trimEnd().split('\n')
  if (!patterns.includes('…')) expect(lines).toHaveLength(patterns.length)
  let from = 0
  for (const pattern of patterns) {
    if (pattern === '…') continue
    const isIt = (line: string) => shownLine(pattern).test(line)
    if (isEvent(pattern)) expect(lines.some(isIt), `${pattern}\n--- is not in ---\n${printed}`).toBe(true)
    else {
      const at = lines.findIndex((line, index) => index >= from && isIt(line))
      expect(at, `${pattern}\n--- is not in ---\n${lines.slice(from).join('\n')}`).not.toBe(-1)
      from = at + 1
    }
  }
}

/** Whether a command continues, as a line `…` shows, and has printed all shown events. */
function isSeen(printed: string, shown: string): boolean {
  if (!/^…$/m.test(shown)) return false
  const lines = printed.split('\n').slice(0, -1)
  const events = shown.split('\n').filter(isEvent)
  return events.length > 0 && events.every((event) => lines.some((line) => shownLine(event).test(line)))
}

/** Pages that show command output, with the reader's files: from an example, or from a block of the page. */
const recorded: readonly { readonly page: string; readonly files?: readonly string[]; readonly block?: string }[] = [
  { page: 'examples/quickstart/README.md' },
  { page: 'operator/guide/getting-started.md' },
  { page: 'operator/guide/vector.md', files: [example('from-vector', 'vector.yaml')] },
  { page: 'operator/guide/fluent-bit.md', files: [example('from-fluent-bit', 'fluent-bit.conf')] },
  { page: 'operator/guide/pipeline.md', block: 'name: checkout,' },
]

test('every page that shows what commands print is recorded', () => {
  const showing = pages.filter((page) => consoleBlocks(read(page)).length > 0)
  expect(recorded.map(({ page }) => page).toSorted()).toEqual(showing.toSorted())
})

test.each(recorded)('the commands of $page print the shown output', async ({ page, files = [], block }) => {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-walk-'))
  try {
    cpSync(join(root, 'examples'), join(folder, 'examples'), { recursive: true })
    for (const file of files) copyFileSync(join(root, file), join(folder, basename(file)))
    const blocks = [...read(page).matchAll(/^```yaml\n(.*?)^```$/gms)].map(([, text = '']) => text)
    if (block !== undefined)
      writeFileSync(join(folder, 'checkout.yaml'), blocks.find((text) => text.includes(block)) ?? '')
    const shown = consoleBlocks(read(page)).flat()
    expect(shown.length).toBeGreaterThan(1)
    for (const { command, output } of shown) {
      if (/\bkubectl (?!penstock (?:lint|test) )/.test(command)) continue
      const { code, printed } = await pasted(command, folder, (text) => isSeen(text, output))
      expectShown(printed, output)
      expect(code, `${command}\n${printed}`).toBe(output.startsWith('error:') ? 78 : 0)
    }
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('tables of kubectl have the columns of the kinds', () => {
  const kubectl = pages.flatMap((page) =>
    [...read(page).matchAll(/^(?:NAMESPACE +)?NAME +(READY .*)$/gm)].map(([, heading = '']) => heading.split(/ {2,}/)),
  )
  expect(kubectl.length).toBeGreaterThan(0)
  const definition = parse(read('crds/pipelines.penstock.dev.yaml'))
  const columns: { name: string; priority?: number }[] = definition.spec.versions[0].additionalPrinterColumns
  const shown = columns.filter(({ priority = 0 }) => priority === 0).map(({ name }) => name.toUpperCase())
  for (const heading of kubectl) expect(heading).toEqual(shown)
})
