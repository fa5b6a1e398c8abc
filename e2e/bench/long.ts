// Scenarios that measure over time instead of per event: silent files, and a steady load with rotations.

import { appendFileSync, mkdirSync, renameSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { processCpu } from '../process-figures.ts'
import { peakRss, rssMb, sampleRss } from './agent-process.ts'
import { firstThird, lastThird, mean, round } from './figures.ts'
import { criLine } from './lines.ts'
import { OneAgent } from './one-agent.ts'
import { scenarios } from './scenarios.ts'

/** CPU share and memory of an agent with this many silent pod log files after it has read them. */
export async function idle(scenario: string, files: number, seconds: number): Promise<object> {
  await using agent = await OneAgent.start(scenarios['cri-enriched'].config, ({ logsDir }) => {
    for (let index = 0; index < files; index++) {
      const container = join(logsDir, 'default_web-1_uid-1', `app-${index}`)
      mkdirSync(container, { recursive: true })
      writeFileSync(join(container, '0.log'), `${criLine(index)}\n`)
    }
  })
  const { receiver, pid } = agent
  const startCpu = await agent.cpuToFirstLine()
  if (!(await receiver.until(() => receiver.received() >= files, 120_000, agent.process)))
    throw new Error(`Only ${receiver.received()} of ${files} lines arrived.`)
  await wait(15_000) // let one-time work after the first lines finish
  const before = processCpu(pid)
  const rss = sampleRss(pid, 1000)
  await wait(seconds * 1000)
  rss.stop()
  const cores = (processCpu(pid) - before) / seconds
  return {
    scenario,
    start_cpu_s: round(startCpu),
    cores: round(cores, 4),
    core_percent: round(cores * 100, 2),
    rss_mb: round(mean(rss.samples), 1),
    peak_rss_mb: Math.round(peakRss(pid) ?? 0),
  }
}

/** 5 MB/s into one pod's file with rotations. Counts the delivered lines, and watches memory after the first minute. */
export async function soak(seconds: number): Promise<object> {
  await using agent = await OneAgent.start(scenarios['cri-json-http'].config)
  const { receiver, pid, log: file } = agent
  const samples: number[] = []
  const rotated: string[] = []
  let written = 0
  appendFileSync(file, `${criLine(written++)}\n`)
  const startCpu = await agent.cpuToFirstLine()
  const started = performance.now()
  const perTurn = Math.round((5_000_000 / 318) * 0.1)
  for (let turn = 1; performance.now() - started < seconds * 1000; turn++) {
    let text = ''
    for (let index = 0; index < perTurn; index++) text += `${criLine(written++)}\n`
    appendFileSync(file, text)
    if (statSync(file).size > 10_000_000) {
      const name = `${file}.${String(turn).padStart(8, '0')}`
      renameSync(file, name)
      writeFileSync(file, '')
      rotated.push(name)
      if (rotated.length > 4) unlinkSync(rotated.shift() as string)
    }
    if (performance.now() - started > Math.min(60_000, seconds * 300)) samples.push(rssMb(pid))
    await wait(Math.max(0, turn * 100 - (performance.now() - started)))
  }
  const cores = (processCpu(pid) - startCpu) / ((performance.now() - started) / 1000)
  await receiver.until(() => receiver.received() >= written, 10_000, agent.process)
  return {
    scenario: 'soak',
    seconds,
    written,
    received: receiver.received(),
    start_cpu_s: round(startCpu),
    cores: round(cores),
    rss_first_third_mb: Math.round(mean(firstThird(samples))),
    rss_last_third_mb: Math.round(mean(lastThird(samples))),
    peak_rss_mb: Math.round(peakRss(pid) ?? 0),
  }
}
