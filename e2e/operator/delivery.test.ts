// From `kubectl apply` to delivered events: a real control plane, the operator as a process, and real agents for the pods of the DaemonSet,
// with volumes like those of a kubelet.

import { createHash, randomBytes } from 'node:crypto'
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import type { Bundle } from '@penstock/agent/bundle'
import { freePort } from '@penstock/agent/testing/free-port'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Cluster, missingForCluster, startCluster } from '../cluster/cluster.ts'
import { root } from '../command.ts'
import { Crowd } from './crowd.ts'
import { Api, Fleet, type ObjectLike, podToken } from './fleet.ts'
import { type ConditionLike, eventually, heartbeatUrl, OperatorProcess } from './process.ts'
import { Receiver } from './receiver.ts'

vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })
const missing = missingForCluster(0)

describe.skipIf(missing !== undefined)(`delivery${missing === undefined ? '' : ` (${missing})`}`, () => {
  let cluster: Cluster
  let api: Api
  let operator: OperatorProcess
  let fleet: Fleet
  let receiver: Receiver
  let port = 0

  beforeAll(async () => {
    cluster = await startCluster()
    api = await Api.start(cluster)
    receiver = await Receiver.start()
    port = await freePort()
    await cluster.kubectl(['apply', '--server-side', '-k', 'crds'])
    for (const name of ['penstock-system', 'shop', 'team', 'team-a'])
      await cluster.kubectl(['create', 'namespace', name])
    await cluster.apply(agent({}))
    operator = start()
    fleet = await Fleet.start(api, {
      agent: 'node',
      nodes: 3,
      operatorUrl: heartbeatUrl(port),
      kubeconfig: cluster.kubeconfig,
      // The default is ten minutes.
      args: ['--leftover-seconds', '1'],
    })
    await eventually(() => {
      for (const member of fleet.members) expect(member.output).toContain('Penstock has started')
    }, 120_000)
  })
  afterAll(async () => {
    await fleet?.[Symbol.asyncDispose]()
    await operator?.[Symbol.asyncDispose]()
    await receiver?.[Symbol.asyncDispose]()
    await api?.[Symbol.asyncDispose]()
    await cluster?.[Symbol.asyncDispose]()
  })

  const start = () =>
    OperatorProcess.start({
      kubeconfig: cluster.kubeconfig,
      heartbeats: port,
      args: ['--leader-election', 'false', '--log-level', 'debug'],
    })

  const agent = (extra: object) => ({
    apiVersion: 'penstock.dev/v1alpha1',
    kind: 'Agent',
    metadata: { name: 'node', namespace: 'penstock-system' },
    spec: {
      mode: 'Node',
      pipelines: { namespaceSelector: {}, clusterPipelines: { selector: {} } },
      configDelivery: 'Mounted',
      rollout: { canary: { percent: 100, bake: '1s' } },
      ...extra,
    },
  })
  /** The default. */
  const streaming = (extra: object = {}) => agent({ configDelivery: undefined, ...extra })

  const pipeline = (namespace: string, name: string, spec: object = {}) => ({
    apiVersion: 'penstock.dev/v1alpha1',
    kind: 'Pipeline',
    metadata: { name, namespace },
    spec: {
      sources: [{ name: 'app', type: 'orchestrator_logs' }],
      sinks: [{ name: 'out', type: 'http', config: sink(`/${namespace}/${name}`) }],
      ...spec,
    },
  })

  const sink = (path: string) => ({
    uri: `${receiver.url}${path}`,
    encoding: { codec: 'json' },
    batch: { timeout_secs: 0.2 },
    healthcheck: false,
    request: { retry_initial_backoff_secs: 1, retry_max_duration_secs: 2 },
  })

  const condition = async (kind: string, key: string, type: string): Promise<ConditionLike | undefined> => {
    const [namespace, name] = key.split('/') as [string, string]
    const object = await api.get(`/apis/penstock.dev/v1alpha1/namespaces/${namespace}/${kind}/${name}`)
    return (object.status?.['conditions'] as ConditionLike[] | undefined)?.find((each) => each.type === type)
  }
  const programmed = (...keys: readonly string[]) =>
    eventually(async () => {
      for (const key of keys) {
        const found = await condition('pipelines', key, 'Programmed')
        const agents = fleet.members.map((member) => member.output.slice(-1500)).join('\n')
        expect(found?.reason, `${key}: ${found?.message}\n${agents}`).toBe('Programmed')
      }
    }, 90_000)

  /** Creates a pod on a node, and returns a function that writes to its log. */
  async function pod(namespace: string, name: string, labels: Record<string, string> = {}, node = 0) {
    const member = fleet.members[node]
    if (member === undefined) throw new Error(`There is no node ${node}.`)
    const made = await api.request<{ metadata: { uid: string } }>('POST', `/api/v1/namespaces/${namespace}/pods`, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, labels },
      spec: { nodeName: member.node, containers: [{ name: 'app', image: 'app' }], automountServiceAccountToken: false },
    })
    await api.request(
      'PATCH',
      `/api/v1/namespaces/${namespace}/pods/${name}/status`,
      {
        status: {
          phase: 'Running',
          containerStatuses: [
            {
              name: 'app',
              image: 'app',
              imageID: 'app@1',
              containerID: 'containerd://1',
              ready: true,
              restartCount: 0,
              state: { running: {} },
            },
          ],
        },
      },
      'application/merge-patch+json',
    )
    const folder = join(member.folder, 'logs', `${namespace}_${name}_${made.metadata.uid}`, 'app')
    mkdirSync(folder, { recursive: true })
    return (texts: string | readonly string[], at = new Date()) => {
      const lines = [texts].flat().map((text) => `${at.toISOString()} stdout F ${text}\n`)
      appendFileSync(join(folder, '0.log'), lines.join(''))
    }
  }

  const secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { name: 'creds', namespace: 'streamed' },
  }
  const auth = {
    strategy: 'basic',
    user: 'me',
    password: { valueFrom: { secretKeyRef: { name: 'creds', key: 'password' } } },
  }

  const pids = () => fleet.members.map((member) => member.process?.pid)

  test('namespaces and names that would be equal when joined stay distinct', async () => {
    const says = [await pod('team', 'one'), await pod('team-a', 'two')]
    await cluster.apply(pipeline('team', 'a-x'), pipeline('team-a', 'x'))
    await programmed('team/a-x', 'team-a/x')
    says[0]?.('of team')
    says[1]?.('of team-a')
    await eventually(() => {
      expect(receiver.at('/team/a-x')).toEqual(['of team'])
      expect(receiver.at('/team-a/x')).toEqual(['of team-a'])
    })
    await cluster.kubectl(['delete', 'pipeline', '-n', 'team', 'a-x'])
    await eventually(() => expect(fleet.members[0]?.output.match(/"?pipelines"?[=:]1\b/)).not.toBeNull())
    says[1]?.('still')
    await eventually(() => expect(receiver.at('/team-a/x')).toEqual(['of team-a', 'still']))
  })

  test('a secret reaches agents, rotates without a restart, and is stored only in Secrets', async () => {
    const say = await pod('shop', 'web')
    const first = 'p"a\\s s-"one"'
    await cluster.apply(
      {
        apiVersion: 'v1',
        kind: 'Secret',
        metadata: { name: 'creds', namespace: 'shop' },
        stringData: { password: first },
      },
      pipeline('shop', 'secret', {
        sinks: [
          {
            name: 'out',
            type: 'http',
            config: {
              ...sink('/secret'),
              auth: {
                strategy: 'basic',
                user: 'me',
                password: { valueFrom: { secretKeyRef: { name: 'creds', key: 'password' } } },
              },
            },
          },
        ],
      }),
    )
    await programmed('shop/secret')
    const basic = (password: string) => `Basic ${Buffer.from(`me:${password}`).toString('base64')}`
    say('one')
    await eventually(() => expect([...(receiver.authorizations.get('/secret') ?? [])]).toEqual([basic(first)]))
    const before = pids()
    const second = 'rotated-value-4711'
    await cluster.apply({
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: 'creds', namespace: 'shop' },
      stringData: { password: second },
    })
    await eventually(() => {
      say('more')
      expect([...(receiver.authorizations.get('/secret') ?? [])]).toContain(basic(second))
    })
    expect(pids()).toEqual(before)
    expect(operator.log + fleet.members.map((member) => member.output).join('')).not.toContain(second)
    const everything = await cluster.kubectl([
      ...['get', 'pipelines,agents,events,configmaps,daemonsets,pods', '-A', '-o', 'json'],
    ])
    expect(everything).not.toContain(second)
    const encoded = Buffer.from(second).toString('base64')
    expect(everything).not.toContain(encoded)
  })

  test('a bundle that exceeds the size of a Secret gets a second one, and no pod is replaced', async () => {
    const before = pids()
    const pods = (await cluster.kubectl(['get', 'pods', '-n', 'penstock-system', '-o', 'name'])).split('\n').sort()
    const programs = Array.from({ length: 9 }, (_, index) => ({
      ...pipeline('shop', `large-${index}`, {
        transforms: [
          {
            name: 'big',
            type: 'remap',
            config: { source: `# ${randomBytes(128_000).toString('base64')}\n.large = true` },
          },
        ],
      }),
    }))
    for (const each of programs) await cluster.apply(each)
    await programmed(...programs.map((each) => `shop/${each.metadata.name}`))
    const manifest = JSON.parse(
      Buffer.from(
        (await api.get('/api/v1/namespaces/penstock-system/secrets/penstock-node-cfg-0')).data?.['manifest.json'] ?? '',
        'base64',
      ).toString(),
    ) as { candidate?: { shards: unknown[] }; stable: { shards: unknown[] } }
    expect((manifest.candidate ?? manifest.stable).shards.length).toBeGreaterThan(1)
    expect(pids()).toEqual(before)
    expect((await cluster.kubectl(['get', 'pods', '-n', 'penstock-system', '-o', 'name'])).split('\n').sort()).toEqual(
      pods,
    )
    await cluster.kubectl(['delete', 'pipelines', '-n', 'shop', ...programs.map((each) => each.metadata.name)])
  })

  test('killing the operator during writes does not affect agents, and its successor reaches the same state', async () => {
    const seed = 20_261_121
    console.log(`seed ${seed}`)
    const random = (step: number) => createHash('sha256').update(`${seed} ${step}`).digest().readUInt32BE(0) / 2 ** 32
    for (let step = 0; step < 8; step++) {
      const churn = Array.from({ length: 4 }, (_, index) =>
        pipeline('shop', `churn-${index}`, {
          transforms: [
            {
              name: 'step',
              type: 'remap',
              config: { source: `.step = ${step}\n# ${randomBytes(100_000).toString('base64')}` },
            },
          ],
        }),
      )
      await cluster.apply(...churn)
      await new Promise((done) => setTimeout(done, 500 + random(step) * 2500)) // a random moment for the kill
      await operator.kill()
      operator = start()
    }
    await programmed(...Array.from({ length: 4 }, (_, index) => `shop/churn-${index}`), 'team-a/x')
    for (const member of fleet.members) {
      expect(member.output).not.toContain('Could not load the bundle')
      expect(member.output).not.toContain('Could not activate')
      expect(member.restarts, member.output.slice(-2000)).toBe(0)
    }
    await cluster.kubectl(['delete', 'pipelines', '-n', 'shop', ...[0, 1, 2, 3].map((index) => `churn-${index}`)])
  })

  test('a change of one Pipeline updates only its status, and content that no agent needs is removed immediately', async () => {
    const versions = async () => {
      const pipelines = await api.list('/apis/penstock.dev/v1alpha1/pipelines')
      return pipelines.map(({ metadata }) => `${metadata.name} ${metadata.resourceVersion}`)
    }
    await cluster.apply(pipeline('shop', 'changed'))
    await programmed('shop/changed')
    await operator.idle()
    const before = await versions()
    for (const n of [1, 2, 3]) {
      await cluster.apply(
        pipeline('shop', 'changed', { transforms: [{ name: 'n', type: 'remap', config: { source: `.n = ${n}` } }] }),
      )
      const { metadata } = await api.get('/apis/penstock.dev/v1alpha1/namespaces/shop/pipelines/changed')
      await eventually(async () => {
        const { status } = await api.get('/apis/penstock.dev/v1alpha1/namespaces/shop/pipelines/changed')
        expect(status?.['programmedGeneration']).toBe((metadata as { generation?: number }).generation)
      }, 90_000)
    }
    await operator.idle()
    const isOther = (version: string) => !version.startsWith('changed ')
    expect((await versions()).filter(isOther)).toEqual(before.filter(isOther))
    await eventually(async () => {
      const { status } = await api.get('/apis/penstock.dev/v1alpha1/namespaces/penstock-system/agents/node')
      const history = (status?.['history'] ?? []) as readonly { revision: string }[]
      const secrets = await api.list('/api/v1/namespaces/penstock-system/secrets?labelSelector=penstock.dev/agent=node')
      const keys = secrets.flatMap(({ data }) => Object.keys(data ?? {}))
      const revisions = keys.flatMap((key) => /^r([0-9a-f]{12})-/.exec(key)?.[1] ?? [])
      expect(new Set(revisions)).toEqual(new Set(history.map(({ revision }) => revision)))
    })
  })

  test('after a restart without changes, the operator writes nothing', async () => {
    // A resource of the installation, like the Agent of the chart.
    const shared = (more: object) => ({
      ...{ apiVersion: 'penstock.dev/v1alpha1', kind: 'Sink' },
      metadata: { name: 'default', namespace: 'penstock-system', labels: { part: 'defaults' } },
      spec: { type: 'http', config: { uri: 'http://store.example', encoding: { codec: 'json' }, ...more } },
    })
    const installation = (more: object) => ({
      ...{ apiVersion: 'v1', kind: 'ConfigMap' },
      metadata: { name: 'penstock-defaults', namespace: 'penstock-system' },
      data: { 'defaults.json': JSON.stringify([shared(more)]) },
    })
    const path = '/apis/penstock.dev/v1alpha1/namespaces/penstock-system/sinks/default'
    await cluster.apply(installation({ method: 'put' }))
    await eventually(async () => {
      const { spec, status } = await api.get(path)
      expect(spec).toEqual(shared({ method: 'put' }).spec)
      expect(status?.['conditions']).toContainEqual(expect.objectContaining({ type: 'Accepted', status: 'True' }))
    }, 120_000)
    for (let restart = 0; restart < 2; restart++) {
      await operator.idle()
      expect(await operator.stop()).toBe(0)
      operator = await start().leading()
      // All agents have reported, and the figures have been written.
      await eventually(async () => expect(await operator.heard()).toBeGreaterThan(3 * fleet.members.length), 120_000)
      await operator.idle()
      expect(operator.changes()).toEqual([])
    }
    // Changes during the downtime are applied, including removed members.
    expect(await operator.stop()).toBe(0)
    await cluster.apply(installation({}))
    operator = await start().leading()
    await eventually(async () => expect((await api.get(path)).spec).toEqual(shared({}).spec), 120_000)
    await cluster.kubectl([
      '-n',
      'penstock-system',
      'delete',
      // A removed member of a ConfigMap is also removed if the operator notices it first.
      '--ignore-not-found',
      'configmap/penstock-defaults',
      'sink.penstock.dev/default',
    ])
  })

  test('8: a failing sink blocks only its own Pipeline, is reported, and nothing is lost', async () => {
    const say = await pod('team', 'busy', {}, 1)
    const retrying = {
      sinks: [
        {
          name: 'out',
          type: 'http',
          config: {
            ...sink('/team/slow'),
            batch: { timeout_secs: 0.2, max_events: 10 },
            request: { concurrency: 1, retry_initial_backoff_secs: 1, retry_max_duration_secs: 2 },
            buffer: { type: 'memory', max_events: 50, when_full: 'block' },
          },
        },
      ],
    }
    await cluster.apply(pipeline('team', 'slow', retrying), pipeline('team', 'quick'))
    await programmed('team/slow', 'team/quick')
    receiver.down.add('/team/slow')
    let written = 0
    // Another pod of the namespace has also been read.
    const lines = (path: string) => new Set(receiver.at(path).filter((text) => text.startsWith('line '))).size
    const write = () => {
      for (let line = 0; line < 50; line++) say(`line ${written++}`)
    }
    await eventually(async () => {
      write()
      expect(await condition('pipelines', 'team/slow', 'Flowing')).toMatchObject({
        status: 'False',
        reason: 'NoEventsDelivered',
      })
    }, 120_000)
    await eventually(() => expect(lines('/team/quick')).toBe(written))
    expect(await condition('pipelines', 'team/quick', 'Flowing')).not.toMatchObject({ reason: 'NoEventsDelivered' })
    expect(await condition('pipelines', 'team/slow', 'Ready')).toMatchObject({ status: 'True' })
    // It accepts some lines again, but not all.
    receiver.slow.set('/team/slow', 500)
    receiver.down.delete('/team/slow')
    await eventually(async () => {
      write()
      expect(await condition('pipelines', 'team/slow', 'Flowing')).toMatchObject({
        status: 'False',
        reason: 'BufferFillingUp',
      })
    }, 120_000)
    receiver.slow.clear()
    await eventually(() => expect(lines('/team/slow')).toBe(written), 120_000)
    await eventually(async () => {
      write()
      expect(await condition('pipelines', 'team/slow', 'Flowing')).toMatchObject({ status: 'True' })
    }, 120_000)
  })

  test('each `kubectl wait` in the guide ends when its condition is met', async () => {
    const guide = readFileSync(join(root, 'operator/guide/gitops.md'), 'utf8')
    const commands = [...guide.matchAll(/^kubectl (wait [^#\n]+)/gm)].map(([, words = '']) => words.trim().split(/\s+/))
    expect(commands).toHaveLength(4)
    const say = await pod('shop', 'checkout-1', { app: 'checkout' })
    await cluster.apply(
      {
        apiVersion: 'penstock.dev/v1alpha1',
        kind: 'Sink',
        metadata: { name: 'search', namespace: 'shop' },
        spec: { type: 'http', config: sink('/shop/search') },
      },
      pipeline('shop', 'checkout', { sinks: [{ name: 'out', ref: { kind: 'Sink', name: 'search' } }] }),
    )
    const writing = setInterval(() => say('a line'), 500)
    try {
      for (const words of commands) {
        // The machine may be many times slower than that of a reader.
        const patient = words.map((word) => (word.startsWith('--timeout=') ? '--timeout=9m' : word))
        const printed = await cluster.kubectl(patient, { timeoutMs: 560_000 })
        expect(printed.trim(), words.join(' ')).toMatch(/^\S+\/\S+ condition met$/m)
      }
    } finally {
      clearInterval(writing)
    }
    // It fails if the condition is never met.
    await expect(
      cluster.kubectl(['wait', '--for=condition=Stalled', 'pipeline/checkout', '-n', 'shop', '--timeout=1s']),
    ).rejects.toThrow('timed out')
    await cluster.kubectl(['delete', '-n', 'shop', 'pipeline/checkout', 'sink/search'])
  })

  test('lag is reported with node and seconds, also if it is caused by a limit of the Pipeline', async () => {
    const say = await pod('shop', 'late', { app: 'late' }, 2)
    const spec = {
      sources: [{ name: 'app', type: 'orchestrator_logs', selector: { pods: { matchLabels: { app: 'late' } } } }],
    }
    const limits = { perContainer: { linesPerSecond: 1, onLimit: 'Lag' } }
    await cluster.apply(pipeline('shop', 'behind', { ...spec, limits }))
    await programmed('shop/behind')
    // More lines than one read returns, written ten minutes ago. The rest waits because of the limit.
    const then = new Date(Date.now() - 600_000)
    const lines = Array.from({ length: 500 }, (_, index) => `line ${index} ${'x'.repeat(800)}`)
    say(lines, then)
    const status = async () =>
      (await api.get('/apis/penstock.dev/v1alpha1/namespaces/shop/pipelines/behind')).status as
        | { flow?: { lagSeconds?: number } }
        | undefined
    await eventually(async () => {
      const found = await condition('pipelines', 'shop/behind', 'Flowing')
      expect(found).toMatchObject({ status: 'False', reason: 'Lagging' })
      expect(found?.message).toMatch(/^Reading on node \S+ is 6\d\d s behind; limits of the Pipeline/)
      expect(found?.message).toContain(` ${fleet.members[2]?.node} `)
    }, 120_000)
    expect(await condition('pipelines', 'shop/behind', 'Ready')).toMatchObject({ status: 'True' })
    await eventually(async () => expect((await status())?.flow?.lagSeconds).toBeGreaterThanOrEqual(600))
    await cluster.apply(pipeline('shop', 'behind', spec))
    await eventually(() => expect(receiver.at('/shop/behind')).toEqual(lines), 120_000)
    await eventually(async () => {
      expect(await condition('pipelines', 'shop/behind', 'Flowing')).toMatchObject({ status: 'True' })
      expect((await status())?.flow?.lagSeconds).toBe(0)
    }, 120_000)
    await cluster.kubectl(['delete', 'pipeline', '-n', 'shop', 'behind'])
  })

  test('files of a deleted Pipeline on a node are removed at the request of the operator, and no others', async () => {
    const say = await pod('shop', 'leaver')
    const keys = ['shop/deleted', 'shop/suspended']
    await cluster.apply(...keys.map((key) => pipeline('shop', key.slice('shop/'.length))))
    await programmed(...keys)
    const positions = await Promise.all(
      keys.map(async (key) => {
        const path = `/apis/penstock.dev/v1alpha1/namespaces/shop/pipelines/${key.slice('shop/'.length)}`
        return join(fleet.members[0]?.folder ?? '', 'data/cursors', (await api.get(path)).metadata.uid ?? '')
      }),
    )
    const there = () => positions.map((folder) => existsSync(folder))
    say('read')
    await eventually(() => {
      for (const key of keys) expect(receiver.at(`/${key}`)).toContain('read')
      expect(there()).toEqual([true, true])
    })
    await cluster.apply(pipeline('shop', 'suspended', { suspend: true }))
    await cluster.kubectl(['-n', 'shop', 'delete', 'pl', 'deleted'])
    await eventually(() => expect(there(), fleet.members[0]?.output.slice(-1500)).toEqual([false, true]), 180_000)
    expect(fleet.members[0]?.output).toContain('Removed the positions of a removed pipeline.')
    await cluster.kubectl(['-n', 'shop', 'delete', 'pl', 'suspended'])
  })

  describe('with streamed bundles', () => {
    /** The pipeline ids in the content that an agent keeps for a restart. */
    const given = (index: number): string[] => {
      const file = join(fleet.members[index]?.folder ?? '', 'data/bundle/last.json')
      return Object.keys((JSON.parse(readFileSync(file, 'utf8')) as { bundle: Bundle }).bundle.pipelines)
    }
    const nodes = async () =>
      (await api.get('/apis/penstock.dev/v1alpha1/namespaces/penstock-system/agents/node')).status?.['nodes']
    const streamed = () => eventually(async () => expect(await nodes()).toMatchObject({ current: 3, streamed: 3 }))
    let lines = 0
    const writers = new Map<number, (text: string) => void>()
    /** All pods write a new line, and each line arrives exactly once. */
    const arrive = async (path: string) => {
      const before = receiver.at(path).length
      const expected = [...writers.values()].map((say) => {
        const line = `streamed ${lines++}`
        say(line)
        return line
      })
      await eventually(() => {
        const agents = fleet.members.map((member) => member.output.slice(-1500)).join('\n')
        expect(receiver.at(path).slice(before), agents).toEqual(expect.arrayContaining(expected))
      }, 120_000)
      const all = receiver.at(path).filter((line) => line.startsWith('streamed '))
      expect(new Set(all).size, `${path}: ${all}`).toBe(all.length)
    }

    test('unless the Agent is configured otherwise, the operator serves the bundle, only for the pods of the node', async () => {
      const before = pids()
      // Only in its own namespace, with pods only on the first node.
      await cluster.kubectl(['create', 'namespace', 'streamed'])
      writers.set(0, await pod('streamed', 'on-0', { app: 'web' }, 0))
      await cluster.apply(streaming())
      await streamed()
      expect(pids()).toEqual(before)
      // From here on, the mounted files do not change.
      fleet.frozen = true
      await cluster.apply(
        { ...secret, stringData: { password: 'streamed-one' } },
        pipeline('streamed', 'web', {
          sources: [{ name: 'app', type: 'orchestrator_logs', selector: { pods: { matchLabels: { app: 'web' } } } }],
          sinks: [{ name: 'out', type: 'http', config: { ...sink('/streamed/web'), auth } }],
        }),
      )
      const applied = Date.now()
      await programmed('streamed/web')
      console.log(`apply to Programmed: ${Date.now() - applied} ms`)
      await arrive('/streamed/web')
      expect(given(0)).toContain('streamed/web')
      for (const other of [1, 2]) expect(given(other)).not.toContain('streamed/web')
      writers.set(2, await pod('streamed', 'on-2', { app: 'web' }, 2))
      await arrive('/streamed/web')
      expect(given(2)).toContain('streamed/web')
      expect(given(1)).not.toContain('streamed/web')
    })

    test('a rotated secret reaches the agents that need it, and appears in no log', async () => {
      await cluster.apply({ ...secret, stringData: { password: 'streamed-two' } })
      await eventually(async () => {
        await arrive('/streamed/web')
        const basic = `Basic ${Buffer.from('me:streamed-two').toString('base64')}`
        expect([...(receiver.authorizations.get('/streamed/web') ?? [])]).toContain(basic)
      })
      const logs = operator.log + fleet.members.map((member) => member.output).join('')
      for (const text of ['streamed-two', Buffer.from('streamed-two').toString('base64')])
        expect(logs).not.toContain(text)
    })

    test('only pods of the Agent can get its bundle', async () => {
      const ask = async (token: string) => {
        const answer = await fetch(`${heartbeatUrl(port)}/v1/bundle`, {
          method: 'POST',
          headers: { authorization: `Bearer ${token}` },
          body: JSON.stringify({ schema: 1, waitMs: 0, busy: [], node: fleet.members[0]?.node }),
        })
        return { status: answer.status, file: Buffer.from(await answer.arrayBuffer()) }
      }
      expect((await ask('nobody')).status).toBe(401)
      const impostor = async (name: string, labels: Record<string, string>) => {
        const made = await api.request<ObjectLike>('POST', '/api/v1/namespaces/penstock-system/pods', {
          apiVersion: 'v1',
          kind: 'Pod',
          metadata: { name, labels },
          spec: {
            nodeName: fleet.members[0]?.node,
            serviceAccountName: 'default',
            automountServiceAccountToken: false,
            containers: [{ name: 'app', image: 'app' }],
          },
        })
        const answer = await ask(await podToken(api, 'default', name, made.metadata.uid))
        await cluster.kubectl(['delete', 'pod', '-n', 'penstock-system', name, '--force', '--grace-period', '0'])
        return answer.status
      }
      expect(await impostor('without-label', {})).toBe(401)
      expect(await impostor('with-label', { 'penstock.dev/agent': 'node', other: 'true' })).toBe(403)
      // The agent of the second node asks for the first node, but gets the content for its own.
      const own = await ask(readFileSync(join(fleet.members[1]?.folder ?? '', 'token'), 'utf8'))
      expect(own.status).toBe(200)
      expect(gunzipSync(own.file).toString()).not.toContain('streamed/web')
    })

    test('while the operator is down, agents continue; a starting agent runs the mounted files', async () => {
      fleet.frozen = false
      await operator.stop()
      await arrive('/streamed/web')
      const [first] = fleet.members
      if (first === undefined) throw new Error('There are no agents.')
      const { length } = first.output
      const { rev } = JSON.parse(readFileSync(join(first.folder, 'data/bundle/last.json'), 'utf8')) as { rev: string }
      await eventually(() => expect(readFileSync(join(first.folder, 'bundle/manifest.json'), 'utf8')).toContain(rev))
      first.process?.kill('SIGTERM')
      await eventually(() => expect(first.output.slice(length)).toContain('delivery=Mounted'))
      await arrive('/streamed/web')
      operator = start()
      // The Agent keeps its previous status until the agents have reported.
      await eventually(
        async () => expect(await operator.get('/metrics')).toMatch(/^penstock_streams_waiting 3$/m),
        120_000,
      )
      await streamed()
      await arrive('/streamed/web')
      expect(given(0)).toContain('streamed/web')
    })

    // No tenant program may refer to a file of the agent, even through a secret. Only agents can detect this.
    const wrongFile = {
      ...secret,
      metadata: { ...secret.metadata, name: 'wrong' },
      stringData: { ca: 'file:/etc/passwd' },
    }
    const withWrongFile = (name: string) =>
      pipeline('streamed', name, {
        sinks: [
          {
            name: 'out',
            type: 'http',
            config: {
              ...sink(`/${name}`),
              tls: { ca_file: { valueFrom: { secretKeyRef: { name: 'wrong', key: 'ca' } } } },
            },
          },
        ],
      })
    const rolledBack = (name: string) =>
      eventually(async () => {
        const { status } = await api.get(`/apis/penstock.dev/v1alpha1/namespaces/streamed/pipelines/${name}`)
        const conditions = status?.['conditions'] as readonly ConditionLike[]
        const programmed = conditions.find(({ type }) => type === 'Programmed')
        expect(programmed?.reason, JSON.stringify(conditions)).toBe('RolledBack')
        return programmed?.message
      }, 90_000)

    test('a candidate that agents cannot run is rolled back on the canary nodes', async () => {
      writers.set(1, await pod('streamed', 'on-1', { app: 'web' }, 1))
      await arrive('/streamed/web')
      fleet.frozen = true
      const canary = { percent: 1, minNodes: 1, bake: '2s' }
      await cluster.apply(streaming({ rollout: { canary } }), wrongFile, pipeline('streamed', 'wrong'))
      await programmed('streamed/wrong')
      await eventually(async () => {
        const { status } = await api.get('/apis/penstock.dev/v1alpha1/namespaces/penstock-system/agents/node')
        expect(status?.['revision']).toBe(status?.['stableRevision'])
      })
      const { revision } = (await api.get('/apis/penstock.dev/v1alpha1/namespaces/penstock-system/agents/node'))
        .status as { revision: string }
      const lengths = new Map(fleet.members.map((member) => [member, member.output.length]))
      await cluster.apply(withWrongFile('wrong'))
      await rolledBack('wrong')
      await eventually(async () => expect(await nodes()).toMatchObject({ current: 3, failed: 0 }))
      const tried = fleet.members.filter((member) =>
        member.output.slice(lengths.get(member)).includes('pipeline=streamed/wrong'),
      )
      expect(tried.length).toBeGreaterThanOrEqual(1)
      expect(tried.length).toBeLessThan(3)
      const { status } = await api.get('/apis/penstock.dev/v1alpha1/namespaces/penstock-system/agents/node')
      expect(status?.['revision']).toBe(revision)
      await arrive('/streamed/web')
    })

    test('a new Pipeline that agents cannot run is removed with the reason, and others continue', async () => {
      const before = pids()
      await cluster.apply(withWrongFile('newcomer'))
      expect(await rolledBack('newcomer')).toMatch(/agents? failed: the agent on \S+ could not activate it: .*ca_file/s)
      await eventually(async () => expect(await nodes()).toMatchObject({ current: 3, failed: 0 }))
      for (const index of fleet.members.keys()) expect(given(index)).not.toContain('streamed/newcomer')
      await arrive('/streamed/web')
      expect(pids()).toEqual(before)
      await cluster.kubectl(['delete', 'pipeline', '-n', 'streamed', 'newcomer', 'wrong', 'web'])
      fleet.frozen = false
    })
  })

  test('hundreds of agents report, each with its own identity', async () => {
    const { name } = { name: 'crowd' }
    await cluster.apply({
      ...agent({ node: { nodeSelector: { nobody: 'has-this' } }, rollout: { canary: { percent: 100, bake: '1s' } } }),
      metadata: { name, namespace: 'penstock-system' },
    })
    await eventually(async () =>
      expect(await api.find(`/api/v1/namespaces/penstock-system/serviceaccounts/penstock-${name}`)).toBeDefined(),
    )
    await using crowd = await Crowd.start(api, {
      agent: name,
      nodes: 300,
      operatorUrl: heartbeatUrl(port),
      everyMs: 30_000,
    })
    await eventually(async () => {
      const status = (await api.get(`/apis/penstock.dev/v1alpha1/namespaces/penstock-system/agents/${name}`)).status
      expect(status?.['nodes']).toMatchObject({ desired: 300, current: 300, failed: 0 })
    }, 150_000)
    expect([...crowd.answers.keys()]).toEqual([200])
  })
})
