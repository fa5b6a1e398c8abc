// Two releases side by side, one minor version apart. On three nodes, the CRDs, then the operator and then the agents are upgraded, and
// downgraded in the same order, while pods write numbered lines. Before the upgrade and before the downgrade, a destination refuses lines
// until the disk buffers of all nodes are full. In every mixed state, Pipelines can be changed and created, and the commands of both releases
// work.
//
// `npm run skew` runs this test in five minutes. `npm test` runs a short version, which upgrades everything at once and downgrades it again, in
// e2e/install.test.ts.

import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { version } from '@penstock/agent/program'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Cluster, missingForCluster } from '../cluster/cluster.ts'
import { inGroups, until } from '../command.ts'
import { doublesIn, missingIn } from '../counted-lines.ts'
import { chart, missingForHelm } from '../helm.ts'
import { imageName, imageRepository } from '../image.ts'
import { destination, values as quickValues, startInstallable, system, userOf } from '../installed.ts'
import { nextField, nextRelease, nextVersion } from '../next-release.ts'
import { type Program, penstock, programOf } from '../program.ts'
import { Api } from './fleet.ts'
import { apiVersion, type PipelineLike, saysOf } from './process.ts'
import { Receiver } from './receiver.ts'
import { countLines, numberedLines, Times, writerEnv, writtenLines } from './walked.ts'

const missing = missingForCluster(3) ?? missingForHelm()
const nodes = ['node-1', 'node-2', 'node-3']
/** The smallest size of a disk buffer. */
const bufferBytes = 268_435_488
/** More lines than fit into the buffer, so that the last ones stay in the log file. */
const filling = { lines: 36_000, padding: 8_000 }
/** Whether the buffer has no room for another line. */
const isFull = (bytes: number) => bytes > 0.9 * bufferBytes

interface Release {
  readonly version: string
  /** The tag of its images. */
  readonly tag: string
  readonly charts: { readonly penstock: string; readonly crds: string }
  readonly command: Program
}

/** The agents' image is set separately, so that an upgrade of the operator does not restart them. */
const values = ({ tag }: Release, agents: Release) => {
  const { heartbeatPeriod, resources } = quickValues
  const image = { tag: agents.tag }
  return {
    heartbeatPeriod,
    resources,
    crds: { install: false },
    image: { repository: imageRepository('operator'), tag },
    agentImage: { repository: imageRepository('agent'), tag },
    agents: quickValues.agents.map(({ name, spec }) => ({ name, spec: { ...spec, image } })),
  }
}

