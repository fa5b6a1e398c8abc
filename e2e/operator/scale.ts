// `npm run scale`: all figures of the operator at one size.
//
// It uses a real API server, two replicas of the operator as in their image, and agents that report with the real protocol, each with its own pod,
// node and token. A watch shows when the operator has accepted a change, so times are those of a user who waits for the condition. The agents
// are a separate process, and see mounted Secrets with the delay of kubelets. On a busy machine, times are longer because threads wait for a
// core: this share is measured and printed, together with the cost of the measurement itself. CPU time does not depend on it.

import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism, loadavg } from 'node:os'
import { join } from 'node:path'
import { freePort } from '@penstock/agent/testing/free-port'
import { runScript } from '@penstock/agent/tools/script'
import { type Cluster, missingForCluster, startCluster } from '../cluster/cluster.ts'
import { inGroups, until } from '../command.ts'
import { processCpu } from '../process-figures.ts'
import { type CrowdFacts, CrowdProcess } from './crowd-process.ts'
import { Api, nodeName } from './fleet.ts'
import { OperatorMeter, Share, Stopwatch, treeOf } from './meters.ts'
import { apiVersion, heartbeatUrl, OperatorProcess, type PipelineLike, prepare, saysOf, system } from './process.ts'

interface Size {
  readonly pipelines: number
  readonly namespaces: number
  readonly agents: number
  /** Changes per second, and duration in seconds. */
  readonly churn: number
  readonly seconds: number
  /** Interval in seconds at which nodes read their Secrets. */
  readonly lookSeconds: number
  /** Whether the agents request their bundle from the operator; otherwise it is mounted. */
  readonly isStreaming: boolean
  /** Pods on the node of each agent. */
  readonly pods: number
  /** Whether a killed process restarts, like a container, or is lost with its node, so that its Lease must expire. */
  readonly isProcess: boolean
}

/** The time that a kubelet needs to restart a container. */
const restartMs = 1000
/** The default of users; other tests use a higher limit. */
const limits = ['--kube-qps', '50', '--kube-burst', '100']
const goal = { acceptedMs: 2000, memoryMiB: 512, cores: 1, agentWrites: 100, operatorWrites: 0 }
/** Seconds between reports of an agent, as with many agents. */
const periodOf = ({ agents }: Size) => (agents > 100 ? 30 : 5)

const spaceOf = (index: number, { namespaces }: Size) => `team-${index % namespaces}`
const nameOf = (index: number) => `p-${index}`

const pipeline = (index: number, value: number, size: Size) => ({
  apiVersion,
  kind: 'Pipeline',
  metadata: { name: nameOf(index), namespace: spaceOf(index, size) },
  spec: {
    sources: [{ name: 'app', type: 'orchestrator_logs', selector: { pods: { matchLabels: { app: nameOf(index) } } } }],
    transforms: [
      {
        name: 'parse',
        type: 'remap',
        config: { source: `. = merge(., object(parse_json(.message) ?? {}) ?? {})\n.n = ${value}` },
      },
      { name: 'keep', type: 'filter', config: { condition: '.level != "debug"' } },
    ],
    sinks: [{ name: 'out', type: 'http', config: { uri: 'https://store.example/in', encoding: { codec: 'json' } } }],
  },
})

const say = (text: string) => console.log(`${new Date().toISOString().slice(11, 19)}  ${text}`)
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms))

function percentile(times: readonly number[], part: number): number {
  const sorted = times.toSorted((left, right) => left - right)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN
}

