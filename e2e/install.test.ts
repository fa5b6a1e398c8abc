// A user's work on three real nodes: install the chart with helm, apply a Pipeline, read the log store. Operator and agents run as pods with
// images from the project's Dockerfiles. All tests share one cluster and run in order: install, use, change, break with a change, run a Job,
// lose a node, upgrade, inspect with tools, remove.

import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Cluster, missingForCluster } from './cluster/cluster.ts'
import { until, within } from './command.ts'
import { countNumbers, missingIn } from './counted-lines.ts'
import { argoHealth, kstatus } from './gitops.ts'
import { changedChart, chart, missingForHelm, objectsOf, type RenderedObject } from './helm.ts'
import { contentOf, imageName } from './image.ts'
import { destination, startInstallable, system, userOf, values } from './installed.ts'
import { nextCharts, nextField, nextImage, nextVersion } from './next-release.ts'
import { service } from './services/service.ts'
import { queryLoki } from './stores.ts'

const loki = service('loki')
const missing = missingForCluster(3) ?? missingForHelm() ?? loki.missing
const run = randomUUID()
interface Store extends AsyncDisposable {
  readonly url: string
  /** Accepted passwords. */
  readonly accepted: Set<string>
  /** Number of uses by password. */
  readonly used: Map<string, number>
  /** Whether it responds to all requests with 503. */
  isDown: boolean
  /** Number of requests rejected while it was down. */
  refused: number
}

const firstPassword = 'first "password" \\ with\nlines'

/** The log store with password authentication, at an address for pods. */
async function guardedStore(target: string): Promise<Store> {
  const { hostname, port } = new URL(target)
  const accepted = new Set([firstPassword])
  const used = new Map<string, number>()
  const state = { isDown: false, refused: 0 }
  const server = createServer((incoming, answer) => {
    if (state.isDown) {
      state.refused++
      incoming.resume()
      incoming.on('end', () => answer.writeHead(503).end())
      return
    }
    const [, encoded = ''] = (incoming.headers.authorization ?? '').split(' ')
    const [user, ...rest] = Buffer.from(encoded, 'base64').toString().split(':')
    const password = rest.join(':')
    if (user !== 'shop' || !accepted.has(password)) {
      incoming.resume()
      incoming.on('end', () => answer.writeHead(401).end())
      return
    }
    used.set(password, (used.get(password) ?? 0) + 1)
    const { authorization: _, ...headers } = incoming.headers
    const forward = request({ hostname, port, method: incoming.method, path: incoming.url, headers }, (response) => {
      answer.writeHead(response.statusCode ?? 502, response.headers)
      response.pipe(answer)
    })
    forward.on('error', () => answer.destroy())
    incoming.pipe(forward)
  })
  await new Promise<void>((done, reject) => {
    server.once('error', reject)
    server.listen(0, destination, done)
  })
  const bound = (server.address() as AddressInfo).port
  return Object.assign(state, {
    url: `http://${destination}:${bound}`,
    accepted,
    used,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  })
}

const nodes = ['node-1', 'node-2', 'node-3']

/** The chart of a previous release: another version, and a kind without some fields. */
async function olderChart(): Promise<string> {
  return changedChart(await mkdtemp(join(process.env['PENSTOCK_TEST_RUN'] ?? tmpdir(), 'chart-')), 'penstock', {
    'Chart.yaml': (file) => Object.assign(file, { version: '0.0.1', appVersion: '0.0.1' }),
    'files/crds/pipelines.penstock.dev.yaml': ({ spec }) => {
      // It served one version of the kind.
      spec.versions = spec.versions.filter(({ name }: { name: string }) => name === 'v1alpha1')
      delete spec.versions[0].schema.openAPIV3Schema.properties.spec.properties.suspend
    },
    // Any aggregator could write the Leases of every other one.
    'files/rules.json': ({ agents }) => {
      agents['penstock-agent-aggregator'].push(...agents['penstock-agent-election'])
    },
  })
}

