// Message broker sink: publishes each event as a message to a Pulsar topic, using our own producer. Messages are sent in
// batches, in order within a partition; an event is delivered when the broker has confirmed its batch.

import { systemClock } from '../clock.ts'
import { compileEncoder, encodingProblems, linesReason } from '../codecs/encoding/encoder.ts'
import { defineSink, type OptionProblem, type Sink, type SinkContext } from '../component.ts'
import { limitsOf, requestPace } from '../delivery/limits.ts'
import { PenstockError } from '../errors.ts'
import { LogEvent } from '../event/log.ts'
import { parsePath } from '../event/path.ts'
import { HttpClient, userAgent } from '../http/client.ts'
import { unhealthy } from '../http/sink.ts'
import { compileProxy } from '../net/proxy.ts'
import { compileTls } from '../net/tls.ts'
import { reasonText } from '../net/transport-errors.ts'
import { batch, encoding, type RequestOptions, requestWithoutHeaders, tls } from '../schema/groups.ts'
import {
  address,
  fieldPath,
  group,
  oneOf,
  optional,
  type Parsed,
  path,
  secret,
  template,
  text,
  uint,
  url,
} from '../schema/options.ts'
import { compileTemplate, type Template } from '../template.ts'
import {
  type BrokerCredentials,
  credentialsUrlProblem,
  fixedCredentials,
  Oauth2Credentials,
} from './message_broker/auth.ts'
import { Cluster } from './message_broker/cluster.ts'
import { type BrokerCodec, brokerCodec, brokerCompressions } from './message_broker/compression.ts'
import { failureOf } from './message_broker/failure.ts'
import { fullTopicName, parseServiceAddress, partitionTopic } from './message_broker/routing.ts'
import { BrokerSink } from './message_broker/sink.ts'

const authMessage = 'Invalid auth config: can only specify name and token or oauth2 configuration'

const brokerOptions = {
  endpoint: address(
    'Address of the brokers or of their proxy: `pulsar://host:port`, or `pulsar+ssl://host:port` for TLS.',
    { ports: { pulsar: 6650, 'pulsar+ssl': 6651 } },
    {
      aliases: ['address'],
      examples: ['pulsar://broker:6650', 'pulsar+ssl://a:6651,b:6651'],
    },
  ),
  topic: template('Topic of the event. A short name such as `logs` is `persistent://public/default/logs`.', {
    examples: ['persistent://shop/logs/{{ app }}'],
  }),
  partition_key_field: optional(
    fieldPath(
      'Field with the key of the message. Numbers and booleans become text; a list, an object or a missing field gives no key.',
    ),
  ),
  properties_key: optional(fieldPath('Field with an object whose members become properties of the message.')),
  producer_name: optional(text('Name of the producer. If not given, the broker chooses one.')),
  compression: oneOf(brokerCompressions, 'Compression of batches.', { default: 'none' }),
  encoding: encoding(),
  auth: group(
    {
      name: optional(
        text(
          '`token` if `token` is a JWT; otherwise a user name, whose password is `token`. With `basic`, `token` is `user:password`.',
          { examples: ['token', 'agent'] },
        ),
      ),
      token: optional(
        secret('The JWT, or the password of the user in `name`; with the name `basic`, `user:password`.'),
      ),
      oauth2: optional(
        group(
          {
            issuer_url: url('Address of the token issuer.', { examples: ['https://login.example'] }),
            credentials_url: path(
              'Credentials of the client: `file:///path.json` or `data:application/json;base64,…`, with `client_id` and `client_secret`.',
              { use: 'read', inline: 'data' },
              { secret: true },
            ),
            audience: optional(text('Audience of the token.')),
            scope: optional(text('Scope of the token.')),
          },
          'OAuth2 access tokens (client credentials).',
        ),
      ),
    },
    'Credentials for the broker: `name` and `token`, or `oauth2`.',
  ),
  connection_retry_options: group(
    {
      min_backoff_ms: uint('Milliseconds before the second attempt to connect; later waits double.', {
        default: 10,
        minimum: 1,
      }),
      max_backoff_secs: uint('Longest wait between two attempts to connect.', { default: 30, minimum: 1 }),
      max_retries: uint('Number of consecutive attempts to connect that count as one attempt of a request.', {
        zero: 'one attempt',
        default: 12,
      }),
      connection_timeout_secs: uint('Seconds for one attempt to connect.', { default: 10, minimum: 1 }),
      keep_alive_secs: uint('Seconds without traffic after which the sink pings the broker.', {
        default: 60,
        minimum: 1,
      }),
    },
    'How connections are made and kept.',
  ),
  batch: batch({ max_bytes: 131_072, timeout_secs: 0.01 }),
  request: requestWithoutHeaders({ concurrency: 100 }),
  tls: tls(),
}

