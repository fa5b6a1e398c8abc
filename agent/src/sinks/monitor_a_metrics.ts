// Metrics of monitoring service A: single values as series, samples as sketches, each with its own API. The account key
// is part of the partition, because an event may have its own key and a request carries only one.

import { defineSink, type OptionProblem } from '../component.ts'
import { PenstockError } from '../errors.ts'
import { MetricEvent } from '../event/metric.ts'
import { floatText } from '../formats/json.ts'
import { identityFor } from '../http/identity.ts'
import { httpSink, joinPath, unhealthy } from '../http/sink.ts'
import { Normalizer } from '../metrics/normalizer.ts'
import { batch, request, tls } from '../schema/groups.ts'
import { oneOf, optional, text, url } from '../schema/options.ts'
import { normalised } from './metric/normalised.ts'
import { metricRequests } from './metric/requests.ts'
import { classify } from './monitor_a/classify.ts'
import { accountOf, accountOptions, apiAddress } from './monitor_a/site.ts'
import { writeSeriesJson, writeSeriesMessage, writeSketches } from './monitor_a_metrics/payload.ts'

/** The secret that holds an event's own key. */
const keySecret = 'datadog_api_key'

interface Api {
  readonly path: string
  readonly contentType: string
  /** Service limits for a body, before and after compression. */
  readonly maxBytes: number
  readonly maxCompressed: number
}

const series: Record<'v1' | 'v2', Api> = {
  v1: { path: '/api/v1/series', contentType: 'application/json', maxBytes: 62_914_560, maxCompressed: 3_200_000 },
  v2: { path: '/api/v2/series', contentType: 'application/x-protobuf', maxBytes: 5_242_880, maxCompressed: 512_000 },
}
const sketches: Api = {
  path: '/api/beta/sketches',
  contentType: 'application/x-protobuf',
  maxBytes: 62_914_560,
  maxCompressed: 3_200_000,
}

/** Maximum bucket count that a sketch can represent. */
const maxCount = 2 ** 32 - 1

