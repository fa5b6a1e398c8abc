// Metrics of monitoring service C: lines with one value each. The namespace is the measurement, and the name of the metric its
// field. The service accepts only single values, so the sink counts and discards everything except counters and gauges.

import { defineSink } from '../component.ts'
import type { MetricEvent } from '../event/metric.ts'
import { httpSink, joinPath, unhealthy } from '../http/sink.ts'
import { aggregate } from '../metrics/aggregate.ts'
import { Normalizer } from '../metrics/normalizer.ts'
import { batch, request, tls } from '../schema/groups.ts'
import { oneOf, optional, secret, text, url } from '../schema/options.ts'
import { version } from '../version.ts'
import { floatField, lineOf, tagsOf } from './metric/line-protocol.ts'
import { normalised } from './metric/normalised.ts'
import { metricRequests } from './metric/requests.ts'

const bases = { us: 'https://spm-receiver.sematext.com', eu: 'https://spm-receiver.eu.sematext.com' } as const

export const monitorCMetrics = defineSink({
  type: 'monitor_c_metrics',
  products: ['Sematext'],
  summary: 'Delivers counters and gauges to a monitoring service.',
  description:
    'The service accepts only single values; the sink counts and discards events of other types. Send their single values as gauges, ' +
    'or convert them to logs with the transform `metric_to_log`, and send these with `monitor_c_logs`.\n\n' +
    'The sink sends counters as increments and gauges as absolute values. Values of one series in one batch become one line.',
  aliases: ['sematext_metrics'],
  accepts: ['metric'],
  options: {
    token: secret('Token of the app that receives the metrics.'),
    default_namespace: text(
      'Namespace of metrics that have none. The service shows it before the metric name, separated by a period.',
    ),
    region: oneOf(['us', 'eu'], 'Region of the service.', { default: 'us' }),
    endpoint: optional(url('Address in place of the regional one.')),
    batch: batch({ max_events: 20, timeout_secs: 1 }),
    request: request({ concurrency: 'adaptive' }),
    tls: tls(),
  },

  build(options, context) {
    const base = options.endpoint ?? bases[options.region]
    const address = joinPath(base, '/write')
    const query = new URLSearchParams({ db: 'metrics', v: `penstock-${version}`, precision: 'ns' })
    const write = (event: MetricEvent): string => {
      const { value } = event
      const fields = new Map([
        [event.name, value.type === 'counter' || value.type === 'gauge' ? floatField(value.value) : ''],
      ])
      const tags = tagsOf(event, { metric_type: value.type, token: options.token })
      return lineOf(event.namespace ?? options.default_namespace, tags, fields, event.timestamp)
    }
    const sink = httpSink(context, options, {
      url: `${address}${address.includes('?') ? '&' : '?'}${query}`,
      headers: { 'content-type': 'text/plain' },
      ...metricRequests((events, body) => body.writeText(aggregate(events).map(write).join('\n')), {
        texts: [options.default_namespace, options.token],
      }),
      secret: options.token, // a tag of every line
      async healthcheck(get) {
        const health = joinPath(base, '/health')
        const { status } = await get(health)
        if (status !== 200 && status !== 204) throw unhealthy(health, status)
      },
    })
    return normalised(sink, context, {
      normalizer: new Normalizer(({ value }) => (value.type === 'counter' ? 'incremental' : 'absolute')),
      problem({ name, value }) {
        if (value.type !== 'counter' && value.type !== 'gauge') return `${value.type} metrics have no single value`
        if (name === '') return 'the metric has no name'
        return Number.isFinite(value.value) ? undefined : 'the value must be a finite number'
      },
    })
  },
})
