// `npm run fuzz -- [--seconds N] [--seed N] [--cases N]`: random programs of the remap language on random events. The generated
// code must do what a plain evaluator does, and nothing may throw, hang, change its input or pollute a prototype.
// Prints a smaller case when it finds a problem; the exit code is 1 then.

import { parseArgs } from 'node:util'
import { described } from './fuzz/inspect.ts'
import { fuzz } from './fuzz/run.ts'

function main(argv: readonly string[]): number {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      seconds: { type: 'string', default: '60' },
      seed: { type: 'string' },
      cases: { type: 'string' },
    },
  })
  const seed = values.seed === undefined ? Date.now() % 1_000_000_000 : Number(values.seed)
  process.stdout.write(`seed ${seed}\n`)
  const { cases, compiled, failed, found } = fuzz({
    seed,
    seconds: Number(values.seconds),
    cases: values.cases === undefined ? Number.POSITIVE_INFINITY : Number(values.cases),
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

process.exitCode = main(process.argv.slice(2))
