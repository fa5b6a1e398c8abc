// Packed byte lines are unpacked into the same events, for any lines and programs.

import { expect, test } from 'vitest'
import { ByteBatch } from '../../../bytes/byte-batch.ts'
import { allFields } from '../../../bytes/form.ts'
import { LineRestorer } from '../../../bytes/stored-lines.ts'
import { type LogBatch, logBatch } from '../../../event/batch.ts'
import { Body } from '../../../event/body.ts'
import { DeferredEvent } from '../../../event/deferred.ts'
import { Finalizer } from '../../../event/finalizer.ts'
import type { LogEvent } from '../../../event/log.ts'
import { writeJson, writeJsonTo } from '../../../formats/json.ts'
import { BytePod } from '../../../testing/byte-pod.ts'
import { messageFor } from '../../../testing/lane-sinks.ts'
import { lineOf, messageOf, through, transformsOf } from '../../../testing/lanes.ts'
import { Random } from '../../../testing/random.ts'
import { Packer } from './packer.ts'
import { recycle } from './record-memory.ts'
import { Unpacker } from './unpacker.ts'

const parse = '. = parse_json!(.message)'
const merge = '. = merge(., object!(parse_json!(.message)))'
const chains: readonly (readonly string[])[] = [
  [],
  ['.env = "prod"\ndel(.stream)\ndel(.orchestrator)'],
  ['del(.message)\n.a = {"b": [1.0, null, t\'2026-01-01T00:00:00.5Z\']}'],
  [parse],
  [`${parse}\n.env = "prod"\n.n = 5\ndel(.a)\n.b = "x\\ny"`, 'filter: .v != 3'],
  [`${merge}\ndel(.message)\ndel(.s)`],
  [merge, '.a = 2\n.zz = {"k": "ü"}'],
  [`${merge}\n.message = true`],
  [`${parse}\n.level = upcase(string(.s) ?? "none")\n.b = .a\n.zz = del(.c)`],
  [`${merge}\ndel(.timestamp)\n.up = upcase(string(.s) ?? "")\n.pod = .orchestrator.pod_name`],
  [`${merge}\n.level = upcase(string(.s) ?? "none")\n.at = .timestamp`],
  ['.message = parse_json!(.message)\ndel(.timestamp)'],
  [`${parse}\nif .a == "x" { .t = t'2026-01-01T00:00:00Z' }`],
  ['.copy = .timestamp\n.up = upcase!(.stream)'],
  ['filter: .stream == "stderr"', merge, 'del(.timestamp)'],
]

/** Messages with a member that replaces the message. */
const withMessage = (random: Random) =>
  `{"message":${random.pick(['"\\u00fc"', 'null', '7', '{"b":1,"a":2}'])},"s":${random.below(3)},"v":${random.below(5)}}`

const packer = new Packer()
const unpacker = new Unpacker()
const restorer = new LineRestorer(false)

/** The output of a batch: the JSON of its events as the sink receives them, their JSON as objects, and their sizes. */
function contentOf(batch: LogBatch, asObjects: boolean) {
  const sizes = batch instanceof ByteBatch ? Array.from({ length: batch.count }, (_, at) => batch.size(at)) : undefined
  const body = new Body(16)
  const texts: string[] = []
  const take = (from: number) => texts.push(body.buffer.toString('utf8', from, body.length))
  if (batch instanceof ByteBatch && !asObjects) {
    batch.write(0, batch.count, {
      body,
      prefix: undefined,
      fields: allFields,
      suffix: 0x0a,
      begin() {},
      written(start, ends, count, shift) {
        let from = start
        for (let index = 0; index < count; index++) {
          const end = start - shift + (ends[index] as number)
          texts.push(body.buffer.toString('utf8', from, end))
          from = end + 1
        }
      },
      object(event) {
        const from = body.length
        if (!(event instanceof DeferredEvent && event.writeJson(body))) writeJsonTo(body, event.fields)
        take(from)
      },
    })
  } else texts.push(...batch.events.map(({ fields }) => writeJson(fields)))
  return { texts, sizes: sizes ?? batch.events.map(({ size }) => size), bytes: batch.bytes }
}

