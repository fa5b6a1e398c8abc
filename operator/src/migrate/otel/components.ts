// Adds single components of the collector to a draft: receivers as sources, processors as transforms, exporters as sinks. The
// configurations of the collector and of Alloy, which contains its components, differ only in the connections between them.

import type { Draft, Origin, Step } from '../draft.ts'
import type { Refusal } from '../page.ts'
import { withoutPlaceholders } from './environment.ts'
import { exporters, refusedExporters } from './exporters.ts'
import { type Context, findMapping, gapComment, type Mapping, type Part } from './mapping.ts'
import { followOperators } from './operators.ts'
import { processors, refusedProcessors } from './processors.ts'
import { operatorsOf, receivers, refusedReceivers } from './receivers.ts'

export class Components {
  readonly #draft: Draft
  readonly #context: Context
  readonly #isDefined: (part: Part) => boolean

  /** @param isDefined whether the configuration defines a part that it names */
  constructor(draft: Draft, context: Context, isDefined: (part: Part) => boolean = () => true) {
    this.#draft = draft
    this.#context = context
    this.#isDefined = isDefined
  }

  /** Adds the sources of a receiver, and returns the transforms whose output is its records. */
  source(given: Part): readonly string[] {
    const mapping = this.#mapping(given, receivers, refusedReceivers)
    if (mapping === undefined) {
      const name = given.id.replace(/[^\w-]/g, '-')
      const config = { include: [`/var/empty/${name}`] }
      const comments = [this.#comment(given, 'This source reads nothing.')]
      return [this.#draft.add('sources', given.name, { type: 'file', config, comments })]
    }
    const part = withoutPlaceholders(given, false, this.#context, mapping)
    this.#context.reportOptions(part, mapping)
    return mapping
      .build(part, this.#context)
      .flatMap(({ component, follow }) =>
        follow(this.#draft.add('sources', given.name, { ...component, origin: originOf(given) }), this.#context),
      )
  }

  /** Adds the transforms of a processor after the heads, and returns the last. */
  processor(heads: readonly string[], given: Part, wanted: string): string[] {
    const mapping = this.#mapping(given, processors, refusedProcessors)
    if (mapping === undefined) {
      const unchanged: Step = { type: 'remap', text: '.', comments: [this.#comment(given, 'Events pass unchanged.')] }
      return this.#context.append(heads, [unchanged], wanted, given)
    }
    const part = withoutPlaceholders(given, false, this.#context, mapping)
    this.#context.reportOptions(part, mapping)
    if (given.type === 'logstransform') return followOperators(operatorsOf(part), new Set(), heads, this.#context)
    return this.#context.append(heads, mapping.build(part, this.#context), wanted, given)
  }

  /** Adds the sink of an exporter, with the transforms that give records its form. */
  sink(heads: readonly string[], given: Part): void {
    const mapping = this.#mapping(given, exporters, refusedExporters)
    if (mapping === undefined) {
      const comments = [this.#comment(given, 'This sink discards its events.')]
      this.#draft.add('sinks', given.name, { type: 'blackhole', inputs: heads, comments })
      return
    }
    const part = withoutPlaceholders(given, true, this.#context)
    this.#context.reportOptions(part, mapping)
    const { component, steps } = mapping.build(part, this.#context)
    const inputs = this.#context.append(heads, steps, `${given.name}-form`, part)
    this.#draft.add('sinks', given.name, { ...component, inputs, origin: originOf(given) })
  }

  #comment(part: Part, effect: string): string {
    return gapComment(part, effect, this.#isDefined(part) ? 'has no counterpart' : 'is not defined')
  }

  /** The mapping of a component. A component that the configuration does not define has none. */
  #mapping<Result>(part: Part, mappings: readonly Mapping<Result>[], refusals: readonly Refusal[]) {
    return this.#isDefined(part) ? findMapping(part, mappings, refusals, this.#context) : undefined
  }
}

/** The place of a part, for components that come from it. */
export function originOf(part: Part): Origin {
  const { file, line } = part.place()
  return { file, line, subject: part.title }
}
