// A fingerprint of the inputs of a build: while it is the same, nothing is built again.

import { createHash } from 'node:crypto'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { root } from './command.ts'

const derived = new Set(['node_modules', 'dist', 'packed'])

/** Of files and folders of the repository, without tests and what is built there, and of further facts. */
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
