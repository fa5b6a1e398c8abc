// The references of a Pipeline's entries: Sources and Sinks of its namespace, and cluster objects that their owners grant to it.

import { isTable } from '@penstock/agent/schema'
import { selects } from '../api/selector.ts'
import type { AllowedNamespaces } from '../api/source.ts'
import type { Table } from './compiled.ts'
import type { CompileReport } from './report.ts'
import type { PathKey, Resource } from './resources.ts'
import type { Scope } from './scope.ts'
import { type Entries, type Entry, type List, sharedProblems, specOf } from './shape.ts'

/** Location of an entry's type and options. */
export interface Resolved {
  readonly resource: Resource
  readonly spec: Table
  readonly path: readonly PathKey[]
  /** Whether an author of namespaced resources wrote it: the rules for tenants then apply. */
  readonly tenant: boolean
}

/** Each entry with the resource that contains its options; entries with unknown resources are omitted. */
export interface Resolution {
  readonly resolved: ReadonlyMap<Entry, Resolved>
  /** Shared objects that the Pipeline refers to, such as `Sink shop/loki`. */
  readonly references: ReadonlySet<string>
}

export function resolveReferences(scope: Scope, entries: Entries, report: CompileReport): Resolution {
  const resolved = new Map<Entry, Resolved>()
  const references = new Set<string>()
  for (const list of ['sources', 'transforms', 'sinks'] as const) {
    for (const entry of entries[list]) {
      const found = resolve(scope, entry, list, references, report)
      if (found !== undefined) resolved.set(entry, found)
    }
  }
  return { resolved, references }
}

function resolve(
  scope: Scope,
  entry: Entry,
  list: List,
  references: Set<string>,
  report: CompileReport,
): Resolved | undefined {
  const reference = entry.content['ref']
  if (list === 'transforms' || (reference === undefined) !== (entry.content['type'] === undefined)) {
    if (reference === undefined) {
      return { spec: entry.content, resource: scope.pipeline, path: entry.path, tenant: !scope.isCluster }
    }
  } else {
    report.error(scope.pipeline, entry.path, `"${entry.name}" needs either \`type\` with \`config\`, or \`ref\``)
    return undefined
  }
  if (!isTable(reference)) return undefined
  if (entry.content['config'] !== undefined) {
    report.error(scope.pipeline, [...entry.path, 'config'], '`config` and `ref` cannot both be given')
  }
  const kind = String(reference['kind'])
  const name = String(reference['name'])
  const word = list === 'sources' ? 'Source' : 'Sink'
  if (kind !== `Cluster${word}` && (kind !== word || scope.isCluster)) return undefined // the check of the shape reports it
  const shared = kind.startsWith('Cluster')
  const path = [...entry.path, 'ref']
  const namespace = shared ? '' : scope.pipeline.namespace
  references.add(`${kind} ${shared ? '' : `${namespace}/`}${name}`)
  const target = scope.resources.find(kind, namespace, name)
  if (target === undefined) {
    const known = scope.resources.all
      .filter((each) => each.kind === kind && each.namespace === namespace)
      .map((each) => each.name)
    const where = shared ? 'in the cluster' : `in namespace "${namespace}"`
    const help = known.length === 0 ? `There is no ${kind} ${where}.` : `There are: ${known.join(', ')}.`
    const reason = list === 'sources' ? 'SourceNotFound' : 'SinkNotFound'
    if (shared && scope.options.unseen?.clusterKinds === true) {
      const message = `${kind} "${name}" is not available: this operator watches single namespaces, which disables Cluster kinds`
      const own = `Use a ${kind.slice('Cluster'.length)} of namespace "${scope.pipeline.namespace}".`
      report.error(scope.pipeline, [...path, 'name'], message, own, reason)
      return undefined
    }
    report.error(scope.pipeline, [...path, 'name'], `${kind} "${name}" is not ${where}`, help, reason)
    return undefined
  }
  const spec = specOf(target)
  report.add(...sharedProblems(target))
  if (!isTable(spec)) return undefined
  if (shared && !scope.isCluster && !isGranted(scope, spec['allowedNamespaces'] as AllowedNamespaces | undefined)) {
    const message = `${kind} "${name}" is not granted to namespace "${scope.pipeline.namespace}"`
    const help = 'Its owner can grant it in `spec.allowedNamespaces`.'
    report.error(scope.pipeline, path, message, help, 'RefNotPermitted')
    return undefined
  }
  return { spec, resource: target, path: ['spec'], tenant: !shared && !scope.isCluster }
}

function isGranted(scope: Scope, allowed: AllowedNamespaces | undefined): boolean {
  if (allowed?.from === 'All') return true
  if (allowed?.from !== 'Selector') return false
  const { namespace } = scope.pipeline
  const metadata = scope.resources.find('Namespace', '', namespace)?.content['metadata'] as
    | { labels?: Record<string, string> }
    | undefined
  return selects(allowed.selector, { 'kubernetes.io/metadata.name': namespace, ...metadata?.labels })
}

/** Whether a resource is a cluster-scoped Source or Sink. */
export const isOfCluster = ({ kind }: Resource) => kind === 'ClusterSink' || kind === 'ClusterSource'

/** Whether the owner of a shared object lets tenants' Agents carry its secrets. */
export function isLent(resource: Resource): boolean {
  const spec = resource.content['spec']
  return isOfCluster(resource) && isTable(spec) && spec['allowedAgents'] === 'Tenant'
}
