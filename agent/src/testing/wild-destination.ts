// Destinations of several tenants on one loopback server, at `/TENANT/SINK`. At random they fail, hang, answer before they have read the
// request, or end the connection. Every body is checked on the wire, also of requests that fail: it must contain lines of its own tenant
// only, exactly as they were written.

import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'
import { isDeepStrictEqual } from 'node:util'
import { gunzipSync } from 'node:zlib'
import type { Random } from './random.ts'
import { TenantPods } from './tenant-pods.ts'

/** How a sink writes events: the text of each in a body. */
const formats: Readonly<Record<string, (body: string) => readonly string[]>> = {
  ndjson: (body) => body.trimEnd().split('\n'),
  array: (body) => (JSON.parse(body) as unknown[]).map((event) => JSON.stringify(event)),
  bulk: (body) =>
    body
      .trimEnd()
      .split('\n')
      .filter((_, index) => index % 2 === 1),
  streams: (body) =>
    (
      JSON.parse(body) as { readonly streams: readonly { readonly values: readonly [string, string][] }[] }
    ).streams.flatMap(({ values }) => values.map(([, line]) => line)),
}

type Event = Readonly<Record<string, unknown>>

/** The kind of body and of events that a sink delivers. */
export interface WildSink {
  readonly format: keyof typeof formats
  /** Whether the events have been through the program `edit`. */
  readonly isEdited: boolean
}

/** The program of edited events. */
export const edit = `. = merge(., object(parse_json(.message) ?? {}) ?? {})
.up = upcase(string(.id) ?? "none")
.moved = del(.n)`

const faults = ['fail', 'hang', 'late', 'reset', 'break', 'early', 'slow'] as const
type Mood = 'well' | (typeof faults)[number]

