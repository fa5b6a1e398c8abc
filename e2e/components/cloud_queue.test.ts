// The cloud_queue source with a real queue server, through the agent's command. After a kill, the queue still has the messages that were not
// deleted. Together with the delivered ones, they must be all messages. Roles and instance credentials come from a real token service and
// metadata service.

import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { Agent, createServer, type Server, request as send } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  CreateQueueCommand,
  DeleteQueueCommand,
  GetQueueAttributesCommand,
  SendMessageBatchCommand,
  SQSClient,
} from '@aws-sdk/client-sqs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runAgent, startAgent } from '../agent.ts'
import { arrivalSink, numbered, refusedAgain, startArrivals } from '../arrivals.ts'
import { until } from '../command.ts'
import { type RunningService, service } from '../services/service.ts'

const sqs = service('sqs')
const aws = service('aws')
const why = sqs.missing === undefined ? '' : ` (${sqs.missing})`
const region = 'elasticmq'
const auth = { access_key_id: 'x', secret_access_key: 'y' }

async function queueOf(client: SQSClient): Promise<string> {
  const { QueueUrl } = await client.send(new CreateQueueCommand({ QueueName: `penstock-${randomUUID()}` }))
  if (QueueUrl === undefined) throw new Error('The server names no queue.')
  return QueueUrl
}

/** Sends numbered messages without the vendor's client, which would take longer than the rest of the test. */
async function fill(endpoint: string, QueueUrl: string, count: number): Promise<void> {
  const { hostname, port } = new URL(endpoint)
  const agent = new Agent({ keepAlive: true })
  const headers = { 'content-type': 'application/x-amz-json-1.0', 'x-amz-target': 'AmazonSQS.SendMessageBatch' }
  const sendTen = (from: number) =>
    new Promise<void>((resolve, reject) => {
      const Entries = Array.from({ length: Math.min(10, count - from) }, (_, index) => ({
        Id: String(index),
        MessageBody: numbered(from + index),
      }))
      const request = send({ agent, hostname, port, method: 'POST', path: '/', headers }, (response) => {
        response.resume()
        response.on('end', () =>
          response.statusCode === 200
            ? resolve()
            : reject(new Error(`The queue answered with ${response.statusCode}.`)),
        )
      })
      request.on('error', reject)
      request.end(JSON.stringify({ QueueUrl, Entries }))
    })
  let next = 0
  const task = async () => {
    while (next < count) {
      const from = next
      next += 10
      await sendTen(from)
    }
  }
  await Promise.all(Array.from({ length: 16 }, task))
  agent.destroy()
}

/** Number of messages in the queue, including those that a consumer has received. */
async function left(client: SQSClient, QueueUrl: string): Promise<number> {
  const { Attributes } = await client.send(new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['All'] }))
  return (
    Number(Attributes?.['ApproximateNumberOfMessages']) + Number(Attributes?.['ApproximateNumberOfMessagesNotVisible'])
  )
}

