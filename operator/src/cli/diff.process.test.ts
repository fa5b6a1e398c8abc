// The real `penstock diff` with a double of the API server that grants the rights of a namespace's Role.

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { forbidden, runAtDouble } from '../testing/command.ts'

const pipeline = (sink: object, source = '.a = 1') => ({
  apiVersion: 'penstock.dev/v1alpha1',
  kind: 'Pipeline',
  metadata: { name: 'web', namespace: 'shop' },
  spec: {
    sources: [{ name: 'app', type: 'orchestrator_logs', config: {} }],
    transforms: [{ name: 'edit', type: 'remap', config: { source } }],
    sinks: [{ name: 'out', ...sink }],
  },
})

const diff = (live: object, file: object) =>
  runAtDouble(
    async ({ folder }) => {
      const path = join(folder, 'web.yaml')
      await writeFile(path, JSON.stringify(file))
      return ['diff', path]
    },
    ({ pathname }) => {
      if (!pathname.includes('/namespaces/shop/')) return forbidden
      return { status: 200, body: pathname.endsWith('/pipelines/web') ? live : { metadata: {}, items: [] } }
    },
    { namespace: 'shop' },
  )

const own = { type: 'blackhole', config: {} }
const shared = { ref: { kind: 'ClusterSink', name: 'store' } }

test.each([
  { what: 'the same', live: pipeline(own), file: pipeline(own), code: 0, says: 'No difference.' },
  { what: 'a change', live: pipeline(own), file: pipeline(own, '.a = 2'), code: 1, says: '+    source: .a = 2' },
  {
    what: 'a shared sink',
    live: pipeline(own),
    file: pipeline(shared),
    code: 69,
    says: 'Pipeline web refers to a ClusterSink, and you may not read ClusterSinks',
  },
  {
    what: 'no shared sink any more',
    live: pipeline(shared),
    file: pipeline(own),
    code: 69,
    says: 'Pipeline web refers to a ClusterSink, and you may not read ClusterSinks',
  },
])('with the rights of one namespace: $what', async ({ live, file, code: expected, says }) => {
  const { code, output } = await diff(live, file)
  expect(output).toContain(says)
  expect(code, output).toBe(expected)
})
