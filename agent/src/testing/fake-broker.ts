// A fake broker on loopback that implements the Pulsar protocol as far as producers need it. It stores messages, and simulates faults of
// brokers: it rejects, hangs, resets, closes producers and confirms late.

import type { AddressInfo } from 'node:net'
import { createServer, type Server, type Socket } from 'node:net'
import { createServer as createTlsServer, type TlsOptions } from 'node:tls'
import { findCrc } from '../formats/crc.ts'
import { ProtobufReader } from '../formats/protobuf.ts'
import { type BrokerCompression, brokerCodec } from '../sinks/message_broker/compression.ts'
import { command, commandFrame, Fields, type MessageParts, readBatchedMessage } from '../sinks/message_broker/wire.ts'

export interface Refusal {
  readonly error: number
  readonly text?: string
  readonly alone?: boolean
}

export interface StoredMessage {
  readonly topic: string
  readonly text: string
  readonly key: string | undefined
  readonly properties: Readonly<Record<string, string>>
  readonly eventTimeMs: number | undefined
  readonly sequence: bigint
}

export interface StoredSend {
  readonly topic: string
  readonly producerName: string
  readonly sequence: bigint
  readonly count: number
  readonly batched: boolean
  readonly compression: number
  readonly schemaVersion: string | undefined
  readonly messages: readonly StoredMessage[]
}

/**
 * The broker's response to a send. Like real brokers, it ignores later sends after anything but a confirmation, so the producer must
 * reconnect. `alone` rejects only one send.
 */
export type SendAnswer = 'confirm' | 'lose' | 'store' | 'reset' | 'store and reset' | 'close producer' | Refusal

export interface BrokerScript {
  readonly connect?: (fields: Fields, attempt: number) => 'hang' | 'garbage' | 'reset' | Refusal | undefined
  readonly partitions?: (topic: string, attempt: number) => number | Refusal
  readonly lookup?: (
    topic: string,
    attempt: number,
    authoritative: boolean,
  ) => { readonly url: string; readonly redirect?: boolean; readonly proxied?: boolean } | Refusal | undefined
  readonly producer?: (topic: string, fields: Fields, attempt: number) => 'hang' | Refusal | undefined
  /** The response to a send; `attempt` counts all sends from 1. It may wait, which delays the following sends. */
  readonly send?: (send: StoredSend, attempt: number) => SendAnswer | Promise<SendAnswer>
  readonly maxMessageBytes?: number
  readonly lastSequence?: bigint
  readonly tls?: TlsOptions
  readonly port?: number
}

export interface FakeBroker extends AsyncDisposable {
  readonly url: string
  readonly port: number
  /** The stored messages in order. */
  readonly stored: StoredSend[]
  /** All received sends, stored or not. */
  readonly sends: StoredSend[]
  readonly messages: StoredMessage[]
  /** The data that clients sent when they connected. */
  readonly connects: Fields[]
  readonly producers: { readonly topic: string; readonly fields: Fields }[]
  /** Responses to later authentication challenges. */
  readonly authResponses: Fields[]
  /** Topics whose clients closed their producers. */
  readonly closed: string[]
  readonly pings: number
  /** Sends an authentication challenge to all clients. */
  challenge(): void
  /** Sends a ping to all clients. */
  ping(): void
  readonly pongs: number
  /** Stops responding, but keeps connections open. */
  silent: boolean
  /** Number of open connections. */
  readonly connections: number
  /** Stops reading the current connections, or continues. */
  read(isReading: boolean): void
  /** Closes the producers of all clients with these numbers. */
  closeProducer(id: number): void
  /** Confirms a send, received or not. */
  confirm(producerId: number, sequence: bigint): void
}

const compressions = ['none', 'lz4', 'zlib', 'zstd', 'snappy'] as const satisfies readonly BrokerCompression[]
const castagnoli = findCrc('CRC_32_ISCSI')

export async function fakeBroker(script: BrokerScript = {}): Promise<FakeBroker> {
  const broker = new Broker(script)
  await broker.listen()
  return broker
}

