// Components of Vector without a counterpart, and alternatives.

import { absentSinks, absentSources, absentTransforms } from '@penstock/agent/output'
import type { Kind } from '../draft.ts'
import type { Refusal } from '../page.ts'
import { oldTransforms } from './transforms.ts'

export const refusals: Readonly<Record<Kind, readonly Refusal[]>> = {
  sources: absentSources,
  transforms: [...absentTransforms, ...oldTransforms],
  sinks: absentSinks,
}
