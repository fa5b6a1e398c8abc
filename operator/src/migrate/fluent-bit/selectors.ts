// Which resources a configuration of the fluent-operator selects by their labels.

import { below, isMap, itemsOf, pairsOf, type Tree, textOf, textsOf } from '../loki/tree.ts'

interface Labelled {
  readonly kind: string
  readonly namespace: string | undefined
  readonly tree: Tree
}

/** The selectors of a configuration by the end of the kinds that they select. */
const selectors: Readonly<Record<string, string>> = {
  Input: 'inputSelector',
  Filter: 'filterSelector',
  Output: 'outputSelector',
  MultilineParser: 'multilineParserSelector',
  Parser: 'parserSelector',
}

const isConfig = ({ kind }: Labelled) => /^(?:Cluster)?FluentBitConfig$/.test(kind)

/** Whether the configurations among some resources select one of them. Without a configuration, all count. */
export function isSelected(resource: Labelled, all: readonly Labelled[]): boolean {
  const plain = resource.kind.replace(/^Cluster/, '')
  const selector = Object.hasOwn(selectors, plain) ? selectors[plain] : undefined
  if (selector === undefined) return true
  const isOfCluster = resource.kind.startsWith('Cluster')
  const configs = all.filter(
    (each) =>
      isConfig(each) &&
      each.kind.startsWith('Cluster') === isOfCluster &&
      (isOfCluster || each.namespace === resource.namespace),
  )
  const labels = new Map(pairsOf(below(resource.tree, 'metadata', 'labels')).map(([key, value]) => [key, value]))
  if (configs.length === 0) return labels.get('fluentbit.fluent.io/enabled') !== 'false'
  return configs.some(({ tree }) => matches(below(tree, 'spec', selector), labels))
}

/** Whether labels match a selector. An empty one matches all. */
function matches(selector: Tree | undefined, labels: ReadonlyMap<string, string>): boolean {
  if (!isMap(selector)) return true
  return (
    pairsOf(below(selector, 'matchLabels')).every(([key, value]) => labels.get(key) === value) &&
    itemsOf(below(selector, 'matchExpressions')).every((rule) => meets(rule, labels))
  )
}

function meets(rule: Tree, labels: ReadonlyMap<string, string>): boolean {
  const value = labels.get(textOf(below(rule, 'key')) ?? '')
  const values = below(rule, 'values')
  const isIn = value !== undefined && values !== undefined && textsOf(values).includes(value)
  switch (textOf(below(rule, 'operator'))) {
    case 'In':
      return isIn
    case 'NotIn':
      return !isIn
    case 'Exists':
      return value !== undefined
    default:
      return value === undefined
  }
}
