// What authors of namespaced resources may not do, because it reaches the node, the agent's identity or another tenant. Each
// rule has a number, T3 to T12, which stands in what it says. What an option is, its own declaration knows: a path, a
// secret, an address, a program.

import { BlockList, isIP } from 'node:net'
import type { ComponentKind } from '@penstock/agent/component'
import { optionsOf } from '@penstock/agent/config/component-options'
import { findComponent } from '@penstock/agent/registry'
import { parseProgram } from '@penstock/agent/remap/parser'
import { chosenVariant, isTable, type Schema, schemaBelow, variantsOf } from '@penstock/agent/schema/walk'
import type { TenantPolicySpec } from '../api/tenant-policy.ts'
import type { ArtifactMode } from './artifact.ts'
import { quantityOf } from './quantity.ts'
import type { PathKey } from './resources.ts'

export interface Violation {
  /** Below the options of the component; `type` stands beside them. */
  readonly path: readonly PathKey[]
  readonly message: string
  readonly help?: string | undefined
}

export interface TenancyOptions {
  /** True on a user's own machine: the rules that protect a shared node from its tenants do not hold there. */
  readonly ownMachine: boolean
  readonly policy?: TenantPolicySpec | undefined
  /** Addresses of the API server. */
  readonly apiHosts?: readonly string[] | undefined
}

/** Networks that no endpoint of a tenant may be in, whatever a policy says. */
export const deniedCidrs = ['169.254.0.0/16', '127.0.0.0/8', '::1/128', 'fe80::/10', '0.0.0.0/32', '::/128']

/** Sources that are collected elsewhere than on the node: they run on an Aggregator (T9). */
export const aggregatorSources: ReadonlySet<string> = new Set([
  'amqp',
  'cloud_queue',
  'webserver_metrics',
  'eventstore_metrics',
  'orchestrator_events',
])

const clusterSources = new Set(['stdin', 'internal_metrics', 'internal_logs'])
const clusterSinks = new Set(['console', 'file'])

/** Options of orchestrator_logs that the operator sets, or that look beyond the namespace (T3). */
const ownedOptions = ['data_dir', 'kube_config_file', 'logs_dir', 'self_node_name']
const wideOptions = ['extra_field_selector', 'extra_namespace_label_selector']
/** The same of orchestrator_events: whose events are read is not the author's choice (T3). */
const ownedEventOptions = ['data_dir', 'kube_config_file', 'namespaces']

/** Functions that reach the agent's environment, its host or the network (T6). */
const hostFunctions = new Set(['get_env_var', 'get_hostname', 'dns_lookup', 'reverse_dns', 'http_request'])

const notHere = 'is not allowed in a namespaced resource'

/** Whether a type may be used at all, and where (T9). */
export function typeViolations(
  kind: ComponentKind,
  type: string,
  mode: ArtifactMode,
  options: TenancyOptions,
): Violation[] {
  // What there is none of is told of by the check of options, with what it may have meant.
  if (options.ownMachine || findComponent(kind, type) === undefined) return []
  const path = ['type']
  const own = `\`penstock run\` allows it on your own machine, and so does \`penstock lint --own-machine\`.`
  const { policy } = options
  if (kind === 'source') {
    if (clusterSources.has(type)) {
      return [{ path, message: `Type \`${type}\` ${notHere} (T9)`, help: `It reads the node or the agent; ${own}` }]
    }
    if (type === 'file') {
      if (mode === 'Sidecar') return []
      return [
        {
          path,
          message: `Type \`file\` is allowed with \`spec.mode: Sidecar\` alone in a namespaced resource (T9)`,
          help: `Elsewhere it reads the node; ${own}`,
        },
      ]
    }
    const allowed = policy?.allowedSources ?? ['orchestrator_logs']
    if (!isListed(type, allowed)) {
      const help = `Allowed are ${allowed.join(', ')}; a TenantPolicy may allow more.`
      return [{ path, message: `Type \`${type}\` of sources is not allowed in this namespace (T9)`, help }]
    }
    if (mode === 'Node' && aggregatorSources.has(type)) {
      const help = 'Set `spec.mode` to Aggregator, or leave it out.'
      return [{ path, message: `Type \`${type}\` cannot run on node agents (T9)`, help }]
    }
  }
  if (kind === 'sink') {
    if (clusterSinks.has(type)) {
      return [{ path, message: `Type \`${type}\` ${notHere} (T9)`, help: `It writes to the node or the agent; ${own}` }]
    }
    const allowed = policy?.allowedSinks ?? ['*']
    if (!isListed(type, allowed)) {
      const help = `The TenantPolicy allows ${allowed.join(', ') || 'none'}.`
      return [{ path, message: `Type \`${type}\` of sinks is not allowed in this namespace (T9)`, help }]
    }
  }
  return []
}

