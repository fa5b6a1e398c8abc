// Compression of request bodies. Without a level it is the agent's choice, which is fast; a level is the library's.

import { createRequire } from 'node:module'
import {
  constants,
  deflateSync,
  gunzipSync,
  gzipSync,
  inflateSync,
  zstdCompressSync,
  zstdDecompressSync,
} from 'node:zlib'
import type { OptionProblem } from '../component.ts'
import type { Codec } from '../delivery/request.ts'
import type { CompressionName, CompressionOption } from '../schema/groups.ts'

export interface Compression extends Codec {
  readonly algorithm: CompressionName
  /** Value of `Content-Encoding`; undefined if bodies are sent as they are. */
  readonly contentEncoding: string | undefined
}

const identity: Compression = {
  algorithm: 'none',
  contentEncoding: undefined,
  compress: (body) => body,
  decompress: (payload) => payload,
}

type Level = number | 'none' | 'fast' | 'default' | 'best' | undefined

export function compileCompression(option: CompressionOption | undefined): Compression {
  if (option === undefined) return identity
  const algorithm = typeof option === 'string' ? option : option.algorithm
  const level = typeof option === 'string' ? undefined : option.level
  switch (algorithm) {
    case 'none':
      return identity
    case 'gzip': {
      const options = { level: zlibLevel(level) }
      return {
        algorithm,
        contentEncoding: 'gzip',
        compress: (body) => gzipSync(body, options),
        decompress: (payload) => gunzipSync(payload),
      }
    }
    case 'zlib': {
      const options = { level: zlibLevel(level) }
      return {
        algorithm,
        contentEncoding: 'deflate',
        compress: (body) => deflateSync(body, options),
        decompress: (payload) => inflateSync(payload),
      }
    }
    case 'zstd': {
      const options = { params: { [constants.ZSTD_c_compressionLevel]: zstdLevel(level) } }
      return {
        algorithm,
        contentEncoding: 'zstd',
        compress: (body) => zstdCompressSync(body, options),
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

interface Snappy {
  compress(bytes: Uint8Array): Uint8Array
  uncompress(bytes: Uint8Array): Uint8Array
}

/** Snappy in plain JavaScript; loaded only where it is used. */
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

/** Problems with the level of a compression, for the check of a component. */
export function compressionProblems(option: CompressionOption | undefined): OptionProblem[] {
  if (option === undefined || typeof option === 'string' || option.level === undefined) return []
  const { algorithm, level } = option
  const highest = algorithm === 'zstd' ? 21 : algorithm === 'gzip' || algorithm === 'zlib' ? 9 : undefined
  if (highest === undefined) {
    return [{ path: 'compression.level', message: `the algorithm \`${algorithm}\` takes no level` }]
  }
  if (typeof level === 'number' && level > highest) {
    return [
      { path: 'compression.level', message: `must be between 0 and ${highest} for \`${algorithm}\`, found ${level}` },
    ]
  }
  return []
}
