// Options of sinks that Vector sets itself, or that old versions set.

import { expect, test } from 'vitest'
import { converted, lint } from '../../testing/conversions.ts'
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
