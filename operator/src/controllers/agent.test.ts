// The content that an operator offers to agents after its start. The test fills stores that serve as caches; the Secrets come
// from another process.

import { bucketOf, type HeartbeatBody } from '@penstock/agent/bundle'
import { silentLogger } from '@penstock/agent/telemetry'
import { Registry } from 'prom-client'
import { expect, test, vi } from 'vitest'
import type { Agent } from '../api/agent.ts'
import { agentKind } from '../api/kinds.ts'
import type { KubeObject, ResourceType } from '../api/object.ts'
import type { Artifact } from '../compile/artifact.ts'
import type { StatusContribution, StatusWriter } from '../context.ts'
import { FleetState, type RolloutRecord } from '../fleet/state.ts'
import { KubeError } from '../kube/client.ts'
import { monotonicNow } from '../kube/clock.ts'
import { daemonSetType, podType, secretType } from '../kube/resource-types.ts'
import { Store } from '../kube/store.ts'
import { renderBundle } from '../render/bundle.ts'
import { type Fragment, fragmentOf } from '../render/fragment.ts'
import { digestFile, renderManifest } from '../render/manifest.ts'
import { testContext } from '../testing/context.ts'
import { labels } from '../workloads/names.ts'
import { troubleOf } from './agent/available.ts'
import { AgentController } from './agent.ts'
import { rolloutAnnotation } from './agent-secrets.ts'
import { Artifacts } from './artifacts.ts'
import { maxWaitMs } from './rollout-judge.ts'

/** The clock of these tests, ahead of the real one by an offset. */
const clock = { aheadMs: 0, now: () => monotonicNow() + clock.aheadMs }

const fragment: Fragment = {
  ...{ id: 'shop/p', uid: 'u', generation: 1, hash: 'sha256:1', sources: [], transforms: [] },
  entry: JSON.stringify({ uid: 'u', generation: 1, hash: 'sha256:1', secrets: [{ key: 'k', parts: [] }] }),
  subscriptions: [['shop/p/app', JSON.stringify({ cursor: 'u/app', out: 'shop/p/app', namespaces: ['shop'] })]],
  sinks: [['shop/p/out', '{"inputs":["shop/p/app"],"type":"blackhole"}']],
  secretRefs: [{ key: 'k', parts: [] }],
}

/** The trial of another version that the predecessor has begun. */
interface Trial {
  readonly fragment: Fragment
  readonly percent: number
  readonly record: RolloutRecord
}

interface Predecessor {
  readonly stable?: Fragment
  readonly trial?: Trial
  /** How long the process has existed before it leads. */
  readonly idleMs?: number
}

