import { expect, test } from 'vitest'
import { parseJson } from '../formats/json.ts'
import { bodyForm } from './wire-bodies.ts'
import { difference, textMatches } from './wire-compare.ts'

test.each([
  ['{NOW}', '1795169473000000000', true],
  ['{NOW}', '2026-01-01T00:00:00.5Z', true],
  ['{NOW}', 'soon', false],
  ['a {UUID}', 'a c8c65bfa-5f2c-42d4-9189-64bb7b939f2c', true],
  ['v=penstock-{VERSION}', 'v=penstock-0.1.0', true],
  ['a.c', 'abc', false],
])('%s against %s', (wanted, found, same) => {
  expect(textMatches(wanted, found)).toBe(same)
})

test('lines of the line protocol are equal regardless of the order of tags, fields and lines', () => {
  const form = bodyForm('tsdb_metrics')
  const read = (text: string) => form.read(Buffer.from(text)).items
  const wanted = read('m\\ x,a=1,b=q"q x=1,y="s, t=u" 5\nn,c=d value=2 6')
  expect(
    difference(wanted, read('n,c=d value=2 6\nm\\ x,b=q"q,a=1 y="s, t=u",x=1 5'), { anyOrder: true }),
  ).toBeUndefined()
  expect(
    difference(wanted, read('n,c=d value=2 6\nm\\ x,b=q"q,a=1 y="s, t=v",x=1 5'), { anyOrder: true }),
  ).toBeDefined()
  expect(wanted[0]).toEqual({
    measurement: 'm\\ x',
    tags: { a: '1', b: 'q"q' },
    fields: { x: '1', y: '"s, t=u"' },
    timestamp: '5',
  })
})

test('streams are merged by labels, and an empty third element equals a missing one', () => {
  const form = bodyForm('log_aggregator')
  const wanted = form.read(
    Buffer.from('{"streams":[{"stream":{"a":"1","b":"2"},"values":[["1","x",{}],["2","y",{}]]}]}'),
  ).items
  const found = form.read(
    Buffer.from(
      '{"streams":[{"stream":{"b":"2","a":"1"},"values":[["1","x"]]},{"stream":{"a":"1","b":"2"},"values":[["2","y"]]}]}',
    ),
  ).items
  expect(difference(form.join(wanted), form.join(found))).toBeUndefined()
  expect(difference(form.join(wanted), form.join(found.slice(1)))).toBeDefined()
})

test('adjacent JSON documents are separate items', () => {
  const form = bodyForm('logsvc_b_logs')
  expect(form.read(Buffer.from('{"a":"}"}{"b":[1]}\n{"c":"\\""}')).items).toEqual([{ a: '}' }, { b: [1] }, { c: '"' }])
})

test('integers and floats differ only on request', () => {
  const [left, right] = [parseJson('{"a":1}'), parseJson('{"a":1.0}')]
  expect(difference(left, right)).toBeUndefined()
  expect(difference(left, right, { numbersApart: true })).toBeDefined()
})
