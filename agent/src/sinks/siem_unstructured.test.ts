import { generateKeyPairSync, verify } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { type Answer, fakeDestination, type RecordedRequest } from '../testing/destination.ts'
import { log } from '../testing/events.ts'
import { problemsOf, startSink } from '../testing/harness.ts'

const customer = 'c8c65bfa-5f2c-42d4-9189-64bb7b939f2c'
const timestamp = '2024-01-02T03:04:05.5Z'
const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })

test('sends texts with their time, one request for each type and namespace', async () => {
  await using destination = await fakeDestination()
  await using sink = await startSink('siem_unstructured', {
    customer_id: customer,
    endpoint: destination.url,
    log_type: '{{ kind }}',
    namespace: 'ns-{{ space }}',
    labels: { k: 'v' },
    api_key: 'a key',
    encoding: { codec: 'text' },
  })

  const status = await sink.deliver([
    log({ message: '<13>su: "x"', timestamp, kind: 'LINUX_SYSLOG', space: 1 }),
    log({ message: 'b', timestamp, kind: 'WINDOWS_DNS', space: 1 }),
    log({ message: 'c', timestamp, kind: 'LINUX_SYSLOG', space: 1 }),
    log({ message: 'without a type', timestamp, space: 1 }),
    log({ message: 'without a namespace', timestamp, kind: 'LINUX_SYSLOG' }),
  ])

  expect(status).toBe('rejected')
  expect(destination.requests.map((request) => request.text()).sort()).toEqual([
    `{"customer_id":"${customer}","namespace":"ns-1","labels":[{"key":"k","value":"v"}],"log_type":"LINUX_SYSLOG","entries":[{"log_text":"<13>su: \\"x\\"","ts_rfc3339":"2024-01-02T03:04:05.500Z"},{"log_text":"c","ts_rfc3339":"2024-01-02T03:04:05.500Z"}]}`,
    `{"customer_id":"${customer}","namespace":"ns-1","labels":[{"key":"k","value":"v"}],"log_type":"WINDOWS_DNS","entries":[{"log_text":"b","ts_rfc3339":"2024-01-02T03:04:05.500Z"}]}`,
  ])
  expect(destination.requests[0]).toMatchObject({
    method: 'POST',
    path: '/v2/unstructuredlogentries:batchCreate?key=a+key',
  })
  expect(sink.events.errors.map(({ fields }) => fields?.['field'])).toEqual(['log_type', 'namespace'])
  expect(sink.events.counts.get('component_discarded_events_total intentional=false')).toBe(2)
})

test('an event without a type can use another one', async () => {
  await using destination = await fakeDestination()
  await using sink = await startSink('siem_unstructured', {
    customer_id: customer,
    endpoint: destination.url,
    log_type: '{{ kind }}',
    fallback_log_type: 'OTHER',
    api_key: 'k',
    encoding: { codec: 'text' },
  })

  expect(await sink.deliver([log({ message: 'm', timestamp })])).toBe('delivered')

  expect(destination.requests[0]?.json()).toMatchObject({ log_type: 'OTHER', entries: [{ log_text: 'm' }] })
})

test('a request over the limit of the destination is halved', async () => {
  await using destination = await fakeDestination()
  await using sink = await startSink('siem_unstructured', {
    customer_id: customer,
    endpoint: destination.url,
    log_type: 'T',
    api_key: 'k',
    encoding: { codec: 'text' },
  })

  // A quote needs two bytes on the wire, more than the estimate.
  const events = [1, 2, 3, 4].map(() => log({ message: '"'.repeat(200_000), timestamp }))
  expect(await sink.deliver(events)).toBe('delivered')

  const entries = destination.requests.map((request) => (request.json() as { entries: unknown[] }).entries.length)
  expect(entries.reduce((sum, count) => sum + count)).toBe(4)
  for (const request of destination.requests) expect(request.raw.length).toBeLessThanOrEqual(1_000_000)
})

