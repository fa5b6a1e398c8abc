// Compiles the library of shim.c once, and controls it through a file.

import { existsSync, mkdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { cacheFolder } from '../cache.ts'
import { execute } from '../command.ts'
import type { Victim } from './victim.ts'

const source = join(import.meta.dirname, 'shim.c')

/** The path of the library, or the reason why there is none. */
export async function compiledShim(): Promise<{ readonly path: string } | { readonly missing: string }> {
  if (process.platform !== 'linux') return { missing: 'system calls can be made to fail on Linux only' }
  const path = join(cacheFolder, 'faults', `shim-${process.arch}.so`)
  if (existsSync(path) && statSync(path).mtimeMs > statSync(source).mtimeMs) return { path }
  mkdirSync(join(path, '..'), { recursive: true })
  try {
    const made = await execute('gcc', ['-shared', '-fPIC', '-O1', '-w', '-o', path, source, '-ldl'])
    return made.code === 0
      ? { path }
      : { missing: `gcc could not compile e2e/faults/shim.c: ${made.stderr.slice(0, 300)}` }
  } catch {
    return { missing: 'there is no gcc, which makes system calls fail (apt-get install gcc)' }
  }
}

/** Preloads the library into later runs. The returned function selects the calls that fail (`write`, `read`, `sync`, `clock 60`). */
export function preload(victim: Victim, library: string, files = 'buffer-data'): (orders: string) => void {
  const path = victim.path('orders')
  writeFileSync(path, '')
  victim.env = { LD_PRELOAD: library, PENSTOCK_SHIM: path, PENSTOCK_SHIM_FILES: files }
  return (orders) => writeFileSync(path, orders)
}
