// A fake broker on loopback that implements the Pulsar protocol as far as producers need it. It stores messages, and simulates faults of
// brokers: it rejects, hangs, resets, closes producers and confirms late.

import type { AddressInfo } from 'node:net'
import { createServer, type Socket } from 'node:net'
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
  const stored: StoredSend[] = []
  const sends: StoredSend[] = []
  const connects: Fields[] = []
  const producers: { topic: string; fields: Fields }[] = []
  const authResponses: Fields[] = []
  const closed: string[] = []
  const problems: unknown[] = []
  const sockets = new Set<Socket>()
  const attempts = { connect: 0, partitions: 0, lookup: 0, producer: 0, send: 0 }
  let pings = 0
  let pongs = 0

  const handle = (socket: Socket) => {
    sockets.add(socket)
    socket.on('close', () => sockets.delete(socket))
    socket.on('error', () => {}) // some tests disconnect clients
    const topics = new Map<number, { topic: string; name: string }>()
    let unread = Buffer.alloc(0)
    const reply = (type: number, write: Parameters<typeof commandFrame>[1]) => {
      if (!socket.destroyed && !broker.silent) socket.write(commandFrame(type, write))
    }
    const refuse = (id: bigint | undefined, { error, text = '' }: Refusal) =>
      reply(command.error, (fields) => {
        fields.integer(1, id ?? 0n)
        fields.integer(2, error)
        fields.text(3, text)
      })
    const take = async (frame: Buffer): Promise<void> => {
      const size = frame.readUInt32BE(0)
      const outer = new Fields(frame.subarray(4, 4 + size))
      const type = outer.number(1)
      const fields = new Fields(outer.bytes(type) ?? Buffer.alloc(0))
      switch (type) {
        case command.connect: {
          connects.push(fields)
          const answer = script.connect?.(fields, ++attempts.connect)
          if (answer === 'hang') return
          if (answer === 'garbage') return void socket.write('HTTP/1.1 400 Bad Request\r\n\r\n')
          if (answer === 'reset') return void socket.resetAndDestroy()
          if (answer !== undefined) {
            refuse(undefined, answer)
            socket.end()
            return
          }
          return reply(command.connected, (writer) => {
            writer.text(1, 'fake')
            writer.integer(2, 19)
            if (script.maxMessageBytes !== undefined) writer.integer(3, script.maxMessageBytes)
          })
        }
        case command.partitionedMetadata: {
          const answer = script.partitions?.(fields.text(1) ?? '', ++attempts.partitions) ?? 0
          return reply(command.partitionedMetadataResponse, (writer) => {
            if (typeof answer === 'number') writer.integer(1, answer)
            writer.integer(2, fields.integer(2) ?? 0n)
            writer.integer(3, typeof answer === 'number' ? 0 : 1)
            if (typeof answer === 'number') return
            writer.integer(4, answer.error)
            writer.text(5, answer.text ?? '')
          })
        }
        case command.lookup: {
          const answer = script.lookup?.(fields.text(1) ?? '', ++attempts.lookup, fields.integer(3) === 1n)
          const refused = answer !== undefined && 'error' in answer ? answer : undefined
          const found = answer !== undefined && 'url' in answer ? answer : { url: broker.url }
          return reply(command.lookupResponse, (writer) => {
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
        case command.producer: {
          const topic = fields.text(1) ?? ''
          producers.push({ topic, fields })
          const answer = script.producer?.(topic, fields, ++attempts.producer)
          if (answer === 'hang') return
          if (answer !== undefined) return refuse(fields.integer(3), answer)
          const name = fields.text(4) ?? `fake-${producers.length}`
          topics.set(fields.number(2), { topic, name })
          return reply(command.producerSuccess, (writer) => {
            writer.integer(1, fields.integer(3) ?? 0n)
            writer.text(2, name)
            writer.integer(3, script.lastSequence ?? -1n)
            if (fields.bytes(7) !== undefined) writer.text(4, 'v7')
          })
        }
        case command.send: {
          const producerId = fields.number(1)
          const producer = topics.get(producerId)
          if (producer === undefined) return
          const send = storedSend(frame.subarray(4 + size), producer.topic)
          sends.push(send)
          const answer = (await script.send?.(send, ++attempts.send)) ?? 'confirm'
          if (answer !== 'confirm' && (typeof answer === 'string' || answer.alone !== true)) topics.delete(producerId)
          if (typeof answer !== 'string') {
            return reply(command.sendError, (writer) => {
              writer.integer(1, producerId)
              writer.integer(2, send.sequence)
              writer.integer(3, answer.error)
              writer.text(4, answer.text ?? '')
            })
          }
          if (answer === 'confirm' || answer === 'store' || answer === 'store and reset') stored.push(send)
          if (answer === 'reset' || answer === 'store and reset') return void socket.resetAndDestroy()
          if (answer === 'close producer') {
            return reply(command.closeProducer, (writer) => {
              writer.integer(1, producerId)
              writer.integer(2, 99)
            })
          }
          if (answer !== 'confirm') return
          return reply(command.sendReceipt, (writer) => {
            writer.integer(1, producerId)
            writer.integer(2, send.sequence)
          })
        }
        case command.closeProducer:
          closed.push(topics.get(fields.number(1))?.topic ?? '')
          topics.delete(fields.number(1))
          return reply(command.success, (writer) => writer.integer(1, fields.integer(2) ?? 0n))
        case command.authResponse:
          authResponses.push(new Fields(fields.bytes(2) ?? Buffer.alloc(0)))
          return
        case command.ping:
          pings++
          return reply(command.pong, undefined)
        case command.pong:
          pongs++
      }
    }
    let taking = Promise.resolve()
    socket.on('data', (chunk: Buffer) => {
      unread = Buffer.concat([unread, chunk])
      while (unread.length >= 4 && unread.length >= 4 + unread.readUInt32BE(0)) {
        const end = 4 + unread.readUInt32BE(0)
        const frame = unread.subarray(4, end)
        unread = unread.subarray(end)
        taking = taking
          .then(() => (socket.destroyed ? undefined : take(frame)))
          .catch((error: unknown) => {
            problems.push(error)
            socket.destroy()
          })
      }
    })
  }

  const server = script.tls === undefined ? createServer(handle) : createTlsServer(script.tls, handle)
  await new Promise<void>((resolve) => server.listen(script.port ?? 0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  const toAll = (frame: Buffer) => {
    for (const socket of sockets) socket.write(frame)
  }
  const broker = {
    url: `${script.tls === undefined ? 'pulsar' : 'pulsar+ssl'}://127.0.0.1:${port}`,
    port,
    stored,
    sends,
    get messages() {
      return stored.flatMap((send) => send.messages)
    },
    connects,
    producers,
    authResponses,
    closed,
    get pings() {
      return pings
    },
    get pongs() {
      return pongs
    },
    silent: false,
    get connections() {
      return sockets.size
    },
    read(isReading: boolean) {
      for (const socket of sockets) isReading ? socket.resume() : socket.pause()
    },
    closeProducer: (id: number) =>
      toAll(
        commandFrame(command.closeProducer, (fields) => {
          fields.integer(1, id)
          fields.integer(2, 99)
        }),
      ),
    confirm: (producerId: number, sequence: bigint) =>
      toAll(
        commandFrame(command.sendReceipt, (fields) => {
          fields.integer(1, producerId)
          fields.integer(2, sequence)
        }),
      ),
    challenge: () => toAll(commandFrame(command.authChallenge, (fields) => fields.text(1, 'fake'))),
    ping: () => toAll(commandFrame(command.ping)),
    async [Symbol.asyncDispose]() {
      const closed = new Promise((resolve) => server.close(resolve))
      for (const socket of sockets) socket.destroy()
      await closed
      if (problems.length > 0) throw problems[0]
    },
  }
  return broker
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
