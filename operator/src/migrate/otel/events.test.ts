// Events of Kubernetes: the record that the collector makes of each, from the object that the source gives.

import { expect, test } from 'vitest'
import { converted, lint, withTest } from '../../testing/conversions.ts'
import { convertOtel } from './convert.ts'

const convert = (receivers: string) =>
  converted(convertOtel, [
    {
      file: 'otel.yaml',
      text: `receivers: { ${receivers} }\nexporters: { debug: { verbosity: detailed } }\nservice: { pipelines: { logs: { receivers: [${receivers.split(':')[0]}], exporters: [debug] } } }\n`,
    },
  ])

const reference = { kind: 'Pod', namespace: 'shop', name: 'web-1', uid: 'u1', apiVersion: 'v1', fieldPath: 'spec' }
const metadata = { name: 'web-1.17', namespace: 'shop', uid: 'e1', resourceVersion: '7' }
const object = {
  apiVersion: 'events.k8s.io/v1',
  kind: 'Event',
  metadata,
  eventTime: null,
  type: 'Warning',
  reason: 'BackOff',
  note: 'Back-off restarting',
  regarding: reference,
  reportingController: 'kubelet',
  deprecatedSource: { component: 'kubelet', host: 'n1' },
  deprecatedFirstTimestamp: '2026-01-01T00:00:00Z',
  deprecatedLastTimestamp: '2026-01-01T00:01:00Z',
  deprecatedCount: 3,
}
const event = (first: string) => ({
  message: 'Back-off restarting',
  timestamp: '2026-01-01T00:01:00Z',
  orchestrator: {
    event_name: 'web-1.17',
    event_namespace: 'shop',
    event_uid: 'e1',
    type: 'Warning',
    reason: 'BackOff',
    first_timestamp: first,
    last_timestamp: '2026-01-01T00:01:00Z',
    object,
  },
})
const again = event('2026-01-01T00:00:00Z')
const once = event('2026-01-01T00:01:00Z')

const old = {
  apiVersion: 'v1',
  kind: 'Event',
  metadata,
  eventTime: null,
  type: 'Warning',
  reason: 'BackOff',
  message: 'Back-off restarting',
  involvedObject: reference,
  reportingComponent: 'kubelet',
  source: { component: 'kubelet', host: 'n1' },
  firstTimestamp: '2026-01-01T00:00:00Z',
  lastTimestamp: '2026-01-01T00:01:00Z',
  count: 3,
}
const watched = { 'k8s.resource.name': 'events', 'event.domain': 'k8s', 'event.name': 'web-1.17' }
const resource = { attributes: { 'k8s.namespace.name': 'shop' } }

test.each([
  {
    name: 'a change of the new form',
    entry: 'mode: watch, group: events.k8s.io',
    given: again,
    expected: { message: { type: 'MODIFIED', object }, attributes: watched, resource },
  },
  {
    name: 'a first occurrence of the form v1',
    entry: 'mode: watch',
    given: once,
    expected: { message: { type: 'ADDED', object: old }, attributes: watched, resource },
  },
  {
    name: 'an object of a list',
    entry: 'mode: pull, group: events.k8s.io',
    given: again,
    expected: { message: object, attributes: { 'k8s.resource.name': 'events' }, resource },
  },
  {
    name: 'an excluded change',
    entry: 'mode: watch, exclude_watch_type: [MODIFIED]',
    given: again,
    expected: undefined,
  },
  {
    name: 'an excluded namespace',
    entry: 'mode: watch, exclude_namespaces: [{ regex: "^sh" }]',
    given: again,
    expected: undefined,
  },
])('k8sobjects: $name', async ({ entry, given, expected }) => {
  const { document, resource: made } = convert(`k8sobjects: { objects: [{ name: events, ${entry} }] }`)
  expect(made.spec.sources).toMatchObject([{ type: 'orchestrator_events', config: { include_object: true } }])
  const sink = { name: 'debug', inputs: [made.spec.transforms.at(-2).name] }
  withTest(document, { spec: { ...made.spec, sinks: [sink] } }, given, expected)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  { entry: 'mode: watch', config: {} },
  { entry: 'mode: watch, namespaces: [shop]', config: { namespaces: ['shop'] } },
  {
    entry: 'mode: watch, field_selector: "involvedObject.kind=Pod,type!=Normal", label_selector: a=b',
    config: { extra_field_selector: 'regarding.kind=Pod,type!=Normal', extra_label_selector: 'a=b' },
  },
  { entry: 'mode: watch, include_initial_state: true', config: { read_from: 'beginning' } },
])('k8sobjects: $entry chooses events at the API server', ({ entry, config }) => {
  const { resource: made, gaps } = convert(`k8sobjects: { objects: [{ name: events, ${entry} }] }`)
  expect(made.spec.sources[0].config).toEqual({ include_object: true, ...config })
  expect(gaps.map(({ subject, isReplaced }) => [subject, isReplaced])).toEqual([['k8sobjects: mode', true]])
})

test.each([
  { entry: '{ name: events }', subjects: ['k8sobjects: mode pull'] },
  { entry: '{ name: pods, mode: pull }', subjects: ['k8sobjects: pods'] },
  { entry: '{ name: events, mode: watch, odd: 1 }', subjects: ['k8sobjects: odd'] },
])('k8sobjects: $entry has gaps', async ({ entry, subjects }) => {
  const { document, gaps } = convert(`k8sobjects: { objects: [${entry}] }`)
  expect(gaps.filter(({ isReplaced }) => isReplaced !== true).map(({ subject }) => subject)).toEqual(subjects)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test('k8s_events: the record has the facts of the event and of its object', async () => {
  const { document, resource: made, gaps } = convert('k8s_events: { namespaces: [shop] }')
  expect(made.spec.sources[0].config).toEqual({ include_object: true, namespaces: ['shop'] })
  const sink = { name: 'debug', inputs: [made.spec.transforms.at(-2).name] }
  withTest(document, { spec: { ...made.spec, sinks: [sink] } }, again, {
    message: 'Back-off restarting',
    severity_text: 'Warning',
    severity_number: 13,
    attributes: {
      'k8s.event.reason': 'BackOff',
      'k8s.event.name': 'web-1.17',
      'k8s.event.uid': 'e1',
      'k8s.namespace.name': 'shop',
      'k8s.event.count': 3,
    },
    resource: {
      attributes: {
        'k8s.node.name': 'n1',
        'k8s.object.kind': 'Pod',
        'k8s.object.name': 'web-1',
        'k8s.object.uid': 'u1',
        'k8s.object.fieldpath': 'spec',
        'k8s.object.api_version': 'v1',
      },
    },
  })
  expect(gaps).toEqual([])
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})

test.each([
  { rotation: '', path: '/data/logs.json', subjects: [] },
  {
    rotation: ', rotation: { max_megabytes: 10, max_days: 3 }',
    path: '/data/logs-%Y-%m-%d.json',
    subjects: ['file: rotation'],
  },
])('an exporter of files: $path', async ({ rotation, path, subjects }) => {
  const text = `receivers: { filelog: { include: [/a.log] } }\nexporters: { file: { path: /data/logs.json${rotation} } }\nservice: { pipelines: { logs: { receivers: [filelog], exporters: [file] } } }\n`
  const { document, resource: made, gaps } = converted(convertOtel, [{ file: 'otel.yaml', text }])
  expect(made.spec.sinks[0].config.path).toBe(path)
  expect(gaps.map(({ subject }) => subject)).toEqual(subjects)
  expect(await lint(document.toString({ lineWidth: 0 }))).toEqual([])
})
