// A destination for the `http` sink that counts how often each message arrives. Messages contain their number, such as `<000000042>`.
// Tests can make it fail temporarily; messages that it rejects do not count as delivered.

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { RunningAgent } from './agent.ts'
import { patience, until } from './command.ts'

/** The text of a message with its number, a few hundred bytes long. */
export function numbered(n: number): string {
  return `<${String(n).padStart(9, '0')}> GET /catalogue/items?page=7&sort=price HTTP/1.1 200 5123 "Mozilla/5.0"`
}

export interface Arrivals extends AsyncDisposable {
  readonly url: string
  /** While true, it responds with 503. */
  failing: boolean
  /** Number of rejected requests. */
  readonly refused: number
  /** Number of different messages received. */
  readonly distinct: number
  /** Number of messages received repeatedly. */
  readonly doubled: number
  /** The first few missing numbers. */
  missing(): number[]
  /** Resolves when this many different messages have arrived. */
  reached(count: number, timeoutMs: number): Promise<void>
}

export async function startArrivals(count: number): Promise<Arrivals> {
  const seen = new Uint8Array(count)
  let waiting: { readonly count: number; readonly resolve: () => void }[] = []
  const state = { failing: false, refused: 0, distinct: 0, doubled: 0 }
  const take = (text: string): void => {
    for (const [, digits] of text.matchAll(/<(\d{9})>/g)) {
      const n = Number(digits)
      if (seen[n] === 0) state.distinct++
      else state.doubled++
      seen[n] = 1
    }
    const done = waiting.filter((wait) => state.distinct >= wait.count)
    waiting = waiting.filter((wait) => state.distinct < wait.count)
    for (const wait of done) wait.resolve()
  }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      if (state.failing) {
        state.refused++
        response.writeHead(503).end()
        return
      }
      take(Buffer.concat(chunks).toString('latin1'))
      response.writeHead(200).end()
    })
  })
  server.keepAliveTimeout = 60_000
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    get failing() {
      return state.failing
    },
    set failing(failing) {
      state.failing = failing
    },
    get refused() {
      return state.refused
    },
    get distinct() {
      return state.distinct
    },
    get doubled() {
      return state.doubled
    },
    missing() {
      const numbers: number[] = []
      for (let n = seen.indexOf(0); n >= 0 && numbers.length < 10; n = seen.indexOf(0, n + 1)) numbers.push(n)
      return numbers
    },
    reached: (wanted, timeoutMs) =>
      new Promise((resolve, reject) => {
        if (state.distinct >= wanted) return resolve()
        const limit = setTimeout(
          () =>
            reject(
              new Error(`Only ${state.distinct} of ${wanted} messages arrived within ${patience * timeoutMs} ms.`),
            ),
          patience * timeoutMs,
        )
        waiting.push({
          count: wanted,
          resolve() {
            clearTimeout(limit)
            resolve()
          },
        })
      }),
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
}

/** Resolves when the destination has rejected two more requests. */
export async function refusedAgain(arrivals: Arrivals, agent: RunningAgent): Promise<void> {
  const before = arrivals.refused
  await until('rejected requests of the sink', 60_000, async () => arrivals.refused > before + 1).catch(
    (error: unknown) => {
      throw new Error(agent.output(), { cause: error })
    },
  )
}

/** The configuration of a sink for it, with small batches, quick retries and acknowledgements. */
export function arrivalSink(arrivals: Arrivals, input: string) {
  return {
    type: 'http',
    inputs: [input],
    uri: arrivals.url,
    encoding: { codec: 'text' },
    framing: { method: 'newline_delimited' },
    acknowledgements: { enabled: true },
    batch: { max_events: 500, timeout_secs: 0.1 },
    request: { retry_initial_backoff_secs: 1, retry_max_duration_secs: 1, retry_jitter_mode: 'none' },
  }
}
