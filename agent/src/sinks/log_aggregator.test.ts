import { describe, expect, test } from 'vitest'
import { type Destination, fakeDestination } from '../testing/destination.ts'
import { log } from '../testing/events.ts'
import { problemsOf, startSink } from '../testing/harness.ts'

const at = (seconds: number) => `${1_767_225_600 + seconds}000000000` // nanoseconds, as the protocol requires
const minimal = { labels: { app: '{{ app }}' }, encoding: { codec: 'text' } }

const bodies = (destination: Destination) => destination.requests.map((request) => request.json())

test('entries of one stream are sent in timestamp order', async () => {
  await using destination = await fakeDestination(204)
  await using sink = await startSink('log_aggregator', {
    ...minimal,
    out_of_order_action: 'accept',
    endpoint: destination.url,
  })

  const status = await sink.deliver([
    log({ app: 'web', message: 'second', timestamp: '2026-01-01T00:00:02Z' }),
    log({ app: 'web', message: 'first', timestamp: '2026-01-01T00:00:01Z' }),
    log({ app: 'db', message: 'other', timestamp: '2026-01-01T00:00:00Z' }),
    log({ app: 'web', message: 'third', timestamp: '2026-01-01T00:00:02Z' }),
  ])

  expect(status).toBe('delivered')
  expect(bodies(destination)).toEqual([
    {
      streams: [
        {
          stream: { app: 'web' },
          values: [
            [at(1), 'first'],
            [at(2), 'second'],
            [at(2), 'third'],
          ],
        },
        { stream: { app: 'db' }, values: [[at(0), 'other']] },
      ],
    },
  ])
  expect(destination.requests[0]).toMatchObject({ method: 'POST', path: '/loki/api/v1/push' })
  expect(sink.events.counts.get('component_sent_events_total')).toBe(4)
  expect(sink.events.counts.get('streams_total')).toBe(2)
})

const many = Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`l${index}`, '{{ k }}']))
test.each([
  ['labels that name a field many times', { labels: many }],
  ['labels of long texts', { labels: { k: '{{ k }}', text: 'x'.repeat(20_000) } }],
  ['metadata that names a field many times', { labels: { a: 'b' }, structured_metadata: many }],
  ['labels in protobuf', { labels: many, compression: 'snappy' }],
])('%s result in more requests, not longer ones', async (_name, options) => {
  await using destination = await fakeDestination(204)
  const endpoint = destination.url
  await using sink = await startSink('log_aggregator', { ...minimal, ...options, endpoint })
  const events = Array.from({ length: 1000 }, (_, index) => log({ k: `${index}`.padEnd(200, 'x'), message: 'm' }))

  expect(await sink.deliver(events)).toBe('delivered')
  expect(destination.requests.length).toBeGreaterThan(3)
  const lengths = destination.requests.map(({ body }) => body.length)
  expect(Math.max(...lengths)).toBeLessThan(5 << 20)
  expect(sink.events.counts.get('component_sent_events_total')).toBe(1000)
})

test('an event with labels or metadata that no destination accepts is rejected, and others continue', async () => {
  await using destination = await fakeDestination(204)
  const endpoint = destination.url
  await using sink = await startSink('log_aggregator', {
    labels: { 'p_*': '{{ k }}', a: 'b' },
    structured_metadata: { m: '{{ m }}' },
    encoding: { codec: 'text' },
    endpoint,
  })
  const members = (count: number) => Object.fromEntries(Array.from({ length: count }, (_, index) => [`k${index}`, 1]))
  const events = [
    { k: 'x'.repeat(200_000) },
    { k: members(100_000) },
    { k: {}, m: 'x'.repeat(200_000) },
    { k: members(2), m: 'short' },
  ]

  expect(await sink.deliver(events.map((fields) => log({ ...fields, message: 'm' })))).toBe('rejected')
  expect(sink.events.errors.map(({ fields }) => fields?.['problem'])).toEqual([
    'its labels are too long',
    'its labels are too long',
    'its structured metadata is too long',
  ])
  expect(bodies(destination)).toMatchObject([{ streams: [{ stream: { a: 'b', p_k0: '1', p_k1: '1' } }] }])
})

test('label names do not exceed the limit of the destination', () => {
  const long = 'x'.repeat(1025)
  const options = { ...minimal, labels: { [long]: 'a' }, structured_metadata: { [long]: 'a' }, endpoint: 'http://h' }
  expect(problemsOf('sink', 'log_aggregator', options).map((problem) => problem.path)).toEqual([
    'labels',
    'structured_metadata',
  ])
})

