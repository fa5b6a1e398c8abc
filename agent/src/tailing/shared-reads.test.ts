import { expect, test } from 'vitest'
import { SharedReads } from './shared-reads.ts'
import { compileDelimiter, type Slab, SlabPool } from './slab.ts'

const capacity = 64 * 1024
const newline = compileDelimiter(Buffer.from('\n'))

/** A slab with the lines of these bytes, read at a position. */
function filled(pool: SlabPool, base: number, length: number, byte: string): Slab {
  const slab = pool.take()
  slab.base = base
  slab.buffer.fill(byte, 0, length)
  for (let at = 99; at < length; at += 100) slab.buffer[at] = 0x0a
  slab.buffer[length - 1] = 0x0a
  slab.split(0, length, newline, capacity)
  return slab
}

const textOf = (slab: Slab) => slab.buffer.toString('latin1', 0, slab.consumed)

test('memory is bounded for a tailer that does not read, and later chunks are not kept for it', () => {
  const pool = new SlabPool(capacity)
  const reads = new SharedReads(pool)
  const fast = { offset: 0 }
  const one = reads.open('file', fast)
  const slow = reads.open('file', { offset: 0 })
  let max = 0
  let left = 0
  for (; fast.offset < 200 * capacity; fast.offset += capacity) {
    const slab = filled(pool, fast.offset, capacity, 'a')
    const chunk = one.leave(slab, capacity, false)
    max = Math.max(max, reads.bytes)
    if (chunk === undefined) pool.give(slab)
    else {
      left++
      // This also holds if the chunk is dropped at once.
      one.use(chunk, () => expect(pool.take().buffer).not.toBe(slab.buffer))
    }
  }
  expect(max).toBe(4 << 20)
  expect(left).toBe((4 << 20) / capacity + 1)
  expect(reads.bytes).toBe(0)
  expect(slow.find()).toBeUndefined()
  const buffers = Array.from({ length: 20 }, () => pool.take().buffer)
  expect(new Set(buffers).size).toBe(20)
})

test('a few lines use only their bytes, and at most 512 chunks wait', () => {
  const pool = new SlabPool(capacity)
  const reads = new SharedReads(pool)
  const fast = Array.from({ length: 600 }, () => ({ offset: 0 }))
  for (const [index, position] of fast.entries()) {
    const share = reads.open(`file ${index}`, position)
    reads.open(`file ${index}`, { offset: 0 })
    const slab = filled(pool, 0, 200, 'a')
    const chunk = share.leave(slab, 200, true)
    if (chunk !== undefined) share.use(chunk, () => undefined)
    expect(slab.held).toBe(false)
    pool.give(slab)
  }
  expect(reads.bytes).toBe(512 * 200)
})

test('each tailer uses a chunk once, with its own lines, and the buffer is released after the last one', () => {
  const pool = new SlabPool(capacity)
  const reads = new SharedReads(pool)
  const positions = [{ offset: 0 }, { offset: 0 }, { offset: 0 }]
  const [one, two, three] = positions.map((position) => reads.open('file', position))
  const slab = filled(pool, 0, capacity, 'a')
  const { buffer } = slab
  const chunk = one?.leave(slab, capacity, false)
  if (chunk === undefined) throw new Error('Nobody takes the chunk.')
  one?.use(chunk, (lines) => lines.keep(() => false))
  const found = two?.find()
  expect(found).toBe(chunk)
  two?.use(chunk, (lines) => expect(textOf(lines)).toBe(textOf(slab)))
  expect(reads.bytes).toBe(capacity)
  three?.use(chunk, (lines) => {
    expect(lines.count).toBe(656)
    expect(pool.take().buffer).not.toBe(buffer)
  })
  expect(reads.bytes).toBe(0)
  expect(pool.take().buffer).toBe(buffer)
})

