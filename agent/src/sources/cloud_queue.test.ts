// Uses a small queue service on loopback with the wire protocol of the real one.

import { createHash } from 'node:crypto'
import { afterEach, expect, test, vi } from 'vitest'
import type { Batch } from '../event/batch.ts'
import type { LogEvent } from '../event/log.ts'
import { decodingCodecs, framingMethods } from '../schema/groups.ts'
import { type Answer, type Destination, fakeDestination, type RecordedRequest } from '../testing/destination.ts'
import { problemsOf, startSource, type TestSource } from '../testing/harness.ts'
import { framed, goodFrame, hostileBytes, limitedTo } from '../testing/hostile.ts'
import { Random } from '../testing/random.ts'

afterEach(() => {
  vi.unstubAllEnvs()
})

const keys = { access_key_id: 'AKID', secret_access_key: 's3cret' }
const path = '/123456789012/logs'
const sent = 1_704_164_645_678

const action = ({ headers }: RecordedRequest) => String(headers['x-amz-target']).replace('AmazonSQS.', '')
const calls = (service: Destination, name: string) =>
  service.requests.filter((request) => action(request) === name).map((request) => request.json())
const json = (value: unknown, status = 200): Answer => ({
  status,
  headers: { 'content-type': 'application/x-amz-json-1.0' },
  body: JSON.stringify(value),
})
const refusal = (type: string, status = 400) => json({ __type: `com.amazonaws.sqs#${type}`, message: 'No.' }, status)
const messages = (...bodies: string[]) =>
  json({
    Messages: bodies.map((Body, index) => ({
      MessageId: `m${index}`,
      ReceiptHandle: `r-${Body.slice(0, 20)}`,
      Body,
      MD5OfBody: createHash('md5').update(Body).digest('hex'),
      Attributes: { SentTimestamp: String(sent) },
    })),
  })

/** A service that gives these answers to receive requests, then none forever; deletions succeed by default. */
function queueService(receives: readonly Answer[], deletion: Answer = json({ Successful: [] })) {
  let next = 0
  return fakeDestination((request) => {
    if (action(request) === 'DeleteMessageBatch') return deletion
    if (action(request) === 'ReceiveMessage') return receives[next++] ?? 'hang'
    return json({ Attributes: { QueueArn: 'arn' } })
  })
}

const source = (service: Destination, options: object = {}, extra: Parameters<typeof startSource>[2] = {}) =>
  startSource(
    'cloud_queue',
    { queue_url: `${service.url}${path}`, region: 'eu-west-1', auth: keys, client_concurrency: 1, ...options },
    extra,
  )
const fields = (started: TestSource) => started.sent.map((event) => ({ ...(event as LogEvent).fields }))

test('a message becomes an event with its time, and is deleted when the event is delivered', async () => {
  await using service = await queueService([messages('hello')])
  await using started = await source(service)
  await started.received(1)
  await vi.waitFor(() => expect(calls(service, 'DeleteMessageBatch')).toHaveLength(1))
  await started.stop()

  expect(JSON.parse(JSON.stringify(fields(started)))).toEqual([
    { message: 'hello', source_type: 'cloud_queue', timestamp: '2024-01-02T03:04:05.678Z' },
  ])
  expect(calls(service, 'ReceiveMessage')[0]).toEqual({
    QueueUrl: `${service.url}${path}`,
    MaxNumberOfMessages: 10,
    WaitTimeSeconds: 15,
    VisibilityTimeout: 300,
    AttributeNames: ['SentTimestamp'],
    MessageSystemAttributeNames: ['SentTimestamp'],
  })
  expect(calls(service, 'DeleteMessageBatch')).toEqual([
    { QueueUrl: `${service.url}${path}`, Entries: [{ Id: '0', ReceiptHandle: 'r-hello' }] },
  ])
  const [request] = service.requests
  expect(request).toMatchObject({ method: 'POST', path: '/' })
  expect(request?.headers['content-type']).toBe('application/x-amz-json-1.0')
  expect(request?.headers.authorization).toMatch(
    /^AWS4-HMAC-SHA256 Credential=AKID\/\d{8}\/eu-west-1\/sqs\/aws4_request,/,
  )
  expect(started.events.counts.get('component_received_bytes_total')).toBe(5)
  expect(started.events.counts.get('source_lag_time_seconds')).toBe(1)
})

const closed = (service: Destination, more: object = {}) => ({
  proxy: {
    enabled: true,
    http: undefined,
    https: undefined,
    no_proxy: undefined,
    egress: { deny: ['127.0.0.0/8', '::1'], allowHosts: [], ...more },
  },
  queue: { queue_url: `${service.url.replace('127.0.0.1', 'localhost')}${path}` },
})

