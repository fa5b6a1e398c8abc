// A disk buffer in a folder during one run of the agent, with numbered events as input and output.

import { join } from 'node:path'
import { setImmediate as turn } from 'node:timers/promises'
import { showBuffer } from '../buffers/buffer.ts'
import { Ledger, ledgerName } from '../buffers/disk/ledger.ts'
import { DiskBuffer, type DiskBufferContext } from '../buffers/disk.ts'
import { ByteBatch } from '../bytes/byte-batch.ts'
import { type Batch, finalizeBatch, logBatch } from '../event/batch.ts'
import { type BatchStatus, type EventStatus, Finalizer } from '../event/finalizer.ts'
import type { LogEvent } from '../event/log.ts'
import { silentLogger } from '../telemetry/logger.ts'
import { Metrics } from '../telemetry/metrics.ts'
import { RepetitionLimit } from '../telemetry/repetition-limit.ts'
import { BytePod } from './byte-pod.ts'
import { log } from './events.ts'
import { through, transformsOf } from './lanes.ts'

/** The minimum of `max_size`. */
export const minBufferBytes = 268_435_488
const component = { component_id: 'out', component_kind: 'sink', component_type: 'test' }

/** One run of an agent with a buffer. The test decides which events the sink accepts. */
export class BufferRun {
  readonly metrics = new Metrics()
  readonly buffer: DiskBuffer
  readonly abandoning = new AbortController()
  readonly #folder: string
  #readable = Promise.withResolvers<void>()

  constructor(
    folder: string,
    whenFull: 'block' | 'drop_newest' = 'block',
    maxSize = minBufferBytes,
    disk: Pick<DiskBufferContext, 'files' | 'segmentLimit' | 'linesAsObjects'> = {},
  ) {
    this.#folder = folder
    this.buffer = DiskBuffer.open(
      { maxSize, whenFull },
      {
        folder,
        logger: silentLogger,
        limit: new RepetitionLimit(0),
        metrics: this.metrics,
        component,
        abandoning: this.abandoning.signal,
        ...disk,
      },
    )
    showBuffer(this.buffer, this.metrics, component)
    this.buffer.onReadable = () => this.#readable.resolve()
  }

  async end(): Promise<void> {
    await this.buffer.close()
  }

  /** Writes a batch as a separate record, and waits until the files contain it. */
  async put(batch: Batch): Promise<void> {
    const before = this.nextId
    await this.buffer.write(batch)
    while (this.nextId < before + batch.count) await turn()
  }

  /** Number of the next event in the files. */
  get nextId(): number {
    return Ledger.read(join(this.#folder, ledgerName)).state?.nextId ?? 0
  }

  /** The next batch; undefined if the buffer is empty. */
  async take(): Promise<Batch | undefined> {
    for (;;) {
      this.#readable = Promise.withResolvers()
      const batch = this.buffer.take()
      if (batch !== undefined || this.buffer.empty) return batch
      await this.#readable.promise
    }
  }

  /** Reads all events, and returns the messages. */
  async drain(status: EventStatus = 'delivered'): Promise<number[]> {
    const numbers: number[] = []
    for (let batch = await this.take(); batch !== undefined; batch = await this.take()) {
      for (const event of batch.events) numbers.push((event as LogEvent).fields['n'] as number)
      finalizeBatch(batch, status)
    }
    return numbers
  }

  value(name: string, labels = {}): number {
    return this.metrics.sum(name, labels)
  }

  get lost(): number {
    return this.value('buffer_discarded_events_total', { intentional: 'false' })
  }
}

/** A batch of events, numbered from `first`. `text` determines their size. */
export function numbered(first: number, size: number, heard?: (status: BatchStatus) => void, text = ''): Batch {
  const events = Array.from({ length: size }, (_, index) => log({ n: first + index, text }))
  return logBatch(events, new Finalizer(heard))
}

/** Creates the same batches from lines that stay bytes, like parsed messages of a pod. */
export async function lineNumbering(): Promise<typeof numbered> {
  const transforms = await transformsOf(['. = parse_json!(.message)'], true)
  const pod = new BytePod('pod')
  return (first, size, heard, text = '') => {
    const lines = Array.from({ length: size }, (_, index) =>
      Buffer.from(`2026-11-23T10:11:12.5Z stdout F {"n":${first + index},"text":"${text}"}`),
    )
    let made: Batch | undefined
    pod.read(lines, (batch) => {
      made = through(transforms, batch.under(new Finalizer(heard)))
    })
    if (!(made instanceof ByteBatch)) throw new TypeError('The lines have become objects.')
    return made
  }
}
