// The Kubernetes API: credentials, transport, selectors, Leases and versions. The leader-election thread loads it.

export { accountFolder, inClusterTarget, type KubeTarget, kubeConfigTarget } from '../kube/config.ts'
export { compileSelector, type LabelTest } from '../kube/labels.ts'
export { claimed, holderOf, type Lease, leasePath, leaseTimes, released } from '../kube/lease.ts'
export { minServerMinor, parseServerVersion, type ServerVersion } from '../kube/server-version.ts'
export {
  type Access,
  addressOf,
  BrokenStreamError,
  bodyText,
  type Exchange,
  Transport,
  watchLines,
} from '../kube/transport.ts'
export { watchPathOf } from '../kube/watch.ts'