test('a queue at a forbidden address is not queried', async () => {
  await using service = await queueService([messages('hello')])
  const { proxy, queue } = closed(service)
  await using started = await source(service, queue, { proxy })
  await vi.waitFor(() => {
    const [error] = started.events.errors
    expect(String(error?.fields?.['error'])).toContain('rule T7')
  })
  await expect(started.source.healthcheck?.(AbortSignal.timeout(5000))).rejects.toThrow('rule T7')
  expect(service.connections).toBe(0)
})

test.each([
  { implicitCredentials: true, asked: true },
  { implicitCredentials: undefined, asked: false },
])(
  'only the identity of the node is requested, if the policy allows it ($implicitCredentials)',
  async ({ implicitCredentials, asked }) => {
    await using service = await queueService([])
    const role = { AccessKeyId: 'node', SecretAccessKey: 's', Token: 't', Expiration: '2999-01-01T00:00:00Z' }
    await using metadata = await fakeDestination({ body: 'session' }, { body: 'role' }, { body: JSON.stringify(role) })
    vi.stubEnv('HOME', '/nowhere')
    for (const name of ['AWS_ACCESS_KEY_ID', 'CLOUD_ACCESS_KEY_ID', 'AWS_PROFILE']) vi.stubEnv(name, '')
    vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'false')
    vi.stubEnv('AWS_EC2_METADATA_SERVICE_ENDPOINT', metadata.url)
    const { proxy, queue } = closed(service, { implicitCredentials })
    const auth = {
      load_timeout_secs: 1,
      imds: { max_attempts: 1, connect_timeout_seconds: 1, read_timeout_seconds: 1 },
    }
    await using started = await source(service, { ...queue, auth }, { proxy })
    await vi.waitFor(() => expect(started.events.errors.length).toBeGreaterThan(0))
    expect(metadata.connections > 0).toBe(asked)
    expect(service.connections).toBe(0)
  },
)

test('nothing is deleted before the last event has a status, and then only delivered messages', async () => {
  const held: Batch[] = []
  await using service = await queueService([messages('one', 'two', 'three')])
  await using started = await source(service, {}, { consume: (batch) => void held.push(batch) })
  await started.received(3)
  held[2]?.finalizer.release(1, 'delivered')
  held[1]?.finalizer.release(1, 'rejected')
  await service.received(2) // the next request for messages
  expect(calls(service, 'DeleteMessageBatch')).toEqual([])
  held[0]?.finalizer.release(1, 'delivered')
  await vi.waitFor(() => expect(calls(service, 'DeleteMessageBatch')).toHaveLength(1))
  const [deleted] = calls(service, 'DeleteMessageBatch') as { Entries: { ReceiptHandle: string }[] }[]
  expect(deleted?.Entries.map((entry) => entry.ReceiptHandle)).toEqual(['r-three', 'r-one'])
})

test('a stop waits for the last deletions', async () => {
  const held: Batch[] = []
  await using service = await queueService([messages('one')])
  await using started = await source(service, {}, { consume: (batch) => void held.push(batch) })
  await started.received(1)
  const stopped = started.stop()
  held[0]?.finalizer.release(1, 'delivered')
  await stopped
  expect(calls(service, 'DeleteMessageBatch')).toHaveLength(1)
})

test('without acknowledgements messages are deleted when the pipeline has accepted them', async () => {
  let accept = () => {}
  await using service = await queueService([messages('one', 'two')])
  await using started = await source(
    service,
    {},
    { acknowledgements: false, consume: () => new Promise((resolve) => (accept = resolve)) },
  )
  await started.received(1)
  expect(calls(service, 'DeleteMessageBatch')).toEqual([])
  accept()
  await started.received(2)
  accept()
  await vi.waitFor(() => expect(calls(service, 'DeleteMessageBatch')).toHaveLength(1))
})

test('with `delete_message: false` nothing is deleted', async () => {
  await using service = await queueService([messages('one')])
  await using started = await source(service, { delete_message: false })
  await started.received(1)
  await started.stop()
  expect(calls(service, 'DeleteMessageBatch')).toEqual([])
})

