// Checks a Source or Sink alone in all stages: with the problems of a Pipeline that only uses it.

import type { Reason } from '../api/conditions.ts'
import { kindOf } from '../api/kinds.ts'
import { apiVersion } from '../api/object.ts'
import type { Pipeline } from '../api/pipeline.ts'
import { problemsOf } from './check.ts'
import type { CompileProblem, PipelineCompileOptions } from './compiled.ts'
import { compilePipeline } from './pipeline.ts'
import type { Resource } from './resources.ts'

export const isShared = (kind: string): boolean => /^(?:Cluster)?(?:Source|Sink)$/.test(kind)

/** A Pipeline that uses a shared object, and has no problems itself. */
export function sharedPipeline({ kind, namespace, name, content }: Resource): Pipeline {
  const type = (content['spec'] as { readonly type?: unknown } | undefined)?.type
  const namespaced = kindOf(kind)?.namespaced === true
  const entry = { name: 'shared', ref: { kind, name } }
  const ofSink = kind.endsWith('Sink')
  return {
    apiVersion,
    kind: namespaced ? 'Pipeline' : 'ClusterPipeline',
    metadata: { name: 'alone', ...(namespaced ? { namespace } : {}) },
    spec: {
      // Whether a file source is allowed depends on the mode of the Pipeline that refers to it.
      ...(type === 'file' && namespaced ? { mode: 'Sidecar' } : {}),
      sources: [ofSink ? { name: 'any', type: 'orchestrator_logs', config: {} } : entry],
      sinks: [ofSink ? entry : { name: 'any', type: 'blackhole', config: {} }],
    },
  } as Pipeline
}

const referenceReasons: ReadonlySet<Reason> = new Set<Reason>([
  'SecretNotFound',
  'SecretKeyNotFound',
  'NoMatchingAgent',
])

/** The problems of such a Pipeline that are in the shared object, and so affect all its users. */
export function problemsIn(problems: readonly CompileProblem[]): readonly CompileProblem[] {
  return problems.filter(
    ({ path, reason, isOfUser }) =>
      !/^spec\.(?:sources|transforms|sinks|inputs)\b/.test(path) &&
      /^(?:spec|metadata)\b/.test(path) &&
      !referenceReasons.has(reason) &&
      // Aliases belong to the Pipelines.
      isOfUser !== true,
  )
}

/** The same in one step, for commands on files. */
export function problemsOfShared(resource: Resource, options: PipelineCompileOptions): readonly CompileProblem[] {
  const pipeline = sharedPipeline(resource)
  const { kind, metadata } = pipeline
  const content = pipeline as unknown as Resource['content']
  const user: Resource = { kind, namespace: metadata.namespace ?? '', name: metadata.name, content, locate: () => ({}) }
  return problemsIn(problemsOf(compilePipeline(user, [resource], options)))
}
