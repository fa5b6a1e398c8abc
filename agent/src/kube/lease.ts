// The Lease by which agents and operators elect a leader. Its times are for people: participants measure with their own clocks when they
// see it change.

export interface Lease {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace: string
    readonly uid?: string
    readonly resourceVersion?: string
  }
  readonly spec?: {
    readonly holderIdentity?: string
    readonly leaseDurationSeconds?: number
    readonly acquireTime?: string
    readonly renewTime?: string
    readonly leaseTransitions?: number
  }
}

/** How long a claim lasts without renewal, when its holder gives it up itself, and how often it is tried to get or renew it. */
export const leaseTimes = { leaseMs: 15_000, renewDeadlineMs: 10_000, retryMs: 2_000 } as const

export interface LeasePlace {
  readonly namespace: string
  readonly name: string
}

export const leasePath = ({ namespace, name }: LeasePlace) =>
  `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${name}`

/** The holder that the record names; undefined if there is none. */
export const holderOf = (lease: Lease | undefined): string | undefined => lease?.spec?.holderIdentity || undefined

/** The record that takes or renews the claim; it replaces the one that was read. */
export function claimed(lease: Lease | undefined, place: LeasePlace, identity: string, leaseMs: number): Lease {
  const now = new Date().toISOString().replace('Z', '000Z')
  const same = holderOf(lease) === identity
  return {
    apiVersion: 'coordination.k8s.io/v1',
    kind: 'Lease',
    metadata: lease?.metadata ?? { name: place.name, namespace: place.namespace },
    spec: {
      holderIdentity: identity,
      leaseDurationSeconds: Math.max(1, Math.round(leaseMs / 1000)),
      acquireTime: (same ? lease?.spec?.acquireTime : undefined) ?? now,
      renewTime: now,
      leaseTransitions: (lease?.spec?.leaseTransitions ?? 0) + (lease === undefined || same ? 0 : 1),
    },
  }
}

/** The record with which the holder gives up the claim, so the next need not wait until it expires. */
export const released = (lease: Lease): Lease => ({
  ...lease,
  spec: { ...lease.spec, holderIdentity: '', leaseDurationSeconds: 1 },
})
