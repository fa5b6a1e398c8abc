// Classes for the kinds that Penstock itself creates: the Agent of an installation, and the Pipelines of `penstock convert`. A
// class sets apiVersion and kind, and `validate()` checks an object as the API server's schema does.

import { Model, type ModelConstructor, setValidateFunc, type TypeMeta } from '@kubernetes-models/base'
import { PenstockError } from '@penstock/agent/errors'
import type { Agent } from './agent.ts'
import { agentKind, clusterPipelineKind, pipelineKind, type ResourceKind } from './kinds.ts'
import { apiVersion } from './object.ts'
import type { Pipeline } from './pipeline.ts'
import { shapeProblems } from './shape.ts'

function modelOf<T extends TypeMeta>(kind: ResourceKind): ModelConstructor<T> {
  class KindModel extends Model<T> {
    readonly apiVersion = apiVersion
    readonly kind = kind.kind

    constructor(data?: ConstructorParameters<ModelConstructor<T>>[0]) {
      super()
      this.setDefinedProps(data)
    }
  }
  setValidateFunc<T>(KindModel, ((data: unknown) => {
    const [problem] = shapeProblems(kind, data)
    if (problem !== undefined) throw new PenstockError('PEN_CONFIG_INVALID', `${kind.kind}: ${problem.message}.`)
  }) as Parameters<typeof setValidateFunc<T>>[1])
  return KindModel
}

export const PipelineModel = modelOf<Pipeline>(pipelineKind)
export const ClusterPipelineModel = modelOf<Pipeline>(clusterPipelineKind)
export const AgentModel = modelOf<Agent>(agentKind)
