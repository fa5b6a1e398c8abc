// For any sequence of changes, failures, lost and new nodes, and restarts of the operator: no content reaches more agents than permitted
// before its trial, no harmful content stays, and each good content reaches all agents, independent of the others. The test controls time.

import { expect, test } from 'vitest'
import { type Harm, RolloutBench } from '../../testing/rollout-bench.ts'

const clock = { now: Date.parse('2026-01-01T00:00:00Z') }

const names = ['a', 'b', 'c', 'd', 'e'] as const
const canaryPercent = 10
const bakeMs = 60_000
const rollout = { canary: { percent: canaryPercent, bake: '60s' }, step: { percent: 30, bake: '30s' } }

/** Numbers in [0, 1), equal for equal seeds. */
function numbers(seed: number): () => number {
  let state = seed * 2_654_435_761
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
}

class Sequence {
  readonly bench = new RolloutBench(clock, 12, rollout)
  readonly #next: () => number
  readonly #versions = new Map<string, number>(names.map((name) => [name, 1]))
  readonly log: string[] = []
  /** Since when each tried content runs on a first agent; undefined: it does not run on any agent yet. */
  #tried = new Map<string, number | undefined>()
  #nodes = 12

  constructor(seed: number) {
    this.#next = numbers(seed)
  }

  #pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.#next() * from.length)] as T
  }

  want(): void {
    this.bench.want(...names.map((name) => `${name}${this.#versions.get(name)}`))
  }

  async event(): Promise<void> {
    const { bench } = this
    const kind = this.#next()
    if (kind < 0.5) {
      const name = this.#pick(names)
      const version = (this.#versions.get(name) ?? 0) + 1
      this.#versions.set(name, version)
      const harm = this.#pick<Harm | undefined>([undefined, undefined, 'fails', 'crashes', 'waits', 'hangs'])
      if (harm !== undefined) bench.harms.set(`${name}${version}`, harm)
      this.log.push(`${name}${version} ${harm ?? 'good'}`)
      this.want()
    } else if (kind < 0.6) {
      this.log.push(`n${this.#nodes} joins`)
      bench.join(`n${this.#nodes++}`)
    } else if (kind < 0.75) {
      const [name, node] = this.#pick([...bench.nodes])
      node.isSilent = !node.isSilent && bench.alive > 6
      this.log.push(`${name} ${node.isSilent ? 'lost' : 'there'}`)
    } else if (kind < 0.85) {
      await this.#settle()
      const before = bench.writes
      // Another process takes over: one that has just started, or one that has been waiting for it.
      bench.restartOperator(this.#pick([0, 3_600_000]))
      await this.#settle()
      this.log.push('restart')
      expect(bench.writes - before, this.log.join(', ')).toBe(0)
    } else if (kind < 0.95) {
      const replaced = this.#pick([[this.#pick([...bench.nodes.keys()])], [...bench.nodes.keys()]])
      this.log.push(`${replaced.length === 1 ? replaced : 'all pods'} replaced`)
      for (const name of replaced) bench.remove(name)
      for (const _ of [1, 2]) {
        await this.#settle()
        clock.now += 5000
      }
      for (const name of replaced) bench.replace(name)
    }
    const seconds = this.#pick([0, 5, 20, 60, 200])
    this.log.push(`+${seconds}`)
    await this.#settle()
    for (let passed = 0; passed < seconds; passed += 5) {
      clock.now += 5000
      await this.#settle()
    }
  }

  async #settle(): Promise<void> {
    await this.bench.settle()
    this.#look()
  }

  /** Content is offered only to the first agents until one of them has run it for the required time. */
  #look(): void {
    const { candidate, stable, later = [] } = this.bench.manifest
    const { record } = this.bench.delivered
    const stableContents = this.bench.contents.get(stable?.rev ?? '') ?? new Map<string, string>()
    let before = stableContents
    const known = this.#tried
    this.#tried = new Map()
    for (const [index, trial] of (candidate === undefined ? [] : [candidate, ...later]).entries()) {
      const contents = this.bench.contents.get(trial.rev) ?? new Map<string, string>()
      for (const [id, content] of contents) {
        if (before.get(id) === content) continue
        const since = known.get(content) ?? (this.bench.count(content) > 0 ? clock.now : undefined)
        this.#tried.set(content, since)
        const { step } = index === 0 ? record : (record.later?.[index - 1] ?? {})
        if (step === 0 && trial.percent < 100) continue
        expect(since !== undefined && clock.now - since >= bakeMs, `${content} of ${this.log.join(', ')}`).toBe(true)
      }
      before = contents
    }
    for (const content of stableContents.values())
      expect(this.bench.harms.get(content), `${content} is stable, of ${this.log.join(', ')}`).toBeUndefined()
  }

  /** The desired content of each Pipeline whose content is good. */
  get good(): readonly string[] {
    return this.bench.wanted.filter((content) => !this.bench.harms.has(content))
  }

  async quiet(): Promise<void> {
    for (let passed = 0; passed < 7200; passed += 20) {
      clock.now += 20_000
      await this.#settle()
    }
  }
}

const seeds = Array.from(
  { length: Number(process.env['SEEDS'] ?? 8) },
  (_, index) => index + Number(process.env['SEED'] ?? 1),
)

test.each(seeds)('sequence %i', async (seed) => {
  const sequence = new Sequence(seed)
  const { bench, log } = sequence
  sequence.want()
  await bench.pass(400)
  for (let turn = 0; turn < 25; turn++) await sequence.event()
  await sequence.quiet()
  const history = () => `${log.join(', ')}; ${JSON.stringify(bench.delivered.record)} ${bench.delivered.why}`
  for (const content of sequence.good) expect(bench.count(content), `${content}: ${history()}`).toBe(bench.alive)
  for (const content of bench.rolledBack) expect(bench.harms.get(content), history()).toBeDefined()
  const { writes } = bench
  await bench.pass(3600, 60)
  expect(bench.writes, history()).toBe(writes)
})
