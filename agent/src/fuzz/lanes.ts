// Passes hostile lines through random chains of programs, as bytes and as objects, and compares the results: JSON, sizes, order, fields,
// events of the output `dropped`, counters and errors. Some results continue to a disk buffer or to a sink that selects or groups fields.
// Batches may be sliced or shared between programs, several pipelines may share the reads and names of a pod, and results may be read
// after the memory of their lines was reused.

import assert from 'node:assert/strict'
import { ByteBatch } from '../bytes/byte-batch.ts'
import { chunkBytes } from '../bytes/chunks.ts'
import { CurrentKeys, SharedKeys } from '../bytes/current-keys.ts'
import type { Transform } from '../component.ts'
import { type Batch, type LogBatch, logBatch } from '../event/batch.ts'
import { Finalizer } from '../event/finalizer.ts'
import { LogEvent } from '../event/log.ts'
import { writeJson } from '../formats/json.ts'
import { compileCondition } from '../remap/condition.ts'
import { compileProgram } from '../remap/program.ts'
import { PodByteLane } from '../sources/orchestrator_logs/byte-lane.ts'
import { CriParser } from '../sources/orchestrator_logs/cri.ts'
import { BytePod, readTogether } from '../testing/byte-pod.ts'
import { buildTransform, RecordedEvents } from '../testing/harness.ts'
import { check, type Expected, expectedOf } from '../testing/lane-check.ts'
import { checkChosen, checkGroups, checkStored } from '../testing/lane-ways.ts'
import { Random } from '../testing/random.ts'
import { randomLines } from './lane-lines.ts'
import { type LaneStep, randomChain } from './lane-programs.ts'

export interface LaneFinding {
  readonly seed: number
  /** One chain per consumer of the lines. */
  readonly chains: readonly (readonly LaneStep[])[]
  readonly problem: string
}

export interface LaneResult {
  readonly cases: number
  /** Numbers of compared events, and of those that were still lines at the end. */
  readonly events: number
  readonly asBytes: number
  /** Number of events that a disk buffer returned as lines. */
  readonly restored: number
  readonly found: LaneFinding | undefined
}

/** Runs chains, beginning with `seed`, until the time is up or the lanes differ. */
export async function fuzzLanes(seed: number, seconds: number, max: number): Promise<LaneResult> {
  const end = performance.now() + seconds * 1000
  const pods = newPods()
  const total = { events: 0, asBytes: 0, restored: 0 }
  let cases = 0
  while (cases < max && performance.now() < end) {
    const random = new Random(seed + cases)
    const chains = Array.from({ length: random.chance(0.3) ? 3 : 1 }, () => compilingChain(random))
    try {
      await runCase(chains, pods, random, total)
    } catch (error) {
      const problem = error instanceof Error ? (error.stack ?? error.message) : String(error)
      return { ...total, cases, found: { seed: seed + cases, chains, problem } }
    }
    cases++
  }
  return { ...total, cases, found: undefined }
}

function compilingChain(random: Random): readonly LaneStep[] {
  for (;;) {
    const steps = randomChain(random)
    const compiles = ({ type, options }: LaneStep) =>
      type === 'remap' ? compileProgram(options.source).ok : compileCondition(options.condition).ok
    if (steps.every(compiles)) return steps
  }
}

/** The steps of one lane, with their counters. */
class Side {
  readonly #transforms: readonly Transform[]
  readonly #events: readonly RecordedEvents[]
  #dropped: string[] = []

  constructor(transforms: readonly Transform[], events: readonly RecordedEvents[]) {
    this.#transforms = transforms
    this.#events = events
  }

  static async of(steps: readonly LaneStep[], isBytes: boolean): Promise<Side> {
    const events = steps.map(() => new RecordedEvents())
    const globals = { remap: { network: false, byte_lane: isBytes } }
    const transforms = await Promise.all(
      steps.map(({ type, options }, index) => buildTransform(type, options, events[index], undefined, globals)),
    )
    return new Side(transforms, events)
  }

  /**
   * The batches after all steps; undefined if no event is left. @param from number of steps already taken @param forkAt a second consumer
   * gets the same events as this step
   */
  through(batch: LogBatch, forkAt: number, from = 0): readonly (LogBatch | undefined)[] {
    let current: Batch | undefined = batch
    let forked: readonly (LogBatch | undefined)[] = []
    for (const [step, transform] of this.#transforms.entries()) {
      if (current === undefined) break
      if (step < from) continue
      if (step === forkAt) forked = this.through((current as LogBatch).share(), -1, step)
      const before: Batch = current
      current = undefined
      void transform.transform(before, {
        send: (next, port) => {
          if (port === 'dropped') this.#drop(next)
          else current = next
          return undefined
        },
      })
    }
    return [current as LogBatch | undefined, ...forked]
  }

  #drop(batch: Batch): void {
    for (const event of batch.events) if (event instanceof LogEvent) this.#dropped.push(writeJson(event.fields))
    batch.finalizer.release(1, 'delivered')
  }

  /** The events of the output `dropped` and the counters since the last call. */
  take(): object {
    const dropped = this.#dropped
    this.#dropped = []
    const counted = this.#events.map(({ counts, errors, discards }) => ({
      counts: Object.fromEntries([...counts].filter(([name]) => !name.includes('byte_lane')).sort()),
      errors: errors.splice(0),
      discards: discards.splice(0),
    }))
    return { dropped, counted }
  }
}

