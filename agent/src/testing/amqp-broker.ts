// A fake AMQP 0.9.1 broker on loopback, as far as one consumer needs it: it delivers the messages of one queue, receives acknowledgements,
// and misbehaves on demand.

import type { AddressInfo } from 'node:net'
import { createServer, type Socket } from 'node:net'

export interface BrokerMessage {
  readonly body: Buffer
  /** In seconds or milliseconds; producers use both. */
  readonly timestamp?: number
  readonly exchange?: string
  readonly routingKey?: string
}

export interface Broker extends AsyncDisposable {
  /** The value of `connection_string`. */
  readonly url: string
  /** Adds messages to the queue. */
  publish(...messages: BrokerMessage[]): void
  /** Acknowledged and rejected bodies. */
  readonly accepted: string[]
  readonly rejected: string[]
  /** Messages in the queue, and delivered ones without acknowledgement. */
  readonly left: number
  readonly connections: number
  /** Consumers with an open connection. */
  readonly consumers: number
  /** The limit set with `basic.qos`. */
  readonly prefetch: number
  /** Closes all connections without a protocol message. */
  cut(): void
  /** Sends arbitrary bytes to all consumers. */
  send(bytes: Buffer): void
  /** Cancels the consumers, as when the queue is deleted. */
  cancel(): void
}

interface Consumer {
  readonly socket: Socket
  readonly tag: string
  readonly unanswered: Map<number, BrokerMessage>
  next: number
}

/** @param faults `ignoresPrefetch`: delivers messages without waiting for acknowledgements */
export async function startBroker(queue = 'penstock', faults: Faults = {}): Promise<Broker> {
  const broker = new QueueBroker(queue, faults)
  await broker.listen()
  return broker
}

interface Faults {
  readonly ignoresPrefetch?: boolean
}

/** A broker with one queue. */
class QueueBroker implements Broker {
  readonly accepted: string[] = []
  readonly rejected: string[] = []
  connections = 0
  prefetch = 0
  readonly #queue: string
  readonly #faults: Faults
  readonly #waiting: BrokerMessage[] = []
  readonly #consumers = new Set<Consumer>()
  readonly #sockets = new Set<Socket>()
  readonly #server = createServer((socket) => this.#serve(socket))

  constructor(queue: string, faults: Faults) {
    this.#queue = queue
    this.#faults = faults
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
  }

  get url(): string {
    return `amqp://guest:guest@127.0.0.1:${(this.#server.address() as AddressInfo).port}/%2f`
  }

