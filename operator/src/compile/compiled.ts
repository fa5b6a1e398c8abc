// The results of the compile stages for one Pipeline, and its artifact if it is valid.

import { createHash } from 'node:crypto'
import { canonicalJson } from '@penstock/agent/bundle'
import { minDiskBuffer } from '@penstock/agent/config'
import type { Problem, ProgramDiagnostic } from '@penstock/agent/errors'
import type { ProgramRules } from '@penstock/agent/schema'
import type { Reason } from '../api/conditions.ts'
import type { Artifact, ComponentOptions, HubLimits, HubSubscription, SecretPart, Tenancy } from './artifact.ts'
import type { PathKey, Resource, ResourcePlace } from './resources.ts'
import type { TenancyOptions } from './tenancy.ts'

export type Table = Record<string, unknown>

export interface PipelineCompileOptions extends TenancyOptions {
  /**
   * Keys of a Secret or ConfigMap; undefined if it does not exist. Without this function, the compiler searches the resources,
   * and assumes that a missing object has every key, unless `secretsRequired`.
   */
  readonly keysOf?:
    | ((kind: SecretPart['kind'], namespace: string, name: string) => ReadonlySet<string> | undefined)
    | undefined
  readonly secretsRequired?: boolean | undefined
  /** For an agent without the operator: features that only the operator's agents have cause warnings. */
  readonly standalone?: boolean | undefined
  /** The value of `fieldRef: clusterName`. */
  readonly clusterName?: string | undefined
  /** Facts that the operator cannot observe with its flags, so that a Pipeline that needs them reports this. */
  readonly unseen?: Unseen | undefined
}

export interface Unseen {
  readonly clusterKinds?: boolean
  readonly nodeLabels?: boolean
}

export interface CompileProblem extends Problem {
  readonly reason: Reason
  /** Further reasons why the program does not compile, each with its location. */
  readonly others?: readonly PlacedDiagnostic[]
  /** Found in a shared object, but it depends on the Pipeline that uses the object. */
  readonly isOfUser?: boolean | undefined
}

export interface PlacedDiagnostic extends ProgramDiagnostic {
  readonly place: ResourcePlace
}

/**
 * The compiled form of an `orchestrator_logs` source, from which the forms for standalone agents and for hubs are
 * derived.
 */
export interface PodLogs {
  readonly name: string
  readonly id: string
  /** Undefined: those of `namespaceSelector`. */
  readonly namespaces: readonly string[] | undefined
  readonly namespaceSelector: string
  readonly podSelector: string
  readonly fieldSelector: string
  readonly excludeContainers: readonly string[]
  readonly optIn: boolean
  readonly limits: HubLimits | undefined
  readonly options: Table
}

/**
 * The result of the stages for a Pipeline, with or without problems. `artifactOf` copies the members that artifacts also
 * have. The other members contain locations and problems.
 */
export interface CompiledPipeline
  extends Pick<
    Artifact,
    'id' | 'mode' | 'sources' | 'transforms' | 'sinks' | 'secretRefs' | 'sourceTypes' | 'deadLetter'
  > {
  /** The same as in the artifact, which omits each of these three members if it is empty. */
  readonly lent: readonly string[]
  readonly withheld: readonly string[]
  readonly platform: readonly string[]
  readonly podLogs: readonly PodLogs[]
  /** The limits and reach of its programs. */
  readonly programs: ProgramRules
  /** In the form of an agent's configuration. */
  readonly tests: readonly Table[]
  /** Shared objects that it refers to, as `Sink shop/loki`. */
  readonly references: readonly string[]
  /** Where each component is in the resources, to turn a path of the configuration into a place. */
  readonly origins: ReadonlyMap<string, Origin>
  /** Unknown entries, because their `ref` does not exist or their structure is invalid. */
  readonly unresolved: readonly Unresolved[]
  readonly problems: readonly CompileProblem[]
}

export interface Unresolved {
  readonly list: 'sources' | 'transforms' | 'sinks'
  readonly id: string
  readonly inputs: readonly string[]
}

/** The resource, and the path in it, with a component's options. */
export interface Origin {
  readonly resource: Resource
  readonly path: readonly PathKey[]
}

/** The data of a Pipeline other than its content. */
export interface ArtifactFacts {
  readonly uid: string
  readonly generation: number
  readonly createdAt: string
  readonly labels: Readonly<Record<string, string>>
  readonly retry: string | undefined
  readonly tenancy: Tenancy
  readonly rules: string
}

/** The artifact of a valid compiled Pipeline. */
export function artifactOf(compiled: CompiledPipeline, pipeline: Resource, facts: ArtifactFacts): Artifact {
  const cluster = pipeline.kind === 'ClusterPipeline'
  const content = {
    mode: compiled.mode,
    hub: { subscriptions: compiled.podLogs.map((source) => subscriptionOf(source, facts.uid)) },
    sources: compiled.sources,
    transforms: compiled.transforms,
    sinks: compiled.sinks,
    secretRefs: compiled.secretRefs,
    tenancy: facts.tenancy,
    ...(compiled.platform.length === 0 ? {} : { platform: compiled.platform }),
    ...(compiled.deadLetter === undefined ? {} : { deadLetter: compiled.deadLetter }),
  }
  return {
    id: compiled.id,
    kind: cluster ? 'ClusterPipeline' : 'Pipeline',
    namespace: cluster ? undefined : pipeline.namespace,
    name: pipeline.name,
    uid: facts.uid,
    generation: facts.generation,
    createdAt: facts.createdAt,
    labels: facts.labels,
    hash: `sha256:${createHash('sha256').update(canonicalJson(content)).digest('hex')}`,
    ...content,
    ...(compiled.lent.length === 0 ? {} : { lent: compiled.lent }),
    ...(compiled.withheld.length === 0 ? {} : { withheld: compiled.withheld }),
    sourceTypes: compiled.sourceTypes,
    diskBufferBytes: diskBufferBytes(compiled.sinks),
    rules: facts.rules,
    retry: facts.retry,
  }
}

/** A pod log source for the hub of an agent. */
export function subscriptionOf(source: PodLogs, uid: string): HubSubscription {
  const {
    name,
    id,
    namespaces,
    namespaceSelector,
    podSelector,
    fieldSelector,
    excludeContainers,
    optIn,
    limits,
    options,
  } = source
  return {
    cursor: `${uid}/${name}`,
    namespaces,
    namespaceSelector: namespaceSelector === '' ? undefined : namespaceSelector,
    podSelector,
    fieldSelector: fieldSelector === '' ? undefined : fieldSelector,
    excludeContainers,
    optIn: optIn ? true : undefined,
    limits,
    out: id,
    options,
  }
}

function diskBufferBytes(sinks: Readonly<Record<string, ComponentOptions>>): number {
  let sum = 0
  for (const { buffer } of Object.values(sinks) as { buffer?: { type?: unknown; max_size?: unknown } }[]) {
    if (buffer?.type === 'disk') sum += typeof buffer.max_size === 'number' ? buffer.max_size : minDiskBuffer
  }
  return sum
}
