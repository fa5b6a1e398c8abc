// Values of the Promtail chart before version 3, which has its stages and jobs at the top, and derives the address from a Service.

import type { Gap } from '../draft.ts'
import { below, isList, isMap, itemsOf, type Place, type Tree, textOf } from '../loki/tree.ts'
import { treesOf } from '../loki/yaml.ts'
import { relocated, unescaped } from './chart.ts'

/** Whether a table has values of this chart. */
export const isOldChart = (tree: Tree): boolean =>
  ['pipelineStages', 'scrapeConfigs', 'extraScrapeConfigs'].some((name) => isList(below(tree, name)))

const label = (name: string) => `__meta_kubernetes_pod_label_${name}`
const controller = '__meta_kubernetes_pod_controller_name'
const mirror = '__meta_kubernetes_pod_annotation_kubernetes_io_config_mirror'
const suffix = '-[0-9a-f]{8,10}'
const withoutNames = { action: 'drop', regex: '.+', separator: '', source_labels: [label('name'), label('app')] }
const service = (from: string, more: object = {}) => ({ source_labels: [from], target_label: '__service__', ...more })

/** The jobs of the chart: the rules that select its pods, and the label with the identifier in the path of their files. */
const jobs: readonly (readonly [string, readonly object[], string])[] = [
  ['name', [service(label('name'))], '__meta_kubernetes_pod_uid'],
  ['app', [{ ...withoutNames, source_labels: [label('name')] }, service(label('app'))], '__meta_kubernetes_pod_uid'],
  [
    'direct-controllers',
    [withoutNames, { action: 'drop', regex: `[0-9a-z-.]+${suffix}`, source_labels: [controller] }, service(controller)],
    '__meta_kubernetes_pod_uid',
  ],
  [
    'indirect-controller',
    [
      withoutNames,
      { action: 'keep', regex: `[0-9a-z-.]+${suffix}`, source_labels: [controller] },
      service(controller, { regex: `([0-9a-z-.]+)${suffix}` }),
    ],
    '__meta_kubernetes_pod_uid',
  ],
  ['static', [{ action: 'drop', regex: '', source_labels: [mirror] }, service(label('component'))], mirror],
]

/** The rules after those that select pods. */
const labels = (identifier: string) => [
  { action: 'drop', regex: '', source_labels: ['__service__'] },
  { action: 'labelmap', regex: label('(.+)') },
  { source_labels: ['__meta_kubernetes_namespace', '__service__'], separator: '/', target_label: 'job' },
  { source_labels: ['__meta_kubernetes_namespace'], target_label: 'namespace' },
  { source_labels: ['__meta_kubernetes_pod_name'], target_label: 'pod' },
  { source_labels: ['__meta_kubernetes_pod_container_name'], target_label: 'container' },
  {
    source_labels: [identifier, '__meta_kubernetes_pod_container_name'],
    separator: '/',
    replacement: '/var/log/pods/*$1/*.log',
    target_label: '__path__',
  },
]

/** The configuration that the chart would generate from its values. */
export function oldChartConfig(tree: Tree, gaps: Gap[]): Tree {
  const place: Place = { file: tree.file, line: tree.line }
  const own = (value: unknown): Tree =>
    relocated(treesOf({ file: place.file, text: JSON.stringify(value) }, gaps)[0] ?? { ...place, value: [] }, place)
  const stages = unescaped(below(tree, 'pipelineStages')) ?? own([{ docker: {} }])
  const byDefault = jobs.map(([name, rules, identifier]): Tree => {
    const job = own({
      job_name: `kubernetes-pods-${name}`,
      kubernetes_sd_configs: [{ role: 'pod' }],
      relabel_configs: [...rules, ...labels(identifier)],
    })
    return { ...place, value: new Map([...(isMap(job) ? job.value : []), ['pipeline_stages', stages] as const]) }
  })
  const given = itemsOf(below(tree, 'scrapeConfigs'))
  const scrapes = [...(given.length > 0 ? given : byDefault), ...itemsOf(below(tree, 'extraScrapeConfigs'))]
  const client = below(tree, 'config', 'client')
  const options = isMap(client) ? [...client.value] : []
  return {
    ...place,
    value: new Map<string, Tree>([
      ['client', { ...(client ?? place), value: new Map([['url', addressOf(tree, gaps)], ...options]) }],
      ['scrape_configs', { ...place, value: scrapes }],
    ]),
  }
}

/** The address of the Service that the values name. */
function addressOf(tree: Tree, gaps: Gap[]): Tree {
  const read = (name: string, byDefault: string) => textOf(below(tree, 'loki', name)) ?? byDefault
  const name = read('serviceName', '')
  const { file, line } = below(tree, 'loki', 'serviceName') ?? tree
  if (name === '' && textOf(below(tree, 'config', 'client', 'url')) === undefined) {
    const reason = 'the chart derives the name of the Service from that of its release'
    gaps.push({ file, line, subject: 'loki.serviceName', reason, nearest: 'Correct `endpoint`.', isReplaced: true })
  }
  const value = `${read('serviceScheme', 'http')}://${name || 'loki'}:${read('servicePort', '3100')}/loki/api/v1/push`
  return { file, line, value }
}
