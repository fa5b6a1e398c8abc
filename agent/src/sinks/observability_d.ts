// Observability platform D: logs, events or metrics, each in the form of its API. A sink uses one of the three APIs and drops events of
// another kind.

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

/** Largest payload that the platform takes. */
const maxBytes = 1_000_000

export const observabilityD = defineSink({
  type: 'observability_d',
  products: ['New Relic'],
  summary: 'Delivers log and metric events to observability platform D.',
  description: [
    'With `api: logs` the message and the time stand by themselves and all other fields below `attributes`, without arrays.',
    'With `api: events` fields are flattened to dotted names, and a message that is a JSON object becomes fields too.',
    'With `api: metrics` gauges, absolute counters, and incremental counters that have an interval are sent; others are discarded.',
  ].join('\n'),
  aliases: ['new_relic', 'new_relic_logs'],
  accepts: ['log', 'metric'],
  options: {
    api: oneOf(
      ['events', 'logs', 'metrics'],
      'API of the platform. Metric events go to `metrics`, log events to the others.',
    ),
    license_key: secret('License key.'),
    account_id: optional(text('Identifier of the account. Required with `api: events`.')),
    region: oneOf(['us', 'eu'], 'Region of the account.', { default: 'us' }),
    override_uri: optional(url('Address of requests in place of that of the API and the region.')),
    compression: compression(compressionNames, 'gzip', compressionNames.slice(2)),
    encoding: transformer(
      'Which fields are sent, and how times are written. With `api: events` and `api: metrics` the time of the event itself is always in milliseconds since 1970: these take no other.',
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
      problems.push({ path: 'account_id', message: 'is required with `api: events`: it is part of the address' })
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
    // Events have times in milliseconds only.
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
            // A number is sent unchanged: the destination takes seconds and milliseconds.
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
      // The limit is that of what is sent.
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
    message: 'A metric cannot be sent; it is discarded.',
    fields: { reason },
  })
  context.events.discarded(1, false, 'The metric cannot be sent.')
}

/** Leaves out batches of the other type of events, as the choice of the API says. */
function onlyOf(type: EventType, sink: Sink, context: SinkContext): Sink {
  return {
    write(events) {
      if (events.type === type) return sink.write(events)
      if (events.count > 0) context.events.discarded(events.count, true, 'The API does not take events of this type.')
      finalizeBatch(events, 'dropped')
      return undefined
    },
    close: () => sink.close(),
    ...(sink.healthcheck === undefined ? {} : { healthcheck: sink.healthcheck }),
  }
}
