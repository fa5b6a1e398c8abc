// All figures of the operator at one size, by one command:
//
//    npm run scale -- --pipelines 5000 --namespaces 500 --agents 1000 --churn 10 --for 600
//
// A real API server; two replicas of the operator as their image runs them; agents that report by the real protocol, each with a pod, a
// node and a token of its own. Pipelines are applied, then some change every second; in the middle the leader is killed. A watch shows when
// the operator has accepted a change, so the times are those of a user who waits for the condition. At last one agent restarts, then the
// operator, and the writes that follow are counted. On a machine with other work, times are longer by what a busy thread has to wait for a
// core: that share is measured and printed, and processor time does not depend on it.

import { readFileSync } from 'node:fs'
import { connect, createServer, type Server } from 'node:net'
import { availableParallelism, loadavg } from 'node:os'
import { parseArgs } from 'node:util'
import { freePort } from '@penstock/agent/testing/free-port'
import { missingForCluster, startCluster } from '../cluster/cluster.ts'
import { inGroups, until } from '../command.ts'
import { Crowd } from './crowd.ts'
import { Api } from './fleet.ts'
import { apiVersion, conditionOf, OperatorProcess, type PipelineLike, prepare, saysOf, system } from './process.ts'

const { values } = parseArgs({
  options: {
    pipelines: { type: 'string', default: '300' },
    namespaces: { type: 'string', default: '30' },
    agents: { type: 'string', default: '20' },
    churn: { type: 'string', default: '10' },
    for: { type: 'string', default: '60' },
  },
})
const numberOf = (name: keyof typeof values): number => {
  const number = Number(values[name])
  if (Number.isInteger(number) && number > 0) return number
  throw new Error(`--${name} takes a whole number above 0; found ${values[name]}.`)
}
const [pipelines, namespaces, agents] = [numberOf('pipelines'), numberOf('namespaces'), numberOf('agents')]
const [churn, seconds] = [numberOf('churn'), numberOf('for')]
/** Seconds between reports of an agent, as they are where there are many. */
const period = agents > 100 ? 30 : 5

const spaceOf = (index: number) => `team-${index % namespaces}`
const nameOf = (index: number) => `p-${index}`
const all = '/apis/penstock.dev/v1alpha1/pipelines'

