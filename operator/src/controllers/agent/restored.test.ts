import { expect, test } from 'vitest'
import { renderBundle } from '../../render/bundle.ts'
import type { Fragment } from '../../render/fragment.ts'
import { digestFile, renderManifest } from '../../render/manifest.ts'
import { restored } from './restored.ts'

const fragment: Fragment = {
  ...{ id: 'shop/p', uid: 'u', generation: 1, hash: 'sha256:1', sources: [], transforms: [], subscriptions: [] },
  ...{ entry: '{"uid":"u","generation":1,"hash":"sha256:1"}', sinks: [], secretRefs: [] },
}

test.each([
  ['a whole record', '{"rolledBack":{"shop/q":{"hash":"h","why":"w"}},"history":[]}', ['shop/q']],
  ['none', undefined, []],
  ['no JSON', 'of somebody else', []],
  ['another object', '{}', []],
  ['a list', '[]', []],
  ['members of other types', '{"rolledBack":7,"history":"x"}', []],
])('the Secrets show what agents run, even if their annotation has %s', async (_, annotation, rolledBack) => {
  const { rev, shards } = await renderBundle([{ fragment, createdAt: '' }])
  const files = new Map<string, Buffer>(shards.map(({ key, data }) => [key, data]))
  files.set('manifest.json', renderManifest({ rev, shards }, undefined, digestFile(new Map())))
  const config = { slots: new Map([...files.keys()].map((key) => [key, 0])), data: (key: string) => files.get(key) }
  const errors: unknown[] = []
  const found = restored({ config, annotation }, 0, (error) => errors.push(error))
  expect(errors).toEqual([])
  expect(found.stable?.rev).toBe(rev)
  expect(Object.keys(found.record.rolledBack)).toEqual(rolledBack)
  expect(found.record.history).toEqual([])
})
