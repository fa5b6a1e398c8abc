// Pod log sources: which pods each reads, how fast, and how their lines become events.

import { compileFieldSelector } from '@penstock/agent/config'
import { errorText } from '@penstock/agent/errors'
import { isTable } from '@penstock/agent/schema'
import { defaultGroupTimeoutMs } from '../api/pipeline.ts'
import { limitOf } from '../api/quantity.ts'
import type { LabelSelector } from '../api/selector.ts'
import type { HubLimits } from './artifact.ts'
import type { PodLogs, Table } from './compiled.ts'
import { type MultilinePreset, multilinePresets } from './multiline.ts'
import type { Resolved } from './references.ts'
import type { CompileReport } from './report.ts'
import type { PathKey, Resource } from './resources.ts'
import type { Scope } from './scope.ts'
import { selectorText } from './selector.ts'
import { type Entry, specOf } from './shape.ts'

export function podLogsOf(
  scope: Scope,
  entry: Entry,
  resolved: Resolved,
  options: Table,
  spec: Table,
  report: CompileReport,
): PodLogs {
  const places = [{ resource: scope.pipeline, path: entry.path, spec: entry.content }]
  if (resolved.resource !== scope.pipeline) places.push(resolved)
  const labels: string[] = []
  const namespaces: string[] = []
  const excluded: string[] = []
  let optIn = false
  let multiline = options['multiline']
  for (const { resource, path, spec: own } of places) {
    const selector = own['selector']
    if (isTable(selector)) {
      labels.push(selectorText((selector['pods'] ?? {}) as LabelSelector))
      const wanted = selector['namespaces']
      if (wanted !== undefined && resource.kind !== 'ClusterPipeline' && resource.kind !== 'ClusterSource') {
        const message = '`selector.namespaces` is not allowed in a namespaced resource (T3)'
        const help = 'A Pipeline reads the pods of its own namespace.'
        report.error(resource, [...path, 'selector', 'namespaces'], message, help, 'ForbiddenOption')
      } else if (isTable(wanted)) {
        namespaces.push(selectorText(wanted as LabelSelector))
      }
      const containers = isTable(selector['containers']) ? selector['containers'] : {}
      excluded.push(...((containers['exclude'] ?? []) as string[]))
      if (selector['optIn'] === true) optIn = true
    }
    if (own['multiline'] !== undefined)
      multiline = multilineOf(resource, [...path, 'multiline'], own['multiline'], report)
  }
  const nodeFields = options['node_annotation_fields']
  if (scope.options.unseen?.nodeLabels === true && isTable(nodeFields) && nodeFields['node_labels']) {
    const path = [...resolved.path, 'config', 'node_annotation_fields', 'node_labels']
    const message = '`node_labels` needs the labels of nodes, which agents with namespace rights cannot read'
    report.error(resolved.resource, path, message, 'Leave it out, or set it to "".')
  }
  const {
    extra_label_selector: extraLabels,
    extra_namespace_label_selector: extraNamespaces,
    extra_field_selector: extraFields,
    ...rest
  } = options
  const fieldSelector = typeof extraFields === 'string' ? extraFields : ''
  checkFieldSelector(resolved, fieldSelector, report)
  return {
    name: entry.name,
    id: scope.idOf(entry.name),
    namespaces: scope.isCluster ? undefined : [scope.pipeline.namespace],
    namespaceSelector: scope.isCluster ? joined(extraNamespaces, ...namespaces) : '',
    podSelector: joined(extraLabels, ...labels),
    fieldSelector,
    excludeContainers: [...new Set(excluded)],
    optIn,
    limits: limitsOf(scope, spec),
    options: { ...rest, ...(multiline === undefined ? {} : { multiline }) },
  }
}

function checkFieldSelector({ resource, path }: Resolved, text: string, report: CompileReport): void {
  try {
    compileFieldSelector(text)
  } catch (error) {
    report.error(resource, [...path, 'config', 'extra_field_selector'], errorText(error))
  }
}

