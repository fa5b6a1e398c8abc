// Finds a Promtail configuration in a file, in `logs` of the Grafana Agent, in a ConfigMap or Secret, or in chart values.

import type { Gap, NamedText } from '../draft.ts'
import { below, isList, isMap, itemsOf, pairsOf, type Tree, textOf } from '../loki/tree.ts'
import { embedded, treesOf } from '../loki/yaml.ts'
import { chartConfig, isChartConfig } from './chart.ts'
import { isOldChart, oldChartConfig } from './old-chart.ts'

/** Whether a text contains a Promtail configuration. */
export function isPromtail({ file, text }: NamedText): boolean {
  if (/\.(?:alloy|river|toml|conf)$/i.test(file)) return false
  return rootsOf({ file, text }, []).length > 0
}

/** All configurations of a file. */
export function rootsOf(given: NamedText, gaps: Gap[]): readonly Tree[] {
  const trees = treesOf(given, gaps)
  const found = trees.flatMap((tree) => rootsIn(tree, gaps, 0))
  return found.length > 0 ? found : trees.flatMap((tree) => rootsBelow(tree, 0))
}

/** Configurations in texts of any setting, such as `configs` of a Compose file or values of an own chart. */
function rootsBelow(tree: Tree, depth: number): readonly Tree[] {
  if (depth > maxDepth) return []
  if (isList(tree)) return tree.value.flatMap((item) => rootsBelow(item, depth + 1))
  if (isMap(tree)) return [...tree.value.values()].flatMap((item) => rootsBelow(item, depth + 1))
  if (textOf(tree)?.includes('scrape_configs:') !== true) return []
  // Texts with mistakes are left alone, because they may have another meaning.
  const problems: Gap[] = []
  const inner = embedded(tree, problems)
  return inner === undefined || problems.length > 0 || !isConfig(inner) ? [] : [inner]
}

/** Settings nested deeper than this are not searched. */
const maxDepth = 10

/** Keys that only occur in jobs of Promtail. */
const ownKeys = [
  'pipeline_stages',
  'journal',
  'syslog',
  'gcplog',
  'loki_push_api',
  'windows_events',
  'gelf',
  'cloudflare',
  'heroku_drain',
  'azure_event_hubs',
]

function isConfig(tree: Tree): boolean {
  const jobs = itemsOf(below(tree, 'scrape_configs'))
  if (jobs.length === 0) return below(tree, 'clients') !== undefined && below(tree, 'positions') !== undefined
  if (below(tree, 'clients') !== undefined || below(tree, 'client') !== undefined) return true
  return jobs.some(
    (job) =>
      ownKeys.some((key) => below(job, key) !== undefined) ||
      itemsOf(below(job, 'static_configs')).some((group) => below(group, 'labels', '__path__') !== undefined) ||
      itemsOf(below(job, 'relabel_configs')).some((rule) => textOf(below(rule, 'target_label')) === '__path__'),
  )
}

/** The configurations of the Grafana Agent. Those without clients have the clients of all. */
function agentConfigs(logs: Tree | undefined): readonly Tree[] {
  const clients = below(logs, 'global', 'clients')
  return itemsOf(below(logs, 'configs')).map((config) =>
    clients === undefined || !isMap(config) || itemsOf(below(config, 'clients')).length > 0
      ? config
      : { ...config, value: new Map([...config.value, ['clients', clients] as const]) },
  )
}

function rootsIn(tree: Tree, gaps: Gap[], depth: number): readonly Tree[] {
  if (!isMap(tree) || depth > 4) return []
  if (isConfig(tree)) return [tree]
  const agent = ['logs', 'loki'].flatMap((name) => agentConfigs(below(tree, name))).filter(isConfig)
  if (agent.length > 0) return agent
  const config = below(tree, 'config')
  if (config !== undefined && isChartConfig(config)) return [chartConfig(config, gaps)]
  if (isOldChart(tree)) return [oldChartConfig(tree, gaps)]
  const kind = textOf(below(tree, 'kind'))
  if (kind === 'ConfigMap' || kind === 'Secret') {
    return [...pairsOf(below(tree, 'data')), ...pairsOf(below(tree, 'stringData'))].flatMap(([name, text, inner]) => {
      if (!/\.ya?ml$|^config$/i.test(name) || !text.includes('scrape_configs')) return []
      const found = embedded(inner, gaps)
      return found === undefined ? [] : rootsIn(found, gaps, depth + 1)
    })
  }
  // Values of a chart that contains the Promtail chart, and of a HelmRelease or an Application.
  const inner = [
    below(tree, 'promtail'),
    below(tree, 'spec', 'values'),
    below(tree, 'spec', 'source', 'helm', 'valuesObject'),
  ]
  return inner.flatMap((part) => (part === undefined ? [] : rootsIn(part, gaps, depth + 1)))
}
