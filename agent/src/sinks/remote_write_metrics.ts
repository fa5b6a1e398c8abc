// Remote write sink: sends running totals as time series in protobuf, by version 0.1.0 of the remote write protocol. A
// request carries one tenant. All samples of a series within a request form one time series in time order.

import { credentialProblems } from '../aws/credentials.ts'
import { signedClient } from '../aws/signed-client.ts'
import { defineSink, type OptionProblem } from '../component.ts'
import { compileCompression, compressionProblems } from '../delivery/compression.ts'
import type { Attempt } from '../delivery/delivery.ts'
import { templateFailed } from '../delivery/failed-events.ts'
import { LogEvent } from '../event/log.ts'
import { MetricEvent } from '../event/metric.ts'
import { authProblems } from '../http/auth.ts'
import { classifyResponse } from '../http/classify.ts'
import type { HttpResponse } from '../http/client.ts'
import { httpSink, unhealthy } from '../http/sink.ts'
import { aggregate } from '../metrics/aggregate.ts'
import { Normalizer } from '../metrics/normalizer.ts'
import { bucketsOf, quantilesProblem } from '../metrics/statistics.ts'
import { compression, httpOrAwsAuth, request, tls } from '../schema/groups.ts'
import {
  address,
  bool,
  bytes,
  float,
  group,
  hostPart,
  list,
  optional,
  seconds,
  template,
  text,
  uint,
  url,
} from '../schema/options.ts'
import { compileTemplate } from '../template.ts'
import { normalised } from './metric/normalised.ts'
import { metricRequests } from './metric/requests.ts'
import { seriesOf, writeSeries } from './remote_write_metrics/series.ts'

