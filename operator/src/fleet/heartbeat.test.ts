import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { HeartbeatBody } from '@penstock/agent/bundle'
import { expect, test } from 'vitest'
import { readHeartbeat } from './heartbeat.ts'

const zeros = {
  ...{ eventsIn: 0, eventsOut: 0, filtered: 0, dropped: 0, lostBytes: 0, bufferedEvents: 0, bufferedBytes: 0 },
  ...{ generation: 0, errors: 0, bufferUse: 0, lagSeconds: 0 },
}
const nothing = {
  ...{ version: '', startedAt: '', revision: undefined, isStreamed: false, state: '', reason: undefined },
  ...{ failures: [], failed: new Set(), pipelines: {}, reading: undefined },
}
const failure = { pipeline: '', component: undefined, reason: '', message: '' }
const selected = (id: string) => id === 'shop/web'
const read = (body: object) => readHeartbeat(body as HeartbeatBody, selected)

test.each([
  { what: 'an empty body', body: {}, read: {} },
  { what: 'texts that are numbers', body: { version: 1, state: {}, revision: [] }, read: { revision: '' } },
  { what: 'lists of a wrong type', body: { failures: 'x', failed: {}, reading: 1 }, read: { reading: new Set() } },
  { what: 'a failure that is null', body: { failures: [null] }, read: { failures: [failure] } },
  { what: 'pipelines as a list', body: { pipelines: [{ eventsIn: 1 }] }, read: {} },
  {
    what: 'figures that are negative, texts or too large',
    body: { pipelines: { 'shop/web': { eventsIn: -1, eventsOut: '5', bufferUse: 7 } } },
    read: { pipelines: { 'shop/web': { ...zeros, bufferUse: 1, uid: '', hash: '', components: {} } } },
  },
  { what: 'a pipeline that the Agent does not select', body: { pipelines: { 'bank/web': {} } }, read: {} },
  { what: 'a text that is too long', body: { state: 'x'.repeat(5000) }, read: { state: 'x'.repeat(1024) } },
])('a heartbeat with $what is read without it', ({ body, read: expected }) => {
  expect(read(body)).toEqual({ ...nothing, ...expected })
})

test('lists of a heartbeat have limits', () => {
  const { failures, failed } = read({
    failures: Array.from({ length: 50 }, () => ({})),
    failed: Array.from({ length: 20_000 }, (_, index) => `shop/${index}`),
  })
  expect([failures.length, failed.size]).toEqual([20, 10_000])
})

test('a long text takes as much memory as the part of it that is kept', () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const used = () => {
    collect()
    return process.memoryUsage().heapUsed
  }
  const before = used()
  const kept = Array.from({ length: 100 }, (_, index) =>
    read(JSON.parse(`{"reason":"${`${index} `.repeat(300_000)}"}`)),
  )
  expect(used() - before).toBeLessThan(10_000_000)
  expect(kept.every(({ reason }) => reason?.length === 1024)).toBe(true)
})
