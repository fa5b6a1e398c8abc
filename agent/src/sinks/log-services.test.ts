// The shared fault table of network failures, for each sink of a log service.

import type { RecordedRequest } from '../testing/destination.ts'
import { testFaults } from '../testing/sink-faults.ts'

/** The messages in a body, whatever its format. */
const messages = (request: RecordedRequest): string[] => request.text().match(/m\d+(?=\\?")/g) ?? []

/** The batches exceed the limit, so the sink itself must divide them. */
const largeBatches = { batch: { max_bytes: 100_000_000 } }

testFaults([
  {
    type: 'cloud_monitor_logs',
    options: (url) => ({ customer_id: 'c', shared_key: 'c2VjcmV0', log_type: 'T', host: url }),
    messages,
    limit: { bytes: 31_457_280, options: { batch: { max_bytes: 31_457_280 } } },
  },
  {
    type: 'logsvc_a',
    options: (url) => ({ api_key: 'k', hostname: 'h', endpoint: url }),
    messages,
    limit: { bytes: 10_000_000, options: largeBatches },
  },
  {
    type: 'logsvc_a_old',
    options: (url) => ({ api_key: 'k', hostname: 'h', endpoint: url, tags: ['t'] }),
    messages,
    limit: { bytes: 10_000_000, options: largeBatches },
  },
  {
    type: 'logsvc_b_logs',
    options: (url) => ({ token: 't', endpoint: url, encoding: { codec: 'json' }, compression: 'gzip' }),
    messages,
  },
  {
    type: 'logsvc_b_logs',
    way: 'as text',
    options: (url) => ({ token: 't', endpoint: url, encoding: { codec: 'text' } }),
    messages,
  },
  {
    type: 'monitor_a_logs',
    options: (url) => ({ default_api_key: 'k', endpoint: url }),
    messages,
    // A refused key may have been rotated.
    refusals: [400],
    limit: { bytes: 5_000_000 },
  },
  {
    type: 'monitor_c_logs',
    options: (url) => ({ token: 't', endpoint: url }),
    messages,
  },
  {
    type: 'observability_d',
    way: 'logs',
    options: (url) => ({ api: 'logs', license_key: 'k', override_uri: url }),
    messages,
    limit: { bytes: 1_000_000, options: { ...largeBatches, compression: 'none' } },
  },
  {
    type: 'observability_d',
    way: 'events',
    options: (url) => ({ api: 'events', account_id: '1', license_key: 'k', override_uri: url }),
    messages,
    limit: { bytes: 1_000_000, options: { ...largeBatches, compression: 'none' } },
  },
  {
    type: 'siem_unstructured',
    options: (url) => ({
      customer_id: 'c8c65bfa-5f2c-42d4-9189-64bb7b939f2c',
      log_type: 'T',
      api_key: 'k',
      endpoint: url,
      encoding: { codec: 'text' },
      compression: 'gzip',
    }),
    messages,
    limit: { bytes: 1_000_000, options: largeBatches },
  },
])
