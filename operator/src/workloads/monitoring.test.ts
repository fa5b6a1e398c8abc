import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { metricTable } from '@penstock/agent/telemetry/metrics'
import { expect, test } from 'vitest'
import { alerts, dashboards } from './monitoring.ts'

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
