import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { snappyCompress, snappyLength, snappyUncompress } from './snappy.ts'

const noise = Buffer.concat(
  Array.from({ length: 4000 }, (_, index) => createHash('md5').update(String(index)).digest()),
)

test.each([
  ['nothing', Buffer.alloc(0)],
  ['one byte', Buffer.from('a')],
  ['fifteen bytes', Buffer.from('abcabcabcabcabc')],
  ['one byte many times', Buffer.alloc(300_000, 'a')],
  ['lines', Buffer.from(Array.from({ length: 9000 }, (_, line) => `GET /item/${line * 7919} 200\n`).join(''))],
  ['noise', noise],
  ['noise after lines', Buffer.concat([Buffer.alloc(66_000, 'line of text\n'), noise])],
])('%s is the same after it was compressed', (_, data) => {
  const block = snappyCompress(data)
  if (data.length > 0) expect(snappyUncompress(block, data.length)).toEqual(data)
  expect(block.length).toBeLessThanOrEqual(32 + data.length + data.length / 6)
})

test('a block that announces more than it can contain is refused before memory is allocated', () => {
  const block = Buffer.from([0xff, 0xff, 0xff, 0x1f, 0x00, 0x61]) // 64 MiB
  expect(snappyLength(block)).toBe(0x3ffffff)
  const before = process.memoryUsage().arrayBuffers
  expect(snappyUncompress(block, 1 << 27)).toBeUndefined()
  expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1 << 20)
  expect(snappyLength(Buffer.alloc(0))).toBe(0)
  expect(snappyLength(Buffer.alloc(9, 0xff))).toBe(0)
})