test('acknowledges messages that cannot be decoded, and makes one event per part of a message', async () => {
  await using service = await queueService([messages('{"a":1}\n{"timestamp":"own"}', 'nonsense')])
  await using started = await source(service, {
    decoding: { codec: 'json' },
    framing: { method: 'newline_delimited' },
  })
  await started.received(2)
  await vi.waitFor(() => expect(calls(service, 'DeleteMessageBatch')).toHaveLength(1))
  expect(JSON.parse(JSON.stringify(fields(started)))).toEqual([
    { a: 1, source_type: 'cloud_queue', timestamp: '2024-01-02T03:04:05.678Z' },
    { timestamp: 'own', source_type: 'cloud_queue' },
  ])
  expect(started.events.errors).toEqual([expect.objectContaining({ type: 'parser_failed', stage: 'processing' })])
  expect((calls(service, 'DeleteMessageBatch')[0] as { Entries: unknown[] }).Entries).toHaveLength(2)
})

test.each<[string, Answer, number]>([
  ['some entries', json({ Successful: [], Failed: [{ Id: '1', Code: 'ReceiptHandleIsInvalid' }] }), 1],
  ['the whole call', refusal('InternalError', 500), 1],
])('a deletion that fails for %s is counted', async (_name, answer, failures) => {
  await using service = await queueService([messages('one', 'two')], answer)
  await using started = await source(service)
  await started.received(2)
  await started.stop()
  expect(started.events.counts.get('sqs_message_delete_failed_total')).toBe(failures)
  expect(started.events.errors).toEqual([expect.objectContaining({ type: 'writer_failed', stage: 'processing' })])
})

test.each<[string, Answer]>([
  ['an error', refusal('OverLimit')],
  ['a broken connection', 'reset'],
  ['an answer that is not JSON', { body: 'nonsense' }],
  ['a body that is not what its sum says', json({ Messages: [{ Body: 'x', ReceiptHandle: 'r', MD5OfBody: 'no' }] })],
])('after %s, messages are requested again', async (_name, answer) => {
  await using service = await queueService([answer, messages('one')])
  await using started = await source(service)
  await started.received(1)
  expect(started.events.errors).toEqual([
    expect.objectContaining({ code: 'failed_fetching_sqs_events', type: 'request_failed', stage: 'receiving' }),
  ])
})

test('a message without a body is not touched', async () => {
  await using service = await queueService([json({ Messages: [{ ReceiptHandle: 'r' }] }), messages('one')])
  await using started = await source(service)
  await started.received(1)
  await started.stop()
  expect(calls(service, 'DeleteMessageBatch')).toHaveLength(1)
})

test('the configured number of tasks poll in parallel', async () => {
  await using service = await queueService([])
  await using started = await source(service, { client_concurrency: 3, poll_secs: 0, visibility_timeout_secs: 5 })
  await service.received(3)
  expect(calls(service, 'ReceiveMessage')[2]).toMatchObject({ WaitTimeSeconds: 0, VisibilityTimeout: 5 })
  await started.stop()
  expect(service.requests).toHaveLength(3)
})

test('expired credentials are looked up again during a run', async () => {
  let key = 0
  await using container = await fakeDestination(() => ({
    body: JSON.stringify({ AccessKeyId: `key${++key}`, SecretAccessKey: 's', Token: 't' }),
  }))
  vi.stubEnv('AWS_CONTAINER_CREDENTIALS_FULL_URI', container.url)
  vi.stubEnv('HOME', '/nowhere')
  let deletions = 0
  await using service = await queueService(
    [messages('one'), refusal('ExpiredTokenException', 403), messages('two')],
    // A deletion that fails because the credentials expired must not cause a second delivery.
    () => (++deletions === 2 ? refusal('ExpiredToken', 403) : json({ Successful: [] })),
  )
  await using started = await source(service, { auth: {} })
  await started.received(2)
  await vi.waitFor(() => expect(deletions).toBe(3))
  await started.stop()
  expect(calls(service, 'DeleteMessageBatch').slice(1)).toEqual([
    expect.objectContaining({ Entries: [{ Id: '0', ReceiptHandle: 'r-two' }] }),
    expect.objectContaining({ Entries: [{ Id: '0', ReceiptHandle: 'r-two' }] }),
  ])
  expect(started.events.counts.get('sqs_message_delete_failed_total')).toBeUndefined()
  expect(started.events.errors).toEqual([])
  const used = service.requests
    .filter((request) => action(request) === 'ReceiveMessage')
    .map((request) => /Credential=(\w+)/.exec(String(request.headers.authorization))?.[1])
  expect(used.slice(0, 3)).toEqual(['key1', 'key1', 'key2'])
  expect(service.requests[0]?.headers['x-amz-security-token']).toBe('t')
})