/** A destination that also issues tokens: `t1`, `t2` and so on. */
async function withTokens(answer: (request: RecordedRequest) => Answer) {
  let tokens = 0
  const destination = await fakeDestination((request) => {
    if (!request.path.startsWith('/token') && !request.path.startsWith('/computeMetadata')) return answer(request)
    return { body: JSON.stringify({ access_token: `t${++tokens}`, expires_in: 3600, token_type: 'Bearer' }) }
  })
  return destination
}

async function credentialsFile(tokenUri: string) {
  const folder = await mkdtemp(join(tmpdir(), 'penstock-credentials-'))
  const path = join(folder, 'account.json')
  const pem = privateKey.export({ type: 'pkcs8', format: 'pem' })
  await writeFile(
    path,
    JSON.stringify({ client_email: 'agent@project', private_key: pem, private_key_id: 'key-1', token_uri: tokenUri }),
  )
  return { path, [Symbol.asyncDispose]: () => rm(folder, { recursive: true }) }
}

test('authenticates with the token of a service account, and with a new one after a rejection', async () => {
  let refused = false
  await using destination = await withTokens(() => {
    if (refused) return 200
    refused = true
    return 401
  })
  await using file = await credentialsFile(`${destination.url}/token`)
  await using sink = await startSink('siem_unstructured', {
    customer_id: customer,
    endpoint: destination.url,
    log_type: 'T',
    api_key: 'not used',
    credentials_path: file.path,
    encoding: { codec: 'text' },
  })

  expect(await sink.deliver([log({ message: 'm', timestamp })])).toBe('delivered')

  const seen = destination.requests.map(({ path, headers }) => [path, headers['authorization']])
  expect(seen).toEqual([
    ['/token', undefined],
    ['/v2/unstructuredlogentries:batchCreate', 'Bearer t1'],
    ['/token', undefined],
    ['/v2/unstructuredlogentries:batchCreate', 'Bearer t2'],
  ])
  const form = new URLSearchParams(destination.requests[0]?.text())
  expect(form.get('grant_type')).toBe('urn:ietf:params:oauth:grant-type:jwt-bearer')
  const [header = '', claims = '', signature = ''] = (form.get('assertion') ?? '').split('.')
  const part = (text: string) => JSON.parse(Buffer.from(text, 'base64url').toString()) as Record<string, unknown>
  expect(part(header)).toEqual({ alg: 'RS256', typ: 'JWT', kid: 'key-1' })
  expect(part(claims)).toEqual({
    iss: 'agent@project',
    scope: 'https://www.googleapis.com/auth/malachite-ingestion',
    aud: `${destination.url}/token`,
    iat: expect.any(Number),
    exp: Number(part(claims)['iat']) + 3600,
  })
  const signed = Buffer.from(`${header}.${claims}`)
  expect(verify('sha256', signed, publicKey, Buffer.from(signature, 'base64url'))).toBe(true)
})

test('authenticates with the account of the instance by default', async () => {
  await using destination = await withTokens(() => 200)
  vi.stubEnv('CLOUD_APPLICATION_CREDENTIALS', undefined)
  vi.stubEnv('GOOGLE_APPLICATION_CREDENTIALS', undefined)
  vi.stubEnv('GCE_METADATA_HOST', destination.host)
  try {
    await using sink = await startSink('siem_unstructured', {
      customer_id: customer,
      endpoint: destination.url,
      log_type: 'T',
      encoding: { codec: 'text' },
    })
    await sink.sink.healthcheck?.(AbortSignal.timeout(5000))
  } finally {
    vi.unstubAllEnvs()
  }

  expect(destination.requests[0]?.path).toBe('/computeMetadata/v1/instance/service-accounts/default/token')
  expect(destination.requests[0]?.headers['metadata-flavor']).toBe('Google')
  expect(destination.requests[1]?.headers['authorization']).toBe('Bearer t1')
})

