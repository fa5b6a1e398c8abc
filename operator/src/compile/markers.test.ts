// Trees as a hostile author may write them: with names reserved for the operator, and with values of any type anywhere.

import { secretKeys } from '@penstock/agent/bundle'
import { describe, expect, test } from 'vitest'
import type { KubeObject } from '../api/object.ts'
import { fragmentOf } from '../render/fragment.ts'
import { type CompileJob, compileJob } from './job.ts'
import { resourceOf } from './resources.ts'
import { sharedProblems } from './shape.ts'

type Table = Record<string, unknown>

const object = (kind: string, name: string, spec: unknown, namespace: string | undefined = 'evil'): KubeObject =>
  ({
    apiVersion: 'penstock.dev/v1alpha1',
    kind,
    metadata: { name, ...(kind.startsWith('Cluster') ? {} : { namespace }), uid: `uid-${name}`, generation: 1 },
    spec,
  }) as KubeObject

const secret = (extra: Table = {}) => ({ valueFrom: { secretKeyRef: { name: 'creds', key: 'token', ...extra } } })

/** Valid resources that use every field that users may write. */
function resources(): { pipeline: Table; shared: Record<string, Table> } {
  return {
    pipeline: {
      secrets: [{ alias: 'own', secretName: 'creds' }],
      sources: [
        {
          name: 'app',
          type: 'orchestrator_logs',
          selector: {
            pods: { matchLabels: { a: 'b' }, matchExpressions: [{ key: 'k', operator: 'In', values: ['v'] }] },
          },
          multiline: { preset: 'java' },
          config: { max_line_bytes: 65536 },
        },
        { name: 'own', ref: { kind: 'Source', name: 'own' } },
      ],
      transforms: [
        { name: 'parse', type: 'remap', inputs: ['app', 'own'], config: { source: '.a = 1' } },
        { name: 'keep', type: 'filter', config: { condition: '.a == 1' } },
      ],
      sinks: [
        {
          name: 'http',
          type: 'http',
          config: {
            uri: 'http://example.com/',
            encoding: { codec: 'json' },
            request: { headers: { authorization: 'SECRET[own.token]', other: secret() } },
            auth: { strategy: 'bearer', token: secret() },
          },
        },
        { name: 'own-sink', ref: { kind: 'Sink', name: 'own' } },
        { name: 'theirs', ref: { kind: 'ClusterSink', name: 'theirs' }, overrides: { labels: { app: 'x' } } },
      ],
      limits: { perContainer: { linesPerSecond: 10, bytesPerSecond: '1Mi', onLimit: 'Drop' } },
      onError: { deadLetter: { sink: 'http', maxEventsPerSecond: 10 } },
      tests: [
        {
          name: 'one',
          insertAt: 'parse',
          input: { log: { message: 'x' } },
          expect: [{ at: 'keep', assert: '.a == 1' }],
        },
      ],
    },
    shared: {
      Source: { type: 'orchestrator_logs', config: { max_line_bytes: 65536 } },
      Sink: {
        type: 'log_aggregator',
        config: {
          endpoint: 'http://example.com/',
          labels: { team: 'a' },
          encoding: { codec: 'json' },
          auth: { strategy: 'basic', user: 'me', password: secret() },
        },
      },
      ClusterSink: {
        type: 'log_aggregator',
        allowedNamespaces: { from: 'All' },
        overridable: ['labels'],
        enforced: { labels: { cluster: 'prod' } },
        config: {
          endpoint: 'http://example.com/',
          labels: { team: 'a' },
          encoding: { codec: 'json' },
          auth: { strategy: 'bearer', token: secret({ namespace: 'platform' }) },
        },
      },
    },
  }
}

function jobOf({ pipeline, shared }: ReturnType<typeof resources>): CompileJob {
  return {
    pipeline: object('Pipeline', 'p', pipeline) as CompileJob['pipeline'],
    resources: [
      object('Source', 'own', shared['Source']),
      object('Sink', 'own', shared['Sink']),
      object('ClusterSink', 'theirs', shared['ClusterSink']),
    ],
    policy: undefined,
    keys: { 'Secret evil/creds': ['token'], 'Secret platform/creds': ['token'] },
    apiHosts: [],
    clusterName: 'prod',
  }
}

