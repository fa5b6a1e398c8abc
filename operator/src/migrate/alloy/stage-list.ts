// Rewrites the stages of `loki.process` in Promtail's form: a list of names with options.

import type { Report } from '../loki/context.ts'
import { isMap, type Tree, textOf } from '../loki/tree.ts'
import type { Exception } from '../page.ts'
import type { Evaluator } from './evaluate.ts'
import type { Block } from './syntax.ts'

/** Names that differ from Promtail's. */
const names: Readonly<Record<string, string>> = { label_drop: 'labeldrop', label_keep: 'labelallow' }
/** Stages whose options are members of `values`. */
const valued = new Set([
  'labels',
  'static_labels',
  'structured_metadata',
  'structured_metadata_drop',
  'label_drop',
  'label_keep',
])
/** Options beside `values`, which become stages of their own. */
const besides: Readonly<Record<string, string>> = { structured_metadata: 'regex' }

/** Options of these stages that are read elsewhere, or whose default is set. */
const optionsBeside: Readonly<Record<string, Readonly<Record<string, string | Exception>>>> = {
  structured_metadata: { regex: 'a stage of its own' },
  labels: {
    source_type: {
      how: 'the default',
      unless: /^(?!extracted$)/,
      reason: 'the source type is unknown',
      nearest: 'Use `extracted` or `structured_metadata`.',
    },
  },
}

/** Alloy's name of a stage. */
export function stageName(name: string): string {
  const own = Object.entries(names).find(([, other]) => other === name)?.[0] ?? name
  return `stage.${own}`
}

export function stageList(block: Block, evaluator: Evaluator, report: Report): Tree {
  const stages = block.blocks.filter(({ name }) => name.startsWith('stage.'))
  return {
    ...evaluator.place(block.line),
    value: stages.flatMap((stage): readonly Tree[] => {
      const place = evaluator.place(stage.line)
      const name = stage.name.slice('stage.'.length)
      const item = (key: string, tree: Tree): Tree => ({ ...place, value: new Map([[key, tree]]) })
      if (name === 'labels' && textOf(evaluator.attribute(stage, 'source_type')) === 'structured_metadata') {
        return [item('labels: source_type', without(evaluator.tree(stage), 'source_type'))]
      }
      const beside = besides[name]
      const more = beside === undefined ? undefined : evaluator.attribute(stage, beside)
      return [
        item(names[name] ?? name, options(stage, name, evaluator, report)),
        ...(more === undefined || beside === undefined
          ? []
          : [item(`${name}: ${beside}`, { ...place, value: new Map([[beside, more]]) })]),
      ]
    }),
  }
}

const without = (tree: Tree, name: string): Tree =>
  isMap(tree) ? { ...tree, value: new Map([...tree.value].filter(([key]) => key !== name)) } : tree

function options(stage: Block, name: string, evaluator: Evaluator, report: Report): Tree {
  const place = evaluator.place(stage.line)
  const inner = stage.blocks.filter((block) => block.name.startsWith('stage.'))
  const tree = evaluator.tree(stage, [...new Set(inner.map((block) => block.name))])
  if (!isMap(tree)) return tree
  if (valued.has(name)) {
    const { values, ...others } = Object.fromEntries(tree.value)
    report.options(
      { ...place, name: stage.name, tree: { ...place, value: new Map(Object.entries(others)) } },
      { options: {}, itself: optionsBeside[name] ?? {} },
    )
    return values ?? { ...place, value: new Map() }
  }
  // In Alloy, an empty option of `drop` is one that is not set.
  if (name === 'drop') return { ...tree, value: new Map([...tree.value].filter(([, item]) => item.value !== '')) }
  if (inner.length === 0) return tree
  return { ...tree, value: new Map([...tree.value, ['stages', stageList(stage, evaluator, report)]]) }
}
