import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { metricTable } from '@penstock/agent/testing/operator'
import { parser } from '@prometheus-io/lezer-promql'
import { expect, test } from 'vitest'
import { alerts } from './alerts.ts'
import { dashboards, ownJobs } from './dashboards.ts'
import { monitoringFiles } from './monitoring.ts'

const source = join(import.meta.dirname, '..')
const operatorText = readdirSync(source, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts') && !path.endsWith('.test.ts') && !path.startsWith('workloads/'))
  .map((path) => readFileSync(join(source, path), 'utf8'))
  .join('\n')

const queries = [
  ...alerts.map(({ name, expr }) => [name, expr] as const),
  ...dashboards.flatMap(({ title, panels }) =>
    panels.map((panel) => [`${title} / ${panel.title}`, panel.expr] as const),
  ),
]

interface Selector {
  readonly metric: string
  readonly labels: readonly string[]
  readonly text: string
}

/** The series that an expression selects. */
function selectorsIn(expr: string): readonly Selector[] {
  const found: Selector[] = []
  parser.parse(expr).iterate({
    enter: ({ name, from, to }) => {
      if (name !== 'VectorSelector') return
      const text = expr.slice(from, to)
      const [metric = ''] = /^\w+/.exec(text) ?? []
      const labels = [...text.matchAll(/(\w+)\s*(?:=~|!~|!=|=)"/g)].map(([, label = '']) => label)
      found.push({ metric: metric.replace(/_bucket$/, ''), labels, text })
    },
  })
  return found
}

test.each(queries)('%s only queries exposed metrics', (_, expr) => {
  const asked = selectorsIn(expr).map(({ metric }) => metric)
  expect(asked).not.toEqual([])
  for (const name of asked) {
    // Prometheus makes `up` itself.
    const known = name === 'up' || Object.hasOwn(metricTable, name) || operatorText.includes(`'${name}'`)
    expect(known, name).toBe(true)
  }
})

/** Expressions that a PromQL parser could not parse, as text. */
function mistakesIn(expr: string): string[] {
  const mistakes: string[] = []
  parser.parse(expr).iterate({
    enter: ({ type, from, to }) => {
      if (type.isError) mistakes.push(`at ${from}: "${expr.slice(from, to)}"`)
    },
  })
  return mistakes
}

test.each(queries)('%s is PromQL', (_, expr) => {
  expect(mistakesIn(expr)).toEqual([])
  expect(mistakesIn(`${expr} by (`), 'a mistake would be noticed').not.toEqual([])
})

test('every dashboard can be loaded: panels have ids and separate places, and the data source is selectable', () => {
  for (const [path, text] of monitoringFiles()) {
    if (!path.startsWith('dashboards/')) continue
    const { uid, title, panels, templating, schemaVersion } = JSON.parse(text)
    const variables = templating.list.map(({ name }: { name: string }) => name)
    expect([uid, title, schemaVersion]).toEqual([expect.stringMatching(/^[a-z-]{1,40}$/), expect.any(String), 39])
    expect(templating.list[0]).toMatchObject({ type: 'datasource', name: 'datasource' })
    const places = panels.map(({ gridPos: { x, y, w } }: { gridPos: Record<string, number> }) => `${x} ${y} ${w}`)
    expect(new Set(places).size).toBe(panels.length)
    expect(new Set(panels.map(({ id }: { id: number }) => id)).size).toBe(panels.length)
    for (const panel of panels) {
      expect(panel).toMatchObject({
        datasource: { uid: '$datasource' },
        description: expect.stringMatching(/^[^a-z].*\.$/),
        fieldConfig: { defaults: { unit: expect.any(String) } },
      })
      expect(`${panel.title}. ${panel.description}`).not.toMatch(/\b(\w+(?: \w+)*) \1\b/i)
      for (const { expr, legendFormat } of panel.targets) {
        for (const [, name] of expr.matchAll(/\$(\w+)/g)) expect(variables, `${title}: ${expr}`).toContain(name)
        // A legend uses the labels that the sum keeps.
        const kept = /\bby \(([^)]*)\)/.exec(expr)?.[1]?.split(/,\s*/) ?? []
        for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
          expect(kept, `${title}: ${expr}`).toContain(label)
      }
    }
  }
})

test('a panel has thresholds, or explains why no value is bad on its own', () => {
  const drawn = [...monitoringFiles()].flatMap(([path, text]) =>
    path.startsWith('dashboards/') ? (JSON.parse(text).panels as DrawnPanel[]) : [],
  )
  const stepsOf = (title: string) =>
    drawn.find((panel) => panel.title === title)?.fieldConfig.defaults.thresholds?.steps
  for (const { title, thresholds } of dashboards.flatMap(({ panels }) => panels)) {
    if (typeof thresholds === 'string') expect(thresholds, title).toMatch(/^[A-Z].*\.$/)
    else expect(stepsOf(title)?.at(-1), title).toMatchObject({ color: 'min' in thresholds ? 'green' : 'red' })
  }
  expect(stepsOf('Agents that answer')).toEqual([
    { color: 'red', value: null },
    { color: 'green', value: 1 },
  ])
  expect(stepsOf('Part of the disk that is used')).toEqual([
    { color: 'green', value: null },
    { color: 'yellow', value: 0.85 },
    { color: 'red', value: 0.9 },
  ])
})

interface DrawnPanel {
  readonly title: string
  readonly fieldConfig: { readonly defaults: { readonly thresholds?: { readonly steps: readonly object[] } } }
}

test('exactly the metrics of agents get the prefix, and none of the operator', () => {
  const prefixed: string[] = JSON.parse(monitoringFiles().get('agent-metrics.json') ?? '')
  const ofAgents = (name: string) => Object.hasOwn(metricTable, name.replace(/_bucket$/, ''))
  expect(prefixed.filter((name) => !ofAgents(name))).toEqual([])
  const named = [...alerts, ...(dashboards[0]?.panels ?? [])].flatMap(({ expr }) => [
    ...expr.matchAll(/\b(\w+)\{/g).map(([, name = '']) => name),
  ])
  expect(new Set(prefixed)).toEqual(new Set(['build_info', ...named.filter(ofAgents)]))
  // Alerts cover operator and agents: a metric name that both have would be ambiguous.
  const ofBoth = alerts.filter(({ expr }) => /\b(?:process|nodejs)_\w+\{/.test(expr))
  expect(ofBoth).toEqual([])
})

test('every alert explains the remedy, and its text uses labels that its expression keeps', () => {
  for (const { name, expr, summary, action, for: wait } of alerts) {
    expect(action, name).toMatch(/\.$/)
    expect(wait, name).toMatch(/^\d+m$/)
    const kept = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list]) => (list as string).split(/,\s*/))
    for (const [, label] of summary.matchAll(/\$labels\.(\w+)/g)) expect(kept, name).toContain(label)
  }
})

test('every selector only selects series of this product', () => {
  for (const [name, expr] of queries) {
    for (const { text } of selectorsIn(expr)) expect(text, name).toContain(`job=~"${ownJobs}"`)
  }
})

test('every runbook link leads to a section of the guide', () => {
  const page = readFileSync(join(source, '../guide/troubleshooting.md'), 'utf8')
  for (const { name, runbook } of alerts) expect(page, name).toContain(`<a id="${runbook}"></a>`)
})

/** Labels that Prometheus adds to all series of a target, from its own settings and those of the monitors. */
const ofTargets = ['job', 'instance', 'cluster', 'node']

test('labels in expressions are those of the metrics', () => {
  let checked = 0
  for (const [name, expr] of queries) {
    for (const { metric, labels } of selectorsIn(expr)) {
      const declared = (metricTable as Record<string, { readonly labels: readonly string[] }>)[metric]
      if (declared === undefined) continue
      const all = [...declared.labels, ...ofTargets, 'component_id', 'component_kind', 'component_type']
      for (const label of labels) expect(all, `${name}: ${metric}`).toContain(label)
      checked += labels.length
    }
  }
  expect(checked).toBeGreaterThan(50)
})

/** For each alert, series of an hour for which it must fire; with another job, it must not fire. */
const series: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  PenstockOperatorAbsent: {},
  PenstockAgentsNotReady: {
    'penstock_agents{JOB, agent="shop/node", state="desired"}': '3x60',
    'penstock_agents{JOB, agent="shop/node", state="ready"}': '2x60',
  },
  PenstockAgentDown: { 'up{JOB}': '0x60' },
  PenstockReloadFailed: { 'config_last_reload_success{JOB}': '0x60' },
  PenstockRolledBack: {
    'penstock_conditions{JOB, kind="Pipeline", type="Programmed", status="False", reason="RolledBack"}': '1x60',
  },
  PenstockEventsLost: { 'component_discarded_events_total{JOB, component_id="a", intentional="false"}': '0+5x60' },
  PenstockLogsLost: { 'log_bytes_lost_total{JOB, component_id="a", reason="rotated"}': '0+5x60' },
  PenstockBufferFillingUp: {
    'buffer_byte_size{JOB, component_id="a"}': '90x60',
    'buffer_max_byte_size{JOB, component_id="a"}': '100x60',
  },
  PenstockDiskFillingUp: {
    'data_dir_available_bytes{JOB, instance="a", node="b"}': '14x60',
    'data_dir_size_bytes{JOB, instance="a", node="b"}': '100x60',
  },
  PenstockSinkErrors: { 'component_errors_total{JOB, component_id="a", component_kind="sink"}': '0+5x60' },
  PenstockNothingDelivered: {
    'component_sent_events_total{JOB, component_id="a", component_kind="sink"}': '7x60',
    'buffer_events{JOB, component_id="a"}': '7x60',
  },
  PenstockLagging: { 'log_lag_seconds{JOB, component_id="a"}': '400x60' },
  PenstockReconcileErrors: { 'controller_runtime_reconcile_total{JOB, controller="a", result="error"}': '0+5x60' },
  PenstockReviewsFailed: { 'penstock_reviews_total{JOB, review="token", result="failed"}': '0+5x60' },
  PenstockStatusContended: { 'penstock_status_contended_total{JOB}': '0+5x60' },
  PenstockCertificateExpiry: { 'penstock_certificate_expiry_timestamp_seconds{JOB}': '100000x120' },
}

