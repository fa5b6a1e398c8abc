// Alert rules of the chart. A test compares their metrics with those that the agent and the operator declare, and the anchors of
// their runbooks with the guide.

import { ownJobs } from './dashboards.ts'

export interface Alert {
  readonly name: string
  readonly expr: string
  readonly for: string
  readonly severity: 'critical' | 'warning'
  readonly summary: string
  readonly action: string
  /** An anchor on the guide's troubleshooting page. */
  readonly runbook: string
}

const own = `job=~"${ownJobs}"`

export const alerts: readonly Alert[] = [
  {
    name: 'PenstockOperatorAbsent',
    // Only an operator has this metric.
    expr: `absent(penstock_event_loop_delay_p99_seconds{${own}})`,
    for: '10m',
    severity: 'critical',
    summary: 'No operator answers Prometheus.',
    action:
      "Agents continue with their current configuration. Check the operator's pods, and whether Prometheus scrapes them: kubectl -n penstock-system get pods.",
    runbook: 'operator-absent',
  },
  {
    name: 'PenstockAgentsNotReady',
    expr: `max by (agent) (penstock_agents{${own}, state="desired"}) - max by (agent) (penstock_agents{${own}, state="ready"}) > 0`,
    for: '15m',
    severity: 'warning',
    summary: '{{ $value }} pods of Agent {{ $labels.agent }} are not ready.',
    action: 'Check the pods of the Agent: kubectl -n penstock-system describe pods.',
    runbook: 'podsnotready',
  },
  {
    name: 'PenstockAgentDown',
    expr: `sum by (job) (up{${own}} == bool 0) > 0`,
    for: '15m',
    severity: 'warning',
    summary: 'Prometheus cannot scrape {{ $value }} pods of {{ $labels.job }}.',
    action: 'Check the pods, and the NetworkPolicies between Prometheus and them.',
    runbook: 'podsnotready',
  },
  {
    name: 'PenstockReloadFailed',
    expr: `count by (job) (config_last_reload_success{${own}} == 0) > 0`,
    for: '10m',
    severity: 'warning',
    summary: '{{ $value }} agents of {{ $labels.job }} could not load their newest configuration.',
    action: 'They run the previous configuration. Check status.agents of the Pipelines: kubectl penstock status -A.',
    runbook: 'nodesfailed',
  },
  {
    name: 'PenstockRolledBack',
    expr: `max by (kind) (penstock_conditions{${own}, type="Programmed", reason="RolledBack"}) > 0`,
    for: '1m',
    severity: 'warning',
    summary: 'The newest version of {{ $value }} objects of kind {{ $labels.kind }} was rolled back.',
    action: 'The previous version runs. kubectl penstock status -A shows the objects and reasons.',
    runbook: 'rolledback',
  },
  {
    name: 'PenstockEventsLost',
    expr: `sum by (component_id) (rate(component_discarded_events_total{${own}, intentional="false"}[5m])) > 0`,
    for: '10m',
    severity: 'critical',
    summary: 'Component {{ $labels.component_id }} loses events.',
    action: 'Check the errors of the component: kubectl penstock status.',
    runbook: 'alleventsdropped',
  },
  {
    name: 'PenstockLogsLost',
    expr: `sum by (component_id, reason) (increase(log_bytes_lost_total{${own}}[15m])) > 0`,
    for: '1m',
    severity: 'critical',
    summary: 'Source {{ $labels.component_id }} lost log files before reading them ({{ $labels.reason }}).',
    action: 'Check for a slow sink or limits of the Pipeline; a disk buffer lets the source continue.',
    runbook: 'lagging',
  },
  {
    name: 'PenstockBufferFillingUp',
    // Disk buffers are limited by bytes, memory buffers by events.
    expr: `max by (component_id) (buffer_byte_size{${own}} / (buffer_max_byte_size{${own}} > 0) or buffer_events{${own}} / (buffer_max_event_size{${own}} > 0)) > 0.8`,
    for: '15m',
    severity: 'warning',
    summary: 'The buffer of sink {{ $labels.component_id }} is {{ $value | humanizePercentage }} full.',
    action:
      'Check the destination. Compare max_size or max_events of the buffer with the longest outage of the destination that you expect.',
    runbook: 'bufferfillingup',
  },
  {
    name: 'PenstockDiskFillingUp',
    expr: `min by (instance, node) (data_dir_available_bytes{${own}} / (data_dir_size_bytes{${own}} > 0)) < 0.15`,
    for: '15m',
    severity: 'warning',
    summary:
      'The disk of agent {{ $labels.instance }} on node {{ $labels.node }} has {{ $value | humanizePercentage }} left.',
    action:
      'Below 10 % the agent closes deleted log files that it has not read, and the kubelet evicts pods. Free space, or reduce max_size of disk buffers.',
    runbook: 'disk-filling-up',
  },
  {
    name: 'PenstockSinkErrors',
    expr: `sum by (component_id) (rate(component_errors_total{${own}, component_kind="sink"}[5m])) > 0`,
    for: '15m',
    severity: 'warning',
    summary: 'Sink {{ $labels.component_id }} has had errors for 15 minutes.',
    action: 'Check the condition Reachable of the Sink.',
    runbook: 'unauthorized',
  },
  {
    name: 'PenstockNothingDelivered',
    expr: `sum by (component_id) (rate(component_sent_events_total{${own}, component_kind="sink"}[15m])) == 0 and sum by (component_id) (buffer_events{${own}}) > 0`,
    for: '15m',
    severity: 'critical',
    summary: 'Sink {{ $labels.component_id }} delivers nothing while events wait for it.',
    action: 'Check the condition Flowing of the Pipeline, and the destination.',
    runbook: 'noeventsdelivered',
  },
  {
    name: 'PenstockLagging',
    // The first part also fires if nothing is read at all, the second covers sources that do not read files.
    expr: `max by (component_id) (log_lag_seconds{${own}}) > 300 or histogram_quantile(0.99, sum by (component_id, le) (rate(source_lag_time_seconds_bucket{${own}}[5m]))) > 300`,
    for: '15m',
    severity: 'warning',
    summary: 'Source {{ $labels.component_id }} is more than five minutes behind.',
    action:
      'The condition Flowing of the Pipeline names the node. Check for a slow sink or limits of the Pipeline, or raise the resources of the Agent.',
    runbook: 'lagging',
  },
  {
    name: 'PenstockReconcileErrors',
    expr: `sum by (controller) (rate(controller_runtime_reconcile_total{${own}, result="error"}[5m])) > 0`,
    for: '15m',
    severity: 'warning',
    summary: 'Controller {{ $labels.controller }} of the operator keeps failing.',
    action: "Look at the operator's log.",
    runbook: 'operator-absent',
  },
  {
    name: 'PenstockReviewsFailed',
    expr: `sum by (review) (rate(penstock_reviews_total{${own}, result="failed"}[5m])) > 0`,
    for: '10m',
    severity: 'warning',
    summary: 'The API server does not answer the reviews of {{ $labels.review }} of the operator.',
    action:
      'Agents that the operator has accepted within the last hour still report; new agents and users are rejected. The log of the operator has the error.',
    runbook: 'reviews-failed',
  },
  {
    name: 'PenstockStatusContended',
    expr: `sum by (job) (rate(penstock_status_contended_total{${own}}[15m])) > 0`,
    for: '5m',
    severity: 'warning',
    summary: 'Another client, probably a second operator, keeps changing statuses that {{ $labels.job }} writes.',
    action: 'Stop it, or give each operator its own namespaces. Events with the reason Contended name the objects.',
    runbook: 'foreignmanager',
  },
  {
    name: 'PenstockCertificateExpiry',
    expr: `min by (job) (penstock_certificate_expiry_timestamp_seconds{${own}}) - time() < 604800`,
    for: '60m',
    severity: 'warning',
    summary: 'The certificate of {{ $labels.job }} expires in {{ $value | humanizeDuration }}.',
    action:
      'The operator renews it after two thirds of its lifetime; if it cannot, its log states the reason. With cert-manager, check the Certificate.',
    runbook: 'certificate-expiry',
  },
]
