// Writes and reads LZ4 blocks, and reads frames.
// Hand-written, because the maintained libraries are native code, which the images do not contain.

import { xxh32 } from './hash.ts'

const shortest = 4
/** Matches are at most this far back. */
const farthest = 0xffff
/** From this length on, the table is keyed by 5 bytes instead of 4. */
const longData = 0xffff
// The format requires the last 5 bytes as literals, and no match that begins in the last 12.
const lastMatch = 12
const lastBytes = 6

/** Compresses data into a block: greedily, with the table, the hashes and the steps of the language's reference implementation. */
export function compressBlock(data: Buffer): Buffer {
  const out = Buffer.allocUnsafe(32 + data.length + Math.ceil(data.length / 128))
  const long = data.length >= longData
  let tableBits = 7
  while (tableBits < (data.length > longData ? 12 : 13) && 1 << (tableBits + 1) < data.length) tableBits++
  const table = new Int32Array(1 << tableBits)
  const shift = 32 - tableBits
  const slotOf = (at: number): number =>
    long ? longHash(data, at) >>> (16 - tableBits) : Math.imul(data.readInt32LE(at), 2654435761) >>> shift
  const limit = data.length - lastMatch
  let anchor = 0
  let end = 0
  if (limit > 0) table[slotOf(0)] = 0
  let at = 1
  // The step size grows while no match is found.
  let tries = 32
  let next = at
  while (limit > 0) {
    at = next
    next += tries++ >> 5
    if (at > limit) break
    const slot = slotOf(at)
    let candidate = table[slot] as number
    table[slot] = at
    if (at - candidate > farthest || data.readInt32LE(candidate) !== data.readInt32LE(at)) continue
    const offset = at - candidate
    let match = shortest
    while (candidate > 0 && at > anchor && data[at - 1] === data[candidate - 1]) {
      at--
      candidate--
      match++
    }
    while (at + match < data.length - lastBytes && data[candidate + match] === data[at + match]) match++
    end = writeLiterals(data, anchor, at, Math.min(match - shortest, 15), out, end)
    out[end++] = offset & 255
    out[end++] = offset >> 8
    if (match - shortest >= 15) end = writeLength(match - shortest - 15, out, end)
    anchor = at + match
    table[slotOf(anchor - 2)] = anchor - 2
    tries = 32
    next = anchor
  }
  end = writeLiterals(data, anchor, data.length, 0, out, end)
  return out.subarray(0, end)
}

/** The upper 16 of 40 bits: 5 bytes, multiplied in two halves that numbers represent exactly. */
function longHash(data: Buffer, at: number): number {
  const word = data.readUIntLE(at, 5)
  const low = word % half
  const high = Math.floor(word / half)
  const upper = (low * factorHigh + high * factorLow) % half
  return Math.floor(((upper * half + low * factorLow) % 2 ** 40) / 2 ** 24)
}

const half = 2 ** 20
const factorLow = 889_523_592_379 % half
const factorHigh = Math.floor(889_523_592_379 / half)

function writeLiterals(data: Buffer, from: number, to: number, match: number, out: Buffer, start: number): number {
  let end = start
  const count = to - from
  out[end++] = (Math.min(count, 15) << 4) | match
  if (count >= 15) end = writeLength(count - 15, out, end)
  data.copy(out, end, from, to)
  return end + count
}

function writeLength(value: number, out: Buffer, start: number): number {
  let end = start
  let rest = value
  for (; rest >= 255; rest -= 255) out[end++] = 255
  out[end++] = rest
  return end
}

/** Decompresses a block; if it is invalid or exceeds the allowed size, the problem. */
export function decompressBlock(block: Uint8Array, maxBytes: number): Buffer | string {
  const out = outputOf(block, maxBytes)
  const end = decompressInto(block, out, { from: 0, base: 0, capacity: maxBytes })
  if (end >= 0) return out.subarray(0, end)
  return (
    problems[end]?.text ??
    `provided output is too small for the decompressed data, actual ${maxBytes}, expected ${tooSmall - end}`
  )
}

/** Negative results of `decompressInto`; the lower ones mean that the output is too small: `tooSmall` minus the required size. */
const cutOff = -1
const outOfInput = -2
const outOfOutput = -3
const tooSmall = -4
const problems: Readonly<Record<number, { readonly name: string; readonly text: string }>> = {
  [cutOff]: { name: 'ExpectedAnotherByte', text: 'expected another byte, found none' },
  [outOfInput]: { name: 'LiteralOutOfBounds', text: 'literal is out of bounds of the input' },
  [outOfOutput]: {
    name: 'OffsetOutOfBounds',
    text: 'the offset to copy is not contained in the decompressed buffer',
  },
}

/** A buffer for the maximum output: a byte expands to at most 255. */
function outputOf(data: Uint8Array, maxBytes: number): Buffer {
  return Buffer.alloc(Math.min(maxBytes, data.length * 255 + 64))
}

interface Space {
  /** Where to write. */
  readonly from: number
  /** Matches begin here or later, and sizes count from here. */
  readonly base: number
  readonly capacity: number
}