/** An operator that has not compiled all Pipelines yet, with the Secrets of its predecessor. */
async function started(
  configDelivery: 'Stream' | 'Mounted',
  values: Readonly<Record<string, string>>,
  ownSpec: Partial<Agent['spec']> = {},
  { stable = fragment, trial, idleMs = 0 }: Predecessor = {},
) {
  const stack = new AsyncDisposableStack()
  const { rev, shards } = await renderBundle([{ fragment: stable, createdAt: '' }])
  const tried = trial && { ...trial, ...(await renderBundle([{ fragment: trial.fragment, createdAt: '' }])), salt: '' }
  const digests = digestFile(new Map([['k', Buffer.from('of the shop')]]))
  const secrets: Record<string, Readonly<Record<string, Uint8Array | string>>> = {
    'penstock-node-cfg-0': {
      'manifest.json': renderManifest({ rev, shards }, tried, digests, { delivery: configDelivery }),
      ...Object.fromEntries([...shards, ...(tried?.shards ?? [])].map(({ key, data }) => [key, data])),
    },
    'penstock-node-sec-0': values,
  }
  const asked: string[] = []
  /** Names of Secrets that the API server cannot decrypt. */
  const unreadable = new Set<string>()
  const written = new Map<string, KubeObject>()
  const artifacts = new Artifacts()
  let version = 1
  const kube = {
    as: () => ({
      get: async ({ kind }: ResourceType, namespace: string, name: string) => {
        asked.push(`${kind} ${name}`)
        if (unreadable.has(name)) throw new KubeError('cannot decrypt it', { status: 500, reason: 'InternalError' })
        if (written.has(`${kind} ${name}`)) return written.get(`${kind} ${name}`)
        const found = kind === 'Secret' ? secrets[name] : undefined
        if (found === undefined) return undefined
        const data = Object.entries(found).map(([key, value]) => [key, Buffer.from(value).toString('base64')])
        const own = { [labels.managedBy]: 'penstock', [labels.agent]: 'node' }
        const annotations = trial === undefined ? {} : { [rolloutAnnotation]: JSON.stringify(trial.record) }
        const metadata = { name, namespace, resourceVersion: '1', labels: own, annotations }
        return { metadata, data: Object.fromEntries(data) }
      },
      apply: async (type: ResourceType, object: KubeObject) => {
        const { namespace, name } = object.metadata
        const cached = [...stores.values()].find((store) => store.type === type)?.get(namespace, name)
        const resourceVersion = String(++version)
        const next = { ...cached, ...object, metadata: { ...object.metadata, resourceVersion } }
        written.set(`${object.kind} ${name}`, next)
        return next
      },
      serves: async () => false,
    }),
  }
  const stores = new Map<string, Store<KubeObject>>()
  const cache = (type: ResourceType, options: object = {}) => {
    const key = `${type.kind} ${JSON.stringify(options)}`
    const known = stores.get(key) ?? new Store<KubeObject>(type, [''], silentLogger)
    stores.set(key, known)
    return known
  }
  const agent = {
    ...{ apiVersion: 'penstock.dev/v1alpha1', kind: 'Agent' },
    metadata: { name: 'node', namespace: 'system', uid: 'a', generation: 1, resourceVersion: '1' },
    spec: { mode: 'Node', configDelivery, pipelines: { clusterPipelines: { selector: {} } }, ...ownSpec },
  } satisfies Agent
  cache(agentKind).set(agent as KubeObject)
  const ending = new AbortController()
  const reports: StatusContribution[] = []
  const status = { report: (...[, , , report]: Parameters<StatusWriter['report']>) => void reports.push(report) }
  const context = testContext({
    ...{ kube, logger: silentLogger, metrics: new Registry(), signal: ending.signal, artifacts },
    ...{ status, events: { record: () => {} } },
    caches: { cache, synced: async () => {} },
    settings: { namespace: 'system', agentNamespaces: ['system'], secretsMode: 'All', rolesOnly: false },
  })
  const fleet = new FleetState(undefined, clock.now)
  clock.aheadMs += idleMs
  const controller = stack.use(new AgentController(context, fleet, {}))
  stack.defer(() => ending.abort())
  await controller.start()
  return {
    ...{ fleet, asked, unreadable, written, rev, cache, artifacts, reports, metrics: context.metrics },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
}

test('agents get the current configuration before all Pipelines are compiled again', async () => {
  await using operator = await started('Stream', { k: 'of the shop' })
  await vi.waitFor(() => expect(operator.fleet.offered('system/node')).toBeDefined(), 30_000)
  const { stable, candidate, values, account } = operator.fleet.offered('system/node') ?? {}
  expect([stable?.rev, candidate, account]).toEqual([operator.rev, undefined, 'penstock-node'])
  expect([...(stable?.fragments.keys() ?? [])]).toEqual(['shop/p'])
  expect(values?.get('k')?.toString()).toBe('of the shop')
})

test.each([
  { what: 'a value of it is gone', configDelivery: 'Stream', values: {} },
  { what: 'agents look at what is mounted', configDelivery: 'Mounted', values: { k: 'of the shop' } },
] as const)('agents get nothing before that if $what', async ({ configDelivery, values }) => {
  await using operator = await started(configDelivery, values)
  const pass = /^controller_runtime_reconcile_total\{controller="agent",result="requeue_after"\} [1-9]/m
  await vi.waitFor(async () => expect(await operator.metrics.metrics()).toMatch(pass), 30_000)
  expect(operator.fleet.offered('system/node')).toBeUndefined()
  expect(operator.asked.includes('Secret penstock-node-sec-0')).toBe(configDelivery === 'Stream')
})

const none = { sources: {}, transforms: {}, sinks: {}, secretRefs: [], sourceTypes: [], labels: {} }
const changed: Artifact = {
  ...{ id: '_cluster/p', kind: 'ClusterPipeline', namespace: undefined, name: 'p', uid: 'c', generation: 1 },
  ...{ createdAt: '', hash: 'sha256:2', mode: 'Node', hub: { subscriptions: [] }, diskBufferBytes: 0, ...none },
  tenancy: { restricted: false, denyCidrs: [], allowHosts: [], cpuShare: 100 },
}

test('a replica that begins to lead takes no agent for lost that has not reported to it yet', async () => {
  const nodes = ['n0', 'n1', 'n2', 'n3']
  const [minBucket = 0] = nodes.map((node) => bucketOf('', node)).sort((left, right) => left - right)
  const at = (secondsAgo: number) => new Date(monotonicNow() + 3_600_000 - secondsAgo * 1000).toISOString()
  // Its canary has been watched for long enough, by an operator that no longer exists.
  const record = { rolledBack: {}, history: [], step: 0, begun: at(90), since: at(61) }
  const trial = { fragment: fragmentOf(changed), percent: minBucket + 1, record }
  const stable = fragmentOf({ ...changed, hash: 'sha256:1' })
  await using operator = await started('Mounted', {}, {}, { stable, trial, idleMs: 3_600_000 })
  const pods = nodes.map((name) => ({
    ...{ apiVersion: 'v1', kind: 'Pod', spec: { nodeName: name } },
    metadata: {
      ...{ name, namespace: 'system', uid: name, labels: { [labels.agent]: 'node' }, resourceVersion: '1' },
      creationTimestamp: '2026-01-01T00:00:00Z',
    },
  }))
  operator.cache(podType, { labelSelector: labels.agent }).replace(pods as KubeObject[], '', () => true)
  operator.artifacts.set(changed)
  operator.artifacts.markComplete()
  await vi.waitFor(() => expect(operator.fleet.get('system/node')?.why).toMatch(/./), 30_000)
  const { candidate, why, record: now } = operator.fleet.get('system/node') ?? {}
  expect([candidate?.percent, now?.step, why]).toEqual([minBucket + 1, 0, 'It waits for 1 agent to load it.'])
})

test('reverts a change if the agents that received it only wait', async () => {
  await using operator = await started('Mounted', { k: 'of the shop' })
  const { fleet, artifacts } = operator
  const metadata = { name: 'pod', namespace: 'system', uid: 'pod-uid', labels: { [labels.agent]: 'node' } }
  const pod = { ...{ apiVersion: 'v1', kind: 'Pod' }, metadata: { ...metadata, resourceVersion: '1' } }
  operator.cache(podType, { labelSelector: labels.agent }).replace([pod as KubeObject], '', () => true)
  const key = 'system/node'
  const heartbeat: HeartbeatBody = {
    ...{ schema: 1, node: 'n', pod: 'pod', namespace: 'system', version: '1', startedAt: 'then', candidate: false },
    ...{ secretsEpoch: '', failures: [], failed: [], pipelines: {}, revision: operator.rev },
    ...{ state: 'Waiting', reason: 'A value is not there.' },
  }
  const say = () => {
    fleet.hear(key, { pod: 'pod', podUid: 'pod-uid', node: 'n' }, heartbeat, clock.now())
    fleet.changed(key)
  }
  artifacts.set(changed)
  artifacts.markComplete()
  await vi.waitFor(() => expect(fleet.get(key)?.candidate).toBeDefined(), 30_000)
  say()
  await vi.waitFor(() => expect(fleet.get(key)?.why).toBe('It waits for 1 agent to load it.'), 30_000)
  expect(fleet.get(key)?.record.rolledBack).toEqual({})

  await vi.waitFor(() => {
    clock.aheadMs += maxWaitMs // also since the last pass, which may have been before the report
    say()
    expect(fleet.get(key)?.record.rolledBack).toHaveProperty('_cluster/p')
  }, 30_000)
  expect(fleet.get(key)?.record.rolledBack['_cluster/p']?.why).toContain('has waited for more than 2 minutes')
  await vi.waitFor(() => expect(fleet.get(key)?.why).toBe('Up to date.'), 30_000)
})

test('one Secret that the API server cannot return keeps no other Pipeline back, and agents keep its last value', async () => {
  await using operator = await started('Stream', { k: 'of the shop' })
  const { fleet, artifacts, unreadable } = operator
  const part = { kind: 'Secret', namespace: 'shop', name: 'creds', key: 'password' } as const
  const secret = {
    ...{ apiVersion: 'v1', kind: 'Secret' },
    metadata: { name: 'creds', namespace: 'shop', resourceVersion: '7' },
  }
  operator.cache(secretType, { metadataOnly: true }).replace([secret], '', () => true)
  unreadable.add('creds')
  artifacts.set({ ...changed, id: '_cluster/known', name: 'known', secretRefs: [{ key: 'k', parts: [part] }] })
  artifacts.set({ ...changed, id: '_cluster/new', name: 'new', secretRefs: [{ key: 'l', parts: [part] }] })
  artifacts.set(changed)
  // This process could not determine its version yet.
  artifacts.setUnknown('shop/p')
  artifacts.markComplete()
  const offered = () => fleet.offered('system/node')
  await vi.waitFor(() => expect([...(offered()?.stable?.fragments.keys() ?? [])]).toContain('_cluster/p'), 30_000)
  expect([...(offered()?.stable?.fragments.keys() ?? [])].sort()).toEqual(['_cluster/known', '_cluster/p', 'shop/p'])
  expect(offered()?.values.get('k')?.toString()).toBe('of the shop')
  expect(fleet.get('system/node')?.evicted.get('_cluster/new')).toMatch(/does not let the operator read a value/)
  artifacts.remove('shop/p')
  await vi.waitFor(() => expect([...(offered()?.stable?.fragments.keys() ?? [])]).not.toContain('shop/p'), 30_000)
})

test('with more nodes in a DaemonSet, its agents may wait longer at their start; a missing count changes nothing', async () => {
  await using operator = await started('Mounted', { k: 'of the shop' })
  const daemonSets = operator.cache(daemonSetType, { labelSelector: labels.agent })
  const daemonSet: KubeObject = {
    ...{ apiVersion: 'apps/v1', kind: 'DaemonSet' },
    metadata: {
      name: 'penstock-node',
      namespace: 'system',
      labels: { [labels.managedBy]: 'penstock', [labels.agent]: 'node' },
      resourceVersion: '1',
    },
  }
  const count = (desiredNumberScheduled: number, observedGeneration?: number) =>
    daemonSets.replace(
      [{ ...daemonSet, status: { desiredNumberScheduled, observedGeneration } } as KubeObject],
      '',
      () => true,
    )
  const spread = () => {
    const secret = operator.written.get('Secret penstock-node-cfg-0') as { data?: Record<string, string> } | undefined
    return JSON.parse(Buffer.from(secret?.data?.['manifest.json'] ?? '', 'base64').toString() || '{}').startSpreadMs
  }
  count(600, 1)
  operator.artifacts.markComplete()
  await vi.waitFor(() => expect(spread()).toBe(10_000), 30_000)
  // The operator has recreated it, and no controller has counted its pods yet.
  count(0)
  const passes = async () => {
    const text = await operator.metrics.metrics()
    const counts = text.matchAll(/^controller_runtime_reconcile_total{controller="agent",.*} (\d+)$/gm)
    return [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
  }
  const before = await passes()
  await vi.waitFor(async () => expect(await passes()).toBeGreaterThan(before), 30_000)
  expect(spread()).toBe(10_000)
  count(20, 2)
  await vi.waitFor(() => expect(spread()).toBeUndefined(), 30_000)
})

test('a workload that another operator keeps changing is reverted a few times, then rarely, and the Agent says so', async () => {
  await using operator = await started('Mounted', { k: 'of the shop' })
  operator.artifacts.markComplete()
  const daemonSets = operator.cache(daemonSetType, { labelSelector: labels.agent })
  const written = () => operator.written.get('DaemonSet penstock-node')?.metadata.resourceVersion
  await vi.waitFor(() => expect(written()).toBeDefined(), 30_000)
  const passes = async () => {
    const text = await operator.metrics.metrics()
    const counts = text.matchAll(/^controller_runtime_reconcile_total{controller="agent",.*} (\d+)$/gm)
    return [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
  }
  const reverted: boolean[] = []
  for (let round = 1; round <= 8; round++) {
    const [version, before] = [written(), await passes()]
    const ours = operator.written.get('DaemonSet penstock-node') as KubeObject & { spec: object }
    const theirs = { ...ours, spec: { ...ours.spec, minReadySeconds: 17, template: {} } }
    // The watch reports our write, and then theirs.
    daemonSets.set(ours)
    daemonSets.set({ ...theirs, metadata: { ...ours.metadata, resourceVersion: `theirs ${round}` } } as KubeObject)
    await vi.waitFor(async () => expect(await passes()).toBeGreaterThan(before), 10_000)
    reverted.push(written() !== version)
  }
  expect(reverted).toEqual([true, true, true, true, true, false, false, false])
  const contended = operator.reports.at(-1)?.findings.find(({ type }) => type === 'Contended')
  expect(contended?.message).toMatch(
    /^Another operator of Penstock keeps changing DaemonSet\/penstock-node: .* every two/,
  )
})

test('an Agent whose disk budget cannot be read keeps its workload, and its condition reports the text', async () => {
  await using operator = await started('Mounted', { k: 'of the shop' }, { node: { dataDir: { diskBudget: '20mi' } } })
  operator.artifacts.markComplete()
  await vi.waitFor(() => expect(operator.reports).not.toEqual([]), 30_000)
  expect(operator.reports[0]?.findings.find(({ type }) => type === 'Accepted')).toEqual({
    ...{ type: 'Accepted', status: 'False', reason: 'InvalidConfig' },
    message:
      'spec.node.dataDir.diskBudget: `spec.node.dataDir.diskBudget` must be a quantity such as 500, 20Mi or 1.5G; found "20mi" (Until it is corrected, it counts as 0: the operator rejects new versions of Pipelines with disk buffers)',
  })
  expect([...operator.written.keys()]).toContain('DaemonSet penstock-node')
})

test.each([
  {
    trouble: { restartCount: 3, state: { waiting: { reason: 'CrashLoopBackOff' } }, lastState: ended(1) },
    says: 'container agent of p keeps exiting (exit code 1): kubectl logs p -n system -c agent --previous',
  },
  // The same during another attempt.
  {
    trouble: { restartCount: 4, state: {}, lastState: ended(1) },
    says: 'container agent of p keeps exiting (exit code 1): kubectl logs p -n system -c agent --previous',
  },
  {
    trouble: { restartCount: 1, state: ended(137, 'OOMKilled') },
    says: 'container agent of p keeps exiting (out of memory): kubectl logs p -n system -c agent --previous',
  },
  {
    trouble: { restartCount: 0, state: { waiting: { reason: 'ImagePullBackOff' } } },
    says: 'cannot pull the image of container agent of p',
  },
  {
    trouble: { restartCount: 0, state: { waiting: { reason: 'CreateContainerConfigError' } } },
    says: 'cannot create container agent of p: CreateContainerConfigError',
  },
  {
    trouble: { restartCount: 0, state: { waiting: { reason: 'InvalidImageName' } } },
    says: 'cannot pull the image of container agent of p',
  },
  { trouble: { restartCount: 0, state: { waiting: { reason: 'ContainerCreating' } } }, says: undefined },
  { trouble: { restartCount: 0, state: { waiting: { reason: 'ErrorOfAnotherKind' } } }, says: undefined },
  { trouble: { restartCount: 2, ready: true, lastState: ended(1) }, says: undefined },
])('reports for a pod with $trouble: $says', ({ trouble, says }) => {
  const metadata = { name: 'p', namespace: 'system' }
  const container = { name: 'agent', ready: false, ...trouble }
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata }
  expect(troubleOf([{ ...pod, status: { containerStatuses: [container] } }])).toBe(says)
  expect(troubleOf([{ ...pod, status: { initContainerStatuses: [container] } }])).toBe(says)
})

function ended(exitCode: number, reason = 'Error') {
  return { terminated: { exitCode, reason } }
}
