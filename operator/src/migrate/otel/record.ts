// A log record of the collector as an event. This file defines the locations of its parts:
//
//   body                                   .message
//   attributes["a.b"]                      .attributes."a.b"
//   resource.attributes["k8s.pod.name"]    .resource.attributes."k8s.pod.name"
//   instrumentation_scope.name             .scope.name
//   time_unix_nano                         .timestamp
//   observed_time_unix_nano                .observed_timestamp
//   severity_number, severity_text         .severity_number, .severity_text
//   trace_id, span_id, flags               .trace_id and .span_id as hexadecimal text, .flags
//   event_name                             .event_name
//
// A missing part is a missing field. `%orchestrator` keeps the pod metadata for the processor `k8sattributes`.

import { fieldLiteral } from '@penstock/agent/config'

/** A step below a field: the name of a member or the index of an item. */
export type Key = string | number

/** The program text for a location in the event. */
export function fieldAt(path: readonly Key[]): string {
  return path.map((key) => (typeof key === 'number' ? `[${key}]` : fieldLiteral([key]))).join('')
}

/** The part of a record for the first name of a path. */
export const roots: Readonly<Record<string, readonly string[]>> = {
  body: ['message'],
  attributes: ['attributes'],
  resource: ['resource', 'attributes'],
}

/** The first number of each severity, which has four numbers. */
export const severities: Readonly<Record<string, number>> = {
  trace: 1,
  debug: 5,
  info: 9,
  warn: 13,
  error: 17,
  fatal: 21,
}

/** The number of a severity such as `info` or `warn2`. */
export function severityNumber(name: string): number | undefined {
  const found = /^(trace|debug|info|warn|error|fatal)([234]?)$/.exec(name.toLowerCase())
  const first = severities[found?.[1] ?? '']
  return first === undefined ? undefined : first + Number(found?.[2] || 1) - 1
}
