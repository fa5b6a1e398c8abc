// Sends hostile lines through random chains of programs, as lines that stay bytes and as objects, and compares all that comes out: JSON,
// sizes, order, fields, what leaves by `dropped`, counters and errors. Some of it goes on to a disk buffer or to a sink that chooses fields.

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
  /** The chain of each consumer of the lines. */
  readonly chains: readonly (readonly LaneStep[])[]
  readonly problem: string
}

export interface LaneResult {
  readonly cases: number
  /** Events that were compared, and those of them that were lines in the end. */
  readonly events: number
  readonly asBytes: number
  /** Events that came back from a disk buffer as lines. */
  readonly restored: number
  readonly found: LaneFinding | undefined
}

/** Chains from `seed` on, one after the other, until the time is up or the lanes differ. */
export async function fuzzLanes(seed: number, seconds: number, most: number): Promise<LaneResult> {
  const end = performance.now() + seconds * 1000
  const pods = [new BytePod('a'), new BytePod('b'), new BytePod('c', false)]
  const total = { events: 0, asBytes: 0, restored: 0 }
  let cases = 0
  while (cases < most && performance.now() < end) {
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

/** Steps of one lane, with what they count. */
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

  /** The batch after the steps; undefined if nothing is left. */
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

  /** The events that have left by `dropped`, and the counters, since the last call. */
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
  // Built for each case on the same pods, as a reload does it.
  const sides = await Promise.all(
    chains.map(async (steps) => ({ bytes: await Side.of(steps, true), objects: await Side.of(steps, false) })),
  )
  for (let round = 0; round < 3; round++) {
    const pod = random.pick(pods)
    const chunk = Array.from({ length: 1 + random.below(60) }, () => lineOf(random))
    const waiting: (() => void)[] = []
    pod.read(chunk, (batch) => {
      // Some have one consumer, some three of a kind, and some three that do different things to the same lines.
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
        // Some look at it only when the chunk is something else.
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
