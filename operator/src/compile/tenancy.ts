// Limits for authors of namespaced resources: nothing may access the node, the agent's identity or another tenant. Each
// rule has a number, T3 to T12, which its messages contain. The declaration of an option states its meaning: a path, a
// secret, an address, a program.

import { isIP } from 'node:net'
import { components, findComponent, Networks, optionsOf, reachingCalls, reachText } from '@penstock/agent/config'
import type { ProgramDiagnostic } from '@penstock/agent/errors'
import {
  type AnyDeclaration,
  authoritiesOf,
  type ComponentKind,
  canonicalPatterns,
  declaredMembers,
  implicitIdentities,
  isFileUrl,
  isTable,
  type LimitName,
  limits,
  matchesPath,
  maxBudget,
  meaningOf,
  namesFile,
  operatorTreatment,
  type ProgramBudget,
  pathOf,
  type Schema,
  variantsFor,
  type WalkedValue,
  walkOptions,
} from '@penstock/agent/schema'
import { metadataNetworks } from '../api/networks.ts'
import { bytesText, limitOf } from '../api/quantity.ts'
import type { TenantPolicySpec } from '../api/tenant-policy.ts'
import type { ArtifactMode } from './artifact.ts'
import type { PathKey } from './resources.ts'
import { holdsPlaceholder, isPlaceholder } from './secrets.ts'

export interface TenancyViolation {
  /** Relative to the options of the component; `type` is beside them. */
  readonly path: readonly PathKey[]
  readonly message: string
  readonly help?: string | undefined
  /** For a program: the forbidden call and its position. */
  readonly diagnostic?: ProgramDiagnostic | undefined
}

export interface TenancyOptions {
  /** True on a user's own machine: the rules that protect a shared node do not apply there. */
  readonly ownMachine: boolean
  readonly policy?: TenantPolicySpec | undefined
  /** Addresses of the API server. */
  readonly apiHosts?: readonly string[] | undefined
}

/**
 * Networks that tenants' endpoints may never be in, whatever a policy says: the machine, and the metadata networks. IPv4 networks include
 * the IPv6 addresses that embed them.
 */
export const deniedCidrs = [
  '0.0.0.0/8',
  '127.0.0.0/8',
  '::/128',
  '::1/128',
  ...metadataNetworks.v4,
  ...metadataNetworks.v6,
]

const notHere = 'is not allowed in a namespaced resource'

/** Whether a type may be used, and where (T9). */
export function typeViolations(
  kind: ComponentKind,
  type: string,
  mode: ArtifactMode,
  options: TenancyOptions,
): TenancyViolation[] {
  const declaration = findComponent(kind, type)
  // The option check reports an unknown type, with suggestions.
  if (options.ownMachine || declaration === undefined || kind === 'transform') return []
  const path = ['type']
  const own = `\`penstock run\` and \`penstock lint --own-machine\` allow it on your own machine.`
  const files = requiredFiles(optionsOf(declaration).schema)
  if (declaration.reaches === 'agent' || files.includes('any')) {
    const help =
      kind === 'source' ? `It reads the node or the agent; ${own}` : `It writes to the node or the agent; ${own}`
    return [{ path, message: `Type \`${type}\` ${notHere} (T9)`, help }]
  }
  if (files.includes('sidecar volume')) {
    if (mode === 'Sidecar') return []
    return [
      {
        path,
        message: `Type \`${type}\` is allowed with \`spec.mode: Sidecar\` alone in a namespaced resource (T9)`,
        help: `Elsewhere it reads the node; ${own}`,
      },
    ]
  }
  const { policy } = options
  if (kind === 'source') {
    const allowed = policy?.allowedSources ?? ['orchestrator_logs']
    if (!isListed(kind, type, allowed)) {
      const help = `Allowed are ${allowed.join(', ')}; a TenantPolicy may allow more.`
      return [{ path, message: `Type \`${type}\` of sources is not allowed in this namespace (T9)`, help }]
    }
    if (mode === 'Node' && runsOn(type) === 'aggregator') {
      const help = 'Set `spec.mode` to Aggregator, or omit it.'
      return [{ path, message: `Type \`${type}\` cannot run on node agents (T9)`, help }]
    }
    return []
  }
  const allowed = policy?.allowedSinks ?? ['*']
  if (isListed(kind, type, allowed)) return []
  const help = `The TenantPolicy allows ${allowed.join(', ') || 'none'}.`
  return [{ path, message: `Type \`${type}\` of sinks is not allowed in this namespace (T9)`, help }]
}