export const messageBroker = defineSink({
  type: 'message_broker',
  products: ['Apache Pulsar'],
  summary: 'Publishes events to a topic of a publish/subscribe message broker.',
  description: [
    'Each event is one message. The hash of its key chooses the partition of an event; events without a key are spread evenly',
    'among the partitions. The sink keeps the order within a partition, even after a lost connection: it resends unconfirmed',
    'messages in the same order. `request.concurrency` limits the unconfirmed batches of a partition.',
    '',
    'The sink retries refused credentials. If a topic does not exist or denies writing, the sink',
    "discards its events. Only OAuth2 uses proxies, because the broker's protocol does not support them.",
  ].join('\n'),
  aliases: ['pulsar'],
  accepts: ['log', 'metric'],
  options: brokerOptions,

  check(options) {
    const problems: OptionProblem[] = [...encodingProblems(options.encoding)]
    const addresses = parseServiceAddress(options.endpoint)
    if (typeof addresses === 'string') {
      problems.push({ path: 'endpoint', message: addresses })
    } else if (options.tls.enabled === true && addresses[0]?.secure === false) {
      problems.push({
        path: 'endpoint',
        message: '`tls.enabled` is true, but the address does not use TLS',
        help: 'Use `pulsar+ssl://`.',
      })
    }
    const topic = compileTemplate(options.topic)
    if (topic.isStatic && fullTopicName(topic.render(new LogEvent({})) ?? '') === undefined) {
      problems.push({
        path: 'topic',
        message: 'must be a topic: `name`, `tenant/namespace/name` or `persistent://tenant/namespace/name`',
      })
    }
    const { name, token, oauth2 } = options.auth
    if ((name === undefined) !== (token === undefined) || (name !== undefined && oauth2 !== undefined)) {
      problems.push({ path: 'auth', message: authMessage })
    }
    if (oauth2 !== undefined) {
      const problem = credentialsUrlProblem(oauth2.credentials_url)
      if (problem !== undefined) problems.push({ path: 'auth.oauth2.credentials_url', message: problem })
    }
    return problems
  },

  objectsBecause: (options) => linesReason(options.encoding),

  build: (options, context) => buildBrokerSink(options, context, brokerCodec(options.compression)),
})

