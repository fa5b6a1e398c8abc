// The pods that a flow of the logging-operator selects. The first rule of its list that matches decides. A list of `exclude` rules that ends
// in one `select` rule becomes a selector of the source; any other list becomes a condition.

import { fieldLiteral, textLiteral } from '@penstock/agent/config'
import type { Selector } from '../draft.ts'
import { pattern } from '../fluent-bit/text.ts'
import { below, isMap, itemsOf, pairsOf, type Tree, textsOf } from '../loki/tree.ts'

export interface Selection {
  readonly selector?: Selector | undefined
  /** A condition on an event of the source. */
  readonly condition?: string | undefined
}

interface Rule {
  readonly selects: boolean
  readonly labels: readonly (readonly [string, string])[]
  readonly namespaceLabels: readonly (readonly [string, string])[]
  readonly namespaces: readonly string[]
  readonly expressions: readonly string[]
  readonly hosts: readonly string[]
  readonly containers: readonly string[]
}

const namespaceName = 'kubernetes.io/metadata.name'

/**
 * @param own the namespace of a Flow; empty for a ClusterFlow
 * @param isOfCluster whether the selector may name namespaces
 */
export function selectionOf(spec: Tree, own: string, isOfCluster: boolean): Selection {
  const rules = rulesOf(spec)
  const pods = new Selectors()
  const namespaces = new Selectors()
  if (own !== '') namespaces.labels.push([namespaceName, own])
  const last = rules.at(-1)
  const left = rules.slice(0, -1)
  const isSimple =
    last?.selects === true &&
    last.expressions.length + last.hosts.length + last.containers.length === 0 &&
    left.every((rule) => !rule.selects && isSingle(rule)) &&
    (isOfCluster || rules.every((rule) => rule.namespaces.length + rule.namespaceLabels.length === 0))
  if (!isSimple) return { ...selector(pods, namespaces, []), condition: conditionOf(rules) }
  pods.labels.push(...last.labels)
  namespaces.labels.push(...last.namespaceLabels)
  if (last.namespaces.length > 0) namespaces.add(namespaceName, 'In', last.namespaces)
  for (const { labels, namespaceLabels, namespaces: names } of left) {
    for (const [key, value] of labels) pods.add(key, 'NotIn', [value])
    for (const [key, value] of namespaceLabels) namespaces.add(key, 'NotIn', [value])
    if (names.length > 0) namespaces.add(namespaceName, 'NotIn', names)
  }
  return selector(
    pods,
    namespaces,
    left.flatMap(({ containers }) => containers),
  )
}

class Selectors {
  readonly labels: (readonly [string, string])[] = []
  readonly #expressions: object[] = []

  add(key: string, operator: 'In' | 'NotIn', values: readonly string[]): void {
    this.#expressions.push({ key, operator, values })
  }

  get value(): Selector | undefined {
    if (this.labels.length + this.#expressions.length === 0) return undefined
    return {
      ...(this.labels.length > 0 ? { matchLabels: Object.fromEntries(this.labels) } : {}),
      ...(this.#expressions.length > 0 ? { matchExpressions: this.#expressions } : {}),
    }
  }
}

function selector(pods: Selectors, namespaces: Selectors, excluded: readonly string[]): Selection {
  const value = {
    ...(pods.value === undefined ? {} : { pods: pods.value }),
    ...(namespaces.value === undefined ? {} : { namespaces: namespaces.value }),
    ...(excluded.length === 0 ? {} : { containers: { exclude: [...new Set(excluded)] } }),
  }
  return Object.keys(value).length === 0 ? {} : { selector: value }
}

function rulesOf(spec: Tree): readonly Rule[] {
  const match = itemsOf(below(spec, 'match'))
  if (match.length === 0) {
    const labels = pairsOf(below(spec, 'selectors')).map(([key, value]) => [key, value] as const)
    return [{ selects: true, labels, namespaceLabels: [], namespaces: [], expressions: [], hosts: [], containers: [] }]
  }
  return match.flatMap((item): Rule[] => {
    if (!isMap(item)) return []
    return [...item.value].map(([word, rule]) => {
      const pairs = (name: string) => pairsOf(below(rule, name)).map(([key, value]) => [key, value] as const)
      return {
        selects: word === 'select',
        labels: pairs('labels'),
        namespaceLabels: pairs('namespace_labels'),
        namespaces: textsOf(below(rule, 'namespaces')),
        expressions: textsOf(below(rule, 'namespaces_regex')),
        hosts: textsOf(below(rule, 'hosts')),
        containers: textsOf(below(rule, 'container_names')),
      }
    })
  })
}

/** Whether a rule has exactly one criterion, which a selector can negate. */
function isSingle({ labels, namespaceLabels, namespaces, expressions, hosts, containers }: Rule): boolean {
  if (expressions.length + hosts.length > 0) return false
  const criteria = [
    labels.length,
    namespaceLabels.length,
    Math.min(1, namespaces.length),
    Math.min(1, containers.length),
  ]
  return criteria.reduce((sum, count) => sum + count, 0) === 1
}

/** A pod that matches no rule is not selected. */
function conditionOf(rules: readonly Rule[]): string {
  if (rules.length === 0) return 'false'
  const branches = rules.map((rule) => `if ${testOf(rule)} { ${rule.selects} }`)
  return `${branches.join(' else ')} else { false }`
}

function testOf({ labels, namespaceLabels, namespaces, expressions, hosts, containers }: Rule): string {
  const equal = (path: readonly string[], value: string) =>
    `${fieldLiteral(['orchestrator', ...path])} == ${textLiteral(value)}`
  const oneOf = (name: string, values: readonly string[]) =>
    values.length === 0 ? [] : [`(${values.map((value) => equal([name], value)).join(' || ')})`]
  const fits = (regex: string) =>
    `is_object(parse_grok(string(.orchestrator.pod_namespace) ?? "", ${pattern(regex)}) ?? null)`
  const tests = [
    ...oneOf('pod_namespace', namespaces),
    ...(expressions.length === 0 ? [] : [`(${expressions.map(fits).join(' || ')})`]),
    ...labels.map(([key, value]) => equal(['pod_labels', key], value)),
    ...namespaceLabels.map(([key, value]) => equal(['namespace_labels', key], value)),
    ...oneOf('pod_node_name', hosts),
    ...oneOf('container_name', containers),
  ]
  return tests.length === 0 ? 'true' : tests.join(' && ')
}
