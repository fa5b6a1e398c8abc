// Shared by the functions that decompress. A few bytes of an event can expand to any number, so a limit applies before output is
// created.

import { failure, RemapError } from './function.ts'
import { tooMuch } from './meter.ts'

/** Of programs without a budget. */
const platformBytes = 1 << 27

/** Bytes that a decompression may give, of the `runtime.maxBytes` of its program. */
export function decompressedLimit(maxBytes: number): number {
  return Math.min(maxBytes, platformBytes)
}

/** The result where the data would give more: a program with a budget is over it, and does not continue to other such data. */
export function tooLong(maxBytes: number, problem: string): RemapError {
  return maxBytes < platformBytes ? tooMuch : failure(problem)
}

/** A share of the budget: data that fail late cost at most this part, so a program may try them and continue. */
const failedPart = 8

/** The result where the data end or are damaged after they may have given this many bytes. */
export function failedAfter(bytes: number, maxBytes: number, problem: string): RemapError {
  const made = Math.floor(Math.min(bytes, maxBytes / failedPart))
  return new RemapError(problem, 'error', null, null, 'failure', undefined, made)
}

/** A format that a reader of Node reads. */
export interface CompressedFormat {
  /** Data without this beginning fail at once. */
  readonly begins: (data: Buffer) => boolean
  /** Bytes that a byte of the data may stand for. */
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
/** A block of four bytes stands for 128 KiB. */
export const zstd: CompressedFormat = {
  begins: (data) => data.length > 4 && data.readUInt32LE() === 0xfd2fb528,
  maxRatio: 32_768,
}

/** The result where a reader of Node has thrown. */
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
