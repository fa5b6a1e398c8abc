// Every field of the kind has an effect: it changes the rendered objects, is rejected with its path, or is used elsewhere, as
// listed here.

import { expect, test } from 'vitest'
import { type Agent, type AgentSpec, agentSpec } from '../api/agent.ts'
import { renderWorkloads, type WorkloadInput, workloadProblems } from './render.ts'
import { sidecarParts } from './sidecar.ts'

interface Schema {
  readonly type?: string
  readonly enum?: readonly string[]
  readonly pattern?: string
  readonly minimum?: number
  readonly properties?: Readonly<Record<string, Schema>>
  readonly additionalProperties?: Schema
  readonly items?: Schema
  readonly required?: readonly string[]
}

/** Fields used by other code than the rendering, by the beginning of the path. */
const elsewhere: Readonly<Record<string, string>> = {
  mode: 'decides what is rendered at all',
  managementState: 'controllers/agent.ts',
  pipelines: 'takes() in api/agent.ts',
  rollout: 'controllers/rollout-plan.ts',
  configDelivery: 'controllers/agent.ts: agents learn it from the manifest of their bundle',
  'node.dataDir.diskBudget': 'controllers/quota.ts',
  'aggregator.workload': 'follows from storage; a rule of the kind holds the two together',
  'sidecar.volumePolicy': 'the one policy there is',
}

const input: WorkloadInput = {
  image: 'penstock/agent:1',
  operatorUrl: 'https://operator:9443',
  operatorNamespace: 'penstock-system',
  podMonitors: true,
}
const request = { volume: 'logs', mountPath: '/logs', logPaths: [], pipelines: undefined, user: undefined }

/** Values of every field by path; for a choice, all values. */
function* fields(schema: Schema, path: readonly string[] = []): Generator<[string, unknown]> {
  const name = path.join('.')
  if (schema.properties !== undefined) {
    for (const [key, inner] of Object.entries(schema.properties)) {
      for (const [below, value] of fields(inner, [...path, key])) yield [below, value]
    }
  } else if (schema.enum !== undefined) for (const value of schema.enum) yield [name, value]
  else if (schema.type === 'boolean') for (const value of [true, false]) yield [name, value]
  else if (schema.type === 'integer') yield [name, 7]
  else if (schema.type === 'array') yield [name, [sampleOf(schema.items)]]
  else if (schema.additionalProperties !== undefined) yield [name, { 'example.org/key': '7' }]
  else if (schema.type === 'string') yield [name, schema.pattern === undefined ? '/other' : '7s']
  else if (schema.pattern !== undefined) yield [name, '7']
  else yield [name, { metadata: { annotations: { other: 'x' } }, nodeAffinity: {} }]
}
const sampleOf = (schema: Schema | undefined): unknown =>
  schema?.properties === undefined
    ? '/other'
    : Object.fromEntries(Object.keys(schema.properties).map((key) => [key, 'other']))

/** Additional fields that a field needs to have an effect. */
const companions: Readonly<Record<string, AgentSpec['aggregator']>> = {
  'aggregator.autoscaling': { autoscaling: { minReplicas: 3, maxReplicas: 9 } },
  'aggregator.storage': { storage: { size: '1Gi' } },
}

function withField(spec: AgentSpec, path: string, value: unknown): AgentSpec {
  const copy = structuredClone(spec) as Record<string, unknown>
  const keys = path.split('.')
  const last = keys.pop() as string
  let at = copy
  for (const key of keys) {
    at[key] ??= {}
    at = at[key] as Record<string, unknown>
  }
  at[last] = value
  return copy as unknown as AgentSpec
}

const agentOf = (spec: AgentSpec): Agent => ({
  apiVersion: 'penstock.dev/v1alpha1',
  kind: 'Agent',
  metadata: { name: 'a', namespace: 'shop' },
  spec,
})
const rendered = (spec: AgentSpec) =>
  JSON.stringify(
    spec.mode === 'Sidecar' ? sidecarParts(agentOf(spec), input, request) : renderWorkloads(agentOf(spec), input),
  )

const modes = { Node: 'node', Aggregator: 'aggregator', Sidecar: 'sidecar' } as const

test.each(Object.entries(modes) as [AgentSpec['mode'], string][])(
  'every field of an Agent of mode %s has an effect',
  (mode, own) => {
    const counted = new Map<string, boolean>()
    for (const [path, value] of fields(agentSpec as Schema)) {
      const [top = ''] = path.split('.')
      // A rule of the kind rejects fields of another mode.
      if (top !== own && Object.values(modes).some((name) => name === top)) continue
      if (Object.keys(elsewhere).some((start) => path === start || path.startsWith(`${start}.`))) continue
      const start = Object.keys(companions).find((name) => path.startsWith(`${name}.`))
      const base: AgentSpec = start === undefined ? { mode } : { mode, aggregator: companions[start] }
      const spec = withField(base, path, value)
      const counts =
        workloadProblems(agentOf(spec)).some(
          (problem) => problem.path.startsWith(path) || path.startsWith(problem.path),
        ) || rendered(spec) !== rendered(base)
      counted.set(path, counted.get(path) === true || counts)
    }
    expect(counted.size).toBeGreaterThan(10)
    expect([...counted].filter(([, counts]) => !counts).map(([path]) => path)).toEqual([])
  },
)

test('the fields that are marked as handled elsewhere exist there', () => {
  const paths = [...fields(agentSpec as Schema)].map(([path]) => path)
  for (const start of Object.keys(elsewhere))
    expect(
      paths.some((path) => path === start || path.startsWith(`${start}.`)),
      start,
    ).toBe(true)
})
