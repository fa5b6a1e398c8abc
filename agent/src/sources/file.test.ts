import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import type { Batch } from '../event/batch.ts'
import type { LogEvent } from '../event/log.ts'
import { Bytes } from '../event/value.ts'
import { startSource, type TestSource } from '../testing/harness.ts'

// No wait here has a fixed time, because a machine that builds and tests at once is slow.

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'penstock-file-'))
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const messages = (source: TestSource) => source.sent.map((event) => (event as LogEvent).fields['message'])
const lines = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, index) => `line ${from + index}\n`).join('')
const expected = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => `line ${from + index}`)

test('lines become events with message, time, path and host', async () => {
  const path = join(folder, 'app.log')
  writeFileSync(path, 'first\nsecond\nnot yet whole')
  await using source = await startSource('file', { include: [join(folder, '*.log')], host_key: 'node.name' })
  const [event] = (await source.received(2)) as LogEvent[]
  expect(event?.fields).toEqual({
    message: 'first',
    file: path,
    source_type: 'file',
    timestamp: expect.anything(),
    node: { name: expect.any(String) },
  })
  appendFileSync(path, ' now\n')
  await source.received(3)
  expect(messages(source)).toEqual(['first', 'second', 'not yet whole now'])
})

test('new files, also in new folders, are found long before the next scan', async () => {
  await using source = await startSource('file', {
    include: [join(folder, '**/*.log')],
    exclude: ['**/skip.log'],
    glob_minimum_cooldown_ms: 3_600_000,
  })
  mkdirSync(join(folder, 'a/b'), { recursive: true })
  writeFileSync(join(folder, 'a/b/skip.log'), lines(0, 3))
  writeFileSync(join(folder, 'a/b/x.log'), lines(0, 3))
  await source.received(3)
  appendFileSync(join(folder, 'a/b/x.log'), lines(3, 4))
  await source.received(4)
  expect(messages(source)).toEqual(expected(0, 4))
})

test.each([
  { limit: 200, lineBytes: 100, run: 2 },
  { limit: 350, lineBytes: 100, run: 3 },
  { limit: 50, lineBytes: 100, run: 1 }, // a longer line is read as a whole
])(
  'with max_read_bytes $limit, a file is read for $run line(s) of $lineBytes bytes per turn',
  async ({ limit, lineBytes, run }) => {
    for (const name of ['a', 'b']) {
      const line = (index: number) => `${name}${index}`.padEnd(lineBytes - 1, '.')
      writeFileSync(
        join(folder, `${name}.log`),
        `${Array.from({ length: 60 }, (_, index) => line(index)).join('\n')}\n`,
      )
    }
    await using source = await startSource('file', { include: [join(folder, '*.log')], max_read_bytes: limit })
    await source.received(120)
    const names = messages(source)
      .map((message) => String(message)[0])
      .join('')
    const runs = names.match(/a+|b+/g) ?? []
    // Two runs only take turns after the second file is opened and before the first one is done.
    const shared = runs.filter((each) => each.length === run)
    expect(shared.length).toBeGreaterThan(60 / run)
  },
)

test('with oldest_first the older of two files in different folders is read to its end before the newer one', async () => {
  const all = (name: string) =>
    Array.from({ length: 60 }, (_, index) => `${name}${index}\n`.padStart(100, '.')).join('')
  const [older, newer] = [join(folder, 'z', 'older.log'), join(folder, 'a', 'newer.log')]
  for (const path of [older, newer]) mkdirSync(dirname(path))
  writeFileSync(older, all('o'))
  // File systems give times in steps.
  do {
    rmSync(newer, { force: true })
    writeFileSync(newer, all('n'))
  } while (statSync(newer).birthtimeMs === statSync(older).birthtimeMs)
  await using source = await startSource('file', {
    include: [join(folder, '*/*.log')],
    max_read_bytes: 200,
    oldest_first: true,
  })
  await source.received(120)
  const names = messages(source).map((message) => String(message).replace(/^\.+|\d+$/g, ''))
  expect(names.join('')).toBe('o'.repeat(60) + 'n'.repeat(60))
})

