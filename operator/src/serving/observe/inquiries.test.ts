import { expect, test } from 'vitest'
import { type Asked, Inquiries, type Look } from './inquiries.ts'

const asked = (name: string): Asked => ({
  agent: 'system/node',
  pod: name,
  podUid: `uid-${name}`,
  node: `node-${name}`,
})
const none = new Set<string>()
const never = new AbortController().signal

/** An observer of the pods with these names. */
function look(id: string, ...names: string[]) {
  const taken: string[] = []
  const self: Look = {
    id,
    inquiry: ({ pod }) => (names.includes(pod) ? { kind: 'figures', id, intervalMs: 1000, forMs: 1000 } : undefined),
    take: ({ pod }, body) => void taken.push(`${pod}: ${body}`),
  }
  return { self, taken }
}

test('asks only waiting agents when somebody inquires', async () => {
  const inquiries = new Inquiries()
  const gone = new AbortController()
  const concerned = inquiries.next(asked('a'), none, never)
  const other = inquiries.next(asked('b'), none, gone.signal)
  const { self, taken } = look('one', 'a')
  const opened = inquiries.open(self)
  expect(await concerned).toEqual([{ kind: 'figures', id: 'one', intervalMs: 1000, forMs: 1000 }])
  expect(inquiries.take('one', asked('a'), Buffer.from('hello'))).toBe(true)
  // An answer without a request is not accepted.
  expect(inquiries.take('one', asked('b'), Buffer.from('me too'))).toBe(false)
  expect(inquiries.take('two', asked('a'), Buffer.from('what?'))).toBe(false)
  expect(taken).toEqual(['a: hello'])
  opened[Symbol.dispose]()
  expect(inquiries.take('one', asked('a'), Buffer.from('late'))).toBe(false)
  gone.abort()
  expect(await other).toEqual([])
})

test('asks an agent that connects during an inquiry at once, but not for an answer that it already prepares', async () => {
  const inquiries = new Inquiries()
  using _ = inquiries.open(look('one', 'a').self)
  expect(await inquiries.next(asked('a'), none, never)).toMatchObject([{ id: 'one' }])
  const waiting = inquiries.next(asked('a'), new Set(['one']), never)
  using __ = inquiries.open(look('two', 'a').self)
  expect(await waiting).toMatchObject([{ id: 'two' }])
})

test('a new request of a pod replaces its earlier one, and the number of held requests is limited', async () => {
  const inquiries = new Inquiries()
  const first = inquiries.next(asked('a'), none, never)
  const gone = new AbortController()
  const held = Array.from({ length: 500 }, (_, index) =>
    inquiries.next(asked(index === 0 ? 'a' : `p${index}`), none, gone.signal),
  )
  expect(await first).toEqual([])
  expect(await inquiries.next(asked('late'), none, never)).toBeUndefined()
  using _ = inquiries.open(look('one', 'late').self)
  expect(await inquiries.next(asked('late'), none, never)).toMatchObject([{ id: 'one' }])
  gone.abort()
  expect(await Promise.all(held)).toEqual(held.map(() => []))
})
