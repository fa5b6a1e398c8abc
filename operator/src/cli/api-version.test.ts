// Newcomers see one version of the kinds everywhere: the stored version, which every release around this one serves.

import { execFileSync } from 'node:child_process'
import { mkdtempDisposable, readFile, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterEach, expect, test, vi } from 'vitest'
import { apiVersion } from '../api/object.ts'
import { main } from './commands.ts'

const root = fileURLToPath(new URL('../../..', import.meta.url))
const written = /\bapiVersion["']?:?\s+["']?(penstock\.dev\/\w+)/g
const versionsIn = (text: string) => [...text.matchAll(written)].map(([, version]) => version)

afterEach(() => {
  vi.restoreAllMocks()
})

/** The standard output and the standard error of a command. */
async function penstock(...args: string[]) {
  const said = { out: '', err: '' }
  const note = (stream: 'out' | 'err', end: string) => (text: unknown) => {
    said[stream] += `${text}${end}`
    return true
  }
  vi.spyOn(console, 'log').mockImplementation(note('out', '\n'))
  vi.spyOn(console, 'error').mockImplementation(note('err', '\n'))
  vi.spyOn(process.stdout, 'write').mockImplementation(note('out', ''))
  await main(args)
  vi.restoreAllMocks()
  return said
}

test('all documents, examples and files of charts use the stored version', async () => {
  const files = execFileSync('git', ['ls-files', '*.md', '*.yaml', '*.txt', '*.tpl'], { cwd: root, encoding: 'utf8' })
  const found: string[] = []
  for (const file of files.split('\n')) {
    if (file === '' || file.includes('/src/')) continue
    for (const version of versionsIn(await readFile(join(root, file), 'utf8'))) found.push(`${file}: ${version}`)
  }
  for (const place of ['README.md', 'examples/quickstart/', 'operator/guide/pipeline.md', 'operator/reference/sink.md'])
    expect(found.some((one) => one.startsWith(place))).toBe(true)
  expect(found.filter((one) => !one.endsWith(`: ${apiVersion}`))).toEqual([])
})

test('init and convert write it, and migrate does not change their files', async () => {
  await using folder = await mkdtempDisposable(join(tmpdir(), 'penstock-version-'))
  const first = join(folder.path, 'first.yaml')
  await penstock('init', first)
  const old = join(folder.path, 'vector.json')
  await writeFile(
    old,
    JSON.stringify({
      sources: { in: { type: 'kubernetes_logs' } },
      sinks: { out: { type: 'http', inputs: ['in'], uri: 'http://h', encoding: { codec: 'json' } } },
    }),
  )
  const converted = join(folder.path, 'converted.yaml')
  await writeFile(converted, (await penstock('convert', old)).out)
  for (const file of [first, converted]) expect(versionsIn(await readFile(file, 'utf8'))).toEqual([apiVersion])
  expect((await penstock('migrate', first, converted, '--dry-run')).err).toBe('No resource has an earlier version.\n')
})
