// Every codec with every framing, fed by malicious senders. The seed is fixed; the name of a test contains it.

import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'
import { LogEvent } from '../../event/log.ts'
import { decoding, decodingCodecs, framing, framingMethods } from '../../schema/groups.ts'
import { parseOptions } from '../../schema/validate.ts'
import { testGlobals } from '../../testing/harness.ts'
import { framed, goodFrame, hostileBytes, limitedTo } from '../../testing/hostile.ts'
import { Random } from '../../testing/random.ts'
import { compileDecoder, type Decoded, type Decoder } from './decoder.ts'

const seed = 20_260_101
const limit = 4096
// Delimiters do not work with protobuf, because its data may contain the same bytes.
const pairs = decodingCodecs.flatMap((codec) =>
  framingMethods
    .filter((method) => codec !== 'native' || !['newline_delimited', 'character_delimited'].includes(method))
    .map((method) => ({ codec, method })),
)

function decoder(codec: string, method: (typeof framingMethods)[number], stream: boolean): Decoder {
  const options = { decoding: { codec }, framing: limitedTo(method, limit) }
  const checked = parseOptions({ decoding: decoding(), framing: framing() }, options)
  if (!checked.ok) throw new Error(JSON.stringify(checked.problems))
  return compileDecoder(checked.value.decoding, checked.value.framing, testGlobals('/nowhere'), { stream })
}

const texts = (decoded: Decoded) =>
  decoded.events.map((event) => (event instanceof LogEvent ? event.fields['message'] : undefined))

test.each(pairs)(`codec $codec, framing $method: no message is an exception (seed ${seed})`, ({ codec, method }) => {
  const random = new Random(seed)
  const messages = decoder(codec, method, false)
  for (let round = 0; round < 300; round++) {
    const parts = Array.from({ length: 1 + random.below(3) }, () => {
      const bytes = hostileBytes(random, codec, limit * 2)
      return random.next() < 0.5 ? bytes : framed(method, bytes)
    })
    messages.message(Buffer.concat(parts))
  }
  expect(texts(messages.message(framed(method, goodFrame(codec, 'still here'))))).toEqual(['still here'])
})

test.each(pairs.filter(({ method }) => method === 'newline_delimited' || method === 'character_delimited'))(
  `codec $codec, framing $method: a stream continues after every fault (seed ${seed})`,
  ({ codec, method }) => {
    const random = new Random(seed)
    const stream = decoder(codec, method, true)
    const good = framed(method, goodFrame(codec, 'still here'))
    for (let round = 0; round < 300; round++) {
      const bytes = Buffer.concat([hostileBytes(random, codec, limit * 2), framed(method, Buffer.alloc(0)), good])
      let last: Decoded | undefined
      for (let from = 0; from < bytes.length; ) {
        const size = 1 + random.below(bytes.length)
        last = stream.push(bytes.subarray(from, from + size))
        from += size
      }
      if (last !== undefined) expect(texts(last).at(-1)).toBe('still here')
    }
  },
)

test.each([
  { method: 'newline_delimited', first: 'x' },
  { method: 'character_delimited', first: 'x' },
  { method: 'octet_counting', first: '1073741824 ' },
  { method: 'octet_counting', first: 'x' },
  { method: 'length_delimited', first: '\u0040\0\0\0' },
] as const)('framing $method keeps no more than its limit of a frame without end', ({ method, first }) => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const stream = decoder('bytes', method, true)
  const piece = Buffer.alloc(65_536, 0x78)
  const used = () => {
    collect()
    const { arrayBuffers, heapUsed } = process.memoryUsage()
    return arrayBuffers + heapUsed
  }
  stream.push(Buffer.from(first, 'latin1'))
  const before = used()
  let peak = 0
  for (let pushed = 0; pushed < 128; pushed++) {
    stream.push(piece)
    if (pushed % 16 === 0) peak = Math.max(peak, used() - before)
  }
  // Memory may contain one piece and one frame of the maximum length; the rest is an allowance for the test itself.
  expect(peak).toBeLessThan(piece.length + 2 * limit + 512 * 1024)
})

test('the events of a message of empty frames are not in memory all at once', () => {
  const peak = { events: 0, all: 0 }
  for (const { events } of decoder('bytes', 'newline_delimited', false).parts(Buffer.alloc(1 << 20, 0x0a))) {
    peak.events = Math.max(peak.events, events.length)
    peak.all += events.length
  }
  expect(peak).toEqual({ events: 16_384, all: 1 << 20 })
})
