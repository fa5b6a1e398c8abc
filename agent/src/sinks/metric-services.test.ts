// The shared fault table, for each metric sink.

import type { RecordedRequest } from '../testing/destination.ts'
import { metric } from '../testing/events.ts'
import { testFaults } from '../testing/sink-faults.ts'

const events = (messages: readonly string[]) => messages.map((name) => metric(name, { type: 'counter', value: 1 }))
/** Names in the body, without duplicates, because protobuf repeats them. */
const messages = (request: RecordedRequest) => [...new Set(request.text().match(/m\d+/g))]

testFaults([
  {
    type: 'tsdb_metrics',
    way: 'of the first generation',
    options: (endpoint: string) => ({ endpoint, database: 'd' }),
    messages,
    events,
  },
  {
    type: 'tsdb_metrics',
    way: 'of the second generation',
    options: (endpoint: string) => ({ endpoint, org: 'o', bucket: 'b', token: 't' }),
    messages,
    events,
  },
  {
    type: 'monitor_c_metrics',
    options: (endpoint: string) => ({ endpoint, token: 't', default_namespace: 'ns' }),
    messages,
    events,
  },
  {
    type: 'remote_write_metrics',
    options: (endpoint: string) => ({ endpoint: `${endpoint}/api/v1/write` }),
    messages,
    events,
    // Only status 429 and server errors allow a retry.
    refusals: [301, 400, 401, 403, 404, 408, 501],
  },
  {
    type: 'monitor_a_metrics',
    way: 'series v2',
    options: (endpoint: string) => ({ endpoint, default_api_key: 'k' }),
    messages,
    events,
    refusals: [400],
  },
  {
    type: 'monitor_a_metrics',
    way: 'series v1',
    options: (endpoint: string) => ({ endpoint, default_api_key: 'k', series_api_version: 'v1' }),
    messages,
    events,
    refusals: [400],
  },
  {
    type: 'monitor_a_metrics',
    way: 'sketches',
    options: (endpoint: string) => ({ endpoint, default_api_key: 'k' }),
    messages,
    events: (names) =>
      names.map((name) =>
        metric(name, { type: 'distribution', samples: [{ value: 1, rate: 1 }], statistic: 'histogram' }),
      ),
    refusals: [400],
  },
  {
    type: 'observability_d',
    way: 'metrics',
    options: (url: string) => ({ api: 'metrics', license_key: 'k', override_uri: url }),
    messages,
    events: (names) => names.map((name) => metric(name, { type: 'gauge', value: 1 })),
  },
])
