// Reports a tailer's problems with files. A problem with a path is reported once, until the path is forgotten.

import { BoundedMap } from '../bounded-map.ts'
import type { ComponentEvents } from '../telemetry/component-events.ts'
import { fact } from '../telemetry/facts.ts'
import type { Logger } from '../telemetry/logger.ts'
import { watchLimits } from './discovery.ts'

const fileProtocol = { protocol: 'file' }
const noTags = {}

export class TailReports {
  readonly #fileTag: boolean
  readonly #events: ComponentEvents
  readonly #logger: Logger
  /** Paths with a reported problem. */
  readonly #reported = new BoundedMap<true>({ maxEntries: 1000, maxBytes: 256 * 1024 })

  constructor(fileTag: boolean, events: ComponentEvents, logger: Logger) {
    this.#fileTag = fileTag
    this.#events = events
    this.#logger = logger
  }

  /** Reports problems with a path again. */
  forget(path: string): void {
    this.#reported.delete(path)
  }

  failedToFind(what: 'watching' | 'globbing', path: string, error: unknown): void {
    const limit = what === 'watching' ? watchLimits[(error as NodeJS.ErrnoException).code ?? ''] : undefined
    this.#once(`${what} ${path}`, () =>
      this.#events.error({
        type: what === 'watching' ? 'command_failed' : 'reader_failed',
        stage: 'receiving',
        code: what,
        message:
          limit !== undefined
            ? 'The limit for inotify watches is reached; checking the folder every second instead.'
            : what === 'watching'
              ? 'Cannot watch a folder; checking it every second instead.'
              : 'Could not read a folder.',
        fields: { directory: fact(path), ...(limit === undefined ? {} : { limit: fact(limit) }), error },
      }),
    )
  }

  unreadable(path: string, error: unknown): void {
    this.#once(path, () =>
      this.#events.error({
        type: 'reader_failed',
        stage: 'receiving',
        code: 'reading_fingerprint',
        message: 'Could not open a file or read its first lines.',
        fields: { file: fact(path), error },
      }),
    )
  }

  outside(path: string): void {
    this.#once(`outside ${path}`, () =>
      this.#events.error({
        type: 'reader_failed',
        stage: 'receiving',
        code: 'outside_of_volume',
        message: 'A link leads out of the log volume, or not to a regular file; it is not read.',
        fields: { file: path },
      }),
    )
  }

  tooShort(path: string): void {
    this.#once(path, () => this.#events.count('checksum_errors_total', 1, this.tags({ path })))
  }

  double(path: string, other: string): void {
    this.#once(`double ${path}`, () =>
      this.#logger.warn(
        { file: path, other },
        'Two files begin with the same lines and are treated as one. If they are different files, raise the number of fingerprint lines.',
      ),
    )
  }

  unread(path: string, error: unknown, message = 'Could not read a file.'): void {
    this.#once(`read ${path}`, () =>
      this.#events.error({
        type: 'io_failed',
        stage: 'receiving',
        code: 'reading_file',
        message,
        fields: { file: fact(path), error },
      }),
    )
  }

  unremovable(path: string, error: unknown): void {
    this.#once(`remove ${path}`, () =>
      this.#events.error({
        type: 'io_failed',
        stage: 'receiving',
        code: 'deleting_file',
        message: 'Could not remove a file after it was read.',
        fields: { file: fact(path), error },
      }),
    )
  }

  unwritable(dataDir: string, error: unknown): void {
    this.#events.error({
      type: 'writer_failed',
      stage: 'receiving',
      code: 'writing_checkpoints',
      message: 'Could not write the positions of files; after a restart, lines may be read twice.',
      fields: { data_dir: fact(dataDir), error },
    })
  }

  tooLong(path: string, maxLineBytes: number, count: number): void {
    this.#events.error({
      type: 'condition_failed',
      stage: 'receiving',
      code: 'reading_line_from_file',
      message: 'A line is longer than `max_line_bytes` and was discarded.',
      fields: { file: fact(path), max_line_bytes: maxLineBytes },
      count,
    })
    this.#events.discarded(count, false, 'The line is longer than `max_line_bytes`.')
  }

  tags(file: { readonly path: string }): Readonly<Record<string, string>> {
    return this.#fileTag ? { file: file.path } : noTags
  }

  /**
   * Tags of `component_received_bytes_total`: always the same object for a file, because the counter is looked up by
   * identity.
   */
  byteTags(file: { readonly path: string; byteTags: Readonly<Record<string, string>> | undefined }) {
    if (!this.#fileTag) return fileProtocol
    file.byteTags ??= { protocol: 'file', file: file.path }
    return file.byteTags
  }

  #once(key: string, report: () => void): void {
    if (this.#reported.get(key) !== undefined) return
    this.#reported.set(key, true)
    report()
  }
}
