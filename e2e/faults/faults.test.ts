// Faults in the environment of the agent: tests compare input and output. Random moments depend on a seed, which is printed with a failure.
// `npx node --conditions=source e2e/faults/kills.ts` runs any number of kills.

import { execFileSync } from 'node:child_process'
import { appendFileSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { Random } from '@penstock/agent/testing/random'
import { expect, test } from 'vitest'
import { relay } from '../relay.ts'
import { Destination, lineOf } from './destination.ts'
import { killAgain, nextId, syncedId, syncedOffset } from './kills.ts'
import { compiledShim, preload } from './shim.ts'
import { eventually, impatientSink, onDisk, Victim } from './victim.ts'

const seed = 20_261_121
const shim = await compiledShim()
const padding = 'x'.repeat(240)

const fileSource = (path: string) => ({ type: 'file', include: [path], glob_minimum_cooldown_ms: 200 })

/** One file through one sink, `out`, to `/out`. */
function fileTo(path: string, url: string, buffer: object) {
  return { sources: { in: fileSource(path) }, sinks: { out: impatientSink('in', `${url}/out`, buffer) } }
}

function append(path: string, from: number, count: number): void {
  let text = ''
  for (let line = from; line < from + count; line++) text += lineOf(line, padding)
  appendFileSync(path, text)
}

const arrived = (destination: Destination, lines: number) =>
  eventually('every line has arrived', 60_000, () => destination.missing('/out', lines).length === 0)

test('random kills and power failures lose nothing that was synced', async () => {
  const report = await killAgain(12, seed, 800)
  expect(report.problems, JSON.stringify(report)).toEqual([])
  expect(report.written['stdin']).toBeGreaterThan(10_000)
})

test('a power failure loses only unsynced events, and the next start counts them exactly', async () => {
  await using destination = await new Destination().start()
  await using victim = new Victim()
  destination.mood = 'hanging'
  const config = {
    sources: { in: { type: 'stdin' } },
    sinks: { out: impatientSink('in', `${destination.url}/out`, onDisk()) },
  }
  await victim.start(config)
  let written = 0
  const write = (count: number) => {
    for (let line = 0; line < count; line++) victim.write(lineOf(written++, padding))
  }
  write(5000)
  await eventually('the first lines are synced', 10_000, async () => syncedId(victim.buffer('out')) === 5000)
  write(3000)
  await eventually('the others are written', 10_000, () => nextId(victim.buffer('out')) === 8000)
  await victim.signal('SIGKILL')
  destination.release()
  const synced = syncedId(victim.buffer('out'))
  // A sync may have happened in between, in which case nothing can be lost.
  execFileSync('truncate', [
    '-s',
    String(syncedOffset(victim.buffer('out'))),
    join(victim.buffer('out'), 'buffer-data-0.dat'),
  ])

  await victim.start(config)
  expect(await victim.metric('buffer_events')).toBe(synced)
  expect(await victim.metric('buffer_discarded_events_total', 'intentional="false"')).toBe(8000 - synced)
  destination.mood = 'well'
  await eventually('synced events are delivered', 30_000, () => destination.arrived('/out') === synced)
  expect(destination.missing('/out', 8000)).toHaveLength(8000 - synced)
})

test.each([
  { name: 'disk', buffer: onDisk() },
  { name: 'memory', buffer: { max_events: 1000 } },
])('a slow and interrupted network loses nothing: $name', async ({ buffer }) => {
  const chance = new Random(seed)
  await using destination = await new Destination().start()
  await using network = await relay(destination.url)
  await using victim = new Victim()
  const log = victim.path('in.log')
  writeFileSync(log, '')
  await victim.start(fileTo(log, network.url, buffer))
  let written = 0
  for (let round = 0; round < 10; round++) {
    append(log, written, 1000)
    written += 1000
    destination.mood = chance.pick(['well', 'slow', 'hanging'] as const)
    await wait(chance.between(50, 300))
    network.cut()
    await wait(chance.between(50, 300))
    network.open()
  }
  destination.mood = 'well'
  destination.release()
  await arrived(destination, written)
  await eventually(
    'all is answered for',
    20_000,
    async () => (await victim.metric('component_sent_events_total', 'component_id="out"')) === written,
  )
  expect(await victim.metric('component_discarded_events_total')).toBe(0)
  expect(await victim.signal('SIGTERM')).toBe(0)
})

test('a destination that lies: only the lines that it dropped are missing', async () => {
  await using destination = await new Destination().start()
  await using victim = new Victim()
  const log = victim.path('in.log')
  writeFileSync(log, '')
  await victim.start(fileTo(log, destination.url, onDisk()))
  for (let round = 0; round < 6; round++) {
    destination.mood = round % 2 === 1 ? 'lying' : 'well'
    append(log, round * 500, 500)
    const [before, lied] = [destination.arrived('/out'), destination.lies.get('/out')?.size ?? 0]
    await eventually(
      'the round has ended',
      20_000,
      () => destination.arrived('/out') + (destination.lies.get('/out')?.size ?? 0) >= before + lied + 500,
    )
  }
  const missing = destination.missing('/out', 3000)
  expect(missing.length).toBeGreaterThan(0)
  expect(new Set(missing)).toEqual(destination.lies.get('/out'))
  expect(await victim.metric('component_sent_events_total', 'component_id="out"')).toBe(3000)
})

const isRoot = process.platform === 'linux' && process.getuid?.() === 0
const rootSkip = isRoot ? '' : ' (skipped: mounting a small disk requires root on Linux)'

test.skipIf(!isRoot)(
  `a full disk blocks the source, does not affect a healthy destination, and loses nothing${rootSkip}`,
  async () => {
    await using destination = await new Destination().start()
    await using disk = mounted(280)
    await using victim = new Victim(disk.folder)
    const ballast = join(disk.folder, 'ballast')
    const log = victim.path('in.log')
    writeFileSync(log, '')
    destination.mood = 'hanging'
    await victim.start(fileTo(log, destination.url, onDisk()))
    // Some lines are already on the disk, more than wait in memory.
    append(log, 0, 15_000)
    await eventually('the first lines are in', 20_000, async () => (await victim.metric('buffer_events')) === 15_000)
    fill(ballast, disk)
    append(log, 15_000, 25_000)
    await eventually(
      'the disk is full',
      20_000,
      async () => (await victim.metric('buffer_errors_total', 'error_code="ENOSPC"')) > 0,
    )
    expect(await victim.health()).toBe(200)
    const taken = await victim.metric('buffer_events')
    expect(taken).toBeLessThan(40_000)
    // The destination recovers first, so events pass through memory.
    destination.mood = 'well'
    destination.release()
    await eventually('events pass while the disk is full', 30_000, () => destination.arrived('/out') > taken)
    rmSync(ballast)
    await arrived(destination, 40_000)
    await eventually('the buffer is empty', 20_000, async () => (await victim.metric('buffer_events')) === 0)
    expect(await victim.metric('buffer_discarded_events_total')).toBe(0)
    expect(await victim.signal('SIGTERM')).toBe(0)
  },
)

test.skipIf(!isRoot)(`with a read-only disk, the agent does not start and reports the reason${rootSkip}`, async () => {
  await using destination = await new Destination().start()
  await using disk = mounted(280)
  await using victim = new Victim(disk.folder)
  const log = victim.path('in.log')
  writeFileSync(log, '')
  mkdirSync(victim.buffer('out'), { recursive: true })
  execFileSync('mount', ['-o', 'remount,ro', disk.folder])
  const config = { ...fileTo(log, destination.url, onDisk()), sources: { in: { type: 'stdin' } } }
  await expect(victim.start(config)).rejects.toThrow(/disk|data_dir|read-only/i)
})

function mounted(megabytes: number) {
  const folder = execFileSync('mktemp', ['-d', '/tmp/penstock-disk-XXXXXX']).toString().trim()
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${megabytes}m`, 'tmpfs', folder])
  return {
    folder,
    async [Symbol.asyncDispose]() {
      execFileSync('umount', ['-l', folder])
      rmSync(folder, { recursive: true, force: true })
    },
  }
}

/** Fills the disk except for two megabytes. */
function fill(path: string, { folder }: { folder: string }): void {
  const free = Number(execFileSync('df', ['--output=avail', '-k', folder]).toString().trim().split('\n').at(-1))
  execFileSync('fallocate', ['-l', `${free - 2048}k`, path])
}

const shimSkip = 'missing' in shim ? shim.missing : undefined
const library = 'path' in shim ? shim.path : ''
const shimNote = shimSkip === undefined ? '' : ` (skipped: ${shimSkip})`

test.skipIf(shimSkip !== undefined).each([
  { order: 'write', type: 'writer_failed' },
  { order: 'sync', type: 'writer_failed' },
])(`a disk that fails to $order for a while loses nothing${shimNote}`, async ({ order, type }) => {
  await using destination = await new Destination().start()
  await using victim = new Victim()
  const orders = preload(victim, library)
  const log = victim.path('in.log')
  writeFileSync(log, '')
  destination.mood = 'hanging'
  await victim.start(fileTo(log, destination.url, onDisk()))
  append(log, 0, 3000)
  await eventually('the first lines are in', 20_000, async () => (await victim.metric('buffer_events')) === 3000)
  orders(order)
  append(log, 3000, 20_000)
  await eventually(
    'the disk fails',
    20_000,
    async () => (await victim.metric('buffer_errors_total', `error_type="${type}"`, 'error_code="EIO"')) > 0,
  )
  orders('')
  destination.mood = 'well'
  destination.release()
  await arrived(destination, 23_000)
  await eventually('the buffer is empty', 20_000, async () => (await victim.metric('buffer_events')) === 0)
  expect(await victim.metric('buffer_discarded_events_total')).toBe(0)
  // The buffer is intact: another run reports no problems.
  expect(await victim.signal('SIGTERM')).toBe(0)
  await victim.start(fileTo(log, destination.url, onDisk()))
  expect(await victim.metric('buffer_errors_total')).toBe(0)
  expect(await victim.metric('buffer_events')).toBe(0)
})

test.skipIf(shimSkip !== undefined)(
  `events that cannot be read from disk are counted, and the rest is delivered${shimNote}`,
  async () => {
    await using destination = await new Destination().start()
    await using victim = new Victim()
    const orders = preload(victim, library)
    const config = {
      sources: { in: { type: 'stdin' } },
      sinks: { out: impatientSink('in', `${destination.url}/out`, onDisk()) },
    }
    destination.mood = 'hanging'
    await victim.start(config)
    for (let line = 0; line < 4000; line++) victim.write(lineOf(line, padding))
    await eventually('the lines are synced', 20_000, () => syncedId(victim.buffer('out')) === 4000)
    await victim.signal('SIGKILL')
    destination.release()
    destination.mood = 'well'
    // The checks at the start also read, so the disk fails a moment later.
    const starting = victim.start(config)
    await eventually('the agent has the buffer', 20_000, () => victim.log.includes('contains events of an earlier run'))
    orders('read')
    await starting
    await eventually('the loss is counted', 20_000, async () => {
      const lost = await victim.metric('buffer_discarded_events_total', 'intentional="false"')
      return lost > 0 || destination.arrived('/out') === 4000
    })
    orders('')
    for (let line = 4000; line < 5000; line++) victim.write(lineOf(line, padding))
    const lost = await victim.metric('buffer_discarded_events_total', 'intentional="false"')
    await eventually('the rest has arrived', 20_000, () => destination.missing('/out', 5000).length === lost)
  },
)

test.skipIf(shimSkip !== undefined)(`a wall clock that jumps by hours has no effect${shimNote}`, async () => {
  await using destination = await new Destination().start()
  await using victim = new Victim()
  const orders = preload(victim, library)
  const log = victim.path('in.log')
  writeFileSync(log, '')
  await victim.start(fileTo(log, destination.url, onDisk()))
  let written = 0
  for (const clock of ['clock 86400', 'clock -86400', 'clock -7200', 'clock 0', 'clock 31536000']) {
    orders(clock)
    append(log, written, 1000)
    written += 1000
    await arrived(destination, written)
  }
  await victim.signal('SIGKILL')
  orders('clock -31536000')
  append(log, written, 1000)
  await victim.start(fileTo(log, destination.url, onDisk()))
  await arrived(destination, written + 1000)
  expect(await victim.metric('buffer_discarded_events_total')).toBe(0)
})

test('memory stays bounded with a blocked destination, for all kinds of buffers', async () => {
  await using destination = await new Destination().start()
  await using victim = new Victim()
  const log = victim.path('in.log')
  const lines = 250_000
  for (let from = 0; from < lines; from += 25_000) append(log, from, 25_000)
  destination.mood = 'hanging'
  victim.env = { NODE_OPTIONS: '--max-old-space-size=96' }
  const kinds = {
    memory_block: {},
    memory_drop: { when_full: 'drop_newest' },
    disk_block: onDisk(),
    disk_drop: onDisk({ when_full: 'drop_newest' }),
  }
  const sources: Record<string, object> = {}
  const sinks: Record<string, object> = {}
  for (const [kind, buffer] of Object.entries(kinds)) {
    sources[`in_${kind}`] = fileSource(log)
    sinks[kind] = impatientSink(`in_${kind}`, `${destination.url}/${kind}`, buffer)
  }
  await victim.start({ sources, sinks })
  const all = ['disk_block', 'disk_drop', 'memory_drop']
  await eventually('all lines are read', 60_000, async () => {
    const counts = await Promise.all(
      all.map((kind) => victim.metric('component_received_events_total', `component_id="in_${kind}"`)),
    )
    return counts.every((count) => count === lines)
  })
  expect(await victim.metric('component_received_events_total', 'component_id="in_memory_block"')).toBeLessThan(20_000)
  expect(await victim.metric('buffer_discarded_events_total', 'component_id="memory_drop"')).toBeGreaterThan(lines / 2)
  const peak = Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${victim.pid}/status`, 'utf8'))?.[1]) / 1024
  expect(peak).toBeLessThan(280)
  destination.mood = 'well'
  destination.release()
  await eventually(
    'the disk buffers are empty',
    90_000,
    () => destination.arrived('/disk_block') === lines && destination.arrived('/disk_drop') === lines,
  )
})
