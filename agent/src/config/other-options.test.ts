// For each row of the table, the agent rejects the option at its place and reports the replacement.

import { expect, test } from 'vitest'
import { loadConfigObject } from './load.ts'
import { type OtherOption, otherOptions } from './other-options.ts'

const source = { type: 'file', include: ['/tmp/x.log'] }
const fileSink = { type: 'file', inputs: ['in'], path: '/tmp/out', encoding: { codec: 'json' } }
/** Valid components, by type. */
const components: Readonly<Record<string, Record<string, unknown>>> = {
  file: { ...source, fingerprint: { strategy: 'checksum' } },
  tag_cardinality_limit: { type: 'tag_cardinality_limit', inputs: ['metrics'] },
  http: { type: 'http', inputs: ['in'], uri: 'http://out', encoding: { codec: 'json' } },
  cloud_monitor_logs: {
    type: 'cloud_monitor_logs',
    inputs: ['in'],
    customer_id: 'c',
    shared_key: 'c2VjcmV0',
    log_type: 'T',
  },
  logsvc_a: { type: 'logsvc_a', inputs: ['in'], api_key: 'k', hostname: 'h' },
  logsvc_a_old: { type: 'logsvc_a_old', inputs: ['in'], api_key: 'k', hostname: 'h' },
  monitor_a_logs: { type: 'monitor_a_logs', inputs: ['in'], default_api_key: 'k' },
  monitor_c_logs: { type: 'monitor_c_logs', inputs: ['in'], token: 't', region: 'us' },
  observability_d: { type: 'observability_d', inputs: ['in'], account_id: '1', license_key: 'k', api: 'logs' },
  demo_logs: { type: 'demo_logs', format: 'json' },
  orchestrator_logs: { type: 'orchestrator_logs', self_node_name: 'n' },
  monitor_a_metrics: { type: 'monitor_a_metrics', inputs: ['metrics'], default_api_key: 'k' },
  monitor_c_metrics: { type: 'monitor_c_metrics', inputs: ['metrics'], default_namespace: 'n', token: 't' },
  remote_write_metrics: { type: 'remote_write_metrics', inputs: ['metrics'], endpoint: 'http://out/api' },
  tsdb_metrics: {
    type: 'tsdb_metrics',
    inputs: ['metrics'],
    endpoint: 'http://out',
    org: 'o',
    bucket: 'b',
    token: 't',
  },
  search_engine: { type: 'search_engine', inputs: ['in'], endpoints: ['http://out:9200'] },
}
const defaultTypes = { source: 'file', transform: 'tag_cardinality_limit', sink: 'http', global: '' } as const

const componentOf = (kind: string, type: string) =>
  (kind === 'sink' && type === 'file' ? fileSink : components[type]) ?? {}

function withOption(table: Readonly<Record<string, unknown>>, path: string, value: unknown): Record<string, unknown> {
  const [name = '', ...below] = path.split('.')
  if (below.length === 0) return { ...table, [name]: value }
  return { ...table, [name]: withOption((table[name] ?? {}) as Record<string, unknown>, below.join('.'), value) }
}

const base = {
  data_dir: '/tmp',
  sources: { in: source, metrics: { type: 'internal_metrics' } },
  transforms: {},
  sinks: { rest: { type: 'blackhole', inputs: ['in', 'metrics'] } },
  enrichment_tables: { table: { type: 'memory', inputs: ['in'] } },
}

const rows = otherOptions.flatMap((row) => (row.types ?? [defaultTypes[row.kind]]).map((type) => ({ row, type })))
const name = ({ row, type }: { row: OtherOption; type: string }) =>
  `${row.kind} ${type} ${row.path}: ${JSON.stringify(row.example)}`

test.each(rows.map((each) => [name(each), each] as const))('%s', (_, { row, type }) => {
  const { kind, example, instead, when } = row
  const path = row.path.replace('*', 'table')
  expect(when?.(example) ?? true).toBe(true)
  expect(instead).toMatch(/^[A-Z].*\.$/)
  const place = kind === 'global' ? path : `${kind}s.tried.${path}`
  const given =
    kind === 'global'
      ? withOption(base, path, example)
      : { ...base, [`${kind}s`]: { ...base[`${kind}s`], tried: withOption(componentOf(kind, type), path, example) } }
  const loaded = loadConfigObject(given)
  expect(loaded.ok).toBe(false)
  const found = loaded.ok ? [] : loaded.problems.filter((problem) => problem.path.startsWith(place))
  expect(found.map(({ help }) => help)).toContain(instead)
  // Without the option, the configuration is valid.
  const plain =
    kind === 'global' ? base : { ...base, [`${kind}s`]: { ...base[`${kind}s`], tried: componentOf(kind, type) } }
  const usable = loadConfigObject(plain)
  expect(usable.ok ? [] : usable.problems).toEqual([])
})
