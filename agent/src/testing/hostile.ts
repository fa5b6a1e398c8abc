// Input of hostile senders: frames for all codecs, intact or damaged by generated faults. The seed determines the sequence.

import { writeNative } from '../codecs/encoding/native.ts'
import { Body } from '../event/body.ts'
import { LogEvent } from '../event/log.ts'
import type { DecodingCodec, FramingMethod } from '../schema/groups.ts'
import type { Random } from './random.ts'

/** A valid frame for the codec that contains this text. */
export function goodFrame(codec: DecodingCodec, text: string): Buffer {
  switch (codec) {
    case 'bytes':
      return Buffer.from(text)
    case 'json':
      return Buffer.from(JSON.stringify({ message: text, n: 1.5, nested: { list: [1, null, true] } }))
    case 'native_json':
      return Buffer.from(JSON.stringify({ log: { message: text } }))
    case 'gelf':
      return Buffer.from(JSON.stringify({ version: '1.1', host: 'h', short_message: text, level: 3, _extra: 1 }))
    case 'syslog':
      return Buffer.from(`<34>1 2026-01-01T00:00:00.003Z host app 7 ID47 [a@1 b="c"] ${text}`)
    case 'native': {
      const body = new Body(256)
      writeNative(new LogEvent({ message: text, n: 1, nested: { list: [true, null] } }), undefined, body)
      return Buffer.from(body.view())
    }
  }
}

const prefixes = [
  Buffer.from([0x40, 0, 0, 0]), // a frame of a gigabyte
  Buffer.from([0xff, 0xff, 0xff, 0xff]),
  Buffer.from('1073741824 '),
  Buffer.from('99999999999999999999 '),
  Buffer.from('9'.repeat(50)),
]

const bodies = [
  (size: number) => Buffer.from('['.repeat(size)),
  (size: number) => Buffer.from('{"a":'.repeat(size / 5)),
  (size: number) => Buffer.from(`${'['.repeat(size / 2)}${']'.repeat(size / 2)}`),
  (size: number) => Buffer.from(`[${'{},'.repeat(size / 3)}{}]`),
  (size: number) => Buffer.from(`{"log":${'{"a":'.repeat(size / 6)}1${'}'.repeat(size / 6)}}`),
  (size: number) => Buffer.from(`{"n":${'9'.repeat(size)}}`),
  (size: number) => Buffer.from(`"${'\\ud800'.repeat(size / 6)}"`),
  (size: number) => Buffer.from(`{"__proto__":{"x":1},"constructor":1,"a":"${'x'.repeat(size)}"}`),
  (size: number) => Buffer.from(`<34>1 - - - - - ${'[a b="\\"]'.repeat(size / 9)}`),
  (size: number) => Buffer.from(`<191>${' '.repeat(size)}`),
  (size: number) => Buffer.alloc(size, 0xff),
  (size: number) => Buffer.alloc(size, 0x0a),
  (size: number) => Buffer.alloc(size, 0x12), // a repeated, nested protobuf field
  (size: number) => Buffer.from('ünïcödé '.repeat(size / 8), 'utf16le'),
  (size: number) => Buffer.from('caf\u00e9 '.repeat(size / 5), 'latin1'),
]

/** Up to about `longest` bytes that no honest sender would send to the codec. */
export function hostileBytes(random: Random, codec: DecodingCodec, longest: number): Buffer {
  const frame = Buffer.from(goodFrame(codec, 'x'.repeat(random.below(200))))
  switch (random.below(6)) {
    case 0: // cut off
      return frame.subarray(0, random.below(frame.length))
    case 1: // some bytes are changed
      for (let flips = 1 + random.below(8); flips > 0; flips--) frame[random.below(frame.length)] = random.below(256)
      return frame
    case 2:
      return Buffer.concat([random.pick(prefixes), frame])
    case 3:
      return Buffer.from(Uint8Array.from({ length: random.below(300) }, () => random.below(256)))
    case 4: // one part is repeated
      return Buffer.concat(Array.from({ length: 1 + random.below(longest / (frame.length + 1)) }, () => frame))
    default:
      return random.pick(bodies)(12 + random.below(longest))
  }
}

/** The bytes framed with the method. */
export function framed(method: FramingMethod, frame: Buffer): Buffer {
  switch (method) {
    case 'bytes':
      return frame
    case 'newline_delimited':
      return Buffer.concat([frame, Buffer.from('\n')])
    case 'character_delimited':
      return Buffer.concat([frame, Buffer.from([0])])
    case 'octet_counting':
      return Buffer.concat([Buffer.from(`${frame.length} `), frame])
    case 'length_delimited': {
      const length = Buffer.alloc(4)
      length.writeUInt32BE(frame.length)
      return Buffer.concat([length, frame])
    }
  }
}

/** The option `framing` with a limit. */
export function limitedTo(method: FramingMethod, limit: number): object {
  switch (method) {
    case 'bytes':
      return { method }
    case 'character_delimited':
      return { method, character_delimited: { delimiter: 0, max_length: limit } }
    case 'length_delimited':
      return { method, length_delimited: { max_frame_length: limit } }
    default:
      return { method, [method]: { max_length: limit } }
  }
}
