// Observability platform D: logs, events or metrics, each in the format of its API. A sink uses one of the three APIs and discards
// events of other types.

import { encodingProblems } from '../codecs/encoding/encoder.ts'
import { compileTransformer, timestampForm } from '../codecs/transformer.ts'
import { defineSink, type OptionProblem, type Sink, type SinkContext } from '../component.ts'
import { compressionProblems } from '../delivery/compression.ts'
import type { Attempt } from '../delivery/delivery.ts'
import { framed } from '../delivery/request.ts'
import { PenstockError } from '../errors.ts'
import type { EventType } from '../event/batch.ts'
import { finalizeBatch } from '../event/batch.ts'
import type { LogEvent } from '../event/log.ts'
import type { MetricEvent } from '../event/metric.ts'
import type { Timestamp } from '../event/timestamp.ts'
import { Float, getField, type Value } from '../event/value.ts'
import { writeJsonTo } from '../formats/json.ts'
import { classifyResponse } from '../http/classify.ts'
import type { HttpResponse } from '../http/client.ts'
import { httpSink, unhealthy } from '../http/sink.ts'
import { batch, compression, compressionNames, request, tls, transformer } from '../schema/groups.ts'
import { oneOf, optional, secret, text, url } from '../schema/options.ts'
import { timeField } from '../time-field.ts'
import { eventRecord, type KeyNames, logRecord, metricRecord } from './observability_d/records.ts'

const addresses = {
  logs: { us: 'https://log-api.newrelic.com/log/v1', eu: 'https://log-api.eu.newrelic.com/log/v1' },
  metrics: { us: 'https://metric-api.newrelic.com/metric/v1', eu: 'https://metric-api.eu.newrelic.com/metric/v1' },
  events: {
    us: 'https://insights-collector.newrelic.com/v1/accounts/{id}/events',
    eu: 'https://insights-collector.eu01.nr-data.net/v1/accounts/{id}/events',
  },
} as const

/** Text around the records of a request. */
const frames = {
  logs: ['[{"logs":[', ']}]\n'],
  metrics: ['[{"metrics":[', ']}]\n'],
  events: ['[', ']\n'],
} as const

/** Largest payload that the platform accepts. */
const maxBytes = 1_000_000

export const observabilityD = defineSink({
  type: 'observability_d',
  products: ['New Relic'],
  summary: 'Delivers log and metric events to observability platform D.',
  description: [
    'With `api: logs` the message and the time are separate members, and all other fields are below `attributes`, without arrays.',
    'With `api: events` the sink flattens fields to dotted names, and also flattens a message that is a JSON object.',
    'With `api: metrics` the sink sends gauges, absolute counters, and incremental counters with an interval; it discards others.',
  ].join('\n'),
  aliases: ['new_relic', 'new_relic_logs'],
  accepts: ['log', 'metric'],
  options: {
    api: oneOf(
      ['events', 'logs', 'metrics'],
      'API of the platform. `metrics` accepts metric events; the others accept log events.',
    ),
    license_key: secret('License key.'),
    account_id: optional(text('Identifier of the account. Required with `api: events`.')),
    region: oneOf(['us', 'eu'], 'Region of the account.', { default: 'us' }),
    override_uri: optional(url('Address of requests in place of the address of the API and region.')),
    compression: compression(compressionNames, 'gzip', compressionNames.slice(2)),
    encoding: transformer(
      "Which fields are sent, and the format of times. With `api: events` and `api: metrics` the event's own time is always in milliseconds since 1970, because these APIs accept no other format.",
    ),
    batch: batch({ max_bytes: maxBytes, max_events: 100, timeout_secs: 30 }),
    request: request({ concurrency: 100 }),
    tls: tls(),
  },

  check(options) {
    const problems: OptionProblem[] = [
      ...encodingProblems(options.encoding),
      ...compressionProblems(options.compression),
    ]
    if (options.api === 'events' && (options.account_id ?? '') === '') {
      problems.push({
        path: 'account_id',
        message: 'is required with `api: events`, because it is part of the address',
      })
    }
    return problems
  },

  build(options, context) {
    const { api } = options
    const { messageKey, timestampKey } = context.globals.logSchema
    const keys: KeyNames = { messageKey, timestampKey }
    const transform = compileTransformer(options.encoding)
    const address =
      options.override_uri ??
      addresses[api][options.region].replace('{id}', encodeURIComponent(options.account_id ?? ''))
    const [before, after] = frames[api]
    const headers = { 'content-type': 'application/json' }
    const account = { 'api-key': options.license_key }
    const logForm = api === 'events' ? eventRecord : logRecord
    const time = timeField([timestampKey], 'log_schema.timestamp_key', context)
    // The events API only accepts times in milliseconds.
    const writeTime = api === 'events' ? (instant: Timestamp): Value => instant.ms : timestampForm(options.encoding)

    const sink = httpSink(context, options, {
      url: address,
      headers,
      lastHeaders: () => account,
      begin: (open) => open.body.writeText(before),
      encode(events, from, to, open) {
        const { body } = open
        for (let index = from; index < to; index++) {
          const event = events[index] as LogEvent | MetricEvent
          let record: ReturnType<typeof metricRecord>
          if (api === 'metrics') {
            record = metricRecord(event as MetricEvent)
          } else {
            const { fields } = event as LogEvent
            // A number is sent unchanged: the destination accepts seconds and milliseconds.
            const own = getField(fields, timestampKey)
            const isCount = typeof own === 'number' || typeof own === 'bigint' || own instanceof Float
            const instant = isCount ? undefined : time.of(fields)
            const written = instant === undefined ? undefined : writeTime(instant)
            record = logForm(transform === undefined ? fields : transform.apply(fields), written, keys)
          }
          if (typeof record === 'string') {
            invalidMetric(context, record)
            continue
          }
          if (open.count > 0) body.writeByte(0x2c)
          const start = body.length
          writeJsonTo(body, record)
          open.mark(start)
        }
        time.report()
      },
      finish(open) {
        open.body.writeText(after)
        return open
      },
      assemble: framed(before, ',', after),
      secret: options.license_key,
      // The limit applies to the compressed payload.
      tooLarge: ({ payload }) => payload.length > maxBytes,
      classify: (response) => classify(context, response),
      async healthcheck(get) {
        const { status } = await get(address, { ...headers, ...account }, before + after)
        if (status === 403) {
          throw new PenstockError('PEN_HEALTHCHECK', 'The license key is not valid: status 403 was returned.', {
            status,
          })
        }
        if (status < 200 || status >= 300) throw unhealthy(address, status)
      },
    })
    return onlyOf(api === 'metrics' ? 'metric' : 'log', sink, context)
  },
})

function classify(context: SinkContext, response: HttpResponse): Attempt {
  if (response.status === 400) context.events.count('http_bad_requests_total')
  return classifyResponse(response)
}

function invalidMetric(context: SinkContext, reason: string): void {
  context.events.error({
    type: 'invalid_metric',
    stage: 'processing',
    message: 'Cannot send a metric; it is discarded.',
    fields: { reason },
  })
  context.events.discarded(1, false, 'The metric cannot be sent.')
}

/** Rejects batches of event types that the chosen API does not accept. */
function onlyOf(type: EventType, sink: Sink, context: SinkContext): Sink {
  return {
    write(events) {
      if (events.type === type) return sink.write(events)
      if (events.count > 0) context.events.discarded(events.count, true, 'The API does not accept events of this type.')
      finalizeBatch(events, 'dropped')
      return undefined
    },
    close: () => sink.close(),
    ...(sink.healthcheck === undefined ? {} : { healthcheck: sink.healthcheck }),
  }
}
