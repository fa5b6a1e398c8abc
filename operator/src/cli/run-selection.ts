// Which sample pods the sources of a run read. `penstock run` reports a source that reads none before it starts: its lines would never come.

import { matchesGlob } from 'node:path'
import { compileSelector } from '@penstock/agent/kube'
import type { Table } from '../compile/compiled.ts'
import { isPodLogs } from './run-input.ts'
import { matchesFields, type SampleObject } from './sample-cluster/api-server.ts'

/** A pod log source that reads no sample pod. */
export interface IdleSource {
  readonly name: string
  /** The pods that it would read. */
  readonly selection: string
}

/**
 * The pod log sources that read none of these containers.
 * @param objects of the sample cluster @param isCandidate whether the log of a container exists
 */
export function idleSources(
  sourcesById: Readonly<Record<string, Table>>,
  objects: readonly SampleObject[],
  isCandidate: (namespace: string, container: string) => boolean = () => true,
): readonly IdleSource[] {
  const pods = objects.filter(
    ({ kind, metadata: { namespace = '' }, ...pod }) =>
      kind === 'Pod' && containersOf(pod).some((container) => isCandidate(namespace, container)),
  )
  return Object.entries(sourcesById).flatMap(([id, source]) => {
    if (!isPodLogs(source) || pods.some((pod) => isRead(source, pod, objects))) return []
    return [{ name: id.slice(id.lastIndexOf('/') + 1), selection: selectionText(source) }]
  })
}

const containersOf = (pod: Readonly<Record<string, unknown>>): readonly string[] =>
  (pod['spec'] as { readonly containers: readonly { readonly name: string }[] }).containers.map(({ name }) => name)

function isRead(source: Table, pod: SampleObject, objects: readonly SampleObject[]): boolean {
  const { name, namespace = '', uid, labels = {} } = pod.metadata
  const own = objects.find(({ kind, metadata }) => kind === 'Namespace' && metadata.name === namespace)
  return (
    compileSelector(textOf(source, 'extra_label_selector'))(labels) &&
    compileSelector(textOf(source, 'extra_namespace_label_selector'))(own?.metadata.labels ?? {}) &&
    matchesFields(pod, textOf(source, 'extra_field_selector')) &&
    containersOf(pod).some((container) => !isExcluded(source, `/pods/${namespace}_${name}_${uid}/${container}/0.log`))
  )
}

function isExcluded(source: Table, path: string): boolean {
  const globs = (list: string) => (source[list] ?? []) as readonly string[]
  const included = globs('include_paths_glob_patterns')
  return (
    globs('exclude_paths_glob_patterns').some((glob) => matchesGlob(path, glob)) ||
    (included.length > 0 && !included.some((glob) => matchesGlob(path, glob)))
  )
}

const textOf = (source: Table, option: string): string => (source[option] as string | undefined) ?? ''

function selectionText(source: Table): string {
  const parts = [
    ['labels', textOf(source, 'extra_label_selector')],
    ['fields', textOf(source, 'extra_field_selector')],
    ['labels of the namespace', textOf(source, 'extra_namespace_label_selector')],
    ['files except', ((source['exclude_paths_glob_patterns'] ?? []) as readonly string[]).join(', ')],
  ]
  return parts.flatMap(([what, text]) => (text === '' ? [] : [`${what} ${text}`])).join('; ')
}
