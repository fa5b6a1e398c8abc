import { expect, test } from 'vitest'
import type { Agent, AgentSpec } from '../api/agent.ts'
import { holds } from './agent/holds.ts'
import { type JobObject, recreation, type StatefulSetObject, volumeWork } from './volumes.ts'

type Storage = NonNullable<NonNullable<AgentSpec['aggregator']>['storage']>

const hub = (storage: Storage | undefined): Agent => ({
  apiVersion: 'penstock.dev/v1alpha1',
  kind: 'Agent',
  metadata: { name: 'hub', namespace: 'shop', uid: 'hub-1' },
  spec: { mode: 'Aggregator', aggregator: storage === undefined ? {} : { storage } },
})
const drained = hub({ size: '1Gi', retention: { whenScaled: 'Drain' } })
const object = (kind: string, name: string, more: object = {}) => ({
  apiVersion: 'v1',
  kind,
  metadata: { name, namespace: 'shop', ...more },
})
const set = (replicas: number, size = '1Gi', storageClassName?: string): StatefulSetObject => ({
  ...object('StatefulSet', 'penstock-hub'),
  spec: {
    replicas,
    volumeClaimTemplates: [
      {
        spec: {
          resources: { requests: { storage: size } },
          ...(storageClassName === undefined ? {} : { storageClassName }),
        },
      },
    ],
  },
})
const claims = [0, 1, 2].map((ordinal) => object('PersistentVolumeClaim', `data-penstock-hub-${ordinal}`))
const job = (type: string): JobObject => ({
  ...object('Job', 'x'),
  status: { conditions: [{ type, status: 'True', message: 'as it is' }] },
})
const work = (seen: Partial<Parameters<typeof volumeWork>[1]>, agent = drained) => {
  const { draining, emptied, failed } = volumeWork(agent, {
    workload: set(1),
    claims,
    pods: new Set(['penstock-hub-0']),
    job: () => undefined,
    ...seen,
  })
  return {
    draining,
    emptied: emptied.map(({ metadata }) => metadata.name),
    failed: failed.map(({ claim, why }) => `${claim.metadata.name}: ${why}`),
  }
}

test('volumes of removed pods are drained, and deleted when they are empty', () => {
  expect(work({})).toEqual({ draining: [1, 2], emptied: [], failed: [] })
  const jobs: Record<string, JobObject> = {
    'penstock-hub-drain-1': job('Complete'),
    'penstock-hub-drain-2': job('Failed'),
  }
  expect(work({ job: (name) => jobs[name] })).toEqual({
    draining: [1, 2],
    emptied: ['data-penstock-hub-1'],
    failed: ['data-penstock-hub-2: as it is'],
  })
})

test.each([
  ['while a pod is ending', { pods: new Set(['penstock-hub-0', 'penstock-hub-1', 'penstock-hub-2']) }],
  ['when all replicas are there', { workload: set(3) }],
  [
    'of a set that is being deleted',
    { workload: { ...set(1), metadata: { ...set(1).metadata, deletionTimestamp: 'now' } } },
  ],
  ['without a set', { workload: undefined }],
  [
    'of others',
    {
      claims: [
        object('x', 'data-penstock-hub-2-0'),
        object('x', 'data-penstock-hubs-1'),
        object('x', 'data-penstock-hub-01'),
        object('x', 'data-penstock-hub-3', { namespace: 'blog' }),
      ],
    },
  ],
  ['that are being deleted', { claims: [object('x', 'data-penstock-hub-3', { deletionTimestamp: 'now' })] }],
])('no volume is drained %s', (_, seen) => {
  expect(work(seen)).toEqual({ draining: [], emptied: [], failed: [] })
})

test('with another policy, volumes stay unchanged', () => {
  expect(work({}, hub({ size: '1Gi' })).draining).toEqual([])
})

test.each([
  ['nothing is there yet', { size: '1Gi' }, {}, undefined],
  ['all stays', { size: '1024Mi' }, { set: set(1) }, undefined],
  ['the class is left to the cluster', { size: '1Gi' }, { set: set(1, '1Gi', 'standard') }, undefined],
  ['storage comes', { size: '1Gi' }, { deployment: object('Deployment', 'penstock-hub') }, 'switch aggregator.storage'],
  ['storage goes', undefined, { set: set(1) }, 'switch aggregator.storage'],
  [
    'it has gone already',
    undefined,
    { set: { ...set(1), metadata: { ...set(1).metadata, deletionTimestamp: 'now' } } },
    undefined,
  ],
  ['the size changes', { size: '2Gi' }, { set: set(1) }, 'storage aggregator.storage.size'],
  [
    'the class changes',
    { size: '1Gi', storageClassName: 'fast' },
    { set: set(1, '1Gi', 'standard') },
    'storage aggregator.storage.storageClassName',
  ],
])('creates the right objects again when %s', (_, storage, live, expected) => {
  const found = recreation(hub(storage), { deployment: undefined, set: undefined, ...live })
  expect(found && `${found.kind} ${found.path}`).toBe(expected)
})

test.each([
  ['1000m', '1', true],
  ['1024Mi', '1Gi', true],
  ['0.5', '500m', true],
  [1, '1', true],
  ['2', '1', false],
  ['latest', 'newest', false],
])('%s and %s of the API server are equal: %s', (wanted, live, expected) => {
  expect(holds({ limits: { cpu: live } }, { limits: { cpu: wanted } })).toBe(expected)
})
