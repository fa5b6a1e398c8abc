// Files that a HostTailer of the logging-operator reads, and Events that an EventTailer reads. Their pods print lines, and flows select these
// pods. A flow that selects them gets a `file` source for each file, and an `orchestrator_events` source.

import { textLiteral } from '@penstock/agent/config'
import { coreEventLines } from '../core-events.ts'
import { below, isMap, itemsOf, pairsOf, type Tree, textOf, textsOf } from '../loki/tree.ts'
import { element } from './element-maker.ts'
import type { Element } from './syntax.ts'

/** A file of a HostTailer, with the pod and the container that print its lines. */
export interface Tailed {
  readonly tree: Tree
  readonly path: string
  readonly isFromHead: boolean
  readonly namespace: string
  readonly container: string
  readonly labels: Readonly<Record<string, string>>
}

interface Resource {
  readonly name: string
  readonly namespace: string
  readonly tree: Tree
}

const nameLabel = 'app.kubernetes.io/name'

export function filesOf({ name, namespace, tree }: Resource): readonly Tailed[] {
  return itemsOf(below(tree, 'spec', 'fileTailers')).flatMap((tailer): Tailed[] => {
    const path = textOf(below(tailer, 'path'))
    if (path === undefined || textOf(below(tailer, 'disabled')) === 'true') return []
    return [
      {
        tree: tailer,
        path,
        isFromHead: textOf(below(tailer, 'read_from_head')) === 'true',
        namespace,
        container: textOf(below(tailer, 'name')) ?? '',
        labels: { [nameLabel]: 'host-tailer', 'app.kubernetes.io/instance': `${name}-host-tailer` },
      },
    ]
  })
}

/** The pod of an EventTailer. Early versions of the operator put the name of the resource into the label for the name of the program. */
export function eventPodsOf({ name, tree }: Resource): readonly Tailed[] {
  const namespace = textOf(below(tree, 'spec', 'controlNamespace')) ?? ''
  const pod = { tree, path: '', isFromHead: false, namespace, container: 'event-tailer' }
  const instance = { 'app.kubernetes.io/instance': `${name}-event-tailer` }
  return ['event-tailer', `${name}-event-tailer`].map((program) => ({
    ...pod,
    labels: { [nameLabel]: program, ...instance },
  }))
}

/** The source of Events. Its records are those of the container that prints them. */
export function eventSourceOf({ tree, namespace, container, labels }: Tailed, id: string, label: string): Element {
  const source = element('source', tree, '', [
    ['@type', 'event_tailer'],
    ['@id', `${id}-events`],
    ['@label', label],
    ['tag', 'kubernetes.event-tailer'],
  ])
  const text = [
    'event = object(.orchestrator.object) ?? {}',
    ...coreEventLines,
    // The program reads the Events as objects of one kind.
    'del(event.kind)',
    'del(event.apiVersion)',
    'verb = if .orchestrator.first_timestamp == .orchestrator.last_timestamp { "ADDED" } else { "UPDATED" }',
    `. = { "message": encode_json({ "verb": verb, "event": event }), "stream": "stdout", "logtag": "F", "timestamp": .timestamp, "kubernetes": ${podFacts(namespace, container, labels)} }`,
  ].join('\n')
  return {
    ...source,
    component: { type: 'orchestrator_events', config: { include_object: true } },
    after: [{ type: 'remap', text }],
  }
}

/** The fields of a pod in a record, as an expression. */
function podFacts(namespace: string, container: string, labels: Readonly<Record<string, string>>): string {
  const members = Object.entries(labels).map(([key, value]) => `${textLiteral(key)}: ${textLiteral(value)}`)
  return `{ "namespace_name": ${textLiteral(namespace)}, "container_name": ${textLiteral(container)}, "labels": { ${members.join(', ')} }, "host": get_hostname() ?? "" }`
}

/** Names of the tailers of the journal. */
export const journalsOf = ({ tree }: Resource): readonly { readonly tree: Tree; readonly name: string }[] =>
  itemsOf(below(tree, 'spec', 'systemdTailers'))
    .filter((tailer) => textOf(below(tailer, 'disabled')) !== 'true')
    .map((tailer) => ({ tree: tailer, name: textOf(below(tailer, 'name')) ?? '' }))

/** Whether a flow selects the lines of a file. The first rule that matches decides. */
export function selectsFile(spec: Tree, own: string, file: Tailed): boolean {
  if (own !== '' && own !== file.namespace) return false
  const rules = below(spec, 'match')
  if (rules === undefined) return hasLabels(below(spec, 'selectors'), file)
  for (const rule of itemsOf(rules)) {
    const [found] = isMap(rule) ? [...rule.value] : []
    const [kind, tests] = found ?? []
    if (tests !== undefined && fits(tests, file)) return kind === 'select'
  }
  return false
}

const hasLabels = (labels: Tree | undefined, file: Tailed) =>
  pairsOf(labels).every(([key, value]) => file.labels[key] === value)

function fits(tests: Tree, file: Tailed): boolean {
  const isOneOf = (key: string, value: string) => {
    const values = textsOf(below(tests, key))
    return values.length === 0 || values.includes(value)
  }
  const expressions = textsOf(below(tests, 'namespaces_regex'))
  return (
    hasLabels(below(tests, 'labels'), file) &&
    isOneOf('namespaces', file.namespace) &&
    isOneOf('container_names', file.container) &&
    (expressions.length === 0 || expressions.some((each) => new RegExp(each).test(file.namespace)))
  )
}

/** Whether a flow selects pods of a HostTailer or an EventTailer alone. */
export function isOfTailers(spec: Tree): boolean {
  const rules = itemsOf(below(spec, 'match')).flatMap((rule) => {
    const select = below(rule, 'select')
    return select === undefined ? [] : [select]
  })
  const names = rules.map((rule) => textOf(below(rule, 'labels', nameLabel)))
  return names.length > 0 && names.every((name) => name !== undefined && /(?:^|-)(?:host|event)-tailer$/.test(name))
}

/** The source of a file. Its records are those of the container that prints the lines. */
export function sourceOf(file: Tailed, id: string, label: string): Element {
  const { tree, path, isFromHead, namespace, container, labels } = file
  const source = element('source', tree, '', [
    ['@type', 'tail'],
    ['@id', `${id}-${container}`],
    ['@label', label],
    ['path', path],
    ['tag', 'kubernetes.host-tailer'],
    ['read_from_head', String(isFromHead)],
  ])
  const text = ['.stream = "stdout"', '.logtag = "F"', `.kubernetes = ${podFacts(namespace, container, labels)}`].join(
    '\n',
  )
  return {
    ...source,
    children: [element('parse', tree, '', [['@type', 'none']])],
    after: [{ type: 'remap', text }],
  }
}
