// Failing revisions on real agents: they run on a few canaries, are rolled back, and are retried only after a change.

import { setTimeout as sleep } from 'node:timers/promises'
import { gunzipSync } from 'node:zlib'
import { type BundleManifest, takesCandidate } from '@penstock/agent/bundle'
import { freePort } from '@penstock/agent/testing/free-port'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type Cluster, missingForCluster, startCluster } from '../cluster/cluster.ts'
import { Api, Fleet } from './fleet.ts'
import { type ConditionLike, eventually, heartbeatUrl, OperatorProcess } from './process.ts'

vi.setConfig({ testTimeout: 600_000, hookTimeout: 600_000 })
const missing = missingForCluster(0)
const bakeMs = 5000

describe.skipIf(missing !== undefined)(`rollout${missing === undefined ? '' : ` (${missing})`}`, () => {
  let cluster: Cluster
  let api: Api
  let operator: OperatorProcess
  let fleet: Fleet

  beforeAll(async () => {
    cluster = await startCluster()
    api = await Api.start(cluster)
    const port = await freePort()
    await cluster.kubectl(['apply', '--server-side', '-k', 'crds'])
    await cluster.kubectl(['create', 'namespace', 'penstock-system'])
    await cluster.apply(
      {
        apiVersion: 'penstock.dev/v1alpha1',
        kind: 'Agent',
        metadata: { name: 'node', namespace: 'penstock-system' },
        spec: {
          mode: 'Node',
          pipelines: { namespaceSelector: {}, clusterPipelines: { selector: {} } },
          rollout: { canary: { percent: 5, minNodes: 1, bake: `${bakeMs}ms` }, step: { percent: 50, bake: '1s' } },
        },
      },
      pipeline('steady', '.steady = 1'),
      pipeline('tried', '.version = 1'),
    )
    operator = OperatorProcess.start({
      kubeconfig: cluster.kubeconfig,
      heartbeats: port,
      // Long enough for agents to report the result of a step.
      args: ['--leader-election', 'false', '--heartbeat-period', '2s'],
    })
    fleet = await Fleet.start(api, {
      agent: 'node',
      nodes: 4,
      operatorUrl: heartbeatUrl(port),
      kubeconfig: cluster.kubeconfig,
    })
    await programmed('steady', 'tried')
  })
  afterAll(async () => {
    await fleet?.[Symbol.asyncDispose]()
    await operator?.[Symbol.asyncDispose]()
    await api?.[Symbol.asyncDispose]()
    await cluster?.[Symbol.asyncDispose]()
  })

  const pipeline = (name: string, source: string, annotations: Record<string, string> = {}, interval = 1) => ({
    apiVersion: 'penstock.dev/v1alpha1',
    kind: 'ClusterPipeline',
    metadata: { name, annotations },
    spec: {
      sources: [{ name: 'in', type: 'demo_logs', config: { format: 'json', interval } }],
      transforms: [{ name: 'edit', type: 'remap', config: { source } }],
      sinks: [{ name: 'out', type: 'blackhole' }],
      mode: 'Node',
    },
  })
  const conditionOf = async (name: string, type: string) => {
    const object = await api.get(`/apis/penstock.dev/v1alpha1/clusterpipelines/${name}`)
    return (object.status?.['conditions'] as ConditionLike[] | undefined)?.find((each) => each.type === type)
  }
  const programmed = (...names: readonly string[]) =>
    eventually(async () => {
      for (const name of names) {
        const found = await conditionOf(name, 'Programmed')
        expect(found?.reason, `${name}: ${found?.message}`).toBe('Programmed')
      }
    }, 120_000)
  const manifest = async (): Promise<BundleManifest> => {
    const secret = await api.get('/api/v1/namespaces/penstock-system/secrets/penstock-node-cfg-0')
    return JSON.parse(Buffer.from(secret.data?.['manifest.json'] ?? '', 'base64').toString()) as BundleManifest
  }
  const rolledOut = () =>
    eventually(async () => {
      const { candidate, stable } = await manifest()
      expect(candidate).toBeUndefined()
      return stable?.rev as string
    }, 120_000)

  test('a healthy revision rolls out from a canary to all agents, without restarts', async () => {
    const before = await rolledOut()
    const pids = fleet.members.map((member) => member.process?.pid)
    await cluster.apply(pipeline('tried', '.version = 2'))
    const candidate = await eventually(async () => {
      const found = (await manifest()).candidate
      expect(found).toBeDefined()
      return found as NonNullable<typeof found>
    })
    const chosen = fleet.members.filter(({ node }) => takesCandidate(candidate, node))
    expect(chosen.length).toBeGreaterThanOrEqual(1)
    expect(chosen.length).toBeLessThan(fleet.members.length)
    await programmed('tried')
    expect(await rolledOut()).not.toBe(before)
    expect(fleet.members.map((member) => member.process?.pid)).toEqual(pids)
    // The status of an Agent is updated at most every few seconds.
    await eventually(async () => {
      const agent = await api.get('/apis/penstock.dev/v1alpha1/namespaces/penstock-system/agents/node')
      expect(agent.status?.['nodes']).toMatchObject({ desired: 4, current: 4, failed: 0 })
    })
  })

  test('during the canary phase of one change, a new Pipeline can roll out and others can change', async () => {
    const baking = (bake: string) =>
      cluster.kubectl([
        ...['patch', 'agent.penstock.dev', 'node', '-n', 'penstock-system', '--type=merge'],
        ...['-p', JSON.stringify({ spec: { rollout: { canary: { bake } } } })],
      ])
    await rolledOut()
    await baking('2h')
    try {
      await cluster.apply(pipeline('tried', '.version = 21'))
      await eventually(async () => expect((await manifest()).candidate).toBeDefined())
      await cluster.apply(pipeline('fresh', '.fresh = 1'))
      await programmed('fresh')
      // All agents run the new Pipeline; the other change is still in its canary phase.
      expect((await manifest()).candidate).toBeDefined()
      expect(await conditionOf('fresh', 'Programmed')).toMatchObject({ message: '4 of 4 agents run it.' })
      expect(await conditionOf('tried', 'Programmed')).toMatchObject({ status: 'False', reason: 'RollingOut' })
      expect(await conditionOf('tried', 'Ready')).toMatchObject({ status: 'False', observedGeneration: 3 })
      expect(await conditionOf('steady', 'Ready')).toMatchObject({ status: 'True' })
      // A change of a third Pipeline is tried in parallel, without waiting.
      await cluster.apply(pipeline('steady', '.steady = 21'))
      await eventually(async () => {
        const found = await conditionOf('steady', 'Programmed')
        expect(found?.message).toMatch(/^[1-3] of 4 agents runs? it; [1-3] runs? an earlier version\./)
      }, 120_000)
      await cluster.kubectl(['delete', 'clusterpipeline', 'fresh'])
      await baking('1s')
      await programmed('tried', 'steady')
    } finally {
      await baking(`${bakeMs}ms`)
    }
    await rolledOut()
  })

  test('a suspended Pipeline is reported as not running only when no agent runs it', async () => {
    const spec = (suspend: boolean) => {
      const object = pipeline('paused', '.paused = 1')
      return { ...object, spec: { ...object.spec, suspend } }
    }
    await cluster.apply(spec(false))
    await programmed('paused')
    await cluster.apply(spec(true))
    await eventually(async () => {
      expect(await conditionOf('paused', 'Programmed')).toMatchObject({
        ...{ status: 'False', reason: 'Suspended', observedGeneration: 2 },
        message: 'spec.suspend is true: no agent runs it.',
      })
    }, 120_000)
    expect(await conditionOf('paused', 'Ready')).toMatchObject({ status: 'True', reason: 'Suspended' })
    await cluster.apply(spec(false))
    await programmed('paused')
    expect(await conditionOf('paused', 'Programmed')).toMatchObject({ observedGeneration: 3 })
    await cluster.kubectl(['delete', 'clusterpipeline', 'paused'])
  })

  test('events that a new version drops on purpose are not a failure; events that it loses are', async () => {
    const busy = (source: string) => pipeline('busy', source, {}, 0.005)
    await cluster.apply(busy('.version = 1'))
    await programmed('busy')
    // For a comparison, an agent must have reported figures of both versions.
    const flowing = { status: 'True', reason: 'Flowing' }
    await eventually(async () => expect(await conditionOf('busy', 'Flowing')).toMatchObject(flowing), 60_000)
    const half = 'mod(length(encode_json(.)), 2) == 0'
    await cluster.apply(busy(`.version = 2\nif ${half} { abort }`))
    await eventually(async () => {
      const found = await conditionOf('busy', 'Programmed')
      expect(found?.reason, found?.message).not.toBe('RolledBack')
      expect(found).toMatchObject({ status: 'True', reason: 'Programmed', observedGeneration: 2 })
    }, 120_000)
    await rolledOut()
    expect(await conditionOf('busy', 'Flowing')).toMatchObject(flowing)
    const { status } = await api.get('/apis/penstock.dev/v1alpha1/clusterpipelines/busy')
    expect(status?.['summary']).toMatchObject({ dropped: '0' })

    await cluster.apply(busy(`.version = 3\nif ${half} { .number = to_int!(.message) }`))
    await eventually(async () => {
      expect(await conditionOf('busy', 'Programmed')).toMatchObject({ status: 'False', reason: 'RolledBack' })
    }, 60_000)
    const before = await rolledOut()
    await cluster.kubectl(['delete', 'clusterpipeline', 'busy'])
    await eventually(async () => expect(await rolledOut()).not.toBe(before), 60_000)
  })

  test('a candidate that crashes the agents of its canaries is rolled back, and others never run it', async () => {
    const stable = await rolledOut()
    await cluster.apply(pipeline('tried', '.version = 3'))
    const candidate = await eventually(async () => {
      const found = (await manifest()).candidate
      expect(found).toBeDefined()
      return found as NonNullable<typeof found>
    })
    const started = Date.now()
    const chosen = fleet.members.filter(({ node }) => takesCandidate(candidate, node))
    const others = fleet.members.filter(({ node }) => !takesCandidate(candidate, node))
    const pids = others.map((member) => member.process?.pid)
    // Kills agents that run the candidate repeatedly, as a lack of memory or a bug would.
    const killing = setInterval(() => {
      for (const member of chosen) {
        if (member.output.includes(`revision=${candidate.rev}`)) {
          member.output = ''
          member.process?.kill('SIGKILL')
        }
      }
    }, 100)
    try {
      await eventually(async () => {
        expect(await conditionOf('tried', 'Programmed')).toMatchObject({ status: 'False', reason: 'RolledBack' })
      }, bakeMs + 60_000)
    } finally {
      clearInterval(killing)
    }
    expect(Date.now() - started).toBeLessThan(bakeMs + 60_000)
    expect(await conditionOf('tried', 'Stalled')).toMatchObject({ status: 'True' })
    expect(await rolledOut()).toBe(stable)
    expect(chosen.every((member) => member.restarts > 0)).toBe(true)
    expect(others.map((member) => member.process?.pid)).toEqual(pids)
    for (const member of others) expect(member.output).not.toContain(candidate.rev)
    await programmed('steady')
    const events = await cluster.kubectl(['get', 'events.events.k8s.io', '-A', '-o', 'jsonpath={.items[*].reason}'])
    expect(events).toContain('RolledBack')
  })

  test('the same content is retried only when its annotation changes', async () => {
    const { stable } = await manifest()
    // Another Pipeline rolls out meanwhile, without the one that was rolled back.
    await cluster.apply(pipeline('steady', '.steady = 2'))
    await eventually(async () => expect((await manifest()).stable?.rev).not.toBe(stable?.rev), 120_000)
    expect(await conditionOf('tried', 'Programmed')).toMatchObject({ reason: 'RolledBack' })
    await cluster.apply(pipeline('tried', '.version = 3', { 'penstock.dev/retry': 'once' }))
    await programmed('tried', 'steady')
    expect(await conditionOf('tried', 'Stalled')).toBeUndefined()
  })

  test('a lost agent does not block the others', async () => {
    const before = await rolledOut()
    const [lost] = fleet.members
    if (lost === undefined) throw new Error('There are no agents.')
    lost.process?.kill('SIGSTOP')
    try {
      await cluster.apply(pipeline('steady', '.steady = 3'))
      const rev = await eventually(async () => {
        const { candidate, stable } = await manifest()
        expect(candidate).toBeUndefined()
        expect(stable?.rev).not.toBe(before)
        for (const member of fleet.members.slice(1)) expect(member.output).toContain(`revision=${stable?.rev}`)
        return stable?.rev
      }, 200_000)
      expect(lost.output).not.toContain(`revision=${rev}`)
    } finally {
      lost.process?.kill('SIGCONT')
    }
    await programmed('steady')
  })

  test('a crashing change does not roll back other changes tried with it, and does not block changes elsewhere', async () => {
    const rollingBack = (autoRollback: boolean) =>
      cluster.kubectl([
        ...['patch', 'agent.penstock.dev', 'node', '-n', 'penstock-system', '--type=merge'],
        ...['-p', JSON.stringify({ spec: { rollout: { autoRollback } } })],
      ])
    const runs = (source: string) => pipeline('tried', source)
    const isInForce = (name: string, generation: number) =>
      eventually(async () => {
        const found = await conditionOf(name, 'Programmed')
        expect(found, found?.message).toMatchObject({ status: 'True', observedGeneration: generation })
      }, 240_000)
    const generationOf = async (name: string) =>
      (await api.get(`/apis/penstock.dev/v1alpha1/clusterpipelines/${name}`)).metadata.generation ?? 0
    await rolledOut()
    // Kill agents that run a revision with this text, as a lack of memory would.
    const ending = new AbortController()
    const killing = killWith('.version = 666', ending.signal)
    try {
      await cluster.apply(runs('.version = 666'), pipeline('steady', '.steady = 4'))
      await eventually(async () => {
        expect(await conditionOf('tried', 'Programmed')).toMatchObject({ status: 'False', reason: 'RolledBack' })
      }, 240_000)
      await isInForce('steady', await generationOf('steady'))
      await rolledOut()

      await rollingBack(false)
      await cluster.apply(runs('.version = 666\n.again = true'))
      await eventually(async () => {
        expect((await manifest()).candidate).toBeDefined()
        expect(await conditionOf('tried', 'Programmed')).toMatchObject({ reason: 'RollingOut' })
      }, 120_000)
      await cluster.apply(pipeline('steady', '.steady = 5'))
      await isInForce('steady', await generationOf('steady'))
      const stuck = await conditionOf('tried', 'Programmed')
      expect(stuck).toMatchObject({ status: 'False' })
      expect(stuck?.reason).not.toBe('RolledBack')
      const { kubectl } = cluster
      const events = await kubectl(['get', 'events.events.k8s.io', '-A', '-o', 'jsonpath={.items[*].reason}'])
      expect(events).toContain('SetAside')
    } finally {
      ending.abort()
      await killing
      await rollingBack(true)
    }
    await cluster.apply(runs('.version = 3'))
    await programmed('tried', 'steady')
    await rolledOut()
  })

  /** Kills agents that report a revision containing a text, until the signal. */
  async function killWith(text: string, signal: AbortSignal): Promise<void> {
    const known = new Map<string, boolean>()
    const look = async () => {
      const secret = await api.get('/api/v1/namespaces/penstock-system/secrets/penstock-node-cfg-0')
      for (const [key, data] of Object.entries(secret.data ?? {})) {
        const [, rev] = /^r([0-9a-f]{12})-0/.exec(key) ?? []
        if (rev === undefined || known.has(rev)) continue
        const content = gunzipSync(Buffer.from(data, 'base64')).toString()
        known.set(rev, content.includes(JSON.stringify(text).slice(1, -1)))
      }
    }
    while (!signal.aborted) {
      await look()
      for (const member of fleet.members) {
        const [last] = [...member.output.matchAll(/revision=([0-9a-f]{12})/g)].reverse()
        if (known.get(last?.[1] ?? '') !== true) continue
        member.output = ''
        member.process?.kill('SIGKILL')
      }
      await sleep(100)
    }
  }
})
