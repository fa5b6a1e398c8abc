// Headers from dedicated options: `request.headers` never replaces them. An owner who enforces a tenant or an account by such an
// option can leave the other headers to other users (T13).

import { expect, test } from 'vitest'
import { fakeDestination } from '../testing/destination.ts'
import { log, metric } from '../testing/events.ts'
import { startSink } from '../testing/harness.ts'

const count = metric('m', { type: 'counter', value: 1 })

test.each([
  {
    type: 'log_aggregator',
    own: { tenant_id: 'owner', labels: { a: 'b' }, encoding: { codec: 'json' } },
    header: 'X-Scope-OrgID',
    sent: 'owner',
  },
  { type: 'remote_write_metrics', own: { tenant_id: 'owner' }, header: 'X-Scope-OrgID', sent: 'owner' },
  { type: 'monitor_a_logs', own: { default_api_key: 'owner' }, header: 'DD-API-KEY', sent: 'owner' },
  { type: 'monitor_a_metrics', own: { default_api_key: 'owner' }, header: 'DD-API-KEY', sent: 'owner' },
  { type: 'observability_d', own: { license_key: 'owner', api: 'logs' }, header: 'Api-Key', sent: 'owner' },
  {
    type: 'tsdb_metrics',
    own: { org: 'o', bucket: 'b', token: 'owner' },
    header: 'Authorization',
    sent: 'Token owner',
  },
])('$type sends $header as its own option says', async ({ type, own, header, sent }) => {
  await using destination = await fakeDestination(202)
  const place = type === 'observability_d' ? 'override_uri' : 'endpoint'
  await using sink = await startSink(type, {
    ...own,
    [place]: destination.url,
    request: { headers: { [header]: 'other', [header.toLowerCase()]: 'other' } },
  })

  await sink.deliver([type.includes('metrics') ? count : log({ message: 'm' })])

  expect(destination.requests.map(({ headers }) => headers[header.toLowerCase()])).toEqual([sent])
})