class Broker implements FakeBroker {
  readonly script: BrokerScript
  readonly stored: StoredSend[] = []
  readonly sends: StoredSend[] = []
  readonly connects: Fields[] = []
  readonly producers: { topic: string; fields: Fields }[] = []
  readonly authResponses: Fields[] = []
  readonly closed: string[] = []
  readonly problems: unknown[] = []
  readonly sockets = new Set<Socket>()
  readonly attempts = { connect: 0, partitions: 0, lookup: 0, producer: 0, send: 0 }
  pings = 0
  pongs = 0
  silent = false
  readonly #server: Server

  constructor(script: BrokerScript) {
    this.script = script
    const handle = (socket: Socket): void => void new Connection(this, socket)
    this.#server = script.tls === undefined ? createServer(handle) : createTlsServer(script.tls, handle)
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(this.script.port ?? 0, '127.0.0.1', resolve))
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port
  }

  get url(): string {
    return `${this.script.tls === undefined ? 'pulsar' : 'pulsar+ssl'}://127.0.0.1:${this.port}`
  }

  get messages(): StoredMessage[] {
    return this.stored.flatMap((send) => send.messages)
  }

  get connections(): number {
    return this.sockets.size
  }

  read(isReading: boolean): void {
    for (const socket of this.sockets) isReading ? socket.resume() : socket.pause()
  }

  closeProducer(id: number): void {
    this.#toAll(
      commandFrame(command.closeProducer, (fields) => {
        fields.integer(1, id)
        fields.integer(2, 99)
      }),
    )
  }

  confirm(producerId: number, sequence: bigint): void {
    this.#toAll(
      commandFrame(command.sendReceipt, (fields) => {
        fields.integer(1, producerId)
        fields.integer(2, sequence)
      }),
    )
  }

  challenge(): void {
    this.#toAll(commandFrame(command.authChallenge, (fields) => fields.text(1, 'fake')))
  }

  ping(): void {
    this.#toAll(commandFrame(command.ping))
  }

  #toAll(frame: Buffer): void {
    for (const socket of this.sockets) socket.write(frame)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve))
    for (const socket of this.sockets) socket.destroy()
    await closed
    if (this.problems.length > 0) throw this.problems[0]
  }
}

/** The connection of one client. It answers the commands one after another. */
class Connection {
  readonly #broker: Broker
  readonly #socket: Socket
  /** Topics by the numbers of their producers. */
  readonly #topics = new Map<number, string>()
  #unread = Buffer.alloc(0)
  #answered = Promise.resolve()

