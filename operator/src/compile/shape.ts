// The structure of resources: problems of a single resource, its `spec` as the other stages read it, and the entries of a Pipeline by
// name.

import { secretMarker } from '@penstock/agent/bundle'
import { findComponent } from '@penstock/agent/config'
import { type ComponentKind, isTable } from '@penstock/agent/schema'
import type { Reason } from '../api/conditions.ts'
import { kindOf } from '../api/kinds.ts'
import { labelOf, type ShapeProblem, shapeProblems } from '../api/shape.ts'
import type { CompileProblem, Table } from './compiled.ts'
import type { CompileReport } from './report.ts'
import type { PathKey, Resource } from './resources.ts'
import type { Scope } from './scope.ts'
import { readUserTree } from './secrets.ts'

/** The structural problem of a Source or Sink; a Pipeline that uses it checks its options again. */
export function sharedProblems(resource: Resource): CompileProblem[] {
  const kind = kindOf(resource.kind)
  if (kind === undefined) return []
  const problem = ({ path, message, help }: ShapeProblem, reason: Reason): CompileProblem => ({
    severity: 'error',
    reason,
    path: labelOf(path),
    message,
    help,
    ...resource.locate(path),
  })
  const { reserved } = readUserTree(resource.content['spec'], ['spec'])
  return [
    ...shapeProblems(kind, resource.content).map((one) => problem(one, 'InvalidConfig')),
    ...reserved.map(({ name, path }) => {
      const message = `\`${name}\` is a reserved name; found it at ${labelOf(path)}`
      const help =
        name === secretMarker ? 'Use `valueFrom` with `secretKeyRef` for the value of a Secret.' : 'Use another name.'
      return problem({ path, message, help }, 'ForbiddenOption')
    }),
  ]
}

/** The `spec` of a resource for all later stages: each field has its schema type, or is absent. */
export function specOf(resource: Resource): unknown {
  const kind = kindOf(resource.kind)
  const problems = kind === undefined ? [] : shapeProblems(kind, resource.content)
  const unreadable = problems.flatMap(({ path, isUnreadable }) => (isUnreadable === true ? labelOf(path) : []))
  return readUserTree(resource.content['spec'], ['spec'], new Set(unreadable)).tree
}

export type List = 'sources' | 'transforms' | 'sinks'
export const kindOfList: Readonly<Record<List, ComponentKind>> = {
  sources: 'source',
  transforms: 'transform',
  sinks: 'sink',
}

export interface Entry {
  readonly name: string
  readonly content: Table
  readonly path: readonly PathKey[]
}

/** The entries of a Pipeline in order, and the list that contains each name. */
export interface Entries extends Readonly<Record<List, readonly Entry[]>> {
  readonly names: ReadonlyMap<string, List>
}

export function entriesOf(scope: Scope, spec: Table, report: CompileReport): Entries {
  const names = new Map<string, List>()
  const [sources, transforms, sinks] = (['sources', 'transforms', 'sinks'] as const).map((list) =>
    entriesIn(scope, spec, list, names, report),
  ) as [Entry[], Entry[], Entry[]]
  return { sources, transforms, sinks, names }
}

function entriesIn(scope: Scope, spec: Table, list: List, names: Map<string, List>, report: CompileReport): Entry[] {
  const items = spec[list]
  const entries: Entry[] = []
  for (const [index, content] of Array.isArray(items) ? items.entries() : []) {
    const path: PathKey[] = ['spec', list, index]
    if (!isTable(content) || typeof content['name'] !== 'string') continue // the structure problem has been reported
    const { name } = content
    const earlier = names.get(name)
    if (earlier !== undefined) {
      const help = `An entry of \`spec.${earlier}\` has the same name; names are unique across sources, transforms and sinks.`
      report.error(scope.pipeline, [...path, 'name'], `The name "${name}" is used twice`, help)
      continue
    }
    names.set(name, list)
    entries.push({ name, content, path })
  }
  return entries
}

/** The name under which a type is declared, because types have aliases. */
export function canonicalType(kind: ComponentKind, type: unknown): string | undefined {
  return typeof type === 'string' ? (findComponent(kind, type)?.type ?? type) : undefined
}
