// The examples as a reader tries them: resources without problems, passing tests, and commands whose output matches their README.

import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { consoleBlocks, shownLine } from '../testing/console-blocks.ts'

const root = join(import.meta.dirname, '../../..')
const examples = join(root, 'examples')
/** The quickstart is covered by documents.process.test.ts. */
const recipes = readdirSync(examples).filter(
  (name) => name !== 'quickstart' && existsSync(join(examples, name, 'README.md')),
)

/** `npx penstock` runs this source, regardless of any installation. */
const bin = mkdtempSync(join(tmpdir(), 'penstock-cookbook-'))
const main = join(root, 'operator/src/main.ts')
writeFileSync(join(bin, 'npx'), `#!/bin/sh\nshift\nexec '${process.execPath}' --conditions=source '${main}' "$@"\n`, {
  mode: 0o755,
})
afterAll(() => rmSync(bin, { recursive: true }))

/** Ends a command that would run forever, such as a `run` without input. */
const timeout = 280_000

/** Runs a command as a reader pastes it, and returns its output. Fails if the command fails. */
async function pasted(command: string): Promise<string> {
  const { FORCE_COLOR: _, ...environment } = process.env
  const env = { ...environment, PATH: `${bin}:${process.env['PATH']}` }
  // A shell pipeline fails if any of its commands fails.
  const { stdout } = await promisify(execFile)('bash', ['-o', 'pipefail', '-c', command], { cwd: root, env, timeout })
  return stdout
}

/**
 * Compares a command's output with the recorded output, where `…` matches any text. @param isOrdered whether events
 * must come in this order; false for several pods or sinks
 */
function expectShown(printed: string, shown: string, isOrdered: boolean): void {
  const inOrder = (text: string) => (isOrdered ? text.split('\n') : text.split('\n').sort())
  const [lines, patterns] = [inOrder(printed), inOrder(shown)]
  if (!shown.includes('…')) {
    expect(lines).toEqual(patterns)
    return
  }
  expect(lines).toHaveLength(patterns.length)
  for (const [index, pattern] of patterns.entries()) expect(lines[index]).toMatch(shownLine(pattern))
}

/** The relevant parts of a resource's `spec`. */
interface Spec {
  readonly sinks?: readonly object[]
  readonly transforms?: readonly object[]
  readonly tests?: readonly object[]
}

/** The arguments of a `run` that name its resources. */
function resourcesOf(run: string): string {
  const [, words = ''] = /penstock run (.*)/s.exec(run.replaceAll('\\\n', ' ')) ?? []
  return words.replace(/--input \S+|--print|\|.*/gs, '').trim()
}

test('the index lists every example under its title', () => {
  const index = readFileSync(join(examples, 'README.md'), 'utf8')
  const listed = [...index.matchAll(/^\| \[(.+?)\]\((.+?)\/README\.md\) \| .+ \|$/gm)].map(([, title, name]) => [
    name,
    title,
  ])
  const titles = recipes.map((name) => [
    name,
    /^# (.+)$/m.exec(readFileSync(join(examples, name, 'README.md'), 'utf8'))?.[1],
  ])
  expect(Object.fromEntries(listed)).toEqual(Object.fromEntries(titles))
  expect(listed).toHaveLength(titles.length)
})

test('the health rule for Argo CD equals that of the guide', () => {
  const [, rule] = /^```lua\n(.*?)^```$/ms.exec(readFileSync(join(root, 'operator/guide/gitops.md'), 'utf8')) ?? []
  const settings = parse(readFileSync(join(examples, 'argo-cd-and-flux/argo-cd-health.yaml'), 'utf8'))
  expect(settings.data).toEqual({ 'resource.customizations.health.penstock.dev_Pipeline': rule })
})

describe.concurrent.each(recipes)('%s', (name) => {
  const folder = join(examples, name)
  const page = readFileSync(join(folder, 'README.md'), 'utf8')
  const commands = consoleBlocks(page).flat()
  const runs = commands.filter(({ command }) => command.startsWith('npx penstock run '))

  const specs = readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.yaml'))
    .flatMap((file) => parseAllDocuments(readFileSync(join(folder, file), 'utf8')))
    .map((document): Spec => document.toJS().spec ?? {})
  const inputs = (runs[0]?.command ?? '').split('--input').length - 1
  const isOrdered = inputs <= 1 && specs.flatMap(({ sinks = [] }) => sinks).length <= 1

  test('every command prints the shown output', async () => {
    for (const { command, output } of commands) expectShown(await pasted(command), output, isOrdered)
  })

  test('expected.ndjson contains the events of the first run', async ({ expect }) => {
    expect(runs[0]?.command).toMatch(new RegExp(`--input \\S*examples/${name}/`))
    expect(runs[0]?.command).toContain(' --print')
    const command = `${runs[0]?.command} -o json`
    expectShown(await pasted(command), readFileSync(join(folder, 'expected.ndjson'), 'utf8'), isOrdered)
  })

  test('its resources pass lint, and transforms have tests that pass', async ({ expect }) => {
    for (const { command } of runs) {
      expect(await pasted(`npx penstock lint ${resourcesOf(command)}`)).toMatch(/: no problems\.\n$/)
    }
    const untested = specs.filter(({ transforms, tests }) => transforms !== undefined && tests === undefined)
    expect(untested).toEqual([])
    if (specs.every(({ tests }) => tests === undefined)) return
    expect(await pasted(`npx penstock test ${resourcesOf(runs[0]?.command ?? '')}`)).toContain('... passed')
  })

  test('its page is short, and its links work', ({ expect }) => {
    const text = page.replace(/^```.*?^```\n/gms, '')
    expect(text.split('\n').filter((line) => line !== '').length).toBeLessThanOrEqual(15)
    const links = [...text.matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)].map(([, path = '']) => path)
    expect(links.length).toBeGreaterThan(0)
    for (const path of links) expect(existsSync(join(folder, path)), path).toBe(true)
  })
})
