import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import { ByteBatch } from '../bytes/byte-batch.ts'
import { logBatch } from '../event/batch.ts'
import { Finalizer } from '../event/finalizer.ts'
import type { LogEvent } from '../event/log.ts'
import { MetricEvent } from '../event/metric.ts'
import { writeJson } from '../formats/json.ts'
import { findComponent } from '../registry.ts'
import { BytePod } from '../testing/byte-pod.ts'
import { log } from '../testing/events.ts'
import { RecordedEvents, runTransform, testGlobals } from '../testing/harness.ts'
import { through, transformsOf } from '../testing/lanes.ts'

const counter = () => new MetricEvent({ name: 'c', kind: 'absolute', value: { type: 'counter', value: 1 } })

test.each([
  { condition: '.n == 2', passed: 1 },
  { condition: { type: 'vrl', source: '(int(.n) ?? 0) >= 2' }, passed: 2 },
  { condition: { type: 'is_log' }, passed: 3 },
  { condition: { type: 'is_metric' }, passed: 0 },
])('$condition passes $passed of 3 events', async ({ condition, passed }) => {
  const events = new RecordedEvents()
  const sent = await runTransform('filter', { condition }, [log({ n: 1 }), log({ n: 2 }), log({ n: 3 })], events)
  expect(sent.get('')?.length ?? 0).toBe(passed)
  expect(events.counts.get('component_discarded_events_total intentional=true') ?? 0).toBe(3 - passed)
})

test('a condition can filter metrics by their fields', async () => {
  expect((await runTransform('filter', { condition: '.name == "c"' }, [counter()])).get('')).toHaveLength(1)
  expect((await runTransform('filter', { condition: '.name == "d"' }, [counter()])).size).toBe(0)
})

test('an event for which the program fails does not pass, and is not counted as filtered', async () => {
  const events = new RecordedEvents()
  const input = [log({ n: 'x' }), log({ n: 2 }), log({ n: 1 }), log({ n: 'y' }), log({ n: 0 })]
  const sent = await runTransform('filter', { condition: 'int!(.n) > 1' }, input, events)
  expect((sent.get('') as LogEvent[]).map((event) => event.fields)).toEqual([{ n: 2 }])
  expect(events.counts.get('component_errors_total')).toBe(2)
  expect(events.counts.get('component_discarded_events_total intentional=false')).toBe(2)
  expect(events.counts.get('component_discarded_events_total intentional=true')).toBe(2)
})

test.each([
  { condition: '.x = 1', message: /does not compile/ },
  { condition: '.x', message: /must return a boolean/ },
  { condition: 'del(.x) == 1', message: /does not compile/ },
])('the condition $condition is invalid', ({ condition, message }) => {
  const declaration = findComponent('transform', 'filter')
  const problems = declaration?.check?.({ condition } as never, testGlobals(tmpdir())) ?? []
  expect(problems).toMatchObject([{ message: expect.stringMatching(message) }])
})

test.each([
  { condition: '.level != "debug"' },
  { condition: 'int!(.n) > 20 && int!(.n) < 80 && exists(.level)' },
  { condition: 'int!(.maybe) == 1' },
  { condition: '.stream == "stderr"' },
  { condition: '.message == "no JSON" || timestamp!(.timestamp) > t\'2026-11-23T10:11:12.3Z\'' },
])('lines and objects are filtered and counted in the same way: $condition', async ({ condition }) => {
  const pod = new BytePod('a')
  const line = (index: number) => {
    const maybe = index % 3 === 0 ? ',"maybe":1' : index % 3 === 1 ? ',"maybe":"no"' : ''
    const stream = index % 4 === 0 ? 'stderr' : 'stdout'
    return Buffer.from(
      `2026-11-23T10:11:12.${index}Z ${stream} F {"level":"${index % 2 === 0 ? 'debug' : 'info'}","n":${index}${maybe}}`,
    )
  }
  const lines = [
    ...Array.from({ length: 100 }, (_, index) => line(index)),
    Buffer.from('2026-11-23T10:11:12Z stdout F no JSON'),
  ]
  const [first, second] = [new RecordedEvents(), new RecordedEvents()]
  const merge = '. = merge(., object!(parse_json!(.message)))'
  const asBytes = await transformsOf([merge, `filter: ${condition}`], true, first)
  const asObjects = await transformsOf([merge, `filter: ${condition}`], false, second)
  let bytes: string[] = []
  pod.read(lines, (batch) => {
    const after = through(asBytes, batch)
    expect(after).toBeInstanceOf(ByteBatch)
    bytes = after?.events.map(({ fields }) => writeJson(fields)) ?? []
  })
  const objects = through(asObjects, logBatch(pod.objects(lines), new Finalizer()))
  expect(bytes).toEqual(objects?.events.map(({ fields }) => writeJson(fields)))
  expect(bytes.length).toBeGreaterThan(5)
  const counted = ({ counts, errors, discards }: RecordedEvents) => ({
    counts: [...counts].filter(([name]) => !name.includes('byte_lane')),
    errors,
    discards,
  })
  expect(counted(first)).toEqual(counted(second))
})
