// Measures the memory that caches keep for data that never repeats. `node --expose-gc hostile-keys.ts` passes a large number of different
// values through real components, and prints for each case the megabytes in use while they still run, and the number of correct results.
// It is a separate process, because memory is measured per process.

import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { Packer } from '../buffers/disk/packing/packer.ts'
import { recycle } from '../buffers/disk/packing/record-memory.ts'
import { Unpacker } from '../buffers/disk/packing/unpacker.ts'
import { MemoryTable } from '../enrichment/memory-table.ts'
import { Tables } from '../enrichment/tables.ts'
import { DeferredEvent } from '../event/deferred.ts'
import type { LogEvent } from '../event/log.ts'
import { hotLooks, shapeOf } from '../event/shape.ts'
import { sortedFieldNames } from '../event/value.ts'
import { askNetwork } from '../remap/network.ts'
import { TailReports } from '../tailing/reports.ts'
import type { ComponentEvents } from '../telemetry/component-events.ts'
import { silentLogger } from '../telemetry/logger.ts'
import { log } from './events.ts'
import { batchOf, buildTransform, startSink } from './harness.ts'

export interface Finding {
  readonly name: string
  readonly values: number
  readonly right: number
  readonly heldMb: number
}

interface Case {
  readonly name: string
  readonly values: number
  /** Length of a value in characters. */
  readonly length: number
  /** Passes the values, calls `measure` while everything is alive, and returns the number of correct results. */
  run(batches: Iterable<string[]>, look: () => void): Promise<number>
}

/** Substrings of longer texts, as values of events are. A component that keeps one must not keep the whole text alive. */
const value = (index: number, length: number) =>
  JSON.parse(JSON.stringify(`${index}-`.padEnd(2 * length, 'xyz0'))).slice(0, length) as string

/** All names. Other letter cases are not accepted. */
const zones = Intl.supportedValuesOf('timeZone')

const program = (
  name: string,
  source: string,
  values: number,
  length: number,
  isRight: (event: LogEvent) => boolean,
  fieldOf: (text: string) => string = (text) => text,
): Case => ({
  name,
  values,
  length,
  async run(batches, look) {
    const transform = await buildTransform('remap', { source })
    let right = 0
    for (const batch of batches) {
      for (const text of batch) {
        await transform.transform(batchOf([log({ k: fieldOf(text) })]), {
          send(out) {
            for (const event of out.events) if (isRight(event as LogEvent)) right++
            return undefined
          },
        })
      }
    }
    look()
    transform.close?.()
    return right
  },
})

const sink = (
  type: string,
  options: (url: string) => object,
  values: number,
  length: number,
  name = type,
  write: (events: readonly LogEvent[], started: StartedSink) => Promise<string> = (events, started) =>
    started.write(events),
): Case => ({
  name,
  values,
  length,
  async run(batches, look) {
    const server = createServer({ maxHeaderSize: 1 << 20 }, (request, response) => {
      request.resume().on('end', () => response.end('{"errors":false,"items":[]}'))
    })
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    await using started = await startSink(type, options(`http://127.0.0.1:${(server.address() as AddressInfo).port}`))
    let right = 0
    for (const batch of batches) {
      const events = batch.map((k) => log({ k, message: 'm' }))
      if ((await write(events, started)) === 'delivered') right += batch.length
    }
    look()
    await started.sink.close()
    server.closeAllConnections()
    server.close()
    return right
  },
})

type StartedSink = Awaited<ReturnType<typeof startSink>>

/** Uses up Node's current pool for short buffers, so that each kept slice of a pool would keep a separate 64 KiB. */
function takePool(): void {
  for (let taken = 0; taken < Buffer.poolSize; taken += 16_384) Buffer.from('x'.repeat(16_384))
}

/** Writes each event after other components have used up the pool, as they do between the first events of two streams or indices. */
async function writeApart(events: readonly LogEvent[], started: StartedSink): Promise<string> {
  const ends = events.map((event) => {
    takePool()
    return started.write([event])
  })
  return (await Promise.all(ends)).every((end) => end === 'delivered') ? 'delivered' : 'not delivered'
}

