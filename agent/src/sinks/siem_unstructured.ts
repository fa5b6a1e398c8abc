// Unstructured logs of a security service: the text of each event with its time, one request for each log type.

import { compileEncoder, encodingProblems } from '../codecs/encoding/encoder.ts'
import { defineSink, type OptionProblem, type Sink, type SinkContext } from '../component.ts'
import type { AnyEvent } from '../delivery/batcher.ts'
import { compressionProblems } from '../delivery/compression.ts'
import type { Attempt } from '../delivery/delivery.ts'
import { encoderFailed, templateFailed } from '../delivery/failed-events.ts'
import { type Assemble, framed } from '../delivery/request.ts'
import { errorText, PenstockError } from '../errors.ts'
import { Body } from '../event/body.ts'
import { joinedKey, splitKey } from '../event/joined-key.ts'
import { LogEvent } from '../event/log.ts'
import { Timestamp } from '../event/timestamp.ts'
import { AccessTokens, readServiceAccount } from '../google/access-token.ts'
import { classifyResponse, responseFailure, retryAfterMs } from '../http/classify.ts'
import { HttpClient, type HttpResponse } from '../http/client.ts'
import { identityFor, noIdentity } from '../http/identity.ts'
import { type HttpSinkSpec, httpSink, joinPath, type Sign, unhealthy } from '../http/sink.ts'
import { compileProxy } from '../net/proxy.ts'
import { compileTls } from '../net/tls.ts'
import { batch, compression, encoding, request, type TlsOptions, textCodecs, tls } from '../schema/groups.ts'
import { address, map, oneOf, optional, path, secret, template, text, webPorts } from '../schema/options.ts'
import { compileTemplate, type Template } from '../template.ts'
import { timeField } from '../time-field.ts'

const scope = 'https://www.googleapis.com/auth/malachite-ingestion'
const domain = 'malachiteingestion-pa.googleapis.com'

/** Host prefix of each region. */
const regions = {
  us: '',
  eu: 'europe-',
  asia: 'asia-southeast1-',
  sao_paulo: 'southamerica-east1-',
  canada: 'northamerica-northeast2-',
  dammam: 'me-central2-',
  doha: 'me-central1-',
  frankfurt: 'europe-west3-',
  london: 'europe-west2-',
  mumbai: 'asia-south1-',
  paris: 'europe-west9-',
  singapore: 'asia-southeast1-',
  sydney: 'australia-southeast1-',
  tel_aviv: 'me-west1-',
  tokyo: 'asia-northeast1-',
  turin: 'europe-west12-',
  zurich: 'europe-west6-',
} as const

const regionNames = Object.keys(regions) as (keyof typeof regions)[]

/** Largest body that the destination accepts. */
const maxBodyBytes = 1_000_000

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i

