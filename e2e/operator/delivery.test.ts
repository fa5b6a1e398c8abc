// From `kubectl apply` to what arrives: a real control plane, the operator as a process, and real agents for the pods of the
// DaemonSet, whose volumes are shown as a kubelet shows them.

import { createHash, randomBytes } from 'node:crypto'
import { appendFileSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Cluster, missingForCluster, startCluster } from '../cluster/cluster.ts'
import { freePort } from '../free-port.ts'
import { Crowd } from './crowd.ts'
import { Api, Fleet } from './fleet.ts'
import { type ConditionLike, eventually, heartbeatUrl, OperatorProcess } from './process.ts'
import { Receiver } from './receiver.ts'

vi.setConfig({ testTimeout: 240_000, hookTimeout: 240_000 })
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
      rollout: { canary: { percent: 100, bake: '1s' } },
      ...extra,
    },
  })

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

  /** A pod on a node, with a log that can be written to. */
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

  const pids = () => fleet.members.map((member) => member.process?.pid)

  test('two namespaces and names that would be equal when joined stay apart', async () => {
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

  test('a secret reaches agents, rotates without a restart, and stands nowhere but in Secrets', async () => {
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

  test('a bundle of more than a Secret holds gets a second one, and no pod is replaced', async () => {
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

  test('an operator that is killed while it writes leaves agents whole, and its successor ends where it would have', async () => {
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
      await new Promise((done) => setTimeout(done, 500 + random(step) * 2500)) // killed at a random moment: that is the test
      await operator.kill()
      operator = start()
    }
    await programmed(...Array.from({ length: 4 }, (_, index) => `shop/churn-${index}`), 'team-a/x')
    for (const member of fleet.members) {
      expect(member.output).not.toContain('could not be loaded')
      expect(member.output).not.toContain('cannot be put in force')
      expect(member.restarts, member.output.slice(-2000)).toBe(0)
    }
    await cluster.kubectl(['delete', 'pipelines', '-n', 'shop', ...[0, 1, 2, 3].map((index) => `churn-${index}`)])
  })

  test('a change of one Pipeline is written to it alone, and what no agent needs goes at once', async () => {
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

  test('nothing at all is written after a restart when nothing has changed', async () => {
    for (let restart = 0; restart < 2; restart++) {
      await operator.idle()
      expect(await operator.stop()).toBe(0)
      operator = await start().leading()
      // Every agent has said what it runs, and that has been summed up.
      await eventually(async () => expect(await operator.heard()).toBeGreaterThan(3 * fleet.members.length), 120_000)
      await operator.idle()
      expect(operator.changes()).toEqual([])
    }
  })

  test('8: a sink that is down holds up its own Pipeline alone, is seen, and nothing is lost', async () => {
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
    // Another pod of the namespace has been read, too.
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
    // It takes some again, and fewer than there are.
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

  test('reading that is behind is told with its node and seconds, also when a limit of the Pipeline is why', async () => {
    const say = await pod('shop', 'late', { app: 'late' }, 2)
    const spec = {
      sources: [{ name: 'app', type: 'orchestrator_logs', selector: { pods: { matchLabels: { app: 'late' } } } }],
    }
    const limits = { perContainer: { linesPerSecond: 1, onLimit: 'Lag' } }
    await cluster.apply(pipeline('shop', 'behind', { ...spec, limits }))
    await programmed('shop/behind')
    // More than one read takes, written ten minutes ago: the rest waits as long as the limit says.
    const then = new Date(Date.now() - 600_000)
    const lines = Array.from({ length: 500 }, (_, index) => `line ${index} ${'x'.repeat(200)}`)
    say(lines, then)
    const status = async () =>
      (await api.get('/apis/penstock.dev/v1alpha1/namespaces/shop/pipelines/behind')).status as
        | { flow?: { lagSeconds?: number } }
        | undefined
    await eventually(async () => {
      const found = await condition('pipelines', 'shop/behind', 'Flowing')
      expect(found).toMatchObject({ status: 'False', reason: 'Lagging' })
      expect(found?.message).toMatch(/^Reading on node \S+ is 6\d\d s behind what is written; limits of the Pipeline/)
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

  test('a thousand agents report, each as who it is', async () => {
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
      nodes: 1000,
      operatorUrl: heartbeatUrl(port),
      everyMs: 30_000,
    })
    await eventually(async () => {
      const status = (await api.get(`/apis/penstock.dev/v1alpha1/namespaces/penstock-system/agents/${name}`)).status
      expect(status?.['nodes']).toMatchObject({ desired: 1000, current: 1000, failed: 0 })
    }, 150_000)
    expect([...crowd.answers.keys()]).toEqual([200])
  })
})
