import { hostname } from 'node:os'
import { PassThrough } from 'node:stream'
import { afterEach, expect, test, vi } from 'vitest'
import type { LogEvent } from '../event/log.ts'
import { Timestamp } from '../event/timestamp.ts'
import { startSource } from '../testing/harness.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

function input(): PassThrough {
  const stream = new PassThrough()
  vi.spyOn(process, 'stdin', 'get').mockReturnValue(stream as never)
  return stream
}

const messages = (events: readonly unknown[]) => events.map((event) => (event as LogEvent).fields['message'])

test('every line is an event with time, host and source type; the end of the input ends the source', async () => {
  const stream = input()
  await using source = await startSource('stdin', {})
  stream.write('one\ntw')
  stream.end('o\nthree')
  const events = (await source.received(3)) as LogEvent[]
  expect(messages(events)).toEqual(['one', 'two', 'three'])
  expect(events[0]?.fields).toMatchObject({ host: hostname(), source_type: 'stdin' })
  expect(events[0]?.fields['timestamp']).toBeInstanceOf(Timestamp)
  expect(source.events.counts.get('component_received_bytes_total')).toBe(13)
})

test('lines beyond the limit are skipped and counted', async () => {
  const stream = input()
  await using source = await startSource('stdin', { max_length: 5, host_key: '' })
  stream.end('one\nmuch too long\ntwo\n')
  const events = (await source.received(2)) as LogEvent[]
  expect(messages(events)).toEqual(['one', 'two'])
  expect(events[0]?.fields['host']).toBeUndefined()
  expect(source.events.errors).toMatchObject([{ type: 'parser_failed', stage: 'processing', count: 1 }])
})

test('codecs and framings apply, and what the codec found stays', async () => {
  const stream = input()
  await using source = await startSource('stdin', {
    decoding: { codec: 'json' },
    framing: { method: 'character_delimited', character_delimited: { delimiter: ';' } },
    host_key: 'meta.node',
  })
  stream.end('{"host":"mine","message":"a"};nonsense;{"meta":{"node":"n"},"message":"b"}')
  const events = (await source.received(2)) as LogEvent[]
  expect(events[0]?.fields).toMatchObject({ host: 'mine', message: 'a', meta: { node: hostname() } })
  expect(events[1]?.fields).toMatchObject({ message: 'b', meta: { node: 'n' } })
  expect(source.events.errors).toHaveLength(1)
})

test('the source stops when it is asked to, with the input still open', async () => {
  const stream = input()
  await using source = await startSource('stdin', {})
  stream.write('one\n')
  await source.received(1)
  await source.stop()
  expect(source.events.errors).toEqual([])
})