/** Numbers from 0 to 1, equal for equal seeds. */
function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

const pick = <T>(random: () => number, items: readonly T[]): T => items[Math.floor(random() * items.length)] as T

/** JSON keeps `__proto__` as an ordinary name; a literal would not. */
const odd = (json: string): unknown => JSON.parse(json)

/** Another owner's key, written by an author who knows the key format. */
const foreignKey = '1a7674eb4ee78df7e1ac439a93c3fa8e'
const oddities: readonly (() => unknown)[] = [
  () => odd(`{"$secret":"${foreignKey}"}`),
  () => odd(`{"$secret":"${foreignKey}","x":"y"}`),
  () => odd(`{"a":{"b":[{"$secret":"${foreignKey}"}]}}`),
  () => odd(`[{"$secret":"${foreignKey}"},"x"]`),
  () => odd('{"$secret":{"toString":1}}'),
  () => odd('{"$secret":null}'),
  () => odd(`{"__proto__":{"$secret":"${foreignKey}"}}`),
  () => odd('{"__proto__":null,"constructor":{"prototype":{}}}'),
  () => odd('{"toString":1,"valueOf":2}'),
  () => odd('{"valueFrom":"x"}'),
  () => odd('{"valueFrom":{"secretKeyRef":{"name":"creds","key":"token"}},"x":"y"}'),
  () => odd('{"valueFrom":{"secretKeyRef":{"name":"creds","key":"token"},"configMapKeyRef":{}}}'),
  () => odd('{"valueFrom":{"__proto__":{"name":"creds","key":"token"}}}'),
  () => odd('{"valueFrom":{"secretKeyRef":{"name":{"$secret":"x"},"key":["token"]}}}'),
  () => odd('{"valueFrom":{"secretKeyRef":{"name":"none","key":"token","optional":true}}}'),
  () => 'SECRET[own.token]',
  () => 'SECRET[constructor.token]',
  () => '__proto__',
  () => 'constructor',
  () => null,
  () => 7,
  () => true,
  () => [],
  () => ({}),
  () => [[null]],
]

/** Every object and list of a tree. */
function holders(value: unknown, found: (Table | unknown[])[] = []): (Table | unknown[])[] {
  if (typeof value !== 'object' || value === null) return found
  found.push(value as Table)
  for (const member of Object.values(value)) holders(member, found)
  return found
}

/** Inserts an odd value at a random location: replacing a value, beside others, or as an item. */
function disturb({ pipeline, shared }: ReturnType<typeof resources>, random: () => number): void {
  const holder = pick(random, holders(pick(random, [pipeline, pipeline, ...Object.values(shared)])))
  const value = pick(random, oddities)()
  if (Array.isArray(holder)) {
    if (random() < 0.5 || holder.length === 0) holder.push(value)
    else holder[Math.floor(random() * holder.length)] = value
    return
  }
  const name = random() < 0.3 ? pick(random, ['$secret', '__proto__', 'valueFrom', 'constructor', 'x']) : undefined
  const target = name ?? pick(random, [...Object.keys(holder), 'x'])
  Object.defineProperty(holder, target, { value, enumerable: true, configurable: true, writable: true })
}

/** Whether a tree contains a name anywhere. */
function holdsName(value: unknown, name: string): boolean {
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(value).some(([key, member]) => key === name || holdsName(member, name))
}

test('the resources that are changed below are valid at first', async () => {
  const { artifact, problems } = await compileJob(jobOf(resources()))
  expect(problems.filter(({ severity }) => severity === 'error')).toEqual([])
  expect(artifact?.secretRefs).toHaveLength(2)
})

