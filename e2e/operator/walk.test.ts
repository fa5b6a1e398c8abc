// The life of an installation on a real cluster, in order: installation, first Pipeline, common faults of a cluster, upgrade, loss of a node,
// removal, reinstallation. Pods constantly write numbered lines: none may be missing at the end, and none may arrive twice except after a kill.
// Steps check the results that users see, and print times without asserting them.
//
// `npm run walk` runs it in about ten minutes; `npm test` does not include it. PENSTOCK_TEST_WALK=long uses the defaults of the chart and longer
// faults.

import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type Cluster, missingForCluster } from '../cluster/cluster.ts'
import { until, within } from '../command.ts'
import { type Counted, doublesIn, missingIn } from '../counted-lines.ts'
import { kstatus, type Watched } from '../gitops.ts'
import { chart, helmTemplate, missingForHelm } from '../helm.ts'
import { destination, values as quickValues, startInstallable, system, userOf } from '../installed.ts'
import { penstock as runPenstock } from '../program.ts'
import { Api } from './fleet.ts'
import {
  apiVersion,
  type ConditionLike,
  conditionOf,
  type PipelineLike,
  restartApiServer,
  saysOf,
  signIn,
} from './process.ts'
import { Receiver } from './receiver.ts'
import { countLines, numberedLines, Times, writerEnv, writtenLines } from './walked.ts'

const isLong = process.env['PENSTOCK_TEST_WALK'] === 'long'
const missing = missingForCluster(2) ?? missingForHelm()
const nodes = ['node-1', 'node-2']
const sizes = isLong
  ? { awayMs: 40_000, serverAwayMs: 15_000, many: 200, burstMs: 40_000 }
  : { awayMs: 5_000, serverAwayMs: 3_000, many: 60, burstMs: 5_000 }
const linesASecond = 5_000

type AgentSpec = { readonly [field: string]: unknown }
const agentSpec = (more: AgentSpec = {}): AgentSpec => {
  const { rollout, ...rest } = quickValues.agents[0]?.spec ?? {}
  return {
    ...rest,
    resources: { requests: { cpu: '20m', memory: '64Mi' }, limits: { memory: '512Mi' } },
    ...(isLong ? {} : { rollout }),
    ...more,
  }
}
/** The long run uses the defaults of the chart for reports and rollouts. */
const values = (more: AgentSpec = {}) => {
  const { heartbeatPeriod, tenantAgents: _, ...rest } = quickValues
  return { ...rest, ...(isLong ? {} : { heartbeatPeriod }), agents: [{ name: 'node', spec: agentSpec(more) }] }
}

const wait = (ms: number) => new Promise((done) => setTimeout(done, ms))

