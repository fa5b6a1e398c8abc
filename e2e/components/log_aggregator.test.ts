// The log_aggregator sink with a real Loki, through the agent's command. Tests compare the store's complete response. Each test has its own
// tenant, and also names it in a label, for a Loki without tenants.

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runAgent } from '../agent.ts'
import { makeCertificates } from '../certificates.ts'
import { until } from '../command.ts'
import { gate } from '../gate.ts'
import { relay } from '../relay.ts'
import type { RunningService } from '../services/service.ts'
import { service } from '../services/service.ts'
import { queryLoki, queryVictoriaLogs } from '../stores.ts'
import { expectClean } from './expect-clean.ts'

const loki = service('loki')
const standIn = loki.missing === undefined ? undefined : service('victorialogs')
const why = loki.missing === undefined ? '' : ` (${loki.missing})`

const second = Math.floor(Date.now() / 1000) - 3600
/** An instant in the form of events, and in the form of the store. */
const instant = (offset: number, fraction = '') => ({
  text: `${new Date((second + offset) * 1000).toISOString().slice(0, 19)}${fraction === '' ? '' : `.${fraction}`}Z`,
  ns: `${second + offset}${fraction.padEnd(9, '0')}`,
})
const lines = (events: readonly object[]) => events.map((event) => `${JSON.stringify(event)}\n`).join('')

