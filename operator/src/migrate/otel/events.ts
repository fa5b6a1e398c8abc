// Converts receivers of Kubernetes Events to sources. `k8sobjects` emits each object in the form of the API server, with the type of change.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import { isTable } from '@penstock/agent/schema'
import { readsNothing } from '../complete.ts'
import { coreEventLines } from '../core-events.ts'
import type { Step } from '../draft.ts'
import type { Described } from '../page.ts'
import { type Context, gapComment, type Mapping, type Part, type SourcePart } from './mapping.ts'

const account = 'the agent uses its service account'
const single = 'only one replica at a time runs the source'

const eventFields = [
  'event = object(.orchestrator.object) ?? {}',
  'number = if .orchestrator.type == "Warning" { 13 } else { 9 }',
  '. = {',
  '  "message": .message,',
  '  "timestamp": .timestamp,',
  '  "observed_timestamp": now(),',
  '  "severity_text": .orchestrator.type,',
  '  "severity_number": number,',
  '  "attributes": filter({ "k8s.event.reason": .orchestrator.reason, "k8s.event.action": .orchestrator.action, "k8s.event.start_time": event.metadata.creationTimestamp, "k8s.event.name": .orchestrator.event_name, "k8s.event.uid": .orchestrator.event_uid, "k8s.namespace.name": event.regarding.namespace, "k8s.event.count": event.deprecatedCount }) -> |_key, value| { value != null && value != 0 },',
  '  "resource": { "attributes": filter({ "k8s.node.name": event.deprecatedSource.host, "k8s.object.kind": event.regarding.kind, "k8s.object.name": event.regarding.name, "k8s.object.uid": event.regarding.uid, "k8s.object.fieldpath": event.regarding.fieldPath, "k8s.object.api_version": event.regarding.apiVersion, "k8s.object.resource_version": event.regarding.resourceVersion }) -> |_key, value| { value != null } },',
  '}',
].join('\n')

const comments = ['The record in the form of the collector.']

export const events: Mapping<readonly SourcePart[]> = {
  name: 'k8sevents',
  becomes: '`orchestrator_events`',
  options: { namespaces: '`namespaces`' },
  itself: { auth_type: account, k8s_leader_elector: single },
  build: (part) => {
    const namespaces = part.list('namespaces')
    return [
      {
        component: {
          type: 'orchestrator_events',
          config: { include_object: true, ...(namespaces.length === 0 ? {} : { namespaces }) },
        },
        follow: (source, context) =>
          context.append([source], [{ type: 'remap', text: eventFields, comments }], `${part.name}-record`, part),
      },
    ]
  },
}

export const objects: Mapping<readonly SourcePart[]> = {
  name: 'k8sobjects',
  becomes: '`orchestrator_events` with `include_object`, for events',
  options: { objects: 'a source for each entry about events; a gap for other objects. The tables of an entry follow.' },
  itself: { auth_type: account, k8s_leader_elector: single, error_mode: account },
  build: (part, context) => {
    const all = part.tables('objects')
    const parts = all.flatMap((object, index) => {
      const own = part.within(['objects', index], object, part.id)
      if (object['name'] === 'events') return [objectSource(own, context)]
      const refusal = {
        reason: 'there is no source that reads objects other than Events',
        nearest: 'Use `kubectl get --watch` where you need them.',
      }
      context.missing(own.place(), `${part.id}: ${String(object['name'])}`, refusal, 'object')
      return []
    })
    return parts.length > 0 || all.length === 0 ? parts : [nothing(part)]
  },
}

/** A source that reads nothing, for a receiver without any object that a source can read. */
const nothing = (part: Part): SourcePart => ({
  component: {
    ...readsNothing(),
    comments: [gapComment(part, 'This source reads nothing.')],
  },
  follow: (source) => [source],
})

/** The options of an entry, for the guide. */
export const eventObject: Described = {
  name: 'k8sobjects: objects',
  becomes: 'an `orchestrator_events` source, and the object as the body',
  options: {
    name: '`events`',
    mode: '`watch`: the change and the object; `pull`: the object, and a gap, as each event comes once',
    namespaces: '`namespaces`',
    exclude_namespaces: 'a filter transform',
    label_selector: '`extra_label_selector`',
    field_selector: '`extra_field_selector`',
    group: 'the form of the object: `events.k8s.io`, or that of `v1`, which is the default',
    exclude_watch_type: 'a filter transform for `ADDED` and `MODIFIED`',
    include_initial_state: '`read_from`',
  },
  itself: {
    interval: 'the source watches events',
    resource_version: 'the source keeps its position',
    bookmark: 'the source keeps its position',
  },
}

