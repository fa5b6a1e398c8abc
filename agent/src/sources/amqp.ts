// Messages of a queue on an AMQP 0.9.1 broker, such as RabbitMQ. The source acknowledges a message when the pipeline has
// accepted its events, or, if a sink asks for acknowledgements, when they are delivered. It reconnects after a lost
// connection; the broker then redelivers the unacknowledged messages.

import { decodedTypes } from '../codecs/decoding/decoder.ts'
import { framingProblems } from '../codecs/framing/encode.ts'
import { defineSource, type OptionProblem } from '../component.ts'
import { Notes } from '../intake/annotate.ts'
import { MessageReader } from '../intake/message-reader.ts'
import { compileProxy } from '../net/proxy.ts'
import { compileTls } from '../net/tls.ts'
import { decoding, framing, tls } from '../schema/groups.ts'
import { address, fieldPath, text, uint } from '../schema/options.ts'
import { parseAddress } from './amqp/address.ts'
import { checkQueue } from './amqp/consumer.ts'
import { MessageReceiver } from './amqp/receiver.ts'

export const amqp = defineSource({
  type: 'amqp',
  products: ['RabbitMQ'],
  summary: 'Consumes a queue of an AMQP 0.9.1 broker.',
  description:
    'The queue must exist. The source acknowledges a message when the pipeline has accepted its events, or, with acknowledgements, when they are delivered. If a sink cannot deliver them, the source rejects the message without requeueing it, so that the queue may move it to a dead-letter exchange. After a lost connection the broker redelivers the unacknowledged messages. Agents that consume one queue share its messages. A client identifies itself by `tls.crt_file` and `tls.key_file`, or by a PKCS#12 file in either.',
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
    consumer: text('Tag that identifies this consumer at the broker.', { default: 'penstock' }),
    exchange_key: fieldPath('Field for the exchange of the message. Empty: none.', { default: 'exchange' }),
    routing_key_field: fieldPath('Field for the routing key of the message. Empty: none.', {
      default: 'routing',
    }),
    offset_key: fieldPath('Field for the delivery tag of the message. Empty: none.', { default: 'offset' }),
    prefetch_count: uint(
      'Maximum number of unacknowledged messages that the broker sends. The agent holds them in memory, up to 64 MiB; if they need more, it asks for fewer. It disconnects from a broker that sends more than it asked for. With acknowledgements, this number limits how many messages are delivered in the time of one delivery.',
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
    if (typeof address === 'string') throw new TypeError(`\`connection_string\` ${address}.`) // `check` has already reported this
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
    const notes = new Notes('amqp', context.globals.logSchema, [
      [options.exchange_key, undefined],
      [options.routing_key_field, undefined],
      [options.offset_key, undefined],
    ])
    const receiver = new MessageReceiver(consumerOptions, new MessageReader(options, notes, context), context)
    return {
      run: () => receiver.run(),
      settle: () => receiver.settle(),
      healthcheck: (signal) => checkQueue(consumerOptions, signal),
    }
  },
})
