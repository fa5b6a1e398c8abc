// The content for a tenant's Agent: compiled by the real compiler, delivered by the real controller, and inspected in the Secrets of
// its namespace, which its editors can read.

import { silentLogger } from '@penstock/agent/telemetry'
import { Registry } from 'prom-client'
import { expect, test, vi } from 'vitest'
import type { Agent, AgentSpec } from '../api/agent.ts'
import { agentKind } from '../api/kinds.ts'
import type { KubeObject, ResourceType } from '../api/object.ts'
import type { Pipeline } from '../api/pipeline.ts'
import { compileJob } from '../compile/job.ts'
import type { StatusContribution } from '../context.ts'
import { FleetState } from '../fleet/state.ts'
import { undoAnnotation } from '../fleet/undo.ts'
import { clusterRoleBindingType, namespaceType, secretType } from '../kube/resource-types.ts'
import { Store } from '../kube/store.ts'
import { renderBundle } from '../render/bundle.ts'
import { fragmentOf } from '../render/fragment.ts'
import { digestFile, renderManifest } from '../render/manifest.ts'
import { testContext } from '../testing/context.ts'
import { labels } from '../workloads/names.ts'
import { AgentController } from './agent.ts'
import { rolloutAnnotation } from './agent-secrets.ts'
import { Artifacts } from './artifacts.ts'

const apiVersion = 'penstock.dev/v1alpha1'
const values = { shop: 'QUEUE-OF-SHOP', system: 'TOKEN-OF-THE-PLATFORM', evil: 'OWN-VALUE' } as const
const secretRef = (namespace?: string) => ({ valueFrom: { secretKeyRef: { name: 'creds', key: 'token', namespace } } })
const sinkOf = (token: unknown) => ({
  type: 'log_aggregator',
  config: {
    endpoint: 'https://loki.example.com',
    labels: { a: 'b' },
    encoding: { codec: 'json' },
    auth: { strategy: 'bearer', token },
  },
})
const clusterSink = (name: string, more: object, token: unknown = secretRef('system')) => ({
  ...{ apiVersion, kind: 'ClusterSink', metadata: { name } },
  spec: { ...sinkOf(token), allowedNamespaces: { from: 'All' }, ...more },
})
const shared = [
  clusterSink('closed', {}),
  clusterSink('lent', { allowedAgents: 'Tenant' }),
  clusterSink('plain', {}, 'WRITTEN-OUT'),
]

async function compiled(namespace: string | undefined, name: string, sink: object) {
  const pipeline = {
    ...{ apiVersion, kind: namespace === undefined ? 'ClusterPipeline' : 'Pipeline' },
    metadata: { name, uid: `${namespace}-${name}`, generation: 1, ...(namespace === undefined ? {} : { namespace }) },
    spec: {
      mode: 'Aggregator',
      sources: [{ name: 'in', type: 'demo_logs', config: { format: 'json' } }],
      sinks: [{ name: 'out', ...sink }],
    },
  } as unknown as Pipeline
  const keys = Object.fromEntries(Object.keys(values).map((each) => [`Secret ${each}/creds`, ['token']]))
  const job = {
    apiHosts: [],
    clusterName: '',
    keys,
    pipeline,
    policy: { namespaceSelector: {}, allowedSources: ['*'] },
  }
  const result = await compileJob({ ...job, resources: shared as unknown as KubeObject[] })
  expect(result.accepted.message).toBe('')
  if (result.artifact === undefined) throw new Error('It was not accepted.')
  return result.artifact
}

const everyPipeline = () =>
  Promise.all([
    compiled('shop', 'orders', sinkOf(secretRef())),
    compiled('evil', 'own', sinkOf(secretRef())),
    compiled('evil', 'closed', { ref: { kind: 'ClusterSink', name: 'closed' } }),
    compiled('evil', 'plain', { ref: { kind: 'ClusterSink', name: 'plain' } }),
    compiled(undefined, 'audit', sinkOf(secretRef('system'))),
  ])

