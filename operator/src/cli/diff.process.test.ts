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

const sink = (uri: string) => ({
  apiVersion: 'penstock.dev/v1alpha1',
  kind: 'Sink',
  metadata: { name: 'store', namespace: 'shop' },
  spec: { type: 'http', config: { uri, encoding: { codec: 'json' } } },
})
const user = pipeline({ ref: { kind: 'Sink', name: 'store' } })
const stranger = { ...pipeline({ ref: { kind: 'Sink', name: 'other' } }), metadata: { name: 'b', namespace: 'shop' } }

test.each([
  {
    what: 'a change',
    pipelines: [user, stranger],
    file: sink('http://new.test'),
    code: 1,
    says: '+    uri: http://new.test',
  },
  { what: 'no change', pipelines: [user], file: sink('http://old.test'), code: 0, says: 'No difference.' },
  {
    what: 'a change that no Pipeline uses',
    pipelines: [stranger],
    file: sink('http://new.test'),
    code: 0,
    says: 'No dif',
  },
  {
    what: 'Pipelines that may not be read',
    pipelines: undefined,
    file: sink('http://new.test'),
    code: 69,
    says: 'Sink store may be used by Pipelines, and you may not read Pipelines in namespace shop',
  },
  {
    what: 'a resource of another program',
    pipelines: [user],
    file: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'c' } },
    code: 0,
    says: 'No difference.',
  },
])('a file without Pipelines: $what', async ({ pipelines, file, code: expected, says }) => {
  const { code, output } = await runAtDouble(
    async ({ folder }) => {
      const path = join(folder, 'store.yaml')
      await writeFile(path, JSON.stringify(file))
      return ['diff', path]
    },
    ({ pathname }) => {
      const kind = pathname.split('/shop/')[1]
      if (kind === 'sinks/store') return { status: 200, body: sink('http://old.test') }
      if (kind === 'sinks') return { status: 200, body: { metadata: {}, items: [sink('http://old.test')] } }
      if (kind !== 'pipelines' || pipelines === undefined) return forbidden
      return { status: 200, body: { metadata: {}, items: pipelines } }
    },
    { namespace: 'shop' },
  )
  expect(output).toContain(says)
  expect(code, output).toBe(expected)
})
