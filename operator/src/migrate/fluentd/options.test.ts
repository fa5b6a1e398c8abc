// biome-ignore-all lint/suspicious/noTemplateCurlyInString: placeholders of Fluentd are meant
// Each option that a table lists has an effect on the Pipeline, or causes a report.

import { expect, test } from 'vitest'
import { Draft } from '../draft.ts'
import { convertFluentd } from './convert.ts'
import { filters } from './filters.ts'
import { always, common, inputs } from './inputs.ts'
import { outputs } from './outputs.ts'

/** Sets of options, in one of which an option has an effect. */
const typed = ['regexp', 'csv', 'ltsv', 'grok', 'multiline', 'json', 'syslog', 'none'].map((type) => [
  `parse.@type ${type}`,
  'parse.expression /^(?<a>\\S+) (?<time>.*)$/',
  'parse.keys a,time',
  'parse.time_format %H:%M',
  'parse.grok_pattern %{WORD:a}',
])
const parsers = [...typed, ...typed.map((lines) => lines.filter((line) => !line.includes('time_format')))]
const inOldSyntax = (lines: readonly string[]) =>
  lines.map((line) => line.replace(/^parse\.@?/, '').replace(/^type/, 'format'))
const files = ['path /srv/app.log', 'tag t']
const pods = ['path /var/log/containers/*.log', 'tag t.*', 'parse.@type cri']
const search = ['host h', 'logstash_format true', 'user u']
const formats = ['csv', 'tsv', 'ltsv', 'single_value']
const formatted = formats.flatMap((type) => [
  [`format.@type ${type}`, 'format.fields a,b', 'format.keys a,b'],
  [`format ${type}`, 'fields a,b', 'keys a,b'],
])
const records = ['record.a ${x}', 'record.b ${record["c"]}', 'remove_keys c']
const bases: Readonly<Record<string, readonly (readonly string[])[]>> = {
  tail: [
    files,
    [...pods, 'parse.parse.keys a'],
    ...parsers.map((lines) => [...files, ...lines]),
    ...parsers.map((lines) => [...files, ...inOldSyntax(lines)]),
    pods,
    ...parsers.map((lines) => [...pods, ...lines.map((line) => `parse.${line}`)]),
  ],
  sample: [['tag t']],
  dummy: [['tag t']],
  record_transformer: [records, [...records, 'renew_record true'], []],
  record_modifier: [records, [...records, 'renew_record true'], []],
  kubernetes_metadata: [['merge_json_log true'], ['de_dot true', 'de_slash true']],
  parser: [[], ['format regexp'], ['format /^(?<time>.*)$/']].concat(
    parsers.flatMap((lines) => [[...lines], inOldSyntax(lines), [...lines, 'reserve_data true']]),
  ),
  elasticsearch_genid: [[], ['use_record_as_seed true']],
  file: [[], ['include_time_key true'], ...formatted],
  http: [[], ['endpoint http://h/', 'auth.username u'], ...formatted],
  out_http: [[], ['endpoint http://h/', 'auth.username u'], ...formatted],
  loki: [['url http://h', 'username u']],
  ...Object.fromEntries(
    outputs
      .filter(({ name }) => /search/.test(name))
      .map(({ name }) => [name, [search, ['endpoint.url https://h/'], [...search, 'time_key at']]] as const),
  ),
  splunk_hec: [
    ['hec_host h', 'hec_token t'],
    ['host_key a', 'format.@type single_value'],
  ],
  splunk: [
    ['hec_host h', 'hec_token t'],
    ['host_key a', 'format.@type single_value'],
  ],
  'azure-loganalytics': [['customer_id c', 'shared_key c2VjcmV0', 'log_type Abc']],
  rename_key: [['rename_rule1 a b']],
  datadog: [['api_key k'], ['api_key k', 'include_tag_key true'], ['api_key k', 'use_ssl false']],
}
/** Options that work together with another one. */
const besides: Readonly<Record<string, readonly string[]>> = {
  'buffer.total_limit_size': ['buffer.@type file'],
  'inject.time_format': ['inject.time_key t'],
  'inject.time_type': ['inject.time_key t'],
  'inject.hostname': ['inject.hostname_key h'],
  tag_key: ['include_tag_key true'],
  tag_field_name: ['add_tag_field true'],
  ...Object.fromEntries(
    ['', 'parse.', 'parse.parse.'].flatMap((prefix) => [
      [`${prefix}time_format_fallbacks`, [`${prefix}time_type mixed`]],
      [`${prefix}rfc5424_time_format`, [`${prefix}message_format rfc5424`]],
    ]),
  ),
}

