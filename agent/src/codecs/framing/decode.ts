// Splits a stream of bytes into frames, regardless of the pieces in which it arrives. A frame that is too long is reported and skipped,
// and reading continues with the next one. The reader stores at most one frame of permitted length. Frames are views of its memory, so
// they are valid only until the next push.

import { defaultFrameLength, type FramingMethod, type FramingOptions } from '../../schema/groups.ts'
import { delimiterByte } from './encode.ts'

/** The result of reading some bytes. */
export interface Frames {
  readonly frames: Buffer[]
  /** A message for each skipped frame. */
  readonly failures: string[]
}

/** Reads frames from the beginning of `bytes`, and returns how many bytes they used. The first `scanned` bytes were already searched. */
interface Splitter {
  split(bytes: Buffer, scanned: number, out: Frames): number
  /** Handles the end of the stream. `bytes` are the remaining bytes. */
  end(bytes: Buffer, out: Frames): void
}

const nothing = Buffer.alloc(0)

export class FrameReader {
  readonly #splitter: Splitter
  /** Bytes of an incomplete frame: `#memory[0, #length)`. */
  #memory = nothing
  #length = 0

  /** @param maxLength maximum length for the method `bytes`, which has no option for it and treats a whole stream as one frame */
  constructor(options: FramingOptions | FramingMethod, maxLength?: number) {
    this.#splitter = splitter(options, maxLength)
  }

  push(bytes: Buffer): Frames {
    const out: Frames = { frames: [], failures: [] }
    let view = bytes
    const scanned = this.#length
    if (scanned > 0) {
      this.#append(bytes)
      view = this.#memory.subarray(0, this.#length)
    }
    const done = this.#splitter.split(view, scanned, out)
    if (scanned === 0) {
      this.#length = 0
      if (done < view.length) this.#append(view.subarray(done))
    } else if (done === view.length) {
      this.#length = 0
    } else if (done > 0) {
      // The returned frames are views of this memory, so move the rest to new memory.
      const rest = view.subarray(done)
      this.#memory = nothing
      this.#length = 0
      this.#append(rest)
    }
    return out
  }

  /** Ends the stream. Remaining bytes are a frame if the method allows it. */
  end(): Frames {
    const out: Frames = { frames: [], failures: [] }
    this.#splitter.end(this.#memory.subarray(0, this.#length), out)
    this.#length = 0
    return out
  }

