// One consumer on one channel of one connection to a broker. It answers a message only on the channel that delivered it:
// the broker redelivers everything that a lost connection leaves unanswered.

import { Socket } from 'node:net'
import { TLSSocket } from 'node:tls'
import type { Channel, ChannelModel, ConsumeMessage } from 'amqplib'
import { errorText, PenstockError } from '../../errors.ts'
import type { Egress } from '../../net/egress.ts'
import type { TlsSettings } from '../../net/tls.ts'
import { type AmqpAddress, shownAddress } from './address.ts'

export interface ConsumerOptions {
  readonly address: AmqpAddress
  readonly tls: TlsSettings
  /** Addresses that connections may not use. */
  readonly egress: Egress | undefined
  readonly queue: string
  readonly consumerTag: string
  readonly prefetch: number
}

export type AmqpDelivery = ConsumeMessage

/** The client refuses frames larger than the limit agreed with the broker. */
const maxFrameBytes = 1 << 20
/** Longest message accepted. A broker announces the length of a message first, and the length may be anything. */
const maxMessageBytes = 64 << 20
/** Limit for the bytes of messages that wait to be passed on. A single message may exceed it. */
const maxWaitingBytes = 64 << 20
/** How long to wait for the broker to confirm a close. */
const closeTimeoutMs = 5000

