import { expect, test } from 'vitest'
import { type Body, BodyPool } from './body.ts'

/** Takes and returns bodies one by one. The result contains the bodies. */
function inTurn(pool: BodyPool, times: number): Set<Body> {
  const seen = new Set<Body>()
  for (let time = 0; time < times; time++) {
    const body = pool.take()
    seen.add(body)
    pool.give(body)
  }
  return seen
}

test('a pool keeps the bodies in use, and releases those that only a burst needed', () => {
  const pool = new BodyPool(16, 8)
  const burst = Array.from({ length: 8 }, () => pool.take())
  for (const body of burst) pool.give(body)
  expect(inTurn(pool, 200).size).toBe(1)
  const later = Array.from({ length: 8 }, () => pool.take())
  expect(later.filter((body) => burst.includes(body))).toHaveLength(1)
})

test('a pool does not keep a body that has grown far beyond its initial capacity', () => {
  const pool = new BodyPool(16)
  const body = pool.take()
  body.writeText('x'.repeat(100))
  pool.give(body)
  expect(pool.take()).not.toBe(body)
})