function objectSource(part: Part, context: Context): SourcePart {
  context.reportOptions(part, eventObject)
  const isWatched = part.text('mode') === 'watch'
  if (isWatched) {
    const reason =
      'the source does not know the kind of a change: an event that has occurred again is `MODIFIED`, and any other event is `ADDED`'
    context.replaced(part.place(['mode']), `${part.id}: mode`, reason, 'Nothing, unless a query reads `type`.')
  } else {
    const reason = 'the receiver passes on all events at each interval, and the source passes on each event once'
    context.gap(part.place(['mode']), `${part.id}: mode pull`, reason, 'Nothing, unless a query counts the copies.')
  }
  const isNew = part.text('group') === 'events.k8s.io'
  const namespaces = part.list('namespaces')
  const fields = fieldSelector(part.text('field_selector') ?? '', isNew)
  const labels = part.text('label_selector') ?? ''
  const config = {
    include_object: true,
    ...(namespaces.length === 0 ? {} : { namespaces }),
    ...(fields === '' ? {} : { extra_field_selector: fields }),
    ...(labels === '' ? {} : { extra_label_selector: labels }),
    // The receiver first lists the existing objects, and then watches for changes.
    ...(isWatched && !part.flag('include_initial_state', false) ? {} : { read_from: 'beginning' }),
  }
  const steps = [...namespaceSteps(part), recordStep(isWatched, isNew), ...typeSteps(part)]
  return {
    component: { type: 'orchestrator_events', config },
    follow: (source, later) => later.append([source], steps, `${part.name}-record`, part),
  }
}

/** New names of fields that are named differently in `v1`. */
const newNames: Readonly<Record<string, string>> = {
  reportingComponent: 'reportingController',
  source: 'reportingController',
}

function fieldSelector(text: string, isNew: boolean): string {
  if (isNew) return text
  return text
    .split(',')
    .map((term) => {
      const [, name = '', rest = ''] = /^\s*([\w.]+)\s*(.*?)\s*$/s.exec(term) ?? []
      return `${(newNames[name] ?? name).replace(/^involvedObject\./, 'regarding.')}${rest}`
    })
    .filter((term) => term !== '')
    .join(',')
}

/** Excluded namespaces are regular expressions. In early versions they are names. */
function namespaceSteps(part: Part): readonly Step[] {
  const value = part.get('exclude_namespaces')
  const patterns = (Array.isArray(value) ? value : [value]).flatMap((item) =>
    isTable(item) ? [String(item['regex'] ?? '')] : item === undefined ? [] : [String(item)],
  )
  if (patterns.length === 0) return []
  const tests = patterns.map((regex) => `match(namespace, r'${regex.replaceAll("'", "\\'")}')`)
  const text = `namespace = string(.orchestrator.event_namespace) ?? ""\n!(${tests.join(' || ')})`
  return [{ type: 'filter', text }]
}

/** An event that has occurred more than once counts as modified. */
const changeType =
  'change = if .orchestrator.first_timestamp == .orchestrator.last_timestamp { "ADDED" } else { "MODIFIED" }'

function recordStep(isWatched: boolean, isNew: boolean): Step {
  const text = [
    'event = object(.orchestrator.object) ?? {}',
    ...(isNew ? [] : [...coreEventLines, 'event.apiVersion = "v1"']),
    ...(isWatched ? [changeType] : []),
    'name = string(event.metadata.name) ?? ""',
    'namespace = string(event.metadata.namespace) ?? ""',
    'attributes = { "k8s.resource.name": "events" }',
    ...(isWatched
      ? ['if name != "" { attributes = merge(attributes, { "event.domain": "k8s", "event.name": name }) }']
      : []),
    'resource = {}',
    `if namespace != "" { resource${fieldLiteral(['k8s.namespace.name'])} = namespace }`,
    '. = {',
    `  "message": ${isWatched ? '{ "type": change, "object": event }' : 'event'},`,
    '  "timestamp": .timestamp,',
    '  "observed_timestamp": now(),',
    '  "attributes": attributes,',
    '  "resource": { "attributes": resource },',
    '}',
  ].join('\n')
  return { type: 'remap', text, comments }
}

/** `DELETED` needs no step, because the source never emits deletions. */
function typeSteps(part: Part): readonly Step[] {
  const excluded = part.list('exclude_watch_type').filter((type) => type === 'ADDED' || type === 'MODIFIED')
  if (excluded.length === 0) return []
  const tests = excluded.map((type) => `.message.type != ${textLiteral(type)}`)
  return [{ type: 'filter', text: tests.join(' && ') }]
}
