import { expect, test } from 'vitest'
import { BoundedMap } from './bounded-map.ts'

const text = (index: number, length: number) => `${index} `.padEnd(length, 'x')

test('finds a value that was set, and replaces it by a later one', () => {
  const map = new BoundedMap<string>({ maxEntries: 10, maxBytes: 10_000, sizeOf: ({ length }) => 2 * length })
  map.set('a', 'first')
  map.set('a', 'second')
  expect(map.get('a')).toBe('second')
  expect(map.get('b')).toBeUndefined()
  expect(map.size).toBe(1)
})

test.each([
  { length: 10, what: 'short' },
  { length: 3000, what: 'long' },
])('any number of $what keys stays within both limits', ({ length }) => {
  const map = new BoundedMap<string>({ maxEntries: 1000, maxBytes: 1 << 20, sizeOf: (value) => 2 * value.length })
  for (let index = 0; index < 50_000; index++) {
    map.set(text(index, length), text(-index, length))
    if (map.bytes > 1 << 20 || map.size > 1000) throw new Error(`${map.size} entries of ${map.bytes} bytes`)
  }
  expect(map.get(text(49_999, length))).toBe(text(-49_999, length))
  expect(map.get(text(0, length))).toBeUndefined()
})

test('an entry in use stays, however many others come', () => {
  const map = new BoundedMap<number>({ maxEntries: 100, maxBytes: 1 << 20 })
  map.set('used', 7)
  for (let index = 0; index < 10_000; index++) {
    map.set(`other ${index}`, index)
    expect(map.get('used')).toBe(7)
  }
})

test('a much too large entry does not evict others, and removes the earlier value of its key', () => {
  const map = new BoundedMap<string>({ maxEntries: 100, maxBytes: 10_000, sizeOf: (value) => value.length })
  map.set('a', 'small')
  map.set('b', 'small')
  map.set('a', 'x'.repeat(9000))
  map.set('x'.repeat(9000), 'small')
  expect(map.get('a')).toBeUndefined()
  expect(map.get('b')).toBe('small')
  expect(map.size).toBe(1)
})

test('bytes are counted exactly after replacements, uses and changes of generations', () => {
  const map = new BoundedMap<string>({ maxEntries: 200, maxBytes: 1 << 20, sizeOf: (value) => value.length })
  const kept = new Map<string, string>()
  let state = 1
  for (let turn = 0; turn < 20_000; turn++) {
    state = (state * 48271) % 2147483647
    const key = `key ${state % 99}` // all of them fit into one generation: none is ever lost
    const value = 'x'.repeat(state % 50)
    if (state % 3 === 0) expect(map.get(key)).toBe(kept.get(key))
    else if (state % 7 === 0) {
      map.delete(key)
      kept.delete(key)
    } else {
      map.set(key, value)
      kept.set(key, value)
    }
  }
  let bytes = 0
  for (const [key, value] of kept) bytes += 100 + 2 * key.length + value.length
  expect({ size: map.size, bytes: map.bytes }).toEqual({ size: kept.size, bytes })
  map.clear()
  expect({ size: map.size, bytes: map.bytes }).toEqual({ size: 0, bytes: 0 })
})
