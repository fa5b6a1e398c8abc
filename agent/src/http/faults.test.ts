// Failures between a sink and its destination, tested with sinks that work with any destination.

import type { RecordedRequest } from '../testing/destination.ts'
import { testFaults } from '../testing/sink-faults.ts'

testFaults([
  {
    type: 'http',
    options: (url: string) => ({ uri: url, encoding: { codec: 'json' } }),
    messages: (request: RecordedRequest) => (request.json() as { message: string }[]).map((event) => event.message),
  },
  {
    type: 'log_aggregator',
    options: (url: string) => ({
      endpoint: url,
      labels: { a: 'b' },
      encoding: { codec: 'text' },
      compression: 'snappy',
      out_of_order_action: 'accept', // several requests at a time
    }),
    messages: (request: RecordedRequest) => request.text().match(/m\d+/g) ?? [],
  },
  {
    type: 'log_aggregator',
    way: 'as JSON',
    options: (url: string) => ({
      endpoint: url,
      labels: { a: 'b' },
      encoding: { codec: 'json' },
      tenant_id: 't',
      out_of_order_action: 'accept',
    }),
    messages: (request: RecordedRequest) => request.text().match(/m\d+/g) ?? [],
  },
  {
    type: 'search_engine',
    way: 'data streams',
    options: (url: string) => ({ endpoints: [url], api_version: 'v8', mode: 'data_stream' }),
    messages: (request: RecordedRequest) =>
      (request.lines() as { message?: string }[]).flatMap(({ message }) => message ?? []),
  },
  {
    type: 'search_engine',
    options: (url: string) => ({ endpoints: [url], api_version: 'v8', compression: 'gzip' }),
    messages: (request: RecordedRequest) =>
      (request.lines() as { message?: string }[]).flatMap(({ message }) => message ?? []),
  },
])
