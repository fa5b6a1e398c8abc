// The sidecar of a pod: what admission adds. The pod stays within the restricted Pod Security Standard: no host folder, no
// capability, no root. The sidecar does not use the API server, so it mounts no token for it.

import { type Agent, agentDefaults } from '../api/agent.ts'
import { agentPort, paths } from './names.ts'
import {
  agentUser,
  bundleArguments,
  bundleVolumes,
  environment,
  imageOf,
  livenessProbe,
  restricted,
  type WorkloadInput,
} from './pod.ts'

/** Names of the added objects; a pod that contains them already has its sidecar. */
export const sidecarContainer = 'penstock-agent'
export const sidecarPrefix = 'penstock-'

export interface SidecarRequest {
  /** The volume with the log files, and its path in the pod's own containers. */
  readonly volume: string
  readonly mountPath: string
  /** Globs of log files, for Pipelines without their own. */
  readonly logPaths: readonly string[]
  /** Pipelines by name; all that the Agent selects if undefined. */
  readonly pipelines: readonly string[] | undefined
  /** The user whose files are read, if the pod sets it. */
  readonly user: number | undefined
}

/** The container and the volumes added to a pod. */
export function sidecarParts(agent: Agent, input: WorkloadInput, request: SidecarRequest) {
  const drainSeconds = agent.spec.sidecar?.drainSeconds ?? agentDefaults.sidecar.drainSeconds
  const [bundle, secrets, operator] = bundleVolumes(agent, sidecarPrefix)
  const container = {
    name: sidecarContainer,
    image: imageOf(agent, input),
    ...(agent.spec.image?.pullPolicy === undefined ? {} : { imagePullPolicy: agent.spec.image.pullPolicy }),
    args: [
      ...bundleArguments(agent, input),
      ...['--log-volume', request.mountPath],
      ...(request.logPaths.length === 0 ? [] : ['--log-paths', request.logPaths.join(',')]),
      ...(request.pipelines === undefined ? [] : ['--pipelines', request.pipelines.join(',')]),
      ...['--drain-seconds', String(drainSeconds)],
    ],
    env: environment,
    ports: [{ name: 'penstock', containerPort: agentPort, protocol: 'TCP' }],
    // The pod's containers start after it, so that even a short Job has its sidecar.
    startupProbe: { httpGet: { path: '/health', port: 'penstock' }, periodSeconds: 1, failureThreshold: 60 },
    livenessProbe: { ...livenessProbe, httpGet: { path: '/health', port: 'penstock' } },
    resources: agent.spec.resources ?? {
      requests: { cpu: '20m', memory: '48Mi' },
      limits: { memory: '128Mi' },
    },
    restartPolicy: 'Always',
    securityContext: {
      ...restricted,
      runAsNonRoot: true,
      runAsUser: request.user ?? agentUser,
      seccompProfile: { type: 'RuntimeDefault' },
    },
    volumeMounts: [
      { name: bundle?.name, mountPath: paths.bundle, readOnly: true },
      { name: secrets?.name, mountPath: paths.secrets, readOnly: true },
      { name: operator?.name, mountPath: paths.operator, readOnly: true },
      { name: `${sidecarPrefix}data`, mountPath: paths.data },
      { name: request.volume, mountPath: request.mountPath, readOnly: true },
    ],
  }
  // The agent may not set a group in a user's pod: the container's own user can read the files.
  const readable = [bundle, secrets, operator].map((volume) => ({
    name: volume?.name,
    projected: { ...volume?.projected, defaultMode: 0o444 },
  }))
  return { container, volumes: [...readable, { name: `${sidecarPrefix}data`, emptyDir: {} }] }
}
