// `npm run fuzz -- [--seconds N] [--seed N] [--cases N]`: runs random programs of the remap language on random events. The generated code
// must match a simple evaluator, results must have the kind that the checker promises, and nothing may throw, hang, change its input or
// pollute a prototype. A quarter of the programs check properties of all values: encoders and decoders, regular expressions, and parsers
// on mutated lines. Others call one function with odd arguments. If it finds a problem, it prints a smaller case and exits with 1.

import { runScript } from '../tools/script.ts'
import { described } from './inspect.ts'
import { fuzz } from './run.ts'

function run(seed: number, seconds: number, max: number): number {
  process.stdout.write(`seed ${seed}\n`)
  const { cases, compiled, failed, found } = fuzz({
    seed,
    seconds,
    cases: max,
    timeoutMs: 10_000,
  })
  process.stdout.write(`${cases} programs, of which ${compiled} compiled; ${failed} runs failed as expected\n`)
  if (found === undefined) return 0
  const { test, problem } = found
  process.stdout.write(
    [
      `\n${problem.what} (to repeat: npm run fuzz -- --cases 1 --seed ${found.seed})`,
      `owned: ${test.owned}, keepResult: ${test.keepResult}, metadata: ${described(test.metadata)}`,
      `events: ${test.events.map(described).join('\n        ')}`,
      `\n${test.source}\n`,
      problem.text.length > 4000 ? `${problem.text.slice(0, 4000)} …` : problem.text,
      '',
    ].join('\n'),
  )
  return 1
}

await runScript({
  call: 'npm run fuzz --',
  about:
    'Runs random programs of the remap language on random events until the time is up or one has a problem (exit code 1).',
  flags: {
    seconds: { type: 'string', number: 'any', value: 'N', help: 'Duration (60).' },
    seed: {
      type: 'string',
      number: 'whole',
      value: 'N',
      help: 'Seed of the first program; random by default.',
    },
    cases: { type: 'string', number: 'whole', minimum: 1, value: 'N', help: 'Maximum number of programs.' },
  },
  run: ({ flags: { seed = Date.now() % 1_000_000_000, seconds = 60, cases = Number.POSITIVE_INFINITY } }) =>
    run(seed, seconds, cases),
})
