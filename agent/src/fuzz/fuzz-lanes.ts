// `npm run fuzz:lanes -- [--seconds N] [--seed N] [--cases N]`: runs random programs on hostile pod lines, on both lanes. Resulting
// events, dropped events and counters must be the same. If they differ, it prints the programs and exits with 1.

import { runScript } from '../tools/script.ts'
import type { LaneStep } from './lane-programs.ts'
import { fuzzLanes } from './lanes.ts'

const shown = (steps: readonly LaneStep[]) =>
  steps.map((step) => JSON.stringify(step, undefined, 2).replaceAll('\\n', '\n')).join('\n')

await runScript({
  call: 'npm run fuzz:lanes --',
  about:
    'Runs random programs on hostile lines, as bytes and as objects, until the time is up or the results differ (exit code 1).',
  flags: {
    seconds: { type: 'string', number: 'any', value: 'N', help: 'Duration (30).' },
    seed: { type: 'string', number: 'whole', value: 'N', help: 'Seed of the first case; random by default.' },
    cases: { type: 'string', number: 'whole', minimum: 1, value: 'N', help: 'Maximum number of cases.' },
  },
  async run({ flags: { seed = Date.now() % 1_000_000_000, seconds = 30, cases = Number.POSITIVE_INFINITY } }) {
    process.stdout.write(`seed ${seed}\n`)
    const result = await fuzzLanes(seed, seconds, cases)
    const { found, events, asBytes, restored } = result
    process.stdout.write(
      `${result.cases} cases, ${events} events, of which ${asBytes} stayed bytes, and a buffer returned ${restored} as bytes\n`,
    )
    if (found === undefined) return 0
    process.stdout.write(
      `\nThe lanes differ (to repeat: npm run fuzz:lanes -- --cases 1 --seed ${found.seed})\n` +
        `${found.chains.map(shown).join('\n\n')}\n${found.problem}\n`,
    )
    return 1
  },
})
