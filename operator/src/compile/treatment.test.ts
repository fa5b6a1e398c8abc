// For each option under an operator, the reference matches the compiler: the option reaches the agent, is rejected at its location, or
// causes a warning that it has no effect. The test covers every option of every component.

import { components, globalOptions } from '@penstock/agent/config'
import { isTable, type Meaning, meaningOf, operatorTreatment, type Schema } from '@penstock/agent/schema'
import { type OptionPlace, optionLeaves } from '@penstock/agent/testing/option-places'
import { expect, test } from 'vitest'
import { subscriptionOf } from './compiled.ts'
import { compilePipeline } from './pipeline.ts'
import { resourceOf } from './resources.ts'

type Key = string | number

interface Option extends OptionPlace {
  /** Its own name, and that of the enclosing list. */
  readonly meaning: Meaning
}

/** A value that the option takes. */
function sampleOf(schema: Schema): unknown {
  const given = (schema['examples'] as readonly unknown[] | undefined)?.[0] ?? schema['default']
  const { file, address } = meaningOf(schema)
  // Example addresses may belong to this machine, which tenants cannot reach.
  if (address !== undefined && typeof given === 'string') return given.replace(/127\.0\.0\.1|localhost/, 'example.com')
  if (given !== undefined && !isTable(given)) return given
  if (file !== undefined) return file.within === undefined ? '/a/file' : '**/*.log'
  if (Array.isArray(schema['enum'])) return schema['enum'][0]
  if (schema['type'] === 'boolean') return true
  if (schema['type'] === 'integer' || schema['type'] === 'number') return Number(schema['minimum'] ?? 1)
  return schema['format'] === 'url' ? 'https://example.com' : 'text'
}

const contents = { pem: '-----BEGIN CERTIFICATE-----', json: '{}', data: 'data:application/json;base64,e30=' } as const

const lists = { source: 'sources', transform: 'transforms', sink: 'sinks' } as const

/** The messages about the option for a Pipeline with the component, and the parts that reach the agent. */
function compiled(
  { component: { kind, type }, path, with: build }: Option,
  value: unknown,
  namespace: string | undefined,
) {
  const spec = {
    ...(type === 'file' && kind === 'source' ? { mode: 'Sidecar' } : {}),
    sources: [{ name: 'in', type: 'demo_logs', config: {} }],
    transforms: [] as object[],
    sinks: [{ name: 'out', type: 'blackhole', config: {} }] as object[],
    [lists[kind]]: [{ name: 'own', type, config: build(value) }],
  }
  const object = {
    apiVersion: 'penstock.dev/v1alpha1',
    kind: namespace === undefined ? 'ClusterPipeline' : 'Pipeline',
    metadata: { name: 'p', ...(namespace === undefined ? {} : { namespace }) },
    spec,
  }
  const resource = resourceOf(object)
  const result = compilePipeline(resource, [resource], { ownMachine: false })
  const place = path.reduce<string>(
    (label, key) => (typeof key === 'number' ? `${label}[${key}]` : `${label}.${key}`),
    `spec.${lists[kind]}[0].config`,
  )
  // A list may be refused as a whole.
  const own = result.problems.filter(
    ({ path: at }) => at === place || (at.includes('.config.') && place.startsWith(`${at}[`)),
  )
  const [pods] = result.podLogs
  const options = pods?.options ?? Object.values(result[lists[kind]])[0]
  const arrived = path.reduce<unknown>((table, key) => (table as Record<Key, unknown> | undefined)?.[key], options)
  const selectors = pods === undefined ? [] : Object.values(subscriptionOf(pods, 'uid')).map(String)
  return {
    isRefused: own.some(({ severity }) => severity === 'error'),
    isWarned: own.some(({ severity }) => severity === 'warning'),
    arrives: arrived === value || selectors.some((text) => text.includes(String(value))),
  }
}

const all = components
  .flatMap((component) => optionLeaves(component))
  .filter(({ schema }) => schema['const'] === undefined)
  .map((place): Option => ({ ...place, meaning: { ...meaningOf(place.list ?? {}), ...meaningOf(place.schema) } }))
const nameOf = ({ name }: Option) => name

test('every option of a cluster kind arrives at the agent, or causes a warning that it is fixed', () => {
  const wrong = all.filter((option) => {
    const found = compiled(option, sampleOf(option.schema), undefined)
    const { cluster } = operatorTreatment(option.meaning)
    return found.isRefused || found.isWarned !== (cluster === 'fixed') || !found.arrives
  })
  expect(all.length).toBeGreaterThan(500)
  expect(wrong.map(nameOf)).toEqual([])
})

test('every option of a namespaced kind arrives, is refused, or causes a warning that it is fixed', () => {
  const wrong = all.filter((option) => {
    const { meaning } = option
    const { namespaced } = operatorTreatment(meaning)
    const inline = meaning.file?.inline
    const value = namespaced === 'content' && inline !== undefined ? contents[inline] : sampleOf(option.schema)
    const found = compiled(option, value, 'shop')
    if (namespaced === 'refused') return !found.isRefused
    if (namespaced === 'fixed') return !found.isWarned || found.isRefused
    return found.isRefused || found.isWarned || !found.arrives
  })
  expect(wrong.map(nameOf)).toEqual([])
})

test('an option for content accepts no file name', () => {
  const files = all.filter(({ meaning }) => operatorTreatment(meaning).namespaced === 'content')
  expect(files.length).toBeGreaterThan(20)
  expect(files.filter((option) => !compiled(option, '/etc/passwd', 'shop').isRefused).map(nameOf)).toEqual([])
})

test.each(Object.keys(globalOptions))('an option for the whole agent, `%s`, is refused in a Pipeline', (option) => {
  const spec = { sources: [{ name: 'in', type: 'demo_logs', config: {} }], sinks: [], [option]: {} }
  for (const scope of [{ kind: 'Pipeline', namespace: 'shop' }, { kind: 'ClusterPipeline' }]) {
    const { kind, ...metadata } = scope
    const object = {
      apiVersion: 'penstock.dev/v1alpha1',
      kind,
      metadata: { name: 'p', ...metadata },
      spec,
    }
    const resource = resourceOf(object)
    const { problems } = compilePipeline(resource, [resource], { ownMachine: false })
    const own = problems.find(({ path }) => path === `spec.${option}`)
    expect(own).toMatchObject({ severity: 'error', message: expect.stringContaining('unknown field') })
  }
})
