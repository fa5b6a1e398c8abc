// The only reader of files that an option or a program names. It opens only regular files, because a device may never end and a
// FIFO would wait for its writer. It limits the bytes that it reads instead of the file size, which is 0 for files in /proc. It
// reads no file below a protected folder, where the agent keeps secret values. Errors contain the option, the path and the
// reason, but never content.

import {
  close,
  closeSync,
  constants,
  fstat,
  fstatSync,
  open,
  openSync,
  read,
  readlinkSync,
  readSync,
  realpathSync,
  type Stats,
  stat,
  statSync,
} from 'node:fs'
import { sep } from 'node:path'
import { promisify } from 'node:util'
import { fileReason } from './errors.ts'

/** A file, and the option or parameter that names it. */
export interface GivenFile {
  /** The option or parameter as users write it, such as `tls.ca_file`. */
  readonly option: string
  readonly path: string
  /** 16 MiB by default. */
  readonly maxBytes?: number
}

const defaultMaxBytes = 16 * 1024 * 1024
const pieceBytes = 64 * 1024

/** The file cannot be read, or must not be read. */
export class GivenFileError extends Error {
  readonly file: GivenFile
  /** A clause such as `it is a folder, not a regular file`. */
  readonly reason: string
  /** The system's error code, such as `ENOENT`; undefined if the reader itself rejects the file. */
  readonly code: string | undefined

  constructor(file: GivenFile, reason: string, code?: string, options?: ErrorOptions) {
    super(`\`${file.option}\`: cannot read the file ${JSON.stringify(file.path)}: ${reason}`, options)
    this.name = 'GivenFileError'
    this.file = file
    this.reason = reason
    this.code = code
  }
}

/** Folders that options and programs must not read, each with its number of protections. */
const protectedFolders = new Map<string, number>()

/** Protects a folder, including access through links, until the result is disposed. */
export function protectFolder(path: string): Disposable {
  protectedFolders.set(path, (protectedFolders.get(path) ?? 0) + 1)
  return {
    [Symbol.dispose]() {
      const left = (protectedFolders.get(path) ?? 0) - 1
      if (left > 0) protectedFolders.set(path, left)
      else protectedFolders.delete(path)
    },
  }
}

export function readGivenFile(file: GivenFile): Buffer {
  refuseUnlessRegular(
    file,
    attempt(file, () => statSync(file.path)),
  )
  // Checks again after opening, because the path may meanwhile name another file.
  const descriptor = attempt(file, () => openSync(file.path, constants.O_RDONLY | constants.O_NONBLOCK))
  try {
    refuseUnlessRegular(
      file,
      attempt(file, () => fstatSync(descriptor)),
    )
    refuseProtected(file, descriptor)
    const pieces = new Pieces(file)
    for (;;) {
      const piece = Buffer.allocUnsafe(pieceBytes)
      const count = attempt(file, () => readSync(descriptor, piece, 0, pieceBytes, null))
      if (count === 0) return pieces.whole()
      pieces.add(piece.subarray(0, count))
    }
  } finally {
    closeSync(descriptor)
  }
}

export function readGivenText(file: GivenFile): string {
  return readGivenFile(file).toString('utf8')
}

// Looks up the functions at each call, so that tests can observe which files are opened.
const statAsync = (path: string) => promisify(stat)(path)
const openAsync = (path: string, flags: number) => promisify(open)(path, flags)
const fstatAsync = promisify(fstat)
const readAsync = promisify(read)
const closeAsync = promisify(close)

/** The same without blocking the thread. */
export async function readGivenFileAsync(file: GivenFile): Promise<Buffer> {
  refuseUnlessRegular(file, await attemptAsync(file, statAsync(file.path)))
  const descriptor = await attemptAsync(file, openAsync(file.path, constants.O_RDONLY | constants.O_NONBLOCK))
  try {
    refuseUnlessRegular(file, await attemptAsync(file, fstatAsync(descriptor)))
    refuseProtected(file, descriptor)
    const pieces = new Pieces(file)
    for (;;) {
      const piece = Buffer.allocUnsafe(pieceBytes)
      const { bytesRead } = await attemptAsync(file, readAsync(descriptor, piece, 0, pieceBytes, null))
      if (bytesRead === 0) return pieces.whole()
      pieces.add(piece.subarray(0, bytesRead))
    }
  } finally {
    await closeAsync(descriptor)
  }
}

export async function readGivenTextAsync(file: GivenFile): Promise<string> {
  return (await readGivenFileAsync(file)).toString('utf8')
}

/** Parses a text that may be secret. The error contains no part of the text, unlike that of `JSON.parse`. */
export function parseSecretJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new SyntaxError('it is not valid JSON')
  }
}

class Pieces {
  readonly #file: GivenFile
  readonly #pieces: Buffer[] = []
  #bytes = 0

  constructor(file: GivenFile) {
    this.#file = file
  }

  add(piece: Buffer): void {
    this.#bytes += piece.length
    const { maxBytes = defaultMaxBytes } = this.#file
    if (this.#bytes > maxBytes) throw new GivenFileError(this.#file, `it has more than ${maxBytes} bytes`)
    this.#pieces.push(piece)
  }

  whole(): Buffer {
    return this.#pieces.length === 1 ? (this.#pieces[0] as Buffer) : Buffer.concat(this.#pieces)
  }
}

function refuseUnlessRegular(file: GivenFile, stats: Stats): void {
  if (stats.isFile()) return
  const found = stats.isDirectory()
    ? 'a folder'
    : stats.isFIFO()
      ? 'a FIFO'
      : stats.isSocket()
        ? 'a socket'
        : 'a device'
  throw new GivenFileError(file, `it is ${found}, not a regular file`)
}

function refuseProtected(file: GivenFile, descriptor: number): void {
  if (protectedFolders.size === 0) return
  const real = pathOf(descriptor, file)
  for (const folder of protectedFolders.keys()) {
    if (isBelow(real, folder) || isBelow(real, realOf(folder))) {
      throw new GivenFileError(file, 'it is in the folder of secret values, which options and programs must not read')
    }
  }
}

/** The path of an open file, with all links resolved. */
function pathOf(descriptor: number, file: GivenFile): string {
  try {
    return readlinkSync(`/proc/self/fd/${descriptor}`)
  } catch {
    return attempt(file, () => realpathSync(file.path)) // a system without /proc
  }
}

function realOf(folder: string): string {
  try {
    return realpathSync(folder)
  } catch {
    return folder // the folder does not exist yet, so it contains no file
  }
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)
}

function attempt<T>(file: GivenFile, work: () => T): T {
  try {
    return work()
  } catch (error) {
    throw failed(file, error)
  }
}

async function attemptAsync<T>(file: GivenFile, work: Promise<T>): Promise<T> {
  try {
    return await work
  } catch (error) {
    throw failed(file, error)
  }
}

function failed(file: GivenFile, error: unknown): GivenFileError {
  const code = (error as NodeJS.ErrnoException).code
  return new GivenFileError(file, code === undefined ? 'the path is not valid' : fileReason(error), code, {
    cause: error,
  })
}