test.each([
  { action: 'drop', values: [], status: 'rejected', dropped: 1 },
  { action: 'rewrite_timestamp', values: [[at(2), 'late']], status: 'delivered', dropped: undefined },
  { action: 'accept', values: [[at(1), 'late']], status: 'delivered', dropped: undefined },
])('an event that an earlier push overtook, with `$action`', async ({ action, values, status, dropped }) => {
  await using destination = await fakeDestination(204)
  await using sink = await startSink('log_aggregator', {
    ...minimal,
    out_of_order_action: action,
    endpoint: destination.url,
    batch: { timeout_secs: 0.01 },
  })

  await sink.write([log({ app: 'web', message: 'first', timestamp: '2026-01-01T00:00:02Z' })])
  const outcome = await sink.deliver([
    log({ app: 'web', message: 'late', timestamp: '2026-01-01T00:00:01Z' }),
    log({ app: 'db', message: 'other stream', timestamp: '2026-01-01T00:00:00Z' }),
  ])

  expect(outcome).toBe(status)
  const { streams } = bodies(destination)[1] as { streams: { stream: { app: string }; values: unknown[] }[] }
  expect(streams.filter(({ stream }) => stream.app === 'web').flatMap((stream) => stream.values)).toEqual(values)
  expect(streams.find(({ stream }) => stream.app === 'db')?.values).toEqual([[at(0), 'other stream']])
  expect(sink.events.counts.get('component_discarded_events_total intentional=true')).toBe(dropped)
  expect(sink.events.counts.get('component_discarded_events_total intentional=false')).toBeUndefined()
})

test.each(['accept', 'drop', 'rewrite_timestamp'])(
  'sorts the lines of one push, and loses none and changes no time, with `%s`',
  async (action) => {
    await using destination = await fakeDestination(204)
    await using sink = await startSink('log_aggregator', {
      ...minimal,
      out_of_order_action: action,
      endpoint: destination.url,
    })
    // 2,000 lines, one per millisecond, each up to five milliseconds out of order.
    const stamps = Array.from({ length: 2000 }, (_, index) => 1_767_225_600_000 + index + ((index * 7919) % 6))

    await sink.deliver(
      stamps.map((stamp, index) => log({ app: 'web', message: `${index}`, timestamp: new Date(stamp).toISOString() })),
    )

    const sent = (bodies(destination) as { streams: { values: [string, string][] }[] }[]).flatMap(({ streams }) =>
      streams.flatMap(({ values }) => values),
    )
    const wanted = stamps.map((stamp, index): [string, string] => [`${stamp}000000`, `${index}`])
    expect(sent).toEqual(wanted.sort(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0)))
    expect(destination.requests).toHaveLength(1)
  },
)

test('an event whose tenant cannot be rendered is discarded: it never goes to the default tenant', async () => {
  await using destination = await fakeDestination(204)
  await using sink = await startSink('log_aggregator', {
    ...minimal,
    endpoint: destination.url,
    tenant_id: '{{ tenant }}',
  })

  await sink.deliver([log({ app: 'web', message: 'whose?' }), log({ app: 'web', message: 'mine', tenant: 't1' })])

  expect(destination.requests.map(({ headers }) => headers['x-scope-orgid'])).toEqual(['t1'])
  expect(destination.requests[0]?.text()).not.toContain('whose?')
  expect(sink.events.counts.get('component_discarded_events_total intentional=false')).toBe(1)
})

test('the health check uses the tenant of the events', async () => {
  await using destination = await fakeDestination(404, 200)
  await using sink = await startSink('log_aggregator', { ...minimal, endpoint: destination.url, tenant_id: 't1' })
  await sink.sink.healthcheck?.(AbortSignal.timeout(5000))
  expect(destination.requests.map(({ path, headers }) => [path, headers['x-scope-orgid']])).toEqual([
    ['/ready', 't1'],
    ['/', 't1'],
  ])
})

