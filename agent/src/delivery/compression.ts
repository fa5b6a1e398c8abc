// Compression of request bodies. Without an explicit level, the agent uses a fast method: for gzip, its own deflate. With a level, it
// uses the library.

import { createRequire } from 'node:module'
import {
  constants,
  deflate,
  deflateSync,
  gunzipSync,
  gzip,
  gzipSync,
  inflateSync,
  zstdCompress,
  zstdCompressSync,
  zstdDecompressSync,
} from 'node:zlib'
import type { OptionProblem } from '../component.ts'
import { fastGzip, maxFastGzip } from '../formats/deflate.ts'
import type { CompressionName, CompressionOption } from '../schema/groups.ts'
import { cpuLimit } from './cpu-limit.ts'
import type { Codec } from './request.ts'

export interface Compression extends Codec {
  readonly algorithm: CompressionName
  /** Value of `Content-Encoding`; undefined if bodies are sent unchanged. */
  readonly contentEncoding: string | undefined
}

const identity: Compression = {
  algorithm: 'none',
  contentEncoding: undefined,
  compress: (body) => body,
  decompress: (payload) => payload,
}

/** The functions of the platform that compress, which tests replace. */
export const platform = { gzip, gzipSync, deflate, deflateSync, zstdCompress, zstdCompressSync }

export type CompressionPlatform = typeof platform

type Level = number | 'none' | 'fast' | 'default' | 'best' | undefined

/**
 * @param cpus number of cores that the agent may use; with more than one, the platform's thread pool compresses large bodies
 */
export function compileCompression(
  option: CompressionOption | undefined,
  cpus = cpuLimit(),
  { gzip, gzipSync, deflate, deflateSync, zstdCompress, zstdCompressSync }: CompressionPlatform = platform,
): Compression {
  if (option === undefined) return identity
  const algorithm = typeof option === 'string' ? option : option.algorithm
  const level = typeof option === 'string' ? undefined : option.level
  switch (algorithm) {
    case 'none':
      return identity
    case 'gzip': {
      const options = { level: zlibLevel(level) }
      const common = { algorithm, contentEncoding: 'gzip', decompress: (payload: Buffer) => gunzipSync(payload) }
      if (level === undefined) {
        // Stays on the main thread, because the library on another thread would need one and a half times the CPU time.
        return {
          ...common,
          compress: (body) => (body.length <= maxFastGzip ? fastGzip(body) : gzipSync(body, options)),
        }
      }
      return {
        ...common,
        compress: (body) => gzipSync(body, options),
        compressOnPool: onPool((body, done) => gzip(body, { ...options, chunkSize }, done), cpus),
      }
    }
    case 'zlib': {
      const options = { level: zlibLevel(level) }
      return {
        algorithm,
        contentEncoding: 'deflate',
        compress: (body) => deflateSync(body, options),
        compressOnPool: onPool((body, done) => deflate(body, { ...options, chunkSize }, done), cpus),
        decompress: (payload) => inflateSync(payload),
      }
    }
    case 'zstd': {
      const options = { params: { [constants.ZSTD_c_compressionLevel]: zstdLevel(level) } }
      return {
        algorithm,
        contentEncoding: 'zstd',
        compress: (body) => zstdCompressSync(body, options),
        compressOnPool: onPool((body, done) => zstdCompress(body, { ...options, chunkSize }, done), cpus),
        decompress: (payload) => zstdDecompressSync(payload),
      }
    }
    case 'snappy': {
      const snappy = loadSnappy()
      return {
        algorithm,
        contentEncoding: 'snappy',
        compress: (body) => asBuffer(snappy.compress(body)),
        decompress: (payload) => asBuffer(snappy.uncompress(payload)),
      }
    }
  }
}

/**
 * Minimum size for the thread pool. A round trip to the pool costs the main thread about 30 us and the process 40 us, regardless of
 * the size. Compressing 128 KiB takes 175 us with zlib level 1, and 90 us with zstd.
 */
const worthPool = 128 << 10

/**
 * Maximum number of bodies on the thread pool at a time, for all sinks together. Beyond it, the main thread compresses, which also slows
 * down the sources. The pool has four threads, and file access and DNS lookups need some of them.
 */
const maxOnPool = 2
let onPoolNow = 0

/** Size of the output chunks. For each chunk, the main thread must allocate memory, which takes 40 us. */
const chunkSize = 128 << 10

type Run = (body: Buffer, done: (error: Error | null, payload: Buffer) => void) => void

function onPool(run: Run, cpus: number): Codec['compressOnPool'] {
  if (cpus <= 1) return undefined
  return (body) => {
    if (body.length < worthPool || onPoolNow >= maxOnPool) return undefined
    onPoolNow++
    return new Promise<Buffer>((resolve, reject) => {
      run(body, (error, payload) => (error === null ? resolve(payload) : reject(error)))
    }).finally(() => onPoolNow--)
  }
}

interface Snappy {
  compress(bytes: Uint8Array): Uint8Array
  uncompress(bytes: Uint8Array): Uint8Array
}

/** Snappy in plain JavaScript, loaded only if used. */
export function loadSnappy(): Snappy {
  return createRequire(import.meta.url)('snappyjs') as Snappy
}

export function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}

function zlibLevel(level: Level): number {
  switch (level) {
    case undefined:
    case 'fast':
      return 1
    case 'none':
      return 0
    case 'default':
      return 6
    case 'best':
      return 9
    default:
      return level
  }
}

function zstdLevel(level: Level): number {
  switch (level) {
    case undefined:
    case 'fast':
    case 'none':
      return 1
    case 'default':
      return 3
    case 'best':
      return 21
    default:
      return level
  }
}

/** Problems with a compression level, for the check of a component. */
export function compressionProblems(option: CompressionOption | undefined): OptionProblem[] {
  if (option === undefined || typeof option === 'string' || option.level === undefined) return []
  const { algorithm, level } = option
  const highest = algorithm === 'zstd' ? 21 : algorithm === 'gzip' || algorithm === 'zlib' ? 9 : undefined
  if (highest === undefined) {
    return [{ path: 'compression.level', message: `the algorithm \`${algorithm}\` has no levels` }]
  }
  if (typeof level === 'number' && level > highest) {
    return [
      { path: 'compression.level', message: `must be between 0 and ${highest} for \`${algorithm}\`, found ${level}` },
    ]
  }
  return []
}
