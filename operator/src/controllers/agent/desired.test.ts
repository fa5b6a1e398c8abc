import { expect, test } from 'vitest'
import type { Artifact } from '../../compile/artifact.ts'
import { digestOf } from '../../fleet/rolled-back.ts'
import type { Delivered, KnownRevision } from '../../fleet/state.ts'
import { renderBundle } from '../../render/bundle.ts'
import type { Fragment } from '../../render/fragment.ts'
import { slotBytes } from '../../render/slots.ts'
import { secretSlots } from '../../workloads/names.ts'
import { dropRevisions, selectFragments, withValues } from './desired.ts'

function fragment(id: string, hash: string, keys: readonly string[] = []): Fragment {
  return {
    ...{ id, uid: 'u', generation: 1, hash, sources: [], transforms: [], subscriptions: [], sinks: [] },
    entry: JSON.stringify({ uid: 'u', generation: 1, hash }),
    secretRefs: keys.map((key) => ({ key, parts: [] })),
  }
}

function artifact(hash: string, retry?: string): Artifact {
  const content = { sources: {}, transforms: {}, sinks: {}, hub: { subscriptions: [] }, secretRefs: [] }
  const tenancy = { restricted: false }
  const members = { id: 'shop/p', uid: 'u', generation: 1, hash, retry, createdAt: '2026', tenancy, ...content }
  return members as unknown as Artifact
}

const back = (hash: string, retry?: string) => ({
  hash,
  why: 'pods are lost',
  ...(retry === undefined ? {} : { retry }),
})
const stable = new Map([['shop/p', fragment('shop/p', 'old')]])

test.each([
  { sentence: 'a version that was never rolled back runs', rolledBack: {}, stable, runs: ['new'], still: [] },
  {
    sentence: 'a version that was rolled back gives way to the stable one',
    ...{ rolledBack: { 'shop/p': back('new') }, stable, runs: ['old'], still: ['shop/p'] },
  },
  {
    sentence: 'a version that was rolled back and has no stable one does not run',
    ...{ rolledBack: { 'shop/p': back('new') }, stable: new Map(), runs: [], still: ['shop/p'] },
  },
  {
    sentence: 'a version that all agents got at once, as it was new, and that was rolled back does not run',
    ...{ rolledBack: { 'shop/p': back('new') }, stable: new Map([['shop/p', fragment('shop/p', 'new')]]) },
    ...{ runs: [], still: ['shop/p'] },
  },
  {
    sentence: 'a change ends the rollback',
    ...{ rolledBack: { 'shop/p': back('older') }, stable, runs: ['new'], still: [] },
  },
  {
    sentence: 'a retry ends the rollback',
    ...{ rolledBack: { 'shop/p': back('new', 'first') }, stable, runs: ['new'], still: [] },
  },
])('$sentence', ({ rolledBack, stable, runs, still }) => {
  const selected = selectFragments([artifact('new')], { rolledBack }, stable)
  expect(selected.entries.map((entry) => entry.fragment.hash)).toEqual(runs)
  expect(Object.keys(selected.rolledBack)).toEqual(still)
})

test('the stable version of a Pipeline whose newest one is unknown runs, and its rollback is remembered', () => {
  const rolledBack = { 'shop/q': back('older') }
  const all = new Map([...stable, ['shop/q', fragment('shop/q', 'kept')]])
  const selected = selectFragments([artifact('new')], { rolledBack }, all, new Set(['shop/q', 'shop/never-ran']))
  expect(selected.entries.map((entry) => entry.fragment.hash)).toEqual(['new', 'kept'])
  expect(Object.keys(selected.rolledBack)).toEqual(['shop/q'])
})

const digest = (hash: string, retry?: string) => digestOf({ id: 'shop/p', hash, retry })

test.each([
  { sentence: 'gives way to the stable one', given: digest('new'), runs: ['old'], is: ['shop/p'] },
  { sentence: 'runs again once it has changed', given: digest('older'), runs: ['new'], is: [] },
  { sentence: 'runs again once it is retried', given: digest('new', 'first'), runs: ['new'], is: [] },
])('a version whose rollback has lost its reason $sentence', ({ given, runs, is }) => {
  const selected = selectFragments([artifact('new')], { rolledBack: {}, withheld: [given] }, stable)
  expect(selected.entries.map((entry) => entry.fragment.hash)).toEqual(runs)
  expect([...selected.withheld.keys()]).toEqual(is)
})

