// The identity of a file after it was renamed, copied or compressed: a checksum of its first lines, or its inode. A fingerprint is
// text, so that it can be a key; `checkpoint.ts` converts it to the file format.

import { fstatSync } from 'node:fs'
import { constants, gunzipSync } from 'node:zlib'
import { type TailFiles, tailFiles } from './files.ts'

export type FingerprintOptions =
  | { readonly strategy: 'checksum'; readonly lines: number; readonly maxLineBytes: number }
  | { readonly strategy: 'device_and_inode' }

/** `checksum:<16 hexadecimal digits>` or `inode:<device>:<inode>`. */
export type Fingerprint = string

// CRC-64/ECMA-182: polynomial 42F0E1EBA9EA3693, most significant bit first, with initial value and final XOR 0. It uses
// two 32-bit halves, because BigInt would be fifty times slower.
const tableHigh = new Int32Array(256)
const tableLow = new Int32Array(256)
for (let byte = 0; byte < 256; byte++) {
  let high = byte << 24
  let low = 0
  for (let bit = 0; bit < 8; bit++) {
    const carry = high < 0
    high = (high << 1) | (low >>> 31)
    low <<= 1
    if (carry) {
      high ^= 0x42f0e1eb
      low ^= 0xa9ea3693
    }
  }
  tableHigh[byte] = high
  tableLow[byte] = low
}

/** CRC-64/ECMA-182 of the bytes as 16 hexadecimal digits. */
export function crc64(bytes: Uint8Array): string {
  let high = 0
  let low = 0
  for (let index = 0; index < bytes.length; index++) {
    const slot = (high >>> 24) ^ (bytes[index] as number)
    high = ((high << 8) | (low >>> 24)) ^ (tableHigh[slot] as number)
    low = (low << 8) ^ (tableLow[slot] as number)
  }
  return hex(high) + hex(low)
}

function hex(word: number): string {
  return (word >>> 0).toString(16).padStart(8, '0')
}

const firstRead = 4096

export interface FileIdentity {
  readonly fingerprint: Fingerprint
  /** Whether the file is compressed: positions then count decompressed bytes. */
  readonly gzip: boolean
}

/** Computes fingerprints; owns the buffer for this. */
export class Fingerprinter {
  readonly #options: FingerprintOptions
  readonly #files: TailFiles
  readonly #buffer: Buffer

  constructor(options: FingerprintOptions, files: TailFiles = tailFiles) {
    this.#options = options
    this.#files = files
    this.#buffer = Buffer.allocUnsafe(options.strategy === 'checksum' ? Math.max(options.maxLineBytes, 2) : 2)
  }

  /**
   * The fingerprint of an open file; undefined while it has too few lines. @param complete whether the file will not
   * grow: its bytes are then hashed even without a final newline
   */
  identify(descriptor: number, complete = false): FileIdentity | undefined {
    // Most first lines are short: a small read does for nearly all files.
    let length = this.#read(descriptor, 0, Math.min(firstRead, this.#buffer.length))
    if (length === firstRead && !this.#hasEnough(length)) {
      length = this.#read(descriptor, length, this.#buffer.length)
    }
    const gzip = length >= 2 && this.#buffer[0] === 0x1f && this.#buffer[1] === 0x8b
    if (this.#options.strategy === 'device_and_inode') {
      const stats = fstatSync(descriptor)
      return { fingerprint: `inode:${stats.dev}:${stats.ino}`, gzip }
    }
    let head: Buffer = this.#buffer.subarray(0, length)
    if (gzip) {
      try {
        head = decompressedHead(head, this.#buffer.length)
      } catch {
        return undefined // the compressor has written only a few bytes so far
      }
    }
    let end = 0
    for (let lines = 0; lines < this.#options.lines; lines++) {
      const newline = head.indexOf(10, end)
      if (newline < 0) {
        if (head.length < this.#buffer.length && !(complete && head.length > 0)) return undefined
        end = head.length
        break
      }
      end = newline + 1
    }
    return { fingerprint: `checksum:${crc64(head.subarray(0, end))}`, gzip }
  }

  /** Reads the bytes `[from, end)` of a file to the same place of the buffer; returns how far it got. */
  #read(descriptor: number, from: number, end: number): number {
    let length = from
    while (length < end) {
      const read = this.#files.readSync(descriptor, this.#buffer, length, end - length, length)
      if (read === 0) break
      length += read
    }
    return length
  }

  #hasEnough(length: number): boolean {
    if (this.#options.strategy === 'device_and_inode') return true
    if (this.#buffer[0] === 0x1f) return false // possibly compressed
    const head = this.#buffer.subarray(0, length)
    let at = -1
    for (let lines = 0; lines < this.#options.lines; lines++) {
      at = head.indexOf(10, at + 1)
      if (at < 0) return false
    }
    return true
  }
}

/**
 * The first bytes of compressed data, up to `wanted`. It decompresses only part of the input if the result would be far larger: 100
 * KB can become 100 MB.
 */
function decompressedHead(compressed: Buffer, wanted: number): Buffer {
  // The compression ratio is at most 1032, so some prefix of the input gives enough bytes and not too many.
  const options = { finishFlush: constants.Z_SYNC_FLUSH, maxOutputLength: wanted + 65_536 }
  let enough = 0
  let tooMuch = compressed.length + 1
  let length = compressed.length
  let plain = Buffer.alloc(0)
  while (length > enough) {
    try {
      plain = gunzipSync(compressed.subarray(0, length), options)
      if (plain.length >= wanted) break
      enough = length
    } catch (error) {
      if (!(error instanceof RangeError)) throw error
      tooMuch = length
    }
    length = Math.floor((enough + tooMuch) / 2)
  }
  return plain.subarray(0, wanted)
}
