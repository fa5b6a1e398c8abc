// A log record of the collector as an event. This is the one place that says where its parts are:
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
// An absent part is an absent field. Facts about the pod wait below `%orchestrator` until the processor k8sattributes takes them.

import { fieldLiteral } from '@penstock/agent/config'

/** A step below a field: the name of a member or the position in a list. */
export type Key = string | number

/** The program's text for a place in the event. */
export function fieldAt(path: readonly Key[]): string {
  return path.map((key) => (typeof key === 'number' ? `[${key}]` : fieldLiteral([key]))).join('')
}

/** The part of a record that a name stands for at the beginning of a path. */
export const roots: Readonly<Record<string, readonly string[]>> = {
  body: ['message'],
  attributes: ['attributes'],
  resource: ['resource', 'attributes'],
}

/** Where the severities begin: their numbers are these and the three that follow. */
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
