// Global settings of a Vector configuration, and their replacements in a cluster.

import { underOperator } from '@penstock/agent/config'

export interface Setting {
  readonly becomes: string
  /** Whether the cluster already does the same. */
  readonly isReplaced: boolean
  /** The reason in the report; by default, the cluster provides it. */
  readonly by?: string
  /** The reason why nothing in a cluster does it. */
  readonly absence?: string
}

/** Settings that the agent also has, and for which the operator's default does the same. */
const replaced: ReadonlySet<string> = new Set(['data_dir', 'api', 'healthchecks', 'expire_metrics_secs'])

/** Top-level settings of a configuration. */
export const settings: Readonly<Record<string, Setting>> = {
  ...Object.fromEntries(
    Object.entries(underOperator).map(([name, becomes]) => [name, { becomes, isReplaced: replaced.has(name) }]),
  ),
  enrichment_tables: {
    becomes: 'Write the rows of a small table as an object in the program, or let the destination add the data.',
    isReplaced: false,
    absence: 'a Pipeline has no enrichment tables, so programs that read them are left out',
  },
  log_schema: {
    becomes: 'Transforms after sources and before sinks rename the fields.',
    isReplaced: true,
    by: 'transforms rename the fields',
  },
  telemetry: {
    becomes: 'The agent counts the events of each component without additional tags.',
    isReplaced: true,
    by: 'it changes only the metrics of the agent itself',
  },
  wildcard_matching: {
    becomes: 'Inputs name their components. To add a component, add it to the inputs that should match it.',
    isReplaced: true,
    by: 'the conversion resolves wildcards',
  },
  expire_metrics: { becomes: underOperator.expire_metrics_secs, isReplaced: true },
  expire_metrics_per_metric_set: { becomes: underOperator.expire_metrics_secs, isReplaced: true },
  timezone: { becomes: 'The option `timezone` of each remap transform.', isReplaced: true },
  acknowledgements: { becomes: 'The option `acknowledgements` of each sink.', isReplaced: true },
  proxy: { becomes: 'The option `proxy` of each sink that has it.', isReplaced: true },
  secret: { becomes: 'Keys of the Secret that `spec.secrets` names.', isReplaced: true },
  schema: { becomes: 'Programs have types without it.', isReplaced: true },
  vectorRef: { becomes: 'Agents select the Pipelines that they run.', isReplaced: true, by: 'Agents select Pipelines' },
  provider: { becomes: 'The operator delivers the configuration to agents.', isReplaced: true },
  buffer_utilization_ewma_half_life_seconds: {
    becomes: 'Agents report the current size of a buffer.',
    isReplaced: true,
  },
}
