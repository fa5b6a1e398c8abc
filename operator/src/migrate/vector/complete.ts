// Stand-ins for the sources and sinks that a configuration lacks.

import type { Draft } from '../draft.ts'

/** A Pipeline needs a source and a sink. Each that is missing is a gap at `place`. */
export function complete(draft: Draft, place: { readonly file: string; readonly line: number }): void {
  if (draft.count('sources') === 0) {
    draft.gaps.push({
      ...place,
      subject: 'sources',
      reason: 'no source is left',
      nearest: 'Replace the source `nothing`.',
    })
    draft.add('sources', 'nothing', {
      type: 'file',
      config: { include: ['/var/empty/nothing'] },
      comments: ['GAP: the configuration has no source of events.'],
    })
  }
  if (draft.count('sinks') === 0) {
    draft.gaps.push({
      ...place,
      subject: 'sinks',
      reason: 'no sink is left',
      nearest: 'Replace the sink `discarded`.',
    })
    draft.add('sinks', 'discarded', {
      type: 'blackhole',
      inputs: ['*'],
      comments: ['GAP: the configuration has no sink that receives anything.'],
    })
  }
}