export class WildDestination implements AsyncDisposable {
  readonly problems: string[] = []
  /** Whether it accepts all requests. */
  isCalm = false
  /** Destinations that accept nothing. */
  readonly stalled = new Set<string>()
  readonly #pods: TenantPods
  readonly #sinks: Readonly<Record<string, WildSink>>
  readonly #random: Random
  readonly #server = createServer((request, response) => {
    request.on('error', () => {})
    response.on('error', () => {})
    this.#serve(request, response).catch((error: unknown) => this.problems.push(String(error)))
  })
  /** How often each line was accepted, by destination. */
  readonly #accepted = new Map<string, Map<number, number>>()

  constructor(pods: TenantPods, sinks: Readonly<Record<string, WildSink>>, random: Random) {
    this.#pods = pods
    this.#sinks = sinks
    this.#random = random
  }

  async start(): Promise<this> {
    this.#server.keepAliveTimeout = 60_000
    await once(this.#server.listen(0, '127.0.0.1'), 'listening')
    return this
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  /** The lines that a destination has accepted. */
  count(place: string): number {
    return this.#accepted.get(place)?.size ?? 0
  }

  /** Numbers of a tenant's lines that a destination has not accepted. */
  missing(place: string, tenant: string, isWanted = (_message: string): boolean => true): number[] {
    const accepted = this.#accepted.get(place)
    return this.#pods
      .messages(tenant)
      .flatMap((message, number) => (accepted?.has(number) !== true && isWanted(message) ? [number] : []))
  }

  /** Lines that it has accepted more than once. */
  doubled(place: string): number[] {
    return [...(this.#accepted.get(place) ?? [])].flatMap(([number, times]) => (times > 1 ? [number] : []))
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, owner = '', sink = ''] = (request.url ?? '').split('/')
    const place = `${owner}/${sink}`
    // A sink for all tenants names the tenant of a request in its header.
    const tenant = owner === 'all' ? String(request.headers['x-scope-orgid']) : owner
    const mood = this.#moodFor(place)
    const reading = bodyOf(request, mood === 'reset')
    // A server throws away what it has not begun to read when it answers.
    if (mood === 'early' || mood === 'slow') await Promise.race([once(request, 'data'), once(request, 'close')])
    if (mood === 'early') {
      response.writeHead(200)
      response.end(sink === 'index' ? '{"errors":false}' : '')
    }
    if (mood === 'slow' || mood === 'early') {
      request.pause()
      await wait(50)
      request.resume()
    }
    const { bytes, isWhole } = await reading
    if (isWhole) await this.#answer({ place, mood, numbers: this.#check(place, tenant, bytes, request), response })
    else this.#checkMarks(place, tenant, bytes, request)
  }

  #moodFor(place: string): Mood {
    if (this.stalled.has(place)) return 'fail'
    return this.isCalm || this.#random.chance(0.7) ? 'well' : this.#random.pick(faults)
  }

  async #answer(given: {
    readonly place: string
    readonly mood: Mood
    readonly numbers: readonly number[]
    readonly response: ServerResponse
  }): Promise<void> {
    const { place, mood, numbers, response } = given
    if (mood === 'fail') {
      response.writeHead(this.#random.pick([500, 503, 429]))
      response.end()
      return
    }
    if (mood === 'hang' || mood === 'late') await wait(this.#random.below(300))
    if (mood === 'hang') {
      response.destroy()
      return
    }
    if (mood === 'break') {
      response.writeHead(200, { 'content-length': '1000' })
      response.write('{', () => response.destroy())
      return
    }
    // Some documents of a bulk request may fail on their own.
    const isBulk = place.endsWith('/index')
    const failed = numbers.map(() => isBulk && mood === 'late' && this.#random.chance(0.3))
    if (mood !== 'early') {
      response.writeHead(200)
      const items = failed.map((isFailed) => ({ index: { status: isFailed ? 429 : 201 } }))
      response.end(isBulk ? JSON.stringify({ errors: failed.includes(true), items }) : '')
    }
    const accepted = this.#accepted.get(place) ?? new Map<number, number>()
    this.#accepted.set(place, accepted)
    for (const [index, number] of numbers.entries()) {
      if (failed[index] !== true) accepted.set(number, (accepted.get(number) ?? 0) + 1)
    }
  }

  /** Checks a body, and returns the numbers of its lines. */
  #check(place: string, tenant: string, raw: Buffer, request: IncomingMessage): readonly number[] {
    const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(raw) : raw
    this.#checkMarks(place, tenant, body, request)
    const sink = this.#sinks[place.slice(place.indexOf('/') + 1)] as WildSink
    try {
      const texts = (formats[sink.format] as (body: string) => readonly string[])(body.toString())
      return texts.map((text) => this.checkEvent(place, tenant, JSON.parse(text) as Event, sink.isEdited))
    } catch (error) {
      this.problems.push(`${place}: ${String(error)} in ${body.toString('latin1').slice(0, 2000)}`)
      return []
    }
  }

  /** No body may contain the mark of another tenant, or bytes that were given back. */
  #checkMarks(place: string, tenant: string, body: Buffer, request: IncomingMessage): void {
    if (request.headers['content-encoding'] === 'gzip' && body[0] === 0x1f) return
    for (const mark of [...this.#pods.tenants.filter((name) => name !== tenant).map(TenantPods.markOf), poison]) {
      const at = body.indexOf(mark)
      if (at >= 0)
        this.problems.push(`${place}: ${mark} in ${body.toString('latin1', Math.max(0, at - 200), at + 200)}`)
    }
  }

  /** Compares an event with its line. Returns the number of the line. */
  checkEvent(place: string, tenant: string, event: Event, isEdited: boolean): number {
    const { message, orchestrator } = event as { message: string; orchestrator: { pod_namespace: string } }
    const number = Number(/#(\d+)#/.exec(message)?.[1] ?? Number.NaN)
    const written = this.#pods.messages(tenant)[number]
    const right = message === written && orchestrator.pod_namespace === tenant
    if (!right || (isEdited && !isEdit(event, message)))
      this.problems.push(`${place}: ${JSON.stringify(event)} for ${written ?? 'no line'}`)
    return number
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

/** The bytes of a body, or those that arrived before the connection ended. @param isReset whether it ends with the first bytes */
function bodyOf(
  request: IncomingMessage,
  isReset: boolean,
): Promise<{ readonly bytes: Buffer; readonly isWhole: boolean }> {
  const chunks: Buffer[] = []
  return new Promise((resolve) => {
    const end = (isWhole: boolean) => resolve({ bytes: Buffer.concat(chunks), isWhole })
    request.on('data', (chunk: Buffer) => {
      chunks.push(chunk)
      if (isReset) request.socket.resetAndDestroy()
    })
    request.on('end', () => end(!isReset))
    request.on('close', () => end(false))
  })
}

/** Fills memory that was given back. */
export const poison = '@freed@'

/** Whether an event is the result of `edit` for a message. */
function isEdit(event: Event, message: string): boolean {
  let parsed: Event = {}
  try {
    parsed = JSON.parse(message) as Event
  } catch {
    // The message is not JSON.
  }
  const { n = null, id = 'none', ...others } = parsed
  const isMoved = event['moved'] === n && event['up'] === String(id).toUpperCase() && event['n'] === undefined
  return isMoved && Object.entries(others).every(([name, value]) => isDeepStrictEqual(event[name], value))
}
