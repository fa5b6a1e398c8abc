// Scrapes addresses for metrics at intervals. Each address has its own loop, so a slow or silent one does not delay the others, and
// receives the next request only after its response or its timeout.

import { pause, timeoutSignal } from '../clock.ts'
import type { SourceContext } from '../component.ts'
import { metricBatch } from '../event/batch.ts'
import { Finalizer } from '../event/finalizer.ts'
import { MetricEvent, type MetricTags } from '../event/metric.ts'
import { Timestamp } from '../event/timestamp.ts'
import { authorization } from '../http/auth.ts'
import { HttpClient } from '../http/client.ts'
import { compileProxy } from '../net/proxy.ts'
import { compileTls, defaultTls } from '../net/tls.ts'
import { transportFields } from '../net/transport-errors.ts'
import type { ErrorReport } from '../telemetry/component-events.ts'
import { fact } from '../telemetry/facts.ts'
import { untilAborted } from '../timing/wait.ts'

/** Maximum length of a response. */
const maxResponseBytes = 8 << 20

/** The content of a response. */
export interface Reading {
  readonly metrics: readonly MetricEvent[]
  /** A message for each value that could not be parsed, without the value itself. */
  readonly failures: readonly string[]
}

/** The result of a request: the text of a response with status 200, `refused` for any other status, or `unreachable`. */
export type ScrapeOutcome = { readonly text: string } | 'refused' | 'unreachable'

export interface ScrapeOptions {
  readonly endpoints: readonly string[]
  readonly intervalSecs: number
  readonly timeoutSecs: number
  readonly headers?: Readonly<Record<string, string>>
  /** Parses a response into metrics. `endpoint` is the address without its credentials. */
  read(outcome: ScrapeOutcome, endpoint: string, time: Timestamp): Reading
}

/** Scrapes all addresses until the source stops. */
export async function scrape(options: ScrapeOptions, context: SourceContext): Promise<void> {
  const client = new HttpClient({
    tls: compileTls(defaultTls),
    proxy: compileProxy(context.proxy),
    events: context.events,
  })
  try {
    await Promise.all(options.endpoints.map((address) => scrapeOne(address, options, context, client)))
  } finally {
    await client.close()
  }
}

async function scrapeOne(
  address: string,
  options: ScrapeOptions,
  context: SourceContext,
  client: HttpClient,
): Promise<void> {
  const { events, output, stopping } = context
  const { url, endpoint, headers } = targetOf(address)
  const request = { method: 'GET', url, headers: { ...options.headers, ...headers } }
  const tags = { endpoint }
  const received = { protocol: url.protocol.slice(0, -1), endpoint }
  const fail = (report: Pick<ErrorReport, 'code' | 'type' | 'stage' | 'message' | 'fields' | 'count'>) =>
    events.error({ ...report, tags, fields: { endpoint, ...report.fields } })

  const fetchPage = async (): Promise<ScrapeOutcome | undefined> => {
    const limit = timeoutSignal(options.timeoutSecs * 1000)
    try {
      const answer = await client.send(request, AbortSignal.any([stopping, limit]), maxResponseBytes)
      events.receivedBytes(answer.body.length, received)
      if (answer.status === 200) return { text: answer.body.toString('utf8') }
      events.count('http_error_response_total', 1, tags)
      const code = `http_response_${answer.status}`
      const message = 'The address responded with a status other than 200.'
      fail({ code, type: 'request_failed', stage: 'receiving', message, fields: { status: answer.status } })
      return 'refused'
    } catch (error) {
      if (stopping.aborted) return undefined
      events.count('http_request_errors_total', 1, tags)
      const reason = limit.aborted
        ? { error: `no response within ${options.timeoutSecs} s`, error_kind: fact('ETIMEDOUT') }
        : transportFields(error)
      fail({
        type: 'request_failed',
        stage: 'receiving',
        message: 'The request to the address failed.',
        fields: reason,
      })
      return 'unreachable'
    }
  }

  const start = performance.now()
  const intervalMs = options.intervalSecs * 1000
  while (!stopping.aborted) {
    const outcome = await fetchPage()
    if (outcome !== undefined) {
      const { metrics, failures } = options.read(outcome, endpoint, Timestamp.now())
      if (failures.length > 0) {
        events.count('parse_errors_total', failures.length, tags)
        const message = 'Values in a response could not be parsed.'
        const fields = { reason: failures[0] }
        fail({ type: 'parser_failed', stage: 'processing', message, fields, count: failures.length })
      }
      if (metrics.length > 0) await untilAborted(output.send(metricBatch([...metrics], new Finalizer())), stopping)
    }
    // Wait until the next multiple of the interval.
    const passed = performance.now() - start
    const pauseMs = (Math.floor(passed / intervalMs) + 1) * intervalMs - passed
    await pause(pauseMs, stopping) // stopping ends the loop
  }
}

interface Target {
  readonly url: URL
  /** The configured address without credentials. */
  readonly endpoint: string
  readonly headers: Readonly<Record<string, string>>
}

function targetOf(address: string): Target {
  const url = new URL(address)
  const endpoint = address.replace(/^([a-z]+:\/\/)[^/?#]*@/i, '$1')
  const header = authorization(url, undefined)
  return { url, endpoint, headers: header === undefined ? {} : { authorization: header } }
}

/** Creates the metrics from one response: all absolute, with the same time and the tags of their origin. */
export class Readings {
  readonly metrics: MetricEvent[] = []
  readonly failures: string[] = []
  readonly #namespace: string | undefined
  readonly #tags: readonly (readonly [string, string])[]
  readonly #time: Timestamp

  constructor(namespace: string, tags: readonly (readonly [string, string])[], time: Timestamp) {
    this.#namespace = namespace === '' ? undefined : namespace
    this.#tags = tags
    this.#time = time
  }

  add(type: 'counter' | 'gauge', name: string, value: number, ...own: (readonly [string, string])[]): void {
    const tags: MetricTags = new Map([...this.#tags, ...own])
    const parts = { name, namespace: this.#namespace, tags, timestamp: this.#time }
    this.metrics.push(new MetricEvent({ ...parts, kind: 'absolute', value: { type, value } }))
  }
}
