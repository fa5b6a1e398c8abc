import { describe, expect, test } from 'vitest'
import type { Condition } from '../api/conditions.ts'
import {
  extentOf,
  mayHold,
  type Share,
  Standstill,
  servingStateOf,
  settledMs,
  shareText,
  startingMs,
} from './turnout.ts'

const now = 1_000_000

test.each([
  ['has not reported yet', undefined, false, 'starting'],
  ['never came', undefined, true, 'lost'],
  ['runs what is in force', { revision: 'r2', hasServed: false, heardSince: now }, false, 'serving'],
  ['fell silent', { revision: 'r2', hasServed: true, heardSince: 0 }, true, 'lost'],
  ['has loaded nothing yet', { revision: undefined, hasServed: false, heardSince: now - 1000 }, false, 'starting'],
  ['begins with what was on its disk', { revision: 'r1', hasServed: false, heardSince: now - 1000 }, false, 'starting'],
  ['is late with a new revision', { revision: 'r1', hasServed: true, heardSince: now - 1000 }, false, 'serving'],
  ['loads nothing', { revision: undefined, hasServed: false, heardSince: now - startingMs }, false, 'serving'],
] as const)('an agent that %s', (_, report, isLost, state) => {
  expect(servingStateOf(report, isLost, ['r2', 'r3'], now)).toBe(state)
})

const share = (current: number, serving: number, starting = 0, lost = 0, earlier = 0): Share => ({
  current,
  earlier,
  serving,
  starting,
  lost,
})

test.each([
  [share(0, 0), 'podless', '0 of 0 agents run it.'],
  [share(0, 0, 1), 'unheard', '0 of 1 agent runs it; 1 starts.'],
  [share(0, 0, 0, 2), 'unheard', '0 of 2 agents run it; 2 are silent.'],
  [share(0, 3), 'nowhere', '0 of 3 agents run it.'],
  [share(2, 3), 'somewhere', '2 of 3 agents run it.'],
  [share(3, 3), 'everywhere', '3 of 3 agents run it.'],
  [share(3, 3, 2, 1), 'everywhere', '3 of 6 agents run it; 2 start, 1 is silent.'],
  [share(1, 2, 1), 'somewhere', '1 of 3 agents runs it; 1 starts.'],
  [share(0, 3, 0, 1, 2), 'before', '0 of 4 agents run it; 2 run an earlier version, 1 is silent.'],
  [share(2, 3, 0, 0, 1), 'somewhere', '2 of 3 agents run it; 1 runs an earlier version.'],
])('%j is %s', (counts, extent, text) => {
  expect(extentOf(counts)).toBe(extent)
  expect(shareText(counts)).toBe(text)
})

describe('the numbers of a status', () => {
  const programmed = (status: 'True' | 'False', observedGeneration: number): Condition[] => [
    { type: 'Programmed', status, reason: 'x', message: '', observedGeneration, lastTransitionTime: '' },
  ]
  const agents = [{ name: 'system/node', revision: 'a' }]
  test.each([
    ['it is in force where agents serve', { conditions: programmed('True', 2), agents }, 'everywhere', true],
    ['none serves at the moment', { conditions: programmed('True', 2), agents }, 'unheard', true],
    ['the only pod is being replaced', { conditions: programmed('True', 2), agents }, 'podless', true],
    ['an agent that serves does not run it', { conditions: programmed('True', 2), agents }, 'somewhere', false],
    ['none of those that serve runs it', { conditions: programmed('True', 2), agents }, 'nowhere', false],
    ['they run an earlier version', { conditions: programmed('True', 2), agents }, 'before', false],
    ['it was not in force', { conditions: programmed('False', 2), agents }, 'everywhere', false],
    ['its generation is another', { conditions: programmed('True', 1), agents }, 'everywhere', false],
    [
      'its content is another',
      { conditions: programmed('True', 2), agents: [{ name: 'system/node', revision: 'b' }] },
      'everywhere',
      false,
    ],
    ['another Agent has it', { conditions: programmed('True', 2), agents: [] }, 'everywhere', false],
    ['no report exists', undefined, 'everywhere', false],
  ] as const)('where %s', (_, before, extent, holds) => {
    expect(mayHold(before, agents, extent, 2)).toBe(holds)
  })
})

test('pods of an Agent count as stable after some minutes without a change', () => {
  const standstill = new Standstill()
  const two = { serving: 2, starting: 0, lost: 0 }
  expect(standstill.isSettled('a', two, 0)).toBe(false)
  expect(standstill.isSettled('a', two, settledMs)).toBe(true)
  expect(standstill.isSettled('b', two, settledMs)).toBe(false)
  expect(standstill.isSettled('a', { ...two, starting: 1 }, settledMs + 1)).toBe(false)
  expect(standstill.isSettled('a', two, settledMs + 2)).toBe(false)
  expect(standstill.isSettled('a', two, 2 * settledMs + 2)).toBe(true)
})
