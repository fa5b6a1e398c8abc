// The last lines that the programs of each pipeline have logged, for its authors: limited in number and length, removed with the pipeline.

import type { ProgramLog } from '../component.ts'

export interface ProgramLine {
  readonly at: string
  readonly component: string
  readonly level: string
  readonly text: string
}

const keptLines = 100
const maxCharacters = 1024

export class ProgramLines {
  readonly #lines = new Map<string, ProgramLine[]>()

  of(pipeline: string): readonly ProgramLine[] {
    return this.#lines.get(pipeline) ?? []
  }

  /** Keeps what a component of the pipeline logs. */
  log(pipeline: string, component: string): ProgramLog {
    return (level, text) => {
      let lines = this.#lines.get(pipeline)
      if (lines === undefined) {
        lines = []
        this.#lines.set(pipeline, lines)
      }
      lines.push({ at: new Date().toISOString(), component, level, text: text.slice(0, maxCharacters) })
      if (lines.length > keptLines) lines.shift()
    }
  }

  delete(pipeline: string): void {
    this.#lines.delete(pipeline)
  }
}
