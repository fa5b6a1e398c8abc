// The binary protocol of Pulsar, as far as a producer needs it. A frame is a command. A message frame also has metadata
// and a payload, which a checksum covers: `[total][size][command]`, `[0e 01][crc32c][size][metadata][payload]`.
// Hand-written because the client library of Pulsar is native code, which the images do not contain.

import { Body } from '../../event/body.ts'
import { crc32c } from '../../formats/crc32c.ts'
import { MalformedProtobuf, ProtobufReader, ProtobufWriter } from '../../formats/protobuf.ts'

/** Types of commands; each is also the field number of the command in the frame. */
export const command = {
  connect: 2,
  connected: 3,
  producer: 5,
  send: 6,
  sendReceipt: 7,
  sendError: 8,
  success: 13,
  error: 14,
  closeProducer: 15,
  producerSuccess: 17,
  ping: 18,
  pong: 19,
  partitionedMetadata: 21,
  partitionedMetadataResponse: 22,
  lookup: 23,
  lookupResponse: 24,
  authChallenge: 36,
  authResponse: 37,
} as const

/** Protocol version: 15 includes repeated authentication when a token expires. */
export const protocolVersion = 15

/** A broker may send frames that exceed its maximum message size by this much. */
export const frameSlack = 10_240

/** Reads the fields of a message; the last value of each number wins. */
export class Fields {
  readonly #values = new Map<number, bigint | Buffer>()

  constructor(bytes: Buffer) {
    const reader = new ProtobufReader(bytes)
    while (reader.next()) {
      if (reader.type === 0) this.#values.set(reader.field, reader.unsigned())
      else if (reader.type === 2) this.#values.set(reader.field, reader.bytes())
      else reader.skip()
    }
  }

  /** An integer, or 0. */
  number(field: number): number {
    return Number(this.integer(field) ?? 0n)
  }

  integer(field: number): bigint | undefined {
    const value = this.#values.get(field)
    return typeof value === 'bigint' ? value : undefined
  }

  bytes(field: number): Buffer | undefined {
    const value = this.#values.get(field)
    return typeof value === 'bigint' ? undefined : value
  }

  text(field: number): string | undefined {
    return this.bytes(field)?.toString('utf8')
  }
}

/** The frame of a command without a message. */
export function commandFrame(type: number, write?: (fields: ProtobufWriter) => void): Buffer {
  const body = new Body(256)
  body.length = 8
  writeCommand(new ProtobufWriter(body), type, write)
  body.buffer.writeUInt32BE(body.length - 4, 0)
  body.buffer.writeUInt32BE(body.length - 8, 4)
  return body.view()
}

function writeCommand(writer: ProtobufWriter, type: number, write?: (fields: ProtobufWriter) => void): void {
  writer.integer(1, type)
  const start = writer.begin(type)
  write?.(writer)
  writer.end(start)
}

export interface Received {
  readonly type: number
  readonly fields: Fields
}

/** The command in a frame, without its total size. Throws `MalformedProtobuf`. */
export function readCommand(frame: Buffer): Received {
  if (frame.length < 4) throw new MalformedProtobuf('a frame without a command')
  const size = frame.readUInt32BE(0)
  if (size > frame.length - 4) throw new MalformedProtobuf('a command larger than its frame')
  const outer = new Fields(frame.subarray(4, 4 + size))
  const type = outer.number(1)
  return { type, fields: new Fields(outer.bytes(type) ?? Buffer.alloc(0)) }
}

/** Members of a message besides its payload. */
export interface MessageParts {
  readonly key: string | undefined
  readonly properties: readonly (readonly [name: string, value: string])[]
  readonly eventTimeMs: number | undefined
}