/** Options that select elements, names, or lists of elements, which have tests of their own. */
const apart: ReadonlySet<string> = new Set([
  ...Object.keys(common),
  ...Object.keys(always),
  ...[
    'tag',
    'parse',
    'parse.grok',
    'grok',
    'parse.parse.grok',
    'record',
    'replace',
    'regexp',
    'exclude',
    'and',
    'or',
    'label',
    'fields',
    'format',
  ],
])

const values = [
  'true',
  'false',
  '17',
  'x',
  'a b',
  '/x/',
  '/srv/other.log',
  '["a","b"]',
  '{"a":"b"}',
  'json',
  'none',
  'gzip',
  'file',
  'string',
  'float',
  'best_speed',
  'put',
  'http',
  'https',
  'single_value',
  '5s',
  'http://other:80/',
  '%d',
  'a:integer',
  'latin1',
  'rfc5424',
]

/** Lines of an element. A name with a period is that of an inner element and an option in it. */
function written(lines: readonly string[]): string {
  const groups = new Map<string, string[]>()
  const own: string[] = []
  for (const line of lines) {
    const [, name, rest] = /^([a-z]+)\.(\S+ .*)$/s.exec(line) ?? []
    if (name === undefined || rest === undefined) own.push(line)
    else groups.set(name, [...(groups.get(name) ?? []), rest])
  }
  const elements = [...groups].map(([name, inner]) => `<${name}>\n${written(inner)}</${name}>\n`)
  return `${own.join('\n')}\n${elements.join('')}`
}

function converted(kind: string, name: string, lines: readonly string[]): string {
  const of = (wanted: string, other: string) =>
    kind === wanted ? `@type ${name}\n${written(lines)}` : `@type ${other}\n`
  const source = of('source', 'sample\ntag t')
  const filter = kind === 'filter' ? `<filter **>\n${of('filter', '')}</filter>\n` : ''
  const text = `<source>\n${source}</source>\n${filter}<match **>\n${of('match', 'null')}</match>\n`
  const draft = new Draft()
  convertFluentd([{ file: 'fluent.conf', text }], () => [], draft)
  return `${draft.document({ name: 'x' })}${draft.gaps.map(({ subject, reason }) => `${subject}: ${reason}`).join('\n')}`
}

const listed = [
  ...inputs.map((plugin) => ({ kind: 'source', plugin })),
  ...filters.map((plugin) => ({ kind: 'filter', plugin })),
  ...outputs.map((plugin) => ({ kind: 'match', plugin })),
].flatMap(({ kind, plugin: { name, options } }) =>
  Object.keys(options)
    .filter((option) => !apart.has(option))
    .map((option) => ({ kind, name, option })),
)

test.each(listed)('$name: $option has an effect', ({ kind, name, option }) => {
  const isEffective = (bases[name] ?? [[]]).some((base) => {
    const before = [...base.filter((line) => !line.startsWith(`${option} `)), ...(besides[option] ?? [])]
    const without = converted(kind, name, before)
    return values.some((value) => converted(kind, name, [...before, `${option} ${value}`]) !== without)
  })
  expect(isEffective).toBe(true)
})
