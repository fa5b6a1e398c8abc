// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of Filebeat are meant
// Variables in a configuration: environment variables with any name, references to other settings, defaults, and options that read no variable.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFilebeat } from './convert.ts'

const convert = (text: string, namespace?: string) =>
  converted(convertFilebeat, [{ file: 'filebeat.yml', text }], namespace)

const log = 'filebeat.inputs:\n- type: log\n  paths: [/srv/app.log]\n'
const line = { message: 'm', file: '/srv/app.log', timestamp: '2026-02-04T05:06:07Z' }
const fields = (text: string) => `${log}  fields: { a: ${JSON.stringify(text)} }\n  fields_under_root: true\n`
const discard = 'output.discard: {}\n'
const search = (options: string) => `output.elasticsearch: { ${options} }\n`

process.env['penstock_test_region'] = 'eu'
process.env['PenstockTestZone'] = 'b'
process.env['penstock_test_number'] = '8080'
process.env['AGENT_SELF_NODE_NAME'] = 'node-1'

test.each([
  ['${penstock_test_region}-${PenstockTestZone}', 'eu-b'],
  ['${penstock_test_missing:none}', 'none'],
  ['${penstock_test_missing:-none}', '-none'],
  ['${penstock_test_missing:${penstock_test_other:x}}y', 'xy'],
  ['${penstock_test_missing:+set}rest', 'rest'],
  ['${penstock_test_missing:${penstock_test_region}}', 'eu'],
  ['${penstock_test_missing:a-${NODE_NAME}}', 'a-node-1'],
  ['${penstock_test_number}', 8080],
  ['${penstock_test_number}1', 80801],
  ['port ${penstock_test_number}', 'port 8080'],
  ['${penstock_test_missing:true}', true],
  ['${penstock_test_missing:"API Gateway"}', 'API Gateway'],
  ["${penstock_test_missing:'N/A'}", 'N/A'],
])('the text %s in a field', async (text, expected) => {
  const { document, resource } = convert(fields(text) + discard)
  withTest(document, resource, line, { a: expected })
  expect(await lint(document.toString())).toEqual([])
})

test('a variable with a name in lower case is in the Secret, and in the report', async () => {
  const { document, resource, gaps } = convert(
    `${fields('${own_name}')}${search('hosts: ["${es_host}", "${es_url}"], index: "a-${es_stage}", username: "${es_user}", password: "${es_pwd}"')}`,
  )
  expect(resource.spec.sinks[0].config).toMatchObject({
    endpoints: ['http://SECRET[env.es_host]:9200', 'SECRET[env.es_url]'],
    bulk: { index: 'a-SECRET[env.es_stage]' },
    auth: { user: 'SECRET[env.es_user]', password: 'SECRET[env.es_pwd]' },
  })
  expect(gaps.map(({ subject, isReplaced }) => [subject, isReplaced])).toEqual([['fields: a: ${own_name}', true]])
  expect(await lint(document.toString())).toEqual([])
})

test('a namespaced Pipeline reads no variables in programs', () => {
  const { gaps } = convert(
    `filebeat.inputs: [{ type: container, fields: { a: "\${own_name}" }, paths: [/var/log/containers/*.log] }]\n${discard}`,
    'shop',
  )
  expect(gaps.map(({ subject }) => subject)).toEqual(['fields: a: ${own_name}'])
})

const store = 'es.host: es.shop\nes: { port: 9201, hosts: [a, b] }\nstage: prod\n'

test.each([
  ['hosts: ["${es.host}:${es.port}"]', { endpoints: ['http://es.shop:9201'] }],
  ['hosts: "${es.hosts}"', { endpoints: ['http://a:9200', 'http://b:9200'] }],
  ['hosts: ["${HOST:${es.host}}"]', { endpoints: ['http://es.shop:9200'] }],
  ['hosts: [a], index: "${stage}-%{+yyyy}"', { bulk: { index: 'prod-%Y' } }],
  ['hosts: [a], index: "${output.elasticsearch.index}"', { endpoints: ['http://a:9200'] }],
])('a reference to another setting in { %s }', (options, expected) => {
  const { resource, gaps } = convert(store + log + search(options))
  expect(resource.spec.sinks[0].config).toMatchObject(expected)
  const known = gaps.filter(({ subject }) => subject === 'es' || subject === 'stage')
  // Settings that nothing reads have no effect.
  expect(known.map(({ subject }) => subject)).toEqual(['es', 'stage'].filter((name) => !options.includes(`\${${name}`)))
})

test('tags and labels are texts, and conditions compare values', async () => {
  const number = '"${penstock_test_number}"'
  const { document, resource } = convert(
    `${fields('${penstock_test_number}')}  tags: [${number}]\nprocessors:\n- add_labels.labels: { l: ${number} }\n- drop_event.when.not.equals.a: ${number}\n${discard}`,
  )
  withTest(document, resource, line, { a: 8080, tags: ['8080'], 'labels.l': '8080' })
  expect(await lint(document.toString())).toEqual([])
})

test.each([
  ['paths: "${LOGS:/a.log, /b/*.log}"', { include: ['/a.log', '/b/*.log'] }],
  ["paths: \"${LOGS:['/a.log','/b.log']}\"", { include: ['/a.log', '/b.log'] }],
  ['paths: ["/srv/${DIR:${SUB:x}}/a.log"]', { include: ['/srv/x/a.log'] }],
  ['paths: [/a], encoding: \'${CODING:"gbk"}\'', { include: ['/a'], encoding: { charset: 'gbk' } }],
])('the default of a variable in an option: %s', (options, expected) => {
  const { resource } = convert(`filebeat.inputs: [{ type: log, ${options} }]\n${discard}`)
  expect(resource.spec.sources[0].config).toMatchObject(expected)
})

test('settings that Filebeat does not know have no effect, and a row', () => {
  const { gaps } = convert(`loggins.level: debug\nfilebeat.odd: 1\n${log}${discard}`)
  expect(gaps.map(({ subject, isReplaced }) => [subject, isReplaced])).toEqual([
    ['filebeat.odd', true],
    ['loggins', true],
  ])
})

test('a variable that an option needs is a gap, and does not turn the part off', () => {
  const { resource, gaps } = convert(
    `${log}  enabled: \${ON}\n  exclude_lines: ["\${WORD}", b]\n${search('enabled: "${ES_ON}", hosts: [a], index: i, protocol: "${SCHEME}"')}`,
  )
  expect(resource.spec.sources).toMatchObject([{ type: 'file', config: { include: ['/srv/app.log'] } }])
  expect(resource.spec.sinks).toMatchObject([{ type: 'search_engine' }])
  expect(gaps.map(({ subject, line }) => `${line} ${subject}`)).toEqual([
    '4 log: enabled: ${ON}',
    '5 log: exclude_lines: ${WORD}',
    '6 elasticsearch: enabled: ${ES_ON}',
    '6 elasticsearch: protocol: ${SCHEME}',
  ])
})

test('a variable in an option of a processor is a gap, unless it has a default', () => {
  const { resource, gaps } = convert(
    `${log}processors:\n- dissect: { tokenizer: "%{a} %{b}", target_prefix: "\${PREFIX:p}", field: "\${FIELD}" }\n${discard}`,
  )
  expect(JSON.stringify(resource.spec.transforms)).toContain('.p.a = ')
  expect(gaps.map(({ subject, isReplaced }) => [subject, isReplaced])).toEqual([
    ['${PREFIX}', true],
    ['dissect: field: ${FIELD}', undefined],
  ])
})