/** Looks up different columns each time. Each needs an index of all records. */
const columns: Case = {
  name: 'columns of a table',
  values: 150,
  length: 0,
  async run(batches, look) {
    const names = 'abcdefghij'.split('')
    const folder = mkdtempSync(join(tmpdir(), 'penstock-table-'))
    const path = join(folder, 'table.csv')
    const rows = Array.from({ length: 5000 }, (_, row) => names.map((name) => `${name}${row}`).join())
    writeFileSync(path, [names.join(), ...rows].join('\n'))
    const format = { type: 'csv', delimiter: ',', include_headers: true } as const
    const table = Tables.open({ t: { type: 'file', file: { path, encoding: format }, schema: {} } }, 'UTC').find('t')
    rmSync(folder, { recursive: true })
    let right = 0
    let mask = 0
    for (const _ of [...batches].flat()) {
      mask++
      const condition = Object.fromEntries(
        names.filter((_, bit) => mask & (1 << bit)).map((name) => [name, `${name}7`]),
      )
      if (table?.find(condition, ['a'], true, undefined).length === 1) right++
    }
    look()
    return table === undefined ? 0 : right
  },
}

/** Entries of a table, each a short piece of a long line. */
const entries: Case = {
  name: 'values of a table',
  values: 3000,
  length: 30_000,
  async run(batches, look) {
    const table = new MemoryTable({ type: 'memory', inputs: [], ttl: 600, scan_interval: 600, max_byte_size: 64 << 20 })
    let right = 0
    for (const batch of batches) {
      for (const text of batch) {
        const key = text.slice(0, text.indexOf('-'))
        table.write({ [`key-${key}`]: { id: text.slice(0, 40), list: [text.slice(40, 80)] } })
        const [found] = table.find({ key: `key-${key}` }, ['value']) as [{ value: { id: string } }]
        if (found.value.id === text.slice(0, 40)) right++
      }
    }
    look()
    return table.bytes > 0 ? right : 0
  },
}

/** Field names that an encoder sorts. */
const names: Case = {
  name: 'field names',
  values: 2000,
  length: 100_000,
  async run(batches, look) {
    let right = 0
    for (const batch of batches) {
      for (const text of batch) {
        const name = `0${text.slice(right % 64)}`
        const sorted = sortedFieldNames({ [name]: 1, a: 2 })
        if (sorted.length === 2 && sorted[0] === name && sorted[1] === 'a') right++
      }
    }
    look()
    return right
  },
}

/** Objects of ever new shapes with a long value, written to records of a buffer and read back. */
const records: Case = {
  name: 'shapes of records',
  values: 100,
  length: 200_000,
  async run(batches, look) {
    const packer = new Packer()
    const unpacker = new Unpacker()
    let right = 0
    for (const batch of batches) {
      for (const text of batch) {
        const name = `a${text.slice(0, 9)}`
        for (let time = 0; time < hotLooks; time++) shapeOf({ [name]: text, b: 1 })
        for (let time = 0; time < 10; time++) {
          packer.begin()
          packer.log(log({ [name]: text, b: time }))
          const record = packer.finish()
          const bytes = Buffer.concat([record.values, record.texts])
          recycle(record)
          const [back] = unpacker.logs(bytes, record.values.length, 1).flat() as LogEvent[]
          if (time === 9 && back?.fields[name] === text && back?.fields['b'] === 9) right++
        }
      }
    }
    look()
    return right
  },
}

/** Unreadable files with different paths. */
const paths: Case = {
  name: 'paths of files',
  values: 3900,
  length: 4000,
  async run(batches, look) {
    let right = 0
    const events = { error: () => right++ } as unknown as ComponentEvents
    const reports = new TailReports(false, events, silentLogger)
    for (const batch of batches) {
      for (const path of batch) {
        reports.unreadable(path, undefined)
        reports.unreadable(path, undefined) // must not be reported again
      }
    }
    look()
    reports.forget('')
    return right
  },
}

/** Requests of programs, to a server in another thread, because a program blocks until the response. */
const answers: Case = {
  name: 'answers of the network',
  values: 1000,
  length: 40_000,
  async run(batches, look) {
    const server = new Worker(
      `const { createServer } = require('node:http'), { parentPort } = require('node:worker_threads')
const server = createServer((request, response) => response.end(request.url.padEnd(40_000, 'x')))
server.listen(0, '127.0.0.1', () => parentPort.postMessage(server.address().port))`,
      { eval: true },
    )
    const [port] = (await once(server, 'message')) as [number]
    let right = 0
    for (const batch of batches) {
      for (const text of batch) {
        const url = `http://127.0.0.1:${port}/${text.slice(0, 20)}`
        const request = { kind: 'http', url, method: 'get', headers: [], body: '', timeoutMs: 60_000 } as const
        const proxies = { httpProxy: undefined, httpsProxy: undefined }
        const answer = askNetwork({ ...request, ...proxies }, url, 60_000, () => 3_600_000)
        if (answer.text === new URL(url).pathname.padEnd(40_000, 'x')) right++
      }
    }
    look()
    await server.terminate()
    return right
  },
}

