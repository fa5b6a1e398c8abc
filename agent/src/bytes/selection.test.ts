// A field that an encoding excludes is not written, even if the kernel has no room for its name.

import { expect, test } from 'vitest'
import { compileStreamEncoder } from '../codecs/encoding/encoder.ts'
import { Body } from '../event/body.ts'
import { LineStream } from '../sinks/stream/line-stream.ts'
import { BytePod } from '../testing/byte-pod.ts'
import { through, transformsOf } from '../testing/lanes.ts'
import { ByteBatch } from './byte-batch.ts'
import { theKernel } from './kernel.ts'

test('names without space in the kernel are excluded like all others', async () => {
  const transforms = await transformsOf(['. = parse_json!(.message)'], true)
  const pod = new BytePod('pod')
  const lineOf = (message: string) => Buffer.from(`2026-11-23T10:11:12.5Z stdout F ${message}`)
  const encoder = compileStreamEncoder({ codec: 'json', only_fields: ['kept'], timestamp_format: 'rfc3339' } as never)
  const stream = LineStream.of(encoder, () => expect.fail('JSON takes all events.'))
  const written = (message: string): string => {
    const body = new Body(16)
    pod.read([lineOf(message), lineOf('{"kept":2}')], (batch) => {
      const after = through(transforms, batch)
      expect(after).toBeInstanceOf(ByteBatch)
      stream?.write(after as ByteBatch, 0, 2, body)
    })
    return body.view().toString()
  }
  expect(written('{"hidden":"canary","kept":1}')).toBe('{"kept":1}\n{"kept":2}\n')
  for (let name = 0; name <= theKernel().at('maxKeys'); name += 100) {
    written(`{${Array.from({ length: 100 }, (_, index) => `"name-${name + index}":1`).join(',')}}`)
  }
  let lacksNames = false
  pod.read([lineOf('{}')], ({ lines }) => {
    lacksNames = lines.origin.keys.lacksNames(theKernel())
  })
  expect(lacksNames).toBe(true)
  expect(written('{"late":"canary","kept":1}')).toBe('{"kept":1}\n{"kept":2}\n')
})
