// Conditions with predicates on fields, of old versions, and conditions that fail: events take the same way as in Vector.

import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { converted, lint } from '../../testing/conversions.ts'
import { convertVector } from './convert.ts'

type Table = Readonly<Record<string, unknown>>

/** The number of events that arrive at a sink for a given event at the source. */
async function check(transform: Table, output: string, event: object, count: number): Promise<void> {
  const config = {
    sources: { in: { type: 'file', include: ['/srv/x.log'] } },
    transforms: { start: { type: 'remap', inputs: ['in'], source: '.' }, t: { ...transform, inputs: ['start'] } },
    sinks: { out: { type: 'console', inputs: [output], encoding: { codec: 'json' } } },
  }
  const { document, resource, gaps } = converted(convertVector, [{ file: 'vector.yaml', text: stringify(config) }])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  const at = resource.spec.sinks[0].inputs[0]
  document.setIn(
    ['spec', 'tests'],
    [{ name: 'way', insertAt: 'start', input: { log: event }, expect: [{ at, count }] }],
  )
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
}

test.each<[predicates: Table, event: object, isTrue: boolean]>([
  [{ 'a.eq': 'x' }, { a: 'x' }, true],
  [{ 'a.eq': '5' }, { a: 5 }, true],
  [{ 'a.eq': '' }, {}, false],
  [{ 'a.equals': ['x', 'y'] }, { a: 'y' }, true],
  [{ 'a.eq': 5 }, { a: 5 }, true],
  [{ 'a.eq': 5 }, { a: '5' }, false],
  [{ 'a.eq': true }, { a: true }, true],
  [{ 'a.neq': 200 }, { a: 200 }, false],
  [{ 'a.neq': ['x', 'y'] }, { a: 'z' }, true],
  [{ 'a.neq': 'x' }, {}, false],
  [{ 'a.not_eq': 'x' }, {}, true],
  [{ 'a.b.contains': ['x', 'y'] }, { a: { b: 'ayb' } }, true],
  [{ 'a.not_contains': 'x' }, { a: 'axb' }, false],
  [{ 'a.starts_with': 'x' }, { a: 'xy' }, true],
  [{ 'a.prefix': 'x' }, { a: 'yx' }, false],
  [{ 'a.ends_with': ['x'] }, { a: 'yx' }, true],
  [{ 'a.regex': "^'\\d+$" }, { a: "'12" }, true],
  [{ 'a.not_regex': '^\\d+$' }, {}, true],
  [{ 'a.exists': true }, { a: null }, true],
  [{ 'a.exists': false }, { a: 1 }, false],
  [{ 'a.not_exists': true }, {}, true],
  [{ 'a.ip_cidr_contains': ['10.0.0.0/8', '192.168.0.0/16'] }, { a: '192.168.1.1' }, true],
  [{ 'a.not_ip_cidr_contains': '10.0.0.0/8' }, { a: 'no address' }, true],
  [{ 'a.length_eq': 3 }, { a: 'äb' }, true],
  [{ 'a.length_eq': 2 }, { a: [1, 2] }, true],
  [{ 'a.length_eq': 2 }, { a: 42 }, true],
  [{ 'a.eq': 'x', 'b.exists': true }, { a: 'x' }, false],
  [{}, {}, true],
])('%j for %j is %s', async (predicates, event, isTrue) => {
  const condition = { type: 'check_fields', ...predicates }
  await check({ type: 'filter', condition }, 't', event, isTrue ? 1 : 0)
  if (Object.keys(predicates).length === 0) return
  await check({ type: 'filter', condition: predicates }, 't', event, isTrue ? 1 : 0)
  await check({ type: 'route', route: { here: condition } }, 't.here', event, isTrue ? 1 : 0)
  await check({ type: 'route', route: { here: condition } }, 't._unmatched', event, isTrue ? 0 : 1)
  await check({ type: 'swimlanes', lanes: { here: condition } }, 't.here', event, isTrue ? 1 : 0)
})

const failing = 'to_int!(.n) > 1'

test.each<[about: string, transform: Table, output: string, event: object, count: number]>([
  ['a route', { type: 'route', route: { a: failing } }, 't.a', { n: 'x' }, 0],
  ['no route', { type: 'route', route: { a: failing } }, 't._unmatched', { n: 'x' }, 1],
  ['no route', { type: 'route', route: { a: failing } }, 't._unmatched', { n: 2 }, 0],
  ['no route', { type: 'route', route: { a: failing, b: '.b == 1' } }, 't._unmatched', { n: 'x', b: 1 }, 0],
  ['no route', { type: 'route', route: { b: '.b == 1', a: failing } }, 't._unmatched', { n: 'x', b: 2 }, 1],
  [
    'a later route',
    {
      type: 'exclusive_route',
      routes: [
        { name: 'a', condition: failing },
        { name: 'b', condition: 'true' },
      ],
    },
    't.b',
    { n: 'x' },
    1,
  ],
  ['a sample', { type: 'sample', rate: 1, exclude: failing }, 't', { n: 'x' }, 1],
  ['a search', { type: 'route', route: { a: { type: 'datadog_search', source: 'x:y' } } }, 't._unmatched', {}, 1],
])('where a condition fails, it is false: %s', async (_, transform, output, event, count) => {
  await check(transform, output, event, count)
})

test('the result of a condition is not part of the event', async () => {
  const config = {
    sources: { in: { type: 'file', include: ['/srv/x.log'] } },
    transforms: { t: { type: 'route', inputs: ['in'], route: { a: failing } } },
    sinks: { out: { type: 'console', inputs: ['t._unmatched'], encoding: { codec: 'json' } } },
  }
  const { resource } = converted(convertVector, [{ file: 'vector.yaml', text: stringify(config) }])
  expect(resource.spec.transforms.at(-1).config.source).toBe('del(%condition)')
})

test.each([
  [{ n: 5 }, 1],
  [{ n: '5' }, 1],
  [{ n: 6 }, 0],
  [{}, 0],
])('the oldest filter compares one field with a text: %j', async (event, count) => {
  await check({ type: 'field_filter', field: 'n', value: '5' }, 't', event, count)
})
