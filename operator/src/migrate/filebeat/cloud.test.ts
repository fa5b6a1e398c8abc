// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of Filebeat are meant
// The addresses and keys of outputs, configurations in JSON, variables in values, and reports.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { agentFor } from '../agents.ts'
import { convertFilebeat } from './convert.ts'

const id = `demo:${Buffer.from('eu.example.io:9243$abc$def').toString('base64')}`
const convert = (text: string) => converted(convertFilebeat, [{ file: 'filebeat.yml', text }])
const input = 'filebeat.inputs: [{ type: log, paths: [/a.log] }]\n'

test.each([
  { about: 'without an output', output: '' },
  { about: 'beside the hosts of the output', output: 'output.elasticsearch: { hosts: [es:9200], username: other }\n' },
])('`cloud.id` $about is the address', async ({ output }) => {
  const { document, resource, gaps } = convert(`${input}cloud: { id: '${id}', auth: 'elastic:pw' }\n${output}`)
  expect(resource.spec.sinks[0].config).toMatchObject({
    endpoints: ['https://abc.eu.example.io:9243'],
    auth: { user: 'elastic', password: 'pw' },
  })
  expect(gaps.filter(({ subject }) => subject.startsWith('cloud'))).toEqual([])
  expect(await lint(String(document))).toEqual([])
})

test.each([
  [
    'a ConfigMap',
    (text: string) => `kind: ConfigMap\nmetadata: { name: c }\ndata: { filebeat.yml: ${JSON.stringify(text)} }\n`,
  ],
  [
    'a ConfigMap without the name of a file',
    (text: string) => `kind: ConfigMap\nmetadata: { name: c }\ndata: { config: ${JSON.stringify(text)} }\n`,
  ],
  ['the chart', (text: string) => `filebeatConfig: { filebeat.yml: ${JSON.stringify(text)} }\n`],
])('`cloud.id` in %s is the address', (_, wrapped) => {
  const text = wrapped(`${input}cloud: { id: '${id}', auth: 'elastic:pw' }\noutput.elasticsearch.hosts: [es]\n`)
  expect(convert(text).resource.spec.sinks[0].config.endpoints).toEqual(['https://abc.eu.example.io:9243'])
})

test.each([
  { value: '${CLOUD_ID}', isReplaced: true },
  { value: 'x', isReplaced: undefined },
])('`cloud.id` $value is reported', ({ value, isReplaced }) => {
  const { gaps } = convert(`${input}cloud.id: "${value}"\noutput.elasticsearch: { hosts: [es:9200] }\n`)
  const [gap] = gaps.filter(({ subject }) => subject === 'cloud.id')
  expect(gap?.line).toBe(2)
  expect(gap?.isReplaced).toBe(isReplaced)
})

test.each([
  ['elastic:${PW}', { user: 'elastic', password: 'SECRET[env.PW]' }, ['cloud.id']],
  [
    '${CLOUD_AUTH}',
    { user: 'SECRET[env.CLOUD_AUTH_USER]', password: 'SECRET[env.CLOUD_AUTH_PASSWORD]' },
    ['cloud.id', 'cloud.auth'],
  ],
])('a deployment whose id is in a variable, with the login %s', async (auth, login, subjects) => {
  for (const output of ['', 'output.elasticsearch.index: a\n']) {
    const { document, resource, gaps } = convert(`${input}cloud: { id: "\${CLOUD_ID}", auth: "${auth}" }\n${output}`)
    expect(resource.spec.sinks[0].config).toMatchObject({ endpoints: ['SECRET[env.CLOUD_ID_ADDRESS]'], auth: login })
    const rows = gaps.filter(({ subject }) => subject.startsWith('cloud'))
    expect(rows.map(({ subject }) => subject)).toEqual(subjects)
    expect(rows.every(({ isReplaced }) => isReplaced === true)).toBe(true)
    expect(await lint(String(document))).toEqual([])
  }
})

const files = (path: string) =>
  `filebeatConfig: { filebeat.yml: '{ filebeat.inputs: [{ type: log, paths: [${path}] }], output.console: {} }' }`
