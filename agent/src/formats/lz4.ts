// Writes and reads LZ4 blocks, and reads frames. Frame checksums are not verified.
// Hand-written, because the maintained libraries are native code, which the images do not contain.

const shortest = 4

/** Compresses data into a block. */
export function compressBlock(data: Uint8Array): Buffer {
  const out: number[] = []
  const seen = new Int32Array(1 << 14).fill(-1)
  const word = (at: number): number =>
    ((data[at] as number) |
      ((data[at + 1] as number) << 8) |
      ((data[at + 2] as number) << 16) |
      ((data[at + 3] as number) << 24)) >>>
    0
  const length = (value: number): void => {
    let rest = value
    for (; rest >= 255; rest -= 255) out.push(255)
    out.push(rest)
  }
  const sequence = (from: number, to: number, offset: number, match: number): void => {
    const literals = to - from
    const rest = match - shortest
    out.push((Math.min(literals, 15) << 4) | (offset === 0 ? 0 : Math.min(rest, 15)))
    if (literals >= 15) length(literals - 15)
    for (let at = from; at < to; at++) out.push(data[at] as number)
    if (offset === 0) return
    out.push(offset & 255, offset >> 8)
    if (rest >= 15) length(rest - 15)
  }
  let anchor = 0
  let at = 0
  // The format requires the last 5 bytes as literals, and no match that begins in the last 12.
  const limit = data.length - 12
  while (at < limit) {
    const value = word(at)
    const slot = Math.imul(value, 2654435761) >>> 18
    const candidate = seen[slot] as number
    seen[slot] = at
    if (candidate < 0 || at - candidate > 0xffff || word(candidate) !== value) {
      at++
      continue
    }
    let match = shortest
    while (at + match < data.length - 5 && data[candidate + match] === data[at + match]) match++
    sequence(anchor, at, at - candidate, match)
    at += match
    anchor = at
  }
  sequence(anchor, data.length, 0, 0)
  return Buffer.from(out)
}

/** Decompresses a block; undefined if it is invalid or exceeds the allowed size. */
export function decompressBlock(block: Uint8Array, maxBytes: number): Buffer | undefined {
  const out = outputOf(block, maxBytes)
  const end = decompressInto(block, out, 0)
  return end < 0 ? undefined : out.subarray(0, end)
}

/** A buffer for the maximum output: a byte expands to at most 255. */
function outputOf(data: Uint8Array, maxBytes: number): Buffer {
  return Buffer.alloc(Math.min(maxBytes, data.length * 255 + 64))
}

/** Decompresses after the existing content of the buffer; returns the new end, or -1. */
function decompressInto(block: Uint8Array, out: Buffer, from: number): number {
  let at = 0
  let end = from
  while (at < block.length) {
    const token = block[at++] as number
    let literals = token >> 4
    if (literals === 15) {
      let more: number
      do {
        if (at >= block.length) return -1
        more = block[at++] as number
        literals += more
      } while (more === 255)
    }
    if (at + literals > block.length || end + literals > out.length) return -1
    out.set(block.subarray(at, at + literals), end)
    at += literals
    end += literals
    if (at === block.length) return end
    if (at + 2 > block.length) return -1
    const offset = (block[at] as number) | ((block[at + 1] as number) << 8)
    at += 2
    let match = (token & 15) + shortest
    if (match === 15 + shortest) {
      let more: number
      do {
        if (at >= block.length) return -1
        more = block[at++] as number
        match += more
      } while (more === 255)
    }
    if (offset === 0 || offset > end || end + match > out.length) return -1
    for (let index = 0; index < match; index++) {
      out[end] = out[end - offset] as number
      end++
    }
  }
  return -1
}

const magic = 0x184d2204

export function isFrame(data: Buffer): boolean {
  return data.length >= 7 && data.readUInt32LE() === magic
}

/** Decompresses a frame; undefined if it is invalid or exceeds the allowed size. */
export function decompressFrame(data: Buffer, maxBytes: number): Buffer | undefined {
  const flags = data[4] as number
  let at = 7 + (flags & 8 ? 8 : 0) + (flags & 1 ? 4 : 0)
  const out = outputOf(data, maxBytes)
  let end = 0
  for (;;) {
    if (at + 4 > data.length) return undefined
    const size = data.readUInt32LE(at)
    at += 4
    if (size === 0) return out.subarray(0, end)
    const length = size & 0x7fffffff
    if (at + length > data.length) return undefined
    const block = data.subarray(at, at + length)
    at += length + (flags & 16 ? 4 : 0)
    if (size >>> 31) {
      if (end + length > maxBytes) return undefined
      out.set(block, end)
      end += length
    } else {
      end = decompressInto(block, out, end)
      if (end < 0) return undefined
    }
  }
}
