// Turns events into sends: chooses the topic and partition of an event, builds its message, and collects it in a batch. The sink
// looks up a topic's partitions before it takes the first event; events without a key are spread over them in turn.

import { pause, systemClock } from '../../clock.ts'
import type { Encoder } from '../../codecs/encoding/encoder.ts'
import { scalarText, valueText } from '../../codecs/value-text.ts'
import type { Sink, SinkContext } from '../../component.ts'
import { type AnyEvent, Batcher, type BatchLimits } from '../../delivery/batcher.ts'
import type { Failure } from '../../delivery/delivery.ts'
import { encoderFailed, templateFailed } from '../../delivery/failed-events.ts'
import { framed, OpenRequest, sealRequest } from '../../delivery/request.ts'
import { RetryBackoff } from '../../delivery/retry.ts'
import type { Batch } from '../../event/batch.ts'
import { Body } from '../../event/body.ts'
import { LogEvent } from '../../event/log.ts'
import { singleTagValue } from '../../event/metric.ts'
import { getPath, type Path } from '../../event/path.ts'
import { fieldNames, isObject, type Value } from '../../event/value.ts'
import { warnedOnce } from '../../telemetry/warned-once.ts'
import type { Template } from '../../template.ts'
import { type TimeField, timeField } from '../../time-field.ts'
import { type Cluster, reaching } from './cluster.ts'
import type { BrokerCodec } from './compression.ts'
import { failureOf } from './failure.ts'
import { abandoned, errorOf, givenUp, newSend, Producer, type ProducerSettings, type Send } from './producer.ts'
import { fullTopicName, partitionOf, partitionTopic } from './routing.ts'
import { type MessageParts, readBatchedMessage, writeBatchedMessage } from './wire.ts'

/** Maximum size of messages without a receipt before the sink stops accepting events. */
const maxHeldBytes = 16 << 20
const maxHeldSends = 1000

/** How often the sink checks a topic in use for new partitions. */
const partitionsAgeMs = 60_000
/** How long a refused topic stays refused. */
const refusalMs = 1000
/** An idle producer is closed after this time, for deployments whose topics change. */
const idleMs = 300_000
/**
 * Above either limit the sink forgets all topics and looks them up again when needed, because topic names come from data.
 */
const maxTopics = 10_000
const maxTopicCharacters = 2_000_000
/**
 * Above this number the sink closes the least recently used idle producers. The limit of held bytes bounds the number of busy ones.
 */
const maxProducers = 1000

export interface BrokerSinkSpec {
  readonly cluster: Cluster
  readonly topic: Template
  readonly key: Path | undefined
  readonly properties: Path | undefined
  readonly encoder: Encoder
  readonly codec: BrokerCodec
  readonly limits: BatchLimits
  readonly producer: Omit<ProducerSettings, 'cluster' | 'held' | 'ended'>
  readonly healthcheck: (signal: AbortSignal) => Promise<void>
}

interface Topic {
  readonly name: string
  /** 0: not partitioned. Undefined until known. */
  partitions: number | undefined
  checkedAtMs: number
  refusal: Failure | undefined
  refusedUntilMs: number
  turn: number
  usedAtMs: number
}

/** Separates the topic from the partition in a batch key; topic names contain no control characters. */
const separator = '\n'

export class BrokerSink implements Sink {
  readonly takesBytes: boolean
  readonly healthcheck: (signal: AbortSignal) => Promise<void>
  readonly #context: SinkContext
  readonly #spec: BrokerSinkSpec
  readonly #batcher: Batcher
  readonly #topics = new Map<string, Topic>()
  #topicCharacters = 0
  readonly #producers = new Map<string, Producer>()
  readonly #scratch = new Body(4096)
  readonly #time: TimeField
  readonly #reportUnusableKeys: (count: number) => void
  /** Number of unusable keys in the messages being written. */
  #unusableKeys = 0
  #nextProducer = 0
  #heldSends = 0
  #heldBytes = 0
  #waiters: (() => void)[] = []
  #writing: Promise<void> | undefined
  readonly #idleMs: number
  #cleaned = systemClock.now()

