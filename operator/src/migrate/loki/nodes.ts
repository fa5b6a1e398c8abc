// Targets of discovery with the role `node`: files of the own node, whose path rules set.

import { none } from '../page.ts'
import type { Report } from './context.ts'
import { isNodeVariable } from './fields.ts'
import type { Rule } from './relabel.ts'
import type { Place, Tree } from './tree.ts'

const meta = '__meta_kubernetes_'
const nodeName = `${meta}node_name`
const variable = '$'.concat('{NODE_NAME}')

/** The labels of the own node, as discovery sets them. */
export function nodeLabels({ file, line }: Place): readonly (readonly [string, string, Tree])[] {
  const value: Tree = { file, line, value: variable }
  return [nodeName, 'instance'].map((name) => [name, variable, value] as const)
}

/** Rules for files of the own node: without those that choose it, and those that read other data of it, which become gaps. */
export function nodeRules(rules: readonly Rule[], report: Report): readonly Rule[] {
  return rules.filter((rule) => {
    const { action, sources, target, regex } = rule
    if (target === '__host__' || sources.includes('__host__')) return false
    if (action === 'keep' && sources.length === 1 && sources[0] === nodeName && isNodeVariable(regex)) return false
    const isMap = action === 'labelmap' && /^\^?\(?(?:__)?meta|^\.[*+]/.test(regex.replace(/^\(\?:/, ''))
    const unknown = sources.find((name) => name.startsWith(meta) && name !== nodeName) ?? (isMap ? regex : undefined)
    if (unknown === undefined) return true
    const reason = 'a source of files does not have the labels of the node, so the rule is left out'
    report.missing(rule, `relabel rule on ${unknown}`, none('', reason, 'Set the label in the program.'), 'label')
    return false
  })
}