/** Other series for which an alert must fire too. */
const further: readonly { readonly name: string; readonly series: Readonly<Record<string, string>> }[] = [
  {
    name: 'PenstockBufferFillingUp', // in memory
    series: {
      'buffer_events{JOB, component_id="a"}': '450x60',
      'buffer_max_event_size{JOB, component_id="a"}': '500x60',
    },
  },
]

const noPromtool = spawnSync('promtool', ['--version']).status !== 0

test.skipIf(noPromtool)('promtool accepts the rules, and each fires only for its series', () => {
  const folder = mkdtempSync(join(tmpdir(), 'penstock-rules-'))
  try {
    writeFileSync(join(folder, 'alerts.json'), monitoringFiles().get('alerts.json') ?? '')
    const promtool = (...args: string[]) => {
      const { status, stdout, stderr } = spawnSync('promtool', args, { cwd: folder, encoding: 'utf8' })
      return { status, output: `${stdout}${stderr}` }
    }
    expect(promtool('check', 'rules', 'alerts.json')).toMatchObject({ status: 0 })
    expect(Object.keys(series).sort()).toEqual(alerts.map(({ name }) => name).sort())
    const given = (from: Readonly<Record<string, string>>, job: string) =>
      Object.entries(from).map(([selector, values]) => ({
        series: selector.replace('JOB', `job="${job}"`),
        values,
      }))
    const own = 'penstock-system/penstock-node'
    const cases = [
      ...alerts.flatMap(({ name }) => [
        { name, from: series[name] ?? {}, job: own, fires: true },
        // Without any series, the alert for a missing operator fires, as expected.
        ...(name === 'PenstockOperatorAbsent' ? [] : [{ name, from: series[name] ?? {}, job: 'other', fires: false }]),
      ]),
      ...further.map((each) => ({ name: each.name, from: each.series, job: own, fires: true })),
    ]
    const fired = cases.map(({ name, from, job, fires }) => {
      const expr = `count(ALERTS{alertname="${name}", alertstate="firing"}) or vector(0)`
      return {
        interval: '1m',
        input_series: given(from, job),
        promql_expr_test: [{ expr, eval_time: '61m', exp_samples: [{ labels: '{}', value: fires ? 1 : 0 }] }],
      }
    })
    writeFileSync(join(folder, 'tests.json'), JSON.stringify({ rule_files: ['alerts.json'], tests: fired }))
    expect(promtool('test', 'rules', 'tests.json')).toMatchObject({ status: 0 })
  } finally {
    rmSync(folder, { recursive: true })
  }
})
