import { expect, test } from 'vitest'
import { bucketOf, candidateFor, takesCandidate } from './format.ts'

const nodes = Array.from({ length: 200 }, (_, index) => `node-${index}`)
const candidate = { percent: 40, salt: 's' }
const later = [
  { percent: 20, salt: 's' },
  { percent: 5, salt: 's', also: ['node-0'] },
]

test('a node runs the last candidate that selects it, so each candidate has fewer nodes than the previous one', () => {
  const [first, second] = later
  for (const node of nodes) {
    const bucket = bucketOf('s', node)
    const wanted = bucket < 5 || node === 'node-0' ? second : bucket < 20 ? first : bucket < 40 ? candidate : undefined
    expect(candidateFor({ candidate, later }, node), node).toBe(wanted)
    expect(candidateFor({ candidate }, node), node).toBe(bucket < 40 ? candidate : undefined)
  }
  expect(candidateFor({}, 'node-0')).toBeUndefined()
})

test('named nodes are selected in addition to any percentage', () => {
  const others = nodes.filter((node) => bucketOf('s', node) >= 5)
  const [named = '', other = ''] = others
  const also = { percent: 5, salt: 's', also: [named] }
  expect([takesCandidate(also, named), takesCandidate(also, other)]).toEqual([true, false])
})
