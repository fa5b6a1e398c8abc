// Reads a line of docker's json-file log: `{"log":"text\n","stream":"stdout","time":"2024-01-02T03:04:05.1Z"}`.

import { Timestamp } from '../../event/timestamp.ts'
import { TimeParser, type ZoneOffset } from './cri.ts'

export interface DockerLine {
  readonly message: string
  readonly stream: 'stdout' | 'stderr'
  readonly timestamp: Timestamp
  readonly partial: boolean
}

/** The length at which docker splits a line. */
const cutLength = 16384

export class DockerParser {
  readonly #time: TimeParser

  constructor(zone: ZoneOffset) {
    this.#time = new TimeParser(zone)
  }

  /** The parts of a line; undefined if it does not have this format. */
  parse(text: string): DockerLine | undefined {
    let line: { log?: unknown; stream?: unknown; time?: unknown } | null
    try {
      line = JSON.parse(text) as typeof line
    } catch {
      return undefined
    }
    const { log, stream, time } = line ?? {}
    if (typeof log !== 'string' || typeof time !== 'string' || (stream !== 'stdout' && stream !== 'stderr')) {
      return undefined
    }
    const bytes = Buffer.from(time)
    if (this.#time.parse(bytes, 0, bytes.length) !== bytes.length) return undefined
    const whole = log.endsWith('\n')
    return {
      message: whole ? log.slice(0, -1) : log,
      stream,
      timestamp: new Timestamp(this.#time.ms, this.#time.ns),
      partial: !whole && Buffer.byteLength(log) >= cutLength,
    }
  }
}
