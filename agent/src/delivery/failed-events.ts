// Reports events that a sink cannot write: logs and counts them, and discards those for which nothing can be sent.

import type { SinkContext } from '../component.ts'
import { fact } from '../telemetry/facts.ts'
import { maxJoinedLength, type Template } from '../template.ts'
import type { AnyEvent } from './batcher.ts'

/** The reasons why a template cannot be rendered. */
const missingFields = 'A template refers to fields that the event does not have'
export const tooLongText = `The fields that a template refers to have more than ${maxJoinedLength} characters together`

/** Counts an event for which a template cannot be rendered. */
export function templateFailed(
  context: SinkContext,
  option: string,
  template: Template,
  event: AnyEvent,
  discarded: boolean,
): void {
  const missing = template.missing(event)
  const problem = missing.length > 0 ? missingFields : tooLongText
  context.events.error({
    type: 'template_failed',
    stage: 'processing',
    message: discarded ? `${problem}; the event is discarded.` : `${problem}.`,
    fields: { field: fact(option), missing: missing.map(fact) },
  })
  if (discarded) context.events.discarded(1, false, 'A template could not be rendered.')
}

/** Counts an event that the encoder cannot write. */
export function encoderFailed(context: SinkContext, problem: string): void {
  context.events.error({
    type: 'encoder_failed',
    stage: 'processing',
    message: 'An event could not be encoded; it is discarded.',
    fields: { problem },
  })
  context.events.discarded(1, false, 'The event could not be encoded.')
}
