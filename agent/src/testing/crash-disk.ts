// A disk that fails and crashes on demand. It passes the file operations of a disk buffer to a real folder, and records those that change
// it. From the records, it recreates the folder after a kill or a power failure. After a power failure, only changes covered by a sync are
// certain to exist; others exist at random.

import { mkdtempSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { type DiskFiles, diskFiles } from '../buffers/disk/files.ts'
import type { Random } from './random.ts'

export type Step =
  | { readonly op: 'create' | 'unlink'; readonly name: string; readonly file: number }
  | { readonly op: 'rename'; readonly name: string; readonly to: string }
  | { readonly op: 'write'; readonly file: number; readonly at: number; readonly bytes: Buffer }
  | { readonly op: 'truncate'; readonly file: number; readonly size: number }
  /** A sync covers the changes before it began. After a failed sync, the kernel drops them. */
  | { readonly op: 'sync' | 'failed'; readonly file: number; readonly began: number }
  | { readonly op: 'sync_folder'; readonly began: number }
  /** The folder itself and those above it. */
  | { readonly op: 'make_folder' | 'sync_parent'; readonly path: string }

/** Writes are complete when their call returns, before anything else happens. */
export const writeAtOnce = (go: () => void) => process.nextTick(go)

export class CrashDisk implements DiskFiles {
  /** The folder of the buffer. Operations in other folders are not recorded. */
  folder: string
  readonly steps: Step[] = []
  /** The error code to throw instead of running the operation with this name; undefined to run it. */
  fault: (call: string, path: string) => string | undefined = () => undefined
  /** Number of bytes that the next writes accept. */
  room = Number.POSITIVE_INFINITY
  /** Called with a function that completes a sync, and with whether it will fail. */
  hang: (go: () => void, fails: boolean) => unknown = (go) => go()
  /** Called for each write. */
  writes: (go: () => void) => unknown = writeAtOnce
  readonly #root: string
  readonly #names = new Map<string, number>()
  readonly #open = new Map<number, { readonly file: number; readonly path: string }>()
  #files = 0

  constructor(root: string) {
    this.#root = root
    this.folder = join(root, 'data', 'live')
  }

  /** Stops all faults. */
  repair(): void {
    this.fault = () => undefined
    this.hang = (go) => go()
    this.writes = writeAtOnce
    this.room = Number.POSITIVE_INFINITY
  }

  /** Creates the folder as a crash after this many steps may leave it. Also returns the numbers of its files. */
  crashed(step: number, power: Random | undefined): { folder: string; names: Map<string, number> } {
    const names = new Map<string, number>()
    const files = new Map<number, Buffer>()
    const isKept = keptSteps(this.steps, step, power)
    const isGone = power !== undefined && isFolderLost(this.steps, step, power)
    for (let index = 0; index < step; index++) {
      const at = this.steps[index] as Step
      const kept = isKept[index]
      if (!kept || isGone) continue
      if (at.op === 'write' || at.op === 'truncate') {
        files.set(at.file, changed(files.get(at.file) ?? Buffer.alloc(0), at, kept === 'torn' ? power : undefined))
      } else if (at.op === 'create') {
        names.set(basename(at.name), at.file)
      } else if (at.op === 'unlink') {
        names.delete(basename(at.name))
      } else if (at.op === 'rename') {
        names.set(basename(at.to), names.get(basename(at.name)) ?? -1)
        names.delete(basename(at.name))
      }
    }
    const folder = mkdtempSync(join(this.#root, 'crash-'))
    for (const [name, file] of names) writeFileSync(join(folder, name), files.get(file) ?? '')
    return { folder, names }
  }

  /** Continues as after a kill. Later actions of the previous run are ignored. */
  kill(): void {
    const { folder, names } = this.crashed(this.steps.length, undefined)
    this.folder = folder
    this.#open.clear()
    this.#names.clear()
    for (const [name, file] of names) this.#names.set(join(folder, name), file)
  }

  // --- The operations ---

  readonly readdirSync = diskFiles.readdirSync
  readonly sizeSync = diskFiles.sizeSync
  readonly open = diskFiles.open
  readonly read = diskFiles.read

  mkdirSync(path: string, options: { readonly mode: number }): void {
    diskFiles.mkdirSync(path, options)
    if (this.#isOurs(path) || this.#isAbove(path)) this.steps.push({ op: 'make_folder', path })
  }

  fsyncSync(file: number): void {
    diskFiles.fsyncSync(file)
    this.steps.push({ op: 'sync_parent', path: this.#opened(file).path })
  }

  openSync(path: string, flags: string | number, mode?: number): number {
    this.#check('open', path)
    const file = diskFiles.openSync(path, flags, mode)
    if (this.#isAbove(path)) this.#open.set(file, { file: -1, path })
    if (!this.#isOurs(path)) return file
    if (path !== this.folder && !this.#names.has(path)) {
      this.#names.set(path, ++this.#files)
      this.steps.push({ op: 'create', name: path, file: this.#files })
    }
    this.#open.set(file, { file: path === this.folder ? 0 : this.#named(path), path })
    return file
  }

  closeSync(file: number): void {
    this.#open.delete(file)
    diskFiles.closeSync(file)
  }

  readSync(file: number, into: Buffer, offset: number, length: number, at: number): number {
    this.#check('read', this.#opened(file).path)
    return diskFiles.readSync(file, into, offset, length, at)
  }

  writeSync(file: number, bytes: Buffer, offset: number, length: number, at: number): number {
    const { file: id, path } = this.#opened(file)
    this.#check('write', path)
    if (id >= 0) {
      this.steps.push({ op: 'write', file: id, at, bytes: Buffer.from(bytes.subarray(offset, offset + length)) })
    }
    return diskFiles.writeSync(file, bytes, offset, length, at)
  }

  writev(file: number, pieces: readonly Buffer[], at: number): Promise<number> {
    return new Promise((resolve, reject) => {
      this.writes(() => {
        const { file: id, path } = this.#opened(file)
        const bytes = Buffer.concat(pieces).subarray(0, this.room)
        this.room = Math.max(0, this.room - bytes.length)
        const full = bytes.length === 0 ? Object.assign(new Error('ENOSPC'), { code: 'ENOSPC' }) : undefined
        const error = this.#failure('write', path) ?? full
        if (error !== undefined) {
          reject(error)
          return
        }
        if (id >= 0) this.steps.push({ op: 'write', file: id, at, bytes })
        resolve(diskFiles.writeSync(file, bytes, 0, bytes.length, at))
      })
    })
  }

  ftruncateSync(file: number, size: number): void {
    const { file: id } = this.#opened(file)
    if (id >= 0) this.steps.push({ op: 'truncate', file: id, size })
    diskFiles.ftruncateSync(file, size)
  }

  truncateSync(path: string, size: number): void {
    if (this.#names.has(path)) this.steps.push({ op: 'truncate', file: this.#named(path), size })
    diskFiles.truncateSync(path, size)
  }

  renameSync(from: string, to: string): void {
    this.#check('rename', from)
    diskFiles.renameSync(from, to)
    if (!this.#names.has(from)) return
    this.steps.push({ op: 'rename', name: from, to })
    this.#names.set(to, this.#named(from))
    this.#names.delete(from)
  }

  unlinkSync(path: string): void {
    diskFiles.unlinkSync(path)
    this.#removed(path)
  }

  rmSync(path: string, options: { readonly recursive?: boolean; readonly force: true }): void {
    diskFiles.rmSync(path, options)
    this.#removed(path)
  }

  async unlink(path: string): Promise<void> {
    this.#check('unlink', path)
    await diskFiles.unlink(path)
    this.#removed(path)
  }

  fdatasync(file: number): Promise<void> {
    return this.#sync('fdatasync', file)
  }

  fsync(file: number): Promise<void> {
    return this.#sync('fsync', file)
  }

  #sync(call: 'fdatasync' | 'fsync', file: number): Promise<void> {
    const { file: id, path } = this.#opened(file)
    const began = this.steps.length
    const error = this.#failure(call, path)
    return new Promise((resolve, reject) => {
      if (error !== undefined) {
        const fail = () => {
          if (id > 0) this.steps.push({ op: 'failed', file: id, began })
          reject(error)
        }
        setImmediate(() => this.hang(fail, true))
        return
      }
      const synced = () => {
        if (id > 0) this.steps.push({ op: 'sync', file: id, began })
        else if (id === 0) this.steps.push({ op: 'sync_folder', began })
        resolve()
      }
      this.hang(() => diskFiles[call](file).then(synced, reject), false)
    })
  }

  #isOurs(path: string): boolean {
    return this.folder !== '' && path.startsWith(this.folder)
  }

  #isAbove(path: string): boolean {
    return this.folder.startsWith(`${path}/`)
  }

  #named(path: string): number {
    return this.#names.get(path) ?? -1
  }

  #opened(file: number): { readonly file: number; readonly path: string } {
    return this.#open.get(file) ?? { file: -1, path: '' }
  }

  #failure(call: string, path: string): Error | undefined {
    const code = this.#isOurs(path) ? this.fault(call, path) : undefined
    return code === undefined ? undefined : Object.assign(new Error(`${code}: ${call} ${path}`), { code })
  }

  #check(call: string, path: string): void {
    const error = this.#failure(call, path)
    if (error !== undefined) throw error
  }

  #removed(path: string): void {
    if (!this.#names.has(path)) return
    this.steps.push({ op: 'unlink', name: path, file: this.#named(path) })
    this.#names.delete(path)
  }
}

/** Whether the folder or one of its parents is missing, which is possible if no sync of its parent has covered it. */
function isFolderLost(steps: readonly Step[], step: number, power: Random): boolean {
  const done = steps.slice(0, step)
  return done.some((made, index) => {
    if (made.op !== 'make_folder') return false
    const isSynced = (after: Step) => after.op === 'sync_parent' && after.path === dirname(made.path)
    return !done.slice(index).some(isSynced) && power.chance(0.5)
  })
}

function changed(before: Buffer, step: Extract<Step, { op: 'write' | 'truncate' }>, torn: Random | undefined): Buffer {
  if (step.op === 'truncate') return Buffer.concat([before], step.size)
  const bytes = torn === undefined ? step.bytes : step.bytes.subarray(0, torn.below(step.bytes.length))
  const after = Buffer.concat([before], Math.max(before.length, step.at + bytes.length))
  bytes.copy(after, step.at)
  return after
}

/** The steps that have reached the disk: after a kill all; after a power failure those covered by a sync, and random others. */
function keptSteps(steps: readonly Step[], step: number, power: Random | undefined): (boolean | 'torn')[] {
  if (power === undefined) return new Array(step).fill(true)
  const kept: (boolean | 'torn')[] = new Array(step).fill(false)
  let open: number[] = []
  let folder: number[] = []
  const chance = (indexes: number[]) => {
    for (const index of indexes) kept[index] = ([true, false, 'torn'] as const)[power.below(3)] ?? false
  }
  for (let index = 0; index < step; index++) {
    const at = steps[index] as Step
    if (at.op === 'sync' || at.op === 'failed') {
      // The failure may also concern data written meanwhile, because the kernel reports it only once.
      const until = at.op === 'failed' ? index : at.began
      const covered = (other: number) => other < until && (steps[other] as { file: number }).file === at.file
      if (at.op === 'failed') chance(open.filter(covered))
      else for (const other of open.filter(covered)) kept[other] = true
      open = open.filter((other) => !covered(other))
    } else if (at.op === 'sync_folder') {
      for (const other of folder) if (other < at.began) kept[other] = true
      folder = folder.filter((other) => other >= at.began)
    } else if (at.op === 'write' || at.op === 'truncate') open.push(index)
    else folder.push(index)
  }
  chance(open)
  // Changes of names keep their order.
  for (const index of folder.slice(0, power.below(folder.length + 1))) kept[index] = true
  return kept
}
