// Random sinks after random programs send the same requests and report the same counts on both lanes.

import { afterEach, expect, test, vi } from 'vitest'
import { type LaneStep, randomChain } from '../fuzz/lane-programs.ts'
import { compileCondition } from '../remap/condition.ts'
import { compileProgram } from '../remap/program.ts'
import { bothLanes } from '../testing/lane-sinks.ts'
import { Random } from '../testing/random.ts'
import { randomSink, sentBy } from '../testing/sent-by-sinks.ts'

afterEach(() => {
  vi.useRealTimers()
})

/** The steps as `transformsOf` expects them; undefined if one does not compile. */
function chainOf(steps: readonly LaneStep[]): readonly string[] | undefined {
  const texts: string[] = []
  for (const { type, options } of steps) {
    const isRemap = type === 'remap'
    if (!(isRemap ? compileProgram(options.source).ok : compileCondition(options.condition).ok)) return undefined
    texts.push(isRemap ? options.source : `filter: ${options.condition}`)
  }
  return texts
}

const first = (Math.random() * 2 ** 31) >>> 0

test(`random sinks send the same for lines and for objects, from seed ${first}`, { timeout: 300_000 }, async () => {
  // Events without a time get the current one.
  vi.useFakeTimers({ toFake: ['Date'], now: Date.parse('2026-11-23T10:11:15Z') })
  for (let seed = first; seed < first + 12; seed++) {
    const random = new Random(seed)
    let chain: readonly string[] | undefined
    while (chain === undefined) chain = chainOf(randomChain(random))
    const sink = randomSink(random)
    const lanes = await bothLanes(chain, random)
    const bytes = await sentBy(sink, lanes.bytes)
    const objects = await sentBy(sink, lanes.objects)
    expect(bytes, `Seed ${seed}, ${JSON.stringify({ chain, sink })}`).toEqual(objects)
  }
})
