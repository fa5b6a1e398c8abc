import { expect, test } from 'vitest'
import type { Pipeline } from '../api/pipeline.ts'
import { statusText } from './status.ts'
import { branchesOf } from './status-tree.ts'

type Spec = Pipeline['spec']

const spec = (transforms: readonly object[], sinks: readonly object[]) =>
  ({
    sources: [
      { name: 'pods', type: 'orchestrator_logs' },
      { name: 'queue', type: 'amqp' },
    ],
    transforms,
    sinks,
  }) as unknown as Spec

test('each component is below its first input, and names further inputs', () => {
  const pipeline = spec(
    [
      { name: 'parse', type: 'remap', inputs: ['pods'] },
      { name: 'keep', type: 'filter', inputs: ['parse', 'queue'] },
    ],
    [
      { name: 'store', ref: { kind: 'Sink', name: 'loki' } },
      { name: 'dead', type: 'blackhole', inputs: ['parse.dropped'] },
      { name: 'all', type: 'blackhole', inputs: ['*'] },
    ],
  )
  expect(branchesOf(pipeline).map(({ line }) => line)).toEqual([
    'source pods (orchestrator_logs)',
    '├─ transform parse (remap)',
    '│  ├─ transform keep (filter), also from queue',
    '│  │  └─ sink store (Sink loki)',
    '│  └─ sink dead (blackhole)',
    '└─ sink all (blackhole), also from queue, parse, keep',
    'source queue (amqp)',
  ])
})

test('shows components that read from nothing or from themselves', () => {
  const lines = branchesOf(
    spec(
      [
        { name: 'a', type: 'remap', inputs: ['b'] },
        { name: 'b', type: 'remap', inputs: ['a'] },
      ],
      [],
    ),
  ).map(({ line }) => line)
  expect(lines.slice(2)).toEqual(['transform a (remap)', '└─ transform b (remap)'])
})

test('errors of a component are below it in the tree, and large numbers have separators', () => {
  const pipeline = {
    kind: 'Pipeline',
    metadata: { name: 'web', namespace: 'shop', generation: 1 },
    spec: {
      sources: [{ name: 'pods', type: 'orchestrator_logs' }],
      sinks: [
        { name: 'one', type: 'http' },
        { name: 'two', type: 'http' },
      ],
    },
    status: {
      observedGeneration: 1,
      components: [
        { name: 'one', errors: 1, lastError: { reason: 'Http', message: 'status 401', node: 'n1', at: '12:00' } },
        { name: 'two', errors: 0 },
      ],
      agents: [{ name: 'system/node' }],
      flow: { window: '1m', eventsIn: 120034, eventsOut: 120000, dropped: 34, lagSeconds: 1, buffered: 2048 },
    },
  } as unknown as Pipeline
  expect(statusText(pipeline, { color: false }).split('\n').slice(1)).toEqual([
    '  source pods (orchestrator_logs)',
    '  ├─ sink one (http)',
    '  │       1 error; the last: Http: status 401 (n1, 12:00)',
    '  └─ sink two (http)',
    '          0 errors',
    '  agent     system/node: no revision yet',
    '  flow      in 120,034, out 120,000, dropped 34, errors 0 in 1m; now 1 s behind, 2.0 KiB buffered',
  ])
})

test.each([
  { errors: 0, reason: 'Error', dropped: 0, shown: false },
  { errors: 0, reason: 'Error', dropped: 3, shown: true },
  { errors: 0, reason: 'ConnectFailed', dropped: 0, shown: true },
  { errors: 1, reason: 'Error', dropped: 0, shown: true },
])('the last message is shown if it explains a failure: $errors, $reason, $dropped', (each) => {
  const { errors, reason, dropped, shown } = each
  const pipeline = {
    kind: 'Pipeline',
    metadata: { name: 'web', namespace: 'shop', generation: 1 },
    spec: { sources: [{ name: 'pods', type: 'orchestrator_logs' }], sinks: [{ name: 'one', type: 'http' }] },
    status: {
      observedGeneration: 1,
      components: [{ name: 'one', errors, lastError: { reason, message: 'the message', node: 'n1', at: '12:00' } }],
      flow: { dropped },
    },
  } as unknown as Pipeline
  expect(statusText(pipeline, { color: false }).includes('the message')).toBe(shown)
})