  constructor(broker: Broker, socket: Socket) {
    this.#broker = broker
    this.#socket = socket
    broker.sockets.add(socket)
    socket.on('close', () => broker.sockets.delete(socket))
    socket.on('error', () => {}) // some tests disconnect clients
    socket.on('data', (chunk: Buffer) => this.#split(chunk))
  }

  #split(chunk: Buffer): void {
    this.#unread = Buffer.concat([this.#unread, chunk])
    while (this.#unread.length >= 4 && this.#unread.length >= 4 + this.#unread.readUInt32BE(0)) {
      const end = 4 + this.#unread.readUInt32BE(0)
      const frame = this.#unread.subarray(4, end)
      this.#unread = this.#unread.subarray(end)
      this.#answered = this.#answered
        .then(() => (this.#socket.destroyed ? undefined : this.#answer(frame)))
        .catch((error: unknown) => {
          this.#broker.problems.push(error)
          this.#socket.destroy()
        })
    }
  }

  #reply(type: number, write: Parameters<typeof commandFrame>[1]): void {
    if (!this.#socket.destroyed && !this.#broker.silent) this.#socket.write(commandFrame(type, write))
  }

  #refuse(id: bigint | undefined, { error, text = '' }: Refusal): void {
    this.#reply(command.error, (fields) => {
      fields.integer(1, id ?? 0n)
      fields.integer(2, error)
      fields.text(3, text)
    })
  }

  async #answer(frame: Buffer): Promise<void> {
    const size = frame.readUInt32BE(0)
    const outer = new Fields(frame.subarray(4, 4 + size))
    const type = outer.number(1)
    const fields = new Fields(outer.bytes(type) ?? Buffer.alloc(0))
    switch (type) {
      case command.connect:
        return this.#connect(fields)
      case command.partitionedMetadata:
        return this.#partitions(fields)
      case command.lookup:
        return this.#lookup(fields)
      case command.producer:
        return this.#producer(fields)
      case command.send:
        return this.#send(fields, frame.subarray(4 + size))
      case command.closeProducer:
        this.#broker.closed.push(this.#topics.get(fields.number(1)) ?? '')
        this.#topics.delete(fields.number(1))
        return this.#reply(command.success, (writer) => writer.integer(1, fields.integer(2) ?? 0n))
      case command.authResponse:
        this.#broker.authResponses.push(new Fields(fields.bytes(2) ?? Buffer.alloc(0)))
        return
      case command.ping:
        this.#broker.pings++
        return this.#reply(command.pong, undefined)
      case command.pong:
        this.#broker.pongs++
    }
  }

  #connect(fields: Fields): void {
    const { connects, script, attempts } = this.#broker
    connects.push(fields)
    const answer = script.connect?.(fields, ++attempts.connect)
    if (answer === 'hang') return
    if (answer === 'garbage') return void this.#socket.write('HTTP/1.1 400 Bad Request\r\n\r\n')
    if (answer === 'reset') return void this.#socket.resetAndDestroy()
    if (answer !== undefined) {
      this.#refuse(undefined, answer)
      this.#socket.end()
      return
    }
    this.#reply(command.connected, (writer) => {
      writer.text(1, 'fake')
      writer.integer(2, 19)
      if (script.maxMessageBytes !== undefined) writer.integer(3, script.maxMessageBytes)
    })
  }

  #partitions(fields: Fields): void {
    const { script, attempts } = this.#broker
    const answer = script.partitions?.(fields.text(1) ?? '', ++attempts.partitions) ?? 0
    this.#reply(command.partitionedMetadataResponse, (writer) => {
      if (typeof answer === 'number') writer.integer(1, answer)
      writer.integer(2, fields.integer(2) ?? 0n)
      writer.integer(3, typeof answer === 'number' ? 0 : 1)
      if (typeof answer === 'number') return
      writer.integer(4, answer.error)
      writer.text(5, answer.text ?? '')
    })
  }

  #lookup(fields: Fields): void {
    const { script, attempts, url } = this.#broker
    const answer = script.lookup?.(fields.text(1) ?? '', ++attempts.lookup, fields.integer(3) === 1n)
    const refused = answer !== undefined && 'error' in answer ? answer : undefined
    const found = answer !== undefined && 'url' in answer ? answer : { url }
    this.#reply(command.lookupResponse, (writer) => {
      if (refused === undefined) writer.text(script.tls === undefined ? 1 : 2, found.url)
      writer.integer(3, refused !== undefined ? 2 : found.redirect === true ? 0 : 1)
      writer.integer(4, fields.integer(2) ?? 0n)
      writer.integer(5, found.redirect === true ? 1 : 0)
      if (refused !== undefined) {
        writer.integer(6, refused.error)
        writer.text(7, refused.text ?? '')
      }
      if (found.proxied === true) writer.integer(8, 1)
    })
  }

  #producer(fields: Fields): void {
    const { producers, script, attempts } = this.#broker
    const topic = fields.text(1) ?? ''
    producers.push({ topic, fields })
    const answer = script.producer?.(topic, fields, ++attempts.producer)
    if (answer === 'hang') return
    if (answer !== undefined) {
      this.#refuse(fields.integer(3), answer)
      return
    }
    const name = fields.text(4) ?? `fake-${producers.length}`
    this.#topics.set(fields.number(2), topic)
    this.#reply(command.producerSuccess, (writer) => {
      writer.integer(1, fields.integer(3) ?? 0n)
      writer.text(2, name)
      writer.integer(3, script.lastSequence ?? -1n)
      if (fields.bytes(7) !== undefined) writer.text(4, 'v7')
    })
  }

  async #send(fields: Fields, bytes: Buffer): Promise<void> {
    const { sends, stored, script, attempts } = this.#broker
    const producerId = fields.number(1)
    const topic = this.#topics.get(producerId)
    if (topic === undefined) return
    const send = storedSend(bytes, topic)
    sends.push(send)
    const answer = (await script.send?.(send, ++attempts.send)) ?? 'confirm'
    if (answer !== 'confirm' && (typeof answer === 'string' || answer.alone !== true)) this.#topics.delete(producerId)
    if (typeof answer !== 'string') {
      return this.#reply(command.sendError, (writer) => {
        writer.integer(1, producerId)
        writer.integer(2, send.sequence)
        writer.integer(3, answer.error)
        writer.text(4, answer.text ?? '')
      })
    }
    if (answer === 'confirm' || answer === 'store' || answer === 'store and reset') stored.push(send)
    if (answer === 'reset' || answer === 'store and reset') return void this.#socket.resetAndDestroy()
    if (answer === 'close producer') {
      return this.#reply(command.closeProducer, (writer) => {
        writer.integer(1, producerId)
        writer.integer(2, 99)
      })
    }
    if (answer !== 'confirm') return
    this.#reply(command.sendReceipt, (writer) => {
      writer.integer(1, producerId)
      writer.integer(2, send.sequence)
    })
  }
}

