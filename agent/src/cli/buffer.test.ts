import { mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { bufferFolder } from '../buffers/folder.ts'
import { BufferRun, numbered } from '../testing/buffer-run.ts'
import { run as buffer } from './buffer.ts'

let data = ''
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'penstock-inspect-'))
})
afterEach(() => rmSync(data, { recursive: true, force: true }))

async function called(...argv: string[]): Promise<{ code: number; output: string }> {
  let output = ''
  const write = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    output += String(text)
    return true
  })
  try {
    return { code: await buffer(argv), output }
  } finally {
    write.mockRestore()
  }
}

const open = () => new BufferRun(bufferFolder(data, 'shop/out'))

async function fill(run: BufferRun): Promise<void> {
  for (let batch = 0; batch < 4; batch++) await run.put(numbered(2 * batch, 2))
}

test('a buffer is shown with its segments and its lag, and nothing is changed', async () => {
  const run = open()
  await fill(run)
  run.buffer.take()?.finalizer.release(1, 'delivered')
  const used = await called('inspect', data, '--format', 'json')
  expect(JSON.parse(used.output)).toMatchObject({ in_use: true })
  await run.end()
  const segment = join(bufferFolder(data, 'shop/out'), 'buffer-data-0.dat')
  const before = readFileSync(segment)

  const { code, output } = await called('inspect', data, '--format', 'json')
  expect(code).toBe(0)
  expect(JSON.parse(output)).toMatchObject({
    path: bufferFolder(data, 'shop/out'),
    in_use: false,
    ledger: { readId: 2, nextId: 8, syncedId: 8 },
    segments: [
      { file: 'buffer-data-0.dat', records: 4, events: 8, first_id: 0, last_id: 7, damaged_records: 0, other_bytes: 0 },
    ],
    missing_events: 0,
    lag_events: 6,
  })
  expect(readFileSync(segment).equals(before)).toBe(true)
  const text = await called('inspect', bufferFolder(data, 'shop/out'))
  expect(text.output).toContain('Lag: 6 events')

  const again = open() // still intact, and not locked
  expect(again.buffer.events).toBe(6)
  await again.end()
})

test('damage is reported, and ends with code 74', async () => {
  const run = open()
  await fill(run)
  await run.end()
  const file = openSync(join(bufferFolder(data, 'shop/out'), 'buffer-data-0.dat'), 'r+')
  writeSync(file, Buffer.from([0xff]), 0, 1, 60)
  const { code, output } = await called('inspect', data, '--format', 'json')
  expect(code).toBe(74)
  expect(JSON.parse(output)).toMatchObject({ missing_events: 2, lag_events: 6, segments: [{ damaged_records: 1 }] })
})

test.each([
  { argv: [], says: /Name a folder/ },
  { argv: ['inspect', '/nowhere/at/all'], says: /cannot be read/ },
  { argv: ['inspect', tmpdir(), '--format', 'xml'], says: /format/ },
])('explains wrong arguments: $argv', async ({ argv, says }) => {
  await expect(called(...argv)).rejects.toThrow(says)
})

test('a folder without a buffer is reported', async () => {
  await expect(called('inspect', data)).rejects.toThrow(/There is no disk buffer in/)
})
