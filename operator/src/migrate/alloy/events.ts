// Events of Kubernetes as lines of `loki.source.kubernetes_events`.

import { textLiteral } from '@penstock/agent/config'

/** Names in the line, in their order, with the fields of the source. */
const fields: readonly (readonly [string, string])[] = [
  ['name', '.orchestrator.regarding.name'],
  ['kind', '.orchestrator.regarding.kind'],
  ['action', '.orchestrator.action'],
  ['objectAPIversion', '.orchestrator.regarding.api_version'],
  ['reportinginstance', '.orchestrator.reporting_instance'],
  ['reportingcontroller', '.orchestrator.reporting_controller'],
  ['reason', '.orchestrator.reason'],
  ['type', '.orchestrator.type'],
  ['count', '.orchestrator.count'],
]

export function eventLines(job: string, instance: string, isJson: boolean): readonly string[] {
  const line = isJson
    ? [
        'values = {',
        ...fields.map(([name, field]) => `  ${textLiteral(name)}: ${field},`),
        '}',
        'values = filter(values) -> |_name, value| { !is_null(value) && value != "" && value != 0 }',
        'values.msg = string(.message) ?? ""',
        'line = encode_json(values)',
      ]
    : [
        'line = ""',
        ...fields.map(([name, field]) => {
          const test =
            name === 'count' ? `is_integer(${field}) && ${field} != 0` : `is_string(${field}) && ${field} != ""`
          return `if ${test} { line = line + "${name}=" + to_string!(${field}) + " " }`
        }),
        'line = line + "msg=" + encode_json(string(.message) ?? "") + " "',
      ]
  return [
    ...line,
    `labels = { "namespace": .orchestrator.regarding.namespace, "job": ${textLiteral(job)}, "instance": ${textLiteral(instance)} }`,
    'labels = filter(labels) -> |_name, value| { is_string(value) && value != "" }',
    '. = { "message": line, "timestamp": timestamp(.timestamp) ?? now(), "labels": labels, "metadata": {}, "extracted": labels }',
  ]
}
