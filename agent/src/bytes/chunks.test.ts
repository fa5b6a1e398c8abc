// Lines in chunks of the kernel equal lines elsewhere, and a chunk is not reused before its lines are written.

import { expect, test } from 'vitest'
import { type LogBatch, logBatch } from '../event/batch.ts'
import { Body } from '../event/body.ts'
import { Finalizer } from '../event/finalizer.ts'
import { chunkPool, compileDelimiter, Slab } from '../tailing/slab.ts'
import { BytePod } from '../testing/byte-pod.ts'
import { check, expectedOf } from '../testing/lane-check.ts'
import { through, transformsOf } from '../testing/lanes.ts'
import { Random } from '../testing/random.ts'
import { ByteBatch } from './byte-batch.ts'
import { chunkBytes, takeChunk } from './chunks.ts'
import { theKernel } from './kernel.ts'

const delimiter = compileDelimiter(Buffer.from('\n'))

/** The lines of a slab, and the reports about the others. */
function found(slab: Slab, from: number, length: number, maxLineBytes: number): object {
  slab.split(from, length, delimiter, maxLineBytes)
  const { count, starts, ends, consumed, discarded } = slab
  return { consumed, discarded, starts: [...starts.subarray(0, count)], ends: [...ends.subarray(0, count)] }
}

test('lines are found in a chunk of the kernel as elsewhere', () => {
  theKernel()
  const seed = (Math.random() * 2 ** 32) >>> 0
  const random = new Random(seed)
  const chunk = chunkPool().take()
  const other = new Slab(Buffer.alloc(chunkBytes))
  for (let round = 0; round < 200; round++) {
    const maxStep = random.pick([1, 3, 70, 400, 5000])
    const length = random.pick([0, 1, 15, 16, 63, 64, 65, 1000, chunkBytes - 1, chunkBytes])
    other.buffer.fill('x')
    for (let at = 0; at < chunkBytes; at += 1 + random.below(maxStep)) other.buffer[at] = 0x0a
    other.buffer.copy(chunk.buffer)
    const from = random.below(length + 1)
    const maxLineBytes = random.pick([0, 10, 100, chunkBytes])
    const expected = found(other, from, length, maxLineBytes)
    expect(found(chunk, from, length, maxLineBytes), `Seed ${seed}, round ${round}`).toEqual(expected)
  }
})

/** Writes a batch as JSON and ends it. */
function written(batch: ByteBatch): string[] {
  const json = Array.from({ length: batch.count }, (_, index) => {
    const body = new Body(16)
    batch.writeJson(batch.lineOf(index), body, [])
    return body.view().toString()
  })
  batch.done()
  return json
}

test.each([
  { name: 'stay in it', lines: 200 },
  { name: 'are copied if they are few', lines: 5 },
])('lines that wait in a chunk of the kernel $name', async ({ lines }) => {
  const chain = ['. = parse_json!(.message)', '.env = "prod"']
  const [asBytes, asObjects] = await Promise.all([transformsOf(chain, true), transformsOf(chain, false)])
  const pod = new BytePod('pod')
  const waiting: { readonly batch: ByteBatch; readonly expected: readonly string[] }[] = []
  for (let round = 0; round < 20; round++) {
    const chunk = Array.from({ length: lines }, (_, line) =>
      Buffer.from(
        `2026-11-26T10:11:12.5Z stdout F {"round":${round},"line":${line},"text":"\\u003c${'long '.repeat(30)}","f":0.10000000000000000555}`,
      ),
    )
    const { json } = expectedOf(through(asObjects, logBatch(pod.objects(chunk), new Finalizer()))?.events ?? [])
    pod.read(chunk, (batch) => {
      const after = through(asBytes, batch)
      if (!(after instanceof ByteBatch)) throw new Error('No batch of lines came out.')
      waiting.push({ batch: after, expected: json })
    })
  }
  // The chunks return in another order.
  for (const { batch, expected } of waiting.reverse()) expect(written(batch)).toEqual(expected)
})

test.each([
  { name: 'one line of many', wanted: 1, isKept: false },
  { name: 'one line of eight', wanted: 25, isKept: true },
])('a batch that waits for $name does not keep far more than its events', async ({ wanted, isKept }) => {
  const chain = ['. = parse_json!(.message)', 'filter: .wanted == true', '.up = upcase!(.text)']
  const [asBytes, asObjects] = await Promise.all([transformsOf(chain, true), transformsOf(chain, false)])
  const pod = new BytePod('pod')
  const lines = Array.from({ length: 200 }, (_, line) =>
    Buffer.from(`2026-11-26T10:11:12.5Z stdout F {"wanted":${line < wanted},"text":"${'long '.repeat(80)}\\u003c"}`),
  )
  const expected = expectedOf(through(asObjects, logBatch(pod.objects(lines), new Finalizer()))?.events ?? [])
  expect(expected.json).toHaveLength(wanted)
  const slab = chunkPool().take()
  const length = Buffer.from(`${lines.join('\n')}\n`).copy(slab.buffer)
  slab.split(0, length, delimiter, length)
  const waiting: (LogBatch | undefined)[] = []

  // Two sinks with the same input are busy.
  pod.readSlab(slab, lines, (batch) => {
    const after = through(asBytes, batch)
    expect(after).toBeInstanceOf(ByteBatch)
    waiting.push(after?.share(), after)
  })

  expect(slab.held).toBe(isKept)
  if (!isKept) slab.buffer.fill('x')
  new BytePod('other').read(lines.slice(100), () => {})
  for (const batch of waiting) check(batch, expected, new Random(1))
  for (const batch of waiting) if (batch instanceof ByteBatch) batch.done()
  expect(slab.held).toBe(false)
})

test('slabs use other memory if the kernel has no free chunk', () => {
  const pool = chunkPool()
  const chunks: Buffer[] = []
  for (let chunk = takeChunk(); chunk !== undefined; chunk = takeChunk()) chunks.push(chunk)
  expect(chunks.length).toBeGreaterThan(0)
  expect(chunks.length).toBeLessThanOrEqual(theKernel().at('maxChunks'))

  const slab = pool.take()

  expect(theKernel().placeOf(slab.buffer)).toBeUndefined()
  expect(slab.buffer).toHaveLength(chunkBytes)
  expect(slab.lend()).toBeUndefined()
  expect(new Set(chunks.map((chunk) => chunk.byteOffset)).size).toBe(chunks.length)
})
