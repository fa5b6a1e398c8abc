import { expect, test } from 'vitest'
import { BodyPool } from './body.ts'

test('a body that was given back is used again, from its beginning', () => {
  const pool = new BodyPool(16)
  const body = pool.take()
  body.writeText('text')
  pool.give(body)
  expect(pool.take()).toBe(body)
  expect(body.length).toBe(0)
})

test('a pool does not keep a body that has grown far beyond its initial capacity', () => {
  const pool = new BodyPool(16)
  const body = pool.take()
  body.writeText('x'.repeat(100))
  pool.give(body)
  expect(pool.take()).not.toBe(body)
})
