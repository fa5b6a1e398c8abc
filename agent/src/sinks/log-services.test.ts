// What can go wrong between the sinks of log services and their destinations: the shared table, for each of them.

import type { RecordedRequest } from '../testing/destination.ts'
import { testFaults } from '../testing/sink-faults.ts'

/** The messages in the text of a body, whatever its form. */
const messages = (request: RecordedRequest): string[] => request.text().match(/m\d(?=\\?")/g) ?? []

testFaults([
  {
    type: 'cloud_monitor_logs',
    options: (url) => ({ customer_id: 'c', shared_key: 'c2VjcmV0', log_type: 'T', host: url }),
    messages,
  },
  {
    type: 'logsvc_a',
    options: (url) => ({ api_key: 'k', hostname: 'h', endpoint: url }),
    messages,
  },
  {
    type: 'logsvc_b_logs',
    options: (url) => ({ token: 't', endpoint: url, encoding: { codec: 'json' }, compression: 'gzip' }),
    messages,
  },
  {
    type: 'monitor_a_logs',
    options: (url) => ({ default_api_key: 'k', endpoint: url }),
    messages,
    // A key that is refused may have been rotated.
    refusals: [400],
  },
  {
    type: 'monitor_c_logs',
    options: (url) => ({ token: 't', endpoint: url }),
    messages,
  },
  {
    type: 'observability_d',
    options: (url) => ({ api: 'logs', license_key: 'k', override_uri: url }),
    messages,
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
  },
])
