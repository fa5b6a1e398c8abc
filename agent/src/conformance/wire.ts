// Runs the recorded wire cases: builds the sink of a case through the registry, connects it to a recorder on loopback, and compares the
// received requests with the recorded ones. The README next to the cases describes their format and the comparison. Requests are compared
// in groups: those with the same address, recorded headers and envelope form one list.

import { readFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { metricFromJson } from '../codecs/decoding/metric-json.ts'
import { compileCompression } from '../delivery/compression.ts'
import { errorText } from '../errors.ts'
import { LogEvent } from '../event/log.ts'
import type { MetricEvent } from '../event/metric.ts'
import { isObject, type ValueObject } from '../event/value.ts'
import { isFailedJson, parseJson } from '../formats/json.ts'
import type { CompressionName } from '../schema/groups.ts'
import { log } from '../testing/events.ts'
import { startSink, type TestSink } from '../testing/harness.ts'
import { bodyForm, type Items } from './wire-bodies.ts'
import { difference, textMatches } from './wire-compare.ts'

interface RecordedRequest {
  readonly method: string
  readonly path: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: { readonly text?: string; readonly base64?: string }
}

interface Case {
  readonly id: string
  readonly type: string
  readonly options: object
  readonly input: readonly object[]
  readonly requests?: readonly RecordedRequest[]
  readonly healthcheck?: { readonly method: string; readonly path: string }
  readonly stdout?: readonly string[]
}

interface Arrived {
  readonly method: string
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** Time limit of one case in milliseconds. */
const limitMs = 15_000

/** Runs the cases of files in the folder, and prints the ids and differences of failing ones. */
export async function run(dir: string, stems: readonly string[]): Promise<{ passed: number; failed: number }> {
  let passed = 0
  let failed = 0
  for (const stem of stems) {
    let passedHere = 0
    let total = 0
    for (const line of (await readFile(join(dir, `${stem}.jsonl`), 'utf8')).split('\n')) {
      if (line.trim() === '') continue
      const recorded = JSON.parse(line) as Case
      const problem = await outcome(recorded, line)
      total++
      if (problem === undefined) passedHere++
      else process.stdout.write(`FAILED ${recorded.id}\n  ${problem.replaceAll('\n', '\n  ')}\n`)
    }
    process.stdout.write(`${stem}: ${passedHere} of ${total}\n`)
    passed += passedHere
    failed += total - passedHere
  }
  return { passed, failed }
}

/** The failure of a case; undefined if it passes. */
async function outcome(recorded: Case, line: string): Promise<string | undefined> {
  let timer: NodeJS.Timeout | undefined
  const tooLong = new Promise<string>((resolve) => {
    timer = setTimeout(() => resolve(`no end within ${limitMs / 1000} seconds`), limitMs)
  })
  try {
    const input = events(line)
    return await Promise.race([
      tooLong,
      recorded.stdout === undefined ? overHttp(recorded, input) : overStdout(recorded, input),
    ])
  } catch (error) {
    return errorText(error)
  } finally {
    clearTimeout(timer)
  }
}

/** The events of a case, read from its text so that integers and floats stay distinct. */
function events(line: string): (LogEvent | MetricEvent)[] {
  const form = parseJson(line)
  if (isFailedJson(form) || !isObject(form)) throw new TypeError('The case is not a JSON object.')
  return ((form['input'] ?? []) as ValueObject[]).map((item) => {
    if (isObject(item['log'])) return log(item['log'] as never)
    const metric = metricFromJson(item['metric'])
    if (typeof metric === 'string') throw new TypeError(metric)
    return metric
  })
}

/** Passes the events to the sink in batches of one type, and closes the sink. */
async function deliverAll(sink: TestSink, input: readonly (LogEvent | MetricEvent)[]): Promise<void> {
  const written: Promise<unknown>[] = []
  let from = 0
  while (from < input.length) {
    const isLog = input[from] instanceof LogEvent
    let to = from + 1
    while (to < input.length && input[to] instanceof LogEvent === isLog) to++
    written.push(sink.write(input.slice(from, to)))
    from = to
  }
  await sink.sink.close()
  await Promise.all(written)
}

// ---- Standard output

async function overStdout(recorded: Case, input: readonly (LogEvent | MetricEvent)[]): Promise<string | undefined> {
  const pieces: Buffer[] = []
  const write = process.stdout.write
  process.stdout.write = ((bytes: Uint8Array, done: (error?: Error | null) => void) => {
    pieces.push(Buffer.from(bytes))
    done()
    return true
  }) as typeof process.stdout.write
  try {
    await using sink = await startSink('console', recorded.options)
    await deliverAll(sink, input)
  } finally {
    process.stdout.write = write
  }
  const printed = Buffer.concat(pieces).toString('utf8').replace(/\n$/, '').split('\n')
  const wanted = recorded.stdout ?? []
  for (let index = 0; index < Math.max(wanted.length, printed.length); index++) {
    const problem = lineDifference(wanted[index], printed[index])
    if (problem !== undefined) return `line ${index + 1}: ${problem}`
  }
  return undefined
}

function lineDifference(wanted: string | undefined, printed: string | undefined): string | undefined {
  if (wanted === printed) return undefined
  if (wanted !== undefined && printed !== undefined) {
    const left = parseJson(wanted)
    const right = parseJson(printed)
    if (isObject(left as never) && isObject(right as never) && !isFailedJson(left) && !isFailedJson(right)) {
      const found = difference(left, right, { numbersApart: true })
      return found === undefined ? undefined : found
    }
  }
  return `wanted ${JSON.stringify(wanted)}\nfound  ${JSON.stringify(printed)}`
}

// ---- HTTP

async function overHttp(recorded: Case, input: readonly (LogEvent | MetricEvent)[]): Promise<string | undefined> {
  const arrived: Arrived[] = []
  const server = await startRecorder(arrived)
  try {
    const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
    const options = JSON.parse(
      JSON.stringify(recorded.options).replaceAll('{E}', `http://${host}`).replaceAll('{H}', host),
    ) as object
    await using sink = await startSink(recorded.type, options)
    const check = recorded.healthcheck
    if (check !== undefined) {
      await sink.sink.healthcheck?.(AbortSignal.timeout(5000))
      const first = arrived[0]
      if (first === undefined) return `health check: wanted ${check.method} ${check.path}, found no request`
      if (first.method !== check.method || !samePath(check.path, first.path)) {
        return `health check: wanted ${check.method} ${check.path}\nfound        ${first.method} ${first.path}`
      }
    }
    const before = arrived.length
    await deliverAll(sink, input)
    return requestsDifference(recorded, arrived.slice(before))
  } finally {
    server.closeAllConnections()
    server.close()
  }
}

/** A response that all sinks accept as success. */
const answer = JSON.stringify({
  errors: false,
  items: [],
  text: 'Success',
  code: 0,
  valid: true,
  status: 'green',
  version: { number: '8.11.0' },
})

async function startRecorder(arrived: Arrived[]): Promise<Server> {
  const server = createServer((request, response) => {
    const pieces: Buffer[] = []
    request.on('data', (piece: Buffer) => pieces.push(piece))
    request.on('end', () => {
      const headers: Record<string, string> = {}
      for (const [name, value] of Object.entries(request.headers)) headers[name] = String(value).trim()
      arrived.push({
        method: request.method ?? '',
        path: request.url ?? '',
        headers,
        body: plainBody(Buffer.concat(pieces), headers['content-encoding']),
      })
      response.writeHead(200, { 'content-type': 'application/json' })
      response.end(answer)
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return server
}

const algorithms: Readonly<Record<string, CompressionName>> = {
  gzip: 'gzip',
  deflate: 'zlib',
  zstd: 'zstd',
  snappy: 'snappy',
}

function plainBody(body: Buffer, encoding: string | undefined): Buffer {
  const algorithm = encoding === undefined ? undefined : algorithms[encoding]
  return algorithm === undefined || body.length === 0
    ? body
    : Buffer.from(compileCompression(algorithm).decompress(body))
}

/** Requests that are compared together. */
interface Group {
  readonly first: RecordedRequest
  readonly envelope: unknown
  readonly wanted: unknown[]
  readonly found: unknown[]
}

function requestsDifference(recorded: Case, arrived: readonly Arrived[]): string | undefined {
  const form = bodyForm(recorded.type)
  const groups: Group[] = []
  for (const request of recorded.requests ?? []) {
    const bytes = Buffer.from(
      request.body?.base64 ?? request.body?.text ?? '',
      request.body?.base64 ? 'base64' : 'utf8',
    )
    const { envelope, items } = form.read(bytes)
    let group = groups.find((candidate) => sameGroup(candidate, request, envelope))
    if (group === undefined) {
      group = { first: request, envelope, wanted: [], found: [] }
      groups.push(group)
    }
    group.wanted.push(...items)
  }
  for (const request of arrived) {
    let read: Items
    try {
      read = form.read(request.body)
    } catch (error) {
      return `${request.method} ${request.path}: the body cannot be read: ${errorText(error)}`
    }
    const reasons: string[] = []
    const group = groups.find((candidate) => {
      const reason = misfit(candidate, request, read.envelope)
      if (reason !== undefined) reasons.push(reason)
      return reason === undefined
    })
    if (group === undefined) {
      return `no recorded request is like ${request.method} ${request.path}\n${reasons.join('\n')}`
    }
    group.found.push(...read.items)
  }
  for (const group of groups) {
    const problem = difference(form.join(group.wanted), form.join(group.found), { anyOrder: form.anyOrder })
    if (problem !== undefined) return `${group.first.method} ${group.first.path}: ${problem}`
  }
  return undefined
}

function sameGroup(group: Group, request: RecordedRequest, envelope: unknown): boolean {
  const same = (left: unknown, right: unknown) => JSON.stringify(left) === JSON.stringify(right)
  return (
    group.first.method === request.method &&
    group.first.path === request.path &&
    same(Object.entries(group.first.headers ?? {}).sort(), Object.entries(request.headers ?? {}).sort()) &&
    difference(group.envelope, envelope) === undefined
  )
}

/** The reason why a request does not belong to a group. */
function misfit(group: Group, request: Arrived, envelope: unknown): string | undefined {
  const { first } = group
  if (first.method !== request.method || !samePath(first.path, request.path))
    return `recorded: ${first.method} ${first.path}`
  for (const [name, value] of Object.entries(first.headers ?? {})) {
    const found = request.headers[name]
    if (found === undefined || !textMatches(value.trim(), found)) {
      return `header ${name}: wanted ${JSON.stringify(value)}, found ${JSON.stringify(found)}`
    }
  }
  const problem = difference(group.envelope, envelope)
  return problem === undefined ? undefined : `envelope: ${problem}`
}

/** Compares paths; query parameters may be in any order. */
function samePath(wanted: string, found: string): boolean {
  const [wantedPath = '', wantedQuery = ''] = wanted.split('?')
  const [foundPath = '', foundQuery = ''] = found.split('?')
  if (!textMatches(wantedPath, foundPath)) return false
  const left = parameters(wantedQuery)
  const right = parameters(foundQuery)
  return (
    left.length === right.length &&
    left.every(([name, value], index) => name === right[index]?.[0] && textMatches(value, right[index]?.[1] ?? ''))
  )
}

function parameters(query: string): [string, string][] {
  return [...new URLSearchParams(query)].sort(([left], [right]) => (left < right ? -1 : left > right ? 1 : 0))
}
