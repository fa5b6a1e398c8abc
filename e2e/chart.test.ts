// The charts rendered by `helm`: reproducible output, the same objects as operator/install.yaml, no undeclared values, and no unknown
// metrics in dashboards.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { execute, root } from './command.ts'
import {
  chart,
  helm,
  helmCommand,
  helmTemplate,
  missingForHelm,
  objectsOf,
  prepareHelm,
  type RenderedObject,
} from './helm.ts'

const missing = missingForHelm()

/** All features enabled. */
const everything = {
  agentNamespaces: ['penstock-system', 'platform'],
  tenantAgents: { enabled: true },
  networkPolicy: { enabled: true, allowMetadataServices: true },
  metrics: {
    serviceMonitor: { enabled: true },
    podMonitor: { enabled: true },
    prometheusRule: { enabled: true, labels: { release: 'monitoring' } },
    dashboards: { enabled: true },
  },
  webhook: {
    replicas: 2,
    certManager: { enabled: true },
    clientCertificate: { secret: 'api-server', names: ['kube-apiserver'] },
  },
  openshift: { enabled: true },
  podSecurity: { labelNamespace: true },
  commonLabels: { team: 'platform' },
  commonAnnotations: { note: 'x' },
  imagePullSecrets: [{ name: 'pull' }],
  clusterSinks: [{ name: 'loki', spec: { type: 'log_aggregator', config: {} } }],
  tenantPolicies: [{ name: 'default', spec: { namespaceSelector: {} } }],
  extraObjects: [{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'extra' } }],
}

const key = (object: RenderedObject) =>
  `${object.apiVersion} ${object.kind} ${object.metadata.namespace ?? ''}/${object.metadata.name}`
const byKey = (objects: readonly RenderedObject[]) => Object.fromEntries(objects.map((object) => [key(object), object]))
const isHookOf = (metadata: RenderedObject['metadata']) => metadata.annotations?.['helm.sh/hook'] !== undefined
const isHook = (object: RenderedObject) => isHookOf(object.metadata)
const find = (objects: readonly RenderedObject[], kind: string, name: string) =>
  objects.find((object) => object.kind === kind && object.metadata.name === name) as RenderedObject & {
    readonly [field: string]: Record<string, unknown>
  }

type Table = Record<string, unknown>
interface Schema {
  readonly properties?: Readonly<Record<string, Schema>>
}

/** Values with user-defined members, whose members are not checked here. */
const leavesOf = (schema: Schema, path: readonly string[] = []): string[] =>
  schema.properties === undefined
    ? [path.join('.')]
    : Object.entries(schema.properties).flatMap(([key, inner]) => leavesOf(inner, [...path, key]))
const nested = (path: string, value: unknown): Table =>
  path.split('.').reduceRight<unknown>((inner, key) => ({ [key]: inner }), value) as Table
const isTable = (value: unknown) => typeof value === 'object' && value !== null && !Array.isArray(value)
function merged(left: Table, right: Table): Table {
  const all = { ...left }
  for (const [key, value] of Object.entries(right))
    all[key] = isTable(all[key]) && isTable(value) ? merged(all[key] as Table, value as Table) : value
  return all
}
/** A different value of the same type. */
function otherThan(value: unknown): unknown {
  if (typeof value === 'boolean') return !value
  if (typeof value === 'number') return value + 3
  if (typeof value === 'string') return 'other'
  return Array.isArray(value) ? ['other'] : { other: 'other' }
}
const digest = (digit: string) => `sha256:${digit.repeat(64)}`
const others: Readonly<Record<string, unknown>> = {
  'image.digest': digest('0'),
  'image.pullPolicy': 'Always',
  'agentImage.digest': digest('0'),
  'secrets.mode': 'Label',
  'rbac.scope': 'Namespaced',
  logLevel: 'debug',
  heartbeatPeriod: '10s',
  'webhook.failurePolicy': 'Fail',
  'metrics.prometheusRule.metricPrefix': 'other_',
  'metrics.dashboards.metricPrefix': 'other_',
  imagePullSecrets: [{ name: 'other' }],
  tolerations: [{ operator: 'Exists' }],
  topologySpreadConstraints: [{ maxSkew: 2 }],
  agents: [],
  clusterSinks: [{ name: 'other', spec: {} }],
  clusterPipelines: [{ name: 'other', spec: {} }],
  tenantPolicies: [{ name: 'other', spec: {} }],
  extraObjects: [{ kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'other' } }],
}
/** The minimal values for an installation without ClusterRoles. */
const rolesOnly = {
  rbac: { scope: 'Namespaced' },
  watch: { namespaces: ['shop', 'blog'] },
  webhook: { enabled: false },
  crds: { install: false },
}
/** Features that are disabled by default, and whose settings have an effect only if they are enabled. */
const companions = [
  'metrics.serviceMonitor',
  'metrics.podMonitor',
  'metrics.prometheusRule',
  'metrics.dashboards',
  'webhook.certManager',
]

