import { expect, test } from 'vitest'
import { theKernel } from '../bytes/kernel.ts'
import { chunkPool, compileDelimiter, SlabPool, searchedBytes } from './slab.ts'

test.each([
  { delimiter: '\n', unit: 1, length: 10, searched: 10 }, // a single byte cannot be split
  { delimiter: '\r\n', unit: 1, length: 10, searched: 9 }, // the last byte may start a delimiter
  { delimiter: '<end>', unit: 1, length: 10, searched: 6 },
  { delimiter: '\n\0', unit: 2, length: 10, searched: 10 }, // one UTF-16 character
  { delimiter: '\n\0', unit: 2, length: 11, searched: 10 }, // half a character at the end
  { delimiter: '\r\0\n\0', unit: 2, length: 11, searched: 8 },
])('$searched of $length bytes without the delimiter $delimiter need no second search', (row) => {
  expect(searchedBytes(row.length, compileDelimiter(Buffer.from(row.delimiter), row.unit))).toBe(row.searched)
})

test('a slab is reused, without space for unusually many lines', () => {
  const pool = new SlabPool(65_536)
  const slab = pool.take()
  slab.buffer.fill('\n')
  slab.split(0, 65_536, compileDelimiter(Buffer.from('\n')), 100)
  expect(slab.count).toBe(65_536)
  pool.give(slab)
  expect(pool.take()).toBe(slab)
  expect(slab.starts).toHaveLength(0)
  slab.buffer.fill('x'.repeat(63).concat('\n'))
  slab.split(0, 65_536, compileDelimiter(Buffer.from('\n')), 100)
  pool.give(slab)
  expect(slab.starts.length).toBeGreaterThanOrEqual(1024)
})

test('a chunk of the kernel that readers have shared can wait for the lines of a later reader', () => {
  theKernel()
  const pool = chunkPool()
  const filled = () => {
    const slab = pool.take()
    slab.buffer.fill('x'.repeat(63).concat('\n'))
    slab.split(0, slab.buffer.length, compileDelimiter(Buffer.from('\n')), 100)
    return slab
  }
  const shared = filled().handOver()
  expect(shared.view().lend()).toBeUndefined()
  pool.give(shared)

  const later = filled()

  expect(later.buffer).toBe(shared.buffer)
  const giveBack = later.lend()
  expect(later.held).toBe(true)
  giveBack?.()
  expect(later.held).toBe(false)
})

test('a chunk of which a limit leaves a few lines does not wait for them', () => {
  theKernel()
  const slab = chunkPool().take()
  slab.buffer.fill('x'.repeat(63).concat('\n'))
  slab.split(0, slab.buffer.length, compileDelimiter(Buffer.from('\n')), 100)
  let left = 10
  slab.keep(() => left-- > 0)
  expect(slab.count).toBe(10)
  expect(slab.lend()).toBeUndefined()
  expect(slab.held).toBe(false)
})