/** The agents that run a source type, by its declaration; undefined: any. */
export function runsOn(type: string): 'node' | 'aggregator' | undefined {
  const declaration = findComponent('source', type)
  return declaration?.kind === 'source' ? declaration.runsOn : undefined
}

/** Location of the files that a component needs. */
function requiredFiles(schema: Schema): ('any' | 'sidecar volume')[] {
  const required = (schema['required'] ?? []) as readonly string[]
  return declaredMembers(schema, {}).flatMap(({ name, schema: member }) => {
    if (!required.includes(name)) return []
    const { file } = meaningOf((member['items'] ?? member) as Schema)
    if (file === undefined || file.inline !== undefined) return []
    return [file.within === 'sidecar volume' ? 'sidecar volume' : 'any']
  })
}

function isListed(kind: ComponentKind, type: string, allowed: readonly string[]): boolean {
  const canonical = (name: string) => findComponent(kind, name)?.type ?? name
  return allowed.some((name) => name === '*' || canonical(name) === canonical(type))
}

/** The problems of a component's options as its author wrote them, including `valueFrom` objects. */
export function optionViolations(
  kind: ComponentKind,
  type: string,
  given: Readonly<Record<string, unknown>>,
  mode: ArtifactMode,
  options: TenancyOptions,
): TenancyViolation[] {
  const declaration = findComponent(kind, type)
  if (declaration === undefined) return []
  const violations: TenancyViolation[] = []
  const { schema } = optionsOf(declaration)
  const denied = deniedPatterns(declaration, options.policy)
  const visit = (place: WalkedValue): boolean => {
    const meanings = place.schemas.map(meaningOf)
    const owned = ownerViolation(place, meanings, options)
    if (owned !== undefined) {
      violations.push(owned)
      return false
    }
    if (options.ownMachine) return true
    for (const { pattern, path } of denied) {
      if (place.value === undefined || !matchesPath(place.canonical, path)) continue
      const name = path.join('.')
      const message = `The TenantPolicy forbids \`${name}\` (denyOptions: ${pattern})`
      violations.push({ path: place.path, message })
    }
    const isWholeReference = isReference(place.value)
    if (isWholeReference || (typeof place.value === 'string' && holdsPlaceholder(place.value))) {
      // The final value is unknown here, and an agent accepts no file names from Secrets.
      if (meanings.some(({ file }) => file !== undefined && file.inline === undefined)) {
        const message = `\`${lastName(place.path)}\` must be literal in a namespaced resource (T4), because it names files`
        violations.push({ path: place.path, message, help: 'Replace the reference with the text itself.' })
        return false
      }
      // The operator checks the calls of a program, so the text must be known here.
      if (meanings.some(({ program }) => program !== undefined)) {
        const message = `\`${lastName(place.path)}\` must be literal in a namespaced resource (T6), because it is a program`
        violations.push({ path: place.path, message, help: 'Write the program into the resource, without references.' })
        return false
      }
      if (isWholeReference) return false
    }
    if (typeof place.value === 'string') textViolations(place, place.value, meanings, mode, options, violations)
    else if (typeof place.value === 'number') numberViolations(place, place.value, meanings, options, violations)
    return true
  }
  walkOptions(schema, given, visit, isReference)
  return violations
}

