// Options of other Vector versions: they get their current name, or become a gap that names the alternative. The output passes lint.

import { otherOptions } from '@penstock/agent/config'
import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { converted, lint } from '../../testing/conversions.ts'
import { convertVector } from './convert.ts'

type Table = Readonly<Record<string, unknown>>

const file = { type: 'file', include: ['/srv/x.log'] }
const http = { type: 'http', inputs: ['in'], uri: 'http://out', encoding: { codec: 'json' } }
const fileSink = { type: 'file', inputs: ['in'], path: '/tmp/out', encoding: { codec: 'json' } }
const byType: Readonly<Record<string, Table>> = {
  file,
  tag_cardinality_limit: { type: 'tag_cardinality_limit', inputs: ['metrics'] },
  search_engine: { type: 'elasticsearch', inputs: ['in'] },
  cloud_monitor_logs: {
    type: 'azure_monitor_logs',
    inputs: ['in'],
    customer_id: 'c',
    shared_key: 'c2VjcmV0',
    log_type: 'T',
  },
  logsvc_a: { type: 'mezmo', inputs: ['in'], api_key: 'k', hostname: 'h' },
  logsvc_a_old: { type: 'logdna', inputs: ['in'], api_key: 'k', hostname: 'h' },
  monitor_a_logs: { type: 'datadog_logs', inputs: ['in'], default_api_key: 'k' },
  monitor_c_logs: { type: 'sematext_logs', inputs: ['in'], token: 't', region: 'us' },
  observability_d: { type: 'new_relic', inputs: ['in'], account_id: '1', license_key: 'k', api: 'logs' },
  demo_logs: { type: 'demo_logs', format: 'json' },
  orchestrator_logs: { type: 'kubernetes_logs' },
  monitor_a_metrics: { type: 'datadog_metrics', inputs: ['metrics'], default_api_key: 'k' },
  monitor_c_metrics: { type: 'sematext_metrics', inputs: ['metrics'], default_namespace: 'n', token: 't' },
  remote_write_metrics: { type: 'prometheus_remote_write', inputs: ['metrics'], endpoint: 'http://out/api' },
  tsdb_metrics: {
    type: 'influxdb_metrics',
    inputs: ['metrics'],
    endpoint: 'http://out',
    org: 'o',
    bucket: 'b',
    token: 't',
  },
}
const required: Readonly<Record<string, Table>> = {
  search_engine: { endpoints: ['http://out:9200'] },
}
/** Other options that the configuration needs. */
const beside: Readonly<Record<string, Table>> = {
  multi_line_timeout: { multiline: { start_pattern: '^a', condition_pattern: '^a', mode: 'halt_before' } },
  'fingerprint.ignored_header_bytes': { fingerprint: { strategy: 'checksum' } },
  'fingerprint.fingerprint_bytes': { fingerprint: { strategy: 'checksum' } },
  'fingerprint.bytes': { fingerprint: { strategy: 'checksum' } },
  'buffer.num_items': { buffer: { type: 'memory' } },
  'buffer.type': { buffer: { max_size: 300_000_000 } },
}
const usual = { source: file, transform: undefined, sink: http } as const

function withOption(table: Table, path: string, value: unknown): Record<string, unknown> {
  const [name = '', ...below] = path.split('.')
  if (below.length === 0) return { ...table, [name]: value }
  return { ...table, [name]: withOption((table[name] ?? {}) as Table, below.join('.'), value) }
}

const rows = otherOptions.flatMap((row) =>
  row.kind === 'global' ? [] : (row.types ?? ['']).map((type) => ({ row, kind: row.kind, type })),
)

test.each(
  rows.map((each) => [`${each.kind} ${each.type} ${each.row.path} ${JSON.stringify(each.row.example)}`, each] as const),
)('%s', async (_, { row, kind, type }) => {
  const { path, example, instead, rewrite, differs } = row
  const rewritten = rewrite?.(example)
  const known = kind === 'sink' && type === 'file' ? fileSink : byType[type]
  const own = (type === '' ? usual[kind as 'source' | 'sink'] : known) as Table
  // No other component may need the outputs of the replacement.
  const missing = Object.entries(required[type] ?? {}).filter(([name]) => !Object.hasOwn(rewritten ?? {}, name))
  const tried = withOption({ ...own, ...Object.fromEntries(missing), ...beside[path] }, path, example)
  const config = {
    sources: { in: file, metrics: { type: 'internal_metrics' } },
    transforms: {},
    sinks: { rest: { type: 'blackhole', inputs: ['in', 'metrics', ...(kind === 'sink' ? [] : ['tried'])] } },
  }
  const text = stringify({ ...config, [`${kind}s`]: { ...config[`${kind}s` as keyof typeof config], tried } })
  const { document, gaps, resource } = converted(convertVector, [{ file: 'vector.yaml', text }])

  const isSame = rewritten !== undefined && differs === undefined
  const name = path.split('.').at(-1) ?? ''
  const line = text.split('\n').findLastIndex((found) => new RegExp(`^\\s+${name}:`).test(found)) + 1
  expect(gaps.map(({ subject, nearest, line: at, isReplaced }) => [subject, nearest, at, isReplaced === true])).toEqual(
    [[`tried: ${path}`, instead, line, isSame]],
  )
  const entries: { name: string; config?: Table }[] = resource.spec[`${kind}s`]
  const made = entries.find((entry) => entry.name === 'tried')?.config ?? {}
  expect(made).toMatchObject(rewritten ?? {})
  if (!path.includes('.') && rewritten?.[path] === undefined && path !== 'encoding')
    expect(made).not.toHaveProperty(path)
  const problems = await lint(String(document))
  expect(problems.filter((problem) => !problem.includes('is deprecated'))).toEqual([])
})

test('multiline with an expression and its own timeout', () => {
  const text = stringify({
    sources: { in: { ...file, message_start_indicator: '^\\d', multi_line_timeout: 250 } },
    sinks: { out: { type: 'blackhole', inputs: ['in'] } },
  })
  const { resource, gaps } = converted(convertVector, [{ file: 'vector.yaml', text }])
  expect(gaps.map(({ isReplaced }) => isReplaced)).toEqual([true, true])
  expect(resource.spec.sources[0].config.multiline).toEqual({
    start_pattern: '^\\d',
    condition_pattern: '^\\d',
    mode: 'halt_before',
    timeout_ms: 250,
  })
})