describe.skipIf(missing !== undefined)(`the charts${missing === undefined ? '' : ` (${missing})`}`, () => {
  beforeAll(() => prepareHelm())

  test('the default values render the objects of operator/install.yaml', async () => {
    const rendered = objectsOf(await helmTemplate()).filter((object) => !isHook(object))
    const manifest = objectsOf(readFileSync(join(root, 'operator/install.yaml'), 'utf8'))
    for (const object of rendered) delete object.metadata.annotations?.['helm.sh/resource-policy'] // Helm's own
    for (const object of [...rendered, ...manifest]) {
      const data = object['data'] as Record<string, string> | undefined
      if (data?.['resources.json'] !== undefined) data['resources.json'] = JSON.parse(data['resources.json'])
    }

    const namespace = manifest.filter((object) => object.kind === 'Namespace')
    expect(namespace.map(key)).toEqual(['v1 Namespace /penstock-system'])
    expect(byKey(rendered)).toEqual(byKey(manifest.filter((object) => object.kind !== 'Namespace')))
  })

  test.each([
    ['default values', {}],
    ['all features enabled', everything],
  ])('with %s, two renderings are identical', async (_, values) => {
    const first = await helmTemplate(values)
    expect(await helmTemplate(values)).toBe(first)
    expect(first).not.toMatch(/<no value>|<nil>/)
    const objects = objectsOf(first)
    expect(new Set(objects.map(key)).size).toBe(objects.length)
  })

  test('helm uninstall waits for no Job or Pod, whose image may be unavailable', async () => {
    const hooks = objectsOf(await helmTemplate(everything)).filter(({ metadata }) =>
      /delete/.test(metadata.annotations?.['helm.sh/hook'] ?? ''),
    )
    expect(hooks).toEqual([])
  })

  test('both charts pass lint', async () => {
    await helm(['lint', '--strict', chart(), chart('penstock-crds'), '--kube-version', '1.36.0'])
  })

  test('an undeclared value is rejected', async () => {
    const args = ['template', 'x', chart(), '--kube-version', '1.36.0', '--set']
    for (const [set, word] of [
      ['replica=3', 'replica'],
      ['webhook.failPolicy=Fail', 'failPolicy'],
      ['replicas=many', 'replicas'],
      ['webhook.failurePolicy=Maybe', 'failurePolicy'],
      ['image.digest=sha256:0', 'digest'],
    ] as const) {
      const result = await execute(helmCommand, [...args, set])
      expect(result.code, set).not.toBe(0)
      expect(result.stderr, set).toContain(word)
    }
  })

  test('all values of values.yaml have an effect', { timeout: 600_000 }, async () => {
    const fallback = parse(readFileSync(join(chart(), 'values.yaml'), 'utf8')) as Record<string, unknown>
    const schema = JSON.parse(readFileSync(join(chart(), 'values.schema.json'), 'utf8')) as Schema
    const without: string[] = []
    const leaves = leavesOf(schema).filter((path) => path !== 'global')
    expect(leaves.length).toBeGreaterThan(50)
    const rendered = new Map<string, Promise<string>>()
    const render = (values: object) => {
      const key = JSON.stringify(values)
      const known = rendered.get(key) ?? helmTemplate(values)
      rendered.set(key, known)
      return known
    }
    for (const path of leaves) {
      // Some values have an effect only together with another one.
      const switched = companions.find((name) => path.startsWith(`${name}.`) && path !== `${name}.enabled`)
      const alone =
        path === 'leaderElection.enabled'
          ? { replicas: 1 }
          : path === 'rbac.scope'
            ? { ...rolesOnly, rbac: {} }
            : path === 'webhook.clientCertificate.names'
              ? nested('webhook.clientCertificate.secret', 'other')
              : {}
      const companion = switched === undefined ? alone : nested(`${switched}.enabled`, true)
      const other =
        others[path] ?? otherThan(path.split('.').reduce<unknown>((at, key) => (at as Table)[key], fallback))
      const before = await render(companion)
      if ((await render(merged(companion, nested(path, other)))) === before) without.push(path)
    }
    expect(without).toEqual([])
  })

  test('an image with a digest is referenced by digest everywhere', async () => {
    const images = {
      image: { repository: 'registry.example/operator', digest: digest('a'), tag: 'unused' },
      agentImage: { repository: 'registry.example/agent', digest: digest('b') },
    }
    const text = await helmTemplate(merged({ webhook: { replicas: 2 } }, images))
    const named = text.match(/registry\.example\S*/g) ?? []
    const operator = `registry.example/operator@${digest('a')}`
    const agent = `registry.example/agent@${digest('b')}`
    // Two Deployments, each of which also names the agents' image, and the test.
    expect(named.sort()).toEqual([agent, agent, operator, operator, operator])
    expect(text).not.toMatch(/penstock\/(operator|agent):/)
  })

  test('several replicas without leader election are rejected', async () => {
    await expect(helmTemplate({ leaderElection: { enabled: false } })).rejects.toThrow(/Set replicas to 1/)
    await helmTemplate({ leaderElection: { enabled: false }, replicas: 1 })
  })

  test('the CRDs are the same as in the CRD chart, and can be disabled', async () => {
    const crds = (text: string) => objectsOf(text).filter((object) => object.kind === 'CustomResourceDefinition')
    const together = crds(await helmTemplate())
    expect(together).toHaveLength(8)
    expect(crds(await helmTemplate({}, 'penstock-crds'))).toEqual(together)
    for (const crd of together) {
      expect(crd.metadata.annotations).toMatchObject({
        'helm.sh/resource-policy': 'keep',
        'argocd.argoproj.io/sync-wave': '-1',
      })
    }
    expect(crds(await helmTemplate({ crds: { install: false } }))).toEqual([])
    const loose = crds(await helmTemplate({ crds: { keep: false } }))
    expect(loose.filter((crd) => crd.metadata.annotations?.['helm.sh/resource-policy'] !== undefined)).toEqual([])
  })

  test('enabled features add their objects, and all objects have the common labels', async () => {
    const objects = objectsOf(await helmTemplate(everything))
    const keys = objects.map(key)
    for (const expected of [
      'monitoring.coreos.com/v1 ServiceMonitor penstock-system/penstock-operator',
      'monitoring.coreos.com/v1 PodMonitor penstock-system/penstock-operator',
      'monitoring.coreos.com/v1 PrometheusRule penstock-system/penstock',
      'v1 ConfigMap penstock-system/penstock-agents-dashboard',
      'networking.k8s.io/v1 NetworkPolicy penstock-system/penstock-operator',
      'apps/v1 Deployment penstock-system/penstock-webhook',
      'cert-manager.io/v1 Certificate penstock-system/penstock-operator',
      'security.openshift.io/v1 SecurityContextConstraints /penstock-node',
      'rbac.authorization.k8s.io/v1 RoleBinding platform/penstock-operator-agents',
      'rbac.authorization.k8s.io/v1 ClusterRoleBinding /penstock-operator-namespace',
      'v1 ConfigMap /extra',
    ])
      expect(keys).toContain(expected)
    for (const object of objects) {
      if (object.metadata.name === 'extra') continue
      expect(object.metadata.labels?.['team'], key(object)).toBe('platform')
      expect(object.metadata.annotations?.['note'], key(object)).toBe('x')
    }
    const defaults = find(objects, 'ConfigMap', 'penstock-defaults')['data'] as Record<string, string>
    expect(JSON.parse(defaults['resources.json'] as string).map((one: { kind: string }) => one.kind)).toEqual([
      'Agent',
      'ClusterSink',
      'TenantPolicy',
    ])
  })

  test('alerts and dashboards select the configured jobs, and alerts link to the guide', async () => {
    const jobs = 'monitoring/(node|hub)'
    const runbooks = 'https://git.example.com/guide/'
    const metrics = { prometheusRule: { enabled: true, jobs, runbooks }, dashboards: { enabled: true, jobs } }
    const objects = objectsOf(await helmTemplate({ metrics }))
    const { groups } = find(objects, 'PrometheusRule', 'penstock')['spec'] as {
      groups: { rules: { expr: string; annotations: Record<string, string> }[] }[]
    }
    const rules = groups.flatMap((group) => group.rules)
    expect(rules.length).toBeGreaterThan(10)
    for (const { expr, annotations } of rules) {
      expect(expr).toContain(`job=~"${jobs}"`)
      expect(annotations['runbook_url']).toMatch(/^https:\/\/git\.example\.com\/guide\/troubleshooting\.md#[a-z-]+$/)
    }
    for (const name of ['agents', 'operator']) {
      const data = find(objects, 'ConfigMap', `penstock-${name}-dashboard`)['data'] as Record<string, string>
      const { panels } = JSON.parse(data[`penstock-${name}.json`] ?? '')
      for (const { targets } of panels) expect(targets[0].expr).toContain(`job=~"${jobs}"`)
    }
  })

  test('alerts and dashboards use the metrics prefix for agents, but not for the operator', async () => {
    const metricPrefix = 'penstock_'
    const metrics = { prometheusRule: { enabled: true, metricPrefix }, dashboards: { enabled: true, metricPrefix } }
    const exprsOf = (objects: RenderedObject[]) => {
      const { groups } = find(objects, 'PrometheusRule', 'penstock')['spec'] as {
        groups: { rules: { alert: string; expr: string }[] }[]
      }
      const rules = groups.flatMap((group) => group.rules.map(({ alert, expr }) => [alert, expr]))
      const panels = ['agents', 'operator'].flatMap((name) => {
        const data = find(objects, 'ConfigMap', `penstock-${name}-dashboard`)['data'] as Record<string, string>
        const board = JSON.parse(data[`penstock-${name}.json`] ?? '')
        const titled = (board.panels as { title: string; targets: { expr: string }[] }[]).map(({ title, targets }) => [
          `${name} / ${title}`,
          targets[0]?.expr,
        ])
        const variables = (board.templating.list as { name: string; query: { query?: string } }[]).map((each) => [
          `${name} $${each.name}`,
          each.query.query,
        ])
        return [...titled, ...variables]
      })
      return new Map([...rules, ...panels].map(([key = '', expr = '']) => [key, expr] as const))
    }
    const exprs = exprsOf(objectsOf(await helmTemplate({ metrics })))
    expect(exprs.get('PenstockReloadFailed')).toBe(
      'count by (job) (penstock_config_last_reload_success{job=~".*penstock.*"} == 0) > 0',
    )
    expect(exprs.get('PenstockAgentDown')).toBe('sum by (job) (up{job=~".*penstock.*"} == bool 0) > 0')
    expect(exprs.get('PenstockReconcileErrors')).toContain('(controller_runtime_reconcile_total{')
    expect(exprs.get('agents / Reading delay, p99')).toContain('(penstock_source_lag_time_seconds_bucket{')
    expect(exprs.get('agents / CPU of agents')).toContain('(penstock_process_cpu_seconds_total{')
    expect(exprs.get('operator / CPU of operators')).toContain('(process_cpu_seconds_total{')
    expect(exprs.get('agents $node')).toContain('label_values(penstock_build_info{')
    for (const expr of exprs.values()) expect(expr).not.toContain('penstock_penstock_')
  })

  test('no role can create roles, and only the roles of agents can be bound', async () => {
    const watching = { watch: { namespaces: ['shop'] } }
    for (const values of [{}, everything, watching, { secrets: { mode: 'Namespaced' } }, rolesOnly]) {
      for (const object of objectsOf(await helmTemplate(values))) {
        if (object.kind !== 'ClusterRole' && object.kind !== 'Role') continue
        for (const rule of object['rules'] as Record<string, string[]>[]) {
          const { apiGroups = [], resources = [], verbs = [], resourceNames = [] } = rule
          const where = `${key(object)}: ${JSON.stringify(rule)}`
          expect([...apiGroups, ...resources, ...verbs], where).not.toContain('*')
          expect(verbs, where).not.toContain('escalate')
          expect(verbs, where).not.toContain('impersonate')
          expect(resources, where).not.toContain('nodes/proxy')
          expect(resources, where).not.toContain('pods/exec')
          if (resources.includes('roles') || resources.includes('clusterroles')) {
            for (const verb of verbs) expect(['get', 'bind'], where).toContain(verb)
            if (!verbs.includes('bind')) continue
            const ofCluster = resources.includes('clusterroles') ? ['penstock-agent-events'] : []
            const bound = ['penstock-agent-node', 'penstock-agent-aggregator', ...ofCluster]
            // This role is bound only in the namespaces of Agents.
            const ofAgents =
              object.metadata.name === 'penstock-operator-namespace' ? ['penstock-agent-election'] : bound
            expect(resourceNames, where).toEqual(ofAgents)
          }
        }
      }
    }
  })

  test('with namespaced Secrets, no role of the operator reads Secrets of other namespaces', async () => {
    const objects = objectsOf(await helmTemplate({ secrets: { mode: 'Namespaced' } }))
    const role = find(objects, 'ClusterRole', 'penstock-operator')
    const rules = role['rules'] as unknown as Record<string, string[]>[]
    expect(rules.filter((rule) => rule['resources']?.includes('secrets'))).toEqual([])
    expect(find(objects, 'ClusterRole', 'penstock-operator-secrets')).toBeDefined()
  })

  test('with Roles only, no object is cluster-scoped, and each namespace has the objects used in it', async () => {
    const objects = objectsOf(await helmTemplate(rolesOnly))
    expect(objects.filter(({ metadata }) => metadata.namespace === undefined).map(key)).toEqual([])
    const roles = (namespace: string, values: RenderedObject[] = objects) =>
      values.filter(({ kind, metadata }) => kind === 'Role' && metadata.namespace === namespace && !isHookOf(metadata))
    const names = (list: readonly RenderedObject[]) => list.map(({ metadata }) => metadata.name).sort()
    expect(names(roles('shop'))).toEqual([
      'penstock-admin',
      'penstock-agent-node',
      'penstock-edit',
      'penstock-operator-watch',
      'penstock-view',
    ])
    expect(names(roles('penstock-system'))).toEqual([
      'penstock-agent-aggregator',
      'penstock-cli',
      'penstock-metrics-reader',
      'penstock-operator',
      'penstock-operator-agents',
      'penstock-operator-watch',
    ])
    // All Roles of the operator are bound, and grant access to their own Namespace by name.
    for (const { metadata } of objects.filter(
      ({ kind, metadata }) => kind === 'Role' && /operator/.test(metadata.name),
    ))
      expect(objects.map(key)).toContain(
        `rbac.authorization.k8s.io/v1 RoleBinding ${metadata.namespace}/${metadata.name}`,
      )
    for (const name of ['penstock-operator-watch', 'penstock-agent-node']) {
      const rules = roles('blog').find(({ metadata }) => metadata.name === name)?.['rules'] as Record<
        string,
        string[]
      >[]
      const itself = { apiGroups: [''], resources: ['namespaces'], resourceNames: ['blog'], verbs: ['get', 'watch'] }
      expect(rules).toContainEqual(itself)
    }
    const refs = objects.filter(({ kind }) => kind === 'RoleBinding').map((one) => one['roleRef'] as { kind: string })
    expect(refs.filter(({ kind }) => kind !== 'Role')).toEqual([])
    const args = JSON.stringify(find(objects, 'Deployment', 'penstock-operator')['spec'])
    expect(args).toContain('"--watch-namespaces=shop,blog","--rbac-scope=Namespaced"')
    expect(args).not.toContain('--webhook-address')

    // Values of Secrets in namespaces in which the platform binds the Role; Agents in tenant namespaces.
    const more = objectsOf(
      await helmTemplate(merged(rolesOnly, { secrets: { mode: 'Namespaced' }, tenantAgents: { enabled: true } })),
    )
    expect(names(roles('shop', more))).toEqual(
      expect.arrayContaining(['penstock-agent-aggregator', 'penstock-operator-agents', 'penstock-operator-secrets']),
    )
    const watch = roles('shop', more).find(({ metadata }) => metadata.name === 'penstock-operator-watch')
    const rules = (watch?.['rules'] ?? []) as Record<string, string[]>[]
    const readable = rules.flatMap((rule) => rule['resources'] ?? [])
    expect(readable).toContain('configmaps')
    expect(readable).not.toContain('secrets')
    expect(more.map(key)).not.toContain('rbac.authorization.k8s.io/v1 RoleBinding shop/penstock-operator-secrets')
  })

  test('with Roles only, all settings that need cluster-scoped objects are rejected together', async () => {
    const wanted = { rbac: { scope: 'Namespaced' }, authorizeClusterPipelines: true }
    const refused = helmTemplate(
      merged(wanted, { clusterSinks: [{ name: 'loki', spec: {} }], openshift: { enabled: true } }),
    )
    await expect(refused).rejects.toThrow(
      /watch\.namespaces must list.*webhook\.enabled must be false.*openshift\.enabled must be false.*authorizeClusterPipelines must be false.*clusterSinks must be empty/s,
    )
  })

  test('the webhook checks authors of ClusterPipelines, and the operator may apply those in the values', async () => {
    const collects = (objects: ReturnType<typeof objectsOf>) =>
      (find(objects, 'ClusterRole', 'penstock-operator')['rules'] as unknown as { verbs: string[] }[]).filter(
        ({ verbs }) => verbs.includes('collect'),
      )
    const effects = (objects: ReturnType<typeof objectsOf>) =>
      (
        find(objects, 'ValidatingWebhookConfiguration', 'penstock')['webhooks'] as unknown as { sideEffects: string }[]
      ).map((webhook) => webhook.sideEffects)
    const plain = objectsOf(await helmTemplate({ clusterPipelines: [{ name: 'all', spec: {} }] }))
    expect([collects(plain), effects(plain)]).toEqual([[], ['NoneOnDryRun', 'None']])
    const values = { authorizeClusterPipelines: true, webhook: { replicas: 1 } }
    const asked = objectsOf(await helmTemplate(values))
    expect([collects(asked), effects(asked)]).toEqual([[], ['NoneOnDryRun', 'None']])
    for (const name of ['penstock-operator', 'penstock-webhook'])
      expect(JSON.stringify(find(asked, 'Deployment', name))).toContain('"--authorize-cluster-pipelines"')
    const own = objectsOf(await helmTemplate({ ...values, clusterPipelines: [{ name: 'all', spec: {} }] }))
    expect(collects(own)).toEqual([{ apiGroups: ['penstock.dev'], resources: ['logs'], verbs: ['collect'] }])
    const blind = helmTemplate({ authorizeClusterPipelines: true, webhook: { enabled: false } })
    await expect(blind).rejects.toThrow('authorizeClusterPipelines needs webhook.enabled')
  })

  test('with a list of namespaces, roles for namespaced objects are bound only in them', async () => {
    const objects = objectsOf(await helmTemplate({ watch: { namespaces: ['shop', 'blog'] } }))
    const rules = find(objects, 'ClusterRole', 'penstock-operator')['rules'] as unknown as Record<string, string[]>[]
    const wide = rules.flatMap((rule) => rule['resources'] ?? [])
    for (const resource of ['pipelines', 'secrets', 'configmaps', 'pods']) expect(wide).not.toContain(resource)
    expect(objects.map(key)).toContain('rbac.authorization.k8s.io/v1 RoleBinding shop/penstock-operator-watch')
    expect(objects.map(key)).toContain('rbac.authorization.k8s.io/v1 RoleBinding blog/penstock-operator-watch')
  })
})