const batch = { timeout_secs: 0.01 }
const cases: readonly Case[] = [
  columns,
  entries,
  names,
  records,
  paths,
  answers,
  program(
    'patterns',
    '.r = match(string!(.k), to_regex!(slice!(.k, 0, 600)))',
    3900,
    4000,
    ({ fields }) => fields['r'] === true,
  ),
  program(
    'long patterns',
    '.r = match(string!(.k), to_regex!(string!(.k)))',
    1900,
    4000,
    ({ fields }) => fields['r'] === true,
  ),
  program(
    'user agents',
    '.r = parse_user_agent(string!(.k)).browser.family',
    3900,
    30_000,
    ({ fields }) => fields['r'] === null,
  ),
  program(
    'user agents that are known',
    '.r = parse_user_agent(string!(.k)).browser.version',
    3900,
    2000,
    ({ fields }) => String(fields['r']).length === 1502,
    // A user agent in UTF-16, whose version would be a slice of it.
    (text) =>
      `Mozilla/5.0 (X11; Linux x86_64) ж Firefox/${text.replaceAll(/[^0-9]/g, '7').slice(0, 1500)}.1 ${text.slice(0, 150)}`,
  ),
  program(
    'keys of texts',
    '. = merge(., object!(parse_json!(.k)))\ndel(.k)',
    1000,
    60,
    (event) => event instanceof DeferredEvent && Object.values(event.fields).includes(1),
    (text) => {
      takePool()
      return `{"${text}":1}`
    },
  ),
  program(
    'time zones that are there',
    '.r = format_timestamp!(t\'2026-01-01T00:00:00Z\', "%H %Z", timezone: string!(.k))',
    6000,
    20,
    ({ fields }) => /^\d\d \S/.test(String(fields['r'])),
    (text) => zones[Number(/\d+/.exec(text)?.[0]) % zones.length] ?? '',
  ),
  program(
    'time zones',
    '.r = (format_timestamp(t\'2026-01-01T00:00:00Z\', "%Y", timezone: string!(.k)) ?? "none")',
    3900,
    40_000,
    ({ fields }) => fields['r'] === 'none',
  ),
  program(
    'schemas',
    '.r = validate_json_schema("{}", string!(.k)) ?? "none"',
    10_000,
    4000,
    ({ fields }) => fields['r'] === 'none',
  ),
  program(
    'long lines',
    `text = string!(.k)\n.r = [${Array.from('abcdefghij', (end) => `match(text, r'(?:[a-z0-9]{0,15}-?){0,20}!${end}')`).join(', ')}]`,
    1,
    60_000,
    ({ fields }) => (fields['r'] as readonly boolean[]).every((found) => !found),
  ),
  sink(
    'http',
    (url) => ({ uri: `${url}/{{ k }}`, encoding: { codec: 'text' }, batch, request: { concurrency: 5 } }),
    2900,
    8000,
  ),
  sink('search_engine', (url) => ({ endpoints: [url], bulk: { index: '{{ k }}' }, batch }), 4900, 20_000),
  sink(
    'log_aggregator',
    (url) => ({ endpoint: url, labels: { a: '{{ k }}' }, encoding: { codec: 'text' }, batch }),
    20_000,
    10_000,
  ),
  sink(
    'search_engine',
    (url) => ({ endpoints: [url], bulk: { index: '{{ k }}' }, batch }),
    950,
    40,
    'search_engine, short names',
    writeApart,
  ),
  sink(
    'log_aggregator',
    (url) => ({ endpoint: url, labels: { a: '{{ k }}' }, encoding: { codec: 'text' }, batch }),
    950,
    40,
    'log_aggregator, short names',
    writeApart,
  ),
]

const each = 50

function* batchesOf(values: number, length: number): Generator<string[]> {
  for (let from = 0; from < values; from += each) {
    yield Array.from({ length: Math.min(each, values - from) }, (_, index) => value(from + index, length))
  }
}

const collect = (globalThis as { gc?: () => void }).gc
if (collect === undefined) throw new Error('Run this program with --expose-gc.')
const held = (): number => {
  collect()
  collect()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

for (const { name, values, length, run } of cases) {
  if (process.argv[2] !== undefined && !process.argv.slice(2).includes(name)) continue
  await run([], () => {}) // Modules that the first use loads are not a cache.
  const before = held()
  let after = 0
  const right = await run(batchesOf(values, length), () => {
    after = held()
  })
  console.log(
    JSON.stringify({ name, values, right, heldMb: Math.round((after - before) / 1e5) / 10 } satisfies Finding),
  )
}