/** Options that only affect a standalone agent, and have no effect here. */
export function fixedOptions(
  kind: ComponentKind,
  type: string,
  given: Readonly<Record<string, unknown>>,
  isTenants: boolean,
): TenancyViolation[] {
  const declaration = findComponent(kind, type)
  if (declaration === undefined) return []
  const found: TenancyViolation[] = []
  walkOptions(optionsOf(declaration).schema, given, ({ path, value, schemas }) => {
    const isFixed = schemas.map(meaningOf).some((meaning) => {
      const { namespaced, cluster } = operatorTreatment(meaning)
      return (isTenants ? namespaced : cluster) === 'fixed'
    })
    if (!isFixed || value === undefined) return undefined
    const message = `\`${lastName(path)}\` has no effect here, because it applies to the whole agent, which several Pipelines share`
    found.push({ path, message, help: 'Omit it. It only affects an agent without the operator.' })
    return false
  })
  return found
}

/** Options that determine the origin of a component's credentials, with references replaced (T5). */
export function identityViolations(
  kind: ComponentKind,
  type: string,
  values: Readonly<Record<string, unknown>>,
  options: TenancyOptions,
): TenancyViolation[] {
  const declaration = findComponent(kind, type)
  if (declaration === undefined || options.ownMachine || options.policy?.implicitCredentials === 'Allow') return []
  return implicitIdentities(optionsOf(declaration).schema, values).map((path) => ({
    path: path.length > 0 && isTable(values[path[0] as string]) ? path : [],
    message: `${path.length === 0 ? `Type \`${type}\`` : `\`${pathOf(path)}\` of type \`${type}\``} needs explicit credentials in a namespaced resource (T5)`,
    help: 'Use keys from an existing Secret; without them the identity of the agent or its node would be used.',
  }))
}

type Meanings = readonly ReturnType<typeof meaningOf>[]

function lastName(path: readonly PathKey[]): string {
  return String(path.findLast((key) => typeof key === 'string') ?? 'options')
}

// --- T3: the logs of other namespaces ---

function ownerViolation(
  { path, value }: WalkedValue,
  meanings: Meanings,
  options: TenancyOptions,
): TenancyViolation | undefined {
  const owner = meanings.find((meaning) => meaning.owner !== undefined)?.owner
  if (owner === undefined || value === undefined || (options.ownMachine && owner !== 'operator')) return undefined
  const help = 'The operator sets it for the Pipeline, which only reads its own namespace.'
  return { path, message: `\`${lastName(path)}\` ${notHere} (T3)`, help }
}

function textViolations(
  { path, schemas }: WalkedValue,
  text: string,
  meanings: Meanings,
  mode: ArtifactMode,
  options: TenancyOptions,
  violations: TenancyViolation[],
): void {
  const name = lastName(path)
  const program = meanings.some((meaning) => meaning.program !== undefined)
  if (program) violations.push(...callViolations(text, path))
  // `${NAME}` would stay unchanged, which its author hardly intends. Programs may contain any text.
  const variable = program ? null : /\$\{[A-Z_][A-Z0-9_]*(:?[-?][^}]*)?\}/.exec(text)
  if (variable !== null) {
    const help = 'Resources cannot read the environment of the agent; use a Secret, or `fieldRef`.'
    violations.push({ path, message: `${variable[0]} ${notHere} (T6)`, help })
  }
  if (schemas.length === 0 || isPlaceholder(text)) return
  const within = meanings.find(({ file }) => file?.within !== undefined)?.file?.within
  if (within === 'pod logs') {
    if (text.startsWith('/') || text.split('/').includes('..') || isFileUrl(text)) {
      const message = `An absolute path in \`${name}\` ${notHere} (T3)`
      violations.push({ path, message, help: 'Begin it with `**/`.' })
    }
  } else if (!(within === 'sidecar volume' && mode === 'Sidecar') && namesFile(meanings, text)) {
    violations.push({
      path,
      message: `\`${name}\` must not name a file in a namespaced resource (T4)`,
      help: 'Provide its content: with `valueFrom`, with SECRET[alias.key], or inline.',
    })
  }
  for (const { address } of meanings) {
    if (address === undefined) continue
    for (const { host } of authoritiesOf(address, text)) {
      const reason = refusedHost(host, options, address.part === true)
      if (reason === undefined) continue
      const message = `\`${name}\`: host "${host}" is not allowed in a namespaced resource (T7)`
      violations.push({ path, message, help: reason })
    }
  }
}

// --- T3, T10, T11: the limits of a component ---

