// Defaults that contain the name of the product: a converted component keeps the name that Vector would have used.

import { components, optionsOf } from '@penstock/agent/config'
import { isTable } from '@penstock/agent/schema'
import { expect, test } from 'vitest'
import { stringify } from 'yaml'
import { converted, lint } from '../../testing/conversions.ts'
import { convertVector } from './convert.ts'

type Table = Readonly<Record<string, unknown>>

/** The paths of options whose default contains the name. */
function named(schema: unknown, path: readonly string[] = []): (readonly [path: readonly string[], value: string])[] {
  if (!isTable(schema)) return []
  const own = schema['default']
  const found = typeof own === 'string' && /penstock/i.test(own) ? [[path, own] as const] : []
  const members = isTable(schema['properties']) ? Object.entries(schema['properties']) : []
  return [...found, ...members.flatMap(([name, member]) => named(member, [...path, name]))]
}

const all = components.flatMap((declaration) =>
  named(optionsOf(declaration).schema).map(([path, value]) => ({
    kind: declaration.kind,
    type: declaration.type,
    name: declaration.aliases?.[0] ?? declaration.type,
    path,
    value,
  })),
)

const required: Readonly<Record<string, Table>> = {
  amqp: { connection_string: 'amqp://queue' },
  search_engine: { endpoints: ['http://es:9200'] },
  logsvc_a: { api_key: 'k', hostname: 'h' },
  logsvc_a_old: { api_key: 'k', hostname: 'h' },
}

test('several components have such defaults', () => {
  expect(all.map(({ type, path }) => `${type} ${path.join('.')}`)).toContain('search_engine bulk.index')
})

test.each(all)('$kind $name: $path', async ({ kind, type, name, path, value }) => {
  const options = { type: name, ...required[type] }
  const config = {
    sources: { in: kind === 'source' ? options : { type: 'file', include: ['/srv/x.log'] } },
    sinks: {
      out: {
        ...(kind === 'sink' ? options : { type: 'console', encoding: { codec: 'json' } }),
        inputs: ['in'],
      },
    },
  }
  const { document, resource, gaps } = converted(convertVector, [{ file: 'vector.yaml', text: stringify(config) }])
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true)).toEqual([])
  const made: Table = resource.spec[kind === 'sink' ? 'sinks' : 'sources'][0].config
  expect(path.reduce<unknown>((below, key) => (below as Table)[key], made)).toBe(value.replace('penstock', 'vector'))
  const problems = await lint(document.toString({ lineWidth: 0 }))
  expect(problems.filter((problem) => !problem.includes('is deprecated'))).toEqual([])
})

test('an index, and a data stream, stay', () => {
  const sink = (options: Table) => {
    const out = { type: 'elasticsearch', inputs: ['in'], endpoints: ['http://es:9200'], ...options }
    const config = { sources: { in: { type: 'file', include: ['/srv/x.log'] } }, sinks: { out } }
    return converted(convertVector, [{ file: 'vector.yaml', text: stringify(config) }]).resource.spec.sinks[0].config
  }
  expect(sink({ bulk: { index: 'own' } }).bulk).toEqual({ index: 'own' })
  expect(sink({ index: 'old' }).bulk).toEqual({ index: 'old' })
  expect(sink({ bulk: { action: 'create' } }).bulk).toEqual({ index: 'vector-%Y.%m.%d', action: 'create' })
  expect(sink({ mode: 'data_stream', data_stream: { dataset: 'x' } }).bulk).toBeUndefined()
})

test('fields of pods that options put below `kubernetes` stay there', async () => {
  const pods = { type: 'kubernetes_logs', pod_annotation_fields: { pod_labels: 'kubernetes.labels' } }
  const out = { type: 'console', inputs: ['pods'], encoding: { codec: 'json' } }
  const text = stringify({ sources: { pods }, sinks: { out } })
  const { document, resource } = converted(convertVector, [{ file: 'vector.yaml', text }])
  const [{ name }] = resource.spec.transforms
  const log = { kubernetes: { labels: { app: 'web' } }, orchestrator: { pod_name: 'web-1' } }
  const assert = '.kubernetes == { "labels": { "app": "web" }, "pod_name": "web-1" } && !exists(.orchestrator)'
  document.setIn(['spec', 'tests'], [{ name: 'a', insertAt: name, input: { log }, expect: [{ at: name, assert }] }])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('a sample by a field chooses events without the field one by one', () => {
  const t = { type: 'sample', inputs: ['in'], rate: 10, key_field: 'trace.id' }
  const text = stringify({
    sources: { in: { type: 'file', include: ['/srv/x.log'] } },
    transforms: { t },
    sinks: { out: { type: 'console', inputs: ['t'], encoding: { codec: 'json' } } },
  })
  const { resource } = converted(convertVector, [{ file: 'vector.yaml', text }])
  expect(resource.spec.transforms[0].config.condition).toMatch(
    /^\(\(exists\(\.trace\.id\) && .*seahash.*\) \|\| \(!exists\(\.trace\.id\) && random_int\(0, 1000000\) < 100000\)\)$/,
  )
})

test.each([
  ['{ type: kubernetes_logs }', 'orchestrator_logs', '', '.source_type == "kubernetes_logs"'],
  ['{ type: aws_sqs, region: a, queue_url: "https://sqs/q" }', 'cloud_queue', '', '.source_type == "aws_sqs"'],
  // A field of the line with this name stays.
  ['{ type: kubernetes_logs }', 'own', '', '.source_type == "own"'],
  ['{ type: kubernetes_logs }', 'orchestrator_logs', 'renamed', '.kind == "kubernetes_logs"'],
])('events keep the type of their source: %s, %s %s', async (source, type, setting, assert) => {
  const given = setting === '' ? '' : 'log_schema: { source_type_key: kind }\n'
  const text = `${given}sources: { s: ${source} }\nsinks: { out: { type: console, inputs: [s], encoding: { codec: json } } }\n`
  const { document, resource } = converted(convertVector, [{ file: 'vector.yaml', text }])
  const [{ name }] = resource.spec.transforms
  const [at] = resource.spec.sinks[0].inputs
  const log = { message: 'x', source_type: type }
  document.setIn(['spec', 'tests'], [{ name: 'a', insertAt: name, input: { log }, expect: [{ at, assert }] }])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})
