import { expect, test } from 'vitest'
import type { Fragment } from './fragment.ts'
import { concerned, markOf } from './interest.ts'

function fragment(id: string, subscriptions: readonly object[], extra: Partial<Fragment> = {}): Fragment {
  return {
    ...{ id, uid: id, generation: 1, hash: id, entry: '{}', sources: [], transforms: [], sinks: [], secretRefs: [] },
    subscriptions: subscriptions.map((each, index) => [`${id}/${index}`, JSON.stringify({ cursor: id, ...each })]),
    ...extra,
  }
}

const revision = new Map(
  [
    fragment('shop/all', [{ namespaces: ['shop'] }]),
    fragment('shop/web', [{ namespaces: ['shop'], podSelector: 'app=web' }]),
    fragment('shop/asked', [{ namespaces: ['shop'], optIn: true }]),
    fragment('bank/all', [{ namespaces: ['bank'] }]),
    fragment('bank/file', [{ namespaces: ['bank'] }], { sources: [['bank/file/in', '{}']] }),
    fragment('_cluster/any', [{}]),
    fragment('_cluster/gold', [{ namespaceSelector: 'tier=gold' }]),
    fragment('_cluster/two', [{ namespaces: ['bank'] }, { podSelector: 'app=api' }]),
    fragment('_cluster/host', [], { sources: [['_cluster/host/in', '{}']] }),
  ].map((each) => [each.id, each] as const),
)
const pod = (namespace: string, labels: Record<string, string> = {}) => ({ namespace, labels })
const everywhere = ['_cluster/host', 'bank/file']

test.each([
  { pods: [], found: [] },
  { pods: [pod('shop')], found: ['_cluster/any', 'shop/all'] },
  { pods: [pod('shop', { app: 'web' })], found: ['_cluster/any', 'shop/all', 'shop/web'] },
  { pods: [pod('shop', { 'penstock.dev/collect': 'true' })], found: ['_cluster/any', 'shop/all', 'shop/asked'] },
  { pods: [pod('bank')], found: ['_cluster/any', '_cluster/gold', '_cluster/two', 'bank/all'] },
  { pods: [pod('other', { app: 'api' })], found: ['_cluster/any', '_cluster/two'] },
])('a node with the pods $pods needs $found, and everything that runs everywhere', ({ pods, found }) => {
  const labels = (namespace: string) => (namespace === 'bank' ? { tier: 'gold' } : {})
  const ids = concerned(revision, pods, labels).map(({ id }) => id)
  expect(ids.sort()).toEqual([...everywhere, ...found].sort())
})

test('a mark changes with the content, the parts and the values, but not with their order', () => {
  const secretRefs = [{ key: 'k1', parts: ['text'] }]
  const one = fragment('a/one', [{ namespaces: ['a'] }], { secretRefs })
  const two = fragment('a/two', [{ namespaces: ['a'] }])
  const mark = markOf([one, two], { k1: 'd1', k2: 'other' })
  expect(markOf([{ ...two }, { ...one }], { k1: 'd1' })).toBe(mark)
  expect(markOf([one, two], { k1: 'd2' })).not.toBe(mark)
  expect(markOf([one], { k1: 'd1' })).not.toBe(mark)
  expect(markOf([one, { ...two, sinks: [['a/two/out', '{}']] }], { k1: 'd1' })).not.toBe(mark)
  expect(markOf([one, { ...two, entry: '{"hash":"2"}' }], { k1: 'd1' })).not.toBe(mark)
})
