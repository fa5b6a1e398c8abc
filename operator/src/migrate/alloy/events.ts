// Events of Kubernetes as lines of `loki.source.kubernetes_events`.

import { textLiteral } from '@penstock/agent/config'

/** The keys of Alloy's line in order, with their paths in the event of the API server. */
const fields: readonly (readonly [string, string])[] = [
  ['name', 'regarding.name'],
  ['kind', 'regarding.kind'],
  ['action', 'action'],
  ['objectAPIversion', 'regarding.apiVersion'],
  ['objectRV', 'regarding.resourceVersion'],
  ['eventRV', 'metadata.resourceVersion'],
  ['reportinginstance', 'reportingInstance'],
  ['reportingcontroller', 'reportingController'],
  ['sourcecomponent', 'deprecatedSource.component'],
  ['sourcehost', 'deprecatedSource.host'],
  ['reason', 'reason'],
  ['type', 'type'],
  ['count', 'deprecatedCount'],
]

/**
 * The program for events of a source with `include_object`.
 * @param job an expression
 */
export function eventLines(job: string, instance: string, isJson: boolean): readonly string[] {
  const line = isJson
    ? [
        'values = {',
        ...fields.map(([name, field]) => `  ${textLiteral(name)}: event.${field},`),
        '}',
        'values = filter(values) -> |_name, value| { !is_null(value) && value != "" && value != 0 }',
        'values.msg = string(event.note) ?? ""',
        'line = encode_json(values)',
      ]
    : [
        'line = ""',
        ...fields.map(([name, field]) => {
          const at = `event.${field}`
          const test = name === 'count' ? `is_integer(${at}) && ${at} != 0` : `is_string(${at}) && ${at} != ""`
          return `if ${test} { line = line + "${name}=" + to_string!(${at}) + " " }`
        }),
        'line = line + "msg=" + encode_json(string(event.note) ?? "") + " "',
      ]
  return [
    'event = object(.orchestrator.object) ?? {}',
    '# Alloy drops events whose object has no name.',
    'if (string(event.regarding.name) ?? "") == "" { abort }',
    ...line,
    `labels = { "namespace": event.regarding.namespace, "job": ${job}, "instance": ${textLiteral(instance)} }`,
    'labels = filter(labels) -> |_name, value| { is_string(value) && value != "" }',
    'last = string(event.deprecatedLastTimestamp) ?? string(event.eventTime) ?? ""',
    'time = parse_timestamp(last, "%+") ?? timestamp(.timestamp) ?? now()',
    '. = { "message": line, "timestamp": time, "labels": labels, "metadata": {}, "extracted": labels }',
  ]
}
