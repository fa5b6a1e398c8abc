// Search engine sink: writes events as documents with bulk requests, into indices or data streams. After a partial failure,
// it retries only the documents that may succeed later; it counts documents that the destination refuses.

import { credentialProblems } from '../aws/credentials.ts'
import { endpointOverride } from '../aws/profiles.ts'
import { signedClient } from '../aws/signed-client.ts'
import { timeoutSignal } from '../clock.ts'
import { compileEncoder, linesReason } from '../codecs/encoding/encoder.ts'
import { defineSink, type OptionProblem, type Sink, type SinkContext } from '../component.ts'
import { compileCompression, compressionProblems } from '../delivery/compression.ts'
import { framed } from '../delivery/request.ts'
import { errorText, PenstockError } from '../errors.ts'
import { parsePath } from '../event/path.ts'
import { zoneProblems } from '../formats/timezone.ts'
import { authProblems } from '../http/auth.ts'
import { classifyBulk } from '../http/bulk.ts'
import type { HttpClient } from '../http/client.ts'
import { identityFor, noIdentity } from '../http/identity.ts'
import { httpSink, joinPath, maxListBytes, unhealthy } from '../http/sink.ts'
import { batch, compression, compressionNames, httpOrAwsAuth, request, tls, transformer } from '../schema/groups.ts'
import {
  address,
  bool,
  fieldPath,
  group,
  hostPart,
  list,
  map,
  oneOf,
  optional,
  seconds,
  template,
  text,
  url,
} from '../schema/options.ts'
import { compileTemplate } from '../template.ts'
import { metricLogForm, metricLogOptions } from '../transforms/metric-log.ts'
import { ActionLines } from './search_engine/action-lines.ts'
import { DataStreams, Indices } from './search_engine/destinations.ts'
import { DocumentWriter } from './search_engine/documents.ts'
import { majorVersion } from './search_engine/version.ts'

