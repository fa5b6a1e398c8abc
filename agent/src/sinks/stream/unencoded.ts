// Finalizes events that stream sinks could not write: counts, logs and rejects them.

import type { Batch } from '../../event/batch.ts'
import type { ComponentEvents, ErrorReport } from '../../telemetry/component-events.ts'
import { fact } from '../../telemetry/facts.ts'

const encoderFailed = {
  type: 'encoder_failed',
  stage: 'processing',
  message: 'Could not encode events.',
} as const satisfies ErrorReport

const templateFailed = {
  type: 'template_failed',
  stage: 'processing',
  message: 'Events lack fields that a template refers to.',
} as const satisfies ErrorReport

/** Events of one batch that were not written. */
export class Unencoded {
  encoding = 0
  /** Text of the last encoding problem. */
  problem: string | undefined
  rendering = 0
  /** Names of the fields missing from the last event. */
  missing: readonly string[] = []
  /** Estimated JSON size of the events. */
  bytes = 0

  get count(): number {
    return this.encoding + this.rendering
  }

  /**
   * Counts the events and finalizes them. If other events of the batch continue, they keep the batch's share of the
   * finalizer.
   */
  reject(batch: Batch, events: ComponentEvents): void {
    if (this.count === 0) return
    if (this.encoding > 0) {
      events.error({ ...encoderFailed, count: this.encoding, fields: { reason: this.problem } })
      events.discarded(this.encoding, false, encoderFailed.message)
    }
    if (this.rendering > 0) {
      events.error({ ...templateFailed, count: this.rendering, fields: { missing: this.missing.map(fact) } })
      events.discarded(this.rendering, false, templateFailed.message)
    }
    if (this.count < batch.count) batch.finalizer.retain(1)
    batch.finalizer.release(1, 'rejected')
  }
}
