import { expect, test, vi } from 'vitest'
import type { KubeClient } from '../kube/client.ts'
import type { Fragment } from '../render/fragment.ts'
import { LeftoverAnswers } from './leftovers.ts'
import { type Delivered, FleetState } from './state.ts'

const fragment = (id: string, uid: string, ...sinks: readonly string[]): Fragment =>
  ({ id, uid, sinks: sinks.map((name) => [`${id}/${name}`, '{}']) }) as unknown as Fragment

const byId = (...fragments: readonly Fragment[]) => new Map(fragments.map((each) => [each.id, each]))

/** An Agent whose stable revision runs some pipelines, and optionally a candidate with others. */
function asked(
  stable: readonly Fragment[],
  options: {
    candidate?: readonly Fragment[]
    objects?: Record<string, string>
    away?: boolean
    lost?: boolean
    hangs?: boolean
  } = {},
) {
  const { candidate, objects = {}, away = false, lost = false, hangs = false } = options
  const hang = Promise.withResolvers<undefined>()
  const fleet = new FleetState()
  const revision = (rev: string, fragments: readonly Fragment[]) =>
    [rev, { rev, shards: [], fragments: byId(...fragments) }] as const
  fleet.set('system/node', {
    stable: { rev: 's', shards: [] },
    candidate: candidate === undefined ? undefined : { rev: 'c', shards: [], percent: 5, salt: 'x' },
    record: { rolledBack: {}, history: [] },
    revisions: new Map(
      lost ? [] : [revision('s', stable), ...(candidate === undefined ? [] : [revision('c', candidate)])],
    ),
    selected: byId(...(candidate ?? stable)),
    evicted: new Map(),
    startSpreadMs: 0,
    why: '',
  })
  const requests: string[] = []
  const get = async (_: unknown, namespace: string | undefined, name: string) => {
    requests.push(`${namespace}/${name}`)
    if (away) throw new Error('forbidden')
    if (hangs) await hang.promise
    const uid = objects[`${namespace}/${name}`]
    return uid === undefined ? undefined : { metadata: { name, uid } }
  }
  fleet.set('shop/side', fleet.get('system/node') as Delivered)
  const settings = { namespace: 'system', agentNamespaces: ['system'] }
  return { leftovers: new LeftoverAnswers({ get } as unknown as KubeClient, fleet, settings), requests, hang }
}

const buffer = { kind: 'buffer', id: 'shop/a/es' }
const cursors = { kind: 'cursors', id: 'uid-a', pipeline: 'shop/a' }
const a = fragment('shop/a', 'uid-a', 'es')
const without = fragment('shop/a', 'uid-a', 'other')
const other = fragment('shop/b', 'uid-b', 'es')

test.each([
  { what: 'a Pipeline that is deleted', given: asked([other]), gone: ['buffer shop/a/es', 'cursors uid-a'] },
  {
    what: 'a Pipeline that was created again',
    given: asked([other], { objects: { 'shop/a': 'uid-new' } }),
    gone: ['cursors uid-a'],
  },
  { what: 'a suspended Pipeline', given: asked([other], { objects: { 'shop/a': 'uid-a' } }), gone: [] },
  { what: 'a Pipeline that the candidate lacks', given: asked([a, other], { candidate: [other] }), gone: [] },
  { what: 'a Pipeline in only the candidate', given: asked([other], { candidate: [a, other] }), gone: [] },
  { what: 'a sink that is removed', given: asked([without]), gone: ['buffer shop/a/es'] },
  { what: 'a sink that the candidate is tried without', given: asked([a], { candidate: [without] }), gone: [] },
  { what: 'an API server that says nothing', given: asked([other], { away: true }), gone: [] },
  { what: 'revisions that are not known', given: asked([other], { lost: true }), gone: [] },
])('$what leaves unused data behind: $gone', async ({ given, gone }) => {
  expect(await given.leftovers.gone('system/node', [buffer, cursors])).toEqual(gone)
  expect(await given.leftovers.gone('system/unknown', [buffer, cursors])).toEqual([])
})

test('many agents that ask about a pipeline cause one request, and invalid names cause none', async () => {
  const { leftovers, requests } = asked([other])
  for (let agent = 0; agent < 20; agent++) await leftovers.gone('system/node', [buffer, cursors])
  expect(requests).toEqual(['shop/a'])
  const nonsense = [{ kind: 'buffer', id: '../../etc' }, { kind: 'buffer', id: 'a/b/../c' }, { kind: 'x' }, 7, null]
  expect(await leftovers.gone('system/node', nonsense)).toEqual([])
  expect(await leftovers.gone('system/node', 'all')).toEqual([])
  expect(requests).toEqual(['shop/a'])
})

test('agents of a tenant learn nothing of other namespaces', async () => {
  const { leftovers, requests } = asked([other])
  const foreign = [
    { kind: 'buffer', id: 'bank/a/es' },
    { kind: 'cursors', id: 'uid-a', pipeline: 'bank/a' },
    { kind: 'buffer', id: '_cluster/a/es' },
  ]
  expect(await leftovers.gone('shop/side', [...foreign, buffer])).toEqual(['buffer shop/a/es'])
  expect(requests).toEqual(['shop/a'])
})

test('an agent that asks about thousands of pipelines causes few requests, and is answered later', async () => {
  const { leftovers, requests } = asked([other])
  for (let report = 0; report < 100; report++)
    await leftovers.gone(
      'shop/side',
      Array.from({ length: 50 }, (_, index) => ({ kind: 'buffer', id: `shop/p-${report}-${index}/es` })),
    )
  expect(requests.length).toBeGreaterThanOrEqual(100)
  expect(requests.length).toBeLessThan(120)
})

test('data is needed while the API server does not answer, and the agent does not wait for that', async () => {
  vi.useFakeTimers()
  try {
    const { leftovers, hang } = asked([without], { hangs: true })
    const all = Array.from({ length: 50 }, (_, index) => ({
      ...cursors,
      id: `uid-${index}`,
      pipeline: `shop/p${index}`,
    }))
    const answer = leftovers.gone('system/node', all)
    await vi.advanceTimersByTimeAsync(2_000)
    expect(await answer).toEqual([])
    hang.resolve(undefined)
    await vi.advanceTimersByTimeAsync(0)
    expect(await leftovers.gone('system/node', all)).toHaveLength(50)
  } finally {
    vi.useRealTimers()
  }
})
