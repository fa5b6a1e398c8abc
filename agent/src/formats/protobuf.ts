// Reads and writes the protobuf wire format field by field: enough for the few fixed messages of Penstock. Reading is
// bounded by the message; invalid bytes throw a `MalformedProtobuf`.
// @bufbuild/protobuf, which reads messages of descriptor sets, is not used for these: it creates an object for each message, while this
// code writes fields directly into the body of a request.

import type { Body } from '../event/body.ts'

export type WireType = 0 | 1 | 2 | 5

/** Writes messages one after the other into a body. The caller must omit fields with their default value. */
export class ProtobufWriter {
  readonly body: Body

  constructor(body: Body) {
    this.body = body
  }

  tag(field: number, type: WireType): void {
    this.varint(field * 8 + type)
  }

  /** An unsigned integer of at most 53 bits. */
  varint(value: number): void {
    const body = this.body
    body.reserve(10)
    let rest = value
    while (rest > 0x7f) {
      body.buffer[body.length++] = (rest % 0x80) | 0x80
      rest = Math.floor(rest / 0x80)
    }
    body.buffer[body.length++] = rest
  }

  /** An int64, uint64 or enum field; negative numbers need ten bytes. */
  integer(field: number, value: number | bigint): void {
    this.tag(field, 0)
    if (typeof value === 'number' && value >= 0) {
      this.varint(value)
      return
    }
    let rest = BigInt.asUintN(64, BigInt(value))
    while (rest > 0x7fn) {
      this.body.writeByte(Number(rest & 0x7fn) | 0x80)
      rest >>= 7n
    }
    this.body.writeByte(Number(rest))
  }

  double(field: number, value: number): void {
    this.tag(field, 1)
    const body = this.body
    body.reserve(8)
    body.length = body.buffer.writeDoubleLE(value, body.length)
  }

  text(field: number, value: string): void {
    const start = this.begin(field)
    this.body.writeText(value)
    this.end(start)
  }

  bytes(field: number, value: Uint8Array): void {
    this.tag(field, 2)
    this.varint(value.length)
    this.body.writeBytes(value)
  }

  /** Starts a message (or text) of unknown length; pass the result to `end`. */
  begin(field: number): number {
    this.tag(field, 2)
    this.body.writeByte(0)
    return this.body.length
  }

  /** Ends a message: inserts its length before it, and moves it if the length needs more than one byte. */
  end(start: number): void {
    const body = this.body
    const length = body.length - start
    if (length < 0x80) {
      body.buffer[start - 1] = length
      return
    }
    let further = 1
    for (let rest = length >> 14; rest > 0; rest >>= 7) further++
    body.reserve(further)
    body.buffer.copyWithin(start + further, start, body.length)
    let rest = length
    for (let at = start - 1; at < start + further; at++) {
      const last = at === start + further - 1
      body.buffer[at] = last ? rest : (rest & 0x7f) | 0x80
      rest >>= 7
    }
    body.length += further
  }
}

export class MalformedProtobuf extends Error {
  constructor(reason: string) {
    super(`malformed protobuf: ${reason}`)
    this.name = 'MalformedProtobuf'
  }
}

/** Reads the fields of one message in order. */
export class ProtobufReader {
  readonly #bytes: Buffer
  #at: number
  readonly #end: number
  /** Number of the current field. */
  field = 0
  type: WireType = 0

  constructor(bytes: Buffer, from = 0, to = bytes.length) {
    this.#bytes = bytes
    this.#at = from
    this.#end = to
  }

  /** Advances to the next field; false at the end. The caller must `skip` fields that it does not read. */
  next(): boolean {
    if (this.#at >= this.#end) return false
    const tag = this.#varint()
    this.field = Number(tag >> 3n)
    const type = Number(tag & 7n)
    if (this.field === 0) throw new MalformedProtobuf('field number 0')
    if (type !== 0 && type !== 1 && type !== 2 && type !== 5) throw new MalformedProtobuf(`wire type ${type}`)
    this.type = type
    return true
  }

  unsigned(): bigint {
    this.#expect(0)
    return this.#varint()
  }

  signed(): bigint {
    this.#expect(0)
    return BigInt.asIntN(64, this.#varint())
  }

  double(): number {
    this.#expect(1)
    const value = this.#bytes.readDoubleLE(this.#take(8))
    return value
  }

  fixed32(): number {
    this.#expect(5)
    return this.#bytes.readUInt32LE(this.#take(4))
  }

  bytes(): Buffer {
    this.#expect(2)
    const length = Number(this.#varint())
    const start = this.#take(length)
    return this.#bytes.subarray(start, start + length)
  }

  text(): string {
    return this.bytes().toString('utf8')
  }

  message(): ProtobufReader {
    return new ProtobufReader(this.bytes())
  }

  skip(): void {
    if (this.type === 0) this.#varint()
    else if (this.type === 1) this.#take(8)
    else if (this.type === 5) this.#take(4)
    else this.bytes()
  }

  #expect(type: WireType): void {
    if (this.type !== type) throw new MalformedProtobuf(`field ${this.field} has wire type ${this.type}, not ${type}`)
  }

  #take(length: number): number {
    const start = this.#at
    if (length > this.#end - start) throw new MalformedProtobuf('it ends too early')
    this.#at = start + length
    return start
  }

  #varint(): bigint {
    let low = 0
    for (let shift = 0; shift < 28; shift += 7) {
      const byte = this.#byte()
      low += (byte & 0x7f) * 2 ** shift
      if (byte < 0x80) return BigInt(low)
    }
    let value = BigInt(low)
    for (let shift = 28n; shift < 70n; shift += 7n) {
      const byte = this.#byte()
      value |= BigInt(byte & 0x7f) << shift
      if (byte < 0x80) return BigInt.asUintN(64, value)
    }
    throw new MalformedProtobuf('an integer has more than ten bytes')
  }

  #byte(): number {
    return this.#bytes[this.#take(1)] as number
  }
}
