// Every option that a mapping lists changes the Pipeline or gives a gap for some value, so none is listed but ignored.

import { expect, test } from 'vitest'
import { Draft } from '../draft.ts'
import { convertFluentBit } from './convert.ts'
import { filters } from './filters.ts'
import { inputs } from './inputs.ts'
import { outputs } from './outputs.ts'
import { common, matched, tagged } from './plugin.ts'

/** Companion options without which options of a section have no effect, and further ones for single options. */
const base: Readonly<Record<string, readonly string[]>> = {
  tail: ['Path /srv/app.log'],
  nest: ['Operation nest', 'Wildcard a*', 'Nest_under n'],
  parser: ['Key_Name log', 'Parser json'],
  modify: ['Set zz yes'],
  datadog: ['apikey k', 'Host h'],
  splunk: ['splunk_token t'],
  azure: ['customer_id c', 'shared_key c2hhcmVk'],
  logdna: ['api_key k'],
  chronicle: ['customer_id c8c65bfa-5f2c-42d4-9189-64bb7b939f2c', 'log_type t'],
}
const besides: Readonly<Record<string, readonly string[]>> = {
  'grep logical_op': ['Exclude a b', 'Exclude c d'],
  'nest nested_under': ['Operation lift'],
  'kubernetes merge_log_key': ['Merge_Log On'],
  'kubernetes keep_log': ['Merge_Log On'],
  'kubernetes k8s-logging.parser': ['Merge_Log On'],
  'loki http_passwd': ['HTTP_User u'],
  'es http_passwd': ['HTTP_User u'],
  'opensearch http_passwd': ['HTTP_User u'],
  'splunk http_passwd': ['HTTP_User u'],
  'http http_passwd': ['HTTP_User u'],
  'kafka-rest http_passwd': ['HTTP_User u'],
  'es logstash_prefix': ['Logstash_Format On'],
  'es logstash_dateformat': ['Logstash_Format On'],
  'opensearch logstash_prefix': ['Logstash_Format On'],
  'tail parser_firstline': ['Multiline On'],
  'tail docker_mode_flush': [
    ...['Tag s', '[PARSER]', 'Name docker-line', 'Format regex', 'Regex "log":"(?<log>a.*)"'],
    ...['[INPUT]', 'Name tail', 'Tag t', 'Path /var/log/containers/*.log', 'Docker_Mode_Parser docker-line'],
  ],
  ...Object.fromEntries(
    ['multiline_flush', ...Array.from({ length: 9 }, (_, index) => `parser_${index + 1}`)].map((option) => [
      `tail ${option}`,
      ['Multiline On', 'Parser_Firstline nginx'],
    ]),
  ),
  'datadog tag_key': ['Include_Tag_Key On'],
  'kafka-rest tag_key': ['Include_Tag_Key On'],
  'file template': ['Format template'],
  'file delimiter': ['Format csv'],
  'file label_delimiter': ['Format ltsv'],
  ...Object.fromEntries(
    ['es', 'opensearch'].flatMap((name) => [
      [`${name} tag_key`, ['Include_Tag_Key On']],
      ...['aws_region', 'aws_service_name', 'aws_role_arn', 'aws_external_id', 'aws_profile'].map((option) => [
        `${name} ${option}`,
        ['AWS_Auth On', ...(option === 'aws_external_id' ? ['AWS_Role_ARN arn:aws:iam::1:role/logs'] : [])],
      ]),
      [`${name} current_time_index`, ['Logstash_Format On']],
    ]),
  ),
  ...Object.fromEntries(
    ['es', 'opensearch'].flatMap((name) =>
      ['logstash_prefix_key', 'logstash_prefix_separator'].map((option) => [
        `${name} ${option}`,
        ['Logstash_Format On'],
      ]),
    ),
  ),
  'opensearch logstash_dateformat': ['Logstash_Format On'],
  'kubernetes merge_parser': ['Merge_Log On'],
  'kubernetes merge_log_trim': ['Merge_Log On'],
}
const values = [
  '1M',
  'On',
  'Off',
  '17',
  'x',
  '/srv/other.log',
  'a b',
  'a = b',
  'java',
  'key_value',
  'gzip',
  'lift',
  'or',
  'key_exists a',
  'epoch',
  'put',
  'space',
  'a b string',
  '{"n":1}',
  'demo:aG9zdC5pbyRhYmM=',
  '0b0f8e5c-1d5c-4a0e-9c5e-0d7f0a1b2c3d',
]

function converted(kind: string, name: string, lines: readonly string[]): string {
  const rest = { INPUT: 'FILTER OUTPUT', FILTER: 'INPUT OUTPUT', OUTPUT: 'INPUT' }[kind]?.split(' ') ?? []
  const others = { INPUT: 'tail\n    Path /srv/app.log\n    Tag t', FILTER: 'grep', OUTPUT: 'null' } as const
  const section = (of: string, text: string) => `[${of}]\n    Name ${text}\n${of === 'INPUT' ? '' : '    Match *\n'}`
  const own = `${section(kind, name)}${lines.map((line) => `    ${line}\n`).join('')}`
  const text = ['INPUT', 'FILTER', 'OUTPUT']
    .map((of) => (of === kind ? own : rest.includes(of) ? section(of, others[of as keyof typeof others]) : ''))
    .join('')
  const draft = new Draft()
  convertFluentBit([{ file: 'f.conf', text }], () => [], draft)
  return `${draft.document({ name: 'x' })}${draft.gaps.map(({ subject, reason }) => `${subject}: ${reason}`).join('\n')}`
}

const listed = [
  ...inputs.map((plugin) => ({ kind: 'INPUT', plugin })),
  ...filters.map((plugin) => ({ kind: 'FILTER', plugin })),
  ...outputs.map((plugin) => ({ kind: 'OUTPUT', plugin })),
].flatMap(({ kind, plugin: { name, options } }) =>
  Object.keys(options)
    // Names and tags affect the chain, not a component.
    .filter((option) => !Object.hasOwn({ ...common, ...matched, ...tagged }, option))
    .map((option) => ({ kind, name, option })),
)

test.each(listed)('$name: $option has an effect', ({ kind, name, option }) => {
  const before = [...(base[name] ?? []), ...(besides[`${name} ${option}`] ?? [])]
  const without = converted(kind, name, before)
  const changing = values.filter((value) => converted(kind, name, [...before, `${option} ${value}`]) !== without)
  expect(changing).not.toEqual([])
})

const needless = [...inputs, ...filters, ...outputs].flatMap(({ name, options, itself = {} }) =>
  Object.keys(itself).map((option) => ({ name, option, isRead: Object.hasOwn(options, option) })),
)
test.each(needless)('$name: $option is in only one list', ({ isRead }) => expect(isRead).toBe(false))
