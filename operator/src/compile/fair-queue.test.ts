import { expect, test } from 'vitest'
import { FairQueue } from './fair-queue.ts'

const taken = (queue: FairQueue<string>) => {
  const all: string[] = []
  for (let item = queue.take(); item !== undefined; item = queue.take()) all.push(item)
  return all
}

test('tenants take turns, each in its own order', () => {
  const queue = new FairQueue<string>({ perKey: 10, total: 10 })
  for (const item of ['evil 1', 'evil 2', 'evil 3', 'shop 1', 'blog 1', 'shop 2'])
    expect(queue.add(item.split(' ')[0] as string, item)).toBeUndefined()
  expect(queue.size).toBe(6)
  expect(taken(queue)).toEqual(['evil 1', 'shop 1', 'blog 1', 'evil 2', 'shop 2', 'evil 3'])
  expect(queue.size).toBe(0)
})

test('a tenant that has just come is next, one that comes again and again does not pass the others, and a busy one is skipped', () => {
  const queue = new FairQueue<string>({ perKey: 10, total: 10 })
  for (const item of ['evil 1', 'evil 2', 'evil 3']) queue.add('evil', item)
  expect(queue.take()).toBe('evil 1')
  queue.add('shop', 'shop 1')
  expect(queue.take()).toBe('shop 1')
  queue.add('shop', 'shop 2')
  expect(queue.take(), 'it was served before the shop').toBe('evil 2')
  expect(queue.take((key) => key !== 'shop')).toBe('evil 3')
  expect(queue.take((key) => key !== 'shop')).toBeUndefined()
  expect(queue.take()).toBe('shop 2')
  expect(queue.size).toBe(0)
})

test('a tenant gets a limited number of places', () => {
  const queue = new FairQueue<string>({ perKey: 2, total: 10 })
  expect(['a', 'b', 'c'].map((item) => queue.add('evil', item))).toEqual([undefined, undefined, 'c'])
  queue.remove('evil', 'a')
  expect(queue.add('evil', 'd')).toBeUndefined()
  expect(taken(queue)).toEqual(['b', 'd'])
})

test('if all places are taken, the longest queue yields a place to a shorter one', () => {
  const queue = new FairQueue<string>({ perKey: 3, total: 4 })
  for (const item of ['a', 'b', 'c']) queue.add('evil', item)
  queue.add('shop', 'x')
  expect(queue.add('blog', 'y'), 'the newest of the longest line leaves').toBe('c')
  expect(queue.add('evil', 'z'), 'the longest line gets no place of another').toBe('z')
  expect(queue.clear().sort()).toEqual(['a', 'b', 'x', 'y'])
  expect(queue.size).toBe(0)
})
