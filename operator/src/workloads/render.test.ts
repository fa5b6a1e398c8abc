import { execFile } from 'node:child_process'
import { chown, lstat, mkdir, mkdtemp, readdir, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import type { Agent, AgentSpec } from '../api/agent.ts'
import { inNetworks } from '../compile/tenancy.ts'
import { bindingName, claimName, configSecretName, leaseName, sharesDataFolder, valuesSecretName } from './names.ts'
import { strategicMerge } from './pod-template.ts'
import {
  type Manifest,
  renderDrains,
  renderRights,
  renderWorkloads,
  type WorkloadInput,
  workloadProblems,
} from './render.ts'
import { agentNamespacedRules, agentRoleRules } from './rights.ts'

const input: WorkloadInput = {
  image: 'registry.example:5000/penstock/agent:1.2.3',
  operatorUrl: 'https://penstock-operator.penstock-system.svc:9443',
  operatorNamespace: 'penstock-system',
  operatorAuthority: 'PEM',
  egressPorts: [3100, 9200],
  podMonitors: true,
}
const agent = (spec: AgentSpec, name = 'node'): Agent => ({
  apiVersion: 'penstock.dev/v1alpha1',
  kind: 'Agent',
  metadata: { name, namespace: 'penstock-system', uid: 'uid-1' },
  spec,
})
const node = (spec: Partial<AgentSpec> = {}) => agent({ mode: 'Node', ...spec })
const hub = (aggregator: NonNullable<AgentSpec['aggregator']>, spec: Partial<AgentSpec> = {}) =>
  agent({ mode: 'Aggregator', aggregator, ...spec }, 'hub')

type Deep = { readonly [member: string]: Deep } & { readonly [index: number]: Deep } & readonly Deep[]
interface PodWithInit {
  readonly initContainers: readonly [
    { readonly command: string[]; readonly securityContext: { readonly capabilities: { readonly add: string[] } } },
  ]
}
const of = (manifests: readonly Manifest[], kind: string) =>
  manifests.find((manifest) => manifest.kind === kind) as unknown as Deep
/** Numbers from 0 to 1, the same for the same seed. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}
const kindsOf = (manifests: readonly Manifest[]) => manifests.map((manifest) => manifest.kind)
const named = (list: Deep, name: string) => list.find((item) => String(item['name']) === name) as Deep

test('a node agent is a DaemonSet with its account and its monitor', () => {
  const manifests = renderWorkloads(node(), input)
  expect(kindsOf(manifests)).toEqual(['ConfigMap', 'ServiceAccount', 'DaemonSet', 'PodMonitor'])
  expect(renderWorkloads(node(), input)).toEqual(manifests)
  const relabelings = [{ sourceLabels: ['__meta_kubernetes_pod_node_name'], targetLabel: 'node' }]
  expect(of(manifests, 'PodMonitor')['spec']?.['podMetricsEndpoints']).toEqual([
    expect.objectContaining({ relabelings }),
  ])
  for (const manifest of manifests) {
    expect(manifest.metadata.labels).toMatchObject({
      'app.kubernetes.io/managed-by': 'penstock',
      'penstock.dev/agent': 'node',
    })
    expect(manifest.metadata.ownerReferences?.[0]?.uid).toBe('uid-1')
  }
})

test('accounts of platform Agents are in the bindings of their roles, and those of tenant Agents in none', () => {
  const one = (mode: Agent['spec']['mode'], namespace: string, name = mode.toLowerCase()): Agent => ({
    ...agent({ mode }, name),
    metadata: { name, namespace },
  })
  const platform = { namespace: 'penstock-system', agentNamespaces: ['nodes'] }
  const agents = (['Node', 'Aggregator', 'Sidecar'] as const).flatMap((mode) =>
    ['nodes', 'shop', 'penstock-system'].map((namespace) => one(mode, namespace)),
  )
  const owner = { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', name: 'penstock-operator', uid: 'u' }
  const rights = renderRights([...agents, one('Node', 'nodes', 'b')].reverse(), platform, { owner })
  const account = (namespace: string, name: string) => ({ kind: 'ServiceAccount', name: `penstock-${name}`, namespace })
  const aggregators = [account('nodes', 'aggregator'), account('penstock-system', 'aggregator')]
  expect(rights.map(({ metadata, subjects }) => [metadata.name, subjects])).toEqual([
    ['penstock-agent-node', [account('nodes', 'b'), account('nodes', 'node')]],
    ['penstock-agent-aggregator', aggregators],
    ['penstock-agent-events', aggregators],
  ])
  for (const right of rights as unknown as readonly Deep[]) {
    expect(right['roleRef']).toEqual({
      apiGroup: 'rbac.authorization.k8s.io',
      kind: 'ClusterRole',
      name: right['metadata']?.['name'],
    })
    expect(right['metadata']?.['ownerReferences']).toEqual([owner])
  }
  for (const [role, rules] of Object.entries(agentRoleRules)) {
    const reads = rules.some(({ resources }) => resources?.includes('events'))
    expect([role, reads]).toEqual([role, role === 'penstock-agent-events'])
  }
  // A tenant's agent asks the operator who may read its metrics.
  const argsOf = (tenant: boolean) =>
    named(
      of(renderWorkloads(hub({}), { ...input, tenant }), 'Deployment')['spec']?.['template']?.['spec']?.[
        'containers'
      ] as Deep,
      'agent',
    )['args']
  expect(argsOf(true)).toContain('--namespaces')
  expect(argsOf(false)).not.toContain('--namespaces')
})

test('Agents have no equal objects, and no name exceeds the limit of the API server', () => {
  const random = randomOf(7)
  const part = () =>
    Array.from(
      { length: 1 + Math.floor(random() * 4) },
      () =>
        ['a', 'b', 'agent', 'cfg', 'sec', '0', 'drain', 'ca', 'data', 'x'.repeat(1 + Math.floor(random() * 12))][
          Math.floor(random() * 10)
        ],
    ).join('-')
  const owners = new Map<string, string>()
  for (let turn = 0; turn < 4000; turn++) {
    const [namespace, name] = [part(), part()]
    const mode = (['Node', 'Aggregator', 'Sidecar'] as const)[Math.floor(random() * 3)] ?? 'Node'
    const storage = random() < 0.5 ? { storage: { size: '1Gi' } } : {}
    const one: Agent = {
      ...agent({ mode, ...(mode === 'Aggregator' ? { aggregator: storage } : {}) }),
      metadata: { name, namespace },
    }
    if (workloadProblems(one).length > 0) continue
    const id = `${namespace}/${name}`
    const given = { ...input, ...(random() < 0.5 ? { namespaces: ['watched', namespace] } : {}) }
    const secrets = [0, 1, 2, 3].flatMap((slot) => [configSecretName(one, slot), valuesSecretName(one, slot)])
    const claims = mode === 'Aggregator' ? [claimName(one, 0), claimName(one, 1)] : []
    const keys = [
      ...[
        ...renderWorkloads(one, given),
        ...(mode === 'Aggregator' && 'storage' in storage ? renderDrains(one, given, [0, 1]) : []),
      ].map(({ kind, metadata }) => [kind, metadata.namespace, metadata.name]),
      ...secrets.map((secret) => ['Secret', namespace, secret]),
      ...claims.map((claim) => ['PersistentVolumeClaim', namespace, claim]),
    ]
    for (const [kind, where, named = ''] of keys) {
      const key = `${kind} ${where}/${named}`
      expect(owners.get(key) ?? id, `${key}, seed 7`).toBe(id)
      owners.set(key, id)
      expect(named.length).toBeLessThanOrEqual(kind === 'Service' || kind === 'Job' ? 63 : 253)
    }
  }
  expect(owners.size).toBeGreaterThan(10_000)
})

test.each([
  ['Node', 63, {}],
  ['Aggregator', 54, {}],
  ['Aggregator', 43, { storage: { size: '1Gi' } }],
] as const)('the name of an Agent of mode %s has at most %i characters', (mode, longest, aggregator) => {
  const problems = (name: string) =>
    workloadProblems(agent({ mode, ...(mode === 'Aggregator' ? { aggregator } : {}) }, name)).map(({ path }) => path)
  expect(problems('a'.repeat(longest))).toEqual([])
  expect(problems('a'.repeat(longest + 1))).toEqual(['metadata.name'])
})

test('of two Node Agents with the same folder on the nodes, the younger is refused', () => {
  const of = (namespace: string, name: string, creationTimestamp: string): Agent => ({
    ...node(),
    metadata: { namespace, name, creationTimestamp },
  })
  const [first, second, third] = [
    of('a-b', 'c', '2026-01-01T00:00:00Z'),
    of('a', 'b-c', '2026-01-02T00:00:00Z'),
    of('a', 'c', '2026-01-03T00:00:00Z'),
  ]
  const agents = [first, second, third]
  expect(agents.map((one) => sharesDataFolder(one, agents)?.metadata.namespace)).toEqual([undefined, 'a-b', undefined])
})

test('an Aggregator may only write Leases in its own namespace, by a binding that is removed with it', () => {
  const lease = leaseName(hub({}), [hub({})]) as string
  const manifests = renderWorkloads(hub({}), { ...input, lease })
  expect(of(manifests, 'RoleBinding')).toEqual({
    apiVersion: 'rbac.authorization.k8s.io/v1',
    kind: 'RoleBinding',
    metadata: {
      name: lease,
      namespace: 'penstock-system',
      labels: expect.objectContaining({ 'penstock.dev/agent': 'hub' }),
      ownerReferences: [expect.objectContaining({ kind: 'Agent', uid: 'uid-1', controller: true })],
    },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'penstock-agent-election' },
    subjects: [{ kind: 'ServiceAccount', name: 'penstock-hub', namespace: 'penstock-system' }],
  })
  const writers = (rules: typeof agentRoleRules) =>
    Object.keys(rules).filter((role) => rules[role]?.some(({ resources }) => resources?.includes('leases')))
  expect(writers(agentRoleRules)).toEqual(['penstock-agent-election'])
  expect(kindsOf(manifests)).not.toContain('ClusterRoleBinding')
  // With only Roles, one role in its namespace grants everything.
  expect(writers(agentNamespacedRules)).toEqual(['penstock-agent-aggregator'])
  const roles = renderWorkloads(hub({}), { ...input, lease, namespaces: ['shop'] })
  const bound = roles.filter(({ kind }) => kind === 'RoleBinding')
  expect(bound.map(({ metadata }) => metadata.namespace)).toEqual(['penstock-system'])
})

test('with Roles only, a node agent has bindings in each watched namespace, other agents in their own', () => {
  const roles = { ...input, namespaces: ['blog', 'shop'] }
  const bindings = (agent: Agent) => {
    const manifests = renderWorkloads(agent, roles)
    expect(kindsOf(manifests)).not.toContain('ClusterRoleBinding')
    return manifests
      .filter(({ kind }) => kind === 'RoleBinding')
      .map((one) => [one.metadata.namespace, one.metadata.name, (one as unknown as Deep)['roleRef']])
  }
  const role = (name: string) => ({ apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name })
  expect(bindings(node())).toEqual([
    ['blog', bindingName(node()), role('penstock-agent-node')],
    ['shop', bindingName(node()), role('penstock-agent-node')],
  ])
  expect(bindings(hub({}))).toEqual([['penstock-system', bindingName(hub({})), role('penstock-agent-aggregator')]])
  const pod = of(renderWorkloads(node(), roles), 'DaemonSet')['spec']?.['template']?.['spec'] as Deep
  const args = named(pod['containers'] as Deep, 'agent')['args'] as unknown as string[]
  expect(args.slice(args.indexOf('--namespaces'))).toEqual(['--namespaces', 'blog,shop'])

  const kubelet = node({ node: { metadata: { source: 'Kubelet' } } })
  expect(workloadProblems(kubelet)).toEqual([])
  expect(workloadProblems(kubelet, { rolesOnly: true }).map(({ message }) => message)).toEqual([
    '`node.metadata.source: Kubelet` needs the right to `nodes/pods`, which an installation with only Roles cannot grant',
  ])
})

test('the pod of a node agent has exactly the documented rights', () => {
  const pod = of(renderWorkloads(node(), input), 'DaemonSet')['spec']?.['template']?.['spec'] as Deep
  expect(pod['securityContext']).toEqual({
    runAsNonRoot: true,
    runAsUser: 1000,
    runAsGroup: 0,
    seccompProfile: { type: 'RuntimeDefault' },
  })
  expect(pod['automountServiceAccountToken']).toBe(false)
  const container = named(pod['containers'] as Deep, 'agent')
  expect(container['securityContext']).toEqual({
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'] },
    readOnlyRootFilesystem: true,
  })
  const init = (pod['initContainers'] as Deep)[0] as Deep
  expect(init['securityContext']).toEqual({
    allowPrivilegeEscalation: false,
    capabilities: { drop: ['ALL'], add: ['CHOWN', 'FOWNER'] },
    readOnlyRootFilesystem: true,
    runAsNonRoot: false,
    runAsUser: 0,
  })
  expect((init['volumeMounts'] as Deep).map((mount) => mount['name'])).toEqual(['data'])
  const host = (pod['volumes'] as Deep).filter((volume) => volume['hostPath'] !== undefined)
  expect(host.map((volume) => volume['hostPath']?.['path'])).toEqual([
    '/var/lib/penstock/penstock-system-node',
    '/var/log/pods',
  ])
  expect(named(container['volumeMounts'] as Deep, 'logs')['readOnly']).toBe(true)
  expect(pod['nodeSelector']).toEqual({ 'kubernetes.io/os': 'linux' })
})

test('agents of nodes do not read the logs of agents', () => {
  const set = of(renderWorkloads(node(), input), 'DaemonSet')['spec']
  expect(set?.['template']?.['metadata']?.['labels']).toMatchObject({ 'penstock.dev/exclude': 'true' })
  // An upgrade cannot change a selector.
  expect(set?.['selector']?.['matchLabels']).not.toHaveProperty(['penstock.dev/exclude'])
})

test.skipIf(process.getuid?.() !== 0)(
  'the data folder changes its owner to the user of the agent, and back',
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'hand-over-'))
    try {
      // As an agent leaves them: folders that no other user can open.
      for (const name of ['pods', 'pods/deep']) await mkdir(join(folder, name), { mode: 0o700 })
      await writeFile(join(folder, 'pods/deep/position'), '', { mode: 0o600 })
      await symlink('/etc/passwd', join(folder, 'link'))
      const paths = async () => ['.', ...(await readdir(folder, { recursive: true }))].map((name) => join(folder, name))
      const owners = async () =>
        new Set(await Promise.all((await paths()).map(async (path) => (await lstat(path)).uid)))
      const handOver = async (runAsRoot: boolean) => {
        const set = of(renderWorkloads(node({ node: { runAsRoot } }), input), 'DaemonSet')
        const pod = set['spec']?.['template']?.['spec'] as unknown as PodWithInit
        const [{ command, securityContext }] = pod.initContainers
        const rights = ['-all', ...securityContext.capabilities.add.map((name) => `+${name.toLowerCase()}`)].join()
        const here = command.slice(1).map((arg) => (arg === '/var/lib/penstock' ? folder : arg))
        await promisify(execFile)('setpriv', [`--bounding-set=${rights}`, process.execPath, ...here])
      }
      for (const path of await paths()) if (!path.endsWith('link')) await chown(path, 1000, 0)
      await handOver(true)
      expect(await owners()).toEqual(new Set([0]))
      await handOver(false)
      expect(await owners()).toEqual(new Set([1000]))
      // A handover that ended in the middle.
      await chown(join(folder, 'pods/deep'), 0, 0)
      await handOver(false)
      expect(await owners()).toEqual(new Set([1000]))
      expect((await lstat('/etc/passwd')).uid).toBe(0)
      expect((await lstat(folder)).mode & 0o777).toBe(0o750)
    } finally {
      await rm(folder, { recursive: true })
    }
  },
)

test('every slot of the bundle is mounted from the start, and optional', () => {
  const pod = of(renderWorkloads(node(), input), 'DaemonSet')['spec']?.['template']?.['spec'] as Deep
  const sources = (name: string) => named(pod['volumes'] as Deep, name)['projected']?.['sources'] as Deep
  expect(sources('bundle').map((source) => source['secret'])).toEqual(
    Array.from({ length: 8 }, (_, slot) => ({ name: `penstock-node-cfg-${slot}`, optional: true })),
  )
  expect(sources('secrets').map((source) => source['secret'])).toEqual(
    Array.from({ length: 4 }, (_, slot) => ({ name: `penstock-node-sec-${slot}`, optional: true })),
  )
  expect(named(pod['volumes'] as Deep, 'secrets')['projected']?.['defaultMode']).toBe(0o440)
  expect(sources('operator')[0]?.['serviceAccountToken']).toMatchObject({ audience: 'penstock-operator' })
})

test('further folders of the node are read-only, and root must be requested explicitly', () => {
  const logPaths = { extraReadOnly: ['/var/lib/docker/containers'] }
  const manifests = renderWorkloads(node({ node: { runAsRoot: true, logPaths } }), input)
  const pod = of(manifests, 'DaemonSet')['spec']?.['template']?.['spec'] as Deep
  expect(named(pod['volumes'] as Deep, 'logs-0')['hostPath']?.['path']).toBe('/var/lib/docker/containers')
  const mounts = named(pod['containers'] as Deep, 'agent')['volumeMounts'] as Deep
  expect(named(mounts, 'logs-0')['readOnly']).toBe(true)
  expect(pod['securityContext']).toMatchObject({ runAsUser: 0 })
})

test.each([
  { spec: {}, image: 'registry.example:5000/penstock/agent:1.2.3' },
  { spec: { tag: '2' }, image: 'registry.example:5000/penstock/agent:2' },
  { spec: { repository: 'mine/agent' }, image: 'mine/agent:1.2.3' },
  { spec: { digest: 'sha256:abc' }, image: 'registry.example:5000/penstock/agent@sha256:abc' },
])('the image of $spec is $image', ({ spec, image }) => {
  const pod = of(renderWorkloads(node({ image: spec }), input), 'DaemonSet')['spec']?.['template']?.['spec'] as Deep
  expect((pod['containers'] as Deep)[0]?.['image']).toBe(image)
})

test('an aggregator without storage is a Deployment, with storage a StatefulSet that keeps its volumes', () => {
  expect(kindsOf(renderWorkloads(hub({ replicas: 2 }), input))).toEqual([
    'ConfigMap',
    'ServiceAccount',
    'Service',
    'Deployment',
    'PodDisruptionBudget',
    'PodMonitor',
  ])
  const storage = { size: '20Gi', retention: { whenScaled: 'Retain', whenDeleted: 'Delete' } } as const
  const manifests = renderWorkloads(hub({ replicas: 3, storage }), input)
  const set = of(manifests, 'StatefulSet')['spec'] as Deep
  expect(set['persistentVolumeClaimRetentionPolicy']).toEqual({ whenScaled: 'Retain', whenDeleted: 'Delete' })
  expect(set['volumeClaimTemplates']?.[0]?.['spec']?.['resources']).toEqual({ requests: { storage: '20Gi' } })
})

test('any number of replicas of an aggregator elect one of them by a Lease of the Agent', () => {
  const lease = leaseName(hub({}), [hub({})])
  for (const replicas of [1, 3]) {
    const manifests = renderWorkloads(hub({ replicas }), { ...input, lease })
    expect(of(manifests, 'Lease')).toEqual({
      apiVersion: 'coordination.k8s.io/v1',
      kind: 'Lease',
      metadata: expect.objectContaining({
        name: lease,
        ownerReferences: [expect.objectContaining({ uid: 'uid-1' })],
        labels: expect.objectContaining({ 'penstock.dev/agent': 'hub' }),
      }),
    })
    const pod = of(manifests, 'Deployment')['spec']?.['template']?.['spec'] as Deep
    const args = named(pod['containers'] as Deep, 'agent')['args'] as unknown as string[]
    expect(args[args.indexOf('--lease') + 1]).toBe(lease)
  }
  expect(kindsOf(renderWorkloads(node(), { ...input, lease: undefined }))).not.toContain('Lease')
})

test('each Aggregator of a namespace keeps its own Lease, to which the role of agents gives access', () => {
  const made = Array.from({ length: 70 }, (_, index) => {
    const one = agent({ mode: 'Aggregator' }, `hub-${index}`)
    const creationTimestamp = `2026-01-01T00:00:${String(index % 60).padStart(2, '0')}Z`
    return { ...one, metadata: { ...one.metadata, creationTimestamp } }
  })
  const of64 = made.filter(({ metadata: { creationTimestamp } }) => creationTimestamp < '2026-01-01T00:00:54Z')
  const chosen = new Map(of64.map((one) => [one.metadata.name, leaseName(one, of64)]))
  expect(new Set(chosen.values()).size).toBe(of64.length)
  const { resourceNames, verbs } =
    agentRoleRules['penstock-agent-election']?.find(({ resources }) => resources?.includes('leases')) ?? {}
  expect(verbs).toEqual(['get', 'create', 'update'])
  for (const lease of chosen.values()) expect(resourceNames).toContain(lease)
  // Later or different objects do not match.
  const elsewhere = { ...hub({}), metadata: { ...hub({}).metadata, namespace: 'other' } }
  const more = [...made.toReversed(), elsewhere, node()]
  for (const one of of64) expect(leaseName(one, more)).toBe(chosen.get(one.metadata.name))
  expect(made.map((one) => leaseName(one, more)).filter((lease) => lease === undefined)).toHaveLength(6)
})

test('the Job that drains a volume runs an agent without sources, and does not count as one of its pods', () => {
  const drained = hub(
    {
      replicas: 1,
      storage: { size: '1Gi', retention: { whenScaled: 'Drain' } },
      tolerations: [{ operator: 'Exists' }],
    },
    { podTemplate: { spec: { containers: [{ name: 'agent', env: [{ name: 'HTTPS_PROXY', value: 'http://p' }] }] } } },
  )
  expect(workloadProblems(drained)).toEqual([])
  const set = of(renderWorkloads(drained, input), 'StatefulSet')['spec'] as Deep
  expect(set['persistentVolumeClaimRetentionPolicy']).toEqual({ whenScaled: 'Retain', whenDeleted: 'Retain' })
  const [job, ...more] = renderDrains(drained, input, [2]) as unknown as Deep[]
  expect(more).toEqual([])
  expect(job?.['metadata']).toMatchObject({ name: 'penstock-hub-drain-2', ownerReferences: [{ uid: 'uid-1' }] })
  const template = job?.['spec']?.['template'] as Deep
  const chosen = set['selector']?.['matchLabels'] as unknown as Record<string, string>
  expect(template['metadata']?.['labels']).not.toMatchObject(chosen)
  const pod = template['spec'] as Deep
  expect(pod['tolerations']).toEqual([{ operator: 'Exists' }])
  expect(named(pod['volumes'] as Deep, 'data')).toEqual({
    name: 'data',
    persistentVolumeClaim: { claimName: 'data-penstock-hub-2' },
  })
  const container = named(pod['containers'] as Deep, 'agent')
  expect(container['args']).toEqual([
    ...['--bundle', '/etc/penstock/bundle', '--secrets', '/etc/penstock/secrets'],
    ...['--data-dir', '/var/lib/penstock', '--drain'],
  ])
  expect(JSON.stringify(container['env'])).toContain('HTTPS_PROXY')
  expect(container['securityContext']).toEqual(
    named(set['template']?.['spec']?.['containers'] as Deep, 'agent')['securityContext'],
  )
})

test('with autoscaling, the operator does not write replicas', () => {
  const autoscaling = { minReplicas: 3, maxReplicas: 12, targetCPU: 75, targetBufferUtilization: 60 }
  const manifests = renderWorkloads(hub({ autoscaling }), input)
  expect(of(manifests, 'Deployment')['spec']).not.toHaveProperty('replicas')
  const scaler = of(manifests, 'HorizontalPodAutoscaler')['spec'] as Deep
  expect(scaler).toMatchObject({ minReplicas: 3, maxReplicas: 12 })
  expect(scaler['scaleTargetRef']).toEqual({ apiVersion: 'apps/v1', kind: 'Deployment', name: 'penstock-hub' })
  expect(scaler['metrics']?.[1]?.['pods']?.['target']).toEqual({ type: 'AverageValue', averageValue: '600m' })
  const metricOf = (list: readonly Manifest[]) =>
    of(list, 'HorizontalPodAutoscaler')['spec']?.['metrics']?.[1]?.['pods']?.['metric']?.['name']
  expect(metricOf(manifests)).toBe('buffer_utilization')
  const prefixed = renderWorkloads(hub({ autoscaling }, { monitoring: { metricPrefix: 'penstock_' } }), input)
  expect(metricOf(prefixed)).toBe('penstock_buffer_utilization')
  expect(of(manifests, 'PodDisruptionBudget')['spec']?.['maxUnavailable']).toBe(1)
})

test('turns probes of a node agent into flags, and lets the kubelet pass the NetworkPolicy', () => {
  const asked = node({
    drainSeconds: 30,
    networkPolicy: { mode: 'Generated' },
    node: { maxOpenRotatedFilesPerContainer: 3, metadata: { source: 'Kubelet' } },
  })
  const manifests = renderWorkloads(asked, input)
  const container = of(manifests, 'DaemonSet')['spec']?.['template']?.['spec']?.['containers']?.[0] as Deep
  const text = JSON.stringify(container['args'])
  expect(text).toContain('"--removed-drain-seconds","30"')
  expect(text).toContain('"--max-rotated-files","3","--kubelet-address","$(NODE_IP)"')
  expect(container['env']).toContainEqual({ name: 'NODE_IP', valueFrom: { fieldRef: { fieldPath: 'status.hostIP' } } })
  expect(JSON.stringify(of(manifests, 'NetworkPolicy')['spec']?.['egress'])).toContain('"port":10250')
  const plain = JSON.stringify(of(renderWorkloads(node(), input), 'DaemonSet'))
  for (const flag of ['drain-seconds', 'max-rotated-files', 'kubelet']) expect(plain).not.toContain(flag)
})

test('an Agent without network settings accepts only its own port, and reaches no metadata service', () => {
  const policyOf = (mode: WorkloadInput['networkPolicy'], spec: Partial<AgentSpec> = {}) =>
    of(renderWorkloads(node(spec), { ...input, networkPolicy: mode }), 'NetworkPolicy')?.['spec'] as unknown as {
      ingress: unknown
      egress?: { ports?: { port: number }[]; to?: { ipBlock?: { cidr: string; except: string[] } }[] }[]
    }
  const strict = policyOf('NoMetadata')
  expect(strict.ingress).toEqual([{ ports: [{ protocol: 'TCP', port: 8686 }] }])
  const rules = strict.egress ?? []
  // Only DNS, the API server and the operator are allowed at any address; no metadata service listens on these ports.
  const anywhere = rules.filter(({ to }) => to === undefined).flatMap(({ ports = [] }) => ports.map(({ port }) => port))
  expect(anywhere).toEqual([53, 53, 443, 6443, 9443])
  const blocks = rules.flatMap(({ to = [] }) => to.flatMap(({ ipBlock }) => ipBlock ?? []))
  expect(blocks.map(({ cidr }) => cidr)).toEqual(['0.0.0.0/0', '::/0'])
  const open = (address: string) => {
    const block = blocks[address.includes(':') ? 1 : 0]
    return !inNetworks(address, block?.except ?? [])
  }
  const services = [
    '169.254.169.254',
    '169.254.170.2',
    '100.100.100.200',
    '168.63.129.16',
    'fd00:ec2::254',
    'fe80::a9fe:a9fe',
  ]
  expect(services.filter(open)).toEqual([])
  expect(['10.0.0.7', '8.8.8.8', '2001:db8::1', 'fd12::1'].filter(open)).toHaveLength(4)

  expect(policyOf('Metadata')).not.toHaveProperty('egress')
  expect(policyOf('NoMetadata', { networkPolicy: { mode: 'None' } })).toBeUndefined()
  expect(policyOf(undefined)).toBeUndefined()
  expect(policyOf('NoMetadata', { networkPolicy: { mode: 'Generated' } })).toEqual(
    policyOf(undefined, { networkPolicy: { mode: 'Generated' } }),
  )
})

test('the generated NetworkPolicy allows the connections of the bundle, and reads of metrics', () => {
  const policy = of(renderWorkloads(node({ networkPolicy: { mode: 'Generated' } }), input), 'NetworkPolicy')['spec']
  expect(policy).toEqual({
    podSelector: { matchLabels: { 'app.kubernetes.io/name': 'penstock-agent', 'app.kubernetes.io/instance': 'node' } },
    policyTypes: ['Ingress', 'Egress'],
    ingress: [{ ports: [{ protocol: 'TCP', port: 8686 }] }],
    egress: [
      {
        ports: [
          { protocol: 'UDP', port: 53 },
          { protocol: 'TCP', port: 53 },
        ],
      },
      { ports: [443, 3100, 6443, 9200, 9443].map((port) => ({ protocol: 'TCP', port })) },
    ],
  })
})

test('podTemplate is merged last, and lists entry by entry', () => {
  const podTemplate = {
    metadata: { annotations: { team: 'platform' } },
    spec: {
      priorityClassName: 'mine',
      containers: [
        { name: 'agent', env: [{ name: 'HTTPS_PROXY', value: 'http://proxy:3128' }] },
        { name: 'more', image: 'busybox:1' },
      ],
      tolerations: [{ key: 'only', operator: 'Exists' }],
    },
  }
  const patchedAgent = node({ podTemplate })
  expect(workloadProblems(patchedAgent)).toEqual([])
  const template = of(renderWorkloads(patchedAgent, input), 'DaemonSet')['spec']?.['template'] as Deep
  expect(template['metadata']?.['annotations']).toMatchObject({ team: 'platform' })
  expect(template['spec']).toMatchObject({ priorityClassName: 'mine', tolerations: [{ key: 'only' }] })
  const containers = template['spec']?.['containers'] as Deep
  expect(containers.map((container) => container['name'])).toEqual(['agent', 'more'])
  expect(((containers[0] as Deep)['env'] as Deep).map((variable) => variable['name'])).toEqual([
    'AGENT_SELF_NODE_NAME',
    'POD_NAME',
    'POD_NAMESPACE',
    'HTTPS_PROXY',
  ])
})

test('keeps pod fields that users may set, and gives added containers no more rights than the agent', () => {
  const podTemplate = {
    metadata: { labels: { team: 'a' }, annotations: { 'prometheus.io/scrape': 'true' } },
    spec: {
      affinity: { nodeAffinity: {} },
      priorityClassName: 'high',
      nodeSelector: { disk: 'ssd' },
      tolerations: [{ $patch: 'replace' }, { key: 'a', operator: 'Exists' }],
      topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'zone', whenUnsatisfiable: 'ScheduleAnyway' }],
      imagePullSecrets: [{ name: 'pull' }],
      hostAliases: [{ ip: '10.0.0.1', hostnames: ['a'] }],
      dnsConfig: { options: [{ name: 'ndots', value: '1' }] },
      terminationGracePeriodSeconds: 90,
      volumes: [
        { name: 'ca', configMap: { name: 'ca' } },
        { name: 'scratch', emptyDir: {} },
      ],
      containers: [
        {
          name: 'agent',
          env: [{ name: 'NODE_EXTRA_CA_CERTS', value: '/ca/ca.pem' }],
          resources: { limits: { memory: '1Gi' } },
          volumeMounts: [{ name: 'ca', mountPath: '/ca', readOnly: true }],
        },
        { name: 'more', image: 'busybox:1', securityContext: { runAsUser: 7 } },
      ],
    },
  }
  for (const one of [node({ podTemplate }), hub({}, { podTemplate })]) {
    expect(workloadProblems(one)).toEqual([])
    const kind = one.spec.mode === 'Node' ? 'DaemonSet' : 'Deployment'
    const pod = of(renderWorkloads(one, input), kind)['spec']?.['template']?.['spec'] as Deep
    expect(named(pod['containers'] as Deep, 'more')['securityContext']).toEqual({
      allowPrivilegeEscalation: false,
      capabilities: { drop: ['ALL'] },
      runAsNonRoot: true,
      runAsUser: 7,
      seccompProfile: { type: 'RuntimeDefault' },
    })
  }
})

test.each([
  [{ spec: { hostNetwork: true } }, 'podTemplate.spec.hostNetwork'],
  [{ spec: { serviceAccountName: 'x' } }, 'podTemplate.spec.serviceAccountName'],
  [{ spec: { securityContext: { runAsUser: 0 } } }, 'podTemplate.spec.securityContext'],
  [{ spec: { containers: [{ name: 'agent', image: 'x' }] } }, 'podTemplate.spec.containers[0].image'],
  [{ spec: { containers: [{ name: 'agent', $patch: 'delete' }] } }, 'podTemplate.spec.containers[0].$patch'],
  [
    { spec: { containers: [{ name: 'x', securityContext: { privileged: true } }] } },
    'podTemplate.spec.containers[0].securityContext.privileged',
  ],
  [
    { spec: { containers: [{ name: 'x', volumeMounts: [{ name: 'secrets', mountPath: '/s' }] }] } },
    'podTemplate.spec.containers[0].volumeMounts[0]',
  ],
  [{ spec: { volumes: [{ name: 'bundle', emptyDir: {} }] } }, 'podTemplate.spec.volumes[0]'],
  [{ spec: { volumes: [{ name: 'etc', hostPath: { path: '/etc' } }] } }, 'podTemplate.spec.volumes[0].hostPath'],
  [{ metadata: { labels: { 'penstock.dev/agent': 'x' } } }, 'podTemplate.metadata.labels.penstock.dev/agent'],
  [{ status: {} }, 'podTemplate.status'],
  [{ spec: { containers: null } }, 'podTemplate.spec.containers'],
  [{ spec: { containers: { name: 'agent', image: 'x' } } }, 'podTemplate.spec.containers'],
  [{ spec: { volumes: null } }, 'podTemplate.spec.volumes'],
  [{ spec: { volumes: { name: 'a', hostPath: { path: '/' } } } }, 'podTemplate.spec.volumes'],
  [{ spec: null }, 'podTemplate.spec'],
  [{ spec: { ephemeralContainers: [{ name: 'x' }] } }, 'podTemplate.spec.ephemeralContainers'],
  [{ spec: { hostUsers: false } }, 'podTemplate.spec.hostUsers'],
  [{ spec: { '$setElementOrder/containers': [{ name: 'x' }] } }, 'podTemplate.spec.$setElementOrder/containers'],
  [{ spec: { $patch: 'replace' } }, 'podTemplate.spec.$patch'],
  [{ $patch: 'delete' }, 'podTemplate.$patch'],
  [{ spec: { nodeSelector: { $patch: 'replace' } } }, 'podTemplate.spec.nodeSelector.$patch'],
  [{ spec: { nodeSelector: { 'kubernetes.io/os': 'windows' } } }, 'podTemplate.spec.nodeSelector.kubernetes.io/os'],
  [{ metadata: { labels: { a: null } } }, 'podTemplate.metadata.labels.a'],
  [{ metadata: { name: 'x' } }, 'podTemplate.metadata.name'],
  [{ spec: { volumes: [{ name: 'x', csi: { driver: 'd' } }] } }, 'podTemplate.spec.volumes[0].csi'],
  [{ spec: { volumes: [{ name: 'x', flexVolume: { driver: 'd' } }] } }, 'podTemplate.spec.volumes[0].flexVolume'],
  [{ spec: { volumes: [{ name: 'logs-0', emptyDir: {} }] } }, 'podTemplate.spec.volumes[0]'],
  [
    { spec: { volumes: [{ name: 'x', projected: { sources: [{ serviceAccountToken: { path: 't' } }] } }] } },
    'podTemplate.spec.volumes[0].projected.sources[0].serviceAccountToken',
  ],
  ...['NODE_OPTIONS', 'LD_PRELOAD', 'POD_NAMESPACE', 'PATH'].map(
    (name) =>
      [
        { spec: { containers: [{ name: 'agent', env: [{ name, value: 'x' }] }] } },
        'podTemplate.spec.containers[0].env[0]',
      ] as const,
  ),
  ...(
    [
      'lifecycle',
      'envFrom',
      'workingDir',
      'volumeDevices',
      'livenessProbe',
      'args',
      'command',
      'ports',
      'securityContext',
    ] as const
  ).flatMap((member) =>
    ['agent', 'data-dir'].map(
      (name) =>
        [
          { spec: { initContainers: [{ name, [member]: {} }] } },
          `podTemplate.spec.initContainers[0].${member}`,
        ] as const,
    ),
  ),
  ...[
    { runAsUser: 0 },
    { runAsNonRoot: false },
    { procMount: 'Unmasked' },
    { seLinuxOptions: { type: 'spc_t' } },
    { allowPrivilegeEscalation: true },
    { windowsOptions: {} },
  ].map(
    (context) =>
      [
        { spec: { containers: [{ name: 'x', securityContext: context }] } },
        `podTemplate.spec.containers[0].securityContext.${Object.keys(context)[0]}`,
      ] as const,
  ),
  [
    { spec: { containers: [{ name: 'x', securityContext: { capabilities: { add: ['SYS_ADMIN'] } } }] } },
    'podTemplate.spec.containers[0].securityContext.capabilities.add',
  ],
  [
    { spec: { containers: [{ name: 'x', securityContext: { seccompProfile: { type: 'Unconfined' } } }] } },
    'podTemplate.spec.containers[0].securityContext.seccompProfile.type',
  ],
  [
    { spec: { containers: [{ name: 'x', ports: [{ containerPort: 1, hostPort: 1 }] }] } },
    'podTemplate.spec.containers[0].ports[0].hostPort',
  ],
] as readonly (readonly [object, string])[])('podTemplate %j is refused at %s', (podTemplate, path) => {
  const problems = workloadProblems(node({ podTemplate }))
  expect(problems.map((problem) => problem.path)).toEqual([path])
  expect(problems[0]?.help).not.toBe('')
})

test('an Agent reports every invalid folder, and limits that contradict each other', () => {
  expect(
    workloadProblems(node({ node: { dataDir: { hostPath: '/' }, logPaths: { extraReadOnly: ['/a', '../b'] } } })).map(
      (problem) => problem.path,
    ),
  ).toEqual(['node.dataDir.hostPath', 'node.logPaths.extraReadOnly[1]'])
  expect(
    workloadProblems(
      hub({
        podDisruptionBudget: { maxUnavailable: 1, minAvailable: 1 },
        autoscaling: { minReplicas: 3, maxReplicas: 2 },
      }),
    ).map((problem) => problem.path),
  ).toEqual(['aggregator.podDisruptionBudget', 'aggregator.autoscaling.minReplicas'])
})

test.each([
  [
    { mode: 'Aggregator', aggregator: { service: { trafficDistribution: 'PreferSameZone' } } },
    'aggregator.service.trafficDistribution',
  ],
] as const)('%j requires unsupported features', (spec, path) => {
  expect(workloadProblems(agent(spec)).map((problem) => [problem.path, problem.message])).toEqual([
    [path, expect.stringContaining('not available in this version')],
  ])
})

test.each([
  [{ a: { b: 1, c: 2 } }, { a: { b: null } }, { a: { c: 2 } }],
  [
    { volumes: [{ name: 'x' }, { name: 'y' }] },
    { volumes: [{ name: 'x', $patch: 'delete' }] },
    { volumes: [{ name: 'y' }] },
  ],
  [{ env: [{ name: 'x', value: '1' }] }, { env: [{ $patch: 'replace' }, { name: 'z' }] }, { env: [{ name: 'z' }] }],
  [{ a: { b: 1 } }, { a: { $patch: 'replace', c: 1 } }, { a: { c: 1 } }],
  [{ args: ['a', 'b'] }, { args: ['c'] }, { args: ['c'] }],
  [{ f: ['a', 'b'] }, { '$deleteFromPrimitiveList/f': ['a'] }, { f: ['b'] }],
])('a strategic merge of %j with %j is %j', (base, patch, result) => {
  expect(strategicMerge(base, patch)).toEqual(result)
})

test('each mode passes on the detail of metrics and the prefix of their names', () => {
  const monitoring = { detail: 'Pipeline', metricPrefix: 'penstock_' } as const
  const argumentsOf = (manifests: readonly Manifest[], kind: string) =>
    of(manifests, kind)['spec']?.['template']?.['spec']?.['containers']?.[0]?.['args']
  for (const [given, kind] of [
    [node({ monitoring }), 'DaemonSet'],
    [hub({}, { monitoring }), 'Deployment'],
  ] as const) {
    expect(JSON.stringify(argumentsOf(renderWorkloads(given, input), kind))).toContain(
      '"--metrics-detail","pipeline","--metric-prefix","penstock_"',
    )
    const plain = renderWorkloads({ ...given, spec: { ...given.spec, monitoring: {} } }, input)
    expect(JSON.stringify(argumentsOf(plain, kind))).not.toMatch(/metrics-detail|metric-prefix/)
  }
})

test('refuses fields of own pods in mode Sidecar', () => {
  const spec: AgentSpec = {
    mode: 'Sidecar',
    podTemplate: { spec: { priorityClassName: 'x' } },
    networkPolicy: { mode: 'Generated' },
    imagePullSecrets: [{ name: 'pull' }],
    monitoring: { podMonitor: { enabled: true } },
  }
  expect(workloadProblems(agent(spec)).map(({ path }) => path)).toEqual([
    'podTemplate',
    'networkPolicy',
    'imagePullSecrets',
    'monitoring.podMonitor',
  ])
  expect(workloadProblems(agent({ mode: 'Sidecar', monitoring: { detail: 'Pipeline' } }))).toEqual([])
})