/** Parses a send. Its checksum must match. */
function storedSend(bytes: Buffer, topic: string): StoredSend {
  if (bytes.readUInt16BE(0) !== 0x0e01) throw new Error('A send has no checksum.')
  const rest = bytes.subarray(6)
  if (castagnoli?.(rest) !== BigInt(bytes.readUInt32BE(2))) throw new Error('A send has a wrong checksum.')
  const size = rest.readUInt32BE(0)
  const metadata = new Fields(rest.subarray(4, 4 + size))
  const compression = metadata.number(8)
  const payload = brokerCodec(compressions[compression] as BrokerCompression).decompress(rest.subarray(4 + size))
  if (payload.length !== metadata.number(9)) throw new Error('A send has a wrong uncompressed size.')
  const sequence = metadata.integer(2) ?? 0n
  const batched = metadata.integer(11) !== undefined
  const count = batched ? metadata.number(11) : 1
  const messages: StoredMessage[] = []
  if (batched) {
    let at = 0
    for (let index = 0; index < count; index++) {
      const own = payload.readUInt32BE(at)
      const length = new Fields(payload.subarray(at + 4, at + 4 + own)).number(3)
      const end = at + 4 + own + length
      const { parts, payload: text } = readBatchedMessage(payload.subarray(at, end))
      messages.push(message(topic, parts, text, sequence + BigInt(index)))
      at = end
    }
    if (at !== payload.length) throw new Error('A batch has bytes after its messages.')
  } else {
    messages.push(message(topic, singleParts(rest.subarray(4, 4 + size)), payload, sequence))
  }
  return {
    topic,
    producerName: metadata.text(1) ?? '',
    sequence,
    count,
    batched,
    compression,
    schemaVersion: metadata.text(16),
    messages,
  }
}

function singleParts(metadata: Buffer): MessageParts {
  const reader = new ProtobufReader(metadata)
  const properties: [string, string][] = []
  while (reader.next()) {
    if (reader.field !== 4) {
      reader.skip()
      continue
    }
    const pair = new Fields(reader.bytes())
    properties.push([pair.text(1) ?? '', pair.text(2) ?? ''])
  }
  const fields = new Fields(metadata)
  const time = fields.integer(12)
  return { key: fields.text(6), properties, eventTimeMs: time === undefined ? undefined : Number(time) }
}

function message(topic: string, parts: MessageParts, payload: Buffer, sequence: bigint): StoredMessage {
  return {
    topic,
    text: payload.toString('utf8'),
    key: parts.key,
    properties: Object.fromEntries(parts.properties),
    eventTimeMs: parts.eventTimeMs,
    sequence,
  }
}
