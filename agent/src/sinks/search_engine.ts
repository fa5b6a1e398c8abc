// Search engine sink: writes events as documents by bulk requests, into indices or data streams.
// A request that fails in part is sent again only for the documents that may succeed later; what the destination refuses is
// counted, document by document.

import { credentialProblems } from '../aws/credentials.ts'
import { endpointOverride } from '../aws/profiles.ts'
import { signedClient } from '../aws/signed-client.ts'
import { BoundedMap, ownText } from '../bounded-map.ts'
import { timeoutSignal } from '../clock.ts'
import { compileEncoder } from '../codecs/encoding/encoder.ts'
import { scalarText, valueText } from '../codecs/value-text.ts'
import { defineSink, type OptionProblem, type Sink } from '../component.ts'
import type { AnyEvent } from '../delivery/batcher.ts'
import { framed } from '../delivery/request.ts'
import { errorText, PenstockError } from '../errors.ts'
import { LogEvent } from '../event/log.ts'
import { getPath, parsePath, removePath } from '../event/path.ts'
import { Timestamp } from '../event/timestamp.ts'
import { getField, isObject, setField, type Value, type ValueObject } from '../event/value.ts'
import { findZone, zoneOrUtc } from '../formats/timezone.ts'
import { authProblems } from '../http/auth.ts'
import { type ActionParts, actionLine, type BulkAction, classifyBulk } from '../http/bulk.ts'
import type { HttpClient } from '../http/client.ts'
import { compileCompression, compressionProblems } from '../http/compression.ts'
import { identityFor, noIdentity } from '../http/identity.ts'
import { encoderFailed, httpSink, joinPath, maxListBytes, templateFailed, unhealthy } from '../http/sink.ts'
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
import { fact } from '../telemetry/facts.ts'
import { warnedOnce } from '../telemetry/warned-once.ts'
import { compileTemplate } from '../template.ts'
import { unreadableEventTimes } from '../time-field.ts'
import { metricLog } from '../transforms/metric-log.ts'
import { majorVersion } from './search_engine/version.ts'