test.each([
  [`daemonset: { ${files('/a')} }\ndeployment: { enabled: false, ${files('/b')} }\n`, ['/a'], ['deployment']],
  [`daemonset: { ${files('/a')} }\ndeployment: { ${files('/b')} }\n`, ['/a'], ['deployment']],
  [`daemonset: { ${files('/a')} }\ndeployment: { enabled: true, ${files('/b')} }\n`, ['/a', '/b'], []],
  [
    `daemonset: { enabled: false, ${files('/a')} }\ndeployment: { enabled: true, ${files('/b')} }\n`,
    ['/b'],
    ['daemonset'],
  ],
  [`deployment: { enabled: false, ${files('/b')} }\n${files('/c').slice(0)}\n`, ['/c'], ['deployment']],
  [`deployment: { ${files('/b')} }\n`, ['/b'], []],
])('the configurations that the chart runs: %s', (text, paths, left) => {
  const { resource, gaps } = converted(convertFilebeat, [{ file: 'values.yaml', text }])
  const sources: { config: { include: string[] } }[] = resource.spec.sources
  expect(sources.flatMap(({ config }) => config.include)).toEqual(paths)
  const rows = gaps.filter(({ subject }) => subject.endsWith('.filebeatConfig'))
  expect(rows.map(({ subject, isReplaced }) => [subject, isReplaced])).toEqual(
    left.map((name) => [`${name}.filebeatConfig`, true]),
  )
})

test('a row names the index that the alias of the life cycle replaces', () => {
  const rowsFor = (index: string) =>
    convert(
      `${input}setup.ilm.rollover_alias: shop\noutput.elasticsearch: { hosts: [es], index: ${index} }\n`,
    ).gaps.filter(({ subject }) => subject.startsWith('elasticsearch'))
  expect(rowsFor('own')).toMatchObject([{ subject: 'elasticsearch: own', isReplaced: true }])
  expect(rowsFor('shop')).toEqual([])
})

test.each([
  '{"filebeat": {"inputs": [{"type": "log", "paths": ["/a"]}]}, "output": {"console": {}}}',
  '{\n  "filebeat.inputs": [{"type": "log", "paths": ["/a"]}], "output.console": {}\n}',
  '{output.console: {}, filebeat.inputs: [{type: log, paths: [/a]}]}',
])('the configuration %s is known as one of Filebeat', (text) => {
  expect(agentFor([{ file: 'filebeat.yml', text }])?.agent.name).toBe('filebeat')
})

test('tags come from variables, and follow a field with tags', async () => {
  process.env['PENSTOCK_TEST_TAG'] = 'eu'
  const { document, resource } = convert(
    'filebeat.inputs: [{ type: log, paths: [/a.log], tags: ["${PENSTOCK_TEST_TAG}", 5], fields: { tags: [x] }, fields_under_root: true }]\noutput.console: {}\n',
  )
  withTest(
    document,
    resource,
    { message: 'm', file: '/a.log', timestamp: '2026-01-01T00:00:00Z' },
    { tags: ['x', 'eu', '5'] },
  )
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  ['https://elastic:p%40ss@es:9200', 'https://es:9200', { user: 'elastic', password: 'p@ss' }],
  ['https://u:${PW}@es', 'https://es:9200', { user: 'u', password: 'SECRET[env.PW]' }],
  ['${ES_URL}', 'SECRET[env.ES_URL]', { user: 'own', password: 'pw' }],
])('the address %s', (host, endpoint, auth) => {
  const { resource } = convert(
    `${input}output.elasticsearch: { hosts: ["${host}"], index: a, username: own, password: pw }\n`,
  )
  expect(resource.spec.sinks[0].config).toMatchObject({ endpoints: [endpoint], auth })
})

test.each([
  { about: 'alone', override: '{}', path: '/a' },
  {
    about: 'below what replaces it',
    override: '{ filebeat.inputs: [{ type: log, paths: [/b] }], output.console: {} }',
    path: '/b',
  },
])('the values of an older chart contain the configuration: $about', ({ override, path }) => {
  const text = `image: { tag: 7.1.1 }\nconfig:\n  filebeat.inputs: [{ type: log, paths: [/a] }]\n  output.file: { path: /usr/share/filebeat/data }\noverrideConfig: ${override}\n`
  expect(agentFor([{ file: 'values.yaml', text }])?.agent.name).toBe('filebeat')
  const { resource } = converted(convertFilebeat, [{ file: 'values.yaml', text }])
  expect(resource.spec.sources.map(({ config }: { config: object }) => config)).toMatchObject([{ include: [path] }])
})

