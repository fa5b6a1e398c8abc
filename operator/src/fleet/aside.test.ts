import { expect, test } from 'vitest'
import type { Fragment } from '../render/fragment.ts'
import {
  type Aside,
  blockedAside,
  groupOf,
  halved,
  isBlocked,
  isTurnDue,
  isWaiting,
  mayHalve,
  nextGroup,
  saltOf,
  setAsideAt,
  stillAside,
} from './aside.ts'

const now = Date.parse('2026-01-01T00:00:00Z')
const how = { why: 'an agent ended', now }
const entry = (group: string, blocked?: true) => ({ hash: '2', group, why: '', ...(blocked && { blocked }) })
const groupsOf = (aside: Aside) => Object.entries(aside).map(([id, { group }]) => `${id} ${group.split(':')[1]}`)

test('halves are tried one after another, and halved again, until one change is left or after four halvings', () => {
  const ids = [...'abcdefghijklmnopqrst']
  let record: { aside?: Aside; turn?: string } = { aside: halved({}, ids, () => '2', how) }
  const sizes: number[] = []
  for (let round = 0; round < 9; round++) {
    const turn = nextGroup(record, false) as string
    const group = [...groupOf(record.aside, turn)]
    sizes.push(group.length)
    record = { ...record, turn }
    if (!mayHalve(group.length, turn)) break
    record = { ...record, aside: halved(record, group, () => '2', how) }
  }
  expect(sizes).toEqual([10, 5, 3, 2])
  expect(Object.keys(record.aside ?? {}).sort()).toEqual(ids)
})

test('a removed change is in no half', () => {
  expect(groupsOf(halved({}, ['a', 'b', 'c'], (id) => (id === 'b' ? undefined : '2'), how))).toEqual(['a 0', 'c 1'])
})

test('more changes than a record holds are not halved', () => {
  expect([mayHalve(1, undefined), mayHalve(2, undefined), mayHalve(200, undefined)]).toEqual([false, true, true])
  expect([mayHalve(201, undefined), mayHalve(2, 'x:0000')]).toEqual([false, false])
})

test('keeps the halves of a suspect that made no progress, and tries it last', () => {
  const aside = { a: entry('x:0'), b: entry('x:1') }
  const next = blockedAside({ aside, turn: 'x:0' }, new Set(['a']), () => '2', how)
  expect(groupsOf(next)).toEqual(['b 1', 'a 0'])
  expect([isWaiting(next, undefined), isWaiting({ a: next['a'] as Aside[string] }, undefined)]).toEqual([true, false])
  expect(
    isWaiting(
      blockedAside({}, new Set(['a']), () => '2', how),
      undefined,
    ),
  ).toBe(true)
  expect([isBlocked(next, `${now.toString(36)}:0`), isBlocked(next, 'x:1')]).toEqual([true, false])
})

test('tries suspects before other candidates, except a suspect without progress for ten minutes', () => {
  const group = `${now.toString(36)}:`
  expect(isTurnDue({ a: entry(group) }, undefined, now)).toBe(true)
  expect(isTurnDue({ a: entry(group) }, group, now)).toBe(false)
  const blocked = { a: entry(group, true) }
  expect([now, now + 599_999, now + 600_000].map((time) => isTurnDue(blocked, undefined, time))).toEqual([
    false,
    false,
    true,
  ])
})

test.each<[string, Aside, string | undefined, boolean, string | undefined]>([
  ['nothing is set aside', {}, undefined, true, undefined],
  ['nothing else is new', { a: entry('x:0'), b: entry('x:1') }, 'x:1', false, 'x:0'],
  ['others were tried last', { a: entry('x:0') }, undefined, true, 'x:0'],
  ['such were tried last, and something is new', { a: entry('x:0') }, 'x:1', true, undefined],
  ['the first of them made no progress', { a: entry('x:0', true), b: entry('x:1') }, undefined, false, 'x:1'],
  ['none of them made progress', { a: entry('x:0', true) }, undefined, false, 'x:0'],
])('the next group when %s', (_, aside, turn, hasNew, group) => {
  expect(nextGroup({ aside, ...(turn === undefined ? {} : { turn }) }, hasNew)).toBe(group)
})

test('a change stays a suspect as long as it is desired', () => {
  const desired = new Map([
    ['a', { hash: '2' } as Fragment],
    ['b', { hash: '3' } as Fragment],
  ])
  expect(Object.keys(stillAside({ a: entry('x:0'), b: entry('x:0'), c: entry('x:1') }, desired))).toEqual(['a'])
})

test('a group names the time and the salt of its trial, also for a clock with fractions', () => {
  const aside = halved({}, ['a', 'b'], () => 'hash', { why: '', now: 1_764_157_000_123.456, salt: 'a4c5014ce39f1' })
  for (const { group } of Object.values(aside)) {
    expect(saltOf(group)).toBe('a4c5014ce39f1')
    expect(setAsideAt(group)).toBe(1_764_157_000_123)
  }
})
