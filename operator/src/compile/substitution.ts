// External values: `valueFrom` and `SECRET[alias.key]` in options are replaced by places with a key. No secret value passes
// through here.

import { isTable } from '@penstock/agent/schema'
import { kindOf } from '../api/kinds.ts'
import { type SecretPart, type SecretRef, secretKey } from './artifact.ts'
import type { Table } from './compiled.ts'
import { isLent, type Resolved } from './references.ts'
import type { CompileReport } from './report.ts'
import type { PathKey, Resource } from './resources.ts'
import type { Scope } from './scope.ts'
import { placeholder } from './secrets.ts'

interface SecretName {
  readonly name: string
  readonly namespace: string
}

export type Aliases = ReadonlyMap<string, SecretName>

/** The Secrets that a Pipeline refers to by aliases. */
export function aliasesIn(scope: Scope, spec: Table, report: CompileReport): Aliases {
  const aliases = new Map<string, SecretName>()
  const secrets = spec['secrets']
  for (const [index, entry] of Array.isArray(secrets) ? secrets.entries() : []) {
    if (!isTable(entry) || typeof entry['alias'] !== 'string' || typeof entry['secretName'] !== 'string') continue
    const namespace = scope.isCluster ? entry['namespace'] : scope.pipeline.namespace
    const path = ['spec', 'secrets', index]
    if (typeof namespace !== 'string') {
      report.error(scope.pipeline, path, 'A Secret of a ClusterPipeline needs `namespace`')
      continue
    }
    aliases.set(entry['alias'], { name: entry['secretName'], namespace })
  }
  return aliases
}

export class Substitution {
  readonly #scope: Scope
  readonly #aliases: Aliases
  readonly #report: CompileReport
  /** The values that the options so far refer to, by key. */
  readonly refs = new Map<string, SecretRef>()
  /** Keys of values whose owners let tenants' Agents carry them. */
  readonly lent = new Set<string>()

  constructor(scope: Scope, aliases: Aliases, report: CompileReport) {
    this.#scope = scope
    this.#aliases = aliases
    this.#report = report
  }

