// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of Filebeat are meant
// Arguments of Filebeat replace settings of the configuration.

import { expect, test } from 'vitest'
import { converted, lint } from '../../testing/conversions.ts'
import { agentFor } from '../agents.ts'
import { convertFilebeat } from './convert.ts'

const inputs = 'filebeat.inputs: [{ type: filestream, id: a, paths: [/a.log] }]\n'
const config = `${inputs}fields: { cluster: "\${CLUSTER:none}" }\noutput.elasticsearch: { hosts: ["http://one:9200", "http://two:9200"], index: logs }\n`

const indented = (text: string) => text.replace(/^(?=.)/gm, '    ')
const configMap = `kind: ConfigMap\nmetadata: { name: filebeat }\ndata:\n  filebeat.yml: |\n${indented(config)}`
const workload = (container: string) =>
  `${configMap}---\nkind: DaemonSet\nspec: { template: { spec: { containers: [${container}] } } }\n`
const image = 'image: "docker.elastic.co/beats/filebeat:8.3.0"'

const convert = (...texts: string[]) =>
  converted(
    convertFilebeat,
    texts.map((text, index) => ({ file: `${index}.yml`, text })),
  )
const sinkOf = (...texts: string[]) => convert(...texts).resource.spec.sinks

const values = (args: string) =>
  `daemonset:\n  extraArgs: ${args}\n  filebeatConfig:\n    filebeat.yml: |\n${indented(indented(config))}`
const compose = (command: string) => `services:\n  filebeat:\n    ${image}\n    command: ${command}\n`
const beat = (args: string) => `kind: Beat
metadata: { name: a, namespace: b }
spec:
  type: filebeat
  daemonSet: { podTemplate: { spec: { containers: [{ name: filebeat, args: ${args} }] } } }
  config:
${indented(config)}`

const index = '["-e", "-E", "output.elasticsearch.index=other"]'
const forms: readonly (readonly [string, readonly string[]])[] = [
  ['a workload', [workload(`{ ${image}, args: ${index} }`)]],
  ['a workload with a command', [workload(`{ name: filebeat, command: [filebeat], args: ${index} }`)]],
  ['one word', [workload(`{ ${image}, args: ["-E output.elasticsearch.index=other"] }`)]],
  ['an equals sign', [workload(`{ ${image}, args: ["-E=output.elasticsearch.index='other'"] }`)]],
  ['a shell', [workload(`{ ${image}, command: [sh, -c, "exec filebeat -e -E output.elasticsearch.index=other"] }`)]],
  ['values of the chart', [values(index)]],
  ['a service of Compose', [config, compose("filebeat -e -E 'output.elasticsearch.index=other'")]],
  ['a resource of the Beats operator', [beat(index)]],
]
test.each(forms)('%s: an argument replaces a setting', async (_form, texts) => {
  const { document } = convert(...texts)
  const endpoints = ['http://one:9200', 'http://two:9200']
  expect(sinkOf(...texts)).toMatchObject([{ config: { endpoints, bulk: { index: 'other' } } }])
  expect(await lint(String(document))).toEqual([])
})

test.each([
  ["output.elasticsearch.hosts=['http://new:9200']", ['http://new:9200', 'http://two:9200']],
  [
    'output.elasticsearch.hosts=http://new:9200,http://last:9200,http://third:9200',
    ['new', 'last', 'third'].map((name) => `http://${name}:9200`),
  ],
  ['output.elasticsearch.hosts=http://new:9200', ['http://new:9200']],
  ['output.elasticsearch.hosts.1="http://new:9200"', ['http://one:9200', 'http://new:9200']],
])('lists merge by the place of items: %s', (argument, endpoints) => {
  const args = JSON.stringify(['-E', argument])
  expect(sinkOf(workload(`{ ${image}, args: ${args} }`))).toMatchObject([{ config: { endpoints } }])
})

test('an argument is a setting to which the configuration refers, and has the variables of the container', () => {
  const { resource } = convert(
    workload(
      `{ ${image}, args: [-E, CLUSTER=west, -E, output.elasticsearch.username=u, -E, "output.elasticsearch.password=$(PASSWORD)"] }`,
    ),
  )
  expect(JSON.stringify(resource.spec.transforms)).toContain('.fields.cluster = \\"west\\"')
  expect(resource.spec.sinks).toMatchObject([{ config: { auth: { user: 'u', password: 'SECRET[env.PASSWORD]' } } }])
})

test('an argument names the only output', () => {
  expect(sinkOf(inputs, compose('[-E, "output.elasticsearch.hosts=[\\"http://es:9200\\"]"]'))).toMatchObject([
    { type: 'search_engine', config: { endpoints: ['http://es:9200'] } },
  ])
})

test('other commands and other programs change nothing', () => {
  const plain = sinkOf(configMap)
  expect(sinkOf(workload(`{ ${image}, args: [setup, -E, output.elasticsearch.index=other] }`))).toEqual(plain)
  expect(sinkOf(workload('{ image: "elastic/metricbeat:8", args: [-E, output.elasticsearch.index=other] }'))).toEqual(
    plain,
  )
})

test.each([
  ['List', 'items'],
  ['Template', 'objects'],
])('resources in a %s are read like documents', (kind, list) => {
  const text = workload(`{ ${image}, args: ${index} }`)
  const items = text.split('---\n').map((each) => each.trimEnd().replace(/^/gm, '  ').replace(/^ {2}/, '- '))
  const wrapped = [{ file: 'all.yml', text: `kind: ${kind}\n${list}:\n${items.join('\n')}\n` }]
  const found = agentFor(wrapped)
  expect(found?.agent.name).toBe('filebeat')
  expect(converted(convertFilebeat, found?.files ?? []).resource.spec).toEqual(convert(text).resource.spec)
})

test('modules of arguments are gaps at the line of the argument', () => {
  const text = workload(`{ ${image}, args: [-e, --modules, "nginx,system"] }`)
  const line = text.split('\n').findIndex((each) => each.includes('--modules')) + 1
  const found = convert(text).gaps.map(({ subject, line: at }) => [subject, at])
  for (const name of ['nginx', 'system']) expect(found).toContainEqual([`module ${name}`, line])
})

test('with several configurations, an argument is a gap', () => {
  const text = workload(`{ ${image}, args: ${index} }`).replace('---\n', `  other.yml: |\n${indented(config)}---\n`)
  expect(convert(text).gaps.map(({ subject }) => subject)).toContain('-E output.elasticsearch.index')
})