test('a renamed file and its successor are read to their ends', async () => {
  const path = join(folder, 'app.log')
  writeFileSync(path, lines(0, 10))
  await using source = await startSource('file', { include: [join(folder, '*.log*')] })
  await source.received(10)
  renameSync(path, `${path}.1`)
  appendFileSync(`${path}.1`, lines(10, 12))
  writeFileSync(path, lines(12, 20))
  await source.received(20)
  expect(messages(source).sort()).toEqual(expected(0, 20).sort())
})

test('a copied and truncated file is read from its beginning', async () => {
  const path = join(folder, 'app.log')
  writeFileSync(path, lines(0, 10))
  await using source = await startSource('file', { include: [join(folder, '*.log*')] })
  await source.received(10)
  copyFileSync(path, `${path}.1`)
  truncateSync(path, 0)
  appendFileSync(path, lines(10, 14))
  await source.received(14)
  expect(messages(source)).toEqual(expected(0, 14))
})

test('a compressed file is read once, and a compressed copy of a known file not again', async () => {
  writeFileSync(join(folder, 'a.log'), lines(0, 5))
  writeFileSync(join(folder, 'b.log.gz'), gzipSync(`${lines(5, 10)}line 10`))
  await using source = await startSource('file', { include: [join(folder, '*')], read_to_end: true })
  await source.received(11)
  writeFileSync(join(folder, 'a.log.1.gz'), gzipSync(lines(0, 5)))
  expect(messages(source).sort()).toEqual(expected(0, 11).sort())
  await source.stop()
  await using again = await startSource(
    'file',
    { include: [join(folder, '*')], read_to_end: true },
    { dataDir: source.dataDir },
  )
  await again.stop()
  expect(messages(again)).toEqual([])
})

test('read_to_end stops at the end of every file, including a last line without a newline', async () => {
  writeFileSync(join(folder, 'a.log'), 'one\ntwo')
  writeFileSync(join(folder, 'b.log'), 'no newline at all')
  writeFileSync(join(folder, 'empty.log'), '')
  await using source = await startSource('file', { include: [join(folder, '*.log')], read_to_end: true })
  await source.received(3)
  expect(messages(source).sort()).toEqual(['no newline at all', 'one', 'two'])
})

test('after a restart, reading continues at the end of the delivered lines', async () => {
  const path = join(folder, 'app.log')
  writeFileSync(path, lines(0, 10))
  const dataDir = mkdtempSync(join(tmpdir(), 'penstock-data-'))
  {
    await using source = await startSource('file', { include: [path] }, { dataDir })
    await source.received(10)
  }
  appendFileSync(path, lines(10, 15))
  const held: Batch[] = []
  {
    // Unanswered lines are read again.
    await using source = await startSource(
      'file',
      { include: [path] },
      { dataDir, consume: (batch) => void held.push(batch) },
    )
    await source.received(5)
    expect(messages(source)).toEqual(expected(10, 15))
  }
  {
    await using source = await startSource('file', { include: [path] }, { dataDir })
    await source.received(5)
    expect(messages(source)).toEqual(expected(10, 15))
  }
  // An answer after the end still counts.
  const text = await readFile(join(dataDir, 'in', 'checkpoints.json'), 'utf8')
  expect(JSON.parse(text)).toMatchObject({ version: '1', checkpoints: [{ position: lines(0, 15).length }] })
  rmSync(dataDir, { recursive: true })
})