export const siemUnstructured = defineSink({
  type: 'siem_unstructured',
  products: ['Google Chronicle'],
  summary: 'Delivers log events as unstructured logs to a security information service.',
  description: [
    'The sink looks for credentials in this order: `credentials_path`, `api_key`, the file in the environment variable',
    '`CLOUD_APPLICATION_CREDENTIALS` or `GOOGLE_APPLICATION_CREDENTIALS`, and the service account of the compute instance',
    'that the agent runs on.',
  ].join('\n'),
  aliases: ['gcp_chronicle_unstructured'],
  accepts: ['log'],
  options: {
    customer_id: text("UUID of the destination's instance.", {
      examples: ['c8c65bfa-5f2c-42d4-9189-64bb7b939f2c'],
    }),
    log_type: template('Type of the entries. The destination rejects unknown types.', {
      examples: ['LINUX_SYSLOG', '{{ log_type }}'],
    }),
    fallback_log_type: optional(text('Type of entries for which `log_type` cannot be rendered.')),
    region: optional(oneOf(regionNames, 'Region of the destination.', { extensions: regionNames.slice(3) })),
    endpoint: optional(
      address(
        'Address of the destination in place of `region`: `host:port`, reached by HTTPS, or a URL.',
        { ports: webPorts, bare: 'https' },
        {
          examples: ['127.0.0.1:8080'],
        },
      ),
    ),
    api_key: optional(secret('API key.', { means: { explicit: 'key' } })),
    credentials_path: optional(
      path(
        "Path of a service account's credentials file, or its JSON text. It takes precedence over `api_key`.",
        { use: 'read', inline: 'json' },
        { means: { explicit: 'account' } },
      ),
    ),
    namespace: optional(template('Namespace of the entries.')),
    labels: map(text('Value of the label.'), 'Labels of the entries.', { default: {} }),
    compression: compression(['none', 'gzip'], 'none'),
    encoding: encoding(textCodecs),
    batch: batch({ max_bytes: 1_000_000, timeout_secs: 15 }),
    request: request(),
    tls: tls(),
  },

  check(options) {
    const problems: OptionProblem[] = [
      ...encodingProblems(options.encoding),
      ...compressionProblems(options.compression),
    ]
    if (!uuid.test(options.customer_id)) {
      problems.push({ path: 'customer_id', message: 'must be a UUID' })
    }
    if (options.region !== undefined && options.endpoint !== undefined) {
      problems.push({ path: 'endpoint', message: 'You can only specify one of region or endpoint' })
    }
    if (options.region === undefined && options.endpoint === undefined) {
      problems.push({ path: 'region', message: 'Region or endpoint not defined' })
    }
    return problems
  },

  async build(options, context) {
    const base =
      options.endpoint === undefined
        ? `https://${regions[options.region ?? 'us']}${domain}`
        : options.endpoint.includes('://')
          ? options.endpoint
          : `https://${options.endpoint}`
    const credentials = await findCredentials(options, context)
    const key = credentials.apiKey
    const address = (path: string): string => {
      const url = new URL(joinPath(base, path))
      if (key !== undefined) url.searchParams.set('key', key)
      return url.href
    }
    const groups = new EntryGroups(context, options)
    const assemble: Assemble = (from, positions, into) =>
      framed(groups.prefix(into.key), ',', ']}')(from, positions, into)
    const sink = httpSink(context, options, {
      url: address('/v2/unstructuredlogentries:batchCreate'),
      headers: { 'content-type': 'application/json' },
      partition: groups.isStatic ? undefined : (event) => groups.keyOf(event),
      begin: (open) => open.body.writeText(groups.prefix(open.key)),
      encode: entryWriter(context, options.encoding),
      finish(open) {
        open.body.writeText(']}')
        return open
      },
      assemble,
      maxBodyBytes,
      ...(key === undefined ? {} : { secret: key }),
      classify: credentials.classify,
      sign: credentials.sign,
      healthcheck: (get) => checkTypes(get, address('/v2/logtypes')),
    })
    return withClient(sink, credentials.client)
  },
})

interface GroupOptions {
  readonly customer_id: string
  readonly log_type: string
  readonly fallback_log_type?: string | undefined
  readonly namespace?: string | undefined
  readonly labels: Readonly<Record<string, string>>
}

/** Groups the entries of requests: each request has one type and one namespace, which precede the entries. */
class EntryGroups {
  /** Whether all events belong to one group. */
  readonly isStatic: boolean
  readonly #context: SinkContext
  readonly #options: GroupOptions
  readonly #logType: Template
  readonly #namespace: Template | undefined
  readonly #labels: readonly { readonly key: string; readonly value: string }[]
  /** The key if there is only one group. */
  readonly #fixed: string

  constructor(context: SinkContext, options: GroupOptions) {
    const { timestampKey } = context.globals.logSchema
    this.#context = context
    this.#options = options
    this.#logType = compileTemplate(options.log_type, timestampKey)
    this.#namespace = options.namespace === undefined ? undefined : compileTemplate(options.namespace, timestampKey)
    this.#labels = Object.entries(options.labels).map(([name, value]) => ({ key: name, value }))
    this.isStatic = this.#logType.isStatic && (this.#namespace?.isStatic ?? true)
    this.#fixed = this.isStatic ? (this.keyOf(new LogEvent({})) ?? '') : ''
  }

