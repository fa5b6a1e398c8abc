// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of Filebeat are meant
// The address of `cloud.id`, configurations in JSON, and variables in tags.

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
  { value: '${CLOUD_ID}', isReplaced: true },
  { value: 'x', isReplaced: undefined },
])('`cloud.id` $value is reported', ({ value, isReplaced }) => {
  const { gaps } = convert(`${input}cloud.id: "${value}"\noutput.elasticsearch: { hosts: [es:9200] }\n`)
  const [gap] = gaps.filter(({ subject }) => subject === 'cloud.id')
  expect(gap?.line).toBe(2)
  expect(gap?.isReplaced).toBe(isReplaced)
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
