// The inputs of every compile stage: the Pipeline, the resources that it may refer to, and the options of the compile. No stage
// changes them.

import type { PipelineCompileOptions } from './compiled.ts'
import type { Resource, Resources } from './resources.ts'

export interface Scope {
  readonly pipeline: Resource
  readonly resources: Resources
  readonly options: PipelineCompileOptions
  readonly isCluster: boolean
  readonly id: string
  /** The component id of a Pipeline entry. */
  idOf(name: string): string
}

export function scopeOf(pipeline: Resource, resources: Resources, options: PipelineCompileOptions): Scope {
  const isCluster = pipeline.kind === 'ClusterPipeline'
  // Joined with a character that neither can contain, so that ids never collide (T1).
  const id = `${isCluster ? '_cluster' : pipeline.namespace}/${pipeline.name}`
  return { pipeline, resources, options, isCluster, id, idOf: (name) => `${id}/${name}` }
}
