// Tables in places where Filebeat reads lists. It takes such a table for an empty list.

import type { Report } from '../loki/context.ts'
import { isList, isMap, type Tree } from '../loki/tree.ts'

/** Options with lists, and the names above them, if they have another meaning elsewhere. */
const lists: ReadonlyMap<string, readonly string[] | undefined> = new Map([
  ['inputs', ['filebeat']],
  ['prospectors', ['filebeat']],
  ['modules', ['filebeat']],
  ['providers', ['autodiscover']],
  ['config', ['templates']],
  ['fields', ['rename', 'copy_fields', 'replace', 'convert', 'urldecode']],
  ...['templates', 'appenders', 'processors', 'indices', 'pipelines', 'parsers'].map(
    (name) => [name, undefined] as const,
  ),
])

/** Reports the tables in a configuration that stand in the place of lists. */
export function reportTables(tree: Tree, report: Report, above = ''): void {
  if (isList(tree)) for (const item of tree.value) reportTables(item, report, above)
  if (!isMap(tree)) return
  for (const [name, item] of tree.value) {
    const parents = lists.get(name)
    const isListed = lists.has(name) && (parents === undefined || parents.includes(above))
    if (isListed && isMap(item) && item.value.size > 0) {
      const reason = 'Filebeat reads a list here, and ignores a table'
      report.replaced(
        item,
        above === '' ? name : `${above}.${name}`,
        reason,
        'Write `- ` before each item, and convert again.',
      )
    } else if (name !== 'fields' || isListed) reportTables(item, report, name)
  }
}
