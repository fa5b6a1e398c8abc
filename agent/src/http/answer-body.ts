// Bodies of answers, whose length the other side decides: the client keeps at most the number of bytes that the caller requested, and
// decompresses a body only up to that number.

import {
  type BrotliDecompress,
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
  type Gunzip,
  type Inflate,
  type ZstdDecompress,
} from 'node:zlib'

/** Bytes of the answers under way that one client holds, all together. */
export const maxHeldBytes = 64 << 20

/** The bytes that the current answers of one client hold together. */
export interface HeldBytes {
  held: number
}

/** Collects the beginning of a body. Pieces are copied: views of one byte each would cost a hundred times their size. */
export class AnswerBody {
  readonly #limit: number
  readonly #client: HeldBytes
  #bytes: Buffer | undefined
  #length = 0
  #received = 0
  #full = false

  constructor(limit: number, client: HeldBytes) {
    this.#limit = limit
    this.#client = client
  }

  /** Bytes that have come and are not kept. */
  get surplus(): number {
    return this.#received - this.#length
  }

  add(piece: Buffer): void {
    this.#received += piece.length
    if (this.#full) return
    let end = Math.min(this.#length + piece.length, this.#limit)
    if (this.#bytes === undefined || end > this.#bytes.length) end = this.#grow(end)
    const taken = end - this.#length
    if (taken > 0) piece.copy(this.#bytes as Buffer, this.#length, 0, taken)
    this.#length = Math.max(this.#length, end)
    // Nothing follows a gap.
    this.#full = taken < piece.length
  }

  /** Makes room up to `end`, or as close to it as the client may hold; returns the part that fits. */
  #grow(end: number): number {
    const before = this.#bytes?.length ?? 0
    const free = Math.max(0, maxHeldBytes - this.#client.held)
    const wanted = before === 0 ? end : Math.min(Math.max(2 * before, end), this.#limit)
    const size = Math.min(wanted, before + free)
    if (size <= before) return Math.min(end, before)
    const grown = Buffer.allocUnsafe(size)
    this.#bytes?.copy(grown, 0, 0, this.#length)
    this.#bytes = grown
    this.#client.held += size - before
    return Math.min(end, size)
  }

  /** The body without its content coding. */
  async decoded(coding: string | undefined): Promise<Buffer> {
    const raw = this.raw()
    const limit = Math.min(this.#limit, Math.max(0, maxHeldBytes - this.#client.held))
    this.#client.held += limit
    try {
      return await decompress(raw, coding, limit)
    } finally {
      this.#client.held -= limit
    }
  }

  raw(): Buffer {
    return this.#bytes?.subarray(0, this.#length) ?? Buffer.alloc(0)
  }

  /** The caller has the body, or there will be none. */
  release(): void {
    this.#client.held -= this.#bytes?.length ?? 0
    this.#bytes = undefined
    this.#length = 0
  }
}

type Decompressor = Gunzip | Inflate | BrotliDecompress | ZstdDecompress

/** Codings that `decompress` knows. */
export const codings: ReadonlySet<string> = new Set(['gzip', 'deflate', 'br', 'zstd'])

function decompressorOf(coding: string): Decompressor | undefined {
  // A body that was cut off returns the part that arrived.
  switch (coding) {
    case 'gzip':
      return createGunzip({ finishFlush: constants.Z_SYNC_FLUSH })
    case 'deflate':
      return createInflate({ finishFlush: constants.Z_SYNC_FLUSH })
    case 'br':
      return createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH })
    case 'zstd':
      // RFC 9659: a content coding needs no larger window. The default would let a body of some bytes ask for 128 MiB.
      return createZstdDecompress({
        finishFlush: constants.ZSTD_e_flush,
        params: { [constants.ZSTD_d_windowLogMax]: 23 },
      })
    default:
      return undefined
  }
}

/**
 * The beginning of a body without its content coding, up to `limit` bytes; the body as it is where nothing can be read, as an answer that
 * cannot be read is judged by its status.
 */
function decompress(body: Buffer, coding: string | undefined, limit: number): Promise<Buffer> {
  const stream = coding === undefined || body.length === 0 ? undefined : decompressorOf(coding)
  if (stream === undefined) return Promise.resolve(body)
  const { promise, resolve } = Promise.withResolvers<Buffer>()
  const pieces: Buffer[] = []
  let length = 0
  const end = () => {
    stream.destroy()
    resolve(length === 0 ? body : Buffer.concat(pieces, Math.min(length, limit)))
  }
  stream.on('data', (piece: Buffer) => {
    if (length < limit) pieces.push(piece)
    length += piece.length
    if (length >= limit) end()
  })
  stream.on('end', end)
  stream.on('error', end) // `body` is no such thing, or has ended too early
  stream.end(body)
  return promise
}