test('a source that replaces another continues at its position, and its checkpoint waits for both', async () => {
  const path = join(folder, 'app.log')
  const dataDir = mkdtempSync(join(tmpdir(), 'penstock-data-'))
  const held: Batch[] = []
  const consume = (batch: Batch) => void held.push(batch)
  writeFileSync(path, lines(0, 10))
  {
    await using source = await startSource('file', { include: [path] }, { dataDir, consume })
    await source.received(10)
  }
  appendFileSync(path, lines(10, 15))
  await using source = await startSource(
    'file',
    { include: [path], max_line_bytes: 99 },
    { dataDir, consume, replaces: true },
  )
  await source.received(5)
  expect(messages(source)).toEqual(expected(10, 15))
  const position = async () => {
    const text = await readFile(join(dataDir, 'in', 'checkpoints.json'), 'utf8')
    return (JSON.parse(text) as { checkpoints: { position: number }[] }).checkpoints[0]?.position
  }
  expect(held).toHaveLength(2)
  held[1]?.finalizer.release(1, 'delivered')
  await vi.waitFor(async () => expect(await position()).toBe(0), 5000)
  held[0]?.finalizer.release(1, 'delivered')
  await vi.waitFor(async () => expect(await position()).toBe(lines(0, 15).length), 5000)
  await source.stop()
  rmSync(dataDir, { recursive: true })
})

test('a source reads lines that its predecessor gave up at the stop again', async () => {
  const path = join(folder, 'app.log')
  const dataDir = mkdtempSync(join(tmpdir(), 'penstock-data-'))
  const held: Batch[] = []
  writeFileSync(path, lines(0, 10))
  {
    await using source = await startSource(
      'file',
      { include: [path] },
      { dataDir, consume: (batch) => void held.push(batch) },
    )
    await source.received(10)
    await source.stop()
    held[0]?.finalizer.release(1, 'errored')
  }
  await using source = await startSource('file', { include: [path] }, { dataDir, replaces: true })
  await source.received(10)
  expect(messages(source)).toEqual(expected(0, 10))
  await source.stop()
  rmSync(dataDir, { recursive: true })
})

test('a full pipeline blocks reading, and a checkpoint follows delivery in order', async () => {
  const path = join(folder, 'app.log')
  const held: Batch[] = []
  let release = () => {}
  writeFileSync(path, lines(0, 5))
  await using source = await startSource(
    'file',
    { include: [path] },
    {
      consume: (batch) => {
        held.push(batch)
        return new Promise((resolve) => {
          release = resolve
        })
      },
    },
  )
  await source.received(5)
  appendFileSync(path, lines(5, 8))
  release()
  await source.received(8)
  const position = async () => {
    const text = await readFile(join(source.dataDir, 'in', 'checkpoints.json'), 'utf8').catch(() => '{}')
    return (JSON.parse(text) as { checkpoints?: { position: number }[] }).checkpoints?.[0]?.position
  }
  held[1]?.finalizer.release(1, 'delivered')
  await vi.waitFor(async () => expect(await position()).toBe(0), 5000)
  held[0]?.finalizer.release(1, 'delivered')
  await vi.waitFor(async () => expect(await position()).toBe(lines(0, 8).length), 5000)
})

test('too long lines are discarded and counted; invalid UTF-8 stays bytes', async () => {
  const path = join(folder, 'app.log')
  writeFileSync(
    path,
    Buffer.concat([
      Buffer.from('short\n'),
      Buffer.alloc(100, 'x'),
      Buffer.from('\n'),
      Buffer.alloc(3_000_000, 'y'),
      Buffer.from('\ncaf\xe9\n', 'latin1'),
      Buffer.from('grün\n'),
    ]),
  )
  await using source = await startSource('file', { include: [path], max_line_bytes: 64 })
  await source.received(3)
  expect(messages(source)).toEqual(['short', new Bytes(Buffer.from('caf\xe9', 'latin1')), 'grün'])
  expect(source.events.counts.get('component_discarded_events_total intentional=false')).toBe(2)
  expect(source.events.errors[0]).toMatchObject({ code: 'reading_line_from_file', type: 'condition_failed' })
})

test.each([
  { charset: 'utf-16le', content: Buffer.from('ein\u0a0a Ende\nzwei\n', 'utf16le') },
  { charset: 'utf-16be', content: Buffer.from('ein\u0a0a Ende\nzwei\n', 'utf16le').swap16() },
])('text in $charset is decoded', async ({ charset, content }) => {
  writeFileSync(join(folder, 'a.log'), content)
  await using source = await startSource('file', { include: [join(folder, 'a.log')], encoding: { charset } })
  await source.received(2)
  expect(messages(source)).toEqual(['ein\u0a0a Ende', 'zwei'])
})