/** @param codec compresses the payloads of batches */
export function buildBrokerSink(options: Parsed<typeof brokerOptions>, context: SinkContext, codec: BrokerCodec): Sink {
  const { timestampKey, messageKey } = context.globals.logSchema
  const addresses = parseServiceAddress(options.endpoint)
  if (typeof addresses === 'string') throw new PenstockError('PEN_CONFIG_INVALID', `\`endpoint\` ${addresses}.`)
  const tlsSettings = compileTls({ ...options.tls, alpn_protocols: options.tls.alpn_protocols ?? [] })
  for (const warning of tlsSettings.warnings) context.logger.warn({}, warning)
  const proxy = compileProxy(context.proxy)
  // For OAuth2 and for a health check with its own address.
  const client = new HttpClient({
    tls: compileTls(options.tls),
    proxy,
    events: context.events,
  })
  const { name, token, oauth2 } = options.auth
  const credentials: BrokerCredentials =
    oauth2 === undefined ? fixedCredentials(name, token) : new Oauth2Credentials(oauth2, client)
  const retries = options.connection_retry_options
  const connect = () =>
    new Cluster(addresses, {
      tls: tlsSettings,
      egress: proxy.egress,
      credentials,
      clientVersion: userAgent.replace('/', '-').toLowerCase(),
      connectTimeoutMs: retries.connection_timeout_secs * 1000,
      answerTimeoutMs: options.request.timeout_secs * 1000,
      keepAliveMs: retries.keep_alive_secs * 1000,
    })
  const topic = compileTemplate(options.topic, timestampKey)
  const { healthcheck } = options as { healthcheck?: boolean | { uri?: string | undefined } }
  const uri = typeof healthcheck === 'object' ? healthcheck.uri : undefined
  const path = (text: string | undefined) => (text === undefined ? undefined : parsePath(text))
  const sink = new BrokerSink(context, {
    cluster: connect(),
    topic,
    key: path(options.partition_key_field),
    properties: path(options.properties_key),
    encoder: compileEncoder(options.encoding, messageKey),
    codec,
    limits: {
      maxBytes: options.batch.max_bytes ?? Number.POSITIVE_INFINITY,
      maxEvents: options.batch.max_events ?? Number.POSITIVE_INFINITY,
      timeoutMs: options.batch.timeout_secs * 1000,
    },
    producer: {
      ...requestSettings(options.request, context),
      connectionRetries: retries,
      compression: codec.number,
      producerName: options.producer_name,
      schema: options.encoding.codec === 'avro' ? options.encoding.avro?.schema : undefined,
    },
    // Uses separate connections, so that a finished check does not close the sink's connections.
    healthcheck: (signal) => (uri === undefined ? checkTopic(connect(), topic, signal) : checkUri(client, uri, signal)),
  })
  return {
    takesBytes: sink.takesBytes,
    write: (events) => sink.write(events),
    healthcheck: sink.healthcheck,
    async close() {
      await sink.close()
      await client.close()
    },
  }
}

function requestSettings(options: Omit<RequestOptions, 'headers' | 'auth_grace_secs'>, context: SinkContext) {
  return {
    concurrency: limitsOf(options, context),
    ...requestPace(options),
    timeoutMs: options.timeout_secs * 1000,
    events: context.events,
    abandoning: context.abandoning,
    clock: systemClock,
  }
}

/** Looks up the topic if it is the same for all events; closes the cluster. */
async function checkTopic(cluster: Cluster, topic: Template, signal: AbortSignal): Promise<void> {
  const abort = () => void cluster.close()
  signal.addEventListener('abort', abort, { once: true })
  try {
    const text = topic.render(new LogEvent({}))
    const full = text === undefined ? undefined : fullTopicName(text)
    if (full === undefined) {
      await cluster.connect()
    } else {
      const partitions = await cluster.partitions(full)
      await cluster.brokerOf(partitions > 0 ? partitionTopic(full, 0) : full)
    }
  } catch (error) {
    throw new PenstockError('PEN_HEALTHCHECK', failureOf(error).message, { cause: error })
  } finally {
    signal.removeEventListener('abort', abort)
    await cluster.close()
  }
}

async function checkUri(client: HttpClient, uri: string, signal: AbortSignal): Promise<void> {
  let status: number
  try {
    ;({ status } = await client.send({ method: 'GET', url: new URL(uri), headers: {} }, signal))
  } catch (error) {
    throw new PenstockError('PEN_HEALTHCHECK', `${uri} cannot be reached: ${reasonText(error)}.`, { cause: error })
  }
  if (status < 200 || status >= 300) throw unhealthy(uri, status)
}
