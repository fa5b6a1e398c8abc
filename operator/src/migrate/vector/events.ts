// The source `kubernetes_events`, which exists only in resources of the operator for Vector: its collector sends Kubernetes Events in the form
// of the core API to an aggregator.

import type { Step } from '../draft.ts'
import type { Old } from './old.ts'

const type = 'kubernetes_events'

/** The component with the type and options of its counterpart; other components stay unchanged. */
export function withEvents(old: Old): Old {
  if (old.type !== type) return old
  const { isConfined, namespace } = old.root.resource ?? {}
  const isOfNamespace = isConfined === true && namespace !== undefined
  const options = { ...old.options, include_object: true, ...(isOfNamespace && { namespaces: [namespace] }) }
  return { ...old, type: 'orchestrator_events', options }
}

const text = (path: string) => `to_string(found${path}) ?? ""`
/** A time in seconds; one that is missing is the first of the calendar. */
const time = (path: string) => {
  const parsed = `parse_timestamp(found${path}, "%+") ?? t'0001-01-01T00:00:00Z'`
  return `format_timestamp(${parsed}, "%Y-%m-%dT%H:%M:%SZ") ?? ""`
}

/** The fields in the form of the collector. */
export const eventStep: Step = {
  type: 'remap',
  text: [
    'found = object(.orchestrator.object) ?? {}',
    '. = {',
    '  "timestamp": now(),',
    '  "source_type": "vector",',
    '  "event": {',
    ...[
      ['uid', text('.metadata.uid')],
      ['message', text('.note')],
      ['reason', text('.reason')],
      ['action', text('.action')],
      ['type', text('.type')],
      ['creationTimestamp', time('.metadata.creationTimestamp')],
      ['firstTimestamp', time('.deprecatedFirstTimestamp')],
      ['lastTimestamp', time('.deprecatedLastTimestamp')],
      ['name', text('.metadata.name')],
      ['Namespace', text('.metadata.namespace')],
    ].map(([name, value]) => `    "${name}": ${value},`),
    `    "source": { "host": ${text('.deprecatedSource.host')}, "component": ${text('.deprecatedSource.component')} },`,
    '    "involvedObject": {',
    ...['uid', 'kind', 'name', 'Namespace', 'apiVersion', 'resourceVersion', 'fieldPath'].map(
      (name) => `      "${name}": ${text(`.regarding.${name === 'Namespace' ? 'namespace' : name}`)},`,
    ),
    '    },',
    '  },',
    '}',
  ].join('\n'),
  comments: ['The event in the form of the collector. Without this transform, its fields are in `.orchestrator`.'],
}
