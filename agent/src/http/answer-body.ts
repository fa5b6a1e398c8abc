// Response bodies. The server decides their length, so the client keeps at most the number of bytes that the caller requested, and
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

/** Maximum number of bytes that one client holds for all current responses together. */
export const maxHeldBytes = 64 << 20

/** The number of bytes that one client holds for its current responses. */
export interface HeldBytes {
  held: number
}

/** Collects the beginning of a body. It copies the pieces, because a view of a single byte would cost a hundred times its size. */
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

  /** Number of received bytes that were not kept. */
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
    // Keep nothing after a gap.
    this.#full = taken < piece.length
  }

  /** Grows the buffer to `end`, or as far as the client's limit allows. Returns the end of the part that fits. */
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

  /** The decompressed body. */
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

  /** Releases the memory, after the caller has received the body or the request has failed. */
  release(): void {
    this.#client.held -= this.#bytes?.length ?? 0
    this.#bytes = undefined
    this.#length = 0
  }
}

type Decompressor = Gunzip | Inflate | BrotliDecompress | ZstdDecompress

/** Codings that `decompress` supports. */
export const codings: ReadonlySet<string> = new Set(['gzip', 'deflate', 'br', 'zstd'])

function decompressorOf(coding: string): Decompressor | undefined {
  // With these options, a truncated body decompresses to the part that arrived.
  switch (coding) {
    case 'gzip':
      return createGunzip({ finishFlush: constants.Z_SYNC_FLUSH })
    case 'deflate':
      return createInflate({ finishFlush: constants.Z_SYNC_FLUSH })
    case 'br':
      return createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH })
    case 'zstd':
      // RFC 9659: a content coding needs no larger window. With the default, a small body could request 128 MiB.
      return createZstdDecompress({
        finishFlush: constants.ZSTD_e_flush,
        params: { [constants.ZSTD_d_windowLogMax]: 23 },
      })
    default:
      return undefined
  }
}

/**
 * Decompresses the beginning of a body, up to `limit` bytes. Returns the body unchanged if it cannot be decompressed; the caller then
 * relies on the status of the response.
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
  stream.on('error', end) // `body` does not have this coding, or is truncated
  stream.end(body)
  return promise
}
