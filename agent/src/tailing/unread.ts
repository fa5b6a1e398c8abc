// How far reading is behind: looks at the lines from where reading will continue, because only they say when they were written.

import { tailFiles } from './files.ts'
import type { SlabPool } from './slab.ts'
import type { LineTime, TailedFile, TailOptions } from './tailed-file.ts'

/** Bytes read to find out when the next line was written. */
const glanceBytes = 4 * 1024

/** When the first unread line of a file was written, in ms; undefined where none waits. Looks once at each position. */
export function unreadSince<State>(
  file: TailedFile<State>,
  timeOf: LineTime,
  pool: SlabPool,
  { delimiter, maxLineBytes, files = tailFiles }: TailOptions,
): number | undefined {
  if (file.closed || file.gzip || file.discarding) return undefined
  if (file.unread?.offset === file.offset) return file.unread.since
  const slab = pool.take()
  try {
    // Nearly always the first line says it: a whole chunk is read only where that is longer.
    for (const most of [Math.min(glanceBytes, slab.buffer.length), slab.buffer.length]) {
      const length = files.readSync(file.descriptor, slab.buffer, 0, most, file.offset)
      slab.split(0, length, delimiter, maxLineBytes)
      for (let line = 0; line < slab.count; line++) {
        const since = timeOf(slab.buffer, slab.starts[line] as number, slab.ends[line] as number)
        if (since === undefined) continue
        file.unread = { offset: file.offset, since }
        return since
      }
      if (length < most) break
    }
  } catch {
    // The next read gets the same error, and reports it.
  } finally {
    pool.give(slab)
  }
  return undefined
}
