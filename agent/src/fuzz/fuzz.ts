// `npm run fuzz -- [--seconds N] [--seed N] [--cases N]`: random programs of the remap language on random events. The generated code
// must match a plain evaluator, results must have the kind that the checker promises, and nothing may throw, hang, change its input or
// pollute a prototype. A quarter of the programs are properties of all values: encoders and decoders, regular expressions, and parsers
// on mutated lines. Prints a smaller case if it finds a problem, and exits with 1.

import { runScript } from '../tools/script.ts'
import { described } from './inspect.ts'
import { fuzz } from './run.ts'

function run(seed: number, seconds: number, most: number): number {
  process.stdout.write(`seed ${seed}\n`)
  const { cases, compiled, failed, found } = fuzz({
    seed,
    seconds,
    cases: most,
    timeoutMs: 10_000,
  })
  process.stdout.write(`${cases} programs, of which ${compiled} compiled; ${failed} runs failed as they should\n`)
  if (found === undefined) return 0
  const { test, problem } = found
  process.stdout.write(
    [
      `\n${problem.what} (again with: npm run fuzz -- --cases 1 --seed ${found.seed})`,
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
    'Random programs of the remap language on random events, until the time is up or one shows a problem (exit code 1).',
  flags: {
    seconds: { type: 'string', number: 'any', value: 'N', help: 'How long (60).' },
    seed: {
      type: 'string',
      number: 'whole',
      value: 'N',
      help: 'Seed of the first program; a random one by default.',
    },
    cases: { type: 'string', number: 'whole', minimum: 1, value: 'N', help: 'How many programs at most.' },
  },
  run: ({ flags: { seed = Date.now() % 1_000_000_000, seconds = 60, cases = Number.POSITIVE_INFINITY } }) =>
    run(seed, seconds, cases),
})