test('the health check lists the searched places for credentials', async () => {
  vi.stubEnv('HOME', '/nowhere')
  vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true')
  await using service = await queueService([])
  await using started = await source(service, { auth: {} })
  await expect(started.source.healthcheck?.(AbortSignal.timeout(5000))).rejects.toMatchObject({
    code: 'PEN_AUTH',
    message: expect.stringContaining('/nowhere/.aws/credentials'),
  })
  expect(service.requests).toEqual([])
})

test('the region comes from the environment, or from the instance; without any the source cannot be built', async () => {
  vi.stubEnv('HOME', '/nowhere')
  await using service = await queueService([messages('one')])
  await using metadata = await fakeDestination(({ method }) => ({ body: method === 'PUT' ? 'session' : 'sa-east-1' }))
  vi.stubEnv('AWS_EC2_METADATA_SERVICE_ENDPOINT', metadata.url)
  {
    await using started = await source(service, { region: undefined })
    await started.received(1)
    expect(service.requests[0]?.headers.authorization).toContain('/sa-east-1/sqs/')
    expect(metadata.requests.at(-1)?.path).toBe('/latest/meta-data/placement/region')
  }
  vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true')
  await expect(source(service, { region: undefined })).rejects.toMatchObject({
    code: 'PEN_CONFIG_INVALID',
    message: expect.stringContaining('CLOUD_REGION, CLOUD_DEFAULT_REGION, AWS_REGION or AWS_DEFAULT_REGION'),
  })
  vi.stubEnv('CLOUD_DEFAULT_REGION', 'eu-south-1')
  const before = service.requests.length
  await using named = await source(service, { region: undefined })
  await service.received(before + 1)
  expect(service.requests.at(-1)?.headers.authorization).toContain('/eu-south-1/sqs/')
  await named.stop()
})

test.each([
  ['https://sqs.eu-west-1.amazonaws.com/123456789012/logs', 'eu-west-1'],
  ['https://us-gov-west-1.queue.amazonaws.com/123456789012/logs', 'us-gov-west-1'],
  ['https://vpce-1.sqs.cn-north-1.vpce.amazonaws.com.cn/123456789012/logs', 'cn-north-1'],
])('without another setting, %s determines the region: %s', async (address, region) => {
  vi.stubEnv('HOME', '/nowhere')
  vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true')
  await using service = await queueService([])
  await using started = await source(service, { region: undefined, queue_url: address, endpoint: service.url })
  await service.received(1)
  expect(service.requests[0]?.headers.authorization).toContain(`/${region}/sqs/`)
  await started.stop()
})

test.each([
  ['QueueDoesNotExist', false],
  ['AccessDeniedException', true],
])('the health check after %s passes: %s', async (type, passes) => {
  await using service = await fakeDestination((request) =>
    action(request) === 'GetQueueAttributes' ? refusal(type) : 'hang',
  )
  await using started = await source(service)
  const check = started.source.healthcheck?.(AbortSignal.timeout(5000))
  if (passes) await check
  else await expect(check).rejects.toMatchObject({ code: 'PEN_HEALTHCHECK', message: expect.stringContaining(type) })
})

test('impossible options are refused', () => {
  const options = { queue_url: 'http://queue', auth: { access_key_id: 'a' }, tls: { enabled: true } }
  expect(problemsOf('source', 'cloud_queue', options).map(({ path }) => path)).toEqual([
    'auth.access_key_id',
    'tls.enabled',
  ])
})

const seed = 20_260_104
// A body of this queue is text, so it cannot hold protobuf.
test.each(decodingCodecs.filter((codec) => codec !== 'native'))(
  `hostile messages of codec %s are deleted, and the source continues (seed ${seed})`,
  async (codec) => {
    const random = new Random(seed)
    for (const method of framingMethods) {
      const hostile = () => {
        const bytes = hostileBytes(random, codec, 4000)
        return (random.next() < 0.5 ? bytes : framed(method, bytes)).toString('utf8')
      }
      const good = framed(method, goodFrame(codec, 'still here')).toString('utf8')
      const batches = Array.from({ length: 5 }, () => messages(...Array.from({ length: 10 }, hostile)))
      await using service = await queueService([...batches, messages(good)])
      await using started = await source(service, { decoding: { codec }, framing: limitedTo(method, 2000) })
      await vi.waitFor(() => expect(calls(service, 'DeleteMessageBatch')).toHaveLength(6), 20_000)
      expect((started.sent.at(-1) as LogEvent).fields).toMatchObject({ message: 'still here' })
      expect(started.events.errors.every(({ type }) => type === 'parser_failed')).toBe(true)
    }
  },
)
