import { expect, test } from 'vitest'
import type { Delivered, KnownRevision } from '../../fleet/state.ts'
import { renderBundle } from '../../render/bundle.ts'
import type { Fragment } from '../../render/fragment.ts'
import { slotBytes } from '../../render/slots.ts'
import { configSlots, secretSlots } from '../../workloads/names.ts'
import { planSecrets, type SeenSecrets } from './slots.ts'

/** A revision of one pipeline that needs the values of these keys. */
async function revisionOf(hash: string, keys: readonly string[]): Promise<KnownRevision> {
  const secretRefs = keys.map((key) => ({ key, parts: [] }))
  const fragment: Fragment = {
    ...{ id: 'shop/p', uid: 'u', generation: 1, hash, sources: [], transforms: [], subscriptions: [], sinks: [] },
    entry: JSON.stringify({ uid: 'u', generation: 1, hash }),
    secretRefs,
  }
  return renderBundle([{ fragment, createdAt: '' }])
}

const [now, before, old] = await Promise.all([
  revisionOf('sha256:3', ['k3']),
  revisionOf('sha256:2', ['k2']),
  revisionOf('sha256:1', ['k1']),
])

type State = Pick<Delivered, 'stable' | 'candidate' | 'record' | 'revisions'>

function state(members: Partial<State> = {}): State {
  const revisions = new Map([now, before, old].map((revision) => [revision.rev, revision]))
  return { stable: now, candidate: undefined, record: { rolledBack: {}, history: [] }, revisions, ...members }
}

function held(contents: Readonly<Record<string, Buffer>>): SeenSecrets['values'] {
  return { slots: new Map(Object.keys(contents).map((key) => [key, 1])), data: (key) => contents[key] }
}

function seen(members: Partial<SeenSecrets> = {}): SeenSecrets {
  const value = (key: string) => (/^k[123]$/.test(key) ? Buffer.from(`value of ${key}`) : undefined)
  const nothing = held({})
  return {
    agent: 'a/b',
    running: new Set(),
    allKnown: true,
    value,
    values: nothing,
    config: nothing,
    manifestExtras: {},
    ...members,
  }
}

const keysOf = (slots: readonly ReadonlyMap<string, Buffer>[]) => slots.flatMap((slot) => [...slot.keys()]).sort()
const shardKeys = (...revisions: KnownRevision[]) => revisions.flatMap(({ shards }) => shards.map(({ key }) => key))
const ran = (revision: string) => ({ revision, at: '', result: 'RolledOut' })

test.each([
  {
    sentence: 'the revision in force is kept alone when every pod runs it',
    given: seen(),
    of: state(),
    revisions: [now],
    values: ['k3'],
  },
  {
    sentence: 'a revision that a pod still runs is kept with its values',
    given: seen({ running: new Set([before.rev]) }),
    of: state(),
    revisions: [now, before],
    values: ['k2', 'k3'],
  },
  {
    sentence: 'a revision that a rollout may go back to is kept with its values',
    given: seen(),
    of: state({ record: { rolledBack: {}, history: [ran(old.rev)] } }),
    revisions: [now, old],
    values: ['k1', 'k3'],
  },
  {
    sentence: 'a revision that was rolled back is not kept',
    given: seen(),
    of: state({ record: { rolledBack: {}, history: [{ ...ran(old.rev), result: 'RolledBack' }] } }),
    revisions: [now],
    values: ['k3'],
  },
  {
    sentence: 'old keys are taken away when every pod is known',
    given: seen({ values: held({ left: Buffer.from('x') }) }),
    of: state(),
    revisions: [now],
    values: ['k3'],
  },
  {
    sentence: 'old keys stay while a pod has not reported what it runs',
    given: seen({ allKnown: false, values: held({ left: Buffer.from('x') }) }),
    of: state(),
    revisions: [now],
    values: ['k3', 'left'],
  },
])('$sentence', ({ given, of, revisions, values }) => {
  const plan = planSecrets(of, given)
  expect([...plan.kept].sort()).toEqual(revisions.map(({ rev }) => rev).sort())
  expect(keysOf(plan.values)).toEqual(values)
  expect(keysOf(plan.shards)).toEqual(['manifest.json', plan.digests.file.key, ...shardKeys(...revisions)].sort())
  expect([...plan.named.keys()], 'agents are given the values in force').toEqual(['k3'])
})

test('the manifest is in the first Secret, and a value that cannot be read stays unchanged', () => {
  const plan = planSecrets(state(), seen({ value: () => undefined, values: held({ k3: Buffer.from('as it was') }) }))
  expect(plan.shards[0]?.has('manifest.json')).toBe(true)
  expect(plan.values[1]?.get('k3')?.toString(), 'in the slot where it is').toBe('as it was')
  expect([plan.values.length, plan.shards.length]).toEqual([secretSlots, configSlots])
})

test('drops configurations to return to when the Secrets are full', () => {
  const full = Buffer.alloc(slotBytes - 1024)
  const left = Object.fromEntries(Array.from({ length: secretSlots }, (_, slot) => [`left${slot}`, full]))
  const of = { slots: new Map(Object.keys(left).map((key, slot) => [key, slot])), data: (key: string) => left[key] }
  const big = Buffer.alloc(64 * 1024)
  const plan = planSecrets(
    state(),
    seen({ allKnown: false, values: of, value: (key) => (key === 'k3' ? big : undefined) }),
  )
  expect(keysOf(plan.values)).toEqual(['k3'])
})

test('an Agent whose revision does not fit fails with its name', () => {
  const value = () => Buffer.alloc(slotBytes + 1)
  expect(() => planSecrets(state(), seen({ value }))).toThrow('The Secrets of Agent a/b have no space for 1 keys')
})
