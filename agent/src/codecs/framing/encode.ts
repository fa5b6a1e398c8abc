// Frames encoded events in a stream of bytes, with a delimiter after each event or its length before it.
// The event is already in the body when its frame is closed, so it must be moved to insert the length.

import type { Body } from '../../event/body.ts'
import type { EncodingCodec, FramingMethod, OutgoingFramingOptions } from '../../schema/groups.ts'

export interface FrameEncoder {
  readonly method: FramingMethod
  /** The bytes between two frames; undefined if each frame contains its length. */
  readonly delimiter: Buffer | undefined
  /** Closes the frame that begins at `start` in the body. */
  close(body: Body, start: number): void
}

/** The framing of a stream: the configured one, or else the default of the codec. */
export function compileFraming(codec: EncodingCodec, options: OutgoingFramingOptions | undefined): FrameEncoder {
  if (options !== undefined) return frameEncoder(options.method, delimiterByte(options))
  switch (codec) {
    case 'avro':
    case 'native':
      return frameEncoder('length_delimited', 0)
    case 'gelf':
      return frameEncoder('character_delimited', 0)
    default:
      return frameEncoder('newline_delimited', 0)
  }
}

/** Problems with the `framing` option that a schema cannot express, for `check` of a declaration. */
export function framingProblems(options: OutgoingFramingOptions | undefined): { path: string; message: string }[] {
  if (options?.method !== 'character_delimited') return []
  const path = 'framing.character_delimited.delimiter'
  const delimiter = options.character_delimited?.delimiter
  if (delimiter === undefined) {
    return [{ path, message: '`delimiter` is required with method `character_delimited`' }]
  }
  if (typeof delimiter === 'number' || Buffer.byteLength(delimiter) === 1) return []
  return [{ path, message: `\`delimiter\` must be a single byte, not ${JSON.stringify(delimiter)}` }]
}

/** The delimiter byte of `character_delimited`, configured as a number or a character. */
export function delimiterByte(options: OutgoingFramingOptions): number {
  const delimiter = options?.character_delimited?.delimiter ?? 0
  return typeof delimiter === 'number' ? delimiter : delimiter.charCodeAt(0) & 0xff
}

function frameEncoder(method: FramingMethod, character: number): FrameEncoder {
  switch (method) {
    case 'newline_delimited':
      return delimited(method, 0x0a)
    case 'character_delimited':
      return delimited(method, character)
    case 'bytes':
      return { method, delimiter: Buffer.alloc(0), close() {} }
    case 'length_delimited':
      return {
        method,
        delimiter: undefined,
        close(body, start) {
          const length = body.length - start
          shift(body, start, 4)
          body.buffer.writeUInt32BE(length, start)
        },
      }
    case 'octet_counting':
      return {
        method,
        delimiter: undefined,
        close(body, start) {
          const prefix = `${body.length - start} `
          shift(body, start, prefix.length)
          body.buffer.write(prefix, start, 'latin1')
        },
      }
  }
}

function delimited(method: FramingMethod, byte: number): FrameEncoder {
  return { method, delimiter: Buffer.from([byte]), close: (body) => body.writeByte(byte) }
}

function shift(body: Body, start: number, by: number): void {
  body.reserve(by)
  body.buffer.copyWithin(start + by, start, body.length)
  body.length += by
}
