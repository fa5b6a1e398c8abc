// An observer of the events of one Pipeline: the agents' samples are passed on line by line with their node, limited per interval
// to the number that the observer requested.

import type { TapInquiry } from '@penstock/agent/bundle'
import { counted } from '@penstock/agent/program'
import type { Asked, Look } from './inquiries.ts'
import type { Reader } from './observers.ts'

export interface TapQuestion {
  readonly id: string
  readonly pipeline: string
  readonly component: TapInquiry['component'] | undefined
  readonly node: string | undefined
  /** Maximum number of events from all agents per interval. */
  readonly limit: number
  readonly intervalMs: number
}

/** The beginning of an agent's line; the event is the rest, and is passed on unchanged, with all digits of numbers. */
const eventStart = '{"kind":"event",'
/** An agent's own limit is a quarter of that. */
const maxLineBytes = 256 * 1024
const maxMs = 3_600_000

export class TapLook implements Look {
  readonly id: string
  readonly #question: TapQuestion
  readonly #reader: Reader
  readonly #concerns: (agent: string) => boolean
  readonly #began = new Set<string>()
  #turn = 0
  #shown = 0
  #skipped = 0

  constructor(question: TapQuestion, reader: Reader, concerns: (agent: string) => boolean) {
    this.id = question.id
    this.#question = question
    this.#reader = reader
    this.#concerns = concerns
  }

  inquiry({ agent, node }: Asked): TapInquiry | undefined {
    const { id, pipeline, component, limit, intervalMs } = this.#question
    if (this.#reader.signal.aborted || (this.#question.node ?? node) !== node || !this.#concerns(agent))
      return undefined
    const forMs = maxMs // it ends with the reader
    return { kind: 'tap', id, pipeline, ...(component === undefined ? {} : { component }), limit, intervalMs, forMs }
  }

  take({ node, podUid, pod }: Asked, body: Buffer): void {
    if (!this.#began.has(podUid)) {
      this.#began.add(podUid)
      this.#reader.notify(`${pod}${node === '' ? '' : ` on ${node}`} shows its events.`)
    }
    const turn = Math.floor(Date.now() / this.#question.intervalMs)
    if (turn !== this.#turn) {
      this.#turn = turn
      this.#shown = 0
    }
    for (const line of body.toString('utf8').split('\n')) {
      const received = line === '' || line.length > maxLineBytes ? undefined : parsed(line)
      if (received?.['kind'] === 'skipped') {
        this.#skipped += Number(received['events']) || 0
        continue
      }
      if (received?.['kind'] !== 'event' || !line.startsWith(eventStart)) continue
      if (this.#shown >= this.#question.limit) continue // a sample of a sample
      this.#shown++
      if (!this.#reader.line(`${eventStart}"node":${JSON.stringify(node)},${line.slice(eventStart.length)}`))
        this.#skipped++
    }
    if (this.#skipped === 0) return
    const message = `${counted(this.#skipped, 'event')} skipped: too large, or not read in time.`
    if (this.#reader.line(JSON.stringify({ kind: 'notification', message }))) this.#skipped = 0
  }

  /** Explains to an observer without events what the reason may be. */
  end(): void {
    if (this.#began.size === 0) this.#reader.notify('No agent has answered: agents of older versions cannot.')
  }
}

function parsed(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(line)
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined // an agent's data is untrusted
  }
}
