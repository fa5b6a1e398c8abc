// Values of the Promtail chart, whose file and jobs are templates. The conversion replaces the chart's own variables.

import { rendered } from '../chart-templates.ts'
import type { Gap } from '../draft.ts'
import { Report } from '../loki/context.ts'
import { unquote } from '../loki/selector.ts'
import { below, flagOf, isList, isMap, itemsOf, type Place, type Tree, textOf } from '../loki/tree.ts'
import { embedded, treesOf } from '../loki/yaml.ts'

/** The default job and rules of the chart. */
const defaultJob = `
- job_name: kubernetes-pods
  pipeline_stages: "@pipelineStages"
  kubernetes_sd_configs:
    - role: pod
  relabel_configs:
    - source_labels: [__meta_kubernetes_pod_controller_name]
      regex: ([0-9a-z-.]+?)(-[0-9a-f]{8,10})?
      target_label: __tmp_controller_name
    - source_labels: [__meta_kubernetes_pod_label_app_kubernetes_io_name, __meta_kubernetes_pod_label_app, __tmp_controller_name, __meta_kubernetes_pod_name]
      regex: ^;*([^;]+)(;.*)?$
      target_label: app
    - source_labels: [__meta_kubernetes_pod_label_app_kubernetes_io_instance, __meta_kubernetes_pod_label_instance]
      regex: ^;*([^;]+)(;.*)?$
      target_label: instance
    - source_labels: [__meta_kubernetes_pod_label_app_kubernetes_io_component, __meta_kubernetes_pod_label_component]
      regex: ^;*([^;]+)(;.*)?$
      target_label: component
    - "@scrapeJobLabel"
    - "@common"
    - "@extraRelabelConfigs"
`
const defaultCommon = `
- source_labels: [__meta_kubernetes_pod_node_name]
  target_label: node_name
- source_labels: [__meta_kubernetes_namespace]
  target_label: namespace
- replacement: $1
  separator: /
  source_labels: [namespace, app]
  target_label: job
- source_labels: [__meta_kubernetes_pod_name]
  target_label: pod
- source_labels: [__meta_kubernetes_pod_container_name]
  target_label: container
- replacement: /var/log/pods/*$1/*.log
  separator: /
  source_labels: [__meta_kubernetes_pod_uid, __meta_kubernetes_pod_container_name]
  target_label: __path__
`
const defaultStages = '- cri: {}\n'
const defaultClients = '- url: http://loki-gateway/loki/api/v1/push\n'
const jobLabel = '- replacement: kubernetes-pods\n  target_label: scrape_job\n'

/** Whether a table is `config` of the chart's values. */
export function isChartConfig(tree: Tree | undefined): boolean {
  const file = textOf(below(tree, 'file'))
  return (
    below(tree, 'snippets') !== undefined ||
    file?.includes('scrape_configs') === true ||
    itemsOf(below(tree, 'clients')).some((client) => below(client, 'url') !== undefined)
  )
}

/** Values below `config` and below `snippets` that change the file, or that have no meaning here. */
const known = {
  config: [
    ...['clients', 'snippets', 'file', 'lokiAddress', 'enabled', 'logLevel', 'logFormat', 'serverPort', 'positions'],
    ...['enableTracing', 'server', 'target_config', 'client'],
  ],
  snippets: [
    ...['pipelineStages', 'common', 'addScrapeJobLabel', 'extraLimitsConfig', 'extraServerConfigs'],
    ...['scrapeConfigs', 'extraScrapeConfigs', 'extraRelabelConfigs', 'extraClientConfigs'],
  ],
}

/** Reports values that the chart does not have. */
function reportUnknown(config: Tree, gaps: Gap[]): void {
  // A file of its own may name any value.
  if (below(config, 'file') !== undefined) return
  const report = new Report(gaps)
  const options = (names: readonly string[]) => ({ options: Object.fromEntries(names.map((name) => [name, ''])) })
  report.options({ ...config, name: 'config', tree: config }, options(known.config))
  const snippets = below(config, 'snippets')
  if (snippets !== undefined) report.options({ ...snippets, name: 'snippets', tree: snippets }, options(known.snippets))
}

