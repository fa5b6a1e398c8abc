// TenantPolicies: which one applies in a namespace, and their status. The most specific one applies: the one with the fewest
// matching namespaces, and of equal ones the first by name.

import { isIP } from 'node:net'
import { sameJson } from '@penstock/agent/bundle'
import type { Finding } from '../api/conditions.ts'
import { tenantPolicyKind } from '../api/kinds.ts'
import type { KubeObject } from '../api/object.ts'
import { selects } from '../api/selector.ts'
import type { TenantPolicy } from '../api/tenant-policy.ts'
import { shapeVerdict } from '../compile/job.ts'
import { policyWarnings } from '../compile/tenancy.ts'
import type { OperatorContext } from '../context.ts'
import type { Cache } from '../kube/cache.ts'

export class Policies {
  readonly #policies: Cache<TenantPolicy> | undefined
  readonly #namespaces: Cache<KubeObject>
  readonly #subscriptions: Disposable[] = []
  /** Namespaces that each policy matches; computed again after a change to a policy or a namespace. */
  #matching: ReadonlyMap<string, ReadonlySet<string>> | undefined

  constructor(policies: Cache<TenantPolicy> | undefined, namespaces: Cache<KubeObject>) {
    this.#policies = policies
    this.#namespaces = namespaces
  }

  /** Calls back when a different policy may apply to a namespace. */
  start(onChange: () => void): this {
    const changed = () => {
      this.#matching = undefined
      onChange()
    }
    if (this.#policies !== undefined) {
      this.#subscriptions.push(
        this.#policies.subscribe(({ object, previous }) => {
          if (!sameJson(object.spec, previous?.spec)) changed()
        }),
        this.#policies.subscribe(({ type }) => {
          if (type === 'deleted') changed()
        }),
      )
    }
    this.#subscriptions.push(
      this.#namespaces.subscribe(({ type, object, previous }) => {
        const same = sameJson(object.metadata.labels ?? {}, previous?.metadata.labels ?? {})
        if (type !== 'changed' || !same) changed()
      }),
    )
    return this
  }

  [Symbol.dispose](): void {
    for (const subscription of this.#subscriptions) subscription[Symbol.dispose]()
  }

  /** The policy that applies in a namespace. */
  of(namespace: string): TenantPolicy | undefined {
    const name = this.#effective(namespace)
    return name === undefined ? undefined : this.#policies?.get(undefined, name)
  }

  #effective(namespace: string): string | undefined {
    let best: { readonly name: string; readonly size: number } | undefined
    for (const [name, namespaces] of this.#match()) {
      if (!namespaces.has(namespace)) continue
      const { size } = namespaces
      if (best === undefined || size < best.size || (size === best.size && name < best.name)) best = { name, size }
    }
    return best?.name
  }

  #match(): ReadonlyMap<string, ReadonlySet<string>> {
    if (this.#matching !== undefined) return this.#matching
    const matching = new Map<string, Set<string>>()
    for (const policy of this.#policies?.values() ?? []) {
      const names = new Set<string>()
      for (const { metadata } of this.#namespaces.values()) {
        if (selects(policy.spec.namespaceSelector, metadata.labels)) names.add(metadata.name)
      }
      matching.set(policy.metadata.name, names)
    }
    this.#matching = matching
    return matching
  }

  /** Reports for each policy which namespaces it matches, and where it applies. */
  report(context: Pick<OperatorContext, 'status'>): void {
    const effective = new Map<string, number>()
    for (const { metadata } of this.#namespaces.values()) {
      const name = this.#effective(metadata.name)
      if (name !== undefined) effective.set(name, (effective.get(name) ?? 0) + 1)
    }
    for (const policy of this.#policies?.values() ?? []) {
      const { name, generation = 0 } = policy.metadata
      context.status.report(tenantPolicyKind, policy, 'compile', {
        generation,
        findings: [acceptedOf(policy)],
        fields: { namespaces: { matching: this.#match().get(name)?.size ?? 0, effective: effective.get(name) ?? 0 } },
      })
    }
  }
}

function acceptedOf(policy: TenantPolicy): Finding {
  const verdict = shapeVerdict(policy)
  if (verdict.status !== 'True') return { type: 'Accepted', ...verdict }
  const cidrs = policy.spec.egress?.denyCIDRs ?? []
  const index = cidrs.findIndex((cidr) => !isNetwork(cidr))
  if (index === -1) {
    const [warning] = policyWarnings(policy.spec)
    if (warning === undefined) return { type: 'Accepted', ...verdict }
    return { type: 'Accepted', ...verdict, message: `Warning: ${warning}` }
  }
  const message = `spec.egress.denyCIDRs[${index}]: "${cidrs[index]}" is not a network such as 10.0.0.0/8`
  return { type: 'Accepted', status: 'False', reason: 'InvalidConfig', message }
}

function isNetwork(cidr: string): boolean {
  const [address = '', bits, ...rest] = cidr.split('/')
  const family = isIP(address)
  if (family === 0 || rest.length > 0) return false
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (family === 4 ? 32 : 128))
}
