// The destination of the fault tests: an HTTP server that counts numbered lines, and that fails, hangs, is slow or lies on demand. Lines count
// as arrived if it responded with 200 and did not lie.

import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'

export type Mood = 'well' | 'failing' | 'hanging' | 'slow' | 'lying'

export class Destination implements AsyncDisposable {
  mood: Mood = 'well'
  /** Number of arrivals of each line, by path and number. */
  readonly arrivals = new Map<string, Uint8Array>()
  /** Lines that it confirmed with 200 but dropped. */
  readonly lies = new Map<string, Set<number>>()
  readonly #server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('error', () => {}) // the agent was killed, so the request does not count
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      this.#answer(request.url ?? '/', Buffer.concat(chunks), response).catch(() => response.destroy())
    })
  })
  readonly #hanging = new Set<ServerResponse>()
  readonly #arrived: ((path: string, body: Buffer) => void) | undefined

  /** @param arrived receives all bodies that were confirmed with 200 and not dropped */
  constructor(arrived?: (path: string, body: Buffer) => void) {
    this.#arrived = arrived
  }

  async start(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(0, '127.0.0.1', resolve))
    return this
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`
  }

  async #answer(path: string, body: Buffer, response: ServerResponse): Promise<void> {
    const { mood } = this
    if (mood === 'failing') {
      response.writeHead(503).end()
      return
    }
    if (mood === 'hanging') {
      this.#hanging.add(response)
      response.on('close', () => this.#hanging.delete(response))
      return
    }
    if (mood === 'slow') await wait(150)
    const lost = this.lies.get(path) ?? new Set()
    for (const line of linesIn(body.toString('latin1'))) {
      if (mood === 'lying') lost.add(line)
      else this.#count(path, line)
    }
    this.lies.set(path, lost)
    if (mood !== 'lying') this.#arrived?.(path, body)
    response.writeHead(200).end()
  }

  #count(path: string, line: number): void {
    let seen = this.arrivals.get(path) ?? new Uint8Array(1 << 16)
    if (line >= seen.length) {
      const larger = new Uint8Array(Math.max(seen.length * 2, line + 1))
      larger.set(seen)
      seen = larger
    }
    seen[line] = Math.min(255, (seen[line] ?? 0) + 1)
    this.arrivals.set(path, seen)
  }

  /** Releases hanging requests. */
  release(): void {
    for (const response of this.#hanging) response.destroy()
  }

  missing(path: string, written: number): number[] {
    const seen = this.arrivals.get(path) ?? new Uint8Array(0)
    const lines: number[] = []
    for (let line = 0; line < written; line++) if (!seen[line]) lines.push(line)
    return lines
  }

  /** Number of arrivals of a line. */
  times(path: string, line: number): number {
    return this.arrivals.get(path)?.[line] ?? 0
  }

  arrived(path: string): number {
    let lines = 0
    for (const times of this.arrivals.get(path) ?? []) if (times > 0) lines++
    return lines
  }

  doubled(path: string): number {
    let lines = 0
    for (const times of this.arrivals.get(path) ?? []) if (times > 1) lines += times - 1
    return lines
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.release()
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}

/** The text of line `number`. */
export function lineOf(number: number, padding = ''): string {
  return `<${String(number).padStart(9, '0')}>${padding}\n`
}

function* linesIn(body: string): Generator<number> {
  for (let at = body.indexOf('<'); at >= 0; at = body.indexOf('<', at + 1)) {
    if (body[at + 10] === '>') yield Number(body.slice(at + 1, at + 10))
  }
}