/** The configuration that the chart would generate from its values. */
export function chartConfig(config: Tree, gaps: Gap[]): Tree {
  const place: Place = { file: config.file, line: config.line }
  const snippets = below(config, 'snippets')
  reportUnknown(config, gaps)
  /** Texts of the chart itself get the line of the values. */
  const own = (text: string): Tree =>
    relocated(treesOf({ file: place.file, text }, gaps)[0] ?? { ...place, value: [] }, place)
  const pieces: Readonly<Record<string, Tree>> = {
    '@pipelineStages': unescaped(below(snippets, 'pipelineStages')) ?? own(defaultStages),
    '@common': unescaped(below(snippets, 'common')) ?? own(defaultCommon),
    '@extraRelabelConfigs': unescaped(below(snippets, 'extraRelabelConfigs')) ?? { ...place, value: [] },
    '@scrapeJobLabel': flagOf(below(snippets, 'addScrapeJobLabel')) === true ? own(jobLabel) : { ...place, value: [] },
  }
  const text = (tree: Tree | undefined): Tree | undefined =>
    tree === undefined
      ? undefined
      : filled(
          embedded(tree, gaps, { change: (given) => withoutTemplates(withValues(given, config), tree, gaps) }) ?? tree,
          pieces,
        )
  const file = below(config, 'file')
  const isOwnFile = /scrape_configs:\s*\n\s*- /.test(textOf(file) ?? '')
  const whole = file === undefined || !isOwnFile ? undefined : text(file)
  const jobs = text(below(snippets, 'scrapeConfigs')) ?? filled(own(defaultJob), pieces)
  const more = text(below(snippets, 'extraScrapeConfigs'))
  const parts = new Map<string, Tree>([
    ['clients', withoutActions(below(config, 'clients') ?? oldClients(config, text) ?? own(defaultClients), gaps)],
    ['scrape_configs', { ...place, value: [...itemsOf(jobs), ...itemsOf(more)] }],
  ])
  const limits = text(below(snippets, 'extraLimitsConfig'))
  if (isMap(limits)) parts.set('limits_config', limits)
  return whole !== undefined && isMap(whole)
    ? { ...whole, value: new Map([...parts, ...[...whole.value].filter(([, tree]) => tree.value !== null)]) }
    : { ...place, value: parts }
}

/** The client of old versions of the chart, whose address and options are separate values. */
function oldClients(config: Tree, text: (tree: Tree | undefined) => Tree | undefined): Tree | undefined {
  const address = below(config, 'lokiAddress')
  if (address === undefined) return undefined
  const { file, line } = address
  const more = text(below(config, 'snippets', 'extraClientConfigs'))
  const options = isMap(more) ? [...more.value] : []
  return { file, line, value: [{ file, line, value: new Map([['url', address], ...options]) }] }
}

/** Values that some releases of the chart render as templates. Then, actions with only a literal escape the braces of stages. */
export function unescaped(tree: Tree | undefined): Tree | undefined {
  const visit = (each: Tree): Tree => {
    if (isList(each)) return { ...each, value: each.value.map(visit) }
    if (isMap(each)) return { ...each, value: new Map([...each.value].map(([name, item]) => [name, visit(item)])) }
    return typeof each.value === 'string' ? { ...each, value: rendered(each.value) } : each
  }
  return tree && visit(tree)
}

export function relocated(tree: Tree, place: Place): Tree {
  const value = isList(tree)
    ? tree.value.map((item) => relocated(item, place))
    : isMap(tree)
      ? new Map([...tree.value].map(([name, item]) => [name, relocated(item, place)]))
      : tree.value
  return { ...place, value }
}

/** Replaces names of snippets with their content. */
function filled(tree: Tree, pieces: Readonly<Record<string, Tree>>): Tree {
  const pieceOf = (item: Tree): Tree | undefined => {
    const name = textOf(item)
    return name !== undefined && Object.hasOwn(pieces, name) ? pieces[name] : undefined
  }
  if (isList(tree)) {
    return {
      ...tree,
      value: tree.value.flatMap((item) => {
        const piece = pieceOf(item)
        return piece === undefined ? [filled(item, pieces)] : itemsOf(piece)
      }),
    }
  }
  if (isMap(tree)) {
    const entries = [...tree.value].map(([name, item]) => [name, pieceOf(item) ?? filled(item, pieces)] as const)
    return { ...tree, value: new Map(entries) }
  }
  return tree
}

