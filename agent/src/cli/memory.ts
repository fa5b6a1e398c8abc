// After the start, returns memory to the system that only the start needed.

import { readFileSync } from 'node:fs'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { Logger } from '../telemetry/logger.ts'

/**
 * Delays in milliseconds after which pages of the program are released, counted from the start of the components. The start itself uses
 * most pages. Releasing them before the heap grows with the first lines keeps them out of the peak of memory. The second time also
 * releases the pages that the first lines have used.
 */
const pagesAfterMs = [0, 2000] as const

/**
 * Delays after which garbage is collected too. After five seconds, the agent has read the first lines. After ten seconds, it has listed
 * the objects of a large cluster, and read the first lines of all files.
 */
const garbageAfterMs = [5000, 10_000] as const

/** Releases memory several times after the components have started. The returned function cancels this. */
export function giveBackAfterStart(logger: Logger): () => void {
  const timers = [
    ...pagesAfterMs.map((ms) => setTimeout(() => giveBackPages(logger), ms)),
    ...garbageAfterMs.map((ms) =>
      setTimeout(() => {
        collectAll()
        giveBackPages(logger)
      }, ms),
    ),
  ]
  for (const timer of timers) timer.unref()
  return () => {
    for (const timer of timers) clearTimeout(timer)
  }
}

/** An agent with little work would keep the garbage of its start for hours, because nothing triggers a collection. */
function collectAll(): void {
  setFlagsFromString('--expose-gc')
  const collect: unknown = runInNewContext('gc')
  setFlagsFromString('--no-expose-gc')
  if (typeof collect === 'function') collect({ type: 'major', execution: 'sync', flavor: 'last-resort' })
}

const mayCallSystem = () => process.platform === 'linux' && process.execArgv.includes('--experimental-ffi')

/** `MADV_DONTNEED` of `madvise(2)`, the same on every architecture of Linux that Node runs on. */
const dontNeed = 4

/**
 * Releases memory that Node itself cannot: pages of the program, and free blocks of `malloc`. For each accessed page of
 * a program, Linux maps up to 15 neighbouring pages from its cache, so most resident pages are unused. Released pages stay in the page
 * cache, so a later access maps them again without reading the disk. This needs `node:ffi`, which is experimental: an agent started
 * without its flag keeps these pages.
 */
function giveBackPages(logger: Logger): void {
  if (!mayCallSystem()) return
  try {
    const { dlopen } = process.getBuiltinModule('node:ffi')
    using system = dlopen(null, { madvise: { arguments: ['uint64', 'uint64', 'int32'], return: 'int32' } })
    for (const { start, length } of unchangedRanges(readFileSync('/proc/self/smaps', 'latin1'))) {
      system.functions.madvise(start, length, dontNeed)
    }
  } catch (error) {
    logger.debug({ error }, 'Pages needed only at start stay in memory.')
  }
  giveBackFreeBlocks(logger)
}

/**
 * Releases the pages that have become free between blocks of `malloc`; `free` only releases those at the end. Needs `node:ffi`, too.
 * For 100 MiB it takes some milliseconds.
 */
export function giveBackFreeBlocks(logger: Logger): void {
  if (!mayCallSystem()) return
  try {
    const { dlopen } = process.getBuiltinModule('node:ffi')
    using glibc = dlopen(null, { malloc_trim: { arguments: ['uint64'], return: 'int32' } })
    glibc.functions.malloc_trim(0n)
  } catch (error) {
    logger.debug({ error }, 'Free blocks stay in memory.')
  }
}

/**
 * The ranges in `/proc/PID/smaps` that are mapped from a file, are not writable, and contain no page that differs from the file, so
 * that unmapping loses no data. Relocated data is read-only too, but differs.
 */
export function unchangedRanges(smaps: string): { start: bigint; length: bigint }[] {
  const ranges = []
  for (const part of smaps.split(/\n(?=[0-9a-f]+-[0-9a-f]+ )/)) {
    const [, start, end] = /^([0-9a-f]+)-([0-9a-f]+) r-[x-]p \S+ \S+ [1-9]\d* +\//.exec(part) ?? []
    if (start === undefined || end === undefined || !/^Anonymous: +0 kB$/m.test(part)) continue
    ranges.push({ start: BigInt(`0x${start}`), length: BigInt(`0x${end}`) - BigInt(`0x${start}`) })
  }
  return ranges
}
