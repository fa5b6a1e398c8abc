// The action lines before documents. All documents of an index and a pipeline without an id share one line.

import { BoundedMap, ownBytes } from '../../bounded-map.ts'
import { actionLine, type BulkAction } from '../../http/bulk.ts'

/** Number of cached lines: one for each current index and pipeline. */
const keptLines = { maxEntries: 1000, maxBytes: 2 << 20, sizeOf: (line: Buffer) => 300 + line.length }

/** The part of a destination that action lines contain. */
export interface ActionPlace {
  readonly action: BulkAction
  /** Name of the index or data stream. */
  readonly name: string
  /** The ingest pipeline; undefined for that of the request. */
  readonly pipeline?: string | undefined
}

export class ActionLines {
  /** Version 6 documents have a type; set once the version is known. */
  documentType: string | undefined
  readonly #versionType: string
  readonly #lines = new BoundedMap<Buffer>(keptLines)
  #lastIndex = ''
  #lastAction: BulkAction = 'index'
  #lastPipeline: string | undefined
  #lastLine: Buffer | undefined

  constructor(versionType: string) {
    this.#versionType = versionType
  }

  withId(place: ActionPlace, id: string, version: string | undefined): string {
    return this.#lineOf(place, id, version)
  }

  withoutId(place: ActionPlace): Buffer {
    const { action, name, pipeline } = place
    if (
      this.#lastLine !== undefined &&
      name === this.#lastIndex &&
      action === this.#lastAction &&
      pipeline === this.#lastPipeline
    )
      return this.#lastLine
    const key = `${action} ${name}${pipeline === undefined ? '' : `\n${pipeline}`}`
    let line = this.#lines.get(key)
    if (line === undefined) {
      line = ownBytes(this.#lineOf(place, undefined, undefined))
      this.#lines.set(key, line)
    }
    this.#lastIndex = name
    this.#lastAction = action
    this.#lastPipeline = pipeline
    this.#lastLine = line
    return line
  }

  #lineOf({ action, name, pipeline }: ActionPlace, id: string | undefined, version: string | undefined): string {
    const versionType = this.#versionType
    return actionLine({ action, index: name, type: this.documentType, id, version, versionType, pipeline })
  }
}
