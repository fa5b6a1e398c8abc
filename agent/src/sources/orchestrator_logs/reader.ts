// Reads the lines of pod log files: the hooks that the tailer calls, in the order of a file's life. A position never passes
// a held line.

import { timerMs } from '../../clock.ts'
import { reconfigured, type SourceContext } from '../../component.ts'
import { logBatch } from '../../event/batch.ts'
import type { Finalizer } from '../../event/finalizer.ts'
import { Timestamp } from '../../event/timestamp.ts'
import type { Value } from '../../event/value.ts'
import type { Slab } from '../../tailing/slab.ts'
import {
  hasUnread,
  type LineTime,
  type LossReason,
  lossReasons,
  type TailedFile,
  type TailHooks,
} from '../../tailing/tailed-file.ts'
import { fact } from '../../telemetry/facts.ts'
import type { LineAssembler } from './assembler.ts'
import type { PodByteLane, ReadLines } from './byte-lane.ts'
import type { CompressedLogs } from './compressed-logs.ts'
import type { CriParser } from './cri.ts'
import type { PodDescriber } from './describer.ts'
import type { DockerParser } from './docker.ts'
import { heldFrom, isHandedOn, type PodFile, type Resumed, safePosition, streams } from './pod-file.ts'
import { parseFolder } from './pod-metadata.ts'
import type { Throttle } from './throttle.ts'

export interface PodLogReaderOptions {
  readonly root: string
  readonly timestampKey: string
  /** Whether a successor reads held-back lines again at the end. Without one, the source passes them on. */
  readonly hasSuccessor: boolean
}

interface Parts {
  /** Undefined: all lines become objects. */
  readonly lane?: PodByteLane | undefined
  readonly cri: CriParser
  readonly docker: DockerParser
  readonly assembler: LineAssembler
  readonly describer: PodDescriber
  readonly throttle: Throttle
  readonly compressed: CompressedLogs
}

const lossTexts = {
  rotated_files: 'A container has too many unread rotated files; the oldest is closed before it was read to its end.',
  disk_pressure: 'The disk is nearly full; a removed log file is closed before it was read to its end.',
  rotate_wait: 'The time limit for a removed file is over; it is closed before it was read to its end.',
} as const

export class PodLogReader implements TailHooks<PodFile> {
  readonly #options: PodLogReaderOptions
  readonly #context: SourceContext
  readonly #cri: CriParser
  readonly #docker: DockerParser
  readonly #assembler: LineAssembler
  readonly #describer: PodDescriber
  readonly #throttle: Throttle
  readonly #lane: PodByteLane | undefined
  readonly #compressed: CompressedLogs
  /** Lines of the current chunk in a format other than that of the container runtime. */
  #bad = 0
  /** Files with held lines. */
  readonly #holding = new Set<TailedFile<PodFile>>()
  /** The first line of the source determines the format. */
  #format: 'cri' | 'docker' | undefined

  constructor(options: PodLogReaderOptions, parts: Parts, context: SourceContext) {
    this.#options = options
    this.#context = context
    this.#cri = parts.cri
    this.#docker = parts.docker
    this.#assembler = parts.assembler
    this.#describer = parts.describer
    this.#throttle = parts.throttle
    this.#lane = parts.lane
    this.#compressed = parts.compressed
  }