function isListed(type: string, allowed: readonly string[]): boolean {
  const canonical = (name: string) =>
    findComponent('source', name)?.type ??
    findComponent('sink', name)?.type ??
    findComponent('transform', name)?.type ??
    name
  return allowed.some((name) => name === '*' || canonical(name) === canonical(type))
}

/** What is wrong with the options of a component, as its author wrote them: `valueFrom` objects are still in place. */
export function optionViolations(
  kind: ComponentKind,
  type: string,
  given: Readonly<Record<string, unknown>>,
  mode: ArtifactMode,
  options: TenancyOptions,
): Violation[] {
  const violations: Violation[] = []
  const declaration = findComponent(kind, type)
  const isPodLogs = declaration?.type === 'orchestrator_logs'
  if (isPodLogs) violations.push(...podLogViolations(given, options))
  if (declaration?.type === 'orchestrator_events') {
    const help = 'It is set for the Pipeline, which reads the events of its own namespace.'
    for (const option of options.ownMachine ? ['namespaces'] : ownedEventOptions) {
      if (given[option] === undefined) continue
      violations.push({ path: [option], message: `\`${option}\` ${notHere} (T3)`, help })
    }
    if (options.ownMachine) return violations
    given = Object.fromEntries(Object.entries(given).filter(([option]) => !ownedEventOptions.includes(option)))
  }
  if (options.ownMachine) return violations
  if (declaration !== undefined) {
    const { schema } = optionsOf(declaration)
    // Globs of pod logs are T3's business; what a sidecar reads is limited to its volume.
    const isExempt = (path: readonly PathKey[]) =>
      isPodLogs || (declaration.type === 'file' && mode === 'Sidecar' && path[0] !== 'data_dir')
    pathViolations(schema, given, [], isExempt, violations)
    credentialViolations(declaration.type, given, options, violations)
    if (kind !== 'source' || declaration.type !== 'file') addressViolations(given, [], options, violations)
    programViolations(schema, given, violations)
    variableViolations(schema, given, [], violations)
  }
  for (const pattern of options.policy?.denyOptions ?? []) {
    const [list, name, ...rest] = pattern.split('.')
    if (list !== `${kind}s` || (name !== '*' && name !== type && name !== declaration?.type)) continue
    for (const path of found(given, rest)) {
      violations.push({
        path,
        message: `\`${rest.join('.')}\` is refused by the TenantPolicy (denyOptions: ${pattern})`,
      })
    }
  }
  return violations
}

/** Paths of a value that a pattern means; `*` is any member. */
function found(value: unknown, pattern: readonly string[], before: readonly PathKey[] = []): (readonly PathKey[])[] {
  const [first, ...rest] = pattern
  if (first === undefined) return value === undefined ? [] : [before]
  if (Array.isArray(value)) return value.flatMap((item, index) => found(item, pattern, [...before, index]))
  if (!isTable(value)) return []
  const names = first === '*' ? Object.keys(value) : Object.hasOwn(value, first) ? [first] : []
  return names.flatMap((name) => found(value[name], rest, [...before, name]))
}

// --- T3: the logs of other namespaces ---

