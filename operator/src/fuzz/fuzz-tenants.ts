// `npm run fuzz:tenants -- [--cases N] [--seed N] [--go-on]`: compiles and renders generated Pipelines of a hostile tenant together with
// the Pipeline of another tenant. The result must contain nothing from other tenants, and no case may open a file, throw or exceed the
// limits. If it finds a problem, it prints the whole case and exits with 1.

import { fork } from 'node:child_process'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { runScript } from '@penstock/agent/tools/script'
import type { Found, Tally } from './run.ts'

/** The messages of a process that runs cases. */
export type Report = { readonly found: Found } | { readonly tally: Tally }

const ownFile = fileURLToPath(new URL('process.ts', import.meta.url))

interface Outcome {
  readonly found: Found[]
  readonly tallies: Tally[]
  readonly crash: string | undefined
}

/** Runs every `step`-th seed in a separate process. */
function runSome(from: number, to: number, step: number, continues: boolean): Promise<Outcome> {
  return new Promise((resolve) => {
    const found: Found[] = []
    const tallies: Tally[] = []
    let last = from
    const child = fork(ownFile, [String(from), String(to), String(step), String(continues)], {
      execArgv: [...process.execArgv, '--max-old-space-size=1024'],
    })
    child.on('message', (report: Report | { readonly at: number }) => {
      if ('found' in report) found.push(report.found)
      else if ('tally' in report) tallies.push(report.tally)
      else last = report.at
    })
    child.on('exit', (code, signal) => {
      const crash = code === 0 ? undefined : `a process ended with ${code ?? signal} at seed ${last} or soon after`
      resolve({ found, tallies, crash })
    })
  })
}

async function run(seed: number, cases: number, continues: boolean): Promise<number> {
  process.stdout.write(`seed ${seed}\n`)
  const processes = Math.min(availableParallelism(), cases)
  const outcomes = await Promise.all(
    Array.from({ length: processes }, (_, index) => runSome(seed + index, seed + cases, processes, continues)),
  )
  const tallies = outcomes.flatMap((outcome) => outcome.tallies)
  const sum = (of: (tally: Tally) => number) => tallies.reduce((total, tally) => total + of(tally), 0)
  const slowest = tallies.map((tally) => tally.slowest).sort((left, right) => right.ms - left.ms)[0]
  const largest = tallies.map((tally) => tally.largest).sort((left, right) => right.mb - left.mb)[0]
  const types = new Set(tallies.flatMap((tally) => Object.keys(tally.types)))
  process.stdout.write(
    `${sum((tally) => tally.cases)} Pipelines, of which ${sum((tally) => tally.accepted)} were accepted, with ${types.size} types of components; ` +
      `the slowest (seed ${slowest?.seed}) took ${slowest?.ms.toFixed(0)} ms of CPU time, the largest (seed ${largest?.seed}) ${largest?.mb.toFixed(0)} MiB\n`,
  )
  const found = outcomes.flatMap((outcome) => outcome.found).sort((left, right) => left.seed - right.seed)
  const shown = continues ? found : found.slice(0, 1)
  for (const { seed: own, problem, test } of shown) {
    process.stdout.write(`\n${problem}\n(to repeat: npm run fuzz:tenants -- --cases 1 --seed ${own})\n`)
    process.stdout.write(continues ? '' : `${JSON.stringify(test, undefined, 2)}\n`)
  }
  const crashes = outcomes.flatMap(({ crash }) => crash ?? [])
  for (const crash of crashes) process.stdout.write(`\n${crash}\n`)
  return found.length + crashes.length > 0 ? 1 : 0
}

await runScript({
  call: 'npm run fuzz:tenants --',
  about:
    'Compiles and renders generated Pipelines of a hostile tenant until all are done, or until one has a problem (exit code 1).',
  flags: {
    cases: { type: 'string', number: 'whole', minimum: 1, value: 'N', help: 'Number of Pipelines (20000).' },
    seed: { type: 'string', number: 'whole', value: 'N', help: 'Seed of the first case; random by default.' },
    'go-on': { type: 'boolean', help: 'Continue after a problem, and list all problems.' },
  },
  run: ({ flags: { seed = Date.now() % 1_000_000_000, cases = 20_000, 'go-on': continues } }) =>
    run(seed, cases, continues),
})