describe.skipIf(missing !== undefined)(`versions side by side${missing === undefined ? '' : ` (${missing})`}`, () => {
  const resources = new AsyncDisposableStack()
  const times = new Times()
  let cluster: Cluster
  let api: Api
  let receiver: Receiver
  let folder: string
  let current: Release
  let next: Release

  const { kubectl, helmHere, withScene, waitFor, isReady, agentPods, release } = userOf(() => cluster)

  beforeAll(async () => {
    folder = await mkdtemp(join(process.env['PENSTOCK_TEST_RUN'] ?? tmpdir(), 'skew-'))
    resources.defer(() => rm(folder, { recursive: true, force: true }))
    await times.measure('images, cluster of three nodes', async () => {
      // If the kubelet rotated the log, it would remove lines that the agent has not read yet.
      ;({ cluster } = await startInstallable(resources, { nodes: 3, logMaxSize: '2Gi' }))
      const charts = { penstock: chart(), crds: chart('penstock-crds') }
      current = { version, tag: imageName('agent').split(':')[1] ?? '', charts, command: programOf('operator') }
      const { images, ...made } = await nextRelease(folder)
      next = { ...made, version: nextVersion, tag: nextVersion }
      for (const archive of images) await cluster.load(archive)
    })
    receiver = resources.use(await Receiver.start(destination, 100))
    api = resources.use(await Api.start(cluster))
  }, 1_800_000)
  afterAll(async () => {
    console.log(`Versions side by side:\n${times.table()}`)
    await resources.disposeAsync()
  })

  // --- Resources ---

  const pipeline = (name: string, apps: readonly string[], mark?: string) => ({
    apiVersion,
    kind: 'Pipeline',
    metadata: { name, namespace: 'shop' },
    spec: {
      sources: [
        {
          name: 'app',
          type: 'orchestrator_logs',
          selector: { pods: { matchExpressions: [{ key: 'app', operator: 'In', values: apps }] } },
        },
      ],
      transforms:
        mark === undefined
          ? []
          : [{ name: 'edit', type: 'remap', config: { source: `.message = string!(.message) + " ${mark}"` } }],
      sinks: [
        {
          name: 'out',
          type: 'http',
          config: {
            uri: `${receiver.url}/${name}`,
            encoding: { codec: 'json' },
            batch: { timeout_secs: 0.2, max_bytes: 1_000_000 },
            request: { retry_max_duration_secs: 2 },
            buffer: { type: 'disk', max_size: bufferBytes, when_full: 'block' },
          },
        },
      ],
    },
  })
  const writers = (name: string, app: string, program: string) => ({
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    metadata: { name, namespace: 'shop' },
    spec: {
      selector: { matchLabels: { set: name } },
      template: {
        metadata: { labels: { set: name, app } },
        spec: {
          terminationGracePeriodSeconds: 1,
          containers: [{ name: 'main', image: 'localhost/node:26', args: ['-e', program], env: writerEnv }],
        },
      },
    },
  })

  // --- States ---

  const get = (name: string) => api.get<PipelineLike>(`/apis/${apiVersion}/namespaces/shop/pipelines/${name}`)
  const podsIn = async (namespace: string, selector: string) =>
    (JSON.parse(await kubectl('-n', namespace, 'get', 'pods', '-l', selector, '-o', 'json')).items as Pod[]).filter(
      ({ metadata }) => metadata.deletionTimestamp === undefined,
    )
  const agentSelector = 'app.kubernetes.io/instance=node'
  /** The metrics of each agent. */
  const metrics = async (): Promise<string[]> => {
    const secret = JSON.parse(await kubectl('-n', system, 'get', 'secret', 'penstock-metrics', '-o', 'json'))
    const authorization = `Bearer ${Buffer.from(secret.data.token, 'base64').toString()}`
    const pods = await podsIn(system, agentSelector)
    return Promise.all(
      pods.map(async ({ status }) => {
        const answer = await fetch(`http://${status.podIP}:8686/metrics`, { headers: { authorization } })
        if (!answer.ok) throw new Error(`${status.podIP} answers ${answer.status}`)
        return answer.text()
      }),
    )
  }
  const runsEverywhere = async (agents: Release) => {
    await waitFor(`agents of version ${agents.version}`, 240_000, async () => {
      const running = await metrics()
      return (
        running.length === nodes.length &&
        running.every((text) => /^build_info\{[^}]*version="([^"]*)"/m.exec(text)?.[1] === agents.version)
      )
    })
    await isReady('plagent', system, 'node', 180_000)
    expect((await agentPods()).map(({ node, restarts }) => ({ node, restarts }))).toEqual(
      nodes.map((node) => ({ node, restarts: [0] })),
    )
  }
  const leads = (operator: Release) =>
    waitFor(`an operator of version ${operator.version} that leads`, 120_000, async () => {
      const lease = await api.get(`/apis/coordination.k8s.io/v1/namespaces/${system}/leases/penstock-operator`)
      const holder = String(lease.spec?.['holderIdentity']).split('@')[0]
      const pods = await podsIn(system, 'app.kubernetes.io/name=penstock-operator')
      const leader = pods.find(({ metadata }) => metadata.name === holder)
      if (leader === undefined || pods.some(({ spec }) => !spec.containers[0]?.image.endsWith(`:${operator.tag}`)))
        return false
      const log = await kubectl('-n', system, 'logs', leader.metadata.name)
      return log.includes(`"version":"${operator.version}"`) && log.includes('All controllers run.')
    })
  /** Versions of all objects that a new operator should leave unchanged, and the agent pods, which should not restart. */
  const snapshot = async () => {
    const list = JSON.parse(await kubectl('get', 'daemonsets,plagent,secrets,pl', '-A', '-o', 'json'))
    const found: Record<string, string | number> = {}
    for (const { kind, metadata } of list.items as ObjectLike[]) {
      const key = `${kind} ${metadata.name}`
      if (kind === 'Secret' && metadata.name.startsWith('penstock-node-')) found[key] = metadata.resourceVersion
      // This Pipeline receives no lines, so no figure in its status changes.
      else if (kind === 'Pipeline' && metadata.name === 'idle') found[key] = metadata.resourceVersion
      else if (kind !== 'Secret' && metadata.generation !== undefined) found[key] = metadata.generation
    }
    for (const kind of ['Secret', 'Pipeline', 'DaemonSet', 'Agent'])
      expect(Object.keys(found)).toContainEqual(expect.stringMatching(`^${kind} `))
    return { found, pods: (await agentPods()).map(({ uid }) => uid) }
  }
  /** Checks that the commands of both releases print the same as with equal versions, without a warning. */
  const commandsWork = async (agents: Release) => {
    const file = join(folder, 'pipeline.json')
    await writeFile(file, JSON.stringify(pipeline('checked', ['web'])))
    const [pod] = await podsIn('shop', 'app=web')
    const all = [current, next].flatMap(({ version: of, command }) =>
      [
        { args: ['version'], says: [`penstock ${of}\n`] },
        { args: ['lint', file], says: ['no problems'] },
        { args: ['status', 'steady', '-n', 'shop'], says: [/agent +penstock-system\/node: 3\/3 run revision/] },
        {
          args: ['why', pod?.metadata.name ?? '', '-n', 'shop'],
          says: ['Its logs are read.', /main: 0\.log: \d+ of \d+ bytes read, \d+ delivered/],
        },
      ].map((one) => ({ ...one, of, command })),
    )
    const env = { KUBECONFIG: cluster.kubeconfig }
    await inGroups(all, 4, ({ args, says, of, command }) =>
      waitFor(`${args[0]} of ${of} beside agents of ${agents.version}`, 30_000, async () => {
        const { code, stdout, stderr } = await penstock(args, { env }, command)
        expect({ code, stderr }, stdout).toEqual({ code: 0, stderr: '' })
        for (const part of says) expect(stdout).toMatch(part)
        return true
      }),
    )
  }

  // --- Lines ---

  const at = (name: string) => receiver.at(`/${name}`)
  /** Nodes whose lines a Pipeline has delivered with the given mark. */
  const nodesOf = (name: string, mark: string) =>
    nodes.filter((node) => at(name).some((text) => text.startsWith(`${node}/`) && text.endsWith(mark)))
  const flows = async () => {
    const before = at('steady').length
    await waitFor('more lines', 60_000, async () => at('steady').length > before + 30)
  }
  /** Names of the DaemonSets that have filled the buffers. */
  const filled: string[] = []
  const everyLine = async (names: readonly string[]) => {
    const written = await writtenLines(cluster, 'web')
    expect(written.size).toBe(nodes.length)
    for (const name of names) {
      await waitFor(`every line of ${name}`, 240_000, async () => {
        const counted = countLines(at(name))
        const first = missingIn(counted, written)
        if (first !== undefined) throw new Error(`Line ${first} is missing.`)
        return true
      })
    }
    await waitFor('every line of the full buffers', 240_000, async () => {
      const counted = countLines(at('held'))
      for (const set of filled) {
        const some = [...counted].filter(([writer]) => writer.includes(`/${set}-`))
        const whole = some.filter(([, { numbers }]) => numbers.size === filling.lines)
        if (whole.length < nodes.length) throw new Error(`${set}: ${some.map(([, { last }]) => last).join(' ')}`)
      }
      return true
    })
    // No agent was killed, so by the guide's guarantee no line arrives twice.
    for (const name of names) expect(doublesIn(countLines(at(name))), name).toBe(0)
    times.note('lines that have come', String(names.reduce((sum, name) => sum + at(name).length, 0)))
  }
  const allReady = async () => {
    const { items } = await api.get<{ items: PipelineLike[] }>(`/apis/${apiVersion}/namespaces/shop/pipelines`)
    for (const { metadata } of items) await isReady('pl', 'shop', metadata.name, 180_000)
    for (const { metadata } of items) expect(saysOf(await get(metadata.name), 'Programmed')).toBe('True Programmed')
    const reasons = await kubectl('-n', 'shop', 'get', 'events', '-o', 'jsonpath={.items[*].reason}')
    expect(reasons.split(' ')).not.toContain('RolledBack')
    // The Secret is written once more when the last step is over.
    const status = await waitFor('the rollout to be over', 180_000, async () => {
      const agent = await api.get(`/apis/${apiVersion}/namespaces/${system}/agents/node`)
      return agent.status?.['revision'] === agent.status?.['stableRevision'] && agent.status
    })
    const history = status?.['history'] as readonly { readonly result: string }[] | undefined
    expect(history?.filter(({ result }) => result === 'RolledBack')).toEqual([])
  }

  const upgradeKinds = (to: Release) =>
    withScene(helmHere(['upgrade', 'penstock-crds', to.charts.crds, '-n', system, '--wait']))

  test('a release is installed, and its Pipelines deliver', async () => {
    await times.measure('helm install', async () => {
      await helmHere(['install', 'penstock-crds', current.charts.crds, '-n', system, '--create-namespace', '--wait'])
      await release('install', current.charts.penstock, [], values(current, current))
      await isReady('plagent', system, 'node')
    })
    await cluster.apply({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop' } })
    await until('the default service account', 30_000, () => kubectl('-n', 'shop', 'get', 'serviceaccount', 'default'))
    await cluster.apply(
      writers('web', 'web', numberedLines(50)),
      pipeline('steady', ['web']),
      pipeline('held', ['web', 'fill']),
      pipeline('idle', ['nobody']),
    )
    for (const name of ['steady', 'held']) {
      await waitFor(`lines of ${name}`, 120_000, async () => nodesOf(name, '').length === nodes.length)
    }
    await allReady()
    await runsEverywhere(current)
  })

  describe.each([
    { way: 'up', route: () => ({ from: current, to: next }) },
    { way: 'down', route: () => ({ from: next, to: current }) },
  ])('$way', { timeout: 1_800_000 }, ({ way, route }) => {
    test('a destination refuses lines until the buffers of all nodes are full', async () => {
      receiver.down.add('/held')
      const { lines, padding } = filling
      await cluster.apply(writers(`fill-${way}`, 'fill', numberedLines(1, lines, 50, padding)))
      await times.measure('until the buffers are full', () =>
        waitFor('full buffers on all nodes', 180_000, async () => {
          const sizes = (await metrics()).map(heldBytes)
          if (!sizes.every(isFull)) throw new Error(`They hold ${sizes.join(', ')} bytes.`)
          return sizes.length === nodes.length
        }),
      )
      await flows()
    })

    test('the API server serves the CRDs of the other release, and the operator keeps running', async () => {
      const { from, to } = route()
      const before = await snapshot()
      await times.measure(`kinds of ${to.version}`, () => upgradeKinds(to))
      const field = () => kubectl('explain', `pipelines.spec.${nextField}`)
      if (way === 'up') {
        await waitFor('the newer kinds', 30_000, field)
        // If the operator ignored an unknown field, a Pipeline would not do what its resource says.
        const wanted = pipeline('later', ['web'])
        const input = JSON.stringify({ ...wanted, spec: { ...wanted.spec, [nextField]: 'x' } })
        // The API server accepts a resource if the webhook does not answer within five seconds.
        const refusal = await waitFor('a refusal', 90_000, () =>
          cluster.kubectl(['apply', '--dry-run=server', '-f', '-'], { input }).then(
            () => undefined,
            (error: Error) => error.message,
          ),
        )
        expect(refusal).toContain(`unknown field \`${nextField}\``)
      } else {
        await waitFor('the older kinds', 30_000, () =>
          field().then(
            () => false,
            () => true,
          ),
        )
      }
      await commandsWork(from)
      await flows()
      expect(await snapshot()).toEqual(before)
    })

    test('the operator of the other release applies existing, changed and new Pipelines to agents that keep running', async () => {
      const { from, to } = route()
      const before = await snapshot()
      await times.measure(`operator of ${to.version}`, async () => {
        await release('upgrade', to.charts.penstock, [], values(to, from))
        await leads(to)
      })
      await runsEverywhere(from)
      await commandsWork(from)
      await flows()
      expect(await snapshot()).toEqual(before)

      await times.measure(`a changed and a new Pipeline, operator of ${to.version}`, async () => {
        await cluster.apply(pipeline('steady', ['web'], way), pipeline(`new-${way}`, ['web']))
        await waitFor('lines of the changed Pipeline', 180_000, async () => nodesOf('steady', ` ${way}`).length === 3)
        await waitFor('lines of the new Pipeline', 180_000, async () => nodesOf(`new-${way}`, '').length === 3)
        await allReady()
      })
      expect((await snapshot()).pods).toEqual(before.pods)
    })

    test('agents of the other release take over the full buffers', async () => {
      const { to } = route()
      const before = await snapshot()
      await times.measure(`agents of ${to.version}`, async () => {
        await release('upgrade', to.charts.penstock, [], values(to, to))
        await runsEverywhere(to)
      })
      const sizes = (await metrics()).map(heldBytes)
      expect(sizes.map(isFull), String(sizes)).toEqual([true, true, true])
      await commandsWork(to)
      await flows()
      const after = await snapshot()
      expect(after.pods.filter((uid) => before.pods.includes(uid))).toEqual([])
      const [agent, set] = ['Agent node', 'DaemonSet penstock-node']
      expect(after.found).toEqual({
        ...before.found,
        [agent]: Number(before.found[agent]) + 1,
        [set]: Number(before.found[set]) + 1,
      })
    })

    test('when the destination accepts lines again, each line arrives once', async () => {
      receiver.down.delete('/held')
      filled.push(`fill-${way}`)
      const fresh = way === 'up' ? ['new-up'] : ['new-up', 'new-down']
      await times.measure('until every line has come', () => everyLine(['steady', 'held', ...fresh]))
      await allReady()
      await kubectl('-n', 'shop', 'delete', 'daemonset', `fill-${way}`)
    })
  })
})

interface Pod {
  readonly metadata: { readonly name: string; readonly deletionTimestamp?: string }
  readonly spec: { readonly containers: readonly { readonly image: string }[] }
  readonly status: { readonly podIP: string }
}

interface ObjectLike {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly resourceVersion: string; readonly generation?: number }
}

/** Bytes in the buffer of the Pipeline whose lines are refused, from the metrics of an agent. */
const heldBytes = (text: string) => Number(/^buffer_byte_size\{[^}]*held[^}]*\} (\S+)/m.exec(text)?.[1] ?? 0)
