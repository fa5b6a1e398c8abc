// The options of each component: checked against the rules for tenants, with references replaced by places, and merged with a shared
// sink's options.

import { aliasFinding, findComponent, isSecret, optionsOf } from '@penstock/agent/config'
import { type ComponentKind, isTable, meaningOf, type WalkedValue, walkOptions } from '@penstock/agent/schema'
import { labelOf } from '../api/shape.ts'
import type { ArtifactMode } from './artifact.ts'
import type { Origin, Table } from './compiled.ts'
import { type Captured, checkEnforcedNames, enforcedValues, merged, withoutOthers } from './enforced.ts'
import { isLent, isOfCluster, type Resolved } from './references.ts'
import type { CompileReport } from './report.ts'
import type { Scope } from './scope.ts'
import { type Entry, kindOfList, type List } from './shape.ts'
import type { Substitution } from './substitution.ts'
import {
  amountText,
  capOf,
  fixedOptions,
  identityViolations,
  limitedDefaults,
  optionViolations,
  raisedBy,
  typeViolations,
} from './tenancy.ts'

/** The inputs of checking and completing options, besides an entry. */
export interface OptionsContext {
  readonly scope: Scope
  readonly mode: ArtifactMode
  readonly substitution: Substitution
  readonly report: CompileReport
}

/** One component, with the facts found in its options. */
export interface CheckedComponent {
  /** The type and the options. */
  readonly options: Table
  readonly origin: Origin
  readonly captured: readonly Captured[]
  /** Whether it contains a plain-text secret that its owner does not grant to tenants' Agents. */
  readonly isWithheld: boolean
}

export function componentOf(context: OptionsContext, entry: Entry, resolved: Resolved, list: List): CheckedComponent {
  const { substitution, report } = context
  const { spec, resource } = resolved
  const kind = kindOfList[list]
  const { tenant } = resolved
  const type = spec['type']
  const config = isTable(spec['config']) ? spec['config'] : {}
  const path = [...resolved.path, 'config']
  for (const member of ['type', 'inputs']) {
    if (config[member] === undefined) continue
    const message = `\`${member}\` is not an option of a component`
    report.error(resource, [...path, member], message, 'It belongs beside `config`, not in it.')
  }
  if (typeof type === 'string') judgeWritten(context, resolved, kind, type, config)
  const values = substitution.members(resolved, path, config)
  const captured: Captured[] = []
  const isShared = list === 'sinks' && entry.content['ref'] !== undefined
  const options = isShared ? sharedOptions(context, entry, resolved, values, captured) : values
  if (typeof type === 'string') judgeIdentity(context, entry, resolved, kind, type, values, options)
  const limited =
    tenant && typeof type === 'string' ? limitedDefaults(kind, type, options, context.scope.options) : options
  const { inputs: _, type: __, ...rest } = limited
  return {
    options: { type, ...rest },
    origin: { resource, path },
    captured,
    isWithheld: isOfCluster(resource) && !isLent(resource) && holdsPlainSecret(kind, type, config),
  }
}

/** Checks options as their author wrote them. */
function judgeWritten(
  { scope, mode, report }: OptionsContext,
  { resource, path, tenant }: Resolved,
  kind: ComponentKind,
  type: string,
  config: Table,
): void {
  const below = [...path, 'config']
  const declaration = findComponent(kind, type)
  if (declaration?.aliasNotes?.[type] !== undefined) {
    report.warn(resource, path, [{ path: ['type'], ...aliasFinding(declaration, type) }])
  }
  if (tenant) {
    report.forbid(resource, path, typeViolations(kind, type, mode, scope.options))
    report.forbid(resource, below, optionViolations(kind, type, config, mode, scope.options))
  }
  if (!scope.options.ownMachine) report.warn(resource, below, fixedOptions(kind, type, config, tenant))
}

/**
 * Checks credentials as they will be used: an optional reference to a missing value has removed its option. @param
 * values the options of the owner, before overrides
 */
function judgeIdentity(
  { scope, report }: OptionsContext,
  entry: Entry,
  { resource, path, tenant }: Resolved,
  kind: ComponentKind,
  type: string,
  values: Table,
  options: Table,
): void {
  const found = identityViolations(kind, type, options, scope.options)
  if (tenant) report.forbid(resource, [...path, 'config'], found)
  else if (!scope.isCluster && isTable(entry.content['overrides'])) {
    // The owner of a cluster kind may use the identity of the agent. An override must not introduce that.
    const owners = new Set(identityViolations(kind, type, values, scope.options).map((each) => labelOf(each.path)))
    const begun = found.filter((each) => !owners.has(labelOf(each.path)))
    report.forbid(scope.pipeline, [...entry.path, 'overrides'], begun)
  }
}

/**
 * Options of a shared sink with the Pipeline's permitted changes, and then the values that the owner enforces (T13).
 */
function sharedOptions(
  context: OptionsContext,
  entry: Entry,
  resolved: Resolved,
  values: Table,
  captured: Captured[],
): Table {
  const { scope, report } = context
  const { spec, resource } = resolved
  const overrides = entry.content['overrides']
  const options = isTable(overrides) ? merged(values, overridesOf(context, entry, resolved, overrides)) : values
  const enforced = spec['enforced']
  if (!isTable(enforced)) return options
  const path = ['spec', 'enforced']
  const fixed = enforcedValues(scope, resource, path, enforced, captured, report) as Table
  const declaration = findComponent('sink', String(spec['type']))
  const schema = declaration === undefined ? undefined : optionsOf(declaration).schema
  checkEnforcedNames(resource, path, fixed, schema, report)
  return merged(withoutOthers(options, fixed, schema), fixed)
}