describe.skipIf(missing !== undefined)(`the installed chart${missing === undefined ? '' : ` (${missing})`}`, () => {
  const resources = new AsyncDisposableStack()
  let cluster: Cluster
  let lokiUrl: string
  let store: Store
  let archives: readonly string[] = []

  const { kubectl, helmHere, withScene, waitFor, isReady, agentPods, operatorNodes, release } = userOf(() => cluster)

  beforeAll(async () => {
    const log = loki.start().then((running) => {
      lokiUrl = resources.use(running).url
    })
    ;({ cluster, archives } = await startInstallable(resources, { nodes: 3 }, log))
    store = resources.use(await guardedStore(lokiUrl))
  })
  afterAll(() => resources.disposeAsync())

  const pipeline = (mark: string, more: object = {}) => ({
    apiVersion: 'penstock.dev/v1alpha1',
    kind: 'Pipeline',
    metadata: { name: 'checkout', namespace: 'shop' },
    spec: {
      sources: [{ name: 'app', type: 'orchestrator_logs', selector: { pods: { matchLabels: { app: 'web' } } } }],
      transforms: [
        {
          name: 'parse',
          type: 'remap',
          config: { source: `. = merge(., object(parse_json(string!(.message)) ?? {}) ?? {})\n.mark = "${mark}"` },
        },
      ],
      sinks: [
        {
          name: 'central',
          type: 'log_aggregator',
          config: {
            ...more,
            endpoint: store.url,
            tenant_id: run,
            encoding: { codec: 'json' },
            labels: { app: 'web', namespace: '{{ orchestrator.pod_namespace }}' },
            auth: {
              strategy: 'basic',
              user: 'shop',
              password: { valueFrom: { secretKeyRef: { name: 'loki', key: 'password' } } },
            },
            batch: { timeout_secs: 0.2 },
          },
        },
      ],
    },
  })
  const secret = (password: string) => ({
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'loki', namespace: 'shop' },
    stringData: { password },
  })
  /** The delivered lines, with their time of writing in milliseconds. */
  const lines = async (app: string): Promise<Line[]> =>
    (await queryLoki(lokiUrl, `{app="${app}"}`, run)).map((entry) => ({
      ...(JSON.parse(entry.line) as Record<string, unknown>),
      at: Number(BigInt(entry.at) / 1_000_000n),
    }))
  /** The numbers of a node's delivered lines in order. */
  const numbersOf = (all: readonly Line[], node: string) => [
    ...new Set(all.filter((line) => nodeOf(line) === node).map((line) => Number(line['n']))),
  ]
  /**
   * Waits until all lines of these nodes up to the latest one have arrived. One check is not enough, because the log store is read in pages,
   * and a line may arrive after its page has been read.
   */
  const everyLine = (names: readonly string[]) =>
    waitFor(`every line of ${names.join(', ')}`, 60_000, async () => {
      const all = await lines('web')
      const counted = countNumbers(names.flatMap((node) => numbersOf(all, node).map((n) => [node, n] as const)))
      for (const node of names) if (!counted.has(node)) throw new Error(`No line of ${node} has arrived.`)
      const missing = missingIn(counted, counted)
      if (missing !== undefined) throw new Error(`A line is missing: ${missing}.`)
      return true
    })
  const agentStatus = async () =>
    JSON.parse(await kubectl('-n', system, 'get', 'plagent', 'node', '-o', 'json')).status as AgentStatus
  /** The nodes that have delivered a line of this version of the Pipeline. */
  const nodesWith = async (mark: string) => {
    const all = await lines('web')
    return nodes.filter((node) => all.some((line) => line['mark'] === mark && nodeOf(line) === node))
  }

  test('helm starts an operator, and an agent on each node', { timeout: 600_000 }, async () => {
    const older = await olderChart()
    try {
      await release('install', older, ['--create-namespace'])
    } finally {
      await rm(dirname(older), { recursive: true })
    }
    await isReady('plagent', system, 'node')
    const pods = await agentPods()
    expect(pods.map((pod) => pod.node)).toEqual(nodes)
    expect(pods.flatMap((pod) => pod.restarts)).toEqual([0, 0, 0])
  })

  test('metrics can be read with the token that the chart created, and with no other', {
    timeout: 600_000,
  }, async () => {
    const { data } = JSON.parse(await kubectl('-n', system, 'get', 'secret', 'penstock-metrics', '-o', 'json'))
    const token = Buffer.from(data.token, 'base64').toString()
    const list = JSON.parse(await kubectl('-n', system, 'get', 'pods', '-o', 'json'))
    const pods = list.items as { metadata: { labels: Record<string, string> }; status: { podIP: string } }[]
    expect(pods).toHaveLength(5)
    for (const { metadata, status } of pods) {
      const isOperator = metadata.labels['app.kubernetes.io/name'] === 'penstock-operator'
      const url = `http://${status.podIP}:${isOperator ? 8080 : 8686}/metrics`
      expect((await fetch(url)).status, url).toBe(401)
      const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` } })
      expect(answer.status, url).toBe(200)
      expect(await answer.text()).toContain(isOperator ? 'workqueue_depth' : 'config_revision_info')
    }
  })

  test('an image contains only Node and the program: no shell, no package manager, and runs as nobody', {
    timeout: 120_000,
  }, async () => {
    for (const archive of archives) {
      const { config, paths } = await contentOf(archive)
      expect(config).toMatchObject({ User: '65532:65532' })
      expect(config.Entrypoint[0]).toBe('/usr/local/bin/node')
      const system = paths.filter((path) => !path.startsWith('app/') && !path.endsWith('/'))
      expect(system.filter((path) => /(^|\/)s?bin\//.test(path))).toEqual(['usr/local/bin/node'])
      // Packages in images are independent of the architecture.
      expect(paths.filter((path) => path.endsWith('.node'))).toEqual([])
      const own = paths.filter((path) => /^app\/(agent|operator)\//.test(path))
      expect(own).toContain(config.Entrypoint.at(-1)?.slice(1))
      expect(own.filter((path) => /\.test\.|\/src\//.test(path))).toEqual([])
    }
  })

  test('an agent uses the compile cache from the image build', { timeout: 300_000 }, async () => {
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'compiled', namespace: system },
      spec: {
        restartPolicy: 'Never',
        containers: [
          {
            name: 'agent',
            image: imageName('agent'),
            imagePullPolicy: 'Never',
            args: ['validate', '--help'],
            env: [{ name: 'NODE_DEBUG_NATIVE', value: 'COMPILE_CACHE' }],
            securityContext: { readOnlyRootFilesystem: true },
          },
        ],
      },
    }
    await cluster.apply(pod)
    await waitFor('the pod to end', 90_000, async () => {
      const { status } = JSON.parse(await kubectl('-n', system, 'get', 'pod', 'compiled', '-o', 'json'))
      return status.phase === 'Succeeded'
    })
    const log = await kubectl('-n', system, 'logs', 'compiled')
    expect(log).toMatch(/file:\/\/\/app\/agent\/packed\/main\.js was accepted/)
    expect(log).not.toContain('was rejected')
    await kubectl('-n', system, 'delete', 'pod', 'compiled', '--now')
  })

  test('after applying a Pipeline, enriched lines of a pod arrive', { timeout: 600_000 }, async () => {
    await cluster.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop', labels: { team: 'blue' } } })
    await cluster.apply(secret(firstPassword), pipeline('one'))
    const program = `let n = 0; setInterval(() => console.log(JSON.stringify({ n: n++, level: 'info' })), 400)`
    await until('the default service account', 30_000, () => kubectl('-n', 'shop', 'get', 'serviceaccount', 'default'))
    await cluster.apply({
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      metadata: { name: 'web', namespace: 'shop' },
      spec: {
        selector: { matchLabels: { app: 'web' } },
        template: {
          metadata: { labels: { app: 'web' } },
          spec: {
            terminationGracePeriodSeconds: 1,
            containers: [{ name: 'main', image: 'localhost/node:26', args: ['-e', program] }],
          },
        },
      },
    })
    await isReady('pl', 'shop', 'checkout')
    const found = await waitFor('the first lines of each node in Loki', 60_000, async () => {
      const some = await lines('web')
      return nodes.every((node) => numbersOf(some, node).length >= 3) && some
    })
    for (const node of nodes) {
      expect(found.find((line) => line['n'] === 0 && nodeOf(line) === node)).toMatchObject({
        level: 'info',
        mark: 'one',
        stream: 'stdout',
        orchestrator: {
          pod_name: expect.stringMatching(/^web-/),
          pod_namespace: 'shop',
          container_name: 'main',
          pod_labels: { app: 'web' },
          namespace_labels: { team: 'blue' },
        },
      })
    }
    const checkout = JSON.parse(await kubectl('-n', 'shop', 'get', 'pl', 'checkout', '-o', 'json'))
    expect(checkout.status.agents).toMatchObject([{ name: `${system}/node`, desired: 3, current: 3 }])
    const node = JSON.parse(await kubectl('-n', system, 'get', 'plagent', 'node', '-o', 'json'))
    for (const object of [checkout, node])
      expect([kstatus(object), argoHealth(object).status]).toEqual(['Current', 'Healthy'])
  })

  test('a change and a new password reach one node first and then all, without a restart', {
    timeout: 240_000,
  }, async () => {
    const before = await agentPods()
    await cluster.apply(pipeline('two'))
    // While the canary runs the change, the other nodes continue as before.
    const first = await waitFor('lines of the changed Pipeline', 120_000, async () => {
      const found = await nodesWith('two')
      return found.length > 0 && found
    })
    expect(first).toHaveLength(1)
    await waitFor('its lines of each node', 120_000, async () => (await nodesWith('two')).length === 3)

    // As in a real rotation, both passwords are valid for a while, then only the new one.
    store.accepted.add('second')
    await cluster.apply(secret('second'))
    const counted = () => store.used.get('second') ?? 0
    await waitFor('the new password to be used', 90_000, async () => counted() > 0 || undefined)
    await waitFor('the old password to be used no more', 90_000, async () => {
      const old = store.used.get(firstPassword)
      const then = counted()
      await until('more requests', 30_000, async () => counted() > then + 20 || undefined)
      return store.used.get(firstPassword) === old
    })
    store.accepted.delete(firstPassword)
    const count = (await lines('web')).length
    await waitFor(
      'lines with the new password',
      60_000,
      async () => (await lines('web')).length > count + 15 || undefined,
    )

    expect(await agentPods()).toEqual(before)
    await everyLine(nodes)
    const everything = await kubectl('get', 'pl,plagent,configmaps,events,pods', '-A', '-o', 'json')
    expect(everything).not.toContain('second')
  })

  test('a version that crashes the agent of the canary is rolled back, and other nodes never run it', {
    timeout: 240_000,
  }, async () => {
    const before = await agentPods()
    // A program that needs more memory than an agent has: 256 MB, and a third more in base64. In a namespaced Pipeline, the budget would end it.
    const doubled = Array.from({ length: 25 }, () => 'x = x + x').join('\n')
    const source = `x = slice!(string!(.message), 0, 8)\n${doubled}\n.size = length(encode_base64(x))`
    const namespaces = { matchLabels: { 'kubernetes.io/metadata.name': 'shop' } }
    const version = (program: string) => ({
      apiVersion: 'penstock.dev/v1alpha1',
      kind: 'ClusterPipeline',
      metadata: { name: 'bad' },
      spec: {
        sources: [{ name: 'app', type: 'orchestrator_logs', selector: { namespaces } }],
        transforms: [{ name: 'parse', type: 'remap', config: { source: program } }],
        sinks: [{ name: 'out', type: 'blackhole' }],
      },
    })
    await cluster.apply(version('.size = 1'))
    await waitFor('the first version to run everywhere', 90_000, async () => {
      const { status } = JSON.parse(await kubectl('get', 'clusterpipeline', 'bad', '-o', 'json'))
      const conditions: { type: string; status: string }[] = status?.conditions ?? []
      const { revision, stableRevision } = await agentStatus()
      return revision === stableRevision && conditions.some((one) => one.type === 'Ready' && one.status === 'True')
    })
    await cluster.apply(version(source))
    const condition = await waitFor('the Pipeline to be rolled back', 150_000, async () => {
      const { status } = JSON.parse(await kubectl('get', 'clusterpipeline', 'bad', '-o', 'json'))
      const conditions: { type: string; status: string; reason: string; message: string }[] = status?.conditions ?? []
      return (
        conditions.some((one) => one.type === 'Stalled' && one.status === 'True') &&
        conditions.find((one) => one.type === 'Programmed' && one.reason === 'RolledBack')
      )
    })
    expect(condition.message).toMatch(/the agent on node-\d ended/)
    const canary = /node-\d/.exec(condition.message)?.[0]
    const after = await agentPods()
    expect(after.filter((pod) => pod.node !== canary)).toEqual(before.filter((pod) => pod.node !== canary))
    const tried = (await agentStatus()).history?.find(({ result }) => result === 'RolledBack')?.revision
    expect(tried).toMatch(/^[0-9a-f]{12}$/)
    for (const pod of after) {
      if (pod.node === canary) expect(pod.restarts[0]).toBeGreaterThan(0)
      else expect(await kubectl('-n', system, 'logs', pod.name)).not.toContain(tried)
    }

    // A restart caused by the bad version would count against the next version.
    // It may have started the bad version once more, and returned without a restart. If `checkout` arrived shortly before the crash,
    // it is suspected too, and is tried again by itself.
    await waitFor('the canary to run the restored version', 150_000, async () => {
      const pod = after.find(({ node }) => node === canary)
      const podLog = await kubectl('-n', system, 'logs', pod?.name ?? '').catch(() => '')
      const active = [...podLog.matchAll(/The bundle is active\. revision=(\w+)/g)].at(-1)?.[1]
      const { revision, stableRevision } = await agentStatus()
      return stableRevision !== undefined && revision === stableRevision && active?.startsWith(stableRevision)
    })
    await kubectl('delete', 'clusterpipeline', 'bad')
    // Other nodes continue with the restored version, and a new change is applied.
    await cluster.apply(pipeline('three'))
    await waitFor('lines of the repaired Pipeline', 150_000, async () => (await nodesWith('three')).length === 3)
    await isReady('pl', 'shop', 'checkout')
    await everyLine(nodes)
  })

  test('an invalid Pipeline is rejected with all problems, and nothing changes', { timeout: 600_000 }, async () => {
    const refusal = (change: (spec: ReturnType<typeof pipeline>['spec']) => object) => {
      const base = pipeline('four')
      const input = JSON.stringify({ ...base, spec: { ...base.spec, ...change(base.spec) } })
      // The API server accepts a resource if the webhook does not respond within five seconds.
      return waitFor('a refusal', 90_000, () =>
        cluster.kubectl(['apply', '--dry-run=server', '-f', '-'], { input }).then(
          () => undefined,
          (error: Error) => error.message,
        ),
      )
    }
    const program = (source: string) => ({ name: 'parse', type: 'remap', config: { source } })
    const twice = await refusal(() => ({
      transforms: [program('.a = 1\n.b = parse_json(.message)'), { ...program('.c = '), name: 'other' }],
    }))
    expect(twice).toContain('has 2 problems')
    expect(twice).toMatch(/CompileFailed: transforms\[parse\] line 2 col \d+: E103/)
    expect(twice).toContain('CompileFailed: transforms[other]')
    const forbidden = await refusal((spec) => ({
      sinks: [...spec.sinks, { name: 'files', type: 'file', config: { path: '/etc/x', encoding: { codec: 'text' } } }],
    }))
    expect(forbidden).toMatch(/ForbiddenOption: sinks\[files\].*T9/s)
    expect(JSON.parse(await kubectl('-n', 'shop', 'get', 'pl', 'checkout', '-o', 'json')).spec).toEqual(
      pipeline('three').spec,
    )
  })

  /** A node without an operator pod. */
  let lost: string
  test('when a node is lost, the others continue', { timeout: 600_000 }, async () => {
    const taken = await operatorNodes()
    lost = nodes.find((node) => !taken.includes(node)) ?? 'none'
    await kubectl('cordon', lost) // so that the pods of the next tests do not wait until Kubernetes notices the loss
    await cluster.stopNode(lost)
    const before = await lines('web')
    await waitFor('lines of the other nodes', 240_000, async () => {
      const now = await lines('web')
      return nodes.every((node) => node === lost || numbersOf(now, node).length > numbersOf(before, node).length + 5)
    })
  })

  test('a Job with a sidecar completes, and its last line is delivered', { timeout: 600_000 }, async () => {
    await kubectl('label', 'namespace', 'shop', 'penstock.dev/inject=strict')
    const files = structuredClone(pipeline('job')) as ReturnType<typeof pipeline>
    const sink = files.spec.sinks[0]
    if (sink !== undefined) sink.config.labels = { app: 'job', namespace: 'shop' }
    await cluster.apply(
      {
        apiVersion: 'penstock.dev/v1alpha1',
        kind: 'Agent',
        metadata: { name: 'side', namespace: 'shop' },
        spec: { mode: 'Sidecar', pipelines: { namespaceSelector: {} } },
      },
      {
        ...files,
        metadata: { name: 'files', namespace: 'shop' },
        spec: { ...files.spec, mode: 'Sidecar', sources: [{ name: 'app', type: 'file' }] },
      },
    )
    await waitFor('the bundle of the sidecar', 60_000, () =>
      kubectl('-n', 'shop', 'get', 'secret', 'penstock-side-cfg-0'),
    )
    const program = `
      const { appendFileSync } = require('node:fs')
      for (let n = 0; n < 100; n++) appendFileSync('/logs/import.log', JSON.stringify({ n }) + '\\n')
      setTimeout(() => appendFileSync('/logs/import.log', JSON.stringify({ n: 100, last: true }) + '\\n'), 1500)
    `
    await cluster.apply({
      apiVersion: 'batch/v1',
      kind: 'Job',
      metadata: { name: 'import', namespace: 'shop' },
      spec: {
        backoffLimit: 0,
        template: {
          metadata: {
            annotations: {
              'penstock.dev/sidecar': 'side',
              'penstock.dev/pipelines': 'files',
              'penstock.dev/log-volume': 'logs',
              'penstock.dev/log-paths': '/logs/*.log',
            },
          },
          spec: {
            restartPolicy: 'Never',
            containers: [
              {
                name: 'main',
                image: 'localhost/node:26',
                args: ['-e', program],
                volumeMounts: [{ name: 'logs', mountPath: '/logs' }],
              },
            ],
            volumes: [{ name: 'logs', emptyDir: {} }],
          },
        },
      },
    })
    await waitFor('the Job to complete', 90_000, async () =>
      JSON.parse(await kubectl('-n', 'shop', 'get', 'job', 'import', '-o', 'json')).status?.succeeded === 1
        ? true
        : undefined,
    )
    // The Job completes only after its sidecar, which has delivered everything by then.
    const numbers = (await lines('job')).map((line) => Number(line['n'])).sort((a, b) => a - b)
    expect([...new Set(numbers)]).toEqual(Array.from({ length: 101 }, (_, n) => n))
    const pod = JSON.parse(await kubectl('-n', 'shop', 'get', 'pods', '-l', 'job-name=import', '-o', 'json')).items[0]
    expect(
      pod.spec.initContainers.map((one: { name: string; restartPolicy: string }) => [one.name, one.restartPolicy]),
    ).toEqual([['penstock-agent', 'Always']])
  })

  test('a pod in a strict namespace with a wrong sidecar annotation is rejected', { timeout: 600_000 }, async () => {
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'x', namespace: 'shop', annotations: { 'penstock.dev/sidecar': 'nobody' } },
      spec: { containers: [{ name: 'main', image: 'localhost/node:26' }] },
    }
    await expect(cluster.apply(pod)).rejects.toThrow('there is no Agent "nobody" in namespace "shop"')
  })

  test('a change does not wait for the lost node, which is counted as lost; the node applies it on return', {
    timeout: 300_000,
  }, async () => {
    await cluster.apply(pipeline('four'))
    const there = nodes.filter((node) => node !== lost)
    await waitFor('lines of the changed Pipeline', 180_000, async () => (await nodesWith('four')).length === 2)
    expect(await nodesWith('four')).toEqual(there)
    await waitFor('the lost agent to be counted', 60_000, async () => {
      const { revision, stableRevision, nodes: figures } = await agentStatus()
      return revision === stableRevision && figures?.stale === 1 && figures.current === 2 && figures.desired === 3
    })
    const { status } = JSON.parse(await kubectl('-n', 'shop', 'get', 'pl', 'checkout', '-o', 'json'))
    expect(status.agents).toMatchObject([{ desired: 3, current: 2, stale: 1 }])

    await cluster.startNode(lost)
    await kubectl('uncordon', lost)
    await waitFor('lines of the node that is back', 120_000, async () => (await nodesWith('four')).length === 3)
    await isReady('pl', 'shop', 'checkout', 120_000)
    await waitFor('the agent to be counted again', 60_000, async () => {
      const { nodes: figures } = await agentStatus()
      return figures?.stale === 0 && figures.current === 3
    })
    await everyLine(there)
  })

  test('an upgrade updates the CRDs, and does not change Agents, Pipelines and agents', {
    timeout: 360_000,
  }, async () => {
    const kept = async () => {
      const list = JSON.parse(await kubectl('get', 'plagent,pl,daemonsets', '-A', '-o', 'json'))
      return (list.items as { kind: string; metadata: { name: string; uid: string; generation: number } }[]).map(
        ({ kind, metadata: { name, uid, generation } }) => ({ kind, name, uid, generation }),
      )
    }
    const suspend = () => kubectl('explain', 'pipelines.spec.suspend')
    await expect(suspend()).rejects.toThrow('does not exist')
    const rights = () =>
      kubectl('get', 'clusterrole', 'penstock-agent-aggregator', '-o', 'jsonpath={.rules[*].resources}')
    expect(await rights()).toContain('"leases"')
    const [before, agents] = [await kept(), await agentPods()]
    await release('upgrade', chart())
    expect(JSON.parse(await helmHere(['list', '-n', system, '-o', 'json']))).toMatchObject([
      { name: 'penstock', revision: '2', status: 'deployed' },
    ])
    await waitFor('the newer kind', 30_000, suspend)
    expect(await rights()).not.toContain('"leases"')
    await isReady('plagent', system, 'node')
    await isReady('pl', 'shop', 'checkout')
    expect(await kept()).toEqual(before)
    expect(await agentPods()).toEqual(agents)
    const count = (await lines('web')).length
    await waitFor('more lines', 60_000, async () => (await lines('web')).length > count + 15 || undefined)
  })

  test('an upgrade and a downgrade with full buffers lose no line', { timeout: 900_000 }, async () => {
    await cluster.apply(pipeline('buffered', { buffer: { type: 'disk', max_size: 268_435_488, when_full: 'block' } }))
    await waitFor('lines by way of the disk', 180_000, async () => (await nodesWith('buffered')).length === 3)
    await isReady('pl', 'shop', 'checkout', 180_000)
    store.isDown = true
    const refused = store.refused
    await waitFor('requests that are refused', 60_000, async () => store.refused > refused + 3 || undefined)
    // Each release has its own agents, so agents end twice with full buffers.
    const folder = await mkdtemp(join(process.env['PENSTOCK_TEST_RUN'] ?? tmpdir(), 'next-'))
    resources.defer(() => rm(folder, { recursive: true, force: true }))
    for (const name of ['operator', 'agent'] as const) await cluster.load(await nextImage(name, folder))
    const next = (image: object) => ({ ...image, tag: nextVersion })
    const uids = new Set((await agentPods()).map(({ uid }) => uid))
    for (const [from, given] of [
      [
        (await nextCharts(folder)).penstock,
        { ...values, image: next(values.image), agentImage: next(values.agentImage) },
      ],
      [chart(), values],
    ] as const) {
      await release('upgrade', from, [], given)
      await waitFor('agents of this release', 240_000, async () => {
        const pods = await agentPods()
        return (pods.length === 3 && pods.every(({ uid }) => !uids.has(uid))) || undefined
      })
      for (const { uid } of await agentPods()) uids.add(uid)
      await isReady('plagent', system, 'node', 180_000)
    }
    await expect(kubectl('explain', `pipelines.spec.${nextField}`)).rejects.toThrow('does not exist')

    const reached = Object.fromEntries(nodes.map((node) => [node, 0]))
    for (const line of await lines('web')) {
      const node = nodeOf(line) ?? ''
      reached[node] = Math.max(reached[node] ?? 0, Number(line['n']))
    }
    store.isDown = false
    await waitFor('the lines of the time when the store was down', 240_000, async () => {
      const now = await lines('web')
      return nodes.every((node) => Math.max(...numbersOf(now, node)) > (reached[node] ?? 0) + 20)
    })
    await everyLine(nodes)
    await isReady('pl', 'shop', 'checkout', 180_000)
  })

  test('helm test passes, and rendering the chart afterwards shows no differences', {
    timeout: 180_000,
  }, async () => {
    await withScene(helmHere(['test', 'penstock', '-n', system, ...within(120)]))
    const manifest = await helmHere(['get', 'manifest', 'penstock', '-n', system])
    for (const object of objectsOf(manifest)) {
      const { name, namespace } = object.metadata
      const live = JSON.parse(
        await kubectl(
          ...(namespace === undefined ? [] : ['-n', namespace]),
          'get',
          `${object.kind}.${group(object)}`,
          name,
          '-o',
          'json',
        ),
      )
      expect(differences(object, live), `${object.kind} ${name}`).toEqual([])
    }
  })

  test('uninstalling and deleting the namespaces complete', { timeout: 600_000 }, async () => {
    await withScene(helmHere(['uninstall', 'penstock', '-n', system, '--wait', ...within(150)]))
    const left = await kubectl(
      'get',
      'clusterrole,clusterrolebinding,validatingwebhookconfiguration,mutatingwebhookconfiguration',
      '-o',
      'name',
    )
    expect(left.split('\n').filter((name) => name.includes('penstock'))).toEqual([])
    // User data stays: the CRDs and their resources.
    expect(await kubectl('-n', 'shop', 'get', 'pl', '-o', 'name')).toContain('checkout')
    await kubectl('delete', 'namespace', 'shop', system, ...within(120))
    expect(await kubectl('get', 'namespaces', '-o', 'name')).not.toMatch(/shop|penstock/)
  })
})

interface AgentStatus {
  readonly revision?: string
  readonly stableRevision?: string
  readonly nodes?: { readonly desired: number; readonly current: number; readonly stale: number }
  readonly history?: readonly { readonly revision: string; readonly result: string }[]
}

interface Line {
  readonly at: number
  readonly [field: string]: unknown
}

const nodeOf = (line: Line) => (line['orchestrator'] as { readonly pod_node_name?: string } | undefined)?.pod_node_name

const group = (object: RenderedObject) => {
  const [first = '', second] = object.apiVersion.split('/')
  return second === undefined ? `${first}.` : `${second}.${first}`
}

/** Rendered fields that an object no longer has, which GitOps tools call drift. */
function differences(wanted: unknown, live: unknown, path = ''): string[] {
  if (Array.isArray(wanted)) {
    if (!Array.isArray(live) || live.length !== wanted.length) return [`${path}: ${JSON.stringify(live)}`]
    return wanted.flatMap((item, index) => differences(item, live[index], `${path}[${index}]`))
  }
  if (typeof wanted === 'object' && wanted !== null) {
    const there = (live ?? {}) as Record<string, unknown>
    return Object.entries(wanted).flatMap(([key, value]) => differences(value, there[key], `${path}.${key}`))
  }
  return isSame(wanted, live) ? [] : [`${path}: ${JSON.stringify(wanted)} is ${JSON.stringify(live)}`]
}

/** Removes empty values, which the API server does not store. */
const isSame = (wanted: unknown, live: unknown) =>
  wanted === live || (live === undefined && (wanted === '' || wanted === null || wanted === false))
