// The contract of a processor, and the options that all processors have.

import type { Mapping, Report } from '../loki/context.ts'

/** Returns statements; or undefined, after reporting a gap, if the processor cannot be converted. */
type Built = readonly string[] | undefined
export type Processor = Mapping<[Report], Built>

export const when = { when: '`if` around the statements, or a filter transform' } as const
export const quiet = {
  ignore_missing: 'missing fields are ignored',
  fail_on_error: 'an event continues after a failed step',
  ignore_failure: 'an event continues after a failed step',
  tag: 'only names the processor',
  id: 'only names the processor',
} as const