test.each([
  {
    mode: 'continue_through',
    start: '^[^\\s]',
    condition: '^[\\s]+',
    input: 'a\n b\n c\nd\n',
    groups: ['a\n b\n c', 'd'],
  },
  {
    mode: 'continue_past',
    start: '\\\\$',
    condition: '\\\\$',
    input: 'a\\\nb\\\nc\nd\n',
    groups: ['a\\\nb\\\nc', 'd'],
  },
  {
    mode: 'halt_before',
    start: '^start',
    condition: '^start',
    input: 'x\nstart\n1\nstart\n2\n',
    groups: ['x', 'start\n1', 'start\n2'],
  },
  { mode: 'halt_with', start: '^\\{', condition: ';$', input: '{\nb;\nc\n', groups: ['{\nb;', 'c'] },
  { mode: 'end_with', start: '^', condition: ';$', input: 'a;\nb\nc;\nd;\ne\n', groups: ['a;', 'b\nc;', 'd;', 'e'] },
])('multiline $mode joins lines', async ({ mode, start, condition, input, groups }) => {
  writeFileSync(join(folder, 'a.log'), input)
  await using source = await startSource('file', {
    include: [join(folder, 'a.log')],
    multiline: { mode, start_pattern: start, condition_pattern: condition, timeout_ms: 50 },
    offset_key: 'offset',
  })
  await source.received(groups.length)
  expect(messages(source)).toEqual(groups)
  expect((source.sent[0] as LogEvent).fields['offset']).toBe(0)
})

test('a group waits for lines that a full pipeline keeps unread', async () => {
  // The first chunk ends within the group, and the event before the group fills the pipeline.
  const group = `start\n${` ${'x'.repeat(99)}\n`.repeat(2000)}`
  writeFileSync(join(folder, 'a.log'), `before\n${group}start\n`)
  const full = Promise.withResolvers<void>()
  await using source = await startSource(
    'file',
    {
      include: [join(folder, 'a.log')],
      multiline: { mode: 'halt_before', start_pattern: '^start', condition_pattern: '^start', timeout_ms: 50 },
    },
    { consume: () => full.promise },
  )
  await source.received(1)
  await pause(500)
  full.resolve()
  await source.received(3)
  expect(messages(source).map((message) => String(message).length)).toEqual([6, group.length - 1, 5])
})

test('an unreadable file is reported once and does not affect the others', async () => {
  symlinkSync('/proc/self/mem', join(folder, 'bad.log'))
  writeFileSync(join(folder, 'good.log'), lines(0, 2))
  await using source = await startSource('file', { include: [join(folder, '*.log')] })
  await source.received(2)
  appendFileSync(join(folder, 'good.log'), lines(2, 3))
  await source.received(3)
  expect(source.events.errors).toEqual([
    expect.objectContaining({ code: 'reading_fingerprint', type: 'reader_failed', stage: 'receiving' }),
  ])
})

test('read_from end skips existing lines and reads new ones', async () => {
  writeFileSync(join(folder, 'a.log'), lines(0, 3))
  await using source = await startSource('file', { include: [join(folder, '*.log')], read_from: 'end' })
  await vi.waitFor(() => expect(source.events.counts.get('files_added_total')).toBe(1))
  writeFileSync(join(folder, 'b.log'), lines(3, 5))
  appendFileSync(join(folder, 'a.log'), lines(5, 6))
  await source.received(3)
  expect(messages(source).sort()).toEqual(expected(3, 6))
})

test('files are identified by inode if configured, and removed after delivery', async () => {
  writeFileSync(join(folder, 'a.log'), lines(0, 2))
  writeFileSync(join(folder, 'b.log'), lines(0, 2))
  await using source = await startSource('file', {
    include: [join(folder, '*.log')],
    fingerprint: { strategy: 'device_and_inode' },
    remove_after_secs: 0.1,
  })
  await source.received(4)
  await vi.waitFor(
    () => expect(existsSync(join(folder, 'a.log')) || existsSync(join(folder, 'b.log'))).toBe(false),
    5000,
  )
})

