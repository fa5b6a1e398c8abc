// Receives messages of a queue, passes their events on, and deletes messages that the pipeline has accepted or
// delivered.

import { pause, timeoutSignal } from '../../clock.ts'
import type { SourceContext } from '../../component.ts'
import { errorText } from '../../errors.ts'
import { Finalizer } from '../../event/finalizer.ts'
import { Timestamp } from '../../event/timestamp.ts'
import { Notes } from '../../intake/annotate.ts'
import { MessageReader, Outstanding } from '../../intake/message-reader.ts'
import type { DecodingOptions, FramingOptions } from '../../schema/groups.ts'
import { Backoff } from '../../timing/backoff.ts'
import type { Queue, QueueMessage } from './queue.ts'

const initialBackoffMs = 1000
const maxBackoffMs = 30_000
/** The time limit of a request, in addition to its wait for messages. */
const requestMs = 30_000

export interface ReceiverOptions {
  readonly queue_url: string
  readonly poll_secs: number
  readonly delete_message: boolean
  readonly decoding: DecodingOptions
  readonly framing: FramingOptions | undefined
}

export class QueueReceiver {
  readonly #options: ReceiverOptions
  readonly #queue: () => Promise<Queue>
  readonly #context: SourceContext
  readonly #outstanding = new Outstanding()

  constructor(options: ReceiverOptions, queue: () => Promise<Queue>, context: SourceContext) {
    this.#options = options
    this.#queue = queue
    this.#context = context
  }

  /** Receives until the source stops. Several calls may run concurrently. */
  async poll(): Promise<void> {
    const { stopping, globals } = this.#context
    const reader = new MessageReader(this.#options, new Notes('cloud_queue', globals.logSchema), this.#context)
    const limitMs = this.#options.poll_secs * 1000 + requestMs
    const backoff = new Backoff({ initialMs: initialBackoffMs, maxMs: maxBackoffMs, jitter: 'none' })
    while (!stopping.aborted) {
      try {
        const limit = timeoutSignal(limitMs)
        const messages = await (await this.#queue()).receive(AbortSignal.any([stopping, limit]))
        backoff.reset()
        if (messages.length > 0) await this.#handOn(messages, reader)
      } catch (error) {
        if (stopping.aborted) return
        const pauseMs = backoff.next()
        this.#context.events.error({
          code: 'failed_fetching_sqs_events',
          type: 'request_failed',
          stage: 'receiving',
          message: 'Could not receive messages from the queue; trying again after a pause.',
          fields: { error, pause_secs: pauseMs / 1000 },
        })
        await pause(pauseMs, stopping)
      }
    }
  }

  /** Resolves when every message passed on has been answered. */
  settled(): Promise<void> {
    return this.#outstanding.none()
  }

  /** Passes on the messages of one response. When all have been answered, it deletes the delivered ones together. */
  async #handOn(messages: readonly QueueMessage[], reader: MessageReader): Promise<void> {
    const { events, acknowledgements } = this.#context
    const received = { protocol: 'http', endpoint: this.#options.queue_url }
    const done: string[] = []
    let open = messages.length
    this.#outstanding.add()
    const finalized = (receipt: string, isDone: boolean) => {
      if (isDone) done.push(receipt)
      open--
      // Without acknowledgements the deletion waits until the pipeline has accepted everything.
      if (open === 0 && acknowledgements) void this.#delete(done).finally(() => this.#outstanding.done())
    }
    for (const { receipt, body, sentMs } of messages) {
      const message = Buffer.from(body, 'utf8')
      events.receivedBytes(message.length, received)
      const finalizer = new Finalizer(
        acknowledgements ? (status) => finalized(receipt, status === 'delivered') : undefined,
      )
      const sent = sentMs === undefined ? undefined : new Timestamp(sentMs, 0)
      await reader.read(message, finalizer, sent)
      if (!acknowledgements) finalized(receipt, true)
    }
    if (acknowledgements) return
    await this.#delete(done)
    this.#outstanding.done()
  }

  async #delete(receipts: readonly string[]): Promise<void> {
    if (receipts.length === 0 || !this.#options.delete_message) return
    let failed: readonly string[]
    try {
      failed = await (await this.#queue()).delete(receipts, AbortSignal.timeout(requestMs))
    } catch (error) {
      failed = [errorText(error)]
    }
    if (failed.length === 0) return
    const { events } = this.#context
    events.count('sqs_message_delete_failed_total', failed.length)
    events.error({
      type: 'writer_failed',
      stage: 'processing',
      message: 'Could not delete messages from the queue; they will be received again.',
      fields: { reason: failed[0] },
      count: failed.length,
    })
  }
}
