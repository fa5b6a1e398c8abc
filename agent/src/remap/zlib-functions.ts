// Shared by the gzip and zlib functions: both are DEFLATE with different headers.

import { constants, type ZlibOptions } from 'node:zlib'
import { type Bytes, isInteger } from '../event/value.ts'
import { bytesOf, textOf } from './byte-text.ts'
import { type CompressedFormat, decompressedLimit, unreadable } from './decompression.ts'
import { type CallKinds, type CallSite, type FunctionDeclaration, failure, type Result } from './function.ts'
import { kinds } from './kind.ts'

/** The highest level that programs may give. Node has one level less and compresses with its highest instead. */
const highestLevel = 10

/** The common part of the declaration of a compressing function. */
export function compressing(run: (data: Buffer, options: ZlibOptions & { readonly level: number }) => Buffer) {
  return {
    category: 'Codec',
    parameters: [
      { name: 'value', kind: kinds.string, bytes: true, description: 'The string.' },
      { name: 'compression_level', kind: kinds.integer, required: false, default: 6, description: 'From 0 to 10.' },
    ],
    returns: kinds.string,
    fallible: (call: CallKinds) => {
      const level = call.constant('compression_level')
      return !isInteger(level) || level > highestLevel
    },
    // The checker lets negative constants pass.
    failsUnannounced: true,
    errors: [`The level is not between 0 and ${highestLevel}.`],
    pure: true,
    compile:
      () =>
      (value: string | Bytes, level: number | bigint): Result =>
        level < 0 || level > highestLevel
          ? failure(`compression level must be <= ${highestLevel}`)
          : textOf(run(bytesOf(value), { level: Math.min(9, Number(level)) })),
  } as const satisfies Partial<FunctionDeclaration>
}

/** The result with Node's option `info`. */
interface Decompressed {
  readonly buffer: Buffer
  readonly engine: { readonly bytesWritten: number }
}

/**
 * The common part of the declaration of a decompressing function; `name` is the format's name in the reference. A zlib stream may
 * be cut off anywhere: what is there counts, and other data may follow it. A gzip file must be complete and end with the data.
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
      const options = {
        maxOutputLength: decompressedLimit(maxBytes),
        finishFlush: name === 'zlib' ? constants.Z_SYNC_FLUSH : constants.Z_FINISH,
        info: true,
      }
      return (value: string | Bytes): Result => {
        const data = bytesOf(value)
        try {
          const { buffer, engine } = run(data, options) as unknown as Decompressed
          return name === 'gzip' && engine.bytesWritten < data.length ? failure(problem) : textOf(buffer)
        } catch (error) {
          return unreadable(error, data, format, maxBytes, problem)
        }
      }
    },
  } as const satisfies Partial<FunctionDeclaration>
}