/** Decompresses after the existing content of the buffer; returns the new end, or a negative number. */
function decompressInto(block: Uint8Array, out: Buffer, { from, base, capacity }: Space): number {
  let at = 0
  let end = from
  while (at < block.length) {
    const token = block[at++] as number
    let literals = token >> 4
    if (literals === 15) {
      let more: number
      do {
        if (at >= block.length) return cutOff
        more = block[at++] as number
        literals += more
      } while (more === 255)
    }
    if (at + literals > block.length) return outOfInput
    if (end + literals > capacity) return tooSmall - (end - base + literals)
    out.set(block.subarray(at, at + literals), end)
    at += literals
    end += literals
    if (at === block.length) return end
    if (at + 2 > block.length) return cutOff
    const offset = (block[at] as number) | ((block[at + 1] as number) << 8)
    at += 2
    let match = (token & 15) + shortest
    if (match === 15 + shortest) {
      let more: number
      do {
        if (at >= block.length) return cutOff
        more = block[at++] as number
        match += more
      } while (more === 255)
    }
    if (end + match > capacity) return tooSmall - (end - base + match)
    if (offset === 0 || offset > end - base) return outOfOutput
    for (let index = 0; index < match; index++) {
      out[end] = out[end - offset] as number
      end++
    }
  }
  return cutOff
}

const magic = 0x184d2204
const shortened = 'failed to fill whole buffer'

export function isFrame(data: Buffer): boolean {
  return data.length >= 4 && data.readUInt32LE() === magic
}

/** Decompresses the first frame; if it is invalid or exceeds the allowed size, the problem. */
export function decompressFrame(data: Buffer, maxBytes: number): Buffer | string {
  const header = frameHeader(data)
  if (typeof header === 'string') return header
  const { flags, maxBlock } = header
  let at = header.length
  const take = (length: number): Buffer | undefined => {
    if (at + length > data.length) return undefined
    at += length
    return data.subarray(at - length, at)
  }
  const out = outputOf(data, maxBytes)
  let end = 0
  for (;;) {
    const size = take(4)?.readUInt32LE()
    if (size === undefined) return shortened
    if (size === 0) break
    const length = size & 0x7fffffff
    if (length > maxBlock) return 'BlockTooBig'
    const block = take(length)
    const checksum = flags & flag.blockChecksums ? take(4) : none
    if (block === undefined || checksum === undefined) return shortened
    if (checksum.length > 0 && checksum.readUInt32LE() !== xxh32(block)) return 'BlockChecksumError'
    const from = end
    const base = flags & flag.independent ? from : 0
    if (size >>> 31) {
      if (from + length > maxBytes) return 'the frame is too long'
      out.set(block, from)
      end += length
    } else {
      const capacity = from + maxBlock
      end = decompressInto(block, out, { from, base, capacity: Math.min(maxBytes, capacity) })
      if (end < 0) {
        const small = `OutputTooSmall { expected: ${tooSmall - end}, actual: ${capacity - base} }`
        return `DecompressionError(${problems[end]?.name ?? small})`
      }
    }
    // Readers take a block without content for the end.
    if (end === from) return out.subarray(0, end)
  }
  const content = out.subarray(0, end)
  if (header.size !== undefined && header.size !== BigInt(end)) {
    return `ContentLengthError { expected: ${header.size}, actual: ${end} }`
  }
  if ((flags & flag.contentChecksum) === 0) return content
  const checksum = take(4)?.readUInt32LE()
  if (checksum === undefined) return shortened
  return checksum === xxh32(content) ? content : 'ContentChecksumError'
}

const none = Buffer.alloc(0)
const flag = {
  version: 0xc0,
  independent: 32,
  blockChecksums: 16,
  size: 8,
  contentChecksum: 4,
  reserved: 2,
  dictionary: 1,
}

interface FrameHeader {
  readonly flags: number
  readonly length: number
  readonly maxBlock: number
  readonly size?: bigint
}

function frameHeader(data: Buffer): FrameHeader | string {
  if (data.length < 7) return shortened
  const flags = data[4] as number
  const sizes = data[5] as number
  const length = 7 + (flags & flag.size ? 8 : 0) + (flags & flag.dictionary ? 4 : 0)
  if (data.length < length) return shortened
  if ((flags & flag.version) !== 0x40) return `UnsupportedVersion(${flags & flag.version})`
  if (flags & flag.reserved || sizes & 0x8f) return 'ReservedBitsSet'
  if (sizes >> 4 < 4) return `UnsupportedBlocksize(${sizes >> 4})`
  if (((xxh32(data.subarray(4, length - 1)) >>> 8) & 255) !== data[length - 1]) return 'HeaderChecksumError'
  if (flags & flag.dictionary) return 'DictionaryNotSupported'
  const maxBlock = 1 << (2 * (sizes >> 4) + 8)
  return { flags, length, maxBlock, ...(flags & flag.size && { size: data.readBigUInt64LE(6) }) }
}
