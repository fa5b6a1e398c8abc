// One hostile tenant of each kind and ten others on one agent: measures the delay of the others' lines, with and without hostile tenants.

import { setTimeout as wait } from 'node:timers/promises'
import { Destination, HostileAgent, hostileBundle, tenants, victimInterval } from '../attacks/hostile-agent.ts'
import { processCpu } from '../process-figures.ts'
import { mean, percentile, round } from './figures.ts'

/** The promise to tenants: 99 of 100 lines arrive within this time, whatever other tenants do. */
const maxP99LagMs = 2000

interface Run {
  readonly lines: number
  readonly lagAvgMs: number
  readonly lagP99Ms: number
  readonly lagMaxMs: number
  readonly lost: number
  readonly doubled: number
  readonly restarts: number
  readonly cores: number
}

/** Number of ordinary tenants. */
const victims = 10

/** Maximum wait for late lines after the last one has been written. */
const maxLateMs = 30_000

async function run(names: readonly string[], seconds: number): Promise<Run> {
  const writtenEach = Math.round(seconds / victimInterval)
  const written = writtenEach * victims
  await using destination = await Destination.start()
  await using agent = await HostileAgent.start(hostileBundle(destination.url, names, writtenEach, victims))
  await agent.until("the victims' first lines", () => destination.lags.length > 0)
  const pid = agent.child.pid as number
  const startCpu = processCpu(pid)
  const started = performance.now()
  const elapsedMs = () => performance.now() - started
  let cpu = startCpu
  while (agent.running && destination.ids.length < written && elapsedMs() < seconds * 1000 + maxLateMs) {
    cpu = processCpu(pid)
    await wait(100)
  }
  const { lags, ids } = destination
  const distinct = new Set(ids).size
  return {
    lines: written,
    lagAvgMs: mean(lags),
    lagP99Ms: percentile(lags, 0.99),
    lagMaxMs: percentile(lags, 1),
    lost: written - distinct,
    doubled: ids.length - distinct,
    restarts: agent.running ? 0 : 1,
    cores: (cpu - startCpu) / (elapsedMs() / 1000),
  }
}

export async function hostile(seconds: number): Promise<object> {
  const alone = await run([], Math.min(seconds, 20))
  const together = await run(Object.keys(tenants), seconds)
  const problems = [
    ...(together.restarts > 0 ? ['The agent ended.'] : []),
    ...(together.lagP99Ms >= maxP99LagMs ? [`p99 lag of the victims: ${together.lagP99Ms} ms.`] : []),
  ]
  return {
    scenario: 'hostile',
    seconds,
    victims,
    hostile_tenants: Object.keys(tenants).length,
    lines: together.lines,
    alone_lag_avg_ms: round(alone.lagAvgMs, 1),
    alone_lag_p99_ms: alone.lagP99Ms,
    alone_cores: round(alone.cores),
    lag_avg_ms: round(together.lagAvgMs, 1),
    lag_p99_ms: together.lagP99Ms,
    lag_max_ms: together.lagMaxMs,
    cores: round(together.cores),
    restarts: together.restarts,
    lost: alone.lost + together.lost,
    doubled: alone.doubled + together.doubled,
    ...(problems.length === 0 ? {} : { problem: problems.join(' ') }),
  }
}
