// An event never contains bytes of another line, of another pod, or of earlier kernel memory, whatever happens to it: computed columns,
// moved fields, stored lines, entries of streams. Every line has its own canary in all its values, all pods use the same chunk, and the
// kernel's memory is overwritten before lines are loaded.

import { afterEach, expect, test, vi } from 'vitest'
import { type LogBatch, logBatch } from '../event/batch.ts'
import { Body } from '../event/body.ts'
import { Finalizer } from '../event/finalizer.ts'
import { BytePod } from '../testing/byte-pod.ts'
import { check, type Expected, expectedOf } from '../testing/lane-check.ts'
import { checkChosen, checkStored } from '../testing/lane-ways.ts'
import { through, transformsOf } from '../testing/lanes.ts'
import { Random } from '../testing/random.ts'
import { ByteBatch } from './byte-batch.ts'
import { ByteLines } from './byte-lines.ts'
import { ValueRoom } from './columns.ts'
import { allFields } from './form.ts'
import { type Kernel, theKernel } from './kernel.ts'
import { KeyTable } from './key-table.ts'

const merge = '. = merge(., object(parse_json(.message) ?? {}) ?? {})'
const chains: readonly (readonly string[])[] = [
  [],
  [merge, '.moved = del(.secret)\n.message = .level\n.again = .moved'],
  [`${merge}\n.up = upcase(string(.secret) ?? "none")\n.list = [.secret, .n]`, '.copy = .up\n.secret = .list'],
  [
    `${merge}\n.whole = [.message, .message, .secret]\n.other = {"m": .message, "n": .message}`,
    'del(.message)\n.third = .whole',
  ],
  [`${merge}\nif .n == 1 { .secret = "one" } else if .n == 2 { del(.secret) }`, '.kept = .secret\ndel(.n)'],
  ['.text = del(.message)\n.at = .timestamp'],
  [`. = object(parse_json(.message) ?? {}) ?? {}\n.a = .secret\nif .n == 3 { abort }`],
]

/** The chain that computes the longest values. */
const longChain = 3

afterEach(() => {
  vi.restoreAllMocks()
})

/** Overwrites the kernel's memory. The next caller must load everything it needs. */
function overwrite(kernel: Kernel): void {
  const { content, memory } = kernel
  // Saves the names back to their source.
  new KeyTable().enter(kernel)
  memory.fill('"SCRATCH', kernel.at('starts'), kernel.at('shuffles'))
  // The bits for sorting members must be 0 between calls.
  memory.fill(0, kernel.at('rankBits'), kernel.at('rankPlaces'))
  content.keys = undefined
  content.lines = undefined
  content.isRead = false
  content.plan = undefined
  content.columns = undefined
}

/** A message with the canary in all of its values. */
function messageOf(random: Random, canary: string): string {
  const text = () =>
    random.pick([canary, `${canary}\\n`, `\\u003c${canary}`, `ü${canary}`, canary.repeat(random.below(40))])
  const kind = random.below(12)
  if (kind === 0) return `${canary} is not JSON ${canary}`
  if (kind === 1) return `{"secret":"${canary}","open":"${canary}`
  if (kind === 2) return `{"secret":"${canary}","a":1,"a":"${canary}"}`
  if (kind === 3) return `{${Array.from({ length: 100 }, (_, at) => `"m${at}":"${canary}"`).join()}}`
  const members = [`"n":${random.below(5)}`, `"level":"${text()}"`]
  if (random.chance(0.8)) members.push(`"secret":"${text()}"`)
  if (random.chance(0.3)) members.push(`"secret${random.below(2000)}":"${text()}"`)
  if (random.chance(0.3)) members.push(`"o":{"z":"${text()}","b":1.50,"a":["${text()}"]}`)
  if (random.chance(0.3)) members.push(`"f":0.1234567890123456789`)
  if (random.chance(0.2)) members.push(`"message":"${text()}"`)
  return `{${members.join(',')}}`
}

