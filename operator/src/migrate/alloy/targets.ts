// Finds the inputs of an Alloy source: follows `targets` through the components that discover, match and relabel them.

import type { Report } from '../loki/context.ts'
import { givenSelectors } from '../loki/pods.ts'
import { type Rule, ruleOf } from '../loki/relabel.ts'
import { below, isMap, itemsOf, millisecondsOf, type Place, pairsOf, type Tree, textOf, textsOf } from '../loki/tree.ts'
import { ruleBlock } from './components.ts'
import { type Evaluator, referenceOf } from './evaluate.ts'
import type { PodLogs } from './pod-logs.ts'
import type { Block } from './syntax.ts'

export type Targets = Place & {
  readonly rules: readonly Rule[]
  /** Older files are not read. */
  readonly olderSecs?: number
} & (
    | {
        readonly kind: 'pods'
        readonly selectors: Readonly<Record<string, string>>
        readonly namespaces: readonly string[]
        /** The resource that selects the pods. */
        readonly podLogs?: Pick<PodLogs, 'name' | 'namespace' | 'selector' | 'facts'>
      }
    | {
        readonly kind: 'files'
        readonly labels: readonly (readonly [string, string, Tree])[]
        /** Older files are not read. */
        readonly olderSecs?: number
      }
    | { readonly kind: 'missing'; readonly subject: string }
  )

/** A component with the evaluator of its file. */
export interface Found {
  readonly block: Block
  readonly evaluator: Evaluator
}

export type Lookup = (id: string) => Found | undefined

/** The component of a reference, without the name of the export. */
export function componentOf(reference: string): string {
  return reference.split('.').slice(0, -1).join('.')
}

export function rulesIn({ block, evaluator }: Found, report: Report): readonly Rule[] {
  return block.blocks
    .filter(({ name }) => name === 'rule')
    .map((rule) => {
      const tree = evaluator.tree(rule)
      report.options({ ...evaluator.place(rule.line), name: 'rule', tree }, ruleBlock)
      return ruleOf({ ...evaluator.place(rule.line), name: 'rule', tree }, report)
    })
}

/** The age above which files are not read, in settings or in a group of them. */
export function olderSecs(tree: Tree, ...group: readonly string[]): number | undefined {
  const ms = millisecondsOf(textOf(below(tree, ...group, 'ignore_older_than')))
  return ms === undefined || ms === 0 ? undefined : Math.round(ms / 1000)
}

export class TargetReader {
  readonly #lookup: Lookup
  readonly #report: Report

  constructor(lookup: Lookup, report: Report) {
    this.#lookup = lookup
    this.#report = report
  }

  read(tree: Tree | undefined, depth = 0): readonly Targets[] {
    if (tree === undefined || depth > 20) return []
    const reference = referenceOf(tree)
    if (reference !== undefined) return this.#referred(reference, tree, depth)
    if (isMap(tree)) return [{ file: tree.file, line: tree.line, kind: 'files', labels: pairsOf(tree), rules: [] }]
    return itemsOf(tree).flatMap((item) => this.read(item, depth + 1))
  }

  #referred(reference: string, tree: Tree, depth: number): readonly Targets[] {
    const id = componentOf(reference)
    const found = this.#lookup(id)
    const missing: Targets = { file: tree.file, line: tree.line, kind: 'missing', subject: reference, rules: [] }
    if (found === undefined) {
      this.#report.gap(tree, reference, 'no component has this name', 'Name a component that the files define.')
      return [missing]
    }
    const { block, evaluator } = found
    switch (block.name) {
      case 'discovery.kubernetes':
        return [this.#pods(found)]
      case 'discovery.relabel': {
        const rules = rulesIn(found, this.#report)
        const before = this.read(evaluator.attribute(block, 'targets'), depth + 1)
        return before.map((targets) => ({ ...targets, rules: [...targets.rules, ...rules] }))
      }
      case 'local.file_match':
        return this.#matched(found, depth)
      default:
        // The component itself is reported as a gap.
        return [{ ...missing, subject: block.name }]
    }
  }

  #matched({ block, evaluator }: Found, depth: number): readonly Targets[] {
    const targets = this.read(evaluator.attribute(block, 'path_targets'), depth + 1)
    const seconds = olderSecs(evaluator.tree(block))
    return seconds === undefined ? targets : targets.map((each) => ({ ...each, olderSecs: seconds }))
  }

  #pods({ block, evaluator }: Found): Targets {
    const place = evaluator.place(block.line)
    const tree = evaluator.tree(block)
    const role = textOf(below(tree, 'role')) ?? 'pod'
    if (role !== 'pod') {
      this.#report.gap(
        below(tree, 'role') ?? place,
        `discovery.kubernetes: role ${role}`,
        'Penstock reads logs of pods only',
        'Use the role `pod`.',
      )
      return { ...place, kind: 'missing', subject: `discovery.kubernetes: role ${role}`, rules: [] }
    }
    const blocks = below(tree, 'selectors')
    const selectors = givenSelectors(isMap(blocks) ? [blocks] : itemsOf(blocks), this.#report)
    const names = below(tree, 'namespaces', 'names')
    for (const name of textsOf(names)) this.#report.literal(place, 'discovery.kubernetes: namespaces', name)
    if (textOf(below(tree, 'namespaces', 'own_namespace')) === 'true') {
      this.#report.gap(
        place,
        'discovery.kubernetes: own_namespace',
        'the namespace of Alloy is unknown',
        'Set the namespace of the Pipeline with `-n`.',
      )
    }
    return { ...place, kind: 'pods', selectors, namespaces: textsOf(names), rules: [] }
  }
}
