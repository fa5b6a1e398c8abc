// Pipelines with a real API server and the real operator: their status, its readers, and objects that the operator never changes. The numbers
// refer to the acceptance tests in the operator's design.

import { appendFileSync, mkdirSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort } from '@penstock/agent/testing/free-port'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { makeCertificates } from '../certificates.ts'
import { type Cluster, missingForCluster, startCluster } from '../cluster/cluster.ts'
import { inGroups, until } from '../command.ts'
import { helmTemplate, missingForHelm, objectsOf, prepareHelm, type RenderedObject } from '../helm.ts'
import { penstock } from '../program.ts'
import { Api, Fleet, podToken } from './fleet.ts'
import {
  apiVersion,
  conditionOf,
  eventually,
  heartbeatUrl,
  type OperatorOptions,
  OperatorProcess,
  type PipelineLike,
  prepare,
  saysOf,
  signIn,
  system,
} from './process.ts'
import { outerAddress, Receiver } from './receiver.ts'

const missing = missingForCluster(0)

interface InstalledOptions extends OperatorOptions {
  /** A namespace in which the operator has no permissions. */
  readonly without: string
}

const pipeline = (name: string, spec: object = {}, namespace = 'shop') => ({
  apiVersion,
  kind: 'Pipeline',
  metadata: { name, namespace },
  spec: {
    sources: [{ name: 'app', type: 'orchestrator_logs' }],
    sinks: [{ name: 'out', type: 'blackhole' }],
    ...spec,
  },
})
const program = (source: string) => ({ transforms: [{ name: 'parse', type: 'remap', config: { source } }] })
const sink = (type: string, config: object) => ({ sinks: [{ name: 'out', type, config }] })

