// Recordings of old agents in common formats: OTLP messages, requests to Loki, output of logcli, and events.

import { expect, test } from 'vitest'
import { compareEvents } from './compare.ts'
import { recordedEvents } from './recorded.ts'

test('an OTLP message contains one event per record', () => {
  const value = (text: string) => ({ stringValue: text })
  const message = {
    resourceLogs: [
      {
        resource: { attributes: [{ key: 'k8s.pod.name', value: value('web-1') }] },
        scopeLogs: [
          {
            scope: {},
            logRecords: [
              {
                timeUnixNano: '1',
                severityNumber: 9,
                body: value('one'),
                traceId: '',
                attributes: [
                  { key: 'n', value: { intValue: '7' } },
                  { key: 'x', value: { doubleValue: 1.5 } },
                  { key: 'whole', value: { doubleValue: 7 } },
                  { key: 'large', value: { intValue: '9007199254740993' } },
                  { key: 'is', value: { boolValue: false } },
                  { key: 'list', value: { arrayValue: { values: [value('a'), { intValue: 1 }] } } },
                ],
              },
              { body: { kvlistValue: { values: [{ key: 'a', value: value('b') }] } } },
            ],
          },
        ],
      },
    ],
  }
  expect(recordedEvents(message)).toEqual([
    {
      timeUnixNano: '1',
      severityNumber: 9,
      body: 'one',
      attributes: {
        n: 7,
        x: 1.5,
        whole: { doubleValue: '7' },
        large: { intValue: '9007199254740993' },
        is: false,
        list: ['a', 1],
      },
      resource: { 'k8s.pod.name': 'web-1' },
    },
    { body: { a: 'b' }, resource: { 'k8s.pod.name': 'web-1' } },
  ])
})

test('an integer and a double of the same value differ', () => {
  const message = (value: object) => ({
    resourceLogs: [{ scopeLogs: [{ logRecords: [{ attributes: [{ key: 'n', value }] }] }] }],
  })
  const [integer] = recordedEvents(message({ intValue: '7' }))
  const [double] = recordedEvents(message({ doubleValue: 7 }))
  expect(compareEvents([integer ?? {}], [double ?? {}]).equal).toBe(0)
  expect(compareEvents([integer ?? {}], recordedEvents(message({ intValue: 7 }))).equal).toBe(1)
})

test('a request to Loki, output of logcli and the event of a Pipeline give the same event', () => {
  const labels = { app: 'web' }
  const event = { message: 'one', labels, timestamp: '5' }
  const request = {
    streams: [
      {
        stream: labels,
        values: [
          ['5', 'one'],
          ['6', 'two', { pod: 'p' }],
        ],
      },
    ],
  }
  expect(recordedEvents(request)).toEqual([event, { message: 'two', labels, timestamp: '6', metadata: { pod: 'p' } }])
  expect(recordedEvents({ labels, line: 'one', timestamp: '5' })).toEqual([event])
  expect(recordedEvents({ ...event, metadata: {}, tenant: '' })).toEqual([event])
})

test('any other object is an event', () => {
  const event = { log: 'one', streams: 'x', labels: {} }
  expect(recordedEvents(event)).toEqual([event])
})
