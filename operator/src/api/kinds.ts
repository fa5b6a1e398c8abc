// The kinds of Penstock, each with one entry: its names, how it is served, and the columns of `kubectl get`. CRDs, caches and
// roles are derived from this list.

import { agentSpec, agentStatus } from './agent.ts'
import { group, type ResourceType, version } from './object.ts'
import { nameRule, pipelineSpec, pipelineStatus } from './pipeline.ts'
import type { FieldSchema, ValidationRule } from './schema.ts'
import { sinkSpec } from './sink.ts'
import { sharedStatus, sourceSpec } from './source.ts'
import { tenantPolicySpec, tenantPolicyStatus } from './tenant-policy.ts'

export interface PrinterColumn {
  readonly name: string
  readonly type: 'string' | 'integer' | 'date'
  readonly jsonPath: string
  /** 1 for columns of `-o wide`. */
  readonly priority?: number
}

export interface ResourceKind extends ResourceType {
  readonly singular: string
  readonly shortName: string
  readonly about: string
  readonly spec: FieldSchema<unknown>
  readonly status: FieldSchema<unknown>
  readonly columns: readonly PrinterColumn[]
  /** Rules on the whole object. */
  readonly rules?: readonly ValidationRule[]
  readonly scale?: {
    readonly specReplicasPath: string
    readonly statusReplicasPath: string
    readonly labelSelectorPath: string
  }
}

const condition = (name: string, type: string, member = 'status', priority = 0): PrinterColumn => ({
  name,
  type: 'string',
  jsonPath: `.status.conditions[?(@.type=="${type}")].${member}`,
  ...(priority === 0 ? {} : { priority }),
})
const column = (
  name: string,
  jsonPath: string,
  priority = 0,
  type: PrinterColumn['type'] = 'string',
): PrinterColumn => ({
  name,
  type,
  jsonPath,
  ...(priority === 0 ? {} : { priority }),
})
const age = column('Age', '.metadata.creationTimestamp', 0, 'date')
const ready = condition('Ready', 'Ready')
const reason = condition('Reason', 'Ready', 'reason', 1)

const define = (
  kind: string,
  shortName: string,
  namespaced: boolean,
  rest: Omit<ResourceKind, keyof ResourceType | 'singular' | 'shortName'>,
): ResourceKind => {
  const singular = kind.toLowerCase()
  const plural = singular.endsWith('y') ? `${singular.slice(0, -1)}ies` : `${singular}s`
  return { group, version, kind, plural, singular, namespaced, shortName, ...rest }
}

const pipelineColumns = [
  ready,
  condition('Flowing', 'Flowing'),
  column('Agents', '.status.summary.agents'),
  age,
  reason,
  column('In/s', '.status.summary.inPerSecond', 1),
  column('Out/s', '.status.summary.outPerSecond', 1),
  column('Dropped', '.status.summary.dropped', 1),
  column('Revision', '.status.summary.revision', 1),
]
const sharedColumns = [
  column('Type', '.spec.type'),
  ready,
  column('Pipelines', '.status.usedBy.pipelines', 0, 'integer'),
  age,
  reason,
]
const sinkColumns = [
  column('Type', '.spec.type'),
  ready,
  condition('Reachable', 'Reachable'),
  age,
  reason,
  column('Pipelines', '.status.usedBy.pipelines', 1, 'integer'),
]

export const pipelineKind = define('Pipeline', 'pl', true, {
  about: 'Sources, transforms and sinks for the logs of one namespace.',
  spec: pipelineSpec(false),
  status: pipelineStatus,
  columns: pipelineColumns,
  rules: [nameRule],
})
export const sourceKind = define('Source', 'plsrc', true, {
  about: 'A named source that Pipelines of its namespace refer to.',
  spec: sourceSpec(false),
  status: sharedStatus,
  columns: sharedColumns,
})
export const sinkKind = define('Sink', 'plsink', true, {
  about: 'A named destination that Pipelines of its namespace refer to.',
  spec: sinkSpec(false),
  status: sharedStatus,
  columns: sinkColumns,
})
export const clusterPipelineKind = define('ClusterPipeline', 'cpl', false, {
  about: 'A Pipeline of the platform, which may read all namespaces.',
  spec: pipelineSpec(true),
  status: pipelineStatus,
  columns: pipelineColumns,
  rules: [nameRule],
})
export const clusterSourceKind = define('ClusterSource', 'cplsrc', false, {
  about: 'A source of the platform that namespaced Pipelines may refer to.',
  spec: sourceSpec(true),
  status: sharedStatus,
  columns: sharedColumns,
})
export const clusterSinkKind = define('ClusterSink', 'cplsink', false, {
  about: 'A destination of the platform that namespaced Pipelines may refer to.',
  spec: sinkSpec(true),
  status: sharedStatus,
  columns: sinkColumns,
})
export const agentKind = define('Agent', 'plagent', true, {
  about: 'A workload that runs Pipelines: on every node, as an aggregator, or as a sidecar.',
  spec: agentSpec,
  status: agentStatus,
  columns: [
    column('Mode', '.spec.mode'),
    ready,
    column('Nodes', '.status.summary.nodes'),
    column('Pipelines', '.status.pipelines.programmed', 0, 'integer'),
    age,
    reason,
    column('Revision', '.status.revision', 1),
  ],
  scale: {
    specReplicasPath: '.spec.aggregator.replicas',
    statusReplicasPath: '.status.replicas',
    labelSelectorPath: '.status.selector',
  },
})
export const tenantPolicyKind = define('TenantPolicy', 'pltp', false, {
  about: 'Permissions and limits for authors of namespaced kinds.',
  spec: tenantPolicySpec,
  status: tenantPolicyStatus,
  columns: [ready, column('Namespaces', '.status.namespaces.effective', 0, 'integer'), age, reason],
})

export const kinds: readonly ResourceKind[] = [
  pipelineKind,
  sourceKind,
  sinkKind,
  clusterPipelineKind,
  clusterSourceKind,
  clusterSinkKind,
  agentKind,
  tenantPolicyKind,
]

export const kindOf = (name: string): ResourceKind | undefined => kinds.find((kind) => kind.kind === name)
