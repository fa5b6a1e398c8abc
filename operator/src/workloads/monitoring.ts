// Alert rules and dashboards as files of the chart.

import { type Alert, alerts } from './alerts.ts'
import { type Dashboard, dashboards, type Panel, type Variable } from './dashboards.ts'

/** Files of the chart, by path below its `files/`. */
export function monitoringFiles(): Map<string, string> {
  const json = (value: object) => `${JSON.stringify(value, undefined, 2)}\n`
  const files = new Map(
    dashboards.map((dashboard) => [`dashboards/${dashboard.uid}.json`, json(dashboardModel(dashboard))]),
  )
  files.set('alerts.json', json({ groups: [{ name: 'penstock', rules: alerts.map(ruleOf) }] }))
  files.set('agent-metrics.json', json(agentMetrics()))
  return files
}

/** Metrics in alerts and the agent dashboard that only agents have: the template adds their prefix. */
function agentMetrics(): string[] {
  const agents = dashboards.find(({ uid }) => uid === 'penstock-agents')
  const exprs = [
    ...alerts.map(({ expr }) => expr),
    ...(agents?.panels.map(({ expr }) => expr) ?? []),
    ...(agents?.variables.map(({ query }) => query) ?? []),
  ]
  const named = exprs.flatMap((expr) => [...expr.matchAll(/\b([a-z_]+)\{/g)].map(([, name = '']) => name))
  return [...new Set(named)].filter((name) => !/^(?:up$|penstock_|controller_runtime_)/.test(name)).sort()
}

/** The page of the guide; the chart's template prepends `metrics.prometheusRule.runbooks`. */
const runbooks = 'troubleshooting.md'

const ruleOf = (alert: Alert) => ({
  alert: alert.name,
  expr: alert.expr,
  for: alert.for,
  labels: { severity: alert.severity },
  annotations: { summary: alert.summary, description: alert.action, runbook_url: `${runbooks}#${alert.runbook}` },
})

const dashboardModel = ({ uid, title, variables, panels }: Dashboard) => ({
  uid,
  title,
  tags: ['penstock'],
  schemaVersion: 39,
  version: 1,
  editable: true,
  refresh: '30s',
  time: { from: 'now-1h', to: 'now' },
  templating: {
    list: [
      { name: 'datasource', type: 'datasource', query: 'prometheus', label: 'Data source' },
      ...variables.map(variableModel),
    ],
  },
  panels: panels.map((panel, index) => ({
    id: index + 1,
    type: panel.type ?? 'timeseries',
    title: panel.title,
    description: panel.description,
    datasource: source,
    fieldConfig: { defaults: { unit: panel.unit, min: 0, ...colours(panel) }, overrides: [] },
    gridPos: { h: 8, w: 12, x: (index % 2) * 12, y: Math.floor(index / 2) * 8 },
    targets: [{ refId: 'A', expr: panel.expr, legendFormat: panel.legend }],
  })),
})

const source = { type: 'prometheus', uid: '$datasource' }

const variableModel = ({ name, label, query, regex = '', all }: Variable) => ({
  name,
  label,
  type: 'query',
  datasource: source,
  query: { query, refId: name },
  regex,
  // Refreshes the choices when the time range changes.
  refresh: 2,
  sort: 1,
  multi: true,
  includeAll: true,
  allValue: all,
  current: { selected: true, text: ['All'], value: ['$__all'] },
})

/** Lines at the thresholds, or the colour of a number. */
function colours({ thresholds, type = 'timeseries' }: Panel): object {
  if (typeof thresholds === 'string') return {}
  return {
    thresholds: { mode: 'absolute', steps: stepsOf(thresholds) },
    ...(type === 'timeseries' ? { custom: { thresholdsStyle: { mode: 'line' } } } : {}),
  }
}

function stepsOf(thresholds: Exclude<Panel['thresholds'], string>): object[] {
  if ('min' in thresholds)
    return [
      { color: 'red', value: null },
      { color: 'green', value: thresholds.min },
    ]
  const [warning, critical] = thresholds
  return [
    { color: 'green', value: null },
    ...(warning < critical ? [{ color: 'yellow', value: warning }] : []),
    { color: 'red', value: critical },
  ]
}
