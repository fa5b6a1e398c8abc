// Workloads of Agents, in particular the volumes of an aggregator, with a real API server and its StatefulSet and Job controllers. There is no
// kubelet, so the test sets the status of pods. agent/src/bundle/drain.process.test.ts tests that an agent drains its buffers.

import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { type Cluster, missingForCluster, startCluster } from '../cluster/cluster.ts'
import { root } from '../command.ts'
import { Api } from './fleet.ts'
import { type ConditionLike, CutWire, eventually, OperatorProcess, prepare, signIn, system } from './process.ts'
import { Replica } from './replica.ts'

/** The permissions of the operator and aggregators from the installation manifest. Other requests fail. */
const rights = parseAllDocuments(readFileSync(join(root, 'operator/install.yaml'), 'utf8'))
  .map((one) => one.toJS() as Live)
  .filter(({ kind }) => /^(ServiceAccount|(Cluster)?Role(Binding)?)$/.test(kind))

const missing = missingForCluster(0)
const set = 'penstock-hub'

interface Live {
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly uid: string
    readonly deletionTimestamp?: string
    readonly annotations?: Readonly<Record<string, string>>
    readonly labels?: Readonly<Record<string, string>>
  }
  // biome-ignore lint/suspicious/noExplicitAny: objects of many kinds
  readonly spec: any
  readonly status?: { readonly conditions?: readonly ConditionLike[]; readonly unsupportedNodes?: number }
}

/** The objects under test, by path. */
const groups = {
  agents: 'apis/penstock.dev/v1alpha1',
  deployments: 'apis/apps/v1',
  horizontalpodautoscalers: 'apis/autoscaling/v2',
  jobs: 'apis/batch/v1',
  leases: 'apis/coordination.k8s.io/v1',
  persistentvolumeclaims: 'api/v1',
  pods: 'api/v1',
  rolebindings: 'apis/rbac.authorization.k8s.io/v1',
  secrets: 'api/v1',
  statefulsets: 'apis/apps/v1',
} as const
type Kind = keyof typeof groups

/** A web server's status page that counts its requests. */
class StatusPage implements AsyncDisposable {
  asked = 0
  readonly #server: Server

