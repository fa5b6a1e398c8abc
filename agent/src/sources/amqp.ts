// Messages of a queue on an AMQP 0.9.1 broker, such as RabbitMQ. A message is acknowledged when its events are accepted by the
// pipeline, or delivered where a sink wants that; a lost connection is made again, and what it left unanswered comes again.

import { pause } from '../clock.ts'
import { decodedTypes } from '../codecs/decoding/decoder.ts'
import { framingProblems } from '../codecs/framing/encode.ts'
import { defineSource, type OptionProblem } from '../component.ts'
import { errorText } from '../errors.ts'
import { type BatchStatus, Finalizer } from '../event/finalizer.ts'
import { Timestamp } from '../event/timestamp.ts'
import { Notes } from '../intake/annotate.ts'
import { MessageReader, Outstanding } from '../intake/message-reader.ts'
import { compileProxy } from '../net/proxy.ts'
import { compileTls } from '../net/tls.ts'
import { decoding, framing, tls } from '../schema/groups.ts'
import { address, fieldPath, text, uint } from '../schema/options.ts'
import { Backoff } from '../timing/backoff.ts'
import { parseAddress } from './amqp/address.ts'
import { Consumer, checkQueue, type Delivery } from './amqp/consumer.ts'

const protocol = { protocol: 'amqp_0_9_1' }
const initialBackoffMs = 1000
const maxBackoffMs = 30_000
const noBytes = Buffer.alloc(0)