function podLogViolations(given: Readonly<Record<string, unknown>>, options: TenancyOptions): Violation[] {
  const violations: Violation[] = []
  const help = 'It is set for the Pipeline: its own namespace on the node where the agent runs.'
  for (const option of options.ownMachine ? ownedOptions : [...ownedOptions, ...wideOptions]) {
    if (given[option] !== undefined) violations.push({ path: [option], message: `\`${option}\` ${notHere} (T3)`, help })
  }
  if (options.ownMachine) return violations
  for (const option of ['exclude_paths_glob_patterns', 'include_paths_glob_patterns']) {
    const globs = given[option]
    for (const [index, glob] of Array.isArray(globs) ? globs.entries() : []) {
      if (typeof glob !== 'string' || (!glob.startsWith('/') && !glob.split('/').includes('..'))) continue
      violations.push({
        path: [option, index],
        message: `An absolute path in \`${option}\` ${notHere} (T3)`,
        help: 'Begin it with `**/`.',
      })
    }
  }
  const cooldown = given['glob_minimum_cooldown_ms']
  if (typeof cooldown === 'number' && cooldown < 1000) {
    const message = `\`glob_minimum_cooldown_ms\` must be 1000 or more in a namespaced resource (T3); found ${cooldown}`
    violations.push({ path: ['glob_minimum_cooldown_ms'], message })
  }
  const most = quantityOf(options.policy?.maxReadBytes)
  const read = given['max_read_bytes']
  if (most !== undefined && typeof read === 'number' && read > most) {
    const message = `\`max_read_bytes\` must be ${most} or less by the TenantPolicy (T3); found ${read}`
    violations.push({ path: ['max_read_bytes'], message })
  }
  return violations
}

// --- T4: files of the node and the agent ---

function pathViolations(
  schema: Schema,
  value: unknown,
  path: readonly PathKey[],
  isExempt: (path: readonly PathKey[]) => boolean,
  violations: Violation[],
): void {
  if (isReference(value)) return
  const variants = variantsOf(schema)
  if (variants !== undefined) {
    const chosen = variants[chosenVariant(variants, value)]
    if (chosen !== undefined) pathViolations(chosen, value, path, isExempt, violations)
    return
  }
  if (typeof value === 'string') {
    const isFileUrl = /^\s*file:/i.test(value)
    if (schema['x-path'] !== true && !isFileUrl) return
    if (isExempt(path) || isInline(value)) return
    const name = String(path.findLast((key) => typeof key === 'string'))
    violations.push({
      path,
      message: `\`${name}\` must not name a file in a namespaced resource (T4)`,
      help: 'Give its content: by `valueFrom`, by SECRET[alias.key], or in place.',
    })
    return
  }
  if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const below = schemaBelow(schema, index)
      if (below !== undefined) pathViolations(below, item, [...path, index], isExempt, violations)
    }
    return
  }
  if (!isTable(value)) return
  for (const [name, member] of Object.entries(value)) {
    const below = schemaBelow(schema, name) ?? aliased(schema, name)
    if (below !== undefined) pathViolations(below, member, [...path, name], isExempt, violations)
  }
}

function aliased(schema: Schema, name: string): Schema | undefined {
  const members = Object.values((schema['properties'] ?? {}) as Readonly<Record<string, Schema>>)
  return members.find((member) => ((member['x-aliases'] ?? []) as readonly string[]).includes(name))
}

/** Content in place of a file's name: PEM, JSON, or a value of a Secret. */
function isInline(text: string): boolean {
  return /-----BEGIN |^\s*\{|^SECRET\[[^\]]+\]$/.test(text)
}

function isReference(value: unknown): boolean {
  return isTable(value) && isTable(value['valueFrom'])
}

// --- T5: the agent's own identity ---

