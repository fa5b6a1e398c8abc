// Annotations of pods that Filebeat reads as hints, shown by the event that comes out.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertFilebeat } from './convert.ts'

const config = 'filebeat.autodiscover.providers: [{ type: kubernetes, hints.enabled: true }]\noutput.discard: {}\n'

interface Case {
  readonly name: string
  readonly annotations: Readonly<Record<string, string>>
  readonly message: string
  readonly expected: Readonly<Record<string, unknown>> | undefined
}

const root = { 'co.elastic.logs/json.keys_under_root': 'true' }
const under = { 'co.elastic.logs/json.add_error_key': 'true' }

test.each<Case>([
  { name: 'none', annotations: {}, message: '{"a":1}', expected: { message: '{"a":1}', json: null } },
  {
    name: 'JSON at the root',
    annotations: root,
    message: '{"a":1,"stream":"x","b.c":null}',
    expected: { a: 1, stream: 'stdout', message: null },
  },
  {
    name: 'JSON that replaces fields',
    annotations: { ...root, 'co.elastic.logs/json.overwrite_keys': 'true' },
    message: '{"stream":"x","log.level":"warn"}',
    expected: { stream: 'x', 'log.level': 'warn' },
  },
  { name: 'JSON in an object', annotations: under, message: '{"a":1}', expected: { json: { a: 1 }, message: null } },
  {
    name: 'a line that is not JSON',
    annotations: under,
    message: 'x',
    expected: { message: 'x', 'json.error.message': 'Error decoding JSON' },
  },
  {
    name: 'a line that is not JSON, with a key for the message',
    annotations: { ...root, ...under, 'co.elastic.logs/json.message_key': 'text' },
    message: 'x',
    expected: { message: null, text: 'x', 'error.type': 'json' },
  },
  {
    name: 'a key without a text',
    annotations: { ...under, 'co.elastic.logs/json.message_key': 'text' },
    message: '{"a":1}',
    expected: { json: { a: 1, text: '', error: { message: "Key 'text' not found", type: 'json' } } },
  },
  {
    name: 'JSON for another container',
    annotations: { 'co.elastic.logs.other/json.keys_under_root': 'true' },
    message: '{"a":1}',
    expected: { message: '{"a":1}' },
  },
  {
    name: 'JSON for this container',
    annotations: { 'co.elastic.logs.web/json.keys_under_root': 'true' },
    message: '{"a":1}',
    expected: { a: 1 },
  },
  {
    name: 'a line to leave out',
    annotations: { 'co.elastic.logs/exclude_lines': '^DBG, ^TRACE' },
    message: 'TRACE x',
    expected: undefined,
  },
  {
    name: 'a line that stays',
    annotations: { 'co.elastic.logs/exclude_lines': '^DBG, ^TRACE' },
    message: 'INFO x',
    expected: { message: 'INFO x' },
  },
  {
    name: 'a line that is not wanted',
    annotations: { 'co.elastic.logs/include_lines': '^ERR' },
    message: 'INFO x',
    expected: undefined,
  },
  {
    name: 'a wanted line at the key of JSON',
    annotations: { ...root, 'co.elastic.logs/json.message_key': 'm', 'co.elastic.logs/include_lines': '^ERR' },
    message: '{"m":"ERR x"}',
    expected: { m: 'ERR x' },
  },
  {
    name: 'an expression that is not valid',
    annotations: { 'co.elastic.logs/exclude_lines': '(' },
    message: 'x',
    expected: { message: 'x' },
  },
])('hints of a pod: $name', async ({ annotations, message, expected }) => {
  const { document, resource, gaps } = converted(convertFilebeat, [{ file: 'filebeat.yml', text: config }])
  expect(gaps.every(({ isReplaced }) => isReplaced === true)).toBe(true)
  const orchestrator = { pod_annotations: annotations, container_name: 'web', pod_namespace: 'shop' }
  withTest(document, resource, { message, stream: 'stdout', orchestrator }, expected)
  expect(await lint(document.toString())).toEqual([])
})

const ofStream = (name: string, value: string) => ({ [`co.elastic.logs/json.${name}`]: value })
test.each<Case>([
  {
    name: 'JSON at the root',
    annotations: ofStream('expand_keys', 'true'),
    message: '{"a":1,"stream":"x"}',
    expected: { a: 1, stream: 'stdout', json: null, message: null },
  },
  {
    name: 'JSON in an object',
    annotations: ofStream('target', 'app.line'),
    message: '{"a":1}',
    expected: { 'app.line.a': 1, message: null },
  },
  {
    name: 'the message at a key',
    annotations: ofStream('message_key', 'text'),
    message: '{"a":1,"text":"x"}',
    expected: { a: 1, text: 'x', message: 'x' },
  },
  {
    name: 'a key without a text',
    annotations: ofStream('message_key', 'text'),
    message: '{"a":1}',
    expected: { a: 1, text: null, message: null },
  },
  {
    name: 'a line that is not JSON',
    annotations: { ...ofStream('message_key', 'text'), ...ofStream('add_error_key', 'true') },
    message: 'x',
    expected: { message: 'x', text: 'x', 'error.type': 'json' },
  },
])('hints of a pod that filestream reads: $name', async ({ annotations, message, expected }) => {
  const text = config.replace(
    'hints.enabled: true',
    'hints: { enabled: true, default_config: { type: filestream, paths: [/var/log/containers/*.log], parsers: [container: ~] } }',
  )
  const { document, resource } = converted(convertFilebeat, [{ file: 'filebeat.yml', text }])
  const orchestrator = { pod_annotations: annotations, container_name: 'web', pod_namespace: 'shop' }
  withTest(document, resource, { message, stream: 'stdout', orchestrator }, expected)
  expect(await lint(document.toString())).toEqual([])
})

test('the report of hints names those that nothing reads', () => {
  const { gaps } = converted(convertFilebeat, [{ file: 'filebeat.yml', text: config }])
  const [row] = gaps.filter(({ subject }) => subject === 'hints')
  for (const name of ['multiline.…', 'module', 'processors.…']) expect(row?.reason).toContain(`\`${name}\``)
})
