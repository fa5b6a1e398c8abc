// Settings of Vector's configuration, and what decides about them in a cluster.

import { underOperator } from '@penstock/agent/config'

export interface Setting {
  readonly becomes: string
  /** Whether the cluster does the same without further work. */
  readonly isReplaced: boolean
  /** Why nothing in a cluster does it. */
  readonly absence?: string
}

/** Of those that the agent has, too: what decides under an operator does the same by default. */
const replaced: ReadonlySet<string> = new Set(['data_dir', 'api', 'healthchecks', 'expire_metrics_secs'])

/** Top-level settings of a configuration. */
export const settings: Readonly<Record<string, Setting>> = {
  ...Object.fromEntries(
    Object.entries(underOperator).map(([name, becomes]) => [name, { becomes, isReplaced: replaced.has(name) }]),
  ),
  enrichment_tables: {
    becomes: underOperator.enrichment_tables,
    isReplaced: false,
    absence: 'a Pipeline has no tables, so programs that read them are left out',
  },
  expire_metrics: { becomes: underOperator.expire_metrics_secs, isReplaced: true },
  expire_metrics_per_metric_set: { becomes: underOperator.expire_metrics_secs, isReplaced: true },
  timezone: { becomes: 'The option `timezone` of each remap transform.', isReplaced: true },
  secret: { becomes: 'Keys of the Secret that `spec.secrets` names.', isReplaced: true },
  schema: { becomes: 'Programs are typed without it.', isReplaced: true },
  provider: { becomes: 'The operator gives agents their configuration.', isReplaced: true },
  buffer_utilization_ewma_half_life_seconds: {
    becomes: 'Agents report the present use of a buffer.',
    isReplaced: true,
  },
}
