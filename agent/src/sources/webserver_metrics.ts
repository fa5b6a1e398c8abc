// Metrics of Apache httpd, from the machine-readable page of its module mod_status.

import { defineSource } from '../component.ts'
import { scrape } from '../intake/scrape.ts'
import { proxy } from '../schema/groups.ts'
import { list, seconds, text, uint, url } from '../schema/options.ts'
import { readStatus } from './webserver_metrics/status.ts'

export const webserverMetrics = defineSource({
  type: 'webserver_metrics',
  products: ['Apache httpd'],
  summary: 'Scrapes the status page of Apache httpd.',
  description:
    'The module `mod_status` must be enabled. The source reads the machine-readable form of the page, so addresses end with `?auto`. `ExtendedStatus On` adds more values.',
  aliases: ['apache_metrics'],
  outputs: ['metric'],
  singleton: true,
  runsOn: 'aggregator',
  options: {
    endpoints: list(url('An address.'), 'Addresses of the status pages. The source scrapes each one separately.', {
      minItems: 1,
      examples: [['http://web:80/server-status?auto']],
    }),
    namespace: text('Namespace of the metrics. Empty: none.', { default: 'apache' }),
    scrape_interval_secs: uint('Seconds between two scrapes.', { default: 15, minimum: 1 }),
    scrape_timeout_secs: seconds('Seconds after which an address that does not answer counts as down.', {
      default: 60,
      exclusiveMinimum: 0,
    }),
    proxy: proxy(),
  },

  build(options, context) {
    return {
      run: () =>
        scrape(
          {
            endpoints: options.endpoints,
            intervalSecs: options.scrape_interval_secs,
            timeoutSecs: options.scrape_timeout_secs,
            read: (outcome, endpoint, time) => readStatus(outcome, endpoint, options.namespace, time),
          },
          context,
        ),
    }
  },
})
