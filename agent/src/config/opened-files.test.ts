// Only given-file.ts may read a file that an option or a program names. This test finds every other module that could open one.

import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAst } from 'rolldown/parseAst'
import { expect, test } from 'vitest'
import { developmentRooms, roomOf } from '../testing/rooms.ts'

/** Modules that may open files, grouped by the origin of the file name. Only given-file.ts reads files that options or programs name. */
const own: Readonly<Record<string, readonly string[]>> = {
  'the agent, below its data directory': [
    'buffers/disk/files.ts',
    'buffers/disk/lock.ts',
    'bundle/leftovers.ts',
    'bundle/runner.ts',
    'data-dir.ts',
    'sources/orchestrator_events/cursor.ts',
    'sources/orchestrator_logs/pod-cache.ts',
    'sources/orchestrator_logs/excluded-pods.ts',
    'tailing/checkpoint.ts',
  ],
  'the command line': [
    'bundle/folder.ts',
    'bundle/operator-client.ts',
    'cli/generate.ts',
    'cli/remap.ts',
    'cli/repl.ts',
    'config/read.ts',
  ],
  'the package, or the system': ['cli/memory.ts', 'formats/user-agent.ts', 'delivery/cpu-limit.ts', 'version.ts'],
  'rules of tailing, which opens what they match': [
    'tailing/confinement.ts',
    'tailing/files.ts',
    'tailing/gzip.ts',
    'tailing/registry.ts',
  ],
  'the container runtime, beside a log that is tailed': ['sources/orchestrator_logs/compressed-logs.ts'],
  'an option, and it is written': ['sinks/file.ts'],
  'this reader': ['given-file.ts'],
}

const opening =
  /^(?:open(?:Sync|AsBlob)?|read(?:File|v)?(?:Sync)?|createReadStream|cp(?:Sync)?|copyFile(?:Sync)?|promises)$/

interface Import {
  readonly type: string
  readonly source?: { readonly value: string }
  readonly importKind?: string
  readonly specifiers?: readonly { readonly type: string; readonly imported?: { readonly name: string } }[]
}

function opensFiles(path: string): boolean {
  const { body } = parseAst(readFileSync(path, 'utf8'), { lang: 'ts' }) as unknown as { body: readonly Import[] }
  return body.some(
    ({ type, source, importKind, specifiers }) =>
      type === 'ImportDeclaration' &&
      importKind !== 'type' &&
      /^(?:node:)?fs(?:\/promises)?$/.test(source?.value ?? '') &&
      specifiers?.some((one) => one.type !== 'ImportSpecifier' || opening.test(one.imported?.name ?? '')) === true,
  )
}

test('nothing else in the agent opens files by their paths', () => {
  const root = join(import.meta.dirname, '..')
  const shipped = globSync('**/*.ts', { cwd: root }).filter(
    (path) => !path.endsWith('.test.ts') && !developmentRooms.includes(roomOf(path)),
  )
  const found = shipped.filter((path) => opensFiles(join(root, path)))
  expect(found.toSorted()).toEqual(Object.values(own).flat().toSorted())
})
