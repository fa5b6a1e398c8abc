// Passes on the lines of pods as bytes if all their readers accept bytes. Lines that the kernel cannot read, such as parts of lines,
// become events among the byte lines.

import { isUtf8 } from 'node:buffer'
import { ByteBatch } from '../../bytes/byte-batch.ts'
import { ByteLines } from '../../bytes/byte-lines.ts'
import type { CurrentKeys } from '../../bytes/current-keys.ts'
import { Form } from '../../bytes/form.ts'
import { theKernel } from '../../bytes/kernel.ts'
import type { KeyTable } from '../../bytes/key-table.ts'
import { LineOrigin } from '../../bytes/line-origin.ts'
import type { OriginField } from '../../bytes/plan.ts'
import type { Finalizer } from '../../event/finalizer.ts'
import { LogEvent } from '../../event/log.ts'
import type { Slab } from '../../tailing/slab.ts'
import type { CriParser } from './cri.ts'
import type { PodFile } from './pod-file.ts'

/** The result of reading a chunk: lines and the events among them. */
export interface ReadLines {
  readonly lines: ByteLines
  /** For each event, its line, or -1 minus the index of its object. Undefined: all events are lines. */
  readonly items: Int32Array | undefined
}

export class PodByteLane {
  readonly #cri: CriParser
  readonly #hasFile: boolean
  readonly #keys: CurrentKeys

  /** @param keys of the source */
  constructor(cri: CriParser, hasFile: boolean, keys: CurrentKeys) {
    this.#cri = cri
    this.#keys = keys
    this.#hasFile = hasFile
  }

  /**
   * Reads the lines of a chunk; undefined if they must become objects. @param other reads a line as an object, and
   * returns the number of events collected so far
   */
  read(file: PodFile, slab: Slab, collected: number, other: (line: number) => number): ReadLines | undefined {
    const { orchestrator, groups, resumed, partials } = file
    const { buffer, starts, ends, count } = slab
    if (count === 0 || orchestrator === undefined || groups !== undefined || resumed !== undefined) return undefined
    if (!ByteLines.fits(count, starts[0] as number, ends[count - 1] as number)) return undefined
    const origin = this.#originOf(file)
    if (origin === undefined) return undefined
    const lines = new ByteLines(origin, buffer, starts, ends, count, slab.isAscii, slab.results)
    const kernel = lines.enter()
    const { stdout, stderr } = partials
    const isUnusual = kernel.at('isUnusual')
    const isError = kernel.at('isError')
    // A part of a line may end inside a character.
    if (slab.isMixed) lines.exclude(linesOfInvalidText(slab))
    if (!stdout.pending && !stderr.pending && !kernel.call.hasFlag(isUnusual, count)) return { lines, items: undefined }
    // All sources share the kernel, so this copies its results before another source uses it.
    const flags = kernel.flags.slice(0, count)
    let known = collected
    let items: number[] | undefined
    for (let line = 0; line < count; line++) {
      const bits = flags[line] as number
      const isPending = ((bits & isError) === 0 ? stdout : stderr).pending
      if ((bits & isUnusual) === 0 && !isPending) {
        items?.push(line)
        continue
      }
      items ??= Array.from({ length: line }, (_, index) => index)
      const now = other(line)
      for (; known < now; known++) items.push(-1 - known)
    }
    return { lines, items: items && Int32Array.from(items) }
  }

  /** The batch of the lines read and the events collected with them. */
  batch({ lines, items }: ReadLines, events: readonly LogEvent[], finalizer: Finalizer): ByteBatch {
    return ByteBatch.ofLines(lines, items, events, finalizer)
  }

  #originOf(file: PodFile): LineOrigin | undefined {
    const keys = this.#keys.table(theKernel())
    const origin = file.lines?.keys === keys ? file.lines : this.#newOrigin(file, keys)
    file.lines = origin
    // A full table may have no room for the names of the source.
    return origin.plan(theKernel(), Form.asRead).isPossible ? origin : undefined
  }

  #newOrigin({ orchestrator, metadata, path }: PodFile, keys: KeyTable): LineOrigin {
    const file = this.#hasFile ? path : undefined
    const source_type = 'orchestrator_logs'
    const fields: OriginField[] = [
      ...(file === undefined ? [] : [{ name: 'file', value: file }]),
      { name: 'message', part: 'message' },
      { name: 'orchestrator', value: orchestrator ?? null },
      { name: 'source_type', value: source_type },
      { name: 'stream', part: 'stream' },
      { name: 'timestamp', part: 'time' },
    ]
    const cri = this.#cri
    return new LineOrigin(fields, metadata, keys, this.#keys, (bytes, start, end) => {
      cri.parse(bytes, start, end)
      const { stream, timestamp } = cri
      const message = bytes.toString('utf8', cri.message, end)
      const known = orchestrator ?? null
      return new LogEvent(
        file === undefined
          ? { message, orchestrator: known, source_type, stream, timestamp }
          : { file, message, orchestrator: known, source_type, stream, timestamp },
        metadata,
      )
    })
  }
}

function linesOfInvalidText({ buffer, starts, ends, count }: Slab): number[] {
  const found: number[] = []
  for (let line = 0; line < count; line++) {
    if (!isUtf8(buffer.subarray(starts[line], ends[line]))) found.push(line)
  }
  return found
}
