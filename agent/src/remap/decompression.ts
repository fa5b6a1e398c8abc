// Shared by the functions that decompress. A few bytes of an event can expand to any size, so a limit applies before output is
// allocated.

import { failure, RemapError } from './function.ts'
import { tooMuch } from './meter.ts'

/** Limit for programs without a budget. */
const platformBytes = 1 << 27

/** Maximum size of a decompression result, for the `runtime.maxBytes` of its program. */
export function decompressedLimit(maxBytes: number): number {
  return Math.min(maxBytes, platformBytes)
}

/**
 * The result if the data would exceed the limit: a program with a budget has then exceeded it, and cannot try more such data.
 */
export function tooLong(maxBytes: number, problem: string): RemapError {
  return maxBytes < platformBytes ? tooMuch : failure(problem)
}

/** Fraction of the budget that a late failure costs at most, so that a program may try several formats. */
const failedPart = 8

/** The result if the data is truncated or damaged after it may have produced this many bytes. */
export function failedAfter(bytes: number, maxBytes: number, problem: string): RemapError {
  const made = Math.floor(Math.min(bytes, maxBytes / failedPart))
  return new RemapError(problem, 'error', null, null, 'failure', undefined, made)
}

/** A format that Node can decompress. */
export interface CompressedFormat {
  /** Data without this prefix fails at once. */
  readonly begins: (data: Buffer) => boolean
  /** Maximum expansion of an input byte. */
  readonly maxRatio: number
}

const deflateRatio = 1032
export const gzip: CompressedFormat = {
  begins: (data) => data.length > 2 && data[0] === 0x1f && data[1] === 0x8b,
  maxRatio: deflateRatio,
}
export const zlib: CompressedFormat = {
  begins: (data) => data.length > 2 && ((data[0] as number) & 0x0f) === 8 && data.readUInt16BE() % 31 === 0,
  maxRatio: deflateRatio,
}
/** A block of four bytes can expand to 128 KiB. */
export const zstd: CompressedFormat = {
  begins: (data) => data.length > 4 && data.readUInt32LE() === 0xfd2fb528,
  maxRatio: 32_768,
}

/** The result if Node's decompression has thrown. */
export function unreadable(
  error: unknown,
  data: Buffer,
  { begins, maxRatio }: CompressedFormat,
  maxBytes: number,
  problem: string,
): RemapError {
  if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') return tooLong(maxBytes, problem)
  return begins(data) ? failedAfter(data.length * maxRatio, maxBytes, problem) : failure(problem)
}
