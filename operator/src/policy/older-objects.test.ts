// Stored objects that are older than the schema of their kind. If a quantity cannot be read, the condition of its object reports the
// problem and the consequence. The test covers every quantity that a kind declares.

import { isTable } from '@penstock/agent/schema'
import { silentLogger } from '@penstock/agent/telemetry'
import { expect, test } from 'vitest'
import type { Finding } from '../api/conditions.ts'
import { agentKind, clusterSinkKind, kinds, type ResourceKind, tenantPolicyKind } from '../api/kinds.ts'
import { apiVersion, type KubeObject } from '../api/object.ts'
import type { Pipeline } from '../api/pipeline.ts'
import { limitOf, quantityPattern } from '../api/quantity.ts'
import { labelOf } from '../api/shape.ts'
import type { TenantPolicy } from '../api/tenant-policy.ts'
import { compileJob, shapeVerdict, sharedVerdict } from '../compile/job.ts'
import { resourceOf } from '../compile/resources.ts'
import { isShared, sharedPipeline } from '../compile/shared.ts'
import type { StatusContribution } from '../context.ts'
import { namespaceType } from '../kube/resource-types.ts'
import { Store } from '../kube/store.ts'
import { Policies } from './tenant-policies.ts'

type Schema = Readonly<Record<string, unknown>>

interface QuantityPlace {
  readonly kind: ResourceKind
  readonly path: readonly string[]
  readonly schema: Schema
}

/** Every quantity below a schema; maps get one key. */
function* quantitiesIn(kind: ResourceKind, schema: Schema, path: readonly string[]): Generator<QuantityPlace> {
  if (schema['pattern'] === quantityPattern) yield { kind, path, schema }
  for (const [name, below] of Object.entries((schema['properties'] ?? {}) as Record<string, Schema>))
    yield* quantitiesIn(kind, below, [...path, name])
  if (isTable(schema['additionalProperties']))
    yield* quantitiesIn(kind, schema['additionalProperties'], [...path, 'cpu'])
  if (isTable(schema['items'])) yield* quantitiesIn(kind, schema['items'], [...path, '0'])
}

const places = kinds.flatMap((kind) => [...quantitiesIn(kind, kind.spec, ['spec'])])
const nameOf = ({ kind, path }: QuantityPlace) => `${kind.kind} ${path.join('.')}`

/** A valid spec of each kind. */
function validSpec({ kind }: ResourceKind): Schema {
  if (kind === 'Agent') return { mode: 'Aggregator' }
  if (kind === 'TenantPolicy') return { namespaceSelector: {} }
  if (isShared(kind)) return { type: kind.endsWith('Sink') ? 'blackhole' : 'orchestrator_logs' }
  return { sources: [{ name: 'in', type: 'orchestrator_logs' }], sinks: [{ name: 'out', type: 'blackhole' }] }
}

function withValue(table: Schema, [key = '', ...rest]: readonly string[], value: unknown): Schema {
  return { ...table, [key]: rest.length === 0 ? value : withValue((table[key] ?? {}) as Schema, rest, value) }
}

function objectOf({ kind, path }: QuantityPlace, value: unknown): KubeObject {
  const metadata = {
    name: 'old',
    ...(kind.namespaced ? { namespace: 'shop' } : {}),
    generation: 3,
    resourceVersion: '1',
  }
  return withValue(
    { apiVersion, kind: kind.kind, metadata, spec: validSpec(kind) },
    path,
    value,
  ) as unknown as KubeObject
}

/**
 * The condition `Accepted` of an object, from the part of the operator that reports it; for Agents, see agent.test.ts.
 */
async function acceptedOf(kind: ResourceKind, object: KubeObject): Promise<Omit<Finding, 'type'>> {
  const facts = { policy: undefined, keys: {}, apiHosts: [], clusterName: '' }
  if (kind === tenantPolicyKind) return policyFinding(object as TenantPolicy)
  if (kind === agentKind) return shapeVerdict(object)
  if (!isShared(kind.kind))
    return (await compileJob({ pipeline: object as Pipeline, resources: [], ...facts })).accepted
  const pipeline = sharedPipeline(resourceOf(object))
  return sharedVerdict(await compileJob({ pipeline, resources: [object], ...facts }), object)
}

function policyFinding(policy: TenantPolicy): Finding {
  const policies = new Store<TenantPolicy>(tenantPolicyKind, [''], silentLogger)
  policies.set(policy)
  const reports: StatusContribution[] = []
  const status = {
    report: (...[, , , report]: [ResourceKind, KubeObject, string, StatusContribution]) => reports.push(report),
  }
  new Policies(policies, new Store<KubeObject>(namespaceType, [''], silentLogger)).report({ status } as never)
  return reports[0]?.findings[0] as Finding
}

test('every quantity in a spec declares what happens while it cannot be read', () => {
  expect(places.length).toBeGreaterThan(12)
  expect(new Set(places.map(({ kind }) => kind.kind)).size).toBeGreaterThanOrEqual(5)
  expect(places.filter(({ schema }) => typeof schema['x-meanwhile'] !== 'string').map(nameOf)).toEqual([])
})

test.each(places.map((place) => ({ name: nameOf(place), place })))(
  '$name: a condition reports the invalid quantity',
  async ({ place }) => {
    const { kind, path, schema } = place
    expect(await acceptedOf(kind, objectOf(place, '20Mi'))).toMatchObject({ status: 'True', message: '' })
    for (const value of ['20mi', -1, true]) {
      const { status, reason, message } = await acceptedOf(kind, objectOf(place, value))
      expect([status, reason]).toEqual(['False', 'InvalidConfig'])
      for (const part of [labelOf(path), JSON.stringify(String(value)).slice(1, -1), 'such as 500, 20Mi or 1.5G'])
        expect(message).toContain(part)
      expect(message).toContain(String(schema['x-meanwhile']).replace(/\.$/, ''))
      expect(limitOf(value as string)).toBe(0)
    }
  },
)

test('a Pipeline is rejected for the quantity of a sink that it refers to', async () => {
  const place = places.find(({ kind }) => kind === clusterSinkKind) as QuantityPlace
  const sink = withValue(objectOf(place, '1mb') as never, ['spec', 'allowedNamespaces'], { from: 'All' })
  const pipeline = {
    ...{ apiVersion, kind: 'Pipeline', metadata: { name: 'p', namespace: 'shop' } },
    spec: {
      sources: [{ name: 'in', type: 'orchestrator_logs' }],
      sinks: [{ name: 'out', ref: { kind: 'ClusterSink', name: 'old' } }],
    },
  } as Pipeline
  const resources = [sink as unknown as KubeObject]
  const { accepted, artifact } = await compileJob({
    ...{ pipeline, resources, policy: undefined, keys: {}, apiHosts: [], clusterName: '' },
  })
  expect(artifact).toBeUndefined()
  expect(accepted).toMatchObject({ status: 'False', reason: 'InvalidConfig' })
  expect(accepted.message).toContain(labelOf(place.path))
})
