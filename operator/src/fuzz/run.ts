// Compiles and renders cases one after another, and checks the files they open, their cost and their results. A case has its own seed, so
// it can be repeated alone.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { PipelinePart } from '@penstock/agent/testing/operator'
import type { Artifact } from '../compile/artifact.ts'
import { type CompileResult, compileJob } from '../compile/job.ts'
import { compileLimits } from '../compile/pool.ts'
import { problemOf, victimPartOf } from './judge.ts'
import { watchOpened } from './opened.ts'
import { type Bait, caseOf, disturbed, foreignKeys, type TenantCase } from './tenant.ts'
import { jobOf, victimPipeline } from './world.ts'

/** CPU limit of one case, which is the sum of the limits for a compile and for its unit tests. */
const cpuLimitMs = compileLimits.compileMs + compileLimits.testsMs
const memoryLimitMb = compileLimits.memoryMb

export interface Tally {
  cases: number
  accepted: number
  /** Components in accepted Pipelines, by kind and type. */
  readonly types: Record<string, number>
  slowest: { readonly seed: number; readonly ms: number }
  largest: { readonly seed: number; readonly mb: number }
}

export interface Found {
  readonly seed: number
  readonly problem: string
  readonly test: TenantCase
}

/** Number of harmless cases; the accepted ones are then mutated. */
const baseSeeds = 600

/** Text that exists only in the bait file and in the environment. */
const secretText = 'bait-7f3a9c1e5d'

export class Harness implements Disposable {
  readonly tally: Tally = {
    cases: 0,
    accepted: 0,
    types: {},
    slowest: { seed: 0, ms: 0 },
    largest: { seed: 0, mb: 0 },
  }
  readonly #folder = mkdtempSync(join(tmpdir(), 'penstock-hostile-'))
  readonly #bait: Bait
  readonly #victim: Artifact
  readonly #alone: PipelinePart
  readonly #opened: ReturnType<typeof watchOpened>
  readonly #bases: TenantCase[] = []

  private constructor(victim: Artifact, alone: PipelinePart) {
    this.#victim = victim
    this.#alone = alone
    this.#bait = { path: join(this.#folder, 'token'), variable: 'PENSTOCK_HOSTILE_BAIT' }
    writeFileSync(this.#bait.path, JSON.stringify({ token: secretText }))
    process.env[this.#bait.variable] = secretText
    this.#opened = watchOpened()
  }

  static async open(): Promise<Harness> {
    const { artifact, problems } = await compileJob(jobOf(victimPipeline, [], undefined))
    if (artifact === undefined) throw new Error(`The victim's own Pipeline is refused: ${JSON.stringify(problems)}`)
    for (const { key } of artifact.secretRefs) if (!foreignKeys.includes(key)) foreignKeys.push(key)
    const harness = new Harness(artifact, await victimPartOf(artifact))
    await harness.#collect()
    return harness
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true })
  }

  /** Finds accepted cases without changes. This also loads libraries that are loaded lazily. */
  async #collect(): Promise<void> {
    for (let seed = 1; seed <= baseSeeds; seed++) {
      const test = caseOf(seed, this.#bait, 0)
      const { artifact } = await compileJob(jobOf(test.pipeline, test.own, test.policy))
      if (artifact !== undefined) this.#bases.push(test)
    }
    if (this.#bases.length < baseSeeds / 10)
      throw new Error(`Only ${this.#bases.length} of ${baseSeeds} cases are accepted.`)
  }

  /** Two of three cases are accepted cases with a mutation; the others are generated from scratch. */
  caseOf(seed: number): TenantCase {
    const base = this.#bases[seed % this.#bases.length] as TenantCase
    return seed % 3 === 0 ? caseOf(seed, this.#bait) : disturbed(base, seed, this.#bait)
  }

  /** Runs one case, and returns its problem if it has one. */
  async run(seed: number): Promise<Found | undefined> {
    const test = this.caseOf(seed)
    const problem = await this.#problemOf(seed, test)
    return problem === undefined ? undefined : { seed, problem, test }
  }

  async #problemOf(seed: number, { pipeline, own, policy }: TenantCase): Promise<string | undefined> {
    const job = jobOf(pipeline, own, policy)
    this.#opened.reported()
    const cpu = process.cpuUsage()
    const peak = process.resourceUsage().maxRSS
    let result: CompileResult
    try {
      result = await compileJob(job)
    } catch (error) {
      return `the compile threw: ${error instanceof Error ? error.stack : String(error)}`
    }
    const { user, system } = process.cpuUsage(cpu)
    const cpuMs = (user + system) / 1000
    const mb = (process.resourceUsage().maxRSS - peak) / 1024
    const { tally } = this
    tally.cases++
    if (cpuMs > tally.slowest.ms) tally.slowest = { seed, ms: cpuMs }
    if (mb > tally.largest.mb) tally.largest = { seed, mb }
    const { artifact, ...verdict } = result
    const opened = this.#opened.reported()
    if (opened.length > 0) return `the compile opened ${opened.join(', ')}`
    if (cpuMs > cpuLimitMs) return `the compile took ${cpuMs.toFixed(0)} ms of CPU time; its limit is ${cpuLimitMs} ms`
    if (mb > memoryLimitMb) return `the compile took ${mb.toFixed(0)} MiB more; its limit is ${memoryLimitMb} MiB`
    if (JSON.stringify(verdict).includes(secretText))
      return `the verdict contains text of a file or the environment: ${JSON.stringify(verdict.accepted)}`
    if (artifact === undefined) {
      const refused = verdict.problems.some(({ severity }) => severity === 'error')
      return refused ? undefined : 'there is neither an artifact nor a problem'
    }
    tally.accepted++
    for (const list of ['sources', 'transforms', 'sinks'] as const)
      for (const { type } of Object.values(artifact[list])) count(tally.types, `${list} ${String(type)}`)
    if (artifact.hub.subscriptions.length > 0) count(tally.types, 'sources orchestrator_logs')
    const problem = await problemOf(
      artifact,
      this.#victim,
      this.#alone,
      policy?.limits !== undefined,
      this.#bait.path.replace(/token$/, 'data'),
    )
    if (problem !== undefined) return problem
    if (JSON.stringify(artifact).includes(secretText)) return 'the artifact contains text of a file or the environment'
    const late = this.#opened.reported()
    return late.length > 0 ? `rendering it, or loading it into an agent, opened ${late.join(', ')}` : undefined
  }
}

function count(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1
}
