import { afterEach, expect, test, vi } from 'vitest'
import { NewColumn } from '../bytes/columns.ts'
import { Form } from '../bytes/form.ts'
import { LineRestorer } from '../bytes/stored-lines.ts'
import { fuzzLanes } from './lanes.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

const seed = (Math.random() * 2 ** 31) >>> 0

test(`random programs have the same results on both lanes, from seed ${seed}`, async () => {
  // Limits the number of programs, not the time: a slow machine would run too few to check a share.
  const { found, events, asBytes } = await fuzzLanes(seed, 600, 60)
  expect(found).toBeUndefined()
  expect(asBytes / events).toBeGreaterThan(0.2)
}, 700_000)

test('finds a lane that adds a wrong value', async () => {
  const add = NewColumn.prototype.add
  vi.spyOn(NewColumn.prototype, 'add').mockImplementation(function (this: NewColumn, value, room) {
    return add.call(this, value === true ? false : value, room)
  })
  const { found } = await fuzzLanes(1, 60, 200)
  expect(found?.problem).toContain('strictly')
}, 120_000)

test('finds a sink that does not remove a field', async () => {
  vi.spyOn(Form.prototype, 'selected').mockImplementation(function (this: Form) {
    return this
  })
  const { found } = await fuzzLanes(1, 600, 200)
  expect(found?.problem).toContain('Other bytes with')
}, 700_000)

test('finds lines that a disk buffer returns without a field', async () => {
  const { restored } = await fuzzLanes(1, 600, 40)
  expect(restored).toBeGreaterThan(0)
  const batch = LineRestorer.prototype.batch
  vi.spyOn(LineRestorer.prototype, 'batch').mockImplementation(function (this: LineRestorer, stored, finalizer) {
    const { kind } = stored
    const fields = kind.fields.filter(({ name }) => name !== 'stream')
    return batch.call(this, { ...stored, kind: { ...kind, fields } }, finalizer)
  })
  const { found } = await fuzzLanes(1, 600, 40)
  expect(found?.problem).toContain('strictly')
}, 1_300_000)
