import { expect, test } from 'vitest'
import { compileEncoder } from '../codecs/encoding/encoder.ts'
import { LineTarget } from '../delivery/line-target.ts'
import { OpenRequest } from '../delivery/request.ts'
import type { Batch } from '../event/batch.ts'
import { Body } from '../event/body.ts'
import type { LogEvent } from '../event/log.ts'
import { BytePod } from '../testing/byte-pod.ts'
import { buildTransform } from '../testing/harness.ts'
import { ByteBatch } from './byte-batch.ts'
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

test('the objects in lines that wait are read once, and are what they were', async () => {
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
  const forms = [
    { message: '{"b":"ü","a":1}', json: '{"a":1,"b":"ü"}' },
    { message: '{ "b" : "\\u003c" , "a" : 1 }', json: '{"a":1,"b":"<"}' },
    { message: '{"o":{"z":1,"y":2},"f":0.10000000000000000555}', json: '{"f":0.1,"o":{"y":2,"z":1}}' },
    { message: '{}', json: '{}' },
    { message: `{${Array.from({ length: 90 }, (_, index) => `"k${100 + index}":${index}`)}}`, json: undefined },
  ]
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
  // Every object that is read gets a number.
  expect(theKernel().current('stamp')).toBe(stamp)
  expect(new Set(written(others))).toEqual(new Set(['{"v":"another"}']))
})
