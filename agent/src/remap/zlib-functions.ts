// Shared by the gzip and zlib functions: both are DEFLATE with different headers.

import type { ZlibOptions } from 'node:zlib'
import type { Bytes } from '../event/value.ts'
import { bytesOf, textOf } from './byte-text.ts'
import { type CompressedFormat, decompressedLimit, unreadable } from './decompression.ts'
import type { CallSite, FunctionDeclaration, Result } from './function.ts'
import { kinds } from './kind.ts'

/** The common part of the declaration of a compressing function. */
export function compressing(run: (data: Buffer, options: ZlibOptions) => Buffer) {
  return {
    category: 'Codec',
    parameters: [
      { name: 'value', kind: kinds.string, bytes: true, description: 'The string.' },
      { name: 'compression_level', kind: kinds.integer, required: false, default: 6, description: 'From 0 to 9.' },
    ],
    returns: kinds.string,
    fallible: 'never',
    pure: true,
    compile: () => (value: string | Bytes, level: number | bigint) =>
      textOf(run(bytesOf(value), { level: Math.max(0, Math.min(9, Number(level))) })),
  } as const satisfies Partial<FunctionDeclaration>
}

/**
 * The common part of the declaration of a decompressing function; `name` is the format's name in the reference. Without a byte, there is no
 * zlib stream that could be damaged, but the header of gzip is missing.
 */
export function decompressing(
  name: 'gzip' | 'zlib',
  format: CompressedFormat,
  run: (data: Buffer, options: ZlibOptions) => Buffer,
) {
  const problem = `unable to decode value with ${name[0]?.toUpperCase()}${name.slice(1)} decoder`
  return {
    category: 'Codec',
    parameters: [{ name: 'value', kind: kinds.string, bytes: true, description: 'The data.' }],
    returns: kinds.string,
    fallible: 'always',
    growth: 'product',
    errors: [`The data is not ${name}.`, 'The result would exceed 128 MiB, or the limit of the program.'],
    pure: true,
    compile({ runtime: { maxBytes } }: CallSite) {
      const options = { maxOutputLength: decompressedLimit(maxBytes) }
      return (value: string | Bytes): Result => {
        const data = bytesOf(value)
        if (name === 'zlib' && data.length === 0) return ''
        try {
          return textOf(run(data, options))
        } catch (error) {
          return unreadable(error, data, format, maxBytes, problem)
        }
      }
    },
  } as const satisfies Partial<FunctionDeclaration>
}
