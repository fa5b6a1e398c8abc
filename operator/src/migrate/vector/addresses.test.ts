// Addresses of sinks: forms that Vector completes, names of other versions, and variables in their parts.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of the old agent are meant

import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { converted, lint } from '../../testing/conversions.ts'
import { convertVector } from './convert.ts'

const convert = (sink: object) =>
  converted(convertVector, [
    {
      file: 'v.yaml',
      text: stringify({
        sources: { d: { type: 'demo_logs', format: 'json' } },
        sinks: { s: { inputs: ['d'], ...sink } },
      }),
    },
  ])
const missing = ({ gaps }: ReturnType<typeof convert>) =>
  gaps.filter(({ isReplaced }) => isReplaced !== true).map(({ subject, reason }) => `${subject}: ${reason}`)

const table = { type: 'clickhouse', table: 't' }
const insert = (database: string, name: string) =>
  `input_format_import_nested_json=1&query=INSERT%%20INTO%%20%%22${database}%%22.%%22${name}%%22%%20FORMAT%%20JSONEachRow`

test.each([
  ['an address without a scheme', { ...table, endpoint: 'ch:8123' }, `http://ch:8123/?${insert('default', 't')}`],
  ['the old name of the address', { ...table, host: 'http://ch:8123' }, `http://ch:8123/?${insert('default', 't')}`],
  [
    'variables in names',
    { ...table, endpoint: 'http://ch:8123', database: '${DB}', table: 'logs_$ENV' },
    `http://ch:8123/?${insert('SECRET[env.DB]', 'logs_SECRET[env.ENV]')}`,
  ],
  [
    'names with quotes',
    { ...table, endpoint: 'http://ch:8123', table: 'a"b' },
    `http://ch:8123/?${insert('default', 'a%%5C%%22b')}`,
  ],
  [
    'further parameters of the query',
    { ...table, endpoint: 'http://ch:8123', extra_query_params: { insert_quorum: '2', session: 'a b' } },
    `http://ch:8123/?input_format_import_nested_json=1&insert_quorum=2&session=a%%20b&${insert('default', 't').replace(/^[^&]*&/, '')}`,
  ],
  ['http', { type: 'http', uri: 'collector:8080/in', encoding: { codec: 'json' } }, 'http://collector:8080/in'],
  [
    'Splunk',
    { type: 'splunk_hec_logs', host: 'https://s:8088', token: 'x', encoding: { codec: 'json' } },
    'https://s:8088/services/collector/event',
  ],
])('the address of a sink that becomes `http`: %s', async (_, sink, uri) => {
  const found = convert(sink)
  expect(missing(found)).toEqual([])
  expect(found.resource.spec.sinks[0].config.uri).toBe(uri)
  expect(await lint(found.document.toString({ lineWidth: 0 }))).toEqual([])
})

test('Loki: an address without a scheme, but not the value of a variable', () => {
  const loki = { type: 'loki', labels: { a: 'b' }, encoding: { codec: 'json' } }
  const addressOf = (endpoint: string) => convert({ ...loki, endpoint }).resource.spec.sinks[0].config.endpoint
  expect(addressOf('loki:3100')).toBe('http://loki:3100')
  expect(addressOf('https://loki')).toBe('https://loki')
  expect(addressOf('${LOKI}')).toBe('SECRET[env.LOKI]')
})

test.each([
  [{}, 'https://api.axiom.co/v1/datasets/logs/ingest'],
  [{ url: 'https://api.eu.axiom.co/' }, 'https://api.eu.axiom.co/v1/datasets/logs/ingest'],
  [{ url: 'https://proxy/in' }, 'https://proxy/in'],
  [{ region: 'mumbai.axiom.co' }, 'https://mumbai.axiom.co/v1/ingest/logs'],
])('Axiom receives lines of JSON: %o', async (options, uri) => {
  const found = convert({ type: 'axiom', token: '${TOKEN}', dataset: 'logs', org_id: 'o', ...options })
  expect(missing(found)).toEqual([])
  expect(found.resource.spec.sinks[0]).toMatchObject({
    type: 'http',
    config: {
      uri,
      compression: 'zstd',
      auth: { strategy: 'bearer', token: 'SECRET[env.TOKEN]' },
      encoding: { codec: 'json' },
      framing: { method: 'newline_delimited' },
      request: { headers: { 'X-Axiom-Org-Id': 'o' } },
    },
  })
  expect(await lint(found.document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  ['format', { ...table, endpoint: 'http://ch', format: 'arrow_stream' }, 'its value has no counterpart'],
  ['table', { type: 'clickhouse', endpoint: 'http://ch' }, 'the option is missing'],
  [
    'index',
    { type: 'splunk_hec_logs', endpoint: 'http://s', default_token: 'x', index: 'a-%Y', encoding: { codec: 'json' } },
    'its value has no counterpart',
  ],
])('the row names the option without a counterpart: %s', (name, sink, reason) => {
  expect(missing(convert(sink))[0]).toContain(`s: ${name}: ${reason}`)
})
