// Takes messages of a queue from a consumer, passes their events on and answers the messages. When the connection ends, a new
// consumer starts after a pause; the broker redelivers the unanswered messages.

import { pause } from '../../clock.ts'
import type { SourceContext } from '../../component.ts'
import { errorText } from '../../errors.ts'
import { type BatchStatus, Finalizer } from '../../event/finalizer.ts'
import { Timestamp } from '../../event/timestamp.ts'
import { type MessageReader, Outstanding } from '../../intake/message-reader.ts'
import { Backoff } from '../../timing/backoff.ts'
import { AmqpConsumer, type AmqpDelivery, type ConsumerOptions } from './consumer.ts'

const protocol = { protocol: 'amqp_0_9_1' }
const initialBackoffMs = 1000
const maxBackoffMs = 30_000
const noBytes = Buffer.alloc(0)

export class MessageReceiver {
  readonly #options: ConsumerOptions
  readonly #reader: MessageReader
  readonly #context: SourceContext
  readonly #outstanding = new Outstanding()
  /** Consumers whose messages may still need an answer. */
  readonly #open = new Set<AmqpConsumer>()

  constructor(options: ConsumerOptions, reader: MessageReader, context: SourceContext) {
    this.#options = options
    this.#reader = reader
    this.#context = context
  }

  /** Consumes until the source stops. */
  async run(): Promise<void> {
    const { events, stopping } = this.#context
    const backoff = new Backoff({ initialMs: initialBackoffMs, maxMs: maxBackoffMs, jitter: 'none' })
    let { prefetch } = this.#options
    while (!stopping.aborted) {
      let reason: string
      try {
        const consumer = await AmqpConsumer.open({ ...this.#options, prefetch }, stopping)
        this.#open.add(consumer)
        backoff.reset()
        await this.#consume(consumer)
        if (stopping.aborted) return
        reason = consumer.ended ?? ''
        prefetch = consumer.prefetch
        // Answers on this connection have no effect: the broker redelivers the messages.
        this.#open.delete(consumer)
        await consumer.close()
      } catch (error) {
        if (stopping.aborted) return
        reason = errorText(error)
      }
      const pauseMs = backoff.next()
      const fields = { reason, pause_secs: pauseMs / 1000 }
      const message = 'Cannot consume; reconnecting after a pause.'
      events.error({ type: 'request_failed', stage: 'receiving', message, fields })
      await pause(pauseMs, stopping)
    }
  }

  /** Waits until all messages are answered, and closes the connections. */
  async settle(): Promise<void> {
    await this.#outstanding.none()
    await Promise.all([...this.#open].map((consumer) => consumer.close()))
  }

  async #consume(consumer: AmqpConsumer): Promise<void> {
    const { stopping } = this.#context
    while (!stopping.aborted) {
      const message = consumer.next()
      if (message !== undefined) await this.#handOn(consumer, message)
      else if (consumer.ended === undefined) await consumer.readable(stopping)
      else return
    }
    await consumer.cancel()
  }

  async #handOn(consumer: AmqpConsumer, message: AmqpDelivery): Promise<void> {
    const { content, fields, properties } = message
    const { events, acknowledgements } = this.#context
    // While a message waits for its answer, its bytes are not kept: the events already hold them.
    const answered = { ...message, content: noBytes }
    events.receivedBytes(content.length, protocol)
    this.#outstanding.add()
    const finalizer = new Finalizer((status) => {
      if (acknowledgements) this.#answer(consumer, answered, status)
      this.#outstanding.done()
    })
    await this.#reader.read(content, finalizer, sentAt(properties.timestamp), [
      fields.exchange,
      fields.routingKey,
      fields.deliveryTag,
    ])
    if (!acknowledgements) this.#answer(consumer, answered, 'delivered')
  }

  #answer(consumer: AmqpConsumer, message: AmqpDelivery, status: BatchStatus): void {
    const { events, stopping } = this.#context
    // A stopping agent gives up the messages that it could not deliver, and the broker redelivers them.
    if (status === 'errored' && stopping.aborted) return
    const accepted = status === 'delivered'
    try {
      if (accepted) consumer.accept(message)
      else consumer.reject(message)
    } catch (error) {
      if (accepted) events.count('consumer_offset_updates_failed_total')
      events.error({
        type: accepted ? 'acknowledgment_failed' : 'command_failed',
        stage: 'receiving',
        message: 'Could not answer a message; the broker redelivers it.',
        fields: { reason: consumer.ended ?? errorText(error) },
      })
    }
  }
}

/** The time of a message. The protocol uses seconds; some producers write milliseconds. */
function sentAt(value: unknown): Timestamp | undefined {
  if (typeof value !== 'number' || !Number.isFinite(value)) return undefined
  return new Timestamp(Math.floor(value < 1e11 ? value * 1000 : value), 0)
}
