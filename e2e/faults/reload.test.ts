// Reloads while lines are in flight: events that a sink still has to deliver are neither lost nor read again.

import { appendFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { startAgent } from '../agent.ts'
import { arrivalSink, numbered, refusedAgain, startArrivals } from '../arrivals.ts'
import { until } from '../command.ts'

test('five reloads of a tailing source with a failing sink lose and duplicate nothing', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'penstock-reload-'))
  const path = join(folder, 'app.log')
  const perRound = 5000
  const rounds = 5
  const count = perRound * (rounds + 1)
  await using arrivals = await startArrivals(count)
  const config = (round: number) => ({
    sources: { in: { type: 'file', include: [path], max_line_bytes: 1000 + round } },
    sinks: { out: { ...arrivalSink(arrivals, 'in'), buffer: { max_events: 50_000 } } },
  })
  let written = 0
  const write = async () => {
    const lines = Array.from({ length: perRound }, (_, index) => `${numbered(written + index)}\n`)
    written += perRound
    await appendFile(path, lines.join(''))
  }
  try {
    await write()
    await using agent = await startAgent(config(0))
    await arrivals.reached(perRound, 60_000)
    const reloads = () => agent.output().split('The new configuration is active.').length - 1
    for (let round = 1; round <= rounds; round++) {
      arrivals.failing = true
      await write()
      await refusedAgain(arrivals, agent)
      await agent.reload(config(round))
      await until('the reload', 30_000, async () => reloads() >= round).catch((error: unknown) => {
        throw new Error(agent.output(), { cause: error })
      })
      arrivals.failing = false
      await arrivals.reached(written - perRound, 60_000)
    }
    await arrivals.reached(count, 60_000).catch(() => {}) // the assertions below show missing messages
    expect(arrivals.missing(), agent.output()).toEqual([])
    expect(await agent.stop(), agent.output()).toBe(0)
    expect(arrivals.doubled).toBe(0)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
})