export const monitorAMetrics = defineSink({
  type: 'monitor_a_metrics',
  products: ['Datadog'],
  summary: 'Delivers metric events to the metric intake of monitoring service A.',
  description: [
    'Counters, gauges and sets become series, distributions and histograms become sketches. A summary becomes the counters',
    '`<name>_count` and `<name>_sum` and a gauge for each quantile. All metrics except gauges are sent as increments: the first absolute',
    'value of a series is only the baseline for later ones. Counters of the same series and second are added up.',
    '',
    "The tags `host`, `device` and `source_type_name` become the service's fields of these names; `resource.<type>` names",
    'a resource.',
    '',
    `An event whose secret \`${keySecret}\` is set is sent with that key.`,
  ].join('\n'),
  aliases: ['datadog_metrics'],
  accepts: ['metric'],
  options: {
    ...accountOptions,
    endpoint: optional(url('Base address of the intake, overrides the site.')),
    default_namespace: optional(
      text('Namespace of metrics that have none; a period joins it to the name.', { aliases: ['namespace'] }),
    ),
    series_api_version: oneOf(['v1', 'v2'], 'Version of the API for series: JSON, or protobuf.', { default: 'v2' }),
    batch: batch({ max_events: 100_000, timeout_secs: 2 }),
    request: request(),
    tls: tls(),
  },

  check(options) {
    const problems: OptionProblem[] = []
    if (options.default_api_key === undefined && process.env['DD_API_KEY'] === undefined) {
      problems.push({
        path: 'default_api_key',
        message: '`default_api_key` is required: the environment has no `DD_API_KEY` either.',
      })
    }
    if (options.tls.enabled === true && options.endpoint !== undefined && !/^https:/i.test(options.endpoint)) {
      problems.push({ path: 'tls.enabled', message: 'is true, but the scheme of `endpoint` is not https' })
    }
    return problems
  },

  build(options, context) {
    const { site, apiKey } = accountOf(options, identityFor(context.proxy))
    const base = options.endpoint ?? `https://api.${site}`
    const version = options.series_api_version
    const check = apiAddress(options.endpoint, site, '/api/v1/validate')
    const forms = { namespace: options.default_namespace, hostKey: context.globals.logSchema.hostKey }
    // A partition key is the request type, a space and the API key.
    const apiOf = (key: string): Api => (key.startsWith('sketches ') ? sketches : series[version])

    const sink = httpSink(
      context,
      { ...options, compression: version === 'v1' ? 'zlib' : 'zstd' },
      {
        url: (key) => joinPath(base, apiOf(key).path),
        headers: (key) => ({
          'content-type': apiOf(key).contentType,
          // The version of the protobuf messages.
          'dd-agent-payload': '4.87.0',
        }),
        lastHeaders: (key) => ({ 'dd-api-key': key.slice(key.indexOf(' ') + 1) }),
        partition(event) {
          const { type } = (event as MetricEvent).value
          const sort = type === 'distribution' || type === 'histogram' ? 'sketches' : 'series'
          return `${sort} ${event.metadata.secrets[keySecret] ?? apiKey}`
        },
        ...metricRequests(
          (events, body, key) => {
            if (apiOf(key) === sketches) writeSketches(events, body, forms)
            else if (version === 'v1') writeSeriesJson(events, body, forms)
            else writeSeriesMessage(events, body, forms)
          },
          { texts: [options.default_namespace] },
        ),
        tooLarge({ key, bodyBytes, payload }) {
          const { maxBytes, maxCompressed } = apiOf(key)
          return bodyBytes > maxBytes || payload.length > maxCompressed
        },
        classify,
        async healthcheck(get) {
          const { status } = await get(check, { 'dd-api-key': apiKey })
          if (status === 403) {
            throw new PenstockError('PEN_HEALTHCHECK', 'The API key is invalid: status 403 was returned.', { status })
          }
          if (status !== 200) throw unhealthy(check, status)
        },
      },
    )
    return normalised(sink, context, {
      normalizer: new Normalizer(({ value }) => (value.type === 'gauge' ? 'absolute' : 'incremental')),
      problem,
      prepare: (event) => (event.value.type === 'summary' ? partsOf(event) : [event]),
      isEmpty,
    })
  },
})

function problem({ value }: MetricEvent): string | undefined {
  switch (value.type) {
    case 'counter':
    case 'gauge':
      return Number.isFinite(value.value) ? undefined : 'the value must be a finite number'
    case 'distribution':
      return value.samples.every((sample) => Number.isFinite(sample.value))
        ? undefined
        : 'the samples must be finite numbers'
    case 'histogram':
      return value.buckets.some(({ count }) => count > maxCount)
        ? `the count of a bucket must not be above ${maxCount}`
        : undefined
    case 'summary':
      return [value.sum, ...value.quantiles.map((item) => item.value)].every(Number.isFinite)
        ? undefined
        : 'the values must be finite numbers'
    case 'set':
      return undefined
  }
}

/** Whether the sketch would be empty. */
function isEmpty({ value }: MetricEvent): boolean {
  switch (value.type) {
    case 'distribution':
      return value.samples.every(({ rate }) => rate === 0)
    case 'histogram':
      return value.buckets.every(({ count }) => count === 0)
    default:
      return false
  }
}

/** A summary as the counters and gauges sent in its place. */
function partsOf(event: MetricEvent): MetricEvent[] {
  const { value } = event
  if (value.type !== 'summary') return [event]
  const part = (name: string, partValue: MetricEvent['value'], quantile?: number) =>
    new MetricEvent({
      name,
      namespace: event.namespace,
      kind: event.kind,
      timestamp: event.timestamp,
      metadata: event.metadata,
      tags: quantile === undefined ? event.tags : new Map([...(event.tags ?? []), ['quantile', floatText(quantile)]]),
      value: partValue,
    })
  return [
    part(`${event.name}_count`, { type: 'counter', value: value.count }),
    ...value.quantiles.map((item) => part(event.name, { type: 'gauge', value: item.value }, item.quantile)),
    part(`${event.name}_sum`, { type: 'counter', value: value.sum }),
  ]
}
