// gzip (RFC 1952) with our own deflate, for repetitive text. It needs 60 to 70 % of the CPU time of zlib's level 1, and its output
// is as short (figures: e2e/bench/README.md). The zlib format also needs Adler-32, which Node does not offer, so the library
// handles that format.
// The kernel (deflate/, AssemblyScript compiled by `npm run generate`) has a fixed memory of 384 KiB: text of any length passes
// through it in parts.

import { crc32 } from 'node:zlib'
import { instantiate } from './assembly.ts'
import { deflateCode } from './deflate-code.ts'

interface Exports {
  readonly memory: { readonly buffer: ArrayBuffer }
  readonly maxInput: { readonly value: number }
  readonly memoryEnd: { readonly value: number }
  begin(): void
  place(): number
  compress(length: number, isLast: boolean): number
  outputAt(): number
}

/** A header without name and time, for the fastest level and an unknown system. */
const header = Buffer.from([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255])

/** Positions in longer bodies exceed the kernel's numbers. */
export const maxFastGzip = 1 << 30

let kernel: { readonly call: Exports; readonly memory: Buffer; readonly maxInput: number } | undefined

/** Created on first use, so that agents with other compression do not pay for it. */
function theKernel() {
  if (kernel !== undefined) return kernel
  const exports = instantiate<Exports>(Buffer.from(deflateCode, 'base64'))
  const memory = Buffer.from(exports.memory.buffer)
  if (exports.memoryEnd.value > memory.length) throw new RangeError('The memory of the kernel is too small.')
  kernel = { call: exports, memory, maxInput: exports.maxInput.value }
  return kernel
}

/** @param body at most `maxFastGzip` bytes */
export function fastGzip(body: Buffer): Buffer {
  if (body.length > maxFastGzip) throw new RangeError(`At most ${maxFastGzip} bytes can be compressed at once.`)
  const { call, memory, maxInput } = theKernel()
  const parts: Buffer[] = [header]
  call.begin()
  let at = 0
  do {
    const length = Math.min(maxInput, body.length - at)
    body.copy(memory, call.place(), at, at + length)
    at += length
    const written = call.compress(length, at === body.length)
    const from = call.outputAt()
    parts.push(Buffer.from(memory.subarray(from, from + written)))
  } while (at < body.length)
  const trailer = Buffer.alloc(8)
  trailer.writeUInt32LE(crc32(body), 0)
  trailer.writeUInt32LE(body.length, 4)
  parts.push(trailer)
  return Buffer.concat(parts)
}
