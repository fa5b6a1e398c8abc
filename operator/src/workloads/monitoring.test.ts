import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { metricTable } from '@penstock/agent/telemetry/metric-table'
import { parser } from '@prometheus-io/lezer-promql'
import { expect, test } from 'vitest'
import { alerts, dashboards, monitoringFiles } from './monitoring.ts'

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

test.each(queries)('%s asks for metrics that are exposed', (_, expr) => {
  const names = [...expr.replaceAll(/by \([^)]*\)/g, '').matchAll(/[a-z]+(?:_[a-z0-9]+)+(?=[\s{[)]|$)/g)].map(
    ([name]) => name,
  )
  const asked = names.filter((name) => name !== 'histogram_quantile')
  expect(asked).not.toEqual([])
  for (const name of asked) {
    const declared = name.replace(/_bucket$/, '')
    const known = Object.hasOwn(metricTable, declared) || operatorText.includes(`'${declared}'`)
    expect(known, name).toBe(true)
  }
})

/** What a PromQL parser could not read, as text. */
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

test('every dashboard is one that loads: panels with ids and places of their own, and a data source to choose', () => {
  for (const [path, text] of monitoringFiles()) {
    if (!path.startsWith('dashboards/')) continue
    const { uid, title, panels, templating, schemaVersion } = JSON.parse(text)
    expect([uid, title, schemaVersion]).toEqual([expect.stringMatching(/^[a-z-]{1,40}$/), expect.any(String), 39])
    expect(templating.list[0]).toMatchObject({ type: 'datasource', name: 'datasource' })
    const places = panels.map(({ gridPos: { x, y, w } }: { gridPos: Record<string, number> }) => `${x} ${y} ${w}`)
    expect(new Set(places).size).toBe(panels.length)
    expect(new Set(panels.map(({ id }: { id: number }) => id)).size).toBe(panels.length)
    for (const panel of panels) {
      expect(panel).toMatchObject({
        datasource: { uid: '$datasource' },
        fieldConfig: { defaults: { unit: expect.any(String) } },
      })
      for (const { expr, legendFormat } of panel.targets) {
        // A legend names what the sum is kept by.
        const kept = /\bby \(([^)]*)\)/.exec(expr)?.[1]?.split(/,\s*/) ?? []
        for (const [, label] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
          expect(kept, `${title}: ${expr}`).toContain(label)
      }
    }
  }
})

test('every alert says what to do, and its text names labels that its expression keeps', () => {
  for (const { name, expr, summary, action, for: wait } of alerts) {
    expect(action, name).toMatch(/\.$/)
    expect(wait, name).toMatch(/^\d+m$/)
    const kept = [...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, list]) => (list as string).split(/,\s*/))
    for (const [, label] of summary.matchAll(/\$labels\.(\w+)/g)) expect(kept, name).toContain(label)
  }
})

test('labels in expressions are those of the metrics', () => {
  for (const [name, expr] of queries) {
    for (const [, metric = '', label = ''] of expr.matchAll(/([a-z_0-9]+)\{([a-z_]+)=/g)) {
      const declared = (metricTable as Record<string, { readonly labels: readonly string[] }>)[metric]
      if (declared === undefined) continue
      const all = [...declared.labels, 'component_id', 'component_kind', 'component_type']
      expect(all, `${name}: ${metric}`).toContain(label)
    }
  }
})
