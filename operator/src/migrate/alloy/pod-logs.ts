// Converts PodLogs, the resources that `loki.source.podlogs` watches in the cluster. A PodLogs resource selects pods, and has rules for their
// labels. A resource in the files of a configuration becomes a source with a selector.

import { type LabelSelector, selects } from '../../api/selector.ts'
import type { NamedText, Selector } from '../draft.ts'
import type { Report } from '../loki/context.ts'
import { type Rule, ruleOf } from '../loki/relabel.ts'
import { below, isMap, itemsOf, type Place, pairsOf, type Tree, textOf } from '../loki/tree.ts'
import { treesOf } from '../loki/yaml.ts'

export interface PodLogs extends Place {
  readonly name: string
  readonly namespace: string
  readonly labels: Readonly<Record<string, string>>
  readonly selector: Selector | undefined
  readonly rules: readonly Rule[]
  /** Labels that the rules may read and that are the same for all pods. */
  readonly facts: readonly (readonly [string, string, Tree])[]
}

/** Whether a text contains PodLogs. */
function holdsPodLogs({ file, text }: NamedText): boolean {
  return /\.(?:ya?ml|json)$/i.test(file) && /^\s*["']?kind["']?:\s*["']?PodLogs(?:List)?["']?,?\s*$/m.test(text)
}

const names: Readonly<Record<string, string>> = {
  sourceLabels: 'source_labels',
  targetLabel: 'target_label',
}

/** Labels with which Alloy finds the container of a target. Rules may read them. */
const ofContainer: Readonly<Record<string, string>> = {
  __pod_namespace__: '__meta_kubernetes_namespace',
  __pod_name__: '__meta_kubernetes_pod_name',
  __pod_container_name__: '__meta_kubernetes_pod_container_name',
  __pod_uid__: '__meta_kubernetes_pod_uid',
}

export function podLogsIn(file: NamedText, report: Report): readonly PodLogs[] {
  if (!holdsPodLogs(file)) return []
  const found = (tree: Tree): readonly PodLogs[] => {
    const kind = textOf(below(tree, 'kind'))
    if (kind === 'List' || kind === 'PodLogsList') return itemsOf(below(tree, 'items')).flatMap(found)
    return kind === 'PodLogs' ? [podLogsOf(tree, report)] : []
  }
  return treesOf(file, []).flatMap(found)
}

const meta = '__meta_kubernetes_podlogs_'
const safe = (key: string) => key.replace(/[^a-zA-Z0-9_]/g, '_')

function podLogsOf(tree: Tree, report: Report): PodLogs {
  const { file, line } = tree
  const name = textOf(below(tree, 'metadata', 'name')) ?? 'podlogs'
  const namespace = textOf(below(tree, 'metadata', 'namespace')) ?? 'default'
  const spec = below(tree, 'spec')
  for (const [key, , at] of pairsOf(spec)) {
    if (['selector', 'namespaceSelector', 'relabelings'].includes(key)) continue
    const reason = `the option \`${key}\` has no counterpart`
    report.gap(at, `PodLogs ${name}: ${key}`, reason, 'The Pipeline behaves as if the option were not set.')
  }
  const rules = itemsOf(below(spec, 'relabelings')).map((rule) => {
    const options = (isMap(rule) ? [...rule.value] : []).map(([key, item]) => [names[key] ?? key, item] as const)
    const at = { file: rule.file, line: rule.line }
    const made = ruleOf({ ...at, name: 'relabelings', tree: { ...at, value: new Map(options) } }, report)
    const sources = made.sources.map((label) =>
      Object.hasOwn(ofContainer, label) ? (ofContainer[label] ?? label) : label,
    )
    return { ...made, sources }
  })
  const pods = selectorIn(below(spec, 'selector'))
  const namespaces = selectorIn(below(spec, 'namespaceSelector'))
  const labels = pairsOf(below(tree, 'metadata', 'labels'))
  const annotations = pairsOf(below(tree, 'metadata', 'annotations'))
  const family = (kind: string, pairs: typeof labels) =>
    pairs.flatMap(([key, value, at]) => [
      [`${meta}${kind}_${safe(key)}`, value, at] as const,
      [`${meta}${kind}present_${safe(key)}`, 'true', at] as const,
    ])
  const facts = [
    [`${meta}namespace`, namespace, tree] as const,
    [`${meta}name`, name, tree] as const,
    ...family('label', labels),
    ...family('annotation', annotations),
  ]
  const read = new Set(rules.flatMap(({ sources }) => sources))
  const isMapped = rules.some(({ action, regex }) => action === 'labelmap' && regex.includes('podlogs'))
  return {
    file,
    line,
    name,
    namespace,
    labels: Object.fromEntries(labels.map(([key, value]) => [key, value])),
    selector:
      pods === undefined && namespaces === undefined
        ? undefined
        : { ...(pods && { pods }), ...(namespaces && { namespaces }) },
    rules,
    facts: facts.filter(([fact]) => isMapped || read.has(fact)),
  }
}

/** Reads a label selector from a resource; undefined if it selects everything. */
function selectorIn(tree: Tree | undefined): LabelSelector | undefined {
  const labels = pairsOf(below(tree, 'matchLabels'))
  const expressions = itemsOf(below(tree, 'matchExpressions'))
  if (labels.length + expressions.length === 0) return undefined
  return {
    ...(labels.length > 0 && { matchLabels: Object.fromEntries(labels.map(([key, value]) => [key, value])) }),
    ...(expressions.length > 0 && { matchExpressions: expressions.map(expressionIn) }),
  }
}

type Expression = NonNullable<LabelSelector['matchExpressions']>[number]

function expressionIn(tree: Tree): Expression {
  const values = itemsOf(below(tree, 'values')).map((item) => textOf(item) ?? '')
  return {
    key: textOf(below(tree, 'key')) ?? '',
    operator: (textOf(below(tree, 'operator')) ?? 'In') as Expression['operator'],
    ...(values.length > 0 && { values }),
  }
}

/** The PodLogs that match the blocks `selector` and `namespace_selector` of a component. */
export function chosenBy(component: Tree, all: readonly PodLogs[], report: Report, name: string): readonly PodLogs[] {
  const own = blockSelector(below(component, 'selector'))
  const ofNamespaces = blockSelector(below(component, 'namespace_selector'))
  const keys = [
    ...Object.keys(ofNamespaces.matchLabels ?? {}),
    ...(ofNamespaces.matchExpressions ?? []).map(({ key }) => key),
  ]
  const known = 'kubernetes.io/metadata.name'
  const unknown = keys.find((key) => key !== known)
  if (unknown !== undefined) {
    const place = below(component, 'namespace_selector') ?? component
    const reason = `the label \`${unknown}\` of namespaces is not known here, so the PodLogs of all namespaces are converted`
    report.gap(place, `${name}: namespace_selector`, reason, 'Convert only the PodLogs of these namespaces.')
  }
  return all.filter(
    ({ labels, namespace }) =>
      selects(own, labels) && (unknown !== undefined || selects(ofNamespaces, { [known]: namespace })),
  )
}

/** Reads a selector from a block of Alloy. An empty block selects everything. */
function blockSelector(tree: Tree | undefined): LabelSelector {
  const blocks = below(tree, 'match_expression')
  const expressions = blocks === undefined || isMap(blocks) ? [blocks].filter(isMap) : itemsOf(blocks)
  return {
    matchLabels: Object.fromEntries(pairsOf(below(tree, 'match_labels')).map(([key, value]) => [key, value])),
    matchExpressions: expressions.map(expressionIn),
  }
}
