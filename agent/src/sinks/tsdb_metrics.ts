// Time-series database sink: writes metric events as lines, for both server generations. The first needs a database and a
// user, the second an organization, a bucket and a token.

import { defineSink, type OptionProblem } from '../component.ts'
import type { MetricEvent, MetricValue } from '../event/metric.ts'
import { authProblems } from '../http/auth.ts'
import { classifyInHalves } from '../http/classify.ts'
import { httpSink, joinPath, unhealthy } from '../http/sink.ts'
import { aggregate } from '../metrics/aggregate.ts'
import { Normalizer } from '../metrics/normalizer.ts'
import { quantilesProblem, statisticsOf } from '../metrics/statistics.ts'
import { batch, request, tls, transformer } from '../schema/groups.ts'
import { float, list, map, oneOf, optional, secret, text, url } from '../schema/options.ts'
import { floatField, type LineFields, lineOf, tagsOf } from './metric/line-protocol.ts'
import { normalised } from './metric/normalised.ts'
import { metricRequests } from './metric/requests.ts'

const firstOptions = ['database', 'consistency', 'retention_policy_name', 'username', 'password'] as const
const secondOptions = ['org', 'bucket', 'token'] as const

type Chosen = Partial<Record<(typeof firstOptions)[number] | (typeof secondOptions)[number], string | undefined>>

/** The given options of each generation. If all options of the second are given, `database` alone does not count. */
function given(options: Chosen): { first: string[]; second: string[] } {
  const first = firstOptions.filter((name) => options[name] !== undefined)
  const second = secondOptions.filter((name) => options[name] !== undefined)
  const redundant = second.length === secondOptions.length && first.length === 1 && first[0] === 'database'
  return { first: redundant ? [] : first, second }
}

export const tsdbMetrics = defineSink({
  type: 'tsdb_metrics',
  products: ['InfluxDB'],
  summary: 'Delivers metric events to a time-series database with the line protocol.',
  description:
    'Set `database` for first-generation servers, or `org`, `bucket` and `token` for second-generation servers. ' +
    'If all three are set, the sink ignores `database`.\n\n' +
    'The sink sends counters as increments and gauges as absolute values. Values of one series in one batch become one line. ' +
    'If the server refuses some metrics of a request, for example because a field had another type before, the sink discards only those.',
  aliases: ['influxdb_metrics'],
  accepts: ['metric'],
  options: {
    endpoint: url('Base address of the server.', { examples: ['http://tsdb:8086'] }),
    database: optional(text('Database to write to (first generation).')),
    consistency: optional(
      oneOf(
        ['any', 'one', 'quorum', 'all'],
        'Number of nodes that must confirm a write (first generation, in a cluster).',
      ),
    ),
    retention_policy_name: optional(text('Retention policy to write to (first generation).')),
    username: optional(text('User name (first generation).')),
    password: optional(secret('Password of the user.')),
    org: optional(text('Organization (second generation).')),
    bucket: optional(text('Bucket to write to (second generation).')),
    token: optional(secret('Token (second generation).')),
    default_namespace: optional(
      text('Namespace of metrics that have none; a period joins it to the name.', { aliases: ['namespace'] }),
    ),
    tags: map(text('Value of the tag.'), 'Tags added to every line; they override event tags with the same key.', {
      default: {},
    }),
    quantiles: list(float('From 0 to 1.'), 'Quantiles of distributions.', { default: [0.5, 0.75, 0.9, 0.95, 0.99] }),
    encoding: transformer(),
    batch: batch({ max_events: 20, timeout_secs: 1 }),
    request: request(),
    tls: tls(),
  },

  check(options) {
    const { first, second } = given(options)
    const problems: OptionProblem[] = [...authProblems('token', options.endpoint, options.token)]
    if (first.length > 0 && second.length > 0) {
      problems.push({
        path: '',
        message: `Unclear settings. Both version configured v1: ${first.join(', ')}, v2: ${second.join(', ')}.`,
        help: 'Keep the options of one generation of the server.',
      })
    } else if (second.length > 0) {
      for (const name of secondOptions.filter((option) => options[option] === undefined)) {
        problems.push({ path: name, message: `must be set together with \`${second.join('`, `')}\`` })
      }
    } else if (first.length === 0) {
      problems.push({
        path: '',
        message: 'InfluxDB v1 or v2 should be configured as endpoint.',
        help: 'Give `database`, or `org`, `bucket` and `token`.',
      })
    } else if (options.database === undefined) {
      problems.push({ path: 'database', message: `must be set together with \`${first.join('`, `')}\`` })
    }
    if (options.quantiles.some((quantile) => quantile < 0 || quantile > 1)) {
      problems.push({ path: 'quantiles', message: quantilesProblem })
    }
    const { only_fields, except_fields, timestamp_format } = options.encoding
    if (only_fields !== undefined || except_fields !== undefined || timestamp_format !== 'rfc3339') {
      problems.push({
        path: 'encoding',
        message: 'has no effect: it applies to fields of log events, and metric lines have their own format',
        severity: 'warning',
      })
    }
    return problems
  },

  build(options, context) {
    const second = given(options).first.length === 0
    const query = new URLSearchParams()
    const parameters = second
      ? { org: options.org, bucket: options.bucket }
      : {
          consistency: options.consistency,
          db: options.database,
          rp: options.retention_policy_name,
          p: options.password,
          u: options.username,
        }
    for (const [name, value] of Object.entries(parameters)) if (value !== undefined) query.set(name, value)
    query.set('precision', 'ns')
    const address = joinPath(options.endpoint, second ? '/api/v2/write' : '/write')

    const forms: Forms = { unsigned: second ? 'u' : 'i', quantiles: options.quantiles }
    const write = (event: MetricEvent): string => {
      const namespace = event.namespace ?? options.default_namespace
      const measurement = namespace === undefined ? event.name : `${namespace}.${event.name}`
      const type = event.value.type
      // This tag overrides an event tag with the same name.
      const tags = tagsOf(event, options.tags).filter((tag) => !tag.startsWith('metric_type='))
      return lineOf(measurement, [`metric_type=${type}`, ...tags], fieldsOf(event.value, forms), event.timestamp)
    }
    const sink = httpSink(context, options, {
      url: `${address}${address.includes('?') ? '&' : '?'}${query}`,
      headers: { 'content-type': 'text/plain', authorization: 'Token ' },
      ...(second && options.token !== undefined
        ? { lastHeaders: () => ({ authorization: `Token ${options.token}` }) }
        : {}),
      ...metricRequests((events, body) => body.writeText(aggregate(events).map(write).join('\n')), {
        texts: [options.default_namespace, ...Object.entries(options.tags).flat()],
      }),
      secret: second ? options.token : options.password, // the password is part of the address
      classify: (response, sent) => classifyInHalves(response, sent, ofSome),
      async healthcheck(get) {
        const ping = joinPath(options.endpoint, '/ping')
        const { status } = await get(ping)
        if (status !== 200 && status !== 204) throw unhealthy(ping, status)
      },
    })
    return normalised(sink, context, {
      normalizer: new Normalizer(({ value }) =>
        value.type === 'counter' ? 'incremental' : value.type === 'gauge' ? 'absolute' : 'as_is',
      ),
      problem(event) {
        const fields = fieldsOf(event.value, forms)
        if (fields.size === 0) return 'fields must not be empty'
        for (const text of fields.values()) {
          if (!/\d/.test(text)) return 'the values must be finite numbers'
        }
        return undefined
      },
    })
  },
})

