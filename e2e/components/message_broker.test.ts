// The message_broker sink with a real Pulsar, through the agent's command. The broker's own client reads the published messages. Each test
// has its own topics.

import { randomBytes, randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runAgent } from '../agent.ts'
import { until } from '../command.ts'
import { administer, type BrokerMessage, readTopics, tokenOf } from '../pulsar.ts'
import type { RunningService } from '../services/service.ts'
import { restartService, service } from '../services/service.ts'
import { expectNoWarning } from './expect-clean.ts'

const pulsar = service('pulsar')
// A server from the environment has no known tokens, and no client to read messages.
const from =
  process.env['PENSTOCK_TEST_PULSAR_URL'] === undefined ? pulsar.missing : 'the tests need the one of e2e/services'
const why = from === undefined ? '' : ` (${from})`

const newTopic = (name: string) => `${name}-${randomUUID()}`
const lines = (events: readonly object[]) => events.map((event) => `${JSON.stringify(event)}\n`).join('')
const input = { type: 'stdin', decoding: { codec: 'json' } }

describe.skipIf(from !== undefined)(`message_broker and Pulsar${why}`, () => {
  let server: RunningService
  let token: string
  beforeAll(async () => {
    server = await pulsar.start()
    token = await tokenOf(server, 'app')
    await administer(server, 'POST', '/namespaces/public/default/permissions/app', ['produce', 'consume'])
  })
  afterAll(() => server?.[Symbol.asyncDispose]())

  const sink = (options: object) => ({
    type: 'message_broker',
    inputs: ['in'],
    endpoint: server.url,
    auth: { name: 'token', token },
    encoding: { codec: 'text' },
    ...options,
  })
  const values = (messages: readonly BrokerMessage[], topic: string) =>
    messages
      .filter((message) => message.topic === `persistent://public/default/${topic}`)
      .map(({ value }) => value.toString('utf8'))

  /** Creates a separate namespace, unless it exists from an earlier run. */
  const newNamespace = (name: string) =>
    administer(server, 'PUT', `/namespaces/public/${name}`).catch((error: Error) => {
      if (!error.message.includes('409')) throw error
    })

  test('the broker’s own client reads all codecs and compression methods, with and without batches', async () => {
    const schema = JSON.stringify({
      type: 'record',
      name: 'entry',
      fields: [
        { name: 'message', type: 'string' },
        { name: 'host', type: 'string' },
      ],
    })
    const only = ['message', 'host']
    const codecs = {
      avro: { avro: { schema } },
      csv: { csv: { fields: ['host', 'message'] } },
      gelf: {},
      json: {},
      logfmt: {},
      native: {},
      native_json: {},
      raw_message: {},
      text: {},
    }
    const compressions = ['none', 'lz4', 'snappy', 'zlib', 'zstd']
    const codecTopics = Object.fromEntries(Object.keys(codecs).map((codec) => [codec, newTopic(codec)]))
    const compressionTopics = Object.fromEntries(compressions.map((name) => [name, newTopic(name)]))
    const aloneTopics = Object.fromEntries(compressions.map((name) => [name, newTopic(`alone-${name}`)]))
    const sinks = Object.fromEntries([
      ...Object.entries(codecs).map(([codec, options]) => [
        `codec_${codec}`,
        sink({ topic: codecTopics[codec], encoding: { codec, only_fields: only, ...options } }),
      ]),
      ...compressions.map((compression) => [
        `by_${compression}`,
        sink({ topic: compressionTopics[compression], compression }),
      ]),
      ...compressions.map((compression) => [
        `alone_${compression}`,
        sink({ topic: aloneTopics[compression], compression, batch: { max_events: 1 } }),
      ]),
    ])
    const messages = Array.from({ length: 300 }, (_, index) => `message ${index} ${'äb'.repeat(index)}`)

    const result = await runAgent(
      { sources: { in: input }, sinks },
      lines(messages.map((message) => ({ message, host: 'h1' }))),
    )

    expectNoWarning(result)
    const { avro: avroTopic, ...plain } = codecTopics
    const topics = [...Object.values(plain), ...Object.values(compressionTopics), ...Object.values(aloneTopics)]
    const found = await readTopics(server, 300 * (topics.length + 1), [...topics, `avro:${avroTopic}`])
    const expected: Record<string, (message: string) => string> = {
      csv: (message) => `h1,${message}`,
      gelf: (message) => JSON.stringify({ host: 'h1', short_message: message, version: '1.1' }),
      json: (message) => JSON.stringify({ host: 'h1', message }),
      logfmt: (message) => `host=h1 message="${message}"`,
      native_json: (message) => JSON.stringify({ log: { host: 'h1', message } }),
      raw_message: (message) => message,
      text: (message) => message,
    }
    for (const [codec, text] of Object.entries(expected)) {
      expect(values(found, codecTopics[codec] as string), codec).toEqual(messages.map(text))
    }
    const native = values(found, codecTopics['native'] as string)
    expect(native.map((value, index) => value.includes(messages[index] as string))).toEqual(messages.map(() => true))
    expect(found.flatMap(({ record }) => (record === undefined ? [] : [record]))).toEqual(
      messages.map((message) => ({ message, host: 'h1' })),
    )
    for (const name of compressions) {
      expect(values(found, compressionTopics[name] as string), name).toEqual(messages)
      expect(values(found, aloneTopics[name] as string), `${name}, alone`).toEqual(messages)
    }
  })

  test('keys select the same partition as the broker’s own client; properties and times are transferred', async () => {
    const topic = newTopic('keyed')
    await administer(server, 'PUT', `/persistent/public/default/${topic}/partitions`, 5)
    const events = Array.from({ length: 200 }, (_, index) => ({
      message: `m${index}`,
      key: ['order-42', 'key1', 'ä', 'polygenelubricants', `k${index}`][index % 5],
      meta: { index: String(index) },
      timestamp: '2026-01-01T00:00:02.5Z',
    }))
    const config = {
      sources: { in: input },
      transforms: {
        time: { type: 'remap', inputs: ['in'], source: '.timestamp = to_timestamp!(.timestamp)' },
      },
      sinks: {
        out: sink({
          inputs: ['time'],
          topic: `persistent://public/default/${topic}`,
          partition_key_field: 'key',
          properties_key: '.meta',
          producer_name: `me-${topic}`,
          compression: 'zstd',
          batch: { max_events: 7 },
        }),
      },
    }

    expectNoWarning(await runAgent(config, lines(events)))

    const found = await readTopics(server, 200, [topic])
    expect(found).toHaveLength(200)
    for (const { topic: partition, hash } of found) {
      expect(partition).toBe(`persistent://public/default/${topic}-partition-${(hash ?? 0) % 5}`)
    }
    const byIndex = found.toSorted((a, b) => Number(a.properties['index']) - Number(b.properties['index']))
    expect(
      byIndex.map(({ value, key, eventTime, producer }) => ({ message: value.toString(), key, eventTime, producer })),
    ).toEqual(
      events.map(({ message, key }) => ({ message, key, eventTime: 1_767_225_602_500, producer: `me-${topic}` })),
    )
    // Within a partition, the order of events is kept.
    const order = new Map<string, number>()
    for (const { topic: partition, properties } of found) {
      expect(Number(properties['index'])).toBeGreaterThan(order.get(partition) ?? -1)
      order.set(partition, Number(properties['index']))
    }
  })

  test('TLS, with a token of OAuth2', async () => {
    const topic = newTopic('tls')
    const issuer = createServer((request, response) => {
      const { port } = issuer.address() as AddressInfo
      response.end(
        JSON.stringify(
          request.url === '/token'
            ? { access_token: token, expires_in: 3600 }
            : { token_endpoint: `http://127.0.0.1:${port}/token` },
        ),
      )
    })
    await new Promise<void>((resolve) => issuer.listen(0, '127.0.0.1', resolve))
    try {
      const credentials = Buffer.from(JSON.stringify({ client_id: 'id', client_secret: 'hush' })).toString('base64')
      const secure = {
        topic,
        endpoint: server.variables['PENSTOCK_TEST_PULSAR_TLS_URL'],
        tls: { ca_file: server.variables['PENSTOCK_TEST_PULSAR_CA'] },
        auth: {
          oauth2: {
            issuer_url: `http://127.0.0.1:${(issuer.address() as AddressInfo).port}`,
            credentials_url: `data:application/json;base64,${credentials}`,
          },
        },
      }
      const result = await runAgent(
        { sources: { in: input }, sinks: { out: sink(secure) } },
        lines([{ message: 'a' }]),
        {
          args: ['--require-healthy'],
        },
      )
      expectNoWarning(result)
      expect(values(await readTopics(server, 1, [topic]), topic)).toEqual(['a'])
    } finally {
      issuer.close()
    }
  })

  test.each([
    { what: 'an expired token', role: 'expired', tls: false, text: 'authentication' },
    { what: 'an unknown authority', role: 'app', tls: true, text: 'certificate' },
  ] as const)('$what is logged without the token', async ({ role, tls, text }) => {
    const secret = await tokenOf(server, role)
    const options = {
      topic: newTopic('refused'),
      auth: { name: 'token', token: secret },
      ...(tls ? { endpoint: server.variables['PENSTOCK_TEST_PULSAR_TLS_URL'] } : {}),
    }
    const result = await runAgent({ sources: { in: input }, sinks: { out: sink(options) } }, '', {
      args: ['--require-healthy'],
    })
    expect(result.code).toBe(78)
    expect(result.stdout + result.stderr).toContain(text)
    expect(result.stdout + result.stderr).not.toContain(secret)
  })

  test('events for a topic that the role may not write to are discarded, with a log message', async () => {
    await newNamespace('closed')
    const options = { topic: 'persistent://public/closed/t' }
    const result = await runAgent({ sources: { in: input }, sinks: { out: sink(options) } }, lines([{ message: 'a' }]))
    expect(result.code, result.stderr).toBe(0)
    expect(result.stdout + result.stderr).toContain('broker_authorization')
    expect(result.stdout + result.stderr).toContain('Events dropped.')
  })

  test('only an event above the size limit of the broker is discarded', async () => {
    const topic = newTopic('large')
    const large = randomBytes(4_500_000).toString('base64')
    const events = [{ message: 'a' }, { message: large }, { message: 'b' }]
    const result = await runAgent(
      { sources: { in: { ...input, max_length: 10_000_000 } }, sinks: { out: sink({ topic }) } },
      lines(events),
    )
    expect(result.code, result.stderr).toBe(0)
    expect(result.stdout + result.stderr).toContain('An event is larger than the destination accepts')
    expect(result.stdout + result.stderr).toContain('Events dropped. count=1 intentional=false')
    const stats = (await administer(server, 'GET', `/persistent/public/default/${topic}/stats`)) as {
      msgInCounter: number
    }
    expect(stats.msgInCounter).toBe(2)
  })

  test('killing the broker while 20,000 messages flow loses none, duplicates none, and keeps their order', async () => {
    // The broker removes messages with duplicate numbers, which shows whether retried messages keep their numbers.
    await newNamespace('once')
    await administer(server, 'POST', '/namespaces/public/once/deduplication', true)
    await administer(server, 'POST', '/namespaces/public/once/permissions/app', ['produce', 'consume'])
    const topic = newTopic('killed')
    const count = 20_000
    await administer(server, 'PUT', `/persistent/public/once/${topic}/partitions`, 3)
    const events = Array.from({ length: count }, (_, index) => ({ message: String(index), key: `k${index % 11}` }))
    const config = {
      sources: { in: input },
      sinks: {
        out: sink({
          topic: `public/once/${topic}`,
          producer_name: topic,
          partition_key_field: 'key',
          compression: 'lz4',
          // It takes about 10 s without the kill.
          batch: { max_events: 50 },
          request: { rate_limit_num: 40 },
          connection_retry_options: { max_backoff_secs: 1 },
        }),
      },
    }
    const args = ['--no-graceful-shutdown-limit']
    const running = runAgent(config, lines(events), { args, timeoutMs: 240_000 })
    await until('3000 messages in the broker', 60_000, async () => {
      const stats = (await administer(server, 'GET', `/persistent/public/once/${topic}/partitioned-stats`)) as {
        msgInCounter: number
      }
      return stats.msgInCounter >= 3000
    })
    await restartService('pulsar', server)

    const result = await running
    expect(result.code, result.stderr).toBe(0)
    expect(result.stdout + result.stderr).toContain('Request failed; trying again.')
    expect(result.stdout + result.stderr).not.toContain('Events dropped.')

    const found = await readTopics(server, count, [`persistent://public/once/${topic}`])
    const partitions = new Map<string, number[]>()
    for (const { topic: partition, value } of found) {
      const numbers = partitions.get(partition) ?? []
      partitions.set(partition, numbers)
      numbers.push(Number(value.toString()))
    }
    const all = [...partitions.values()].flat().sort((a, b) => a - b)
    expect(all).toEqual(events.map((_, index) => index))
    expect(partitions.size).toBe(3)
    for (const [partition, numbers] of partitions) {
      expect(numbers, partition).toEqual(numbers.toSorted((a, b) => a - b))
    }
  })
})