function percentiles(times: readonly number[]): string {
  const at = (part: number) => percentile(times, part).toFixed(0)
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, max ${at(1)} ms (${times.length} changes)`
}

/** The p99 of each minute, which shows whether a slow time belongs to the change of the leader. */
function byMinute(times: readonly { readonly at: number; readonly tookMs: number }[]): string {
  const begin = Math.min(...times.map(({ at }) => at))
  const minutes = Map.groupBy(times, ({ at }) => Math.floor((at - begin) / 60_000))
  const minute = (index: number) => (minutes.get(index) ?? []).map(({ tookMs }) => tookMs)
  return Array.from({ length: Math.max(...minutes.keys()) + 1 }, (_, index) =>
    percentile(minute(index), 0.99).toFixed(0),
  ).join(', ')
}

/** All participants. */
interface Scene {
  readonly size: Size
  readonly cluster: Cluster
  readonly api: Api
  /** The leader first, then the other one. */
  readonly replicas: OperatorProcess[]
  readonly meters: OperatorMeter[]
  readonly crowd: CrowdProcess
  readonly stopwatch: Stopwatch
  /** Starts a replica by number. */
  start(index: 0 | 1, ...more: string[]): OperatorProcess
}

async function begin(stack: AsyncDisposableStack, size: Size): Promise<Scene> {
  const { namespaces, agents, lookSeconds, isStreaming } = size
  const period = periodOf(size)
  const cluster = stack.use(await startCluster())
  await prepare(cluster, ...Array.from({ length: namespaces }, (_, index) => spaceOf(index, size)))
  const api = stack.use(await Api.start(cluster))
  const ports = [await freePort(), await freePort()] as const
  const [operatorUrl, otherUrl] = [heartbeatUrl(ports[0]), heartbeatUrl(ports[1])]
  const periods = ['--heartbeat-period', `${period}s`, '--status-period', `${period}s`]
  const start = (index: 0 | 1, ...more: string[]) => {
    const args = [...limits, ...periods, '--heartbeat-url', operatorUrl, ...more]
    const env = { POD_NAME: `penstock-operator-${index}` }
    return stack.use(OperatorProcess.start({ kubeconfig: cluster.kubeconfig, heartbeats: ports[index], args, env }))
  }
  const leader = await start(0).leading()
  const second = start(1)
  await second.logged('Agents may report')
  await until('the account of agents', 60_000, () =>
    api.find(`/api/v1/namespaces/${system}/serviceaccounts/penstock-node`),
  )
  const path = `/apis/${apiVersion}/namespaces/${system}/agents/node`
  const spec = { configDelivery: isStreaming ? 'Stream' : 'Mounted' }
  await api.request('PATCH', path, { spec }, 'application/merge-patch+json')
  const often = { everyMs: period * 1000, lookMs: lookSeconds * 1000, isStreaming }
  const crowd = stack.use(
    await CrowdProcess.start(cluster, { agent: 'node', nodes: agents, operatorUrl, otherUrl, ...often }),
  )
  await makePods(api, size)
  say(`${agents} agents report; ${namespaces} namespaces`)
  const stopwatch = new Stopwatch()
  const ending = new AbortController()
  const following = stopwatch.follow(api, ending.signal)
  stack.defer(async () => {
    ending.abort()
    await following
  })
  const replicas = [leader, second]
  return {
    size,
    cluster,
    api,
    replicas,
    meters: replicas.map((each) => new OperatorMeter(each)),
    crowd,
    stopwatch,
    start,
  }
}

/** Pods that Pipelines read, by which the operator knows which of them an agent needs. */
async function makePods(api: Api, size: Size): Promise<void> {
  const indexes = Array.from({ length: size.agents * size.pods }, (_, index) => index)
  await inGroups(indexes, 40, async (index) => {
    const name = nameOf((index * 31) % size.pipelines)
    const namespace = spaceOf((index * 31) % size.pipelines, size)
    await api.request('POST', `/api/v1/namespaces/${namespace}/pods`, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `app-${index}`, labels: { app: name } },
      spec: {
        nodeName: nodeName(Math.floor(index / size.pods)),
        automountServiceAccountToken: false,
        containers: [{ name: 'app', image: 'app' }],
      },
    })
  })
}

async function apply({ size, api, stopwatch }: Scene, index: number, value: number): Promise<void> {
  const at = performance.now()
  const path = `/apis/penstock.dev/v1alpha1/namespaces/${spaceOf(index, size)}/pipelines/${nameOf(index)}`
  const query = '?fieldManager=author&force=true'
  const type = 'application/apply-patch+yaml'
  const { metadata } = await api.request<PipelineLike>('PATCH', path + query, pipeline(index, value, size), type)
  stopwatch.answered.push(performance.now() - at)
  stopwatch.start(`${spaceOf(index, size)}/${nameOf(index)}`, { at, generation: metadata.generation })
}

/** Applies all Pipelines, and waits until they are accepted. */
async function fill(scene: Scene): Promise<void> {
  const { pipelines } = scene.size
  const begun = performance.now()
  const since = () => `${((performance.now() - begun) / 1000).toFixed(0)} s`
  await inGroups([...Array(pipelines).keys()], 20, (index) => apply(scene, index, index))
  say(`${pipelines} Pipelines are applied after ${since()}`)
  await until('every Pipeline to be accepted', 1_800_000, async () => scene.stopwatch.pending === 0)
  say(`all are accepted after ${since()}`)
  await scene.replicas[0]?.idle()
  scene.stopwatch.times.length = 0
  scene.stopwatch.answered.length = 0
}

/** CPU time in seconds of everything other than the operator. */
function bench({ cluster, api, crowd }: Scene) {
  const { user, system: kernel } = process.cpuUsage()
  const run = join(cluster.folder, 'run')
  const pids = readdirSync(run).flatMap((name) =>
    name.endsWith('.pid') ? Number(readFileSync(join(run, name), 'utf8')) : [],
  )
  const sum = (all: readonly number[]) => all.reduce((total, pid) => total + processCpu(pid), 0)
  return {
    measurement: (user + kernel) / 1e6 + processCpu(api.pid),
    agents: sum(treeOf(crowd.pid)),
    'API server': sum(pids),
  }
}

interface Churned {
  readonly took: number
  readonly failures: number
  readonly killed: number
  readonly again: number
  readonly share: number
  readonly cpu: number
  readonly bench: ReturnType<typeof bench>
  /** Requests by method. */
  readonly requests: ReadonlyMap<string, number>
  readonly stages: ReadonlyMap<string, number>
}

/** Changes Pipelines at the requested rate, and kills the leader halfway. */
async function churned(scene: Scene): Promise<Churned> {
  const { meters, stopwatch, size } = scene
  const { pipelines, churn, seconds } = size
  const look = (isThorough: boolean) => Promise.all(meters.map((meter) => meter.look(isThorough)))
  await look(true)
  const before = meters.map((meter) => ({ cpu: meter.cpu(), requests: meter.requests, stages: meter.stages }))
  const beside = bench(scene)
  const begun = performance.now()
  const share = new Share()
  const looking = setInterval(() => {
    share.take()
    void look(false)
  }, 2000)
  let [failures, leaderCpu, killed, again] = [0, 0, 0, 0]
  const running = new Set<Promise<void>>()
  const kill = async () => {
    await look(true)
    leaderCpu = meters[0]?.cpu() ?? 0
    killed = performance.now()
    await replaced(scene)
    again = performance.now()
    say(`another one leads after ${((again - killed) / 1000).toFixed(1)} s`)
  }
  let killing: Promise<void> | undefined
  for (let turn = 0; performance.now() < begun + seconds * 1000; turn++) {
    if (performance.now() >= begun + seconds * 500) killing ??= kill()
    const change = apply(scene, (turn * 37) % pipelines, pipelines + turn)
      .catch(() => {
        failures++
      })
      .finally(() => running.delete(change))
    running.add(change)
    await pause(Math.max(0, begun + ((turn + 1) * 1000) / churn - performance.now()))
  }
  await Promise.all([...running, killing])
  await until('the last changes to be accepted', 600_000, async () => stopwatch.pending === 0)
  const took = (performance.now() - begun) / 1000
  clearInterval(looking)
  await look(true)
  const after = bench(scene)
  const used = meters.reduce(
    (sum, meter, index) => sum + (index === 0 ? leaderCpu : meter.cpu()) - (before[index]?.cpu ?? 0),
    0,
  )
  const sums = (which: 'requests' | 'stages') => {
    const all = new Map<string, number>()
    for (const [index, meter] of meters.entries())
      for (const [name, value] of meter[which])
        all.set(name, (all.get(name) ?? 0) + value - (before[index]?.[which].get(name) ?? 0))
    return all
  }
  return {
    ...{
      took,
      failures,
      killed,
      again,
      cpu: used,
      share: share.percent,
      requests: sums('requests'),
      stages: sums('stages'),
    },
    bench: {
      measurement: after.measurement - beside.measurement,
      agents: after.agents - beside.agents,
      'API server': after['API server'] - beside['API server'],
    },
  }
}

/** Kills the leader, and waits until another process leads, which becomes the first of the replicas. */
async function replaced({ replicas, meters, start, size: { isProcess } }: Scene): Promise<void> {
  const [leader, second] = replicas.splice(0)
  await leader?.kill()
  say(isProcess ? 'the process of the leader is killed' : 'the leader is killed with its node')
  if (isProcess) {
    await pause(restartMs)
    const again = start(0)
    replicas.push(again)
    meters.push(new OperatorMeter(again))
  }
  if (second !== undefined) replicas.push(second)
  const leads = () => replicas.findIndex(({ log }) => log.includes('All controllers run.'))
  await until('another process to lead', 120_000, async () => leads() >= 0)
  if (leads() > 0) replicas.reverse()
}

async function measure(size: Size): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const scene = await begin(stack, size)
  await fill(scene)
  const result = await churned(scene)
  say('the changes are over')
  const goals = printChurned(scene, result)
  // Up to two rollouts may be left, and each of their steps waits until nodes have read their Secrets.
  await until('the rollout to be over', 3_600_000, async () => {
    const agent = await scene.api.get<PipelineLike>(`/apis/penstock.dev/v1alpha1/namespaces/${system}/agents/node`)
    const { revision, stableRevision } = agent.status ?? {}
    return saysOf(agent, 'Programmed') === 'True Programmed' && revision === stableRevision
  })
  say('everything is rolled out: one agent restarts, then the operator')
  const ofAgent = await writesOfAgentRestart(scene)
  const ofOperator = await writesOfRestart(scene)
  printRest(goals, await scene.crowd.facts(), { ofAgent, ofOperator })
}

type Rows = readonly (readonly [string, string])[]
/** The goals, and whether they are met. */
type Goals = readonly (readonly [string, boolean])[]

function show(rows: Rows): void {
  for (const [name, text] of rows) console.log(`${name.padEnd(34)}${text}`)
}

/** Prints the results so far immediately, because the rest takes long. */
function printChurned({ stopwatch, meters, size }: Scene, churned: Churned): Goals {
  const { pipelines, namespaces, agents, churn, seconds } = size
  const { took, failures, killed, again, share, cpu, bench: beside, requests, stages } = churned
  const all = stopwatch.times.map(({ tookMs }) => tookMs)
  const besides = stopwatch.times
    .filter(({ at, tookMs }) => at + tookMs < killed || at > again)
    .map(({ tookMs }) => tookMs)
  const rate = (map: Iterable<readonly [string, number]>, digits: number) =>
    [...map].map(([name, count]) => `${name} ${(count / took).toFixed(digits)}`).join(', ')
  const mean = (name: string) =>
    `${((1000 * (stages.get(`${name} sum`) ?? 0)) / Math.max(1, stages.get(`${name} count`) ?? 0)).toFixed(0)} ms`
  const total = [...requests.values()].reduce((sum, count) => sum + count, 0)
  const peak = Math.max(...meters.map(({ peakMiB }) => peakMiB))
  const rows: Rows = [
    [
      'machine',
      `${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(1)}; a busy thread got ${share.toFixed(0)}% of a core`,
    ],
    ['cores in addition to the operator', rate(Object.entries(beside), 2)],
    ['apply to Accepted', `${percentiles(all)}`],
    ['without the time of no leader', percentiles(besides)],
    ['p99 of each minute, in ms', byMinute(stopwatch.times)],
    ['of it: the request of the author', percentiles(stopwatch.answered)],
    [
      'of it: Pipelines',
      `wait for a worker ${mean('pipeline waits')}, are compiled and judged ${mean('pipeline works')} (mean)`,
    ],
    ['of it: statuses', `wait for a worker ${mean('status waits')}, are written ${mean('status works')} (mean)`],
    ['lists of the measurement', `${stopwatch.lists}; nothing is seen during one`],
    ['changes that were refused', `${failures}`],
    ['until another one leads', `${((again - killed) / 1000).toFixed(1)} s`],
    ['API requests a second', `${(total / took).toFixed(1)}: ${rate(requests, 1)}`],
    [
      'processor, both together',
      `${(cpu / took).toFixed(2)} cores; ${((1000 * cpu) / all.length).toFixed(0)} ms a change`,
    ],
    ['memory at most', meters.map(({ peakMiB }) => `${peakMiB.toFixed(0)} MiB`).join(' and ')],
  ]
  console.log(
    `\n${pipelines} Pipelines in ${namespaces} namespaces, ${agents} agents, ${churn} changes a second for ${seconds} s`,
  )
  show(rows)
  console.log('')
  return [
    [`Accepted p99 ${goal.acceptedMs} ms`, percentile(all, 0.99) <= goal.acceptedMs],
    ['the same without the time of no leader', percentile(besides, 0.99) <= goal.acceptedMs],
    [`memory ${goal.memoryMiB} MiB`, peak < goal.memoryMiB],
    [`${goal.cores} core`, cpu / took < goal.cores],
    ['every change taken', failures === 0],
  ]
}

function printRest(
  known: Goals,
  { answers, longestMs, unheard, streamed }: CrowdFacts,
  { ofAgent, ofOperator }: { readonly ofAgent: number; readonly ofOperator: readonly string[] },
): void {
  const goals: Goals = [
    ...known,
    ['every report taken', unheard === 0],
    [`${goal.agentWrites} writes for an agent`, ofAgent <= goal.agentWrites],
    [`${goal.operatorWrites} writes for an operator`, ofOperator.length <= goal.operatorWrites],
  ]
  const missed = goals.filter(([, isMet]) => !isMet).map(([name]) => name)
  console.log('')
  show([
    ['answers to reports', answers.map(([status, count]) => `${status === 0 ? 'none' : status}: ${count}`).join(', ')],
    [
      'reports that were not taken',
      `sent again until they were, for ${(longestMs / 1000).toFixed(1)} s at most; ${unheard} left`,
    ],
    [
      'bundles requested by agents',
      `${streamed.bundles} whole ones and ${streamed.names} new names, ${(streamed.bytes / 1024 / 1024).toFixed(1)} MiB`,
    ],
    ['writes when an agent restarts', `${ofAgent}`],
    ['writes when the operator does', [ofOperator.length, ...ofOperator.slice(0, 5)].join(' ')],
    ['verdict', missed.length === 0 ? 'all goals are met' : `missed: ${missed.join('; ')}`],
  ])
}

/** PATCH requests of the leader until it is idle, after the pod of one agent is replaced. */
async function writesOfAgentRestart({ replicas: [leader], crowd, size }: Scene): Promise<number> {
  if (leader === undefined) throw new Error('There is no leader.')
  await leader.idle()
  const patches = async () =>
    [...(await leader.get('/metrics')).matchAll(/^rest_client_requests_total\{[^}]*method="PATCH"[^}]*\} (\d+)/gm)]
      .map(([, count]) => Number(count))
      .reduce((sum, count) => sum + count, 0)
  const before = await patches()
  await crowd.restart()
  // The maximum time for reports of agents and updates of figures.
  await pause((2 * periodOf(size) + size.lookSeconds) * 1000)
  await leader.idle()
  return (await patches()) - before
}

/** Write requests of an operator after a start with the existing state. */
async function writesOfRestart({ replicas, start, size: { agents } }: Scene): Promise<readonly string[]> {
  for (const replica of replicas.toReversed()) await replica.stop()
  const next = await start(0, '--log-level', 'debug').leading()
  await until('every agent to be heard', 600_000, async () => (await next.heard()) > 2 * agents)
  await next.idle()
  return next.changes()
}

const whole = { type: 'string', number: 'whole', minimum: 1, value: 'N' } as const

await runScript({
  call: 'npm run scale --',
  about: `Measures two replicas of the operator with a real API server: Pipelines are applied, then some change every second; halfway the
leader is killed. At last one agent restarts, then the operator, and the writes that follow are counted. The last line is the
verdict: which goals are met. The goals are for:

  npm run scale -- --pipelines 5000 --namespaces 500 --agents 1000 --churn 10 --for 600`,
  flags: {
    pipelines: { ...whole, help: 'Number of Pipelines (300).' },
    namespaces: { ...whole, help: 'Number of their namespaces (30).' },
    agents: { ...whole, help: 'Number of reporting agents (20).' },
    churn: { ...whole, help: 'Number of Pipelines that change per second (10).' },
    for: { ...whole, value: 'SECONDS', help: 'Duration of the changes (60).' },
    delivery: {
      type: 'string',
      oneOf: ['Stream', 'Mounted'],
      default: 'Stream',
      value: 'HOW',
      help: 'How the agents receive their bundle: from the operator (Stream), or from mounted Secrets.',
    },
    pods: { ...whole, minimum: 0, help: 'Number of pods per node that Pipelines read (5).' },
    look: {
      ...whole,
      minimum: 0,
      value: 'SECONDS',
      help: 'Time until all nodes have seen a new mounted Secret, one after another (60); 0 means immediately.',
    },
    kill: {
      type: 'string',
      oneOf: ['process', 'node'],
      default: 'process',
      value: 'WHAT',
      help: 'Whether the killed leader restarts after a second (process), or stays away until its Lease expires (node).',
    },
  },
  async run({ flags }) {
    const missing = missingForCluster(0)
    if (missing !== undefined) {
      console.error(`This machine cannot run the measurement: ${missing}.`)
      return 1
    }
    const { pipelines = 300, namespaces = 30, agents = 20, churn = 10, kill } = flags
    const { for: seconds = 60, look: lookSeconds = 60 } = flags
    const { pods = 5, delivery } = flags
    const how = { isStreaming: delivery === 'Stream', isProcess: kill === 'process' }
    await measure({ pipelines, namespaces, agents, churn, seconds, lookSeconds, pods, ...how })
    return 0
  },
})