/** Reads events from standard input as JSON, converts `timestamp` to an instant, and removes the source's fields. */
function pipeline(sink: { tenant_id?: string; labels: Record<string, string>; [option: string]: unknown }) {
  const labels = sink.tenant_id === undefined ? sink.labels : { ...sink.labels, run: sink.tenant_id }
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
        `,
      },
    },
    sinks: { out: { type: 'log_aggregator', inputs: ['shape'], encoding: { codec: 'json' }, ...sink, labels } },
  }
}

describe.skipIf(loki.missing !== undefined)(`log_aggregator and Loki${why}`, () => {
  let server: RunningService
  beforeAll(async () => {
    server = await loki.start()
  })
  afterAll(() => server?.[Symbol.asyncDispose]())

  const entriesOf = async (tenant: string) => {
    const entries = await queryLoki(server.url, `{run="${tenant}"}`, tenant)
    return entries.map(({ labels: { run: _, ...labels }, at, line }) => ({ labels, at, line }))
  }
  const readBack = (tenant: string, count: number) =>
    until(`${count} entries in Loki`, 15_000, async () => {
      const entries = await entriesOf(tenant)
      return entries.length >= count && entries
    })

  test('all fields are returned: nested values, 64-bit integers, floats, all kinds of text', async () => {
    const tenant = randomUUID()
    const at = instant(0, '123456789')
    const event = {
      app: 'web',
      message: 'Zażółć "gęślą" \\ jaźń \u{1f980}\ttab',
      big: '9007199254740993',
      ratio: 0.5,
      whole: true,
      nothing: null,
      list: [1, 'two', { three: 3 }],
      nested: { deep: { er: 'value' } },
      empty: '',
    }
    // The line contains an integer above 2^53 without quotes. This test compares it as text, because a number would be rounded.
    const input = `${JSON.stringify({ ...event, timestamp: at.text }).replace(`"${event.big}"`, event.big)}\n`
    const config = pipeline({ endpoint: server.url, tenant_id: tenant, labels: { app: '{{ app }}', env: 'test' } })

    const result = await runAgent(config, input)

    expectClean(result)
    const entries = await readBack(tenant, 1)
    expect(entries).toHaveLength(1)
    expect(entries[0]?.labels).toEqual({ app: 'web', env: 'test' })
    expect(entries[0]?.at).toBe(at.ns)
    expect(entries[0]?.line).toContain(`"big":${event.big}`)
    expect(JSON.parse((entries[0]?.line ?? '').replace(event.big, `"${event.big}"`))).toEqual(event)
  })

  test.each([
    { codec: 'text', line: 'hello world' },
    { codec: 'json', line: '{"app":"web","message":"hello world","status":200}' },
    { codec: 'logfmt', line: 'app=web message="hello world" status=200' },
  ])('the line of codec $codec is `$line`', async ({ codec, line }) => {
    const tenant = randomUUID()
    const at = instant(1)
    const config = pipeline({
      endpoint: server.url,
      tenant_id: tenant,
      labels: { app: '{{ app }}' },
      encoding: { codec },
    })

    const result = await runAgent(
      config,
      lines([{ app: 'web', message: 'hello world', status: 200, timestamp: at.text }]),
    )

    expectClean(result)
    expect(await readBack(tenant, 1)).toEqual([{ labels: { app: 'web' }, at: at.ns, line }])
  })

  test.each(['none', 'gzip'])('the store reads a body with compression %s', async (compression) => {
    const tenant = randomUUID()
    const events = Array.from({ length: 1000 }, (_, n) => ({
      app: 'web',
      message: `line ${n}`,
      timestamp: instant(2, String(n).padStart(9, '0')).text,
    }))
    const config = pipeline({
      endpoint: server.url,
      tenant_id: tenant,
      labels: { app: '{{ app }}' },
      encoding: { codec: 'text' },
      compression,
    })

    const result = await runAgent(config, lines(events))

    expectClean(result)
    const entries = await readBack(tenant, 1000)
    expect(entries.map((entry) => entry.line)).toEqual(events.map((event) => event.message))
  })

  test('labels: `*` expands fields, labels can be removed from the line, and determine the stream', async () => {
    const tenant = randomUUID()
    const at = instant(3)
    const config = pipeline({
      endpoint: server.url,
      tenant_id: tenant,
      labels: { app: '{{ app }}', 'meta_*': '{{ meta }}' },
      remove_label_fields: true,
    })
    const meta = { Team: 'blue', 'cost-center': 7 }

    const result = await runAgent(
      config,
      lines([
        { app: 'web', meta, message: 'one', timestamp: at.text },
        { app: 'db', meta, message: 'two', timestamp: at.text },
      ]),
    )

    expectClean(result)
    const entries = await readBack(tenant, 2)
    const labels = { meta_Team: 'blue', meta_cost_center: '7' }
    expect(entries).toHaveLength(2)
    expect(entries).toContainEqual({ labels: { app: 'web', ...labels }, at: at.ns, line: '{"message":"one"}' })
    expect(entries).toContainEqual({ labels: { app: 'db', ...labels }, at: at.ns, line: '{"message":"two"}' })
  })

  test('`remove_timestamp: false` keeps the timestamp in the line', async () => {
    const tenant = randomUUID()
    const at = instant(4, '500')
    const config = pipeline({
      endpoint: server.url,
      tenant_id: tenant,
      labels: { app: '{{ app }}' },
      remove_timestamp: false,
    })

    const result = await runAgent(config, lines([{ app: 'web', timestamp: at.text }]))

    expectClean(result)
    const entries = await readBack(tenant, 1)
    expect(entries.map((entry) => JSON.parse(entry.line))).toEqual([{ app: 'web', timestamp: at.text }])
  })

  test('events of different tenants reach only their own tenant', async () => {
    const tenants = [randomUUID(), randomUUID()]
    const config = pipeline({
      endpoint: server.url,
      tenant_id: '{{ tenant }}',
      labels: { app: 'web' },
      encoding: { codec: 'text' },
    })
    const events = tenants.map((tenant, n) => ({ tenant, message: `of ${tenant}`, timestamp: instant(5 + n).text }))

    const result = await runAgent(config, lines(events))

    expectClean(result)
    for (const tenant of tenants) {
      expect((await readBack(tenant, 1)).map((entry) => entry.line)).toEqual([`of ${tenant}`])
    }
  })

  test('only events that the store rejects as too old are discarded; it has the others once', async () => {
    const tenant = randomUUID()
    const config = pipeline({
      endpoint: server.url,
      tenant_id: tenant,
      labels: { app: '{{ app }}' },
      encoding: { codec: 'text' },
      out_of_order_action: 'accept', // so that the store rejects them
    })
    const count = 100
    const good = Array.from({ length: count }, (_, index) => ({
      app: 'web',
      message: `in time ${index}`,
      timestamp: instant(index).text,
    }))
    const old = { app: 'web', message: 'too old', timestamp: '2020-01-01T00:00:00Z' }

    const result = await runAgent(config, lines([...good.slice(0, 30), old, ...good.slice(30)]))

    expect(result.code, result.stderr).toBe(0)
    expect((await readBack(tenant, count)).map((entry) => entry.line)).toEqual(good.map(({ message }) => message))
    expect(result.stdout + result.stderr).toContain('400')
    expect(result.stdout + result.stderr).toContain('Events dropped. count=1 intentional=false')
  })

  test('basic authentication is sent, from `auth` or from the address', async () => {
    await using guarded = await gate(server.url, `Basic ${Buffer.from('reader:s3cret').toString('base64')}`)
    const options = { labels: { app: '{{ app }}' }, encoding: { codec: 'text' } }
    const auth = { strategy: 'basic', user: 'reader', password: 's3cret' }
    const variants = [{ endpoint: guarded.url, auth }, { endpoint: guarded.url.replace('//', '//reader:s3cret@') }]

    for (const variant of variants) {
      const tenant = randomUUID()
      const config = pipeline({ ...options, ...variant, tenant_id: tenant })
      const result = await runAgent(config, lines([{ app: 'web', message: 'in', timestamp: instant(8).text }]))
      expectClean(result)
      expect((await readBack(tenant, 1)).map((entry) => entry.line)).toEqual(['in'])
      expect(result.stdout + result.stderr).not.toContain('s3cret')
    }
    expect(guarded.seen.filter((request) => request.status === 401)).toEqual([])
  })

  test('TLS: the connection works with the correct authority, and not with another', async () => {
    await using certificates = await makeCertificates()
    await using secure = await relay(server.url, { tls: certificates.server })
    const tenant = randomUUID()
    const options = {
      endpoint: secure.url,
      tenant_id: tenant,
      labels: { app: '{{ app }}' },
      encoding: { codec: 'text' },
    }
    const input = lines([{ app: 'web', message: 'over TLS', timestamp: instant(9).text }])

    const trusted = await runAgent(pipeline({ ...options, tls: { ca_file: certificates.authority } }), input)
    expectClean(trusted)
    expect((await readBack(tenant, 1)).map((entry) => entry.line)).toEqual(['over TLS'])

    const other = pipeline({ ...options, tls: { ca_file: certificates.otherAuthority } })
    const refused = await runAgent(other, input, { args: ['--require-healthy'] })
    expect(refused.code, refused.stderr).toBe(78)
    expect(refused.stdout + refused.stderr).toMatch(/certificate/i)
    expect(await entriesOf(tenant)).toHaveLength(1)
  })
})

// Only if there is no Loki.
if (standIn !== undefined) {
  describe.skipIf(standIn.missing !== undefined)(`log_aggregator and VictoriaLogs, instead of Loki${why}`, () => {
    let server: RunningService
    beforeAll(async () => {
      server = await standIn.start()
    })
    afterAll(() => server?.[Symbol.asyncDispose]())

    test.each(['none', 'gzip'])(
      'the store returns lines, labels and times with compression %s',
      async (compression) => {
        const app = randomUUID()
        const at = instant(10, '123456789')
        const endpoint = `${server.url}/insert`
        const config = pipeline({ endpoint, labels: { app: '{{ app }}' }, encoding: { codec: 'text' }, compression })

        const result = await runAgent(config, lines([{ app, message: 'hello', timestamp: at.text }]))

        expectClean(result)
        const entries = await until('the entry', 15_000, async () => {
          const found = await queryVictoriaLogs(server.url, 'app', app)
          return found.length > 0 && found
        })
        expect(entries).toEqual([{ labels: { app }, at: at.ns, line: 'hello' }])
      },
    )
  })
}
