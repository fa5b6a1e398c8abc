// Integers of 16 to 19 digits, such as microseconds and nanoseconds since 1970, are exact on both lanes, and neither lane reads their line
// a second time for them.

import { afterEach, expect, test, vi } from 'vitest'
import { logBatch } from '../event/batch.ts'
import { Body } from '../event/body.ts'
import { Finalizer } from '../event/finalizer.ts'
import { isFailedJson, parseJson, writeJson } from '../formats/json.ts'
import { JsonReader } from '../formats/json-reader.ts'
import { JsonSplicer } from '../formats/json-splice.ts'
import { BytePod } from '../testing/byte-pod.ts'
import { check, expectedOf } from '../testing/lane-check.ts'
import { through, transformsOf } from '../testing/lanes.ts'
import { Random } from '../testing/random.ts'

const ends = ['9007199254740991', '9007199254740992', '9007199254740993', '9223372036854775806', '9223372036854775807']
const times = [
  '1767225600123456',
  '1767225600123456789',
  '17672256001234567',
  '176722560012345678',
  '9199999999999999999',
]
const random = new Random(15)
const some = Array.from({ length: 500 }, () => {
  const digits = 16 + random.below(4)
  const text = `${1 + random.below(digits === 19 ? 8 : 9)}`
  return text + Array.from({ length: digits - 1 }, () => random.below(10)).join('')
})
const wide = [...ends, ...times, ...some].flatMap((digits) => [digits, `-${digits}`]).concat('-9223372036854775808')
/** They do not fit in 64 bits, so they are floats. */
const tooWide = ['9223372036854775808', '-9223372036854775809', '9999999999999999999', '10000000000000000000']

const textOf = (number: string) => `{"at":${number},"in":{"list":[${number}]},"name":"web"}`
const lineOf = (number: string) => Buffer.from(`2026-11-26T10:11:12.5Z stdout F ${textOf(number)}`)

afterEach(() => {
  vi.restoreAllMocks()
})

test('the byte lane copies their digits', async () => {
  const chain = ['. = parse_json!(.message)']
  const bytes = await transformsOf(chain, true)
  const objects = await transformsOf(chain, false)
  const pod = new BytePod('a')
  for (const { numbers, conversions } of [
    { numbers: wide, conversions: 0 },
    { numbers: tooWide, conversions: 2 * tooWide.length },
  ]) {
    const lines = numbers.map(lineOf)
    const expected = expectedOf(through(objects, logBatch(pod.objects(lines), new Finalizer()))?.events ?? [])
    pod.read(lines, (batch) => {
      expect(batch.lines.enter().call.readObjects(0, lines.length)).toBe(conversions)
    })
    pod.read(lines, (batch) => check(through(bytes, batch), expected, random))
    if (conversions === 0) expect(expected.json).toEqual(numbers.map(textOf))
  }
})

test('the object lane reads them with one parse of the platform', () => {
  const exact = vi.spyOn(JsonReader.prototype, 'read')
  for (const number of wide) {
    const value = parseJson(textOf(number))
    expect(isFailedJson(value) ? value.reason : writeJson(value)).toBe(textOf(number))
  }
  expect(exact).not.toHaveBeenCalled()
  for (const number of tooWide) expect(parseJson(textOf(number))).toMatchObject({ name: 'web' })
  expect(exact).toHaveBeenCalledTimes(tooWide.length)
})

test('a text whose event is not created keeps their digits', () => {
  const splicer = new JsonSplicer({ merges: false, members: new Map() })
  const exact = vi.spyOn(JsonReader.prototype, 'read')
  for (const number of wide) {
    const text = `{"at":${number}}`
    expect(splicer.sizeOf(text, {})).toBe(8 + (Number.isSafeInteger(Number(number)) ? 12 : 19))
    const body = new Body(100)
    splicer.write(text, {}, body)
    expect(body.view().toString()).toBe(text)
  }
  expect(exact).not.toHaveBeenCalled()
})