function credentialViolations(
  type: string,
  given: Readonly<Record<string, unknown>>,
  options: TenancyOptions,
  violations: Violation[],
): void {
  if (options.policy?.implicitCredentials === 'Allow') return
  const help = 'Give keys from a Secret; without them the identity of the agent or its node would be used.'
  const { auth } = given
  const usesKeys = type === 'cloud_queue' || (isTable(auth) && auth['strategy'] === 'aws')
  if (usesKeys && !(isTable(auth) && auth['access_key_id'] !== undefined && auth['secret_access_key'] !== undefined)) {
    const what = type === 'cloud_queue' ? `Source type \`${type}\`` : '`auth.strategy: aws`'
    violations.push({
      path: isTable(auth) ? ['auth'] : [],
      message: `${what} needs explicit keys in a namespaced resource (T5)`,
      help,
    })
  }
  if (type === 'siem_unstructured' && given['credentials_path'] === undefined && given['api_key'] === undefined) {
    violations.push({ path: [], message: `\`${type}\` needs explicit credentials in a namespaced resource (T5)`, help })
  }
}

// --- T6: functions that reach the host; T9: files of programs ---

function programViolations(schema: Schema, given: Readonly<Record<string, unknown>>, violations: Violation[]): void {
  walkPrograms(schema, given, [], (path, source) => violations.push(...callViolations(source, path)))
}

/** Calls in a program that its author may not make. */
export function callViolations(source: string, path: readonly PathKey[]): Violation[] {
  const violations: Violation[] = []
  for (const { name, offset } of callsOf(source)) {
    if (!hostFunctions.has(name)) continue
    const before = source.slice(0, offset)
    const line = before.split('\n').length
    const column = offset - before.lastIndexOf('\n')
    violations.push({
      path,
      message: `line ${line} col ${column}: E-TENANT \`${name}\` ${notHere} (T6)`,
      help: "It reaches the agent's environment, its host or the network.",
    })
  }
  return violations
}

function walkPrograms(
  schema: Schema,
  value: unknown,
  path: readonly PathKey[],
  visit: (path: readonly PathKey[], source: string) => void,
): void {
  const variants = variantsOf(schema)
  if (variants !== undefined) {
    for (const variant of variants) walkPrograms(variant, value, path, visit)
    return
  }
  if (typeof value === 'string') {
    if (schema['x-remap'] !== undefined) visit(path, value)
  } else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      const below = schemaBelow(schema, index)
      if (below !== undefined) walkPrograms(below, item, [...path, index], visit)
    }
  } else if (isTable(value)) {
    for (const [name, member] of Object.entries(value)) {
      const below = schemaBelow(schema, name) ?? aliased(schema, name)
      if (below !== undefined) walkPrograms(below, member, [...path, name], visit)
    }
  }
}

/** `${NAME}` in an option: it would stay as it is, which is hardly what its author wants. Programs may hold any text. */
function variableViolations(
  schema: Schema | undefined,
  value: unknown,
  path: readonly PathKey[],
  violations: Violation[],
): void {
  if (typeof value === 'string') {
    const match = schema?.['x-remap'] === undefined ? /\$\{[A-Z_][A-Z0-9_]*(:?[-?][^}]*)?\}/.exec(value) : null
    if (match === null) return
    const help = 'Resources do not see the environment of the agent; use a Secret, or `fieldRef`.'
    violations.push({ path, message: `${match[0]} ${notHere} (T6)`, help })
  } else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) {
      variableViolations(
        schema === undefined ? undefined : schemaBelow(schema, index),
        item,
        [...path, index],
        violations,
      )
    }
  } else if (isTable(value)) {
    for (const [name, member] of Object.entries(value)) {
      const below = schema === undefined ? undefined : (schemaBelow(schema, name) ?? aliased(schema, name))
      variableViolations(below, member, [...path, name], violations)
    }
  }
}

/** Every call in a program, those in closures and arguments too. What does not parse is told when it is compiled. */
function callsOf(source: string): { readonly name: string; readonly offset: number }[] {
  const calls: { name: string; offset: number }[] = []
  const visit = (node: unknown): void => {
    if (Array.isArray(node)) {
      for (const item of node) visit(item)
    } else if (isTable(node)) {
      if (node['node'] === 'call') {
        calls.push({ name: String(node['name']), offset: (node['span'] as readonly [number, number])[0] })
      }
      for (const member of Object.values(node)) visit(member)
    }
  }
  visit(parseProgram(source))
  return calls
}

