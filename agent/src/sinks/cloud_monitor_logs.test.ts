import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { fakeDestination, type RecordedRequest } from '../testing/destination.ts'
import { log } from '../testing/events.ts'
import { problemsOf, startSink } from '../testing/harness.ts'

const sharedKey = 'MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY='
const required = { customer_id: 'workspace', shared_key: sharedKey, log_type: 'My_Type' }

/** The signature that the destination computes for a request. */
function signatureOf(request: RecordedRequest): string {
  const text = `POST\n${request.raw.length}\napplication/json\nx-ms-date:${request.headers['x-ms-date']}\n/api/logs`
  return `SharedKey workspace:${createHmac('sha256', Buffer.from(sharedKey, 'base64')).update(text).digest('base64')}`
}

test('the signature is that of the documentation', () => {
  const request = { raw: Buffer.alloc(57), headers: { 'x-ms-date': 'Tue, 02 Jan 2024 03:04:06 GMT' } }
  expect(signatureOf(request as unknown as RecordedRequest)).toBe(
    'SharedKey workspace:gVu2xcupB+yeZX+Z7/PlYGJq9lOvwJfAEIdnEDqDB/Q=',
  )
})

test('posts signed arrays of records', async () => {
  await using destination = await fakeDestination()
  await using sink = await startSink('cloud_monitor_logs', {
    ...required,
    host: destination.url,
    azure_resource_id: '/subscriptions/1',
    encoding: { except_fields: ['secret'] },
  })

  const status = await sink.deliver([
    log({ message: 'hi', timestamp: '2024-01-02T03:04:05.678901Z', secret: 1 }),
    log({ message: 'é', timestamp: '2024-01-02T03:04:05Z' }),
  ])

  expect(status).toBe('delivered')
  const [request] = destination.requests as [RecordedRequest]
  expect(request).toMatchObject({ method: 'POST', path: '/api/logs?api-version=2016-04-01' })
  expect(request.text()).toBe(
    '[{"message":"hi","timestamp":"2024-01-02T03:04:05.678Z"},{"message":"é","timestamp":"2024-01-02T03:04:05.000Z"}]',
  )
  expect(request.headers).toMatchObject({
    authorization: signatureOf(request),
    'content-type': 'application/json',
    'log-type': 'My_Type',
    'time-generated-field': 'timestamp',
    'x-ms-azureresourceid': '/subscriptions/1',
    'x-ms-date': expect.stringMatching(/^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/),
  })
})

test('the time of the record can have its own field', async () => {
  await using destination = await fakeDestination()
  await using sink = await startSink('cloud_monitor_logs', {
    ...required,
    host: destination.url,
    time_generated_key: '.generated',
    encoding: { timestamp_format: 'unix' },
  })
  const { timestamp: generated } = log({ timestamp: '2024-01-02T03:04:05.5Z' }).fields as { timestamp: never }

  await sink.deliver([
    log({ message: 'own', generated, timestamp: '2024-01-02T03:04:06Z' }),
    log({ message: 'of the event', timestamp: '2024-01-02T03:04:06Z' }),
    log({ message: 'none' }),
  ])

  expect(destination.requests[0]?.headers['time-generated-field']).toBe('generated')
  expect(destination.requests[0]?.json()).toEqual([
    { message: 'own', generated: '2024-01-02T03:04:05.500Z', timestamp: 1704164646 },
    { message: 'of the event', generated: '2024-01-02T03:04:06.000Z', timestamp: 1704164646 },
    { message: 'none', generated: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/) },
  ])
})

test.each([
  { status: 200, problem: undefined },
  { status: 400, problem: 'The workspace has been closed or the request was invalid' },
  { status: 401, problem: 'The service failed to authenticate the request.' },
  { status: 403, problem: 'The service failed to authenticate the request.' },
  { status: 404, problem: 'Either the URL provided is incorrect, or the request is too large' },
  { status: 502, problem: 'Server returned a server error' },
])('the health check after $status', async ({ status, problem }) => {
  await using destination = await fakeDestination(status)
  await using sink = await startSink('cloud_monitor_logs', { ...required, host: destination.url })

  const check = sink.sink.healthcheck?.(AbortSignal.timeout(5000))

  if (problem === undefined) await check
  else await expect(check).rejects.toThrow(problem)
  const [request] = destination.requests as [RecordedRequest]
  expect(request.text()).toBe('[]')
  expect(request.headers['authorization']).toBe(signatureOf(request))
})

test('refuses options that the destination would reject', () => {
  const options = {
    ...required,
    shared_key: '',
    log_type: 'a-b',
    azure_resource_id: '',
    batch: { max_bytes: 31_457_281 },
  }
  expect(problemsOf('sink', 'cloud_monitor_logs', options)).toMatchObject([
    { path: 'shared_key', message: "shared_key can't be an empty string" },
    { path: 'log_type', message: expect.stringMatching(/^invalid log_type "a-b": log type can only contain/) },
    { path: 'azure_resource_id', message: "azure_resource_id can't be an empty string" },
    { path: 'batch.max_bytes' },
  ])
  expect(problemsOf('sink', 'cloud_monitor_logs', required)).toEqual([])
})
