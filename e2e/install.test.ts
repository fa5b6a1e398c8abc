// What a user does, on a real node: install the chart with helm, apply a Pipeline, look into the log store. Operator and agents run
// as pods of images that the project's Dockerfiles make. One cluster serves all of it, in the order of a life: installed,
// used, changed, beside a Job, looked at by tools, removed.

import { randomUUID } from 'node:crypto'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Cluster, missingForCluster, startCluster } from './cluster/cluster.ts'
import { command, until } from './command.ts'
import { argoHealth, kstatus } from './gitops.ts'
import { chart, helm, missingForHelm, objectsOf, prepareHelm, type RenderedObject } from './helm.ts'
import { buildImage, imageName } from './image.ts'
import { service } from './services/service.ts'
import { queryLoki } from './stores.ts'

const loki = service('loki')
const missing = missingForCluster(1) ?? missingForHelm() ?? loki.missing
const run = randomUUID()
const system = 'penstock-system'
/** A further address of this machine on the nodes' bridge: Pipelines may not send to the one of the API server. */
const destination = '10.77.0.2'

interface Store extends AsyncDisposable {
  readonly url: string
  /** Passwords that are accepted. */
  readonly accepted: Set<string>
  /** How often each was used. */
  readonly used: Map<string, number>
}

const firstPassword = 'first "password" \\ with\nlines'