/** Connects; throws a PenstockError that names the broker. */
async function connect({ address, tls, egress }: ConsumerOptions, signal: AbortSignal): Promise<ChannelModel> {
  egress?.check(address.host)
  const amqp = await import('amqplib')
  const name = tls.serverName ?? address.host
  const given = { heartbeat: address.heartbeat, frameMax: address.frameMax, channelMax: address.channelMax }
  const chosen = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  const opening = amqp.connect(
    {
      protocol: address.secure ? 'amqps' : 'amqp',
      hostname: address.host,
      port: address.port,
      username: address.user,
      password: address.password,
      vhost: encodeURIComponent(address.vhost),
      maxFrameSize: Math.min(Math.max(maxFrameBytes, address.frameMax ?? 0), maxMessageBytes),
      ...chosen,
    },
    {
      ...(address.secure ? tls.connectOptions(name) : {}),
      ...(egress === undefined ? {} : { lookup: egress.lookup }),
      timeout: address.timeoutMs,
      noDelay: true,
      keepAlive: true,
      clientProperties: { connection_name: 'penstock' },
    },
  )
  const { promise: aborted, reject } = Promise.withResolvers<never>()
  const abort = () => reject(signal.reason)
  signal.addEventListener('abort', abort)
  try {
    if (signal.aborted) abort()
    const model = await Promise.race([opening, aborted])
    model.on('error', () => {}) // `close` follows and gives the reason
    const stream = streamOf(model)
    const wrong = stream instanceof TLSSocket ? tls.wrongName(stream, name) : undefined
    if (wrong !== undefined) {
      await closeQuietly(model)
      throw wrong
    }
    return model
  } catch (error) {
    // Closes a connection that opens after the wait for it has ended.
    opening.then(closeQuietly, () => {})
    const reason = signal.aborted ? 'the source stops' : errorText(error)
    throw new PenstockError('PEN_REQUEST_FAILED', `The broker ${shownAddress(address)} cannot be used: ${reason}.`, {
      cause: error,
    })
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

async function closeQuietly(closing: ChannelModel): Promise<void> {
  closing.on('error', () => {}) // the connection is closing
  await awaitClose(() => closing.close())
  streamOf(closing)?.destroy()
}

/**
 * Limits the length of messages. The client itself has no limit and buffers as many bytes as a message header
 * announces.
 */
function refuseLongMessages(channel: Channel, refuse: (bytes: number) => void): void {
  const accept: unknown = Reflect.get(channel, 'accept')
  if (typeof accept !== 'function') throw new PenstockError('PEN_REQUEST_FAILED', 'The AMQP client cannot read frames.')
  Reflect.set(channel, 'accept', (frame: { readonly size?: unknown }) => {
    const { size } = frame
    if (typeof size === 'number' && size > maxMessageBytes) return refuse(size)
    return Reflect.apply(accept, channel, [frame])
  })
}

/** The socket below the client. */
function streamOf(model: ChannelModel): Socket | undefined {
  const stream: unknown = Reflect.get(model.connection, 'stream')
  return stream instanceof Socket ? stream : undefined
}

/**
 * Waits for the broker to confirm a close. The confirmation may never come, because the connection may already be lost.
 */
async function awaitClose(work: () => Promise<unknown>): Promise<void> {
  const { promise: late, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, closeTimeoutMs)
  await Promise.race([Promise.try(work).catch(() => {}), late])
  clearTimeout(timer)
}

/** Throws a PenstockError if the queue cannot be reached. */
export async function checkQueue(options: ConsumerOptions, signal: AbortSignal): Promise<void> {
  const model = await connect(options, signal)
  try {
    const channel = await model.createChannel()
    channel.on('error', () => {}) // the call below rejects with it
    await channel.checkQueue(options.queue)
  } catch (error) {
    throw new PenstockError(
      'PEN_HEALTHCHECK',
      `The queue \`${options.queue}\` of ${shownAddress(options.address)} cannot be used: ${errorText(error)}.`,
      { cause: error },
    )
  } finally {
    await closeQuietly(model)
  }
}

export class AmqpConsumer {
  readonly #model: ChannelModel
  readonly #channel: Channel
  readonly #tag: string
  #waiting: AmqpDelivery[] = []
  #next = 0
  #waitingBytes = 0
  /** Messages received but not answered. A broker should keep to the number requested, but may send without end. */
  #unanswered = 0
  readonly #prefetch: number
  #isTooMuch = false
  #wake: (() => void) | undefined
  #ended: string | undefined
  readonly #refuse: (reason: string) => void

  private constructor(model: ChannelModel, channel: Channel, { consumerTag, prefetch }: ConsumerOptions) {
    this.#model = model
    this.#channel = channel
    this.#tag = consumerTag
    this.#prefetch = prefetch
    const end = (reason: string) => {
      this.#ended ??= reason
      // The broker redelivers messages that were not passed on.
      this.#waiting = []
      this.#next = 0
      this.#waitingBytes = 0
      this.#wake?.()
    }
    this.#refuse = (reason) => {
      end(reason)
      // Destroy the stream with an error; otherwise the client continues to wait for the broker.
      streamOf(model)?.destroy(new Error(reason))
    }
    model.on('close', (error) => end(error === undefined ? 'The connection was closed.' : errorText(error)))
    channel.on('error', (error) => end(errorText(error)))
    channel.on('close', () => end('The channel was closed.'))
    refuseLongMessages(channel, (bytes) =>
      this.#refuse(`The broker sends a message of ${bytes} bytes; the limit is ${maxMessageBytes}.`),
    )
  }

  /** Connects and starts to consume; throws a PenstockError. */
  static async open(options: ConsumerOptions, signal: AbortSignal): Promise<AmqpConsumer> {
    const model = await connect(options, signal)
    try {
      const channel = await model.createChannel()
      const consumer = new AmqpConsumer(model, channel, options)
      await channel.prefetch(options.prefetch)
      await channel.consume(options.queue, (message) => consumer.#take(message), {
        consumerTag: options.consumerTag,
        noAck: false,
      })
      return consumer
    } catch (error) {
      await closeQuietly(model)
      const where = `The queue \`${options.queue}\` of ${shownAddress(options.address)}`
      throw new PenstockError('PEN_REQUEST_FAILED', `${where} cannot be consumed: ${errorText(error)}.`, {
        cause: error,
      })
    }
  }

  #take(message: AmqpDelivery | null): void {
    if (this.#ended !== undefined) return
    if (message === null) {
      this.#ended = 'The broker cancelled the consumer, as it does when the queue is deleted.'
    } else {
      this.#waiting.push(message)
      this.#waitingBytes += message.content.length
      if (++this.#unanswered > this.#prefetch) {
        this.#refuse(`The broker sends more messages than \`prefetch_count\` allows, ${this.#prefetch}.`)
      } else if (this.#waitingBytes > maxWaitingBytes && this.#waiting.length - this.#next > 1) {
        this.#isTooMuch = true
        this.#refuse(
          `The messages that the broker sent before any was passed on exceed ${maxWaitingBytes} bytes; the source asks for fewer from now on. Lower \`prefetch_count\`.`,
        )
      }
    }
    this.#wake?.()
  }

  /** How many messages the next consumer should request. */
  get prefetch(): number {
    return this.#isTooMuch ? Math.max(1, this.#prefetch >> 1) : this.#prefetch
  }

  /** Why the consumer has ended; undefined while it is open. */
  get ended(): string | undefined {
    return this.#ended
  }

  /** The next waiting message, if any. */
  next(): AmqpDelivery | undefined {
    const message = this.#waiting[this.#next]
    if (message === undefined) return undefined
    this.#next++
    this.#waitingBytes -= message.content.length
    if (this.#next === this.#waiting.length) {
      this.#waiting = []
      this.#next = 0
    }
    return message
  }

  /** Resolves when there is a message, the consumer has ended or the signal aborts. */
  async readable(signal: AbortSignal): Promise<void> {
    if (this.#waiting.length > 0 || this.#ended !== undefined || signal.aborted) return
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#wake = resolve
    signal.addEventListener('abort', resolve as () => void)
    await promise
    signal.removeEventListener('abort', resolve as () => void)
    this.#wake = undefined
  }

  /** Throws if the channel is gone. */
  accept(message: AmqpDelivery): void {
    this.#unanswered--
    this.#channel.ack(message)
  }

  /** Throws if the channel is gone. The broker drops the message, or moves it to the destination that the queue defines. */
  reject(message: AmqpDelivery): void {
    this.#unanswered--
    this.#channel.reject(message, false)
  }

  /** Stops the delivery of further messages. Messages already received can still be answered. */
  async cancel(): Promise<void> {
    if (this.#ended !== undefined) return
    await awaitClose(() => this.#channel.cancel(this.#tag))
  }

  /** Sends the pending answers and closes the connection. */
  async close(): Promise<void> {
    await awaitClose(() => this.#channel.close())
    await closeQuietly(this.#model)
  }
}