function numberViolations(
  { path }: WalkedValue,
  found: number,
  meanings: Meanings,
  options: TenancyOptions,
  violations: TenancyViolation[],
): void {
  const name = lastName(path)
  for (const { limit, tenantMinimum } of meanings) {
    if (tenantMinimum !== undefined && found < tenantMinimum) {
      const message = `\`${name}\` must be ${tenantMinimum} or more in a namespaced resource (T3); found ${found}`
      violations.push({ path, message })
    }
    if (limit === undefined) continue
    const cap = capOf(limit, options.policy)
    if (found <= cap) continue
    const message = `\`${name}\` must be ${amountText(limit, cap)} or less in a namespaced resource (${ruleOf(limit)}); found ${found}`
    violations.push({ path, message, help: raisedBy(limit) })
  }
}

/** Options with the namespace's limits replacing higher defaults: a default is neither a violation nor a way around a limit. */
export function limitedDefaults(
  kind: ComponentKind,
  type: string,
  given: Readonly<Record<string, unknown>>,
  options: TenancyOptions,
): Readonly<Record<string, unknown>> {
  const declaration = findComponent(kind, type)
  // The limits of a namespace without a policy are above all defaults.
  if (declaration === undefined || options.ownMachine || options.policy === undefined) return given
  return withLimits(optionsOf(declaration).schema, given, options.policy)
}

function withLimits(
  schema: Schema,
  given: Readonly<Record<string, unknown>>,
  policy: TenantPolicySpec,
): Readonly<Record<string, unknown>> {
  const set: Record<string, unknown> = {}
  for (const variant of variantsFor(schema, given)) {
    for (const { name, schema: member, value } of declaredMembers(variant, given)) {
      const { default: standard, minimum } = member as { readonly default?: unknown; readonly minimum?: number }
      const { limit } = meaningOf(member)
      if (value === undefined && limit !== undefined && typeof standard === 'number') {
        const cap = Math.max(Math.floor(capOf(limit, policy)), minimum ?? 0)
        if (standard > cap) set[name] = cap
        continue
      }
      const table = value ?? standard
      if (!isTable(table) || isReference(table)) continue
      const inner = withLimits(member, table, policy)
      if (inner !== table) set[name] = inner
    }
  }
  return Object.keys(set).length === 0 ? given : { ...given, ...set }
}

/** The limit for the namespace. */
export function capOf(limit: LimitName, policy: TenantPolicySpec | undefined): number {
  const { cap, field } = limits[limit]
  return limitOf(field === undefined ? policy?.limits?.[limit] : policy?.[field]) ?? cap
}

/** A policy's budget of programs; undefined if it keeps the default. */
export function programBudgetOf(policy: TenantPolicySpec | undefined): Partial<ProgramBudget> | undefined {
  const turns = policy?.programBudget?.turnsPerEvent
  const bytes = limitOf(policy?.programBudget?.bytesPerEvent)
  if (turns === undefined && bytes === undefined) return undefined
  return {
    ...(turns === undefined ? {} : { turns }),
    ...(bytes === undefined ? {} : { bytes: Math.min(Math.floor(bytes), maxBudget.bytes) }),
  }
}

export function raisedBy(limit: LimitName): string {
  return `A TenantPolicy may set another limit by \`spec.${limits[limit].field ?? `limits.${limit}`}\`.`
}

export function amountText(limit: LimitName, amount: number): string {
  return limits[limit].unit === 'bytes' ? bytesText(amount) : String(amount)
}

const ruleOf = (limit: LimitName): string => (limit === 'readBytes' ? 'T3' : limit === 'bufferBytes' ? 'T10' : 'T11')

// --- Rules of a TenantPolicy ---

function deniedPatterns(
  declaration: AnyDeclaration,
  policy: TenantPolicySpec | undefined,
): { readonly pattern: string; readonly path: readonly string[] }[] {
  return (policy?.denyOptions ?? []).flatMap((pattern) => {
    const [list, name = '', ...rest] = pattern.split('.')
    if (list !== `${declaration.kind}s` || rest.length === 0) return []
    if (name !== '*' && findComponent(declaration.kind, name)?.type !== declaration.type) return []
    const seen = new Set<string>()
    return canonicalPatterns(optionsOf(declaration).schema, rest).flatMap((path) => {
      const isNew = !seen.has(path.join('.'))
      seen.add(path.join('.'))
      return isNew ? [{ pattern, path }] : []
    })
  })
}