/** Removes template actions from values that the chart renders, such as addresses; each action becomes a gap. */
function withoutActions(tree: Tree, gaps: Gap[]): Tree {
  if (isList(tree)) return { ...tree, value: tree.value.map((item) => withoutActions(item, gaps)) }
  if (isMap(tree))
    return { ...tree, value: new Map([...tree.value].map(([name, item]) => [name, withoutActions(item, gaps)])) }
  const text = textOf(tree)
  if (typeof tree.value !== 'string' || text?.includes('{{') !== true) return tree
  const value = text.replace(/\{\{.*?\}\}/gs, (action) => {
    gaps.push({ file: tree.file, line: tree.line, subject: action, ...unfilled })
    return 'template'
  })
  return { ...tree, value }
}

const unfilled = {
  reason: 'the templates of the chart have not been rendered',
  nearest: 'Convert the output of `helm template`.',
} as const

/** Values of the chart that its file names, and their defaults. */
const defaults: Readonly<Record<string, string>> = { logLevel: 'info', logFormat: 'logfmt', serverPort: '3101' }

/** Replaces references to plain values of `config`. */
function withValues(text: string, config: Tree): string {
  return text.replace(/\{\{-?\s*\.Values\.config\.(\w+)\s*(?:\|\s*quote\s*)?-?\}\}/g, (action, name: string) => {
    return textOf(below(config, name)) ?? defaults[name] ?? action
  })
}

/** Removes template actions from a text; each action that does not come from the chart itself becomes a gap. */
function withoutTemplates(text: string, tree: Tree, gaps: Gap[]): string {
  const known = text
    .replace(
      /\{\{-?\s*if \.Values\.config\.snippets\.addScrapeJobLabel\s*-?\}\}[\s\S]*?\{\{-?\s*end\s*-?\}\}/g,
      '- "@scrapeJobLabel"',
    )
    .replace(
      /\{\{-?\s*with \.Values\.config\.snippets\.extraRelabelConfigs\s*-?\}\}[\s\S]*?\{\{-?\s*end\s*-?\}\}/g,
      '- "@extraRelabelConfigs"',
    )
    .replace(
      /pipeline_stages:(\s*)\{\{-?\s*(?:tpl\s*\(\s*)?toYaml \.Values\.config\.snippets\.pipelineStages[^}]*\}\}/g,
      // Other stages may follow on lines of their own.
      (action, blank: string) => {
        const indent = /nindent (\d+)/.exec(action)?.[1]
        return indent === undefined || !blank.includes('\n')
          ? 'pipeline_stages: "@pipelineStages"'
          : `pipeline_stages:\n${' '.repeat(Number(indent))}- "@pipelineStages"`
      },
    )
    .replace(
      /\{\{-?\s*(?:tpl\s*\(\s*)?toYaml \.Values\.config\.snippets\.(common|extraRelabelConfigs)[^}]*\}\}/g,
      '- "@$1"',
    )
    .replace(/\{\{-?\s*(?:tpl )?\(?\s*(?:toYaml )?\.Values\.config\.(?:clients|positions)[^}]*\}\}/g, '')
  return known
    .split('\n')
    .map((line, index) => {
      // The chart's template syntax quotes the template of a stage.
      const unescaped = line
        .replace(/\{\{\s*`([^`]*)`\s*\}\}/g, '$1')
        .replace(/\{\{\s*"(\{\{|\}\})"\s*\}\}/g, '$1')
        .replace(/\{\{-?\s*printf\s+"((?:[^"\\]|\\.)*)"\s*-?\}\}/g, (_, quoted: string) => unquote(quoted))
      const isWhole = /^\s*\{\{.*\}\}\s*$/.test(unescaped)
      const action = [...unescaped.matchAll(/\{\{.*?\}\}/g)].find(([text]) => isWhole || chartAction.test(text))?.[0]
      if (action === undefined) return unescaped
      gaps.push({
        file: tree.file,
        line: tree.line + index + 1,
        subject: action,
        ...unfilled,
      })
      return isWhole ? '' : unescaped.replaceAll(action, 'template')
    })
    .join('\n')
}

/** Actions of chart templates. Other actions are templates of stages. */
const chartAction = /\.(?:Values|Release|Chart|Capabilities)\b|\b(?:include|toYaml|nindent|tpl)\b/