  #append(bytes: Buffer): void {
    const needed = this.#length + bytes.length
    if (needed > this.#memory.length) {
      const grown = Buffer.allocUnsafe(Math.max(needed, Math.min(this.#memory.length * 2, needed + (64 << 20)), 4096))
      this.#memory.copy(grown, 0, 0, this.#length)
      this.#memory = grown
    }
    bytes.copy(this.#memory, this.#length)
    this.#length = needed
  }
}

function splitter(options: FramingOptions | FramingMethod, maxLength: number | undefined): Splitter {
  const chosen = typeof options === 'string' ? { method: options } : options
  const detail = typeof options === 'string' ? undefined : options
  switch (chosen?.method) {
    case 'newline_delimited':
      return new Delimited(0x0a, detail?.newline_delimited?.max_length)
    case 'character_delimited':
      return new Delimited(detail === undefined ? 0 : delimiterByte(detail), detail?.character_delimited?.max_length)
    case 'length_delimited':
      return new LengthDelimited(detail?.length_delimited?.max_frame_length ?? defaultFrameLength)
    case 'octet_counting':
      return new OctetCounting(detail?.octet_counting?.max_length)
    default:
      return new WholeStream(maxLength)
  }
}

function tooLong(maxLength: number): string {
  return `The frame is longer than the limit of ${maxLength} bytes.`
}

class WholeStream implements Splitter {
  readonly #maxLength: number
  #isTooLong = false

  constructor(maxLength = Number.POSITIVE_INFINITY) {
    this.#maxLength = maxLength
  }

  split(bytes: Buffer, _scanned: number, out: Frames): number {
    if (!this.#isTooLong && bytes.length > this.#maxLength) {
      out.failures.push(tooLong(this.#maxLength))
      this.#isTooLong = true
    }
    return this.#isTooLong ? bytes.length : 0
  }

  end(bytes: Buffer, out: Frames): void {
    if (bytes.length > 0 && !this.#isTooLong) out.frames.push(bytes)
    this.#isTooLong = false
  }
}

class Delimited implements Splitter {
  readonly #delimiter: number
  readonly #maxLength: number
  /** True inside a frame that is too long. */
  #skipping = false

  constructor(delimiter: number, maxLength = Number.POSITIVE_INFINITY) {
    this.#delimiter = delimiter
    this.#maxLength = maxLength
  }

  split(bytes: Buffer, scanned: number, out: Frames): number {
    let from = 0
    let at = bytes.indexOf(this.#delimiter, scanned)
    while (at >= 0) {
      if (this.#skipping) this.#skipping = false
      else if (at - from > this.#maxLength) out.failures.push(tooLong(this.#maxLength))
      else out.frames.push(bytes.subarray(from, at))
      from = at + 1
      at = bytes.indexOf(this.#delimiter, from)
    }
    if (this.#skipping) return bytes.length
    if (bytes.length - from > this.#maxLength) {
      out.failures.push(tooLong(this.#maxLength))
      this.#skipping = true
      return bytes.length
    }
    return from
  }

  end(bytes: Buffer, out: Frames): void {
    if (bytes.length > 0 && !this.#skipping) out.frames.push(bytes)
    this.#skipping = false
  }
}

class LengthDelimited implements Splitter {
  readonly #maxLength: number
  /** Number of bytes left to skip of a frame that is too long. */
  #skip = 0

  constructor(maxLength: number) {
    this.#maxLength = maxLength
  }

  split(bytes: Buffer, _scanned: number, out: Frames): number {
    let from = Math.min(this.#skip, bytes.length)
    this.#skip -= from
    while (bytes.length - from >= 4) {
      const length = bytes.readUInt32BE(from)
      if (length > this.#maxLength) {
        out.failures.push(tooLong(this.#maxLength))
        const skipped = Math.min(length, bytes.length - from - 4)
        this.#skip = length - skipped
        from += 4 + skipped
        continue
      }
      if (bytes.length - from - 4 < length) break
      out.frames.push(bytes.subarray(from + 4, from + 4 + length))
      from += 4 + length
    }
    return from
  }

  end(bytes: Buffer, out: Frames): void {
    if (bytes.length > 0 || this.#skip > 0) out.failures.push('The stream ended within a frame.')
    this.#skip = 0
  }
}

/** `LEN SP MSG` of RFC 6587; a frame that does not begin with a digit from 1 to 9 ends at a newline. */
class OctetCounting implements Splitter {
  readonly #maxLength: number
  /** Number of bytes left to skip of a counted frame that is too long. */
  #skip = 0
  /** True until the next newline, inside a line that is too long or has an invalid count. */
  #skippingLine = false

  constructor(maxLength = Number.POSITIVE_INFINITY) {
    this.#maxLength = maxLength
  }

  split(bytes: Buffer, scanned: number, out: Frames): number {
    let from = 0
    while (from < bytes.length) {
      const first = bytes[from] as number
      let next: number
      if (this.#skip > 0) next = this.#skipCounted(bytes, from)
      else if (this.#skippingLine || first < 0x31 || first > 0x39) next = this.#line(bytes, from, scanned, out)
      else next = this.#counted(bytes, from, out)
      if (next === from) return from
      from = next
    }
    return from
  }

  #skipCounted(bytes: Buffer, from: number): number {
    const skipped = Math.min(this.#skip, bytes.length - from)
    this.#skip -= skipped
    return from + skipped
  }

  #line(bytes: Buffer, from: number, scanned: number, out: Frames): number {
    const end = bytes.indexOf(0x0a, Math.max(from, scanned))
    const length = (end < 0 ? bytes.length : end) - from
    if (!this.#skippingLine && length > this.#maxLength) {
      out.failures.push(tooLong(this.#maxLength))
      this.#skippingLine = true
    }
    if (end < 0) return this.#skippingLine ? bytes.length : from
    if (!this.#skippingLine) out.frames.push(bytes.subarray(from, end))
    this.#skippingLine = false
    return end + 1
  }

  #counted(bytes: Buffer, from: number, out: Frames): number {
    let at = from
    let length = 0
    for (;;) {
      if (at === bytes.length) return from
      const byte = bytes[at] as number
      if (byte === 0x20) break
      if (byte < 0x30 || byte > 0x39 || at - from >= 10) {
        out.failures.push('The length of a frame is not a number.')
        this.#skippingLine = true
        return at
      }
      length = length * 10 + byte - 0x30
      at++
    }
    const start = at + 1
    if (length > this.#maxLength) {
      out.failures.push(tooLong(this.#maxLength))
      this.#skip = length
      return start
    }
    if (bytes.length - start < length) return from
    out.frames.push(bytes.subarray(start, start + length))
    return start + length
  }

  end(bytes: Buffer, out: Frames): void {
    const first = bytes[0]
    if (first !== undefined && (first < 0x31 || first > 0x39)) out.frames.push(bytes)
    else if (first !== undefined || this.#skip > 0) out.failures.push('The stream ended within a frame.')
    this.#skip = 0
    this.#skippingLine = false
  }
}
