// A fingerprint of the inputs of a build, which is skipped while the fingerprint is unchanged.

import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { root } from './command.ts'

const derived = new Set(['node_modules', 'dist', 'packed'])

/** The fingerprint of files and folders of the repository, without tests and build output, and of further values. */
export function fingerprint(paths: readonly string[], ...facts: readonly string[]): string {
  const hash = createHash('sha256')
  const add = (path: string): void => {
    const full = resolve(root, path)
    const found = statSync(full, { throwIfNoEntry: false })
    if (found === undefined) return
    if (!found.isDirectory()) {
      hash.update(`${path}\0`).update(readFileSync(full))
      return
    }
    for (const entry of readdirSync(full).sort()) {
      if (!derived.has(entry) && !entry.endsWith('.test.ts')) add(join(path, entry))
    }
  }
  for (const path of paths) add(path)
  for (const fact of facts) hash.update(`${fact}\0`)
  return hash.digest('hex').slice(0, 16)
}
