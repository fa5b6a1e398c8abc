// A pod whose lines stay bytes, as in the source of pod logs.

import type { ByteBatch } from '../bytes/byte-batch.ts'
import { chunkBytes, isChunk } from '../bytes/chunks.ts'
import { CurrentKeys } from '../bytes/current-keys.ts'
import { Finalizer } from '../event/finalizer.ts'
import { LogEvent, noMetadata } from '../event/log.ts'
import type { ValueObject } from '../event/value.ts'
import { PodByteLane } from '../sources/orchestrator_logs/byte-lane.ts'
import { CriParser } from '../sources/orchestrator_logs/cri.ts'
import type { PodFile } from '../sources/orchestrator_logs/pod-file.ts'
import { SharedReads } from '../tailing/shared-reads.ts'
import { chunkPool, compileDelimiter, Slab } from '../tailing/slab.ts'

const newline = Buffer.from('\n')

/** A chunk pool like that of an agent's sources. */
const pool = chunkPool()

/**
 * Reads a chunk of one file with several pipelines at its beginning, each as soon as the previous one has passed its lines on. They share
 * their results. @returns the bytes of the shared chunks after each
 */
export function readTogether(
  pods: readonly BytePod[],
  lines: readonly Buffer[],
  handedOn: (batch: ByteBatch, pod: number) => void,
): readonly number[] {
  const reads = new SharedReads(pool)
  const shares = pods.map(() => reads.open('file', { offset: 0 }))
  const slab = pool.take()
  const bytes = Buffer.concat(lines.flatMap((line) => [line, newline]))
  if (bytes.length > slab.buffer.length) throw new Error('The lines do not fit in a chunk.')
  bytes.copy(slab.buffer)
  slab.split(0, bytes.length, compileDelimiter(newline), bytes.length)
  shares[0]?.leave(slab, bytes.length, false)
  const waiting: number[] = []
  for (const [index, share] of shares.entries()) {
    const chunk = share.find()
    if (chunk === undefined) throw new Error('The chunk is gone.')
    share.use(chunk, (view) => pods[index]?.readSlab(view, lines, (batch) => handedOn(batch, index)))
    waiting.push(reads.bytes)
  }
  for (const next of Array.from({ length: 20 }, () => pool.take())) {
    next.buffer.fill('x')
    pool.give(next)
  }
  return waiting
}

/** A pod with lines as bytes and as objects. */
export class BytePod {
  readonly lane: PodByteLane
  readonly file: PodFile
  readonly #cri = new CriParser(() => 0)
  readonly #hasFile: boolean
  readonly #place: Buffer | undefined
  #reads = 0

  /**
   * @param place the shared memory in which all chunks are placed in turn, as in an agent; by default, chunks have separate memory
   * @param lane the lane of another pod that shares the source
   */
  constructor(name: string, hasFile = true, place?: Buffer, lane?: PodByteLane) {
    this.#hasFile = hasFile
    this.#place = place
    this.lane = lane ?? new PodByteLane(this.#cri, hasFile, new CurrentKeys())
    const orchestrator: ValueObject = { pod_labels: { app: `ü"${name}`, b: 'c' }, pod_name: name, n: 1.5 }
    const partials = { stdout: { pending: false }, stderr: { pending: false } }
    const path = `/var/log/pods/${name}/"0.log`
    this.file = { orchestrator, partials, path, metadata: noMetadata } as unknown as PodFile
  }

  /** The lines as bytes, in a chunk that is reused after `handedOn` returns. */
  read(lines: readonly Buffer[], handedOn: (batch: ByteBatch) => void): void {
    const bytes = Buffer.concat([Buffer.from('rest of another line\n'), ...lines.flatMap((line) => [line, newline])])
    const slab = this.#slabFor(bytes.length)
    bytes.copy(slab.buffer)
    slab.split(21, bytes.length, compileDelimiter(newline), 1 << 20)
    this.readSlab(slab, lines, handedOn)
    if (slab.held) return
    if (this.#place === undefined) slab.buffer.fill('x')
    if (isChunk(slab.buffer)) pool.give(slab)
  }

  /** Every other chunk is in the memory of the kernel. */
  #slabFor(bytes: number): Slab {
    this.#reads++
    if (this.#reads % 2 === 0 && bytes <= chunkBytes) return pool.take()
    return new Slab(this.#place ?? Buffer.alloc(Math.max(bytes + 50, chunkBytes), '"}'))
  }

  /** The same for lines in a chunk. */
  readSlab(slab: Slab, lines: readonly Buffer[], handedOn: (batch: ByteBatch) => void): void {
    const objects: LogEvent[] = []
    const read = this.lane.read(this.file, slab, 0, (line) => {
      objects.push(...this.objects([lines[line] as Buffer]))
      return objects.length
    })
    if (read === undefined) throw new Error('The lane accepted no lines.')
    handedOn(this.lane.batch(read, objects, new Finalizer()))
    read.lines.keep(() => slab.lend())
  }

  /** The same lines as objects, without those that are not in the format of the container runtime. */
  objects(lines: readonly Buffer[]): LogEvent[] {
    return lines.flatMap((line) => {
      if (!this.#cri.parse(line, 0, line.length)) return []
      const { stream, timestamp, partial } = this.#cri
      const message = line.toString('utf8', this.#cri.message)
      const { orchestrator = null, path } = this.file
      const file = this.#hasFile ? { file: path } : {}
      const fields: ValueObject = {
        ...file,
        message,
        orchestrator,
        source_type: 'orchestrator_logs',
        stream,
        timestamp,
      }
      return [new LogEvent(partial ? { ...fields, _partial: true } : fields)]
    })
  }
}