/** Only pods can be selected, because other sources have no pods. */
export function refuseSelectors(scope: Scope, entry: Entry, resolved: Resolved, report: CompileReport): void {
  const places = [{ resource: scope.pipeline, path: entry.path, spec: entry.content }]
  if (resolved.resource !== scope.pipeline) places.push(resolved)
  for (const { resource, path, spec } of places) {
    for (const member of ['selector', 'multiline']) {
      if (spec[member] === undefined) continue
      report.error(resource, [...path, member], `\`${member}\` is only for sources of type \`orchestrator_logs\``)
    }
  }
}

function limitsOf(scope: Scope, spec: Table): HubLimits | undefined {
  const limits = isTable(spec['limits']) ? spec['limits'] : {}
  const own = isTable(limits['perContainer']) ? limits['perContainer'] : undefined
  const whole = isTable(limits['pipeline']) ? limits['pipeline'] : undefined
  const bytes = limitOf(whole?.['bytesPerSecond'] as string | undefined)
  const shared = scope.isCluster ? [] : sharedLimits(scope, spec)
  const onLimit = (table: Table | undefined) => (table?.['onLimit'] === 'Drop' ? 'drop' : 'lag')
  const perContainer =
    own === undefined
      ? undefined
      : {
          lines: own['linesPerSecond'] as number | undefined,
          bytes: limitOf(own['bytesPerSecond'] as string | undefined),
          onLimit: onLimit(own) as 'drop' | 'lag',
        }
  const pipeline = bytes === undefined ? undefined : { bytes, onLimit: onLimit(whole) as 'drop' | 'lag' }
  if (perContainer === undefined && pipeline === undefined && shared.length === 0) return undefined
  return { perContainer, pipeline, shared: shared.length === 0 ? undefined : shared }
}

/** The rate limits for a namespace's pods: from its policy's quota, and from each shared sink that a Pipeline uses. */
function sharedLimits(scope: Scope, spec: Table): { readonly key: string; readonly bytes: number }[] {
  const { namespace } = scope.pipeline
  const limits = new Map<string, number>()
  const quota = limitOf(scope.options.policy?.quota?.bytesPerSecond)
  if (quota !== undefined) limits.set(`${namespace}/quota`, quota)
  for (const entry of (spec['sinks'] ?? []) as readonly unknown[]) {
    if (!isTable(entry) || !isTable(entry['ref'])) continue
    const { kind, name } = entry['ref']
    const shared = scope.resources.find(String(kind), kind === 'Sink' ? namespace : '', String(name))
    const sink = (shared === undefined ? undefined : specOf(shared)) as
      | { limits?: { perNamespace?: { bytesPerSecond?: string | number } } }
      | undefined
    const bytes = limitOf(sink?.limits?.perNamespace?.bytesPerSecond)
    if (bytes !== undefined) limits.set(`${namespace}/${kind}/${name}`, bytes)
  }
  return [...limits].map(([key, bytes]) => ({ key, bytes })).sort((left, right) => (left.key < right.key ? -1 : 1))
}

function multilineOf(resource: Resource, path: PathKey[], value: unknown, report: CompileReport): Table | undefined {
  if (!isTable(value)) return undefined
  const { custom, preset } = value
  if ((custom === undefined) === (preset === undefined)) {
    report.error(resource, path, '`multiline` needs either `preset` or `custom`')
    return undefined
  }
  if (isTable(custom)) {
    return {
      start_pattern: custom['start'],
      condition_pattern: custom['condition'],
      mode: custom['mode'],
      timeout_ms: custom['timeoutMs'] ?? defaultGroupTimeoutMs,
      ...(custom['flush'] === undefined ? {} : { flush_pattern: custom['flush'] }),
    }
  }
  const isKnown = typeof preset === 'string' && Object.hasOwn(multilinePresets, preset)
  return isKnown ? { ...multilinePresets[preset as MultilinePreset] } : undefined
}

/** Selectors as one: all must match. */
function joined(...parts: unknown[]): string {
  return parts.filter((part) => typeof part === 'string' && part !== '').join(',')
}
