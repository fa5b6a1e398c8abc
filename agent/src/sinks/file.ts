// File sink: appends events to files whose names may depend on the event. A batch is one write for each of its files, and
// the next batch waits for these writes. The sink retries a write that a full disk interrupted, starting at the first
// unwritten byte, so a file never holds half a line followed by another one.

import { createHash } from 'node:crypto'
import { type FileHandle, mkdir, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { pause } from '../clock.ts'
import { compileStreamEncoder, encodingProblems, linesReason } from '../codecs/encoding/encoder.ts'
import { framingProblems } from '../codecs/framing/encode.ts'
import { defineSink, type Sink, type SinkContext } from '../component.ts'
import { type Compression, compileCompression } from '../delivery/compression.ts'
import type { Batch } from '../event/batch.ts'
import type { Finalizer } from '../event/finalizer.ts'
import { zoneOrUtc } from '../formats/timezone.ts'
import { compression, encoding, outgoingFraming } from '../schema/groups.ts'
import { bool, type Parsed, seconds, template } from '../schema/options.ts'
import { compileTemplate, type Template } from '../template.ts'
import { type FilePart, FileParts } from './file/parts.ts'

const protocol = { protocol: 'file' }
const initialRetryMs = 1000
const maxRetryMs = 30_000
/** Maximum number of open files, because file names come from data. */
const maxOpenFiles = 500
/** Maximum number of truncated files that the sink remembers, at 22 characters each. */
const maxEmptied = 100_000
/** Errors caused by file names, not by disks. */
const impossible = new Set(['EISDIR', 'ENAMETOOLONG', 'ENOTDIR', 'EEXIST', 'ELOOP', 'EINVAL', 'ERR_INVALID_ARG_VALUE'])

const fileOptions = {
  path: template(
    'Path of the file, which may depend on the event and its time. A field cannot lead out of the folder. New files have mode 0600, so only the user of the agent can read them.',
    {
      use: { file: { use: 'write' } },
      examples: ['/var/log/penstock/{{ host }}-%Y-%m-%d.log'],
    },
  ),
  encoding: encoding(),
  framing: outgoingFraming(),
  compression: compression(['none', 'gzip', 'zstd'], 'none'),
  idle_timeout_secs: seconds('Seconds without an event after which the sink closes a file.', {
    default: 30,
    exclusiveMinimum: 0,
  }),
  truncate: bool(
    'Whether to truncate an existing file on the first write after a start. After 100,000 files, the sink truncates no further ones.',
    {
      default: false,
    },
  ),
}

export const fileSink = defineSink({
  type: 'file',
  summary: 'Appends events to files.',
  description:
    'The sink creates missing folders. A compressed file is a sequence of compressed blocks, one for each batch, which `zcat` and `zstdcat` read as one. At most 500 files are open at a time; beyond that, the sink closes the least recently written file and reopens it when needed.',
  accepts: ['log', 'metric'],
  options: fileOptions,
  check: (options) => [...encodingProblems(options.encoding), ...framingProblems(options.framing)],
  objectsBecause: (options) => linesReason(options.encoding, options.framing),
  build: (options, context) => new FileSink(options, context),
})

/** Events may be confidential, so only the user of the agent can read a new file. Existing files keep their mode. */
const newFileMode = 0o600

type FileOptions = Parsed<typeof fileOptions>

class FileSink implements Sink {
  readonly #context: SinkContext
  readonly #path: Template
  readonly #parts: FileParts
  readonly takesBytes: boolean
  readonly #compression: Compression
  readonly #truncate: boolean
  /** Least recently used first. */
  readonly #files = new Map<string, OpenFile>()
  readonly #emptied = new Set<string>()
  #emptiesNoMore = false
  readonly #sweep: NodeJS.Timeout
  /** Number of batches being written. */
  #active = 0
  #writing: Promise<void> | undefined

  constructor(options: FileOptions, context: SinkContext) {
    this.#context = context
    this.#path = compileTemplate(
      options.path,
      context.globals.logSchema.timestampKey,
      zoneOrUtc(context.globals.timezone),
    )
    const encoder = compileStreamEncoder(options.encoding, options.framing, context.globals.logSchema.messageKey)
    this.#parts = new FileParts(this.#path, encoder, context)
    this.takesBytes = this.#parts.takesBytes
    this.#compression = compileCompression(options.compression)
    this.#truncate = options.truncate
    const idleMs = options.idle_timeout_secs * 1000
    this.#sweep = setInterval(() => this.#closeIdle(idleMs), Math.min(idleMs, 5000)).unref()
  }

  write(batch: Batch): Promise<void> | undefined {
    const parts = this.#parts.encode(batch)
    if (parts.length === 0) return undefined
    batch.finalizer.retain(parts.length - 1)
    this.#writing = this.#writeParts(parts, batch.finalizer)
    return this.#writing
  }

  async #writeParts(parts: readonly FilePart[], finalizer: Finalizer): Promise<void> {
    this.#active++
    for (const part of parts) {
      const payload = this.#compression.compress(part.body.view())
      const status = await this.#writePart(part.path, payload)
      if (status === 'delivered') {
        this.#context.events.sent(part.count, part.bytes)
        this.#context.events.sentBytes(payload.length, protocol)
      } else {
        this.#context.events.discarded(part.count, false, 'Could not write the file.')
      }
      finalizer.release(1, status)
      this.#parts.free(part)
    }
    this.#active--
  }

  /** Writes all bytes, with as many writes as needed, unless the file cannot exist or the agent must stop. */
  async #writePart(path: string, payload: Uint8Array): Promise<'delivered' | 'errored' | 'rejected'> {
    const { abandoning, events } = this.#context
    let from = 0
    let retryMs = initialRetryMs
    for (;;) {
      try {
        const target = await this.#open(path)
        while (from < payload.length) {
          const { bytesWritten } = await target.handle.write(payload, from, payload.length - from)
          from += bytesWritten
          retryMs = initialRetryMs
        }
        target.lastUsedMs = performance.now()
        return 'delivered'
      } catch (error) {
        // A retry does not fix a name built from an event; the user can fix a name in the configuration.
        const hopeless = !this.#path.isStatic && impossible.has((error as NodeJS.ErrnoException).code ?? '')
        events.error({
          type: 'io_failed',
          stage: 'sending',
          message: hopeless ? 'The file name is impossible.' : 'Could not write the file; trying again.',
          fields: { path, error },
        })
        await this.#close(path)
        if (hopeless) return 'rejected'
        if (abandoning.aborted) return 'errored'
        await pause(retryMs, abandoning) // one last attempt follows
        retryMs = Math.min(retryMs * 2, maxRetryMs)
      }
    }
  }

  async #open(path: string): Promise<OpenFile> {
    let target = this.#files.get(path)
    if (target === undefined) {
      while (this.#files.size >= maxOpenFiles) await this.#close(this.#files.keys().next().value as string)
      await makeFolder(dirname(path))
      const emptied = this.#truncate ? this.#emptiedName(path) : undefined
      const handle = await open(path, emptied === undefined ? 'a' : 'w', newFileMode)
      if (emptied !== undefined) this.#emptied.add(emptied)
      target = { handle, lastUsedMs: performance.now() }
      this.#files.set(path, target)
      this.#context.events.gauge('open_files', this.#files.size)
    } else {
      this.#files.delete(path)
      this.#files.set(path, target)
    }
    return target
  }

  /** The key under which to remember a file that must be truncated now; undefined if it must not be. */
  #emptiedName(path: string): string | undefined {
    const name = createHash('sha256').update(path).digest('base64').slice(0, 22)
    if (this.#emptied.has(name)) return undefined
    if (this.#emptied.size < maxEmptied) return name
    // A forgotten file would be truncated again, which would lose the events that this sink wrote.
    if (!this.#emptiesNoMore) {
      this.#emptiesNoMore = true
      this.#context.logger.warn(
        { files: maxEmptied },
        'Too many files to remember; further existing files are appended to, not truncated.',
      )
    }
    return undefined
  }

  async #close(path: string): Promise<void> {
    const target = this.#files.get(path)
    if (target === undefined) return
    this.#files.delete(path)
    this.#context.events.gauge('open_files', this.#files.size)
    try {
      await target.handle.close()
    } catch (error) {
      this.#context.events.error({
        type: 'io_failed',
        stage: 'sending',
        message: 'Could not close a file.',
        fields: { path, error },
      })
    }
  }

  #closeIdle(idleMs: number): void {
    if (this.#active > 0) return
    const now = performance.now()
    for (const [path, target] of this.#files) {
      if (now - target.lastUsedMs < idleMs) continue
      this.#writing = Promise.all([this.#writing, this.#close(path)]).then(() => {})
    }
  }

  async close(): Promise<void> {
    clearInterval(this.#sweep)
    await this.#writing
    await Promise.all([...this.#files.keys()].map((path) => this.#close(path)))
  }
}

interface OpenFile {
  readonly handle: FileHandle
  lastUsedMs: number
}

/**
 * Creates a folder and its parents one by one, because Node retries a recursive creation forever if one of them can never
 * exist.
 */
async function makeFolder(folder: string): Promise<void> {
  try {
    await mkdir(folder)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' && dirname(folder) !== folder) {
      await makeFolder(dirname(folder))
      await mkdir(folder).catch(unlessThere)
    } else {
      unlessThere(error)
    }
  }
}

function unlessThere(error: unknown): void {
  // If the path is not a folder, opening the file reports it.
  if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
}
