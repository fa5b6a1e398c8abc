// What the functions that decompress have in common: a few bytes of an event can stand for any number of others, so what they
// may give is limited before it is made.

import { failure, type RemapError } from './function.ts'
import { tooMuch } from './meter.ts'

/** Of programs without a budget. */
const platformBytes = 1 << 27

/** Bytes that a decompression may give, of the `runtime.maxBytes` of its program. */
export function decompressedLimit(maxBytes: number): number {
  return Math.min(maxBytes, platformBytes)
}

/** The result where the data would give more: a program with a budget is over it, and does not go on to other such data. */
export function tooLong(maxBytes: number, problem: string): RemapError {
  return maxBytes < platformBytes ? tooMuch : failure(problem)
}

/** The result where a reader of Node has thrown. */
export function unreadable(error: unknown, maxBytes: number, problem: string): RemapError {
  return (error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE'
    ? tooLong(maxBytes, problem)
    : failure(problem)
}
