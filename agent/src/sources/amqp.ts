// Messages of a queue on an AMQP 0.9.1 broker, such as RabbitMQ. A message is acknowledged when its events are accepted by the
// pipeline, or delivered where a sink wants that; a lost connection is made again, and what it left unanswered comes again.

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
