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
export async function startBroker(
  queue = 'penstock',
  faults: { readonly ignoresPrefetch?: boolean } = {},
): Promise<Broker> {
  const waiting: BrokerMessage[] = []
  const consumers = new Set<Consumer>()
  const sockets = new Set<Socket>()
  const state = { connections: 0, prefetch: 0 }
  const accepted: string[] = []
  const rejected: string[] = []

  const deliver = () => {
    for (const consumer of consumers) {
      const limit = state.prefetch === 0 || faults.ignoresPrefetch === true ? Number.POSITIVE_INFINITY : state.prefetch
      while (waiting.length > 0 && consumer.unanswered.size < limit) {
        const message = waiting.shift() as BrokerMessage
        const delivery = consumer.next++
        consumer.unanswered.set(delivery, message)
        const { body, timestamp, exchange = '', routingKey = queue } = message
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

  const take = (socket: Socket, channel: number, payload: Buffer) => {
    const call = payload.readUInt16BE(0) * 1000 + payload.readUInt16BE(2)
    const consumer = [...consumers].find((one) => one.socket === socket)
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
        socket.write(method(channel, 50, 11, shortText(queue), u32(waiting.length), u32(0)))
        return
      case 60_010: // qos
        state.prefetch = payload.readUInt16BE(8)
        socket.write(method(channel, 60, 11))
        return
      case 60_020: {
        const name = payload.toString('utf8', 7, 7 + (payload[6] as number))
        if (name !== queue) {
          socket.write(method(channel, 20, 40, u16(404), shortText('NOT_FOUND'), u16(60), u16(20)))
          return
        }
        const at = 7 + name.length
        const tag = payload.toString('utf8', at + 1, at + 1 + (payload[at] as number))
        socket.write(method(channel, 60, 21, shortText(tag)))
        consumers.add({ socket, tag, unanswered: new Map(), next: 1 })
        deliver()
        return
      }
      case 60_030: // cancel
        socket.write(method(channel, 60, 31, shortText(consumer?.tag ?? '')))
        return
      case 60_080: // ack
      case 60_090: {
        const delivery = Number(payload.readBigUInt64BE(4))
        const message = consumer?.unanswered.get(delivery)
        if (message === undefined)
          throw new Error(`The delivery ${delivery} was acknowledged twice, or by another consumer.`)
        consumer?.unanswered.delete(delivery)
        if (call === 60_080) accepted.push(message.body.toString())
        else rejected.push(message.body.toString())
        deliver()
      }
    }
  }

  const server = createServer((socket) => {
    state.connections++
    sockets.add(socket)
    socket.on('error', () => {}) // the close event follows
    socket.on('close', () => {
      sockets.delete(socket)
      for (const consumer of consumers) {
        if (consumer.socket !== socket) continue
        consumers.delete(consumer)
        waiting.unshift(...consumer.unanswered.values())
      }
    })
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
        if (rest[0] === 1) take(socket, rest.readUInt16BE(1), rest.subarray(7, 7 + size))
        rest = rest.subarray(8 + size)
      }
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `amqp://guest:guest@127.0.0.1:${(server.address() as AddressInfo).port}/%2f`,
    accepted,
    rejected,
    get left() {
      return [...consumers].reduce((sum, { unanswered }) => sum + unanswered.size, waiting.length)
    },
    get consumers() {
      return consumers.size
    },
    get connections() {
      return state.connections
    },
    get prefetch() {
      return state.prefetch
    },
    publish(...messages) {
      waiting.push(...messages)
      deliver()
    },
    cut() {
      for (const socket of sockets) socket.destroy()
    },
    send(bytes) {
      for (const { socket } of consumers) socket.write(bytes)
    },
    cancel() {
      for (const { socket, tag } of consumers) socket.write(method(1, 60, 30, shortText(tag), u8(1)))
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => server.close(resolve))
    },
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
