// Source and ClusterSource: a named source that Pipelines refer to.

import { conditions } from './conditions.ts'
import type { CustomResource } from './object.ts'
import { config, multiline, selector } from './pipeline.ts'
import { byDefault, integer, object, oneOf, required, text, type ValueOf } from './schema.ts'
import { labelSelector } from './selector.ts'

export const allowedNamespaces = object(
  {
    from: required(oneOf(['All', 'Selector'], 'Which namespaces.')),
    selector: labelSelector('Labels of the namespaces.'),
  },
  'Namespaces whose Pipelines may refer to it; none if absent.',
  { rules: [{ rule: "self.from != 'Selector' || has(self.selector)", message: 'from: Selector needs selector' }] },
)

export const allowedAgents = byDefault(
  'Platform',
  oneOf(
    ['Platform', 'Tenant'],
    "Which Agents run Pipelines that refer to it, if it contains secrets. `Platform`, the default: those in the operator's agent namespaces. `Tenant`: also those in the namespaces that may refer to it. The operator then copies the secrets to these namespaces, where everyone with access to Secrets can read them.",
  ),
)

export const sourceSpec = (cluster: boolean) =>
  object(
    {
      type: required(text('Type of the source.', { maxLength: 63 })),
      config,
      selector,
      multiline,
      ...(cluster ? { allowedNamespaces, allowedAgents } : {}),
    },
    'The source.',
  ) as ReturnType<typeof clusterSourceSpec>

const clusterSourceSpec = () =>
  object({ type: required(text('')), config, selector, multiline, allowedNamespaces, allowedAgents }, '')

/** Status that Source and Sink kinds share. */
export const sharedStatus = object(
  {
    observedGeneration: integer('The newest generation that the operator has processed.'),
    usedBy: object(
      { pipelines: integer('Pipelines that refer to it.'), namespaces: integer('Namespaces that they are in.') },
      'References to the object.',
    ),
    conditions,
  },
  'Observed state of the object.',
)

export type SourceSpec = ValueOf<ReturnType<typeof clusterSourceSpec>>
export type SourceStatus = ValueOf<typeof sharedStatus>
export type SourceResource = CustomResource<SourceSpec, SourceStatus>
export type AllowedNamespaces = ValueOf<typeof allowedNamespaces>