/** A Pipeline's changes to a shared sink, as far as the owner permits them. */
function overridesOf(
  { scope, mode, substitution, report }: OptionsContext,
  entry: Entry,
  { spec, resource }: Resolved,
  overrides: Table,
): Table {
  const path = [...entry.path, 'overrides']
  const allowed = (spec['overridable'] ?? []) as readonly string[]
  for (const [leaf] of leaves(overrides)) {
    const text = leaf.join('.')
    if (allowed.some((each) => text === each || text.startsWith(`${each}.`))) continue
    const help =
      allowed.length === 0 ? 'Its owner lists none in `spec.overridable`.' : `It allows ${allowed.join(', ')}.`
    const message = `\`${text}\` of ${resource.kind} "${resource.name}" cannot be overridden`
    report.error(scope.pipeline, [...path, ...leaf], message, help, 'ForbiddenOption')
  }
  const mine: Resolved = { resource: scope.pipeline, spec: entry.content, path: entry.path, tenant: !scope.isCluster }
  // An option forbidden in a config is also forbidden in an override.
  if (mine.tenant) {
    report.forbid(scope.pipeline, path, optionViolations('sink', String(spec['type']), overrides, mode, scope.options))
  }
  return substitution.members(mine, path, overrides)
}

/** Memory buffers have individual limits, and a common limit for a Pipeline (T11). */
export function checkBuffers(scope: Scope, sinks: Readonly<Record<string, Table>>, report: CompileReport): void {
  if (scope.isCluster || scope.options.ownMachine) return
  let sum = 0
  for (const { type, ...options } of Object.values(sinks)) sum += bufferedEvents(String(type), options)
  const limit = 'pipelineBufferEvents'
  const cap = capOf(limit, scope.options.policy)
  if (sum <= cap) return
  const message = `The memory buffers of a Pipeline may hold at most ${amountText(limit, cap)} events in total (T11); found ${sum}`
  report.error(scope.pipeline, ['spec', 'sinks'], message, raisedBy(limit), 'ForbiddenOption')
}

/** Whether the platform owner of a component is responsible for all its connections. */
export function isOfPlatform(scope: Scope, entry: Entry, { spec, tenant }: Resolved): boolean {
  return (
    !scope.isCluster && !tenant && isOwnersAddress(String(spec['type']), spec['config'], entry.content['overrides'])
  )
}

/** Whether options contain a secret as text: in an option declared as secret, or as credentials in an address. */
function holdsPlainSecret(kind: ComponentKind, type: unknown, config: Table): boolean {
  const declaration = typeof type === 'string' ? findComponent(kind, type) : undefined
  if (declaration === undefined) return false
  let isFound = false
  walkOptions(optionsOf(declaration).schema, config, ({ value, schemas }) => {
    if (isTable(value) && isTable(value['valueFrom'])) return false
    if (typeof value !== 'string') return undefined
    const address = URL.parse(value)
    if (schemas.some(isSecret) || address?.username || address?.password) isFound = true
    return undefined
  })
  return isFound
}

/**
 * Whether all addresses, files and credentials of a shared object come from its owner, without any part from an override or an event. A
 * table that an override sets as a whole may contain anything.
 */
function isOwnersAddress(type: string, config: unknown, overrides: unknown): boolean {
  let isOwners = true
  const reaches = ({ schemas }: WalkedValue) =>
    schemas.length === 0 ||
    schemas.map(meaningOf).some(({ address, file, explicit }) => (address ?? file ?? explicit) !== undefined)
  visitOptions(type, config, (place) => {
    const isTemplate = typeof place.value === 'string' && place.value.includes('{{')
    if (isTemplate && reaches(place)) isOwners = false
    return undefined
  })
  visitOptions(type, overrides, (place) => {
    const isLeaf = !isTable(place.value) && !Array.isArray(place.value)
    if (isLeaf ? reaches(place) : isTable(place.value) && isTable(place.value['valueFrom'])) isOwners = false
    return undefined
  })
  return isOwners
}

/** Events in the memory buffer of a sink, if it sets a limit. */
function bufferedEvents(type: string, options: Table): number {
  let events = 0
  visitOptions(type, options, ({ value, schemas }) => {
    if (typeof value === 'number' && schemas.some((each) => meaningOf(each).limit === 'bufferEvents')) events += value
    return undefined
  })
  return events
}

function visitOptions(type: string, options: unknown, visit: (place: WalkedValue) => boolean | undefined): void {
  for (const kind of ['source', 'sink'] as const) {
    const declaration = findComponent(kind, type)
    if (declaration !== undefined) walkOptions(optionsOf(declaration).schema, options, visit)
  }
}

/** Every value that is not a table, with its path. A `valueFrom` is a value. */
function* leaves(value: Table, path: readonly string[] = []): Generator<[readonly string[], unknown]> {
  for (const [name, member] of Object.entries(value)) {
    if (isTable(member) && member['valueFrom'] === undefined && Object.keys(member).length > 0)
      yield* leaves(member, [...path, name])
    else yield [[...path, name], member]
  }
}
