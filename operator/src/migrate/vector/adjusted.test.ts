// Options of sinks that Vector sets itself, or that old versions set.

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
