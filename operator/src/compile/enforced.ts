// Values that the owner of a shared sink enforces (T13): no Pipeline can change them by writing event fields.

import { isSecretPlace } from '@penstock/agent/bundle'
import { capturedFields } from '@penstock/agent/config'
import { aliasesOf, isTable, membersOf, type Schema, schemaBelow } from '@penstock/agent/schema'
import type { Table } from './compiled.ts'
import type { CompileReport } from './report.ts'
import type { PathKey, Resource } from './resources.ts'
import type { Scope } from './scope.ts'

/** A location where enforced options use a captured field. */
export interface Captured {
  readonly resource: Resource
  readonly path: readonly PathKey[]
  readonly field: string
}

/**
 * Enforced values. A Pipeline's programs can change any field of an event, but not the fields captured by the source:
 * templates use those instead, and the namespace is inserted literally.
 */
export function enforcedValues(
  scope: Scope,
  resource: Resource,
  path: readonly PathKey[],
  value: unknown,
  capturing: Captured[],
  report: CompileReport,
): unknown {
  if (scope.isCluster) return value
  if (typeof value === 'string') {
    return value.replace(/\{\{\s*([^}]+?)\s*\}\}/g, (whole, field: string) => {
      const [, name, rest = ''] = /^\.?orchestrator\.([a-z_]+)(.*)$/.exec(field) ?? []
      if (name === 'pod_namespace' && rest === '') return scope.pipeline.namespace
      if (name !== undefined && capturedFields.includes(name)) {
        capturing.push({ resource, path, field })
        const root = scope.options.standalone === true ? '.' : '%vector.'
        return `{{ ${root}orchestrator.${name}${rest} }}`
      }
      const message = `\`enforced\` may only use fields that a source captures; found ${whole}`
      const help = `Programs of the Pipeline can change other fields. The captured fields, below \`orchestrator.\`, are: ${capturedFields.join(', ')}.`
      report.error(resource, path, message, help)
      return whole
    })
  }
  if (Array.isArray(value))
    return value.map((item, index) => enforcedValues(scope, resource, [...path, index], item, capturing, report))
  if (!isTable(value)) return value
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name,
      enforcedValues(scope, resource, [...path, name], member, capturing, report),
    ]),
  )
}

/** A name built from event fields may equal any other name, including an enforced one. */
export function checkEnforcedNames(
  resource: Resource,
  path: readonly PathKey[],
  value: unknown,
  schema: Schema | undefined,
  report: CompileReport,
): void {
  if (schema === undefined || !isTable(value)) return
  for (const [name, member] of Object.entries(value)) {
    if (schema['x-names'] === 'template' && (name.includes('{{') || name.endsWith('*'))) {
      const message = `Names in \`${path.slice(2).join('.')}\` of \`enforced\` must be literal; found ${JSON.stringify(name)}`
      report.error(resource, [...path, name], message, 'Write a literal name for each; values may be templates.')
    }
    checkEnforcedNames(resource, [...path, name], member, schemaBelow(schema, name), report)
  }
}

/** Events of other sources have no pod. */
export function checkCaptured(
  capturing: readonly Captured[],
  sources: Readonly<Record<string, Table>>,
  report: CompileReport,
): void {
  const [other] = Object.entries(sources)
  if (other === undefined) return
  for (const { resource, path, field } of capturing) {
    const message = `\`enforced\` uses {{ ${field} }}, which only pod logs have; "${other[0].split('/')[2]}" is a source of type ${other[1]['type']}`
    report.error(resource, path, message, 'Create a separate Pipeline for the pod logs.')
  }
}

/** Merges `over` into `base`: tables are merged, and everything else is replaced. */
export function merged(base: Table, over: Table): Table {
  const result = new Map(Object.entries(base))
  for (const [name, value] of Object.entries(over)) {
    const below = result.get(name)
    const isWhole = !isTable(below) || !isTable(value) || isSecretPlace(below) || isSecretPlace(value)
    result.set(name, isWhole ? value : merged(below, value))
  }
  return Object.fromEntries(result)
}

/** `base` without options that `over` sets under another name: an alias, or a header in other case. */
export function withoutOthers(base: Table, over: Table, schema: Schema | undefined): Table {
  if (schema === undefined) return base
  const same = (name: string, other: string) => {
    if (schema['x-names'] === 'header') return name.toLowerCase() === other.toLowerCase()
    return canonicalName(schema, name) === canonicalName(schema, other)
  }
  const names = Object.keys(over)
  const kept: Table = {}
  for (const [name, value] of Object.entries(base)) {
    const enforced = names.find((each) => same(each, name))
    if (enforced === undefined) kept[name] = value
    else {
      const below = over[enforced]
      const isJoined = isTable(value) && isTable(below)
      if (enforced === name || isJoined) {
        kept[enforced] = isJoined ? withoutOthers(value, below, schemaBelow(schema, name)) : value
      }
    }
  }
  return kept
}

/** The name under which an option is declared. */
function canonicalName(schema: Schema, name: string): string {
  const members = membersOf(schema)
  if (Object.hasOwn(members, name)) return name
  return Object.keys(members).find((each) => aliasesOf(members[each] as Schema).includes(name)) ?? name
}