  constructor(context: SinkContext, spec: BrokerSinkSpec) {
    this.#context = context
    this.#spec = spec
    this.healthcheck = spec.healthcheck
    this.takesBytes = spec.encoder.lineFields !== undefined
    this.#reportUnusableKeys = warnedOnce(context.events, {
      type: 'conversion_failed',
      stage: 'processing',
      code: 'unusable_key',
      message: 'The field in `partition_key_field` holds a list or an object; sending the message without a key.',
    })
    this.#time = timeField([context.globals.logSchema.timestampKey], 'log_schema.timestamp_key', context)
    // A topic is needed as long as one of its batches is open.
    this.#idleMs = Math.max(idleMs, 2 * spec.limits.timeoutMs)
    const encode = (events: readonly AnyEvent[], from: number, to: number, request: OpenRequest) => {
      for (let index = from; index < to; index++) this.#encode(events[index] as AnyEvent, request)
      this.#reportUnusableKeys(this.#unusableKeys)
      this.#unusableKeys = 0
      this.#time.report()
    }
    this.#batcher = new Batcher(
      spec.limits,
      { partition: this.#partition, begin: this.#begin, encode },
      systemClock,
      (open) => this.#submit(open),
    )
    context.abandoning.addEventListener('abort', this.#abandon, { once: true })
  }

  write(batch: Batch): Promise<void> | undefined {
    const { count, finalizer } = batch
    if (count === 0) {
      finalizer.release(1, 'dropped')
      return undefined
    }
    finalizer.retain(count - 1)
    if (this.#writing === undefined && !this.#full && this.#unknownTopics(batch).length === 0) {
      this.#batcher.add(batch, 0, () => false)
      this.#boundTopics()
      if (!this.#full) return undefined
      this.#writing = this.#ready()
    } else {
      const before = this.#writing ?? Promise.resolve()
      this.#writing = before.then(() => this.#writeLater(batch))
    }
    const writing = this.#writing
    return writing.then(() => {
      if (this.#writing === writing) this.#writing = undefined
    })
  }

  async #writeLater(batch: Batch): Promise<void> {
    await this.#ready()
    for (const topic of this.#unknownTopics(batch)) await this.#askPartitions(topic)
    if (this.#context.abandoning.aborted) {
      this.#context.events.discarded(batch.count, false, abandoned)
      batch.finalizer.release(batch.count, 'errored')
      return
    }
    this.#batcher.add(batch, 0, () => false)
    this.#boundTopics()
    await this.#ready()
  }

  async close(): Promise<void> {
    while (this.#writing !== undefined) {
      const writing = this.#writing
      await writing
      if (this.#writing === writing) this.#writing = undefined
    }
    this.#batcher.flush()
    while (this.#heldSends > 0) await new Promise<void>((resolve) => this.#waiters.push(resolve))
    this.#context.abandoning.removeEventListener('abort', this.#abandon)
    for (const producer of this.#producers.values()) producer.close()
    this.#producers.clear()
    await this.#spec.cluster.close()
  }

  // --- Topics and partitions ---

  #topic(name: string): Topic {
    let topic = this.#topics.get(name)
    const now = systemClock.now()
    if (topic === undefined) {
      topic = {
        name,
        partitions: undefined,
        checkedAtMs: now,
        refusal: undefined,
        refusedUntilMs: 0,
        turn: 0,
        usedAtMs: now,
      }
      this.#topics.set(name, topic)
      this.#topicCharacters += name.length
    }
    topic.usedAtMs = now
    return topic
  }

  /** An open request keeps its topic, so that all others can be forgotten between two batches. */
  readonly #begin = (request: OpenRequest): void => {
    request.state = this.#topic(request.key.split(separator, 1)[0] as string)
  }

  #boundTopics(): void {
    if (this.#topics.size <= maxTopics && this.#topicCharacters <= maxTopicCharacters) return
    this.#topics.clear()
    this.#topicCharacters = 0
  }

  /** Topics of the batch with unknown partitions. Also refreshes topics looked up long ago. */
  #unknownTopics(batch: Batch): Topic[] {
    const { topic: template } = this.#spec
    const now = systemClock.now()
    const unknown = new Set<Topic>()
    const events: readonly AnyEvent[] = batch.events
    const look = (event: AnyEvent) => {
      const text = template.render(event)
      const name = text === undefined ? undefined : fullTopicName(text)
      if (name === undefined) return // `#partition` reports it
      const topic = this.#topic(name)
      if (topic.partitions === undefined) {
        if (topic.refusal === undefined || now >= topic.refusedUntilMs) unknown.add(topic)
      } else if (now - topic.checkedAtMs > partitionsAgeMs) {
        topic.checkedAtMs = now
        void this.#refreshPartitions(topic)
      }
    }
    if (template.isStatic) look(events[0] as AnyEvent)
    else for (let index = 0; index < events.length; index++) look(events[index] as AnyEvent)
    return [...unknown]
  }

  /** Repeats the look-up until it succeeds, the retries are used up, or the topic is refused. A refusal holds for a while. */
  async #askPartitions(topic: Topic): Promise<void> {
    const { cluster, producer } = this.#spec
    const { abandoning } = this.#context
    const backoff = new RetryBackoff(producer.retry)
    const report = (failure: Failure, delayMs: number) =>
      this.#context.events.error({
        ...errorOf(failure, { topic: topic.name, delay_ms: Math.round(delayMs) }),
        message: 'Request failed; trying again.',
        level: 'warn',
      })
    while (!abandoning.aborted) {
      try {
        topic.partitions = await reaching(
          () => cluster.partitions(topic.name),
          producer.connectionRetries,
          ({ failure }, delay) => report(failure, delay),
          abandoning,
        )
        topic.refusal = undefined
        topic.checkedAtMs = systemClock.now()
        return
      } catch (error) {
        const { failure, final } = failureOf(error)
        const delay = final ? undefined : backoff.next()
        if (delay === undefined) {
          topic.refusal = failure
          topic.refusedUntilMs = systemClock.now() + refusalMs
          return
        }
        report(failure, delay)
        await pause(delay, abandoning)
      }
    }
  }

  async #refreshPartitions(topic: Topic): Promise<void> {
    try {
      // The number of partitions only grows.
      topic.partitions = Math.max(topic.partitions ?? 0, await this.#spec.cluster.partitions(topic.name))
    } catch (error) {
      this.#context.logger.debug({ error, topic: topic.name }, 'Could not refresh the partitions of a topic.')
    }
  }

  /** Batch key of an event: topic and partition, or only the topic without a key or partitions. */
  readonly #partition = (event: AnyEvent): string | undefined => {
    const { topic: template } = this.#spec
    const text = template.render(event)
    if (text === undefined) {
      templateFailed(this.#context, 'topic', template, event, true)
      return undefined
    }
    const name = fullTopicName(text)
    if (name === undefined) {
      this.#refuse({ type: 'request_failed', code: 'broker_invalid_topic_name', fields: {} })
      return undefined
    }
    const topic = this.#topic(name)
    const { partitions } = topic
    if (partitions === undefined) {
      this.#refuse(topic.refusal ?? { type: 'request_failed', fields: {} })
      return undefined
    }
    if (partitions === 0) return name
    const value = this.#keyValue(event)
    const key = value === null ? undefined : scalarText(value)
    return key === undefined ? name : `${name}${separator}${partitionOf(key, partitions)}`
  }

  #refuse(failure: Failure): void {
    this.#context.events.error({
      ...errorOf(failure),
      message: 'Cannot write to the topic of an event; the event is discarded.',
    })
    this.#context.events.discarded(1, false, givenUp)
  }

  // --- Messages ---

  #keyValue(event: AnyEvent): Value {
    const { key } = this.#spec
    return (key === undefined ? undefined : valueAt(event, key)) ?? null
  }

  #parts(event: AnyEvent): MessageParts {
    const { properties: path } = this.#spec
    const properties: [string, string][] = []
    const found = path === undefined ? undefined : valueAt(event, path)
    if (isObject(found)) {
      for (const name of fieldNames(found)) {
        const value = found[name]
        if (value !== undefined && value !== null) properties.push([name, valueText(value)])
      }
    }
    const time = event instanceof LogEvent ? this.#time.ofEvent(event) : event.timestamp
    // The broker does not accept times before 1970.
    const eventTimeMs = time !== undefined && time.ms > 0 ? Math.floor(time.ms) : undefined
    const value = this.#keyValue(event)
    const key = value === null ? undefined : scalarText(value)
    if (value !== null && key === undefined) this.#unusableKeys++
    return { key, properties, eventTimeMs }
  }

  #encode(event: AnyEvent, request: OpenRequest): void {
    const scratch = this.#scratch
    scratch.truncate(0)
    const problem = this.#spec.encoder.encode(event, scratch)
    if (problem !== undefined) {
      encoderFailed(this.#context, problem)
      return
    }
    const start = request.body.length
    writeBatchedMessage(request.body, this.#parts(event), scratch.view())
    request.mark(start)
  }

  #submit(open: OpenRequest): void {
    const partition = open.key.split(separator)[1]
    const topic = open.state as Topic
    const { name } = topic
    const partitions = topic.partitions ?? 0
    const full =
      partition !== undefined
        ? partitionTopic(name, Number(partition))
        : partitions > 0
          ? partitionTopic(name, topic.turn++ % partitions)
          : name
    const { pool } = this.#batcher
    const { codec, producer: settings } = this.#spec
    let sent = open
    let single: MessageParts | undefined
    if (open.count === 1) {
      // A single message is not sent as a batch: readers of compacted topics and key-shared subscriptions prefer that.
      const { parts, payload } = readBatchedMessage(open.body.view())
      single = parts
      sent = new OpenRequest(open.key, pool.take())
      sent.body.writeBytes(payload)
      sent.mark(0)
      sent.bytes = open.bytes
      open.owners.finalizers.forEach((finalizer, run) => {
        sent.owners.add(finalizer, open.owners.counts[run] as number)
      })
      pool.give(open.body)
      open.forgetPositions()
    }
    const request = sealRequest(sent, pool, codec, framed('', '', ''))
    const send = newSend(request, single)
    this.#held(send)
    let producer = this.#producers.get(full)
    if (producer === undefined) {
      if (this.#producers.size >= maxProducers) this.#closeIdle(maxProducers / 10)
      producer = new Producer(full, this.#nextProducer++, {
        ...settings,
        cluster: this.#spec.cluster,
        held: this.#held,
        ended: this.#ended,
      })
      this.#producers.set(full, producer)
    }
    producer.submit(send)
    if (!this.#spec.topic.isStatic) this.#clean()
  }

  /** Closes this many idle producers, least recently used first. */
  #closeIdle(count: number): void {
    const idle = [...this.#producers].filter(([, producer]) => !producer.busy)
    idle.sort(([, left], [, right]) => left.usedAtMs - right.usedAtMs)
    for (const [name, producer] of idle.slice(0, count)) {
      producer.close()
      this.#producers.delete(name)
    }
  }

  /** Forgets topics and producers not used for a long time. */
  #clean(): void {
    const now = systemClock.now()
    if (now - this.#cleaned < this.#idleMs) return
    this.#cleaned = now
    for (const [name, producer] of this.#producers) {
      if (producer.busy || now - producer.usedAtMs < this.#idleMs) continue
      producer.close()
      this.#producers.delete(name)
    }
    for (const [name, topic] of this.#topics) {
      if (now - topic.usedAtMs <= this.#idleMs) continue
      this.#topics.delete(name)
      this.#topicCharacters -= name.length
    }
  }

  // --- Pending events ---

  get #full(): boolean {
    return this.#heldBytes >= maxHeldBytes || this.#heldSends >= maxHeldSends
  }

  async #ready(): Promise<void> {
    while (this.#full) await new Promise<void>((resolve) => this.#waiters.push(resolve))
  }

  readonly #held = (send: Send): void => {
    const { request } = send
    this.#heldSends++
    this.#hold(send, request.compressing === undefined ? request.payload.length : request.bodyBytes)
    void request.compressing?.then(() => {
      // The send may have ended meanwhile.
      if (send.heldBytes > 0) this.#hold(send, request.payload.length)
      this.#wake()
    })
  }

  readonly #ended = (send: Send): void => {
    this.#heldSends--
    this.#hold(send, 0)
    this.#wake()
  }

  #hold(send: Send, bytes: number): void {
    this.#heldBytes += bytes - send.heldBytes
    send.heldBytes = bytes
  }

  #wake(): void {
    if (this.#waiters.length > 0 && (!this.#full || this.#heldSends === 0)) {
      for (const wake of this.#waiters.splice(0)) wake()
    }
  }

  readonly #abandon = (): void => {
    for (const producer of this.#producers.values()) producer.abandon()
    void this.#spec.cluster.close() // never rejects; pending waits for a broker end
  }
}

/** The value of a field, or of a tag for a metric event. */
function valueAt(event: AnyEvent, path: Path): Value | undefined {
  if (event instanceof LogEvent) return getPath(event, path)
  const [first, ...rest] = path.segments
  const name = first === 'tags' ? rest.join('.') : path.segments.join('.')
  const tag = event.tags?.get(name)
  return tag === undefined ? undefined : singleTagValue(tag)
}
