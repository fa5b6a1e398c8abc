// The positions where reading continues after a restart: one for each fingerprint, in `checkpoints.json`. The file is replaced as a
// whole: a new file is written, synced and renamed. A complete new file that was not renamed yet is the more recent one.
// Writes of one file may overlap, because the process may stop during a write, or a successor of the source may read the file. Each
// replacement is a new file, opened and renamed in one step of the event loop, so the last one to begin wins.

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
  /** When its file was first found missing; the entry is dropped a minute later. */
  missingSince: number | undefined
}

const keepMissingMs = 60_000

const writeText = promisify(writeFile)
const sync = promisify(fdatasync)

/** The last tailer that read a file, and so may write its position: after a reload, the predecessor still receives late answers. */
const owners = new Map<string, Checkpoints>()

export class Checkpoints {
  readonly #entries = new Map<Fingerprint, Entry>()
  readonly #path: string
  readonly #newPath: string
  #changed = false
  #writing: Promise<number> | undefined
  /** Number of replacements begun: an earlier one never overwrites a later one. */
  #replacements = 0

  readonly #options: { readonly ignoreOlderMs?: number | undefined; readonly ignoreAll?: boolean }

  /** Creates the directory. @param options entries older than `ignoreOlderMs`, or all existing ones, are ignored */
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

  /** Reads the stored positions. Afterwards only this object may write the file. */
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

  /** Whether no successor has taken the file over. */
  get owned(): boolean {
    return owners.get(this.#path) === this
  }

  get size(): number {
    return this.#entries.size
  }

  /** Whether there are unwritten changes. */
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

  /** Drops entries whose files have been missing for a minute. */
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

  /** Writes changes; returns the number of entries written, which is 0 once a successor has taken the file over. */
  async write(): Promise<number> {
    while (this.#writing !== undefined) await this.#writing.catch(() => 0) // the caller of that write reports its failure
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

  /** Like `write`, for use before the process may end. */
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

  /** Whether there are changes to write; clears the flag. */
  #takeChange(): boolean {
    const takes = this.#changed && this.owned
    this.#changed = false
    return takes
  }

  /** Uses a separate file, because a write in progress continues in the file that it has opened. */
  #openReplacement(): number {
    this.#replacements++
    rmSync(this.#newPath, { force: true })
    return openSync(this.#newPath, 'wx', 0o600)
  }

  // Formatted without JSON.stringify, which cannot write a 64-bit checksum as a number.
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

/** Entries of a checkpoint file; undefined if it is missing or incomplete. */
function parseFile(path: string): FileEntry[] | undefined {
  let document: unknown
  try {
    // Reads numbers as text, because a checksum has 64 bits.
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
