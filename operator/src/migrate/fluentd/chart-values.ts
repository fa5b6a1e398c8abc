// Values of the charts of the logging-operator: lists of flows and outputs, next to the settings of a Logging.

import { below, isList, isMap, itemsOf, type Tree, textOf } from '../loki/tree.ts'

interface Made {
  readonly kind: string
  readonly name: string
  readonly namespace: string
  readonly tree: Tree
}

const kinds: Readonly<Record<string, string>> = { clusterFlows: 'ClusterFlow', clusterOutputs: 'ClusterOutput' }

/** Whether a text has such lists. */
export const holdsChartValues = (text: string) => /^\s*"?cluster(?:Flows|Outputs)"?:/m.test(text)

/** The resources that the charts make of values. */
export function resourcesOfValues(tree: Tree): readonly Made[] {
  if (!isMap(tree)) return []
  const own = Object.entries(kinds).flatMap(([key, kind]) =>
    itemsOf(below(tree, key)).map(
      (item): Made => ({ kind, name: textOf(below(item, 'name')) ?? key, namespace: '', tree: item }),
    ),
  )
  if (Object.keys(kinds).every((key) => !isList(below(tree, key))))
    return [...tree.value.values()].flatMap(resourcesOfValues)
  return [
    { kind: 'Logging', name: 'logging', namespace: '', tree: { ...tree, value: new Map([['spec', tree]]) } },
    ...own,
  ]
}