// --- T7: addresses of the node and the control plane ---

function addressViolations(
  value: unknown,
  path: readonly PathKey[],
  options: TenancyOptions,
  violations: Violation[],
): void {
  if (isReference(value)) return
  if (typeof value === 'string') {
    for (const host of hostsIn(value)) {
      const reason = refusedHost(host, options)
      if (reason === undefined) continue
      const name = String(path.findLast((key) => typeof key === 'string') ?? 'address')
      violations.push({
        path,
        message: `\`${name}\`: host "${host}" is not allowed in a namespaced resource (T7)`,
        help: reason,
      })
    }
  } else if (Array.isArray(value)) {
    for (const [index, item] of value.entries()) addressViolations(item, [...path, index], options, violations)
  } else if (isTable(value)) {
    for (const [name, member] of Object.entries(value)) {
      if (name === 'source' || name === 'condition' || name === 'labels' || name === 'headers') continue
      addressViolations(member, [...path, name], options, violations)
    }
  }
}

/** Literal hosts of the addresses in a text: `scheme://user@host:port/...`, several after commas. */
function hostsIn(text: string): string[] {
  const hosts: string[] = []
  for (const match of text.matchAll(/[a-z][a-z0-9+.-]*:\/\/([^/\s?#]*)/gi)) {
    const authority = (match[1] as string).slice((match[1] as string).lastIndexOf('@') + 1)
    for (const part of authority.split(',')) {
      if (part === '' || part.includes('{{')) continue
      try {
        // The parser for the web reads an address as a connection would: 0x7f.1, 2130706433, [::ffff:7f00:1].
        hosts.push(
          new URL(`http://${part}`).hostname
            .replace(/^\[|\]$/g, '')
            .toLowerCase()
            .replace(/\.$/, ''),
        )
      } catch {
        hosts.push(part.toLowerCase()) // what cannot be read is told by the option's own check
      }
    }
  }
  return hosts
}

function refusedHost(host: string, options: TenancyOptions): string | undefined {
  if (host === 'localhost' || host.endsWith('.localhost')) return 'It is the machine of the agent.'
  const control = ['kubernetes', 'kubernetes.default', ...(options.apiHosts ?? [])]
  if (control.includes(host) || /^kubernetes\.default\.svc(\..+)?$/.test(host)) return 'It is the API server.'
  const egress = options.policy?.egress
  if (isIP(host) !== 0 && inNetworks(host, [...deniedCidrs, ...(egress?.denyCIDRs ?? [])])) {
    return 'It is in a network that is refused: link-local, loopback, or named by the TenantPolicy.'
  }
  const allowed = egress?.allowHosts ?? []
  const isAllowed = allowed.some((each) => each === host || (each.startsWith('*.') && host.endsWith(each.slice(1))))
  if (allowed.length > 0 && !isAllowed) return `The TenantPolicy allows ${allowed.join(', ')}.`
  return undefined
}

/** Whether an address is in one of the networks; addresses of version 4 in clothes of version 6 too. */
export function inNetworks(address: string, cidrs: readonly string[]): boolean {
  const networks = new BlockList()
  for (const cidr of cidrs) {
    const [network, bits] = cidr.split('/') as [string, string | undefined]
    const family = isIP(network)
    if (family !== 0)
      networks.addSubnet(network, Number(bits ?? (family === 4 ? 32 : 128)), family === 4 ? 'ipv4' : 'ipv6')
  }
  const mapped = /^::ffff:([0-9a-f]{1,4}):([0-9a-f]{1,4})$/.exec(address)
  if (mapped !== null) {
    const [high, low] = [Number.parseInt(mapped[1] as string, 16), Number.parseInt(mapped[2] as string, 16)]
    return inNetworks([high >> 8, high & 255, low >> 8, low & 255].join('.'), cidrs)
  }
  return networks.check(address, isIP(address) === 6 ? 'ipv6' : 'ipv4')
}