test.each([
  ['filestream, id: a', 'multiline: { pattern: x, match: after }', 'filestream: multiline.pattern'],
  ['filestream, id: a', 'json.message_key: log', 'filestream: json.message_key'],
  ['filestream, id: a', 'exclude_files: [".gz$"]', 'filestream: exclude_files'],
  ['log', 'parsers: [{ ndjson: { target: "" } }]', 'log: parsers'],
  ['log', 'prospector.scanner.include_files: [b]', 'log: prospector.scanner.include_files'],
])('an input of type %s ignores options of others: %s', async (type, option, subject) => {
  const { document, resource, gaps } = convert(
    `filebeat.inputs: [{ type: ${type}, paths: [/a.log], ${option} }]\noutput.console: {}\n`,
  )
  expect(gaps.map((gap) => [gap.subject, gap.isReplaced]).slice(0, 1)).toEqual([[subject, true]])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  const event = { message: '{"log":"x"}', file: '/a.log', timestamp: '2026-01-01T00:00:00Z' }
  withTest(document, resource, event, { message: '{"log":"x"}' })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a Beat refers to a store of its own by a Secret', () => {
  const text = `apiVersion: beat.k8s.elastic.co/v1beta1
kind: Beat
metadata: { name: fb, namespace: logs }
spec:
  type: filebeat
  elasticsearchRef: { secretName: store }
  config: { filebeat.inputs: [{ type: container, paths: [/var/log/containers/*.log] }] }
`
  const { resource, gaps } = converted(convertFilebeat, [{ file: 'beat.yaml', text }])
  const at = (key: string) => ({ valueFrom: { secretKeyRef: { name: 'store', namespace: 'logs', key } } })
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  expect(resource.spec.sinks[0].config).toMatchObject({
    endpoints: [at('url')],
    auth: { user: at('username'), password: at('password') },
  })
})

test('the values of a chart for a Beat refer to its store, also below those of another chart', () => {
  const values = (name: string) =>
    `${name}spec:\n  type: filebeat\n  elasticsearchRef: { name: store, namespace: logs }\n  config: { filebeat.inputs: [{ type: log, paths: [/a] }] }\n`
  for (const text of [values(''), `eck-beats:\n${values('').replace(/^/gm, '  ')}\neck-kibana: { enabled: true }\n`]) {
    const found = agentFor([{ file: 'values.yaml', text }])
    const { resource, gaps } = converted(convertFilebeat, found?.files ?? [])
    expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
    expect(resource.spec.sinks[0].config).toMatchObject({
      endpoints: ['https://store-es-http.logs.svc:9200'],
      tls: { ca_file: { valueFrom: { secretKeyRef: { name: 'store-es-http-certs-public', namespace: 'logs' } } } },
    })
  }
})

test.each(['stringData', 'data'])('a Beat whose configuration is in a Secret refers to the same store: %s', (where) => {
  const config = 'filebeat.inputs: [{ type: container, paths: ["/var/log/containers/*.log"] }]'
  const resourceWith = (spec: string) =>
    `kind: Beat\nmetadata: { name: fb, namespace: logs }\nspec: { type: filebeat, elasticsearchRef: { name: store }, ${spec} }\n`
  const text = where === 'data' ? Buffer.from(config).toString('base64') : `'${config}'`
  const secret = `kind: Secret\nmetadata: { name: own, namespace: logs }\n${where}: { beat.yml: ${text} }\n`
  const referring = resourceWith('configRef: { secretName: own }')
  const specOf = (...texts: string[]) => {
    const files = texts.map((each, index) => ({ file: `${index}.yaml`, text: each }))
    return converted(convertFilebeat, files).resource.spec
  }
  const wanted = specOf(resourceWith(`config: { ${config} }`))
  expect(wanted.sinks).toMatchObject([{ type: 'search_engine' }])
  expect(specOf(`${referring}---\n${secret}`)).toEqual(wanted)
  expect(specOf(secret, referring)).toEqual(wanted)
})

