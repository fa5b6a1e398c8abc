import { expect, test } from 'vitest'
import type { Fragment } from '../render/fragment.ts'
import { type Content, changesOf, contentsOf, isSameContent, lacking } from './contents.ts'

/** `a1 b2`: Pipeline a with content 1, b with content 2. */
function content(text: string): Content {
  const fragments = text.split(' ').filter((each) => each !== '')
  return new Map(fragments.map((each) => [each[0] as string, { hash: each, entry: each } as Fragment]))
}
const textOf = (of: Content | undefined) =>
  of &&
  [...of.values()]
    .map(({ hash }) => hash)
    .sort()
    .join(' ')

interface Case {
  readonly what: string
  readonly desired: string
  readonly stable: string
  readonly tried?: string
  readonly isEverywhere?: boolean
  readonly mayJoin?: boolean
  readonly mayReplace?: boolean
  readonly leaves?: string
  /** The Pipelines that are set aside, and those of them whose turn it is. */
  readonly aside?: string
  readonly turn?: string
  /** The content that a rollout beginning now tries; the desired one if not given. */
  readonly start?: string
  /** Stable, candidate, added. */
  readonly gives: readonly [string, string | undefined, string]
}

test.each<Case>([
  { what: 'nothing is new', desired: 'a1', stable: 'a1', gives: ['a1', undefined, ''] },
  {
    what: 'only new Pipelines become a separate candidate',
    desired: 'a1 n1',
    stable: 'a1',
    gives: ['a1', undefined, ''],
  },
  {
    what: 'a new Pipeline does not wait for a change',
    desired: 'a2 n1',
    stable: 'a1 g1',
    gives: ['a1 n1', undefined, 'n'],
  },
  {
    what: 'new and removed Pipelines pass a trial',
    ...{ desired: 'a2 b1 n1', stable: 'a1 b1 g1', tried: 'a2 b1 g1' },
    gives: ['a1 b1 n1', 'a2 b1 n1', 'n'],
  },
  {
    what: 'another change waits for a trial',
    ...{ desired: 'a2 b2', stable: 'a1 b1', tried: 'a2 b1' },
    gives: ['a1 b1', 'a2 b1', ''],
  },
  {
    what: 'another change joins a trial that has just begun',
    ...{ desired: 'a2 b2', stable: 'a1 b1', tried: 'a2 b1', mayJoin: true },
    gives: ['a1 b1', 'a2 b2', ''],
  },
  {
    what: 'another change joins, and one that is tried is not replaced any more',
    ...{ desired: 'a3 b2', stable: 'a1 b1', tried: 'a2 b1', mayJoin: true, mayReplace: false },
    gives: ['a1 b1', 'a2 b2', ''],
  },
  {
    what: 'a change that its author reverts leaves the trial',
    ...{ desired: 'a1 b2', stable: 'a1 b1', tried: 'a2 b2' },
    gives: ['a1 b1', 'a1 b2', ''],
  },
  {
    what: 'a change of what is tried waits',
    ...{ desired: 'a3', stable: 'a1', tried: 'a2' },
    gives: ['a1', 'a2', ''],
  },
  {
    what: 'a tried and removed Pipeline is in neither',
    ...{ desired: 'b1', stable: 'a1 b1', tried: 'a2 b1' },
    gives: ['b1', 'b1', ''],
  },
  {
    what: 'a new Pipeline joins a trial on all agents',
    ...{ desired: 'a1 m1 n1', stable: 'a1', tried: 'a1 m1', isEverywhere: true },
    gives: ['a1', 'a1 m1 n1', ''],
  },
  {
    what: 'a change of what all agents got as new is a change of what runs',
    ...{ desired: 'a1 m2', stable: 'a1', tried: 'a1 m1', isEverywhere: true },
    gives: ['a1', 'a1 m1', ''],
  },
  {
    what: 'a change waits until what is new has left its trial',
    ...{ desired: 'a2 m1', stable: 'a1', tried: 'a1 m1', isEverywhere: true },
    gives: ['a1', 'a1 m1', ''],
  },
  {
    what: 'a change that leaves a trial is not in it, and is wanted all the same',
    ...{ desired: 'a2 b2', stable: 'a1 b1', tried: 'a2 b2', leaves: 'b' },
    gives: ['a1 b1', 'a2 b1', ''],
  },
  {
    what: 'a new Pipeline that leaves a trial is nowhere',
    ...{ desired: 'a2 n1', stable: 'a1', tried: 'a2 n1', leaves: 'n', aside: 'n1', start: 'a2' },
    gives: ['a1', 'a2', ''],
  },
  {
    what: 'a change that is set aside is in no trial of others',
    ...{ desired: 'a2 b2', stable: 'a1 b1', tried: 'a2 b1', mayJoin: true, aside: 'b2', start: 'a2 b1' },
    gives: ['a1 b1', 'a2 b1', ''],
  },
  {
    what: 'a new Pipeline of all agents that is set aside is on none of them',
    ...{ desired: 'a2 n1', stable: 'a1 n1', tried: 'a2 n1', aside: 'n1', start: 'a2' },
    gives: ['a1', 'a2', ''],
  },
  {
    what: 'a rollout that begins is without what is set aside',
    ...{ desired: 'a2 b2', stable: 'a1 b1', aside: 'b2', start: 'a2 b1' },
    gives: ['a1 b1', undefined, ''],
  },
  {
    what: 'a rollout of what was set aside begins without other changes, and what is new does not wait for it',
    ...{ desired: 'a2 b2 c2 n1 m1', stable: 'a1 b1 c1', aside: 'b2 c2 m1', turn: 'b m', start: 'a1 b2 c1 m1 n1' },
    gives: ['a1 b1 c1 n1', undefined, 'n'],
  },
  {
    what: 'a suspect that is tried continues beside new changes',
    ...{ desired: 'b2 m1 n1', stable: 'b1', tried: 'b2 m1', aside: 'b2 m1', turn: 'b m', start: 'b2 m1 n1' },
    gives: ['b1 n1', 'b2 m1 n1', 'n'],
  },
])('$what', (given) => {
  const { desired, stable, tried, isEverywhere = false, mayJoin = false, leaves = '', aside = '', turn = '' } = given
  const ids = (text: string) => new Set(text.split(' ').filter((each) => each !== ''))
  const joining = { isEverywhere, mayJoin, mayReplace: given.mayReplace ?? true, leaves: ids(leaves) }
  const trial = tried === undefined ? undefined : { content: content(tried), ...joining }
  const apart = { aside: new Map([...content(aside)].map(([id, { hash }]) => [id, hash])), turn: ids(turn) }
  const next = contentsOf(content(desired), content(stable), trial, apart)
  expect([textOf(next.stable), textOf(next.candidate), next.added.join(' ')]).toEqual(given.gives)
  expect(textOf(next.start)).toBe(given.start ?? textOf(content(desired)))
})

test('a change is different content of a running Pipeline', () => {
  expect(changesOf(content('a2 b1 n1'), content('a1 b1 g1'))).toEqual(['a'])
})

test.each([
  ['a2 b1 c2', ''],
  ['a2 b1 c2 n1', ''],
  ['a2 c2', ''],
  ['a1 b1 c2 n1', 'a'],
  ['b1', 'a c'],
  ['a2 c2 g1', 'g'],
])('an agent that runs %s lacks these tried changes: %s', (runs, lacks) => {
  const changed = new Set(['a', 'c', 'g'])
  expect([...lacking(content(runs), content('a2 b1 c2'), changed)].join(' ')).toBe(lacks)
  expect(lacking(undefined, content('a2 b1 c2'), new Set(['a', 'c'])).size).toBe(2)
})

test('contents are equal if agents get equal bytes', () => {
  expect(isSameContent(content('a1 b1'), content('b1 a1'))).toBe(true)
  expect(isSameContent(content('a1'), content('a1 b1'))).toBe(false)
  expect(isSameContent(content('a1 c1'), content('a1 b1'))).toBe(false)
  expect(isSameContent(content('a1'), content('a2'))).toBe(false)
})
