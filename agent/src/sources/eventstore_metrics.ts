// Metrics of an event store node, from the page of statistics that it offers over HTTP.

import { defineSource } from '../component.ts'
import { proxy } from '../schema/groups.ts'
import { seconds, string, uint, url } from '../schema/options.ts'
import { readStats } from './eventstore_metrics/stats.ts'
import { scrape } from './scrape.ts'

export const eventstoreMetrics = defineSource({
  type: 'eventstore_metrics',
  summary: 'Scrapes the statistics of an event store node.',
  aliases: ['eventstoredb_metrics'],
  outputs: ['metric'],
  options: {
    endpoint: url('Address of the statistics.', { default: 'https://localhost:2113/stats' }),
    default_namespace: string('Namespace of the metrics; empty: none.', { default: 'eventstoredb' }),
    scrape_interval_secs: uint('Seconds between two readings.', { default: 15, minimum: 1 }),
    scrape_timeout_secs: seconds(
      'Seconds after which an address that does not answer is given up until the next time.',
      {
        default: 60,
        exclusiveMinimum: 0,
      },
    ),
    proxy: proxy(),
  },

  build(options, context) {
    return {
      run: () =>
        scrape(
          {
            endpoints: [options.endpoint],
            intervalSecs: options.scrape_interval_secs,
            timeoutSecs: options.scrape_timeout_secs,
            headers: { 'content-type': 'application/json', accept: 'application/json' },
            read: (outcome, _endpoint, time) =>
              typeof outcome === 'string'
                ? { metrics: [], failures: [] }
                : readStats(outcome.text, options.default_namespace, time),
          },
          context,
        ),
    }
  },
})
