// A container runtime writes local times with an offset. Such lines stay bytes, and their times are the same instants in UTC.

import { expect, test } from 'vitest'
import { logBatch } from '../event/batch.ts'
import { Finalizer } from '../event/finalizer.ts'
import { BytePod } from '../testing/byte-pod.ts'
import { check, expectedOf } from '../testing/lane-check.ts'
import { Random } from '../testing/random.ts'
import { theKernel } from './kernel.ts'

const lineOf = (time: string) => Buffer.from(`${time} stdout F {"a":1}`)

function readOf(times: readonly string[]): { readonly json: readonly string[]; readonly isBytes: boolean } {
  const lines = times.map(lineOf)
  const pod = new BytePod('p')
  const expected = expectedOf(logBatch(pod.objects(lines), new Finalizer()).events)
  let isBytes = true
  // One chunk is in the memory of the kernel, the other is copied there each time.
  for (let round = 0; round < 2; round++)
    pod.read(lines, (batch) => {
      const kernel = batch.lines.enter()
      isBytes &&= !kernel.call.hasFlag(kernel.at('isUnusual'), times.length)
      // Other lines take their place in the kernel, and they are brought in again.
      new BytePod('other').read([lineOf('2026-01-01T00:00:00Z')], (other) => void other.lines.enter())
      check(batch, expected, new Random(1))
    })
  return { json: expected.json, isBytes }
}

test.each([
  ['2026-11-26T12:11:12.123456789+02:00', '2026-11-26T10:11:12.123456789Z'],
  ['2026-11-26T23:30:00-05:30', '2026-11-27T05:00:00Z'],
  ['2024-03-01T00:10:00.5+02:00', '2024-02-29T22:10:00.500Z'],
  ['2023-03-01T00:10:00.5+02:00', '2023-02-28T22:10:00.500Z'],
  ['2026-12-31T23:59:59.9-00:01', '2027-01-01T00:00:59.900Z'],
  ['2000-02-28T23:59:59.9-14:00', '2000-02-29T13:59:59.900Z'],
  ['1970-01-01T01:00:00+01:00', '1970-01-01T00:00:00Z'],
  ['9999-12-31T23:59:59+00:00', '9999-12-31T23:59:59Z'],
])('%s stays bytes, as %s', (local, utc) => {
  const { json, isBytes } = readOf([local, utc, local])
  expect(isBytes).toBe(true)
  expect(new Set(json).size).toBe(1)
  expect(json[0]).toContain(`"${utc}"`)
})

test.each([
  '1970-01-01T00:59:59+01:00',
  '9999-12-31T23:59:59-00:01',
  '2026-11-26T12:11:12+24:00',
  '2026-11-26T12:11:12+02:60',
])('%s is an object, as it has no time that the kernel can write', (time) => {
  expect(readOf([time]).isBytes).toBe(false)
})

test('all days of 130 years, in any offset, are the same instants', () => {
  const random = new Random(7)
  for (let part = 0; part < 30; part++) {
    const times = Array.from({ length: 100 }, () => {
      const at = new Date(random.below(130 * 365) * 86_400_000 + random.below(86_400) * 1000 + 86_400_000)
      const two = (value: number) => String(value).padStart(2, '0')
      return `${at.toISOString().slice(0, 19)}${random.pick(['+', '-'])}${two(random.below(24))}:${two(random.below(60))}`
    })
    expect(readOf(times).isBytes).toBe(true)
  }
  expect(theKernel().at('isUnusual')).toBeGreaterThan(0)
})