test('other Beats beside Filebeat are not converted', () => {
  const other = beat('').replace('name: fb', 'name: mb').replace('type: filebeat', 'type: metricbeat')
  const { resource } = converted(convertFilebeat, [{ file: 'beats.yaml', text: `${other}---\n${beat('')}` }])
  expect(resource.spec.sources).toHaveLength(1)
  expect(resource.spec.sinks).toHaveLength(1)
})

test.each([
  ['{ enabled: true, grace_period: 5m }', '/a.log', 300, []],
  ['{ enabled: true }', '/a.log', 1800, []],
  ['{ enabled: false, grace_period: 5m }', '/a.log', undefined, []],
  ['{ enabled: true }', '/var/log/containers/*.log', undefined, ['filestream: delete.enabled']],
])('files that are removed after they were read: %s, %s', async (removal, path, seconds, subjects) => {
  const { document, resource, gaps } = convert(
    `filebeat.inputs: [{ type: filestream, id: a, paths: ["${path}"], parsers: [container: ~], prospector.scanner.fingerprint: ~, delete: ${removal} }]\noutput.console: {}\n`.replace(
      path.startsWith('/a') ? 'parsers: [container: ~], ' : '',
      '',
    ),
  )
  expect(gaps.map(({ subject }) => subject)).toEqual(subjects)
  expect(resource.spec.sources[0].config.remove_after_secs).toBe(seconds)
  expect(await lint(document.toString())).toEqual([])
})

/** The base64 text of `id:key`. */
const inBase64 = 'ApiKey aWQ6a2V5'
const beat = (config: string) =>
  `apiVersion: beat.k8s.elastic.co/v1beta1\nkind: Beat\nmetadata: { name: fb, namespace: logs }\nspec: { type: filebeat, elasticsearchRef: { name: es }, config: { filebeat.inputs: [{ type: log, paths: [/a] }], ${config} } }\n`
const chart = (config: string) =>
  `daemonset:\n  filebeatConfig:\n    filebeat.yml: |\n      { filebeat.inputs: [{ type: log, paths: [/a] }], ${config} }\n`
test.each([
  { key: 'id:key', header: inBase64 },
  { key: '${ES_API_KEY:id:key}', header: inBase64 },
  // Newer versions accept the encoded key, too.
  { key: 'aWQ6a2V5', header: inBase64 },
  {
    key: '${ES_API_KEY}',
    header: 'ApiKey SECRET[env.ES_API_KEY_BASE64]',
    command: 'printf %s "${ES_API_KEY}" | base64 -w0',
  },
  {
    key: '${ES_ID}:${ES_KEY}',
    header: 'ApiKey SECRET[env.ES_KEY_BASE64]',
    command: 'printf %s "${ES_ID}:${ES_KEY}" | base64 -w0',
  },
  { key: '${es_key}', header: 'ApiKey SECRET[env.ES_KEY_BASE64]', command: 'printf %s "${es_key}" | base64 -w0' },
])('the key $key is sent in base64', async ({ key, header, command }) => {
  const options = `output.elasticsearch: { hosts: ["https://es"], index: a, api_key: "${key}" }`
  for (const { file, text } of [
    { file: 'filebeat.yml', text: `${input}${options}\n` },
    { file: 'values.yaml', text: chart(options) },
    { file: 'beat.yaml', text: beat(options) },
  ]) {
    const { document, resource, all } = converted(convertFilebeat, [{ file, text }])
    const [{ config }] = resource.spec.sinks
    expect(config.request).toEqual({ headers: { Authorization: header } })
    expect(config.auth).toBeUndefined()
    const rows = all.filter(({ subject }) => subject === 'elasticsearch: api_key')
    expect(rows.map(({ isReplaced, nearest }) => isReplaced === true && nearest.includes(`\`${command}\``))).toEqual(
      command === undefined ? [] : [true],
    )
    expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
  }
})