const pem = '-----BEGIN CERTIFICATE-----'
const half = (secretSlots * slotBytes) / 2

test.each([
  {
    sentence: 'a version whose values are there runs',
    ...{ values: { k: 'v' }, runs: ['new'], of: ['k'], reason: undefined },
  },
  {
    sentence: 'a missing value keeps the stable version',
    ...{ values: { s: 'v' }, runs: ['old'], of: ['s'], reason: 'A value that it refers to does not exist.' },
  },
  {
    sentence: 'a Pipeline runs in no version when the stable one misses a value too',
    ...{ values: {}, runs: [], of: [], reason: 'A value that it refers to does not exist.' },
  },
  {
    sentence: 'a value of 64 KiB is delivered',
    ...{ values: { k: 'x'.repeat(64 * 1024) }, runs: ['new'], of: ['k'], reason: undefined },
  },
  {
    sentence: 'a longer value keeps the stable version',
    values: { k: 'x'.repeat(64 * 1024 + 1), s: 'v' },
    ...{ runs: ['old'], of: ['s'] },
    reason: 'A value that it refers to has 65537 bytes; the limit is 65536.',
  },
  {
    sentence: 'a certificate of 256 KiB is delivered',
    ...{ values: { k: pem.padEnd(256 * 1024, 'x') }, runs: ['new'], of: ['k'], reason: undefined },
  },
])('$sentence', async ({ values, runs, of, reason }) => {
  const data: Readonly<Record<string, string>> = values
  const entries = [{ fragment: fragment('shop/p', 'new', ['k']), createdAt: '2026' }]
  const before = new Map([['shop/p', fragment('shop/p', 'old', ['s'])]])
  const found = await withValues(entries, before, async ({ key }) => {
    const text = data[key]
    return text === undefined ? undefined : Buffer.from(text)
  })
  expect(found.entries.map((entry) => entry.fragment.hash)).toEqual(runs)
  expect([...found.of.keys()]).toEqual(of)
  expect(found.reasons.get('shop/p')).toBe(reason)
})

test('values of the oldest Pipelines fill their half of the Secrets first', async () => {
  const size = 256 * 1024
  const fits = Math.floor(half / (size + 'k000'.length))
  const entries = Array.from({ length: fits + 1 }, (_, index) => {
    const number = String(index).padStart(3, '0')
    return { fragment: fragment(`shop/p${number}`, number, [`k${number}`]), createdAt: `2026-${number}` }
  })
  const value = Buffer.from(pem.padEnd(size, 'x'))
  const found = await withValues(entries.toReversed(), new Map(), async () => value)
  expect(found.entries).toEqual(entries.slice(0, fits))
  expect([...found.reasons]).toEqual([
    [entries.at(-1)?.fragment.id, "The Agent's space for secret values is full; younger Pipelines are excluded."],
  ])
})

test('a revision with a Pipeline that the Agent may not run is dropped, also as stable and candidate', async () => {
  const revisionOf = (hash: string): Promise<KnownRevision> =>
    renderBundle([{ fragment: fragment('shop/p', hash), createdAt: '' }])
  const [kept, dropped] = await Promise.all([revisionOf('kept'), revisionOf('dropped')])
  const delivered = {
    revisions: new Map([kept, dropped].map((revision) => [revision.rev, revision])),
    stable: { rev: dropped.rev },
    candidate: { rev: kept.rev },
  } as unknown as Delivered
  expect(dropRevisions(delivered, ({ hash }) => hash !== 'dropped')).toBe(true)
  expect([...delivered.revisions.keys()]).toEqual([kept.rev])
  expect(delivered.stable).toBeUndefined()
  expect(delivered.candidate).toEqual({ rev: kept.rev })
  expect(dropRevisions(delivered, () => true)).toBe(false)
})
