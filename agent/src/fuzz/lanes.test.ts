import { afterEach, expect, test, vi } from 'vitest'
import { NewColumn } from '../bytes/columns.ts'
import { Form } from '../bytes/form.ts'
import { LineRestorer } from '../bytes/stored-lines.ts'
import { fuzzLanes } from './lanes.ts'

afterEach(() => {
  vi.restoreAllMocks()
})

const seed = (Math.random() * 2 ** 31) >>> 0

test(`random programs do the same on both lanes, from seed ${seed}`, async () => {
  // The number of programs and not the time: a slow machine would try too few for a share.
  const { found, events, asBytes } = await fuzzLanes(seed, 600, 60)
  expect(found).toBeUndefined()
  expect(asBytes / events).toBeGreaterThan(0.2)
}, 700_000)

test('a lane that takes the wrong value is found', async () => {
  const add = NewColumn.prototype.add
  vi.spyOn(NewColumn.prototype, 'add').mockImplementation(function (this: NewColumn, value, room) {
    return add.call(this, value === true ? false : value, room)
  })
  const { found } = await fuzzLanes(1, 60, 200)
  expect(found?.problem).toContain('strictly')
}, 120_000)

test('a sink that does not leave out a field is found', async () => {
  vi.spyOn(Form.prototype, 'selected').mockImplementation(function (this: Form) {
    return this
  })
  const { found } = await fuzzLanes(1, 600, 200)
  expect(found?.problem).toContain('Other bytes with')
}, 700_000)

test('lines that come back from a disk buffer without a field are found', async () => {
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