describe.skipIf(sqs.missing !== undefined)(`cloud_queue and a queue server${why}`, () => {
  let server: RunningService
  let client: SQSClient
  beforeAll(async () => {
    server = await sqs.start()
    client = new SQSClient({
      endpoint: server.url,
      region,
      credentials: { accessKeyId: 'x', secretAccessKey: 'y' },
    })
  })
  afterAll(() => server?.[Symbol.asyncDispose]())

  test('100,000 messages survive a failing sink and two kills, and none is deleted before it is delivered', {
    timeout: 1_500_000,
  }, async () => {
    const count = 100_000
    await using arrivals = await startArrivals(count)
    const queue = await queueOf(client)
    await fill(server.url, queue, count)
    expect(await left(client, queue)).toBe(count)
    // The queue hides messages received by a killed agent for this long.
    const source = { queue_url: queue, region, auth, client_concurrency: 8, poll_secs: 2, visibility_timeout_secs: 6 }
    const config = {
      sources: { in: { type: 'cloud_queue', ...source } },
      sinks: { out: arrivalSink(arrivals, 'in') },
    }

    arrivals.failing = true
    {
      await using agent = await startAgent(config)
      await refusedAgain(arrivals, agent)
      await agent.stop('SIGKILL')
    }
    expect(await left(client, queue)).toBe(count) // nothing was delivered, so nothing was deleted

    arrivals.failing = false
    {
      await using agent = await startAgent(config)
      await arrivals.reached(15_000, 60_000)
      arrivals.failing = true
      await refusedAgain(arrivals, agent)
      arrivals.failing = false
      await arrivals.reached(40_000, 60_000)
      await agent.stop('SIGKILL')
    }
    expect((await left(client, queue)) + arrivals.distinct).toBeGreaterThanOrEqual(count)
    expect(arrivals.distinct).toBeLessThan(count)

    await using agent = await startAgent(config)
    await arrivals.reached(count, 180_000).catch(() => {}) // the assertions below show missing messages
    expect(arrivals.missing(), agent.output()).toEqual([])
    await until('the last deletions', 30_000, async () => (await left(client, queue)) === 0)
    expect(await agent.stop(), agent.output()).toBe(0)
    // Duplicates are events that were delivered but not deleted at the kill, and events that the agent kept longer than the queue hides them
    // while the sink failed. They are at most the content of the pipeline's buffers.
    console.log(`cloud_queue: ${arrivals.doubled} of ${count} messages were delivered twice`)
    expect(arrivals.doubled).toBeLessThan(5000)
    await client.send(new DeleteQueueCommand({ QueueUrl: queue }))
  })

  test('fields of the event, and metadata of the message', async () => {
    const queue = await queueOf(client)
    await client.send(
      new SendMessageBatchCommand({ QueueUrl: queue, Entries: [{ Id: '0', MessageBody: 'grüße <&> \u{1f980}' }] }),
    )
    const before = Date.now() - 60_000
    const [event] = await consumed({ queue_url: queue, region, auth }, {})
    expect(event).toEqual({
      message: 'grüße <&> \u{1f980}',
      source_type: 'cloud_queue',
      timestamp: expect.stringMatching(/Z$/),
    })
    expect(Date.parse((event as { timestamp: string }).timestamp)).toBeGreaterThan(before)
    expect(await left(client, queue)).toBe(0)
  })

  test('instance credentials that expire during a run are replaced, at their expiry or when they are rejected', async () => {
    const queue = await queueOf(client)
    await using instance = await instanceMetadata()
    // Each key is valid for a few requests; keys with an early expiry are used less often.
    await using line = await recorder(server.url, (used) => used <= 6)
    const source = { queue_url: queue, endpoint: line.url, region, poll_secs: 1, client_concurrency: 1 }
    await using agent = await startAgent(
      {
        sources: { in: { type: 'cloud_queue', ...source } },
        sinks: {
          out: { type: 'console', inputs: ['in'], encoding: { codec: 'text' }, acknowledgements: { enabled: true } },
        },
      },
      { AWS_EC2_METADATA_SERVICE_ENDPOINT: instance.url, HOME: '/nowhere' },
    )
    const refused = () => line.refused.size
    for (let index = 0; index < 100 && refused() < 2; index++) {
      const text = `message ${index}.`
      await client.send(new SendMessageBatchCommand({ QueueUrl: queue, Entries: [{ Id: '0', MessageBody: text }] }))
      await until(text, 60_000, async () => agent.output().includes(text)).catch((error: unknown) => {
        throw new Error(agent.output(), { cause: error })
      })
    }
    // Keys with an expiry of an hour were rejected, and then replaced; keys with an early expiry were replaced before.
    expect(refused(), agent.output()).toBe(2)
    expect([...line.refused].every((key) => instance.long.has(key))).toBe(true)
    expect(line.keys.some((key) => !instance.long.has(key))).toBe(true)
    await until('the last deletions', 60_000, async () => (await left(client, queue)) === 0)
    expect(await agent.stop(), agent.output()).toBe(0)
    await client.send(new DeleteQueueCommand({ QueueUrl: queue }))
  })

  test('without credentials, or without the queue, the health check says why', async () => {
    const home = await mkdtemp(join(tmpdir(), 'penstock-home-'))
    const config = (source: object) => ({
      sources: { in: { type: 'cloud_queue', queue_url: `${server.url}/000000000000/absent`, region, ...source } },
      sinks: { out: { type: 'console', inputs: ['in'], encoding: { codec: 'json' } } },
    })
    const env = { HOME: home, AWS_EC2_METADATA_DISABLED: 'true' }
    const args = ['--require-healthy']

    const nobody = await runAgent(config({}), '', { args, env })
    expect(nobody.code, nobody.stderr).toBe(78)
    expect(nobody.stdout + nobody.stderr).toContain('No credentials for AWS were found. Searched places: ')
    expect(nobody.stdout + nobody.stderr).toContain(`${home}/.cloud/credentials`)

    const absent = await runAgent(config({ auth }), '', { args, env })
    expect(absent.code, absent.stderr).toBe(78)
    expect(absent.stdout + absent.stderr).toContain('does not exist')
    await rm(home, { recursive: true, force: true })
  })
})

