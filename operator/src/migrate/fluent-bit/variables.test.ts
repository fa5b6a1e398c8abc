// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of Fluent Bit are meant
// Environment variables in options of outputs: references to the Secret, the names of host and node, and gaps for the others.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFluentBit } from './convert.ts'

process.env['PENSTOCK_TEST_CLUSTER'] = 'prod'
process.env['AGENT_SELF_NODE_NAME'] = 'n1'

const section = (kind: string, ...lines: string[]) => `[${kind}]\n${lines.map((line) => `    ${line}\n`).join('')}`
const input = section('INPUT', 'Name tail', 'Tag app', 'Path /srv/app.log')
const convert = (name: string, lines: readonly string[], namespace?: string) =>
  converted(
    convertFluentBit,
    [{ file: 'fb.conf', text: input + section('OUTPUT', `Name ${name}`, 'Match *', ...lines) }],
    namespace,
  )
const unmet = (gaps: ReturnType<typeof convert>['gaps']) =>
  gaps.filter(({ isReplaced }) => isReplaced !== true).map(({ line, subject }) => [line, subject])

test.each<[name: string, lines: readonly string[], config: object]>([
  ['es', ['Index logs-${ENV}'], { bulk: { index: 'logs-SECRET[env.ENV]' } }],
  ['es', ['Logstash_Format On', 'Logstash_Prefix ${ENV}-x'], { bulk: { index: 'SECRET[env.ENV]-x-%Y.%m.%d' } }],
  ['opensearch', ['Pipeline ${ENV}'], { pipeline: 'SECRET[env.ENV]' }],
  ['file', ['Path /srv/${ENV}', 'File a'], { path: '/srv/SECRET[env.ENV]/a' }],
  ['loki', ['Labels a=${ENV}'], { labels: { a: 'SECRET[env.ENV]' } }],
  ['loki', ['Labels a=${HOSTNAME}-1'], { labels: { a: '{{ %hostname }}-1' } }],
])('the sink of %s with %j refers to the Secret', async (name, lines, config) => {
  const { document, resource, gaps } = convert(name, lines)
  expect(resource.spec.sinks[0].config).toMatchObject(config)
  expect(gaps).toEqual([])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each<[name: string, lines: readonly string[], expected: Readonly<Record<string, unknown>>]>([
  ['es', ['Logstash_Format On', 'Logstash_Prefix ${NODE_NAME}'], { 'log == "x" && %node_name': 'n1' }],
  ['loki', ['Labels a=${K8S_NODE_NAME}'], { 'log == "x" && %node_name': 'n1' }],
  ['loki', ['Labels a=b', 'Structured_Metadata node=${HOST_NAME}'], { 'log == "x" && %node_name': 'n1' }],
  ['datadog', ['apikey k', 'dd_service web-${PENSTOCK_TEST_CLUSTER}'], { service: 'web-prod' }],
])('a program knows a variable of %s with %j', async (name, lines, expected) => {
  const { document, resource, gaps } = convert(name, lines)
  expect(unmet(gaps)).toEqual([])
  withTest(document, resource, { message: 'x' }, expected)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('filters know the name of the node', async () => {
  const filter = section('FILTER', 'Name modify', 'Match *', 'Set node ${NODE_NAME}')
  const end = section('OUTPUT', 'Name null', 'Match *')
  const { document, resource, gaps } = converted(convertFluentBit, [{ file: 'fb.conf', text: input + filter + end }])
  expect(gaps).toEqual([])
  withTest(document, resource, { message: 'x' }, { node: 'n1' })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  ['a workload', 'kind: DaemonSet\nspec: { template: { spec: { containers: [{ name: f, env: ENTRIES }] } } }'],
  [
    'a resource of the operator',
    'apiVersion: fluentbit.fluent.io/v1alpha2\nkind: FluentBit\nspec: { envVars: ENTRIES }',
  ],
])('the entries of %s name the field of the node', async (_, workload) => {
  const entries = '[{ name: PLACE, valueFrom: { fieldRef: { fieldPath: spec.nodeName } } }]'
  const filter = section('FILTER', 'Name modify', 'Match *', 'Set node ${PLACE}')
  const configuration = input + filter + section('OUTPUT', 'Name null', 'Match *')
  const map = `kind: ConfigMap\ndata:\n  fluent-bit.conf: |\n${configuration.replace(/^(?=.)/gm, '    ')}`
  const other = workload.replace('ENTRIES', entries)
  const texts = workload.startsWith('kind') ? [`${map}---\n${other}\n`] : [map, other]
  const files = texts.map((text, index) => ({ file: `${index}.yaml`, text }))
  const { document, resource, gaps } = converted(convertFluentBit, files)
  expect(unmet(gaps)).toEqual([])
  withTest(document, resource, { message: 'x' }, { node: 'n1' })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each<[name: string, lines: readonly string[], subject: string]>([
  ['es', ['Time_Key ${KEY}'], '${KEY}'],
  ['es', ['Logstash_Format ${ON}'], '${ON}'],
  ['http', ['Format json', 'tls ${ON}'], '${ON}'],
  ['http', ['Format json', 'Retry_Limit ${N}'], '${N}'],
  ['http', ['Format ${FORM}'], 'http: Format ${FORM}'],
  ['http', ['Format json', 'Header X-Node ${NODE_NAME}'], '${NODE_NAME}'],
  ['logdna', ['api_key k', 'app ${APP}'], '${APP}'],
])('a variable of %s with %j is a gap', (name, lines, subject) => {
  const { gaps } = convert(name, lines)
  expect(unmet(gaps)).toEqual([[7 + lines.length, subject]])
})

test('a program of a namespace reads no variables', () => {
  const { gaps } = convert('datadog', ['apikey k', 'dd_service ${ENV}'], 'shop')
  expect(unmet(gaps)).toEqual([[9, 'datadog: dd_service: ${ENV}']])
})

test.each([
  ['${app.proxy.version}', 'dots or dashes'],
  ['${NAME:-default}', 'the whole text in braces'],
])('the name %s is a gap with its reason', (text, reason) => {
  const { gaps } = convert('es', [`Index ${text}`])
  expect(gaps).toMatchObject([{ subject: text, reason: expect.stringContaining(reason) }])
})

test.each([
  ['Name grep', 'Regex level ${HOSTNAME}', '${HOSTNAME}'],
  ['Name modify', 'Add ${HOSTNAME} v', '${HOSTNAME}'],
  ['Name modify', 'Add ${KEY} v', '${KEY}'],
  ['Name modify', 'Set ${NODE_NAME} v', '${NODE_NAME}'],
  ['Name modify', 'Rename a ${HOSTNAME}', '${HOSTNAME}'],
  ['Name record_modifier', 'Record ${KEY} v', '${KEY}'],
  ['Name record_modifier', 'Remove_key ${HOSTNAME}', '${HOSTNAME}'],
])('the filter %s with %s has a gap, because the variable is not in the text of a field', (name, line, subject) => {
  const text = input + section('FILTER', name, 'Match *', line) + section('OUTPUT', 'Name null', 'Match *')
  const { gaps } = converted(convertFluentBit, [{ file: 'fb.conf', text }])
  expect(unmet(gaps)).toEqual([[8, subject]])
})

test('a path with the name of the host is a gap', () => {
  const text = section('INPUT', 'Name tail', 'Tag a', 'Path /srv/${HOSTNAME}/*.log') + section('OUTPUT', 'Name null')
  expect(unmet(converted(convertFluentBit, [{ file: 'fb.conf', text }]).gaps)).toContainEqual([4, '${HOSTNAME}'])
})

test.each([
  ['${HOSTNAME}.app', '/srv/a.log', '.app'],
  ['app.${HOSTNAME}.*', '/srv/a.log', '.srv.a.log'],
])('the tag %s has the name of the host', async (tag, path, end) => {
  const from = section('INPUT', 'Name tail', `Tag ${tag}`, `Path ${path}`)
  const to = section('OUTPUT', 'Name splunk', `Match ${tag}`, 'Splunk_Token t', 'Event_Source $TAG')
  const { document, resource, gaps } = converted(convertFluentBit, [{ file: 'fb.conf', text: from + to }])
  expect(unmet(gaps)).toEqual([])
  const start = tag.startsWith('app') ? '"app." + ' : ''
  const expected = `source == ${start}get_hostname!() + ${JSON.stringify(end)}`
  withTest(document, resource, { message: 'x', file: path }, { [`${expected} && true`]: true })
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})
