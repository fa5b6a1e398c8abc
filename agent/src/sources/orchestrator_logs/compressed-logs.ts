// Rotated files that the runtime had compressed before a source found their container. The source does not read them: if it had started
// in time, it would have read these files before their compression. `penstock why` lists them for the pod.

import { createReadStream, existsSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { createGunzip } from 'node:zlib'

export interface CompressedLog {
  readonly file: string
  /** Size of the compressed file in bytes. */
  readonly size: number
  /** Undefined while the lines are being counted. */
  readonly lines: number | undefined
}

const minPruned = 1000

interface Container {
  /** When the source found it, in milliseconds. */
  readonly began: number
  /** The number of lines of each compressed file; undefined while they are being counted. */
  readonly lines: Map<string, number | undefined>
}

export class CompressedLogs {
  readonly #isLeft: (path: string) => boolean
  readonly #containers = new Map<string, Container>()
  /** Above this number of containers, deleted ones are forgotten. */
  #pruneFrom = minPruned

  /** @param isLeft whether the source does not read a file */
  constructor(isLeft: (path: string) => boolean) {
    this.#isLeft = isLeft
  }

  /** The source has found a file in the folder of a container. */
  opened(directory: string): void {
    if (this.#containers.has(directory)) return
    this.#containers.set(directory, { began: Date.now(), lines: new Map() })
    if (this.#containers.size < this.#pruneFrom) return
    for (const known of this.#containers.keys()) if (!existsSync(known)) this.#containers.delete(known)
    this.#pruneFrom = Math.max(minPruned, 2 * this.#containers.size)
  }

  /** The compressed files of a folder, sorted by name. The first call starts to count their lines. */
  in(directory: string): readonly CompressedLog[] {
    const container = this.#containers.get(directory)
    if (container === undefined) return []
    const found: CompressedLog[] = []
    for (const name of namesIn(directory)) {
      const file = join(directory, name)
      const stats = statSync(file, { throwIfNoEntry: false })
      if (stats === undefined || stats.mtimeMs >= container.began || !this.#isLeft(file)) continue
      if (!container.lines.has(file)) {
        container.lines.set(file, undefined)
        void linesIn(file).then((lines) => container.lines.set(file, lines))
      }
      found.push({ file, size: stats.size, lines: container.lines.get(file) })
    }
    return found
  }
}

function namesIn(directory: string): string[] {
  try {
    return readdirSync(directory)
      .filter((name) => name.endsWith('.gz'))
      .sort()
  } catch {
    return [] // the pod was deleted meanwhile
  }
}

/** The number of lines that can be decompressed. The file may be damaged, or be removed meanwhile. */
function linesIn(file: string): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>()
  let lines = 0
  const end = () => resolve(lines)
  createReadStream(file)
    .on('error', end)
    .pipe(createGunzip())
    .on('error', end)
    .on('data', (part: Buffer) => {
      for (let at = part.indexOf(10); at >= 0; at = part.indexOf(10, at + 1)) lines++
    })
    .on('end', end)
  return promise
}