describe.skipIf(aws.missing !== undefined)(`cloud_queue and the services for credentials${awsWhy()}`, () => {
  let server: RunningService
  let client: SQSClient
  beforeAll(async () => {
    server = await aws.start()
    client = new SQSClient({
      endpoint: server.url,
      region: 'eu-west-1',
      credentials: { accessKeyId: 'x', secretAccessKey: 'y' },
    })
  })
  afterAll(() => server?.[Symbol.asyncDispose]())

  const message = async (text: string) => {
    const queue = await queueOf(client)
    await client.send(new SendMessageBatchCommand({ QueueUrl: queue, Entries: [{ Id: '0', MessageBody: text }] }))
    return queue
  }

  test('a role is assumed', async () => {
    const queue = await message('by a role')
    await using line = await recorder(server.url)
    const source = {
      queue_url: queue,
      endpoint: line.url,
      region: 'eu-west-1',
      auth: { ...auth, assume_role: 'arn:aws:iam::123456789012:role/reader', external_id: 'shop' },
    }
    const [event] = await consumed(source, { AWS_ENDPOINT_URL_STS: line.url })
    expect(event).toMatchObject({ message: 'by a role' })
    const [assumed, ...others] = line.keys
    expect(assumed).toBe('x')
    expect(new Set(others).size).toBe(1)
    expect(others[0]).toMatch(/^ASIA/)
  })

  test('the metadata of the instance gives credentials', async () => {
    const queue = await message('by the instance')
    await using line = await recorder(server.url)
    const env = { AWS_EC2_METADATA_SERVICE_ENDPOINT: server.url, HOME: '/nowhere' }
    const [event] = await consumed({ queue_url: queue, endpoint: line.url, region: 'eu-west-1' }, env)
    expect(event).toMatchObject({ message: 'by the instance' })
    expect(line.keys[0]).toBe('test-key')
  })
})

function awsWhy(): string {
  return aws.missing === undefined ? '' : ` (${aws.missing})`
}

/** The first event of a queue, as printed by the console sink. */
async function consumed(source: object, env: NodeJS.ProcessEnv): Promise<unknown[]> {
  await using agent = await startAgent(
    {
      sources: { in: { type: 'cloud_queue', poll_secs: 1, client_concurrency: 1, ...source } },
      sinks: {
        out: { type: 'console', inputs: ['in'], encoding: { codec: 'json' }, acknowledgements: { enabled: true } },
      },
    },
    env,
  )
  const lines = () =>
    agent
      .output()
      .split('\n')
      .filter((line) => line.startsWith('{"'))
  await until('an event', 30_000, async () => lines().length > 0).catch((error: unknown) => {
    throw new Error(agent.output(), { cause: error })
  })
  expect(await agent.stop(), agent.output()).toBe(0)
  return lines().map((line) => JSON.parse(line) as unknown)
}

/** Instance metadata (version 2) with a new key for each look-up: one that expires after an hour, then three after a second, and so on. */
async function instanceMetadata(): Promise<AsyncDisposable & { readonly url: string; readonly long: Set<string> }> {
  const long = new Set<string>()
  let keys = 0
  const server = createServer(({ method, url, headers }, answer) => {
    if (method === 'PUT' && url === '/latest/api/token') return answer.end('session')
    if (headers['x-aws-ec2-metadata-token'] !== 'session') return answer.writeHead(401).end()
    if (url === '/latest/meta-data/iam/security-credentials/') return answer.end('node')
    const key = `KEY${++keys}`
    const isLong = keys % 4 === 1
    if (isLong) long.add(key)
    const Expiration = new Date(Date.now() + (isLong ? 3_600_000 : 1000)).toISOString()
    return answer.end(JSON.stringify({ AccessKeyId: key, SecretAccessKey: 's', Token: `t${keys}`, Expiration }))
  })
  const url = await listening(server)
  return { url, long, [Symbol.asyncDispose]: () => closed(server) }
}

interface Recorder extends AsyncDisposable {
  readonly url: string
  /** The keys that signed requests. */
  readonly keys: string[]
  readonly refused: Set<string>
}

/**
 * Forwards requests to a server, and records the keys that signed them.
 * @param accepts whether a key that has signed this many requests is still valid
 */
async function recorder(target: string, accepts: (used: number) => boolean = () => true): Promise<Recorder> {
  const keys: string[] = []
  const refused = new Set<string>()
  const { hostname, port } = new URL(target)
  const server = createServer((incoming, answer) => {
    const key = /Credential=([^/]+)/.exec(incoming.headers.authorization ?? '')?.[1]
    if (key !== undefined) keys.push(key)
    if (key !== undefined && !accepts(keys.filter((other) => other === key).length)) {
      refused.add(key)
      incoming.resume()
      answer.writeHead(403, { 'content-type': 'application/x-amz-json-1.0' })
      answer.end('{"__type":"com.amazon.coral.service#ExpiredTokenException","message":"It has expired."}')
      return
    }
    const { method, url, headers } = incoming
    const forward = send({ hostname, port, method, path: url, headers }, (response) => {
      answer.writeHead(response.statusCode ?? 502, response.headers)
      response.pipe(answer)
    })
    forward.on('error', () => answer.destroy())
    incoming.pipe(forward)
  })
  const url = await listening(server)
  return { url, keys, refused, [Symbol.asyncDispose]: () => closed(server) }
}

async function listening(server: Server): Promise<string> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

async function closed(server: Server): Promise<void> {
  server.closeAllConnections()
  await new Promise((done) => server.close(done))
}
