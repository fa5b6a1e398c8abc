// The kernel has room for a limited number of computed values. Events whose values do not fit become objects, with the same result.

import { expect, test } from 'vitest'
import { logBatch } from '../event/batch.ts'
import { Finalizer } from '../event/finalizer.ts'
import { BytePod } from '../testing/byte-pod.ts'
import { check, expectedOf } from '../testing/lane-check.ts'
import { through, transformsOf } from '../testing/lanes.ts'
import { Random } from '../testing/random.ts'
import { ByteBatch } from './byte-batch.ts'
import { theKernel } from './kernel.ts'

const parse = '. = parse_json!(.message)'
const { maxValues, maxValueBytes } = { maxValues: 0x8000, maxValueBytes: 0x80000 }
const line = (message: string) => Buffer.from(`2026-11-23T10:11:12.5Z stdout F ${message}`)
const numbers = (count: number) => Array.from({ length: count }, (_, index) => line(`{"i":${index}}`))
const texts = (count: number, length: number) =>
  Array.from({ length: count }, (_, index) => line(`{"i":${index},"s":"${`${index}.`.padEnd(length, 'x')}"}`))
const columns = (count: number) => Array.from({ length: count }, (_, index) => `.c${index} = [.i, ${index}]`).join('\n')

test('these tests fill the space exactly', () => {
  expect([theKernel().at('maxValues'), theKernel().at('maxValueBytes')]).toEqual([maxValues, maxValueBytes])
})

test.each([
  {
    name: 'as many values as there is room for',
    chain: [`${parse}\n${columns(8)}`],
    lines: numbers(4096),
    asLines: 4096,
  },
  // Eight columns leave room for 768 values of the ninth.
  { name: 'a value too many', chain: [`${parse}\n${columns(9)}`], lines: numbers(4000), asLines: maxValues - 8 * 4000 },
  // `"XXX…"` has 1002 bytes.
  {
    name: 'a byte too many',
    chain: [`${parse}\n.up = upcase!(.s)\n.low = downcase!(.s)\n.same = string!(.s)`],
    lines: texts(200, 1000),
    asLines: Math.floor(maxValueBytes / 1002) - 400,
  },
  {
    name: 'a value that alone is too long',
    chain: [`${parse}\n.t = [.s, .s, .s, .s, .s, .s]`],
    lines: [...texts(3, 10), ...texts(1, 100_000), ...texts(3, 10)],
    asLines: 6,
  },
  {
    name: 'a column over another one',
    chain: [`${parse}\n.s = upcase!(.s)`, 'if .i == 7 { .s = "seven" }', 'if .i == 8 { .s = "eight" }'],
    lines: texts(240, 1000),
    asLines: 0,
  },
  {
    name: 'a column that is copied',
    chain: [`${parse}\n.up = upcase!(.s)`, '.copy = .up', '.more = .copy'],
    lines: texts(240, 1000),
    asLines: 0,
  },
  {
    name: 'columns of a program for which there is room, before one for which there is none',
    chain: [`${parse}\n.up = upcase!(.s)`, '.low = downcase!(.up)', '.next = upcase!(.low)', '.env = "prod"'],
    lines: texts(240, 1000),
    asLines: Math.floor(maxValueBytes / 1002) - 480,
  },
])('$name', { timeout: 240_000 }, async ({ chain, lines, asLines }) => {
  const random = new Random(1)
  const bytes = await transformsOf(chain, true)
  const objects = await transformsOf(chain, false)
  const pod = new BytePod('a')
  const expected = expectedOf(through(objects, logBatch(pod.objects(lines), new Finalizer()))?.events ?? [])
  expect(expected.json).toHaveLength(lines.length)
  for (let way = 0; way < 3; way++) {
    pod.read(lines, (batch) => {
      const after = through(bytes, batch)
      if (!(after instanceof ByteBatch)) throw new Error('No batch of lines came out.')
      expect(after.lineCount).toBe(asLines)
      check(after, expected, random)
    })
  }
})
