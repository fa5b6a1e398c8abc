import { expect, test } from 'vitest'
import type { KnownRevision } from '../fleet/state.ts'
import type { ShardFile } from '../render/bundle.ts'
import { forgetRevisions } from './revisions.ts'

test('the newest unused revisions keep their lists of Pipelines, without their bytes', () => {
  const revisions = new Map<string, KnownRevision>()
  for (let index = 0; index < 100; index++)
    revisions.set(`r${index}`, { rev: `r${index}`, shards: [{} as ShardFile], fragments: new Map() })
  forgetRevisions(revisions, new Set(['r0', 'r99']))
  expect(revisions.size).toBe(66)
  expect([...revisions.keys()].slice(0, 2)).toEqual(['r0', 'r35'])
  expect([...revisions.values()].filter(({ shards }) => shards.length > 0).map(({ rev }) => rev)).toEqual(['r0', 'r99'])
})
