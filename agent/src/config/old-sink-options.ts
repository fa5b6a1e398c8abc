// Options of sinks in old versions, whose values are below `request`, `batch` and `healthcheck` now.

import { isTable } from '../schema/walk.ts'
import type { OptionTable, OtherOption } from './other-option.ts'

const isText = (value: unknown) => typeof value === 'string'
const nothing = () => ({})

/** Sinks whose batches had a limit of events; the limit of all others was in bytes. */
const metricSinks = ['monitor_a_metrics', 'monitor_c_metrics', 'remote_write_metrics', 'tsdb_metrics']

/** A table with a value at a path of two names. */
const at = (path: string, value: unknown): OptionTable => {
  const [outer = '', inner = ''] = path.split('.')
  return { [outer]: { [inner]: value } }
}

/** Options that have another path now. */
const moved: Readonly<Record<string, string>> = {
  batch_timeout: 'batch.timeout_secs',
  'request.in_flight_limit': 'request.concurrency',
  request_in_flight_limit: 'request.concurrency',
  request_timeout_secs: 'request.timeout_secs',
  request_rate_limit_duration_secs: 'request.rate_limit_duration_secs',
  request_rate_limit_num: 'request.rate_limit_num',
  request_retry_attempts: 'request.retry_attempts',
  request_retry_backoff_secs: 'request.retry_initial_backoff_secs',
  rate_limit_duration: 'request.rate_limit_duration_secs',
  rate_limit_num: 'request.rate_limit_num',
  retry_attempts: 'request.retry_attempts',
  retry_backoff_secs: 'request.retry_initial_backoff_secs',
  'buffer.num_items': 'buffer.max_events',
}

export const oldSinkOptions: readonly OtherOption[] = [
  ...Object.entries(moved).map(
    ([path, now]): OtherOption => ({
      kind: 'sink',
      path,
      example: 5,
      instead: `Write \`${now}\`.`,
      rewrite: (value) => at(now, value),
    }),
  ),
  ...['batch.max_size', 'batch_size'].flatMap((path): OtherOption[] => [
    {
      kind: 'sink',
      types: metricSinks,
      path,
      example: 20,
      instead: 'Write `batch.max_events`.',
      rewrite: (value) => at('batch.max_events', value),
    },
    {
      kind: 'sink',
      path,
      example: 1_000_000,
      instead: 'Write `batch.max_bytes`.',
      rewrite: (value) => at('batch.max_bytes', value),
    },
  ]),
  {
    kind: 'sink',
    path: 'healthcheck_uri',
    example: 'http://other/health',
    instead: 'Write `healthcheck: {uri: ADDRESS}`.',
    rewrite: (value) => (isText(value) ? { healthcheck: { uri: value } } : undefined),
  },
  {
    kind: 'sink',
    path: 'headers',
    example: { 'x-team': 'ops' },
    instead: 'Write `request: {headers: …}`.',
    rewrite: (value) => (isTable(value) ? { request: { headers: value } } : undefined),
  },
  {
    kind: 'sink',
    path: 'basic_auth',
    example: { user: 'u', password: 'p' },
    instead: 'Write `auth: {strategy: basic, user: …, password: …}`.',
    rewrite: (value) => (isTable(value) ? { auth: { strategy: 'basic', ...value } } : undefined),
  },
  {
    kind: 'sink',
    path: 'tls.min_tls_version',
    example: 'VersionTLS12',
    when: (value) => isText(value) && /^VersionTLS1[012]$/.test(String(value)),
    instead: 'Remove this option: the sink uses at least TLS 1.2.',
    rewrite: nothing,
  },
  {
    kind: 'sink',
    path: 'tls.min_tls_version',
    example: 'VersionTLS13',
    instead: 'Remove this option, and let the destination require the version.',
    rewrite: nothing,
    differs: 'the sink also uses TLS 1.2',
  },
  {
    kind: 'sink',
    path: 'tls.ciphersuites',
    example: 'TLS_AES_128_GCM_SHA256',
    instead: 'Remove this option, and let the destination choose the ciphers.',
    rewrite: nothing,
    differs: 'the sink offers the default ciphers of its TLS library',
  },
]
