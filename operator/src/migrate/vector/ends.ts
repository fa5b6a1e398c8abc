// The gaps of a Pipeline without a source or a sink.

import type { Ends } from '../complete.ts'

export const ends: Ends = {
  source: {
    subject: 'sources',
    reason: 'no source can be converted',
    comment: 'the configuration has no source.',
  },
  sink: {
    subject: 'sinks',
    reason: 'no sink can be converted',
    comment: 'no sink of the configuration receives events.',
  },
}
