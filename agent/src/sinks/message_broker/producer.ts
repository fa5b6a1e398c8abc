// The producer of a topic, or of one partition of it. It sends over one connection and receives the receipts in the same
// order. When a connection ends, it resends messages without a receipt in the same order and with the same numbers, so that a
// broker can deduplicate them. Each send is finalized exactly once.

import { type Clock, pause } from '../../clock.ts'
import type { ConcurrencyLimit } from '../../delivery/concurrency.ts'
import { compressionFailure, type Failure } from '../../delivery/delivery.ts'
import type { RateLimit } from '../../delivery/rate-limit.ts'
import type { Request } from '../../delivery/request.ts'
import { RetryBackoff, type RetryOptions } from '../../delivery/retry.ts'
import type { ComponentEvents } from '../../telemetry/component-events.ts'
import { type Cluster, type ConnectionRetries, reaching } from './cluster.ts'
import type { Connection } from './connection.ts'
import { type BrokerFailure, brokerFailure, failureOf, notAllowed, timedOut } from './failure.ts'
import { command, type MessageParts, sendHead } from './wire.ts'

/** Messages sent together. */
export interface Send {
  readonly request: Request
  /** The parts of a single message, which is not written as a batch. */
  readonly single: MessageParts | undefined
  /** Number of the first message, assigned at the first attempt and kept. */
  sequence: bigint | undefined
  sentAtMs: number
  /** Bytes held by the send, fewer after compression. The sink counts them. */
  heldBytes: number
  /** Whether this is part of a refused send: it is sent alone, so that another refusal cannot change the order. */
  divided: boolean
  /** The connections that read its memory. */
  readonly readers: Connection[]
  /** Set when it has ended, but connections still read its memory: ends the wait for them. */
  cancelWait: (() => void) | undefined
}

export interface ProducerSettings {
  readonly cluster: Cluster
  readonly concurrency: () => ConcurrencyLimit
  readonly rateLimit: RateLimit
  readonly retry: RetryOptions
  readonly connectionRetries: ConnectionRetries
  readonly timeoutMs: number
  readonly compression: number
  readonly producerName: string | undefined
  /** The Avro schema of the topic's messages, which the producer registers. */
  readonly schema: string | undefined
  readonly events: ComponentEvents
  readonly abandoning: AbortSignal
  readonly clock: Clock
  /**
   * Called for every send that the producer creates, and for every ended send, after its events have ended and no connection needs its
   * memory.
   */
  readonly held: (send: Send) => void
  readonly ended: (send: Send) => void
}

export function newSend(request: Request, single: MessageParts | undefined): Send {
  return {
    request,
    single,
    sequence: undefined,
    sentAtMs: 0,
    heldBytes: 0,
    divided: false,
    readers: [],
    cancelWait: undefined,
  }
}

/** Why events are discarded when a send is given up. */
export const givenUp = 'Service call failed. No retries or retries exhausted.'
export const abandoned = 'The time limit for a graceful stop is over.'
/** The pause after a failure that a retry does not fix. */
const finalRestMs = 1000
const notCompressed = 'Could not compress messages; they are discarded.'
const tooLarge = 'The event is larger than the destination accepts.'

/** Type of the schema. */
const avroSchema = 4

/** A producer registered at the broker. */
interface Session {
  readonly connection: Connection
  readonly name: string
  readonly schemaVersion: Buffer | undefined
  /** Resolves when the session ends. */
  readonly over: Promise<BrokerFailure>
  readonly end: (failure: BrokerFailure) => void
}

export class Producer {
  readonly topic: string
  readonly #id: number
  readonly #settings: ProducerSettings
  readonly #concurrency: ConcurrencyLimit
  readonly #retry: RetryOptions
  #backoff: RetryBackoff
  /** Sends without a receipt, in order: those in flight, and those still to be sent or resent. */
  #sent: Send[] = []
  #waiting: Send[] = []
  #session: Session | undefined
  #running: Promise<void> | undefined
  #name: string | undefined
  #epoch = 0
  #nextSequence: bigint | undefined
  /** Whether this session has received a receipt. */
  #progress = false
  #restUntilMs = 0
  #cancelLimit: (() => void) | undefined
  #cancelTimeout: (() => void) | undefined
  /** The first waiting send, while another thread compresses it. */
  #compressing: Send | undefined
  /** Time of the last activity. */
  usedAtMs: number