export const searchEngine = defineSink({
  type: 'search_engine',
  products: ['Elasticsearch', 'OpenSearch'],
  summary: 'Delivers log and metric events to a document search engine.',
  aliases: ['elasticsearch'],
  accepts: ['log', 'metric'],
  options: {
    endpoints: list(url('An address.'), 'Addresses of the destination.', {
      default: [],
      examples: [['http://search:9200']],
    }),
    endpoint: optional(url('The address.', { deprecated: 'Use `endpoints`.' })),
    api_version: oneOf(
      ['auto', 'v6', 'v7', 'v8'],
      'Version of the destination; `auto` detects it. If the destination does not answer, the sink assumes v8, or v6 with `suppress_type_name`.',
      { default: 'auto' },
    ),
    mode: oneOf(
      ['bulk', 'data_stream', 'normal'],
      'Whether events are written to indices or data streams; `normal` is an older name of `bulk`.',
      { default: 'bulk', extensions: ['normal'] },
    ),
    bulk: group(
      {
        action: template('Action of each event, `index` or `create`.', { default: 'index' }),
        index: template('Index of each event.', { default: 'penstock-%Y.%m.%d' }),
        template_fallback_index: optional(text('Index for events for which `index` cannot be rendered.')),
        pipeline: optional(
          template('Ingest pipeline of each event, in place of `pipeline`. If empty, the event has none of its own.'),
        ),
        version: optional(template('Version of each document; needs `id_key` and an external `version_type`.')),
        version_type: oneOf(['internal', 'external', 'external_gte'], 'Version type of documents.', {
          default: 'internal',
        }),
      },
      'Options of mode `bulk`.',
    ),
    data_stream: group(
      {
        type: template('First part of the name of the data stream.', { default: 'logs' }),
        dataset: template('Second part of the name.', { default: 'generic' }),
        namespace: template('Third part of the name.', { default: 'default' }),
        auto_routing: bool('Whether the event fields `data_stream.*` override these options.', {
          default: true,
        }),
        sync_fields: bool('Whether to add the fields `data_stream.*` to events that lack them.', { default: true }),
      },
      'Options of mode `data_stream`.',
    ),
    doc_type: text('Type of documents, up to version 6.', { default: '_doc' }),
    suppress_type_name: bool('Whether to omit the type of documents.', {
      default: false,
      deprecated: 'Use `api_version`.',
    }),
    id_key: optional(
      fieldPath(
        'Field for the id of the document; numbers and booleans become text. The sink removes the field from the document.',
      ),
    ),
    pipeline: optional(text('Ingest pipeline of the destination.')),
    query: map(text('Value of the parameter.'), 'Further query parameters of requests.', { default: {} }),
    request_retry_partial: bool(
      'Whether to retry documents that fail for a temporary reason. Set `id_key` if a retry must not duplicate documents.',
      { default: true },
    ),
    metrics: group(metricLogOptions, 'How metric events become documents.'),
    distribution: group(
      {
        retry_initial_backoff_secs: seconds('Seconds before the first retry of a failed endpoint.', {
          default: 1,
          minimum: 1,
        }),
        retry_max_duration_secs: seconds('Longest time in seconds before a failed endpoint is retried.', {
          default: 3600,
          minimum: 1,
        }),
      },
      'How the sink avoids failed endpoints, if there are several.',
    ),
    compression: compression(compressionNames, 'none'),
    encoding: transformer(undefined, []),
    auth: httpOrAwsAuth(['basic']),
    aws: optional(
      group(
        {
          region: optional(address('Region of the destination.', hostPart)),
          endpoint: optional(url('Address of the destination in place of `endpoints`.')),
        },
        'AWS settings of the destination.',
      ),
    ),
    opensearch_service_type: oneOf(['managed', 'serverless'], 'Type of service with `auth.strategy: aws`.', {
      default: 'managed',
    }),
    batch: batch({ max_bytes: 10_000_000, timeout_secs: 1 }),
    request: request(),
    tls: tls(),
  },

  check(options) {
    const problems: OptionProblem[] = [...compressionProblems(options.compression)]
    if (options.endpoint !== undefined && options.endpoints.length > 0) {
      problems.push({
        path: 'endpoint',
        message: '`endpoint` and `endpoints` options are mutually exclusive. Please use `endpoints` option.',
      })
    }
    const overridden = options.auth?.strategy === 'aws' ? endpointOverride(process.env, 'ES') : undefined
    const address = options.aws?.endpoint ?? overridden
    if (options.endpoint === undefined && options.endpoints.length === 0 && address === undefined) {
      problems.push({ path: 'endpoints', message: 'Endpoints option must be specified' })
    }
    if (options.aws?.endpoint !== undefined && (options.endpoint !== undefined || options.endpoints.length > 0)) {
      problems.push({
        path: 'aws.endpoint',
        message: '`aws.endpoint` and `endpoints` are mutually exclusive: both are addresses of the destination.',
        help: 'Omit one of them.',
      })
    }
    problems.push(...zoneProblems('metrics.timezone', options.metrics.timezone))
    for (const address of options.endpoints) problems.push(...authProblems('auth', address, options.auth))
    problems.push(...authProblems('auth', options.endpoint, options.auth))
    if (options.auth?.strategy === 'aws') {
      problems.push(...credentialProblems(options.auth))
      if (options.opensearch_service_type === 'serverless' && options.api_version === 'auto') {
        problems.push({ path: 'api_version', message: 'must not be `auto` with `opensearch_service_type: serverless`' })
      }
    } else if (options.opensearch_service_type === 'serverless') {
      problems.push({ path: 'opensearch_service_type', message: '`serverless` needs `auth.strategy: aws`' })
    }
    const { action, version, version_type } = options.bulk
    if (!action.includes('{{') && action !== 'index' && action !== 'create') {
      problems.push({
        path: 'bulk.action',
        message: `must be \`index\` or \`create\`, found ${JSON.stringify(action)}`,
      })
    }
    if (version !== undefined && (version_type === 'internal' || options.id_key === undefined)) {
      problems.push({ path: 'bulk.version', message: 'needs `id_key` and a `version_type` other than `internal`' })
    }
    return problems
  },

  objectsBecause(options) {
    if (options.mode === 'data_stream') return 'data streams add fields to events'
    if (options.id_key !== undefined && options.id_key !== '') return '`id_key` removes a field of the event'
    return linesReason(options.encoding)
  },

  async build(options, context) {
    const { timestampKey } = context.globals.logSchema
    const bases = basesOf(options, context)
    const lines = new ActionLines(options.bulk.version_type)
    const documents = new DocumentWriter(
      context,
      {
        destinations:
          options.mode === 'data_stream'
            ? new DataStreams(options.data_stream, context)
            : new Indices(options.bulk, context),
        lines,
        encoder: compileEncoder(options.encoding),
        id: options.id_key === undefined || options.id_key === '' ? undefined : parsePath(options.id_key),
        version: options.bulk.version === undefined ? undefined : compileTemplate(options.bulk.version, timestampKey),
        metrics: metricLogForm(options.metrics, context.globals),
        maxWritten: Math.max(4 << 20, 4 * (options.batch.max_bytes ?? 0)),
      },
      options.id_key,
    )
    const contentEncoding = compileCompression(options.compression).contentEncoding
    const acceptsEncoding = contentEncoding !== undefined && contentEncoding !== 'snappy'
    const isServerless = options.opensearch_service_type === 'serverless'
    const service = isServerless ? 'aoss' : 'es'
    const ownClient =
      options.auth?.strategy === 'aws'
        ? await signedClient(service, options.auth, options.aws?.region, options.tls, context.proxy)
        : undefined
    const classify = classifyBulk(options.request_retry_partial)
    const sink = httpSink(context, options, {
      url: bases.map((base) => bulkAddress(base, options)),
      headers: {
        'content-type': 'application/x-ndjson',
        ...(acceptsEncoding ? { 'accept-encoding': contentEncoding } : {}),
      },
      encode: (events, from, to, open) => documents.write(events, from, to, open),
      encodeLines: (batch, from, to, open) => documents.writeLines(batch, from, to, open),
      takesBytes: documents.takesBytes && options.mode !== 'data_stream',
      assemble: framed('', '', ''),
      classify:
        ownClient === undefined ? classify : (answer, sent) => ownClient.reclassify(answer, classify(answer, sent)),
      keepOfAnswer: maxListBytes,
      sign: ownClient?.sign,
      distribution: options.distribution,
      ...(isServerless ? {} : { healthcheck: (get) => checkHealth(get, bases) }),
    })
    const useVersion = (major: number) => {
      lines.documentType = major < 7 && !options.suppress_type_name ? options.doc_type : undefined
    }
    if (options.api_version !== 'auto') {
      useVersion(Number(options.api_version.slice(1)))
      return withDetection(sink, undefined, ownClient?.client)
    }
    const detected = detectVersion(sink, bases, options, context).then(useVersion)
    return withDetection(sink, detected, ownClient?.client)
  },
})