  opened(tailed: TailedFile<PodFile>): PodFile {
    this.#compressed.opened(tailed.directory)
    const [folder = '', container = ''] = tailed.path.slice(this.#options.root.length + 1).split('/')
    const { namespace, name, uid } = parseFolder(folder) ?? { namespace: '', name: '', uid: '' }
    const known = this.#describer.initial(folder, namespace)
    const file: PodFile = {
      folder,
      namespace,
      name,
      uid,
      container,
      origin: {},
      constants: {},
      lines: undefined,
      metadata: known.metadata,
      orchestrator: undefined,
      pod: known.pod,
      knownUntilMs: Number.POSITIVE_INFINITY,
      namespaceLabels: known.namespaceLabels,
      nodeLabels: known.nodeLabels,
      path: tailed.path,
      revision: -1,
      writtenTags: { namespace },
      writtenPath: tailed.path.slice(0, tailed.path.lastIndexOf('.log') + 4),
      begun: false,
      resumed: tailed.progress.note as Resumed | undefined,
      limiter: this.#throttle.ofFile(),
      dropped: 0,
      heldUntil: 0,
      carried: [],
      partials: this.#assembler.partialLines(),
      groups: this.#assembler.groups(() => file),
    }
    tailed.progress.note = undefined
    // Counters start at zero; otherwise a scraper would take the first loss as the start value and miss the increase.
    for (const reason of lossReasons) this.#context.events.count('log_bytes_lost_total', 0, { namespace, reason })
    if (this.#throttle.isClosed(file.limiter)) {
      file.heldUntil = Number.POSITIVE_INFINITY
      tailed.waitUntil = file.heldUntil
    }
    this.#describer.annotate(file)
    return file
  }

  waits({ state }: TailedFile<PodFile>): boolean {
    return state.heldUntil > Date.now() || this.#describer.isContainerUnknown(state)
  }

  written({ state }: TailedFile<PodFile>, bytes: number): void {
    this.#context.events.count('log_bytes_written_total', bytes, state.writtenTags)
  }

  lost(tailed: TailedFile<PodFile>, bytes: number, reason: LossReason): void {
    const { namespace } = tailed.state
    this.#context.events.count('log_bytes_lost_total', bytes, { namespace, reason })
    this.#context.events.error({
      type: 'reader_failed',
      stage: 'receiving',
      code: 'log_bytes_lost',
      message: lossTexts[reason],
      fields: { file: fact(tailed.path), bytes },
    })
  }

  lines(tailed: TailedFile<PodFile>, slab: Slab): Promise<void> | undefined {
    const { events } = this.#context
    this.#describer.refresh(tailed, slab)
    const file = tailed.state
    if (!file.begun) {
      file.begun = true
      if (this.#holding.size > 0) this.#continueLine(tailed)
    }
    if (this.#format === undefined) {
      const first = slab.buffer[slab.starts[0] as number]
      if (slab.starts[0] === slab.ends[0]) events.count('k8s_format_picker_edge_cases_total')
      this.#format = first === 0x7b ? 'docker' : 'cri'
    }
    const heldMs = this.#throttle.admit(tailed, slab)
    this.#bad = 0
    const read = this.#readLines(file, slab)
    if (read === undefined) {
      if (this.#format === 'cri') this.#readCri(file, slab)
      else this.#readDocker(file, slab)
    }
    this.#observeLag(slab, read)
    if (file.resumed !== undefined && slab.end >= file.resumed.until) file.resumed = undefined
    if (this.#bad > 0) this.#malformed(file, this.#bad)
    const count = read === undefined ? this.#assembler.collected.length : (read.items?.length ?? read.lines.count)
    this.#describer.countMissing(file, count)
    let wait: Promise<void> | undefined
    try {
      wait = this.#handOn(tailed, slab.end, read)
    } finally {
      // The slab is about to be reused for lines of another pod.
      read?.lines.keep(() => slab.lend())
    }
    if (heldMs === 0) return wait
    return wait === undefined ? delayed(heldMs) : Promise.all([wait, delayed(heldMs)]).then(() => undefined)
  }

  closed(tailed: TailedFile<PodFile>): Promise<void> | undefined {
    this.#holding.delete(tailed)
    const file = tailed.state
    for (const stream of streams) {
      if (file.partials[stream].pending) this.#assembler.finishPartial(file, stream, false, 0)
      file.groups?.[stream].flush()
    }
    return this.#assembler.collected.length === 0 ? undefined : this.#handOn(tailed, tailed.offset)
  }

  /**
   * Agents of an operator and changed sources come back: they read incomplete lines and groups again from their first part. The
   * position is before that part, even in a rotated file, as soon as no reader uses the file. Other agents pass on the parts they
   * hold, because no successor reads them again.
   */
  stopped(tailed: TailedFile<PodFile>): Promise<void> | undefined {
    if (!this.#options.hasSuccessor && this.#context.stopping.reason !== reconfigured) return this.closed(tailed)
    const file = tailed.state
    if (safePosition(file, tailed.offset) < tailed.offset) {
      tailed.progress.note = file.resumed ?? {
        until: tailed.offset,
        from: { stdout: heldFrom(file, 'stdout'), stderr: heldFrom(file, 'stderr') },
      }
    }
    for (const before of file.carried) before.release(1, 'errored')
    file.carried = []
    return undefined
  }

  /** Passes on the parts and groups that have waited long enough for their next line. */
  releaseExpired(): void {
    const now = Date.now()
    for (const tailed of this.#holding) {
      const file = tailed.state
      const isBehind = () => hasUnread(tailed)
      for (const stream of streams) {
        if (file.partials[stream].expired(now, isBehind)) this.#assembler.finishPartial(file, stream, false, now)
        file.groups?.[stream].expire(now, isBehind)
      }
      if (safePosition(file, tailed.offset) === tailed.offset) this.#holding.delete(tailed)
      // A full buffer delays the next read, but not the expired parts.
      if (this.#assembler.collected.length > 0) void this.#handOn(tailed, tailed.offset)
    }
  }

  /** Reads a chunk as byte lines; undefined if a reader needs objects, or the chunk or the file does not allow byte lines. */
  #readLines(file: PodFile, slab: Slab): ReadLines | undefined {
    if (this.#lane === undefined || this.#format !== 'cri' || this.#context.output.takesBytes !== true) return undefined
    const { collected } = this.#assembler
    return this.#lane.read(file, slab, collected.length, (line) => {
      this.#readCriLine(file, slab, line)
      return this.#assembler.collected.length
    })
  }

  /** The last line of a chunk represents all lines; `lagSeconds` reports lines that wait longer. */
  #observeLag(slab: Slab, read: ReadLines | undefined): void {
    const { collected } = this.#assembler
    let last: Value | undefined
    if (read !== undefined) {
      const end = slab.count - 1
      const isRead = this.#cri.parse(slab.buffer, slab.starts[end] as number, slab.ends[end] as number)
      last = isRead ? this.#cri.timestamp : undefined
    } else if (collected.length > 0) last = collected[collected.length - 1]?.fields[this.#options.timestampKey]
    if (!(last instanceof Timestamp)) return
    this.#context.events.observe('source_lag_time_seconds', Math.max(0, slab.time.ms - last.ms) / 1000)
  }

  #readCri(file: PodFile, slab: Slab): void {
    for (let line = 0; line < slab.count; line++) this.#readCriLine(file, slab, line)
  }

  #readCriLine(file: PodFile, slab: Slab, line: number): void {
    const cri = this.#cri
    const assembler = this.#assembler
    const { buffer, base } = slab
    const { stdout, stderr } = file.partials
    const { resumed } = file
    const start = slab.starts[line] as number
    const end = slab.ends[line] as number
    if (!cri.parse(buffer, start, end)) {
      this.#bad++
      return
    }
    const { stream, timestamp, partial, message } = cri
    if (resumed !== undefined && isHandedOn(resumed, stream, base + start)) return
    if (partial || file.groups !== undefined || stdout.pending || stderr.pending) {
      const now = slab.time.ms
      if (assembler.joins(file, stream, partial)) {
        assembler.addBytes(file, buffer.subarray(message, end), stream, timestamp, partial, base + start, now)
      } else {
        assembler.add(file, slab.text(message, end), stream, timestamp, partial, base + start, now)
      }
      return
    }
    assembler.emit(file, slab.text(message, end), stream, timestamp, false)
  }

  #readDocker(file: PodFile, slab: Slab): void {
    for (let line = 0; line < slab.count; line++) {
      const start = slab.starts[line] as number
      const parsed = this.#docker.parse(slab.buffer.toString('utf8', start, slab.ends[line] as number))
      if (parsed === undefined) this.#bad++
      else {
        const { message, stream, timestamp, partial } = parsed
        if (file.resumed !== undefined && isHandedOn(file.resumed, stream, slab.base + start)) continue
        this.#assembler.add(file, message, stream, timestamp, partial, slab.base + start, slab.time.ms)
      }
    }
  }

  #malformed(file: PodFile, count: number): void {
    const { events } = this.#context
    const format = this.#format
    if (format === 'docker') events.count('k8s_docker_format_parse_failures_total', count)
    events.error({
      type: 'parser_failed',
      stage: 'processing',
      message: 'Discarded lines that are not in the format of the container runtime.',
      fields: { file: fact(file.path), ...(format === undefined ? {} : { format: fact(format) }) },
      count,
      level: 'warn',
    })
    events.discarded(count, false, 'The line is not in the format of the container runtime.')
  }

  /** @param read byte lines that the collected events are placed among */
  #handOn(tailed: TailedFile<PodFile>, position: number, read?: ReadLines): Promise<void> | undefined {
    const file = tailed.state
    const safe = safePosition(file, position)
    if (safe < position) this.#holding.add(tailed)
    const events = this.#assembler.takeEvents()
    const count = read === undefined ? events.length : (read.items?.length ?? read.lines.count)
    if (count === 0) {
      tailed.progress.skip(safe)
      return undefined
    }
    const finalizer = this.#finalizer(tailed, safe)
    const batch =
      read === undefined || this.#lane === undefined
        ? logBatch(events, finalizer)
        : this.#lane.batch(read, events, finalizer)
    return this.#context.output.send(batch, file.origin)
  }

  /** After this batch, the file need not be read again from before this position. */
  #finalizer(tailed: TailedFile<PodFile>, safe: number): Finalizer {
    const file = tailed.state
    const { carried } = file
    if (carried.length === 0 || file.partials.stdout.pending || file.partials.stderr.pending) {
      return tailed.progress.handOn(safe)
    }
    file.carried = []
    return tailed.progress.handOn(safe, (status) => {
      for (const before of carried) before.release(1, status)
    })
  }

  /** The runtime may split a line at a rotation: its first parts are then the last ones of the renamed file. */
  #continueLine(tailed: TailedFile<PodFile>): void {
    const file = tailed.state
    for (const before of this.#holding) {
      if (before === tailed || before.state.writtenPath !== file.writtenPath) continue
      if (before.path === file.writtenPath || before.created > tailed.created) continue
      let moved = false
      for (const stream of streams) {
        if (!before.state.partials[stream].pending) continue
        file.partials[stream].continueFrom(before.state.partials[stream])
        moved = true
      }
      if (moved) file.carried.push(before.progress.handOn(safePosition(before.state, before.offset)))
    }
  }
}

/** Returns a function that reads the time of the first unread line. */
export function compileLineTime(cri: CriParser, docker: DockerParser): LineTime {
  return (bytes, start, end) => {
    if (bytes[start] !== 0x7b) return cri.parse(bytes, start, end) ? cri.timestamp.ms : undefined
    return docker.parse(bytes.toString('utf8', start, end))?.timestamp.ms
  }
}

function delayed(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, timerMs(ms)))
}