/** Entries of a stream for some lines, in an order other than that of the batch. */
function checkEntries(batch: ByteBatch, expected: Expected, random: Random): void {
  const places = Array.from({ length: batch.count }, (_, index) => index).filter((index) => batch.lineOf(index) >= 0)
  for (let index = places.length - 1; index > 0; index--) {
    const other = random.below(index + 1)
    const place = places[index] as number
    places[index] = places[other] as number
    places[other] = place
  }
  const lines = Int32Array.from(places, (index) => batch.lineOf(index))
  const run = { count: lines.length, lines, ms: new Float64Array(lines.length), ns: new Int32Array(lines.length) }
  const ends = new Int32Array(lines.length)
  for (let first = 0; first < lines.length; ) {
    const body = new Body(16)
    const written = batch.writeEntries(run, first, [], allFields, Buffer.from(']'), body, ends)
    // The sink writes an event that is too large on its own as an object.
    if (written === 0) {
      first++
      continue
    }
    const entries = JSON.parse(`[${body.view().subarray(1).toString()}]`) as [string, string][]
    expect(entries.map(([, json]) => json)).toEqual(
      places.slice(first, first + written).map((index) => expected.json[index]),
    )
    first += written
  }
  batch.done()
}

test('no event contains bytes of another line, of another pod or of earlier kernel memory', {
  timeout: 240_000,
}, async () => {
  const seed = (Math.random() * 2 ** 32) >>> 0
  const random = new Random(seed)
  const sides = await Promise.all(
    chains.map(async (chain) => ({
      bytes: await transformsOf(chain, true),
      objects: await transformsOf(chain, false),
    })),
  )
  const long = sides[longChain] as (typeof sides)[number]
  const place = Buffer.alloc(1 << 20, '"}')
  const first = new BytePod('pod-0', true, place)
  const pods = [first, new BytePod('pod-1', true, place, first.lane), new BytePod('pod-2', true, place)]
  const enter = ByteLines.prototype.enter
  vi.spyOn(ByteLines.prototype, 'enter').mockImplementation(function (this: ByteLines) {
    if (theKernel().content.lines !== this) overwrite(theKernel())
    return enter.call(this)
  })
  let refused = 0
  const take = ValueRoom.prototype.take
  vi.spyOn(ValueRoom.prototype, 'take').mockImplementation(function (this: ValueRoom, values, bytes) {
    const hasRoom = take.call(this, values, bytes)
    if (!hasRoom) refused++
    return hasRoom
  })
  let asBytes = 0
  let restored = 0
  let waiting: (() => void)[] = []
  for (let round = 0; round < 150; round++) {
    const pod = random.below(pods.length)
    const reader = pods[pod] ?? first
    // Some chunks have more bytes than the columns have room for.
    const isLong = round % 10 === 5
    const lines = isLong ? 400 : 1 + random.below(40)
    const chunk: Buffer[] = []
    for (let line = 0, bytes = 0; line < lines && bytes < 200_000; line++) {
      const canary = `canary-${pod}-${round}-${line}.`
      const message = messageOf(random, isLong ? canary.repeat(30) : canary)
      chunk.push(Buffer.from(`2026-11-24T10:11:1${random.below(3)}.${line}Z stdout F ${message}`))
      bytes += message.length
    }
    const late: (() => void)[] = []
    reader.read(chunk, (batch) => {
      const readers = Array.from({ length: 1 + random.below(3) }, () => (isLong ? long : random.pick(sides)))
      const all: LogBatch[] = readers.map((_, index) => (index === readers.length - 1 ? batch : batch.share()))
      for (const [index, side] of readers.entries()) {
        const expected = expectedOf(
          through(side.objects, logBatch(reader.objects(chunk), new Finalizer()))?.events ?? [],
        )
        const after = through(side.bytes, all[index] as LogBatch)
        if (after instanceof ByteBatch) asBytes += after.lineCount
        const way = random.below(5)
        const look = () => {
          try {
            if (way === 0) restored += checkStored(after, expected, random)
            else if (way === 1) checkChosen(after, expected, random)
            else if (way === 2 && after instanceof ByteBatch) checkEntries(after, expected, random)
            else check(after, expected, random)
          } catch (error) {
            throw new Error(`Seed ${seed}, round ${round}`, { cause: error })
          }
        }
        if (random.chance(0.4)) look()
        else late.push(look)
      }
    })
    // The chunk already belongs to the next pod when these readers look at their lines.
    for (const look of waiting) look()
    waiting = late
  }
  for (const look of waiting) look()
  expect(asBytes).toBeGreaterThan(1000)
  expect(restored).toBeGreaterThan(0)
  expect(refused).toBeGreaterThan(0)
})
