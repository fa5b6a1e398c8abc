// Placeholders for a missing source or sink.

import type { Draft } from '../draft.ts'

/** A Pipeline needs a source and a sink. If one is missing, a gap is reported at `place`. */
export function complete(draft: Draft, place: { readonly file: string; readonly line: number }): void {
  if (draft.count('sources') === 0) {
    draft.gaps.push({
      ...place,
      subject: 'sources',
      reason: 'no source can be converted',
      nearest: 'Replace the source `nothing`.',
    })
    draft.add('sources', 'nothing', {
      type: 'file',
      config: { include: ['/var/empty/nothing'] },
      comments: ['GAP: the configuration has no source.'],
    })
  }
  if (draft.count('sinks') === 0) {
    draft.gaps.push({
      ...place,
      subject: 'sinks',
      reason: 'no sink can be converted',
      nearest: 'Replace the sink `discarded`.',
    })
    draft.add('sinks', 'discarded', {
      type: 'blackhole',
      inputs: ['*'],
      comments: ['GAP: no sink of the configuration receives events.'],
    })
  }
}
