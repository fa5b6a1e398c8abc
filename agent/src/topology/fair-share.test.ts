// Work is counted rather than timed: each piece charges its cost, and turns follow the order of requests.

import { expect, test } from 'vitest'
import { FairShare } from './fair-share.ts'

/** A pipeline that always has more work; each piece has this cost. */
function busy(shares: FairShare, name: string, weight: number, costMs: number, total: { spentMs: number }) {
  const account = shares.open(name, weight)
  const worker = { name, account, pieces: 0, costMs }
  const run = async (untilMs: number) => {
    while (total.spentMs < untilMs) {
      await shares.turn(account)
      if (total.spentMs >= untilMs) return
      account.charge(worker.costMs)
      total.spentMs += worker.costMs
      worker.pieces++
    }
  }
  return { ...worker, run, used: () => account.usedMs }
}

test('if CPU time is short, each pipeline gets its share by weight, for any cost of its work', async () => {
  const shares = new FairShare()
  const total = { spentMs: 0 }
  const light = Array.from({ length: 9 }, (_, index) => busy(shares, `light-${index}`, 100, 1, total))
  const heavy = busy(shares, 'heavy', 100, 50, total)
  const wide = busy(shares, 'wide', 300, 3, total)
  await Promise.all([...light, heavy, wide].map((worker) => worker.run(13_000)))
  // Thirteen shares of 1000 ms; no pipeline deviates by more than the largest piece of work.
  for (const worker of [...light, heavy]) expect(Math.abs(worker.used() - 1000)).toBeLessThanOrEqual(50)
  expect(Math.abs(wide.used() - 3000)).toBeLessThanOrEqual(150)
})

test('several sources of a pipeline share its time', async () => {
  const shares = new FairShare()
  const total = { spentMs: 0 }
  const one = busy(shares, 'one', 100, 1, total)
  const many = Array.from({ length: 5 }, () => busy(shares, 'many', 100, 1, total))
  await Promise.all([one, ...many].map((worker) => worker.run(1000)))
  expect(Math.abs(one.used() - 500)).toBeLessThanOrEqual(5)
})

test('serves small requests at once, and saves nothing for idle members', async () => {
  const shares = new FairShare()
  const total = { spentMs: 0 }
  const heavy = busy(shares, 'heavy', 100, 50, total)
  const other = busy(shares, 'other', 100, 50, total)
  const light = shares.open('light', 100)
  const waited: number[] = []
  const seldom = async () => {
    while (total.spentMs < 20_000) {
      const before = total.spentMs
      await shares.turn(light)
      waited.push(total.spentMs - before)
      light.charge(1)
      const until = total.spentMs + 200
      while (total.spentMs < Math.min(until, 20_000)) await new Promise((resolve) => setImmediate(resolve))
    }
  }
  await Promise.all([heavy.run(20_000), other.run(20_000), seldom()])
  expect(waited.length).toBeGreaterThan(50)
  expect(Math.max(...waited)).toBeLessThanOrEqual(100) // one piece of each other pipeline

  // It becomes active again after all this time, requests everything, and gets its third.
  const back = busy(shares, 'light', 100, 1, total)
  const [before, from] = [light.usedMs, total.spentMs]
  await Promise.all([heavy, other, back].map((worker) => worker.run(from + 3000)))
  expect(Math.abs(light.usedMs - before - 1000)).toBeLessThanOrEqual(100)
})

test('a changed weight counts from then on', async () => {
  const shares = new FairShare()
  const total = { spentMs: 0 }
  const [one, two] = [busy(shares, 'one', 100, 1, total), busy(shares, 'two', 100, 1, total)]
  await Promise.all([one.run(1000), two.run(1000)])
  shares.open('two', 300)
  await Promise.all([one.run(2000), two.run(2000)])
  expect(Math.abs(two.used() - 1250)).toBeLessThanOrEqual(5)
})
