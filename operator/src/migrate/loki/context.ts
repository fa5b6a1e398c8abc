// The contract of a mapping of stages, components or other parts: the part, its counterpart, and the counterpart of each option. The tables
// of the guide and the reports of options without a counterpart are derived from it.

import { missingPart } from '../absence.ts'
import type { Gap } from '../draft.ts'
import { readReport } from '../environment.ts'
import { type Described, type Refusal, withoutOption } from '../page.ts'
import { unknownVariables } from './fields.ts'
import { flagOf, isMap, type Place, type Tree, textOf, textsOf } from './tree.ts'

export interface Mapping<Arguments extends readonly unknown[], Result> extends Described {
  readonly build: (part: Part, ...rest: Arguments) => Result
}

/** A part of the old configuration: its name and its options. */
export interface Part extends Place {
  readonly name: string
  readonly tree: Tree
}

export function option(part: Part, name: string): Tree | undefined {
  return isMap(part.tree) ? part.tree.value.get(name) : undefined
}

export const textIn = (part: Part, name: string): string | undefined => textOf(option(part, name))
export const textsIn = (part: Part, name: string): readonly string[] => textsOf(option(part, name))
export const flagIn = (part: Part, name: string): boolean | undefined => flagOf(option(part, name))

export class Report {
  /** Whether programs may read the environment of the agent, as those of a ClusterPipeline may. */
  readonly readsEnvironment: boolean
  readonly #gaps: Gap[]

  constructor(gaps: Gap[], readsEnvironment = true) {
    this.#gaps = gaps
    this.readsEnvironment = readsEnvironment
  }

  /** Reports environment variables in a text that becomes an expression of a program. */
  variables(place: Place, subject: string, text: string, all = unknownVariables(text)): void {
    for (const found of all) {
      const name = /\w+/.exec(found)?.[0] ?? found
      if (!this.readsEnvironment) {
        const reason = 'programs of a namespaced Pipeline cannot read environment variables'
        this.gap(place, `${subject}: ${found}`, reason, 'Replace it with its value.')
        continue
      }
      const { reason, nearest } = readReport(name)
      this.replaced(place, `${subject}: ${found}`, reason, nearest)
    }
  }

  /** Reports environment variables in a text that goes into a resource unchanged. */
  literal(place: Place, subject: string, text: string): void {
    for (const found of unknownVariables(text)) {
      const reason = 'a resource is literal text, and the environment variable has no value here'
      this.gap(place, `${subject}: ${found}`, reason, 'Replace it with its value.')
    }
  }

  gap(place: Place, subject: string, reason: string, nearest: string): void {
    this.#add({ file: place.file, line: place.line, subject, reason, nearest })
  }

  /** Reports a text that cannot be parsed. */
  unreadable(place: Place, subject: string, reason: string): void {
    const { file, line } = place
    this.#add({ file, line, subject, reason, nearest: 'Correct the file.', isUnreadable: true })
  }

  /** Gaps by key, because a part may be converted more than once. */
  #add(gap: Gap): void {
    const isSame = ({ file, line, subject, reason }: Gap) =>
      file === gap.file && line === gap.line && subject === gap.subject && reason === gap.reason
    if (!this.#gaps.some(isSame)) this.#gaps.push(gap)
  }

  /** Reports a part whose work Penstock does in another way, so that nothing is missing. */
  replaced(place: Place, subject: string, reason: string, nearest: string): void {
    this.#add({ file: place.file, line: place.line, subject, reason, nearest, isReplaced: true })
  }

  /** Reports the options of a part that have no counterpart. */
  options(part: Part, { options, itself = {} }: Pick<Mapping<never, unknown>, 'options' | 'itself'>): void {
    if (!isMap(part.tree)) return
    for (const [name, value] of part.tree.value) {
      if (Object.hasOwn(options, name)) continue
      const own = Object.hasOwn(itself, name) ? itself[name] : undefined
      if (typeof own === 'string') continue
      const subject = `${part.name}: ${name}`
      if (own === undefined) {
        this.gap(value, subject, `the option \`${name}\` has no counterpart`, withoutOption(name, Object.keys(options)))
      } else if (
        (isMap(value) ? [...value.value.values()].flatMap(textsOf) : textsOf(value)).some((text) =>
          own.unless.test(text),
        )
      ) {
        const { reason, nearest, isAbsent } = own
        const gap = { file: value.file, line: value.line, subject, reason, nearest }
        this.#add(isAbsent === true ? { ...gap, isAbsent } : gap)
      }
    }
  }

  /** Reports a part without a counterpart, or an unknown part. */
  refused(part: Part, kind: string, refusals: readonly Refusal[]): void {
    this.missing(
      part,
      `${kind} ${part.name}`,
      refusals.find(({ name }) => name === part.name),
      kind,
    )
  }

  /** Reports a part without a mapping; the refusal gives the reason. */
  missing(place: Place, subject: string, refusal: Refusal | undefined, kind: string, nearest?: string): void {
    this.#add(missingPart(place, subject, refusal, kind, nearest))
  }
}