/** The log store behind a password, where pods reach it. */
async function guardedStore(target: string): Promise<Store> {
  const { hostname, port } = new URL(target)
  const accepted = new Set([firstPassword])
  const used = new Map<string, number>()
  const server = createServer((incoming, answer) => {
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
  return {
    url: `http://${destination}:${bound}`,
    accepted,
    used,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}

const image = (repository: string) => ({ repository: repository.split(':')[0], tag: repository.split(':')[1] })
const values = {
  image: image(imageName('operator')),
  agentImage: image(imageName('agent')),
  tenantAgents: { enabled: true },
  resources: { requests: { cpu: '20m', memory: '128Mi' } },
}

describe.skipIf(missing !== undefined)(`the installed chart${missing === undefined ? '' : ` (${missing})`}`, () => {
  const resources = new AsyncDisposableStack()
  let cluster: Cluster
  let lokiUrl: string
  let store: Store

  const kubectl = (...args: string[]) => cluster.kubectl(args)
  const helmHere = (args: readonly string[], input = '') =>
    helm(args, { input, env: { KUBECONFIG: cluster.kubeconfig }, timeoutMs: 300_000 })

  beforeAll(async () => {
    // All are waited for even when one fails: what has started by then must end with the test.
    const started = await Promise.allSettled([
      buildImage('operator').then(async (operator) => [operator, await buildImage('agent')]),
      loki.start().then((running) => {
        lokiUrl = resources.use(running).url
      }),
      startCluster({ nodes: 1 }).then((running) => {
        cluster = resources.use(running)
      }),
      prepareHelm(),
    ])
    for (const one of started) if (one.status === 'rejected') throw one.reason
    const [images] = started
    if (images.status === 'fulfilled') for (const archive of images.value) await cluster.load(archive)
    await command('ip', ['addr', 'add', `${destination}/24`, 'dev', 'penstock0'])
    store = resources.use(await guardedStore(lokiUrl))
  })
  afterAll(() => resources.disposeAsync())

  /** What there is to see when something does not come. */
  async function scene(): Promise<string> {
    const look = (...args: string[]) => kubectl(...args).catch((error: unknown) => String(error))
    return [
      await look('get', 'pods,plagent,pl', '-A', '-o', 'wide'),
      await look('-n', system, 'logs', '-l', 'app.kubernetes.io/name=penstock-operator', '--tail', '30', '--prefix'),
      await look('-n', system, 'logs', '-l', 'app.kubernetes.io/name=penstock-agent', '--tail', '30', '--prefix'),
      await look('get', 'pl,plagent', '-A', '-o', 'jsonpath={range .items[*]}{.metadata.name} {.status}{"\\n"}{end}'),
    ].join('\n---\n')
  }
  const waitFor = <T>(what: string, timeoutMs: number, attempt: () => Promise<T | false | undefined>) =>
    until(what, timeoutMs, attempt).catch(async (error: Error) => {
      throw new Error(`${error.message} ${error.cause ?? ''}\n${await scene()}`)
    })
  const isReady = (kind: string, namespace: string, name: string, timeoutMs = 90_000) =>
    waitFor(`${kind} ${namespace}/${name} to be ready`, timeoutMs, async () => {
      const object = JSON.parse(await kubectl('-n', namespace, 'get', kind, name, '-o', 'json'))
      const ready = object.status?.conditions?.find((one: { type: string }) => one.type === 'Ready')
      return ready?.status === 'True' && object.status.observedGeneration === object.metadata.generation && object
    })

  const pipeline = (mark: string) => ({
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
  const lines = async (app: string) =>
    (await queryLoki(lokiUrl, `{app="${app}"}`, run)).map((entry) => JSON.parse(entry.line) as Record<string, unknown>)
  const agentPods = async () => {
    const list = JSON.parse(
      await kubectl('-n', system, 'get', 'pods', '-l', 'app.kubernetes.io/instance=node', '-o', 'json'),
    )
    return list.items.map(
      (pod: { metadata: { uid: string }; status: { containerStatuses: { restartCount: number }[] } }) => ({
        uid: pod.metadata.uid,
        restarts: pod.status.containerStatuses.map((one) => one.restartCount),
      }),
    )
  }

  test('helm brings up an operator and an agent on the node', { timeout: 240_000 }, async () => {
    await helmHere(
      [
        'install',
        'penstock',
        chart(),
        '-n',
        system,
        '--create-namespace',
        '--values',
        '-',
        '--wait',
        '--timeout',
        '150s',
      ],
      JSON.stringify(values),
    ).catch(async (error: Error) => {
      throw new Error(`${error.message}\n${await scene()}`)
    })
    await isReady('plagent', system, 'node')
    const [pod] = await agentPods()
    expect(pod.restarts).toEqual([0])
  })

  test('a Pipeline is all that it takes: lines of a pod arrive, enriched', { timeout: 180_000 }, async () => {
    await cluster.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop', labels: { team: 'blue' } } })
    await cluster.apply(secret(firstPassword), pipeline('one'))
    const program = `let n = 0; setInterval(() => console.log(JSON.stringify({ n: n++, level: 'info' })), 200)`
    await until('the default service account', 30_000, () => kubectl('-n', 'shop', 'get', 'serviceaccount', 'default'))
    await cluster.apply({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'web', namespace: 'shop', labels: { app: 'web' } },
      spec: {
        terminationGracePeriodSeconds: 1,
        containers: [{ name: 'main', image: 'localhost/node:26', args: ['-e', program] }],
      },
    })
    await isReady('pl', 'shop', 'checkout')
    const found = await waitFor('lines in Loki', 60_000, async () => {
      const some = await lines('web')
      return some.length >= 3 && some
    })
    expect(found[0]).toMatchObject({
      n: 0,
      level: 'info',
      mark: 'one',
      stream: 'stdout',
      orchestrator: {
        pod_name: 'web',
        pod_namespace: 'shop',
        container_name: 'main',
        pod_labels: { app: 'web' },
        namespace_labels: { team: 'blue' },
        pod_node_name: 'node-1',
      },
    })
    const checkout = JSON.parse(await kubectl('-n', 'shop', 'get', 'pl', 'checkout', '-o', 'json'))
    expect(checkout.status.agents).toMatchObject([{ name: `${system}/node`, desired: 1, current: 1 }])
    const node = JSON.parse(await kubectl('-n', system, 'get', 'plagent', 'node', '-o', 'json'))
    for (const object of [checkout, node])
      expect([kstatus(object), argoHealth(object).status]).toEqual(['Current', 'Healthy'])
  })

  test('a change of the Pipeline and a new password reach the agent without a restart', {
    timeout: 240_000,
  }, async () => {
    const before = await agentPods()
    await cluster.apply(pipeline('two'))
    await waitFor('lines of the changed Pipeline', 90_000, async () =>
      (await lines('web')).some((line) => line['mark'] === 'two') ? true : undefined,
    )

    // As passwords are exchanged: both hold for a while, then the old one no more.
    store.accepted.add('second')
    await cluster.apply(secret('second'))
    await waitFor('the new password to be used', 90_000, async () => (store.used.get('second') ?? 0) > 0 || undefined)
    store.accepted.delete(firstPassword)
    const count = (await lines('web')).length
    await waitFor(
      'lines with the new password',
      60_000,
      async () => (await lines('web')).length > count + 5 || undefined,
    )

    expect(await agentPods()).toEqual(before)
    const numbers = (await lines('web')).map((line) => Number(line['n']))
    const newest = Math.max(...numbers)
    expect(new Set(numbers).size, 'no line is missing').toBe(newest + 1)
    const everything = await kubectl('get', 'pl,plagent,configmaps,events,pods', '-A', '-o', 'json')
    expect(everything).not.toContain('second')
  })

  test('a wrong Pipeline is refused with all its problems, and nothing changes', { timeout: 60_000 }, async () => {
    const refusal = (change: (spec: ReturnType<typeof pipeline>['spec']) => object) => {
      const base = pipeline('three')
      const input = JSON.stringify({ ...base, spec: { ...base.spec, ...change(base.spec) } })
      return cluster.kubectl(['apply', '--dry-run=server', '-f', '-'], { input }).then(
        () => 'nothing was refused',
        (error: Error) => error.message,
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
      pipeline('two').spec,
    )
  })

  test('a Job with a sidecar completes, and its last line is delivered', { timeout: 180_000 }, async () => {
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
    // The Job is over only after its sidecar is: what it has delivered is there by now.
    const numbers = (await lines('job')).map((line) => Number(line['n'])).sort((a, b) => a - b)
    expect([...new Set(numbers)]).toEqual(Array.from({ length: 101 }, (_, n) => n))
    const pod = JSON.parse(await kubectl('-n', 'shop', 'get', 'pods', '-l', 'job-name=import', '-o', 'json')).items[0]
    expect(
      pod.spec.initContainers.map((one: { name: string; restartPolicy: string }) => [one.name, one.restartPolicy]),
    ).toEqual([['penstock-agent', 'Always']])
  })

  test('an entry of a strict namespace that asks wrongly is refused', { timeout: 60_000 }, async () => {
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'x', namespace: 'shop', annotations: { 'penstock.dev/sidecar': 'nobody' } },
      spec: { containers: [{ name: 'main', image: 'localhost/node:26' }] },
    }
    await expect(cluster.apply(pod)).rejects.toThrow('there is no Agent "nobody" in namespace "shop"')
  })

  test('helm test passes, and a renderer of the chart sees no difference afterwards', {
    timeout: 180_000,
  }, async () => {
    await helmHere(['test', 'penstock', '-n', system, '--timeout', '120s']).catch(async (error: Error) => {
      throw new Error(`${error.message}\n${await scene()}`)
    })
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

  test('uninstalling and deleting the namespaces come to an end', { timeout: 240_000 }, async () => {
    await helmHere(['uninstall', 'penstock', '-n', system, '--wait', '--timeout', '150s']).catch(
      async (error: Error) => {
        throw new Error(`${error.message}\n${await scene()}`)
      },
    )
    const left = await kubectl(
      'get',
      'clusterrole,clusterrolebinding,validatingwebhookconfiguration,mutatingwebhookconfiguration',
      '-o',
      'name',
    )
    expect(left.split('\n').filter((name) => name.includes('penstock'))).toEqual([])
    // Data of the user stays: the kinds, and what was made of them.
    expect(await kubectl('-n', 'shop', 'get', 'pl', '-o', 'name')).toContain('checkout')
    await kubectl('delete', 'namespace', 'shop', system, '--timeout', '120s')
    expect(await kubectl('get', 'namespaces', '-o', 'name')).not.toMatch(/shop|penstock/)
  })
})

const group = (object: RenderedObject) => {
  const [first = '', second] = object.apiVersion.split('/')
  return second === undefined ? `${first}.` : `${second}.${first}`
}

/** Fields that an object was rendered with and that it has no more: what GitOps tools call drift. */
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

/** Empty values are not stored; what they mean is the same. */
const isSame = (wanted: unknown, live: unknown) =>
  wanted === live || (live === undefined && (wanted === '' || wanted === null || wanted === false))
