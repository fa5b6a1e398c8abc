// The sink behind the `inputs` of an enrichment table of type `memory`. The table creates it, so users never configure
// it.

import { defineSink } from '../component.ts'
import type { Batch } from '../event/batch.ts'

export const memoryTable = defineSink({
  type: 'memory_table',
  summary: 'Writes events to an enrichment table.',
  accepts: ['log'],
  options: {},

  build(_options, context) {
    const table = context.globals.tables?.memory(context.id)
    return {
      write(batch: Batch) {
        const { count, bytes } = batch
        let discarded = 0
        if (batch.type === 'log') {
          for (const event of batch.events) if (!table?.write(event.fields)) discarded++
        }
        if (discarded > 0) context.events.discarded(discarded, false, 'The table is full.')
        context.events.sent(count - discarded, bytes)
        batch.finalizer.release(1, 'delivered')
        return undefined
      },
      async close() {},
    }
  },
})
