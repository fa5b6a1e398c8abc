import { expect, test } from 'vitest'
import { type Agent, type AgentSpec, takes } from './agent.ts'

const agent = (spec: AgentSpec): Agent => ({
  apiVersion: 'penstock.dev/v1alpha1',
  kind: 'Agent',
  metadata: { name: 'a', namespace: 'shop' },
  spec,
})
const labels = { team: 'blue' }
const home = { 'kubernetes.io/metadata.name': 'shop' }
const matching = { matchLabels: labels }
const others = { matchLabels: { team: 'red' } }

test.each([
  ['names no Pipelines', { mode: 'Node' }, false],
  ['takes all namespaces', { mode: 'Node', pipelines: { namespaceSelector: {} } }, true],
  ['takes other namespaces', { mode: 'Node', pipelines: { namespaceSelector: others } }, false],
  ['takes its labels', { mode: 'Node', pipelines: { namespaceSelector: {}, selector: matching } }, true],
  ['takes other labels', { mode: 'Node', pipelines: { namespaceSelector: {}, selector: others } }, false],
  ['has another mode', { mode: 'Aggregator', pipelines: { namespaceSelector: {} } }, false],
] as const)('a node agent that %s', (_, spec, expected) => {
  expect(takes(agent(spec), { mode: 'Node', namespace: 'shop', labels }, home)).toBe(expected)
})

test.each([
  [{}, 'shop', true],
  [{}, 'blog', false],
  [{ namespaceSelector: {} }, 'shop', true],
  [{ namespaceSelector: {} }, 'blog', false],
  [{ namespaceSelector: others }, 'shop', false],
  [{ selector: matching }, 'shop', true],
  [{ selector: others }, 'shop', false],
] as const)('a sidecar with %j and a Pipeline of namespace %s: %s', (pipelines, namespace, expected) => {
  expect(takes(agent({ mode: 'Sidecar', pipelines }), { mode: 'Sidecar', namespace, labels }, home)).toBe(expected)
})

test('ClusterPipelines are taken by their own selector alone', () => {
  const pipeline = { mode: 'Node', namespace: undefined, labels } as const
  expect(takes(agent({ mode: 'Node', pipelines: { namespaceSelector: {} } }), pipeline, undefined)).toBe(false)
  expect(takes(agent({ mode: 'Node', pipelines: { clusterPipelines: { selector: {} } } }), pipeline, undefined)).toBe(
    true,
  )
})