test('an empty key is not sent', () => {
  const { resource } = convert(`${input}output.elasticsearch: { hosts: [es], index: a, api_key: "\${KEY:}" }\n`)
  expect(resource.spec.sinks[0].config.request).toBeUndefined()
})

test('events of files get the name of the node, not that of the pod of the agent', async () => {
  process.env['AGENT_SELF_NODE_NAME'] = 'node-7'
  const { document, resource } = convert(
    'filebeat.inputs: [{ type: log, paths: [/a.log], fields: { node: "${NODE_NAME}" }, fields_under_root: true }]\noutput.console: {}\n',
  )
  const event = { message: 'm', file: '/a.log', timestamp: '2026-01-01T00:00:00Z' }
  withTest(document, resource, event, { node: 'node-7' })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  ['elasticsearch: { hosts: [es], index: "logs-${NODE_NAME}" }', '%index'],
  ['file: { path: "/out/${NODE_NAME}" }', '%path'],
])('the name of the node in the output %s is that of the agent, not a key of a Secret', async (output, field) => {
  const { document, resource } = convert(`${input}output.${output}\n`)
  expect(resource.spec.secrets).toBeUndefined()
  expect(JSON.stringify(resource.spec.sinks)).toContain(`{{ ${field} }}`)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  ['shop', { 'kubernetes.namespace': 'shop', message: 'm' }],
  ['other', { kubernetes: null, message: 'm' }],
])('only pods of the namespace %s get metadata', async (namespace, expected) => {
  const { document, resource, gaps } = convert(
    `filebeat.inputs: [{ type: container, paths: [/var/log/containers/*.log] }]\nprocessors: [{ add_kubernetes_metadata: { namespace: ${namespace} } }]\noutput.console: {}\n`,
  )
  expect(gaps).toEqual([])
  const orchestrator = { pod_name: 'web', pod_namespace: 'shop', container_name: 'web', container_id: 'containerd://a' }
  withTest(document, resource, { message: 'm', stream: 'stdout', orchestrator }, expected)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a report about names with dots does not name an option that the configuration does not contain', () => {
  const { gaps } = convert(
    `${input.trimEnd()}\nprocessors: [{ decode_json_fields: { fields: [message] } }]\noutput.console: {}\n`,
  )
  expect(gaps.map(({ subject }) => subject)).toEqual(['decode_json_fields: names with dots'])
})

test('certificates of relative paths are beside the configuration, and a row names them', async () => {
  const ssl = 'certificate_authorities: [./certs/ca.crt], certificate: tls.crt, key: /k/tls.key'
  const { document, resource, gaps } = convert(
    `${input}output.elasticsearch: { hosts: ["https://es"], index: a, ssl: { ${ssl} } }\n`,
  )
  expect(resource.spec.sinks[0].config.tls).toEqual({
    ca_file: '/etc/filebeat/certs/ca.crt',
    crt_file: '/etc/filebeat/tls.crt',
    key_file: '/k/tls.key',
  })
  expect(gaps.map(({ subject, isReplaced }) => [subject, isReplaced])).toEqual([
    ['elasticsearch: ssl.certificate_authorities', true],
    ['elasticsearch: ssl.certificate', true],
  ])
  expect(await lint(String(document))).toEqual([])
})

test.each([
  ['proxy:3128', 'http://proxy:3128'],
  ['https://proxy:3128', 'https://proxy:3128'],
  ['${PROXY}', 'SECRET[env.PROXY]'],
])('the proxy %s', (given, address) => {
  const { resource } = convert(`${input}output.elasticsearch: { hosts: [es], index: a, proxy_url: "${given}" }\n`)
  expect(resource.spec.sinks[0].config.proxy).toEqual({ http: address, https: address })
})

test.each([
  ['filebeat.inputs: [{ type: "[odd", paths: [/a] }]\n', 'input [odd'],
  [`${input}processors: [{ truncate_fields: { fields: [a], max_bytes: 1KB } }]\n`, 'truncate_fields: length'],
])('a value that Filebeat does not know is a gap: %s', async (text, subject) => {
  const { document, gaps } = convert(`${text}output.console: {}\n`)
  expect(gaps.map((gap) => gap.subject)).toEqual([subject])
  expect(await lint(String(document))).toEqual([])
})