test('labels are rendered, expanded from objects, or omitted', async () => {
  await using destination = await fakeDestination(204)
  await using sink = await startSink('log_aggregator', {
    endpoint: destination.url,
    encoding: { codec: 'json' },
    labels: { fixed: 'yes', app: '{{ app }}', 'pod_*': '{{ labels }}', '{{ key }}': 'named' },
    remove_label_fields: true,
  })
  const labels = { 'App.Name/x': 'shop', nested: { a: 1 }, none: null }

  await sink.deliver([
    log({ app: 'web', key: 'own', labels, message: 'a', timestamp: '2026-01-01T00:00:00Z' }),
    log({ message: 'b', timestamp: '2026-01-01T00:00:00Z' }),
  ])

  expect(bodies(destination)).toEqual([
    {
      streams: [
        {
          stream: { fixed: 'yes', app: 'web', pod_App_Name_x: 'shop', pod_nested: '{"a":1}', own: 'named' },
          values: [[at(0), '{"message":"a"}']],
        },
        { stream: { fixed: 'yes' }, values: [[at(0), '{"message":"b"}']] },
      ],
    },
  ])
})

test.each([
  // Labels are case-sensitive.
  { labels: { 'p_*': '{{ l }}' }, fields: { aB: '1', ab: '2' }, stream: { p_aB: '1', p_ab: '2' }, lost: 0 },
  {
    labels: { 'p_*': '{{ l }}' },
    fields: { 'a.b': '1', 'a/b': '2', a_b: '3', c: '4' },
    stream: { p_a_b: '3', p_c: '4' },
    lost: 2,
  },
  { labels: { '*': '{{ l }}', a_b: 'own' }, fields: { 'a.b': '1' }, stream: { a_b: 'own' }, lost: 1 },
  { labels: { '*': '{{ l }}', '{{ n }}': 'named' }, fields: { 'a.b': '1' }, stream: { a_b: 'named' }, lost: 1 },
  // The literal name must win.
  {
    labels: { '*': '{{ l }}', a_b: 'own' },
    fields: { a_b: '1', 'c.d': '2' },
    stream: { a_b: 'own', c_d: '2' },
    lost: 0,
  },
])('of $fields and $labels, $lost label(s) are lost, which is counted', async ({ labels, fields, stream, lost }) => {
  await using destination = await fakeDestination(204)
  await using sink = await startSink('log_aggregator', { ...minimal, endpoint: destination.url, labels })
  await sink.deliver([log({ message: 'a', l: fields, n: 'a/b', timestamp: '2026-01-01T00:00:00Z' })])
  expect(bodies(destination)).toMatchObject([{ streams: [{ stream }] }])
  const coincide = sink.events.errors.filter(({ code }) => code === 'label_names_coincide')
  expect(coincide).toMatchObject(lost === 0 ? [] : [{ count: lost, level: 'warn' }])
})

test('fields excluded from the line stay in the event', async () => {
  await using destination = await fakeDestination(204)
  await using sink = await startSink('log_aggregator', {
    endpoint: destination.url,
    encoding: { codec: 'json' },
    labels: { app: '{{ meta.app }}' },
    remove_label_fields: true,
  })
  const event = log({ meta: { app: 'web', k: 1 }, message: 'a', timestamp: '2026-01-01T00:00:00Z' })
  const before = structuredClone(JSON.stringify(event.fields))

  await sink.deliver([event])

  expect(bodies(destination)).toMatchObject([{ streams: [{ values: [[at(0), '{"message":"a","meta":{"k":1}}']] }] }])
  expect(JSON.stringify(event.fields)).toBe(before)
})

test('an event without labels gets one, and events without timestamps get increasing ones', async () => {
  await using destination = await fakeDestination(204)
  await using sink = await startSink('log_aggregator', {
    ...minimal,
    endpoint: destination.url,
    labels: { app: '{{ app }}' },
  })

  expect(await sink.deliver([log({ message: 'a' }), log({ message: 'b' }), log({ message: 'c' })])).toBe('delivered')

  const [body] = bodies(destination) as [{ streams: [{ stream: object; values: [string, string][] }] }]
  expect(body.streams[0].stream).toEqual({ agent: 'penstock' })
  expect(body.streams[0].values.map(([, line]) => line)).toEqual(['a', 'b', 'c'])
  const instants = body.streams[0].values.map(([instant]) => BigInt(instant))
  expect(new Set(instants).size).toBe(3)
  expect(instants).toEqual(instants.toSorted((left, right) => (left < right ? -1 : 1)))
})

