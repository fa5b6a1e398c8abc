// Finds an Alloy configuration in a file, in `alloy.configMap.content` of chart values, in a ConfigMap, or in values of k8s-monitoring.

import { rendered } from '../chart-templates.ts'
import type { Gap, NamedText } from '../draft.ts'
import { isYamlLike } from '../inner.ts'
import { below, isList, isMap, pairsOf, type Tree, textOf } from '../loki/tree.ts'
import { treesOf } from '../loki/yaml.ts'
import { isMonitoring, monitoringText } from './k8s-monitoring.ts'

/** A text, and the number of lines before it in its file. */
export interface AlloyText extends NamedText {
  readonly above: number
  /** The line for all parts, if the text is generated from chart values. */
  readonly line?: number
}

/** Settings nested deeper than this are not searched. */
const maxDepth = 10

const component =
  /^\s*(?:(?:loki|discovery|prometheus|otelcol|local|remote|pyroscope|faro|mimir|beyla)\.[a-z0-9_.]+\s+"\w+"|logging|livedebugging|declare\s+"\w+"|import\.\w+\s+"\w+")\s*\{/m

/** Whether a text contains an Alloy configuration. */
export function isAlloy(given: NamedText): boolean {
  if (/\.(?:alloy|river)$/i.test(given.file)) return true
  if (/\.(?:toml|conf|json)$/i.test(given.file)) return false
  return textsIn(given, []).length > 0
}

/** All configurations of a file. */
export function textsIn({ file, text }: NamedText, gaps: Gap[]): readonly AlloyText[] {
  if (/\.(?:alloy|river)$/i.test(file)) return [{ file, text, above: 0 }]
  const problems: Gap[] = []
  const trees = treesOf({ file, text }, problems)
  const found = trees.flatMap((tree) => embeddedIn(tree, gaps, 0))
  if (found.length > 0) return found
  const others = problems.length > 0 ? [] : trees.flatMap((tree) => textsBelow(tree, 0))
  if (others.length > 0) return others
  if (component.test(text) && (problems.length > 0 || !trees.some(isMap))) return [{ file, text, above: 0 }]
  gaps.push(...problems)
  gaps.push({
    file,
    line: 1,
    subject: file,
    reason: 'the file has no Alloy components',
    nearest: 'Pass the file that has them, or set `--from` to the agent that the file configures.',
  })
  return []
}

function embeddedIn(tree: Tree, gaps: Gap[], depth: number): readonly AlloyText[] {
  if (!isMap(tree) || depth > 4) return []
  const textAt = (at: Tree | undefined, ofChart = false): AlloyText[] => {
    const given = textOf(at)
    const text = ofChart && given !== undefined ? rendered(given) : given
    return at === undefined || text === undefined || !component.test(text)
      ? []
      : [{ file: at.file, text, above: at.line }]
  }
  const content = [below(tree, 'alloy'), below(tree, 'agent'), tree].flatMap((part) =>
    textAt(below(part, 'configMap', 'content'), true),
  )
  if (content.length > 0) return content
  if (isMonitoring(tree)) {
    return [{ file: tree.file, text: monitoringText(tree, gaps), above: 0, line: tree.line }]
  }
  const kind = textOf(below(tree, 'kind'))
  if (kind === 'ConfigMap' || kind === 'Secret') {
    return [...pairsOf(below(tree, 'data')), ...pairsOf(below(tree, 'stringData'))].flatMap(([, , inner]) =>
      textAt(inner),
    )
  }
  const inner = [
    below(tree, 'alloy'),
    below(tree, 'grafana-agent'),
    below(tree, 'spec', 'values'),
    below(tree, 'spec', 'source', 'helm', 'valuesObject'),
    ...pairsOf(tree).flatMap(([name, , part]) => (/^alloy-/.test(name) ? [part] : [])),
  ]
  return inner.flatMap((part) => (part === undefined ? [] : embeddedIn(part, gaps, depth + 1)))
}

/** Configurations in texts of any other setting, such as `configs` of a Compose file or values of an own chart. */
function textsBelow(tree: Tree, depth: number): readonly AlloyText[] {
  if (depth > maxDepth) return []
  if (isList(tree)) return tree.value.flatMap((item) => textsBelow(item, depth + 1))
  if (isMap(tree)) return [...tree.value.values()].flatMap((item) => textsBelow(item, depth + 1))
  const given = textOf(tree)
  if (given === undefined || isYamlLike(given) || !component.test(given)) return []
  return [{ file: tree.file, text: rendered(given), above: tree.line }]
}
