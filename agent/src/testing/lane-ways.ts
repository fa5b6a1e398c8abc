// Two paths for events that are lines: a sink whose encoding selects fields, and the records of a disk buffer. Both must have the same
// result as for the same events as objects.

import assert from 'node:assert/strict'
import { Packer } from '../buffers/disk/packing/packer.ts'
import { recycle } from '../buffers/disk/packing/record-memory.ts'
import { Unpacker } from '../buffers/disk/packing/unpacker.ts'
import { ByteBatch } from '../bytes/byte-batch.ts'
import { LineRestorer } from '../bytes/stored-lines.ts'
import { compileStreamEncoder } from '../codecs/encoding/encoder.ts'
import { type LogBatch, logBatch } from '../event/batch.ts'
import { Body } from '../event/body.ts'
import { Finalizer } from '../event/finalizer.ts'
import { LogEvent } from '../event/log.ts'
import { Timestamp } from '../event/timestamp.ts'
import { getField } from '../event/value.ts'
import { writeJson } from '../formats/json.ts'
import { LineStream } from '../sinks/stream/line-stream.ts'
import { names } from './json-texts.ts'
import { check, type Expected } from './lane-check.ts'
import type { Random } from './random.ts'

const plainFields = [
  'a',
  'b',
  'n',
  's',
  'v',
  'o',
  'env',
  'level',
  'message',
  'stream',
  'timestamp',
  'file',
  'orchestrator',
  'c1',
  'k50',
]
const rootFields = ['a', 'b', 'n', 's', 'v', 'o', 'env', 'level', 'message', 'stream', 'timestamp', 'file', '"a b"']
/** Fields that the kernel cannot select. */
const deepFields = ['orchestrator.pod_name', 'o.n', 'a[0]']

function someFields(random: Random): string[] {
  const quoted = () => JSON.stringify(random.pick(names)).replaceAll('\\u', 'u')
  return Array.from({ length: random.below(6) }, () =>
    random.chance(0.05) ? random.pick(deepFields) : random.chance(0.7) ? random.pick(rootFields) : quoted(),
  )
}

/** An `encoding` that selects fields and time formats. */
function randomEncoding(random: Random): Record<string, unknown> {
  const only = random.chance(0.5) ? someFields(random) : undefined
  const except = random.chance(only === undefined ? 1 : 0.3) ? someFields(random) : undefined
  return {
    codec: 'json',
    timestamp_format: random.pick(['rfc3339', 'rfc3339', 'unix', 'unix_ms', 'unix_us', 'unix_ns', 'unix_float']),
    ...(only === undefined ? {} : { only_fields: only }),
    ...(except === undefined ? {} : { except_fields: except }),
  }
}

/**
 * Compares the groups by which sinks form labels, indices and partitions with the fields of the events. The batch can be read afterwards.
 */
export function checkGroups(batch: LogBatch | undefined, expected: Expected, random: Random): void {
  if (!(batch instanceof ByteBatch) || !batch.isLines) return
  const names = [...new Set(Array.from({ length: 1 + random.below(3) }, () => random.pick(plainFields)))]
  const second = random.chance(0.3) ? 'timestamp' : undefined
  if (second !== undefined && !names.includes(second)) names.push(second)
  const textOf = (index: number, name: string) => {
    const value = getField(expected.fields[index] ?? {}, name)
    if (name === second && value instanceof Timestamp) return `time ${Math.floor(value.ms / 1000)}`
    return value === undefined ? 'none' : writeJson(value)
  }
  const groups = batch.groups(names, second)
  const seen = new Map<number | string, string>()
  for (let index = 0; index < batch.count; index++) {
    const texts = names.map((name) => textOf(index, name)).join('\n')
    const isLine = batch.lineOf(index) >= 0
    const group = groups !== undefined && isLine ? groups[index] : undefined
    const text = groups !== undefined && isLine ? batch.groupText(index) : undefined
    for (const key of [group, text]) {
      if (key === undefined) continue
      const before = seen.get(key)
      assert.equal(texts, before ?? texts, `Events of one group differ in ${names}.`)
      seen.set(key, texts)
    }
    if (!isLine) continue
    for (const name of names) {
      const value = batch.memberOf(index, name)
      if (value !== undefined)
        assert.equal(writeJson(value), writeJson(getField(expected.fields[index] ?? {}, name) ?? null))
      if (!batch.mayHaveMember(name)) assert.equal(value, undefined)
      const wanted = getField(expected.fields[index] ?? {}, name)
      assert.deepEqual(Object.keys(batch.fieldsOf(index, [name])), wanted === undefined ? [] : [name])
    }
  }
  const times = batch.timesForField('timestamp')
  if (times === undefined || times === 'none') return
  for (let index = 0; index < batch.count; index++) {
    const line = batch.lineOf(index)
    if (line < 0 || batch.memberOf(index, 'timestamp') !== undefined) continue
    const time = getField(expected.fields[index] ?? {}, 'timestamp')
    assert.ok(time instanceof Timestamp && time.ms === times.ms[line] && time.ns === times.ns[line])
  }
}

/** Writes a batch like a sink whose encoding selects random fields. */
export function checkChosen(batch: LogBatch | undefined, expected: Expected, random: Random): void {
  if (batch === undefined) {
    assert.deepEqual([], expected.json)
    return
  }
  const encoding = randomEncoding(random)
  const encoder = compileStreamEncoder(encoding as never)
  const failed = () => assert.fail('The codec must accept all events.')
  const body = new Body(16)
  const stream = LineStream.of(encoder, failed)
  if (batch instanceof ByteBatch && stream !== undefined) {
    const middle = random.below(batch.count + 1)
    stream.write(batch, 0, middle, body)
    stream.write(batch, middle, batch.count, body)
    batch.done()
  } else for (const event of batch.events) assert.equal(encoder.encode(event, body), undefined)
  const asObjects = new Body(16)
  for (const fields of expected.fields) assert.equal(encoder.encode(new LogEvent(fields), asObjects), undefined)
  assert.deepEqual(
    body.view().toString().split('\n'),
    asObjects.view().toString().split('\n'),
    `Other bytes with ${JSON.stringify(encoding)}`,
  )
}

const packer = new Packer()
const unpacker = new Unpacker()
const restorer = new LineRestorer(false)

/** Stores a batch like a disk buffer, reads it back, and compares the events. Returns those that are still lines. */
export function checkStored(batch: LogBatch | undefined, expected: Expected, random: Random): number {
  if (batch === undefined) {
    assert.deepEqual([], expected.json)
    return 0
  }
  packer.begin()
  if (batch instanceof ByteBatch) packer.lines(batch)
  else for (const event of batch.events) packer.log(event)
  if (batch instanceof ByteBatch) batch.done()
  const { events } = packer
  const record = packer.finish()
  const { values, texts } = record
  const stored = Buffer.concat([values, texts])
  const { length } = values
  recycle(record)
  const found = unpacker
    .logs(stored, length, events)
    .map((part) => ('kind' in part ? restorer.batch(part, new Finalizer()) : logBatch(part, new Finalizer())))
  // The buffer reuses this memory for the next record.
  stored.fill('x')
  let from = 0
  let asLines = 0
  for (const part of found) {
    const to = from + part.count
    if (part instanceof ByteBatch) asLines += part.lineCount
    const some: Expected = {
      fields: expected.fields.slice(from, to),
      json: expected.json.slice(from, to),
      sizes: expected.sizes.slice(from, to),
    }
    if (random.chance(0.3)) checkChosen(part, some, random)
    else check(part, some, random)
    from = to
  }
  assert.equal(from, expected.json.length)
  return asLines
}