describe.skipIf(missing !== undefined)(`Pipelines${missing === undefined ? '' : ` (${missing})`}`, () => {
  const resources = new AsyncDisposableStack()
  let cluster: Cluster
  let api: Api
  let operator: OperatorProcess

  beforeAll(async () => {
    cluster = resources.use(await startCluster())
    await prepare(cluster, 'shop', 'many')
    api = resources.use(await Api.start(cluster))
    operator = resources.use(
      OperatorProcess.start({ kubeconfig: cluster.kubeconfig, args: ['--ref-grace-period', '1h'] }),
    )
    await operator.leading()
  })
  afterAll(() => resources[Symbol.asyncDispose]())

  const path = (namespace: string, name = '', kind = 'pipelines') =>
    `/apis/penstock.dev/v1alpha1/namespaces/${namespace}/${kind}${name === '' ? '' : `/${name}`}`
  const get = (name: string, namespace = 'shop', kind = 'pipelines') =>
    api.get<PipelineLike>(path(namespace, name, kind))
  const apply = (object: { kind: string; metadata: { name: string; namespace: string } }) =>
    api.request<PipelineLike>(
      'PATCH',
      `${path(object.metadata.namespace, object.metadata.name, `${object.kind.toLowerCase()}s`)}?fieldManager=author&force=true`,
      object,
      'application/apply-patch+yaml',
    )
  const says = (name: string, type: string, wanted: string, namespace = 'shop', kind = 'pipelines') =>
    until(`${type} of ${namespace}/${name} to be ${wanted}`, 120_000, async () => {
      const found = await get(name, namespace, kind)
      if (saysOf(found, type) === wanted) return found
      throw new Error(`${type}: ${JSON.stringify(conditionOf(found, type))}`)
    })

  test('2: one broken program of 500 is reported with its position, and the others run', async () => {
    const names = Array.from({ length: 500 }, (_, index) => `p-${String(index).padStart(3, '0')}`)
    const broken = 'p-250'
    await inGroups(names, 20, (name) =>
      apply(pipeline(name, program(name === broken ? '.a = 1\n.b = parse_json(.message)' : '.a = 1'), 'many')),
    )
    const wanted = (name: string) => (name === broken ? 'False CompileFailed' : 'True Valid')
    const all = await until('the status of all Pipelines', 120_000, async () => {
      const { items } = await api.get<{ items: PipelineLike[] }>(path('many'))
      return items.every((each) => saysOf(each, 'Accepted') === wanted(each.metadata.name)) && items
    })
    const found = all.find((each) => each.metadata.name === broken)
    expect(conditionOf(found, 'Accepted')?.message).toBe(
      'transforms[parse] line 2 col 6: E103 unhandled fallible assignment',
    )
    expect(saysOf(found, 'Ready')).toBe('False CompileFailed')
    expect(saysOf(found, 'Stalled')).toBe('True CompileFailed')
    await operator.idle()
    // More objects than a page of a list; the list must contain each one once.
    await apply(pipeline('one-more'))
    const status = await penstock(['status', '-A', '--kubeconfig', cluster.kubeconfig])
    const listed = status.stdout.split('\n').filter((line) => line.startsWith('Pipeline '))
    expect(listed.toSorted()).toEqual([...names.map((name) => `Pipeline many/${name}`), 'Pipeline shop/one-more'])
    const before = await api.get<{ items: PipelineLike[] }>(path('many'))

    await apply(pipeline(broken, program('.a = 1\n.b = parse_json(.message) ?? {}'), 'many'))
    await says(broken, 'Accepted', 'True Valid', 'many')

    expect(conditionOf(await get(broken, 'many'), 'Stalled')).toBeUndefined()
    const after = await api.get<{ items: PipelineLike[] }>(path('many'))
    const generations = (list: readonly PipelineLike[]) =>
      list.filter((each) => each.metadata.name !== broken).map((each) => [each.metadata.name, accepted(each)])
    expect(generations(after.items)).toEqual(generations(before.items))
  })

  test('3: conditions follow a Secret that is missing, created, changed and emptied, and its value appears nowhere else', async () => {
    const value = `quite-"secret"-\\-${Date.now()}`
    const secret = (data: object) =>
      cluster.apply({
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'creds', namespace: 'shop' },
        stringData: data,
      })
    const token = { valueFrom: { secretKeyRef: { name: 'creds', key: 'token' } } }
    const config = { uri: 'https://store.example', encoding: { codec: 'json' }, auth: { strategy: 'bearer', token } }
    await apply(pipeline('secretive', sink('http', config)))
    const lacking = await says('secretive', 'ResolvedRefs', 'False SecretNotFound')
    expect(conditionOf(lacking, 'ResolvedRefs')?.message).toBe(
      'sinks[out].auth.token.valueFrom.secretKeyRef: Secret "creds" does not exist in namespace "shop"',
    )
    expect(conditionOf(lacking, 'Stalled')).toBeUndefined()

    await secret({ token: value })
    await says('secretive', 'ResolvedRefs', 'True Resolved')
    await says('secretive', 'Accepted', 'True Valid')
    await secret({ token: `${value}-rotated` })
    await cluster.kubectl([
      '-n',
      'shop',
      'patch',
      'secret',
      'creds',
      '--type=json',
      '-p',
      '[{"op":"remove","path":"/data/token"},{"op":"add","path":"/data/other","value":"eA=="}]',
    ])
    const without = await says('secretive', 'ResolvedRefs', 'False SecretKeyNotFound')
    expect(conditionOf(without, 'ResolvedRefs')?.message).toContain('Secret "creds" has no key "token"')

    const everything = await cluster.kubectl([
      'get',
      'pl,cpl,plsrc,plsink,plagent,pltp,cm,events,ds,leases',
      '-A',
      '-o',
      'json',
    ])
    expect(everything).not.toContain('quite-')
    expect(operator.log).not.toContain('quite-')
    // The last accepted version survives a restart of the operator, and contains only the name of the key.
    const kept = await cluster.kubectl([
      '-n',
      'penstock-system',
      'get',
      'cm',
      '-l',
      'penstock.dev/last-good=true',
      '-o',
      'json',
    ])
    expect(
      JSON.parse(kept).items.map((map: { metadata: { annotations: object } }) => map.metadata.annotations),
    ).toEqual([expect.objectContaining({ 'penstock.dev/pipeline': 'shop/secretive' })])
  })

  test('4: secrets can be certificates with many lines and passwords with any characters', async () => {
    await using made = await makeCertificates()
    const authority = await readFile(made.authority, 'utf8')
    await cluster.apply({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'odd', namespace: 'shop' },
      stringData: { ca: authority, password: ['a"b\\c\n$', "{HOME}'"].join(''), user: 'me' },
    })
    const from = (key: string) => ({ valueFrom: { secretKeyRef: { name: 'odd', key } } })
    await apply(
      pipeline('odd', {
        secrets: [{ alias: 'odd', secretName: 'odd' }],
        ...sink('search_engine', {
          endpoints: ['https://es.shop.svc:9200'],
          auth: { strategy: 'basic', user: 'SECRET[odd.user]', password: from('password') },
          tls: { ca_file: from('ca') },
        }),
      }),
    )
    await says('odd', 'Accepted', 'True Valid')
    await says('odd', 'ResolvedRefs', 'True Resolved')
  })

  test('9: a foreign change of the status is reverted, a foreign label stays', async () => {
    await apply(pipeline('touched'))
    await says('touched', 'Accepted', 'True Valid')
    await cluster.kubectl(['-n', 'shop', 'label', 'pl', 'touched', 'theirs=yes'])
    const conditions = (await get('touched')).status?.conditions?.map((condition) =>
      condition.type === 'Accepted' ? { ...condition, status: 'False', reason: 'Forged' } : condition,
    )
    await api.request(
      'PATCH',
      `${path('shop', 'touched')}/status`,
      { status: { conditions } },
      'application/merge-patch+json',
    )
    const found = await says('touched', 'Accepted', 'True Valid')
    expect(found.metadata.labels).toEqual({ theirs: 'yes' })
    expect(found.metadata.generation).toBe(1)
  })

  test('9: a foreign change of a workload is reverted; a manager that repeats it is named', async () => {
    const workload = `/apis/apps/v1/namespaces/${system}/daemonsets/penstock-node`
    const priorityOf = async () => {
      const { spec } = await api.get<{ spec: { template: { spec: { priorityClassName?: string } } } }>(workload)
      return spec.template.spec.priorityClassName
    }
    const ours = await priorityOf()
    for (let change = 0; change < 5; change++) {
      const spec = { template: { spec: { priorityClassName: 'system-cluster-critical' } } }
      await api.request('PATCH', `${workload}?fieldManager=meddler`, { spec }, 'application/merge-patch+json')
      await until('the change to be undone', 30_000, async () => (await priorityOf()) === ours)
    }
    const contended = await until('the condition about it', 30_000, async () =>
      conditionOf(await get('node', system, 'agents'), 'Contended'),
    )
    expect(contended).toMatchObject({ status: 'True', reason: 'ForeignManager' })
    expect(contended.message).toContain('"meddler" keeps changing DaemonSet/penstock-node')
  })

  test.each([
    [
      'T4',
      sink('http', {
        uri: 'https://x',
        encoding: { codec: 'json' },
        tls: { ca_file: '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt' },
      }),
    ],
    ['T6', sink('http', { uri: ['https://x/$', '{HOME}'].join(''), encoding: { codec: 'json' } })],
    ['T6', program('.home = get_env_var!("HOME")')],
    ['T7', sink('http', { uri: 'http://169.254.169.254/latest', encoding: { codec: 'json' } })],
    ['T5', sink('search_engine', { endpoints: ['https://x'], auth: { strategy: 'aws' } })],
    [
      'T3',
      { sources: [{ name: 'app', type: 'orchestrator_logs', config: { extra_namespace_label_selector: 'a=b' } }] },
    ],
  ])('13: a violation of %s is a ForbiddenOption: %j', async (rule, spec) => {
    await apply(pipeline('attempt', spec))
    const found = await says('attempt', 'Accepted', 'False ForbiddenOption')
    expect(conditionOf(found, 'Accepted')?.message).toContain(`(${rule})`)
    await cluster.kubectl(['-n', 'shop', 'delete', 'pl', 'attempt'])
  })

  test('the most specific TenantPolicy applies: types, quota by age, and its removal', async () => {
    const small = (spec: object) => ({
      ...{ apiVersion, kind: 'TenantPolicy', metadata: { name: 'small' } },
      spec: { namespaceSelector: { matchLabels: { tier: 'small' } }, quota: { pipelines: 1 }, ...spec },
    })
    await cluster.apply(
      { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'small', labels: { tier: 'small' } } },
      { apiVersion, kind: 'TenantPolicy', metadata: { name: 'all' }, spec: { namespaceSelector: {} } },
      small({ allowedSinks: ['blackhole'] }),
    )
    // A Pipeline that cannot run does not use the quota. When it can run, its age determines its place.
    const http = sink('http', { uri: 'https://x', encoding: { codec: 'json' } })
    await apply(pipeline('broken', http, 'small'))
    await says('broken', 'Accepted', 'False ForbiddenOption', 'small')
    await apply(pipeline('first', {}, 'small'))
    await says('first', 'Accepted', 'True Valid', 'small')
    await apply(pipeline('broken', {}, 'small'))
    await says('broken', 'Accepted', 'True Valid', 'small')
    await says('first', 'Accepted', 'False QuotaExceeded', 'small')
    await cluster.kubectl(['-n', 'small', 'delete', 'pl', 'broken'])
    await says('first', 'Accepted', 'True Valid', 'small')
    await apply(pipeline('second', {}, 'small'))
    const over = await says('second', 'Accepted', 'False QuotaExceeded', 'small')
    expect(conditionOf(over, 'Accepted')?.message).toBe(
      'The namespace may have 1 Pipeline, and this is number 2 by age (TenantPolicy "small"; the youngest Pipeline is excluded)',
    )
    await says('first', 'Accepted', 'True Valid', 'small')
    await cluster.kubectl(['-n', 'small', 'delete', 'pl', 'first'])
    await says('second', 'Accepted', 'True Valid', 'small')
    // A running Pipeline continues for a grace period after the policy forbids it, and then stops.
    await cluster.apply(small({ allowedSinks: ['console'], gracePeriod: '3s' }))
    const forbidden = await says('second', 'Accepted', 'False ForbiddenOption', 'small')
    expect(conditionOf(forbidden, 'Accepted')?.message).toMatch(
      /The running version was accepted under earlier rules of the TenantPolicy and stops at \S+Z\.$/,
    )
    const stopped = await until('the end of the forbidden Pipeline', 30_000, async () => {
      const found = JSON.parse(await cluster.kubectl(['-n', 'small', 'get', 'events', '-o', 'json']))
      return found.items.find((each: { reason: string }) => each.reason === 'Stopped')
    })
    expect(JSON.stringify(stopped)).toContain('it was stopped at')
    await cluster.apply(small({ allowedSinks: ['blackhole'], gracePeriod: '10m' }))
    await says('second', 'Accepted', 'True Valid', 'small')
    await apply(pipeline('second', http, 'small'))
    const refused = await says('second', 'Accepted', 'False ForbiddenOption', 'small')
    expect(conditionOf(refused, 'Accepted')?.message).toContain(
      'Type `http` of sinks is not allowed in this namespace (T9) (The TenantPolicy allows blackhole)',
    )
    const policy = await until('the status of the policy', 20_000, async () => {
      const found = JSON.parse(await cluster.kubectl(['get', 'pltp', 'small', '-o', 'json']))
      return found.status?.namespaces?.matching === 1 && found
    })
    expect(policy.status.namespaces).toEqual({ matching: 1, effective: 1 })
  })

  test('shared Sinks list their users, and a ClusterSink is not usable until its owner allows it', async () => {
    const shared = (spec: object) =>
      cluster.apply({
        apiVersion,
        kind: 'ClusterSink',
        metadata: { name: 'store' },
        spec: { type: 'blackhole', ...spec },
      })
    await apply(pipeline('user', { sinks: [{ name: 'out', ref: { kind: 'ClusterSink', name: 'store' } }] }))
    await says('user', 'ResolvedRefs', 'False SinkNotFound')
    await shared({})
    await says('user', 'ResolvedRefs', 'False RefNotPermitted')
    await shared({ allowedNamespaces: { from: 'All' } })
    await says('user', 'ResolvedRefs', 'True Resolved')
    await says('user', 'Accepted', 'True Valid')
    await until('usedBy of the ClusterSink', 20_000, async () => {
      const found = JSON.parse(await cluster.kubectl(['get', 'cplsink', 'store', '-o', 'json']))
      return found.status?.usedBy?.pipelines === 1 && found.status.usedBy.namespaces === 1
    })
  })

  test('if the values of secrets exceed the limit, the youngest Pipelines are excluded and report it (T14)', async () => {
    const names = Array.from({ length: 8 }, (_, index) => `heavy-${index}`)
    const token = `-----BEGIN -----${'x'.repeat(250_000)}`
    const items = names.map((name) => ({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, namespace: 'shop' },
      stringData: { token },
    }))
    await cluster.kubectl(['apply', '--server-side', '-f', '-'], {
      input: JSON.stringify({ apiVersion: 'v1', kind: 'List', items }),
    })
    // Among Pipelines of the same age, the last by name counts as the youngest.
    for (const name of names) {
      const auth = { strategy: 'bearer', token: { valueFrom: { secretKeyRef: { name, key: 'token' } } } }
      await apply(pipeline(name, sink('http', { uri: 'https://store.example', encoding: { codec: 'json' }, auth })))
    }
    const programmed = (name: string, wanted: string) => says(name, 'Programmed', wanted)
    const last = await programmed('heavy-7', 'False BundleTooLarge')
    expect(conditionOf(last, 'Programmed')?.message).toContain('younger Pipelines are excluded')
    await programmed('heavy-0', 'False Pending')
    await cluster.kubectl(['-n', 'shop', 'delete', 'pl', 'heavy-0'])
    await programmed('heavy-7', 'False Pending')
    await cluster.kubectl(['-n', 'shop', 'delete', 'pl', ...names.slice(1)])
  })

  test('cluster-scoped objects also have Events', async () => {
    await cluster.apply({ ...pipeline('wide', program('. =')), kind: 'ClusterPipeline', metadata: { name: 'wide' } })
    await until('its Event', 60_000, async () =>
      /Warning +Rejected .*transforms\[parse\] line 1/.test(await cluster.kubectl(['describe', 'cpl', 'wide'])),
    )
    await cluster.kubectl(['delete', 'cpl', 'wide'])
  })

  test('it stops gracefully, restarts, and responds to probes and metrics requests', async () => {
    const metadata = { name: 'goes', namespace: system }
    await cluster.apply({ apiVersion, kind: 'Agent', metadata, spec: { mode: 'Node' } })
    const isBound = async () => {
      const json = await cluster.kubectl(['get', 'clusterrolebinding', 'penstock-agent-node', '-o', 'json'])
      const { subjects = [] } = JSON.parse(json) as { subjects?: { name: string; namespace: string }[] }
      return subjects.some(({ name, namespace }) => name === 'penstock-goes' && namespace === system)
    }
    await until('its account in the binding', 30_000, isBound)
    expect(await operator.stop()).toBe(0)
    // No operator observes the deletion, so a starting operator finds objects without an owner.
    await cluster.kubectl(['-n', system, 'delete', 'plagent', 'goes'])
    operator = resources.use(OperatorProcess.start({ kubeconfig: cluster.kubeconfig }))
    await operator.leading()
    await until('the end of its account in the binding', 30_000, async () => !(await isBound()))

    expect(await operator.get('/readyz')).toBe('200 ok\n')
    expect(await operator.get('/healthz')).toBe('200 ok\n')
    await until('reconciles in the metrics', 30_000, async () =>
      /^controller_runtime_reconcile_total\{controller="pipeline",result="success"\} \d+/m.test(
        await operator.get('/metrics'),
      ),
    )
  })

  describe.skipIf(missingForHelm() !== undefined)('with exactly the permissions of the chart', () => {
    const rights = ['ServiceAccount', 'Secret', 'Role', 'RoleBinding', 'ClusterRole', 'ClusterRoleBinding']
    const secret = (namespace: string, mode: string, labels: object = {}) => ({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'creds', namespace, labels },
      stringData: { token: `${mode}-${namespace}` },
    })
    const withSecret = sink('http', {
      uri: 'https://store.example',
      encoding: { codec: 'json' },
      auth: { strategy: 'bearer', token: { valueFrom: { secretKeyRef: { name: 'creds', key: 'token' } } } },
    })

    beforeAll(async () => {
      await prepareHelm()
      for (const name of ['seen', 'unseen']) {
        const metadata = { name, labels: { tier: name } }
        await cluster.apply({ apiVersion: 'v1', kind: 'Namespace', metadata })
      }
    }, 1_800_000)

    /** The arguments of the last operator. */
    let started: OperatorOptions | undefined

    /** A kubeconfig for an account. */
    async function kubeconfigOf(account: string): Promise<string> {
      const file = join(cluster.folder, `${account}.kubeconfig`)
      await signIn(cluster, account, file)
      return file
    }

    /** Starts the operator with its own account, as the chart with these values installs it. */
    async function installed(values: object, options: Partial<InstalledOptions> = {}): Promise<OperatorProcess> {
      await operator.stop()
      const ours = ['-l', 'app.kubernetes.io/part-of=penstock', '--ignore-not-found']
      await cluster.kubectl(['delete', 'clusterroles,clusterrolebindings', ...ours])
      await cluster.kubectl(['delete', 'roles,rolebindings', '-A', ...ours])
      const objects = objectsOf(await helmTemplate(values))
      const isLeftOut = ({ metadata }: RenderedObject) => metadata.namespace === options.without
      await cluster.apply(
        ...objects.filter((one) => rights.includes(one.kind) && (options.without === undefined || !isLeftOut(one))),
      )
      const deployment = objects.find(
        ({ kind, metadata }) => kind === 'Deployment' && metadata.name === 'penstock-operator',
      )
      const { spec } = deployment as unknown as {
        spec: { template: { spec: { containers: { args: string[] }[] } } }
      }
      const args = spec.template.spec.containers[0]?.args ?? []
      const own = args.filter((arg) => /^--(watch|secrets|agent-namespaces|rbac)/.test(arg))
      const kubeconfig = await kubeconfigOf('penstock-operator')
      started = { kubeconfig, ...options, args: [...own, ...(options.args ?? [])] }
      operator = resources.use(OperatorProcess.start(started))
      return operator.leading()
    }

    /** The secret values that agents receive. */
    async function delivered(mode: string): Promise<string[]> {
      const secrets = await api.list(`/api/v1/namespaces/${system}/secrets?labelSelector=penstock.dev/agent=node`)
      const values = secrets
        .filter(({ metadata }) => metadata.name.includes('-sec-'))
        .flatMap(({ data }) => Object.values(data ?? {}))
      return values
        .map((value) => Buffer.from(value, 'base64').toString())
        .filter((value) => value.startsWith(`${mode}-`))
    }

    test.each([
      { watch: { namespaces: ['seen'] }, cluster: false },
      { watch: { selector: 'tier=seen' }, cluster: true },
    ])('it watches exactly the configured resources: $watch', async ({ watch, cluster: seesCluster }) => {
      const one = `one-${seesCluster}`
      await operator.stop() // the previous one has more permissions
      await apply(pipeline(one, {}, 'unseen'))
      await apply(pipeline(one, {}, 'seen'))
      await cluster.apply({ ...pipeline(one), kind: 'ClusterPipeline', metadata: { name: one } })
      await installed({ watch })
      await says(one, 'Accepted', 'True Valid', 'seen')
      if (seesCluster) {
        await until('the status of the ClusterPipeline', 30_000, async () => {
          const found = JSON.parse(await cluster.kubectl(['get', 'cpl', one, '-o', 'json'])) as PipelineLike
          return saysOf(found, 'Accepted') === 'True Valid'
        })
      } else {
        const found = JSON.parse(await cluster.kubectl(['get', 'cpl', one, '-o', 'json'])) as PipelineLike
        expect(found.status).toBeUndefined()
      }
      await operator.idle()
      expect((await get(one, 'unseen')).status).toBeUndefined()
      expect(operator.log).not.toContain('forbidden')
    })

    test('in mode Label, it uses only Secrets that their owner has labelled', async () => {
      await cluster.apply(secret('seen', 'label'), secret('unseen', 'label', { 'penstock.dev/allow': 'true' }))
      await installed({ secrets: { mode: 'Label' } })
      await apply(pipeline('label', withSecret, 'seen'))
      await apply(pipeline('label', withSecret, 'unseen'))
      await says('label', 'ResolvedRefs', 'True Resolved', 'unseen')
      await says('label', 'ResolvedRefs', 'False SecretNotFound', 'seen')
      await until('the value of the one', 30_000, async () => (await delivered('label')).includes('label-unseen'))
      expect(await delivered('label')).toEqual(['label-unseen'])
      await cluster.kubectl(['-n', 'seen', 'label', 'secret', 'creds', 'penstock.dev/allow=true'])
      await says('label', 'ResolvedRefs', 'True Resolved', 'seen')
      await until('the value of the other', 30_000, async () => (await delivered('label')).includes('label-seen'))
      expect(operator.log).not.toContain('forbidden')
      await cluster.kubectl(['delete', 'pl', 'label', '-n', 'seen'])
      await cluster.kubectl(['delete', 'pl', 'label', '-n', 'unseen'])
    })

    test('an Agent in a namespace without permissions shows the command that grants them, as does the Pipeline; then both run', async () => {
      if (started === undefined) await installed({})
      const beside = { apiVersion, kind: 'Agent', metadata: { name: 'beside', namespace: 'seen' } }
      await cluster.apply({ ...beside, spec: { mode: 'Sidecar' } })
      const refused = await says('beside', 'Accepted', 'False NamespaceNotAllowed', 'seen', 'agents')
      const message = conditionOf(refused, 'Accepted')?.message ?? ''
      expect(message).toMatch(/^The operator may not write what agents need in namespace "seen" \(.* cannot /)
      await apply(pipeline('files', { mode: 'Sidecar', sources: [{ name: 'app', type: 'file' }] }, 'seen'))
      const waits = await says('files', 'Programmed', 'False Pending', 'seen')
      expect(conditionOf(waits, 'Programmed')?.message).toContain(
        'Agent seen/beside, which selects it, is not accepted',
      )
      const [, grant = ''] = /: kubectl (create rolebinding .*)$/.exec(message) ?? []
      await cluster.kubectl(grant.split(' '))
      await says('beside', 'Accepted', 'True Valid', 'seen', 'agents')
      await says('files', 'Programmed', 'True Programmed', 'seen')
      await cluster.kubectl(['delete', 'pl/files', 'plagent/beside', 'rolebinding/penstock-operator', '-n', 'seen'])
    })

    test('in mode Namespaced, it reads Secrets where the platform allows it, and reports no details elsewhere', async () => {
      await cluster.apply(secret('seen', 'named'), secret('unseen', 'named'))
      await installed({ secrets: { mode: 'Namespaced' } })
      const role = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'penstock-operator-secrets' }
      await cluster.apply({
        apiVersion: 'rbac.authorization.k8s.io/v1',
        kind: 'RoleBinding',
        metadata: { name: 'let-penstock-in', namespace: 'seen' },
        roleRef: role,
        subjects: [{ kind: 'ServiceAccount', name: 'penstock-operator', namespace: system }],
      })
      await apply(pipeline('opened', withSecret, 'seen'))
      await apply(pipeline('closed', withSecret, 'unseen'))
      await says('opened', 'ResolvedRefs', 'True Resolved', 'seen')
      await says('closed', 'ResolvedRefs', 'False SecretNotFound', 'unseen')
      await until('its value', 30_000, async () => (await delivered('named')).includes('named-seen'))
      expect(await delivered('named')).toEqual(['named-seen'])
      expect(await operator.get('/readyz')).toBe('200 ok\n')
    })

    test('if Agents are not allowed in its own namespace, it still keeps its own objects there', async () => {
      const certificates = ['penstock-operator-ca', 'penstock-operator-tls']
      const kept = async (kind: string) =>
        (await api.list(`/api/v1/namespaces/${system}/${kind}`)).map(({ metadata }) => metadata.name)
      await operator.stop()
      await cluster.kubectl(['delete', 'secret', ...certificates, '-n', system, '--ignore-not-found'])
      const { spec } = await api.get(path(system, 'node', 'agents'))
      await cluster.apply({ apiVersion, kind: 'Agent', metadata: { name: 'here', namespace: 'seen' }, spec })
      // These are its own Secrets. The operator applies the resources of the installation itself, and has the required permission where authors
      // are checked.
      const ours = { ...pipeline('ours'), kind: 'ClusterPipeline', metadata: { name: 'ours' } }
      const defaults = { name: 'penstock-defaults', namespace: system }
      await cluster.apply({
        ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: defaults },
        data: { clusterPipelines: JSON.stringify([ours]) },
      })
      const clusterPipelines = [{ name: 'ours', spec: ours.spec }]
      const values = {
        ...{ agentNamespaces: ['seen'], secrets: { mode: 'Namespaced' } },
        ...{ authorizeClusterPipelines: true, clusterPipelines },
      }
      await installed(values, { args: ['--webhook-address', '0.0.0.0:0', '--authorize-cluster-pipelines'] })
      await until('the status of the ClusterPipeline', 60_000, async () => {
        const found = JSON.parse(await cluster.kubectl(['get', 'cpl', 'ours', '-o', 'json'])) as PipelineLike
        const by = (found.status as { authorizedBy?: string } | undefined)?.authorizedBy
        return by === `system:serviceaccount:${system}:penstock-operator` && saysOf(found, 'Accepted') === 'True Valid'
      })
      await cluster.kubectl(['delete', 'configmap', 'penstock-defaults', '-n', system])
      await cluster.kubectl(['delete', 'cpl', 'ours'])
      await until('its certificates', 60_000, async () => {
        const names = await kept('secrets')
        return certificates.every((name) => names.includes(name))
      })
      const lastGood = async () => (await kept('configmaps')).filter((name) => name.startsWith('penstock-last-good-'))
      const before = await lastGood()
      await apply(pipeline('stays', {}, 'seen'))
      await says('stays', 'Accepted', 'True Valid', 'seen')
      await apply(pipeline('stays', program('. ='), 'seen'))
      await says('stays', 'Accepted', 'False CompileFailed', 'seen')
      await until(
        'the record of the accepted version',
        60_000,
        async () => (await lastGood()).length === before.length + 1,
      )
      await cluster.kubectl(['delete', 'pl', 'stays', '-n', 'seen'])
      await until('its end', 60_000, async () => (await lastGood()).length === before.length)
      expect(operator.log).not.toContain('forbidden')

      // An Agent of the installation is created there, and its status explains why it does not run.
      const as = ['--as', `system:serviceaccount:${system}:penstock-operator`, '-n', system]
      const node = { apiVersion, kind: 'Agent', metadata: { name: 'node', namespace: system }, spec }
      const input = JSON.stringify(node)
      const flags = ['apply', '--server-side', '--force-conflicts', '--field-manager', 'penstock-defaults', '-f', '-']
      await cluster.kubectl([...as, ...flags], { input })
      await says('node', 'Accepted', 'False NamespaceNotAllowed', system, 'agents')
      for (const name of ['loki', 'penstock-node-sec-0']) {
        const other = { apiVersion: 'v1', kind: 'Secret', metadata: { name, namespace: system } }
        const made = cluster.kubectl([...as, 'apply', '--server-side', '-f', '-'], { input: JSON.stringify(other) })
        await expect(made).rejects.toThrow('orbidden')
      }
      await operator.stop()
      await cluster.kubectl(['delete', 'plagent', 'here', '-n', 'seen'])
    })

    test('with Roles only, operator and agents work without cluster-scoped objects', async () => {
      const soon = <T>(look: () => Promise<T> | T) => eventually(look, 180_000)
      const receiver = resources.use(await Receiver.start())
      const port = await freePort()
      const values = {
        rbac: { scope: 'Namespaced' },
        watch: { namespaces: ['seen', 'unseen'] },
        webhook: { enabled: false },
        crds: { install: false },
      }
      const kinds = objectsOf(await helmTemplate(values)).map(({ kind }) => kind)
      expect(kinds.filter((kind) => /^Cluster|Webhook|Definition$|^Namespace$/.test(kind))).toEqual([])
      // There is an installation with more permissions, with an agent.
      await soon(() => cluster.kubectl(['get', 'ds', 'penstock-node', '-n', system]))
      const kubeconfig = await kubeconfigOf('penstock-node')
      await using fleet = await Fleet.start(api, {
        agent: 'node',
        nodes: 1,
        operatorUrl: heartbeatUrl(port),
        kubeconfig,
      })
      const [member] = fleet.members
      await soon(() => expect(member?.output).toContain('Penstock has started'))
      const former = member?.pod?.metadata.uid
      await operator.stop()
      await cluster.kubectl(['label', 'ns', 'seen', 'team=blue'])
      for (const namespace of ['seen', 'unseen']) {
        const fields =
          '{"line": .message, "app": .orchestrator.pod_labels.app, "team": .orchestrator.namespace_labels.team}'
        const config = {
          uri: `${receiver.url}/${namespace}`,
          encoding: { codec: 'json' },
          batch: { timeout_secs: 0.2 },
        }
        const roles = { ...program(`.message = encode_json(${fields})`), ...sink('http', config) }
        await apply(pipeline('roles', roles, namespace))
      }
      // One namespace has no binding yet. The operator reports the missing permissions and how to grant them, and works in the other namespace.
      const flags = ['--http-address', '0.0.0.0:0', '--metrics-token-secret', 'penstock-metrics']
      await installed(values, { without: 'unseen', heartbeats: port, args: flags })
      const [complaint] = operator.log.split('\n').filter((line) => line.includes('Rights are missing'))
      const { namespace, missing: lacks, grant } = JSON.parse(complaint ?? '{}')
      expect([namespace, lacks]).toEqual(['unseen', expect.arrayContaining(['get, list, watch pods'])])
      expect(operator.log).toContain('ClusterPipelines, ClusterSources, ClusterSinks and TenantPolicies are disabled.')
      await says('roles', 'Accepted', 'True Valid', 'seen')
      expect((await get('roles', 'unseen')).status).toBeUndefined()

      // A pod with fewer permissions replaces its pod.
      await soon(() => expect([undefined, former]).not.toContain(member?.pod?.metadata.uid))
      const before = member?.output.length
      const made = await api.request<{ metadata: { uid: string } }>('POST', '/api/v1/namespaces/seen/pods', {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'web', labels: { app: 'web' } },
        spec: {
          nodeName: member?.node,
          containers: [{ name: 'app', image: 'x' }],
          automountServiceAccountToken: false,
        },
      })
      const logs = join(member?.folder ?? '', 'logs', `seen_web_${made.metadata.uid}`, 'app')
      mkdirSync(logs, { recursive: true })
      const write = (line: string) =>
        appendFileSync(join(logs, '0.log'), `${new Date().toISOString()} stdout F ${line}\n`)
      await soon(async () =>
        expect(saysOf(await get('roles', 'seen'), 'Programmed'), member?.output).toBe('True Programmed'),
      )
      const came = () => receiver.at('/seen').map((text) => JSON.parse(text))
      write('one')
      await soon(() => expect(came()).toContainEqual({ line: 'one', app: 'web', team: 'blue' }))
      // Permission for a single Namespace is enough to follow its labels.
      await cluster.kubectl(['label', 'ns', 'seen', 'team=green', '--overwrite'])
      await soon(async () => {
        write('two')
        expect(came()).toContainEqual({ line: 'two', app: 'web', team: 'green' })
      })
      const connections = connectionsOf(member?.process?.pid ?? 0, cluster.kubeconfig)
      expect([1, 2]).toContain(connections)

      // Callers that may report, and callers that may read metrics.
      const post = async (path: string, token: string, body: object) => {
        const headers = { authorization: `Bearer ${token}` }
        const answer = await fetch(heartbeatUrl(port) + path, { method: 'POST', headers, body: JSON.stringify(body) })
        return `${answer.status} ${await answer.text()}`
      }
      const token = async (account: string, namespace: string, ...audiences: string[]) => {
        const path = `/api/v1/namespaces/${namespace}/serviceaccounts/${account}/token`
        const asked = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: { audiences } }
        return (await api.request<{ status: { token: string } }>('POST', path, asked)).status.token
      }
      const { name = '', uid } = member?.pod?.metadata ?? {}
      const ofAgent = await podToken(api, 'penstock-node', name, uid)
      const [head, claims, signature = ''] = ofAgent.split('.')
      const stranger = await token('default', 'shop')
      for (const bad of [
        await token('default', 'shop', 'penstock-operator'),
        await token('penstock-node', system), // for the API server
        await token('penstock-node', system, 'penstock-operator'), // of no pod
        `${head}.${claims}.${signature.split('').reverse().join('')}`,
      ])
        expect(await post('/v1/heartbeat', bad, { schema: 1 })).toMatch(/^401 /)
      const reader = await soon(async () => {
        const secret = await api.get(`/api/v1/namespaces/${system}/secrets/penstock-metrics`)
        return Buffer.from(secret.data?.['token'] ?? '', 'base64').toString() || expect.unreachable()
      })
      expect(await post('/v1/readers', ofAgent, { token: reader })).toBe('200 {"allowed":true}\n')
      expect(await post('/v1/readers', ofAgent, { token: stranger })).toBe('200 {"allowed":false}\n')
      expect(await post('/v1/readers', reader, { token: reader })).toMatch(/^401 /)
      const http = `http://${outerAddress()}:${/"port":(\d+),"version"/.exec(operator.log)?.[1]}`
      const metrics = async (bearer: string) =>
        (await fetch(`${http}/metrics`, { headers: { authorization: `Bearer ${bearer}` } })).status
      expect([await metrics(reader), await metrics(stranger), await metrics(await token('default', 'seen'))]).toEqual([
        200, 403, 403,
      ])
      // An Aggregator may write only its own Leases.
      const hub = { mode: 'Aggregator', pipelines: { namespaceSelector: {} } }
      await cluster.apply({ apiVersion, kind: 'Agent', metadata: { name: 'hub', namespace: system }, spec: hub })
      const mayWrite = async (lease: string, where: string) => {
        const asked = ['auth', 'can-i', 'update', `leases.coordination.k8s.io/${lease}`, '-n', where]
        // The exit code also shows this.
        const allowed = await cluster
          .kubectl([...asked, '--as', `system:serviceaccount:${system}:penstock-hub`])
          .catch(String)
        return allowed.trim() === 'yes'
      }
      await soon(async () => expect(await mayWrite('penstock-aggregator-0', system)).toBe(true))
      expect(await mayWrite('penstock-operator', system)).toBe(false)
      for (const where of ['seen', 'unseen', 'shop']) expect(await mayWrite('penstock-aggregator-0', where)).toBe(false)
      await cluster.kubectl(['delete', 'plagent', 'hub', '-n', system])

      expect(operator.log).not.toMatch(/forbidden/)
      expect(member?.output.slice(before)).not.toMatch(/forbidden|answered 403/)

      // Deleting a pod revokes its tokens.
      const unused = await podToken(api, 'penstock-node', name, uid)
      await cluster.kubectl(['delete', 'pod', name, '-n', system, '--force', '--grace-period=0'])
      expect(await post('/v1/heartbeat', unused, { schema: 1 })).toMatch(/^401 /)

      // The command in its message is sufficient to grant access.
      await Promise.all((grant as string[]).map((command) => cluster.kubectl(command.split(' ').slice(1))))
      expect(await operator.stop()).toBe(0)
      operator = await resources.use(OperatorProcess.start(started as OperatorOptions)).leading()
      expect(operator.log).not.toContain('Rights are missing')
      await says('roles', 'Accepted', 'True Valid', 'unseen')
    }, 600_000)
  })

  test('a namespace can be deleted with everything in it', async () => {
    await cluster.kubectl(['delete', 'ns', 'many', '--wait=false'])
    await until(
      'the end of the namespace',
      60_000,
      async () => (await api.find('/api/v1/namespaces/many')) === undefined,
    )
  })
})

/** Connections of a process to the API server of a kubeconfig. */
function connectionsOf(pid: number, kubeconfig: string): number {
  const port = Number(/https:\/\/[\d.]+:(\d+)/.exec(readFileSync(kubeconfig, 'utf8'))?.[1])
  const remote = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const sockets = new Set<string>()
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    try {
      sockets.add(/^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? '')
    } catch {
      // it has been closed meanwhile
    }
  }
  const lines = readFileSync(`/proc/${pid}/net/tcp`, 'utf8').split('\n').slice(1, -1)
  const rows = lines.map((line) => line.trim().split(/\s+/))
  return rows.filter((row) => row[2]?.endsWith(remote) === true && sockets.has(row[9] ?? '')).length
}

const accepted = (object: PipelineLike) => [object.metadata.generation, conditionOf(object, 'Accepted')]
