import { expect, test } from 'vitest'
import { MetricEvent, type TagValue } from '../event/metric.ts'
import { runTransform } from '../testing/harness.ts'
import { SeenTagValues } from './seen-tag-values.ts'

const metric = (tags: Record<string, TagValue>) =>
  new MetricEvent({
    name: 'm',
    kind: 'absolute',
    value: { type: 'gauge', value: 1 },
    tags: new Map(Object.entries(tags)),
  })
const limited = async (options: object, tags: readonly Record<string, TagValue>[]) => {
  const sent = await runTransform('tag_cardinality_limit', options, tags.map(metric))
  return (sent.get('') ?? []).map((event) => Object.fromEntries((event as MetricEvent).tags ?? []))
}

test('the first values of each tag pass, and an event with another value loses only this tag', async () => {
  expect(
    await limited({ value_limit: 2 }, [
      { path: '/a', host: 'n1' },
      { path: '/b', host: 'n1' },
      { path: '/c', host: 'n1' },
      { path: '/a', host: 'n2' },
    ]),
  ).toEqual([{ path: '/a', host: 'n1' }, { path: '/b', host: 'n1' }, { host: 'n1' }, { path: '/a', host: 'n2' }])
})

test('with `drop_event`, an event with another value is discarded, and its other tags do not count', async () => {
  expect(
    await limited({ value_limit: 1, limit_exceeded_action: 'drop_event' }, [
      { path: '/a' },
      { path: '/b', host: 'n1' },
      { path: '/a', host: 'n2' },
    ]),
  ).toEqual([{ path: '/a' }, { path: '/a', host: 'n2' }])
})

test('each of several values of a tag counts, and bare tags do not count', async () => {
  expect(
    await limited({ value_limit: 2 }, [
      { zone: ['a', 'b', 'a', null] },
      { zone: ['b', 'c'] },
      { zone: null },
      { zone: 'a' },
    ]),
  ).toEqual([{ zone: ['a', 'b', 'a', null] }, {}, { zone: null }, { zone: 'a' }])
})

test('500 values pass by default', async () => {
  const tags = Array.from({ length: 502 }, (_, id) => ({ id: `${id}` }))
  const sent = await limited({}, tags)
  expect(sent.filter(({ id }) => id !== undefined)).toHaveLength(500)
  expect(sent.slice(500)).toEqual([{}, {}])
})

test('other holders of a batch keep its tags', async () => {
  const events = [metric({ id: '1' }), metric({ id: '2' })]
  await runTransform('tag_cardinality_limit', { value_limit: 1 }, events)
  expect(events.map(({ tags }) => tags?.get('id'))).toEqual(['1', '2'])
})

test('hostile tags and values use a bounded amount of memory', () => {
  const full: string[] = []
  const seen = new SeenTagValues(1e6, (tag) => full.push(tag))
  let admitted = 0
  for (let number = 0; number < 4000; number++) {
    if (seen.admit(`tag ${number} ${'t'.repeat(1000)}`, `value ${'v'.repeat(20_000)} ${number}`)) admitted++
  }
  expect(seen.bytes).toBeLessThanOrEqual(16 << 20)
  expect(admitted).toBeGreaterThan(100)
  expect(admitted).toBeLessThan(4000)
  expect(full).toEqual([])
})
