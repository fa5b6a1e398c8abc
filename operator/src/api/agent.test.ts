import { expect, test } from 'vitest'
import { type Agent, type AgentMode, type AgentSpec, excessOf, takes } from './agent.ts'

const agent = (spec: AgentSpec): Agent => ({
  apiVersion: 'penstock.dev/v1alpha1',
  kind: 'Agent',
  metadata: { name: 'a', namespace: 'shop' },
  spec,
})
const platform = { namespace: 'system', agentNamespaces: ['shop'] }
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
  expect(takes(agent(spec), { mode: 'Node', namespace: 'shop', labels }, home, platform)).toBe(expected)
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
  expect(takes(agent({ mode: 'Sidecar', pipelines }), { mode: 'Sidecar', namespace, labels }, home, platform)).toBe(
    expected,
  )
})

test('only its own selector selects ClusterPipelines', () => {
  const pipeline = { mode: 'Node', namespace: undefined, labels } as const
  expect(takes(agent({ mode: 'Node', pipelines: { namespaceSelector: {} } }), pipeline, undefined, platform)).toBe(
    false,
  )
  expect(
    takes(agent({ mode: 'Node', pipelines: { clusterPipelines: { selector: {} } } }), pipeline, undefined, platform),
  ).toBe(true)
})

const modes: readonly AgentMode[] = ['Node', 'Aggregator', 'Sidecar']
const everything: AgentSpec['pipelines'] = { namespaceSelector: {}, clusterPipelines: { selector: {} } }
const oneValue = (namespace: string, kind = 'Secret') => ({ key: 'k', parts: ['x', { kind, namespace, name: 's' }] })

/** The content that a Pipeline can have and refer to, for each mode. */
const carried = modes.flatMap((mode) =>
  [undefined, 'evil', 'shop', 'system'].flatMap((namespace) =>
    [[], [oneValue('evil')], [oneValue('shop')], [oneValue('evil'), oneValue('system', 'ConfigMap')]].flatMap(
      (secretRefs) =>
        [undefined, ['k'], ['other']].flatMap((lent) =>
          [undefined, ['ClusterSink loki']].map((withheld) => ({
            mode,
            namespace,
            labels,
            secretRefs,
            lent,
            withheld,
          })),
        ),
    ),
  ),
)

test.each(modes)(
  'outside the platform, an Agent of mode %s only takes objects of its namespace, or shared with it',
  (mode) => {
    const evil = { metadata: { name: 'a', namespace: 'evil' }, spec: { mode, pipelines: everything } }
    const taken = carried.filter((pipeline) => takes(evil, pipeline, home, platform))
    expect(taken.length > 0).toBe(mode !== 'Node')
    for (const { namespace, secretRefs, lent, withheld } of taken) {
      const isForeign = secretRefs.some(({ parts }) =>
        parts.some((part) => typeof part !== 'string' && part.namespace !== 'evil'),
      )
      expect([namespace, withheld, isForeign && lent?.includes('k') !== true]).toEqual(['evil', undefined, false])
    }
    expect(taken.some(({ lent, secretRefs }) => lent?.includes('k') === true && secretRefs.length === 2)).toBe(
      mode !== 'Node',
    )
  },
)

test.each(modes)('a platform Agent of mode %s takes everything that it selects', (mode) => {
  const ours = { metadata: { name: 'a', namespace: 'shop' }, spec: { mode, pipelines: everything } }
  const expected = carried.filter(
    (each) => each.mode === mode && (mode !== 'Sidecar' || [undefined, 'shop'].includes(each.namespace)),
  )
  expect(carried.filter((pipeline) => takes(ours, pipeline, home, platform))).toEqual(expected)
})

test.each([
  ['Aggregator', everything, 'pipelines.clusterPipelines'],
  ['Sidecar', everything, 'pipelines.clusterPipelines'],
  ['Aggregator', { namespaceSelector: {} }, 'pipelines.namespaceSelector'],
  ['Aggregator', { namespaceSelector: others }, undefined],
  ['Sidecar', { namespaceSelector: {} }, undefined],
  ['Aggregator', {}, undefined],
] as const)('outside the platform, an Agent of mode %s with %j exceeds its rights at %s', (mode, pipelines, path) => {
  const asking = (namespace: string) =>
    excessOf({ metadata: { name: 'a', namespace }, spec: { mode, pipelines } }, [home], platform)
  expect(asking('evil')?.path).toBe(path)
  expect(asking('evil')?.help ?? '--agent-namespaces').toContain('--agent-namespaces')
  expect(asking('system')).toBeUndefined()
})