  get left(): number {
    return [...this.#consumers].reduce((sum, { unanswered }) => sum + unanswered.size, this.#waiting.length)
  }

  get consumers(): number {
    return this.#consumers.size
  }

  publish(...messages: readonly BrokerMessage[]): void {
    this.#waiting.push(...messages)
    this.#deliver()
  }

  cut(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  send(bytes: Buffer): void {
    for (const { socket } of this.#consumers) socket.write(bytes)
  }

  cancel(): void {
    for (const { socket, tag } of this.#consumers) socket.write(method(1, 60, 30, shortText(tag), u8(1)))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #serve(socket: Socket): void {
    this.connections++
    this.#sockets.add(socket)
    socket.on('error', () => {}) // the close event follows
    socket.on('close', () => this.#forget(socket))
    let rest = Buffer.alloc(0)
    let greeted = false
    socket.on('data', (chunk: Buffer) => {
      rest = Buffer.concat([rest, chunk])
      if (!greeted) {
        if (rest.length < 8) return
        greeted = true
        rest = rest.subarray(8)
        socket.write(method(0, 10, 10, u8(0), u8(9), u32(0), longText('PLAIN'), longText('en_US')))
      }
      while (rest.length >= 7 && rest.length >= 8 + rest.readUInt32BE(3)) {
        const size = rest.readUInt32BE(3)
        if (rest[0] === 1) this.#answer(socket, rest.readUInt16BE(1), rest.subarray(7, 7 + size))
        rest = rest.subarray(8 + size)
      }
    })
  }

  /** Puts the unanswered messages of a closed connection back into the queue. */
  #forget(socket: Socket): void {
    this.#sockets.delete(socket)
    for (const consumer of this.#consumers) {
      if (consumer.socket !== socket) continue
      this.#consumers.delete(consumer)
      this.#waiting.unshift(...consumer.unanswered.values())
    }
  }

  #deliver(): void {
    const hasLimit = this.prefetch > 0 && this.#faults.ignoresPrefetch !== true
    const limit = hasLimit ? this.prefetch : Number.POSITIVE_INFINITY
    for (const consumer of this.#consumers) {
      while (this.#waiting.length > 0 && consumer.unanswered.size < limit) {
        const message = this.#waiting.shift() as BrokerMessage
        const delivery = consumer.next++
        consumer.unanswered.set(delivery, message)
        const { body, timestamp, exchange = '', routingKey = this.#queue } = message
        consumer.socket.write(
          method(1, 60, 60, shortText(consumer.tag), u64(delivery), u8(0), shortText(exchange), shortText(routingKey)),
        )
        const properties = timestamp === undefined ? u16(0) : Buffer.concat([u16(1 << 6), u64(timestamp)])
        consumer.socket.write(frame(2, 1, Buffer.concat([u16(60), u16(0), u64(body.length), properties])))
        for (let from = 0; from < body.length; from += 100_000) {
          consumer.socket.write(frame(3, 1, body.subarray(from, from + 100_000)))
        }
      }
    }
  }

  #answer(socket: Socket, channel: number, payload: Buffer): void {
    const call = payload.readUInt16BE(0) * 1000 + payload.readUInt16BE(2)
    const consumer = [...this.#consumers].find((one) => one.socket === socket)
    switch (call) {
      case 10_011: // start-ok
        socket.write(method(0, 10, 30, u16(2047), u32(131_072), u16(60)))
        return
      case 10_040: // open
        socket.write(method(0, 10, 41, shortText('')))
        return
      case 10_050: // close
        socket.end(method(0, 10, 51))
        return
      case 20_010: // channel.open
        socket.write(method(channel, 20, 11, u32(0)))
        return
      case 20_040: // channel.close
        socket.write(method(channel, 20, 41))
        return
      case 50_010: // queue.declare
        socket.write(method(channel, 50, 11, shortText(this.#queue), u32(this.#waiting.length), u32(0)))
        return
      case 60_010: // qos
        this.prefetch = payload.readUInt16BE(8)
        socket.write(method(channel, 60, 11))
        return
      case 60_020: // consume
        this.#consume(socket, channel, payload)
        return
      case 60_030: // cancel
        socket.write(method(channel, 60, 31, shortText(consumer?.tag ?? '')))
        return
      case 60_080: // ack
      case 60_090: // reject
        this.#settle(consumer, Number(payload.readBigUInt64BE(4)), call === 60_080 ? this.accepted : this.rejected)
    }
  }

  #consume(socket: Socket, channel: number, payload: Buffer): void {
    const name = payload.toString('utf8', 7, 7 + (payload[6] as number))
    if (name !== this.#queue) {
      socket.write(method(channel, 20, 40, u16(404), shortText('NOT_FOUND'), u16(60), u16(20)))
      return
    }
    const at = 7 + name.length
    const tag = payload.toString('utf8', at + 1, at + 1 + (payload[at] as number))
    socket.write(method(channel, 60, 21, shortText(tag)))
    this.#consumers.add({ socket, tag, unanswered: new Map(), next: 1 })
    this.#deliver()
  }

  #settle(consumer: Consumer | undefined, delivery: number, settled: string[]): void {
    const message = consumer?.unanswered.get(delivery)
    if (message === undefined)
      throw new Error(`The delivery ${delivery} was acknowledged twice, or by another consumer.`)
    consumer?.unanswered.delete(delivery)
    settled.push(message.body.toString())
    this.#deliver()
  }
}

function frame(type: number, channel: number, payload: Buffer): Buffer {
  return Buffer.concat([u8(type), u16(channel), u32(payload.length), payload, u8(0xce)])
}

function method(channel: number, klass: number, id: number, ...parts: readonly Buffer[]): Buffer {
  return frame(1, channel, Buffer.concat([u16(klass), u16(id), ...parts]))
}

function u8(value: number): Buffer {
  return Buffer.from([value])
}

function u16(value: number): Buffer {
  const bytes = Buffer.alloc(2)
  bytes.writeUInt16BE(value)
  return bytes
}

function u32(value: number): Buffer {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32BE(value)
  return bytes
}

function u64(value: number): Buffer {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64BE(BigInt(value))
  return bytes
}

function shortText(text: string): Buffer {
  return Buffer.concat([u8(Buffer.byteLength(text)), Buffer.from(text)])
}

function longText(text: string): Buffer {
  return Buffer.concat([u32(Buffer.byteLength(text)), Buffer.from(text)])
}
