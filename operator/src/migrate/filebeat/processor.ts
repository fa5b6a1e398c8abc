// The contract of a processor, and the options that all of them have.

import type { Mapping, Report } from '../loki/context.ts'

/** Statements, or undefined if the processor cannot be converted, which it has reported. */
type Built = readonly string[] | undefined
export type Processor = Mapping<[Report], Built>

export const when = { when: '`if` around the statements, or a filter transform' } as const
export const quiet = {
  ignore_missing: 'a field that is missing is left alone',
  fail_on_error: 'an event continues after a failed step',
  ignore_failure: 'an event continues after a failed step',
  tag: 'it names the processor',
  id: 'it names the processor',
} as const
