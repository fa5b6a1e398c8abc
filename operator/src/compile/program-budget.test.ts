// The budget of programs, from a TenantPolicy to the agent's configuration.

import type { BundlePipeline } from '@penstock/agent/bundle'
import { maxBudget } from '@penstock/agent/schema'
import { expect, test } from 'vitest'
import type { TenantPolicySpec } from '../api/tenant-policy.ts'
import { fragmentOf } from '../render/fragment.ts'
import { compileJob } from './job.ts'

async function entryWith(kind: 'Pipeline' | 'ClusterPipeline', programBudget: TenantPolicySpec['programBudget']) {
  const { artifact, problems } = await compileJob({
    pipeline: {
      apiVersion: 'penstock.dev/v1alpha1',
      kind,
      metadata: { name: 'p', uid: 'u', generation: 1, ...(kind === 'Pipeline' ? { namespace: 'shop' } : {}) },
      spec: {
        sources: [{ name: 'app', type: 'orchestrator_logs' }],
        transforms: [{ name: 'change', type: 'remap', config: { source: '.a = 1' } }],
        sinks: [{ name: 'out', type: 'blackhole' }],
      },
    },
    resources: [],
    policy: { namespaceSelector: {}, ...(programBudget === undefined ? {} : { programBudget }) },
    apiHosts: [],
    clusterName: 'c',
    keys: {},
  })
  if (artifact === undefined) throw new TypeError(JSON.stringify(problems))
  return JSON.parse(fragmentOf(artifact).entry) as BundlePipeline
}

test.each([
  [
    { turnsPerEvent: 200_000, bytesPerEvent: '16Mi' },
    { turns: 200_000, bytes: 16 * 1024 * 1024 },
  ],
  [{ turnsPerEvent: 5 }, { turns: 5 }],
  [{ bytesPerEvent: '1000Gi' }, { bytes: maxBudget.bytes }],
  [{}, undefined],
  [undefined, undefined],
])('a policy with the budget %j gives its Pipelines %j', async (given, expected) => {
  expect((await entryWith('Pipeline', given)).programBudget).toEqual(expected)
})

test('a policy never gives a ClusterPipeline a budget', async () => {
  expect((await entryWith('ClusterPipeline', { turnsPerEvent: 5 })).programBudget).toBeUndefined()
})
