import { afterEach, expect, test, vi } from 'vitest'
import { NewColumn } from '../bytes/columns.ts'
import { fuzzLanes } from './lanes.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

const seed = (Math.random() * 2 ** 31) >>> 0

test(`random programs do the same on both lanes, from seed ${seed}`, async () => {
  const { found, events, asBytes } = await fuzzLanes(seed, 3, 100_000)
  expect(found).toBeUndefined()
  expect(asBytes / events).toBeGreaterThan(0.2)
})

test('a lane that takes the wrong value is found', async () => {
  const add = NewColumn.prototype.add
  vi.spyOn(NewColumn.prototype, 'add').mockImplementation(function (this: NewColumn, value, room) {
    return add.call(this, value === true ? false : value, room)
  })
  const { found } = await fuzzLanes(1, 60, 200)
  expect(found?.problem).toContain('strictly')
})
