import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { Checkpoints } from './checkpoint.ts'
import { CheckpointWriter } from './checkpoint-writer.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-checkpoints-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

const checksum = 'checksum:b82d1ebc2ca6e335'
const path = () => join(folder, 'in', 'checkpoints.json')
const newPath = () => join(folder, 'in', 'checkpoints.new.json')
const document = (position: number, modified = '2026-01-02T03:04:05Z') =>
  `{"version":"1","checkpoints":[{"fingerprint":{"first_lines_checksum":13271297470482539317},"position":${position},"modified":"${modified}"}]}`

function seed(file: string, text: string): void {
  mkdirSync(join(folder, 'in'), { recursive: true })
  writeFileSync(file, text)
}

function load(options: { ignoreOlderMs?: number } = {}): Checkpoints {
  const checkpoints = new Checkpoints(folder, 'in', options)
  checkpoints.load()
  return checkpoints
}

test('positions are written with checksums of all 64 bits and read again', async () => {
  const written = load()
  written.set(checksum, 456)
  written.set('inode:12:34', 7)
  expect(await written.write()).toBe(2)
  expect(await written.write()).toBe(0)
  expect(readFileSync(path(), 'utf8')).toMatch(
    /^\{"version":"1","checkpoints":\[\{"fingerprint":\{"first_lines_checksum":13271297470482539317\},"position":456,"modified":"[^"]+Z"\},\{"fingerprint":\{"dev_inode":\[12,34\]\},"position":7,"modified":"[^"]+Z"\}\]\}$/,
  )
  expect(existsSync(newPath())).toBe(false)
  const read = load()
  expect([read.get(checksum), read.get('inode:12:34')]).toEqual([456, 7])
})

test('a complete replacement that was not renamed is the newer file', () => {
  seed(path(), document(1))
  seed(newPath(), document(2))
  expect(load().get(checksum)).toBe(2)
  expect(existsSync(newPath())).toBe(false)
  expect(readFileSync(path(), 'utf8')).toBe(document(2))
})

test('a truncated replacement is ignored', () => {
  seed(path(), document(1))
  seed(newPath(), document(2).slice(0, 60))
  expect(load().get(checksum)).toBe(1)
})

test.each(['', '{}', 'null', '[]', '{"checkpoints":[null,{"fingerprint":{}},{"position":-1}]}', '\0\0\0'])(
  'the content %j is read as no positions',
  (text) => {
    seed(path(), text)
    expect(load().size).toBe(0)
  },
)

test('old entries can be left out', () => {
  seed(path(), document(1, '2020-01-01T00:00:00Z'))
  expect(load({ ignoreOlderMs: 1000 }).size).toBe(0)
})

test('entries of missing files are dropped after a minute', () => {
  const checkpoints = load()
  checkpoints.set(checksum, 1)
  checkpoints.prune(() => false, 0)
  checkpoints.prune(() => true, 50_000)
  checkpoints.prune(() => false, 60_000)
  checkpoints.prune(() => false, 119_999)
  expect(checkpoints.size).toBe(1)
  checkpoints.prune(() => false, 120_000)
  expect(checkpoints.size).toBe(0)
})

test('the file belongs to the tailer that read it last', () => {
  const first = load()
  expect(first.owned).toBe(true)
  const second = load()
  expect([first.owned, second.owned]).toEqual([false, true])
})

/** Calls a function once per event loop turn while a promise is pending. */
async function meanwhile(pending: Promise<unknown>, act: (turn: number) => void): Promise<void> {
  let settled = false
  const end = () => {
    settled = true
  }
  pending.then(end, end)
  for (let turn = 1; ; turn++) {
    await new Promise((resolve) => setImmediate(resolve))
    if (settled) return
    act(turn)
  }
}

test('if writes at the end of the process overlap a running write, the last positions win', async () => {
  const checkpoints = load()
  for (let round = 0; round < 20; round++) {
    checkpoints.set('inode:1:1', 1000 * round + 1)
    const writing = checkpoints.write()
    let last = 0
    await meanwhile(writing, (turn) => {
      last = 1000 * round + 1 + turn
      checkpoints.set('inode:1:1', last)
      expect(checkpoints.writeSync()).toBe(1)
    })
    expect(await writing).toBe(0)
    expect(existsSync(newPath())).toBe(false)
    expect(load().get('inode:1:1')).toBe(last)
    checkpoints.load()
  }
})

test('a predecessor that still writes leaves the file to its successor', async () => {
  for (let round = 1; round <= 20; round++) {
    const before = load()
    before.set('inode:1:1', round)
    const writing = before.write()
    let after = before
    await meanwhile(writing, (turn) => {
      after = load()
      after.set('inode:1:1', 1000 * round + turn)
      expect(after.writeSync()).toBe(1)
    })
    expect(await writing).toBe(0)
    before.set('inode:2:2', 1)
    expect([await before.write(), before.writeSync(), before.changed]).toEqual([0, 0, false])
    expect(load().get('inode:1:1')).toBe(after.get('inode:1:1'))
    expect(load().get('inode:2:2')).toBeUndefined()
  }
})

test('positions that advance while a source stops are written before it has stopped, without a pending write afterwards', async () => {
  const checkpoints = load()
  const failures: unknown[] = []
  const writer = new CheckpointWriter(
    checkpoints,
    () => true,
    () => {},
    (error) => failures.push(error),
  )
  checkpoints.set('inode:1:1', 1)
  writer.moved()
  const stopping = writer.stop()
  await meanwhile(stopping, (turn) => {
    checkpoints.set('inode:1:1', 1 + turn)
    writer.moved()
  })
  await stopping
  expect(checkpoints.changed).toBe(false)
  expect(existsSync(newPath())).toBe(false)
  expect(failures).toEqual([])
  expect(load().get('inode:1:1')).toBe(checkpoints.get('inode:1:1'))
})

test('a directory that cannot be created is named', () => {
  writeFileSync(join(folder, 'in'), '')
  expect(() => new Checkpoints(folder, 'in')).toThrow('Could not create subdirectory "in" inside of data dir')
})
