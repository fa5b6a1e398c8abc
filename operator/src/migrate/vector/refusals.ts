// Components of Vector without a counterpart, and alternatives.

import { absentSinks, absentSources, absentTransforms } from '@penstock/agent/output'
import type { Kind } from '../draft.ts'
import type { Refusal } from '../page.ts'
import { oldTransforms } from './transforms.ts'

export const refusals: Readonly<Record<Kind, readonly Refusal[]>> = {
  sources: [
    ...absentSources,
    {
      name: 'kubernetes',
      reason: 'the source of the first versions has other fields than `kubernetes_logs`',
      nearest: 'Use the source `orchestrator_logs`, and adapt programs to its fields.',
    },
    {
      name: 'kubernetes_logs_api',
      reason: 'agents read the log files of pods, and not the API',
      nearest: 'Use the source `orchestrator_logs` with the same selectors.',
      isHere: true,
    },
  ],
  transforms: [...absentTransforms, ...oldTransforms],
  sinks: absentSinks,
}
