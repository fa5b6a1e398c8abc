// Runs cases one after another until the time is up or one has a problem. A case has its own seed, so it can be repeated alone.

import { Random } from '../testing/random.ts'
import { randomCall } from './calls.ts'
import { type Case, isTimeout, type Problem, runCase, within } from './case.ts'
import { anyNames, fewNames, randomObject } from './events.ts'
import { minimised } from './minimise.ts'
import { damagedProgram } from './mutate.ts'
import { randomProgram } from './programs.ts'
import { randomProperty } from './properties.ts'

export interface FuzzOptions {
  /** Seed of the first case. It increases by one for each case. */
  readonly seed: number
  /** The time after which no further case begins. */
  readonly seconds: number
  /** Maximum number of cases. */
  readonly cases: number
  /** Time limit of one case. */
  readonly timeoutMs: number
}

export interface Fuzzed {
  readonly cases: number
  readonly compiled: number
  /** Number of runs that ended in an error or abort. */
  readonly failed: number
  readonly found: { readonly seed: number; readonly test: Case; readonly problem: Problem } | undefined
}

function caseOf(seed: number): Case {
  const random = new Random(seed)
  if (random.chance(0.25)) return randomProperty(random)
  if (random.chance(0.2)) return randomCall(random)
  const core = random.chance(0.5)
  const names = core ? fewNames : anyNames
  return {
    source: !core && random.chance(0.5) ? damagedProgram(random) : randomProgram(random, core),
    events: Array.from({ length: 3 }, () => randomObject(random, 3, names)),
    metadata: randomObject(random, 2, names),
    owned: random.chance(0.7),
    keepResult: random.chance(0.6),
  }
}

/** The case of a seed. Programs are checked while they are generated, so this may take too long as well. */
function generated(seed: number, timeoutMs: number): { test: Case; problem: Problem } | { test: Case } {
  try {
    return { test: within(timeoutMs, () => caseOf(seed)) }
  } catch (error) {
    if (!isTimeout(error)) throw error
    const test = { source: '', events: [], metadata: {}, owned: false, keepResult: false }
    return { test, problem: { what: 'hang', text: 'The program could not be generated in time.' } }
  }
}

export function fuzz(options: FuzzOptions): Fuzzed {
  const end = Date.now() + options.seconds * 1000
  let cases = 0
  let compiled = 0
  let failed = 0
  for (let seed = options.seed; cases < options.cases && Date.now() < end; seed++) {
    cases++
    const made = generated(seed, options.timeoutMs)
    if ('problem' in made) return { cases, compiled, failed, found: { seed, ...made } }
    const { test } = made
    const verdict = runCase(test, options.timeoutMs)
    if (verdict.compiled) compiled++
    failed += verdict.failed
    if (verdict.problem !== undefined) {
      // A shortened property is a different property.
      const smaller =
        test.holds !== undefined
          ? { test, problem: verdict.problem }
          : minimised(test, verdict.problem, options.timeoutMs, 10_000)
      return { cases, compiled, failed, found: { seed, ...smaller } }
    }
  }
  return { cases, compiled, failed, found: undefined }
}
