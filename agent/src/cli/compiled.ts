// Node's compiled code, kept from start to start.

import { mkdirSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'

let kept: string | undefined

/**
 * Compiling some hundred files at every start costs a sixth of a second, and half a second and 20 MB where they are sources that
 * lose their types; a cache keeps what comes out of it. Its folder is made here and level by level: Node tries for ever where a
 * level can never exist. An image has a folder that was filled when it was built, and names it in NODE_COMPILE_CACHE.
 */
export function keepCompiled(): void {
  if (process.env['NODE_COMPILE_CACHE'] !== undefined) return
  let folder = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache')
  for (const level of ['', 'penstock', 'compiled']) {
    folder = join(folder, level)
    try {
      mkdirSync(folder)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') return // nothing is kept, then
    }
  }
  enableCompileCache(folder)
  kept = folder
}

/** The environment of a thread: of itself, it keeps nothing. */
export function threadEnvironment(): NodeJS.ProcessEnv {
  return kept === undefined ? process.env : { NODE_COMPILE_CACHE: kept, ...process.env }
}