test('events of different tenants never share a request', async () => {
  await using destination = await fakeDestination(204)
  await using sink = await startSink('log_aggregator', {
    ...minimal,
    endpoint: destination.url,
    labels: { a: 'b' },
    tenant_id: '{{ tenant }}',
  })

  await sink.deliver([
    log({ tenant: 'one', message: '1', timestamp: '2026-01-01T00:00:01Z' }),
    log({ tenant: 'two', message: '2', timestamp: '2026-01-01T00:00:00Z' }),
    log({ tenant: 'one', message: '3', timestamp: '2026-01-01T00:00:01Z' }),
  ])

  const sent = destination.requests.map((request) => [
    request.headers['x-scope-orgid'],
    (request.json() as { streams: { values: string[][] }[] }).streams.flatMap(({ values }) =>
      values.map(([, line]) => line),
    ),
  ])
  expect(sent.sort()).toEqual([
    ['one', ['1', '3']],
    ['two', ['2']],
  ])
})

test('an entry contains its structured metadata', async () => {
  await using destination = await fakeDestination(204)
  await using sink = await startSink('log_aggregator', {
    endpoint: destination.url,
    encoding: { codec: 'json' },
    labels: { a: 'b' },
    structured_metadata: { trace: '{{ trace }}' },
    remove_structured_metadata_fields: true,
  })
  await sink.deliver([log({ trace: 't1', message: 'm', timestamp: '2026-01-01T00:00:00Z' })])
  expect(bodies(destination)).toMatchObject([{ streams: [{ values: [[at(0), '{"message":"m"}', { trace: 't1' }]] }] }])
})

test('snappy sends protobuf', async () => {
  await using destination = await fakeDestination(204)
  await using sink = await startSink('log_aggregator', {
    ...minimal,
    endpoint: destination.url,
    labels: { app: '{{ app }}', b: 'q"\n' },
    structured_metadata: { k: 'v' },
    compression: 'snappy',
  })

  await sink.deliver([
    log({ app: 'web', message: 'one', timestamp: '2026-01-01T00:00:01.000000005Z' }),
    log({ app: 'db', message: 'zwei ü', timestamp: '2026-01-01T00:00:00Z' }),
    log({ app: 'web', message: 'two', timestamp: '2026-01-01T00:00:02Z' }),
  ])

  const [request] = destination.requests
  expect(request?.headers).toMatchObject({ 'content-type': 'application/x-protobuf', 'content-encoding': 'snappy' })
  const streams = message(request?.body() as Buffer).map(([, stream]) => {
    const [labels, ...entries] = message(stream as Buffer)
    return [
      String(labels?.[1]),
      ...entries.map(([, entry]) => {
        const [instant, line, metadata] = message(entry as Buffer)
        return [
          message(instant?.[1] as Buffer),
          String(line?.[1]),
          message(metadata?.[1] as Buffer).map(([, text]) => String(text)),
        ]
      }),
    ]
  })
  expect(streams).toEqual([
    [
      '{app="web", b="q\\"\\n"}',
      [
        [
          [1, 1_767_225_601],
          [2, 5],
        ],
        'one',
        ['k', 'v'],
      ],
      [[[1, 1_767_225_602]], 'two', ['k', 'v']],
    ],
    ['{app="db", b="q\\"\\n"}', [[[1, 1_767_225_600]], 'zwei ü', ['k', 'v']]],
  ])
})

