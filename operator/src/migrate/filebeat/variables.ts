// Environment variables in options that become literal text: their defaults replace them.

import type { Part, Report } from '../loki/context.ts'
import { isList, isMap, type Tree } from '../loki/tree.ts'

/** Options whose values programs set, where they read variables from the environment. */
const ofPrograms: ReadonlySet<string> = new Set(['fields', 'tags', 'processors'])

/** The part with the defaults of variables in place of the variables, and a row of the report for each. */
export function withDefaults(part: Part, report: Report): Part {
  if (!isMap(part.tree)) return part
  const resolved = (tree: Tree): Tree => {
    if (isList(tree)) return { ...tree, value: tree.value.map(resolved) }
    if (isMap(tree)) return { ...tree, value: new Map([...tree.value].map(([name, item]) => [name, resolved(item)])) }
    if (typeof tree.value !== 'string') return tree
    const value = tree.value.replace(/\$\{(\w+):([^}]*)\}/g, (_, name: string, byDefault: string) => {
      const reason = `the variable has no value here, so its default \`${byDefault}\` applies`
      report.replaced(part, `\${${name}}`, reason, 'Replace it with the actual value.')
      return byDefault
    })
    return { ...tree, value }
  }
  const options = [...part.tree.value].map(([name, item]): [string, Tree] => [
    name,
    ofPrograms.has(name) ? item : resolved(item),
  ])
  return { ...part, tree: { ...part.tree, value: new Map(options) } }
}