const pipeline = (index: number, value: number) => ({
  apiVersion,
  kind: 'Pipeline',
  metadata: { name: nameOf(index), namespace: spaceOf(index) },
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

/** Passes connections on to the first of some ports where somebody listens, as a Service does. */
async function service(ports: readonly number[]): Promise<Server> {
  const server = createServer((from) => {
    const attempt = ([port, ...others]: readonly number[]) => {
      if (port === undefined) return from.destroy()
      const to = connect(port, '127.0.0.1', () => {
        from.pipe(to)
        to.pipe(from)
      })
      let isOpen = false
      to.once('connect', () => {
        isOpen = true
      })
      to.on('error', () => (isOpen ? from.destroy() : attempt(others)))
      to.on('close', () => isOpen && from.destroy())
      from.on('close', () => to.destroy())
    }
    from.on('error', () => {})
    attempt(ports)
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return server
}

interface Change {
  readonly at: number
  readonly generation: number
}

/** Watches Pipelines, and takes the time from a change until the operator has accepted its generation. */
class Stopwatch {
  readonly #open = new Map<string, Change>()
  readonly #seen = new Map<string, number>()
  readonly times: { readonly at: number; readonly tookMs: number }[] = []

  get pending(): number {
    return this.#open.size
  }

  start(key: string, change: Change): void {
    if ((this.#seen.get(key) ?? 0) >= change.generation) this.#take(change)
    else this.#open.set(key, change)
  }

  #take({ at }: Change): void {
    this.times.push({ at, tookMs: performance.now() - at })
  }

  /** The API server ends a watch whose reader is slow, so each watch begins with the existing objects. */
  async follow(api: Api, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      const list = await api.get<{ metadata: { resourceVersion: string }; items: readonly PipelineLike[] }>(all)
      for (const item of list.items) this.#see(item)
      const query = `?watch=1&resourceVersion=${list.metadata.resourceVersion}&timeoutSeconds=120`
      const answer = await fetch(api.url + all + query, { signal })
      let rest = ''
      for await (const part of answer.body?.pipeThrough(new TextDecoderStream()) ?? []) {
        const lines = (rest + part).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) {
          const { type, object } = JSON.parse(line) as { type: string; object: PipelineLike }
          if (type !== 'ERROR') this.#see(object)
        }
      }
    }
  }

  #see(object: PipelineLike): void {
    const { name, namespace } = object.metadata
    if (saysOf(object, 'Accepted') !== 'True Valid') return
    const generation = conditionOf(object, 'Accepted')?.observedGeneration ?? 0
    const key = `${namespace}/${name}`
    this.#seen.set(key, generation)
    const change = this.#open.get(key)
    if (change === undefined || generation < change.generation) return
    this.#open.delete(key)
    this.#take(change)
  }
}

/** The use of resources by a process of the operator. */
class Meter {
  readonly #operator: OperatorProcess
  /** Of the last look, as a process that was killed answers no more. */
  requests = new Map<string, number>()
  peakMiB = 0

  constructor(operator: OperatorProcess) {
    this.#operator = operator
  }

  async look(): Promise<void> {
    if (!this.#operator.running) return
    this.peakMiB = treeOf(this.#operator.pid).reduce((sum, pid) => sum + peakOf(pid), 0)
    const text = await this.#operator.get('/metrics').catch(() => '')
    if (text === '') return
    const sums = new Map<string, number>()
    for (const [, labels = '', value] of text.matchAll(/^rest_client_requests_total\{([^}]*)\} (\d+)/gm)) {
      const method = /method="(\w+)"/.exec(labels)?.[1] ?? ''
      sums.set(method, (sums.get(method) ?? 0) + Number(value))
    }
    this.requests = sums
  }

  /** Processor time in seconds, with the processes that compile; 0 for a process that has ended. */
  cpu(): number {
    return this.#operator.running ? treeOf(this.#operator.pid).reduce((sum, pid) => sum + cpuOf(pid), 0) : 0
  }
}

/** A process and those that it has started. */
function treeOf(pid: number): readonly number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
  return [pid, ...children]
}

function cpuOf(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}

function peakOf(pid: number): number {
  return Number(/^VmHWM:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024
}

/** The part of a core that a busy thread gets, measured in many short turns. */
class Share {
  #cpuMs = 0
  #wallMs = 0

  take(): void {
    const begun = performance.now()
    const { user, system: kernel } = process.cpuUsage()
    let used = 0
    while (used < 5) {
      const now = process.cpuUsage()
      used = (now.user + now.system - user - kernel) / 1000
    }
    this.#cpuMs += used
    this.#wallMs += performance.now() - begun
  }

  get percent(): number {
    return (100 * this.#cpuMs) / this.#wallMs
  }
}

const say = (text: string) => console.log(`${new Date().toISOString().slice(11, 19)}  ${text}`)
const pause = (ms: number) => new Promise((done) => setTimeout(done, ms))

function percentiles(times: readonly number[]): string {
  const sorted = times.toSorted((left, right) => left - right)
  const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN
  return `p50 ${at(0.5).toFixed(0)} ms, p99 ${at(0.99).toFixed(0)} ms, max ${at(1).toFixed(0)} ms (${sorted.length} changes)`
}

async function main(): Promise<void> {
  await using stack = new AsyncDisposableStack()
  const cluster = stack.use(await startCluster())
  await prepare(cluster, ...Array.from({ length: namespaces }, (_, index) => spaceOf(index)))
  const api = stack.use(await Api.start(cluster))
  const ports = [await freePort(), await freePort()]
  const front = await service(ports)
  stack.defer(() => void front.close())
  const operatorUrl = `http://127.0.0.1:${(front.address() as { port: number }).port}`
  const args = ['--heartbeat-period', `${period}s`, '--status-period', `${period}s`, '--heartbeat-url', operatorUrl]
  const start = (port: number | undefined, ...more: string[]) =>
    stack.use(
      OperatorProcess.start({
        kubeconfig: cluster.kubeconfig,
        ...(port === undefined ? {} : { heartbeats: port }),
        args: [...args, ...more],
      }),
    )
  const leader = await start(ports[0]).leading()
  const second = start(ports[1])
  await second.logged('Agents may report')
  const meters = [new Meter(leader), new Meter(second)]
  const look = () => Promise.all(meters.map((meter) => meter.look()))
  await until('the account of agents', 60_000, () =>
    api.find(`/api/v1/namespaces/${system}/serviceaccounts/penstock-node`),
  )
  say(`${agents} agents in ${namespaces} namespaces`)
  const crowd = stack.use(await Crowd.start(api, { agent: 'node', nodes: agents, operatorUrl, everyMs: period * 1000 }))
  const ending = new AbortController()
  stack.defer(() => ending.abort())
  const stopwatch = new Stopwatch()
  const following = stopwatch.follow(api, ending.signal).catch((error: unknown) => {
    if (!ending.signal.aborted) throw error
  })

  const apply = async (index: number, value: number) => {
    const at = performance.now()
    const path = `/apis/penstock.dev/v1alpha1/namespaces/${spaceOf(index)}/pipelines/${nameOf(index)}`
    const query = '?fieldManager=author&force=true'
    const type = 'application/apply-patch+yaml'
    const { metadata } = await api.request<PipelineLike>('PATCH', path + query, pipeline(index, value), type)
    stopwatch.start(`${spaceOf(index)}/${nameOf(index)}`, { at, generation: metadata.generation })
  }
  const begun = performance.now()
  await inGroups([...Array(pipelines).keys()], 20, (index) => apply(index, index))
  const applied = performance.now()
  await until('every Pipeline to be accepted', 1_800_000, async () => stopwatch.pending === 0)
  say(
    `${pipelines} Pipelines: applied in ${((applied - begun) / 1000).toFixed(0)} s, accepted after ${((performance.now() - begun) / 1000).toFixed(0)} s`,
  )
  await leader.idle()
  await look()
  stopwatch.times.length = 0

  const before = meters.map((meter) => ({ cpu: meter.cpu(), requests: new Map(meter.requests) }))
  const start0 = performance.now()
  const killAt = start0 + (seconds * 1000) / 2
  let killed: number | undefined
  let leaderCpu = 0
  let again: number | undefined
  const share = new Share()
  const looking = setInterval(() => {
    share.take()
    void look()
  }, 2000)
  let failures = 0
  const running = new Set<Promise<void>>()
  for (let turn = 0; performance.now() < start0 + seconds * 1000; turn++) {
    if (killed === undefined && performance.now() >= killAt) {
      await look()
      leaderCpu = (meters[0] as Meter).cpu()
      killed = performance.now()
      await leader.kill()
      say('the leader is killed')
      void second.leading().then(() => {
        again = performance.now()
        say(`the other one leads after ${((again - (killed as number)) / 1000).toFixed(1)} s`)
      })
    }
    const change = apply((turn * 37) % pipelines, pipelines + turn)
      .catch(() => {
        failures++
      })
      .finally(() => running.delete(change))
    running.add(change)
    await pause(Math.max(0, start0 + ((turn + 1) * 1000) / churn - performance.now()))
  }
  await Promise.all(running)
  await until('the last changes to be accepted', 600_000, async () => stopwatch.pending === 0)
  const took = (performance.now() - start0) / 1000
  clearInterval(looking)
  await look()

  const undisturbed = stopwatch.times.filter(
    ({ at, tookMs }) => killed === undefined || at + tookMs < killed || at > (again ?? killed) + 10_000,
  )
  const methods = new Map<string, number>()
  for (const [index, meter] of meters.entries()) {
    for (const [method, count] of meter.requests) {
      const since = count - (before[index]?.requests.get(method) ?? 0)
      methods.set(method, (methods.get(method) ?? 0) + since)
    }
  }
  const perSecond = [...methods].map(([method, count]) => `${method} ${(count / took).toFixed(1)}`).join(', ')
  const cpu = leaderCpu - (before[0]?.cpu ?? 0) + (meters[1] as Meter).cpu() - (before[1]?.cpu ?? 0)
  const changes = stopwatch.times.length
  await until('the rollout to be over', 900_000, async () => {
    const agent = await api.get<PipelineLike>(`/apis/penstock.dev/v1alpha1/namespaces/${system}/agents/node`)
    const { revision, stableRevision } = agent.status ?? {}
    return saysOf(agent, 'Programmed') === 'True Programmed' && revision === stableRevision
  })
  say('everything is rolled out: one agent restarts, then the operator')
  const [ofAgent, ofOperator] = [await writesOfAgentRestart(second, crowd), await writesOfRestart(second, ports, start)]
  const answers = [...crowd.answers].map(([status, count]) => `${status === 0 ? 'none' : status}: ${count}`).join(', ')
  ending.abort()
  await following
  console.log(
    [
      '',
      `${pipelines} Pipelines in ${namespaces} namespaces, ${agents} agents, ${churn} changes a second for ${seconds} s`,
      `machine                       ${availableParallelism()} cores, load ${loadavg()[0]?.toFixed(1)}; a busy thread got ${share.percent.toFixed(0)}% of a core`,
      `apply to Accepted             ${percentiles(undisturbed.map(({ tookMs }) => tookMs))}`,
      `the same, with the kill       ${percentiles(stopwatch.times.map(({ tookMs }) => tookMs))}`,
      `changes that were refused     ${failures}`,
      `until another one leads       ${again === undefined || killed === undefined ? 'never' : `${((again - killed) / 1000).toFixed(1)} s`}`,
      `API requests a second         ${perSecond}`,
      `processor, both together      ${(cpu / took).toFixed(2)} cores; ${((1000 * cpu) / changes).toFixed(0)} ms a change`,
      `memory at most                ${meters.map(({ peakMiB }) => `${peakMiB.toFixed(0)} MiB`).join(' and ')}`,
      `answers to reports            ${answers}`,
      `reports that were not taken    sent again until they were; after ${(crowd.longestMs / 1000).toFixed(1)} s at most; ${crowd.unheard} left`,
      `writes when an agent restarts  ${ofAgent}`,
      `writes when the operator does  ${ofOperator.length}${ofOperator.length === 0 ? '' : `: ${ofOperator.slice(0, 5).join(', ')}`}`,
    ].join('\n'),
  )
}

/** PATCH requests of the leader until nothing is left to do, after the pod of one agent was replaced. */
async function writesOfAgentRestart(leader: OperatorProcess, crowd: Crowd): Promise<number> {
  await leader.idle()
  const patches = async () =>
    [...(await leader.get('/metrics')).matchAll(/^rest_client_requests_total\{[^}]*method="PATCH"[^}]*\} (\d+)/gm)]
      .map(([, count]) => Number(count))
      .reduce((sum, count) => sum + count, 0)
  const before = await patches()
  await crowd.restart(0)
  // As long as agents may take to report, and figures to be written.
  await pause(2 * period * 1000)
  await leader.idle()
  return (await patches()) - before
}

/** Requests by which an operator changes something after a start beside what another one has left. */
async function writesOfRestart(
  before: OperatorProcess,
  [, port]: readonly number[],
  start: (port: number | undefined, ...more: string[]) => OperatorProcess,
): Promise<readonly string[]> {
  await before.stop()
  const next = await start(port, '--log-level', 'debug').leading()
  await until('every agent to be heard', 600_000, async () => (await next.heard()) > 2 * agents)
  await next.idle()
  return next.changes()
}

const missing = missingForCluster(0)
if (missing === undefined) await main()
else {
  console.error(`This machine cannot run it: ${missing}.`)
  process.exitCode = 1
}