export const amqp = defineSource({
  type: 'amqp',
  summary: 'Consumes a queue of an AMQP 0.9.1 broker.',
  description:
    'The queue must exist. A message is acknowledged when the pipeline has accepted its events, or, with acknowledgements, when they are delivered; it is rejected without being put back into the queue when a sink cannot deliver them, so that the queue may move it to a dead-letter exchange. After a lost connection the broker gives out again what was not acknowledged. Agents that consume one queue share its messages. A client identifies itself by `tls.crt_file` and `tls.key_file`, or by a PKCS#12 file in either.',
  outputs: ['log', 'metric'],
  emits: ({ decoding: chosen }) => decodedTypes(chosen),
  acknowledges: true,
  runsOn: 'aggregator',
  options: {
    connection_string: address(
      'Address of the broker with user and password; the virtual host is percent-encoded, scheme `amqps` chooses TLS. Parameters: `timeout` (seconds to connect), `heartbeat` (seconds), `frame_max`, `channel_max`.',
      { ports: { amqp: 5672, amqps: 5671 } },
      { secret: true, examples: ['amqp://user:password@broker:5672/%2f?timeout=10'] },
    ),
    queue: text('The queue.', { default: 'penstock' }),
    consumer: text('Tag that the broker shows for this consumer.', { default: 'penstock' }),
    exchange_key: fieldPath('Field that gets the exchange of the message; empty: none.', { default: 'exchange' }),
    routing_key_field: fieldPath('Field that gets the routing key of the message; empty: none.', {
      default: 'routing',
    }),
    offset_key: fieldPath('Field that gets the delivery tag of the message; empty: none.', { default: 'offset' }),
    prefetch_count: uint(
      'Most messages that the broker gives out before any is acknowledged. They are held in memory, up to 64 MiB: where that is too little, fewer are asked for. A broker that gives out more than was asked for is left; with acknowledgements, as many can be delivered in the time of one delivery.',
      { default: 4096, minimum: 1, maximum: 65_535, limit: 'prefetched' },
    ),
    decoding: decoding(),
    framing: framing(),
    tls: tls(),
  },

  check(options) {
    const problems: OptionProblem[] = framingProblems(options.framing)
    const address = parseAddress(options.connection_string)
    if (typeof address === 'string')
      problems.push({ path: 'connection_string', message: `\`connection_string\` ${address}` })
    else if (options.tls.enabled === true && !address.secure) {
      problems.push({ path: 'tls.enabled', message: 'is true, but the scheme of `connection_string` is not amqps' })
    }
    return problems
  },

  build(options, context) {
    const address = parseAddress(options.connection_string)
    if (typeof address === 'string') throw new TypeError(`\`connection_string\` ${address}.`) // `check` has reported it
    const { crt_file, key_file } = options.tls
    const settings = compileTls(crt_file === undefined ? { ...options.tls, crt_file: key_file } : options.tls)
    for (const warning of address.secure ? settings.warnings : []) context.logger.warn(warning)
    const consumerOptions = {
      address,
      tls: settings,
      egress: compileProxy(context.proxy).egress,
      queue: options.queue,
      consumerTag: options.consumer,
      prefetch: options.prefetch_count,
    }
    const { events, stopping, acknowledgements } = context
    const notes = new Notes('amqp', context.globals.logSchema, [
      [options.exchange_key, undefined],
      [options.routing_key_field, undefined],
      [options.offset_key, undefined],
    ])
    const reader = new MessageReader(options, notes, context)
    const outstanding = new Outstanding()
    /** Consumers that messages were taken from and that may still have to be answered. */
    const open = new Set<Consumer>()

    const answer = (consumer: Consumer, message: Delivery, status: BatchStatus): void => {
      // An agent that is stopping gives up what it could not deliver: the broker gives it out again.
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
          message: 'A message could not be answered; the broker gives it out again.',
          fields: { reason: consumer.ended ?? errorText(error) },
        })
      }
    }

    const handOn = async (consumer: Consumer, message: Delivery): Promise<void> => {
      const { content, fields, properties } = message
      // What waits for its answer does not keep the bytes: those are in events by then.
      const answered = { ...message, content: noBytes }
      events.receivedBytes(content.length, protocol)
      outstanding.add()
      const finalizer = new Finalizer((status) => {
        if (acknowledgements) answer(consumer, answered, status)
        outstanding.done()
      })
      await reader.read(content, finalizer, sentAt(properties.timestamp), [
        fields.exchange,
        fields.routingKey,
        fields.deliveryTag,
      ])
      if (!acknowledgements) answer(consumer, answered, 'delivered')
    }

    const consume = async (consumer: Consumer): Promise<void> => {
      while (!stopping.aborted) {
        const message = consumer.next()
        if (message !== undefined) await handOn(consumer, message)
        else if (consumer.ended === undefined) await consumer.readable(stopping)
        else return
      }
      await consumer.cancel()
    }

    return {
      async run() {
        const backoff = new Backoff({ initialMs: initialBackoffMs, maxMs: maxBackoffMs, jitter: 'none' })
        let prefetch = options.prefetch_count
        while (!stopping.aborted) {
          let reason: string
          try {
            const consumer = await Consumer.open({ ...consumerOptions, prefetch }, stopping)
            open.add(consumer)
            backoff.reset()
            await consume(consumer)
            if (stopping.aborted) return
            reason = consumer.ended ?? ''
            prefetch = consumer.prefetch
            // Answers to it are in vain: the broker gives the messages out again.
            open.delete(consumer)
            await consumer.close()
          } catch (error) {
            if (stopping.aborted) return
            reason = errorText(error)
          }
          const pauseMs = backoff.next()
          const fields = { reason, pause_secs: pauseMs / 1000 }
          const message = 'Nothing can be consumed; the connection is made again after a pause.'
          events.error({ type: 'request_failed', stage: 'receiving', message, fields })
          await pause(pauseMs, stopping)
        }
      },
      async settle() {
        await outstanding.none()
        await Promise.all([...open].map((consumer) => consumer.close()))
      },
      healthcheck: (signal) => checkQueue(consumerOptions, signal),
    }
  },
})

/** The time of a message. The protocol counts seconds; some producers write milliseconds. */
function sentAt(value: unknown): Timestamp | undefined {
  if (typeof value !== 'number' || !Number.isFinite(value)) return undefined
  return new Timestamp(Math.floor(value < 1e11 ? value * 1000 : value), 0)
}