/**
 * Responses of a first-generation server that wrote part of a request; they give one reason for all refused points. If fields of one
 * request differ in type, the server writes nothing. Writing a metric twice is harmless.
 */
const ofSome = /partial write|field type conflict/

interface Forms {
  /** Suffix of unsigned integers. */
  readonly unsigned: string
  readonly quantiles: readonly number[]
}

function fieldsOf(value: MetricValue, forms: Forms): LineFields {
  const fields = new Map<string, string>()
  const float = (name: string, number: number) => fields.set(name, floatField(number))
  const whole = (name: string, number: number) => fields.set(name, `${floatField(number)}${forms.unsigned}`)
  switch (value.type) {
    case 'counter':
    case 'gauge':
      float('value', value.value)
      break
    case 'set':
      float('value', new Set(value.values).size)
      break
    case 'histogram':
      for (const { upperLimit, count } of value.buckets) whole(`bucket_${floatField(upperLimit)}`, count)
      whole('count', value.count)
      float('sum', value.sum)
      break
    case 'summary':
      for (const { quantile, value: at } of value.quantiles) float(`quantile_${floatField(quantile)}`, at)
      whole('count', value.count)
      float('sum', value.sum)
      break
    case 'distribution': {
      const found = statisticsOf(value.samples, forms.quantiles)
      if (found === undefined) break
      for (const name of ['min', 'max', 'median', 'avg', 'sum', 'count'] as const) float(name, found[name])
      for (const { quantile, value: at } of found.quantiles) float(`quantile_${quantileName(quantile)}`, at)
    }
  }
  return fields
}

/** At least two decimals, and all decimals of the number, so that close quantiles get different field names. */
function quantileName(quantile: number): string {
  const shortest = String(quantile)
  return /\.\d{3,}$|e/.test(shortest) ? shortest : quantile.toFixed(2)
}