export const remoteWriteMetrics = defineSink({
  type: 'remote_write_metrics',
  products: ['Prometheus', 'Mimir', 'VictoriaMetrics'],
  summary: 'Delivers metric events to a receiver of Prometheus remote write.',
  description:
    'The sink adds up increments: the receiver gets running totals, which start at zero when the agent starts. ' +
    'Distributions with statistic `summary` keep each value until their series is idle for ' +
    '`expire_metrics_secs`; prefer histograms for series that are busy.\n\n' +
    'Names and labels are sent unchanged. A receiver without UTF-8 support rejects names with characters ' +
    'other than letters, digits and `_`.\n\n' +
    'Each combination of name and labels is a series that the receiver keeps. Limit tags with many values, such as user or ' +
    'request ids, before this sink: with a `tag_cardinality_limit` transform, or with `del(.tags.user)` in a' +
    '`remap` transform.\n\n' +
    'The protocol forbids retries after a 4xx status other than 429, including 408.',
  aliases: ['prometheus_remote_write'],
  accepts: ['metric'],
  options: {
    endpoint: url('Address of the receiver, including its path.', {
      examples: ['http://prometheus:9090/api/v1/write'],
    }),
    default_namespace: optional(
      text('Namespace of metrics that have none; an underscore joins it to the name.', {
        examples: ['service'],
      }),
    ),
    buckets: list(float('Upper limit.'), 'Bucket boundaries for distributions with statistic `histogram`.', {
      default: [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    }),
    quantiles: list(float('From 0 to 1.'), 'Quantiles of distributions with statistic `summary`.', {
      default: [0.5, 0.75, 0.9, 0.95, 0.99],
    }),
    tenant_id: optional(
      template(
        'Tenant, sent as the `X-Scope-OrgID` header. The sink discards an event for which it cannot be rendered.',
        {
          examples: ['{{ tags.team }}'],
        },
      ),
    ),
    expire_metrics_secs: seconds(
      'Seconds without values after which a series is forgotten; it then restarts at zero.',
      {
        default: 300,
        exclusiveMinimum: 0,
      },
    ),
    compression: compression(['snappy', 'gzip', 'zstd'], 'snappy'),
    auth: httpOrAwsAuth(['basic', 'bearer']),
    aws: optional(
      group(
        {
          region: optional(address('Region of the receiver.', hostPart)),
          endpoint: optional(url('Request address in place of `endpoint`, such as one in a private network.')),
        },
        'AWS settings of the receiver; needs `auth.strategy: aws`.',
      ),
    ),
    batch: group(
      {
        max_bytes: optional(
          bytes('Maximum bytes in a batch, before encoding and compression.', { minimum: 1, limit: 'batchBytes' }),
        ),
        max_events: uint('Maximum events in a batch.', { minimum: 1, default: 1000, limit: 'batchEvents' }),
        timeout_secs: seconds('Age in seconds at which the sink sends a batch that is not full.', {
          default: 1,
          exclusiveMinimum: 0,
        }),
        aggregate: bool('Whether to send only the latest value of each series in a batch.', {
          default: true,
        }),
      },
      'When the sink sends a batch.',
    ),
    request: request(),
    tls: tls(),
  },

  check(options) {
    const problems: OptionProblem[] = [
      ...compressionProblems(options.compression),
      ...authProblems('auth', options.endpoint, options.auth),
      ...authProblems('auth', options.aws?.endpoint, options.auth),
    ]
    if (/^https?:\/\/[^/?#]+$/i.test(options.endpoint)) {
      problems.push({
        path: 'endpoint',
        message: 'must include the path of the receiver, because there is no default',
        help: "See the receiver's documentation for its path, such as `/api/v1/write`. Write `/` for the root.",
      })
    }
    if (options.quantiles.some((quantile) => quantile < 0 || quantile > 1)) {
      problems.push({ path: 'quantiles', message: quantilesProblem })
    }
    const names = Object.keys(options.request.headers).map((name) => name.toLowerCase())
    if (options.auth !== undefined && names.includes('authorization')) {
      problems.push({
        path: 'request.headers',
        message: 'Authorization header can not be used with defined auth options',
        help: 'Omit the header or `auth`.',
      })
    }
    if (options.auth?.strategy === 'aws') problems.push(...credentialProblems(options.auth))
    else if (options.aws?.region !== undefined || options.aws?.endpoint !== undefined) {
      problems.push({
        path: 'aws',
        message: 'needs `auth.strategy: aws`',
        help: 'Omit `aws`, or choose that strategy.',
      })
    }
    return problems
  },

  async build(options, context) {
    const address = options.aws?.endpoint ?? options.endpoint
    const { timestampKey } = context.globals.logSchema
    const tenant = options.tenant_id === undefined ? undefined : compileTemplate(options.tenant_id, timestampKey)
    const limits = [...options.buckets].sort((left, right) => left - right)
    const forms = { namespace: options.default_namespace, limits, quantiles: options.quantiles }
    const aws =
      options.auth?.strategy === 'aws'
        ? await signedClient('aps', options.auth, options.aws?.region, options.tls, context.proxy)
        : undefined

    const headers = {
      'content-type': 'application/x-protobuf',
      'x-prometheus-remote-write-version': '0.1.0',
    }
    const tenantHeaders = (key: string) => (key === '' ? undefined : { 'x-scope-orgid': key })
    const contentEncoding = compileCompression(options.compression).contentEncoding ?? 'identity'
    const sink = httpSink(context, options, {
      url: address,
      headers,
      lastHeaders: tenantHeaders,
      partition:
        tenant === undefined
          ? undefined
          : (event) => {
              const id = tenant.render(event)
              if (id === undefined) templateFailed(context, 'tenant_id', tenant, event, true)
              return id
            },
      ...metricRequests(
        (events, body) => writeSeries(options.batch.aggregate ? aggregate(events) : events, body, forms),
        { seriesOf: (event) => seriesOf(event.value, forms), texts: [options.default_namespace] },
      ),
      classify: aws === undefined ? classify : (answer) => aws.reclassify(answer, classify(answer)),
      sign: aws?.sign,
      async healthcheck(get) {
        const key = tenant?.isStatic === true ? tenant.render(new LogEvent({})) : undefined
        const { status } = await get(address, {
          ...headers,
          ...tenantHeaders(key ?? ''),
          'content-encoding': contentEncoding,
        })
        // A receiver may only support POST.
        if (status !== 200 && status !== 204 && status !== 405) throw unhealthy(address, status)
      },
    })
    const normal = normalised(sink, context, {
      normalizer: new Normalizer(() => 'absolute', options.expire_metrics_secs * 1000),
      prepare: (event) => [withBuckets(event, limits)],
    })
    if (aws === undefined) return normal
    return {
      ...normal,
      async close() {
        await normal.close()
        await aws.client.close()
      },
    }
  },
})

/** Converts a distribution to the histogram that is sent: its total needs one number per bucket, however many samples it has. */
function withBuckets(event: MetricEvent, limits: readonly number[]): MetricEvent {
  const { value } = event
  if (value.type !== 'distribution' || value.statistic !== 'histogram') return event
  return new MetricEvent({
    name: event.name,
    namespace: event.namespace,
    kind: event.kind,
    timestamp: event.timestamp,
    tags: event.tags,
    metadata: event.metadata,
    value: { type: 'histogram', ...bucketsOf(value.samples, limits) },
  })
}

/** Like the default, but a retry follows no 4xx status except 429. */
function classify(response: HttpResponse): Attempt {
  const attempt = classifyResponse(response)
  return response.status === 408 && attempt.outcome === 'retry'
    ? { outcome: 'rejected', failure: attempt.failure }
    : attempt
}
