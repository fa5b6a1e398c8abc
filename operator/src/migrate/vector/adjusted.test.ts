// Options of sinks that Vector sets itself, or that old versions set.
// biome-ignore-all lint/suspicious/noTemplateCurlyInString: variables of the old agent are meant

import { expect, test } from 'vitest'
import { converted, lint } from '../../testing/conversions.ts'
import { Draft } from '../draft.ts'
import { convertVector } from './convert.ts'

test('Loki without an encoding sends JSON, as in old versions', async () => {
  const { document, resource, gaps } = converted(convertVector, [
    {
      file: 'v.yaml',
      text: 'sources: { d: { type: stdin } }\nsinks: { l: { type: loki, inputs: [d], endpoint: "http://l", labels: { a: b } } }\n',
    },
  ])
  expect(resource.spec.sinks[0].config.encoding).toEqual({ codec: 'json' })
  expect(gaps).toMatchObject([{ subject: 'l: encoding', isReplaced: true }])
  expect(await lint(document.toString())).toEqual([])
})

test('a search service without versions needs none', async () => {
  const { document, resource, gaps } = converted(convertVector, [
    {
      file: 'v.yaml',
      text: 'sources: { d: { type: stdin } }\nsinks: { e: { type: elasticsearch, inputs: [d], endpoints: ["https://e"], opensearch_service_type: serverless, aws: { region: a }, auth: { strategy: aws, access_key_id: a, secret_access_key: b } } }\n',
    },
  ])
  expect(resource.spec.sinks[0].config.api_version).toBe('v8')
  expect(gaps).toEqual([])
  expect(await lint(document.toString())).toEqual([])
})

test.each([
  ['a buffer in memory with a size', '{ type: memory, max_size: 1000000 }', { type: 'memory' }, 'out: buffer.max_size'],
  [
    'a buffer with a size alone',
    '{ max_size: 1000000, when_full: drop_newest }',
    { when_full: 'drop_newest' },
    'out: buffer.max_size',
  ],
  ['a buffer on disk without a size', '{ type: disk }', undefined, 'out: buffer'],
])('%s', async (_, buffer, expected, subject) => {
  const { document, resource, gaps } = converted(convertVector, [
    {
      file: 'v.yaml',
      text: `sources: { d: { type: stdin } }\nsinks: { out: { type: http, inputs: [d], uri: "http://a", encoding: { codec: json }, buffer: ${buffer} } }\n`,
    },
  ])
  expect(resource.spec.sinks[0]).toMatchObject({ type: 'http' })
  expect(resource.spec.sinks[0].config.buffer).toEqual(expected)
  expect(gaps.map((gap) => gap.subject)).toEqual([subject])
  expect(await lint(document.toString())).toEqual([])
})

test('an address of a proxy that is not valid', async () => {
  const { document, gaps } = converted(convertVector, [
    {
      file: 'v.yaml',
      text: 'sources: { d: { type: stdin } }\nsinks: { out: { type: http, inputs: [d], uri: "http://a", encoding: { codec: json }, proxy: { http: "ftp://p" } } }\n',
    },
  ])
  expect(gaps).toMatchObject([{ subject: 'out: proxy.http', line: 2 }])
  expect(await lint(document.toString())).toEqual([])
})

test('sources of an aggregator without a sink', async () => {
  const draft = new Draft()
  const text =
    'sources: { k: { type: kubernetes_logs }, q: { type: amqp, connection_string: "amqp://q/%2f" } }\nsinks: { out: { type: console, inputs: [k], encoding: { codec: json } } }\n'
  convertVector([{ file: 'v.yaml', text }], () => [], draft)
  const documents = draft.documents({ name: 'c' })
  expect(documents.map((each) => each.toJS().spec.sinks.map(({ type }: { type: string }) => type))).toEqual([
    ['console'],
    ['blackhole'],
  ])
  for (const each of documents) expect(await lint(each.toString())).toEqual([])
})

test.each([
  ['extra_label_selector: "app=${APP}"', 'a selector is literal text, found a variable'],
  ['extra_field_selector: "metadata.labels.app=x"', 'pods cannot be selected by field'],
])('a source with a selector that selects no pods reads nothing: %s', async (option, reason) => {
  const { document, resource, gaps } = converted(convertVector, [
    {
      file: 'v.yaml',
      text: `sources:\n  k:\n    type: kubernetes_logs\n    ${option}\nsinks: { out: { type: console, inputs: [k], encoding: { codec: json } } }\n`,
    },
  ])
  const row = gaps.find(({ isReplaced }) => isReplaced !== true)
  expect(row).toMatchObject({ line: 4, reason: expect.stringContaining(reason) })
  expect(resource.spec.sources).toMatchObject([{ type: 'file' }])
  expect(await lint(document.toString())).toEqual([])
})

test('the row about a variable that is not a text names no sample value', () => {
  const { gaps } = converted(convertVector, [
    {
      file: 'v.yaml',
      text: 'sources: { d: { type: stdin } }\nsinks: { out: { type: elasticsearch, inputs: [d], endpoints: ["http://e"], api_version: "${V}" } }\n',
    },
  ])
  expect(gaps.at(-1)).toMatchObject({
    reason: expect.stringContaining('unknown variant, a variable, of `api_version`'),
    nearest: 'Write the value of the variable, and convert again. The option is left out.',
  })
})

test.each([
  ['encoding: { codec: text, charset: utf-16 }', 'out: encoding.charset', 'unknown field `charset`, expected one of'],
  ['encoding: { codec: json, only_fields: x }', 'out: encoding.only_fields', '`only_fields` must be a list'],
])('the row about an encoding says what is wrong: %s', async (option, subject, reason) => {
  const { document, gaps } = converted(convertVector, [
    {
      file: 'v.yaml',
      text: `sources: { d: { type: stdin } }\nsinks: { out: { type: console, inputs: [d], ${option} } }\n`,
    },
  ])
  expect(gaps).toMatchObject([{ subject, reason: expect.stringContaining(reason), nearest: 'The option is left out.' }])
  expect(await lint(document.toString())).toEqual([])
})