describe('a constant label', () => {
  const lone = '\udfff'
  const texts = [
    '',
    'namespace',
    'a="b", namespace="victim"} #',
    '"',
    '\\',
    '\n',
    '}',
    '{',
    ',',
    '=',
    'name-space',
    '1',
    '*',
  ]
  const separators = [
    '-',
    ':',
    '0:',
    '1:x',
    '-4:real',
    '\udffe',
    lone,
    `x${lone}y`,
    '\0',
    '\u2028',
    'é',
    '__proto__',
    'pod',
  ]
  const hostile = [...texts, ...separators, '\udffeforged', '5:forged4:real']
  const labels = {
    '{{ n }}': '{{ v }}',
    a: '{{ v }}',
    'namespace*': '{{ o }}',
    'name*': '{{ o }}',
    namespace: 'shop',
    pod: '{{ real }}',
  }
  const events = hostile.flatMap((n) =>
    hostile.map((v) =>
      log({
        n,
        v,
        o: { '': 'victim', space: 'victim', [n]: 'victim' },
        real: 'real',
        message: 'm',
        timestamp: '2026-01-01T00:00:00Z',
      }),
    ),
  )
  const sent = async (compression: string) => {
    await using destination = await fakeDestination(204)
    await using sink = await startSink('log_aggregator', {
      ...minimal,
      endpoint: destination.url,
      labels,
      compression,
      out_of_order_action: 'accept',
    })
    expect(await sink.deliver(events)).toBe('delivered')
    expect(sink.events.errors.map(({ code }) => code)).toContain('invalid_label_name')
    return destination.requests
  }

  test('overrides labels from events, in JSON', async () => {
    const streams = (await sent('none')).flatMap(
      (request) => (request.json() as { streams: { stream: Record<string, string> }[] }).streams,
    )

    expect(streams.length).toBeGreaterThan(300)
    for (const { stream } of streams) {
      expect(stream).toMatchObject({ namespace: 'shop', pod: 'real' })
      expect(Object.keys(stream).filter((name) => !/^[a-zA-Z_][a-zA-Z0-9_]*$/.test(name))).toEqual([])
      expect(Object.values(stream).every((value) => value.isWellFormed())).toBe(true)
    }
  })

  test('overrides labels from events, in protobuf', async () => {
    const streams = (await sent('snappy')).flatMap((request) =>
      message(request.body()).map(([, stream]) => stream as Buffer),
    )

    expect(streams.length).toBeGreaterThan(300)
    for (const stream of streams) {
      const text = String(message(stream)[0]?.[1])
      const pairs = [...text.slice(1, -1).matchAll(/([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:, |$)/g)]
      // There is nothing between the pairs.
      expect(`{${pairs.map(([whole]) => whole).join('')}}`).toBe(text)
      expect(pairs.filter(([, name]) => name === 'namespace').map(([, , value]) => value)).toEqual(['shop'])
      expect(pairs.filter(([, name]) => name === 'pod').map(([, , value]) => value)).toEqual(['real'])
    }
  })

  test('no tenant gets the labels of another', async () => {
    await using destination = await fakeDestination(204)
    await using sink = await startSink('log_aggregator', {
      ...minimal,
      endpoint: destination.url,
      tenant_id: '{{ t }}',
      labels: { app: '{{ v }}' },
      request: { headers: { 'X-Scope-OrgID': 'forged' } },
      out_of_order_action: 'accept',
    })

    await sink.deliver(['a', 'b'].flatMap((t) => ['1:x', 'x', '-'].map((v) => log({ t, v, message: `${t} ${v}` }))))

    const seen = destination.requests.flatMap(({ headers, ...request }) =>
      (request.json() as { streams: { stream: { app: string }; values: [string, string][] }[] }).streams.flatMap(
        ({ stream, values }) => values.map(([, line]) => [line, `${headers['x-scope-orgid']} ${stream.app}`]),
      ),
    )
    expect(seen).toHaveLength(6)
    for (const [line, labelled] of seen) expect(labelled).toBe(line)
  })
})

/** Fields of a protobuf message: the number, and an integer or bytes. */
function message(bytes: Buffer): [number, number | Buffer][] {
  const fields: [number, number | Buffer][] = []
  let at = 0
  const varint = (): number => {
    let value = 0
    for (let scale = 1; ; scale *= 128) {
      const byte = bytes[at++] as number
      value += (byte & 0x7f) * scale
      if (byte < 0x80) return value
    }
  }
  while (at < bytes.length) {
    const tag = varint()
    const value = varint()
    if ((tag & 7) === 0) fields.push([tag >> 3, value])
    else {
      fields.push([tag >> 3, bytes.subarray(at, at + value)])
      at += value
    }
  }
  return fields
}

test.each([
  { answers: [200], paths: ['/base/ready'], healthy: true },
  { answers: [404, 200], paths: ['/base/ready', '/base/'], healthy: true },
  { answers: [404, 404], paths: ['/base/ready', '/base/'], healthy: false },
  { answers: [503], paths: ['/base/ready'], healthy: false },
])('the health check with answers $answers', async ({ answers, paths, healthy }) => {
  await using destination = await fakeDestination(...answers)
  await using sink = await startSink('log_aggregator', { ...minimal, endpoint: `${destination.url}/base/` })
  const check = sink.sink.healthcheck?.(AbortSignal.timeout(5000))
  if (healthy) await check
  else await expect(check).rejects.toMatchObject({ code: 'PEN_HEALTHCHECK' })
  expect(destination.requests.map(({ path }) => path)).toEqual(paths)
})

test.each([
  { endpoint: '/base/push', path: '', sent: '/base/push' },
  { endpoint: '/base/', path: 'push', sent: '/base/push' },
])('requests go to $sent if the path is "$path"', async ({ endpoint, path, sent }) => {
  await using destination = await fakeDestination(204)
  const options = { ...minimal, endpoint: `${destination.url}${endpoint}`, path }
  await using sink = await startSink('log_aggregator', options)
  expect(await sink.deliver([log({ message: 'm' })])).toBe('delivered')
  expect(destination.requests.map((request) => request.path)).toEqual([sent])
})

test('events with an invalid tenant header are discarded', async () => {
  await using destination = await fakeDestination(204)
  await using sink = await startSink('log_aggregator', {
    ...minimal,
    endpoint: destination.url,
    tenant_id: '{{ tenant }}',
  })
  expect(await sink.deliver([log({ tenant: 'a\nb', message: 'm' })])).toBe('rejected')
  expect(destination.requests).toEqual([])
  expect(sink.events.counts.get('component_discarded_events_total intentional=false')).toBe(1)
})

test('each batch gets the status of its own events, although the request reorders them', async () => {
  await using destination = await fakeDestination((request) => (request.text().includes('huge') ? 413 : 204))
  await using sink = await startSink('log_aggregator', { ...minimal, endpoint: destination.url })
  const stamp = '2026-01-01T00:00:00Z'

  const first = sink.write([
    log({ app: 'web', message: '1', timestamp: stamp }),
    log({ app: 'db', message: '2', timestamp: stamp }),
  ])
  const second = sink.write([
    log({ app: 'web', message: 'huge', timestamp: stamp }),
    log({ app: 'db', message: '4', timestamp: stamp }),
  ])
  const third = sink.write([log({ app: 'web', message: '5', timestamp: stamp })])
  await sink.sink.close()

  expect(await Promise.all([first, second, third])).toEqual(['delivered', 'rejected', 'delivered'])
  expect(sink.events.counts.get('component_sent_events_total')).toBe(4)
  expect(sink.events.counts.get('component_discarded_events_total intentional=false')).toBe(1)
})

test.each([
  { out_of_order_action: 'drop', concurrency: 'adaptive', warned: true },
  { out_of_order_action: 'rewrite_timestamp', concurrency: 5, warned: true },
  { out_of_order_action: 'drop', concurrency: 1, warned: false },
  { out_of_order_action: 'drop', concurrency: 'none', warned: false },
  { out_of_order_action: 'accept', concurrency: 5, warned: false },
])('a concurrency without effect is reported: $out_of_order_action, $concurrency', ({ warned, ...given }) => {
  const { out_of_order_action, concurrency } = given
  const options = {
    endpoint: 'http://localhost',
    labels: { a: 'b' },
    encoding: { codec: 'json' },
    out_of_order_action,
    request: { concurrency },
  }
  const problems = problemsOf('sink', 'log_aggregator', options)
  expect(problems.map(({ path, severity }) => [path, severity])).toEqual(
    warned ? [['request.concurrency', 'warning']] : [],
  )
})

describe('entries that the destination rejects while it accepts others', () => {
  const refusing = (isRefused: (message: string) => boolean) =>
    fakeDestination((request) => {
      const messages = request.text().match(/m\d+/g) ?? []
      if (!messages.some(isRefused)) return 204
      return { status: 400, body: 'entry for stream \'{a="b"}\' has timestamp too old: 2025-01-01T00:00:00Z' }
    })
  const events = (count: number) => Array.from({ length: count }, (_, index) => log({ message: `m${index}` }))
  const options = { labels: { a: 'b' }, encoding: { codec: 'text' } }

  test.each(['none', 'snappy'])('are discarded without the others, compression %s', async (compression) => {
    await using destination = await refusing((message) => message === 'm13')
    await using sink = await startSink('log_aggregator', { ...options, endpoint: destination.url, compression })

    expect(await sink.deliver(events(100))).toBe('rejected')

    expect(sink.events.counts.get('component_sent_events_total')).toBe(99)
    expect(sink.events.discards).toEqual([
      { events: 1, intentional: false, reason: 'Service call failed. No retries or retries exhausted.' },
    ])
    expect(destination.requests.length).toBeLessThan(20)
  })

  test('are searched for with a limit', async () => {
    await using destination = await refusing(() => true)
    await using sink = await startSink('log_aggregator', { ...options, endpoint: destination.url })

    expect(await sink.deliver(events(1000))).toBe('rejected')

    expect(sink.events.counts.get('component_discarded_events_total intentional=false')).toBe(1000)
    expect(destination.requests).toHaveLength(65)
  })
})
