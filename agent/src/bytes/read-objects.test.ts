import { expect, test } from 'vitest'
import { compileEncoder } from '../codecs/encoding/encoder.ts'
import { LineTarget } from '../delivery/line-target.ts'
import { OpenRequest } from '../delivery/request.ts'
import type { Batch } from '../event/batch.ts'
import { Body } from '../event/body.ts'
import type { LogEvent } from '../event/log.ts'
import { PodByteLane } from '../sources/orchestrator_logs/byte-lane.ts'
import { CriParser } from '../sources/orchestrator_logs/cri.ts'
import { BytePod, readTogether } from '../testing/byte-pod.ts'
import { buildTransform } from '../testing/harness.ts'
import { ByteBatch } from './byte-batch.ts'
import { chunkBytes } from './chunks.ts'
import { CurrentKeys, SharedKeys } from './current-keys.ts'
import { theKernel } from './kernel.ts'

const encoder = compileEncoder({ codec: 'json' } as never)

function written(batch: ByteBatch): string[] {
  const request = new OpenRequest('', new Body(16))
  const target = new LineTarget({ delimiter: 0x0a, isSeparator: false }, (events, from, to, into) => {
    for (let index = from; index < to; index++) {
      encoder.encode(events[index] as LogEvent, into.body)
      into.body.writeByte(0x0a)
    }
  })
  target.encode(batch, 0, batch.count, request)
  batch.done()
  return request.body.view().toString().trimEnd().split('\n')
}

const forms = [
  { message: '{"b":"ü","a":1}', json: '{"a":1,"b":"ü"}' },
  { message: '{ "b" : "\\u003c" , "a" : 1 }', json: '{"a":1,"b":"<"}' },
  { message: '{"o":{"z":1,"y":2},"f":0.10000000000000000555}', json: '{"f":0.1,"o":{"y":2,"z":1}}' },
  { message: '{}', json: '{}' },
  { message: `{${Array.from({ length: 90 }, (_, index) => `"k${100 + index}":${index}`)}}`, json: undefined },
]

test('the objects in waiting lines are read once, and stay unchanged', async () => {
  const transform = await buildTransform('remap', { source: '. = parse_json!(.message)', drop_on_error: true })
  const read = (name: string, messages: readonly string[]) => {
    let waiting: ByteBatch | undefined
    const lines = messages.map((message) => Buffer.from(`2026-11-23T10:11:12.123456789Z stdout F ${message}`))
    new BytePod(name).read(lines, (batch) => {
      void transform.transform(batch, {
        send(next: Batch) {
          waiting = next as ByteBatch
          return undefined
        },
      })
    })
    if (!(waiting instanceof ByteBatch)) throw new Error('The lines did not stay bytes.')
    return waiting
  }
  const chunk = Array.from({ length: 300 }, (_, index) => forms[index % forms.length] as (typeof forms)[number])
  const mine = read(
    'mine',
    chunk.map(({ message }) => message),
  )
  const stamp = theKernel().current('stamp')

  const others = read(
    'other',
    chunk.map(() => '{"v":"another"}'),
  )
  const after = written(mine)

  expect(after).toEqual(chunk.map(({ message, json }) => json ?? message))
  // Every object read gets a number.
  expect(theKernel().current('stamp')).toBe(stamp)
  expect(new Set(written(others))).toEqual(new Set(['{"v":"another"}']))
})

const edits = ['. = parse_json!(.message)', '. = parse_json!(.message)\n.c = 1']

test.each([
  { names: 'the same names', shared: true, objects: 1 },
  { names: 'names of their own', shared: false, objects: 2 },
])('$objects of the pipelines that read one chunk with $names parse its objects', async ({ shared, objects }) => {
  const messages = Array.from(
    { length: 200 },
    (_, index) => (forms[index % forms.length] as (typeof forms)[number]).message,
  )
  const one = new SharedKeys()
  const pods = edits.map(() => {
    const keys = new CurrentKeys(shared ? one : new SharedKeys())
    return new BytePod('pod', false, undefined, new PodByteLane(new CriParser(() => 0), false, keys))
  })
  const transforms = await Promise.all(edits.map((source) => buildTransform('remap', { source, drop_on_error: true })))
  const batches: ByteBatch[] = []
  const kernel = theKernel()
  const { call } = kernel
  let read = 0
  const readObjects: typeof call.readObjects = (from, to) => {
    read++
    return call.readObjects(from, to)
  }
  Object.assign(kernel, { call: { ...call, readObjects } })

  const lines = messages.map((message) => Buffer.from(`2026-11-23T10:11:12.123456789Z stdout F ${message}`))
  const waiting = readTogether(pods, lines, (batch, pod) => {
    void transforms[pod]?.transform(batch, {
      send(next: Batch) {
        batches[pod] = next as ByteBatch
        return undefined
      },
    })
  })

  expect(waiting[0]).toBeGreaterThan(chunkBytes)
  expect(waiting.at(-1)).toBe(0)
  const found = batches.map(written)
  expect(found[0]).toEqual(messages.map((message) => forms.find((form) => form.message === message)?.json ?? message))
  for (const [index, line] of (found[1] as string[]).entries()) {
    expect(JSON.parse(line)).toEqual({ ...JSON.parse(messages[index] as string), c: 1 })
  }
  Object.assign(kernel, { call })
  expect(read).toBe(objects)
})