  private constructor() {
    this.#server = createServer((_, response) => {
      this.asked++
      response.end('Total Accesses: 7\nUptime: 5\n')
    })
  }

  static async start(): Promise<StatusPage> {
    const page = new StatusPage()
    await new Promise<void>((done) => page.#server.listen(0, '127.0.0.1', done))
    return page
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/server-status?auto`
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((done) => this.#server.close(done))
  }
}

describe.skipIf(missing !== undefined)(`an aggregator${missing === undefined ? '' : ` (${missing})`}`, () => {
  const resources = new AsyncDisposableStack()
  let cluster: Cluster
  let api: Api

  const kubectl = (...args: string[]) => cluster.kubectl(['-n', system, ...args])
  const pathOf = (kind: Kind) => `/${groups[kind]}/namespaces/${system}/${kind}`
  const list = async (kind: Kind, selector = ''): Promise<Live[]> =>
    (await api.get<{ items: Live[] }>(`${pathOf(kind)}?labelSelector=${encodeURIComponent(selector)}`)).items
  const names = async (kind: Kind) => (await list(kind)).map(({ metadata }) => metadata.name).sort()
  const get = (kind: Kind, name: string) => api.get<Live>(`${pathOf(kind)}/${name}`)
  const apply = (
    storage: object | undefined,
    annotations: Record<string, string> = {},
    size: object = { replicas: 3 },
  ) =>
    cluster.apply({
      apiVersion: 'penstock.dev/v1alpha1',
      kind: 'Agent',
      metadata: { name: 'hub', namespace: system, annotations },
      spec: {
        mode: 'Aggregator',
        pipelines: { namespaceSelector: {} },
        // In another notation than that of the API server.
        resources: { requests: { cpu: '1000m', memory: '1024Mi' } },
        aggregator: { ...size, ...(storage === undefined ? {} : { storage }) },
      },
    })
  const accepted = async () => (await get('agents', 'hub')).status?.conditions?.find(({ type }) => type === 'Accepted')
  /** Completes the pod of a Job like a kubelet. */
  const end = async (job: string, code: number) => {
    const pod = await eventually(async () => {
      const [first] = await list('pods', `job-name=${job}`)
      expect(first).toBeDefined()
      return first as Live
    })
    const finishedAt = new Date().toISOString()
    const status = {
      phase: code === 0 ? 'Succeeded' : 'Failed',
      containerStatuses: [
        {
          name: 'agent',
          image: 'penstock/agent',
          imageID: '',
          ready: false,
          restartCount: 0,
          state: { terminated: { exitCode: code, startedAt: finishedAt, finishedAt } },
        },
      ],
    }
    await kubectl('patch', 'pod', pod.metadata.name, '--subresource', 'status', '-p', JSON.stringify({ status }))
    return pod
  }

  beforeAll(async () => {
    cluster = resources.use(await startCluster())
    await prepare(cluster)
    api = resources.use(await Api.start(cluster))
    await cluster.apply(...rights)
    const kubeconfig = join(cluster.folder, 'operator-kubeconfig')
    await signIn(cluster, 'penstock-operator', kubeconfig)
    await resources.use(OperatorProcess.start({ kubeconfig, args: ['--leader-election=false'] })).leading()
    await apply({ size: '1024Mi', retention: { whenScaled: 'Drain' } })
    await eventually(async () => {
      expect(await names('persistentvolumeclaims')).toEqual([0, 1, 2].map((ordinal) => `data-${set}-${ordinal}`))
      expect(await names('pods')).toEqual([0, 1, 2].map((ordinal) => `${set}-${ordinal}`))
    })
  })
  afterAll(() => resources.disposeAsync())

  test('nodes with another operating system are counted for node agents', async () => {
    const counted = async () => (await get('agents', 'node')).status?.unsupportedNodes
    const nodeOf = (name: string, os: string) => ({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, labels: { 'kubernetes.io/os': os } },
    })
    await cluster.apply(nodeOf('w', 'windows'), nodeOf('l', 'linux'))
    await eventually(async () => expect(await counted()).toBe(1))
    await kubectl('delete', 'node', 'w', 'l')
    await eventually(async () => expect(await counted()).toBe(0))
    await kubectl('delete', 'plagent', 'node')
  })

  test('a foreign change is reverted, and another notation of quantities is not a change', async () => {
    // Each round changes the set, so that the operator compares it with the desired state.
    for (let turn = 0; turn < 8; turn++) await kubectl('annotate', 'sts', set, '--overwrite', `turn=${turn}`)
    const policy = async () => (await get('statefulsets', set)).spec.persistentVolumeClaimRetentionPolicy.whenDeleted
    const foreign = { spec: { persistentVolumeClaimRetentionPolicy: { whenDeleted: 'Delete' } } }
    await kubectl('patch', 'sts', set, '--type', 'merge', '-p', JSON.stringify(foreign))
    await eventually(async () => expect(await policy()).toBe('Retain'))
    await eventually(async () => expect(await accepted()).toMatchObject({ status: 'True' }))
    const { conditions } = (await get('agents', 'hub')).status ?? {}
    expect(conditions?.filter(({ type }) => type === 'Contended')).toEqual([])
    expect((await get('statefulsets', set)).metadata.annotations).toMatchObject({ turn: '7' })
  })

  test('after scaling down, a Job drains each volume, which is then removed', async () => {
    expect((await get('statefulsets', set)).spec.persistentVolumeClaimRetentionPolicy.whenScaled).toBe('Retain')
    await kubectl('scale', 'plagent/hub', '--replicas=1')
    await eventually(async () => expect(await names('jobs')).toEqual([`${set}-drain-1`, `${set}-drain-2`]))

    const pod = await end(`${set}-drain-2`, 0)
    expect(pod.spec.containers[0].args).toContain('--drain')
    expect(pod.spec.containers[0].args).not.toContain('--operator')
    const data = pod.spec.volumes.find(({ name }: { name: string }) => name === 'data')
    expect(data.persistentVolumeClaim).toEqual({ claimName: `data-${set}-2` })
    await eventually(async () => {
      expect(await names('persistentvolumeclaims')).toEqual([`data-${set}-0`, `data-${set}-1`])
      expect(await names('jobs')).toEqual([`${set}-drain-1`])
    })
  })

  test('a volume that cannot be drained is reported and kept', async () => {
    await end(`${set}-drain-1`, 69)
    await eventually(async () => {
      const events = await kubectl(
        'get',
        'events.events.k8s.io',
        '-o',
        'jsonpath={range .items[*]}{.reason}: {.note}{"\\n"}{end}',
      )
      expect(events).toMatch(/DrainFailed: Could not drain volume data-penstock-hub-1/)
      expect(events).toContain(`Drained: Volume data-${set}-2`)
    })
    expect(await names('persistentvolumeclaims')).toEqual([`data-${set}-0`, `data-${set}-1`])
  })

  test('after scaling up again, the pod gets its volume back', async () => {
    await kubectl('scale', 'plagent/hub', '--replicas=2')
    await eventually(async () => {
      expect(await names('jobs')).toEqual([])
      expect(await names('pods')).toEqual([`${set}-0`, `${set}-1`])
    })
    expect(await names('persistentvolumeclaims')).toEqual([`data-${set}-0`, `data-${set}-1`])
  })

  test('another workload type or other claims are created only if the annotation allows it', async () => {
    const uid = (await get('statefulsets', set)).metadata.uid
    const pods = async () => (await list('pods')).map(({ metadata }) => `${metadata.name} ${metadata.uid}`).sort()
    const before = await pods()
    await apply({ size: '2Gi' })
    await eventually(async () =>
      expect(await accepted()).toMatchObject({
        status: 'False',
        reason: 'InvalidConfig',
        message: expect.stringMatching(/spec.aggregator.storage.size: from 1Gi to 2Gi.*penstock.dev\/allow-recreate/),
      }),
    )
    expect((await get('statefulsets', set)).metadata.uid).toBe(uid)

    const allowed = { 'penstock.dev/allow-recreate': 'true' }
    await apply({ size: '2Gi' }, allowed)
    await eventually(async () => {
      const now = await get('statefulsets', set)
      expect(now.metadata.uid).not.toBe(uid)
      expect(now.spec.volumeClaimTemplates[0].spec.resources.requests.storage).toBe('2Gi')
      expect(await accepted()).toMatchObject({ status: 'True' })
    })
    // The new set has adopted the pods, and created the third.
    await eventually(async () => expect((await pods()).filter((pod) => before.includes(pod))).toEqual(before))

    await apply(undefined)
    await eventually(async () =>
      expect((await accepted())?.message).toContain('without it the StatefulSet becomes a Deployment'),
    )
    expect(await names('statefulsets')).toEqual([set])
    await apply(undefined, allowed)
    await eventually(async () => {
      expect(await names('statefulsets')).toEqual([])
      expect(await names('deployments')).toEqual([set])
    })
    expect(await names('persistentvolumeclaims')).toEqual([0, 1, 2].map((ordinal) => `data-${set}-${ordinal}`))
  })

  test('with autoscaling, only the autoscaler determines the number of pods, from the beginning', async () => {
    const replicas = async () => (await get('deployments', set)).spec.replicas
    expect(await replicas()).toBe(3)
    // A reverted change shows that the operator has written the whole workload.
    const awaitRevert = async () => {
      const component = 'app.kubernetes.io/component'
      await kubectl('label', 'deployment', set, '--overwrite', `${component}=x`)
      await eventually(async () => {
        expect((await get('deployments', set)).metadata.labels?.[component]).toBe('aggregator')
      })
    }
    const seen = new Set<number>()
    let watching = true
    // Checks run one after another, because they would pile up on a slow machine.
    const watched = (async () => {
      while (watching) {
        seen.add(await replicas())
        await new Promise((tick) => setTimeout(tick, 50))
      }
    })()
    watched.catch(() => {}) // a later await reports its failure
    try {
      await apply(undefined, {}, { autoscaling: { minReplicas: 2, maxReplicas: 9 } })
      await eventually(async () => expect(await names('horizontalpodautoscalers')).toEqual([set]))
      await awaitRevert()
      expect(await replicas()).toBe(3)
      await kubectl('scale', 'deployment', set, '--replicas=5')
      await kubectl('annotate', 'deployment', set, 'note=mine')
      await awaitRevert()
      expect(await replicas()).toBe(5)
      expect((await get('deployments', set)).metadata.annotations).toMatchObject({ note: 'mine' })
    } finally {
      watching = false
      await watched
    }
    expect([...seen].sort()).toEqual([3, 5])
  })

  test('one replica at a time scrapes and collects events; another takes over when it ends, and nothing else restarts', async () => {
    await using page = await StatusPage.start()
    // The mounted files of a pod with the account of the agent.
    const account = join(cluster.folder, 'events-kubeconfig')
    await cluster.apply({
      apiVersion: 'penstock.dev/v1alpha1',
      kind: 'ClusterPipeline',
      metadata: { name: 'figures' },
      spec: {
        mode: 'Aggregator',
        sources: [
          {
            name: 'web',
            type: 'webserver_metrics',
            config: { endpoints: [page.url], scrape_interval_secs: 1 },
          },
          {
            name: 'events',
            type: 'orchestrator_events',
            config: { kube_config_file: account, extra_field_selector: 'reason=Tried,regarding.kind=Pod' },
          },
          { name: 'talk', type: 'demo_logs', config: { format: 'json', interval: 0.1 } },
        ],
        sinks: [{ name: 'none', type: 'blackhole' }],
      },
    })
    // The first revision must contain it, because the rollout of a later one would need reports of agents.
    await eventually(async () => {
      expect(await kubectl('get', 'cpl', 'figures', '-o', 'jsonpath={.status.conditions[*].type}')).toContain(
        'Accepted',
      )
    })
    await cluster.apply({
      apiVersion: 'penstock.dev/v1alpha1',
      kind: 'Agent',
      metadata: { name: 'edge', namespace: system },
      spec: {
        mode: 'Aggregator',
        pipelines: { clusterPipelines: { selector: {} } },
        aggregator: { replicas: 2 },
      },
    })
    const leases = () => list('leases', 'penstock.dev/agent=edge')
    await eventually(async () => {
      expect((await list('secrets', 'penstock.dev/agent=edge')).length).toBeGreaterThan(0)
      expect((await get('deployments', 'penstock-edge')).spec.replicas).toBe(2)
      expect(await leases()).toMatchObject([{ metadata: { ownerReferences: [{ kind: 'Agent', name: 'edge' }] } }])
    })
    await signIn(cluster, 'penstock-edge', account)
    /** Creates an event in a namespace other than the agent's. */
    const happens = (name: string, reason = 'Tried') =>
      cluster.apply({
        apiVersion: 'events.k8s.io/v1',
        kind: 'Event',
        metadata: { name, namespace: 'default' },
        eventTime: new Date().toISOString().replace('Z', '000Z'),
        regarding: { apiVersion: 'v1', kind: 'Pod', namespace: 'default', name: 'web' },
        ...{ reason, note: name, type: 'Normal', action: 'Try' },
        ...{ reportingController: 'penstock.dev/test', reportingInstance: 'test' },
      })
    const collected = (replica: Replica) => replica.metric('component_received_events_total', 'orchestrator_events')
    const holder = async () => (await leases())[0]?.spec?.holderIdentity?.replace(/_.*/, '')
    const scraped = (replica: Replica) => replica.metric('component_received_events_total', 'webserver_metrics')
    const receivedEvents = (replica: Replica) => replica.metric('component_received_events_total', 'demo_logs')
    const leads = (replica: Replica) => replica.metric('singleton_leader')

    await using owned = new AsyncDisposableStack()
    const wires = new Map<Replica, CutWire>()
    const start = async (pod: string) => {
      const wire = owned.use(await CutWire.start(cluster))
      const { kubeconfig } = wire
      const replica = owned.use(await Replica.start(cluster, { agent: 'edge', pod, pipeline: 'figures', kubeconfig }))
      wires.set(replica, wire)
    }
    await Promise.all(['penstock-edge-a', 'penstock-edge-b', 'penstock-edge-c'].map(start))
    const replicas = new Set(wires.keys())
    const leader = async () => {
      const leading: Replica[] = []
      for (const replica of replicas) if ((await leads(replica)) === 1) leading.push(replica)
      expect(leading, [...replicas].map(({ pod, log }) => `${pod}: ${log}`).join('\n')).toHaveLength(1)
      return leading[0] as Replica
    }
    const first = await eventually(async () => {
      for (const replica of replicas) expect(await receivedEvents(replica)).toBeGreaterThan(0)
      expect(await scraped(await leader())).toBeGreaterThan(0)
      return leader()
    })
    const asked = page.asked
    await eventually(() => expect(page.asked).toBeGreaterThan(asked + 2))
    expect(await holder()).toBe(first.pod)
    for (const replica of replicas) if (replica !== first) expect(await scraped(replica)).toBe(0)
    await happens('not-asked-for', 'Other')
    await happens('one')
    await eventually(async () => expect(await collected(first)).toBe(1))
    for (const replica of replicas) if (replica !== first) expect(await collected(replica)).toBe(0)

    // Without the API server, it stops before another replica can begin, and continues with other work. Then it is killed.
    wires.get(first)?.cut()
    await eventually(async () => expect(await leads(first)).toBe(0))
    const last = await scraped(first)
    const then = await receivedEvents(first)
    await eventually(async () => expect(await receivedEvents(first)).toBeGreaterThan(then + 5))
    expect(await scraped(first)).toBe(last)
    expect(await first.metric('singleton_lease_failures_total')).toBeGreaterThan(0)
    await first.end('SIGKILL')
    replicas.delete(first)
    await happens('two')

    // Another agent takes over, and continues its other work.
    const before = new Map(
      await Promise.all([...replicas].map(async (one) => [one, await receivedEvents(one)] as const)),
    )
    const second = await eventually(leader)
    await eventually(async () => expect(await scraped(second)).toBeGreaterThan(0))
    expect(second.log).toContain('"previous":"silent"')
    // Events from the time without a leader, and those that the first agent may not have passed on.
    await eventually(async () => expect(await collected(second)).toBe(2))
    expect(await holder()).toBe(second.pod)
    expect(await receivedEvents(second)).toBeGreaterThan(before.get(second) as number)
    expect(await second.metric('config_reloads_total')).toBe(1)

    // On a graceful stop, it releases the Lease, so that another agent need not wait for its expiry.
    replicas.delete(second)
    const [third] = [...replicas] as [Replica]
    expect(await scraped(third)).toBe(0)
    expect(await second.end('SIGTERM')).toBe(0)
    expect(second.log).toContain('The Lease is released.')
    await eventually(async () => expect(await scraped(third)).toBeGreaterThan(0))
    expect(third.log).toContain('"previous":"given_up"')
    expect(await holder()).toBe(third.pod)
    expect(await third.metric('config_reloads_total')).toBe(1)
  })

  test('operator and agents may write only their own Leases, in all namespaces', async () => {
    const rbac = { apiGroup: 'rbac.authorization.k8s.io' }
    const bindingOf = (name: string, namespace: string, role: string) => ({
      apiVersion: `${rbac.apiGroup}/v1`,
      kind: 'RoleBinding',
      metadata: { name, namespace },
      roleRef: { ...rbac, kind: 'ClusterRole', name: role },
      subjects: [{ kind: 'ServiceAccount', name: 'penstock-operator', namespace: system }],
    })
    // A tenant namespace in which the platform allows the operator.
    await cluster.apply(
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } },
      bindingOf('penstock-operator-agents', 'shop', 'penstock-operator-namespace'),
      {
        apiVersion: 'penstock.dev/v1alpha1',
        kind: 'Agent',
        metadata: { name: 'hub', namespace: 'shop' },
        spec: { mode: 'Aggregator', pipelines: { namespaceSelector: {} } },
      },
    )
    const ofHub = ['-n', 'shop', '-l', 'penstock.dev/agent=hub', '-o', 'name']
    const bindings = async () => (await cluster.kubectl(['get', 'rolebindings', ...ofHub])).split('\n').filter(Boolean)
    const leases = async () => (await cluster.kubectl(['get', 'leases', ...ofHub])).split('\n').filter(Boolean)
    const nameOf = (line = '') => line.replace(/.*\//, '')
    await eventually(async () => {
      expect(await bindings()).toHaveLength(1)
      expect((await leases()).map(nameOf)).toEqual((await bindings()).map(nameOf))
    })
    const written = nameOf((await bindings())[0])
    // The other namespace, of the platform, has its own role.
    await eventually(async () => expect(await list('rolebindings', 'penstock.dev/agent=hub')).toHaveLength(1))
    // The operator restores a deleted role.
    await cluster.kubectl(['delete', 'rolebinding', written, '-n', 'shop'])
    await eventually(async () => expect(await bindings()).toHaveLength(1))

    const as = (account: string, home: string) => ['--as', `system:serviceaccount:${home}:${account}`]
    const lease = (name: string, namespace: string) => ({
      input: JSON.stringify({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name, namespace } }),
    })
    const apply = (object: { readonly input: string }) =>
      cluster.kubectl([...as('penstock-operator', system), 'apply', '--server-side', '-f', '-'], object)
    const put = (account: string, home: string, name: string, namespace = home) => {
      const path = `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${name}`
      return cluster.kubectl([...as(account, home), 'replace', '--raw', path, '-f', '-'], lease(name, namespace))
    }
    // Both can create a missing Lease with a request that names it.
    await apply(lease('penstock-aggregator-0', 'shop'))
    await put('penstock-hub', system, 'penstock-aggregator-63')
    await put('penstock-hub', 'shop', 'penstock-aggregator-63')
    for (const name of ['penstock-operator', 'penstock-aggregator-64']) {
      await expect(apply(lease(name, 'shop'))).rejects.toThrow('orbidden')
      await expect(put('penstock-hub', system, name)).rejects.toThrow('orbidden')
    }
    for (const name of ['penstock-aggregator-0', 'penstock-aggregator-63', written]) {
      for (const namespace of [system, 'default'])
        await expect(put('penstock-hub', 'shop', name, namespace), `${namespace}/${name}`).rejects.toThrow('orbidden')
      await expect(put('penstock-hub', system, name, 'shop')).rejects.toThrow('orbidden')
    }

    // The operator cannot bind roles in other namespaces, under other names, or with more permissions.
    // For a long message, show the end with the missing permissions.
    const refused = /orbidden|APIGroups/
    const binds = (name: string, namespace: string, role: string) =>
      apply({ input: JSON.stringify(bindingOf(name, namespace, role)) })
    await binds('penstock-aggregator-7', 'shop', 'penstock-agent-election')
    for (const [name, namespace, role] of [
      ['penstock-aggregator-7', 'default', 'penstock-agent-election'],
      ['mine', 'shop', 'penstock-agent-election'],
      ['penstock-aggregator-8', 'shop', 'penstock-edit'],
      ['penstock-operator-agents', 'shop', 'penstock-operator-namespace'],
    ] as const)
      await expect(binds(name, namespace, role), `${namespace}/${name} ${role}`).rejects.toThrow(refused)
    const remove = [...as('penstock-operator', system), '-n', 'shop', 'delete', 'rolebinding']
    await expect(cluster.kubectl([...remove, 'penstock-operator-agents'])).rejects.toThrow(refused)
    const wide = { ...bindingOf('penstock-election', '', 'penstock-agent-election'), kind: 'ClusterRoleBinding' }
    await expect(
      apply({ input: JSON.stringify({ ...wide, metadata: { name: 'penstock-election' } }) }),
    ).rejects.toThrow(refused)

    await cluster.kubectl(['-n', 'shop', 'delete', 'plagent', 'hub'])
    await eventually(async () => expect(await bindings()).toEqual([]))
  })

  test('platform Agents have cluster-wide permissions through three named bindings, and tenant Agents have none', async () => {
    const agent = (name: string, namespace: string) => ({
      apiVersion: 'penstock.dev/v1alpha1',
      kind: 'Agent',
      metadata: { name, namespace },
      spec: { mode: 'Aggregator', pipelines: { namespaceSelector: {} } },
    })
    await cluster.apply(agent('last', 'shop'), agent('ours', system))
    const kind = 'clusterrolebindings.rbac.authorization.k8s.io'
    const subjects = async (name: string) =>
      JSON.parse(await cluster.kubectl(['get', kind, name, '-o', 'json'])).subjects as readonly {
        name: string
        namespace: string
      }[]
    const ours = expect.objectContaining({ name: 'penstock-ours', namespace: system })
    await eventually(async () => expect(await subjects('penstock-agent-aggregator')).toContainEqual(ours))
    await eventually(async () => expect(await subjects('penstock-agent-events')).toContainEqual(ours))
    await eventually(async () =>
      expect(await cluster.kubectl(['-n', 'shop', 'get', 'sa', '-o', 'name'])).toContain('penstock-last'),
    )
    for (const name of ['penstock-agent-aggregator', 'penstock-agent-events'])
      expect((await subjects(name)).filter(({ namespace }) => namespace === 'shop')).toEqual([])

    // The operator can write only these bindings.
    const as = ['--as', `system:serviceaccount:${system}:penstock-operator`]
    await cluster.kubectl(['create', 'clusterrolebinding', 'penstock-agent-x-y', '--clusterrole=view', '--user=nobody'])
    await expect(cluster.kubectl([...as, 'delete', kind, 'penstock-agent-x-y'])).rejects.toThrow(/orbidden/)
    await cluster.kubectl([...as, 'delete', kind, 'penstock-agent-events'])
    await eventually(async () => expect(await subjects('penstock-agent-events')).toContainEqual(ours))

    await cluster.kubectl(['-n', system, 'delete', 'plagent', 'ours'])
    await eventually(async () => expect(await subjects('penstock-agent-aggregator')).not.toContainEqual(ours))
  })
})
