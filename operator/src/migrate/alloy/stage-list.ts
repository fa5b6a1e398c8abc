// Rewrites the stages of `loki.process` in Promtail's form: a list of names with options.

import type { Report } from '../loki/context.ts'
import { isMap, type Tree } from '../loki/tree.ts'
import type { Evaluator } from './evaluate.ts'
import type { Block } from './syntax.ts'

/** Names that differ from Promtail's. */
const names: Readonly<Record<string, string>> = { label_drop: 'labeldrop', label_keep: 'labelallow' }
/** Stages whose options are members of `values`. */
const valued = new Set(['labels', 'static_labels', 'structured_metadata', 'label_drop', 'label_keep'])

/** Alloy's name of a stage. */
export function stageName(name: string): string {
  const own = Object.entries(names).find(([, other]) => other === name)?.[0] ?? name
  return `stage.${own}`
}

export function stageList(block: Block, evaluator: Evaluator, report: Report): Tree {
  const stages = block.blocks.filter(({ name }) => name.startsWith('stage.'))
  return {
    ...evaluator.place(block.line),
    value: stages.map((stage): Tree => {
      const place = evaluator.place(stage.line)
      const name = stage.name.slice('stage.'.length)
      return { ...place, value: new Map([[names[name] ?? name, options(stage, name, evaluator, report)]]) }
    }),
  }
}

function options(stage: Block, name: string, evaluator: Evaluator, report: Report): Tree {
  const place = evaluator.place(stage.line)
  const inner = stage.blocks.filter((block) => block.name.startsWith('stage.'))
  const tree = evaluator.tree(stage, [...new Set(inner.map((block) => block.name))])
  if (!isMap(tree)) return tree
  if (valued.has(name)) {
    const { values, ...others } = Object.fromEntries(tree.value)
    report.options(
      { ...place, name: stage.name, tree: { ...place, value: new Map(Object.entries(others)) } },
      { options: {} },
    )
    return values ?? { ...place, value: new Map() }
  }
  if (inner.length === 0) return tree
  return { ...tree, value: new Map([...tree.value, ['stages', stageList(stage, evaluator, report)]]) }
}
