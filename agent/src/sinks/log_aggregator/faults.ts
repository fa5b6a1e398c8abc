// Problems with the labels and times of events. If most events lack a field, one report per event would cost too much: the sink
// counts events and reports once per run of events.

import type { SinkContext } from '../../component.ts'
import { tooLongText } from '../../delivery/failed-events.ts'
import type { LogEvent } from '../../event/log.ts'
import { fact } from '../../telemetry/facts.ts'
import { warnedOnce } from '../../telemetry/warned-once.ts'
import type { Template } from '../../template.ts'
import type { LabelFaults } from './labels.ts'

export class Faults implements LabelFaults {
  readonly #context: SinkContext
  readonly #unrendered = new Map<string, { count: number; readonly missing: readonly string[] }>()
  readonly #reportLostLabels: (count: number) => void
  #invalidNames = 0
  #lostLabels = 0
  #late = 0
  #rewritten = 0
  #isLateReported = false

  constructor(context: SinkContext) {
    this.#context = context
    this.#reportLostLabels = warnedOnce(context.events, {
      type: 'encoder_failed',
      stage: 'processing',
      code: 'label_names_coincide',
      message:
        'Label names built from fields are equal after forbidden characters were replaced; one label of each such name is sent.',
    })
  }

  invalid(): void {
    this.#invalidNames++
  }

  lost(count: number): void {
    this.#lostLabels += count
  }

  /** An event older than the latest one pushed for its stream was discarded. */
  late(): void {
    this.#late++
  }

  /** A late event got the time of the latest one. */
  rewritten(): void {
    this.#rewritten++
  }

  /** A template could not be rendered for an event. */
  missing(option: string, template: Template, event: LogEvent): void {
    const known = this.#unrendered.get(option)
    if (known === undefined) this.#unrendered.set(option, { count: 1, missing: template.missing(event) })
    else known.count++
  }

  unlabeled(): void {
    this.#context.events.error({
      type: 'encoder_failed',
      stage: 'processing',
      code: 'unlabeled_event',
      message: 'An event has no labels; sending it with the label `agent`.',
    })
  }

  tooFarAway(): void {
    const { events } = this.#context
    events.error({
      type: 'encoder_failed',
      stage: 'processing',
      code: 'non-parsable_timestamp',
      message: 'The timestamp of an event is out of range; the event is discarded.',
    })
    events.discarded(1, false, 'The timestamp is out of range.')
  }

  /** Reports the counted problems. */
  report(): void {
    if (this.#unrendered.size > 0) this.#reportMissing()
    if (this.#invalidNames > 0) this.#reportInvalidNames()
    this.#reportLostLabels(this.#lostLabels)
    this.#lostLabels = 0
    if (this.#late > 0) this.#discardLate()
    if (this.#rewritten > 0) this.#context.events.count('rewritten_timestamp_events_total', this.#rewritten)
    this.#rewritten = 0
  }

  #reportMissing(): void {
    for (const [option, { count, missing }] of this.#unrendered) {
      this.#context.events.error({
        type: 'template_failed',
        stage: 'processing',
        message: missing.length > 0 ? 'A template refers to fields that events do not have.' : `${tooLongText}.`,
        fields: { field: fact(option), missing: missing.map(fact) },
        count,
      })
    }
    this.#unrendered.clear()
  }

  #reportInvalidNames(): void {
    this.#context.events.error({
      type: 'encoder_failed',
      stage: 'processing',
      code: 'invalid_label_name',
      message: 'Label names built from fields contain characters that the destination forbids; replacing them.',
      count: this.#invalidNames,
    })
    this.#invalidNames = 0
  }

  #discardLate(): void {
    const { events, logger } = this.#context
    const count = this.#late
    this.#late = 0
    events.discarded(count, true, 'The event is older than the latest one pushed for its stream.')
    if (this.#isLateReported) return
    this.#isLateReported = true
    logger.warn(
      { count },
      'Events are older than the latest one pushed for their stream; `out_of_order_action: drop` discards them. Set it to `accept` if the destination takes entries out of order, or add a label that distinguishes the writers of the stream.',
    )
  }
}
