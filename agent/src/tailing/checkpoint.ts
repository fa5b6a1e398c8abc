// The positions where reading continues after a restart: one for each fingerprint, in `checkpoints.json`. The file is replaced as a
// whole: written beside, synced, renamed. A complete file beside it is a replacement that was interrupted before its rename, so it is
// the newer one.
//
// Writes of one file may overlap: the process ends during a write, or a successor of the source reads the file. Each replacement is a
// new file, opened and renamed in one step of the event loop, so the last one to begin wins.

import {
  closeSync,
  fdatasync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFile,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { componentDirectory } from '../data-dir.ts'
import type { Fingerprint } from './fingerprint.ts'

interface Entry {
  position: number
  modified: number
  /** When its file was first missed; the entry is dropped a minute later. */
  missingSince: number | undefined
}

const keepMissingMs = 60_000

const writeText = promisify(writeFile)
const sync = promisify(fdatasync)

/** The tailer that read a file last, and so may write its position: after a reload, the predecessor still receives late answers. */
const owners = new Map<string, Checkpoints>()

export class Checkpoints {
  readonly #entries = new Map<Fingerprint, Entry>()
  readonly #path: string
  readonly #newPath: string
  #changed = false
  #writing: Promise<number> | undefined
  /** Replacements begun so far: an earlier one does not take the place of a later one. */
  #replacements = 0

  readonly #options: { readonly ignoreOlderMs?: number | undefined; readonly ignoreAll?: boolean }

  /**
   * Makes the directory.
   * @param options entries older than `ignoreOlderMs`, or all that are there, are not read
   */
  constructor(
    dataDir: string,
    componentId: string,
    options: { readonly ignoreOlderMs?: number | undefined; readonly ignoreAll?: boolean } = {},
  ) {
    const directory = componentDirectory(dataDir, componentId)
    this.#path = join(directory, 'checkpoints.json')
    this.#newPath = join(directory, 'checkpoints.new.json')
    this.#options = options
  }

  /** Reads the stored positions. From now on only this object may write the file. */
  load(): void {
    owners.set(this.#path, this)
    const options = this.#options
    const replacement = parseFile(this.#newPath)
    if (replacement !== undefined) renameSync(this.#newPath, this.#path)
    if (options.ignoreAll === true) return
    const oldest = options.ignoreOlderMs === undefined ? Number.NEGATIVE_INFINITY : Date.now() - options.ignoreOlderMs
    for (const entry of replacement ?? parseFile(this.#path) ?? []) {
      if (entry.modified >= oldest) {
        this.#entries.set(entry.fingerprint, {
          position: entry.position,
          modified: entry.modified,
          missingSince: undefined,
        })
      }
    }
  }

  /** Whether no successor has read the file, to continue from there. */
  get owned(): boolean {
    return owners.get(this.#path) === this
  }

  get size(): number {
    return this.#entries.size
  }

  /** Something is to be written. */
  get changed(): boolean {
    return this.#changed
  }

  get(fingerprint: Fingerprint): number | undefined {
    return this.#entries.get(fingerprint)?.position
  }

  set(fingerprint: Fingerprint, position: number): void {
    const entry = this.#entries.get(fingerprint)
    if (entry === undefined) {
      this.#entries.set(fingerprint, { position, modified: Date.now(), missingSince: undefined })
    } else {
      if (entry.position === position) return
      entry.position = position
      entry.modified = Date.now()
    }
    this.#changed = true
  }

  delete(fingerprint: Fingerprint): void {
    if (this.#entries.delete(fingerprint)) this.#changed = true
  }

  /** Drops entries whose files have been away for a minute. */
  prune(isPresent: (fingerprint: Fingerprint) => boolean, now: number): void {
    for (const [fingerprint, entry] of this.#entries) {
      if (isPresent(fingerprint)) entry.missingSince = undefined
      else if (entry.missingSince === undefined) entry.missingSince = now
      else if (now - entry.missingSince >= keepMissingMs) {
        this.#entries.delete(fingerprint)
        this.#changed = true
      }
    }
  }

  /** Writes what has changed; returns the number of entries written: none once a successor has read the file. */
  async write(): Promise<number> {
    while (this.#writing !== undefined) await this.#writing.catch(() => 0) // that write's caller reports its failure
    if (!this.#takeChange()) return 0
    this.#writing = this.#replace()
    try {
      return await this.#writing
    } catch (error) {
      this.#changed = true
      throw error
    } finally {
      this.#writing = undefined
    }
  }

  async #replace(): Promise<number> {
    const count = this.#entries.size
    const descriptor = this.#openReplacement()
    const replacement = this.#replacements
    try {
      await writeText(descriptor, this.#text())
      await sync(descriptor)
    } finally {
      closeSync(descriptor)
    }
    if (replacement !== this.#replacements || !this.owned) return 0
    renameSync(this.#newPath, this.#path)
    return count
  }

  /** As `write`, before the process may end. */
  writeSync(): number {
    if (!this.#takeChange()) return 0
    try {
      const descriptor = this.#openReplacement()
      try {
        writeFileSync(descriptor, this.#text())
        fsyncSync(descriptor)
      } finally {
        closeSync(descriptor)
      }
      renameSync(this.#newPath, this.#path)
      return this.#entries.size
    } catch (error) {
      this.#changed = true
      throw error
    }
  }

  /** Whether there is something to write. */
  #takeChange(): boolean {
    const takes = this.#changed && this.owned
    this.#changed = false
    return takes
  }

  /** A separate file: a write in progress continues in the file that it has opened. */
  #openReplacement(): number {
    this.#replacements++
    rmSync(this.#newPath, { force: true })
    return openSync(this.#newPath, 'wx', 0o600)
  }

  // By hand, because a checksum of 64 bits is a number that JSON.stringify cannot write.
  #text(): string {
    const parts: string[] = []
    for (const [fingerprint, entry] of this.#entries) {
      const modified = new Date(entry.modified).toISOString()
      parts.push(
        `{"fingerprint":${fingerprintJson(fingerprint)},"position":${entry.position},"modified":"${modified}"}`,
      )
    }
    return `{"version":"1","checkpoints":[${parts.join(',')}]}`
  }
}

function fingerprintJson(fingerprint: Fingerprint): string {
  if (fingerprint.startsWith('checksum:')) return `{"first_lines_checksum":${BigInt(`0x${fingerprint.slice(9)}`)}}`
  const [, device, inode] = fingerprint.split(':')
  return `{"dev_inode":[${device},${inode}]}`
}

interface FileEntry {
  readonly fingerprint: Fingerprint
  readonly position: number
  readonly modified: number
}

/** Entries of a checkpoint file; undefined if there is none or it is not whole. */
function parseFile(path: string): FileEntry[] | undefined {
  let document: unknown
  try {
    // Numbers as text: a checksum has 64 bits.
    document = JSON.parse(readFileSync(path, 'utf8'), ((_key: string, value: unknown, context: { source?: string }) =>
      typeof value === 'number' ? (context.source ?? String(value)) : value) as (
      key: string,
      value: unknown,
    ) => unknown)
  } catch {
    return undefined
  }
  const checkpoints = (document as { checkpoints?: unknown } | null)?.checkpoints
  if (!Array.isArray(checkpoints)) return undefined
  const entries: FileEntry[] = []
  for (const checkpoint of checkpoints as { fingerprint?: unknown; position?: unknown; modified?: unknown }[]) {
    const fingerprint = fingerprintFrom(checkpoint?.fingerprint)
    const position = Number(checkpoint?.position)
    const modified = Date.parse(String(checkpoint?.modified))
    if (fingerprint !== undefined && Number.isSafeInteger(position) && position >= 0) {
      entries.push({ fingerprint, position, modified: Number.isNaN(modified) ? Date.now() : modified })
    }
  }
  return entries
}

function fingerprintFrom(value: unknown): Fingerprint | undefined {
  const { first_lines_checksum: checksum, dev_inode: inode } = (value ?? {}) as Record<string, unknown>
  if (typeof checksum === 'string' && /^\d+$/.test(checksum)) {
    return `checksum:${BigInt.asUintN(64, BigInt(checksum)).toString(16).padStart(16, '0')}`
  }
  if (Array.isArray(inode) && inode.length === 2) return `inode:${inode[0]}:${inode[1]}`
  return undefined
}
