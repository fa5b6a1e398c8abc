// Metrics of event store nodes, from the statistics page of each node over HTTP.

import { defineSource } from '../component.ts'
import { scrape } from '../intake/scrape.ts'
import { proxy } from '../schema/groups.ts'
import { list, seconds, text, uint, url } from '../schema/options.ts'
import { readStats } from './eventstore_metrics/stats.ts'

const defaultEndpoint = 'https://localhost:2113/stats'

export const eventstoreMetrics = defineSource({
  type: 'eventstore_metrics',
  products: ['EventStoreDB', 'KurrentDB'],
  summary: 'Scrapes the statistics of event store nodes.',
  aliases: ['eventstoredb_metrics'],
  outputs: ['metric'],
  singleton: true,
  runsOn: 'aggregator',
  options: {
    endpoint: url('Address of the statistics.', { default: defaultEndpoint }),
    endpoints: list(
      url('An address.'),
      'Addresses of the statistics of several nodes, in place of `endpoint`. The source scrapes each one separately and adds its address as the tag `endpoint`, because process ids of different nodes may be equal.',
      { default: [], examples: [['https://es-0:2113/stats', 'https://es-1:2113/stats']] },
    ),
    default_namespace: text('Namespace of the metrics. Empty: none.', { default: 'eventstoredb' }),
    scrape_interval_secs: uint('Seconds between two scrapes.', { default: 15, minimum: 1 }),
    scrape_timeout_secs: seconds('Seconds after which a scrape fails if the address does not answer.', {
      default: 60,
      exclusiveMinimum: 0,
    }),
    proxy: proxy(),
  },

  check: ({ endpoint, endpoints }) =>
    endpoint === defaultEndpoint || endpoints.length === 0
      ? []
      : [
          {
            path: 'endpoints',
            message: '`endpoint` and `endpoints` are mutually exclusive: both are addresses of statistics',
            help: 'Put all of them in `endpoints`.',
          },
        ],

  build(options, context) {
    const several = options.endpoints.length > 0
    return {
      run: () =>
        scrape(
          {
            endpoints: several ? options.endpoints : [options.endpoint],
            intervalSecs: options.scrape_interval_secs,
            timeoutSecs: options.scrape_timeout_secs,
            headers: { 'content-type': 'application/json', accept: 'application/json' },
            read: (outcome, endpoint, time) =>
              typeof outcome === 'string'
                ? { metrics: [], failures: [] }
                : readStats(outcome.text, options.default_namespace, several ? endpoint : undefined, time),
          },
          context,
        ),
    }
  },
})