test('bytes in use stay unchanged, whatever happens to the chunk', () => {
  const pool = new SlabPool(capacity)
  const reads = new SharedReads(pool)
  const one = reads.open('file', { offset: 0 })
  const two = reads.open('file', { offset: 0 })
  const slab = filled(pool, 0, capacity, 'a')
  const { buffer } = slab
  const chunk = one.leave(slab, capacity, false)
  if (chunk === undefined) throw new Error('Nobody takes the chunk.')
  one.use(chunk, () => undefined)
  two.use(chunk, () => {
    one.changed()
    two.close()
    expect(two.find()).toBeUndefined()
    expect(pool.take().buffer).not.toBe(buffer)
  })
  expect(pool.take().buffer).toBe(buffer)
  expect(pool.take().buffer).not.toBe(buffer)
})

test('tailers of different files, or with different line limits, share nothing', () => {
  const pool = new SlabPool(capacity)
  const reads = new SharedReads(pool)
  const one = reads.open('file 1', { offset: 0 })
  const two = reads.open('file 2', { offset: 0 })
  expect(one.leave(filled(pool, 0, 200, 'a'), 200, true)).toBeUndefined()
  expect(two.find()).toBeUndefined()
})

test('a truncated file, or one that all tailers have closed, has no earlier chunks', () => {
  const pool = new SlabPool(capacity)
  const reads = new SharedReads(pool)
  const one = reads.open('file', { offset: 0 })
  const two = reads.open('file', { offset: 0 })
  one.leave(filled(pool, 0, 200, 'a'), 200, true)
  two.changed()
  expect(two.find()).toBeUndefined()
  one.leave(filled(pool, 0, 200, 'a'), 200, true)
  two.close()
  one.close()
  expect(reads.bytes).toBe(0)
  expect(reads.open('file', { offset: 0 }).find()).toBeUndefined()
})

/** A chunk that this many other readers wait for, and its result. */
function leftFor(others: number, resultBytes: number) {
  const pool = new SlabPool(capacity)
  const reads = new SharedReads(pool)
  const first = reads.open('file', { offset: 0 })
  const rest = Array.from({ length: others }, () => reads.open('file', { offset: 0 }))
  let released = 0
  const result = { bytes: resultBytes, release: () => void released++ }
  const chunk = first.leave(filled(pool, 0, capacity, 'a'), capacity, false)
  if (chunk === undefined) throw new Error('Nobody waits for the chunk.')
  return { reads, first, rest, chunk, result, released: () => released }
}

test('shares and counts the decoded chunk of one reader, and releases it after the last reader', () => {
  const { reads, first, rest, chunk, result, released } = leftFor(2, 1000)
  first.use(chunk, ({ results }) => expect(results?.leave(result)).toBe(true))
  expect(reads.bytes).toBe(capacity + 1000)

  rest[0]?.use(chunk, ({ results }) => {
    expect(results?.result).toBe(result)
    expect(results?.isWanted).toBe(false)
  })
  expect(released()).toBe(0)
  rest[1]?.use(chunk, ({ results }) => expect(results?.result).toBe(result))

  expect(released()).toBe(1)
  expect(reads.bytes).toBe(0)
})

test('the last reader of a chunk stores no result, and neither does a reader beyond the limit', () => {
  const { first, rest, chunk, result, released } = leftFor(1, 4 << 20)
  first.use(chunk, ({ results }) => {
    expect(results?.isWanted).toBe(true)
    expect(results?.leave(result)).toBe(false)
  })
  rest[0]?.use(chunk, ({ results }) => {
    expect(results?.isWanted).toBe(false)
    expect(results?.leave({ ...result, bytes: 1 })).toBe(false)
  })
  expect(released()).toBe(0)
})

test('a reader that skips lines has its own lines, and does not use the result of others', () => {
  const { first, rest, chunk, result } = leftFor(1, 1000)
  first.use(chunk, ({ results }) => results?.leave(result))
  rest[0]?.use(chunk, (lines) => {
    lines.keep((start) => start > 0)
    expect(lines.results).toBeUndefined()
  })
})

test('a dropped chunk releases its results', () => {
  const { first, chunk, result, released } = leftFor(1, 1000)
  first.use(chunk, ({ results }) => results?.leave(result))
  first.changed()
  expect(released()).toBe(1)
})
