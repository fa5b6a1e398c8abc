import { expect, test } from 'vitest'
import { LineRun, maxRun } from './line-run.ts'
import { Stream } from './streams.ts'

const [a, b, c] = ['a', 'b', 'c'].map((name) => new Stream(Buffer.from(name))) as [Stream, Stream, Stream]

/** The entries in write order: stream, index, line, time. */
function entriesOf(run: LineRun): string[] {
  return Array.from({ length: run.count }, (_, index) =>
    [run.streams[run.streamAt(index)]?.header, run.placeOf(index), run.lines[index], run.ms[index], run.ns[index]].join(
      ' ',
    ),
  )
}

test('entries of a stream are adjacent and in order, and streams are in the order of their first entries', () => {
  const run = new LineRun()
  for (const [place, stream] of [b, a, b, c, a, b].entries()) run.add(place, 10 + place, 100 - place, place * 7, stream)

  run.sort()

  expect(entriesOf(run)).toEqual([
    'b 0 10 100 0',
    'b 2 12 98 14',
    'b 5 15 95 35',
    'a 1 11 99 7',
    'a 4 14 96 28',
    'c 3 13 97 21',
  ])
})

test('a written run can be reused', () => {
  const run = new LineRun()
  for (const stream of [a, b, a]) run.add(run.count, 1, 2, 3, stream)
  run.sort()
  run.clear()
  for (const stream of [c, b, a, c]) run.add(run.count, 1, 2, 3, stream)

  run.sort()

  expect(entriesOf(run)).toEqual(['c 0 1 2 3', 'c 3 1 2 3', 'b 1 1 2 3', 'a 2 1 2 3'])
})

test('a run can have as many streams as entries', () => {
  const run = new LineRun()
  while (!run.isFull) run.add(run.count, run.count, 0, 0, new Stream(Buffer.from(`${run.count}`)))

  run.sort()

  expect(Array.from({ length: run.count }, (_, index) => run.placeOf(index))).toEqual(
    Array.from({ length: maxRun }, (_, index) => index),
  )
})
