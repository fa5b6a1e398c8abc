// A tenant with the role `edit` in a namespace in which the operator may manage Agents tries to obtain data of others with its Agents. The
// test uses the permissions of the installation, the operator as a process with its own account, and a real API server.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parseAllDocuments } from 'yaml'
import { type Cluster, missingForCluster, startCluster } from '../cluster/cluster.ts'
import { root } from '../command.ts'
import {
  apiVersion,
  type ConditionLike,
  eventually,
  OperatorProcess,
  prepare,
  signIn,
  system,
} from '../operator/process.ts'

const rights = parseAllDocuments(readFileSync(join(root, 'operator/install.yaml'), 'utf8'))
  .map((one) => one.toJS() as { readonly kind: string })
  .filter(({ kind }) => /^(ServiceAccount|(Cluster)?Role(Binding)?)$/.test(kind))

const rbac = { apiGroup: 'rbac.authorization.k8s.io' }
const mallory = ['--as', 'mallory']
const missing = missingForCluster(0)

const secretOf = (namespace: string, token: string) => ({
  ...{ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'creds', namespace } },
  stringData: { token },
})
const sinkOf = (namespace?: string) => ({
  type: 'log_aggregator',
  config: {
    endpoint: 'https://loki.example.com',
    labels: { a: 'b' },
    encoding: { codec: 'json' },
    auth: { strategy: 'bearer', token: { valueFrom: { secretKeyRef: { name: 'creds', key: 'token', namespace } } } },
  },
})
const pipelineOf = (namespace: string, name: string, sink: object) => ({
  ...{ apiVersion, kind: 'Pipeline', metadata: { name, namespace } },
  spec: {
    mode: 'Aggregator',
    sources: [{ name: 'in', type: 'demo_logs', config: { format: 'json' } }],
    sinks: [{ name: 'out', ...sink }],
  },
})
const clusterSinkOf = (name: string, more: object) => ({
  ...{ apiVersion, kind: 'ClusterSink', metadata: { name } },
  spec: { ...sinkOf(system), allowedNamespaces: { from: 'All' }, ...more },
})

