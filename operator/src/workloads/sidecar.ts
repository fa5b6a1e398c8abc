// The sidecar of a pod: what admission adds. It keeps the pod within the restricted Pod Security Standard: no folder of the
// node, no capability, no root. The API server is none of its business, so it mounts no token for it.

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

/** Names of what is added; a pod that has them has its sidecar. */
export const sidecarContainer = 'penstock-agent'
export const sidecarPrefix = 'penstock-'

export interface SidecarRequest {
  /** The volume with the log files, and where the pod's own containers see it. */
  readonly volume: string
  readonly mountPath: string
  /** Globs of log files, where a Pipeline names none. */
  readonly logPaths: readonly string[]
  /** Pipelines by name; all that the Agent selects if undefined. */
  readonly pipelines: readonly string[] | undefined
  /** The user whose files are read, where the pod says it. */
  readonly user: number | undefined
}

/** The container and the volumes that a pod gets. */
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
    // The containers of the pod start when it is there, so that a Job of a moment has its sidecar, too.
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
  // The agent may not set a group in a user's pod: the files are readable by the container's own user.
  const readable = [bundle, secrets, operator].map((volume) => ({
    name: volume?.name,
    projected: { ...volume?.projected, defaultMode: 0o444 },
  }))
  return { container, volumes: [...readable, { name: `${sidecarPrefix}data`, emptyDir: {} }] }
}
