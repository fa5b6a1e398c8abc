import { expect, test } from 'vitest'
import { compareEvents } from './compare.ts'

test('equal events are paired regardless of their order and the order of members', () => {
  const old = [{ a: 1, b: { c: [1, 2] } }, { a: 2 }]
  const made = [{ a: 2 }, { b: { c: [1, 2] }, a: 1 }]
  expect(compareEvents(old, made)).toEqual({ pairs: 2, equal: 2, differences: [], onlyOld: [], onlyMade: [] })
})

test('a list in another order is a different value', () => {
  const { equal, differences } = compareEvents([{ m: 'x', list: [1, 2] }], [{ m: 'x', list: [2, 1] }])
  expect([equal, differences.map(({ path, how }) => [path, how])]).toEqual([0, [['.list', 'other value']]])
})

test.each([
  ['a field that is gone', { m: 'text', n: { k: 1 } }, { m: 'text' }, '.n.k', 'only old'],
  ['a field that is new', { m: 'text' }, { m: 'text', 'a b': 1 }, '."a b"', 'only new'],
  ['a number that is text', { m: 'text', n: 1 }, { m: 'text', n: '1' }, '.n', 'other type'],
  ['null instead of a value', { m: 'text', n: 1 }, { m: 'text', n: null }, '.n', 'other type'],
  ['an empty object instead of one with members', { m: 'text', n: {} }, { m: 'text', n: { k: 1 } }, '.n', 'only old'],
  ['another value', { m: 'text', n: 1 }, { m: 'text', n: 2 }, '.n', 'other value'],
])('%s is a difference of that field', (_, old, made, path, how) => {
  const { pairs, equal, differences } = compareEvents([old], [made])
  expect([pairs, equal]).toEqual([1, 0])
  expect(differences).toContainEqual(expect.objectContaining({ path, how, count: 1, oldAt: 0, madeAt: 0 }))
})

test('events are paired by similarity, and a field that differs in all of them is one difference', () => {
  const old = Array.from({ length: 200 }, (_, n) => ({ id: `request ${n}`, level: 'info' }))
  const made = old.map(({ id }) => ({ id, level: 'INFO' })).reverse()
  const near = [...made.slice(100).reverse(), ...made.slice(0, 100).reverse()]
  const { pairs, equal, differences, onlyOld } = compareEvents(old, near)
  expect([pairs, equal, onlyOld]).toEqual([200, 0, []])
  expect(differences).toEqual([
    { path: '.level', how: 'other value', count: 200, old: 'info', made: 'INFO', oldAt: 0, madeAt: 0 },
  ])
})

test('events without a counterpart are listed', () => {
  const { pairs, onlyOld, onlyMade } = compareEvents([{ m: 'a' }, { m: 'b' }], [{ m: 'b' }, { other: 1 }, { m: 'b' }])
  expect({ pairs, onlyOld, onlyMade }).toEqual({ pairs: 1, onlyOld: [0], onlyMade: [1, 2] })
})

test('an ignored path excludes only itself and everything below it', () => {
  const old = [{ m: 'a', time: { at: 1 }, timer: 1 }]
  const { equal, differences } = compareEvents(old, [{ m: 'a', timer: 2 }], ['.time'])
  expect([equal, differences.map(({ path }) => path)]).toEqual([0, ['.timer']])
})
