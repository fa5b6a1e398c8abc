// Sink and ClusterSink: a named destination that Pipelines refer to.

import type { CustomResource } from './object.ts'
import { config } from './pipeline.ts'
import { list, object, open, required, specQuantity, text, type ValueOf } from './schema.ts'
import { allowedAgents, allowedNamespaces, type SourceStatus } from './source.ts'

const members = {
  type: required(text('Type of the sink.', { maxLength: 63 })),
  config,
}

const clusterMembers = {
  ...members,
  allowedNamespaces,
  allowedAgents,
  overridable: list(
    text('Path of an option, such as `encoding.only_fields`.', { maxLength: 253 }),
    'Options that Pipelines may set.',
    {
      maxItems: 64,
    },
  ),
  enforced: open(
    'Options that are added after those of Pipelines; templates can use the values that the source captured.',
  ),
  limits: object(
    {
      perNamespace: object(
        {
          bytesPerSecond: specQuantity(
            'Bytes per second that they read on one agent. The remaining lines wait in their files. 0: nothing is read.',
            'Until it is corrected, the operator rejects new versions of Pipelines that refer to the sink; accepted ones run.',
          ),
        },
        'Limits for all Pipelines of a namespace together.',
      ),
    },
    'Limits for the users of the sink.',
  ),
}

export const sinkSpec = (cluster: boolean) =>
  (cluster ? object(clusterMembers, 'The sink.') : object(members, 'The sink.')) as ReturnType<typeof clusterSinkSpec>

const clusterSinkSpec = () => object(clusterMembers, '')

export type SinkSpec = ValueOf<ReturnType<typeof clusterSinkSpec>>
export type SinkStatus = SourceStatus
export type SinkResource = CustomResource<SinkSpec, SinkStatus>