/** An operator with an Agent in a namespace, and with Secrets left by another operator. */
async function started(
  namespace: string,
  spec: Partial<AgentSpec>,
  left: Readonly<Record<string, KubeObject>> = {},
  annotations = {},
) {
  const stack = new AsyncDisposableStack()
  const written = new Map<string, KubeObject>(Object.entries(left))
  for (const [where, value] of Object.entries(values)) {
    const data = { token: Buffer.from(value).toString('base64') }
    written.set(`Secret ${where}/creds`, {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'creds', namespace: where, resourceVersion: '1' },
      data,
    } as KubeObject)
  }
  let version = 1
  const deleted: string[] = []
  const kube = {
    as: () => ({
      get: async ({ kind }: ResourceType, where: string, name: string) => written.get(`${kind} ${where}/${name}`),
      apply: async (_: ResourceType, object: KubeObject) => {
        const applied = { ...object, metadata: { ...object.metadata, resourceVersion: String(++version) } }
        written.set(`${object.kind} ${object.metadata.namespace}/${object.metadata.name}`, applied)
        return applied
      },
      serves: async () => false,
      delete: async ({ kind }: ResourceType, where: string | undefined, name: string) => {
        deleted.push(`${kind} ${where}/${name}`)
        return true
      },
    }),
  }
  const stores = new Map<string, Store<KubeObject>>()
  const cache = (type: ResourceType, options: object = {}) => {
    const key = `${type.kind} ${JSON.stringify(options)}`
    const known = stores.get(key) ?? new Store<KubeObject>(type, [''], silentLogger)
    stores.set(key, known)
    return known
  }
  const agent: Agent = {
    ...{ apiVersion, kind: 'Agent' },
    metadata: { name: 'hub', namespace, uid: 'a', generation: 1, resourceVersion: '1', annotations },
    spec: { mode: 'Aggregator', pipelines: { namespaceSelector: {}, clusterPipelines: { selector: {} } }, ...spec },
  }
  cache(agentKind).set(agent as KubeObject)
  for (const name of Object.keys(values)) {
    cache(namespaceType, { metadataOnly: true }).set({
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name, labels: {}, resourceVersion: '1' },
    })
  }
  for (const [key, object] of written)
    if (key.startsWith('Secret ')) cache(secretType, { metadataOnly: true }).set(object)
  const ending = new AbortController()
  const artifacts = new Artifacts()
  const reports: StatusContribution[] = []
  const context = testContext({
    ...{ kube, logger: silentLogger, metrics: new Registry(), signal: ending.signal, artifacts },
    ...{
      status: { report: (_: unknown, __: unknown, ___: unknown, report: StatusContribution) => reports.push(report) },
    },
    ...{ events: { record: () => {} } },
    caches: { cache, synced: async () => {} },
    settings: {
      namespace: 'system',
      agentNamespaces: ['nodes'],
      secretsMode: 'All',
      rolesOnly: false,
      heartbeatUrl: 'https://operator:9443',
    },
  })
  const fleet = new FleetState()
  const controller = stack.use(new AgentController(context, fleet, {}))
  stack.defer(() => ending.abort())
  await controller.start()
  const conditionIn = (type: string) => reports.at(-1)?.findings.find((finding) => finding.type === type)
  return {
    ...{ fleet, artifacts, written, conditionIn, cache, deleted, agent },
    /** All values in the Secrets of the Agent. */
    values: () => {
      const found: string[] = []
      for (const [key, object] of written) {
        if (!key.startsWith(`Secret ${namespace}/penstock-hub-sec-`)) continue
        for (const value of Object.values((object as { data?: Record<string, string> }).data ?? {}))
          found.push(Buffer.from(value, 'base64').toString())
      }
      return found.sort()
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

const waited = { timeout: 30_000 }

test('an Agent of a tenant gets no value of another namespace, for any selection, and reports the reason', async () => {
  await using operator = await started('evil', {})
  for (const artifact of await everyPipeline()) operator.artifacts.set(artifact)
  operator.artifacts.markComplete()
  await vi.waitFor(() => expect(operator.values()).toEqual([values.evil]), waited)
  expect([...(operator.fleet.get('evil/hub')?.selected.keys() ?? [])]).toEqual(['evil/own'])
  await vi.waitFor(() => expect(operator.conditionIn('Accepted')?.status).toBe('True'), waited)
  expect(operator.conditionIn('Narrowed')?.message).toBe(
    '`spec.pipelines.clusterPipelines` has no effect in namespace "evil". It receives only Pipelines of namespace "evil". Agents of these namespaces may receive others: nodes, system. Create it there, or add "evil" to --agent-namespaces (value `agentNamespaces` of the chart).',
  )
})

test('a condition of the Agent names a Pipeline that uses objects its owner does not share', async () => {
  await using operator = await started('evil', {
    pipelines: {
      namespaceSelector: { matchExpressions: [{ key: 'kubernetes.io/metadata.name', operator: 'DoesNotExist' }] },
    },
    mode: 'Sidecar',
  })
  const closed = await compiled('evil', 'closed', { ref: { kind: 'ClusterSink', name: 'closed' } })
  operator.artifacts.set({ ...closed, mode: 'Sidecar' })
  operator.artifacts.markComplete()
  await vi.waitFor(
    () =>
      expect(operator.conditionIn('Narrowed')?.message).toBe(
        'Pipeline evil/closed does not run here: it needs Secret "creds" of namespace "system", whose values would be copied to namespace "evil". Run it with an Agent of the platform, or have the owner of the ClusterSink or ClusterSource set `allowedAgents: Tenant`.',
      ),
    waited,
  )
  expect(operator.values()).toEqual([])
})

test.each([
  { where: 'evil', expected: [values.system] },
  { where: 'nodes', expected: [values.system, values.system] },
])('delivers shared objects of an owner to an Agent in namespace $where', async ({ where, expected }) => {
  await using operator = await started(where, {})
  operator.artifacts.set(await compiled('evil', 'lent', { ref: { kind: 'ClusterSink', name: 'lent' } }))
  operator.artifacts.set(await compiled('evil', 'closed', { ref: { kind: 'ClusterSink', name: 'closed' } }))
  operator.artifacts.markComplete()
  await vi.waitFor(() => expect(operator.values()).toEqual(expected), waited)
})

test.each([{ undone: false }, { undone: true }])(
  'removes objects that an earlier operator gave to the Agent of a tenant, and does not return to it (requested: $undone)',
  async ({ undone }) => {
    const [orders, own] = await everyPipeline()
    if (orders === undefined || own === undefined) throw new Error('Both are compiled.')
    const { rev, shards } = await renderBundle(
      [orders, own].map((artifact) => ({ fragment: fragmentOf(artifact), createdAt: '' })),
    )
    const [key = ''] = orders.secretRefs.map((ref) => ref.key)
    const of = new Map([[key, Buffer.from(values.shop)]])
    const config = new Map([
      ['manifest.json', renderManifest({ rev, shards }, undefined, digestFile(of), {})],
      ...shards.map((shard) => [shard.key, shard.data] as const),
    ])
    const secret = (name: string, data: ReadonlyMap<string, Uint8Array>): KubeObject =>
      ({
        ...{ apiVersion: 'v1', kind: 'Secret' },
        metadata: {
          ...{ name, namespace: 'evil', resourceVersion: '1' },
          labels: { [labels.managedBy]: 'penstock', [labels.agent]: 'hub' },
          annotations: {
            [rolloutAnnotation]: JSON.stringify({
              rolledBack: {},
              history: [{ revision: rev, at: '2026-01-01T00:00:00Z', result: 'RolledOut' }],
            }),
          },
        },
        data: Object.fromEntries([...data].map(([id, bytes]) => [id, Buffer.from(bytes).toString('base64')])),
      }) as KubeObject
    const left = {
      'Secret evil/penstock-hub-cfg-0': secret('penstock-hub-cfg-0', config),
      'Secret evil/penstock-hub-sec-0': secret('penstock-hub-sec-0', of),
    }
    await using operator = await started(
      'evil',
      {},
      left,
      undone ? { [undoAnnotation]: `${rev} 2026-01-02T00:00:00Z` } : {},
    )
    expect(operator.values()).toEqual([values.shop])
    operator.artifacts.set(orders)
    operator.artifacts.set(own)
    operator.artifacts.markComplete()
    await vi.waitFor(() => expect(operator.values()).toEqual([values.evil]), waited)
    const config0 = operator.written.get('Secret evil/penstock-hub-cfg-0') as
      | { data?: Record<string, string> }
      | undefined
    expect(Object.keys(config0?.data ?? {}).filter((id) => shards.some((shard) => shard.key === id))).toEqual([])
  },
)

const own = { [labels.managedBy]: 'penstock', [labels.agent]: 'hub' }
const foreigners: readonly (readonly [
  string,
  KubeObject['metadata']['labels'],
  KubeObject['metadata']['ownerReferences'],
])[] = [
  ['without labels', undefined, undefined],
  ['of another manager', { ...own, [labels.managedBy]: 'Helm' }, undefined],
  ['of another Agent', { ...own, [labels.agent]: 'bu' }, undefined],
  ['of an Agent of another namespace', { ...own, [labels.agentNamespace]: 'shop' }, undefined],
  [
    'that another object controls',
    own,
    [{ apiVersion: 'apps/v1', kind: 'Deployment', name: 'x', uid: 'x', controller: true }],
  ],
]

test.each(
  [
    'Secret penstock-hub-cfg-0',
    'Secret penstock-hub-sec-3',
    'ServiceAccount penstock-hub',
    'Service penstock-hub',
    'Deployment penstock-hub',
  ].flatMap((object) => foreigners.map(([what, its, owners]) => ({ object, what, its, owners }))),
)('$object $what is left unchanged', async ({ object, its, owners }) => {
  const [kind = '', name = ''] = object.split(' ')
  const key = `${kind} nodes/${name}`
  const metadata = {
    name,
    namespace: 'nodes',
    resourceVersion: '1',
    ...(its === undefined ? {} : { labels: its }),
    ...(owners === undefined ? {} : { ownerReferences: owners }),
  }
  const foreign: KubeObject = { apiVersion: 'v1', kind, metadata }
  await using operator = await started('nodes', {}, { [key]: foreign })
  operator.artifacts.set(await compiled('shop', 'orders', sinkOf(secretRef())))
  operator.artifacts.markComplete()
  await vi.waitFor(() => expect(operator.conditionIn('Accepted')?.reason).toBe('NameConflict'), waited)
  expect(operator.conditionIn('Accepted')?.message).toMatch(`${key} exists but does not belong to Penstock`)
  expect(operator.written.get(key)).toBe(foreign)
})

test('the bindings contain the accounts of the platform, and own bindings of an earlier release are removed', async () => {
  await using operator = await started('nodes', {})
  const bindings = operator.cache(clusterRoleBindingType, { labelSelector: labels.agent })
  const binding = (name: string, its: Record<string, string>): KubeObject => ({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name, uid: name, labels: its, resourceVersion: '1' },
  })
  bindings.set(binding('penstock-agent-nodes-hub', { ...own, [labels.agentNamespace]: 'nodes' }))
  bindings.set(
    binding('penstock-agent-nodes-other', { ...own, [labels.managedBy]: 'somebody', [labels.agentNamespace]: 'nodes' }),
  )
  operator.artifacts.markComplete()
  const subjects = (name: string) =>
    (operator.written.get(`ClusterRoleBinding undefined/${name}`) as { subjects?: unknown } | undefined)?.subjects
  await vi.waitFor(
    () =>
      expect(subjects('penstock-agent-events')).toEqual([
        { kind: 'ServiceAccount', name: 'penstock-hub', namespace: 'nodes' },
      ]),
    waited,
  )
  expect(subjects('penstock-agent-aggregator')).toEqual(subjects('penstock-agent-events'))
  expect(subjects('penstock-agent-node')).toBeUndefined()
  await vi.waitFor(
    () => expect(operator.deleted).toContain('ClusterRoleBinding undefined/penstock-agent-nodes-hub'),
    waited,
  )
  operator.cache(agentKind).remove(operator.agent as KubeObject)
  await vi.waitFor(() => expect(subjects('penstock-agent-events')).toEqual([]), waited)
  expect(new Set(operator.deleted)).toEqual(new Set(['ClusterRoleBinding undefined/penstock-agent-nodes-hub']))
})

test('a foreign ClusterRoleBinding with a name of ours stays unchanged, and a condition reports it', async () => {
  const name = 'penstock-agent-aggregator'
  const foreign: KubeObject = {
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'ClusterRoleBinding',
    metadata: { name },
  }
  await using operator = await started('nodes', {}, { [`ClusterRoleBinding undefined/${name}`]: foreign })
  operator.artifacts.markComplete()
  await vi.waitFor(
    () => expect(operator.conditionIn('Accepted')?.message).toMatch(`ClusterRoleBinding ${name} exists`),
    waited,
  )
  expect(operator.written.get(`ClusterRoleBinding undefined/${name}`)).toBe(foreign)
})