/** Entries of a TenantPolicy that cannot match any component or option, with the problem of each. */
export function policyWarnings({
  denyOptions = [],
  allowedSinks = [],
  allowedSources = [],
}: TenantPolicySpec): string[] {
  const warnings: string[] = []
  for (const [index, pattern] of denyOptions.entries()) {
    const [list = '', name = '', ...rest] = pattern.split('.')
    const matching = components.filter(
      (each) => `${each.kind}s` === list && (name === '*' || findComponent(each.kind, name)?.type === each.type),
    )
    if (rest.length > 0 && matching.some((each) => canonicalPatterns(optionsOf(each).schema, rest).length > 0)) continue
    warnings.push(
      `spec.denyOptions[${index}]: "${pattern}" matches no option; expected a path such as sinks.*.proxy or sinks.http.tls.ca_file`,
    )
  }
  for (const [field, kind, types] of [
    ['allowedSources', 'source', allowedSources],
    ['allowedSinks', 'sink', allowedSinks],
  ] as const) {
    for (const [index, type] of types.entries()) {
      if (type === '*' || findComponent(kind, type) !== undefined) continue
      warnings.push(`spec.${field}[${index}]: "${type}" is not a type of ${kind}s`)
    }
  }
  return warnings
}

function isReference(value: unknown): boolean {
  return isTable(value) && isTable(value['valueFrom'])
}

// --- T4, T6: calls that access more than the event ---

/** Calls in a program that its author may not use. */
export function callViolations(source: string, path: readonly PathKey[]): TenancyViolation[] {
  const violations: TenancyViolation[] = []
  for (const { name, offset, reaches, parameter } of reachingCalls(source)) {
    const before = source.slice(0, offset)
    const line = before.split('\n').length
    const column = offset - before.lastIndexOf('\n')
    const isFile = reaches === 'file'
    const message = isFile ? `\`${parameter}\` of \`${name}\` ${notHere} (T4)` : `\`${name}\` ${notHere} (T6)`
    violations.push({
      path,
      message: `line ${line} col ${column}: E-TENANT ${message}`,
      help: isFile
        ? 'It names a file of the agent. Omit the argument, or use another function.'
        : `It reaches ${reachText[reaches]}.`,
      diagnostic: { code: 'E-TENANT', message, position: { line, column } },
    })
  }
  return violations
}

// --- T7: addresses of the node and the control plane ---

function refusedHost(host: string, options: TenancyOptions, isPart: boolean): string | undefined {
  if (host.includes('{{')) return undefined // judged when the agent connects
  if (host === 'localhost' || host.endsWith('.localhost')) return 'It is the machine of the agent.'
  const control = ['kubernetes', 'kubernetes.default', ...(options.apiHosts ?? [])]
  if (control.includes(host) || host === 'kubernetes.default.svc' || host.startsWith('kubernetes.default.svc.')) {
    return 'It is the API server.'
  }
  const egress = options.policy?.egress
  if (isIP(host) !== 0) {
    if (inNetworks(host, deniedCidrs))
      return 'It is in a network that is always denied: link-local, loopback, or a service of the cloud.'
    const denied = egress?.denyCIDRs?.find((network) => inNetworks(host, [network]))
    if (denied !== undefined) return `The TenantPolicy denies the network ${denied} (egress.denyCIDRs).`
  }
  const allowed = isPart ? [] : (egress?.allowHosts ?? [])
  const isAllowed = allowed.some((each) => each === host || (each.startsWith('*.') && host.endsWith(each.slice(1))))
  if (allowed.length > 0 && !isAllowed) return `The TenantPolicy allows ${allowed.join(', ')}.`
  return undefined
}

/** Whether an address is in one of the networks, directly or through its embedded IPv4 address. */
export function inNetworks(address: string, cidrs: readonly string[]): boolean {
  return new Networks(cidrs).has(address)
}
