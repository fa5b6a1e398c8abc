// The search_engine sink with real OpenSearch and Elasticsearch, through the agent's command. Tests query the documents and compare them
// completely. Each test has its own index.

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runAgent } from '../agent.ts'
import { makeCertificates } from '../certificates.ts'
import { gate } from '../gate.ts'
import { relay } from '../relay.ts'
import type { RunningService } from '../services/service.ts'
import { service } from '../services/service.ts'
import { searchAll, searchApi } from '../stores.ts'
import { expectClean } from './expect-clean.ts'

const opensearch = service('opensearch')
const elasticsearch = service('elasticsearch')
const because = (missing: string | undefined) => (missing === undefined ? '' : ` (${missing})`)

const lines = (events: readonly object[]) => events.map((event) => `${JSON.stringify(event)}\n`).join('')
const at = '2026-01-02T03:04:05.678901234Z'

/** Reads events from standard input as JSON, converts `timestamp` to an instant, and removes the source's fields. */
function pipeline(sink: object, program = '') {
  return {
    sources: { in: { type: 'stdin', decoding: { codec: 'json' } } },
    transforms: {
      shape: {
        type: 'remap',
        inputs: ['in'],
        source: `
          del(.host)
          del(.source_type)
          .timestamp = parse_timestamp!(.timestamp, format: "%+")
          ${program}
        `,
      },
    },
    sinks: { out: { type: 'search_engine', inputs: ['shape'], ...sink } },
  }
}

const everyKind = {
  message: 'Zażółć "gęślą" \\ jaźń \u{1f980}\ttab',
  big: 1234567890123456,
  ratio: 0.25,
  whole: true,
  nothing: null,
  list: [1, 2, 3],
  nested: { deep: { er: 'value' } },
  empty: '',
}

