// The output of our deflate is decompressed by zlib, which rejects everything that the format forbids.

import { crc32, gunzipSync, gzipSync, inflateRawSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { Random } from '../testing/random.ts'
import { fastGzip, maxFastGzip } from './deflate.ts'

/** The input limit of one kernel call, and the window size of deflate. */
const part = 64 << 10
const window = 32 << 10

function readBack(body: Buffer, about: string): Buffer {
  const made = fastGzip(body)
  // `toEqual` would compare byte by byte.
  expect(gunzipSync(made).equals(body), about).toBe(true)
  return made
}

function filled(length: number, byte: (index: number, bytes: Buffer) => number): Buffer {
  const bytes = Buffer.alloc(length)
  for (let index = 0; index < length; index++) bytes[index] = byte(index, bytes)
  return bytes
}

function lines(length: number): Buffer {
  let text = ''
  for (let index = 0; text.length < length; index++) {
    text += `{"level":"info","message":"größe ${index % 7}","n":${(index * 7919) % 10_007},"path":"/api/items/${index % 1000}"}\n`
  }
  return Buffer.from(text).subarray(0, length)
}

/** Kinds of body content, of any length. */
const kinds: readonly ((random: Random, length: number) => Buffer)[] = [
  (random, length) => Buffer.alloc(length, random.below(256)),
  (random, length) => filled(length, () => random.below(256)),
  (random, length) => {
    const letters = 1 + random.below(40)
    return filled(length, () => random.below(letters))
  },
  // Each byte is half as frequent as the previous one, so codes reach the maximum length.
  (random, length) => filled(length, () => Math.floor(-Math.log2(random.next() + 1e-12))),
  // Repetitions at any distance, including distances beyond the window.
  (random, length) => {
    const period = 1 + random.below(window + 10)
    return filled(length, (index, bytes) => (index < period ? random.below(256) : (bytes[index - period] as number)))
  },
  (random, length) => {
    const words = Array.from({ length: 1 + random.below(300) }, () => random.next().toString(36).slice(2))
    let text = ''
    while (text.length < length) text += random.pick(words)
    return Buffer.from(text.slice(0, length))
  },
  (_, length) => lines(length),
  // Short words, so that blocks end after many matches, then incompressible bytes, and then parts of both again.
  (random, length) => {
    const words = Array.from({ length: 1 + random.below(3000) }, () =>
      filled(3 + random.below(12), () => random.below(90)),
    )
    const bytes = Buffer.alloc(length)
    for (let at = 0; at < length; ) {
      const end = Math.min(length, at + 1 + random.below(60_000))
      const kind = random.below(3)
      const back = 1 + random.below(at + 1)
      while (at < end) {
        if (kind === 0) at += random.pick(words).copy(bytes, at, 0, end - at)
        else if (kind === 1) bytes[at++] = random.below(256)
        else {
          bytes[at] = bytes[Math.max(0, at - back)] as number
          at++
        }
      }
    }
    return bytes
  },
  // Text between incompressible bytes.
  (random, length) => {
    const text = lines(length)
    for (let at = random.below(5000); at < length; at += 1 + random.below(90_000)) {
      for (const end = Math.min(length, at + random.below(60_000)); at < end; at++) text[at] = random.below(256)
    }
    return text
  },
]

test('any body is read back by zlib, and is never much longer', () => {
  const seed = Number(process.env['PENSTOCK_TEST_SEED'] ?? Date.now() % 1_000_000)
  const random = new Random(seed)
  const lengths = [0, 1, 2, 3, 4, 15, 16, 17, window, window + 1, part - 1, part, part + 1, 2 * part, 3 * part + 5]
  for (let round = 0; round < 3; round++) {
    for (const [kind, make] of kinds.entries()) {
      for (const length of [...lengths, random.below(50), random.below(3000), random.below(5 * part)]) {
        const body = make(random, length)
        const made = readBack(body, `seed ${seed}, kind ${kind}, ${length} bytes`)
        expect(made.length).toBeLessThanOrEqual(length + 18 + 5 * (1 + Math.ceil(length / 16_384)))
      }
    }
  }
})

test('after a block that ends within a match, the next block begins behind the match', () => {
  // One match fewer than a block can hold, all of an earlier word.
  const random = new Random(1)
  const words = Array.from({ length: 200 }, () => filled(6, () => random.below(256)))
  const text = [...words, ...Array.from({ length: 8446 }, () => random.pick(words))]
  // The last match of the block is found late, more than the maximum match length after its beginning.
  for (const [seed, from] of [
    [7, 4185],
    [7, 4461],
    [10, 4137],
    [11, 3915],
  ] as const) {
    const letters = new Random(seed)
    const noise = filled(5000, () => letters.below(256))
    readBack(Buffer.concat([...text, noise, noise.subarray(from, from + 1800)]), `seed ${seed}, from ${from}`)
  }
})

test('64 MiB go through the same memory', () => {
  const piece = lines(1 << 20)
  const random = new Random(5)
  const body = Buffer.concat(
    Array.from({ length: 64 }, (_, index) => (index % 8 === 7 ? kinds[1]?.(random, 1 << 20) : piece)).map(
      (bytes) => bytes as Buffer,
    ),
  )
  expect(body.length).toBe(64 << 20)
  const made = readBack(body, '64 MiB')
  expect(made.length).toBeLessThan(body.length / 4)
})

test('header, checksum and length are those of the format', () => {
  const body = Buffer.from('abcabcabcabcabc')
  const made = fastGzip(body)
  expect([...made.subarray(0, 10)]).toEqual([0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255])
  expect(made.readUInt32LE(made.length - 8)).toBe(crc32(body))
  expect(made.readUInt32LE(made.length - 4)).toBe(body.length)
  expect(inflateRawSync(made.subarray(10, -8)).equals(body)).toBe(true)
})

test('lines become as short as with level 1 of zlib', () => {
  const body = lines(1 << 20)
  expect(fastGzip(body).length).toBeLessThan(gzipSync(body, { level: 1 }).length * 1.1)
  expect(fastGzip(Buffer.from('{"n":1}')).length).toBeLessThanOrEqual(gzipSync('{"n":1}', { level: 1 }).length)
})

test('no bytes of one body are left in the next', () => {
  const secret = filled(200_000, (index) => (index * 31) % 251)
  fastGzip(secret)
  const after = fastGzip(lines(100_000))
  fastGzip(Buffer.alloc(5))
  expect(fastGzip(lines(100_000)).equals(after)).toBe(true)
})

test('a body that is too long is refused', () => {
  const body = { length: maxFastGzip + 1 } as Buffer
  expect(() => fastGzip(body)).toThrow(RangeError)
})