  /**
   * The options with `valueFrom` and `SECRET[alias.key]` replaced in the parsed tree, so that values may be any text.
   */
  #substitute(from: Resolved, path: readonly PathKey[], value: unknown): unknown {
    if (typeof value === 'string') return this.#placeholders(from, path, value)
    if (Array.isArray(value)) return value.map((item, index) => this.#substitute(from, [...path, index], item))
    if (!isTable(value)) return value
    if (Object.hasOwn(value, 'valueFrom')) {
      const others = Object.keys(value).filter((name) => name !== 'valueFrom')
      if (others.length === 0) return this.#valueFrom(from, [...path, 'valueFrom'], value['valueFrom'])
      const message = `\`valueFrom\` must stand alone; found ${others.map((name) => `\`${name}\``).join(', ')} beside it`
      this.#report.error(from.resource, [...path, 'valueFrom'], message)
      return undefined
    }
    return this.members(from, path, value)
  }

  /** A table that is not a value itself, such as a component's options. */
  members(from: Resolved, path: readonly PathKey[], table: Table): Table {
    const members = Object.entries(table).map(([key, item]) => [key, this.#substitute(from, [...path, key], item)])
    return Object.fromEntries(members.filter(([, item]) => item !== undefined))
  }

  #placeholders(from: Resolved, path: readonly PathKey[], text: string): unknown {
    const parts: (string | SecretPart)[] = []
    let end = 0
    for (const match of text.matchAll(placeholder)) {
      const [whole, alias, key, filter] = match as unknown as [string, string, string, string | undefined]
      if (match.index > end) parts.push(text.slice(end, match.index))
      end = match.index + whole.length
      const part = this.#aliased(from, path, whole, alias, key, filter)
      if (part === undefined) return text
      parts.push(part)
    }
    if (parts.length === 0) return text
    if (end < text.length) parts.push(text.slice(end))
    return this.#place(parts)
  }

  #aliased(
    { resource }: Resolved,
    path: readonly PathKey[],
    whole: string,
    alias: string,
    key: string,
    filter: string | undefined,
  ): SecretPart | undefined {
    if (resource.kind === 'ClusterSink' || resource.kind === 'ClusterSource') {
      const help = 'Aliases are only available in Pipelines; use `valueFrom` with `secretKeyRef` and its namespace.'
      this.#report.error(resource, path, `${whole} cannot be used in a ${resource.kind}`, help)
      return undefined
    }
    const secret = this.#aliases.get(alias)
    if (secret === undefined) {
      const message = `"${alias}" in ${whole} is not an alias in \`spec.secrets\``
      this.#report.error(resource, path, message, undefined, 'InvalidConfig', { isOfUser: true })
      return undefined
    }
    if (filter !== undefined && filter !== '|uri') {
      this.#report.error(resource, path, `"${filter.slice(1)}" in ${whole} is not a filter; the only one is \`uri\``)
      return undefined
    }
    const part: SecretPart = { kind: 'Secret', ...secret, key, ...(filter === undefined ? {} : { filter: 'uri' }) }
    this.#isThere(resource, path, part, false)
    return part
  }

  #valueFrom(from: Resolved, path: PathKey[], value: unknown): unknown {
    const { resource } = from
    const given = Object.entries(isTable(value) ? value : {})
    const [member, reference] = given[0] ?? []
    if (given.length !== 1 || member === undefined || !isTable(reference)) {
      const message = '`valueFrom` needs exactly one of `secretKeyRef`, `configMapKeyRef` and `fieldRef`'
      this.#report.error(resource, path, message)
      return undefined
    }
    if (member === 'fieldRef') return this.#field(resource, [...path, member], reference)
    const kind = member === 'secretKeyRef' ? 'Secret' : member === 'configMapKeyRef' ? 'ConfigMap' : undefined
    const { name, key } = reference
    if (kind === undefined || typeof name !== 'string' || typeof key !== 'string') {
      this.#report.error(resource, path, '`valueFrom` needs `secretKeyRef` or `configMapKeyRef` with `name` and `key`')
      return undefined
    }
    const namespaced = kindOf(resource.kind)?.namespaced !== false
    const below = [...path, member]
    let namespace = this.#scope.pipeline.namespace
    if (namespaced) {
      if (reference['namespace'] !== undefined) {
        const message = `\`${member}.namespace\` is not allowed in a namespaced resource (T8)`
        const help = 'Only values of the same namespace can be used.'
        this.#report.error(resource, [...below, 'namespace'], message, help, 'ForbiddenOption')
        return undefined
      }
    } else if (typeof reference['namespace'] === 'string') {
      namespace = reference['namespace']
    } else {
      this.#report.error(resource, below, `\`${member}\` of a ${resource.kind} needs \`namespace\``)
      return undefined
    }
    const part: SecretPart = { kind, namespace, name, key }
    const optional = reference['optional'] === true
    // A missing value is reported, and a placeholder replaces it, so that the rest can be checked.
    if (!this.#isThere(resource, below, part, optional) && optional) return undefined
    const place = this.#place([part])
    if (isLent(resource)) this.lent.add(place.$secret)
    return place
  }

  #field(resource: Resource, path: PathKey[], reference: Table): unknown {
    const field = reference['fieldPath']
    if (field === 'metadata.namespace') return this.#scope.pipeline.namespace
    if (field === 'clusterName' && this.#scope.options.clusterName) return this.#scope.options.clusterName
    if (field === 'clusterName') {
      const help = "Set the chart value `clusterName`, or the operator's flag `--cluster-name`."
      this.#report.error(resource, path, 'The operator does not know the name of its cluster', help)
      return undefined
    }
    const help =
      field === 'spec.nodeName'
        ? 'A configuration is equal on every node; use the template {{ orchestrator.pod_node_name }}.'
        : undefined
    const message = `\`fieldPath\` must be metadata.namespace or clusterName; found ${JSON.stringify(field) ?? 'none'}`
    this.#report.error(resource, path, message, help)
    return undefined
  }

  #isThere(resource: Resource, path: readonly PathKey[], part: SecretPart, optional: boolean): boolean {
    const keys = this.#keysOf(part)
    if (keys === 'any' || keys?.has(part.key)) return true
    if (optional) return false
    const what = `${part.kind} "${part.name}"`
    // Without a cluster, the user provides one in a file beside the Pipeline.
    const help =
      this.#scope.options.secretsRequired === true
        ? `Add a file with this ${part.kind} and its key "${part.key}"; or use \`--print\`, which delivers no events and needs no values.`
        : undefined
    if (keys === undefined) {
      this.#report.error(
        resource,
        path,
        `${what} does not exist in namespace "${part.namespace}"`,
        help,
        'SecretNotFound',
      )
    } else {
      this.#report.error(resource, path, `${what} has no key "${part.key}"`, help, 'SecretKeyNotFound')
    }
    return false
  }

  #keysOf({ kind, namespace, name }: SecretPart): ReadonlySet<string> | 'any' | undefined {
    if (this.#scope.options.keysOf !== undefined) return this.#scope.options.keysOf(kind, namespace, name)
    const found = this.#scope.resources.find(kind, namespace, name)
    if (found === undefined) return this.#scope.options.secretsRequired === true ? undefined : 'any'
    const { data, stringData } = found.content as { data?: Table; stringData?: Table }
    return new Set([...Object.keys(data ?? {}), ...Object.keys(stringData ?? {})])
  }

  #place(parts: readonly (string | SecretPart)[]): { readonly $secret: string } {
    const key = secretKey(this.#scope.id, parts)
    this.refs.set(key, { key, parts })
    return { $secret: key }
  }
}
