// Reads the bodies of requests, which are limited in size, per namespace, and in total, because tenants control some of the senders.
// Bytes count for as long as they are in memory.

import type { IncomingMessage } from 'node:http'
import { promisify } from 'node:util'
import { gunzip as gunzipWithCallback } from 'node:zlib'

const gunzip = promisify(gunzipWithCallback)

/** Maximum number of bytes in memory. */
export interface BodyLimits {
  readonly perNamespace: number
  readonly total: number
}

/** Why a body is not read: it is too large, it is not compressed as its header says, or too many bytes are in memory. */
type Refusal = 'size' | 'invalid' | 'busy'

/** A body that counts until it is disposed. */
export class CountedBody implements Disposable {
  readonly length: number
  #content: Buffer | undefined
  readonly #release: () => void

  constructor(content: Buffer, release: () => void) {
    this.length = content.length
    this.#content = content
    this.#release = release
  }

  /** The content, which this object no longer holds afterwards. */
  take(): Buffer {
    const content = this.#content
    if (content === undefined) throw new Error('The body has already been taken.')
    this.#content = undefined
    return content
  }

  [Symbol.dispose](): void {
    this.#content = undefined
    this.#release()
  }
}

export class Bodies {
  readonly #limits: BodyLimits
  readonly #byNamespace = new Map<string, number>()
  #total = 0

  constructor(limits: BodyLimits) {
    this.#limits = limits
  }

  /** @param maxBytes maximum number of bytes, compressed or not */
  async read(request: IncomingMessage, namespace: string, maxBytes: number): Promise<CountedBody | Refusal> {
    const parts: Buffer[] = []
    let length = 0
    let held = 0
    const hold = (bytes: number) => {
      held += bytes
      return this.#count(namespace, bytes)
    }
    const release = () => {
      this.#count(namespace, -held)
      held = 0
    }
    let isKept = false
    try {
      for await (const part of request as AsyncIterable<Buffer>) {
        length += part.length
        if (length > maxBytes) return 'size'
        if (!hold(part.length)) return 'busy'
        parts.push(part)
      }
      let content: Buffer = Buffer.concat(parts)
      if (request.headers['content-encoding'] === 'gzip') {
        const plain = await decompressed(content, maxBytes)
        if (typeof plain === 'string') return plain
        content = plain
        if (!hold(content.length - length)) return 'busy'
      }
      isKept = true
      return new CountedBody(content, release)
    } finally {
      if (!isKept) release()
    }
  }

  /** Adds to the counts; false if they exceed a limit. */
  #count(namespace: string, bytes: number): boolean {
    const own = (this.#byNamespace.get(namespace) ?? 0) + bytes
    if (own > 0) this.#byNamespace.set(namespace, own)
    else this.#byNamespace.delete(namespace)
    this.#total += bytes
    return own <= this.#limits.perNamespace && this.#total <= this.#limits.total
  }
}

async function decompressed(content: Buffer, maxBytes: number): Promise<Buffer | Refusal> {
  try {
    return await gunzip(content, { maxOutputLength: maxBytes })
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE' ? 'size' : 'invalid'
  }
}