test('rejected entries, for example of an unknown type, are errors', async () => {
  await using destination = await fakeDestination(400)
  await using sink = await startSink('siem_unstructured', {
    customer_id: customer,
    endpoint: destination.url,
    log_type: 'NOT_A_TYPE',
    api_key: 'k',
    encoding: { codec: 'text' },
  })
  expect(await sink.deliver([log({ message: 'm' })])).toBe('rejected')
  expect(sink.events.errors).toMatchObject([{ type: 'request_failed', code: 'http_response_400' }])
})

test('reports the missing options if no account exists', async () => {
  await using destination = await fakeDestination(404)
  vi.stubEnv('CLOUD_APPLICATION_CREDENTIALS', undefined)
  vi.stubEnv('GOOGLE_APPLICATION_CREDENTIALS', undefined)
  vi.stubEnv('GCE_METADATA_HOST', destination.host)
  try {
    await using sink = await startSink('siem_unstructured', {
      customer_id: customer,
      endpoint: destination.url,
      log_type: 'T',
      encoding: { codec: 'text' },
    })
    // Without a request, the address is not reported as unreachable.
    await expect(sink.sink.healthcheck?.(AbortSignal.timeout(5000))).rejects.toThrow(
      /^This requires one of api_key or credentials_path to be defined/,
    )
  } finally {
    vi.unstubAllEnvs()
  }
})

test.each([
  { what: 'a file that is not there', content: undefined, problem: 'cannot be read' },
  { what: 'text that is not JSON', content: 'private_key: secret', problem: 'it is not valid JSON' },
  { what: 'another account', content: '{"client_id":"x"}', problem: 'is not that of a service account' },
  { what: 'an invalid key', content: '{"client_email":"x","private_key":"secret"}', problem: 'is not a PEM key' },
])('refuses $what at start', async ({ content, problem }) => {
  const folder = await mkdtemp(join(tmpdir(), 'penstock-credentials-'))
  const file = join(folder, 'account.json')
  try {
    if (content !== undefined) await writeFile(file, content)
    const start = startSink('siem_unstructured', {
      customer_id: customer,
      region: 'eu',
      log_type: 'T',
      credentials_path: file,
      encoding: { codec: 'text' },
    })
    await expect(start).rejects.toThrow(problem)
    await expect(start).rejects.not.toThrow('secret')
  } finally {
    await rm(folder, { recursive: true })
  }
})

test.each([
  { status: 200, problem: undefined },
  { status: 403, problem: 'Healthcheck endpoint forbidden' },
  { status: 404, problem: 'Endpoint not found' },
  { status: 500, problem: 'responded with status 500' },
])('the health check after $status', async ({ status, problem }) => {
  await using destination = await fakeDestination(status)
  await using sink = await startSink('siem_unstructured', {
    customer_id: customer,
    endpoint: destination.url,
    log_type: 'T',
    api_key: 'the-key',
    encoding: { codec: 'text' },
  })

  const check = sink.sink.healthcheck?.(AbortSignal.timeout(5000))

  if (problem === undefined) await check
  else {
    await expect(check).rejects.toThrow(problem)
    await expect(check).rejects.not.toThrow('the-key')
  }
  expect(destination.requests[0]).toMatchObject({ method: 'GET', path: '/v2/logtypes?key=the-key' })
})

test.each([
  { region: 'us', endpoint: 'a:1', message: 'You can only specify one of region or endpoint' },
  { message: 'Region or endpoint not defined' },
  { region: 'tokyo', customer_id: 'x', message: 'must be a UUID' },
])('refuses options: $message', ({ message, ...options }) => {
  const all = { customer_id: customer, log_type: 'T', encoding: { codec: 'text' }, ...options }
  expect(problemsOf('sink', 'siem_unstructured', all)).toMatchObject([{ message }])
})