/** Appends a message to a batch: `[size][single metadata][payload]`. */
export function writeBatchedMessage(body: Body, parts: MessageParts, payload: Uint8Array): void {
  const start = body.length
  body.reserve(4)
  body.length += 4
  const writer = new ProtobufWriter(body)
  writeProperties(writer, 1, parts.properties)
  if (parts.key !== undefined) writer.text(2, parts.key)
  writer.integer(3, payload.length)
  if (parts.eventTimeMs !== undefined) writer.integer(5, parts.eventTimeMs)
  body.buffer.writeUInt32BE(body.length - start - 4, start)
  body.writeBytes(payload)
}

/** Splits a batched message into its parts. */
export function readBatchedMessage(bytes: Buffer): { readonly parts: MessageParts; readonly payload: Buffer } {
  const size = bytes.readUInt32BE(0)
  const reader = new ProtobufReader(bytes, 4, 4 + size)
  const properties: [string, string][] = []
  let key: string | undefined
  let eventTimeMs: number | undefined
  while (reader.next()) {
    if (reader.field === 1) {
      const pair = new Fields(reader.bytes())
      properties.push([pair.text(1) ?? '', pair.text(2) ?? ''])
    } else if (reader.field === 2) key = reader.text()
    else if (reader.field === 5) eventTimeMs = Number(reader.unsigned())
    else reader.skip()
  }
  return { parts: { key, properties, eventTimeMs }, payload: bytes.subarray(4 + size) }
}

function writeProperties(writer: ProtobufWriter, field: number, properties: MessageParts['properties']): void {
  for (const [name, value] of properties) {
    const start = writer.begin(field)
    writer.text(1, name)
    writer.text(2, value)
    writer.end(start)
  }
}

export interface SendParts {
  readonly producerId: number
  readonly producerName: string
  /** Number of the first message; the others follow. */
  readonly sequence: bigint
  readonly count: number
  readonly publishTimeMs: number
  /** Number of the compression type; 0: none. */
  readonly compression: number
  readonly uncompressedBytes: number
  readonly schemaVersion: Buffer | undefined
  /** The parts of a single message, which is not written as a batch. */
  readonly single: MessageParts | undefined
  readonly payload: Buffer
}

/** The frame bytes before the payload, and the size of metadata and payload together. */
export function sendHead(parts: SendParts): { readonly head: Buffer; readonly messageBytes: number } {
  const { single, payload, sequence, count } = parts
  const last = sequence + BigInt(count - 1)
  const body = new Body(512)
  const writer = new ProtobufWriter(body)
  body.length = 8
  writeCommand(writer, command.send, (fields) => {
    fields.integer(1, parts.producerId)
    fields.integer(2, sequence)
    if (count > 1) {
      fields.integer(3, count)
      fields.integer(6, last)
    }
  })
  const commandEnd = body.length
  body.reserve(10)
  body.length += 10
  const metadataStart = body.length
  writer.text(1, parts.producerName)
  writer.integer(2, sequence)
  writer.integer(3, parts.publishTimeMs)
  if (single !== undefined) {
    writeProperties(writer, 4, single.properties)
    if (single.key !== undefined) writer.text(6, single.key)
  }
  if (parts.compression !== 0) writer.integer(8, parts.compression)
  writer.integer(9, parts.uncompressedBytes)
  if (single === undefined) writer.integer(11, count)
  if (single?.eventTimeMs !== undefined) writer.integer(12, single.eventTimeMs)
  if (parts.schemaVersion !== undefined) writer.bytes(16, parts.schemaVersion)
  if (count > 1) writer.integer(24, last)

  const { buffer } = body
  const metadataBytes = body.length - metadataStart
  buffer.writeUInt32BE(body.length - 4 + payload.length, 0)
  buffer.writeUInt32BE(commandEnd - 8, 4)
  buffer.writeUInt16BE(0x0e01, commandEnd)
  buffer.writeUInt32BE(metadataBytes, commandEnd + 6)
  const checksum = crc32c(payload, crc32c(buffer.subarray(commandEnd + 6, body.length)))
  buffer.writeUInt32BE(checksum, commandEnd + 2)
  return { head: body.view(), messageBytes: metadataBytes + payload.length }
}
