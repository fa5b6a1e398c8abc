// Checks the machine that will run a configuration: its data directory, and the space for its disk buffers.

import { access, constants, stat, statfs } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { Problem } from '../schema/problems.ts'
import { isTable } from '../schema/walk.ts'
import { minDiskBuffer } from './component-options.ts'
import { defaultDataDir } from './globals.ts'
import type { Raw } from './merge.ts'
import { type ProblemFacts, problemAt } from './place.ts'

/** Problems with the data directory, if the configuration sets it or needs it. */
export async function machineProblems(raw: Raw): Promise<Problem[]> {
  const located = raw.globals.get('data_dir')
  const dataDir = located === undefined ? defaultDataDir : located.value
  if (typeof dataDir !== 'string') return []
  const disk = diskBuffers(raw)
  if (located === undefined && disk.length === 0) return []
  const report = (finding: ProblemFacts): Problem[] =>
    located !== undefined
      ? [problemAt(located, [], finding)]
      : [{ severity: 'error', path: 'data_dir', message: finding.message, help: finding.help }]
  const message = await directoryProblem(dataDir)
  if (message !== undefined) {
    return report({ message, help: 'create the directory, or set the global option `data_dir` to another one' })
  }
  const wanted = disk.reduce((sum, buffer) => sum + buffer.bytes, 0)
  const capacity = disk.length === 0 ? undefined : await capacityOf(dataDir)
  if (capacity === undefined || wanted <= capacity) return []
  const names = disk.map((buffer) => `"${buffer.id}"`).join(', ')
  return report({
    message: `The disk buffers of ${names} may use ${wanted} bytes, but the file system of "${dataDir}" has only ${capacity} bytes`,
    help: 'reduce their `max_size`, or move `data_dir` to a larger file system',
  })
}

function diskBuffers(raw: Raw): { id: string; bytes: number }[] {
  const buffers: { id: string; bytes: number }[] = []
  for (const [id, { value }] of raw.sinks) {
    const buffer = isTable(value) ? value['buffer'] : undefined
    if (!isTable(buffer) || buffer['type'] !== 'disk') continue
    const bytes = buffer['max_size']
    buffers.push({ id, bytes: typeof bytes === 'number' ? bytes : minDiskBuffer })
  }
  return buffers
}

/** The reason why a directory is not usable as the data directory; undefined if it is. */
async function directoryProblem(path: string): Promise<string | undefined> {
  try {
    if (!(await stat(path)).isDirectory()) return `data_dir "${path}" is not a directory`
  } catch {
    return `data_dir "${path}" does not exist`
  }
  try {
    await access(path, constants.W_OK | constants.X_OK)
    return undefined
  } catch {
    return `data_dir "${path}" is not writable`
  }
}

/** Total size, in bytes, of the file system that contains a path; undefined if unknown. */
async function capacityOf(path: string): Promise<number | undefined> {
  for (let at = resolve(path); ; at = dirname(at)) {
    try {
      const { blocks, bsize } = await statfs(at)
      return blocks * bsize
    } catch {
      if (at === dirname(at)) return undefined
    }
  }
}
