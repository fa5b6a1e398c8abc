// Determines whether an Agent is available, from its workload's counts and the reasons why its pods are not running.
// Pure.

import { countedOf } from '@penstock/agent/program'
import type { Agent } from '../../api/agent.ts'
import type { Finding } from '../../api/conditions.ts'
import type { KubeObject } from '../../api/object.ts'
import { labels, workloadName } from '../../workloads/names.ts'
import type { AgentPod } from './pods.ts'

/** A DaemonSet, Deployment or StatefulSet. */
export type WorkloadObject = KubeObject & {
  readonly spec?: { readonly replicas?: number }
  readonly status?: WorkloadStatus
}

interface WorkloadStatus {
  readonly observedGeneration?: number
  readonly desiredNumberScheduled?: number
  readonly numberReady?: number
  readonly replicas?: number
  readonly readyReplicas?: number
}

/** The workload kind of an Agent's pods; a sidecar has none. */
export function workloadKindOf({ spec }: Agent): 'DaemonSet' | 'Deployment' | 'StatefulSet' | undefined {
  if (spec.mode === 'Sidecar') return undefined
  if (spec.mode === 'Node') return 'DaemonSet'
  return spec.aggregator?.storage === undefined ? 'Deployment' : 'StatefulSet'
}

/** Number of pods that a workload is to have; 0 if it is not known. */
export function wantedPodsOf(workload: WorkloadObject | undefined): number {
  return workload?.status?.desiredNumberScheduled ?? workload?.spec?.replicas ?? 0
}

/** Whether the pods of an Agent are ready, and if not, why. */
export function availabilityOf(
  agent: Agent,
  workload: WorkloadObject | undefined,
  pods: readonly AgentPod[],
  unsupportedNodes: number,
): { readonly finding: Finding; readonly fields: Readonly<Record<string, unknown>> } {
  const yes = (message: string): Finding => ({ type: 'Available', status: 'True', reason: 'Available', message })
  const kind = workloadKindOf(agent)
  if (kind === undefined) return { finding: yes(''), fields: {} }
  const { namespace } = agent.metadata
  const name = workloadName(agent)
  const status = workload?.status ?? {}
  const desired = status.desiredNumberScheduled ?? status.replicas ?? 0
  const ready = status.numberReady ?? status.readyReplicas ?? 0
  const fields =
    agent.spec.mode === 'Node'
      ? { unsupportedNodes }
      : {
          replicas: status.replicas ?? 0,
          selector: `${labels.name}=penstock-agent,${labels.instance}=${agent.metadata.name}`,
        }
  const unschedulable = pods.find((pod) =>
    pod.status?.conditions?.some((condition) => condition.reason === 'Unschedulable'),
  )
  if (
    workload !== undefined &&
    ready >= desired &&
    (status.observedGeneration ?? 0) >= (workload.metadata.generation ?? 0)
  ) {
    return { finding: yes(`${countedOf(ready, desired, 'pod', 'is', 'are')} ready.`), fields }
  }
  const why =
    unschedulable === undefined
      ? (troubleOf(pods) ??
        (desired > 0 && pods.length === 0
          ? `there are no pods: kubectl describe ${kind.toLowerCase()} ${name} -n ${namespace}`
          : undefined))
      : `pod ${unschedulable.metadata.name} cannot be scheduled`
  const finding: Finding = {
    type: 'Available',
    status: 'False',
    reason: unschedulable === undefined ? 'PodsNotReady' : 'Unschedulable',
    message: `${countedOf(ready, desired, 'pod', 'is', 'are')} ready${why === undefined ? '' : `; ${why}`}.`,
  }
  return { finding, fields }
}

/** The kubelet's reasons for a container that waits for its image. */
const imageReasons: ReadonlySet<string> = new Set([
  'ErrImagePull',
  'ErrImageNeverPull',
  'ImagePullBackOff',
  'ImageInspectError',
  'InvalidImageName',
  'RegistryUnavailable',
  'SignatureValidationFailed',
])

/** The kubelet's reasons for a container that cannot be created because of the runtime or its configuration. */
const createReasons: ReadonlySet<string> = new Set([
  'CreateContainerConfigError',
  'CreateContainerError',
  'CreatePodSandboxError',
])

/** The reason why a pod does not run, worded so that it does not change during retries. */
export function troubleOf(pods: Iterable<AgentPod>): string | undefined {
  for (const { metadata, status } of pods) {
    for (const container of [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]) {
      const { name, ready, restartCount, state, lastState } = container
      const waits = state?.waiting?.reason ?? ''
      const where = `container ${name} of ${metadata.name}`
      if (imageReasons.has(waits)) return `cannot pull the image of ${where}`
      if (createReasons.has(waits)) return `cannot create ${where}: ${waits}`
      const end = state?.terminated ?? lastState?.terminated
      if (ready !== true && restartCount > 0 && end?.exitCode !== undefined && end.exitCode !== 0) {
        const reason = end.reason === 'OOMKilled' ? 'out of memory' : `exit code ${end.exitCode}`
        return `${where} keeps exiting (${reason}): kubectl logs ${metadata.name} -n ${metadata.namespace} -c ${name} --previous`
      }
    }
  }
  return undefined
}