describe.skipIf(opensearch.missing !== undefined)(`search_engine and OpenSearch${because(opensearch.missing)}`, () => {
  let server: RunningService
  beforeAll(async () => {
    server = await opensearch.start()
  })
  afterAll(() => server?.[Symbol.asyncDispose]())

  test('all fields are returned, from an index named by a template with the time of the event', async () => {
    const name = `t-${randomUUID()}`
    const config = pipeline({ endpoints: [server.url], bulk: { index: `${name}-{{ app }}-%Y.%m.%d` } })

    const result = await runAgent(config, lines([{ ...everyKind, app: 'web', timestamp: at }]))

    expectClean(result)
    const hits = await searchAll(server.url, `${name}-web-2026.01.02`)
    expect(hits.map((hit) => hit._source)).toEqual([{ ...everyKind, app: 'web', timestamp: at }])
  })

  // Without snappy, because this engine reads only the framed format, and the sink sends the block format.
  test.each(['none', 'gzip', 'zlib', 'zstd'])('the engine reads a body with compression %s', async (compression) => {
    const name = `t-${randomUUID()}`
    const events = Array.from({ length: 500 }, (_, n) => ({ message: `line ${n}`, n, timestamp: at }))
    const config = pipeline({ endpoints: [server.url], bulk: { index: name }, compression })

    const result = await runAgent(config, lines(events))

    expectClean(result)
    expect((await searchAll(server.url, name, 'n')).map((hit) => hit._source)).toEqual(events)
  })

  test('`id_key` becomes the id, and the request names the ingest pipeline', async () => {
    const name = `t-${randomUUID()}`
    await searchApi(server.url, 'PUT', `/_ingest/pipeline/${name}`, {
      processors: [{ set: { field: 'via', value: 'pipeline' } }],
    })
    const config = pipeline({ endpoints: [server.url], bulk: { index: name }, id_key: 'id', pipeline: name })

    const result = await runAgent(
      config,
      lines([
        { id: 'one', message: 'first', timestamp: at },
        { id: 'one', message: 'second', timestamp: at },
      ]),
    )

    expectClean(result)
    const hits = await searchAll(server.url, name)
    expect(hits.map(({ _id, _source }) => ({ _id, _source }))).toEqual([
      { _id: 'one', _source: { message: 'second', timestamp: at, via: 'pipeline' } },
    ])
  })

  test('data streams: documents are created in the stream that the event names, with matching fields', async () => {
    const dataset = `d${randomUUID().replaceAll('-', '')}`
    await searchApi(server.url, 'PUT', `/_index_template/${dataset}`, {
      index_patterns: [`*-${dataset}*`],
      data_stream: {},
      priority: 500,
    })
    const config = pipeline({ endpoints: [server.url], mode: 'data_stream', data_stream: { dataset } })

    const result = await runAgent(
      config,
      lines([
        { message: 'configured', n: 1, timestamp: at },
        { message: 'routed', n: 2, timestamp: at, data_stream: { dataset: `${dataset}2`, namespace: 'prod' } },
      ]),
    )

    expectClean(result)
    const configured = await searchAll(server.url, `logs-${dataset}-default`)
    expect(configured.map((hit) => hit._source)).toEqual([
      { '@timestamp': at, message: 'configured', n: 1, data_stream: { type: 'logs', dataset, namespace: 'default' } },
    ])
    const routed = await searchAll(server.url, `logs-${dataset}2-prod`)
    expect(routed.map((hit) => hit._source)).toEqual([
      {
        '@timestamp': at,
        message: 'routed',
        n: 2,
        data_stream: { type: 'logs', dataset: `${dataset}2`, namespace: 'prod' },
      },
    ])
    const streams = (await searchApi(server.url, 'GET', `/_data_stream/logs-${dataset}*`)) as {
      data_streams: { name: string }[]
    }
    expect(streams.data_streams.map((stream) => stream.name).sort()).toEqual(
      [`logs-${dataset}-default`, `logs-${dataset}2-prod`].sort(),
    )
  })

  test('a partial failure: the engine keeps valid documents, the agent logs the reason and continues', async () => {
    const name = `t-${randomUUID()}`
    await searchApi(server.url, 'PUT', `/${name}`, { mappings: { properties: { n: { type: 'integer' } } } })
    const config = pipeline({ endpoints: [server.url], bulk: { index: name }, batch: { max_events: 3 } })

    const result = await runAgent(
      config,
      lines([
        { n: 1, timestamp: at },
        { n: 'not a number', timestamp: at },
        { n: 3, timestamp: at },
        { n: 4, timestamp: at },
      ]),
    )

    expect(result.code, result.stderr).toBe(0)
    expect((await searchAll(server.url, name, 'n')).map((hit) => hit._source['n'])).toEqual([1, 3, 4])
    expect(result.stdout + result.stderr).toMatch(/mapper_parsing_exception|document_parsing_exception/)
  })

  test('a partial failure with `request_retry_partial`: invalid documents are not retried forever, and none is sent twice', async () => {
    const name = `t-${randomUUID()}`
    await searchApi(server.url, 'PUT', `/${name}`, { mappings: { properties: { n: { type: 'integer' } } } })
    const config = pipeline({ endpoints: [server.url], bulk: { index: name }, request_retry_partial: true })

    const result = await runAgent(
      config,
      lines([
        { n: 1, timestamp: at },
        { n: 'not a number', timestamp: at },
        { n: 3, timestamp: at },
      ]),
    )

    expect(result.code, result.stderr).toBe(0)
    expect((await searchAll(server.url, name, 'n')).map((hit) => hit._source['n'])).toEqual([1, 3])
  })

  test('basic authentication is sent, from `auth` or from the address', async () => {
    await using guarded = await gate(server.url, `Basic ${Buffer.from('writer:s3cret').toString('base64')}`)
    const auth = { strategy: 'basic', user: 'writer', password: 's3cret' }
    const variants = [
      { endpoints: [guarded.url], auth },
      { endpoints: [guarded.url.replace('//', '//writer:s3cret@')] },
    ]

    for (const variant of variants) {
      const name = `t-${randomUUID()}`
      const result = await runAgent(pipeline({ ...variant, bulk: { index: name } }), lines([{ n: 1, timestamp: at }]))
      expectClean(result)
      expect(await searchAll(server.url, name)).toHaveLength(1)
      expect(result.stdout + result.stderr).not.toContain('s3cret')
    }
    expect(guarded.seen.filter((request) => request.status === 401)).toEqual([])
  })

  test('TLS: the connection works with the correct authority, and not with another', async () => {
    await using certificates = await makeCertificates()
    await using secure = await relay(server.url, { tls: certificates.server })
    const name = `t-${randomUUID()}`
    const options = { endpoints: [secure.url], bulk: { index: name } }
    const input = lines([{ message: 'over TLS', timestamp: at }])

    const trusted = await runAgent(pipeline({ ...options, tls: { ca_file: certificates.authority } }), input)
    expectClean(trusted)
    expect(await searchAll(server.url, name)).toHaveLength(1)

    const other = pipeline({ ...options, tls: { ca_file: certificates.otherAuthority } })
    const refused = await runAgent(other, input, { args: ['--require-healthy'] })
    expect(refused.code, refused.stderr).toBe(78)
    expect(refused.stdout + refused.stderr).toMatch(/certificate/i)
    expect(await searchAll(server.url, name)).toHaveLength(1)
  })
})

describe.skipIf(elasticsearch.missing !== undefined)(
  `search_engine and Elasticsearch 8${because(elasticsearch.missing)}`,
  () => {
    let server: RunningService
    beforeAll(async () => {
      server = await elasticsearch.start()
    })
    afterAll(() => server?.[Symbol.asyncDispose]())

    // This distribution does not respond to `GET /`, so with `auto` the version is unknown, and the sink assumes the newest.
    test.each(['auto', 'v8'])('all fields are returned with `api_version: %s`', async (api_version) => {
      const name = `t-${randomUUID()}`
      const config = pipeline({ endpoints: [server.url], bulk: { index: name, action: 'create' }, api_version })

      const result = await runAgent(config, lines([{ ...everyKind, timestamp: at }]))

      expectClean(result)
      expect((await searchAll(server.url, name)).map((hit) => hit._source)).toEqual([{ ...everyKind, timestamp: at }])
    })
  },
)
