// Computes how far reading is behind. Only the lines contain their write time, so this reads the first unread line.

import { tailFiles } from './files.ts'
import type { SlabPool } from './slab.ts'
import type { LineTime, TailedFile, TailOptions } from './tailed-file.ts'

/** Number of bytes read to find the time of the next line. */
const glanceBytes = 4 * 1024

/** Write time of the first unread line of a file, in ms; undefined if there is none. Reads each position once. */
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
    // The first bytes usually suffice: a whole chunk is read only for a longer line.
    for (const length of [Math.min(glanceBytes, slab.buffer.length), slab.buffer.length]) {
      const readBytes = files.readSync(file.descriptor, slab.buffer, 0, length, file.offset)
      slab.split(0, readBytes, delimiter, maxLineBytes)
      for (let line = 0; line < slab.count; line++) {
        const since = timeOf(slab.buffer, slab.starts[line] as number, slab.ends[line] as number)
        if (since === undefined) continue
        file.unread = { offset: file.offset, since }
        return since
      }
      if (readBytes < length) break
    }
  } catch {
    // The next read fails in the same way and reports the error.
  } finally {
    pool.give(slab)
  }
  return undefined
}