  constructor(topic: string, id: number, settings: ProducerSettings) {
    this.topic = topic
    this.#id = id
    this.#settings = settings
    this.#concurrency = settings.concurrency()
    // Each send counts its own attempts; this retry only computes the waits.
    this.#retry = { ...settings.retry, attempts: Number.POSITIVE_INFINITY }
    this.#backoff = new RetryBackoff(this.#retry)
    this.#name = settings.producerName
    this.usedAtMs = settings.clock.now()
  }

  submit(send: Send): void {
    if (this.#settings.abandoning.aborted) {
      this.#discard(send, 'errored', abandoned)
      return
    }
    if (send.request.problem !== undefined) {
      this.#discardUncompressed(send)
      return
    }
    this.usedAtMs = this.#settings.clock.now()
    this.#waiting.push(send)
    if (this.#session !== undefined) this.#pump(this.#session)
    // `#run` never rejects.
    else this.#running ??= this.#run()
  }

  /** True while sends wait for receipts. */
  get busy(): boolean {
    return this.#waiting.length > 0 || this.#sent.length > 0
  }

  /** Closes the producer at the broker. Call it only if the producer is not busy. */
  close(): void {
    this.#cancelLimit?.()
    this.#cancelTimeout?.()
    this.#session?.connection.release(this.#id)
    this.#session?.end(failureOf(new Error('The producer was closed.')))
  }

  /** The time limit for a graceful stop is over. */
  abandon(): void {
    const sends = [...this.#sent.splice(0), ...this.#waiting.splice(0)]
    for (const send of sends) this.#discard(send, 'errored', abandoned)
    this.close()
  }

  async #run(): Promise<void> {
    const { abandoning, clock, connectionRetries } = this.#settings
    const rest = this.#restUntilMs - clock.now()
    if (rest > 0) await pause(rest, abandoning, clock)
    while (this.busy && !abandoning.aborted) {
      let session: Session
      try {
        const report = (failure: BrokerFailure, delayMs: number) => this.#reportRetry(failure.failure, delayMs)
        session = await reaching(() => this.#open(), connectionRetries, report, abandoning)
      } catch (error) {
        const failure = failureOf(error)
        if (abandoning.aborted) break
        if (failure.final) {
          for (const send of this.#waiting.splice(0)) this.#giveUp(send, failure.failure, 'rejected')
          this.#restUntilMs = clock.now() + finalRestMs
          continue
        }
        this.#countAttempt(this.#waiting, failure.failure)
        if (!this.busy) continue
        const delay = this.#backoff.next() ?? 0
        this.#reportRetry(failure.failure, delay)
        await pause(delay, abandoning, clock)
        continue
      }
      this.#session = session
      this.#progress = false
      this.#pump(session)
      const failure = await session.over
      this.#session = undefined
      this.#cancelTimeout?.()
      this.#cancelTimeout = undefined
      const unanswered = this.#sent
      this.#sent = []
      this.#countAttempt(unanswered, failure.failure)
      this.#waiting = [...unanswered, ...this.#waiting]
      if (!this.busy) continue
      // After a session without progress, the producer waits before the next one, to avoid flooding the broker.
      const delay = this.#progress ? 0 : (this.#backoff.next() ?? 0)
      this.#reportRetry(failure.failure, delay)
      if (delay > 0) await pause(delay, abandoning, clock)
    }
    this.#running = undefined
  }

  /** Registers the producer at the broker. */
  async #open(): Promise<Session> {
    const { cluster, producerName, schema } = this.#settings
    const connection = await cluster.brokerOf(this.topic)
    let end: (failure: BrokerFailure) => void = () => {}
    const over = new Promise<BrokerFailure>((resolve) => {
      end = resolve
    })
    try {
      const answer = await connection.ask(command.producer, 'the registration of a producer', (fields, id) => {
        fields.text(1, this.topic)
        fields.integer(2, this.#id)
        fields.integer(3, id)
        if (this.#name !== undefined) fields.text(4, this.#name)
        if (schema !== undefined) {
          const start = fields.begin(7)
          fields.text(1, this.topic)
          fields.text(3, schema)
          fields.integer(4, avroSchema)
          fields.end(start)
        }
        // A higher epoch replaces the registration that a lost connection left behind.
        fields.integer(8, this.#epoch++)
        fields.integer(9, producerName === undefined ? 0 : 1)
      })
      const name = answer.text(2) ?? this.#name ?? ''
      this.#name = name
      // A deduplicating broker returns the last number of this name; others return -1.
      this.#nextSequence ??= BigInt.asIntN(64, answer.integer(3) ?? -1n) + 1n
      const version = answer.bytes(4)
      const session: Session = {
        connection,
        name,
        schemaVersion: version === undefined || version.length === 0 ? undefined : Buffer.from(version),
        over,
        end: (failure) => {
          connection.detach(this.#id)
          end(failure)
        },
      }
      connection.attach(this.#id, {
        received: (sequence) => this.#received(session, sequence),
        refused: (sequence, error, text) => this.#refused(session, sequence, error, text),
        ended: end,
      })
      return session
    } catch (error) {
      // A late response would leave a registered producer that keeps its name in use.
      if (failureOf(error).failure.type === 'timed_out') connection.release(this.#id)
      throw error
    }
  }

  /** Sends as much as the limits allow. */
  #pump(session: Session): void {
    const { rateLimit, clock } = this.#settings
    while (this.#waiting.length > 0 && this.#sent.length < this.#concurrency.limit) {
      if (session.connection.failure !== undefined) return // `over` reports it
      const now = clock.now()
      const send = this.#waiting[0] as Send
      if (send.request.compressing !== undefined) {
        this.#awaitCompression(send, send.request.compressing)
        break
      }
      if (send.request.problem !== undefined) {
        this.#waiting.shift()
        this.#discardUncompressed(send)
        continue
      }
      if (this.#sent.length > 0 && (send.divided || this.#sent[0]?.divided === true)) break
      if (send.sequence === undefined) {
        const wait = rateLimit.wait(now)
        if (wait > 0) {
          this.#cancelLimit ??= clock.after(wait, () => {
            this.#cancelLimit = undefined
            if (this.#session !== undefined) this.#pump(this.#session)
          })
          return
        }
      }
      const sequence = send.sequence ?? (this.#nextSequence as bigint)
      const { head, messageBytes } = sendHead({
        producerId: this.#id,
        producerName: session.name,
        sequence,
        count: send.request.count,
        publishTimeMs: Date.now(),
        compression: send.request.payload.length === 0 ? 0 : this.#settings.compression,
        uncompressedBytes: send.request.bodyBytes,
        schemaVersion: session.schemaVersion,
        single: send.single,
        payload: send.request.payload,
      })
      this.#waiting.shift()
      if (messageBytes > session.connection.maxMessageBytes) {
        this.#divide(send, {
          type: 'request_failed',
          code: 'broker_message_too_large',
          fields: { message_bytes: messageBytes, limit_bytes: session.connection.maxMessageBytes },
        })
        continue
      }
      if (send.sequence === undefined) {
        rateLimit.take(now)
        send.sequence = sequence
        this.#nextSequence = sequence + BigInt(send.request.count)
      }
      send.sentAtMs = now
      this.#sent.push(send)
      this.#concurrency.sent(this.#sent.length)
      session.connection.send(head, send.request.payload, this.#lend(send, session.connection))
      this.#settings.events.sentBytes(head.length + send.request.payload.length, session.connection.tags)
    }
    if (this.#sent.length > 0) this.#watch(session)
  }

  /** Continues when the payload is compressed. Later sends wait too, which keeps the order. */
  #awaitCompression(send: Send, compressing: Promise<void>): void {
    if (this.#compressing === send) return
    this.#compressing = send
    void compressing.then(() => {
      if (this.#compressing === send) this.#compressing = undefined
      if (this.#session !== undefined) this.#pump(this.#session)
    })
  }

  #discardUncompressed(send: Send): void {
    const failure = compressionFailure(send.request)
    const fields = { events: send.request.count, topic: this.topic }
    this.#settings.events.error({ ...errorOf(failure, fields), message: notCompressed })
    this.#discard(send, 'rejected', givenUp)
  }

  /** Divides a send that is too large into halves; discards a single event that is too large. */
  #divide(send: Send, failure: Failure): void {
    const { request } = send
    if (request.count === 1) {
      this.#settings.events.error({
        ...errorOf(failure),
        message: 'An event is larger than the destination accepts; it is discarded.',
      })
      this.#discard(send, 'rejected', tooLarge)
      return
    }
    const halves = request.halves().map((half) => newSend(half, undefined))
    for (const half of halves) {
      half.divided = send.sequence !== undefined
      this.#settings.held(half)
    }
    this.#ended(send)
    // Numbers must ascend, so sends that already have one come first.
    let at = 0
    while (at < this.#waiting.length && this.#waiting[at]?.sequence !== undefined) at++
    this.#waiting.splice(at, 0, ...halves)
  }

  #received(session: Session, sequence: bigint): void {
    const send = this.#sent[0]
    // The receipt is a duplicate, or belongs to a send that was given up.
    if (send?.sequence === undefined || sequence < send.sequence) return
    if (sequence > send.sequence) {
      session.end(failureOf(new Error('The broker confirmed messages out of order.')))
      return
    }
    this.#sent.shift()
    this.#progress = true
    if (this.#backoff.retries > 0) this.#backoff = new RetryBackoff(this.#retry)
    const { clock, events } = this.#settings
    this.#concurrency.answered(send.sentAtMs, clock.now(), 'success')
    events.sent(send.request.count, send.request.bytes)
    this.usedAtMs = clock.now()
    send.request.end('delivered')
    this.#ended(send)
    this.#pump(session)
  }

  #refused(session: Session, sequence: bigint, error: number, text: string): void {
    const index = this.#sent.findIndex((send) => send.sequence === sequence)
    if (index < 0) return
    const send = this.#sent[index] as Send
    const failure = brokerFailure(error, text)
    this.#concurrency.answered(send.sentAtMs, this.#settings.clock.now(), failure.final ? 'other' : 'back_pressure')
    if (!failure.final) {
      // The broker may refuse the following sends too, so all are resent in order after a new look-up.
      session.connection.release(this.#id)
      session.end(failure)
      return
    }
    this.#sent.splice(index, 1)
    // A topic usually refuses messages because of its own size limit.
    if (error === notAllowed && send.request.count > 1) this.#divide(send, failure.failure)
    else this.#giveUp(send, failure.failure, 'rejected')
    this.#pump(session)
  }

  /** Ends the session when the oldest send has waited too long for its receipt. */
  #watch(session: Session): void {
    if (this.#cancelTimeout !== undefined) return
    const { clock, timeoutMs } = this.#settings
    const oldest = this.#sent[0] as Send
    const left = oldest.sentAtMs + timeoutMs - clock.now()
    if (left <= 0) {
      this.#concurrency.answered(oldest.sentAtMs, clock.now(), 'back_pressure')
      session.connection.end(timedOut('messages', timeoutMs))
      return
    }
    this.#cancelTimeout = clock.after(left, () => {
      this.#cancelTimeout = undefined
      if (this.#session === session && this.#sent.length > 0) this.#watch(session)
    })
  }

  /** Counts an attempt for each send, and removes those with no attempts left. */
  #countAttempt(sends: Send[], failure: Failure): void {
    const { attempts } = this.#settings.retry
    let kept = 0
    for (const send of sends) {
      send.request.resends++
      if (send.request.resends > attempts) this.#giveUp(send, failure, attempts === 0 ? 'errored' : 'rejected')
      else sends[kept++] = send
    }
    sends.length = kept
  }

  /** Gives the memory of a send to a connection; returns the function to call when the connection no longer reads it. */
  #lend(send: Send, connection: Connection): () => void {
    const giveBack = send.request.lend()
    send.readers.push(connection)
    return () => {
      giveBack()
      send.readers.splice(send.readers.indexOf(connection), 1)
      if (send.readers.length > 0 || send.cancelWait === undefined) return
      send.cancelWait()
      this.#settings.ended(send)
    }
  }

  /**
   * A broker may confirm, refuse or give up a send that it has not read. The send then counts as held until it is written, and a
   * connection that does not write it in time ends.
   */
  #ended(send: Send): void {
    const { clock, timeoutMs, ended, abandoning } = this.#settings
    if (send.readers.length === 0 || abandoning.aborted) {
      ended(send)
      return
    }
    send.cancelWait = clock.after(timeoutMs, () => {
      for (const connection of [...send.readers]) connection.end(timedOut('messages', timeoutMs))
    })
  }

  #giveUp(send: Send, failure: Failure, status: 'errored' | 'rejected'): void {
    const { count } = send.request
    this.#settings.events.error({
      ...errorOf(failure, { events: count, topic: this.topic }),
      message: 'Request failed and is not retried; its events are discarded.',
    })
    this.#discard(send, status, givenUp)
  }

  #discard(send: Send, status: 'errored' | 'rejected', reason: string): void {
    this.#settings.events.discarded(send.request.count, false, reason)
    send.request.end(status)
    this.#ended(send)
  }

  #reportRetry(failure: Failure, delayMs: number): void {
    this.#settings.events.error({
      ...errorOf(failure, { topic: this.topic, delay_ms: Math.round(delayMs) }),
      message: 'Request failed; trying again.',
      level: 'warn',
    })
  }
}

/** Converts a failure into an error for the error counter. */
export function errorOf(failure: Failure, fields: Readonly<Record<string, unknown>> = {}) {
  return {
    type: failure.type,
    stage: 'sending' as const,
    ...(failure.code === undefined ? {} : { code: failure.code }),
    fields: { ...failure.fields, ...fields },
  }
}
