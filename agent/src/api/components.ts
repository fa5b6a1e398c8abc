// The components of a running topology with their counts, for `/v1/components` and `top`.

import type { Topology } from '../topology/run.ts'

export interface ComponentView {
  readonly component_id: string
  readonly component_kind: string
  readonly component_type: string
  readonly inputs?: readonly string[]
  readonly outputs?: readonly string[]
  readonly received_bytes_total: number
  readonly received_events_total: number
  readonly received_event_bytes_total: number
  readonly sent_events_total: number
  readonly sent_event_bytes_total: number
  readonly sent_bytes_total: number
  readonly errors_total: number
  readonly discarded_events_total: number
  /** The events among the discarded ones that a program or a limit of the user removed on purpose. */
  readonly filtered_events_total: number
  readonly utilization?: number
  readonly buffer_events?: number
  readonly buffer_bytes?: number
  /** Seconds for which the inputs of a sink have waited for it, because its buffer is full. */
  readonly inputs_wait_seconds?: number
}

export function componentViews(topology: Topology): ComponentView[] {
  const { metrics } = topology.context
  const counts = (id: string, kind: string, type: string) => {
    const labels = { component_id: id }
    return {
      component_id: id,
      component_kind: kind,
      component_type: type,
      received_bytes_total: metrics.sum('component_received_bytes_total', labels),
      received_events_total: metrics.sum('component_received_events_total', labels),
      received_event_bytes_total: metrics.sum('component_received_event_bytes_total', labels),
      sent_events_total: metrics.sum('component_sent_events_total', labels),
      sent_event_bytes_total: metrics.sum('component_sent_event_bytes_total', labels),
      sent_bytes_total: metrics.sum('component_sent_bytes_total', labels),
      errors_total: metrics.sum('component_errors_total', labels),
      // The component's counter includes events that a full buffer drops on purpose. Only the buffer's own counter includes losses.
      discarded_events_total:
        metrics.sum('component_discarded_events_total', labels) +
        metrics.sum('buffer_discarded_events_total', { ...labels, intentional: 'false' }),
      filtered_events_total: metrics.sum('component_discarded_events_total', { ...labels, intentional: 'true' }),
    }
  }
  const views: ComponentView[] = []
  for (const [id, { config, outlet, meter }] of topology.sources) {
    const outputs = [outlet.id]
    views.push({ ...counts(id, 'source', config.declaration.type), outputs, utilization: meter.average })
  }
  for (const [id, { config, outlets, meter }] of topology.transforms) {
    views.push({
      ...counts(id, 'transform', config.declaration.type),
      inputs: config.inputs,
      outputs: [...outlets.values()].map((outlet) => outlet.id),
      utilization: meter.average,
    })
  }
  for (const [id, { config, buffer, meter, wait }] of topology.sinks) {
    views.push({
      ...counts(id, 'sink', config.declaration.type),
      inputs: config.inputs,
      utilization: meter.average,
      buffer_events: buffer.events,
      buffer_bytes: buffer.bytes,
      // A busy sink lets its inputs wait for moments, all the time.
      ...(wait.seconds < 1 ? {} : { inputs_wait_seconds: Math.floor(wait.seconds) }),
    })
  }
  return views
}