const seeds = 2000
test(`no tree of a user makes the compile throw or brings a foreign secret into a bundle; seeds 1 to ${seeds}`, {
  timeout: 120_000,
}, async () => {
  let refused = 0
  let accepted = 0
  for (let seed = 1; seed <= seeds; seed++) {
    const random = randomFrom(seed)
    const tree = resources()
    for (let changes = 1 + Math.floor(random() * 2); changes > 0; changes--) disturb(tree, random)
    const job = jobOf(tree)
    const specs = [job.pipeline, ...job.resources].map((each) => (each as { spec?: unknown }).spec)
    const marked = holdsName(specs, '$secret') || holdsName(specs, '__proto__')
    const result = await compileJob(job).catch((error: unknown) => {
      throw new Error(`Seed ${seed} made the compile throw: ${JSON.stringify(tree)}`, { cause: error })
    })
    for (const each of [job.pipeline as KubeObject, ...job.resources]) sharedProblems(resourceOf(each))
    const { artifact, problems } = result
    const label = `seed ${seed}`
    if (marked) expect(artifact, `${label} is refused`).toBeUndefined()
    if (artifact === undefined) {
      expect(problems.filter(({ severity }) => severity === 'error').length, `${label} says why`).toBeGreaterThan(0)
      refused++
      continue
    }
    accepted++
    const { id, secretRefs, entry: _, uid: __, generation: ___, hash: ____, ...members } = fragmentOf(artifact)
    const placed = Object.values(members).flatMap((list) => list.map(([, json]) => JSON.parse(json) as unknown))
    const listed = new Set(secretRefs.map(({ key }) => key))
    for (const key of secretKeys(placed)) expect(listed.has(key), `${label}: ${key} is listed by ${id}`).toBe(true)
    expect(JSON.stringify(placed), label).not.toContain(foreignKey)
    for (const { parts } of secretRefs) {
      for (const part of parts) {
        if (typeof part === 'string') continue
        expect(['evil', 'platform'], label).toContain(part.namespace)
      }
    }
  }
  expect(refused).toBeGreaterThan(seeds / 4)
  expect(accepted).toBeGreaterThan(0)
})

const marker = { $secret: foreignKey }
describe('the marker of the operator is refused in all content of users', () => {
  const into: Readonly<Record<string, (tree: ReturnType<typeof resources>, value: Table) => void>> = {
    'spec.sources[0].config.max_line_bytes': ({ pipeline }, value) => {
      ;((pipeline['sources'] as Table[])[0] as { config: Table }).config['max_line_bytes'] = value
    },
    'spec.transforms[0].config.source': ({ pipeline }, value) => {
      ;((pipeline['transforms'] as Table[])[0] as { config: Table }).config['source'] = value
    },
    'spec.sinks[0].config.request.headers': ({ pipeline }, value) => {
      ;((pipeline['sinks'] as Table[])[0] as { config: { request: Table } }).config.request['headers'] = value
    },
    'spec.sinks[2].overrides.labels': ({ pipeline }, value) => {
      ;((pipeline['sinks'] as Table[])[2] as { overrides: Table }).overrides['labels'] = value
    },
    'spec.tests[0].input.log': ({ pipeline }, value) => {
      ;((pipeline['tests'] as Table[])[0] as { input: Table }).input['log'] = value
    },
    'spec.config.labels': ({ shared }, value) => {
      ;(shared['Sink'] as { config: Table }).config['labels'] = value
    },
    'spec.enforced.labels': ({ shared }, value) => {
      ;(shared['ClusterSink'] as { enforced: Table }).enforced['labels'] = value
    },
  }
  const shapes = { alone: marker, 'with siblings': { ...marker, x: 'y' }, nested: { x: marker } }
  const cases = Object.keys(into).flatMap((place) =>
    Object.entries(shapes).map(([shape, value]) => ({ place, shape, value })),
  )
  test.each(cases)('$place, $shape', async ({ place, shape, value }) => {
    const tree = resources()
    into[place]?.(tree, structuredClone(value))
    const { artifact, accepted, problems } = await compileJob(jobOf(tree))
    expect(artifact).toBeUndefined()
    expect(accepted).toMatchObject({ status: 'False', reason: 'ForbiddenOption' })
    expect(problems).toContainEqual(
      expect.objectContaining({
        severity: 'error',
        reason: 'ForbiddenOption',
        path: `${place}${shape === 'nested' ? '.x' : ''}.$secret`,
      }),
    )
  })
})
