// Finds the inputs of an Alloy source: follows `targets` through the components that discover, match and relabel them.

import type { Report } from '../loki/context.ts'
import { foundPath, readsPath } from '../loki/file-paths.ts'
import { nodeLabels, nodeRules } from '../loki/nodes.ts'
import { givenSelectors, withAttached } from '../loki/pods.ts'
import { type Rule, ruleOf } from '../loki/relabel.ts'
import { below, isMap, itemsOf, millisecondsOf, type Place, pairsOf, type Tree, textOf, textsOf } from '../loki/tree.ts'
import { ruleBlock, unreadTargets } from './components.ts'
import { type Evaluator, referenceOf } from './evaluate.ts'
import type { PodLogs } from './pod-logs.ts'
import type { Block } from './syntax.ts'

export type Targets = Place & {
  readonly rules: readonly Rule[]
  /** Older files are not read. */
  readonly olderSecs?: number
  /** Whether a component has found the files, so that the path is that of a file. */
  readonly isFound?: true
} & (
    | {
        readonly kind: 'pods'
        readonly selectors: Readonly<Record<string, string>>
        readonly namespaces: readonly string[]
        /** The block `attach_metadata`. */
        readonly attached?: Tree
        /** The resource that selects the pods. */
        readonly podLogs?: Pick<PodLogs, 'name' | 'namespace' | 'selector' | 'facts'>
      }
    | {
        readonly kind: 'files'
        readonly labels: readonly (readonly [string, string, Tree])[]
        /** Whether they are files of a node that the API server names. */
        readonly isOfNodes?: true
      }
    | { readonly kind: 'missing'; readonly subject: string }
  )

/** A component with the evaluator of its file. */
export interface Found {
  readonly block: Block
  readonly evaluator: Evaluator
}

export type Lookup = (id: string) => Found | undefined
/** The groups of the files of targets that match a path; undefined if there are none. */
export type GroupsOf = (path: string, from: string) => readonly Tree[] | undefined

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
  readonly #groupsOf: GroupsOf
  readonly #report: Report

  constructor(lookup: Lookup, groupsOf: GroupsOf, report: Report) {
    this.#lookup = lookup
    this.#groupsOf = groupsOf
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
        const path = {
          ...ruleOf({ ...evaluator.place(block.line), name: 'rule', tree }, this.#report),
          action: foundPath,
        }
        return before.map((targets) => {
          const own = this.#rulesFor(targets, rules)
          const found = targets.isFound === true && readsPath(own) ? [path] : []
          return { ...targets, rules: [...targets.rules, ...found, ...own] }
        })
      }
      case 'local.file_match':
        return this.#matched(found, depth)
      case 'discovery.file':
        return this.#listed(found)
      default:
        // The component itself is reported as a gap.
        return [{ ...missing, subject: block.name }]
    }
  }

  #rulesFor(targets: Targets, rules: readonly Rule[]): readonly Rule[] {
    if (targets.kind === 'files' && targets.isOfNodes === true) return nodeRules(rules, this.#report)
    return targets.kind === 'pods' ? withAttached(rules, targets.attached, this.#report) : rules
  }

  #matched({ block, evaluator }: Found, depth: number): readonly Targets[] {
    const targets = this.read(evaluator.attribute(block, 'path_targets'), depth + 1)
    const seconds = olderSecs(evaluator.tree(block))
    const older = seconds === undefined ? {} : { olderSecs: seconds }
    return targets.map((each) => ({ ...each, ...older, isFound: true as const }))
  }

  /** The targets of files of targets. */
  #listed({ block, evaluator }: Found): readonly Targets[] {
    const files = evaluator.attribute(block, 'files') ?? evaluator.tree(block)
    return textsOf(files).flatMap((path): readonly Targets[] => {
      const groups = this.#groupsOf(path, files.file)
      if (groups === undefined) {
        this.#report.missing(files, `discovery.file: ${path}`, unreadTargets, 'target')
        return [{ file: files.file, line: files.line, kind: 'missing', subject: 'discovery.file', rules: [] }]
      }
      return groups.map((group) => {
        const { file, line } = group
        return { file, line, kind: 'files', labels: pairsOf(below(group, 'labels')), rules: [] }
      })
    })
  }

  #pods({ block, evaluator }: Found): Targets {
    const place = evaluator.place(block.line)
    const tree = evaluator.tree(block)
    const role = textOf(below(tree, 'role')) ?? 'pod'
    if (role === 'node') return { ...place, kind: 'files', labels: nodeLabels(place), rules: [], isOfNodes: true }
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
    const attached = below(tree, 'attach_metadata')
    return { ...place, kind: 'pods', selectors, namespaces: textsOf(names), rules: [], ...(attached && { attached }) }
  }
}