test('lines are read back as the same events', async () => {
  const seed = (Math.random() * 2 ** 32) >>> 0
  const random = new Random(seed)
  const sides = await Promise.all(
    chains.map(async (chain) => ({
      bytes: await transformsOf(chain, true),
      objects: await transformsOf(chain, false),
    })),
  )
  const pods = [new BytePod('a'), new BytePod('b', false)]
  const metadata = { value: { tenant: 'ü', at: [1.5] }, secrets: { key: 'secret' } }
  Object.assign((pods[1] as BytePod).file, { metadata })
  let events = 0
  let asLines = 0
  for (let round = 0; round < 200; round++) {
    packer.begin()
    const expected: LogEvent[] = []
    for (let batches = 1 + random.below(4); batches > 0; batches--) {
      const { bytes, objects } = random.pick(sides)
      const pod = random.pick(pods)
      const message = random.pick([messageOf, messageFor, withMessage])
      const chunk = Array.from({ length: 1 + random.below(60) }, () => lineOf(random, message))
      expected.push(...(through(objects, logBatch(pod.objects(chunk), new Finalizer()))?.events ?? []))
      pod.read(chunk, (batch) => {
        const after = through(bytes, batch)
        if (after instanceof ByteBatch) packer.lines(after)
        else for (const event of after?.events ?? []) packer.log(event)
      })
    }
    expect(packer.events).toBe(expected.length)
    const record = packer.finish()
    const { values, texts } = record
    const stored = Buffer.concat([values, texts])
    const [length, count] = [values.length, packer.events]
    recycle(record)
    const parts = unpacker.logs(stored, length, count)
    const found = parts.flatMap((part) => {
      const batch = 'kind' in part ? restorer.batch(part, new Finalizer()) : logBatch(part, new Finalizer())
      if (batch instanceof ByteBatch) {
        asLines += batch.lineCount
        const { file } = batch.lines.origin.has('file') ? (pods[0] as BytePod) : { file: { metadata } }
        if (batch.form.hasOrigin) expect(batch.lines.origin.metadata, `Seed ${seed}`).toEqual(file.metadata)
      }
      return batch
    })
    stored.fill('x')
    const contents = found.map((batch) => contentOf(batch, random.chance(0.3)))
    const info = `Seed ${seed}, round ${round}`
    expect(
      contents.flatMap((content) => content.texts),
      info,
    ).toEqual(expected.map(({ fields }) => writeJson(fields)))
    expect(
      contents.flatMap((content) => content.sizes),
      info,
    ).toEqual(expected.map(({ size }) => size))
    expect(
      contents.reduce((sum, { bytes }) => sum + bytes, 0),
      info,
    ).toBe(expected.reduce((sum, { size }) => sum + size, 0))
    events += expected.length
  }
  expect(asLines / events).toBeGreaterThan(0.4)
})

test('does not store fields that a program removed', async () => {
  const message = '{"password":"canary-1","a":1,"message":"text"}'
  const lines = Array.from({ length: 3 }, (_, index) =>
    Buffer.from(`2026-11-23T10:11:12.${index}Z stdout F ${message}`),
  )
  for (const program of [
    `${parse}\ndel(.password)`,
    `${merge}\ndel(.password)`,
    `${merge}\n.password = "***"`,
    'del(.message)',
    'del(.message)\ndel(.orchestrator)',
  ]) {
    const transforms = await transformsOf([program], true)
    packer.begin()
    new BytePod('canary-2').read(lines, (batch) => {
      const after = through(transforms, batch)
      expect(after).toBeInstanceOf(ByteBatch)
      packer.lines(after as ByteBatch)
    })
    const record = packer.finish()
    const stored = Buffer.concat([record.values, record.texts]).toString('latin1')
    recycle(record)
    expect(stored, program).not.toContain('canary-1')
    expect(stored.includes('pod_labels'), program).toBe(!program.includes(parse) && !program.includes('orchestrator'))
  }
})
