// The operator's requirements for a cluster, by the minor version of Kubernetes 1 that first provides each without a feature
// gate.

export interface ClusterNeed {
  readonly minor: number
  readonly feature: string
  /** The behaviour of an older cluster, after "without it". */
  readonly otherwise: string
  /** Whether the operator refuses to run without it. */
  readonly isEssential: boolean
}

/** The oldest version with native sidecar containers. */
export const nativeSidecarMinor = 29

/** By version. */
export const clusterNeeds: readonly ClusterNeed[] = [
  {
    minor: 25,
    feature: 'validation rules (CEL) in CRDs',
    otherwise: 'the API server accepts resources that these rules forbid',
    isEssential: true,
  },
  {
    minor: 28,
    feature: 'match conditions of webhooks',
    otherwise: 'the API server sends every new pod to the sidecar webhook',
    isEssential: false,
  },
  {
    minor: nativeSidecarMinor,
    feature: 'native sidecar containers',
    otherwise: 'injected agents are ordinary containers, so Jobs with one do not complete',
    isEssential: false,
  },
]

const minors = (needs: readonly ClusterNeed[]) => needs.map(({ minor }) => minor)

/** The oldest version that provides everything. */
export const minClusterMinor = Math.max(...minors(clusterNeeds))

/** The operator does not run on older versions. */
export const minEssentialMinor = Math.max(...minors(clusterNeeds.filter(({ isEssential }) => isEssential)))