describe.skipIf(missing !== undefined)(`a walk over a cluster${missing === undefined ? '' : ` (${missing})`}`, () => {
  const resources = new AsyncDisposableStack()
  const times = new Times()
  let cluster: Cluster
  let api: Api
  let receiver: Receiver

  const { kubectl, helmHere, withScene, waitFor, isReady, agentPods, release } = userOf(() => cluster)

  beforeAll(async () => {
    ;({ cluster } = await times.measure('images, cluster of two nodes', () =>
      startInstallable(resources, { nodes: 2, logMaxSize: '2Mi', logMaxFiles: 10 }),
    ))
    receiver = resources.use(await Receiver.start(destination))
    api = resources.use(await Api.start(cluster))
  })
  afterAll(async () => {
    console.log(`The walk${isLong ? '' : ', the short one'}:\n${times.table()}`)
    await resources.disposeAsync()
  })

  beforeEach(async () => {
    if (!api.running) api = resources.use(await Api.start(cluster))
  })
  /** Removes all Pipelines except the one that always runs, before each step. */
  afterEach(async () => {
    for (const kind of ['namespaces/shop/pipelines', 'tenantpolicies']) {
      for (const { metadata } of await api.metadata(`/apis/${apiVersion}/${kind}`)) {
        if (metadata.name !== 'web') await api.request('DELETE', `/apis/${apiVersion}/${kind}/${metadata.name}`)
      }
    }
  })

  // --- Resources that users apply ---

  interface Wanted {
    readonly name: string
    readonly app?: string
    readonly program?: string
    /** Additional options of the sink. */
    readonly config?: object
    readonly uri?: string
  }
  const pipeline = ({ name, app = 'web', program, config, uri }: Wanted) => ({
    apiVersion,
    kind: 'Pipeline',
    metadata: { name, namespace: 'shop' },
    spec: {
      sources: [{ name: 'app', type: 'orchestrator_logs', selector: { pods: { matchLabels: { app } } } }],
      transforms: program === undefined ? [] : [{ name: 'edit', type: 'remap', config: { source: program } }],
      sinks: [
        {
          name: 'out',
          type: 'http',
          config: {
            uri: uri ?? `${receiver.url}/${name}`,
            encoding: { codec: 'json' },
            batch: { timeout_secs: 0.2 },
            ...config,
          },
        },
      ],
    },
  })
  const withPassword = (secret: string) => ({
    auth: {
      strategy: 'basic',
      user: 'shop',
      password: { valueFrom: { secretKeyRef: { name: secret, key: 'password' } } },
    },
  })
  const secret = (name: string, data: Record<string, string>) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name, namespace: 'shop' },
    stringData: data,
  })
  const pod = (name: string, program: string, labels: object = { app: name }) => ({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name, namespace: 'shop', labels },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [{ name: 'main', image: 'localhost/node:26', args: ['-e', program], env: writerEnv }],
    },
  })

  // --- Output for users ---

  const path = (name: string) => `/apis/${apiVersion}/namespaces/shop/pipelines/${name}`
  const get = (name: string) => api.get<PipelineLike & Watched>(path(name))
  const condition = async (name: string, type: string): Promise<ConditionLike | undefined> =>
    conditionOf(await get(name), type)
  const waitsFor = (name: string, type: string, says: string, timeoutMs = 120_000) =>
    waitFor(`${type} of ${name} to be ${says}`, timeoutMs, async () => {
      const object = await get(name)
      if (saysOf(object, type) === says) return conditionOf(object, type)
      throw new Error(JSON.stringify(conditionOf(object, type)))
    })
  const user =
    (kubeconfig: string) =>
    (...args: string[]) =>
      runPenstock(args, { env: { KUBECONFIG: kubeconfig } })
  const penstock = (...args: string[]) => user(cluster.kubeconfig)(...args)
  const podsOf = async (app: string) =>
    (
      JSON.parse(await kubectl('-n', 'shop', 'get', 'pods', '-l', `app=${app}`, '-o', 'json')).items as {
        metadata: { name: string }
        spec: { nodeName: string }
      }[]
    ).map(({ metadata, spec }) => ({ name: metadata.name, node: spec.nodeName }))
  const eventsOf = async (name: string) => {
    const of = `involvedObject.name=${name}`
    return (
      await kubectl('-n', 'shop', 'get', 'events', '--field-selector', of, '-o', 'jsonpath={.items[*].reason}')
    ).split(' ')
  }

  // --- The numbered lines ---

  let doubles = 0
  /** Waits until the destination has received all lines that pods of an app have written so far. */
  const arrived = async (app: string, name = app, timeoutMs = 180_000): Promise<Counted> => {
    const written = await writtenLines(cluster, app)
    return waitFor(`every line of ${app}`, timeoutMs, async () => {
      const counted = countLines(receiver.at(`/${name}`))
      const first = missingIn(counted, written)
      if (first !== undefined) throw new Error(`Line ${first} is missing.`)
      return written.size > 0 && counted
    })
  }
  /**
   * Checks that no line of the pods is missing, and that none has arrived again since the last check.
   * @param killed the process killed since, after which the guide promises only at-least-once delivery
   */
  const noGap = async (killed?: string): Promise<void> => {
    const now = doublesIn(await arrived('web'))
    const since = now - doubles
    doubles = now
    if (killed !== undefined) times.note(`lines that came again after ${killed}`, String(since))
    else expect(since, 'lines that came again').toBe(0)
  }
  const flowsOn = async (from: readonly string[] = nodes) => {
    const before = countLines(receiver.at('/web'))
    const last = (counted: Counted, node: string) =>
      [...counted].reduce((sum, [writer, { numbers }]) => sum + (writer.startsWith(`${node}/`) ? numbers.size : 0), 0)
    await waitFor('more lines of each node', 120_000, async () => {
      const now = countLines(receiver.at('/web'))
      return from.every((node) => last(now, node) > last(before, node) + 5)
    })
  }

  /** Applies Pipelines one after another without a pause, and measures the time until each delivers its first line. */
  const measureNew = async (mark: string, count: number): Promise<void> => {
    const names = Array.from({ length: count }, (_, n) => `${mark}-${n}`)
    const started = new Map<string, number>()
    for (const name of names) {
      started.set(name, performance.now())
      await cluster.apply(pipeline({ name, config: withPassword('store') }))
    }
    const applied = performance.now()
    await waitFor(`first lines of ${count} Pipelines`, 180_000, async () =>
      names.every((name) => receiver.firstAt.has(`/${name}`)),
    )
    times.addAll(
      `apply → first line, of ${count} new Pipelines (${mark})`,
      names.map((name) => (receiver.firstAt.get(`/${name}`) ?? 0) - (started.get(name) ?? 0)),
    )
    for (const name of names) await isReady('pl', 'shop', name, 180_000)
    times.add(`the last of them applied → all Ready on all nodes (${mark})`, performance.now() - applied)
  }

  test('helm starts operators, and an agent on each node', async () => {
    const given = values({ configDelivery: 'Mounted' })
    await times.measure('helm install --wait', () => release('install', chart(), ['--create-namespace'], given))
    await times.measure('then until the Agent is Ready on both nodes', () => isReady('plagent', system, 'node'))
    expect((await agentPods()).map(({ node, restarts }) => ({ node, restarts }))).toEqual(
      nodes.map((node) => ({ node, restarts: [0] })),
    )
  })

  test('the first Pipeline delivers, and all commands show it immediately', async () => {
    await cluster.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop', labels: { team: 'blue' } } })
    await cluster.apply(secret('store', { password: 'x' }))
    await until('the default service account', 30_000, () => kubectl('-n', 'shop', 'get', 'serviceaccount', 'default'))
    await cluster.apply({
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      metadata: { name: 'web', namespace: 'shop' },
      spec: {
        selector: { matchLabels: { app: 'web' } },
        template: { metadata: { labels: { app: 'web' } }, spec: pod('web', numberedLines(100)).spec },
      },
    })
    await kubectl('-n', 'shop', 'rollout', 'status', 'daemonset/web', ...within(300))
    const startedAt = performance.now()
    await cluster.apply(pipeline({ name: 'web' }))
    await waitsFor('web', 'Accepted', 'True Valid')
    times.add('first Pipeline: apply → Accepted', performance.now() - startedAt)
    await waitFor('the first line', 120_000, async () => receiver.firstAt.has('/web'))
    times.add('apply → first line', (receiver.firstAt.get('/web') ?? 0) - startedAt)
    // `why` shows the state of the pod's node, independent of other nodes.
    for (const { name, node } of await podsOf('web')) {
      await waitFor(`lines of ${node}`, 60_000, async () =>
        [...countLines(receiver.at('/web')).keys()].some((writer) => writer.startsWith(`${node}/`)),
      )
      const why = await penstock('why', name, '-n', 'shop')
      expect(why.stdout).toMatch(/main: 0\.log: \d+ of \d+ bytes read, \d+ delivered/)
      expect(why.stdout).toContain('Its logs are read.')
      expect(why.stdout).not.toContain('no agent runs it')
      expect(why.code).toBe(0)
    }
    await isReady('pl', 'shop', 'web')
    times.add('apply → Ready on both nodes', performance.now() - startedAt)
    expect(kstatus(await get('web'))).toBe('Current')
    expect((await penstock('status', 'web', '-n', 'shop')).stdout).toMatch(
      /agent +penstock-system\/node: 2\/2 run revision/,
    )
    await waitFor('the events of its first minutes', 60_000, async () => {
      const events = await eventsOf('web')
      return events.includes('Accepted') && events.includes('Programmed')
    })
    await noGap()
  })

  test('ten new Pipelines start at once, through mounted Secrets', async () => {
    await measureNew('mounted', 10)
    await noGap()
  })

  test('a missing Secret and a missing key are named, and the password arrives unchanged', async () => {
    const password = `a "b" \\ \${HOME}\nc`
    receiver.guarded.set('/secret', password)
    await cluster.apply(pipeline({ name: 'secret', config: withPassword('later') }))
    const absent = await waitsFor('secret', 'ResolvedRefs', 'False SecretNotFound')
    expect(absent?.message).toContain('later')
    await cluster.apply(secret('later', { other: 'x' }))
    const without = await waitsFor('secret', 'ResolvedRefs', 'False SecretKeyNotFound')
    expect(without?.message).toContain('password')
    const createdAt = performance.now()
    await cluster.apply(secret('later', { password }))
    await waitFor('lines with the password', 120_000, async () => receiver.firstAt.has('/secret'))
    times.add('missing key added → first line', (receiver.firstAt.get('/secret') ?? 0) - createdAt)
    expect(receiver.unauthorized.get('/secret') ?? 0).toBe(0)
  })

  test('users with the roles view and edit get output, limited to their permissions', async () => {
    for (const role of ['view', 'edit']) {
      await kubectl('-n', 'shop', 'create', 'serviceaccount', role)
      await kubectl(
        '-n',
        'shop',
        'create',
        'rolebinding',
        role,
        `--clusterrole=${role}`,
        `--serviceaccount=shop:${role}`,
      )
    }
    const file = join(cluster.folder, 'view.kubeconfig')
    await signIn(cluster, 'view', file, 'shop')
    const viewer = user(file)
    const [web] = await podsOf('web')
    const before = await viewer('why', web?.name ?? '', '-n', 'shop')
    expect(before.stdout).toContain('Omitted, because you may not read them: ClusterPipelines')
    expect(before.stdout).toContain('Its logs are read.')
    expect(before.code).toBe(0)
    const binding = ['-n', system, 'create', 'rolebinding', 'shop-cli', '--role=penstock-cli']
    await kubectl(...binding, '--group=system:serviceaccounts:shop')
    // The API server applies the binding after a moment.
    await waitFor('positions, and figures of the namespace', 60_000, async () => {
      const why = await viewer('why', web?.name ?? '', '-n', 'shop')
      return / of \d+ bytes read/.test(why.stdout)
    })
    const status = await viewer('status', '-n', 'shop')
    expect([status.code, status.stdout]).toEqual([0, expect.stringContaining('Pipeline shop/web')])
    const top = await viewer('top', '-n', 'shop', '--once', '-o', 'json')
    expect([top.code, top.stdout]).toEqual([0, expect.stringContaining('"web"')])
    const tap = await viewer('tap', 'web', '-n', 'shop', '--for', '2s')
    expect([tap.code, tap.stderr]).toEqual([69, expect.stringContaining('pipelines/tap')])

    const editing = join(cluster.folder, 'edit.kubeconfig')
    await signIn(cluster, 'edit', editing, 'shop')
    const tapped = await user(editing)('tap', 'web', '-n', 'shop', '--for', '5s', '--format', 'json')
    expect([tapped.code, tapped.stdout]).toEqual([0, expect.stringContaining('node-')])
    expect((await user(editing)('tap', 'x', '-n', system, '--for', '2s')).code).toBe(69)
  })

  test('after an apply, diff and apply find no changes', async () => {
    const text = JSON.stringify(pipeline({ name: 'web' }))
    const input = { input: text }
    const same = await runPenstock(['diff', '-f', '-'], { ...input, env: { KUBECONFIG: cluster.kubeconfig } })
    expect([same.code, same.stdout]).toEqual([0, 'No difference.\n'])
    await cluster.kubectl(['diff', '-f', '-'], input)
    const versions = async () => (await get('web')).metadata.generation
    const before = await versions()
    for (let time = 0; time < 2; time++)
      await cluster.kubectl(['apply', '--server-side', '--force-conflicts', '-f', '-'], input)
    expect(await versions()).toBe(before)
  })

  test('admission rejects resources that reach beyond the namespace, and names the rule', async () => {
    const refusal = (wanted: Wanted) =>
      // The API server accepts a resource if the webhook does not respond within five seconds.
      waitFor('a refusal', 90_000, () =>
        cluster.kubectl(['apply', '--dry-run=server', '-f', '-'], { input: JSON.stringify(pipeline(wanted)) }).then(
          () => undefined,
          (error: Error) => error.message,
        ),
      )
    const name = 'evil'
    const key = '00000000000000000000000000000000'
    expect(await refusal({ name, config: { request: { headers: { $secret: key, 'X-A': 'b' } } } })).toContain('$secret')
    // The address of the API server behind its Service, and metadata addresses of clouds.
    for (const uri of [
      'https://10.77.0.1:6443/',
      'http://169.254.169.254/',
      'http://[fd00:ec2::254]/',
      'http://[64:ff9b::a9fe:a9fe]/',
    ])
      expect(await refusal({ name, uri }), uri).toMatch(/ForbiddenOption: sinks\[out\].*T7/s)
    expect(await refusal({ name, program: '.a = 1\n.b = parse_json(.message)\n.c = ' })).toContain('CompileFailed')
  })

  test('a change is tried on one node, and why is correct on both nodes meanwhile', async () => {
    const marked = { name: 'web', program: '.message = string!(.message) + " two"' }
    await cluster.apply(pipeline(marked))
    await waitFor('the first lines of the changed Pipeline', 120_000, async () =>
      receiver.at('/web').some((text) => text.endsWith(' two')),
    )
    for (const { name } of await podsOf('web')) {
      const why = await penstock('why', name, '-n', 'shop')
      expect(why.stdout).not.toContain('no agent runs it')
      expect([why.code, why.stdout]).toEqual([0, expect.stringContaining('Its logs are read.')])
    }
    await isReady('pl', 'shop', 'web', 300_000)
    await noGap()
  })

  test('a version that agents cannot load is rolled back, and the status shows the node and the reason', async () => {
    await cluster.apply(pipeline({ name: 'broken' }))
    await isReady('pl', 'shop', 'broken')
    const ca = { valueFrom: { secretKeyRef: { name: 'ca', key: 'ca.pem' } } }
    await cluster.apply(secret('ca', { 'ca.pem': 'no certificate' }))
    const appliedAt = performance.now()
    await cluster.apply(
      pipeline({ name: 'broken', uri: receiver.url.replace('http:', 'https:'), config: { tls: { ca_file: ca } } }),
    )
    const back = await waitsFor('broken', 'Programmed', 'False RolledBack', 300_000)
    times.add('broken version: apply → RolledBack', performance.now() - appliedAt)
    expect(back?.message).toMatch(/node-[12]/)
    expect(back?.message).toMatch(/ca_file|certificate/)
    expect(await eventsOf('broken')).toContain('RolledBack')
    expect((await penstock('status', 'broken', '-n', 'shop')).stdout).toMatch(/RolledBack: .*node-[12]/)
    // The previous version continues.
    const count = receiver.at('/broken').length
    await waitFor('lines of the previous version', 60_000, async () => receiver.at('/broken').length > count + 10)
    expect(saysOf(await get('web'), 'Ready')).toBe('True Ready')
    await noGap()
  })

  test('a rejecting destination is named with the reason, and receives all lines after it recovers', async () => {
    await cluster.apply(pipeline({ name: 'guarded', config: withPassword('store') }))
    await waitsFor('guarded', 'Reachable', 'True Reachable')
    receiver.guarded.set('/guarded', 'changed')
    const refusedAt = performance.now()
    const refused = await waitsFor('guarded', 'Reachable', 'False Unauthorized')
    times.add('refused with 401 → Reachable=False', performance.now() - refusedAt)
    expect(refused?.message).toContain('401')
    expect(refused?.message).toContain(new URL(receiver.url).host)
    expect(refused?.message).not.toContain('Events dropped')
    await waitFor('both nodes to be counted', 120_000, async () =>
      (await condition('guarded', 'Reachable'))?.message.includes('2 of 2 nodes'),
    )
    expect((await penstock('status', 'guarded', '-n', 'shop')).stdout).toContain('401')
    expect(await kubectl('-n', 'shop', 'describe', 'pl', 'guarded')).toContain('SinkUnreachable')
    // As in a password rotation, waiting requests use the new one.
    await cluster.apply(secret('store', { password: 'changed' }))
    const changedAt = performance.now()
    await waitsFor('guarded', 'Reachable', 'True Reachable', 300_000)
    times.add('its Secret changed → Reachable=True', performance.now() - changedAt)
    await arrived('web', 'guarded')

    const connectedAt = performance.now()
    await cluster.apply(pipeline({ name: 'nobody', uri: `http://${destination}:1/` }))
    const nobody = await waitsFor('nobody', 'Reachable', 'False ConnectFailed')
    times.add('new Pipeline to a closed port → Reachable=False', performance.now() - connectedAt)
    expect(nobody?.message).toContain(`${destination}:1`)
  })

  test('the destination is unavailable for a while', async () => {
    await receiver.away()
    await wait(sizes.awayMs)
    const backAt = performance.now()
    await receiver.back()
    await noGap()
    times.add('destination back → every line there', performance.now() - backAt)
  })

  test('lines still flow while the API server is killed', async () => {
    await restartApiServer(cluster, async () => {
      const count = receiver.at('/web').length
      await wait(sizes.serverAwayMs)
      expect(receiver.at('/web').length).toBeGreaterThan(count)
    })
    await waitFor('the nodes to be ready', 120_000, () =>
      kubectl('wait', 'node', '--all', '--for', 'condition=Ready', ...within(5)),
    )
    await noGap()
  })

  /** The pod of the leading operator. */
  const leader = async () => {
    const lease = await api.get(`/apis/coordination.k8s.io/v1/namespaces/${system}/leases/penstock-operator`)
    return String(lease.spec?.['holderIdentity']).split('@')[0] ?? ''
  }

  test('all resources are accepted although the leader is killed while they are applied', async () => {
    await cluster.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'load' } })
    const objects = Array.from({ length: sizes.many }, (_, n) => {
      const one = pipeline({ name: `p-${n}`, app: 'nobody' })
      return { ...one, metadata: { ...one.metadata, namespace: 'load' } }
    })
    const killed = await leader()
    const applying = cluster.apply(...objects)
    await waitFor(
      'some of them',
      60_000,
      async () => (await api.metadata(`/apis/${apiVersion}/namespaces/load/pipelines`)).length > sizes.many / 4,
    )
    await kubectl('-n', system, 'delete', 'pod', killed, '--force', '--grace-period=0')
    const killedAt = performance.now()
    await applying
    const appliedAt = performance.now()
    await waitFor('all of them to be accepted', 240_000, async () => {
      const all = (await api.list(`/apis/${apiVersion}/namespaces/load/pipelines`)) as unknown as PipelineLike[]
      const open = all.filter((each) => saysOf(each, 'Accepted') !== 'True Valid')
      if (open.length > 0) throw new Error(`${open.length} of ${all.length} are not`)
      return all.length === sizes.many
    })
    times.add(`${sizes.many} Pipelines, leader killed: last one applied → all Accepted`, performance.now() - appliedAt)
    times.add('leader killed → all Accepted', performance.now() - killedAt)
    await noGap()
  })

  test('a restart of an agent does not change the status of Pipelines', async () => {
    await waitFor('all to run', 240_000, async () => {
      const all = (await api.list(`/apis/${apiVersion}/namespaces/load/pipelines`)) as unknown as PipelineLike[]
      return all.every((each) => saysOf(each, 'Ready') === 'True Ready')
    })
    const versions = async () => {
      const all = await api.metadata(`/apis/${apiVersion}/namespaces/load/pipelines`)
      return new Map(all.map(({ metadata }) => [metadata.name, metadata.resourceVersion]))
    }
    const before = await versions()
    const [first] = await agentPods()
    await times.measure('agent deleted → its successor is Ready', async () => {
      await kubectl('-n', system, 'delete', 'pod', first?.name ?? '')
      await waitFor('its successor', 120_000, async () => {
        const pods = await agentPods()
        return pods.length === 2 && pods.every(({ uid }) => uid !== first?.uid)
      })
      await isReady('plagent', system, 'node')
    })
    await flowsOn()
    const after = await versions()
    const written = [...after].filter(([name, version]) => before.get(name) !== version)
    times.note('Pipelines whose status was written for it', `${written.length} of ${after.size}`)
    expect(written).toEqual([])
    await noGap() // its successor has its checkpoints
    const [, second] = await agentPods()
    await kubectl('-n', system, 'delete', 'pod', second?.name ?? '', '--force', '--grace-period=0')
    await waitFor('its successor', 120_000, async () => {
      const pods = await agentPods()
      return pods.length === 2 && pods.every(({ uid }) => uid !== second?.uid)
    })
    await flowsOn()
    await noGap('an agent was killed')
    await times.measure(`namespace with ${sizes.many} Pipelines deleted`, () =>
      kubectl('delete', 'namespace', 'load', ...within(300)),
    )
  })

  test('no line is lost of pods that are created, crash, are relabelled and are killed', async () => {
    const crash = 'setTimeout(() => process.exit(1), 1000)'
    await cluster.apply(
      pipeline({ name: 'quick', app: 'quick' }),
      pipeline({ name: 'crash', app: 'crash' }),
      pipeline({ name: 'burst', app: 'burst' }),
      pipeline({ name: 'late', app: 'late' }),
    )
    for (const name of ['quick', 'crash', 'burst', 'late']) await isReady('pl', 'shop', name)
    await cluster.apply(
      pod('quick', numberedLines(10, undefined, 10)),
      pod('crash', `${numberedLines(100)}\n${crash}`),
      // It gets its label later.
      pod('late', numberedLines(100), { app: 'none' }),
      pod('burst', numberedLines(20, (linesASecond * sizes.burstMs) / 1000, linesASecond / 50)),
    )
    await waitFor(
      'lines of the pod that writes 1,000 a second',
      120_000,
      async () => receiver.at('/quick').length > 2_000,
    )
    await kubectl('-n', 'shop', 'delete', 'pod', 'quick', '--force', '--grace-period=0')
    const labelledAt = performance.now()
    await kubectl('-n', 'shop', 'label', 'pod', 'late', 'app=late', '--overwrite')
    await waitFor('lines of the pod with a new label', 120_000, async () => receiver.firstAt.has('/late'))
    times.add('label of a pod changed → its first line', (receiver.firstAt.get('/late') ?? 0) - labelledAt)
    await arrived('late')
    await waitFor(
      'three starts of the pod that crashes',
      180_000,
      async () => countLines(receiver.at('/crash')).size >= 3,
    )
    await kubectl('-n', 'shop', 'delete', 'pod', 'crash', 'late')
    const crashed = countLines(receiver.at('/crash'))
    expect([missingIn(crashed, crashed), doublesIn(crashed)]).toEqual([undefined, 0])

    const burst = await waitFor('every line of the burst', 300_000, async () => {
      const counted = countLines(receiver.at('/burst'))
      const [writer] = counted.values()
      return writer?.numbers.size === (linesASecond * sizes.burstMs) / 1000 && counted
    })
    expect([missingIn(burst, burst), doublesIn(burst)]).toEqual([undefined, 0])
    // The lines that it wrote until the kill: the last delivered line, and all lines before it.
    const quick = countLines(receiver.at('/quick'))
    expect([missingIn(quick, quick), doublesIn(quick)]).toEqual([undefined, 0])
    await kubectl('-n', 'shop', 'delete', 'pod', 'burst')
    await noGap()
  })

  test('foreign changes of a workload are reverted, and foreign additions stay', async () => {
    const set = ['-n', system, 'daemonset', 'penstock-node']
    const limit = 'jsonpath={.spec.template.spec.containers[0].resources.limits.memory}'
    await kubectl('label', ...set, 'team=blue')
    const changedAt = performance.now()
    await kubectl('-n', system, 'set', 'resources', 'daemonset/penstock-node', '--limits', 'memory=300Mi')
    await waitFor('the limit to be back', 60_000, async () => (await kubectl('get', ...set, '-o', limit)) === '512Mi')
    times.add('memory limit of the DaemonSet changed → put back', performance.now() - changedAt)
    expect(await kubectl('get', ...set, '-o', 'jsonpath={.metadata.labels.team}')).toBe('blue')
    await kubectl('-n', system, 'rollout', 'status', 'daemonset/penstock-node', ...within(300))
    await noGap()
  })

  test('a policy that forbids a running Pipeline announces its end, and stops it', async () => {
    await cluster.apply(pipeline({ name: 'banned' }))
    await isReady('pl', 'shop', 'banned')
    const policy = (spec: object) => ({ apiVersion, kind: 'TenantPolicy', metadata: { name: 'shop' }, spec })
    const matches = { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': 'shop' } } }
    await cluster.apply(policy({ ...matches, quota: { pipelines: 2 } }))
    await cluster.apply(pipeline({ name: 'third' }))
    const over = await waitsFor('third', 'Accepted', 'False QuotaExceeded')
    expect(over?.message).toMatch(/\b2\b/)
    await kubectl('-n', 'shop', 'delete', 'pl', 'third')

    const bannedAt = performance.now()
    // Forbid an option, so that `web` continues.
    await cluster.apply(pipeline({ name: 'banned', config: { compression: 'gzip' } }))
    await isReady('pl', 'shop', 'banned', 300_000)
    await cluster.apply(policy({ ...matches, denyOptions: ['sinks.*.compression'], gracePeriod: '10s' }))
    const announced = await waitsFor('banned', 'Accepted', 'False ForbiddenOption')
    expect(announced?.message).toMatch(/compression/)
    await waitFor('its end', 120_000, async () => (await eventsOf('banned')).includes('Stopped'))
    await waitFor('the last of its lines', 120_000, async () => {
      const count = receiver.at('/banned').length
      await flowsOn()
      return receiver.at('/banned').length === count
    })
    times.add('policy forbids an option, with 10 s of grace → nothing runs', performance.now() - bannedAt)
    await noGap()
  })

  /** The default of an Agent. */
  const bothStream = () =>
    waitFor('both agents to have their configuration from the operator', 240_000, async () => {
      const { status } = await api.get(`/apis/${apiVersion}/namespaces/${system}/agents/node`)
      return (status?.['nodes'] as { streamed?: number } | undefined)?.streamed === 2
    })

  test('an upgrade replaces all agents, which then get their configuration from the operator', async () => {
    const before = new Set((await agentPods()).map(({ uid }) => uid))
    const resources = { requests: { cpu: '25m', memory: '65Mi' }, limits: { memory: '512Mi' } }
    const given = values({ resources })
    await times.measure('helm upgrade with other resources → all agents new', async () => {
      await release('upgrade', chart(), [], given)
      await waitFor('new agents', 240_000, async () => {
        const pods = await agentPods()
        return pods.length === 2 && pods.every(({ uid }) => !before.has(uid))
      })
      await isReady('plagent', system, 'node', 180_000)
    })
    await bothStream()
    await noGap()
    await measureNew('stream', 10)
    await noGap()
  })

  test('an undone rollout is shown, and can be resumed', async () => {
    await cluster.apply(pipeline({ name: 'web', program: '.message = string!(.message) + " three"' }))
    await isReady('pl', 'shop', 'web', 300_000)
    const isLastMark = (mark: string) => async () =>
      receiver
        .at('/web')
        .slice(-10)
        .every((text) => text.endsWith(` ${mark}`))
    await waitFor('only lines of the new version', 60_000, isLastMark('three'))
    const undoneAt = performance.now()
    expect((await penstock('rollout', 'undo', 'node', '-n', system)).code).toBe(0)
    await waitFor('only lines of the previous version', 120_000, isLastMark('two'))
    times.add('rollout undo → the previous version delivers', performance.now() - undoneAt)
    await waitsFor('web', 'Programmed', 'False Undone')
    const resumedAt = performance.now()
    expect((await penstock('rollout', 'resume', 'node', '-n', system)).code).toBe(0)
    await waitFor('only lines of the new version', 300_000, isLastMark('three'))
    times.add('rollout resume → the new version delivers', performance.now() - resumedAt)
    await isReady('pl', 'shop', 'web', 300_000)
    await noGap()
  })

  test('a converted configuration of another agent works', async () => {
    const theirs = {
      sources: { pods: { type: 'kubernetes_logs', extra_label_selector: 'app=web' } },
      sinks: {
        out: { type: 'http', inputs: ['pods'], uri: `${receiver.url}/converted`, encoding: { codec: 'json' } },
      },
    }
    const file = join(cluster.folder, 'theirs.yaml')
    await writeFile(file, JSON.stringify(theirs))
    const converted = await penstock('convert', '-f', file)
    expect([converted.code, converted.stderr]).toEqual([0, expect.any(String)])
    const startedAt = performance.now()
    await cluster.kubectl(['apply', '-f', '-'], { input: converted.stdout })
    await arrived('web', 'converted')
    times.add('configuration of another agent converted and applied → every line there', performance.now() - startedAt)
    await cluster.kubectl(['delete', '-f', '-'], { input: converted.stdout })
  })

  test('a tenant Agent shows the command that allows it, and its sidecar delivers all lines of a Job', async () => {
    const agent = { name: 'side', namespace: 'shop' }
    await cluster.apply({ apiVersion, kind: 'Agent', metadata: agent, spec: { mode: 'Sidecar' } })
    const message = await waitFor('the Agent not to be allowed', 120_000, async () => {
      const found = await api.get<PipelineLike>(`/apis/${apiVersion}/namespaces/shop/agents/side`)
      const accepted = conditionOf(found, 'Accepted')
      return accepted?.reason === 'NamespaceNotAllowed' && accepted.message
    })
    const [, words = ''] = /kubectl (create rolebinding .*)$/.exec(message) ?? []
    await kubectl(...words.split(' '))
    await kubectl('label', 'namespace', 'shop', 'penstock.dev/inject=strict')
    const files = pipeline({ name: 'side' })
    await cluster.apply({
      ...files,
      spec: { ...files.spec, mode: 'Sidecar', sources: [{ name: 'app', type: 'file' }] },
    })
    await waitFor('the bundle of the sidecar', 180_000, () =>
      kubectl('-n', 'shop', 'get', 'secret', 'penstock-side-cfg-0'),
    )
    const program = `
      const { appendFileSync } = require('node:fs')
      for (let n = 0; n < 400; n++) appendFileSync('/logs/import.log', 'job/import/1 ' + n + '\\n')
    `
    const job = pod('import', program)
    const containers = job.spec.containers.map((one) => ({
      ...one,
      volumeMounts: [{ name: 'logs', mountPath: '/logs' }],
    }))
    const spec = { restartPolicy: 'Never', containers, volumes: [{ name: 'logs', emptyDir: {} }] }
    const annotations = {
      'penstock.dev/sidecar': 'side',
      'penstock.dev/pipelines': 'side',
      'penstock.dev/log-volume': 'logs',
      'penstock.dev/log-paths': '/logs/*.log',
    }
    const startedAt = performance.now()
    await cluster.apply({
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: 'import', namespace: 'shop' },
      spec: { backoffLimit: 0, template: { metadata: { annotations }, spec } },
    })
    await kubectl('-n', 'shop', 'wait', 'job/import', '--for', 'condition=Complete', ...within(300))
    times.add('Job with a sidecar: apply → complete', performance.now() - startedAt)
    // The Job completes only after its sidecar, so all lines have been delivered.
    const counted = countLines(receiver.at('/side'))
    expect([counted.get('job/import/1')?.numbers.size, doublesIn(counted)]).toEqual([400, 0])
    await kubectl('label', 'namespace', 'shop', 'penstock.dev/inject-')
    await kubectl('-n', 'shop', 'delete', 'job/import', 'plagent/side', 'rolebinding/penstock-operator')
  })

  test('a node is lost and returns', async () => {
    const there = await nodeOf(await leader())
    const lost = nodes.find((node) => node !== there) ?? 'none'
    const others = nodes.filter((node) => node !== lost)
    await cluster.stopNode(lost)
    const lostAt = performance.now()
    await flowsOn(others)
    await waitFor('the node to be counted as lost', 240_000, async () => {
      const { status } = await api.get(`/apis/${apiVersion}/namespaces/${system}/agents/node`)
      return (status?.['nodes'] as { stale?: number } | undefined)?.stale === 1
    })
    times.add('node lost → counted as lost', performance.now() - lostAt)
    expect(saysOf(await get('web'), 'Ready')).toBe('True Ready')
    // A change does not wait for it.
    await cluster.apply(pipeline({ name: 'meanwhile' }))
    await waitFor('a new Pipeline on the other node', 120_000, async () => receiver.firstAt.has('/meanwhile'))
    await cluster.startNode(lost)
    const startedAt = performance.now()
    await flowsOn()
    times.add('node started → its lines come', performance.now() - startedAt)
    await waitFor('no node to be lost', 120_000, async () => {
      const { status } = await api.get(`/apis/${apiVersion}/namespaces/${system}/agents/node`)
      return (status?.['nodes'] as { stale?: number } | undefined)?.stale === 0
    })
    await noGap('the node was lost')
  })
  const nodeOf = (operator: string) => kubectl('-n', system, 'get', 'pod', operator, '-o', 'jsonpath={.spec.nodeName}')

  test('applying the rendered chart over the release removes nothing', async () => {
    const rendered = await helmTemplate(values(), 'penstock', '--no-hooks')
    expect(rendered).not.toMatch(/^kind: Job$/m)
    const args = ['apply', '--server-side', '--force-conflicts', '-n', system, '-f', '-']
    await cluster.kubectl(args, { input: rendered })
    await isReady('plagent', system, 'node', 240_000)
    await flowsOn()
    await noGap()
  })

  test('helm uninstall ends in seconds, and leaves exactly what the guide describes', async () => {
    await times.measure('helm uninstall', () =>
      withScene(helmHere(['uninstall', 'penstock', '-n', system, '--wait', ...within(150)])),
    )
    await times.measure('then until no pod is left', () =>
      waitFor('the end of all pods', 180_000, async () => {
        const pods = await kubectl('-n', system, 'get', 'pods', '-o', 'name')
        return pods.trim() === ''
      }),
    )
    const secrets = await kubectl('-n', system, 'get', 'secrets', '-o', 'name')
    expect(
      secrets
        .split('\n')
        .filter((name) => name !== '' && !name.includes('helm'))
        .sort(),
    ).toEqual(['secret/penstock-operator-ca', 'secret/penstock-operator-tls', 'secret/penstock-webhook-token'])
    expect((await kubectl('get', 'crd', '-o', 'name')).match(/penstock\.dev/g)?.length).toBeGreaterThanOrEqual(8)
    expect(await kubectl('-n', 'shop', 'get', 'pl', '-o', 'name')).toContain('web')
    for (const node of nodes) expect(existsSync(join(cluster.folder, node, 'var/lib/penstock'))).toBe(true)
  })

  test('after a reinstallation, it continues where it stopped', async () => {
    const count = receiver.at('/web').length
    const startedAt = performance.now()
    await release('install', chart(), [], values())
    await waitFor('lines', 180_000, async () => receiver.at('/web').length > count)
    times.add('helm install again → first line', performance.now() - startedAt)
    await isReady('plagent', system, 'node')
    await isReady('pl', 'shop', 'web')
    await bothStream()
    await noGap()
    times.note(
      'lines of the pods that wrote all the while',
      String([...countLines(receiver.at('/web')).values()].reduce((sum, { numbers }) => sum + numbers.size, 0)),
    )
    times.note('of them twice', String(doubles))
  })
})
