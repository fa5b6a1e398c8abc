// Alert rules and dashboards of the chart. A test holds the metrics that they name against those that the agent and the operator
// declare.

interface Panel {
  readonly title: string
  readonly expr: string
  readonly legend: string
  readonly unit: string
}

interface Dashboard {
  readonly uid: string
  readonly title: string
  readonly panels: readonly Panel[]
}

interface Alert {
  readonly name: string
  readonly expr: string
  readonly for: string
  readonly severity: 'critical' | 'warning'
  readonly summary: string
  readonly action: string
}

export const dashboards: readonly Dashboard[] = [
  {
    uid: 'penstock-agents',
    title: 'Penstock / Agents',
    panels: [
      {
        title: 'Events received',
        expr: 'sum by (component_id) (rate(component_received_events_total{component_kind="source"}[5m]))',
        legend: '{{component_id}}',
        unit: 'cps',
      },
      {
        title: 'Events delivered',
        expr: 'sum by (component_id) (rate(component_sent_events_total{component_kind="sink"}[5m]))',
        legend: '{{component_id}}',
        unit: 'cps',
      },
      {
        title: 'Bytes sent',
        expr: 'sum by (component_id) (rate(component_sent_bytes_total[5m]))',
        legend: '{{component_id}}',
        unit: 'Bps',
      },
      {
        title: 'Events discarded',
        expr: 'sum by (component_id, intentional) (rate(component_discarded_events_total[5m]))',
        legend: '{{component_id}} intentional={{intentional}}',
        unit: 'cps',
      },
      {
        title: 'Errors',
        expr: 'sum by (component_id, error_type) (rate(component_errors_total[5m]))',
        legend: '{{component_id}} {{error_type}}',
        unit: 'cps',
      },
      {
        title: 'Events waiting in buffers',
        expr: 'sum by (component_id) (buffer_events)',
        legend: '{{component_id}}',
        unit: 'short',
      },
      {
        title: 'Age of the oldest log line that waits to be read',
        expr: 'max by (component_id) (log_lag_seconds)',
        legend: '{{component_id}}',
        unit: 's',
      },
      {
        title: 'Delay of what is read, p99',
        expr: 'histogram_quantile(0.99, sum by (component_id, le) (rate(source_lag_time_seconds_bucket[5m])))',
        legend: '{{component_id}}',
        unit: 's',
      },
    ],
  },
  {
    uid: 'penstock-operator',
    title: 'Penstock / Operator',
    panels: [
      {
        title: 'Reconciles',
        expr: 'sum by (controller, result) (rate(controller_runtime_reconcile_total[5m]))',
        legend: '{{controller}} {{result}}',
        unit: 'cps',
      },
      { title: 'Waiting keys', expr: 'sum by (name) (workqueue_depth)', legend: '{{name}}', unit: 'short' },
      {
        title: 'Requests to the API server',
        expr: 'sum by (method, code) (rate(rest_client_requests_total[5m]))',
        legend: '{{method}} {{code}}',
        unit: 'cps',
      },
    ],
  },
]

export const alerts: readonly Alert[] = [
  {
    name: 'PenstockEventsLost',
    expr: 'sum by (component_id) (rate(component_discarded_events_total{intentional="false"}[5m])) > 0',
    for: '10m',
    severity: 'critical',
    summary: 'Component {{ $labels.component_id }} loses events.',
    action: 'Look at the errors of the component: kubectl penstock status.',
  },
  {
    name: 'PenstockSinkErrors',
    expr: 'sum by (component_id) (rate(component_errors_total{component_kind="sink"}[5m])) > 0',
    for: '15m',
    severity: 'warning',
    summary: 'Sink {{ $labels.component_id }} has had errors for a quarter of an hour.',
    action: 'Look at condition Reachable of the Sink.',
  },
  {
    name: 'PenstockNothingDelivered',
    expr: 'sum by (component_id) (rate(component_sent_events_total{component_kind="sink"}[15m])) == 0 and sum by (component_id) (buffer_events) > 0',
    for: '15m',
    severity: 'critical',
    summary: 'Sink {{ $labels.component_id }} delivers nothing while events wait for it.',
    action: 'Look at condition Flowing of the Pipeline and at the destination.',
  },
  {
    name: 'PenstockLagging',
    // The first also speaks where nothing is read at all, the second for sources that read no files.
    expr: 'max by (component_id) (log_lag_seconds) > 300 or histogram_quantile(0.99, sum by (component_id, le) (rate(source_lag_time_seconds_bucket[5m]))) > 300',
    for: '15m',
    severity: 'warning',
    summary: 'Source {{ $labels.component_id }} is more than five minutes behind what is written.',
    action:
      'Condition Flowing of the Pipeline names the node. Look for a slow sink or limits of the Pipeline, or raise the resources of the Agent.',
  },
  {
    name: 'PenstockReconcileErrors',
    expr: 'sum by (controller) (rate(controller_runtime_reconcile_total{result="error"}[5m])) > 0',
    for: '15m',
    severity: 'warning',
    summary: 'Controller {{ $labels.controller }} of the operator keeps failing.',
    action: "Look at the operator's log.",
  },
]

/** Files of the chart, by path below its `files/`. */
export function monitoringFiles(): Map<string, string> {
  const json = (value: object) => `${JSON.stringify(value, undefined, 2)}\n`
  const files = new Map(
    dashboards.map((dashboard) => [`dashboards/${dashboard.uid}.json`, json(dashboardModel(dashboard))]),
  )
  files.set('alerts.json', json({ groups: [{ name: 'penstock', rules: alerts.map(ruleOf) }] }))
  return files
}

const ruleOf = (alert: Alert) => ({
  alert: alert.name,
  expr: alert.expr,
  for: alert.for,
  labels: { severity: alert.severity },
  annotations: { summary: alert.summary, description: alert.action },
})

const dashboardModel = ({ uid, title, panels }: Dashboard) => ({
  uid,
  title,
  tags: ['penstock'],
  schemaVersion: 39,
  version: 1,
  editable: true,
  refresh: '30s',
  time: { from: 'now-1h', to: 'now' },
  templating: { list: [{ name: 'datasource', type: 'datasource', query: 'prometheus', label: 'Data source' }] },
  panels: panels.map((panel, index) => ({
    id: index + 1,
    type: 'timeseries',
    title: panel.title,
    datasource: { type: 'prometheus', uid: '$datasource' },
    fieldConfig: { defaults: { unit: panel.unit }, overrides: [] },
    gridPos: { h: 8, w: 12, x: (index % 2) * 12, y: Math.floor(index / 2) * 8 },
    targets: [{ refId: 'A', expr: panel.expr, legendFormat: panel.legend }],
  })),
})
