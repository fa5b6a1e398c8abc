// Leaders on machines with different clocks: times in the record of a rollout are those of the process that wrote them.

import { expect, test } from 'vitest'
import { RolloutBench } from '../../testing/rollout-bench.ts'

const dayMs = 86_400_000

test.each([-dayMs, -600_000, 600_000, dayMs])(
  'a rollout reaches all agents if the clock of the next leader differs by %i ms',
  async (differenceMs) => {
    for (const seconds of [10, 40, 75, 100]) {
      const clock = { now: Date.parse('2026-01-01T00:00:00Z') + 0.372 }
      const bench = new RolloutBench(clock, 20)
      bench.want('a1', 'b1')
      await bench.settle()
      await bench.pass(120)
      bench.harms.set('b2', 'crashes')
      bench.want('a2', 'b1', 'p1')
      await bench.pass(seconds)
      clock.now += differenceMs
      bench.restartOperator()
      expect(await bench.until('a2', 240), `after ${seconds} s`).toBeDefined()
      // A harmful change is found and rolled back as usual.
      bench.want('a2', 'b2', 'p1')
      await bench.pass(60)
      clock.now += differenceMs
      bench.restartOperator()
      await bench.pass(600)
      expect([bench.count('b1'), bench.rolledBack]).toEqual([20, ['b2']])
    }
  },
)
