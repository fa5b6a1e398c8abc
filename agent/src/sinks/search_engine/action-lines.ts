// The action lines before documents. All documents of an index without an id share one line.

import { BoundedMap, ownBytes } from '../../bounded-map.ts'
import { actionLine, type BulkAction } from '../../http/bulk.ts'

/** Number of cached lines: one for each current index. */
const keptLines = { maxEntries: 1000, maxBytes: 2 << 20, sizeOf: (line: Buffer) => 300 + line.length }

export class ActionLines {
  /** Version 6 documents have a type; set once the version is known. */
  documentType: string | undefined
  readonly #versionType: string
  readonly #lines = new BoundedMap<Buffer>(keptLines)
  #lastIndex = ''
  #lastAction: BulkAction = 'index'
  #lastLine: Buffer | undefined

  constructor(versionType: string) {
    this.#versionType = versionType
  }

  withId(action: BulkAction, index: string, id: string, version: string | undefined): string {
    return this.#lineOf(action, index, id, version)
  }

  withoutId(action: BulkAction, index: string): Buffer {
    if (this.#lastLine !== undefined && index === this.#lastIndex && action === this.#lastAction) return this.#lastLine
    const key = `${action} ${index}`
    let line = this.#lines.get(key)
    if (line === undefined) {
      line = ownBytes(this.#lineOf(action, index, undefined, undefined))
      this.#lines.set(key, line)
    }
    this.#lastIndex = index
    this.#lastAction = action
    this.#lastLine = line
    return line
  }

  #lineOf(action: BulkAction, index: string, id: string | undefined, version: string | undefined): string {
    const versionType = this.#versionType
    return actionLine({ action, index, type: this.documentType, id, version, versionType })
  }
}
