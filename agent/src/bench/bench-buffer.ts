// Measures a disk buffer without sources and sinks: writes standard lines in batches like those of a source, with a sync every 500 ms and
// no reader, then reopens the buffer and reads them back. The benchmarks call it as `bench-buffer.ts EVENTS FILE FOLDER [KIND] [PART]`.
// The part `write` ends without closing the buffer, as after a kill; `first` reads only the first batch. Prints one line of JSON.

import { readFileSync } from 'node:fs'
import { setImmediate as turn } from 'node:timers/promises'
import { DiskBuffer } from '../buffers/disk.ts'
import { logBatch } from '../event/batch.ts'
import { Finalizer } from '../event/finalizer.ts'
import { LogEvent } from '../event/log.ts'
import { silentLogger } from '../telemetry/logger.ts'
import { Metrics } from '../telemetry/metrics.ts'
import { RepetitionLimit } from '../telemetry/repetition-limit.ts'

const batchEvents = 800 // 256 KiB

const [eventsText = '', file = '', folder = '', kind = 'raw', part = 'all'] = process.argv.slice(2)
const total = Number(eventsText)
const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1)
const lineBytes = lines.reduce((sum, line) => sum + Buffer.byteLength(line), 0) / lines.length
const batches: LogEvent[][] = []
for (let from = 0; from < lines.length; from += batchEvents) {
  batches.push(
    lines.slice(from, from + batchEvents).map((part) => {
      // Like sources, decode each line from its own bytes. Substrings of one text would share the width of its widest character.
      const line = Buffer.from(part).toString()
      if (kind === 'parsed') return new LogEvent(JSON.parse(line) as LogEvent['fields'])
      return new LogEvent({ message: line, file: '/var/log/app.log', host: 'node-1', source_type: 'file' })
    }),
  )
}

function open(): DiskBuffer {
  const context = {
    folder,
    logger: silentLogger,
    limit: new RepetitionLimit(0),
    metrics: new Metrics(),
    component: { component_id: 'out' },
    abandoning: new AbortController().signal,
  }
  return DiskBuffer.open({ maxSize: 2 ** 40, whenFull: 'block' }, context)
}

function cpuSeconds(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1e6
}

const round = (value: number) => Math.round(value * 10) / 10

async function write() {
  const buffer = open()
  const [started, cpu] = [performance.now(), cpuSeconds()]
  let written = 0
  for (let index = 0; written < total; index++) {
    const events = batches[index % batches.length] as LogEvent[]
    await buffer.write(logBatch(events, new Finalizer()))
    written += events.length
    await turn()
  }
  const { bytes } = buffer
  await buffer.close() // includes the last sync
  return {
    megabytes: (written * lineBytes) / 1e6,
    disk: bytes / 1e6,
    events: written,
    s: (performance.now() - started) / 1000,
    cpu: cpuSeconds() - cpu,
  }
}

async function read() {
  const [started, cpu] = [performance.now(), cpuSeconds()]
  const buffer = open()
  let readable = Promise.withResolvers<void>()
  buffer.onReadable = () => readable.resolve()
  let first = 0
  let events = 0
  while (!buffer.empty) {
    readable = Promise.withResolvers()
    const batch = buffer.take()
    if (batch === undefined) {
      if (!buffer.empty) await readable.promise
      continue
    }
    if (first === 0) first = performance.now() - started
    events += batch.count
    batch.finalizer.release(1, 'delivered')
  }
  const seconds = (performance.now() - started) / 1000
  const used = cpuSeconds() - cpu
  await buffer.close()
  return { events, first, s: seconds, cpu: used }
}

if (part === 'write') {
  let synced = false
  const buffer = open()
  const heard = () => {
    synced = true
  }
  for (let index = 0; index < total / batchEvents; index++) {
    const last = index + 1 >= total / batchEvents
    await buffer.write(logBatch(batches[index % batches.length] as LogEvent[], new Finalizer(last ? heard : undefined)))
    await turn()
  }
  while (!synced) await turn()
  console.log(JSON.stringify({ disk_mb: round(buffer.bytes / 1e6), events: buffer.events }))
  process.exit() // leaves the buffer open, as a kill does
}

if (part === 'first') {
  const startCpu = cpuSeconds()
  const started = performance.now()
  const buffer = open()
  const opened = performance.now()
  const readable = Promise.withResolvers<void>()
  buffer.onReadable = () => readable.resolve()
  let batch = buffer.take()
  while (batch === undefined) {
    await readable.promise
    batch = buffer.take()
  }
  const first = performance.now()
  console.log(
    JSON.stringify({
      events: buffer.events,
      start_cpu_s: Math.round(startCpu * 1000) / 1000,
      opened_after_ms: round(opened - started),
      first_batch_after_ms: round(first - started),
      since_process_start_ms: round(first),
    }),
  )
  process.exit()
}

const startCpu = cpuSeconds()
const wrote = await write()
const back = await read()
if (back.events !== wrote.events) throw new Error(`${back.events} of ${wrote.events} events came back.`)
const { megabytes } = wrote
console.log(
  JSON.stringify({
    events: wrote.events,
    start_cpu_s: Math.round(startCpu * 1000) / 1000,
    disk_mb: round(wrote.disk),
    write_mb_per_s: round(megabytes / wrote.s),
    write_mb_per_cpu_s: round(megabytes / wrote.cpu),
    read_mb_per_s: round(megabytes / back.s),
    read_mb_per_cpu_s: round(megabytes / back.cpu),
    first_batch_after_ms: round(back.first),
  }),
)