interface AddressOptions {
  readonly endpoints: readonly string[]
  readonly endpoint?: string | undefined
  readonly aws?: { readonly endpoint?: string | undefined } | undefined
  readonly auth?: { readonly strategy: string } | undefined
}

function basesOf(options: AddressOptions, context: SinkContext): readonly string[] {
  const given = options.endpoint === undefined ? options.endpoints : [options.endpoint]
  const isAws = options.auth?.strategy === 'aws'
  const address = options.aws?.endpoint ?? (isAws ? endpointOverride(identityFor(context.proxy)?.env, 'ES') : undefined)
  const bases = given.length === 0 && address !== undefined ? [address] : given
  if (bases.length > 0) return bases
  // The option check has already accepted the agent's environment.
  const message = `Set \`endpoints\`. ${noIdentity}`
  throw new PenstockError('PEN_CONFIG_INVALID', message, { fact: message })
}

interface RequestOptions {
  readonly query: Readonly<Record<string, string>>
  readonly pipeline?: string | undefined
  readonly request: { readonly timeout_secs: number }
}

function bulkAddress(base: string, { query, pipeline, request: { timeout_secs } }: RequestOptions): string {
  const parameters = new URLSearchParams({
    ...query,
    timeout: `${timeout_secs}s`,
    ...(pipeline === undefined || pipeline === '' ? {} : { pipeline }),
  }).toString()
  const bulk = joinPath(base, '/_bulk')
  return `${bulk}${bulk.includes('?') ? '&' : '?'}${parameters}`
}

/** Succeeds if one of the addresses is healthy. */
async function checkHealth(
  get: (address: string) => Promise<{ readonly status: number }>,
  bases: readonly string[],
): Promise<void> {
  let problem: unknown
  for (const base of bases) {
    const address = joinPath(base, '/_cluster/health')
    try {
      const { status } = await get(address)
      if (status === 200) return
      problem = unhealthy(address, status)
    } catch (error) {
      problem = error
    }
  }
  throw problem
}

interface VersionOptions {
  readonly suppress_type_name: boolean
  readonly request: { readonly timeout_secs: number }
}

/** Requests the version of the destination; assumes one if it is unknown. */
async function detectVersion(
  sink: ReturnType<typeof httpSink>,
  bases: readonly string[],
  options: VersionOptions,
  context: SinkContext,
): Promise<number> {
  const limit = AbortSignal.any([context.abandoning, timeoutSignal(Math.min(options.request.timeout_secs, 10) * 1000)])
  let problem = 'Unexpected response from the endpoint `/`. Consider setting `api_version` option.'
  for (const base of bases) {
    try {
      const major = majorVersion(await sink.get(joinPath(base, '/'), limit))
      if (major !== undefined) return major
    } catch (error) {
      problem = errorText(error)
    }
  }
  const assumed = options.suppress_type_name ? 6 : 8
  context.logger.warn(
    { problem, assumed: `v${assumed}` },
    'Could not determine the version of the destination; assuming one.',
  )
  return assumed
}

/** Delays writes until the version is known, because their format depends on it. */
function withDetection(sink: Sink, detected: Promise<void> | undefined, client: HttpClient | undefined): Sink {
  let known = detected === undefined
  const waiting = detected?.then(() => {
    known = true
  })
  return {
    ...(sink.takesBytes === undefined ? {} : { takesBytes: sink.takesBytes }),
    write: (events) => (known ? sink.write(events) : waiting?.then(() => sink.write(events))),
    async close() {
      await waiting
      await sink.close()
      await client?.close()
    },
    ...(sink.healthcheck === undefined ? {} : { healthcheck: sink.healthcheck }),
  }
}