  /** Undefined if the event is discarded. */
  keyOf(event: AnyEvent): string | undefined {
    const rendered = this.#logType.render(event)
    const type = rendered ?? this.#options.fallback_log_type
    if (rendered === undefined) templateFailed(this.#context, 'log_type', this.#logType, event, type === undefined)
    if (type === undefined) return undefined
    if (this.#namespace === undefined) return joinedKey([type])
    const space = this.#namespace.render(event)
    if (space !== undefined) return joinedKey([type, space])
    templateFailed(this.#context, 'namespace', this.#namespace, event, true)
    return undefined
  }

  /** Text before the entries of a group. */
  prefix(key: string): string {
    const [type, space] = splitKey(key === '' ? this.#fixed : key)
    const members = {
      customer_id: this.#options.customer_id,
      ...(space === undefined ? {} : { namespace: space }),
      ...(this.#labels.length === 0 ? {} : { labels: this.#labels }),
      log_type: type,
    }
    return `${JSON.stringify(members).slice(0, -1)},"entries":[`
  }
}

function entryWriter(context: SinkContext, encoding: Parameters<typeof compileEncoder>[0]): HttpSinkSpec['encode'] {
  const { timestampKey, messageKey } = context.globals.logSchema
  const encoder = compileEncoder(encoding, messageKey)
  const time = timeField([timestampKey], 'log_schema.timestamp_key', context)
  const scratch = new Body(1024)
  return (events, from, to, open) => {
    const { body } = open
    for (let index = from; index < to; index++) {
      const event = events[index] as LogEvent
      scratch.truncate(0)
      const problem = encoder.encode(event, scratch)
      if (problem !== undefined) {
        encoderFailed(context, problem)
        continue
      }
      const instant = time.of(event.fields) ?? Timestamp.now()
      if (open.count > 0) body.writeByte(0x2c)
      const start = body.length
      const text = JSON.stringify(scratch.view().toString('utf8'))
      body.writeText(`{"log_text":${text},"ts_rfc3339":"${instant}"}`)
      open.mark(start)
    }
    time.report()
  }
}

async function checkTypes(
  get: (address: string) => Promise<{ readonly status: number }>,
  address: string,
): Promise<void> {
  const { status } = await get(address)
  if (status >= 200 && status < 300) return
  if (status === 403) throw new PenstockError('PEN_HEALTHCHECK', 'Healthcheck endpoint forbidden', { status })
  if (status === 404) throw new PenstockError('PEN_HEALTHCHECK', 'Endpoint not found', { status })
  throw unhealthy(address, status)
}

interface Credentials {
  readonly apiKey?: string
  readonly client?: HttpClient
  readonly sign?: Sign
  readonly classify: (response: HttpResponse) => Attempt
}

async function findCredentials(
  options: {
    readonly credentials_path?: string | undefined
    readonly api_key?: string | undefined
    readonly tls: TlsOptions
  },
  context: SinkContext,
): Promise<Credentials> {
  if (options.credentials_path === undefined && options.api_key !== undefined) {
    return { apiKey: options.api_key, classify: classifyResponse }
  }
  const identity = identityFor(context.proxy)
  const env = identity?.env
  const file =
    options.credentials_path ?? env?.['CLOUD_APPLICATION_CREDENTIALS'] ?? env?.['GOOGLE_APPLICATION_CREDENTIALS']
  if (file !== undefined) {
    const account = await readServiceAccount(file)
    const client = new HttpClient({ tls: compileTls(options.tls), proxy: compileProxy(context.proxy) })
    return { client, ...byToken(AccessTokens.ofServiceAccount(account, scope, client)) }
  }
  if (identity === undefined) {
    const message = `This requires one of api_key or credentials_path to be defined, from a Secret. ${noIdentity}`
    throw new PenstockError('PEN_AUTH', message, { fact: message })
  }
  // The metadata server is on the instance's local link, so no proxy is used.
  const client = new HttpClient({ tls: compileTls(options.tls), proxy: () => undefined })
  return { client, ...byToken(AccessTokens.ofInstance(identity, client), true) }
}

function byToken(tokens: AccessTokens, isGuess = false): Pick<Credentials, 'sign' | 'classify'> {
  let used = ''
  return {
    async sign(unsigned, signal) {
      try {
        used = await tokens.get(signal)
      } catch (error) {
        if (!isGuess) throw error
        throw new PenstockError(
          'PEN_AUTH',
          `This requires one of api_key or credentials_path to be defined. ${errorText(error)}`,
          { cause: error },
        )
      }
      return { ...unsigned.headers, authorization: `Bearer ${used}` }
    },
    classify(response) {
      if (response.status !== 401) return classifyResponse(response)
      // A token may become invalid early; the next attempt gets a new one.
      tokens.refuse(used)
      return { outcome: 'retry', failure: responseFailure(401), retryAfterMs: retryAfterMs(response) }
    },
  }
}

/** Closes the credentials' client together with the sink. */
function withClient(sink: Sink, client: HttpClient | undefined): Sink {
  if (client === undefined) return sink
  return {
    write: (events) => sink.write(events),
    async close() {
      await sink.close()
      await client.close()
    },
    ...(sink.healthcheck === undefined ? {} : { healthcheck: sink.healthcheck }),
  }
}
