import { randomBytes } from 'node:crypto'
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { crc64, Fingerprinter, type FingerprintOptions } from './fingerprint.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-fingerprint-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

function identify(
  content: string | Buffer,
  options: Partial<FingerprintOptions & { lines: number }> = {},
  whole = false,
) {
  const path = join(folder, 'file')
  writeFileSync(path, content)
  const descriptor = openSync(path, 'r')
  try {
    const full = { strategy: 'checksum', lines: 1, maxLineBytes: 32768, ...options } as FingerprintOptions
    return new Fingerprinter(full).identify(descriptor, whole)
  } finally {
    closeSync(descriptor)
  }
}

test.each([
  ['123456789', '6c40df5f0b497347'],
  ['2016-10-06T00:17:09.669794202Z stdout F log content 1\n', 'b82d1ebc2ca6e335'],
  ['', '0000000000000000'],
])('the checksum of %j is %s', (text, expected) => {
  expect(crc64(Buffer.from(text))).toBe(expected)
})

const first = '2016-10-06T00:17:09.669794202Z stdout F log content 1\n'
const checksum = 'checksum:b82d1ebc2ca6e335'

test.each([
  { name: 'the first line decides', content: `${first}more`, expected: checksum },
  {
    name: 'a compressed file has that of its content',
    content: gzipSync(`${first}${'x'.repeat(9999)}`),
    expected: checksum,
  },
  { name: 'an incomplete line has no checksum', content: first.slice(0, -1), expected: undefined },
  { name: 'an empty file has none', content: '', expected: undefined },
  {
    name: 'a compressor at its first bytes has written none',
    content: gzipSync(first).subarray(0, 8),
    expected: undefined,
  },
])('$name', ({ content, expected }) => {
  expect(identify(content)?.fingerprint).toBe(expected)
})

test('a first line longer than the buffer counts with what fits', () => {
  const long = identify('x'.repeat(200), { maxLineBytes: 100 } as never)
  expect(long?.fingerprint).toBe(`checksum:${crc64(Buffer.alloc(100, 'x'))}`)
})

test('only the examined part of a highly compressed file is decompressed', () => {
  const mixed = Buffer.concat([
    randomBytes(20_000).map((byte) => (byte === 10 ? 11 : byte)),
    Buffer.alloc(32 << 20, 'x'),
  ])
  const compressed = gzipSync(mixed)

  expect(compressed.length).toBeGreaterThan(40_000)
  expect(identify(compressed, { maxLineBytes: 100_000 } as never)?.fingerprint).toBe(
    `checksum:${crc64(mixed.subarray(0, 100_000))}`,
  )
})

test('a first line beyond the first read is found', () => {
  const text = `${'x'.repeat(10_000)}\n`
  expect(identify(`${text}more`)?.fingerprint).toBe(`checksum:${crc64(Buffer.from(text))}`)
})

test('several lines can be requested', () => {
  expect(identify('a\nb\nc', { lines: 2 })?.fingerprint).toBe(`checksum:${crc64(Buffer.from('a\nb\n'))}`)
  expect(identify('a\nb\nc', { lines: 3 })).toBe(undefined)
  expect(identify('a\nb\nc', { lines: 3 }, true)?.fingerprint).toBe(`checksum:${crc64(Buffer.from('a\nb\nc'))}`)
})

test('the inode identifies a file if content must not', () => {
  expect(identify('', { strategy: 'device_and_inode' })?.fingerprint).toMatch(/^inode:\d+:\d+$/)
})
