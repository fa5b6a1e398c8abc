// Snappy blocks. The library that reads them is loaded on first use.

import { createRequire } from 'node:module'

interface Snappy {
  uncompress(data: Uint8Array, maxLength?: number): Uint8Array
}

let loaded: Snappy | undefined

function snappy(): Snappy {
  loaded ??= createRequire(import.meta.url)('snappyjs') as Snappy
  return loaded
}

const blockBytes = 65_536
// The last bytes are literals, because a match there is not worth searching for.
const margin = 15

/** Compresses data into a block like the format's reference implementation: greedily, 64 KiB at a time. */
export function snappyCompress(data: Buffer): Buffer {
  const out = Buffer.allocUnsafe(32 + data.length + Math.ceil(data.length / 6))
  let end = 0
  let rest = data.length
  for (; rest > 0x7f; rest = Math.floor(rest / 0x80)) out[end++] = (rest % 0x80) | 0x80
  out[end++] = rest
  for (let from = 0; from < data.length; from += blockBytes) {
    end = compressPart(data.subarray(from, from + blockBytes), out, end)
  }
  return out.subarray(0, end)
}

function compressPart(data: Buffer, out: Buffer, start: number): number {
  let end = start
  let literals = 0
  const limit = data.length - margin
  let tableBits = 8
  while (tableBits < 14 && 1 << tableBits < data.length) tableBits++
  const table = new Uint16Array(1 << tableBits)
  const shift = 32 - tableBits
  const word = (at: number): number => data.readUInt32LE(at)
  const hash = (at: number): number => Math.imul(word(at), 0x1e35a7bd) >>> shift
  if (data.length >= margin) {
    let at = 1
    let nextHash = hash(at)
    search: for (;;) {
      // The step size grows while no match is found.
      let skip = 32
      let next = at
      let candidate: number
      do {
        at = next
        const slot = nextHash
        next = at + (skip++ >> 5)
        if (next > limit) break search
        nextHash = hash(next)
        candidate = table[slot] as number
        table[slot] = at
      } while (word(at) !== word(candidate))
      end = writeLiterals(data, literals, at, out, end)
      do {
        let length = 4
        while (at + length < data.length && data[candidate + length] === data[at + length]) length++
        end = writeCopy(at - candidate, length, out, end)
        at += length
        literals = at
        if (at >= limit) break search
        table[hash(at - 1)] = at - 1
        const slot = hash(at)
        candidate = table[slot] as number
        table[slot] = at
      } while (word(at) === word(candidate))
      at++
      nextHash = hash(at)
    }
  }
  return literals < data.length ? writeLiterals(data, literals, data.length, out, end) : end
}

function writeLiterals(data: Buffer, from: number, to: number, out: Buffer, start: number): number {
  let end = start
  const count = to - from - 1
  if (count < 60) out[end++] = count << 2
  else if (count < 256) {
    out[end++] = 60 << 2
    out[end++] = count
  } else {
    out[end++] = 61 << 2
    out[end++] = count & 255
    out[end++] = count >> 8
  }
  data.copy(out, end, from, to)
  return end + to - from
}

function writeCopy(offset: number, count: number, out: Buffer, start: number): number {
  let end = start
  let length = count
  const long = (part: number): void => {
    out[end++] = ((part - 1) << 2) | 2
    out[end++] = offset & 255
    out[end++] = offset >> 8
  }
  for (; length >= 68; length -= 64) long(64)
  if (length > 64) {
    long(60)
    length -= 60
  }
  if (length < 12 && offset < 2048) {
    out[end++] = ((offset >> 8) << 5) | ((length - 4) << 2) | 1
    out[end++] = offset & 255
  } else {
    long(length)
  }
  return end
}

/** Decompresses a block; undefined if it is invalid or exceeds the allowed size. */
export function snappyUncompress(block: Buffer, max: number): Buffer | undefined {
  // Three bytes expand to at most 64. The library allocates the stated size, whatever the block contains.
  if (block.length === 0 || snappyLength(block) > 22 * block.length) return undefined
  try {
    const { buffer, byteOffset, byteLength } = snappy().uncompress(block, max)
    return Buffer.from(buffer, byteOffset, byteLength)
  } catch {
    return undefined // the library throws for every invalid block
  }
}

/** The decompressed size stated in a block; 0 if there is none. */
export function snappyLength(block: Buffer): number {
  let length = 0
  for (let at = 0; at < Math.min(block.length, 5); at++) {
    const byte = block[at] as number
    length += (byte & 0x7f) * 2 ** (7 * at)
    if (byte < 0x80) return length
  }
  return 0
}
