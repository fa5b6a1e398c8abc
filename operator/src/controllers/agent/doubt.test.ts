// An agent ends while a change is tried on it, and a new Pipeline is there, too, which all other agents run unharmed. Only the lines of
// its node show which of them is the cause, so the change is to blame only if the agent ends with it twice, and not without it in between. The
// test controls time.

import { takesCandidate } from '@penstock/agent/bundle'
import { expect, test } from 'vitest'
import { idOf, RolloutBench } from '../../testing/rollout-bench.ts'

const clock = { now: Date.parse('2026-01-01T00:00:00Z') + 0.372 }

interface Case {
  readonly cause: string
  /** Whether the canary ends, by the seconds since the change and whether it runs the change. */
  readonly ends: (seconds: number, runsChange: boolean) => boolean
  readonly isToBlame: boolean
}

const cases: readonly Case[] = [
  { cause: 'the change', ends: (_, runsChange) => runsChange, isToBlame: true },
  { cause: 'the change, 30 s after each load', ends: (seconds, runs) => runs && seconds % 30 === 0, isToBlame: true },
  ...[10, 20, 40, 60].map(
    (each): Case => ({
      cause: `the new Pipeline, every ${each} s`,
      ends: (seconds) => seconds >= 20 && seconds % each === 0,
      isToBlame: false,
    }),
  ),
  // Ends that are rarer than the canary is observed look the same as those by the change.
  { cause: 'the new Pipeline, every 90 s', ends: (seconds) => seconds >= 20 && seconds % 90 === 20, isToBlame: true },
  { cause: 'the new Pipeline, once', ends: (seconds) => seconds === 20, isToBlame: false },
  { cause: 'the new Pipeline, every 5 min', ends: (seconds) => seconds % 300 === 20, isToBlame: false },
]

test.each([3, 20].flatMap((size) => cases.map((each) => ({ size, ...each }))))(
  'of $size agents, the canary is ended by $cause; the change is rolled back: $isToBlame',
  async ({ size, ends, isToBlame }) => {
    const bench = new RolloutBench(clock, size)
    bench.want('a1')
    await bench.settle()
    await bench.pass(120)
    for (const node of bench.nodes.values()) node.reads = [idOf('a1'), idOf('p1')]
    bench.want('a1', 'p1')
    await bench.pass(60)
    bench.want('a2', 'p1')
    await bench.settle()
    const { candidate } = bench.manifest
    const [canary = ''] = [...bench.nodes.keys()].filter(
      (name) => candidate !== undefined && takesCandidate(candidate, name),
    )
    expect(bench.count('a2')).toBeLessThan(size)
    for (let seconds = 5; seconds <= 900; seconds += 5) {
      if (ends(seconds, bench.holds(bench.nodes.get(canary)?.revision, 'a2'))) bench.end(canary)
      await bench.pass(5)
    }
    expect([bench.count('a2'), bench.rolledBack]).toEqual(isToBlame ? [0, ['a2']] : [size, []])
    expect(bench.count('p1'), 'the new Pipeline stays in any case').toBe(size)
  },
)