type Sides = { readonly bytes: Side; readonly objects: Side }
type Total = { events: number; asBytes: number; restored: number }

/** A check of a result that waits, possibly until the memory of the lines has been reused. */
interface PendingCheck {
  readonly late: boolean
  run(): void
}

/** Passes the lines of a chunk through both lanes. */
class Comparison {
  readonly #random: Random
  readonly #total: Total
  readonly #pending: PendingCheck[] = []

  constructor(random: Random, total: Total) {
    this.#random = random
    this.#total = total
  }

  /** A consumer of lines. */
  consume(batch: LogBatch, { bytes, objects }: Sides, pod: BytePod, chunk: readonly Buffer[]): void {
    const random = this.#random
    const same = logBatch(pod.objects(chunk), new Finalizer())
    assert.equal(batch.count, same.count)
    const forkAt = random.chance(0.2) ? random.below(3) : -1
    const middle = batch.count > 1 && random.chance(0.2) ? 1 + random.below(batch.count - 1) : undefined
    const pairs =
      middle === undefined
        ? [[batch, same] as const]
        : [
            [batch.slice(0, middle), same.slice(0, middle)] as const,
            [batch.slice(middle, batch.count), same.slice(middle, batch.count)] as const,
          ]
    if (middle !== undefined && batch instanceof ByteBatch) batch.done()
    for (const [lines, events] of pairs) {
      const afters = bytes.through(lines, forkAt)
      const expected = objects.through(events, forkAt)
      assert.equal(afters.length, expected.length)
      for (const [index, after] of afters.entries()) this.#compare(after, expectedOf(expected[index]?.events ?? []))
      assert.deepEqual(bytes.take(), objects.take())
    }
  }

  #compare(after: LogBatch | undefined, expected: Expected): void {
    const random = this.#random
    const total = this.#total
    total.events += expected.json.length
    if (after instanceof ByteBatch) total.asBytes += after.lineCount
    const way = random.below(7)
    const run = () => {
      if (way === 0) total.restored += checkStored(after, expected, random)
      else if (way === 1) checkChosen(after, expected, random)
      else {
        if (way === 2) checkGroups(after, expected, random)
        check(after, expected, random)
      }
    }
    // Some consumers read the lines after other consumers, and some only after the chunk has been reused.
    if (random.chance(0.5)) run()
    else this.#pending.push({ late: random.chance(0.3), run })
  }

  /** Runs the pending checks. @param isEnd whether no chunk follows */
  runPending(isEnd: boolean): void {
    for (const check of this.#pending.splice(0)) {
      if (isEnd || !check.late) check.run()
      else this.#pending.push(check)
    }
  }
}

async function runCase(
  chains: readonly (readonly LaneStep[])[],
  { own, shared }: Pods,
  random: Random,
  total: Total,
): Promise<void> {
  // As after a reload, each case builds its steps on the same pods.
  const sides = await Promise.all(
    chains.map(async (steps) => ({ bytes: await Side.of(steps, true), objects: await Side.of(steps, false) })),
  )
  const comparison = new Comparison(random, total)
  for (let round = 0; round < 3; round++) {
    const chunk = randomLines(random)
    const isTogether = random.chance(0.25) && chunk.reduce((sum, line) => sum + line.length + 1, 0) < chunkBytes
    if (isTogether) {
      readTogether(
        shared.map(({ pod }) => pod),
        chunk,
        (batch, index) =>
          comparison.consume(
            batch,
            sides[index % sides.length] as Sides,
            (shared[index] as Pods['shared'][number]).pod,
            chunk,
          ),
      )
      if (random.chance(0.1)) random.pick(shared).keys.close()
    } else {
      const pod = random.pick(random.chance(0.3) ? shared.map((each) => each.pod) : own)
      pod.read(chunk, (batch) => {
        // Some cases have one consumer, some have three identical ones, and some have three different ones for the same lines.
        const readers = sides.length > 1 || random.chance(0.2) ? 3 : 1
        const all: LogBatch[] = Array.from({ length: readers }, (_, index) =>
          index === readers - 1 ? batch : batch.share(),
        )
        for (const [index, one] of all.entries())
          comparison.consume(one, sides[index % sides.length] as Sides, pod, chunk)
      })
    }
    comparison.runPending(round === 2)
  }
}

/** Pods of sources with their own names, and of sources that share them. */
interface Pods {
  readonly own: readonly BytePod[]
  readonly shared: readonly { readonly pod: BytePod; readonly keys: CurrentKeys }[]
}

function newPods(): Pods {
  const names = new SharedKeys()
  const shared = ['d', 'e', 'f'].map(() => {
    const keys = new CurrentKeys(names)
    return { keys, pod: new BytePod('d', false, undefined, new PodByteLane(new CriParser(() => 0), false, keys)) }
  })
  return { own: [new BytePod('a'), new BytePod('b'), new BytePod('c', false)], shared }
}
