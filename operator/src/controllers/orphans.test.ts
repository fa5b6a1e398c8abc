// The sweep with an API server that is a table of objects.

import { silentLogger } from '@penstock/agent/telemetry'
import { expect, test } from 'vitest'
import type { KubeObject, ResourceType } from '../api/object.ts'
import type { OperatorSettings } from '../context.ts'
import { type KubeClient, KubeError, type ListOptions } from '../kube/client.ts'
import { sweep } from './orphans.ts'

const label = { 'app.kubernetes.io/managed-by': 'penstock' }
const owner = (uid: string) => ({
  apiVersion: 'penstock.dev/v1alpha1',
  kind: 'Agent',
  name: 'x',
  uid,
  controller: true,
})

const objects: readonly (readonly [string, KubeObject['metadata']])[] = [
  ['agents', { name: 'node', namespace: 'penstock-system', uid: 'of-node' }],
  ['secrets', { name: 'kept', namespace: 'penstock-system', labels: label, ownerReferences: [owner('of-node')] }],
  ['secrets', { name: 'left', namespace: 'penstock-system', labels: label, ownerReferences: [owner('gone')] }],
  ...['left', 'forged'].map((name): readonly [string, KubeObject['metadata']] => [
    'rolebindings',
    { name, namespace: 'penstock-system', labels: label, ownerReferences: [owner('gone')] },
  ]),
  ...(['rolebindings', 'clusterrolebindings'] as const).flatMap((plural) =>
    ['node', 'gone'].map((agent): readonly [string, KubeObject['metadata']] => [
      plural,
      {
        name: `penstock-agent-penstock-system-${agent}`,
        ...(plural === 'rolebindings' ? { namespace: 'shop' } : {}),
        labels: { ...label, 'penstock.dev/agent': agent, 'penstock.dev/agent-namespace': 'penstock-system' },
      },
    ]),
  ),
]

const kube = {
  as: () => kube,
  serves: async () => false,
  list: async (type: ResourceType, { namespace }: ListOptions) =>
    objects
      .filter(
        ([plural, metadata]) => plural === type.plural && (namespace ?? metadata.namespace) === metadata.namespace,
      )
      .map(([, metadata]) => ({ metadata: { creationTimestamp: '2026-01-01T00:00:00Z', ...metadata } })),
  delete: async (_type: ResourceType, _namespace: string | undefined, name: string) => {
    if (name === 'forged') throw new KubeError('It is forbidden.', { status: 403, reason: 'Forbidden' })
    return true
  },
} as unknown as KubeClient

test.each([
  {
    watchNamespaces: undefined,
    rolesOnly: false,
    bindings: [],
  },
  { watchNamespaces: ['shop'], rolesOnly: false, bindings: [] },
  { watchNamespaces: ['shop'], rolesOnly: true, bindings: ['RoleBinding shop/penstock-agent-penstock-system-gone'] },
])(
  'removes objects without an Agent, wherever Pipelines are watched: $watchNamespaces $rolesOnly',
  async ({ watchNamespaces, rolesOnly, bindings }) => {
    const own = { namespace: 'penstock-system', agentNamespaces: ['penstock-system'] }
    const settings = { ...own, watchNamespaces, rolesOnly } as unknown as OperatorSettings
    const deleted = await sweep({ kube, settings, logger: silentLogger }, new AbortController().signal)
    expect(deleted).toEqual(['Secret penstock-system/left', 'RoleBinding penstock-system/left', ...bindings])
  },
)
