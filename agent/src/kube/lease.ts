// The Lease with which agents and operators elect a leader. Its times are only for people: participants use their own clocks, and measure
// from the moment at which they see a change.

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

/** How long a claim is valid without renewal, when its holder gives up renewing it, and the interval of attempts to get or renew it. */
export const leaseTimes = { leaseMs: 15_000, renewDeadlineMs: 10_000, retryMs: 2_000 } as const

export interface LeasePlace {
  readonly namespace: string
  readonly name: string
}

export const leasePath = ({ namespace, name }: LeasePlace) =>
  `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases/${name}`

/** The current holder; undefined if there is none. */
export const holderOf = (lease: Lease | undefined): string | undefined => lease?.spec?.holderIdentity || undefined

/** The object that acquires or renews the claim. It replaces the one that was read. */
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

/** The object with which the holder releases the claim, so that the next holder need not wait until it expires. */
export const released = (lease: Lease): Lease => ({
  ...lease,
  spec: { ...lease.spec, holderIdentity: '', leaseDurationSeconds: 1 },
})
