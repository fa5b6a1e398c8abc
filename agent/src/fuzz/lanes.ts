// Passes hostile lines through random chains of programs, as bytes and as objects, and compares the results: JSON, sizes, order, fields,
// events of the output `dropped`, counters and errors. Some results continue to a disk buffer or to a sink that selects fields.

import assert from 'node:assert/strict'
import { ByteBatch } from '../bytes/byte-batch.ts'
import type { Transform } from '../component.ts'
import { type Batch, type LogBatch, logBatch } from '../event/batch.ts'
import { Finalizer } from '../event/finalizer.ts'
import { LogEvent } from '../event/log.ts'
import { writeJson } from '../formats/json.ts'
import { compileCondition } from '../remap/condition.ts'
import { compileProgram } from '../remap/program.ts'
import { BytePod } from '../testing/byte-pod.ts'
import { buildTransform, RecordedEvents } from '../testing/harness.ts'
import { check, expectedOf } from '../testing/lane-check.ts'
import { checkChosen, checkStored } from '../testing/lane-ways.ts'
import { lineOf } from '../testing/lanes.ts'
import { Random } from '../testing/random.ts'
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
  const pods = [new BytePod('a'), new BytePod('b'), new BytePod('c', false)]
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

  /** The batch after all steps; undefined if no event is left. */
  through(batch: LogBatch): LogBatch | undefined {
    let current: Batch | undefined = batch
    for (const transform of this.#transforms) {
      if (current === undefined) break
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
    return current as LogBatch | undefined
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

async function runCase(
  chains: readonly (readonly LaneStep[])[],
  pods: readonly BytePod[],
  random: Random,
  total: { events: number; asBytes: number; restored: number },
): Promise<void> {
  // As after a reload, each case builds its steps on the same pods.
  const sides = await Promise.all(
    chains.map(async (steps) => ({ bytes: await Side.of(steps, true), objects: await Side.of(steps, false) })),
  )
  for (let round = 0; round < 3; round++) {
    const pod = random.pick(pods)
    const chunk = Array.from({ length: 1 + random.below(60) }, () => lineOf(random))
    const waiting: (() => void)[] = []
    pod.read(chunk, (batch) => {
      // Some cases have one consumer, some have three identical ones, and some have three different ones for the same lines.
      const readers = sides.length > 1 || random.chance(0.2) ? 3 : 1
      const all: LogBatch[] = Array.from({ length: readers }, (_, index) =>
        index === readers - 1 ? batch : batch.share(),
      )
      for (const [index, one] of all.entries()) {
        const { bytes, objects } = sides[index % sides.length] as (typeof sides)[number]
        const after = bytes.through(one)
        const expected = expectedOf(objects.through(logBatch(pod.objects(chunk), new Finalizer()))?.events ?? [])
        assert.deepEqual(bytes.take(), objects.take())
        total.events += expected.json.length
        if (after instanceof ByteBatch) total.asBytes += after.lineCount
        const way = random.below(6)
        // Some consumers read the lines only after the chunk has been reused.
        const look = () => {
          if (way === 0) total.restored += checkStored(after, expected, random)
          else if (way === 1) checkChosen(after, expected, random)
          else check(after, expected, random)
        }
        if (random.chance(0.5)) look()
        else waiting.push(look)
      }
    })
    for (const look of waiting) look()
  }
}