describe.skipIf(missing !== undefined)(`Agents of a tenant${missing === undefined ? '' : ` (${missing})`}`, () => {
  const resources = new AsyncDisposableStack()
  let cluster: Cluster

  const asMallory = (object: object) =>
    cluster.kubectl([...mallory, 'apply', '-f', '-'], { input: JSON.stringify(object) })
  const read = async (...args: string[]) => JSON.parse(await cluster.kubectl([...args, '-o', 'json']))
  const conditionIn = async (kind: string, name: string, type: string): Promise<ConditionLike | undefined> =>
    (await read('-n', 'evil', 'get', kind, name)).status?.conditions?.find((one: ConditionLike) => one.type === type)
  /** All content that the tenant can read in the Secrets of an Agent. */
  const valuesOf = async (agent: string) => {
    const { items } = await read(...mallory, '-n', 'evil', 'get', 'secrets', '-l', `penstock.dev/agent=${agent}`)
    const data = (items as { metadata: { name: string }; data?: Record<string, string> }[])
      .filter(({ metadata }) => metadata.name.includes('-sec-'))
      .flatMap((secret) => Object.values(secret.data ?? {}))
    return data.map((value) => Buffer.from(value, 'base64').toString()).sort()
  }

  beforeAll(async () => {
    cluster = resources.use(await startCluster())
    await prepare(cluster, 'shop', 'evil')
    const bound = (kind: string, name: string, role: string, subject: object, namespace?: string) => ({
      ...{
        apiVersion: `${rbac.apiGroup}/v1`,
        kind,
        metadata: { name, ...(namespace === undefined ? {} : { namespace }) },
      },
      ...{ roleRef: { ...rbac, kind: 'ClusterRole', name: role }, subjects: [subject] },
    })
    const user = { ...rbac, kind: 'User', name: 'mallory' }
    const operator = { kind: 'ServiceAccount', name: 'penstock-operator', namespace: system }
    await cluster.apply(
      ...rights,
      // The same permission that `tenantAgents.enabled` grants.
      bound('ClusterRoleBinding', 'penstock-operator-namespace', 'penstock-operator-namespace', operator),
      bound('RoleBinding', 'edit', 'edit', user, 'evil'),
      bound('RoleBinding', 'penstock-edit', 'penstock-edit', user, 'evil'),
      ...[secretOf('shop', 'OF-SHOP'), secretOf('evil', 'OF-EVIL'), secretOf(system, 'OF-THE-PLATFORM')],
      {
        apiVersion,
        kind: 'TenantPolicy',
        metadata: { name: 'all' },
        spec: { namespaceSelector: {}, allowedSources: ['*'] },
      },
    )
    await cluster.apply(
      clusterSinkOf('closed', {}),
      clusterSinkOf('lent', { allowedAgents: 'Tenant' }),
      pipelineOf('shop', 'orders', sinkOf()),
      { ...pipelineOf('', 'audit', sinkOf(system)), kind: 'ClusterPipeline', metadata: { name: 'audit' } },
    )
    const kubeconfig = join(cluster.folder, 'operator-kubeconfig')
    await signIn(cluster, 'penstock-operator', kubeconfig)
    await resources.use(OperatorProcess.start({ kubeconfig, args: ['--leader-election=false'] })).leading()
  })
  afterAll(() => resources.disposeAsync())

  test('receive only values of their own namespace, for any selection', async () => {
    await asMallory(pipelineOf('evil', 'own', sinkOf()))
    await asMallory(pipelineOf('evil', 'closed', { ref: { kind: 'ClusterSink', name: 'closed' } }))
    const pipelines = { namespaceSelector: {}, clusterPipelines: { selector: {} } }
    for (const [name, mode] of [
      ['hub', 'Aggregator'],
      ['side', 'Sidecar'],
    ] as const)
      await asMallory({ apiVersion, kind: 'Agent', metadata: { name, namespace: 'evil' }, spec: { mode, pipelines } })
    await eventually(async () => expect(await valuesOf('hub')).toEqual(['OF-EVIL']))
    await eventually(async () => expect((await conditionIn('plagent', 'side', 'Accepted'))?.status).toBe('True'))
    expect(await valuesOf('side')).toEqual([])
    await eventually(async () => {
      const narrowed = await conditionIn('plagent', 'hub', 'Narrowed')
      expect(narrowed?.message).toContain('It receives only Pipelines of namespace "evil"')
      const accepted = await conditionIn('pl', 'closed', 'Accepted')
      expect([accepted?.status, accepted?.reason]).toEqual(['False', 'NoMatchingAgent'])
      expect(accepted?.message).toContain(`it needs Secret "creds" of namespace "${system}"`)
      expect(accepted?.message).toContain('`allowedAgents: Tenant`')
    })
    // Values that an owner shares arrive. By then, any other values would also have arrived.
    await asMallory(pipelineOf('evil', 'lent', { ref: { kind: 'ClusterSink', name: 'lent' } }))
    await eventually(async () => expect(await valuesOf('hub')).toEqual(['OF-EVIL', 'OF-THE-PLATFORM']))
    // The value is removed when the owner no longer shares it.
    await cluster.kubectl([
      'patch',
      'clustersinks.penstock.dev',
      'lent',
      '--type',
      'merge',
      '-p',
      '{"spec":{"allowedAgents":"Platform"}}',
    ])
    await eventually(async () => expect(await valuesOf('hub')).toEqual(['OF-EVIL']))
  })

  test('have accounts without any cluster-wide permission', async () => {
    await eventually(async () => {
      expect(await cluster.kubectl(['-n', 'evil', 'get', 'sa', '-o', 'name'])).toContain('penstock-hub')
    })
    const may = async (...what: string[]) =>
      (
        await cluster
          .kubectl(['auth', 'can-i', ...what, '--as', 'system:serviceaccount:evil:penstock-hub'])
          .catch((error: Error) => error.message)
      ).trim()
    for (const what of [
      ['list', 'namespaces'],
      ['create', 'tokenreviews.authentication.k8s.io'],
      ['create', 'subjectaccessreviews.authorization.k8s.io'],
      ['list', 'events.events.k8s.io', '-A'],
    ])
      expect(await may(...what), what.join(' ')).not.toMatch(/^yes/m)
  })

  test('do not take over an existing object with a name that they use', async () => {
    const labels = { app: 'web' }
    const containers = [{ name: 'web', image: 'example.com/web:1' }]
    const spec = {
      replicas: 0,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers } },
    }
    await asMallory({
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'penstock-web', namespace: 'evil' },
      spec,
    })
    await asMallory({
      apiVersion,
      kind: 'Agent',
      metadata: { name: 'web', namespace: 'evil' },
      spec: { mode: 'Aggregator' },
    })
    await eventually(async () => {
      const accepted = await conditionIn('plagent', 'web', 'Accepted')
      expect([accepted?.status, accepted?.reason]).toEqual(['False', 'NameConflict'])
      expect(accepted?.message).toContain('Deployment evil/penstock-web exists but does not belong to Penstock')
    })
    const live = await read('-n', 'evil', 'get', 'deployment', 'penstock-web')
    expect(live.spec.template.spec.containers).toMatchObject(containers)
    expect(live.metadata.ownerReferences).toBeUndefined()
  })
})