/** Action lines that are kept: one for each index of the present. */
const keptLines = { maxEntries: 1000, maxBytes: 2 << 20, sizeOf: (line: string) => 2 * line.length }

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
      'Version of the destination; `auto` asks it. If it does not answer, v8 is assumed, or v6 with `suppress_type_name`.',
      { default: 'auto' },
    ),
    mode: oneOf(
      ['bulk', 'data_stream', 'normal'],
      'Whether events go into indices or data streams; `normal` is an older name of `bulk`.',
      { default: 'bulk', extensions: ['normal'] },
    ),
    bulk: group(
      {
        action: template('Action of each event, `index` or `create`.', { default: 'index' }),
        index: template('Index of each event.', { default: 'penstock-%Y.%m.%d' }),
        template_fallback_index: optional(text('Index of events for which `index` cannot be rendered.')),
        version: optional(template('Version of each document; needs `id_key` and an external `version_type`.')),
        version_type: oneOf(['internal', 'external', 'external_gte'], 'How versions of documents are kept.', {
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
        auto_routing: bool('Whether the fields `data_stream.*` of an event come before these options.', {
          default: true,
        }),
        sync_fields: bool('Whether the fields `data_stream.*` are added to events that lack them.', { default: true }),
      },
      'Options of mode `data_stream`.',
    ),
    doc_type: text('Type of documents, up to version 6.', { default: '_doc' }),
    suppress_type_name: bool('Whether documents carry no type.', {
      default: false,
      deprecated: 'Use `api_version`.',
    }),
    id_key: optional(
      fieldPath(
        'Field whose value becomes the id of the document, numbers and booleans as text; it is removed from the document.',
      ),
    ),
    pipeline: optional(text('Ingest pipeline of the destination.')),
    query: map(text('Value of the parameter.'), 'Further query parameters of requests.', { default: {} }),
    request_retry_partial: bool(
      'Whether documents that fail for a reason that may pass are sent again. Set `id_key` if repeats must not double documents.',
      { default: true },
    ),
    metrics: group(
      {
        host_tag: optional(
          text('Tag of metric events that becomes the field of the host. Left out, all tags stay below `tags`.'),
        ),
        timezone: optional(
          text(
            'Time zone of times without one: a metric event that carries no time of its own takes it from its tag of that name (`log_schema.timestamp_key`). Left out, the global `timezone`.',
          ),
        ),
        metric_tag_values: oneOf(['single', 'full'], 'Whether tags are their last value or arrays of all.', {
          default: 'single',
        }),
      },
      'How metric events become documents.',
    ),
    distribution: group(
      {
        retry_initial_backoff_secs: seconds('Seconds until an endpoint that failed is tried again.', {
          default: 1,
          minimum: 1,
        }),
        retry_max_duration_secs: seconds('Longest time that an endpoint is left alone.', { default: 3600, minimum: 1 }),
      },
      'How endpoints that fail are left alone, if there are several.',
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
        'The destination as a service of AWS.',
      ),
    ),
    opensearch_service_type: oneOf(['managed', 'serverless'], 'Sort of service with `auth.strategy: aws`.', {
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
        help: 'Leave one of them out.',
      })
    }
    const { timezone } = options.metrics
    if (timezone !== undefined && timezone !== 'local' && findZone(timezone) === undefined) {
      problems.push({
        path: 'metrics.timezone',
        message: `\`${timezone}\` is not a time zone.`,
        help: 'Use a name of the TZ database such as `Europe/Berlin`, or `local`.',
      })
    }
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

  async build(options, context) {
    const { timestampKey, hostKey } = context.globals.logSchema
    const given = options.endpoint === undefined ? options.endpoints : [options.endpoint]
    const isAws = options.auth?.strategy === 'aws'
    const address =
      options.aws?.endpoint ?? (isAws ? endpointOverride(identityFor(context.proxy)?.env, 'ES') : undefined)
    const bases = given.length === 0 && address !== undefined ? [address] : given
    // The check has let the agent's environment count.
    if (bases.length === 0) {
      const message = `Set \`endpoints\`. ${noIdentity}`
      throw new PenstockError('PEN_CONFIG_INVALID', message, { fact: message })
    }
    const isStream = options.mode === 'data_stream'
    const encoder = compileEncoder(options.encoding)
    const idPath = options.id_key === undefined || options.id_key === '' ? undefined : parsePath(options.id_key)
    const pipeline = options.pipeline === '' ? undefined : options.pipeline

    const action = compileTemplate(options.bulk.action, timestampKey)
    const zone = zoneOrUtc(context.globals.timezone)
    const index = compileTemplate(options.bulk.index, timestampKey, zone)
    const version = options.bulk.version === undefined ? undefined : compileTemplate(options.bulk.version, timestampKey)
    const stream = {
      type: compileTemplate(options.data_stream.type, timestampKey, zone),
      dataset: compileTemplate(options.data_stream.dataset, timestampKey, zone),
      namespace: compileTemplate(options.data_stream.namespace, timestampKey, zone),
    }
    const dated = isStream ? Object.values(stream) : [index]
    const reportUnreadableTimes = unreadableEventTimes(context)
    const { auto_routing, sync_fields } = options.data_stream
    const metrics = {
      hostTag: options.metrics.host_tag,
      zone: zoneOrUtc(options.metrics.timezone ?? context.globals.timezone),
      hostKey,
      timestampKey,
      tagValues: options.metrics.metric_tag_values,
    }

    /** Version 6 documents have a type; set once the version is known. */
    let documentType: string | undefined
    const useVersion = (major: number) => {
      documentType = major < 7 && !options.suppress_type_name ? options.doc_type : undefined
    }

    const maxWritten = Math.max(4 << 20, 4 * (options.batch.max_bytes ?? 0))
    // The line before a document is the same for all documents of an index that have no id.
    const lines = new BoundedMap<string>(keptLines)
    let lastIndex = ''
    let lastAction: BulkAction = 'index'
    let lastLine = ''
    const lineFor = (bulkAction: BulkAction, name: string): string => {
      if (name === lastIndex && bulkAction === lastAction && lastLine !== '') return lastLine
      const key = `${bulkAction} ${name}`
      let line = lines.get(key)
      if (line === undefined) {
        line = ownText(actionLine(partsOf(bulkAction, name, undefined, undefined)))
        lines.set(key, line)
      }
      lastIndex = name
      lastAction = bulkAction
      lastLine = line
      return line
    }
    const partsOf = (
      bulkAction: BulkAction,
      name: string,
      id: string | undefined,
      documentVersion: string | undefined,
    ): ActionParts => ({
      action: bulkAction,
      index: name,
      type: documentType,
      id,
      version: documentVersion,
      versionType: options.bulk.version_type,
    })

    /** The index of an event in mode `bulk`; undefined if it has been discarded. */
    const indexOf = (event: LogEvent): string | undefined => {
      const name = index.render(event)
      if (name !== undefined) return name
      const fallback = options.bulk.template_fallback_index
      templateFailed(context, 'bulk.index', index, event, fallback === undefined)
      return fallback
    }

    const actionOf = (event: LogEvent): BulkAction | undefined => {
      if (isStream) return 'create'
      const name = action.render(event)
      if (name === 'index' || name === 'create') return name
      if (name === undefined) {
        templateFailed(context, 'bulk.action', action, event, true)
        return undefined
      }
      context.events.error({
        type: 'template_failed',
        stage: 'processing',
        message: 'The action of an event is neither `index` nor `create`; the event is discarded.',
        fields: { field: fact('bulk.action') },
      })
      context.events.discarded(1, false, 'The bulk action is not supported.')
      return undefined
    }

    const streamPart = (
      event: LogEvent,
      name: keyof typeof stream,
      own: ValueObject | undefined,
    ): string | undefined => {
      const value = auto_routing && own !== undefined ? getField(own, name) : undefined
      if (value !== undefined && value !== null) return valueText(value)
      const text = stream[name].render(event)
      if (text === undefined) templateFailed(context, `data_stream.${name}`, stream[name], event, true)
      return text
    }

    /** The document of an event in a data stream and the name of the stream; undefined if it has been discarded. */
    const streamDocument = (event: LogEvent): { readonly document: LogEvent; readonly name: string } | undefined => {
      const found = getField(event.fields, 'data_stream')
      const own = isObject(found) ? found : undefined
      const type = streamPart(event, 'type', own)
      const dataset = type === undefined ? undefined : streamPart(event, 'dataset', own)
      const namespace = dataset === undefined ? undefined : streamPart(event, 'namespace', own)
      if (type === undefined || dataset === undefined || namespace === undefined) return undefined
      const fields: ValueObject = { ...event.fields }
      if (sync_fields) {
        const synced: ValueObject = { type, dataset, namespace }
        fields['data_stream'] = own === undefined ? synced : { ...synced, ...present(own) }
      }
      const timestamp = getField(fields, timestampKey)
      if (timestampKey !== '@timestamp') {
        if (timestamp !== undefined) setField(fields, timestampKey, undefined)
        if (timestamp !== undefined || getField(fields, '@timestamp') === undefined) {
          fields['@timestamp'] = timestamp ?? Timestamp.now()
        }
      } else if (timestamp === undefined) {
        fields['@timestamp'] = Timestamp.now()
      }
      const name = [type, dataset, namespace].filter((part) => part !== '').join('-')
      return { document: new LogEvent(fields, event.metadata), name }
    }

    const query = new URLSearchParams({
      ...options.query,
      timeout: `${options.request.timeout_secs}s`,
      ...(pipeline === undefined ? {} : { pipeline }),
    }).toString()
    const contentEncoding = compileCompression(options.compression).contentEncoding
    const isServerless = options.opensearch_service_type === 'serverless'
    const ownClient =
      options.auth?.strategy === 'aws'
        ? await signedClient(
            isServerless ? 'aoss' : 'es',
            options.auth,
            options.aws?.region,
            options.tls,
            context.proxy,
          )
        : undefined

    const reportUnusableIds = warnedOnce(context.events, {
      type: 'conversion_failed',
      stage: 'processing',
      code: 'unusable_id',
      message: 'The field that `id_key` names holds a list or an object; the destination makes an id for the document.',
      fields: { field: options.id_key },
    })
    const classify = classifyBulk(options.request_retry_partial)
    const sink = httpSink(context, options, {
      url: bases.map((base) => {
        const bulk = joinPath(base, '/_bulk')
        return `${bulk}${bulk.includes('?') ? '&' : '?'}${query}`
      }),
      headers: {
        'content-type': 'application/x-ndjson',
        ...(contentEncoding === undefined || contentEncoding === 'snappy'
          ? {}
          : { 'accept-encoding': contentEncoding }),
      },
      encode(events, from, to, open) {
        const { body } = open
        let unusableIds = 0
        for (let at = from; at < to; at++) {
          const event = events[at] as AnyEvent
          let log = event instanceof LogEvent ? event : metricLog(event, metrics)
          const bulkAction = actionOf(log)
          if (bulkAction === undefined) continue
          let name: string | undefined
          if (isStream) {
            const document = streamDocument(log)
            if (document === undefined) continue
            log = document.document
            name = document.name
          } else {
            name = indexOf(log)
            if (name === undefined) continue
          }
          const start = body.length
          const idValue = idPath === undefined ? undefined : getPath(log, idPath)
          const id = idValue === undefined || idValue === null ? undefined : scalarText(idValue)
          if (id === undefined && idValue !== undefined && idValue !== null) unusableIds++
          let problem: string | undefined
          if (id === undefined) {
            body.writeText(lineFor(bulkAction, name))
            problem = encoder.encode(log, body)
          } else {
            const documentVersion = version?.render(log)
            if (version !== undefined && documentVersion === undefined) {
              templateFailed(context, 'bulk.version', version, log, true)
              continue
            }
            body.writeText(actionLine(partsOf(bulkAction, name, id, documentVersion)))
            const document: LogEvent = isStream ? log : log.copy()
            removePath(document.fields, (idPath as NonNullable<typeof idPath>).segments)
            document.changed()
            problem = encoder.encode(document, body)
          }
          if (problem !== undefined) {
            body.truncate(start)
            encoderFailed(context, problem)
            continue
          }
          body.writeByte(0x0a)
          open.mark(start)
          // The line before a document may be far longer than the document: templates hold any text.
          if (body.length > maxWritten) {
            open.stoppedAt = at + 1
            break
          }
        }
        reportUnusableIds(unusableIds)
        reportUnreadableTimes(Math.max(...dated.map((template) => template.takeUnreadableTimes())))
      },
      assemble: framed('', '', ''),
      classify: ownClient === undefined ? classify : (answer, sent) => ownClient.judge(answer, classify(answer, sent)),
      keepOfAnswer: maxListBytes,
      sign: ownClient?.sign,
      distribution: options.distribution,
      ...(isServerless ? {} : { healthcheck: checkHealth }),
    })

    async function checkHealth(get: (address: string) => Promise<{ readonly status: number }>): Promise<void> {
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

    /** Asks the destination for its version; what cannot be known is assumed. */
    async function detectVersion(): Promise<void> {
      const limit = AbortSignal.any([
        context.abandoning,
        timeoutSignal(Math.min(options.request.timeout_secs, 10) * 1000),
      ])
      let problem = 'Unexpected response from the endpoint `/`. Consider setting `api_version` option.'
      for (const base of bases) {
        try {
          const major = majorVersion(await sink.get(joinPath(base, '/'), limit))
          if (major !== undefined) return useVersion(major)
        } catch (error) {
          problem = errorText(error)
        }
      }
      const assumed = options.suppress_type_name ? 6 : 8
      context.logger.warn(
        { problem, assumed: `v${assumed}` },
        'The version of the destination could not be determined; it is assumed.',
      )
      useVersion(assumed)
    }

    const detected = options.api_version === 'auto' ? detectVersion() : undefined
    if (detected === undefined) useVersion(Number(options.api_version.slice(1)))
    return withDetection(sink, detected, ownClient?.client)
  },
})

/** Members of an object that are there. */
function present(fields: ValueObject): Record<string, Value> {
  return Object.fromEntries(Object.entries(fields).filter((entry): entry is [string, Value] => entry[1] !== undefined))
}

/** Holds writes back until the version is known, for their form depends on it. */
function withDetection(sink: Sink, detected: Promise<void> | undefined, client: HttpClient | undefined): Sink {
  let known = detected === undefined
  const waiting = detected?.then(() => {
    known = true
  })
  return {
    write: (events) => (known ? sink.write(events) : waiting?.then(() => sink.write(events))),
    async close() {
      await waiting
      await sink.close()
      await client?.close()
    },
    ...(sink.healthcheck === undefined ? {} : { healthcheck: sink.healthcheck }),
  }
}
