import { expect, test } from 'vitest'
import type { RolloutRecord } from './state.ts'
import { remembered, undoneOf } from './undo.ts'

const entry = (revision: string, result = 'RolledOut') => ({ revision, at: '2026-01-01T00:00:00Z', result })
const record = (undone?: RolloutRecord['undone']): RolloutRecord => ({
  rolledBack: {},
  history: [entry('ccc'), entry('bad', 'RolledBack'), entry('bbb'), entry('aaa')],
  ...(undone === undefined ? {} : { undone }),
})
const known = () => true

test('an Agent returns to a revision that ran everywhere, and stays there until its Pipelines change', () => {
  const undone = undoneOf(record(), 'bb now', 'ccc', known)
  expect(undone).toEqual({ request: 'bb now', to: 'bbb', from: 'ccc' })
  expect(undoneOf(record(undone), 'bb now', 'ccc', known)).toEqual(undone)
  expect(undoneOf(record(undone), 'aa later', 'ccc', known)).toEqual({ request: 'aa later', to: 'aaa', from: 'ccc' })
  expect(undoneOf(record(undone), undefined, 'ccc', known)).toBeUndefined()
})

test('the undo ends when its Pipelines change, and does not resume when the change is reverted', () => {
  const undone = undoneOf(record(), 'bb now', 'ccc', known)
  const over = undoneOf(record(undone), 'bb now', 'ddd', known)
  expect(over).toEqual({ request: 'bb now' })
  expect(undoneOf(record(over), 'bb now', 'ccc', known)).toEqual(over)
})

test.each([
  { request: 'bad now', why: 'it was rolled back itself' },
  { request: 'xyz now', why: 'nobody knows it' },
  { request: ' now', why: 'it names none' },
])('does not return to $request: $why', ({ request }) => {
  expect(undoneOf(record(), request, 'ccc', known)).toEqual({ request })
})

test('does not return to a revision without content', () => {
  expect(undoneOf(record(), 'bbb now', 'ccc', () => false)).toEqual({ request: 'bbb now' })
})

test('remembers the running revision and three earlier ones, each once', () => {
  let history: RolloutRecord['history'] = []
  for (const name of ['a', 'b', 'c', 'd', 'b', 'e']) history = remembered(history, entry(name))
  expect(history.map(({ revision }) => revision)).toEqual(['e', 'b', 'd', 'c'])
  for (const name of ['x1', 'x2', 'x3', 'x4']) history = remembered(history, entry(name, 'RolledBack'))
  expect(history.map(({ revision }) => revision)).toEqual(['x4', 'x3', 'x2', 'e', 'b', 'd', 'c'])
})
