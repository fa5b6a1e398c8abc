import { expect, test } from 'vitest'
import type { Fragment } from '../render/fragment.ts'
import { type Content, changesOf, contentsOf, hasTried, isSameContent } from './contents.ts'

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
  /** Stable, candidate, added. */
  readonly gives: readonly [string, string | undefined, string]
}

test.each<Case>([
  { what: 'nothing is new', desired: 'a1', stable: 'a1', gives: ['a1', undefined, ''] },
  {
    what: 'what is new alone becomes a candidate of its own',
    desired: 'a1 n1',
    stable: 'a1',
    gives: ['a1', undefined, ''],
  },
  {
    what: 'what is new does not wait for a change',
    desired: 'a2 n1',
    stable: 'a1 g1',
    gives: ['a1 n1', undefined, 'n'],
  },
  {
    what: 'what is new or gone passes a trial',
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
    what: 'a change that is taken back by its author leaves the trial',
    ...{ desired: 'a1 b2', stable: 'a1 b1', tried: 'a2 b2' },
    gives: ['a1 b1', 'a1 b2', ''],
  },
  {
    what: 'a change of what is tried waits',
    ...{ desired: 'a3', stable: 'a1', tried: 'a2' },
    gives: ['a1', 'a2', ''],
  },
  {
    what: 'what is tried and gone is in neither',
    ...{ desired: 'b1', stable: 'a1 b1', tried: 'a2 b1' },
    gives: ['b1', 'b1', ''],
  },
  {
    what: 'what is new comes with a trial that all agents have',
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
])('$what', ({ desired, stable, tried, isEverywhere = false, mayJoin = false, gives }) => {
  const trial = tried === undefined ? undefined : { content: content(tried), isEverywhere, mayJoin }
  const next = contentsOf(content(desired), content(stable), trial)
  expect([textOf(next.stable), textOf(next.candidate), next.added.join(' ')]).toEqual(gives)
})

test('a change is another content of what runs', () => {
  expect(changesOf(content('a2 b1 n1'), content('a1 b1 g1'))).toEqual(['a'])
})

test.each([
  ['a2 b1', true],
  ['a2 b1 n1', true],
  ['a2', true],
  ['a1 b1 n1', false],
  ['b1', false],
])('an agent that runs %s has what is tried: %s', (runs, has) => {
  expect(hasTried(content(runs), content('a2 b1'), new Set(['a']))).toBe(has)
  expect(hasTried(undefined, content('a2 b1'), new Set(['a']))).toBe(false)
})

test('contents are the same when agents get the same bytes', () => {
  expect(isSameContent(content('a1 b1'), content('b1 a1'))).toBe(true)
  expect(isSameContent(content('a1'), content('a1 b1'))).toBe(false)
  expect(isSameContent(content('a1 c1'), content('a1 b1'))).toBe(false)
  expect(isSameContent(content('a1'), content('a2'))).toBe(false)
})
