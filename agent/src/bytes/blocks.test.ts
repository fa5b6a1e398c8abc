import { expect, test } from 'vitest'
import { BlockPool } from './blocks.ts'

const blockBytes = 128 * 1024

test('a block that was given back is used again', () => {
  const pool = new BlockPool()
  const blocks = Array.from({ length: 50 }, () => pool.take(blockBytes))
  for (const block of blocks) pool.give(block)

  const again = new Set(Array.from({ length: 50 }, () => pool.take(40_000)))

  expect(again).toEqual(new Set(blocks))
})

test('few bytes use no block', () => {
  const pool = new BlockPool()
  const short = pool.take(1000)
  pool.give(short)

  expect(short.length).toBe(1000)
  expect(pool.take(1000)).not.toBe(short)
  expect(pool.take(blockBytes + 1).length).toBe(blockBytes + 1)
})

test('a burst of waiting chunks leaves at most 8 MiB', () => {
  const pool = new BlockPool()
  const blocks = Array.from({ length: 500 }, () => pool.take(blockBytes))
  for (const block of blocks) pool.give(block)

  const kept = Array.from({ length: 500 }, () => pool.take(blockBytes)).filter((block) => blocks.includes(block))

  expect(kept.length).toBe(64)
})
