import { tmpdir } from 'node:os'
import { expect, test } from 'vitest'
import type { LogEvent } from '../event/log.ts'
import { MetricEvent } from '../event/metric.ts'
import { findComponent } from '../registry.ts'
import { log } from '../testing/events.ts'
import { RecordedEvents, runTransform, testGlobals } from '../testing/harness.ts'

const counter = () => new MetricEvent({ name: 'c', kind: 'absolute', value: { type: 'counter', value: 1 } })

test.each([
  { condition: '.n == 2', passed: 1 },
  { condition: { type: 'vrl', source: '(int(.n) ?? 0) >= 2' }, passed: 2 },
  { condition: { type: 'is_log' }, passed: 3 },
  { condition: { type: 'is_metric' }, passed: 0 },
])('$condition lets $passed of 3 events pass', async ({ condition, passed }) => {
  const events = new RecordedEvents()
  const sent = await runTransform('filter', { condition }, [log({ n: 1 }), log({ n: 2 }), log({ n: 3 })], events)
  expect(sent.get('')?.length ?? 0).toBe(passed)
  expect(events.counts.get('component_discarded_events_total intentional=true') ?? 0).toBe(3 - passed)
})

test('metrics are filtered by their fields', async () => {
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
  { condition: '.x', message: /must give a boolean/ },
  { condition: 'del(.x) == 1', message: /does not compile/ },
])('the condition $condition is refused', ({ condition, message }) => {
  const declaration = findComponent('transform', 'filter')
  const problems = declaration?.check?.({ condition } as never, testGlobals(tmpdir())) ?? []
  expect(problems).toMatchObject([{ message: expect.stringMatching(message) }])
})
