// The components behind a source, and their effects on it: a source joins lines for one of them, and passes on lines in the form that they
// expect.

import { Report } from '../loki/context.ts'
import { type Joined, parsesRuntime, seesLines, variantsOf } from '../loki/joining.ts'
import { type RuntimeForm, runtimeForm } from '../loki/runtime.ts'
import type { Tree } from '../loki/tree.ts'
import { stageList } from './stage-list.ts'
import type { Found, Lookup } from './targets.ts'

/** How the sources join lines for a component. */
export interface Joining {
  readonly id: string
  readonly joined: readonly (Joined | undefined)[]
}

export class Following {
  readonly #lookup: Lookup
  readonly #receivers: (found: Found) => readonly string[]
  readonly #report: Report
  /** Gaps of stages are reported when the stages are converted, not when the source looks at them. */
  readonly #quiet = new Report([])
  /** Processes whose stage `multiline` no source can do; each is a gap. */
  readonly #unjoined = new Set<string>()

  /** @param receivers the ids of the components that a component forwards to */
  constructor(lookup: Lookup, receivers: (found: Found) => readonly string[], report: Report) {
    this.#lookup = lookup
    this.#receivers = receivers
    this.#report = report
  }

  /** Whether a gap for the stage `multiline` of a process exists already. */
  isUnjoined(id: string): boolean {
    return this.#unjoined.has(id)
  }

  #stages({ block, evaluator }: Found): Tree | undefined {
    return block.name === 'loki.process' ? stageList(block, evaluator, this.#quiet) : undefined
  }

  /** `multiline` of the first process behind a source that joins lines. */
  joiningFor(found: Found): Joining | undefined {
    const seen = new Set<string>()
    const visit = (at: Found, before: readonly Tree[]): Joining | undefined => {
      const receivers = this.#receivers(at)
      for (const id of receivers) {
        const next = this.#lookup(id)
        if (next === undefined || seen.has(id)) continue
        seen.add(id)
        const list = this.#stages(next)
        const joined = list === undefined ? [] : variantsOf(list, this.#report).map((each) => each.joined)
        if (!joined.some((each) => each !== undefined)) {
          this.#unjoined.add(id)
          const behind = visit(next, list === undefined ? before : [...before, list])
          if (behind !== undefined) return behind
          continue
        }
        this.#reportOthers(next, id, receivers.length > 1, before.some(seesLines))
        if (!before.some(parsesRuntime)) return { id, joined }
        return { id, joined: joined.map((each) => each && { ...each, isAfterRuntime: true }) }
      }
      return undefined
    }
    return visit(found, [])
  }

  /** Reports components that get joined lines, too, because the source joins them. */
  #reportOthers({ block, evaluator }: Found, id: string, isBeside: boolean, isBehind: boolean): void {
    const place = evaluator.place(block.line)
    if (isBeside) {
      const reason = 'the source joins lines for all components that it forwards to'
      this.#report.gap(place, id, reason, 'Read these files with a separate source.')
    }
    if (isBehind) {
      const reason = 'the components before it receive joined lines now, because the source joins them'
      this.#report.gap(place, id, reason, 'Compare a few events with `penstock run`.')
    }
  }

  /** The form in which the stages behind a source expect lines of the runtime; undefined if one of them parses these as such. */
  runtimeFor(found: Found): RuntimeForm | undefined {
    const lists: Tree[] = []
    const seen = new Set<string>()
    const visit = (at: Found): void => {
      for (const id of this.#receivers(at)) {
        const next = this.#lookup(id)
        if (next === undefined || seen.has(id)) continue
        seen.add(id)
        lists.push(...[this.#stages(next)].filter((list) => list !== undefined))
        visit(next)
      }
    }
    visit(found)
    return lists.some(parsesRuntime) ? undefined : runtimeForm(lists)
  }
}