test('a removed file is read to its end', async () => {
  const path = join(folder, 'a.log')
  writeFileSync(path, lines(0, 2))
  let release = () => {}
  await using source = await startSource(
    'file',
    { include: [join(folder, '*.log')] },
    {
      consume: (batch) => {
        batch.finalizer.release(1, 'delivered')
        return new Promise((resolve) => {
          release = resolve
        })
      },
    },
  )
  await source.received(2)
  appendFileSync(path, `${lines(2, 4)}line 4`)
  rmSync(path)
  release()
  await source.received(4)
  release()
  await source.received(5)
  expect(messages(source)).toEqual(expected(0, 5))
})

test('in a sidecar, links lead nowhere outside the volume, and delay nothing', async () => {
  const volume = join(folder, 'logs')
  const outside = join(folder, 'secrets')
  for (const each of [volume, outside, join(volume, 'own')]) mkdirSync(each)
  writeFileSync(join(outside, 'token.log'), 'a secret\n')
  writeFileSync(join(volume, 'own', 'app.log'), 'line 0\n')
  execFileSync('mkfifo', [join(outside, 'pipe.log')])
  const links = {
    'link.log': join(outside, 'token.log'),
    'relative.log': '../secrets/token.log',
    'chain.log': 'link.log',
    'pipe.log': join(outside, 'pipe.log'),
    'zero.log': '/dev/zero',
    'folder-link': outside,
    'inside.log': 'own/app.log',
    'self.log': `/proc/self/root${outside}/token.log`,
  }
  for (const [name, target] of Object.entries(links)) symlinkSync(target, join(volume, name))
  const options = { include: [join(volume, '*.log'), join(volume, '*', '*.log')], glob_minimum_cooldown_ms: 100 }
  await using source = await startSource('file', options, { confinedTo: volume })
  await source.received(1)

  // A link that is replaced during reading, and a folder that becomes a link.
  rmSync(join(volume, 'inside.log'))
  symlinkSync(join(outside, 'token.log'), join(volume, 'inside.log'))
  renameSync(join(volume, 'own'), join(volume, 'other'))
  symlinkSync(outside, join(volume, 'own'))
  appendFileSync(join(outside, 'token.log'), 'another secret\n')
  appendFileSync(join(volume, 'other', 'app.log'), 'line 1\n')
  writeFileSync(join(volume, 'last.log'), 'line 2\n')
  await source.received(3)

  expect(messages(source).toSorted()).toEqual(expected(0, 3))
  const refused = source.events.errors.filter(({ code }) => code === 'outside_of_volume')
  const files = refused.map(({ fields }) => fields?.['file'])
  expect(files).toEqual(
    expect.arrayContaining(['link', 'chain', 'pipe', 'zero'].map((name) => join(volume, `${name}.log`))),
  )
  expect(new Set(files).size).toBe(files.length)
})

test('removes delivered files inside the volume', async () => {
  const volume = join(folder, 'logs')
  const outside = join(folder, 'data')
  for (const each of [volume, outside, join(volume, 'a')]) mkdirSync(each)
  writeFileSync(join(outside, 'x.log'), 'not to be removed\n')
  writeFileSync(join(volume, 'a', 'x.log'), 'line 0\n')
  writeFileSync(join(volume, 'y.log'), 'line 1\n')
  const options = { include: [join(volume, '**', '*.log')], remove_after_secs: 0.5 }
  await using source = await startSource('file', options, { confinedTo: volume })
  await source.received(2)
  renameSync(join(volume, 'a'), join(folder, 'away'))
  symlinkSync(outside, join(volume, 'a'))
  await vi.waitFor(() => expect(existsSync(join(volume, 'y.log'))).toBe(false), 10_000)

  expect(existsSync(join(outside, 'x.log'))).toBe(true)
})
