// Compares events that are lines with the same events as objects: JSON, sizes, order and single fields, also in slices and shared batches.

import assert from 'node:assert/strict'
import { ByteBatch } from '../bytes/byte-batch.ts'
import { allFields } from '../bytes/form.ts'
import { compileEncoder } from '../codecs/encoding/encoder.ts'
import { type JsonFrames, LineTarget } from '../delivery/line-target.ts'
import { OpenRequest } from '../delivery/request.ts'
import type { LogBatch } from '../event/batch.ts'
import { Body } from '../event/body.ts'
import { DeferredEvent } from '../event/deferred.ts'
import type { LogEvent } from '../event/log.ts'
import { getField, type Value, type ValueObject } from '../event/value.ts'
import { writeJson } from '../formats/json.ts'
import { names } from './json-texts.ts'
import type { Random } from './random.ts'

const encoder = compileEncoder({ codec: 'json' } as never)
const frames: readonly JsonFrames[] = [
  { delimiter: 0x0a, isSeparator: false },
  { delimiter: 0x2c, isSeparator: true },
  { delimiter: undefined, isSeparator: false },
]

/** The JSON of events, written in several steps, as a sink does. */
function written(batch: LogBatch, random: Random): string[] {
  const frame = random.pick(frames)
  const request = new OpenRequest('', new Body(16))
  const encode = (events: readonly (LogEvent | unknown)[], from: number, to: number, into: OpenRequest) => {
    for (let index = from; index < to; index++) {
      if (frame.isSeparator && into.count > 0) into.body.writeByte(0x2c)
      const start = into.body.length
      assert.equal(encoder.encode(events[index] as LogEvent, into.body), undefined)
      if (frame.delimiter !== undefined && !frame.isSeparator) into.body.writeByte(frame.delimiter)
      into.mark(start)
    }
  }
  const target = new LineTarget(frame, encode)
  for (let from = 0; from < batch.count; ) {
    const to = Math.min(batch.count, from + 1 + random.below(100))
    if (batch instanceof ByteBatch) target.encode(batch, from, to, request)
    else encode(batch.events, from, to, request)
    from = to
  }
  if (batch instanceof ByteBatch) batch.done()
  const all = request.body.view()
  const parts = Array.from({ length: request.count }, (_, index) =>
    all.toString('utf8', request.starts[index], request.ends[index]),
  )
  const between = frame.isSeparator ? ',' : ''
  assert.equal(all.toString(), parts.join(between))
  const end = frame.delimiter === undefined || frame.isSeparator ? '' : String.fromCharCode(frame.delimiter)
  for (const part of parts) assert.ok(part.endsWith(end))
  return parts.map((part) => part.slice(0, part.length - end.length))
}

/** The expected output of a batch. */
export interface Expected {
  readonly fields: readonly ValueObject[]
  readonly json: readonly string[]
  readonly sizes: readonly number[]
}

export function expectedOf(after: readonly LogEvent[]): Expected {
  const fields = after.map((event) => event.fields)
  return { fields, json: after.map(({ fields }) => writeJson(fields)), sizes: after.map(({ size }) => size) }
}

/** Throws if a batch gives a different output in one of the ways in which components read events. */
export function check(batch: LogBatch | undefined, expected: Expected, random: Random): void {
  if (batch === undefined) {
    assert.deepEqual([], expected.json)
    return
  }
  assert.equal(batch.count, expected.json.length)
  assert.equal(
    batch.bytes,
    expected.sizes.reduce((sum, size) => sum + size, 0),
  )
  if (batch instanceof ByteBatch) {
    assert.deepEqual(
      Array.from({ length: batch.count }, (_, index) => batch.size(index)),
      expected.sizes,
    )
  }
  const way = random.below(5)
  if (way === 4) {
    for (const [index, event] of batch.events.entries()) checkEvent(event, expected.fields[index] ?? {}, random)
    return
  }
  if (way === 0) {
    assert.deepEqual(
      batch.events.map(({ fields }) => writeJson(fields)),
      expected.json,
    )
    assert.deepEqual(
      batch.events.map(({ size }) => size),
      expected.sizes,
    )
    assert.deepEqual(written(batch, random), expected.json)
    return
  }
  if (way === 1 && batch.count > 1) {
    const middle = random.below(batch.count)
    const part = (from: number, to: number): Expected => ({
      fields: expected.fields.slice(from, to),
      json: expected.json.slice(from, to),
      sizes: expected.sizes.slice(from, to),
    })
    check(batch.slice(0, middle), part(0, middle), random)
    check(batch.slice(middle, batch.count), part(middle, batch.count), random)
    return
  }
  if (way === 2) {
    const other = batch.share()
    assert.deepEqual(written(batch, random), expected.json)
    check(other, expected, random)
    return
  }
  assert.deepEqual(written(batch, random), expected.json)
}

/** An event's data before and after an object is created for it. */
function checkEvent(event: LogEvent, fields: ValueObject, random: Random): void {
  for (const name of [
    ...Object.keys(fields).slice(0, 12),
    'a',
    's',
    'message',
    'timestamp',
    'stream',
    'env',
    'none',
    random.pick(names),
  ]) {
    const value = event.field(name)
    assert.equal(jsonOf(value), jsonOf(getField(fields, name)), name)
  }
  if (event instanceof DeferredEvent && event.hides) {
    const body = new Body(8)
    event.hidden = ['timestamp', 'a']
    event.writeJson(body)
    const quoted = new Body(8)
    if (event.writeChosen(quoted, allFields, true))
      assert.equal(JSON.parse(quoted.view().toString()), body.view().toString())
    event.hidden = []
    const { timestamp: _, a: __, ...rest } = fields
    assert.equal(body.view().toString(), writeJson(rest))
  }
  const body = new Body(8)
  assert.equal(encoder.encode(event, body), undefined)
  assert.equal(body.view().toString(), writeJson(fields))
  assert.equal(writeJson(event.fields), writeJson(fields))
}

const jsonOf = (value: Value | undefined) => (value === undefined ? undefined : writeJson(value))
